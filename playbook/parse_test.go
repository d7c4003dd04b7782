package playbook

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

func parse(text, lang string) ParsedAttempts {
	return Default().ParseAttempts(text, lang, Context{Author: "ada", At: noon})
}

// summary shows a reading in one line each.
func summary(r ParsedAttempts) string {
	var b strings.Builder
	for _, a := range r.Attempts {
		fmt.Fprintf(&b, "%d %s %s %q", a.Line, a.Action, a.Outcome, a.Reason)
		if a.Actor != "ada" {
			fmt.Fprintf(&b, " by %s", a.Actor)
		}
		if a.Target != "" {
			fmt.Fprintf(&b, " on %s", a.Target)
		}
		if !a.RecordedAt.Equal(noon) {
			fmt.Fprintf(&b, " at %s", a.RecordedAt.Format(time.RFC3339))
		}
		b.WriteByte('\n')
	}
	for _, j := range r.Rejections {
		fmt.Fprintf(&b, "! %d %s => %s\n", j.Line, j.Why, j.Suggestion)
	}
	for _, n := range r.Notes {
		fmt.Fprintf(&b, "# %s\n", n)
	}
	return b.String()
}

func TestParseAttemptsReads(t *testing.T) {
	tests := []struct{ name, lang, text, want string }{
		{"one JSON record", "json", `{"action":"client_reconnect","outcome":"insufficient","reason":"transport still closed","actor":"bob","recorded_at":"2026-07-25T21:00:00+00:00"}`,
			"1 client_reconnect insufficient \"transport still closed\" by bob at 2026-07-25T21:00:00Z\n"},
		{"a list with comments and trailing commas", "json", "// tried\n[\n  {\"action\": \"client_reconnect\", /* so */ \"outcome\": \"failed\",},\n  {\"action\": \"session_reconnect\",\n   \"outcome\": \"error\"},\n]",
			"3 client_reconnect failed \"\"\n4 session_reconnect error \"\"\n"},
		{"container", "", `{"prior_recovery_attempts": [{"action":"client_reconnect","outcome":"failed"}], "restart_class": "full_mcp_restart"}`,
			"1 client_reconnect failed \"\"\n"},
		{"attempts as container", "yaml", "attempts:\n- {action: client_reconnect, outcome: failed}\n", "2 client_reconnect failed \"\"\n"},
		{"container with one object", "json", `{"attempts": {"action":"client_reconnect","outcome":"failed"}}`, "1 client_reconnect failed \"\"\n"},
		{"list in a string", "json", `{"prior_recovery_attempts": "[{\"action\":\"client_reconnect\",\"outcome\":\"failed\"}]"}`, "1 client_reconnect failed \"\"\n"},
		{"words that YAML calls booleans", "yaml", "prior_recovery_attempts:\n  - action: connector_restart\n    outcome: insufficient\n    reason: no\n    recorded_at: 2026-05-02T07:10:00+05:30\n",
			"2 connector_restart insufficient \"no\" at 2026-05-02T01:40:00Z\n"},
		{"numbers stay as written", "yaml", "action: client_reconnect\noutcome: failed\nreason: 0x1F\ntarget: 007\n", "1 client_reconnect failed \"0x1F\" on 007\n"},
		{"null is absent", "json", `{"action":"client_reconnect","outcome":"failed","reason":null,"actor":null}`, "1 client_reconnect failed \"\"\n"},
		{"synonyms", "yaml", "- what: Client Reconnect\n  when: 2026-06-11T12:02:00Z\n  result: insufficient\n  who: bob\n  notes: same\n",
			"1 client_reconnect insufficient \"same\" by bob at 2026-06-11T12:02:00Z\n"},
		{"flow YAML", "", "{action: client_reconnect, outcome: failed}", "1 client_reconnect failed \"\"\n"},
		{"several documents", "yaml", "action: client_reconnect\noutcome: failed\n---\naction: session_reconnect\noutcome: failed\n",
			"1 client_reconnect failed \"\"\n4 session_reconnect failed \"\"\n"},
		{"CRLF", "yaml", "action: client_reconnect\r\noutcome: failed\r\n", "1 client_reconnect failed \"\"\n"},
		{"unknown keys", "yaml", "action: client_reconnect\noutcome: failed\nseverity: high\nrecorded_by: eve\n",
			"1 client_reconnect failed \"\"\n# line 1: `severity` is no key of an attempt, and was ignored\n"},
		{"surrogates and escapes", "json", `{"action":"client_reconnect","outcome":"failed","reason":"\ud83d\ude00 \/ \"x\" \u00e9"}`, "1 client_reconnect failed \"😀 / \\\"x\\\" é\"\n"},
		{"kill", "yaml", "action: pkill -f mcp\noutcome: it came back\n", "1 pkill -f mcp  \"\"\n# line 1: `pkill -f mcp` records a manual process kill: it does not count, and it contaminates\n"},
		{"empty list", "json", "[ ]", ""},
		{"empty block that says attempts", "attempts", "\n", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := parse(tt.text, tt.lang)
			if got := summary(r); got != tt.want || !r.About {
				t.Errorf("about %v\n%swant\n%s", r.About, got, tt.want)
			}
		})
	}
}

func TestParseAttemptsRejects(t *testing.T) {
	tests := []struct{ name, lang, text, want string }{
		{"boolean outcome stays text", "yaml", "action: client_reconnect\noutcome: no\n", "! 2 `no` is no outcome; did you mean `failed`? => /attempt client_reconnect failed\n"},
		{"each fault on its line", "json", "[{\"action\":\"client_reconnect\",\n\"outcome\":\"didnt_work\",\n\"recorded_at\":\"2026-06-11T14:05\"}]",
			"! 2 `didnt_work` is no outcome; did you mean `failed`? => /attempt client_reconnect failed\n" +
				"! 3 `2026-06-11T14:05` names no offset (whose clock?); write it like `2026-06-11T14:05:00+02:00` => /attempt client_reconnect failed\n"},
		{"repeated key", "json", "{\"action\":\"client_reconnect\",\n\"outcome\":\"failed\",\n\"outcome\":\"succeeded\"}",
			"! 3 `outcome` repeats a key of line 2 => /attempt client_reconnect failed\n"},
		{"repeated key in YAML", "yaml", "- action: client_reconnect\n  outcome: failed\n  action: session_reconnect\n",
			"! 3 `action` repeats a key of line 1 => /attempt client_reconnect failed\n"},
		{"synonym beside the key", "yaml", "action: client_reconnect\noutcome: failed\nresult: ok\n",
			"! 3 `result` repeats a key of line 2 => /attempt client_reconnect failed\n"},
		{"repeated container", "json", "{\"attempts\":[{\"action\":\"client_reconnect\",\"outcome\":\"failed\"}],\n\"attempts\":[]}",
			"! 2 the attempts stand twice in one object => \n"},
		{"JSON without a comma", "json", "{\"action\": \"client_reconnect\",\n \"outcome\": \"failed\"\n \"reason\": \"x\"}",
			"! 3 the attempts do not parse (column 2): a comma or \"}\" is missing => /attempt client_reconnect failed x\n"},
		{"open quote", "json", "{\"action\": \"client_reconnect,\n \"outcome\": \"failed\"}",
			"! 1 the attempts do not parse (column 12): a double quote is not closed on its line => /attempt client_reconnect failed\n"},
		{"YAML indent", "yaml", "- action: client_reconnect\n  outcome: failed\n- action: session_reconnect\n   outcome: failed\n",
			"! 4 the attempts do not parse: mapping values are not allowed in this context => /attempt client_reconnect failed\n"},
		{"YAML colon in a value", "yaml", "action: client_reconnect\noutcome: failed\nreason: error: closed\n",
			"! 3 the attempts do not parse: mapping values are not allowed in this context => /attempt client_reconnect failed error: closed\n"},
		{"anchors", "yaml", "- &a\n  action: client_reconnect\n  outcome: failed\n- *a\n",
			"! 1 the attempts do not parse: anchors and aliases are not read; write the value out => /attempt client_reconnect failed\n"},
		{"good beside bad", "yaml", "- action: client_reconnect\n  outcome: failed\n- action: xyzzy\n  outcome: failed\n- just words\n",
			"1 client_reconnect failed \"\"\n! 3 `xyzzy` is no action of the ladder => /playbook ladder\n" +
				"! 5 this entry is no attempt: one with the keys action and outcome is wanted => /playbook ladder\n"},
		{"nested value", "yaml", "action: client_reconnect\noutcome: [failed]\n", "! 2 `outcome` must be text => /playbook help\n"},
		{"words in a block that says attempts", "attempts", "client_reconnect insufficient still 404",
			"! 1 no attempt is written here: JSON or YAML with the keys action and outcome is wanted => /attempt client_reconnect insufficient still 404\n"},
		{"broken block that says attempts", "attempts", "{", "! 1 the attempts do not parse (column 2): ends before its \"}\" => /playbook ladder\n"},
		{"container that is no list", "json", `{"prior_recovery_attempts": 3}`, "! 1 the attempts must be a list => /playbook ladder\n"},
		{"outcome missing", "yaml", "action: client_reconnect\nreason: x\n",
			"! 1 no outcome is given; one of failed, insufficient, denied, unresolved, timeout, error, succeeded, skipped, in_progress, partial is wanted => /playbook help\n"},
		{"deep", "json", `{"prior_recovery_attempts": ` + strings.Repeat("[", 40) + strings.Repeat("]", 40) + "}",
			"! 1 the attempts do not parse (column 61): nested deeper than 32 => /playbook ladder\n"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := parse(tt.text, tt.lang)
			if got := summary(r); got != tt.want || !r.About {
				t.Errorf("about %v\n%swant\n%s", r.About, got, tt.want)
			}
		})
	}
}

func TestParseAttemptsLeavesOthersAlone(t *testing.T) {
	for _, text := range []string{"", "plain words", "attempts: 3\ntimeout: 5s\n", `{"status":"ok","what":"deploy","at":"2026-01-01T00:00:00Z"}`, "action: opened\nnumber: 3\n",
		"- action: click\n  selector: '#go'\n", `{"attempts": [1, 2, 3]}`, "result: failed\n", "{broken: [json", "name: CI\non: push\njobs:\n  a:\n    steps: []\n",
		"what: is this\nstatus: no idea\n  bad: indent\n", "2026-01-01 action: restarting: all\n", `{"level":"error","what":"x","result":"y"`, "a: &a [x]\nb: *a\n"} {
		for _, lang := range []string{"", "yaml", "json"} {
			if r := parse(text, lang); r.About || len(r.Attempts)+len(r.Rejections)+len(r.Notes) > 0 {
				t.Errorf("%s %q: about %v\n%s", lang, text, r.About, summary(r))
			}
		}
	}
}

func TestReadAttemptsOfAFile(t *testing.T) {
	read := func(text string) ParsedAttempts { return Default().ReadAttempts(text, Context{At: noon}) }
	for _, text := range []string{"", " \n", "[]", `{"prior_recovery_attempts": []}`, `{"restart_class":"full_mcp_restart","sessions":[]}`} {
		if r := read(text); !r.About || len(r.Attempts)+len(r.Rejections) > 0 {
			t.Errorf("%q: %+v", text, r)
		}
	}
	if r := read(`{"action":"client_reconnect","outcome":"failed"}` + "\n" + `{"action":"session_reconnect","outcome":"failed"}`); len(r.Attempts) != 2 || r.Attempts[1].Line != 2 {
		t.Errorf("JSON lines: %+v", r)
	}
	for _, text := range []string{"just words", `{"name": 3}`, "{"} {
		if r := read(text); len(r.Rejections) == 0 {
			t.Errorf("%q: %+v", text, r)
		}
	}
}

func TestTheSameAttemptInEveryForm(t *testing.T) {
	// The row of a table and the command have been taken apart by their readers.
	row, _, _ := Default().BuildAttemptRecord(RawAttempt{Action: "Client Reconnect", Outcome: "INSUFFICIENT", Actor: "Ada", RecordedAt: "2026-12-01T13:00:20+01:00"}, Context{Author: "ada", At: noon})
	command, _, _ := Default().BuildAttemptRecord(RawAttempt{Action: "client_reconnect", Outcome: "insufficient", Reason: "still 404"}, Context{Author: "ada", At: noon})
	all := []Attempt{row, command}
	for _, text := range []string{`{"action":"client-reconnect","outcome":"insufficient","time":"2026-12-01 12:00:59Z"}`, "what: client_reconnect\nresult: insufficient\n"} {
		for _, a := range parse(text, "").Attempts {
			all = append(all, a.Attempt)
		}
	}
	if len(all) != 4 || len(Dedupe(all)) != 1 {
		t.Errorf("%d records, %d without repeats: %+v", len(all), len(Dedupe(all)), Dedupe(all))
	}
}

func TestYAMLLineIsTrue(t *testing.T) {
	lines := []string{"prior_recovery_attempts:"}
	for range 30 {
		lines = append(lines, "  - action: client_reconnect", "    outcome: failed", "    reason: >", "      several", "      lines", "    target: [", "      a", "    ]")
	}
	for bad := 2; bad < len(lines); bad++ {
		if !strings.Contains(lines[bad], "outcome") && !strings.Contains(lines[bad], "action") {
			continue
		}
		text := slices.Clone(lines)
		text[bad] = "   }" + text[bad]
		r := parse(strings.Join(text, "\n"), "yaml")
		if len(r.Rejections) != 1 || r.Rejections[0].Line != bad+1 {
			t.Fatalf("broken on line %d, said %+v", bad+1, r.Rejections)
		}
	}
}
