package playbook

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
)

var admin = Standing{Permission: PermissionAdmin}

// try makes a record of ada's, n minutes before noon.
func try(action, outcome string, n int) Attempt {
	return Attempt{Action: action, Outcome: outcome, Actor: "ada", RecordedAt: noon.Add(-time.Duration(n) * time.Minute)}
}

func full(e Escalation) Escalation {
	if e.Action == "" {
		e.Action = "full_mcp_restart"
	}
	e.Now = noon
	return e
}

// load gives the default playbook with pieces of its text replaced.
func load(t testing.TB, oldnew ...string) *Playbook {
	t.Helper()
	text := edit(t, oldnew...)
	p, err := Load(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func edit(t testing.TB, oldnew ...string) string {
	t.Helper()
	text := string(defaultYAML)
	for i := 0; i+1 < len(oldnew); i += 2 {
		if !strings.Contains(text, oldnew[i]) {
			t.Fatalf("the default playbook has no %q", oldnew[i])
		}
		text = strings.Replace(text, oldnew[i], oldnew[i+1], 1)
	}
	return text
}

func TestGateAsksInOrder(t *testing.T) {
	glass := BreakGlass{Requested: true, Authorized: true}
	counting := []Attempt{try("client_reconnect", "failed", 5)}
	tests := []struct {
		name string
		e    Escalation
		code Code
		next string
	}{
		{"unknown before standing", Escalation{Action: "restart_all", Attempts: counting, BreakGlass: glass}, CodeUnknownAction, "capability_refresh"},
		{"a kill", Escalation{Action: "pkill -f mcp", Standing: admin, BreakGlass: glass}, CodeForbiddenAction, "client_reconnect"},
		{"standing unknown", Escalation{Attempts: counting, BreakGlass: glass}, CodeStandingUnknown, "capability_refresh"},
		{"matrix", Escalation{Attempts: counting, BreakGlass: glass, Standing: Standing{Permission: PermissionWrite}}, CodeClassMatrixDenied, "capability_refresh"},
		{"no gate", Escalation{Action: "Worker Restart", Standing: Standing{Permission: PermissionWrite}}, CodeAllowed, "client_reconnect"},
		{"no gate, symptom there", Escalation{Action: "worker_restart", Symptoms: []string{"worker_hung"}, Standing: admin}, CodeAllowed, "worker_restart"},
		{"by log", Escalation{Attempts: counting, Standing: admin, BreakGlass: glass}, CodeAllowedAttemptLog, "full_mcp_restart"},
		{"by break-glass", Escalation{Standing: admin, BreakGlass: glass}, CodeAllowedBreakGlass, "full_mcp_restart"},
		{"glass not authorized", Escalation{Standing: admin, BreakGlass: BreakGlass{Requested: true}}, CodeBreakGlassNotAuthorized, "client_reconnect"},
		{"authorized but not asked for", Escalation{Standing: admin, BreakGlass: BreakGlass{Authorized: true}}, CodeAttemptLogMissing, "client_reconnect"},
		{"no log", Escalation{Standing: admin, Symptoms: []string{"stale_capability"}}, CodeAttemptLogMissing, "capability_refresh"},
		{"log of what worked", Escalation{Standing: admin, Attempts: []Attempt{try("client_reconnect", "succeeded", 5)}}, CodeAttemptLogInsufficient, "client_reconnect"},
		{"same rung", Escalation{Standing: admin, Attempts: []Attempt{try("full_mcp_restart", "failed", 5)}}, CodeAttemptLogInsufficient, "client_reconnect"},
		{"broader rung", Escalation{Standing: admin, Attempts: []Attempt{try("host_restart", "failed", 5)}}, CodeAttemptLogInsufficient, "client_reconnect"},
		{"narrower gated rung", Escalation{Standing: admin, Attempts: []Attempt{try("rolling_mcp_restart", "failed", 5)}}, CodeAllowedAttemptLog, "full_mcp_restart"},
		{"denied on a gated rung", Escalation{Standing: admin, Attempts: []Attempt{try("rolling_mcp_restart", "denied", 5)}}, CodeAttemptLogInsufficient, "client_reconnect"},
		{"denied on an ungated rung", Escalation{Standing: admin, Attempts: []Attempt{try("worker_restart", "denied", 5)}}, CodeAllowedAttemptLog, "full_mcp_restart"},
		{"symptom above the request", Escalation{Standing: admin, Symptoms: []string{"host_exhausted"}}, CodeAttemptLogMissing, "client_reconnect"},
		{"symptom without a rung", Escalation{Standing: admin, Symptoms: []string{"upstream_outage"}}, CodeAttemptLogMissing, "client_reconnect"},
		{"only excluded", Escalation{Standing: admin, Excluded: []IgnoredAttempt{{Why: "altered"}}}, CodeAttemptLogInsufficient, "client_reconnect"},
		{"owner's rung", Escalation{Action: "host_restart", Standing: admin, Attempts: counting}, CodeClassMatrixDenied, "capability_refresh"},
		{"role opens it", Escalation{Action: "host_restart", Standing: Standing{Roles: []string{"controller"}}, Attempts: counting}, CodeAllowedAttemptLog, "host_restart"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			a := Default().AssessEscalation(full(tt.e))
			if a.Code != tt.code || a.Next != tt.next {
				t.Errorf("code %s, next %q; want %s, %q", a.Code, a.Next, tt.code, tt.next)
			}
			if want := strings.HasPrefix(string(tt.code), "allowed"); a.Allowed != want {
				t.Errorf("allowed = %v", a.Allowed)
			}
			if a.BreakGlass.Used != (tt.code == CodeAllowedBreakGlass) {
				t.Errorf("break-glass used = %v", a.BreakGlass.Used)
			}
			if len(a.Reasons) == 0 || a.Allowed != (len(a.Missing) == 0) {
				t.Errorf("reasons %q, missing %+v", a.Reasons, a.Missing)
			}
			noNil(t, a)
		})
	}
}

// noNil fails on any nil slice of a struct.
func noNil(t testing.TB, v any) {
	t.Helper()
	r := reflect.ValueOf(v)
	for i := range r.NumField() {
		if f := r.Field(i); f.Kind() == reflect.Slice && f.IsNil() {
			t.Errorf("%s is nil", r.Type().Field(i).Name)
		}
	}
}

func TestOutcomesThatCount(t *testing.T) {
	for outcome, want := range map[string]bool{"failed": true, "insufficient": true, "denied": true, "unresolved": true, "timeout": true, "error": true,
		"succeeded": false, "skipped": false, "in_progress": false, "partial": false, "planned": false} {
		a := Default().AssessEscalation(full(Escalation{Standing: admin, Attempts: []Attempt{try("client_reconnect", outcome, 1)}}))
		if a.Allowed != want || Default().Counts(try("client_reconnect", outcome, 1)) != want {
			t.Errorf("%s: allowed %v, want %v", outcome, a.Allowed, want)
		}
		if !want && (len(a.Ignored) != 1 || a.Ignored[0].Why == "") {
			t.Errorf("%s: ignored %+v", outcome, a.Ignored)
		}
	}
}

func TestTargets(t *testing.T) {
	on := func(target string) Attempt {
		a := try("client_reconnect", "failed", 1)
		a.Target = target
		return a
	}
	tests := []struct {
		request, attempt string
		counts           bool
	}{{"search", "search", true}, {"search", "SEARCH", true}, {"search", "", true}, {"", "other", true}, {"search", "other", false}}
	for _, tt := range tests {
		a := Default().AssessEscalation(full(Escalation{Standing: admin, Target: tt.request, Attempts: []Attempt{on(tt.attempt)}}))
		if a.Allowed != tt.counts {
			t.Errorf("request %q, attempt %q: allowed %v", tt.request, tt.attempt, a.Allowed)
		}
		if !tt.counts && !strings.Contains(a.Ignored[0].Why, "`/restart full_mcp_restart target=other`") {
			t.Errorf("why = %q", a.Ignored[0].Why)
		}
		if tt.request == "" && !strings.Contains(strings.Join(a.Reasons, "\n"), "`other`") {
			t.Errorf("the targets are not named: %q", a.Reasons)
		}
	}
}

func TestRepeatsCountOnceAndRungsAreDistinct(t *testing.T) {
	p := load(t, "gate: {min_attempts: 1}\n  - action: host_restart", "gate: {min_attempts: 3}\n  - action: host_restart",
		"gate: {min_attempts: 1}\n\n", "gate: {min_attempts: 3}\n\n")
	same := try("client_reconnect", "failed", 1)
	a := p.AssessEscalation(full(Escalation{Standing: admin, Attempts: []Attempt{same, same, try("client_reconnect", "error", 3)}}))
	if a.Allowed || len(a.Counted) != 2 || len(a.Ignored) != 1 || a.Ignored[0].Why != whyRepeat {
		t.Fatalf("allowed %v, counted %+v, ignored %+v", a.Allowed, a.Counted, a.Ignored)
	}
	var posts []string
	for _, m := range a.Missing {
		posts = append(posts, m.Post)
	}
	if want := []string{"/attempt capability_refresh insufficient", "/attempt session_reconnect insufficient"}; !slices.Equal(posts, want) {
		t.Errorf("missing = %q, want %q", posts, want)
	}
	a = p.AssessEscalation(full(Escalation{Standing: admin, Attempts: []Attempt{same, try("capability_refresh", "failed", 1), try("session_reconnect", "failed", 1)}}))
	if a.Code != CodeAllowedAttemptLog {
		t.Errorf("three rungs: %s", a.Code)
	}
}

func TestMaxAgeTakesTheEarlierTime(t *testing.T) {
	p := load(t, "gate: {min_attempts: 1}\n\n# kind", "gate: {min_attempts: 1, max_age: 1h}\n\n# kind")
	host := Escalation{Action: "host_restart", Standing: Standing{Permission: PermissionOwner}, Now: noon}
	tests := []struct {
		recorded, posted time.Duration // before noon; posted 0: none
		counts           bool
	}{{30 * time.Minute, 0, true}, {2 * time.Hour, 0, false}, {time.Hour, 0, true}, {2 * time.Hour, time.Minute, false}, {time.Minute, 2 * time.Hour, false}, {time.Minute, time.Minute, true}}
	for _, tt := range tests {
		a := try("client_reconnect", "failed", int(tt.recorded.Minutes()))
		if tt.posted > 0 {
			a.PostedAt = noon.Add(-tt.posted)
		}
		host.Attempts = []Attempt{a}
		if got := p.AssessEscalation(host); got.Allowed != tt.counts {
			t.Errorf("recorded %s, posted %s ago: allowed %v", tt.recorded, tt.posted, got.Allowed)
		}
	}
	host.Attempts = []Attempt{{Action: "client_reconnect", Outcome: "failed"}}
	if got := p.AssessEscalation(host); got.Allowed {
		t.Error("an attempt without any time has no age")
	}
}

func TestSinceLeavesTheLastIncidentOut(t *testing.T) {
	e := full(Escalation{Standing: admin, Attempts: []Attempt{try("client_reconnect", "failed", 30)}, Since: noon.Add(-10 * time.Minute)})
	a := Default().AssessEscalation(e)
	if a.Code != CodeAttemptLogInsufficient || a.Ignored[0].Why != whyBefore {
		t.Errorf("%s, ignored %+v", a.Code, a.Ignored)
	}
	e.Attempts = append(e.Attempts, try("client_reconnect", "failed", 5))
	if a = Default().AssessEscalation(e); a.Code != CodeAllowedAttemptLog {
		t.Errorf("tried again: %s", a.Code)
	}
}

func TestRequireVerified(t *testing.T) {
	p := load(t, "gate: {min_attempts: 1}\n\n# kind", "gate: {require_verified: true}\n\n# kind")
	e := Escalation{Action: "host_restart", Standing: Standing{Permission: PermissionOwner}, Now: noon}
	for _, r := range p.Rungs() {
		e.Attempts = append(e.Attempts, try(r.Action, "failed", 5))
	}
	a := p.AssessEscalation(e)
	if a.Code != CodeAttemptLogInsufficient || a.AttemptLogSatisfied || a.Next != "client_reconnect" {
		t.Fatalf("%s, satisfied %v, next %q", a.Code, a.AttemptLogSatisfied, a.Next)
	}
	if len(a.Missing) != 1 || a.Missing[0].Who != "the bot's own probe" {
		t.Errorf("missing = %+v", a.Missing)
	}
	probe := e.Attempts[0]
	probe.Verified = true // even where it repeats what somebody wrote
	e.Attempts = append(e.Attempts, probe)
	if a = p.AssessEscalation(e); a.Code != CodeAllowedAttemptLog {
		t.Errorf("with a probe: %s", a.Code)
	}
}

func TestMissingNamesEveryObstacleAtOnce(t *testing.T) {
	e := full(Escalation{Standing: Standing{Permission: PermissionRead}, Actor: "cursor-7", Request: "41/1", BreakGlass: BreakGlass{Requested: true}})
	a := Default().AssessEscalation(e)
	want := []Missing{
		{What: "endorsement", Who: "an account with admin", Post: "/endorse 41/1"},
		{What: "attempt", Who: "anyone", Post: "/attempt client_reconnect insufficient"},
		{What: "break_glass_grant", Who: "the operator"},
	}
	if a.Code != CodeClassMatrixDenied || a.Matrix.Why != "rank 9 needs admin; cursor-7 has read" || len(a.Missing) != len(want) {
		t.Fatalf("%s, %q, missing %+v", a.Code, a.Matrix.Why, a.Missing)
	}
	for i, m := range a.Missing {
		if m.Text == "" {
			t.Errorf("no text in %+v", m)
		}
		if m.Text = ""; m != want[i] {
			t.Errorf("missing[%d] = %+v, want %+v", i, m, want[i])
		}
	}
	e.Request, e.Target = "", "mcp search"
	a = Default().AssessEscalation(e)
	if m := a.Missing[0]; m.What != "standing" || m.Post != `/restart full_mcp_restart target="mcp search"` {
		t.Errorf("without a request: %+v", m)
	}
	e.BreakGlass.Authorized = true
	if a = Default().AssessEscalation(e); len(a.Missing) != 1 {
		t.Errorf("authorized break-glass leaves only standing: %+v", a.Missing)
	}
	e = full(Escalation{Action: "full_restart"})
	if a = Default().AssessEscalation(e); a.Missing[0].Post != "/restart full_mcp_restart" || !slices.Contains(a.Suggestions, "full_mcp_restart") {
		t.Errorf("unknown action: %+v, %q", a.Missing, a.Suggestions)
	}
}

func TestContaminationInformsAndNeverDecides(t *testing.T) {
	kill := Attempt{Action: "worker_restart", Outcome: "failed", Actor: "bob", RecordedBy: "ada", Kill: true, RecordedAt: noon}
	e := full(Escalation{Standing: admin, Attempts: []Attempt{kill, kill, {Action: "pkill", Outcome: "failed"}, {Action: "worker_restart", Outcome: "failed", Reason: "ran killall"}}})
	a := Default().AssessEscalation(e)
	if a.Code != CodeAttemptLogInsufficient || !a.Contaminated || len(a.Contamination) != 3 || len(a.Counted) != 0 {
		t.Fatalf("%s, contamination %+v, counted %+v", a.Code, a.Contamination, a.Counted)
	}
	if text := strings.Join(a.Reasons, "\n"); !strings.Contains(text, "recorded by `ada` (claimed actor: `bob`)") {
		t.Errorf("reasons = %q", text)
	}
	e.Attempts = append(e.Attempts, try("client_reconnect", "failed", 1))
	if a = Default().AssessEscalation(e); a.Code != CodeAllowedAttemptLog || !a.Contaminated {
		t.Errorf("%s, contaminated %v", a.Code, a.Contaminated)
	}
	e.Attempts, e.Since = []Attempt{kill}, noon.Add(time.Hour)
	if a = Default().AssessEscalation(e); !a.Contaminated {
		t.Error("a new incident does not lift the mark")
	}
	e.Cleared = noon
	if a = Default().AssessEscalation(e); a.Contaminated {
		t.Error("an admin does")
	}
}

func TestMatrix(t *testing.T) {
	need := []Permission{PermissionRead, PermissionRead, PermissionRead, PermissionWrite, PermissionWrite, PermissionWrite, PermissionWrite, PermissionWrite, PermissionAdmin, PermissionAdmin, PermissionOwner}
	for rank, r := range Default().Rungs() {
		for perm := PermissionNone; perm <= PermissionOwner; perm++ {
			if got := Default().Matrix(r.Action, Standing{Permission: perm}, "ada"); got.Allowed != (perm >= need[rank]) {
				t.Errorf("%s with %s: %+v", r.Action, perm, got)
			}
		}
		if got := Default().Matrix(r.Action, Standing{Roles: []string{"controller"}}, "ada"); !got.Allowed {
			t.Errorf("the controller is refused %s: %+v", r.Action, got)
		}
		if got := Default().Matrix(r.Action, Standing{Roles: []string{"Controller"}, Permission: 77}, "ada"); got.Allowed {
			t.Errorf("%s with nonsense: %+v", r.Action, got)
		}
		if got, want := Default().Matrix(r.Action, Standing{}, "ada").Allowed, need[rank] == PermissionRead; got != want || Default().NeedsLookup(r.Action) == want {
			t.Errorf("%s with unknown standing: allowed %v", r.Action, got)
		}
	}
	if got := Default().Matrix("pkill", Standing{Permission: PermissionOwner}, ""); got.Allowed || got.Why == "" {
		t.Errorf("no rung: %+v", got)
	}
}

func TestAssessmentJSON(t *testing.T) {
	text, err := json.Marshal(Default().AssessEscalation(full(Escalation{Standing: admin})))
	if err != nil {
		t.Fatal(err)
	}
	var m map[string]any
	if err := json.Unmarshal(text, &m); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"allowed", "code", "action", "target", "rung", "reasons", "attempt_log_required", "attempt_log_satisfied", "counted", "ignored",
		"break_glass", "matrix", "contaminated", "contamination", "next", "missing", "suggestions", "unknown_symptoms"} {
		if v, ok := m[name]; !ok || v == nil {
			t.Errorf("%s is %v", name, v)
		}
	}
}

// TestRequestsOfTheCases is shared cases 1 to 4 as far as the policy goes.
func TestRequestsOfTheCases(t *testing.T) {
	a := Default().AssessEscalation(full(Escalation{Target: "mcp-search", Symptoms: []string{"stale_capability"}, Standing: admin, Actor: "ada", Request: "41/1"}))
	if a.Code != CodeAttemptLogMissing || *a.Rung != 9 || a.Next != "capability_refresh" || a.Missing[0].Post != "/attempt capability_refresh insufficient" ||
		a.Matrix.Why != "rank 9 needs admin; ada has admin" || a.Reasons[0] != "no narrower attempt in the log" {
		t.Errorf("case 1: %+v", a)
	}
	rolling := full(Escalation{Action: "rolling_mcp_restart", Target: "search", Standing: admin, Attempts: []Attempt{try("client_reconnect", "insufficient", 0)}})
	if a = Default().AssessEscalation(rolling); a.Code != CodeAllowedAttemptLog {
		t.Errorf("case 2, admin: %s", a.Code)
	}
	rolling.Standing.Permission, rolling.Request = PermissionWrite, "41/2"
	if a = Default().AssessEscalation(rolling); a.Code != CodeClassMatrixDenied || len(a.Missing) != 1 || a.Missing[0].Post != "/endorse 41/2" || a.Missing[0].Who != "an account with admin" {
		t.Errorf("case 2, writer: %s, %+v", a.Code, a.Missing)
	}
	held := load(t, "  controller: []", "  controller: [ops/oncall]")
	if a = held.AssessEscalation(rolling); a.Missing[0].Who != "an account with admin or the role controller" {
		t.Errorf("who = %q", a.Missing[0].Who)
	}
}
