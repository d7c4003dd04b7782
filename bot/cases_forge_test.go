package bot_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"playbook-bot/bot/forge"
	"playbook-bot/bot/forge/forgetest"
	"playbook-bot/bot/forge/gitea"
	"playbook-bot/bot/golden"
	"playbook-bot/bot/webhook"
)

// TestCase11_permission: owner is above admin is above write; a value nobody
// knows denies and crashes nothing.
func TestCase11_permission(t *testing.T) {
	for value, want := range map[string]string{"owner": refused, "admin": refused, "write": "Refused for now: `full_mcp_restart` needs an endorsement",
		"read": "Refused for now: `full_mcp_restart` needs an endorsement", "maintain": "Refused for now: `full_mcp_restart` needs an endorsement",
		"": "Refused for now: `full_mcp_restart` needs an endorsement"} {
		t.Run("value "+value, func(t *testing.T) {
			inBubble(t, func(w *world) {
				w.forge.OrderKind("permission.read", forgetest.Fault{Times: -1, Rewrite: func(b []byte) []byte {
					return bytes.Replace(b, []byte(`"permission":"admin"`), []byte(`"permission":"`+value+`"`), 1)
				}})
				got := w.answerTo("adam", "/restart full_mcp_restart")
				if len(got) != 1 || !strings.Contains(got[0], want) || want == refused && strings.Contains(got[0], "endorsement") {
					t.Errorf("%q: %q", value, got)
				}
			})
		})
	}
	t.Run("member of Owners only", func(t *testing.T) {
		inBubble(t, func(w *world) {
			n := w.opens("rhea", "search is down")
			w.says("rhea", n, "/attempt client_reconnect failed")
			w.says("olivia", n, "/restart host_restart")
			w.wantHeads(n, recorded, approved)
		})
	})
}

// TestCase12_errorIsNoDenial: a permission that cannot be read is read again;
// nobody is told that they may not; and after a while it is said, once, that it
// could not be verified.
func TestCase12_errorIsNoDenial(t *testing.T) {
	timeout := forgetest.Late(11 * time.Second)
	for name, faults := range map[string][]forgetest.Fault{
		"401, 500, then an answer": {forgetest.Answer(401), forgetest.Answer(500)},
		"a timeout":                {timeout},
		"a gateway's page":         {forgetest.GatewayPage(403)},
		"three in a row":           {forgetest.Answer(502), forgetest.Answer(429), forgetest.Answer(401)},
	} {
		for _, ask := range []string{"/restart full_mcp_restart", "/restart worker_restart", "/assess full_mcp_restart"} {
			t.Run(name+" "+ask, func(t *testing.T) {
				inBubble(t, func(w *world) {
					n := w.opens("rhea", "search is down")
					w.says("rhea", n, "/attempt client_reconnect failed")
					for _, f := range faults {
						w.forge.OrderKind("permission.read", f)
					}
					w.says("adam", n, ask)
					w.advance(time.Minute)
					if got := w.heads(n); len(got) != 2 || !strings.Contains(got[1], "pproved until") && !strings.Contains(got[1], goAhead) && !strings.Contains(got[1], "Would be allowed") {
						t.Errorf("said %q", got)
					}
				})
			})
		}
	}
	t.Run("all at once", func(t *testing.T) {
		inBubble(t, func(w *world) {
			n := w.opens("rhea", "search is down")
			w.says("rhea", n, "/attempt client_reconnect failed")
			for _, f := range []forgetest.Fault{forgetest.Answer(401), forgetest.Answer(500), timeout.For(3)} {
				w.forge.OrderKind("permission.read", f)
			}
			at := time.Now()
			w.posts("adam", n, "/restart full_mcp_restart")
			w.settleFor(15 * time.Second)
			if took := time.Since(at); len(w.answers(n)) != 2 || took > 15*time.Second {
				t.Errorf("after %v: %q", took, w.heads(n))
			}
			w.advance(2 * time.Minute)
			w.wantHeads(n, recorded, undecided, nowOK)
		})
	})
	t.Run("for ever", func(t *testing.T) {
		inBubble(t, func(w *world) {
			n := w.opens("rhea", "/attempt client_reconnect failed")
			broken := w.forge.OrderKind("permission.read", forgetest.Answer(500).For(-1))
			w.says("adam", n, "/restart full_mcp_restart")
			w.wantHeads(n, recorded, undecided)
			w.advance(3 * time.Hour)
			w.wantHeads(n, recorded, undecided)
			if calls := broken.Applied(); calls < 50 || calls > 90 {
				t.Errorf("looked %d times in an hour, want about once a minute", calls)
			}
			w.quiet()
			broken.Cancel()
			w.says("adam", n, "/restart full_mcp_restart")
			w.wantHeads(n, recorded, undecided, nowOK)
		})
	})
	t.Run("of those who act on another's request", func(t *testing.T) {
		for ask, head := range map[string]string{"/withdraw": "Withdrawn", "/resolved client_reconnect": "Recovered", "/endorse 1/1": nowOK, "/restart host_restart": refused} {
			inBubble(t, func(w *world) {
				n := w.opens("rhea", "/restart full_mcp_restart")
				w.says("rhea", n, "/attempt client_reconnect failed")
				w.forge.OrderKind("permission.read", forgetest.Answer(500).For(2))
				w.says("adam", n, ask)
				w.advance(time.Minute)
				got := w.heads(n)
				if st := w.state(n); len(got) != 3 || !strings.Contains(got[2], head) {
					t.Errorf("%s: said %q, wanted %s; %+v", ask, got, head, st)
				}
			})
		}
	})
}

// TestCase13_association: whatever a payload says of an account, the API's
// permission decides.
func TestCase13_association(t *testing.T) {
	inBubble(t, func(w *world) {
		n := w.opens("rhea", "search is down")
		w.says("rhea", n, "/attempt client_reconnect failed")
		w.forge.Hold(true)
		w.posts("rhea", n, "/restart full_mcp_restart")
		held := w.forge.Take()
		w.forge.Hold(false)
		lie := bytes.Replace(held[0].Body, []byte(`"comment": {`), []byte(`"author_association": "OWNER", "comment": { "author_association": "OWNER",`), 1)
		lie = bytes.ReplaceAll(lie, []byte(`"admin": false`), []byte(`"admin": true`))
		if status := w.deliver(w.repo, lie); status != http.StatusAccepted {
			t.Fatalf("status %d", status)
		}
		w.settle()
		w.wantHeads(n, recorded, "Refused for now: `full_mcp_restart` needs an endorsement")
	})
}

// deliver signs a payload for a repository's hook and hands it in.
func (w *world) deliver(r forge.Repo, payload []byte) int {
	w.t.Helper()
	return w.handIn(webhook.HookPath("gitea", webhook.ScopeRepo, r.ID), payload,
		signature(webhook.HookSecret(golden.Secret, "gitea", webhook.ScopeRepo, r.ID), payload))
}

func (w *world) handIn(path string, payload []byte, sig string) int {
	r := httptest.NewRequest(http.MethodPost, path, bytes.NewReader(payload))
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("X-Gitea-Event", "issue_comment")
	r.Header["X-Gitea-Signature"] = []string{sig}
	rec := httptest.NewRecorder()
	w.intake.ServeHTTP(rec, r)
	return rec.Code
}

// TestCase14_oneBlocksAll: a thread that is refused for good ends alone.
func TestCase14_oneBlocksAll(t *testing.T) {
	inBubble(t, func(w *world) {
		a, b, c := w.opens("adam", "A"), w.opens("adam", "B"), w.opens("adam", "C")
		blocked := forgetest.Fault{Times: -1, Status: 422, Header: http.Header{"Content-Type": {"application/json"}}, Body: `{"message":"blocked","url":"x"}`}
		w.forge.Order(forgetest.On(http.MethodPost, fmt.Sprintf("/issues/%d/comments", a)), blocked)
		for _, n := range []int64{a, b, c} {
			w.posts("adam", n, "/restart full_mcp_restart")
		}
		w.advance(time.Minute)
		w.wantHeads(a)
		w.wantHeads(b, refused)
		w.wantHeads(c, refused)
		w.quiet()
		if w.observed("dead") != 1 || len(w.ledger.notes) != 1 {
			t.Errorf("%d dead: %v", w.observed("dead"), w.ledger.notes)
		}
	})
	t.Run("and one that never ends", func(t *testing.T) {
		inBubble(t, func(w *world) {
			a, b := w.opens("adam", "A"), w.opens("adam", "B")
			w.forge.Order(forgetest.On(http.MethodPost, fmt.Sprintf("/issues/%d/comments", a)), forgetest.Answer(500).For(-1))
			w.posts("adam", a, "/restart full_mcp_restart")
			w.posts("adam", b, "/restart full_mcp_restart")
			w.settle()
			w.wantHeads(b, refused)
			w.advance(24 * time.Hour)
			w.quiet()
			w.says("adam", b, "/attempt client_reconnect failed")
		})
	})
}

// TestCase15_lockedArchived: 403 locked and 423 are for good, a rate limit is
// not.
func TestCase15_lockedArchived(t *testing.T) {
	inBubble(t, func(w *world) {
		w.forge.AddCollaborator(repoName, botLogin, "read") // a writer may comment on what is locked
		a, b, c := w.opens("rhea", "A"), w.opens("rhea", "B"), w.opens("rhea", "C")
		for _, n := range []int64{a, b, c} {
			w.posts("rhea", n, "/restart client_reconnect")
		}
		w.must(w.forge.Lock("olivia", repoName, a, true))
		w.forge.Order(forgetest.On(http.MethodPost, fmt.Sprintf("/issues/%d/comments", c)), forgetest.RateLimited(403, 10*time.Minute))
		w.forge.Order(forgetest.On(http.MethodPost, fmt.Sprintf("/issues/%d/comments", b)),
			forgetest.Fault{Status: 423, Header: http.Header{"Content-Type": {"application/json"}}, Body: `{"message":"ops/incidents is archived","url":"x"}`})
		w.settle()
		w.wantHeads(a)
		w.wantHeads(b)
		w.wantHeads(c)
		if len(w.ledger.notes) != 2 {
			t.Errorf("given up: %v", w.ledger.notes)
		}
		w.advance(11 * time.Minute)
		w.wantHeads(c, goAhead)
		w.quiet()
	})
}

// TestCase16_emptySecret: without a secret nothing starts, and nothing that
// bears no signature is taken.
func TestCase16_emptySecret(t *testing.T) {
	accept := func(context.Context, forge.Event) (string, error) { return "", nil }
	for _, secret := range []string{"", " ", "\t\n"} {
		_, err := webhook.New(webhook.Config{Dialects: []webhook.Dialect{gitea.Dialect{}}, Accept: accept, Masters: func() []string { return []string{secret} }})
		if err == nil {
			t.Errorf("secret %q: no error", secret)
		}
	}
	inBubble(t, func(w *world) {
		n := w.opens("adam", "x")
		w.forge.Hold(true)
		w.posts("adam", n, "/restart full_mcp_restart")
		body := w.forge.Take()[0].Body
		w.forge.Hold(false)
		path := webhook.HookPath("gitea", webhook.ScopeRepo, w.repo.ID)
		for _, sig := range []string{"", " ", "sha256=", signature("", body), signature(" ", body), "00"} {
			if status := w.handIn(path, body, sig); status != http.StatusUnauthorized {
				t.Errorf("signature %q: status %d", sig, status)
			}
		}
		w.settle()
		w.wantHeads(n)
	})
}

// TestCase17_formEncoding: a form delivery is verified and read.
func TestCase17_formEncoding(t *testing.T) {
	inBubble(t, func(w *world) {
		other := w.forge.AddRepo("ops/forms")
		w.forge.AddCollaborator("ops/forms", botLogin, "admin")
		w.forge.AddRepoHook("ops/forms", webhook.HookSecret(golden.Secret, "gitea", webhook.ScopeRepo, other.ID), forgetest.HookForm())
		w.sc.Repos = repoName + ",ops/forms"
		w.restart()
		n, err := w.forge.OpenIssue("rhea", "ops/forms", "t", "/restart client_reconnect")
		w.must(err)
		w.settle()
		if got := w.forge.CommentsBy(botLogin, "ops/forms", n); len(got) != 1 {
			t.Errorf("%d answers; deliveries %d", len(got), w.forge.Deliveries()[0].Status)
		}
	})
}

// TestCase18_eventNames: a comment on a pull request is handled once, under
// all header families; a review is none.
func TestCase18_eventNames(t *testing.T) {
	inBubble(t, func(w *world) {
		n, err := w.forge.OpenPull("adam", repoName, "a change", "/restart full_mcp_restart")
		w.must(err)
		w.numbers = append(w.numbers, n)
		w.settle()
		breath()
		w.says("adam", n, "/attempt client_reconnect failed")
		w.wantHeads(n, refused, nowOK)
		review := []byte(fmt.Sprintf(`{"action":"reviewed","issue":{"number":%d},"repository":{"id":%d,"name":"incidents","owner":{"id":6,"login":"ops"}},"sender":{"id":3,"login":"adam"},"is_pull":true}`, n, w.repo.ID))
		if status := w.deliver(w.repo, review); status != http.StatusAccepted {
			t.Errorf("a review: status %d", status)
		}
		w.settle()
		w.wantHeads(n, refused, nowOK)
		w.quiet()
	})
}

// TestCase19_key: a delivery id is no key, and a replay under a fresh one is
// stopped by what it is about.
func TestCase19_key(t *testing.T) {
	inBubble(t, func(w *world) {
		a, b := w.opens("adam", "A"), w.opens("adam", "B")
		w.forge.Hold(true)
		w.posts("adam", a, "/restart full_mcp_restart")
		w.posts("adam", b, "/restart full_mcp_restart")
		held := w.forge.Take()
		w.forge.Hold(false)
		for name := range held[0].Header {
			if strings.HasSuffix(name, "-Delivery") {
				held[1].Header[name] = held[0].Header[name]
			}
		}
		w.forge.Send(held...)
		w.settle()
		w.wantHeads(a, refused)
		w.wantHeads(b, refused)
		for range 3 {
			w.forge.Send(w.forge.Redelivered(held[0]))
			w.advance(time.Hour)
		}
		w.wantHeads(a, refused)
		w.quiet()
	})
}

// TestCase20_tokens: whole names only, free text is never flags, and silence
// for what is not ours.
func TestCase20_tokens(t *testing.T) {
	inBubble(t, func(w *world) {
		for body, want := range map[string]string{
			"/attempt client_reconnect failed branch-deploy --force target=x": recorded,
			"/restart-all": "", "/restarts": "", "/tmp/x": "", "please restart": "",
			"/restart full_mcp_restart.":                   "Refused for now: `full_mcp_restart`",
			"/restart full_mcp_restart thanks":             "Refused for now: `full_mcp_restart`",
			"/restart full_mcp_restart thanks target=late": "Refused for now: `full_mcp_restart`",
		} {
			got := w.answerTo("adam", body)
			if want == "" && len(got) != 0 || want != "" && (len(got) != 1 || !strings.Contains(got[0], want)) || len(got) == 1 && strings.Contains(got[0], "late") {
				t.Errorf("%q: %q", body, got)
			}
		}
	})
}

// TestCase21_unicode: other spaces and quotes are read, a look-alike letter is
// refused by its code point.
func TestCase21_unicode(t *testing.T) {
	inBubble(t, func(w *world) {
		for body, want := range map[string]string{
			"/attempt\u00a0client_reconnect insufficient “still closed”": recorded,
			"\ufeff/attempt client_reconnect insufficient":               recorded,
			"\u200b/attempt client_reconnect insufficient":               recorded,
			"/restart full_m\u0441p_restart":                             "U+0441",
		} {
			n := w.opens("olivia", "x")
			w.says("adam", n, body)
			if got := w.answers(n); len(got) != 1 || !strings.Contains(got[0].Body, want) {
				t.Errorf("%q: %v", body, w.heads(n))
			}
		}
	})
}

// TestCase22_shutdownAndMissed: what was taken in before a stop is answered
// after it, and so is what happened meanwhile; old history is not replayed.
func TestCase22_shutdownAndMissed(t *testing.T) {
	inBubble(t, func(w *world) {
		w.forge.Hold(true) // or a delivery may be gone before it is taken
		old := w.files("adam", "/restart full_mcp_restart")
		n := w.files("adam", "search is down")
		w.forge.Take()
		w.forge.Hold(false)
		w.settle()
		w.posts("adam", n, "/restart host_restart old")
		w.forge.Settle()
		lost := w.forge.Deliveries()
		pass(25 * time.Hour)
		_ = lost

		ctx, stop := context.WithCancel(context.Background())
		done := make(chan error)
		go func() { done <- w.bot.Run(ctx, 20*time.Second) }()
		pass(time.Minute)
		w.posts("adam", n, "/restart full_mcp_restart")
		w.forge.Settle() // it is durable: 202
		stop()
		w.must(<-done)
		w.restart()
		w.forge.Hold(true)
		w.posts("adam", n, "/attempt client_reconnect failed")
		w.posts("wren", n, "/attempt session_reconnect failed")
		w.forge.Take()
		w.forge.Hold(false)
		pass(time.Minute)
		ctx, stop = context.WithCancel(context.Background())
		go func() { done <- w.bot.Run(ctx, 20*time.Second) }()
		pass(10 * time.Minute)
		stop()
		w.must(<-done)
		for i, c := range w.answers(n) {
			if strings.Contains(c.Body, "`host_restart`:") {
				t.Errorf("answer %d is about the past: %q", i, w.heads(n))
			}
		}
		if got := w.heads(n); len(got) < 3 {
			t.Errorf("said %q", got)
		}
		w.wantHeads(old)
		w.quiet()
	})
}

// TestCase23_databaseBusy: parallel deliveries while workers claim are all
// taken in; a database that cannot is 503 and never 2xx.
func TestCase23_databaseBusy(t *testing.T) {
	inBubble(t, func(w *world) {
		const threads = 40
		w.forge.Hold(true)
		for range threads {
			w.files("rhea", "/restart client_reconnect")
		}
		for _, n := range w.numbers {
			for range 4 {
				w.posts("rhea", n, "/recommend")
			}
		}
		held := w.forge.Take()
		w.forge.Hold(false)
		ctx, stop := context.WithCancel(context.Background())
		done := make(chan error)
		go func() { done <- w.bot.Run(ctx, 20*time.Second) }()
		var all sync.WaitGroup
		for _, d := range held {
			all.Go(func() { w.forge.Send(d) })
		}
		all.Wait()
		pass(10 * time.Minute)
		stop()
		w.must(<-done)
		for _, d := range w.forge.Deliveries() {
			if d.Status != http.StatusAccepted {
				t.Errorf("status %d", d.Status)
			}
		}
		for _, n := range w.numbers {
			if got := len(w.answers(n)); got != 5 {
				t.Errorf("thread %d: %d answers", n, got)
			}
		}
		w.quiet()
	})
	t.Run("503", func(t *testing.T) {
		inBubble(t, func(w *world) {
			n := w.opens("adam", "x")
			w.forge.Hold(true)
			w.posts("adam", n, "/restart full_mcp_restart")
			held := w.forge.Take()
			w.forge.Hold(false)
			w.ledger.refuse = errors.New("database is locked")
			if got := w.forge.Send(held...); !slices.Equal(got, []int{http.StatusServiceUnavailable}) {
				t.Errorf("statuses %v", got)
			}
			w.ledger.refuse = nil
			pass(time.Minute)
			w.sweep()
			w.wantHeads(n, refused)
		})
	})
}

// TestCase24_rename: state is keyed by the repository's id, and a POST to a
// former name, answered 301, lands once under the present one.
func TestCase24_rename(t *testing.T) {
	inBubble(t, func(w *world) {
		n := w.opens("adam", "/restart full_mcp_restart")
		w.must(w.forge.Rename(repoName, "new"))
		w.says2("wren", "ops/new", n, "/attempt client_reconnect failed")
		w.advance(time.Minute)
		if got := w.forge.CommentsBy(botLogin, "ops/new", n); len(got) != 2 || !strings.Contains(got[1].Body, nowOK) {
			t.Errorf("%d answers", len(got))
		}
		// Somebody else takes the old name: no state, no rights, no word.
		w.forge.AddRepo(repoName)
		w.hook(w.forge.Repo(repoName))
		w.forge.AddCollaborator(repoName, botLogin, "admin")
		m, err := w.forge.OpenIssue("adam", repoName, "t", "/restart full_mcp_restart")
		w.must(err)
		w.settle()
		if got := w.forge.CommentsBy(botLogin, repoName, m); len(got) != 0 {
			t.Errorf("the repository that took the name was answered: %v", got[0].Body)
		}
		w.says2("adam", "ops/new", n, "/resolved full_mcp_restart")
		if got := w.forge.CommentsBy(botLogin, "ops/new", n); len(got) != 3 {
			t.Errorf("%d answers after the name was taken", len(got))
		}
		w.numbers = nil // checkMarkers looks under the old name
	})
}

func (w *world) says2(as, repo string, n int64, body string) {
	w.t.Helper()
	_, err := w.forge.Comment(as, repo, n, body)
	w.must(err)
	w.settle()
	breath()
}
