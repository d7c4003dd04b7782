package comment

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
)

// brief writes records and rejections one a line, for comparing.
func brief(r Read) string {
	var b strings.Builder
	for _, a := range r.Records {
		fmt.Fprintf(&b, "%d %s %s %s %q by %s at %s", a.Line, a.Source, a.Action, a.Outcome, a.Reason, a.Actor, a.RecordedAt.Format("2006-01-02T15:04:05Z07:00"))
		if a.Target != "" {
			fmt.Fprintf(&b, " on %s", a.Target)
		}
		if a.Kill {
			b.WriteString(" kill")
		}
		b.WriteByte('\n')
	}
	for _, x := range r.Rejections {
		fmt.Fprintf(&b, "%d %s rejected: %s\n", x.Line, x.Source, x.Suggestion)
	}
	return b.String()
}

func TestRecords(t *testing.T) {
	const asPosted = "at 2026-12-01T03:04:11Z"
	for _, c := range []struct{ name, body, want string }{
		{"/attempt", "/attempt client_reconnect insufficient target=mcp-search still closed",
			`1 command client_reconnect insufficient "still closed" by ada ` + asPosted + " on mcp-search\n"},
		{"/resolved", "x\n/resolved session_reconnect works", `2 command session_reconnect succeeded "works" by ada ` + asPosted + "\n"},
		{"a kill is a record", "/attempt pkill failed", `1 command pkill failed "" by ada ` + asPosted + " kill\n"},
		{"JSON with comments and trailing commas", "```json\n// log\n{\n \"action\": \"client_reconnect\", \"outcome\": \"failed\",\n}\n```",
			`3 fence client_reconnect failed "" by ada ` + asPosted + "\n"},
		{"YAML", "x\n\n~~~yml\n- action: client_reconnect\n  outcome: failed\n- action: worker_restart\n  outcome: timeout\n~~~",
			`4 fence client_reconnect failed "" by ada ` + asPosted + "\n6 fence worker_restart timeout \"\" by ada " + asPosted + "\n"},
		{"no info string, in a list", "- tried:\n  ```\n  action: client_reconnect\n  outcome: failed\n  ```",
			`3 fence client_reconnect failed "" by ada ` + asPosted + "\n"},
		{"CRLF keeps lines", "a\r\n```yaml\r\naction: client_reconnect\r\noutcome: failed\r\n```\r\n",
			`3 fence client_reconnect failed "" by ada ` + asPosted + "\n"},
		{"requests.md 3", "```yaml\nprior_recovery_attempts:\n  - action: connector_restart\n    outcome: insufficient\n    reason: no\n    recorded_at: 2026-05-02T07:10:00+05:30\n```",
			`3 fence connector_restart insufficient "no" by ada at 2026-05-02T01:40:00Z` + "\n"},
		{"a fence in another language", "```python\naction: client_reconnect\noutcome: failed\n```", ""},
		{"a fence about something else", "```\nfoo: bar\n```\n```json\n{\"a\": 1}\n```", ""},
		{"a fence in a quote is another's", "> ```\n> action: client_reconnect\n> outcome: failed\n> ```", ""},
		{"a fence in an HTML comment", "<!--\n```\naction: client_reconnect\noutcome: failed\n```\n-->", ""},
		{"… one that is not closed", "<!-- x\n\n```\naction: client_reconnect\noutcome: failed\n```\n", ""},
		{"a fence with a line that is wrong", "x\n```yaml\n- action: client_reconnect\n  outcome: planned\n```",
			"4 fence rejected: /attempt client_reconnect skipped\n"},
		{"requests.md 4", "| what | when | result | who |\n|---|---|---|---|\n| Client Reconnect | 2026-06-11T12:02:00Z | insufficient | bob |\n" +
			"| session reconnect | 14:05 CEST | worked 5 min then same | bob |\n| worker_restart | - | planned | bob |",
			`3 table client_reconnect insufficient "" by bob at 2026-06-11T12:02:00Z` + "\n" +
				"4 table rejected: /attempt session_reconnect insufficient worked 5 min then same\n" +
				"4 table rejected: /attempt session_reconnect insufficient worked 5 min then same\n" +
				"5 table rejected: /attempt worker_restart skipped\n"},
		{"a table with text above it, odd pipes and dress", "tried:\nRESULT|`what`|why|target\n:-|-:|:-:|-\n**failed**|`client_reconnect`|a \\| b|A\nerror | worker restart",
			`4 table client_reconnect failed "a | b" by ada ` + asPosted + " on A\n" + `5 table worker_restart error "" by ada ` + asPosted + "\n"},
		{"empty cells and empty rows", "| action | outcome | at | who |\n|---|---|---|---|\n| client_reconnect | failed | – |  |\n| | | | |\n| - | - | - | - |",
			`3 table client_reconnect failed "" by ada ` + asPosted + "\n"},
		{"a table above a rule is a table", "| action | outcome |\n|---|---|\n| client_reconnect | failed |\n---",
			`3 table client_reconnect failed "" by ada ` + asPosted + "\n"},
		{"a table in a list", "- | action | outcome |\n  |---|---|\n  | client_reconnect | failed |", `3 table client_reconnect failed "" by ada ` + asPosted + "\n"},
		{"a table in a quote is another's", "> | action | outcome |\n> |---|---|\n> | client_reconnect | failed |", ""},
		{"a table about something else", "| action | owner |\n|---|---|\n| client_reconnect | bob |", ""},
		{"no delimiter, no table", "| action | outcome |\n| client_reconnect | failed |", ""},
		{"a delimiter of another width", "| action | outcome |\n|---|\n| client_reconnect | failed |", ""},
		{"a table with a field twice", "x\n| what | result | outcome |\n|---|---|---|\n| client_reconnect | failed | failed |",
			"2 table rejected: /attempt client_reconnect insufficient\n"},
		{"32 columns", wideTable(32), `3 table client_reconnect failed "" by ada ` + asPosted + "\n"},
		{"33 columns", wideTable(33), "1 table rejected: /attempt client_reconnect insufficient\n"},
		{"in the order of the lines", "```\naction: worker_restart\noutcome: failed\n```\n/attempt client_reconnect failed\n\n| action | outcome |\n|-|-|\n| lease_recovery | error |\n\n/attempt session_reconnect failed",
			`2 fence worker_restart failed "" by ada ` + asPosted + "\n5 command client_reconnect failed \"\" by ada " + asPosted +
				"\n9 table lease_recovery error \"\" by ada " + asPosted + "\n11 command session_reconnect failed \"\" by ada " + asPosted + "\n"},
	} {
		if got := brief(Parse(c.body, options())); got != c.want {
			t.Errorf("%s:\n got %s\nwant %s", c.name, got, c.want)
		}
	}
}

func wideTable(n int) string {
	return "| action | outcome |" + strings.Repeat(" x |", n-2) + "\n|" + strings.Repeat("-|", n) + "\n| client_reconnect | failed |"
}

// A row that reads like a command is hinted at and is no record.
func TestCommandInARecordTable(t *testing.T) {
	r := Parse("| action | outcome |\n|---|---|\n| client_reconnect | failed |\n/attempt worker_restart failed", options())
	if len(r.Records) != 1 || len(r.Hints) != 1 || len(r.Rejections) != 1 || r.Hints[0].Suggestion != "/attempt worker_restart failed" {
		t.Errorf("%+v", r)
	}
}

func TestNotes(t *testing.T) {
	r := Parse("/attempt client_reconnect failed "+strings.Repeat("é", 2001), options())
	if len(r.Records) != 1 || !r.Records[0].Cut || len(r.Notes) != 1 {
		t.Errorf("cut %v, notes %q", r.Records[0].Cut, r.Notes)
	}
}

// requests.md 2, as `explain --json` shows it.
func TestExplain(t *testing.T) {
	body := "/restart session_reconnect target=search\n/attempt client_reconnect insufficient still 404\n/restart rolling_mcp_restart target=search if that fails"
	got, err := json.Marshal(Parse(body, options()))
	if err != nil {
		t.Fatal(err)
	}
	want := `{"commands":[` +
		`{"name":"restart","line":1,"action":"session_reconnect","outcome":"","target":"search","symptoms":[],"reason":""},` +
		`{"name":"attempt","line":2,"action":"client_reconnect","outcome":"insufficient","target":"","symptoms":[],"reason":"still 404"},` +
		`{"name":"restart","line":3,"action":"rolling_mcp_restart","outcome":"","target":"search","symptoms":[],"reason":"if that fails"}],` +
		`"records":[{"action":"client_reconnect","outcome":"insufficient","reason":"still 404","actor":"ada","recorded_at":"2026-12-01T03:04:11Z","target":"","line":2,"source":"command"}],` +
		`"rejections":[],"form":null}`
	if string(got) != want {
		t.Errorf("\n got %s\nwant %s", got, want)
	}
	got, err = json.Marshal(Parse("@playbook-bot hm", options()))
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(string(got), `{"commands":[],"records":[],"rejections":[{"line":1,"source":"command","why":"`) {
		t.Errorf("%s", got)
	}
}

func TestExplainWithoutATime(t *testing.T) {
	o := options()
	o.Context = Options{}.Context
	got, _ := json.Marshal(Parse("/attempt client_reconnect failed", o))
	if !strings.Contains(string(got), `"recorded_at":null`) || !strings.Contains(string(got), `"actor":""`) {
		t.Errorf("%s", got)
	}
}

const form1 = `### Requested class

full_mcp_restart

### Target

mcp-search

### Symptoms

stale_capability

### Prior recovery attempts

_No response_

### Break-glass

- [x] I tried narrower actions first
`

func parseForm(body string) Read {
	o := options()
	o.Issue = true
	return Parse(body, o)
}

func TestForm(t *testing.T) {
	r := parseForm(form1) // requests.md 1
	got, _ := json.Marshal(r)
	want := `{"commands":[],"records":[],"rejections":[],"form":{"action":"full_mcp_restart","target":"mcp-search","symptoms":["stale_capability"],"reason":"","break_glass":false,"line":1}}`
	if string(got) != want {
		t.Errorf("\n got %s\nwant %s", got, want)
	}
	if Parse(form1, options()).Form != nil {
		t.Error("a comment is read as a form")
	}
}

func TestRecordedForm(t *testing.T) {
	b, err := os.ReadFile("testdata/issues-opened-form.json")
	if err != nil {
		t.Fatal(err)
	}
	var d struct{ Issue struct{ Body string } }
	if err := json.Unmarshal(b, &d); err != nil {
		t.Fatal(err)
	}
	r := parseForm(d.Issue.Body)
	if f := r.Form; f == nil || f.Action != "full_mcp_restart" || f.Target != "prgs-connector" || strings.Join(f.Symptoms, " ") != "transport_eof daemon_corrupt" ||
		f.BreakGlass || f.Problem != nil || len(r.Rejections) != 0 {
		t.Errorf("%+v %+v", r.Form, r.Rejections)
	}
	if len(r.Records) != 1 || r.Records[0].Source != SourceForm || r.Records[0].Actor != "bob" || r.Records[0].Line != 17 {
		t.Errorf("%+v", r.Records)
	}
}

func TestFormFields(t *testing.T) {
	for _, c := range []struct{ name, body, want string }{
		{"no class label, no form", "### Target\n\nx\n", "none"},
		{"label in a fence", "```\n### Requested class\n\nhost_restart\n```", "none"},
		{"label in an HTML comment", "<!-- x\n\n### Requested class\n\nhost_restart\n", "none"},
		{"label in a quote", "> ### Requested class\n>\n> host_restart", "none"},
		{"another level", "## Requested class\n\nhost_restart", "none"},
		{"another case", "### requested class\n\nhost_restart", "none"},
		{"spelling, dress, CRLF", "### Requested class\r\n\r\n`Full MCP restart`\r\n\r\n### Target\r\n\r\n_No response_\r\n", `full_mcp_restart "" [] "" false`},
		{"an unknown class is for the gate", "### Requested class\n\nreboot_all", `reboot_all "" [] "" false`},
		{"symptoms by comma, line and bullet", "### Requested class\n\nhost_restart\n\n### Symptoms\n\na, b\nc,\n\n- session not found\n", `host_restart "" [a b c session not found] "" false`},
		{"the box", "### Requested class\n\nhost_restart\n\n### What happened\n\nit broke\n\n### Break-glass\n\n- [ ] other\n- [X] I request break-glass\n", `host_restart "" [] "it broke" true`},
		{"the box without a reason", "### Requested class\n\nhost_restart\n\n### What happened\n\n_No response_\n\n### Break-glass\n\n- [x] I request break-glass\n",
			"host_restart \"\" [] \"\" true problem: break-glass needs a reason, and `What happened` is empty; it is kept and shown to those who are told; /break-glass host_restart this cannot wait for a narrower attempt"},
		{"the box, not ticked", "### Requested class\n\nhost_restart\n\n### Break-glass\n\n- [ ] I request break-glass\n", `host_restart "" [] "" false`},
		{"the box elsewhere", "### Requested class\n\nhost_restart\n\n### What happened\n\n- [x] I request break-glass\n", `host_restart "" [] "- [x] I request break-glass" false`},
		{"the box in a fence", "### Requested class\n\nhost_restart\n\n### Break-glass\n\n```\n- [x] I request break-glass\n```\n", `host_restart "" [] "" false`},
		{"the box in a quote", "### Requested class\n\nhost_restart\n\n### Break-glass\n\n> - [x] I request break-glass\n", `host_restart "" [] "" false`},
		{"no list, no box", "### Requested class\n\nhost_restart\n\n### Break-glass\n\n[x] I request break-glass\n", `host_restart "" [] "" false`},
		{"what happened is kept as written", "### Requested class\n\nhost_restart\n\n### What happened\n\n### it broke\n\n```\n### Target\n```\nall\n\n### Target\n\nx\n", "host_restart \"x\" [] \"### it broke\\n\\n```\\n### Target\\n```\\nall\" false"},
		{"no class", "### Requested class\n\n_No response_\n\n### Target\n\nx", `"x" [] "" false problem: the form names no class; /recommend`},
		{"a repeated label", "### Requested class\n\nhost_restart\n\n### Target\n\nx\n\n### Target\n\ny\n", "host_restart \"x\" [] \"\" false problem: the form's label `Target` stands there twice; it must stay one form; /restart host_restart target=x"},
		{"a repeated class", form1 + "\n### Requested class\n\nclient_reconnect\n", "full_mcp_restart \"mcp-search\" [stale_capability] \"\" false problem: the form's label `Requested class` stands there twice; it must stay one form; /restart full_mcp_restart target=mcp-search"},
	} {
		r := parseForm(c.body)
		got := "none"
		if f := r.Form; f != nil {
			got = strings.TrimSpace(fmt.Sprintf("%s %q %v %q %v", f.Action, f.Target, f.Symptoms, f.Reason, f.BreakGlass))
			if f.Problem != nil {
				got += " problem: " + f.Problem.Why + "; " + f.Problem.Suggestion
				if len(r.Rejections) != 1 || r.Rejections[0].Source != SourceForm || r.Rejections[0].Problem != *f.Problem {
					t.Errorf("%s: rejections %+v", c.name, r.Rejections)
				}
			}
		}
		if got != c.want {
			t.Errorf("%s:\n got %s\nwant %s", c.name, got, c.want)
		}
	}
}

func TestFormAttempts(t *testing.T) {
	const head = "### Requested class\n\nfull_mcp_restart\n\n### Prior recovery attempts\n\n"
	const asPosted = " by ada at 2026-12-01T03:04:11Z\n"
	for _, c := range []struct{ name, section, want string }{
		{"nothing", "_No response_", ""},
		{"nothing in words", "None yet.", ""},
		{"a fence", "```json\n{\"action\":\"client_reconnect\",\"outcome\":\"failed\"}\n```", `8 form client_reconnect failed ""` + asPosted},
		{"JSON without a fence", "[{\"action\":\"client_reconnect\",\n\"outcome\":\"failed\"}]", `7 form client_reconnect failed ""` + asPosted},
		{"YAML without a fence", "- action: client_reconnect\n  outcome: failed\n- action: worker_restart\n  outcome: error",
			`7 form client_reconnect failed ""` + asPosted + `9 form worker_restart error ""` + asPosted},
		{"a table", "| what | result |\n|---|---|\n| client reconnect | failed |", `9 form client_reconnect failed ""` + asPosted},
		{"lines", "client_reconnect insufficient still EOF\nClient Reconnect: failed again",
			`7 form client_reconnect insufficient "still EOF"` + asPosted + `8 form client_reconnect failed "again"` + asPosted},
		{"bullets and boxes", "- worker_restart – failed\n- [x] session_reconnect timeout\n- [ ] client_reconnect failed",
			`7 form worker_restart failed ""` + asPosted + `8 form session_reconnect timeout ""` + asPosted},
		{"a command is a command", "/attempt client_reconnect failed", `7 command client_reconnect failed ""` + asPosted},
		{"an outcome that is none", "client_reconnect didnt_work", "7 form rejected: /attempt client_reconnect failed didnt_work\n"},
		{"prose is rejected once", "I turned it off\nand on again", "7 form rejected: /playbook ladder\n"},
		{"a quote is another's", "> client_reconnect failed", ""},
	} {
		for _, tail := range []string{"", "\n\n### Break-glass\n\n- [ ] I request break-glass\n"} {
			r := parseForm(head + c.section + tail)
			if got := brief(r); got != c.want {
				t.Errorf("%s:\n got %s\nwant %s", c.name, got, c.want)
			}
			if r.Form == nil || r.Form.Action != "full_mcp_restart" || r.Form.Problem != nil {
				t.Errorf("%s: form %+v", c.name, r.Form)
			}
		}
	}
}

func TestCommandsInAForm(t *testing.T) {
	r := parseForm("### Requested class\n\nhost_restart\n\n### What happened\n\nit hung\n/recommend transport_eof\n\n### Target\n\n/withdraw\nx\n")
	if got := names(r); got != "recommend; withdraw" || r.Form.Target != "x" {
		t.Errorf("%q, %+v", got, r.Form)
	}
}

// The labels are a contract with the form that people fill in.
func TestFormFileHasTheLabels(t *testing.T) {
	b, err := os.ReadFile("../../templates/forms/restart-request.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, label := range append([]string{BoxBreakGlass}, Labels...) {
		if n := strings.Count(string(b), "label: "+label+"\n"); n != 1 {
			t.Errorf("%q is there %d times", label, n)
		}
	}
}

func TestFormEqual(t *testing.T) {
	read := func(s string) *Form { return parseForm(s).Form }
	base := read(form1)
	for name, body := range map[string]string{
		"line ends":          strings.ReplaceAll(form1, "\n", "\r\n"),
		"spelling":           strings.Replace(form1, "full_mcp_restart", "Full MCP Restart", 1),
		"case of the target": strings.Replace(form1, "mcp-search", "MCP-Search", 1),
		"attempts":           strings.Replace(form1, "_No response_", "client_reconnect failed", 1),
		"text above":         "hello\n\n" + form1,
		"another box":        strings.Replace(form1, "[x]", "[ ]", 1),
	} {
		if f := read(body); !base.Equal(f) || !f.Equal(base) {
			t.Errorf("%s makes it another request: %+v", name, f)
		}
	}
	for name, body := range map[string]string{
		"class":       strings.Replace(form1, "full_mcp_restart", "host_restart", 1),
		"target":      strings.Replace(form1, "mcp-search", "mcp-find", 1),
		"symptoms":    strings.Replace(form1, "stale_capability", "transport_eof", 1),
		"break-glass": form1 + "- [x] I request break-glass\n",
		"reason":      form1 + "\n### What happened\n\nmore\n",
		"no form":     "hello",
		"unreadable":  form1 + "\n### Target\n\nmcp-search\n",
	} {
		if base.Equal(read(body)) {
			t.Errorf("%s makes no difference", name)
		}
	}
	if !(*Form)(nil).Equal(nil) || (*Form)(nil).Digest() != "" {
		t.Error("no form is not equal to no form")
	}
}
