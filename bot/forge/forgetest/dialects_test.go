package forgetest_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"playbook-bot/bot/forge"
	"playbook-bot/bot/forge/forgetest"
	"playbook-bot/bot/forge/gitea"
	"playbook-bot/bot/forge/github"
	"playbook-bot/bot/webhook"
)

// populate makes the accounts and the repository of world.
func populate(t *testing.T, f *forgetest.Forge) *forgetest.Forge {
	t.Helper()
	t.Cleanup(f.Close)
	for _, login := range []string{"root", "alice", "bob", "mallory", "botty"} {
		f.AddUser(login)
	}
	f.AddOrg("ops", "root")
	f.AddRepo("ops/runtime")
	f.AddCollaborator("ops/runtime", "alice", "admin")
	f.AddCollaborator("ops/runtime", "bob", "write")
	return f
}

// TestDeliveriesArriveInEveryDialect: what happens on the fake comes out of the
// intake as the same events, from repository and organisation hooks, in JSON
// and forms, and under no other secret.
func TestDeliveriesArriveInEveryDialect(t *testing.T) {
	const master = "a master secret of 32 characters."
	for name, d := range map[string]struct {
		make  func(func() time.Time) *forgetest.Forge
		hooks webhook.Dialect
		edits int // deliveries for title and body changed at once
	}{
		"gitea":   {forgetest.New, gitea.Dialect{}, 2},
		"forgejo": {forgetest.NewForgejo, gitea.Dialect{Forge: "forgejo"}, 2},
		"github":  {forgetest.NewGitHub, github.Dialect{}, 1},
	} {
		for _, form := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				f := populate(t, d.make(time.Now))
				var got []forge.Event
				h, err := webhook.New(webhook.Config{Dialects: []webhook.Dialect{d.hooks}, Masters: func() []string { return []string{master} },
					Accept: func(_ context.Context, ev forge.Event) (string, error) { got = append(got, ev); return "taken", nil }})
				check(t, err)
				var opts []forgetest.HookOption
				if form {
					opts = append(opts, forgetest.HookForm())
				}
				repo := f.Repo("ops/runtime")
				f.SetSink(forgetest.HandlerSink(h))
				f.AddRepoHook("ops/runtime", webhook.HookSecret(master, name, webhook.ScopeRepo, repo.ID), opts...)
				f.AddOrgHook("ops", webhook.HookSecret(master, name, webhook.ScopeOrg, repo.OwnerID), opts...)
				f.AddRepoHook("ops/runtime", "another secret", opts...)

				n := get(f.OpenIssue("bob", "ops/runtime", "t", "b"))(t)
				id := get(f.Comment("mallory", "ops/runtime", n, "c"))(t)
				check(t, f.EditComment("alice", id, "d"))
				title, body := "new", "newer"
				check(t, f.EditIssue("bob", "ops/runtime", n, &title, &body))
				check(t, f.Label("bob", "ops/runtime", n, "x"))
				check(t, f.CloseIssue("alice", "ops/runtime", n))
				check(t, f.Reopen("alice", "ops/runtime", n))
				check(t, f.DeleteComment("bob", id))
				pull := get(f.OpenPull("bob", "ops/runtime", "t", "b"))(t)
				get(f.Comment("bob", "ops/runtime", pull, "c"))(t)
				check(t, f.DeleteIssue("alice", "ops/runtime", n))
				f.Settle()

				wanted := []string{"opened", "created", "edited"}
				wanted = append(wanted, slices.Repeat([]string{"edited"}, d.edits)...)
				wanted = append(wanted, "closed", "reopened", "deleted", "opened", "created", "deleted")
				var actions []string
				for i, ev := range got {
					if i%2 == 1 { // both hooks fire, with the same body
						a, b := got[i-1], ev
						if a.Delivery == b.Delivery {
							t.Errorf("two hooks, one delivery id %s", a.Delivery)
						}
						a.Delivery, b.Delivery = "", ""
						if a != b {
							t.Errorf("two hooks differ: %+v, %+v", a, b)
						}
						continue
					}
					actions = append(actions, string(ev.Action))
					if ev.Forge != name || ev.Repo != repo || ev.OrgID != repo.OwnerID || ev.Sender.ID <= 0 || ev.Pull != (ev.Number == pull) {
						t.Errorf("%+v", ev)
					}
				}
				if !slices.Equal(actions, wanted) {
					t.Errorf("events %q, want %q", actions, wanted)
				}
				refused := 0
				for _, d := range f.Deliveries() {
					if d.Status == http.StatusUnauthorized {
						refused++
					} else if d.Status != http.StatusAccepted {
						t.Errorf("%s was answered %d", d.Event, d.Status)
					}
				}
				if refused == 0 || refused*3 != len(f.Deliveries()) {
					t.Errorf("%d of %d deliveries were refused, want the third hook's", refused, len(f.Deliveries()))
				}
			})
		}
	}
}

func TestForgejosHeaders(t *testing.T) {
	f := populate(t, forgetest.NewForgejo(time.Now))
	f.AddRepoHook("ops/runtime", "s")
	f.Hold(true)
	get(f.OpenIssue("bob", "ops/runtime", "t", "b"))(t)
	d := f.Take()[0]
	if d.Path != "/webhook/forgejo/repo/1" {
		t.Errorf("to %s", d.Path)
	}
	for _, family := range []string{"X-Forgejo-", "X-Gitea-", "X-Gogs-"} {
		for _, name := range []string{"Event", "Event-Type", "Delivery", "Signature"} {
			if d.Header.Get(family+name) == "" || d.Header.Get(family+name) != d.Header.Get("X-Forgejo-"+name) {
				t.Errorf("%s%s is %q", family, name, d.Header.Get(family+name))
			}
		}
	}
	// Its own family is enough, should it ever send no other.
	for name := range d.Header {
		if !strings.HasPrefix(name, "X-Forgejo-") {
			d.Header.Del(name)
		}
	}
	ev, err := gitea.Dialect{Forge: "forgejo"}.Decode(d.Header, d.Body)
	if err != nil || ev.Action != forge.ActionOpened || ev.Delivery == "" || ev.Forge != "forgejo" {
		t.Errorf("%+v, %v", ev, err)
	}
	if _, mac := (gitea.Dialect{}).Signature(d.Header, d.Body, d.Body); mac == nil {
		t.Error("its signature is not found")
	}
}

func TestGitHubsDeliveries(t *testing.T) {
	f := populate(t, forgetest.NewGitHub(time.Now))
	f.Hold(true)
	f.AddRepoHook("ops/runtime", "s")
	f.AddOrgHook("ops", "s")
	pings := f.Take()
	if len(pings) != 2 || pings[0].Event != "ping " || pings[1].Header.Get("X-GitHub-Hook-Installation-Target-Type") != "organization" {
		t.Fatalf("pings %+v", pings)
	}
	get(f.OpenIssue("bob", "ops/runtime", "t", "b"))(t)
	d := f.Take()[0]
	for _, name := range []string{"X-GitHub-Event", "X-GitHub-Delivery", "X-GitHub-Hook-ID", "X-GitHub-Hook-Installation-Target-ID",
		"X-GitHub-Hook-Installation-Target-Type", "X-Hub-Signature", "X-Hub-Signature-256", "User-Agent"} {
		if d.Header.Get(name) == "" {
			t.Errorf("no header %s", name)
		}
	}
	if again := f.Redelivered(d); again.Header.Get("X-GitHub-Delivery") != d.Header.Get("X-GitHub-Delivery") {
		t.Error("a redelivery has another id")
	}
	check(t, f.Label("bob", "ops/runtime", 1, "a"))
	check(t, f.Unlabel("bob", "ops/runtime", 1, "a"))
	var events []string
	for _, d := range f.Take() {
		if d.Path == "/webhook/github/repo/1" {
			events = append(events, d.Event)
		}
	}
	if !slices.Equal(events, []string{"issues labeled", "issues unlabeled"}) {
		t.Errorf("labels make %q", events)
	}
}

// TestATransferTellsBothRepositories: "transferred" where it left, "opened"
// where it came, each with the other's issue.
func TestATransferTellsBothRepositories(t *testing.T) {
	f := populate(t, forgetest.NewGitHub(time.Now))
	f.AddRepo("ops/other")
	f.AddCollaborator("ops/other", "bob", "write")
	f.Hold(true)
	f.AddRepoHook("ops/runtime", "s")
	f.AddRepoHook("ops/other", "s")
	get(f.OpenIssue("mallory", "ops/runtime", "t", "b"))(t)
	n := get(f.OpenIssue("mallory", "ops/runtime", "t", "/restart x"))(t)
	get(f.Comment("bob", "ops/runtime", n, "c"))(t)
	f.Take()
	moved := get(f.TransferIssue("bob", "ops/runtime", n, "ops/other"))(t)
	list := f.Take()
	if moved != 1 || len(list) != 2 || list[0].Path != "/webhook/github/repo/1" || list[1].Path != "/webhook/github/repo/2" {
		t.Fatalf("moved to %d, %d deliveries", moved, len(list))
	}
	out := get(github.Dialect{}.Decode(list[0].Header, list[0].Body))(t)
	in := get(github.Dialect{}.Decode(list[1].Header, list[1].Body))(t)
	if out.Action != forge.ActionTransferred || out.Number != n || out.Sender.Login != "bob" {
		t.Errorf("where it left: %+v", out)
	}
	if in.Action != forge.ActionOpened || in.Number != moved || in.Sender.Real() || in.Author.Login != "mallory" {
		t.Errorf("where it came: %+v", in)
	}
	if got := f.Comments("ops/other", moved); len(got) != 1 {
		t.Errorf("%d comments came along", len(got))
	}
	_, err := f.TransferIssue("mallory", "ops/other", moved, "ops/runtime")
	if !errors.Is(err, forgetest.ErrForbidden) {
		t.Errorf("a reader transfers: %v", err)
	}
}

// TestGitHubsWire: the few things about an answer that no adapter looks at but
// people's tools do.
func TestGitHubsWire(t *testing.T) {
	f := populate(t, forgetest.NewGitHub(time.Now))
	f.SetRateLimit(8)
	token := f.Token("bob", "all")
	get(f.OpenIssue("bob", "ops/runtime", "t", "b"))(t)
	fetch := func(method, path, body string) (*http.Response, map[string]any) {
		t.Helper()
		resp, text, err := call(t, f.Client(), token, method, f.Host+path, body)
		check(t, err)
		var v map[string]any
		_ = json.Unmarshal([]byte(text), &v)
		return resp, v
	}
	for _, root := range []string{"", "/api/v3"} {
		if resp, v := fetch("GET", root+"/repos/ops/runtime/issues/1", ""); resp.StatusCode != 200 || v["number"] != 1.0 {
			t.Errorf("below %q: %d, %v", root, resp.StatusCode, v)
		}
	}
	resp, v := fetch("POST", "/repositories/1/issues/1/comments", `{"body":"c"}`)
	if resp.StatusCode != 201 || v["issue_url"] != f.Host+"/api/v3/repos/ops/runtime/issues/1" {
		t.Errorf("%d, %v", resp.StatusCode, v)
	}
	check(t, f.Rename("ops/runtime", "renamed"))
	client := f.Client()
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	for method, status := range map[string]int{"GET": 301, "POST": 307} {
		resp, _, err := call(t, client, token, method, f.Host+"/api/v3/repos/ops/runtime/issues/1/comments", `{"body":"c"}`)
		check(t, err)
		if to := resp.Header.Get("Location"); resp.StatusCode != status || to != f.Host+"/api/v3/repositories/1/issues/1/comments" {
			t.Errorf("%s: %d to %s", method, resp.StatusCode, to)
		}
	}
	resp, v = fetch("GET", "/nothing/of/that/kind", "")
	if resp.StatusCode != 404 || v["message"] != "Not Found" || v["documentation_url"] == nil || resp.Header.Get("X-GitHub-Request-Id") == "" {
		t.Errorf("%d, %v", resp.StatusCode, v)
	}
	fetch("GET", "/user", "")
	resp, _ = fetch("GET", "/user", "")
	if resp.Header.Get("X-RateLimit-Remaining") != "0" || resp.Header.Get("X-RateLimit-Limit") != "8" {
		t.Errorf("rate limit %q of %q left", resp.Header.Get("X-RateLimit-Remaining"), resp.Header.Get("X-RateLimit-Limit"))
	}
	if resp, v = fetch("GET", "/user", ""); resp.StatusCode != 403 || !strings.Contains(v["message"].(string), "rate limit") {
		t.Errorf("beyond it: %d, %v", resp.StatusCode, v)
	}
}
