package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strconv"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/spf13/cobra"

	"playbook-bot/bot"
	"playbook-bot/bot/mcp"
	"playbook-bot/bot/store"
	"playbook-bot/playbook"
	"playbook-bot/templates"
)

func (a *app) mcp() *cobra.Command {
	return &cobra.Command{
		Use:     "mcp",
		GroupID: groupOffline,
		Short:   "Serve the playbook to an agent as MCP tools, over stdin and stdout",
		Long: `mcp is an MCP server for one agent's host, which starts it: ask the gate, get the
next rung, make records, see what a restart would end. No tool restarts
anything.

Without any configuration it asks nobody and files nothing. With MCP_ACCOUNT it
also files requests and records, in that account's name, through the bot: then
it needs the bot's configuration (GITEA_URL, GITEA_TOKEN or another forge's,
PLAYBOOK_SECRET, REPOSITORIES, DATABASE_URL), and a bot that serves the same
database, which answers. Who should not hold those uses /mcp on the bot instead,
with a token of MCP_TOKENS.

It ends when its input does.`,
		Example: `  playbook-bot mcp
  MCP_ACCOUNT=rhea playbook-bot mcp`,
		Args: noArg,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.runMCP(cmd.Context()) },
	}
}

func (a *app) runMCP(ctx context.Context) error {
	o, closing, err := a.toolOptions(ctx)
	if err != nil {
		return err
	}
	defer closing()
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	err = mcp.NewServer(o).Run(ctx, &sdk.IOTransport{Reader: io.NopCloser(a.stdin), Writer: lasting{a.stdout}})
	if ctx.Err() != nil || errors.Is(err, io.EOF) {
		return nil // told to stop, or the host has closed its end
	}
	if err != nil {
		return fmt.Errorf("serve the tools: %w", err)
	}
	return nil
}

// lasting is a writer that closing leaves open: the process's own output.
type lasting struct{ io.Writer }

func (lasting) Close() error { return nil }

// toolOptions are the tools of playbook-bot mcp.
func (a *app) toolOptions(ctx context.Context) (o mcp.ToolOptions, closing func(), err error) {
	closing = func() {}
	o = mcp.ToolOptions{Version: version(), Now: a.now}
	if o.Playbook, err = a.book(); err != nil {
		return o, closing, err
	}
	if strings.TrimSpace(a.environ["MCP_ACCOUNT"]) == "" {
		return o, closing, nil
	}
	s, err := loadConfig(a.environ, nil)
	if err != nil {
		return o, closing, err
	}
	log := newLogger(a.stderr, s.LogLevel, s.LogFormat)
	db, err := store.Open(ctx, s.Database, store.Options{Offline: true, Logger: log})
	if err != nil {
		return o, closing, fmt.Errorf("open the database of DATABASE_URL, which the bot makes: %w", err)
	}
	closing = func() { _ = db.Close() }
	t, login, ok := s.locate(s.MCPAccount)
	if !ok {
		closing()
		return o, func() {}, configError{varError{"MCP_ACCOUNT", "names no forge that is configured"}}
	}
	b, err := a.deskBot(s, t, o.Playbook, db, log)
	if err != nil {
		closing()
		return o, func() {}, err
	}
	o.Logger, o.Account = log, login
	withDesk(&o, b, t)
	return o, closing, nil
}

// deskBot is a bot that only has its desk worked at; it is never run.
func (a *app) deskBot(s *settings, t tracker, p *playbook.Playbook, db store.Store, log *slog.Logger) (*bot.Bot, error) {
	if err := s.checkNames(p); err != nil {
		return nil, err
	}
	client, err := s.dial(t, nil, nil)
	if err != nil {
		return nil, err
	}
	r, err := templates.New(templates.Options{Playbook: p})
	if err != nil {
		return nil, err
	}
	return bot.New(bot.Config{
		Forges: map[string]bot.Forge{t.name: client}, Ledger: db, Playbook: p, Renderer: r, Repositories: s.Repositories,
		Ignored: ignoring(s.IgnoreAccounts), Grants: s.Grants, Secrets: s.Secrets, Owner: processName(),
		RequestTimeout: s.RequestTimeout, Settle: s.Settle, SettleUnknown: s.SettleProxy, Log: log,
	})
}

// withDesk lets tools file on a forge, and judge by the account's own standing
// there.
func withDesk(o *mcp.ToolOptions, b *bot.Bot, t tracker) {
	account, d := o.Account, b.Desk(t.name)
	o.Desk = desk{d: d, url: t.web()}
	o.Rights = func(ctx context.Context, repository, action string) (mcp.Rights, error) {
		standing, granted, err := d.Rights(ctx, account, repository, action)
		return mcp.Rights{Standing: standing, BreakGlassAuthorized: granted}, err
	}
}

// tools is /mcp: the tools for whoever holds a token of MCP_TOKENS. Pages of
// other origins are refused even with one: no browser has business here.
func (v *service) tools() http.Handler {
	schemas := sdk.NewSchemaCache()
	holder := func(token string) (string, bool) {
		account, ok := v.s.Tokens().account(token)
		if ok {
			// The file of tokens may have changed since it was checked.
			_, _, ok = v.s.locate(account)
		}
		return account, ok
	}
	h := mcp.Handler(holder, func(account string) *sdk.Server {
		t, login, _ := v.s.locate(account)
		o := mcp.ToolOptions{Version: version(), Playbook: v.bot.Playbook, Account: login, Logger: v.log, Schemas: schemas}
		withDesk(&o, v.bot, t)
		return mcp.NewServer(o)
	})
	return http.NewCrossOriginProtection().Handler(h)
}

// desk is the bot's desk in the tools' words.
type desk struct {
	d   *bot.Desk
	url string
}

func (k desk) File(ctx context.Context, f mcp.Filing) (mcp.Filed, error) {
	filed, err := k.d.File(ctx, bot.Filing{
		Account: f.Account, Tool: f.Tool, Repository: f.Repository, Action: f.Action, Target: f.Target, Symptoms: f.Symptoms,
		Reason: f.Reason, BreakGlass: f.BreakGlass, Attempts: f.Attempts,
	})
	return k.filed(filed, err)
}

func (k desk) Record(ctx context.Context, r mcp.Recording) (mcp.Filed, error) {
	repository, number, err := splitIssue(r.Issue)
	if err != nil {
		return mcp.Filed{}, err
	}
	filed, err := k.d.Record(ctx, bot.Recording{Account: r.Account, Tool: r.Tool, Repository: repository, Number: number, Attempt: r.Attempt})
	return k.filed(filed, err)
}

func (k desk) Status(ctx context.Context, q mcp.Inquiry) (playbook.Decision, error) {
	repository, number, err := splitIssue(q.Issue)
	if err != nil {
		return playbook.Decision{}, err
	}
	d, err := k.d.Status(ctx, bot.Inquiry{Account: q.Account, Repository: repository, Number: number, Request: q.Request})
	return d, forCaller(err)
}

func (k desk) filed(f bot.Filed, err error) (mcp.Filed, error) {
	if err != nil {
		return mcp.Filed{}, forCaller(err)
	}
	out := mcp.Filed{
		Issue: fmt.Sprintf("%s#%d", f.Repo.FullName(), f.Number), URL: fmt.Sprintf("%s/%s/issues/%d", k.url, f.Repo.FullName(), f.Number),
		Request: f.Request, Existing: f.Existing,
	}
	if f.Comment != 0 {
		out.URL += fmt.Sprintf("#issuecomment-%d", f.Comment)
	}
	return out, nil
}

// forCaller keeps what the desk says for the caller.
func forCaller(err error) error {
	var e *bot.DeskError
	if errors.As(err, &e) {
		return &mcp.DeskError{Why: e.Why, Cure: e.Cure}
	}
	return err
}

// splitIssue splits "owner/repo#41", whose form the tools have checked.
func splitIssue(s string) (repository string, number int64, err error) {
	repository, n, _ := strings.Cut(s, "#")
	number, err = strconv.ParseInt(n, 10, 64)
	if err != nil {
		return "", 0, &mcp.DeskError{Why: "that names no issue", Cure: `expected "owner/repo#41"`}
	}
	return repository, number, nil
}
