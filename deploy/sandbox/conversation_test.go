//go:build unix

package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"playbook-bot/bot"
	"playbook-bot/bot/forge/gitea"
	"playbook-bot/bot/golden"
	"playbook-bot/bot/store"
	"playbook-bot/bot/webhook"
	"playbook-bot/deploy/sandbox/internal/tracker"
)

// TestConversations plays the golden conversations, which the root's tests
// play on the fake forge, on the real Gitea.
func TestConversations(t *testing.T) {
	barrier := newBarrier(t)
	fakeOnly := 0
	for _, sc := range golden.Files(t, filepath.Join(box.tree.Bot, "bot", "testdata", "conversations")) {
		t.Run(strings.TrimSuffix(filepath.Base(sc.Name), ".txtar"), func(t *testing.T) {
			if sc.FakeOnly != "" && !playable(sc) {
				fakeOnly++
				t.Skip("fake only: " + sc.FakeOnly)
			}
			golden.Run(t, newWorld(t, sc, barrier), sc)
		})
	}
	t.Logf("%d of these scenarios run on the fake forge only", fakeOnly)
}

// playable reports whether every step can be done here. Of what golden calls a
// faker's acts that is all but moving the forge's clock (or holding it still
// between two acts) and importing: the
// deliveries, the bot and its database are ours as well as on the fake.
func playable(sc *golden.Scenario) bool {
	return !slices.ContainsFunc(sc.Steps, func(s golden.Step) bool {
		return slices.ContainsFunc([]string{"advance", "hurry", "imports"}, func(w string) bool { return slices.Contains(s.Words, w) })
	})
}

// world is a golden.World on the real Gitea. The bot is in this process, for
// then it can be told to work until nothing is left: that it says nothing
// after a text is a thing to wait for as much as an answer is. It is made of
// the same parts as the program, which TestIncident runs.
type world struct {
	t       *testing.T
	sc      *golden.Scenario
	repo    *tracker.Repo
	client  *gitea.Client
	intake  *intake
	bot     *bot.Bot
	ledger  store.Store
	barrier *barrier
}

var (
	_ golden.World     = (*world)(nil)
	_ golden.Faker     = (*world)(nil)
	_ golden.Committer = (*world)(nil)
)

func newWorld(t *testing.T, sc *golden.Scenario, barrier *barrier) *world {
	t.Helper()
	ctx := t.Context()
	org, name, _ := strings.Cut(golden.RepoName, "/")
	spec := tracker.RepoSpec{Org: org, Name: name, Owner: "olivia", People: []tracker.Person{{Login: botLogin, Permission: sc.BotPerm}}}
	for _, p := range sc.People {
		spec.People = append(spec.People, tracker.Person{Login: p.Login, Permission: p.Permission})
	}
	repo := must(box.gitea.NewRepo(ctx, spec))(t)
	// The next scenario has a repository of the same name.
	t.Cleanup(func() { ok(t, repo.Delete(context.WithoutCancel(ctx))) })

	token := must(box.gitea.Token(ctx, botLogin, tracker.BotScopes))(t)
	client := must(gitea.New(gitea.Config{BaseURL: box.gitea.URL, Token: func() string { return token }}))(t)
	w := &world{t: t, sc: sc, repo: repo, client: client, intake: &intake{t: t}, barrier: barrier}
	w.start()
	server := httptest.NewServer(w.intake)
	t.Cleanup(server.Close)
	ok(t, repo.Hook(ctx, server.URL+webhook.HookPath("gitea", webhook.ScopeRepo, repo.ID),
		webhook.HookSecret(golden.Secret, "gitea", webhook.ScopeRepo, repo.ID)))
	return w
}

// start gives the world a bot with an empty database.
func (w *world) start() {
	w.t.Helper()
	ledger := must(store.Open(w.t.Context(), "sqlite::memory:", store.Options{}))(w.t)
	w.t.Cleanup(func() { ok(w.t, ledger.Close()) })
	b, handler, err := golden.Assemble(w.sc, golden.Parts{Forge: w.client, Ledger: ledger, Settle: time.Second,
		Change: func(c *bot.Config) { c.Log = slog.New(slog.NewTextHandler(w.t.Output(), nil)) }})
	ok(w.t, err)
	w.bot, w.ledger = b, ledger
	w.intake.serve(handler)
}

// soon is what the bot is waited for: retries and second looks are due within
// it, the ends of approvals are not.
const soon = 15 * time.Second

// settle lets deliveries arrive and the bot work until neither has anything
// left to do soon.
func (w *world) settle(err error) error {
	if err != nil {
		return err
	}
	ctx := bounded(w.t, "the bot to finish")
	for {
		if err := w.barrier.pass(ctx); err != nil {
			return err
		}
		if err := w.bot.Drain(ctx); err != nil {
			return err
		}
		next, err := w.ledger.NextWake(ctx)
		if err != nil {
			return err
		}
		wait := time.Until(next)
		if next.IsZero() || wait > soon {
			break
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	// What the bot did is delivered to it as well.
	if err := w.barrier.pass(ctx); err != nil {
		return err
	}
	return w.bot.Drain(ctx)
}

func (w *world) Open(as, title, body string) (int64, error) {
	number, err := w.repo.Open(w.t.Context(), as, title, body)
	return number, w.settle(err)
}

func (w *world) Comment(as string, number int64, body string) error {
	_, err := w.repo.Comment(w.t.Context(), as, number, body)
	return w.settle(err)
}

func (w *world) EditTitle(as string, number int64, title string) error {
	return w.settle(w.repo.EditTitle(w.t.Context(), as, number, title))
}

func (w *world) EditIssue(as string, number int64, body string) error {
	return w.settle(w.repo.EditIssue(w.t.Context(), as, number, "", body))
}

func (w *world) EditComment(as string, _, id int64, body string) error {
	return w.settle(w.repo.EditComment(w.t.Context(), as, id, body))
}

func (w *world) DeleteComment(as string, _, id int64) error {
	return w.settle(w.repo.DeleteComment(w.t.Context(), as, id))
}

// Commit is no event to the bot: it asks for the file itself.
func (w *world) Commit(as, path, content string) error {
	return w.repo.Write(w.t.Context(), as, path, []byte(content))
}

func (w *world) SetClosed(as string, number int64, closed bool) error {
	return w.settle(w.repo.SetClosed(w.t.Context(), as, number, closed))
}

func (w *world) Thread(number int64) ([]golden.Post, error) {
	thread, err := w.repo.Thread(w.t.Context(), number)
	if err != nil {
		return nil, err
	}
	var posts []golden.Post
	for _, e := range thread.Entries[1:] {
		posts = append(posts, golden.Post{ID: e.ID, Author: e.Author, Body: e.Body})
	}
	return posts, nil
}

func (w *world) BotLogin() string { return botLogin }

func (w *world) Genuine(number int64, p golden.Post) bool {
	return bot.Genuine([]string{golden.Secret}, "gitea", w.repo.ID, number, p.Body)
}

func (w *world) End(number int64) (string, error) {
	thread, err := w.repo.Thread(w.t.Context(), number)
	if err != nil {
		return "", err
	}
	slices.Sort(thread.Labels)
	var out strings.Builder
	fmt.Fprintf(&out, "labels: %s\n", strings.Join(thread.Labels, " "))
	for i, e := range thread.Entries {
		what := fmt.Sprintf("comment %d", i)
		if e.ID == 0 {
			what = "issue"
		} else if e.Author == botLogin {
			continue
		}
		reactions, err := w.repo.Reactions(w.t.Context(), number, e.ID)
		if err != nil {
			return "", err
		}
		var own []string
		for content, by := range reactions {
			if slices.Contains(by, botLogin) {
				own = append(own, content)
			}
		}
		slices.Sort(own)
		fmt.Fprintf(&out, "%s: %s\n", what, strings.Join(own, " "))
	}
	return out.String(), nil
}

// Advance cannot be had here, nor can Import: such scenarios are not playable.
func (w *world) Advance(time.Duration) error { return errors.ErrUnsupported }

func (w *world) Import(string, string, int64, string) error { return errors.ErrUnsupported }

func (w *world) Become(login, permission string) error {
	return w.repo.Admit(w.t.Context(), tracker.Person{Login: login, Permission: permission})
}

// Sweep waits first: the bot leaves a young text to the delivery that may
// still come.
func (w *world) Sweep() error {
	select {
	case <-time.After(soon):
	case <-w.t.Context().Done():
	}
	return w.sweep()
}

func (w *world) sweep() error {
	return w.settle(w.bot.Sweep(w.t.Context(), "gitea"))
}

func (w *world) Quiet(on bool) error {
	w.intake.setHold(on)
	return w.settle(nil)
}

func (w *world) LoseDatabase() error {
	w.start()
	return w.sweep()
}
