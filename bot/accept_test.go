package bot_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"playbook-bot/bot"
	"playbook-bot/bot/forge"
	"playbook-bot/bot/forge/gitea"
	"playbook-bot/bot/golden"
	"playbook-bot/bot/store"
	"playbook-bot/bot/webhook"
)

// BenchmarkAccept is the way of a signed delivery of some 6 KB from the
// handler to a durable 202 on a SQLite file: one after the other, and eight at
// a time, which share the disk's flush.
func BenchmarkAccept(b *testing.B) {
	for _, parallel := range []int{1, 8} {
		b.Run(fmt.Sprintf("parallel-%d", parallel), func(b *testing.B) {
			l, err := store.Open(b.Context(), "sqlite:"+filepath.Join(b.TempDir(), "bench.db"), store.Options{})
			if err != nil {
				b.Fatal(err)
			}
			defer func() { _ = l.Close() }()
			var last atomic.Int64
			client, err := gitea.New(gitea.Config{BaseURL: "http://gitea.invalid", Token: func() string { return "t" }})
			if err != nil {
				b.Fatal(err)
			}
			_, h, err := golden.Assemble(&golden.Scenario{Name: "bench", Repos: repoName}, golden.Parts{Forge: client, Ledger: l, Now: time.Now,
				Settle: time.Second, Change: func(c *bot.Config) { c.Log = slog.New(slog.DiscardHandler) }})
			if err != nil {
				b.Fatal(err)
			}
			secret := webhook.HookSecret(golden.Secret, "gitea", webhook.ScopeRepo, 1)
			b.SetParallelism(parallel)
			b.ResetTimer()
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					if status := post(h, secret, delivered(last.Add(1))); status != http.StatusAccepted {
						b.Errorf("status %d", status)
						return
					}
				}
			})
		})
	}
}

// delivered is a "comment created" of some 6 KB with a comment id of its own.
func delivered(id int64) []byte {
	return fmt.Appendf(nil, `{"action":"created","issue":{"number":%d,"user":{"id":3,"login":"adam"},"body":"%s"},`+
		`"comment":{"id":%d,"user":{"id":3,"login":"adam"},"body":"/restart full_mcp_restart"},`+
		`"repository":{"id":1,"name":"incidents","owner":{"id":6,"login":"ops"}},"sender":{"id":3,"login":"adam"},"is_pull":false}`,
		1+id%200, strings.Repeat("what happened, in many words; ", 190), id)
}

func post(h http.Handler, secret string, body []byte) int {
	r := httptest.NewRequestWithContext(context.Background(), http.MethodPost, webhook.HookPath("gitea", webhook.ScopeRepo, 1), bytes.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("X-Gitea-Event", "issue_comment")
	r.Header.Set("X-Gitea-Signature", signature(secret, body))
	rec := httptest.NewRecorder()
	h.ServeHTTP(rec, r)
	return rec.Code
}

// TestBenchmarkedDelivery holds the benchmark to what it measures: the
// delivery is taken in, once.
func TestBenchmarkedDelivery(t *testing.T) {
	if n := len(delivered(1)); n < 5500 || n > 6500 {
		t.Errorf("%d bytes", n)
	}
	inBubble(t, func(w *world) {
		secret := webhook.HookSecret(golden.Secret, "gitea", webhook.ScopeRepo, w.repo.ID)
		for range 2 {
			if status := post(w.intake, secret, delivered(7)); status != http.StatusAccepted {
				t.Errorf("status %d", status)
			}
		}
		if seen, err := w.ledger.Seen(context.Background(), "gitea", w.repo.ID, forge.Object{Kind: forge.ObjectComment, ID: 7}); !seen || err != nil {
			t.Errorf("seen %v, %v", seen, err)
		}
		if st, err := w.ledger.Stats(context.Background()); st.Waiting != 1 || err != nil {
			t.Errorf("%d wait, %v", st.Waiting, err)
		}
	})
}

// TestElsewhere: in a repository that is none of REPOSITORIES any more nothing
// is said, nothing waits, and nothing is looked at for ever.
func TestElsewhere(t *testing.T) {
	inBubbleWith(t, worldOptions{repos: "ops/*," + repoName}, func(w *world) {
		w.forge.AddUser("mallory")
		other := w.forge.AddRepo("ops/second")
		w.forge.AddCollaborator("ops/second", botLogin, "admin")
		w.hook(other)
		n, err := w.forge.OpenIssue("rhea", "ops/second", "t", "/restart client_reconnect")
		w.must(err)
		w.settle()
		if got := w.forge.CommentsBy(botLogin, "ops/second", n); len(got) != 1 {
			t.Fatalf("%d answers", len(got))
		}
		w.must(w.forge.Rename("ops/second", "mallory/second"))
		w.says2("rhea", "mallory/second", n, "/restart capability_refresh")
		w.forge.ResetCalls()
		w.advance(49 * time.Hour)
		if got := w.forge.CommentsBy(botLogin, "mallory/second", n); len(got) != 1 {
			t.Errorf("%d answers where nobody asked for any", len(got))
		}
		if calls := len(w.forge.Calls()); calls > 20 {
			t.Errorf("%d calls in two days", calls)
		}
		w.quiet()
	})
	t.Run("a payload that lies about its repository", func(t *testing.T) {
		inBubble(t, func(w *world) {
			w.forge.AddUser("mallory")
			theirs := w.forge.AddRepo("mallory/own")
			w.forge.AddCollaborator("mallory/own", botLogin, "admin")
			n, err := w.forge.OpenIssue("mallory", "mallory/own", "t", "x")
			w.must(err)
			id, err := w.forge.Comment("mallory", "mallory/own", n, "/restart full_mcp_restart")
			w.must(err)
			lie := fmt.Appendf(nil, `{"action":"created","issue":{"number":%d,"user":{"id":9,"login":"mallory"},"body":"x"},`+
				`"comment":{"id":%d,"user":{"id":9,"login":"mallory"},"body":"/restart full_mcp_restart"},`+
				`"repository":{"id":%d,"name":"incidents","owner":{"id":6,"login":"ops"}},"sender":{"id":9,"login":"mallory"}}`, n, id, theirs.ID)
			if status := w.deliver(theirs, lie); status != http.StatusAccepted {
				t.Errorf("status %d", status)
			}
			w.advance(time.Minute)
			if got := w.forge.CommentsBy(botLogin, "mallory/own", n); len(got) != 0 {
				t.Errorf("answered: %s", got[0].Body)
			}
			w.quiet()
		})
	})
	t.Run("the repository is deleted", func(t *testing.T) {
		inBubble(t, func(w *world) {
			n := w.opens("adam", "/restart full_mcp_restart")
			w.says("wren", n, "/attempt client_reconnect failed")
			if !w.approvalStands(n, w.state(n).Request.ID) {
				t.Error("no approval to begin with")
			}
			w.numbers = nil
			w.forge.DeleteRepo(repoName)
			w.forge.ResetCalls()
			w.advance(49 * time.Hour)
			if calls := len(w.forge.Calls()); calls > 40 {
				t.Errorf("%d calls in two days", calls)
			}
			if st := w.state(n); st.Approval != nil || !st.Gone {
				t.Errorf("state %+v", st)
			}
			w.quiet()
		})
	})
}
