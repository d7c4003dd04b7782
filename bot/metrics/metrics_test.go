package metrics

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"playbook-bot/bot"
	"playbook-bot/bot/forge"
	"playbook-bot/bot/store"
	"playbook-bot/playbook"
)

// fakeSource gives what the test says.
type fakeSource struct {
	stats store.Stats
	logs  []store.ThreadLog
	err   error
}

func (f *fakeSource) Stats(context.Context) (store.Stats, error) { return f.stats, f.err }

// Logs gives one thread at a time, whatever the limit.
func (f *fakeSource) Logs(_ context.Context, after int64, _ int) ([]store.ThreadLog, int64, error) {
	if f.err != nil || int(after) >= len(f.logs) {
		return nil, 0, f.err
	}
	return f.logs[after : after+1], after + 1, nil
}

func newMetrics(f *fakeSource) *Metrics {
	return New(Config{Version: "v1", Playbook: playbook.Default(), Source: f, Log: slog.New(slog.DiscardHandler)})
}

func scrape(t *testing.T, m *Metrics) string {
	t.Helper()
	w := httptest.NewRecorder()
	m.Handler(func() bool { return true }).ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	if w.Code != 200 {
		t.Fatalf("a scrape is answered by %d:\n%s", w.Code, w.Body)
	}
	return w.Body.String()
}

// thread is a log with one text per attempt.
func thread(t *testing.T, id int64, repo string, attempts ...playbook.Attempt) store.ThreadLog {
	t.Helper()
	l := store.ThreadLog{ThreadRef: store.ThreadRef{ID: id, Forge: "gitea", Repo: forge.Repo{Owner: "ops", Name: repo}}}
	for i, a := range attempts {
		a.RecordedAt = time.Unix(int64(1000*i), 0)
		data, err := json.Marshal(map[string]any{"rights": true, "records": []playbook.Attempt{a}})
		if err != nil {
			t.Fatal(err)
		}
		l.Texts = append(l.Texts, store.Object{Data: data, Keep: true})
	}
	return l
}

func attempt(action, outcome string) playbook.Attempt {
	return playbook.Attempt{Action: action, Outcome: outcome, Actor: "ada"}
}

func TestCounts(t *testing.T) {
	now := time.Unix(2_000_000_000, 0)
	f := &fakeSource{stats: store.Stats{Waiting: 3, Dead: 2, OpenAnswers: 4, DeadAnswers: 1, Now: now, Oldest: now.Add(-90 * time.Second)}}
	m := newMetrics(f)
	m.Delivery("gitea", 202)
	m.Delivery("", 404)
	accept := m.Accepting(func(_ context.Context, e forge.Event) (string, error) {
		if e.Number == 1 {
			return bot.OutcomeTaken, nil
		}
		return "", errors.New("no database")
	})
	if outcome, err := accept(t.Context(), forge.Event{Forge: "gitea", Number: 1}); outcome != bot.OutcomeTaken || err != nil {
		t.Errorf("accept gave %q, %v", outcome, err)
	}
	if _, err := accept(t.Context(), forge.Event{Forge: "gitea"}); err == nil {
		t.Error("the error got lost")
	}
	m.Observe(bot.Observation{What: "answer", Verdict: "refused", Code: "attempt_log_missing"})
	m.Observe(bot.Observation{What: "answer"})
	for _, what := range []string{"adopted", "double_deleted", "revoked", "dead", "marker_tampered", "restored", "database_behind", "sweep_found", "sweep_found", "of no kind known"} {
		m.Observe(bot.Observation{What: what})
	}
	m.Calls("gitea")("comment.create", 201, 30*time.Millisecond)
	m.Calls("gitea")("comment.create", 0, 10*time.Second)

	out := scrape(t, m)
	for _, want := range []string{
		`playbook_bot_build_info{playbook="mcp-scoped-recovery",playbook_sha256="` + playbook.Default().Identity().SHA256 + `",version="v1"} 1`,
		`playbook_bot_ready 1`,
		`playbook_bot_database_up 1`,
		`playbook_bot_deliveries_total{forge="gitea",status="202"} 1`,
		`playbook_bot_deliveries_total{forge="none",status="404"} 1`,
		`playbook_bot_delivery_outcomes_total{forge="gitea",outcome="taken"} 1`,
		`playbook_bot_delivery_outcomes_total{forge="gitea",outcome="error"} 1`,
		`playbook_bot_events_waiting 3`,
		`playbook_bot_oldest_waiting_event_age_seconds 90`,
		`playbook_bot_answers_open 4`,
		`playbook_bot_events_dead 2`,
		`playbook_bot_answers_dead 1`,
		`playbook_bot_answers_total{code="attempt_log_missing",verdict="refused"} 1`,
		`playbook_bot_answers_total{code="none",verdict="none"} 1`,
		`playbook_bot_answers_adopted_total 1`,
		`playbook_bot_answer_doubles_deleted_total 1`,
		`playbook_bot_approvals_revoked_total 1`,
		`playbook_bot_given_up_total 1`,
		`playbook_bot_markers_tampered_total 1`,
		`playbook_bot_answers_restored_total 1`,
		`playbook_bot_sweep_found_total 2`,
		`playbook_bot_database_behind_total 1`,
		`playbook_bot_forge_requests_total{forge="gitea",kind="comment.create",status="201"} 1`,
		`playbook_bot_forge_requests_total{forge="gitea",kind="comment.create",status="none"} 1`,
		`playbook_bot_forge_request_duration_seconds_bucket{forge="gitea",kind="comment.create",le="0.05"} 1`,
		`playbook_bot_forge_request_duration_seconds_count{forge="gitea",kind="comment.create"} 2`,
	} {
		if !strings.Contains(out, "\n"+want+"\n") {
			t.Errorf("lacks %s", want)
		}
	}
	for _, want := range []string{"go_goroutines ", "process_start_time_seconds "} {
		if !strings.Contains(out, "\n"+want) {
			t.Errorf("lacks %s", want)
		}
	}
	if strings.Contains(out, "playbook_bot_recover") {
		t.Error("shows figures before any were worked out")
	}
}

// TestCountersBeginAtZero: an alarm on an increase misses the first event of
// a series that appears with it.
func TestCountersBeginAtZero(t *testing.T) {
	out := scrape(t, newMetrics(&fakeSource{}))
	for _, d := range Catalogue() {
		if d.Type == counter && d.Labels == nil && !strings.Contains(out, "\n"+d.Name+" 0\n") {
			t.Errorf("%s is not there from the start", d.Name)
		}
	}
}

func TestWithoutTheDatabase(t *testing.T) {
	f := &fakeSource{err: errors.New("gone")}
	m := newMetrics(f)
	out := scrape(t, m)
	if !strings.Contains(out, "\nplaybook_bot_database_up 0\n") || strings.Contains(out, "playbook_bot_events_waiting") {
		t.Errorf("a database that is gone looks like\n%s", out)
	}
	if err := m.Refresh(t.Context()); err == nil {
		t.Error("figures without a database")
	}
}

func TestRecoveryFigures(t *testing.T) {
	again := attempt("client_reconnect", "failed")
	f := &fakeSource{logs: []store.ThreadLog{
		thread(t, 1, "search", attempt("client_reconnect", "failed"), attempt("capability_refresh", "succeeded"), attempt("no_rung_of_ours", "succeeded")),
		thread(t, 2, "search", attempt("client_reconnect", "succeeded"), attempt("full_mcp_restart", "succeeded")),
		thread(t, 3, "quiet", again),
	}}
	// The same attempt twice in one thread is one; in two threads it is two.
	f.logs[2].Texts = append(f.logs[2].Texts, f.logs[2].Texts[0])
	m := newMetrics(f)
	if err := m.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	out := scrape(t, m)
	for _, want := range []string{
		`playbook_bot_attempts{action="client_reconnect",outcome="failed"} 2`,
		`playbook_bot_attempts{action="full_mcp_restart",outcome="succeeded"} 1`,
		`playbook_bot_recoveries{forge="gitea",repository="ops/search"} 3`,
		`playbook_bot_recoveries{forge="gitea",repository="ops/quiet"} 0`,
		`playbook_bot_recoveries_avoided_full_restart{forge="gitea",repository="ops/search"} 2`,
		`playbook_bot_recoveries_avoided_full_restart_ratio 0.6666666666666666`,
		`playbook_bot_recovery_rung_median 1`,
		`playbook_bot_manual_kills 0`,
	} {
		if !strings.Contains(out, "\n"+want+"\n") {
			t.Errorf("lacks %s", want)
		}
	}
	if strings.Contains(out, "no_rung_of_ours") {
		t.Error("counts what is on no rung")
	}

	// Without recoveries the ratio is absent, not 0.
	f.logs = f.logs[2:]
	if err := m.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	if out := scrape(t, m); strings.Contains(out, "_ratio ") || strings.Contains(out, "rung_median ") {
		t.Errorf("figures without recoveries:\n%s", out)
	}
}

// TestFiguresAgreeWithThePolicy: the same attempts, counted here in bulk, give
// what the policy's own RecoveryMetrics gives.
func TestFiguresAgreeWithThePolicy(t *testing.T) {
	p := playbook.Default()
	var all []playbook.Attempt
	for i, r := range p.Rungs() {
		for j, o := range p.Outcomes() {
			for range (i*7+j*3)%4 + 1 {
				a := attempt(r.Action, o)
				a.RecordedAt = time.Unix(int64(1000*len(all)), 0)
				all = append(all, a)
			}
		}
	}
	for n := 1; n < len(all); n += 7 {
		want := p.RecoveryMetrics(all[:n])
		f := &figures{counts: map[logged]int{}}
		f.add(where{"gitea", "ops/x"}, all[:n])
		ranks, total := map[int]int{}, 0
		for l, k := range f.counts {
			if r, _ := p.Rung(l.action); p.Recovered(playbook.Attempt{Action: l.action, Outcome: l.outcome}) {
				ranks[r.Rank] += k
				total += k
			}
		}
		if total != want.Recoveries {
			t.Fatalf("of %d attempts %d recovered, want %d", n, total, want.Recoveries)
		}
		if total == 0 {
			continue
		}
		if mean, median := middle(ranks, total); mean != *want.MeanRungAtRecovery || median != *want.MedianRungAtRecovery {
			t.Errorf("of %d attempts: mean %v, median %v; want %v, %v", n, mean, median, *want.MeanRungAtRecovery, *want.MedianRungAtRecovery)
		}
	}
}

var name = regexp.MustCompile(`^playbook_bot_[a-z]+(_[a-z]+)*$`)

// TestConventions holds names and types to Prometheus' own conventions, and
// the list to what a scrape shows.
func TestConventions(t *testing.T) {
	f := &fakeSource{logs: []store.ThreadLog{thread(t, 1, "x", attempt("client_reconnect", "succeeded"))}}
	m := newMetrics(f)
	m.Delivery("gitea", 202)
	m.Observe(bot.Observation{What: "answer"})
	m.Calls("gitea")("user.self", 200, time.Second)
	if _, err := m.Accepting(func(context.Context, forge.Event) (string, error) { return "taken", nil })(t.Context(), forge.Event{Forge: "gitea"}); err != nil {
		t.Fatal(err)
	}
	if err := m.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	out := scrape(t, m)
	shown := map[string]string{}
	for line := range strings.Lines(out) {
		if f := strings.Fields(line); len(f) == 4 && f[1] == "TYPE" && strings.HasPrefix(f[2], "playbook_bot_") {
			shown[f[2]] = f[3]
		}
	}
	var names []string
	for _, d := range Catalogue() {
		names = append(names, d.Name)
		if shown[d.Name] != d.Type {
			t.Errorf("%s is shown as %q, listed as %s", d.Name, shown[d.Name], d.Type)
		}
		delete(shown, d.Name)
		if !name.MatchString(d.Name) || strings.HasSuffix(d.Name, "_total") != (d.Type == counter) {
			t.Errorf("%s is no name for a %s", d.Name, d.Type)
		}
		if len(d.Help) < 20 || !strings.HasSuffix(d.Help, ".") {
			t.Errorf("%s: its help is no sentence: %q", d.Name, d.Help)
		}
	}
	for n := range shown {
		t.Errorf("%s is shown and not in the list", n)
	}
	if sorted := slices.Clone(names); len(slices.Compact(slices.Sorted(slices.Values(sorted)))) != len(names) {
		t.Error("a name is listed twice")
	}
}
