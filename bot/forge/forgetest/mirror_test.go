package forgetest_test

import (
	"context"
	"errors"
	"os"
	"testing"
	"time"

	"playbook-bot/bot/forge"
	"playbook-bot/bot/forge/forgetest"
	"playbook-bot/bot/forge/gitea"
)

// TestMirror brings the fake to what the recorded deliveries show, one after
// the other, and looks at it as the bot does.
func TestMirror(t *testing.T) {
	ds, err := forgetest.ReadDeliveries(os.DirFS("../gitea/testdata"))
	if err != nil {
		t.Fatal(err)
	}
	f := forgetest.New(time.Now)
	t.Cleanup(f.Close)
	recorded, err := f.Prepare(ds)
	if err != nil {
		t.Fatal(err)
	}
	bot := f.AddUser("playbook-bot")
	c, err := gitea.New(gitea.Config{BaseURL: f.Host, HTTP: f.Client(), Token: func() string { return f.Token("playbook-bot") }})
	if err != nil {
		t.Fatal(err)
	}
	ctx := context.Background()
	seen := map[string]bool{}
	for i, r := range recorded {
		if i > 0 && r.At.Before(recorded[i-1].At) {
			t.Errorf("%s happened before %s", r.Name, recorded[i-1].Name)
		}
		f.Mirror(r)
		seen[r.Name] = true
		ev, err := gitea.Dialect{}.Decode(r.Header, r.Body)
		if err != nil || ev.Object.Kind != forge.ObjectComment {
			continue
		}
		got, err := c.Comment(ctx, ev.Repo.ID, ev.Object.ID)
		switch {
		case ev.Action == forge.ActionDeleted:
			if !errors.Is(err, forge.ErrNotFound) {
				t.Errorf("%s: the deleted comment is still there: %v", r.Name, err)
			}
		case err != nil:
			t.Errorf("%s: %v", r.Name, err)
		case got.Body != ev.Body || got.Author != ev.Author || got.Number != ev.Number:
			t.Errorf("%s: the comment is %+v", r.Name, got)
		}
	}
	if len(seen) != len(ds) {
		t.Errorf("%d of %d deliveries came through", len(seen), len(ds))
	}
	repo, err := c.RepoByName(ctx, "ops", "runtime-renamed")
	if err != nil || repo.ID != 3 {
		t.Fatalf("the renamed repository is %+v, %v", repo, err)
	}
	issue, err := c.Issue(ctx, 3, 1)
	if err != nil || issue.Author != (forge.Account{ID: 3, Login: "bob"}) || issue.Closed {
		t.Errorf("the issue is %+v, %v", issue, err)
	}
	if pull, err := c.Issue(ctx, 3, 2); err != nil || !pull.Pull {
		t.Errorf("the pull request is %+v, %v", pull, err)
	}
	// What the bot posts must not take an id that a recording speaks of.
	f.AddCollaborator("ops/runtime-renamed", "playbook-bot", "admin")
	posted, err := c.CreateComment(ctx, 3, 1, "hello")
	if err != nil || posted.ID <= 142 || posted.Author != bot {
		t.Errorf("posted %+v, %v", posted, err)
	}
}
