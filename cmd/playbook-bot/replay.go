package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"playbook-bot/bot"
	"playbook-bot/bot/forge"
	"playbook-bot/bot/forge/forgetest"
	"playbook-bot/bot/forge/gitea"
	"playbook-bot/bot/store"
	"playbook-bot/bot/webhook"
	"playbook-bot/playbook"
	"playbook-bot/templates"
)

type replayFlags struct {
	secret      string
	bot         string
	permissions []string
	json        bool
}

func (a *app) replay() *cobra.Command {
	var f replayFlags
	cmd := &cobra.Command{
		Use:     "replay DIR",
		GroupID: groupBot,
		Short:   "Run recorded deliveries through the bot, and print what it would answer",
		Long: `replay reads recorded deliveries (NAME.json is a body, byte for byte,
NAME.headers its headers) and runs them through the real intake and worker, in
the order in which they happened (within a second: by name), against a forge in
memory that holds what they speak of. It prints the status each delivery got
and the answers the bot would post. Nothing leaves the program.

The signatures are verified: with --secret if all hooks had that one, else with
the secrets derived from PLAYBOOK_SECRET. A recording does not say who may do
what: say it with --permission, or everybody is a reader.

Ends with 1 if a delivery was refused.`,
		Example: `  playbook-bot replay deliveries --secret s3cret
  playbook-bot replay deliveries --permission ada=admin --permission bob=write --json`,
		Args: oneArg("DIR", "a directory of NAME.json and NAME.headers"),
		RunE: func(cmd *cobra.Command, args []string) error { return a.runReplay(cmd.Context(), args[0], f) },
	}
	fl := cmd.Flags()
	fl.StringVar(&f.secret, "secret", "", "the `SECRET` that all the recorded hooks had")
	fl.StringVar(&f.bot, "bot", "playbook-bot", "the bot's own `LOGIN`")
	fl.StringArrayVar(&f.permissions, "permission", nil, "`LOGIN=PERMISSION` (read, write or admin) in the recorded repositories; repeatable")
	fl.BoolVar(&f.json, "json", false, `print a list of {"delivery", "event", "repository", "status", "answers"}`)
	return cmd
}

// replayed is a delivery and what came of it.
type replayed struct {
	Delivery   string           `json:"delivery"`
	Event      string           `json:"event"`
	Repository string           `json:"repository"`
	Status     int              `json:"status"`
	Answers    []replayedAnswer `json:"answers"`
}

type replayedAnswer struct {
	Thread int64  `json:"thread"`
	Body   string `json:"body"`
}

func (a *app) runReplay(ctx context.Context, dir string, f replayFlags) error {
	p, err := a.book()
	if err != nil {
		return err
	}
	deliveries, err := forgetest.ReadDeliveries(os.DirFS(dir))
	if err != nil {
		return err
	}
	if len(deliveries) == 0 {
		return fmt.Errorf("no recorded delivery in %s: want NAME.json with NAME.headers", dir)
	}
	r, err := a.newReplay(ctx, p, deliveries, f)
	if err != nil {
		return err
	}
	defer r.close()
	refused := 0
	var out []replayed
	for _, d := range r.recorded {
		one, err := r.play(ctx, d)
		if err != nil {
			return fmt.Errorf("replay %s: %w", d.Name, err)
		}
		if one.Status != http.StatusAccepted {
			refused++
		}
		out = append(out, one)
		if !f.json {
			a.printReplayed(one)
		}
	}
	if f.json {
		err = a.printJSON(out)
	}
	if err == nil && refused > 0 {
		err = fmt.Errorf("%s refused; 401 is a wrong secret (--secret, PLAYBOOK_SECRET)", count(refused, "delivery was", "deliveries were"))
	}
	return err
}

// replay is a bot on a forge in memory, on the clock of the recording.
type replay struct {
	recorded    []forgetest.Recorded
	permissions map[string]string
	login       string
	now         time.Time

	fake   *forgetest.Forge
	db     store.Store
	bot    *bot.Bot
	send   func(path string, h http.Header, body []byte) int
	posted map[int64]bool // the bot's comments that were shown
}

func (r *replay) close() {
	r.fake.Close()
	_ = r.db.Close() // in memory: nothing to lose
}

// newReplay makes the forge that the deliveries speak of, and the bot on it.
func (a *app) newReplay(ctx context.Context, p *playbook.Playbook, deliveries []forgetest.Delivery, f replayFlags) (*replay, error) {
	r := &replay{login: f.bot, posted: map[int64]bool{}}
	r.fake = forgetest.New(r.clock)
	var err error
	if r.recorded, err = r.fake.Prepare(deliveries); err != nil {
		return nil, err
	}
	r.now = r.recorded[0].At
	logins, repos := []string{}, bot.Patterns{}
	for _, d := range r.recorded {
		logins = append(logins, d.Logins()...)
		if name := d.Repo(); name != "" && !slices.Contains(repos, name) {
			repos = append(repos, name)
		}
	}
	if len(repos) == 0 {
		return nil, errors.New("none of the deliveries names a repository")
	}
	if r.permissions, err = permissions(f.permissions, logins); err != nil {
		return nil, err
	}
	if !containsFold(logins, f.bot) {
		r.fake.AddUser(f.bot)
	}
	secrets, literals, err := a.replaySecrets(f.secret, r.recorded)
	if err != nil {
		return nil, err
	}
	if r.db, err = store.Open(ctx, "sqlite::memory:", store.Options{Now: r.clock}); err != nil {
		return nil, fmt.Errorf("open a database in memory: %w", err)
	}
	cfg := bot.Config{
		Ledger: r.db, Playbook: p, Repositories: repos, Secrets: func() []string { return secrets },
		Owner: "replay", Now: r.clock, Log: newLogger(a.stderr, slog.LevelWarn, "text"),
	}
	if err := r.assemble(cfg, literals); err != nil {
		r.close()
		return nil, err
	}
	return r, nil
}

func (r *replay) clock() time.Time { return r.now }

// assemble wires the bot and its intake as serve does.
func (r *replay) assemble(cfg bot.Config, literals map[string]string) error {
	token := r.fake.Token(r.login)
	client, err := gitea.New(gitea.Config{BaseURL: r.fake.Host, HTTP: r.fake.Client(), Now: r.clock, Token: func() string { return token }})
	if err != nil {
		return err
	}
	cfg.Forges = map[string]bot.Forge{client.Name(): client}
	if cfg.Renderer, err = templates.New(templates.Options{Playbook: cfg.Playbook}); err != nil {
		return err
	}
	if r.bot, err = bot.New(cfg); err != nil {
		return err
	}
	hook, err := webhook.New(webhook.Config{
		Dialects: []webhook.Dialect{gitea.Dialect{}}, Masters: cfg.Secrets, Literals: literals,
		Accept: r.bot.Accept, Log: cfg.Log,
	})
	if err != nil {
		return err
	}
	r.send = forgetest.HandlerSink(hook)
	return nil
}

// replaySecrets gives the master secrets and, with --secret, that one for
// every recorded hook.
func (a *app) replaySecrets(secret string, recorded []forgetest.Recorded) (masters []string, literals map[string]string, err error) {
	if secret == "" {
		s, err := loadConfig(a.environ, nil, "PLAYBOOK_SECRET")
		if err != nil {
			return nil, nil, fmt.Errorf("--secret is not given, and %w", err)
		}
		return s.Secrets(), nil, nil
	}
	literals = make(map[string]string)
	for _, d := range recorded {
		literals[d.Path] = secret
	}
	// Only the markers hang on it, and they are not shown.
	return []string{"the markers of a replay are worth nothing"}, literals, nil
}

// permissions reads --permission.
func permissions(list, logins []string) (map[string]string, error) {
	m := make(map[string]string)
	for _, item := range list {
		login, right, ok := strings.Cut(item, "=")
		if !ok || !slices.Contains([]string{"none", "read", "write", "admin"}, right) {
			return nil, usagef("--permission %s: want LOGIN=PERMISSION, one of none, read, write, admin", item)
		}
		if !containsFold(logins, login) {
			return nil, usagef("--permission %s: no delivery names that account", item)
		}
		m[login] = right
	}
	return m, nil
}

func containsFold(list []string, s string) bool {
	return slices.ContainsFunc(list, func(have string) bool { return strings.EqualFold(have, s) })
}

// play delivers one recorded delivery, lets the bot work until nothing is due,
// and collects what it posted.
func (r *replay) play(ctx context.Context, d forgetest.Recorded) (replayed, error) {
	out := replayed{Delivery: d.Name, Event: d.Event, Repository: d.Repo(), Answers: []replayedAnswer{}}
	r.now = d.At
	r.fake.Mirror(d)
	if d.Repo() != "" {
		r.fake.AddCollaborator(d.Repo(), r.login, "admin")
		for login, right := range r.permissions {
			r.fake.AddCollaborator(d.Repo(), login, right)
		}
	}
	out.Status = r.send(d.Path, d.Header, d.Body)
	if err := r.bot.Drain(ctx); err != nil {
		return out, err
	}
	if d.Repo() == "" || d.Thread() == 0 || r.fake.Issue(d.Repo(), d.Thread()).Number == 0 {
		return out, nil
	}
	for _, c := range r.fake.CommentsBy(r.login, d.Repo(), d.Thread()) {
		if !r.posted[c.ID] && !recordedComment(r.recorded, c) {
			r.posted[c.ID] = true
			out.Answers = append(out.Answers, replayedAnswer{Thread: d.Thread(), Body: withoutMarker(c.Body)})
		}
	}
	return out, nil
}

// recordedComment reports whether the bot posted it at the time, not now.
func recordedComment(recorded []forgetest.Recorded, c forge.Comment) bool {
	return slices.ContainsFunc(recorded, func(d forgetest.Recorded) bool { return d.Comment() == c.ID })
}

// withoutMarker leaves out the last line, which only the bot itself reads.
func withoutMarker(body string) string {
	if i := strings.LastIndex(body, "\n<!-- "); i >= 0 {
		body = body[:i]
	}
	return strings.TrimRight(body, "\n")
}

func (a *app) printReplayed(r replayed) {
	pg := &page{w: a.stdout}
	pg.head("%s: %s in %s: %d", r.Delivery, r.Event, r.Repository, r.Status)
	for _, answer := range r.Answers {
		pg.item("would answer in #%d:", answer.Thread)
		for line := range bytes.Lines([]byte(answer.Body)) {
			pg.line("  | ", "%s", bytes.TrimRight(line, "\r\n"))
		}
	}
}
