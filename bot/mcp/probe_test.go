package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"playbook-bot/playbook"
)

func probeIt(t *testing.T, s Server, o Options) Report {
	t.Helper()
	r, err := Probe(testContext(t), s, o)
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Attempts) != max(1, len(r.Steps)) {
		t.Errorf("%d attempts for %d steps", len(r.Attempts), len(r.Steps))
	}
	for _, a := range r.Attempts {
		if !a.Verified || a.Target != s.Name || a.Actor == "" || a.RecordedAt.IsZero() || !strings.HasPrefix(a.Reason, "probe: ") {
			t.Errorf("attempt %+v", a)
		}
	}
	data, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	for _, secret := range []string{canary, "secret-session", "127.0.0.1"} {
		if strings.Contains(string(data), secret) {
			t.Errorf("%q is in the report: %s", secret, data)
		}
	}
	return r
}

// outcomes is "client_reconnect failed, capability_refresh skipped, …".
func outcomes(r Report) string {
	var out []string
	for _, a := range r.Attempts {
		out = append(out, a.Action+" "+a.Outcome)
	}
	return strings.Join(out, ", ")
}

func held(t *testing.T, p *peer) (*Client, Options) {
	t.Helper()
	o := Options{}.withDefaults()
	c := connectTo(t, p.server(), o.Client)
	if s := c.look(testContext(t)); !s.Answering {
		t.Fatal(s.Seen)
	}
	o.Session = c
	return c, o
}

func TestProbeOfAHealthyServerIsSkipped(t *testing.T) {
	for _, sessionless := range []bool{false, true} {
		p := newPeer(t, plainText)
		p.modern = sessionless
		for _, o := range []Options{{}, func() Options { _, o := held(t, p); return o }()} {
			r := probeIt(t, p.server(), o)
			if outcomes(r) != "client_reconnect skipped" || !r.Answering || r.RecoveredBy != "" || len(r.Steps) != 0 {
				t.Errorf("sessionless %v: %s, %+v", sessionless, outcomes(r), r)
			}
			if r.Before.Listed["tools"] != 1 {
				t.Errorf("saw %+v", r.Before)
			}
		}
		wantCounts(t, p, map[string]int{"tools/call": 0})
	}
}

func TestProbeRecovers(t *testing.T) {
	failing := func(method string, times int32) func(p *peer) {
		var n atomic.Int32
		return func(p *peer) {
			p.on(func(w http.ResponseWriter, _ *http.Request, m, _ string) bool {
				if m != method || n.Add(1) > times {
					return false
				}
				http.Error(w, canary, http.StatusServiceUnavailable)
				return true
			})
		}
	}
	tests := []struct {
		name    string
		gone    dialect
		break_  func(p *peer)
		want    string
		by      string
		symptom string
	}{
		{"an expired session", echoedID, (*peer).expire,
			"client_reconnect succeeded", ActionReconnect, "session_expired"},
		{"a session refused with 400", badRequest, (*peer).expire,
			"client_reconnect succeeded", ActionReconnect, "session_rejected"},
		{"lists that fail for a while", plainText, failing("tools/list", 2),
			"client_reconnect failed, capability_refresh succeeded", ActionRefresh, ""},
		{"a session that must be ended", plainText, func(p *peer) {
			var ended atomic.Bool
			p.on(func(w http.ResponseWriter, _ *http.Request, m, _ string) bool {
				if m == http.MethodDelete {
					ended.Store(true)
				}
				if m != "ping" || ended.Load() {
					return false
				}
				http.Error(w, canary, 500)
				return true
			})
		}, "client_reconnect failed, capability_refresh failed, session_reconnect succeeded", ActionSession, ""},
		{"a server that lists nothing any more", plainText, func(p *peer) {
			var lists atomic.Int32
			p.on(func(w http.ResponseWriter, _ *http.Request, m, id string) bool {
				if !strings.HasSuffix(m, "/list") || lists.Add(1) > 4 {
					return false
				}
				p.reply(w, id, `{"tools":[],"resources":[],"resourceTemplates":[],"prompts":[]}`)
				return true
			})
		}, "client_reconnect succeeded", ActionReconnect, "capability_empty"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p := newPeer(t, tt.gone)
			_, o := held(t, p)
			tt.break_(p)
			r := probeIt(t, p.server(), o)
			if ended := tt.symptom == "session_expired" || tt.by == ActionSession; r.SessionEnded != ended || strings.Contains(r.Verdict, noReplay) != ended {
				t.Errorf("session ended %v, want %v: %s", r.SessionEnded, ended, r.Verdict)
			}
			if outcomes(r) != tt.want || r.RecoveredBy != tt.by || !r.Answering {
				t.Errorf("got %s, by %q: %+v", outcomes(r), r.RecoveredBy, r)
			}
			if r.Before.Symptom != tt.symptom {
				t.Errorf("symptom %q, want %q (%s)", r.Before.Symptom, tt.symptom, r.Before.Seen)
			}
			if !strings.Contains(r.Verdict, "no restart is needed") {
				t.Errorf("verdict %q", r.Verdict)
			}
			wantCounts(t, p, map[string]int{"tools/call": 0})
			// It is well now, and the next probe must not claim to have helped.
			if again := probeIt(t, p.server(), o); outcomes(again) != "client_reconnect skipped" {
				t.Errorf("again: %s", outcomes(again))
			}
		})
	}
}

const nothingHelped = "client_reconnect failed, capability_refresh skipped, session_reconnect failed"

func TestProbeOfADeadServer(t *testing.T) {
	p := newPeer(t, plainText)
	s := p.server()
	p.Listener.Close()
	r := probeIt(t, s, Options{})
	if outcomes(r) != nothingHelped || r.Answering || !strings.Contains(r.Steps[0].Seen, "connection refused") {
		t.Errorf("got %s: %+v", outcomes(r), r)
	}
}

func TestProbeOfASilentServerEndsInTime(t *testing.T) {
	p := newPeer(t, plainText)
	p.on(func(_ http.ResponseWriter, r *http.Request, _, _ string) bool {
		select {
		case <-p.quit:
		case <-r.Context().Done():
		}
		return true
	})
	start := time.Now()
	r := probeIt(t, p.server(), Options{Deadline: 1200 * time.Millisecond})
	if took := time.Since(start); took > 4*time.Second {
		t.Errorf("took %v", took)
	}
	if outcomes(r) != "client_reconnect timeout, capability_refresh skipped, session_reconnect timeout" || r.Before.Symptom != "worker_hung" {
		t.Errorf("got %s: %+v", outcomes(r), r)
	}
}

func TestProbeCancelled(t *testing.T) {
	p := newPeer(t, plainText)
	ctx, cancel := context.WithCancel(testContext(t))
	p.on(func(http.ResponseWriter, *http.Request, string, string) bool { cancel(); return false })
	r, err := Probe(ctx, p.server(), Options{})
	if !errors.Is(err, context.Canceled) || len(r.Attempts) != 0 {
		t.Errorf("got %v with %d attempts: a rung cut short is no attempt", err, len(r.Attempts))
	}
}

func TestWatch(t *testing.T) {
	p := newPeer(t, nullID)
	ctx, cancel := context.WithCancel(testContext(t))
	tick := make(chan time.Time)
	lines := make(chan Health)
	done := make(chan error, 1)
	ck := newClock()
	go func() {
		done <- watch(ctx, p.server(), Options{Now: ck.Now, Deadline: 2 * time.Second}, tick, func(h Health) { lines <- h })
	}()
	next := func(want string) Health {
		t.Helper()
		h := <-lines
		if got := strings.Fields(h.String()); got[0] != "2026-08-01T12:00:00Z" || got[1] != "peer" || got[2] != want {
			t.Errorf("got %q, want %s", h, want)
		}
		return h
	}
	next("ok")
	p.expire()
	tick <- ck.Now()
	if h := next("restored"); h.Was == nil || h.Was.Symptom != "session_expired" || h.Epoch != 2 || !strings.Contains(h.String(), "the session expired") {
		t.Errorf("got %+v", h)
	}
	p.with(func() { p.tools = append(p.tools, "new\x07") })
	tick <- ck.Now()
	if h := next("ok"); h.Symptom != "stale_capability" || !slices.Equal(h.Changes.Added, []string{"new\ufffd"}) || strings.Contains(h.String(), "new") {
		t.Errorf("got %+v", h)
	}
	p.on(func(w http.ResponseWriter, _ *http.Request, _, _ string) bool {
		http.Error(w, canary, http.StatusBadGateway)
		return true
	})
	tick <- ck.Now()
	if h := next("down"); strings.Contains(h.String(), canary) {
		t.Errorf("got %s", h)
	}
	tick <- ck.Now()
	next("down")
	p.on(nil)
	tick <- ck.Now()
	next("ok")
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	wantCounts(t, p, map[string]int{"tools/call": 0})
	if err := Watch(testContext(t), p.server(), Options{}, 0, nil); err == nil {
		t.Error("an interval of zero")
	}
}

func TestPool(t *testing.T) {
	p := newPeer(t, plainText)
	pool := NewPool(Servers{p.server()}, Options{})
	for _, name := range []string{"nobody", p.URL, "file:///etc/passwd", ""} {
		if _, err := pool.Probe(testContext(t), name); !errors.Is(err, ErrUnknownServer) || name != "" && strings.Contains(err.Error(), name) {
			t.Errorf("%q: %v", name, err)
		}
	}
	steps := []string{"client_reconnect skipped", "client_reconnect succeeded", "client_reconnect skipped"}
	for i, want := range steps {
		r, err := pool.Probe(testContext(t), "PEER")
		if err != nil || outcomes(r) != want {
			t.Errorf("probe %d: %s, %v; want %s", i, outcomes(r), err, want)
		}
		if i == 0 {
			p.expire()
		}
	}
	pool.Close()
	if _, err := pool.Probe(testContext(t), "peer"); !errors.Is(err, ErrClosed) {
		t.Errorf("after Close: %v", err)
	}
	wantCounts(t, p, map[string]int{"DELETE": 1, "initialize": 2})
}

// Every symptom that is given is one of the playbook's, and every action and
// outcome too.
func TestProbeSpeaksThePlaybooksLanguage(t *testing.T) {
	pb := playbook.Default()
	call := func(status int, kinds ...error) error { return &CallError{Status: status, kinds: kinds} }
	codes := map[string]bool{"capability_empty": true, "stale_capability": true}
	for _, err := range []error{
		call(0, ErrBreakerOpen, ErrSessionExpired), call(404, ErrSessionExpired), call(0, ErrProtocol), call(401), call(403), call(400),
		call(0, ErrDisconnected), call(0, context.DeadlineExceeded), call(0, ErrOutcomeUnknown),
	} {
		if code := symptom(err); code == "" {
			t.Errorf("no code for %v", err)
		} else {
			codes[code] = true
		}
	}
	if got := pb.RecommendActions(sortedKeys(codes), nil); len(got.UnknownSymptoms) != 0 {
		t.Errorf("not in the playbook: %+v", got.UnknownSymptoms)
	}
	for i, action := range []string{ActionReconnect, ActionRefresh, ActionSession} {
		rung, ok := pb.Rung(action)
		if !ok || rung.Rank != i || !rung.SelfService {
			t.Errorf("%s: %+v", action, rung)
		}
	}
	for _, o := range []string{OutcomeSucceeded, OutcomeFailed, OutcomeTimeout, OutcomeSkipped} {
		if got, ok := pb.NormalizeOutcome(o); !ok || got != o {
			t.Errorf("%s is no outcome", o)
		}
	}
	counts := func(o string) bool { return pb.Counts(playbook.Attempt{Action: ActionReconnect, Outcome: o}) }
	if counts(OutcomeSkipped) || counts(OutcomeSucceeded) || !counts(OutcomeFailed) || !counts(OutcomeTimeout) {
		t.Error("skipped and succeeded must not count, failed and timeout must")
	}
}
