package playbook

import (
	"slices"
	"strings"
	"testing"
	"time"
)

func TestParseGrants(t *testing.T) {
	expiry := time.Date(2026, 12, 1, 6, 0, 0, 0, time.UTC)
	tests := []struct {
		text string
		want Grants
	}{
		{"", nil}, {" 0 ", nil}, {"False", nil}, {"no", nil}, {"off", nil},
		{"1", Grants{{Text: "1"}}}, {" TRUE\n", Grants{{Text: "TRUE"}}}, {"yes", Grants{{Text: "yes"}}}, {"on", Grants{{Text: "on"}}}, {"*", Grants{{Text: "*"}}},
		{"ops/incidents", Grants{{Text: "ops/incidents", Owner: "ops", Repo: "incidents"}}},
		{"ops/*", Grants{{Text: "ops/*", Owner: "ops"}}},
		{"ops/incidents#41:full_mcp_restart@2026-12-01T06:00:00Z", Grants{{Text: "ops/incidents#41:full_mcp_restart@2026-12-01T06:00:00Z",
			Owner: "ops", Repo: "incidents", Issue: 41, Action: "full_mcp_restart", Expiry: expiry}}},
		{"*@2026-12-01T07:00:00+01:00 , ops/a:Host-Restart,", Grants{{Text: "*@2026-12-01T07:00:00+01:00", Expiry: expiry}, {Text: "ops/a:Host-Restart", Owner: "ops", Repo: "a", Action: "host_restart"}}},
	}
	for _, tt := range tests {
		got, err := ParseGrants(tt.text)
		if err != nil || !slices.Equal(got, tt.want) {
			t.Errorf("%q: %+v, %v", tt.text, got, err)
		}
	}
}

func TestParseGrantsNamesThePositionNotTheValue(t *testing.T) {
	for text, want := range map[string]string{
		"hunter2": "grant 1: the scope", "ops/a,hunter2": "grant 2: the scope", "ops/a,,ops/b": "grant 2: the scope", "1,true": "grant 1", "ops": "grant 1: the scope",
		"ops/a#0": "grant 1: the scope", "ops/a#hunter2": "grant 1: the scope", "ops/*#3": "grant 1: the scope", "ops/a:": "grant 1: the action", "ops/a:hunter2!": "grant 1: the action",
		"ops/a@hunter2": "grant 1: the expiry", "ops/a@": "grant 1: the expiry", "ops/a@2026-12-01T06:00:00": "grant 1: the expiry", "*/a": "grant 1: the scope", "ops/a#999999999999999999999": "grant 1",
	} {
		got, err := ParseGrants(text)
		if err == nil || got != nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%q: %+v, %v", text, got, err)
		}
	}
	if _, err := ParseGrants("x,y"); err == nil || strings.Count(err.Error(), "grant ") != 2 {
		t.Errorf("both are named: %v", err)
	}
}

func TestGrantsMatch(t *testing.T) {
	gs, err := ParseGrants("Ops/Incidents#41@2026-12-01T13:00:00Z,ops/incidents:host_restart@2026-12-01T14:00:00Z,mail/*")
	if err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		owner, repo string
		issue       int64
		action      string
		now         time.Time
		want        int // index, -1: none
	}{
		{"ops", "INCIDENTS", 41, "full_mcp_restart", noon, 0},
		{"ops", "incidents", 42, "full_mcp_restart", noon, -1},
		{"ops", "incidents", 41, "host_restart", noon, 1}, // it lasts longer
		{"ops", "incidents", 41, "full_mcp_restart", noon.Add(time.Hour), -1},
		{"ops", "incidents", 7, "host_restart", noon.Add(119 * time.Minute), 1},
		{"mail", "x", 1, "host_restart", noon.AddDate(9, 0, 0), 2},
		{"ops2", "incidents", 41, "host_restart", noon, -1},
	}
	for _, tt := range tests {
		got, ok := gs.Match(tt.owner, tt.repo, tt.issue, tt.action, tt.now)
		if ok != (tt.want >= 0) || ok && got != gs[tt.want] {
			t.Errorf("%+v: %+v, %v", tt, got, ok)
		}
	}
	all, _ := ParseGrants("true")
	if g, ok := all.Match("a", "b", 1, "host_restart", noon); !ok || !g.Blanket() || gs[2].Blanket() {
		t.Errorf("%+v, %v", g, ok)
	}
	useless, _ := ParseGrants("*:reboot,*:host_restart,*:client_reconnect,*")
	if got := Default().UselessGrants(useless); !slices.Equal(got, []int{1, 3}) {
		t.Errorf("useless: %v", got)
	}
}
