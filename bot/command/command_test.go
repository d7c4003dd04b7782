package command

import (
	"runtime"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"playbook-bot/playbook"
)

var pb = playbook.Default()

func parse(t *testing.T, line string) Invocation {
	t.Helper()
	inv, match := ParseLine(line, 7, "Playbook-Bot", pb)
	if match != Ours {
		t.Fatalf("%q: match %v, want Ours", line, match)
	}
	return inv
}

func TestExamplesParseWithoutAProblem(t *testing.T) {
	for _, s := range Table {
		if len(s.Examples) == 0 || s.Summary == "" || s.Want == "" || s.Who == "" || s.Run == nil || s.args == nil {
			t.Errorf("/%s: the row is not complete", s.Name)
		}
		for _, e := range s.Examples {
			inv := parse(t, e)
			if inv.Problem != nil || inv.Name != s.Name {
				t.Errorf("%s: name %q, problem %+v", e, inv.Name, inv.Problem)
			}
			if inv.Action != "" {
				if _, ok := pb.Rung(inv.Action); !ok {
					t.Errorf("%s: action %q is no rung", e, inv.Action)
				}
			}
		}
	}
}

type recorder struct{ called string }

func (r *recorder) Restart(Invocation)    { r.called = "restart" }
func (r *recorder) Attempt(Invocation)    { r.called = "attempt" }
func (r *recorder) Resolved(Invocation)   { r.called = "resolved" }
func (r *recorder) Recommend(Invocation)  { r.called = "recommend" }
func (r *recorder) Assess(Invocation)     { r.called = "assess" }
func (r *recorder) BreakGlass(Invocation) { r.called = "break-glass" }
func (r *recorder) Endorse(Invocation)    { r.called = "endorse" }
func (r *recorder) Withdraw(Invocation)   { r.called = "withdraw" }
func (r *recorder) Playbook(Invocation)   { r.called = "playbook" }
func (r *recorder) Probe(Invocation)      { r.called = "probe" }

func TestEveryCommandRunsItsOwnHandler(t *testing.T) {
	for _, s := range Table {
		var r recorder
		s.Run(&r, Invocation{})
		if r.called != s.Name {
			t.Errorf("/%s runs %q", s.Name, r.called)
		}
	}
}

func TestMatch(t *testing.T) {
	for _, c := range []struct {
		line string
		want Match
	}{
		{"/restart full_mcp_restart", Ours},
		{"/RESTART full_mcp_restart", Ours},
		{"  \t/Break-Glass x y", Ours},
		{"/withdraw.", Ours},
		{"/restart", Ours},
		{"\ufeff/withdraw", Ours},
		{"\u200b\u2060/with\u200bdraw", Ours},
		{"\u00a0/withdraw", Ours},
		{"@playbook-bot restart full_mcp_restart", Ours},
		{"@PLAYBOOK-BOT: /withdraw", Ours},
		{"@playbook-bot thanks!", Unclear},
		{"@playbook-bot", Unclear},
		{"@playbook-bot restart-all", Unclear},
		{"@playbook-bot2 restart full_mcp_restart", NotOurs},
		{"@playbook restart full_mcp_restart", NotOurs},
		{"/restart-all", NotOurs},
		{"/restarts", NotOurs},
		{"/restart/now", NotOurs},
		{"/tmp/x", NotOurs},
		{"/", NotOurs},
		{"", NotOurs},
		{"//restart x", NotOurs},
		{"/ restart x", NotOurs},
		{"please /restart full_mcp_restart", NotOurs},
		{"restart full_mcp_restart", NotOurs},
		{"/re\u0455tart full_mcp_restart", NotOurs}, // a Cyrillic s
		{"/re\u017ftart full_mcp_restart", NotOurs}, // a long s, which Unicode folds to s
	} {
		if _, got := ParseLine(c.line, 1, "Playbook-Bot", pb); got != c.want {
			t.Errorf("%q: %v, want %v", c.line, got, c.want)
		}
	}
	if _, got := ParseLine("@ restart x", 1, "", pb); got != NotOurs {
		t.Errorf("without a login, a bare @ is taken for the bot")
	}
}

func TestArguments(t *testing.T) {
	for _, c := range []struct {
		line string
		want Invocation
	}{
		{"/restart full_mcp_restart\r", Invocation{Action: "full_mcp_restart"}},
		{"/restart full_mcp_restart.", Invocation{Action: "full_mcp_restart"}},
		{"/restart Full-MCP-Restart, please", Invocation{Action: "full_mcp_restart", Reason: "please"}},
		{"/restart full_mcp_restart thanks", Invocation{Action: "full_mcp_restart", Reason: "thanks"}},
		{"/restart full mcp restart thanks", Invocation{Action: "full_mcp_restart", Reason: "thanks"}},
		{"/restart `full_mcp_restart` now", Invocation{Action: "full_mcp_restart", Reason: "now"}},
		{`/restart full\_mcp\_restart`, Invocation{Action: "full_mcp_restart"}},
		{"/restart “full mcp restart” thanks", Invocation{Action: "full_mcp_restart", Reason: "thanks"}},
		{"/restart full_mcp_restart target=mcp-search symptom=stale_capability,transport_eof all 404",
			Invocation{Action: "full_mcp_restart", Target: "mcp-search", Symptoms: []string{"stale_capability", "transport_eof"}, Reason: "all 404"}},
		{"/restart full_mcp_restart Symptoms=a, b TARGET=x c",
			Invocation{Action: "full_mcp_restart", Target: "x", Symptoms: []string{"a", "b"}, Reason: "c"}},
		{`/restart full_mcp_restart target="my server" why`, Invocation{Action: "full_mcp_restart", Target: "my server", Reason: "why"}},
		{"/restart full_mcp_restart target=„my server“ why", Invocation{Action: "full_mcp_restart", Target: "my server", Reason: "why"}},
		{"/restart full_mcp_restart target='bob's server'", Invocation{Action: "full_mcp_restart", Target: "bob's server"}},
		{`/restart full_mcp_restart symptom="session not found",x`,
			Invocation{Action: "full_mcp_restart", Symptoms: []string{"session not found", "x"}}},
		{"/restart full_mcp_restart because target=x is down", Invocation{Action: "full_mcp_restart", Reason: "because target=x is down"}},
		{"/restart nonsense_restart now", Invocation{Action: "nonsense_restart", Reason: "now"}},
		{"/restart pkill -f mcp", Invocation{Action: "pkill", Reason: "-f mcp"}},
		{"/restart kill -9 4711", Invocation{Action: "kill", Reason: "-9 4711"}},
		{"/attempt client_reconnect failed branch-deploy --force",
			Invocation{Action: "client_reconnect", Outcome: "failed", Reason: "branch-deploy --force"}},
		{"/attempt client_reconnect failed --target=x symptom=y",
			Invocation{Action: "client_reconnect", Outcome: "failed", Reason: "--target=x symptom=y"}},
		{"/attempt\u00a0client_reconnect insufficient “still closed”",
			Invocation{Action: "client_reconnect", Outcome: "insufficient", Reason: "still closed"}},
		{"/attempt client_reconnect failed\u2003no\u00a0luck", Invocation{Action: "client_reconnect", Outcome: "failed", Reason: "no luck"}},
		{`/attempt client_reconnect failed "a" and "b"`, Invocation{Action: "client_reconnect", Outcome: "failed", Reason: `"a" and "b"`}},
		{"/attempt cli\u200bent_reconnect fai\ufeffled x", Invocation{Action: "client_reconnect", Outcome: "failed", Reason: "x"}},
		{"/attempt client reconnect Failed. again", Invocation{Action: "client_reconnect", Outcome: "failed", Reason: "again"}},
		{"/attempt client_reconnect – failed", Invocation{Action: "client_reconnect", Outcome: "failed"}},
		{"/attempt worker_restart in progress since noon", Invocation{Action: "worker_restart", Outcome: "in_progress", Reason: "since noon"}},
		{"/attempt client_reconnect success", Invocation{Action: "client_reconnect", Outcome: "succeeded"}},
		{"/attempt client_reconnect failed target=A 👩\u200d🔧 was here",
			Invocation{Action: "client_reconnect", Outcome: "failed", Target: "A", Reason: "👩\u200d🔧 was here"}},
		{"/attempt pkill failed", Invocation{Action: "pkill", Outcome: "failed"}},
		{"/attempt pkill -f mcp failed it came back", Invocation{Action: "pkill -f mcp", Outcome: "failed", Reason: "it came back"}},
		{"/attempt kill -9 4711 failed", Invocation{Action: "kill -9 4711", Outcome: "failed"}},
		{"/attempt pkill", Invocation{Action: "pkill"}},
		{"/resolved capability_refresh tools are back", Invocation{Action: "capability_refresh", Outcome: "succeeded", Reason: "tools are back"}},
		{"/assess full_mcp_restart target=x", Invocation{Action: "full_mcp_restart", Target: "x"}},
		{"/break-glass full_mcp_restart target=x payments down", Invocation{Action: "full_mcp_restart", Target: "x", Reason: "payments down"}},
		{"/recommend", Invocation{}},
		{"/recommend transport_eof stale_lease", Invocation{Symptoms: []string{"transport_eof", "stale_lease"}}},
		{"/recommend transport_eof, stale_lease.", Invocation{Symptoms: []string{"transport_eof", "stale_lease"}}},
		{"/recommend session not found", Invocation{Symptoms: []string{"session not found"}}},
		{`/recommend "session not found" transport_eof`, Invocation{Symptoms: []string{"session not found", "transport_eof"}}},
		{"/endorse 41/1", Invocation{Request: "41/1"}},
		{"/endorse #041/01. read it", Invocation{Request: "41/1", Reason: "read it"}},
		{"/withdraw it works again", Invocation{Reason: "it works again"}},
		{"/playbook", Invocation{Topic: "help"}},
		{"/playbook LADDER.", Invocation{Topic: "ladder"}},
		{"/playbook clear contamination checked", Invocation{Topic: "clear-contamination", Reason: "checked"}},
		{"/playbook clear_contamination checked", Invocation{Topic: "clear-contamination", Reason: "checked"}},
	} {
		got := parse(t, c.line)
		if got.Problem != nil {
			t.Errorf("%q: problem %+v", c.line, *got.Problem)
		}
		if got.Action != c.want.Action || got.Outcome != c.want.Outcome || got.Target != c.want.Target ||
			!slices.Equal(got.Symptoms, c.want.Symptoms) || got.Reason != c.want.Reason ||
			got.Request != c.want.Request || got.Topic != c.want.Topic {
			t.Errorf("%q:\n got %+v\nwant %+v", c.line, got, c.want)
		}
		if got.Line != 7 || got.Symptoms == nil {
			t.Errorf("%q: line %d, symptoms %#v", c.line, got.Line, got.Symptoms)
		}
	}
}

// Every problem has a cure, and the cure has no problem.
func TestProblems(t *testing.T) {
	for _, c := range []struct{ line, cure, why string }{
		{"/restart", "/recommend", "names no action"},
		{"/restart target=x full_mcp_restart now", "/restart full_mcp_restart target=x now", "after what the command is about"},
		{"/restart full_mcp_restart target=a target=b", "/restart full_mcp_restart target=a", "twice"},
		{"/restart full_mcp_restart target= now", "/restart full_mcp_restart", "followed by nothing"},
		{"/assess", "/assess host_restart", "names no action"},
		{"/attempt", "/attempt client_reconnect insufficient", "names no action"},
		{"/attempt client_reconnect", "/attempt client_reconnect insufficient", "no outcome is given"},
		{"/attempt client_reconnect target=x", "/attempt client_reconnect insufficient target=x", "no outcome is given"},
		{"/attempt client_reconnect didnt_work still 404", "/attempt client_reconnect failed didnt_work still 404", "`didnt_work` is no outcome"},
		{"/attempt client_reconect failed x", "/attempt client_reconnect failed x", "`client_reconect` is no action"},
		{"/attempt \u0441lient_reconnect failed x", "/attempt client_reconnect failed x", "U+0441"},
		{"/attempt frobnicate failed", "/playbook ladder", "`frobnicate` is no action"},
		{"/resolved", "/resolved client_reconnect", "which action"},
		{"/resolved capability_refesh ok", "/resolved capability_refresh ok", "is no action"},
		{"/break-glass full_mcp_restart", "/break-glass full_mcp_restart " + UrgentReason, "needs a reason"},
		{"/break-glass full_mcp_restart target=\"a b\"", "/break-glass full_mcp_restart target=\"a b\" " + UrgentReason, "needs a reason"},
		{"/break-glass", "/break-glass host_restart " + UrgentReason, "no action and no reason"},
		{"/endorse", "", "id of one request"},
		{"/endorse request (41/2), please", "/endorse 41/2", "id of one request"},
		{"/endorse 41", "", "id of one request"},
		{"/endorse 0/1", "", "id of one request"},
		{"/playbook laddr", "/playbook help", "`laddr` is no topic"},
		{"/playbook clear-contamination", "/playbook clear-contamination host checked, no stray process left", "needs a reason"},
		{"/restart full_mcp_restart symptom=" + strings.Repeat("a,", 40), "/restart full_mcp_restart symptom=a", "more than 32"},
		{"/attempt x`y failed", "/playbook ladder", "is no action"},
	} {
		got := parse(t, c.line)
		if got.Problem == nil {
			t.Errorf("%q: no problem: %+v", c.line, got)
			continue
		}
		if got.Problem.Suggestion != c.cure || !strings.Contains(got.Problem.Why, c.why) {
			t.Errorf("%q:\n got %+v\nwant %q, cure %q", c.line, *got.Problem, c.why, c.cure)
		}
		if c.cure == "" {
			continue
		}
		if cured := parse(t, got.Problem.Suggestion); cured.Problem != nil {
			t.Errorf("%q: the cure %q has a problem: %+v", c.line, got.Problem.Suggestion, *cured.Problem)
		}
	}
}

func TestStartsLive(t *testing.T) {
	for line, want := range map[string]bool{
		"/restart x":                    true,
		"   - 1. /restart x":            true,
		"* /withdraw":                   true,
		"@playbook-bot whatever":        true,
		"\u200b/withdraw":               true,
		"`/restart x`":                  false,
		"> /restart x":                  false,
		"**/restart x**":                false,
		"use /restart x":                false,
		"- - -":                         false,
		"/restart-all":                  false,
		"":                              false,
		"12345678901. /withdraw":        false, // no list marker has that many digits
		"1.2 /withdraw":                 false,
		"| /restart full_mcp_restart |": false,
	} {
		if got := StartsLive(line, "playbook-bot"); got != want {
			t.Errorf("%q: %v, want %v", line, got, want)
		}
	}
}

func TestMarkdownTable(t *testing.T) {
	got := MarkdownTable()
	lines := strings.Split(strings.TrimSpace(got), "\n")
	if len(lines) != len(Table)+2 {
		t.Fatalf("%d lines for %d commands", len(lines), len(Table))
	}
	for _, l := range lines {
		if n := strings.Count(strings.ReplaceAll(l, `\|`, ""), "|"); n != 5 {
			t.Errorf("%d pipes in %q", n, l)
		}
	}
	if !strings.Contains(got, "`/break-glass ACTION [target=NAME] reason…`") {
		t.Error("no synopsis in the table")
	}
}

// An invocation written as a line reads back as the same.
func TestCommandLineReadsBack(t *testing.T) {
	for _, inv := range []Invocation{
		{Name: "restart", Action: "full_mcp_restart", Target: "a b", Symptoms: []string{"session not found", "x"}, Reason: "why not"},
		{Name: "attempt", Action: "client_reconnect", Outcome: "failed", Reason: "it"},
		{Name: "recommend", Symptoms: []string{"transport_eof", "session not found"}},
		{Name: "break-glass", Action: "host_restart", Reason: "payments down"},
	} {
		got := parse(t, inv.CommandLine())
		if got.Action != inv.Action || got.Outcome != inv.Outcome || got.Target != inv.Target ||
			!slices.Equal(got.Symptoms, inv.Symptoms) && len(inv.Symptoms) > 0 || got.Reason != inv.Reason {
			t.Errorf("%q reads back as %+v", inv.CommandLine(), got)
		}
	}
}

func FuzzParseLine(f *testing.F) {
	for _, s := range Table {
		for _, e := range s.Examples {
			f.Add(e)
		}
	}
	for _, s := range []string{
		"/restart target=\"", "/attempt “", "/recommend \"a\" , b,,", "@playbook-bot /endorse #1/1",
		"/restart full_mcp_restart symptom=a, target=“b” c", "/attempt kill -9 1 failed", "/\u200brestart \u00a0x\xff",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, line string) {
		inv, match := ParseLine(line, 1, "playbook-bot", pb)
		if match == NotOurs {
			return
		}
		if !StartsLive(line, "playbook-bot") {
			t.Fatalf("%q matches and does not start live", line)
		}
		if match != Ours {
			return
		}
		if _, ok := Lookup(inv.Name); !ok || inv.Symptoms == nil || len(inv.Symptoms) > MaxSymptoms {
			t.Fatalf("%q: %+v", line, inv)
		}
		if p := inv.Problem; p != nil {
			if p.Why == "" || strings.Contains(p.Suggestion, "\n") || !utf8.ValidString(p.Suggestion) && utf8.ValidString(line) {
				t.Fatalf("%q: problem %+v", line, *p)
			}
			if p.Suggestion != "" {
				cured, match := ParseLine(p.Suggestion, 1, "", pb)
				if match != Ours || cured.Problem != nil {
					t.Fatalf("%q: the cure %q has a problem: %+v", line, p.Suggestion, cured.Problem)
				}
			}
		}
	})
}

// Reading a line takes time in proportion to its length: ten times the line
// must not take a hundred times the memory.
func TestLongLines(t *testing.T) {
	for _, unit := range []string{"a ", `"x `, "“x ", "target=a ", "symptom=a ", ", ", "a,", "\u200b", "- ", "kill ", "41/1 ", "=", "'"} {
		for _, head := range []string{"/restart full_mcp_restart ", "/recommend ", "/attempt ", "/endorse ", "/playbook ", "- "} {
			small, large := head+strings.Repeat(unit, 400), head+strings.Repeat(unit, 4000)
			a, b := allocated(small), allocated(large)
			if b > 40*a+1<<20 {
				t.Errorf("%q and %q over and over: %d bytes, ten times as long: %d", head, unit, a, b)
			}
		}
	}
}

func allocated(line string) int64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	ParseLine(line, 1, "playbook-bot", pb)
	StartsLive(line, "playbook-bot")
	runtime.ReadMemStats(&after)
	return int64(after.TotalAlloc - before.TotalAlloc)
}
