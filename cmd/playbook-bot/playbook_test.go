package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"playbook-bot/playbook"
)

// TestREADMEScenario runs the example of playbook/README.md.
func TestREADMEScenario(t *testing.T) {
	page, err := os.ReadFile("../../playbook/README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, ok := strings.Cut(string(page), "```txtar\n")
	text, _, ok2 := strings.Cut(rest, "```")
	if !ok || !ok2 {
		t.Fatal("README.md has no scenario")
	}
	results, err := runScenarios(playbook.Default(), text)
	if err != nil || len(results) != 4 {
		t.Fatalf("%d results, %v", len(results), err)
	}
	for _, r := range results {
		if len(r.Differs) > 0 {
			t.Errorf("%s: %q", r.Case, r.Differs)
		}
	}
	// The example in --help is a prefix of a file that runs.
	help := strings.ReplaceAll(scenarioHelp[strings.Index(scenarioHelp, "  -- overlay"):strings.Index(scenarioHelp, "Sections,")], "\n  ", "\n")
	if results, err := runScenarios(playbook.Default(), strings.TrimPrefix(help, "  ")); err != nil || len(results) != 1 || len(results[0].Differs) > 0 {
		t.Errorf("the example of --help: %+v, %v", results, err)
	}
}

// TestScenarios shows every key, and a difference in each of the wanted ones.
func TestScenarios(t *testing.T) {
	const overlay = "-- overlay --\ntighten: [{action: full_mcp_restart, max_age: 1h}, {action: host_restart, max_age: 1h}]\n"
	const tried = "-- attempts --\n- {action: client_reconnect, outcome: failed, target: search}\n"
	for _, c := range []struct{ name, text, differs string }{
		{"a target", tried + "-- case: a --\naction: full_mcp_restart\ntarget: search\nstanding: admin\nverdict: approved\nmissing: none\nnext: full_mcp_restart\n", ""},
		{"another target", tried + "-- case: a --\naction: full_mcp_restart\ntarget: mail\nstanding: admin\ncode: attempt_log_insufficient\n", ""},
		{"a role", tried + "-- case: a --\naction: host_restart\nroles: controller\ncode: allowed_attempt_log\n", ""},
		{"no standing", tried + "-- case: a --\n# nobody knows\naction: worker_restart\nverdict: undecided\n", ""},
		{"a symptom", "-- case: a --\naction: full_mcp_restart\nsymptoms: worker_hung, stale_lease\nstanding: owner\nnext: lease_recovery\n", ""},
		{"break-glass", "-- case: a --\naction: host_restart\nstanding: owner\nbreak_glass: requested\ncode: break_glass_not_authorized\nmissing: attempt,break_glass_grant\n", ""},
		{"with a grant", "-- case: a --\naction: host_restart\nstanding: owner\nbreak_glass: authorized\ncode: allowed_break_glass\n", ""},
		{"young enough", overlay + tried + "-- case: a --\naction: full_mcp_restart\nstanding: admin\nafter: 59m\nverdict: approved\n", ""},
		{"too old", overlay + tried + "-- case: a --\naction: full_mcp_restart\nstanding: admin\nafter: 61m\nverdict: refused\n", ""},
		{"a time", "-- attempts --\n- {action: client_reconnect, outcome: failed, recorded_at: 2026-06-01T00:00:00Z}\n" + overlay +
			"-- case: a --\naction: full_mcp_restart\nstanding: admin\nnow: 2026-06-01T00:30:00Z\nverdict: approved\n", ""},
		{"attempts end", tried + "-- attempts --\n-- case: a --\naction: full_mcp_restart\nstanding: admin\ncode: attempt_log_missing\n", ""},
		{"the overlay ends", overlay + tried + "-- overlay --\n-- case: a --\naction: full_mcp_restart\nstanding: admin\nafter: 61m\nverdict: approved\n", ""},
		{"wrong verdict", tried + "-- case: a --\naction: full_mcp_restart\nstanding: admin\nverdict: refused\n", "verdict: approved, want refused"},
		{"wrong code", "-- case: a --\naction: full_mcp_restart\nstanding: admin\ncode: allowed\n", "code: attempt_log_missing, want allowed"},
		{"wrong next", "-- case: a --\naction: full_mcp_restart\nstanding: admin\nnext: none\n", "next: client_reconnect, want none"},
		{"wrong missing", "-- case: a --\naction: full_mcp_restart\nstanding: read\nmissing: none\n", "missing: standing, attempt, want none"},
	} {
		results, err := runScenarios(playbook.Default(), c.text)
		if err != nil || len(results) != 1 {
			t.Errorf("%s: %+v, %v", c.name, results, err)
			continue
		}
		got := strings.Join(results[0].Differs, "; ")
		if c.differs == "" && got != "" || !strings.HasPrefix(got, c.differs) {
			t.Errorf("%s: %s", c.name, got)
		}
	}
}

func TestScenarioFaultsNameTheLine(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"unknown section", "prose\n-- roles --\n", `line 2: there is no section "roles"`},
		{"unknown key", "-- case: a --\naction: host_restart\nstandng: owner\ncode: x\n", `line 3: there is no key "standng"`},
		{"no action", "\n-- case: a --\ncode: x\n", "line 2: the case names no action"},
		{"nothing wanted", "-- case: a --\naction: host_restart\n", "line 1: the case wants nothing"},
		{"twice", "-- case: a --\naction: host_restart\naction: host_restart\ncode: x\n", "line 3: action stands twice"},
		{"no value", "-- case: a --\naction:\ncode: x\n", "line 2: action has no value"},
		{"no key", "-- case: a --\nhost_restart\n", "line 2: want KEY: VALUE"},
		{"bad standing", "-- case: a --\naction: host_restart\nstanding: root\ncode: x\n", "line 1: "},
		{"bad time", "-- case: a --\naction: host_restart\nnow: today\ncode: x\n", `now is "today"`},
		{"bad duration", "-- case: a --\naction: host_restart\nafter: -1h\ncode: x\n", `after is "-1h"`},
		{"bad glass", "-- case: a --\naction: host_restart\nbreak_glass: yes\ncode: x\n", `break_glass is "yes"`},
		{"bad attempt", "-- attempts --\n\n- {action: client_reconnect, outcome: gone}\n-- case: a --\naction: host_restart\ncode: x\n", "the attempts cannot be read: line 3"},
		{"bad overlay", "prose\n-- overlay --\ntighten:\n  - {action: host_restart, standing: read}\n", "line 4: tighten[0].standing: read is laxer"},
		{"bad playbook", "-- playbook --\nname: x\nrungs: 3\n", "line "},
		{"overlay of another playbook", "-- overlay --\ntighten: [{action: host_restart, disable: true}]\n-- playbook --\nname: pods\nrungs: [{action: a, rank: 0, standing: read, delegation: x}]\noutcomes: [{outcome: bad, kind: counts}, {outcome: good, kind: recovered}]\n", "line 2: tighten[0].action: `host_restart` is no action of the playbook pods"},
	} {
		if _, err := runScenarios(playbook.Default(), c.text); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want %q", c.name, err, c.want)
		}
	}
}

func TestPlaybookTestEnds(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	good := write("good.txtar", "-- case: fine --\naction: client_reconnect\nverdict: approved\n")
	bad := write("bad.txtar", "\n-- case: wrong --\naction: client_reconnect\nverdict: refused\n")
	empty := write("empty.txtar", "prose\n")
	for _, c := range []struct {
		args []string
		code int
		out  string
	}{
		{[]string{good}, exitOK, "ok    " + good + ": fine"},
		{[]string{good, bad}, exitFailure, "FAIL  " + bad + ":2: wrong"},
		{[]string{"--json", bad}, exitFailure, `"ok": false`},
		{[]string{empty}, exitFailure, ""},
		{[]string{filepath.Join(dir, "none.txtar")}, exitFailure, ""},
		{nil, exitUsage, ""},
	} {
		var out, errs strings.Builder
		code := run(t.Context(), append([]string{"playbook", "test"}, c.args...), nil, strings.NewReader(""), &out, &errs)
		if code != c.code || !strings.Contains(out.String(), c.out) || (code == exitOK) != (errs.Len() == 0) {
			t.Errorf("%q: exit %d\n%s%s", c.args, code, &out, &errs)
		}
	}
}
