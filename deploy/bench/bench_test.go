//go:build unix

package main

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"playbook-bot/bot/forge"
	"playbook-bot/bot/forge/gitea"
	"playbook-bot/bot/store"
	"playbook-bot/bot/webhook"
	"playbook-bot/deploy/sandbox/internal/build"
)

func testTemplate(t *testing.T) *template {
	t.Helper()
	tree, err := build.FindTree(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	tmpl, err := loadTemplate(tree)
	if err != nil {
		t.Fatal(err)
	}
	return tmpl
}

// TestDeliveriesAreOurs sends a burst to the bot's own handler: every delivery
// is verified, decoded and taken in, and none comes twice.
func TestDeliveriesAreOurs(t *testing.T) {
	var mu sync.Mutex
	seen := map[int64]forge.Event{}
	path := webhook.HookPath("gitea", webhook.ScopeRepo, repoID)
	h, err := webhook.New(webhook.Config{
		Dialects: []webhook.Dialect{gitea.Dialect{}}, Literals: map[string]string{path: "s3cret"},
		Accept: func(_ context.Context, e forge.Event) (string, error) {
			mu.Lock()
			defer mu.Unlock()
			if _, twice := seen[e.Object.ID]; twice {
				t.Errorf("comment %d came twice", e.Object.ID)
			}
			seen[e.Object.ID] = e
			return "taken", nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	srv := httptest.NewServer(h)
	defer srv.Close()
	to := target{addr: srv.Listener.Addr().String(), path: path, secret: "s3cret", t: testTemplate(t), next: new(atomic.Int64), accepted: new(atomic.Int64)}
	r := send(t.Context(), to, burst{conns: 4, time: 200 * time.Millisecond})
	if r.failed > 0 || r.sent == 0 || len(seen) != r.sent || to.accepted.Load() != int64(r.sent) {
		t.Fatalf("%d sent, %d failed (%v), %d accepted, %d seen", r.sent, r.failed, r.firstFailure, to.accepted.Load(), len(seen))
	}
	e := seen[firstComment]
	if e.Repo.FullName() != repoName || e.Number != firstThread || e.Action != forge.ActionCreated || e.Sender.ID != e.Author.ID {
		t.Errorf("the first is %+v", e)
	}
	if n := len(to.t.body); n < 6000 || n > 8000 {
		t.Errorf("a delivery has %d bytes, want about 6 KB", n)
	}
}

func TestBareHandlerAsksForTheSecret(t *testing.T) {
	m := testTemplate(t).maker(bareSecret)
	for secret, want := range map[string]int{bareSecret: http.StatusAccepted, "another": http.StatusUnauthorized} {
		body, sig := m.make(7)
		r := httptest.NewRequest(http.MethodPost, "/", bytes.NewReader(body))
		r.Header.Set("X-Gitea-Signature", string(sig))
		w := httptest.NewRecorder()
		bareHandler(secret).ServeHTTP(w, r)
		if w.Code != want {
			t.Errorf("with the secret %q: %d, want %d", secret, w.Code, want)
		}
	}
}

// TestLatencyIsFromWhenItWasDue: a receiver that stalls must show in the
// figures of all that were due meanwhile, not of one alone.
func TestLatencyIsFromWhenItWasDue(t *testing.T) {
	const stall = 300 * time.Millisecond
	var first sync.Once
	srv := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		first.Do(func() { <-time.After(stall) })
	}))
	defer srv.Close()
	to := target{addr: srv.Listener.Addr().String(), path: "/", secret: "s", t: testTemplate(t), next: new(atomic.Int64), accepted: new(atomic.Int64)}
	r := send(t.Context(), to, burst{conns: 1, rate: 100, time: 500 * time.Millisecond})
	late := 0
	for _, l := range r.latencies {
		if l > stall/3 {
			late++
		}
	}
	if late < 10 {
		t.Errorf("%d of %d were late, want all that were due in the first %s but for the last", late, len(r.latencies), stall*2/3)
	}
}

func TestFailuresAreCounted(t *testing.T) {
	srv := httptest.NewServer(http.NotFoundHandler())
	defer srv.Close()
	to := target{addr: srv.Listener.Addr().String(), path: "/", secret: "s", t: testTemplate(t), next: new(atomic.Int64), accepted: new(atomic.Int64)}
	r := send(t.Context(), to, burst{conns: 1, time: time.Second})
	if r.failed == 0 || len(r.latencies) > 0 || r.firstFailure == nil || !strings.Contains(r.firstFailure.Error(), "404") {
		t.Errorf("%d failed (%v), %d latencies", r.failed, r.firstFailure, len(r.latencies))
	}
}

func TestQuantile(t *testing.T) {
	r := result{latencies: []time.Duration{5, 1, 4, 2, 3}}
	for q, want := range map[float64]time.Duration{.5: 3, .99: 5, .2: 1, 1: 5} {
		if got := r.quantile(q); got != want {
			t.Errorf("quantile %v of 1…5 is %d, want %d", q, got, want)
		}
	}
	if got := (&result{}).quantile(.5); got != 0 {
		t.Errorf("of nothing: %d", got)
	}
	if got := median([]float64{4, 1, 3, 2}); got != 2.5 {
		t.Errorf("median of 1…4 is %v", got)
	}
}

func TestKindOf(t *testing.T) {
	const repo = "/api/v1/repos/ops/incidents"
	for call, want := range map[string]string{
		"POST " + repo + "/issues/3/comments":                     kindPost,
		"GET " + repo + "/issues/3/comments":                      kindListing,
		"GET " + repo + "/issues/comments/77":                     "GET " + repo + "/issues/comments/N",
		"POST " + repo + "/issues/comments/77/reactions":          kindReaction,
		"POST " + repo + "/issues/3/labels":                       kindLabel,
		"GET " + repo + "/collaborators/wren/permission":          kindStanding,
		"GET " + repo + "/issues/comments":                        "GET " + repo + "/issues/comments",
		"DELETE " + repo + "/issues/3/labels/9":                   kindLabel,
		"GET " + repo + "/contents/.gitea/recovery-playbook.yaml": kindPlaybook,
	} {
		method, path, _ := strings.Cut(call, " ")
		if got := kindOf(method, path); got != want {
			t.Errorf("%s is %q, want %q", call, got, want)
		}
	}
}

// TestWatchSeesEveryAnswer: also those after the first, whose calls nobody took.
func TestWatchSeesEveryAnswer(t *testing.T) {
	w, err := watchOver(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(http.StatusCreated) }))
	if err != nil {
		t.Fatal(err)
	}
	defer w.close()
	call := func(path string) {
		t.Helper()
		resp, err := http.Post(w.URL+"/api/v1/repos/ops/incidents"+path, "application/json", nil)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
	}
	for range 3 {
		call("/issues/3/comments")
		call("/issues/3/labels")
		call("/issues/comments/7/reactions")
		call("/issues/3") // which labels there are
		if _, err := w.answered(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if got := w.taken(); got[kindPost] != 3 || got[kindLabel] != 6 || got[kindReaction] != 3 || len(got) != 3 {
		t.Errorf("calls %v", got)
	}
}

// TestHistory fills a database and finds it good: the store opens it, nothing
// waits in it, and what was seen is seen.
func TestHistory(t *testing.T) {
	url := "sqlite:" + filepath.Join(t.TempDir(), "bot.db")
	size, err := fill(t.Context(), url, 1000)
	if err != nil {
		t.Fatal(err)
	}
	if size < 100<<10 {
		t.Errorf("1000 events take %d bytes", size)
	}
	db, err := store.Open(t.Context(), url, store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	stats, err := db.Stats(t.Context())
	if err != nil || stats.Waiting != 0 || stats.OpenAnswers != 0 || stats.Dead != 0 {
		t.Errorf("stats: %+v, %v", stats, err)
	}
	th, err := db.FindThread(t.Context(), "gitea", repoID, 500_001)
	if err != nil {
		t.Fatal(err)
	}
	objects, err := db.Objects(t.Context(), th.ID)
	if err != nil || len(objects) != 50 {
		t.Errorf("%d objects in the first thread, %v; want 50", len(objects), err)
	}
	seen, err := db.Seen(t.Context(), "gitea", repoID, forge.Object{Kind: forge.ObjectComment, ID: historyIDs + 1})
	if err != nil || !seen {
		t.Errorf("the first comment is seen: %t, %v", seen, err)
	}
	// Some of it is older than forty days: pruning finds it as it finds ours.
	n, err := db.Prune(t.Context(), time.Now().AddDate(0, 0, -40))
	if err != nil || n == 0 || n == 1000 {
		t.Errorf("pruned %d of 1000, %v", n, err)
	}
}

func TestAims(t *testing.T) {
	b := &bench{template: &template{}}
	r := &report{bench: b, growth: &growthTable{}}
	for _, a := range r.aims() {
		if a.measured {
			t.Errorf("%q is measured where nothing was", a.what)
		}
	}
	at := func(rate float64) map[int]measured { return map[int]measured{atConns: {rate: rate}} }
	r.intake = &intakeTable{
		at:      map[string]map[int]measured{"bare handler": at(1000), "Debian's webhook": at(600), "ours, SQLite": at(550)},
		halfTop: map[string]result{"ours, SQLite": {latencies: []time.Duration{49 * time.Millisecond}, took: time.Second}},
		lost:    map[string]int64{"ours, SQLite": 1},
	}
	want := []bool{false, true, true, false}
	for i, a := range r.intakeAims("ours, SQLite") {
		if !a.measured || a.met != want[i] {
			t.Errorf("%q: measured %t, met %t (%s), want %t", a.what, a.measured, a.met, a.got, want[i])
		}
	}
	r.calls = []callsOf{{warm: counted{kindPost: 1, "GET x": 1, kindLabel: 5}, approval: counted{kindPost: 1, kindListing: 2, kindStanding: 1}}}
	want = []bool{true, false, true}
	for i, a := range r.callAims() {
		if !a.measured || a.met != want[i] {
			t.Errorf("%q: met %t (%s), want %t", a.what, a.met, a.got, want[i])
		}
	}
	none := grown{database: "SQLite", intake: measured{rate: 100}, answers: result{latencies: []time.Duration{100}}}
	full := grown{database: "SQLite", events: 5, intake: measured{rate: 95}, answers: result{latencies: []time.Duration{120}}}
	r.growth.rows = []grown{none, full}
	want = []bool{true, false}
	for i, a := range r.growth.aims() {
		if !a.measured || a.met != want[i] {
			t.Errorf("%q: met %t (%s), want %t", a.what, a.met, a.got, want[i])
		}
	}
}

// TestUsage: a process that works is seen to.
func TestUsage(t *testing.T) {
	if _, err := os.Stat("/proc/self/stat"); errors.Is(err, os.ErrNotExist) {
		t.Skip("no /proc here")
	}
	before := cpuOf(false, os.Getpid())
	for deadline := time.Now().Add(10 * time.Second); cpuOf(false, os.Getpid())-before < 3*tick; {
		if time.Now().After(deadline) {
			t.Fatal("ten seconds of work are seen as none")
		}
	}
	if got := memoryOf(os.Getpid()); got < 1<<20 {
		t.Errorf("this process has %d bytes", got)
	}
}
