package main

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"playbook-bot/bot"
	"playbook-bot/bot/store"
)

func (a *app) approval() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:     "approval REQUEST",
		GroupID: groupBot,
		Short:   "Does the approval of this request stand, right now?",
		Long: `approval says whether the approval of a request stands at this moment: 0 as
exit status if it does, 3 if not. It is for the script that carries a restart
out. Labels, reactions and the text of comments are no proof; whoever can write
in the issue can make those.

REQUEST is the id the bot gave, such as 41/1. Where issues of several
repositories have that number, name the repository: ops/incidents#41/1; on
several forges the forge too: github:ops/incidents#41/1.

It reads the database of DATABASE_URL, beside the running bot. While something
new in the thread waits to be looked at, no approval stands.`,
		Example: `  playbook-bot approval 41/1
  playbook-bot approval ops/incidents#41/1 --json && ./restart-everything`,
		Args: oneArg("REQUEST", "such as 41/1 or ops/incidents#41/1"),
		RunE: func(cmd *cobra.Command, args []string) error { return a.runApproval(cmd.Context(), args[0], asJSON) },
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, `print {"thread", "request", "standing", "action", "target", "expires", "why", …}`)
	return cmd
}

var requestID = regexp.MustCompile(`^(?:([^/#\s]+/[^/#\s]+)#)?(([1-9][0-9]{0,17})/[1-9][0-9]{0,8})$`)

func (a *app) runApproval(ctx context.Context, arg string, asJSON bool) error {
	m := requestID.FindStringSubmatch(arg)
	if m == nil {
		return usagef("%q is no request: want an id such as 41/1 or ops/incidents#41/1", arg)
	}
	repo, request := m[1], m[2]
	number, err := strconv.ParseInt(m[3], 10, 64)
	if err != nil {
		return usagef("%q is no request: %v", arg, err)
	}
	s, err := loadConfig(a.environ, nil, "DATABASE_URL")
	if err != nil {
		return err
	}
	db, err := store.Open(ctx, s.Database, store.Options{Offline: true})
	if err != nil {
		return fmt.Errorf("open the database of DATABASE_URL: %w", err)
	}
	defer func() { _ = db.Close() }()
	status, err := findApproval(ctx, db, repo, request, number)
	if err != nil {
		return err
	}
	if asJSON {
		err = a.printJSON(status)
	} else {
		a.printApproval(status)
	}
	if err == nil && !status.Standing {
		err = errRefused
	}
	return err
}

// findApproval looks for the request in the threads of that number. Where
// several repositories have one and none was named, it answers for none of
// them: guessing could approve a restart of something else.
func findApproval(ctx context.Context, db store.Store, repo, request string, number int64) (bot.ApprovalStatus, error) {
	none := bot.ApprovalStatus{Thread: repo, Request: request, Why: "the bot knows no such issue"}
	threads, err := db.ThreadsByNumber(ctx, number)
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return none, fmt.Errorf("look up request %s: %w", request, err)
	}
	var fit []*store.Thread
	var names []string
	at, name := splitForge(repo)
	for _, t := range threads {
		if (name == "" || strings.EqualFold(name, t.Repo.FullName())) && (at == "" || at == t.Forge) {
			fit = append(fit, t)
			names = append(names, t.Forge+":"+t.Repo.FullName()+"#"+request)
		}
	}
	switch len(fit) {
	case 0:
		return none, nil
	case 1:
	default:
		return none, usagef("several repositories have an issue %d: name one of %s", number, strings.Join(names, ", "))
	}
	now, err := db.Now(ctx)
	if err != nil {
		return none, fmt.Errorf("ask the database's clock: %w", err)
	}
	status, err := bot.ApprovalOf(fit[0], request, now)
	if err != nil {
		return none, fmt.Errorf("read request %s: %w", names[0], err)
	}
	return status, nil
}

func (a *app) printApproval(s bot.ApprovalStatus) {
	pg := &page{w: a.stdout}
	if !s.Standing {
		pg.head("NOT APPROVED: request %s: %s", s.Request, s.Why)
		if !s.Expires.IsZero() {
			pg.item("it was for %s%s, until %s", s.Action, onTarget(s.Target), utc(s.Expires))
		}
		return
	}
	pg.head("APPROVED until %s: %s%s", s.Expires.UTC().Format(time.RFC3339), s.Action, onTarget(s.Target))
	pg.item("request %s in %s, approved %s", s.Request, s.Thread, utc(s.At))
	if s.Endorser != "" {
		pg.item("endorsed by %s", s.Endorser)
	}
	if s.Grant != "" {
		pg.item("by break-glass, on the grant %s", s.Grant)
	}
}
