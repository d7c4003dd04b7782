package comment

import (
	"encoding/json"
	"os"
	"strings"
	"testing"
	"time"

	"playbook-bot/playbook"
)

var (
	pb     = playbook.Default()
	posted = time.Date(2026, 12, 1, 3, 4, 11, 0, time.UTC)
)

func options() Options {
	return Options{Playbook: pb, Bot: "playbook-bot", Context: playbook.Context{Author: "ada", At: posted}}
}

// names gives the commands of a text as "name action@line".
func names(r Read) string {
	var out []string
	for _, c := range r.Commands {
		s := c.Name
		if c.Action != "" {
			s += " " + c.Action
		}
		out = append(out, s)
	}
	return strings.Join(out, "; ")
}

const restart = "/restart full_mcp_restart"

// Rule: a command is the first token of a line of a paragraph, at top level or
// in a list item, and never anywhere else.
func TestWhereCommandsRun(t *testing.T) {
	const one = "restart full_mcp_restart"
	for _, c := range []struct{ name, body, want string }{
		{"alone", restart, one},
		{"behind text", "it is down\n" + restart + "\nplease", one},
		{"indented by three", "   " + restart, one},
		{"in a list item", "- " + restart, one},
		{"in a nested list item", "1. a\n   - b\n     " + restart, one},
		{"in a loose list item", "- a\n\n  " + restart, one},
		{"lazily in a list item", "- a\n" + restart, one},
		{"not in mid-line", "please " + restart, ""},
		{"in a backtick fence", "x\n```\n" + restart + "\n```", ""},
		{"in a tilde fence", "x\n~~~\n" + restart + "\n~~~", ""},
		{"in a fence in a list", "- x\n  ```\n  " + restart + "\n  ```", ""},
		{"in a fence that is not closed", "x\n```\n" + restart, ""},
		{"fence closes with the same character only", "x\n```\n~~~\n" + restart + "\n```", ""},
		{"fence closes when at least as long", "x\n````\n```\n" + restart + "\n````", ""},
		{"behind a fence", "```\nx\n```\n" + restart, one},
		{"indented by four", "x\n\n    " + restart, ""},
		{"indented by a tab", "x\n\n\t" + restart, ""},
		{"indented in a paragraph is text", "x\n        " + restart, one},
		{"in inline code", "`" + restart + "`", ""},
		{"in inline code over lines", "look `here\n" + restart + "\n` ok", ""},
		{"backticks without a partner", "look `here\n" + restart + "\n`` ok", one},
		{"in a quote", "> " + restart, ""},
		{"in a quote in a list", "- > " + restart, ""},
		{"in a list in a quote", "> - " + restart, ""},
		{"behind a quote", "> x\n\n" + restart, one},
		{"a heading", "# " + restart, ""},
		{"a closed HTML comment", "<!--\n" + restart + "\n-->", ""},
		{"behind a closed HTML comment", "<!--\nx\n-->\n" + restart, one},
		{"an HTML comment that is not closed", "<!--\n" + restart + "\n\n" + restart, ""},
		{"… in a list, and its end is not the comment's", "- <!-- x\n\nfoo\n\n" + restart, ""},
		{"… in a quote", "> <!-- x\n\n" + restart, ""},
		{"… in front of it all runs", restart + "\n\n<!--\n" + restart, one},
		{"… opened again on the line that closes one", "<!-- a --> <!-- b\n\n" + restart, ""},
		{"… inside an HTML block", "<details>\n<!-- x\n</details>\n\n" + restart, ""},
		{"<!--> is a whole comment", "<!-->\n" + restart, one},
		{"an open HTML comment in mid-line is text", "foo <!-- bar\n" + restart, one},
		{"a closed HTML comment in mid-line", "foo <!-- bar\n" + restart + "\n-->", ""},
		{"raw HTML over lines", "foo <a title=\"\n" + restart + "\n\">x</a>", ""},
		{"in details with blank lines", "<details>\n\n" + restart + "\n\n</details>", one},
		{"link text", "[" + restart + "](http://x.test)", ""},
		{"link text over lines", "[click\n" + restart + "\nhere](http://x.test)", ""},
		{"link text over lines, by label", "[click\n" + restart + "\nhere][there]\n\n[there]: http://x.test", ""},
		{"image text over lines", "![click\n" + restart + "\nhere](http://x.test)", ""},
		{"link title over lines", "[x](http://x.test \"\n" + restart + "\n\")", ""},
		{"link target on its own line", "[x](\n" + restart + "\n)", one}, // two words are no target: the page shows it
		{"brackets that make no link", "[see\n" + restart + "\nbelow]", one},
		{"directly after a label", "[x]:\n" + restart, ""},
		{"directly after a label, in a paragraph", "a\n[x]: \n" + restart, ""},
		{"in the title of a reference definition", "[x]: http://x.test '\n" + restart + "\n'", ""},
		{"in the label of a reference definition", "[x\n" + restart + "\n]: http://x.test", ""},
		{"behind a reference definition", "[x]: http://x.test\n" + restart, one},
		{"in emphasis", "**" + restart + "**", ""},
		{"a check box", "- [ ] " + restart, ""},
		{"with a hard line break", restart + "\\\nthanks", one},
		{"with an escaped slash", "\\" + restart, ""},
		{"in a table", "| a |\n|---|\n| " + restart + " |", ""},
		{"above a table", restart + "\na | b\n--|--\nx | y", one},
		{"pipes that make no table", restart + "\na | b | c\n--|--\n/withdraw", one + "; withdraw"},
		{"a header that is narrower than its rule", restart + "\n--|--\n/withdraw", ""},
		{"CRLF", restart + "\r\nplease\r\n", one},
		{"lone CR", restart + "\rplease\r", one},
		{"CR between", "x\r\r" + restart, one},
		{"NEL and line separator are spaces", "x\u0085" + restart + "\u2028" + restart, ""},
		{"BOM in front", "\ufeff" + restart, one},
		{"zero-width in front", "\u200b\u200d" + restart, one},
		{"no-break spaces in front", "\u00a0\u00a0\u00a0\u00a0\u00a0" + restart, one},
		{"upper case", "/RESTART Full_MCP_Restart", one},
		{"by the bot's name", "@Playbook-Bot restart full_mcp_restart", one},
		{"silence for others", "/restart-all\n/restarts\n/tmp/x\n/approve", ""},
		{"several, from top to bottom", "/withdraw\n" + restart + "\n\n- /playbook", "withdraw; " + one + "; playbook"},
	} {
		r := Parse(c.body, options())
		if got := names(r); got != c.want {
			t.Errorf("%s: %q: got %q, want %q", c.name, c.body, got, c.want)
		}
	}
}

func TestCommandArgumentsAndLines(t *testing.T) {
	r := Parse("hello\r\n\r\n/restart full_mcp_restart\r\nplease\r\n", options())
	if len(r.Commands) != 1 || r.Commands[0].Action != "full_mcp_restart" || r.Commands[0].Reason != "" || r.Commands[0].Line != 3 {
		t.Errorf("%+v", r.Commands)
	}
	r = Parse("a\rb\r\r> q\r\r- /restart full_mcp_restart thanks\r", options())
	if len(r.Commands) != 1 || r.Commands[0].Line != 6 || r.Commands[0].Reason != "thanks" {
		t.Errorf("%+v", r.Commands)
	}
}

// Rule: four things get a hint and never a run; the first of them, an edit, is
// the bot's to see. A hint is a rejection.
func TestHints(t *testing.T) {
	const line = "/restart full_mcp_restart now"
	for _, c := range []struct {
		name, body, why, cure string
		line                  int
	}{
		{"lazy line under a quote", "> they said\n" + line, "quote above it", line, 2},
		{"lazy line under a nested quote", "- > > they said\n" + line, "quote above it", line, 2},
		{"made a heading by ---", line + "\n---", "made a heading", line, 1},
		{"made a heading by ===, second line", "x\n" + line + "\n===", "made a heading", line, 2},
		{"made a heading in a list", "- " + line + "\n  ---", "made a heading", line, 1},
		{"a table above it", "| a | b |\n|---|---|\n| 1 | 2 |\n" + line, "table", line, 4},
		{"a table above it and a rule under it", "| a | b |\n|---|---|\n" + line + "\n---", "table", line, 3},
		{"the header of a table", line + " | b\n---|---", "table", line + " | b", 1},
		{"details without a blank line", "<details>\n" + line + "\n</details>", "HTML above it", line, 2},
		{"details in a list", "- <details>\n  " + line + "\n  </details>", "HTML above it", line, 2},
		{"a fence of commands", "```\n" + line + "\n```\n", "code block", line, 2},
		{"a tilde fence with info", "\n~~~sh\n\n" + line + "\n~~~", "code block", line, 4},
		{"the bot and no command", "@playbook-bot please help", "followed by nothing", "/playbook help", 1},
		{"the bot alone", "@playbook-bot", "followed by nothing", "/playbook help", 1},
		{"by name, under a quote", "> x\n@playbook-bot restart full_mcp_restart", "quote above it", "@playbook-bot restart full_mcp_restart", 2},
		{"with a problem of its own", "> x\n/break-glass", "quote above it", "/break-glass host_restart this cannot wait for a narrower attempt", 2},
	} {
		r := Parse(c.body, options())
		if len(r.Commands) != 0 || len(r.Hints) != 1 || len(r.Rejections) != 1 || r.Refused {
			t.Errorf("%s: %+v", c.name, r)
			continue
		}
		h := r.Hints[0]
		if h != r.Rejections[0] || h.Line != c.line || h.Source != SourceCommand || !strings.Contains(h.Why, c.why) || h.Suggestion != c.cure {
			t.Errorf("%s:\n got %+v\nwant line %d, %q, %q", c.name, h, c.line, c.why, c.cure)
		}
	}
}

// Rule: what is shown on purpose gets silence.
func TestSilence(t *testing.T) {
	const line = "/restart full_mcp_restart now"
	for name, body := range map[string]string{
		"a quote":                             "> " + line,
		"a quote with a rule":                 "> " + line + "\n> ---",
		"a quote of a table":                  "> | a |\n> |---|\n> " + line,
		"a fence beside text":                 "post this:\n```\n" + line + "\n```",
		"two fences":                          "```\n" + line + "\n```\n```\nx\n```",
		"a fence that shows something else":   "```\n$ bot\n" + line + "\n```",
		"indented code":                       "    " + line,
		"an ATX heading":                      "# " + line,
		"an HTML comment":                     "<!--\n" + line + "\n-->",
		"an HTML comment in a block":          "<div>\n<!--\n" + line + "\n-->\n</div>",
		"pre":                                 "<pre>\n" + line + "\n</pre>",
		"code over lines under a quote":       "> a `b\n" + line + "\n` c",
		"code over lines in a heading":        "a `b\n" + line + "\n` c\n---",
		"another bot's command under a quote": "> x\n/restart-all",
		"the bot's name in a quote":           "> @playbook-bot restart x",
		"the bot's name in mid-line":          "thanks @playbook-bot!",
		"another account":                     "@playbook-bot2 restart x",
		"nothing":                             "",
		"blank":                               " \r\n\t\n",
	} {
		r := Parse(body, options())
		if len(r.Commands)+len(r.Records)+len(r.Rejections)+len(r.Hints) != 0 || r.Refused {
			t.Errorf("%s: %q: %+v", name, body, r)
		}
	}
}

// Rule: a known command with bad arguments gets one answer, also for a record.
func TestBadArgumentsAreRejections(t *testing.T) {
	r := Parse("x\n/attempt client_reconnect didnt_work still 404\n/restart nonsense", options())
	if len(r.Commands) != 2 || r.Commands[0].Problem == nil || r.Commands[1].Problem != nil || len(r.Records) != 0 {
		t.Fatalf("%+v", r)
	}
	if len(r.Rejections) != 1 || r.Rejections[0].Line != 2 || r.Rejections[0].Problem != *r.Commands[0].Problem ||
		r.Rejections[0].Suggestion != "/attempt client_reconnect failed didnt_work still 404" || len(r.Hints) != 0 {
		t.Errorf("%+v", r.Rejections)
	}
}

// Rule: more than 20 commands or 200 records: refused, saying so.
func TestTooMany(t *testing.T) {
	rows := func(n int) string {
		return "| what | result |\n|---|---|\n" + strings.Repeat("| client_reconnect | failed |\n", n)
	}
	for _, c := range []struct {
		name, body, why string
		line            int
	}{
		{"20 commands", strings.Repeat("/withdraw\n", 20), "", 0},
		{"21 commands", strings.Repeat("/withdraw\n", 21), "more than 20 commands", 21},
		{"200 records", rows(200), "", 0},
		{"201 records", rows(201), "more than 200 attempts", 203},
		{"201 rows that are no records", strings.ReplaceAll(rows(201), "failed", "planned"), "more than 200 attempts", 203},
		{"too long", strings.Repeat("x", MaxBody+1), "longer than 256 KiB", 1},
		{"32 quotes", strings.Repeat(">", 32) + " x", "", 0},
		{"33 quotes", "x\n\n" + strings.Repeat(">", 33) + " x", "nested or indented", 3},
		{"33 lists", strings.Repeat("- ", 33) + "x", "nested or indented", 1},
		{"33 numbered lists", strings.Repeat("1. ", 33) + "x", "nested or indented", 1},
		{"33 mixed", strings.Repeat("> * + ", 11) + "x", "nested or indented", 1},
		{"depth over lines", stairs(40), "nested or indented", 33},
		{"a long rule is no list", strings.Repeat("- ", 60), "", 0},
		{"33 quote marks in a fence", "```\n" + strings.Repeat(">", 33) + " x\n```", "", 0},
		{"indent of 200", "x\n" + strings.Repeat(" ", 200) + "x", "", 0},
		{"indent of 201", "x\n" + strings.Repeat(" ", 201) + "x", "nested or indented", 2},
		{"indent of 201 by tabs", "x\n" + strings.Repeat("\t", 50) + " x", "nested or indented", 2},
		{"indent of 201 in a fence", "```\n" + strings.Repeat(" ", 201) + "x\n```", "", 0},
		{"indent behind what only looks like a fence", "<div>\n```\n</div>\n\n" + strings.Repeat(" ", 201) + "x\n", "nested or indented", 5},
		{"a blank line of 300", "x\n" + strings.Repeat(" ", 300) + "\ny", "", 0},
		{"blank lines in deep lists", strings.Repeat("- ", 32) + "x" + strings.Repeat("\n", 60000), "nested or indented", -1},
	} {
		r := Parse(c.body, options())
		if r.Refused != (c.why != "") {
			t.Errorf("%s: refused %v: %+v", c.name, r.Refused, r.Rejections)
			continue
		}
		if !r.Refused {
			continue
		}
		if len(r.Commands)+len(r.Records) != 0 || r.Form != nil || len(r.Rejections) != 1 ||
			!strings.Contains(r.Rejections[0].Why, c.why) || c.line > 0 && r.Rejections[0].Line != c.line {
			t.Errorf("%s: %+v", c.name, r)
		}
	}
}

// stairs nests lists by indentation, one level a line.
func stairs(n int) string {
	var b strings.Builder
	for i := range n {
		b.WriteString(strings.Repeat("  ", i) + "- x\n")
	}
	return b.String()
}

// Cases of the wire, from recorded deliveries.
func TestRecordedDeliveries(t *testing.T) {
	for file, want := range map[string]string{
		"comment-created-crlf-quote-fence.json": "attempt client_reconnect",
		"comment-unicode-nbsp.json":             "",
	} {
		b, err := os.ReadFile("testdata/" + file)
		if err != nil {
			t.Fatal(err)
		}
		var d struct{ Comment struct{ Body string } }
		if err := json.Unmarshal(b, &d); err != nil {
			t.Fatal(err)
		}
		r := Parse(d.Comment.Body, options())
		if got := names(r); got != want || len(r.Rejections) != 0 {
			t.Errorf("%s: got %q, want %q; %+v", file, got, want, r.Rejections)
		}
	}
}
