package mcp

import (
	"strings"
	"testing"

	"playbook-bot/playbook"
)

// TestAnAnswerNamesWhatItWouldEnd: an approval that ends sessions says that
// nothing is replayed, and with an inventory, in its own argument or with the
// attempts, names the calls, tasks and input keys.
func TestAnAnswerNamesWhatItWouldEnd(t *testing.T) {
	a := newAgent(t, ToolOptions{Account: "agent", Rights: writer(playbook.PermissionAdmin)})
	session := map[string]any{"id": "s1", "epoch": 4, "namespace": "mcp-search", "in_flight": []any{map[string]any{"id": "77", "method": "tools/call"}, "tools/list"},
		"tasks": []string{"task-9"}, "input_keys": []string{"key-3"}}
	other := map[string]any{"id": "s2", "epoch": 1, "namespace": "mcp-index", "in_flight": []any{"tools/call"}}
	attempt := map[string]any{"action": "client_reconnect", "outcome": "failed"}
	inventory := map[string]any{"sessions": []any{session, other}, "restart_class": "worker_restart", "standing": "owner"}
	withAttempts := map[string]any{"sessions": []any{session, other}, "prior_recovery_attempts": []any{attempt}}
	named := []string{"Calls in flight are not replayed", "Do not replay tools/call 77 of session s1", "task task-9 of session s1", "input key key-3", "May be sent again, once: tools/list"}
	for name, args := range map[string]map[string]any{
		"its own argument":  {"inventory_json": inventory, "prior_recovery_attempts_json": []any{attempt}},
		"with the attempts": {"prior_recovery_attempts_json": withAttempts},
	} {
		args["action"], args["target"] = "full_mcp_restart", "mcp-search"
		for _, tool := range []string{"assess_escalation", "request_mcp_restart"} {
			out := a.ok(tool, args, append(named, "APPROVED")...)
			im, _ := out["impact"].(map[string]any)
			if im == nil || len(im["ambiguous_calls"].([]any)) != 1 || len(im["dead_tasks"].([]any)) != 1 || len(im["dead_input_keys"].([]any)) != 1 || im["playbook_escalation"] != nil {
				t.Errorf("%s, %s: impact %v", tool, name, im)
			}
			if out["code"] != "allowed_attempt_log" {
				t.Errorf("%s, %s: %v", tool, name, out["code"])
			}
		}
	}

	text, out, _ := a.call("assess_escalation", map[string]any{"action": "client_reconnect", "inventory_json": inventory})
	if strings.Contains(text, "replay") || out["impact"] != nil {
		t.Errorf("a reconnect ends nothing: %s", text)
	}
	text, out, _ = a.call("assess_escalation", map[string]any{"action": "full_mcp_restart", "prior_recovery_attempts_json": attempt})
	if strings.Contains(text, "Would end") || out["impact"] != nil {
		t.Errorf("no inventory was given: %s", text)
	}
	a.fails("assess_escalation", map[string]any{"action": "full_mcp_restart", "inventory_json": "[1"}, "inventory_json")
	a.ok("evaluate_restart_impact", map[string]any{"inventory_json": inventory}, "Do not replay tools/call of session s2", "task task-9", "input key key-3")
}
