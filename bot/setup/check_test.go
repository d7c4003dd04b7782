package setup

import (
	"context"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"playbook-bot/bot/forge"
	"playbook-bot/bot/webhook"
	"playbook-bot/playbook"
)

var noon = time.Date(2026, 12, 1, 12, 0, 0, 0, time.UTC)

// healthy is a world in which everything is in order, and its check-up.
func healthy(t *testing.T) (*world, *Checkup, map[string]webhook.Record) {
	t.Helper()
	w := newWorld()
	perform(t, wanting(w, "ops/incidents").Plan)
	records := map[string]webhook.Record{"/webhook/gitea/repo/41": {AcceptedAt: noon.Add(-time.Hour)}}
	tests := 0
	w.tested = func(int64) {
		tests++
		records["/webhook/gitea/repo/41"] = webhook.Record{AcceptedAt: noon.Add(time.Duration(tests) * time.Second)}
	}
	return w, &Checkup{
		Forge: w, Tester: w, Repositories: []string{"ops/incidents"}, PublicURL: publicURL, Playbook: playbook.Default(),
		Record:  func(_ context.Context, path string) (webhook.Record, error) { return records[path], nil },
		Running: true, Now: func() time.Time { return noon }, Patience: 5 * time.Second, Poll: time.Second,
	}, records
}

// outcome is every finding that is not ok, a line each.
func outcome(found []Finding) string {
	var out []string
	for _, f := range found {
		if f.Status != OK {
			out = append(out, strings.TrimSpace(string(f.Status)+" "+f.Check+" "+f.Place))
		}
		if (f.Status == Failed) != (f.Cure != "") {
			out = append(out, f.Check+" has a cure: "+f.Cure)
		}
	}
	return strings.Join(out, "\n")
}

func TestCheckHealthy(t *testing.T) {
	_, u, _ := healthy(t)
	found := u.Run(t.Context())
	mustEqual(t, "findings", outcome(found), ``)
	for _, check := range []string{"address", "version", "clock", "token", "repository", "scopes", "rights", "overlay", "approvers", "hook", "reachability", "delivery"} {
		if !slices.ContainsFunc(found, func(f Finding) bool { return f.Check == check }) {
			t.Errorf("%s was not checked", check)
		}
	}
}

// overlaid is where a repository's own playbook is on the default branch;
// tightens is one.
const (
	overlaid = ":.gitea/recovery-playbook.yaml"
	tightens = "tighten:\n  - {action: host_restart, disable: true}\n"
)

func refusal(status int) error {
	return &forge.Error{Op: "ask", Status: status, Kind: forge.ErrUnverified, FromForge: true}
}

var away = &forge.Error{Op: "ask", Kind: forge.ErrRetry}

// teamed is the default playbook with a team in a role.
func teamed() *playbook.Playbook {
	text, err := os.ReadFile("../../playbook/mcp.yaml")
	if err != nil {
		panic(err)
	}
	p, err := playbook.Load(strings.NewReader(strings.Replace(string(text), "controller: []", "controller: [ops/oncall]", 1)))
	if err != nil {
		panic(err)
	}
	if len(p.RoleMembers()) != 1 {
		panic("the playbook has another form")
	}
	return p
}

func TestCheckFindsOneFault(t *testing.T) {
	const hooked = "/webhook/gitea/repo/41"
	for name, c := range map[string]struct {
		breakIt func(w *world, u *Checkup, records map[string]webhook.Record)
		want    string
	}{
		"no answer":             {func(w *world, _ *Checkup, _ map[string]webhook.Record) { w.errs["Version"] = away }, "failed address"},
		"no answer but once":    {func(w *world, _ *Checkup, _ map[string]webhook.Record) { w.errs["Self"] = away }, "failed address"},
		"token unknown":         {func(w *world, _ *Checkup, _ map[string]webhook.Record) { w.errs["Self"] = refusal(401) }, "failed token"},
		"token needed and bad":  {func(w *world, _ *Checkup, _ map[string]webhook.Record) { w.errs["Version"] = refusal(401) }, "failed token"},
		"version hidden":        {func(w *world, _ *Checkup, _ map[string]webhook.Record) { w.errs["Version"] = refusal(403) }, "skipped version"},
		"version too old":       {func(w *world, _ *Checkup, _ map[string]webhook.Record) { w.version.Enough = false }, "failed version"},
		"version of no form":    {func(w *world, _ *Checkup, _ map[string]webhook.Record) { w.version.Known = false }, "skipped version"},
		"clock behind":          {func(w *world, _ *Checkup, _ map[string]webhook.Record) { w.version.Date = noon.Add(time.Minute) }, "failed clock"},
		"clock ahead":           {func(w *world, _ *Checkup, _ map[string]webhook.Record) { w.version.Date = noon.Add(-time.Minute) }, "failed clock"},
		"clock untold":          {func(w *world, _ *Checkup, _ map[string]webhook.Record) { w.version.Date = time.Time{} }, "skipped clock"},
		"scope read:user":       {func(w *world, _ *Checkup, _ map[string]webhook.Record) { w.errs["Self"] = refusal(403) }, "failed scopes"},
		"scope write:issue":     {func(w *world, _ *Checkup, _ map[string]webhook.Record) { w.errs["React"] = refusal(403) }, "failed scopes"},
		"scope read:repository": {func(w *world, _ *Checkup, _ map[string]webhook.Record) { w.errs["RepoByName"] = refusal(403) }, "failed scopes\nskipped repository ops/incidents"},
		"archived": {func(w *world, _ *Checkup, _ map[string]webhook.Record) {
			w.errs["React"] = &forge.Error{Kind: forge.ErrPermanent}
		}, ""},
		"no repository": {func(_ *world, u *Checkup, _ map[string]webhook.Record) { u.Repositories = []string{"ops/none"} }, "failed repository ops/none\nskipped scopes"},
		"former name":   {func(_ *world, u *Checkup, _ map[string]webhook.Record) { u.Repositories = []string{"ops/former"} }, "failed repository ops/former\nskipped scopes"},
		"less than admin": {func(w *world, u *Checkup, _ map[string]webhook.Record) {
			w.repos[0].perms["playbook-bot"] = forge.PermissionWrite
		}, "failed rights ops/incidents\nskipped approvers ops/incidents"},
		"less than admin, nobody to ask": {func(w *world, u *Checkup, _ map[string]webhook.Record) {
			w.repos[0].perms["playbook-bot"], w.errs["Hooks"], u.Tester = forge.PermissionRead, refusal(403), nil
		}, "failed rights ops/incidents\nskipped approvers ops/incidents\nskipped hook ops/incidents\nskipped reachability ops/incidents\nskipped delivery ops/incidents"},
		"one owner": {func(w *world, _ *Checkup, _ map[string]webhook.Record) {
			w.repos[0].perms["bob"] = forge.PermissionAdmin
		}, "failed approvers ops/incidents"},
		"the bot is no second": {func(w *world, _ *Checkup, _ map[string]webhook.Record) {
			delete(w.repos[0].perms, "bob")
			w.repos[0].perms["playbook-bot"] = forge.PermissionOwner
		}, "failed approvers ops/incidents"},
		"no hook": {func(w *world, _ *Checkup, _ map[string]webhook.Record) { w.repos[0].hooks = nil },
			"failed hook ops/incidents\nskipped reachability ops/incidents\nskipped delivery ops/incidents"},
		"hook off": {func(w *world, _ *Checkup, _ map[string]webhook.Record) { w.repos[0].hooks[0].Active = false },
			"failed hook ops/incidents\nskipped reachability ops/incidents\nskipped delivery ops/incidents"},
		"hook elsewhere": {func(w *world, _ *Checkup, _ map[string]webhook.Record) {
			w.repos[0].hooks[0].URL = "https://old.example.org" + hooked
		},
			"failed hook ops/incidents\nskipped reachability ops/incidents\nskipped delivery ops/incidents"},
		"hook elsewhere, address unsaid": {func(w *world, u *Checkup, _ map[string]webhook.Record) {
			w.repos[0].hooks[0].URL, u.Assumed = "https://old.example.org"+hooked, true
		}, ""},
		"a second hook that is off": {func(w *world, _ *Checkup, _ map[string]webhook.Record) {
			off := goodHook(1, publicURL+hooked)
			off.Active = false
			w.repos[0].hooks = append([]forge.Hook{off}, w.repos[0].hooks...)
		}, ""},
		"hook without pushes": {func(w *world, _ *Checkup, _ map[string]webhook.Record) { w.repos[0].hooks[0].Testable = false }, "skipped reachability ops/incidents"},
		"organisation's hook": {func(w *world, _ *Checkup, records map[string]webhook.Record) {
			w.orgHooks, w.repos[0].hooks = []forge.Hook{goodHook(9, publicURL+"/webhook/gitea/org/7")}, nil
			records["/webhook/gitea/org/7"] = webhook.Record{AcceptedAt: noon}
		}, "skipped reachability ops/incidents"},
		"organisation's hook, hidden": {func(w *world, u *Checkup, records map[string]webhook.Record) {
			w.repos[0].hooks, w.errs["Hooks ops"] = nil, refusal(403)
			records["/webhook/gitea/org/7"] = webhook.Record{AcceptedAt: noon}
		}, "skipped reachability ops/incidents"},
		"other secret": {func(w *world, _ *Checkup, records map[string]webhook.Record) {
			w.tested = func(int64) {
				records[hooked] = webhook.Record{RefusedAt: noon, Status: 401, Why: "the signature does not fit"}
			}
		}, "failed reachability ops/incidents\nskipped delivery ops/incidents"},
		"refused otherwise": {func(w *world, _ *Checkup, records map[string]webhook.Record) {
			w.tested = func(int64) {
				records[hooked] = webhook.Record{RefusedAt: noon, Status: 415, Why: "neither JSON nor a form"}
			}
		}, "failed reachability ops/incidents\nskipped delivery ops/incidents"},
		"not reached":       {func(w *world, _ *Checkup, _ map[string]webhook.Record) { w.tested = nil }, "failed reachability ops/incidents\nskipped delivery ops/incidents"},
		"test not allowed":  {func(w *world, _ *Checkup, _ map[string]webhook.Record) { w.errs["TestHook"] = refusal(403) }, "skipped reachability ops/incidents"},
		"no administrator":  {func(_ *world, u *Checkup, _ map[string]webhook.Record) { u.Tester = nil }, "skipped reachability ops/incidents"},
		"bot not running":   {func(_ *world, u *Checkup, _ map[string]webhook.Record) { u.Running = false }, "skipped reachability ops/incidents"},
		"no record to read": {func(_ *world, u *Checkup, _ map[string]webhook.Record) { u.Record = nil }, "skipped reachability ops/incidents\nskipped delivery ops/incidents"},
		"no playbook":       {func(_ *world, u *Checkup, _ map[string]webhook.Record) { u.Playbook = nil }, "skipped overlay ops/incidents\nskipped approvers ops/incidents"},
		"an overlay":        {func(w *world, _ *Checkup, _ map[string]webhook.Record) { w.repos[0].files[overlaid] = tightens }, ""},
		"an overlay that is none": {func(w *world, _ *Checkup, _ map[string]webhook.Record) {
			w.repos[0].files[overlaid] = "tighten: all"
		}, "failed overlay ops/incidents"},
		"an overlay that loosens": {func(w *world, _ *Checkup, _ map[string]webhook.Record) {
			w.repos[0].files[overlaid] = "tighten:\n  - {action: full_mcp_restart, standing: read}\n"
		}, "failed overlay ops/incidents"},
		"an overlay that is a directory": {func(w *world, _ *Checkup, _ map[string]webhook.Record) {
			w.repos[0].files[overlaid], w.errs["File"] = tightens, away
		}, "failed overlay ops/incidents"},
		"an overlay that disables what only one could approve": {func(w *world, _ *Checkup, _ map[string]webhook.Record) {
			w.repos[0].files[overlaid] = tightens
			w.repos[0].perms["bob"] = forge.PermissionAdmin
		}, ""},
		"an overlay that leaves one who could approve": {func(w *world, _ *Checkup, _ map[string]webhook.Record) {
			w.repos[0].files[overlaid] = tightens + "  - {action: full_mcp_restart, standing: owner}\n"
			w.repos[0].perms["bob"] = forge.PermissionAdmin
		}, "failed approvers ops/incidents"},
		"no delivery ever": {func(_ *world, u *Checkup, r map[string]webhook.Record) { u.Tester = nil; delete(r, hooked) }, "skipped reachability ops/incidents\nfailed delivery ops/incidents"},
		"last one refused": {func(_ *world, u *Checkup, r map[string]webhook.Record) {
			u.Tester = nil
			r[hooked] = webhook.Record{AcceptedAt: noon.Add(-time.Hour), RefusedAt: noon.Add(-time.Minute), Status: 401}
		}, "skipped reachability ops/incidents\nfailed delivery ops/incidents"},
		"refused before, and tested now": {func(w *world, _ *Checkup, r map[string]webhook.Record) {
			r[hooked] = webhook.Record{RefusedAt: noon.Add(-time.Minute), Status: 401}
		}, ""},
		"role's team unreadable": {func(w *world, u *Checkup, _ map[string]webhook.Record) {
			u.Playbook, w.errs["TeamMember"] = teamed(), refusal(403)
		}, "failed roles ops/oncall"},
		"role's team missing": {func(w *world, u *Checkup, _ map[string]webhook.Record) {
			u.Playbook, w.errs["TeamMember"] = teamed(), notFound("team")
		}, "failed roles ops/oncall"},
		"role's team": {func(w *world, u *Checkup, _ map[string]webhook.Record) { u.Playbook = teamed() }, ""},
		"of an owner": {func(w *world, u *Checkup, _ map[string]webhook.Record) {
			u.Repositories = []string{"ops/*", "ops/incidents"}
		},
			"failed rights ops/infra\nskipped approvers ops/infra\nfailed hook ops/infra\nskipped reachability ops/infra\nskipped delivery ops/infra"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w, u, records := healthy(t)
				c.breakIt(w, u, records)
				mustEqual(t, "findings", outcome(u.Run(t.Context())), c.want)
			})
		})
	}
}

// TestCheckTellsThemApart: what is worth knowing is in the words.
func TestCheckTellsThemApart(t *testing.T) {
	w, u, _ := healthy(t)
	found := u.Run(t.Context())
	detail := func(check string) string {
		i := slices.IndexFunc(found, func(f Finding) bool { return f.Check == check })
		return found[i].Detail
	}
	if got := detail("approvers"); got != "rank 8: ada, bob; rank 9: ada, bob; rank 10: ada, bob" {
		t.Errorf("approvers: %s", got)
	}
	w.version.Text = "1.26.0\x1b[2J\n<script>" + strings.Repeat("x", 200)
	found = u.Run(t.Context())
	if got := detail("version"); strings.ContainsAny(got, "\x1b\n") || len(got) > 60 {
		t.Errorf("a server's text is shown as it is: %q", got)
	}
	for d, want := range map[time.Duration]string{
		0: "just now", 59 * time.Second: "just now", 90 * time.Minute: "90 minutes ago", 47 * time.Hour: "47 hours ago", 1000 * time.Hour: "41 days ago",
	} {
		if got := ago(noon, noon.Add(-d)); got != want {
			t.Errorf("%s: %q", d, got)
		}
	}
}

// TestCheckWritesNothing: a check-up must be safe at any time.
func TestCheckWritesNothing(t *testing.T) {
	w, u, _ := healthy(t)
	before := w.writes
	u.Run(t.Context())
	w.errs["Hooks"] = errors.New("any error")
	u.Run(t.Context())
	if w.writes != before {
		t.Errorf("%d writes", w.writes-before)
	}
}
