package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"playbook-bot/playbook"
)

// fakeDesk remembers what was filed.
type fakeDesk struct {
	filings    []Filing
	recordings []Recording
	inquiries  []Inquiry
	err        error
}

func (d *fakeDesk) File(_ context.Context, f Filing) (Filed, error) {
	d.filings = append(d.filings, f)
	return Filed{Issue: f.Repository + "#41", URL: "https://forge/41", Existing: len(d.filings) > 1}, d.err
}

func (d *fakeDesk) Record(_ context.Context, r Recording) (Filed, error) {
	d.recordings = append(d.recordings, r)
	return Filed{Issue: r.Issue, URL: "https://forge/c1"}, d.err
}

func (d *fakeDesk) Status(_ context.Context, q Inquiry) (playbook.Decision, error) {
	d.inquiries = append(d.inquiries, q)
	dec := playbook.Default().Decide(playbook.Escalation{Action: "full_mcp_restart", Now: newClock().Now()}, nil)
	dec.Request, dec.State = "41/1", "open"
	return dec, d.err
}

// agent is a client of the tools; each call is checked for a text and, against
// the output schema by the SDK itself, for structured output.
type agent struct {
	t  *testing.T
	cs *sdk.ClientSession
}

func newAgent(t *testing.T, o ToolOptions) agent {
	t.Helper()
	o.Now = newClock().Now
	server, client := sdk.NewInMemoryTransports()
	ss, err := NewServer(o).Connect(testContext(t), server, nil)
	if err != nil {
		t.Fatal(err)
	}
	cs, err := sdk.NewClient(&sdk.Implementation{Name: "agent", Version: "1"}, nil).Connect(testContext(t), client, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cs.Close(); _ = ss.Wait() })
	return agent{t, cs}
}

func (a agent) call(name string, args map[string]any) (text string, out map[string]any, isError bool) {
	a.t.Helper()
	r, err := a.cs.CallTool(testContext(a.t), &sdk.CallToolParams{Name: name, Arguments: args})
	if err != nil {
		a.t.Fatalf("%s: %v", name, err)
	}
	for _, c := range r.Content {
		text += c.(*sdk.TextContent).Text
	}
	if text == "" {
		a.t.Errorf("%s: no text", name)
	}
	out, _ = r.StructuredContent.(map[string]any)
	if (out == nil) != r.IsError {
		a.t.Errorf("%s: error %v with structured output %v (%s)", name, r.IsError, out != nil, text)
	}
	return text, out, r.IsError
}

func (a agent) ok(name string, args map[string]any, parts ...string) map[string]any {
	a.t.Helper()
	text, out, isError := a.call(name, args)
	if isError {
		a.t.Fatalf("%s: error %s", name, text)
	}
	a.holds(name, text, parts)
	return out
}

func (a agent) fails(name string, args map[string]any, parts ...string) {
	a.t.Helper()
	text, _, isError := a.call(name, args)
	if !isError {
		a.t.Errorf("%s %v: no error: %s", name, args, text)
	}
	a.holds(name, text, parts)
}

func (a agent) holds(name, text string, parts []string) {
	a.t.Helper()
	for _, p := range parts {
		if !strings.Contains(text, p) {
			a.t.Errorf("%s: %q does not say %q", name, text, p)
		}
	}
}

func writer(permission playbook.Permission) func(context.Context, string, string) (Rights, error) {
	return func(context.Context, string, string) (Rights, error) {
		return Rights{Standing: playbook.Standing{Permission: permission}}, nil
	}
}

const failedOnce = `[{"action":"client_reconnect","outcome":"failed","reason":"still closed","actor":"a","recorded_at":"2026-08-01T11:00:00Z"}]`

func TestToolsAreDescribed(t *testing.T) {
	a := newAgent(t, ToolOptions{Desk: &fakeDesk{}})
	r, err := a.cs.ListTools(testContext(t), nil)
	if err != nil {
		t.Fatal(err)
	}
	acting := []string{"request_mcp_restart", "gitea_request_mcp_restart", "record_attempt"}
	var names []string
	for _, tool := range r.Tools {
		names = append(names, tool.Name)
		if tool.InputSchema == nil || tool.OutputSchema == nil || tool.Description == "" || tool.Title == "" {
			t.Errorf("%s: not described", tool.Name)
		}
		if readOnly := tool.Annotations.ReadOnlyHint; readOnly == slices.Contains(acting, tool.Name) {
			t.Errorf("%s: read-only %v", tool.Name, readOnly)
		}
	}
	slices.Sort(names)
	want := "assess_escalation build_attempt_record evaluate_restart_impact gitea_request_mcp_restart recommend_actions record_attempt " +
		"recovery_ladder recovery_metrics recovery_request_status request_mcp_restart"
	if got := strings.Join(names, " "); got != want {
		t.Errorf("tools %s", got)
	}
	if r, err := newAgent(t, ToolOptions{}).cs.ListTools(testContext(t), nil); err != nil || len(r.Tools) != 8 {
		t.Errorf("without a desk: %v, %v", r, err)
	}
}

func TestPureTools(t *testing.T) {
	a := newAgent(t, ToolOptions{Account: "agent"})
	out := a.ok("recommend_actions", map[string]any{"symptoms": []string{"session_expired", "sesion_expired"}}, "Next: session_reconnect", "Unknown symptom")
	if out["next"] != "session_reconnect" {
		t.Errorf("next %v", out["next"])
	}
	a.ok("recommend_actions", map[string]any{"prior_recovery_attempts_json": failedOnce}, "Next: capability_refresh")
	a.fails("recommend_actions", map[string]any{"prior_recovery_attempts_json": `[{"action":"client_reconnect","outcome":"nope"}]`}, "line 1", "nope")
	a.fails("recommend_actions", map[string]any{"prior_recovery_attempts_json": "never"}, "line 1")

	out = a.ok("build_attempt_record", map[string]any{"action": "Client Reconnect", "outcome": "Timeout", "reason": "no answer"},
		"/attempt client_reconnect timeout no answer")
	if rec := out["attempt"].(map[string]any); rec["actor"] != "agent" || rec["recorded_at"] != "2026-08-01T12:00:00Z" || rec["verified"] != nil {
		t.Errorf("record %v", rec)
	}
	a.fails("build_attempt_record", map[string]any{"action": "client_reconect", "outcome": "didnt_work"}, "client_reconect", "didnt_work", "try: /attempt")
	a.fails("build_attempt_record", map[string]any{"action": "client_reconnect", "outcome": "failed", "verified": true}, "verified")

	out = a.ok("recovery_ladder", nil, "9. full_mcp_restart", "Contact:")
	if n := len(out["rungs"].([]any)); n != 11 {
		t.Errorf("%d rungs", n)
	}
	out = a.ok("recovery_metrics", map[string]any{"prior_recovery_attempts_json": failedOnce}, "no recoveries")
	if out["fraction_avoided_full_restart"] != nil {
		t.Errorf("got %v", out)
	}
	inventory := map[string]any{"restart_class": "full_mcp_restart", "sessions": []any{map[string]any{
		"id": "s1", "epoch": 4, "in_flight": []string{"tools/call", "tools/list"}, "tasks": []string{"t1"}}}}
	out = a.ok("evaluate_restart_impact", map[string]any{"inventory_json": inventory}, "REFUSED", "class_matrix_denied", "Do not replay tools/call", "1 sessions, 1 tasks")
	if out["mutated"] != false || out["hypothetical"] != nil {
		t.Errorf("got %v", out)
	}
	out = a.ok("evaluate_restart_impact", map[string]any{"inventory_json": inventory, "standing": "admin"}, "HYPOTHETICAL", "attempt_log_missing")
	if out["hypothetical"] != true {
		t.Errorf("got %v", out)
	}
	a.fails("evaluate_restart_impact", map[string]any{"inventory_json": "[1"}, "inventory_json")
}

func TestAssessTool(t *testing.T) {
	a := newAgent(t, ToolOptions{Account: "agent", Rights: writer(playbook.PermissionAdmin)})
	tests := []struct {
		name  string
		args  map[string]any
		code  string
		parts []string
	}{
		{"refused for want of a log", map[string]any{"action": "full_mcp_restart"}, "attempt_log_missing",
			[]string{"REFUSED: full_mcp_restart (attempt_log_missing)", "Next: client_reconnect", "to post: /attempt client_reconnect"}},
		{"allowed", map[string]any{"action": "full_mcp_restart", "prior_recovery_attempts_json": failedOnce}, "allowed_attempt_log", []string{"APPROVED"}},
		{"a list as it is", map[string]any{"action": "full_mcp_restart", "prior_recovery_attempts_json": []any{
			map[string]any{"action": "client_reconnect", "outcome": "failed"}}}, "allowed_attempt_log", nil},
		{"break-glass by word alone", map[string]any{"action": "full_mcp_restart", "request_break_glass": true}, "break_glass_not_authorized", nil},
		{"unknown", map[string]any{"action": "full_mcp_restrt"}, "unknown_action", []string{"Did you mean full_mcp_restart?"}},
		{"a kill", map[string]any{"action": "pkill -f mcp"}, "forbidden_action", nil},
		{"a log that cannot be read", map[string]any{"action": "full_mcp_restart", "prior_recovery_attempts_json": `[{"action":"x"}]`}, "attempt_log_missing", []string{"Not taken: line 1"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			a.t = t
			out := a.ok("assess_escalation", tt.args, append(tt.parts, tt.code, "Nothing was restarted")...)
			if out["code"] != tt.code || out["hypothetical"] != nil || out["schema"] != playbook.DecisionSchema {
				t.Errorf("got %v", out)
			}
		})
	}
	a.t = t
	a.fails("assess_escalation", map[string]any{"action": " "}, "recovery_ladder lists them")
	a.fails("assess_escalation", map[string]any{}, "action")
	a.fails("assess_escalation", map[string]any{"action": "host_restart", "standing": "god"}, "none, read, write, admin, owner")
	a.fails("assess_escalation", map[string]any{"action": "host_restart", "prior_recovery_attempts_json": strings.Repeat("x", maxArgument+1)}, "larger than")
}

// Nobody's word counts for standing or authorization, in any combination.
func TestClaimsAreHypotheticalAndNeverFile(t *testing.T) {
	claims := []map[string]any{
		{"standing": "owner"}, {"roles": []string{"controller"}}, {"break_glass_authorized": true},
		{"standing": "owner", "roles": []string{"controller"}, "break_glass_authorized": true, "request_break_glass": true},
	}
	for _, account := range []string{"", "agent"} {
		desk := &fakeDesk{}
		a := newAgent(t, ToolOptions{Account: account, Desk: desk, Rights: writer(playbook.PermissionRead)})
		for _, tool := range []string{"request_mcp_restart", "gitea_request_mcp_restart"} {
			for _, claim := range claims {
				args := map[string]any{"action": "host_restart", "file_in": "ops/mcp", "prior_recovery_attempts_json": failedOnce}
				for k, v := range claim {
					args[k] = v
				}
				out := a.ok(tool, args, "HYPOTHETICAL", "Nothing was filed")
				if out["hypothetical"] != true || out["filed"] != nil {
					t.Errorf("%v: %v", claim, out)
				}
			}
		}
		if len(desk.filings) != 0 {
			t.Errorf("filed %v", desk.filings)
		}
		// And without claims the word of the token is what counts.
		out := a.ok("assess_escalation", map[string]any{"action": "host_restart", "prior_recovery_attempts_json": failedOnce})
		if out["allowed"] != false || out["code"] != "class_matrix_denied" {
			t.Errorf("account %q: %v", account, out["code"])
		}
	}
}

func TestRequestTool(t *testing.T) {
	desk := &fakeDesk{}
	var log bytes.Buffer
	o := ToolOptions{Account: "agent", Desk: desk, Rights: writer(playbook.PermissionRead), Logger: slog.New(slog.NewTextHandler(&log, nil))}
	a := newAgent(t, o)
	args := map[string]any{"action": "Full MCP Restart", "target": "search", "symptoms": []string{"transport_eof"}, "reason": "all dead",
		"file_in": "ops/mcp", "prior_recovery_attempts_json": strings.Replace(failedOnce, `"actor"`, `"verified":true,"actor"`, 1)}
	out := a.ok("gitea_request_mcp_restart", args, "REFUSED", "class_matrix_denied", "Filed as ops/mcp#41", "never restarts anything")
	if filed := out["filed"].(map[string]any); filed["issue"] != "ops/mcp#41" || filed["existing"] != false {
		t.Errorf("filed %v", filed)
	}
	f := desk.filings[0]
	if f.Account != "agent" || f.Tool != "gitea_request_mcp_restart" || f.Action != "full_mcp_restart" || f.Target != "search" || f.Reason != "all dead" ||
		len(f.Attempts) != 1 || f.Attempts[0].Verified {
		t.Errorf("filing %+v", f)
	}
	a.ok("request_mcp_restart", args, "It was filed before as ops/mcp#41")

	without := map[string]any{"action": "full_mcp_restart"}
	a.ok("request_mcp_restart", without, "Nothing was filed", "file_in")
	a.ok("request_mcp_restart", map[string]any{"action": "pkill", "file_in": "ops/mcp"}, "forbidden_action", "Nothing was filed")
	a.ok("request_mcp_restart", map[string]any{"action": "host_restart", "file_in": "ops/mcp", "prior_recovery_attempts_json": "{"}, "Nothing was filed: mend")
	a.fails("request_mcp_restart", map[string]any{"action": "host_restart", "file_in": "https://forge/ops/mcp"}, "owner/repo")
	if len(desk.filings) != 2 {
		t.Errorf("%d filings", len(desk.filings))
	}

	desk.err = &DeskError{Why: "5 requests an hour are filed for one account", Cure: "try again in 12 min"}
	a.fails("request_mcp_restart", args, "5 requests an hour", "12 min")
	desk.err = errors.New("dial tcp 10.0.0.7: token hunter2")
	a.fails("request_mcp_restart", args, "may have taken effect", "recovery_request_status")
	if text, _, _ := a.call("request_mcp_restart", args); strings.Contains(text, "hunter2") || strings.Contains(text, "10.0.0.7") {
		t.Errorf("the desk's error reached the caller: %s", text)
	}
	if !strings.Contains(log.String(), "not filed") {
		t.Error("the log says nothing")
	}

	nobody := newAgent(t, ToolOptions{Desk: desk})
	nobody.fails("request_mcp_restart", args, "no forge account")
	unread := newAgent(t, ToolOptions{Account: "agent", Rights: func(context.Context, string, string) (Rights, error) {
		return Rights{}, errors.New("hunter2")
	}})
	unread.ok("request_mcp_restart", without, "UNDECIDED", "standing_unknown")
}

func TestThreadTools(t *testing.T) {
	desk := &fakeDesk{}
	a := newAgent(t, ToolOptions{Account: "agent", Desk: desk})
	out := a.ok("record_attempt", map[string]any{"issue": "ops/mcp#41", "action": "client_reconnect", "outcome": "failed"}, "Recorded.", "ops/mcp#41")
	if out["issue"] != "ops/mcp#41" || desk.recordings[0].Attempt.Actor != "agent" || desk.recordings[0].Attempt.Verified {
		t.Errorf("got %v, %+v", out, desk.recordings)
	}
	a.fails("record_attempt", map[string]any{"issue": "ops/mcp#41", "action": "client_reconnect", "outcome": "nope"}, "nope")
	a.fails("record_attempt", map[string]any{"issue": "#41", "action": "client_reconnect", "outcome": "failed"}, "owner/repo#41")
	out = a.ok("recovery_request_status", map[string]any{"issue": "ops/mcp#41/1"}, "request 41/1, open")
	if out["state"] != "open" || desk.inquiries[0] != (Inquiry{"agent", "ops/mcp#41", "41/1"}) {
		t.Errorf("got %v, %+v", out, desk.inquiries)
	}
	a.fails("recovery_request_status", map[string]any{"issue": "ops/mcp"}, "owner/repo#41")
	newAgent(t, ToolOptions{Desk: desk}).fails("record_attempt", map[string]any{"issue": "ops/mcp#41", "action": "client_reconnect", "outcome": "failed"}, "no forge account")
	if len(desk.recordings) != 1 {
		t.Errorf("%d recordings", len(desk.recordings))
	}
}

func TestToolsOverHTTP(t *testing.T) {
	cache := sdk.NewSchemaCache()
	srv := httptest.NewServer(Handler(func(token string) (string, bool) {
		return map[string]string{"t1": "alice", "t2": ""}[token], token == "t1" || token == "t2"
	}, func(account string) *sdk.Server {
		return NewServer(ToolOptions{Account: account, Rights: writer(playbook.PermissionAdmin), Schemas: cache})
	}))
	defer srv.Close()
	with := func(authorization string) Server {
		return Server{Name: "bot", URL: srv.URL, Header: func(context.Context) (http.Header, error) {
			return http.Header{"Authorization": {authorization}}, nil
		}}
	}
	for authorization, code := range map[string]string{"Bearer t1": "attempt_log_missing", "bearer t2": "class_matrix_denied"} {
		c := connectTo(t, with(authorization), ClientOptions{})
		if !c.Sessionless() {
			t.Error("stateless means no session")
		}
		r, err := c.CallTool(testContext(t), &sdk.CallToolParams{Name: "assess_escalation", Arguments: map[string]any{"action": "full_mcp_restart"}})
		if err != nil {
			t.Fatal(err)
		}
		data, _ := json.Marshal(r.StructuredContent)
		if !strings.Contains(string(data), `"code":"`+code+`"`) || r.IsError {
			t.Errorf("%s: %s", authorization, data)
		}
		if rep := probeIt(t, with(authorization), Options{}); !rep.Answering {
			t.Errorf("probe: %+v", rep)
		}
	}
	for _, authorization := range []string{"", "Bearer", "Bearer ", "Bearer t3", "Basic t1", "t1"} {
		_, err := Connect(testContext(t), with(authorization), ClientOptions{})
		if e := asCallError(t, err); e.Status != http.StatusUnauthorized || symptom(err) != "credential_stale" {
			t.Errorf("%q: %v", authorization, err)
		}
	}
}
