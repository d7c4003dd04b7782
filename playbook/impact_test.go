package playbook

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
)

const inventory = `{
  // what the coordinator sees
  "restart_class": "full_mcp_restart", "target": "mcp-search", "request_break_glass": false,
  "prior_recovery_attempts": [{"action": "client_reconnect", "outcome": "insufficient"}, {"action": "client_reconnect",
     "outcome": "didnt_work"}],
  "sessions": [
    {"id": "s1", "epoch": 3, "namespace": "MCP-Search", "in_flight": ["tools/call", {"id": 7, "method": "tools/list"}, "ping"], "tasks": ["t1", "t2"], "input_keys": ["k1"]},
    {"id": "s2", "epoch": 1, "namespace": "mail", "in_flight": ["tools/call"], "tasks": ["t9"]},
  ],
  "leases": [{"id": "l1", "holder": "s1"}, {"id": "l2", "holder": "s2"}, {"id": "l3", "holder": "w1"}, {"id": "l4", "namespace": "mcp-search"}],
  "workers": [{"id": "w1", "namespace": "mcp-search"}, {"id": "w2", "namespace": "mail"}],
  "standing": "owner", "break_glass_authorized": true, "hostname": "h1",
}`

func evaluate(t *testing.T, text string, o ImpactOptions) Impact {
	t.Helper()
	inv, err := ParseInventory([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	o.Now = noon
	im := Default().EvaluateRestartImpact(inv, o)
	noNil(t, im)
	if im.Mutated || !strings.Contains(im.Statement, "nothing was restarted") {
		t.Errorf("mutated %v, %q", im.Mutated, im.Statement)
	}
	return im
}

func ids[T any](list []T, id func(T) string) string {
	var out []string
	for _, v := range list {
		out = append(out, id(v))
	}
	return strings.Join(out, " ")
}

func radius(im Impact) map[string]string {
	pin := func(p Pinned) string { return p.Session + "/" + p.ID }
	call := func(c Call) string { return c.Session + "/" + c.Method + "/" + c.ID }
	return map[string]string{
		"sessions":  ids(im.SessionsEnded, func(s SessionEnd) string { return s.ID }),
		"tasks":     ids(im.DeadTasks, pin),
		"keys":      ids(im.DeadInputKeys, pin),
		"ambiguous": ids(im.AmbiguousCalls, call),
		"safe":      ids(im.SafeToResend, call),
		"leases":    ids(im.OrphanedLeases, func(l OrphanedLease) string { return l.ID }),
		"workers":   strings.Join(im.WorkersStopped, " "),
	}
}

func TestImpact(t *testing.T) {
	im := evaluate(t, inventory, ImpactOptions{Standing: admin, Actor: "ada"})
	if im.PlaybookEscalation == nil || im.PlaybookEscalation.Code != CodeAllowedAttemptLog || !*im.AttemptLogSatisfied {
		t.Fatalf("escalation %+v", im.PlaybookEscalation)
	}
	want := map[string]string{"sessions": "s1", "tasks": "s1/t1 s1/t2", "keys": "s1/k1", "ambiguous": "s1/tools/call/", "safe": "s1/tools/list/7 s1/ping/", "leases": "l1 l3 l4", "workers": "w1"}
	for name, got := range radius(im) {
		if got != want[name] {
			t.Errorf("%s: %q, want %q", name, got, want[name])
		}
	}
	if s := im.SessionsEnded[0]; s.Epoch != 3 || s.NextEpoch != 4 {
		t.Errorf("epochs %+v", s)
	}
	if len(im.Rejections) != 1 || im.Rejections[0].Line != 5 || !strings.Contains(im.Rejections[0].Suggestion, "/attempt client_reconnect failed") {
		t.Errorf("rejections %+v", im.Rejections)
	}
	if notes := strings.Join(im.Notes, "\n"); strings.Count(notes, "cannot grant") != 2 || strings.Contains(notes, "hostname") {
		t.Errorf("notes %q", notes)
	}
}

func TestImpactNeverTakesStandingFromTheInventory(t *testing.T) {
	im := evaluate(t, strings.Replace(inventory, `"request_break_glass": false`, `"request_break_glass": true`, 1), ImpactOptions{})
	if im.PlaybookEscalation.Allowed || im.PlaybookEscalation.Code != CodeStandingUnknown || im.BreakGlass.Authorized || im.BreakGlass.Used || !im.BreakGlass.Requested {
		t.Errorf("%+v", im.PlaybookEscalation)
	}
	im = evaluate(t, `{"restart_class": "full_mcp_restart", "request_break_glass": true}`, ImpactOptions{Standing: admin, BreakGlassAuthorized: true})
	if im.PlaybookEscalation.Code != CodeAllowedBreakGlass || !im.BreakGlass.Used || *im.AttemptLogSatisfied {
		t.Errorf("%+v", im)
	}
}

func TestImpactReach(t *testing.T) {
	for class, want := range map[string]string{"client_reconnect": "", "capability_refresh": "", "lease_recovery": "", "session_reconnect": "s1", "worker_restart": "s1", "host_restart": "s1 s2", "": "s1"} {
		im := evaluate(t, strings.Replace(inventory, "full_mcp_restart", class, 1), ImpactOptions{Standing: admin})
		if got := radius(im)["sessions"]; got != want {
			t.Errorf("%q ends %q, want %q", class, got, want)
		}
		if (im.PlaybookEscalation == nil) != (class == "") || (im.AttemptLogSatisfied == nil) != (class == "") {
			t.Errorf("%q: escalation %+v", class, im.PlaybookEscalation)
		}
	}
	im := evaluate(t, strings.Replace(inventory, `"target": "mcp-search",`, "", 1), ImpactOptions{Standing: admin})
	if got := radius(im)["sessions"]; got != "s1 s2" {
		t.Errorf("without a target %q end", got)
	}
	im = evaluate(t, "target: mail\nsessions: [{id: a}, {id: b, namespace: search}]\n", ImpactOptions{})
	if got := radius(im)["sessions"]; got != "a" {
		t.Errorf("what names no namespace counts as ended: %q", got)
	}
	if text, err := json.Marshal(im); err != nil || !strings.Contains(string(text), `"playbook_escalation":null,"attempt_log_satisfied":null`) {
		t.Errorf("%s, %v", text, err)
	}
}

func TestIdempotentIsAnAllowList(t *testing.T) {
	for method, want := range map[string]bool{"ping": true, "resources/read": true, "prompts/list": true, "tools/call": false, "initialize": false, "tools/LIST": false, "": false, "evil/list": false, "sampling/createMessage": false} {
		if Idempotent(method) != want {
			t.Errorf("Idempotent(%q) = %v", method, !want)
		}
	}
}

func TestParseInventoryNamesWhatIsWrong(t *testing.T) {
	for text, want := range map[string]string{
		"":                                 "one object is wanted",
		"[]":                               "one object is wanted",
		"{":                                "line 1, column 2: ends before",
		"{\"target\": [1]}":                "line 1: target: must be text",
		"{\n\"sessions\": {}}":             "line 2: sessions: must be a list",
		"{\"sessions\": [{\"epoch\": 1}]}": "sessions[0].id: is missing",
		"{\"sessions\": [\n{\"id\": \"a\", \"epoch\": \"x\"}]}":           "line 2: sessions[0].epoch: must be a whole number",
		"{\"sessions\": [{\"id\": \"a\", \"in_flight\": [{\"id\": 1}]}]}": "sessions[0].in_flight[0].method: is missing",
		"{\"request_break_glass\": \"yes\"}":                              "request_break_glass: must be true or false",
		"{\"target\": \"a\",\n\"target\": \"b\"}":                         "line 2: target: stands twice",
	} {
		if _, err := ParseInventory([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
	inv, err := ParseInventory([]byte("sessions: [a, b]\nworkers: w\nsymptoms: worker_hung\n"))
	if err == nil {
		t.Errorf("workers must be a list: %+v", inv)
	}
	inv, err = ParseInventory([]byte("sessions: [a, b]\nsymptoms: worker_hung\n"))
	if err != nil || len(inv.Sessions) != 2 || inv.Sessions[1].ID != "b" || !slices.Equal(inv.Symptoms, []string{"worker_hung"}) {
		t.Errorf("%+v, %v", inv, err)
	}
}
