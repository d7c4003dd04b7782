package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"playbook-bot/bot/store"
)

func (a *app) dead() *cobra.Command {
	var resend []string
	var asJSON bool
	cmd := &cobra.Command{
		Use:     "dead",
		GroupID: groupBot,
		Short:   "List what the bot has given up, with the reason, and send it again",
		Long: `dead lists the events and answers that the bot has given up: those the forge
refused for good (a locked issue, an archived repository), and those that
failed ten times over hours. Nothing in the list is tried again by itself.

--resend ID makes one of the list wait again, "--resend all" everything, after
the reason is gone. An event is worked on as if it had just come. An answer is
looked for in its thread before it is posted, however it died, so that it
stands there once; that takes a minute. Beside a bot on SQLite, another minute
may pass before it notices.

It reads the database of DATABASE_URL, beside the running bot.`,
		Example: `  playbook-bot dead
  playbook-bot dead --resend 17
  playbook-bot dead --resend 3/answer:comment:812
  playbook-bot dead --resend all`,
		Args: noArg,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.runDead(cmd.Context(), resend, asJSON) },
	}
	cmd.Flags().StringArrayVar(&resend, "resend", nil, "try `ID` of the list again; may be given several times; all: everything")
	cmd.Flags().BoolVar(&asJSON, "json", false, `print [{"id", "kind", "thread", "object", "action", "tries", "since", "why"}]`)
	return cmd
}

// deadItem is one event or answer given up.
type deadItem struct {
	ID     string `json:"id"`
	Kind   string `json:"kind"` // "event" or "answer"
	Thread string `json:"thread"`
	// Object is the text it is about; Action what happened to it, for an
	// answer its key.
	Object string    `json:"object"`
	Action string    `json:"action"`
	Tries  int       `json:"tries"`
	Since  time.Time `json:"since"`
	Why    string    `json:"why"`

	resend func(context.Context) error
}

func (a *app) runDead(ctx context.Context, ids []string, asJSON bool) error {
	_, db, err := a.database(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = db.Close() }()
	items, err := deadItems(ctx, db)
	if err != nil {
		return err
	}
	if len(ids) > 0 {
		return a.resend(ctx, items, ids)
	}
	if asJSON {
		return a.printJSON(items)
	}
	pg := &page{w: a.stdout}
	if len(items) == 0 {
		pg.head("Nothing is dead.")
		return nil
	}
	pg.head("%s, to be sent again with playbook-bot dead --resend ID:", count(len(items), "is dead", "are dead"))
	for _, i := range items {
		pg.item("%-24s %s in %s, about %s (%s)", i.ID, i.Kind, i.Thread, i.Object, i.Action)
		pg.paste(fmt.Sprintf("since %s, %s: %s", utc(i.Since), count(i.Tries, "try", "tries"), i.Why))
	}
	return nil
}

func deadItems(ctx context.Context, db store.Store) ([]deadItem, error) {
	items := []deadItem{}
	events, err := db.Dead(ctx)
	if err != nil {
		return nil, err
	}
	for _, e := range events {
		items = append(items, deadItem{
			ID: strconv.FormatInt(e.ID, 10), Kind: "event", Thread: threadName(e.Thread), Object: fmt.Sprintf("%s %d", e.Object.Kind, e.Object.ID),
			Action: string(e.Action), Tries: e.Tries, Since: e.ReceivedAt, Why: e.Note,
			resend: func(ctx context.Context) error { return db.Resend(ctx, e.ID) },
		})
	}
	answers, err := db.DeadAnswers(ctx)
	if err != nil {
		return nil, err
	}
	for _, x := range answers {
		why := x.Note
		if x.Bodiless {
			why += " (its text is no longer kept: it cannot be sent again)"
		}
		items = append(items, deadItem{
			ID: fmt.Sprintf("%d/%s", x.Thread.ID, x.Key), Kind: "answer", Thread: threadName(x.Thread), Object: fmt.Sprintf("%s %d", x.Trigger.Kind, x.Trigger.ID),
			Action: x.Key, Tries: x.Tries, Since: x.CreatedAt, Why: why,
			resend: func(ctx context.Context) error { return db.ResendAnswer(ctx, x.Thread.ID, x.Key) },
		})
	}
	return items, nil
}

// resend tries those of the list again. With "all" it passes over what cannot
// be sent again any more; named, that is an error.
func (a *app) resend(ctx context.Context, items []deadItem, ids []string) error {
	for _, id := range ids {
		if id != "all" && !slices.ContainsFunc(items, func(i deadItem) bool { return i.ID == id }) {
			return fmt.Errorf("nothing dead has the id %q; see: playbook-bot dead", id)
		}
	}
	all := slices.Contains(ids, "all")
	sent := 0
	for _, i := range items {
		if !all && !slices.Contains(ids, i.ID) {
			continue
		}
		if err := i.resend(ctx); err != nil {
			if all && errors.Is(err, store.ErrNoBody) {
				continue
			}
			return err
		}
		sent++
	}
	fmt.Fprintf(a.stdout, "%s again\n", count(sent, "waits", "wait"))
	return nil
}

// threadName is owner/repo#41. A repository never seen by name has its number.
func threadName(t store.ThreadRef) string {
	name := t.Repo.FullName()
	switch {
	case strings.Trim(name, "/") == "":
		name = fmt.Sprintf("%s repository %d", t.Forge, t.Repo.ID)
	case t.Forge != "gitea": // whose threads go by their bare names
		name = t.Forge + ":" + name
	}
	return fmt.Sprintf("%s#%d", name, t.Number)
}
