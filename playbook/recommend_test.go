package playbook

import (
	"slices"
	"strings"
	"testing"
)

func TestRecommendWalksBroader(t *testing.T) {
	tests := []struct {
		name     string
		symptoms []string
		attempts []Attempt
		next     string
		ladder   int
	}{
		{"nothing known", nil, nil, "client_reconnect", 10},
		{"a symptom", []string{"stale_capability"}, nil, "capability_refresh", 9},
		{"the narrowest of two", []string{"worker_hung", "Session-Expired"}, nil, "session_reconnect", 8},
		{"tried ones are skipped", []string{"transport_eof"}, []Attempt{try("client_reconnect", "failed", 1), try("session_reconnect", "timeout", 1)}, "capability_refresh", 8},
		{"neutral ones are not", nil, []Attempt{try("client_reconnect", "partial", 1)}, "client_reconnect", 10},
		{"denied on a gated rung is not tried", []string{"fleet_skew"}, []Attempt{try("rolling_mcp_restart", "denied", 1)}, "rolling_mcp_restart", 2},
		{"a kill is not tried", nil, []Attempt{{Action: "client_reconnect", Outcome: "failed", Kill: true}}, "client_reconnect", 10},
		{"nothing left", []string{"host_exhausted"}, []Attempt{try("host_restart", "failed", 1)}, "", 0},
		{"no rung helps", []string{"upstream_outage", "outcome_unknown"}, nil, "", 0},
		{"one helps", []string{"upstream_outage", "worker_leak"}, nil, "worker_restart", 5},
		{"unknown only", []string{"gremlins"}, nil, "client_reconnect", 10},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := Default().RecommendActions(tt.symptoms, tt.attempts)
			if r.Next != tt.next || len(r.Ladder) != tt.ladder {
				t.Errorf("next %q, %d more; want %q, %d", r.Next, len(r.Ladder), tt.next, tt.ladder)
			}
			for _, step := range r.Ladder {
				rung, ok := Default().Rung(step.Action)
				if !ok || step.Gated != rung.Gated || step.Action == r.Next {
					t.Errorf("step %+v", step)
				}
			}
			noNil(t, r)
		})
	}
}

func TestSymptomsOfThePage(t *testing.T) {
	first := map[string]string{"transport_eof": "client_reconnect", "connection_poisoned": "client_reconnect", "capability_empty": "capability_refresh",
		"subscription_lost": "capability_refresh", "session_rejected": "session_reconnect", "handshake_incomplete": "session_reconnect",
		"session_affinity_miss": "configuration_reload", "credential_stale": "configuration_reload", "stale_lease": "lease_recovery", "stale_lockfile": "lease_recovery",
		"orphan_holder": "worker_restart", "role_runtime_wedged": "role_runtime_restart", "connector_wedged": "connector_restart", "daemon_corrupt": "connector_restart",
		"fleet_skew": "rolling_mcp_restart", "shared_state_poisoned": "full_mcp_restart", "host_exhausted": "host_restart"}
	for code, want := range first {
		if got := Default().RecommendActions([]string{code}, nil).Next; got != want {
			t.Errorf("%s starts at %q, want %q", code, got, want)
		}
	}
}

func TestPhrasesAreOfferedNotTaken(t *testing.T) {
	for text, want := range map[string]string{
		"session not found": "session_expired", "-32000 Connection closed": "transport_eof", "-32001: Session not found": "session_expired",
		"MCP error -32001: Request timed out": "worker_hung", "EPIPE": "transport_eof", "write: broken pipe": "transport_eof", "Error: EADDRINUSE :::8080": "orphan_holder",
		"SQLITE: database is locked": "orphan_holder", "0 tools": "capability_empty", "the VPN dropped": "network_path_change", "transport_eoff": "transport_eof",
		"stale capabilty": "stale_capability", "too many open files": "worker_leak", "curl works": "connector_wedged", "lease_held": "stale_lease",
	} {
		r := Default().RecommendActions([]string{text}, nil)
		if r.Next != "client_reconnect" || len(r.UnknownSymptoms) != 1 || len(r.UnknownSymptoms[0].Suggestions) == 0 || r.UnknownSymptoms[0].Suggestions[0] != want {
			t.Errorf("%q: next %q, %+v; want %s offered", text, r.Next, r.UnknownSymptoms, want)
		}
	}
	for text, want := range map[string][]string{"-32000": {"transport_eof"}, "-32001": {"session_expired", "worker_hung"}, "MCP error -32001": {"session_expired", "worker_hung"}} {
		r := Default().RecommendActions([]string{text, "worker_hung"}, nil)
		if r.Next != "worker_restart" || len(r.Notes) != 1 || !strings.Contains(r.Notes[0], "ambiguous") || !slices.Equal(r.UnknownSymptoms[0].Suggestions, want) {
			t.Errorf("%q: %+v", text, r)
		}
	}
	if got := Default().SymptomSuggestions("gremlins everywhere"); got == nil || len(got) != 0 {
		t.Errorf("gremlins are %q", got)
	}
	if code, ok := Default().NormalizeSymptom(" Transport EOF "); !ok || code != "transport_eof" {
		t.Errorf("%q, %v", code, ok)
	}
}

func TestMetrics(t *testing.T) {
	none := Default().RecoveryMetrics([]Attempt{try("client_reconnect", "failed", 1)})
	if none.FractionAvoidedFullRestart != nil || none.MeanRungAtRecovery != nil || none.MedianRungAtRecovery != nil || none.Attempts != 1 {
		t.Errorf("%+v", none)
	}
	won := try("capability_refresh", "succeeded", 2)
	kill := try("worker_restart", "succeeded", 3)
	kill.Kill = true
	m := Default().RecoveryMetrics([]Attempt{try("client_reconnect", "failed", 1), won, won, try("full_mcp_restart", "succeeded", 3), try("host_restart", "succeeded", 4),
		try("rolling_mcp_restart", "succeeded", 5), kill, try("no_such", "succeeded", 6)})
	if m.Attempts != 5 || m.Recoveries != 4 || m.AvoidedFullRestart != 2 || *m.FractionAvoidedFullRestart != 0.5 || m.ManualKills != 1 {
		t.Errorf("%+v, fraction %v", m, *m.FractionAvoidedFullRestart)
	}
	if *m.MeanRungAtRecovery != 7 || *m.MedianRungAtRecovery != 8.5 || m.ByAction["capability_refresh"] != 1 || m.ByOutcome["succeeded"] != 4 {
		t.Errorf("mean %v, median %v, %+v", *m.MeanRungAtRecovery, *m.MedianRungAtRecovery, m)
	}
}
