package setup

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"playbook-bot/bot/forge"
	"playbook-bot/bot/webhook"
)

const publicURL = "https://bot.example.org"

var wantedLabels = []forge.LabelSpec{
	{Name: "recovery/approved", Color: "0e8a16", Exclusive: true},
	{Name: "recovery/refused", Color: "b60205", Exclusive: true},
	{Name: "recovery-contaminated", Color: "5319e7"},
}

const (
	wantedForm = "name: Restart request\n"
	formPath   = ".gitea/ISSUE_TEMPLATE/restart-request.yaml"
)

func wanting(w *world, repos ...string) Want {
	return Want{
		Admin: w, Bot: w.self, PublicURL: publicURL, Labels: wantedLabels, Form: []byte(wantedForm), FormPath: "ISSUE_TEMPLATE/restart-request.yaml",
		Secret: func(scope string, id int64) string { return fmt.Sprint("secret of ", scope, id) }, Repos: repos,
	}
}

// perform plans and does, and gives the changes that were made, one a line.
func perform(t *testing.T, plan func(context.Context) ([]Step, error)) string {
	t.Helper()
	steps, err := plan(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, s := range steps {
		if !s.Changes() {
			continue
		}
		if err := s.Do(t.Context()); err != nil {
			t.Fatal(err)
		}
		out = append(out, fmt.Sprintf("%s %s %s", s.Action, s.Place, s.What))
	}
	return strings.Join(out, "\n")
}

func mustEqual(t *testing.T, what, got, want string) {
	t.Helper()
	if want = strings.TrimSpace(strings.ReplaceAll(want, "\t", "")); got != want {
		t.Errorf("%s:\n%s\nwant:\n%s", what, got, want)
	}
}

func TestSetupAndBack(t *testing.T) {
	w := newWorld()
	want := wanting(w, "ops/incidents")
	if _, err := want.Plan(t.Context()); err != nil || w.writes != 0 {
		t.Fatalf("planning wrote %d times, %v", w.writes, err)
	}
	mustEqual(t, "set up", perform(t, want.Plan), `create ops/incidents access
		create ops/incidents label recovery/approved
		create ops/incidents label recovery/refused
		create ops/incidents label recovery-contaminated
		create ops/incidents form
		create ops/incidents hook`)
	mustEqual(t, "again", perform(t, want.Plan), ``)
	if got := w.repos[0].hooks[0].URL; got != publicURL+"/webhook/gitea/repo/41" {
		t.Errorf("the hook delivers to %s", got)
	}
	w.repos[0].used["recovery/refused"] = true
	mustEqual(t, "removed", perform(t, want.PlanRemoval), `delete ops/incidents hook 104
		delete ops/incidents form
		delete ops/incidents label recovery/approved
		delete ops/incidents label recovery-contaminated
		delete ops/incidents access`)
	mustEqual(t, "removed again", perform(t, want.PlanRemoval), ``)
}

func TestSetupOrganisation(t *testing.T) {
	w := newWorld()
	want := wanting(w, "ops/incidents", "ops/infra")
	want.Org = "OPS"
	mustEqual(t, "set up", perform(t, want.Plan), `create ops team playbook-bot
		create ops team member playbook-bot
		create ops/incidents access
		create ops/infra access
		create ops label recovery/approved
		create ops label recovery/refused
		create ops label recovery-contaminated
		create ops/incidents form
		create ops/infra form
		create ops hook`)
	mustEqual(t, "again", perform(t, want.Plan), ``)
	if got := w.orgHooks[0].URL; got != publicURL+webhook.HookPath("gitea", webhook.ScopeOrg, orgID) {
		t.Errorf("the hook delivers to %s", got)
	}
	// One of two is taken out: what serves the other stays.
	one := want
	one.Repos = []string{"ops/infra"}
	mustEqual(t, "one removed", perform(t, one.PlanRemoval), `delete ops/infra form
		delete ops access to infra`)
	mustEqual(t, "the rest removed", perform(t, want.PlanRemoval), `delete ops/incidents form
		delete ops team playbook-bot
		delete ops hook 105
		delete ops label recovery/approved
		delete ops label recovery/refused
		delete ops label recovery-contaminated`)
	if len(w.teams)+len(w.orgHooks)+len(w.orgLabel) != 0 {
		t.Error("something is left")
	}
}

func TestSetupRefuses(t *testing.T) {
	w := newWorld()
	for name, change := range map[string]func(*Want){
		"a repository of another organisation": func(x *Want) { x.Org, x.Repos = "ops", []string{"other/repo"} },
		"no repository":                        func(x *Want) { x.Repos = []string{"ops/none"} },
		"no organisation":                      func(x *Want) { x.Org = "none" },
		"no name":                              func(x *Want) { x.Repos = []string{"incidents"} },
		"a login that changed hands":           func(x *Want) { x.Bot.ID = 99 },
	} {
		want := wanting(w, "ops/incidents")
		change(&want)
		if steps, err := want.Plan(t.Context()); err == nil {
			t.Errorf("%s: planned %v", name, steps)
		}
	}
	if w.writes != 0 {
		t.Error("something was written")
	}
}

// TestSetupOfRandomStates: from any state, one run leaves nothing to do and
// nothing of other people's changed; and what a removal leaves is theirs.
func TestSetupOfRandomStates(t *testing.T) {
	for seed := range uint64(2000) {
		r := rand.New(rand.NewPCG(seed, 4))
		w := newWorld()
		w.traits.EditSecret = r.IntN(2) == 0
		foreign := disturb(r, w)
		want := wanting(w, "ops/incidents")
		want.Replace, want.PullRequest, want.NewSecret = r.IntN(3) == 0, r.IntN(3) == 0, r.IntN(4) == 0
		perform(t, want.Plan)
		want.NewSecret = false
		if left := perform(t, want.Plan); left != "" {
			t.Fatalf("seed %d: a second run did:\n%s", seed, left)
		}
		repo := w.repos[0]
		ours := 0
		for _, h := range repo.hooks {
			if h.URL == publicURL+"/webhook/gitea/repo/41" {
				ours++
				if len(faults(h)) > 0 || !h.Testable {
					t.Fatalf("seed %d: the hook has faults: %+v", seed, h)
				}
			}
		}
		if ours != 1 || !suffices(repo.perms["playbook-bot"], forge.PermissionAdmin) {
			t.Fatalf("seed %d: %d hooks, %s", seed, ours, repo.perms["playbook-bot"])
		}
		foreign(t, seed, want.Replace)
		perform(t, want.PlanRemoval)
		if left := perform(t, want.PlanRemoval); left != "" {
			t.Fatalf("seed %d: a second removal did:\n%s", seed, left)
		}
		foreign(t, seed, want.Replace)
	}
}

// disturb brings a world into a random state, and returns a check that what in
// it is other people's is as it was.
func disturb(r *rand.Rand, w *world) func(t *testing.T, seed uint64, replaced bool) {
	repo := w.repos[0]
	path := "/webhook/gitea/repo/41"
	for range r.IntN(3) {
		h := goodHook(w.id(), publicURL+path)
		h.Active, h.JSON, h.Testable = r.IntN(2) == 0, r.IntN(2) == 0, r.IntN(2) == 0
		if r.IntN(2) == 0 {
			h.Lacking = []string{"issue_comment"}
		}
		repo.hooks = append(repo.hooks, h)
	}
	others := []forge.Hook{goodHook(w.id(), "https://ci.example.org/build"), goodHook(w.id(), publicURL+path+"1"), goodHook(w.id(), "::")}
	repo.hooks = append(repo.hooks, others...)
	former := goodHook(w.id(), "https://former.example.org"+path)
	repo.hooks = append(repo.hooks, former)
	bug := forge.LabelFound{ID: w.id(), LabelSpec: forge.LabelSpec{Name: "bug", Color: "ff0000"}}
	repo.labels = append(repo.labels, bug)
	for _, l := range wantedLabels {
		if r.IntN(2) == 0 {
			l.Color, l.Exclusive = "123456", r.IntN(2) == 0
			repo.labels = append(repo.labels, forge.LabelFound{ID: w.id(), LabelSpec: l})
			repo.used[l.Name] = r.IntN(2) == 0
		}
	}
	theirs := ""
	switch r.IntN(3) {
	case 0:
		repo.files[":"+formPath] = wantedForm
	case 1:
		theirs = "name: ours\n"
		repo.files[":"+formPath] = theirs
	}
	if r.IntN(2) == 0 {
		repo.perms["playbook-bot"], repo.collab["playbook-bot"] = forge.PermissionWrite, true
	}
	return func(t *testing.T, seed uint64, replaced bool) {
		t.Helper()
		has := func(h forge.Hook) bool {
			for _, o := range repo.hooks {
				if o.ID == h.ID {
					return o.URL == h.URL
				}
			}
			return false
		}
		for _, h := range others {
			if !has(h) {
				t.Fatalf("seed %d: hook %s is gone", seed, h.URL)
			}
		}
		if has(former) == replaced {
			t.Fatalf("seed %d: replace = %v, and the hook elsewhere is there: %v", seed, replaced, has(former))
		}
		if repo.labels[0].ID != bug.ID {
			t.Fatalf("seed %d: a label of others is gone", seed)
		}
		for _, l := range repo.labels {
			if used, ok := repo.used[l.Name]; ok && used && l.Color != "123456" {
				t.Fatalf("seed %d: the colour of %s was changed", seed, l.Name)
			}
		}
		if got := repo.files[":"+formPath]; theirs != "" && !replaced && got != theirs {
			t.Fatalf("seed %d: their form was changed to %q", seed, got)
		}
		if repo.files[":README.md"] != "x" || w.repos[1].hooks != nil {
			t.Fatalf("seed %d: something else was touched", seed)
		}
	}
}

func TestProtectedBranch(t *testing.T) {
	w := newWorld()
	w.errs["ChangeFile"] = &forge.Error{Op: "commit a file", Status: 403, Kind: forge.ErrUnverified}
	steps, err := wanting(w, "ops/incidents").Plan(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range steps {
		if s.What != "form" {
			continue
		}
		err := s.Do(t.Context())
		if !errors.Is(err, forge.ErrUnverified) || !strings.Contains(err.Error(), "--pull-request") {
			t.Errorf("%v", err)
		}
		return
	}
	t.Error("the form was not planned")
}
