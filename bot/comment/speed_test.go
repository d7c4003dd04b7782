package comment

import (
	"encoding/json"
	"runtime"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"playbook-bot/bot/command"
)

// fill repeats a unit up to n bytes.
func fill(unit string, n int) string { return strings.Repeat(unit, n/len(unit)+1)[:n] }

// usual are texts as people and agents write them, 64 KiB of each.
func usual(n int) map[string]string {
	return map[string]string{
		"ordinary": fill("The connector `mcp-search` answers 404 since noon, see [the log](http://x.test/log) and *mind* the <b>gap</b>.\nWe tried:\n\n- a reconnect\n- another\n\n> what they said\n\nNext paragraph, with / and @ada in it.\n\n", n),
		"table":    "| a | b | c |\n|---|---|---|\n" + fill("| some text | more of it | 2026-06-11T12:02:00Z |\n", n-30),
		"fences":   fill("```go\nfunc main() {\n\tfmt.Println(\"hello\")\n}\n```\n\nand\n\n```\n$ curl -v http://x.test\n< HTTP/1.1 404\n```\n\n", n),
		"one-line": fill("word after word, ", n),
	}
}

// hostile are texts made to be slow: each is quadratic in some parser.
func hostile(n int) map[string]string {
	ladder := func(unit string, most int) string {
		var b strings.Builder
		for i := 1; b.Len() < n; i++ {
			b.WriteString(strings.Repeat(unit, i%most+1) + "x ")
		}
		return b.String()[:n]
	}
	ticks := ladder("`", 1<<20)
	cell := fill("a|", n/2)
	texts := map[string]string{
		"quotes in one line":           fill(">", n),
		"quotes with spaces":           fill("> ", n),
		"lists in one line":            fill("- ", n) + "x",
		"numbers in one line":          fill("1. ", n) + "x",
		"32 quotes a line":             fill(strings.Repeat(">", 32)+"x\n", n),
		"32 lists a line":              fill(strings.Repeat("- ", 32)+"x\n", n),
		"32 lists, then blank lines":   strings.Repeat("- ", 32) + "x\n" + fill("\n", n-70),
		"32 lists, then lines":         strings.Repeat("- ", 32) + "x\n" + fill(strings.Repeat(" ", 64)+"x\n\n", n-70),
		"32 quotes, then lazy lines":   strings.Repeat("> ", 32) + "x\n" + fill("x\n", n-70),
		"quotes, then lazy commands":   fill("> x\n/withdraw\n\n", n),
		"stairs of lists":              fill(stairs(700), n),
		"stairs of 31 lists":           fill(stairs(31), n),
		"tabs":                         fill("\t", n),
		"tabs and text":                fill("\tx", n),
		"a tab a line":                 fill("-\tx\n\t\ty\n", n),
		"lists and tabs":               fill("-\t", n) + "x",
		"indents in a fence":           "```\n" + fill(strings.Repeat(" ", 250)+"x\n", n-4),
		"spaces":                       fill(" ", n),
		"newlines":                     fill("\n", n),
		"carriage returns":             fill("\r", n),
		"short lines":                  fill("a\n", n),
		"wide table":                   cell + "\n" + fill("-|", n/2),
		"wide table, one row":          fill("a|", n/3) + "\n" + fill("-|", n/3) + "\n" + fill("b|", n/3),
		"delimiters over and over":     fill("a|b\n-|-|-\n", n),
		"a delimiter under each line":  fill("a|b\n-|-\n", n),
		"escaped pipes":                "action | outcome\n-|-\n" + fill(`\|`, n-30),
		"brackets":                     fill("[", n),
		"brackets, closed":             fill("[", n/2) + fill("]", n/2),
		"links not closed":             fill("[a](", n),
		"links to brackets":            fill("[a](<", n),
		"links with titles":            fill(`[a](b "`, n),
		"links with odd titles":        fill(`[a](b '[a](b "[a](b (`, n),
		"links by label":               fill("[a][", n),
		"links over lines":             fill("[a\n/withdraw](b", n),
		"reference definitions":        fill("[a]: b 'c\n", n),
		"one long label":               "[" + fill("a\n", n-3) + "]:",
		"labels over lines":            fill("[a\n", n),
		"backticks":                    fill("`", n),
		"backticks, one and two":       fill("`a ``b ", n),
		"runs of all lengths":          ticks,
		"runs of all lengths, lines":   ticks[:n/2] + "\n" + fill("a\n", n/2),
		"runs, lines and commands":     ticks[:n/3] + "\n" + fill("/tmp a\n", 2*n/3),
		"code spans":                   fill("`a`", n),
		"code spans over lines":        fill("`a\n/tmp` ", n),
		"angle brackets":               fill("<", n),
		"open tags":                    fill("<a ", n),
		"open tags with a quote":       fill(`x <a b="`, n),
		"open tags, two quotes":        fill(`x <a b='<a c="`, n),
		"attributes":                   "x <a" + fill(" b", n),
		"HTML comments in mid-line":    fill("x <!-- ", n),
		"HTML comments in blocks":      fill("<!-- x\n\n", n),
		"HTML comments, closed":        fill("<!-- x -->\n", n),
		"HTML in a block, not closed":  "<div>\n" + fill("<!-- -->", n),
		"declarations":                 fill("x <!A ", n),
		"processing instructions":      fill("x <? ", n),
		"CDATA":                        fill("x <![CDATA[ ", n),
		"details":                      fill("<details>\n/withdraw\n", n),
		"a block for each tag":         fill("<div>\n\n", n),
		"setext":                       fill("a\n-\n", n),
		"setext commands":              fill("/withdraw\n-\n", n),
		"ATX headings":                 fill("# a #\n", n),
		"form labels":                  fill("### Requested class\n\nx\n\n### Target\n\n", n),
		"attempts section":             "### Requested class\n\nx\n\n### Prior recovery attempts\n\n" + fill("foo bar baz\n", n-60),
		"attempts section, paragraphs": "### Requested class\n\nx\n\n### Prior recovery attempts\n\n" + fill("a b\n\n", n-60),
		"fences not closed":            fill("```\n~~~\n", n),
		"empty fences":                 fill("```\n```\n", n),
		"one-line fences":              fill("```\na: b\n```\n", n),
		"a fence of flow lists":        "```yaml\naction: " + fill("[", n-20) + "\n```",
		"a fence of flow maps":         "```yaml\naction: " + fill("{a: ", n-20) + "\n```",
		"a fence of YAML levels":       "```yaml\n" + fill(stairsYAML(250), n-20) + "\n```",
		"a fence of YAML dashes":       "```yaml\naction: x\nb:\n  " + fill("- ", n-30) + "\n```",
		"a fence of YAML keys":         "```yaml\naction: x\nb:\n  " + fill("? ", n-30) + "\n```",
		"a fence of YAML tags":         "```yaml\naction: " + fill("!a ", n-30) + "\n```",
		"a fence of YAML quotes":       "```yaml\naction: x\nb: " + fill("'' ", n-30) + "\n```",
		"a fence of YAML texts":        "```yaml\naction: x\n" + fill("b: |\n c\n", n-30) + "\n```",
		"a fence of YAML documents":    "```yaml\naction: x\n" + fill("---\n", n-30) + "\n```",
		"a fence of YAML words":        "```yaml\naction: x\n" + fill("outcome\n", n-30) + "\n```",
		"a fence of YAML pairs":        "```yaml\naction: x\n" + fill("a: b\n", n-30) + "\n```",
		"a fence of colons":            "```\naction: x\noutcome: " + fill(": ", n-40) + "\n```",
		"a fence of flow keys":         "```yaml\naction: " + fill("[a,{b: c}],", n-30) + "\n```",
		"a fence of flow pairs":        "```yaml\naction: [" + fill("a: b,", n-30) + "]\n```",
		"a fence of flow words":        "```yaml\naction: [" + fill("a ", n-30) + "]\n```",
		"fences of brackets":           fill("```yaml\naction: "+strings.Repeat("{a: ", 60)+"\n```\n", n),
		"a fence of anchors":           "```yaml\naction: &a x\n" + fill("b: *a\n", n-40) + "\n```",
		"a fence of JSON lists":        "```json\n{\"action\":" + fill("[", n-20) + "\n```",
		"a fence of records":           "```json\n[" + fill(`{"action":"x","outcome":"y"},`, n-20) + "\n```",
		"a fence of commands":          "```\n" + fill("/withdraw\n", n-20) + "```",
		"commands":                     fill("/withdraw\n", n),
		"attempts":                     fill("/attempt a b\n", n),
		"one long command":             "/recommend " + fill(`"a `, n-20),
		"one long action":              "/attempt " + fill("a", n-20) + " b",
		"bot names":                    fill("@playbook-bot x\n", n),
		"zero-width characters":        fill("\u200b", n),
		"zero-width lines":             fill("\u200b\n", n),
		"invalid UTF-8":                fill("\xff\xc0", n),
		"NUL":                          fill("\x00", n),
		"rows that are no records":     "action | outcome\n-|-\n" + fill("a | b\n", n-30),
		"emphasis":                     fill("*a _", n),
		"backslashes":                  fill(`\`, n),
		"rules":                        fill("- - -\n", n),
		"stars":                        fill("* ", n),
		"plus and minus":               fill("+\n-\n", n),
	}
	return texts
}

func stairsYAML(n int) string {
	var b strings.Builder
	for i := range n {
		b.WriteString(strings.Repeat(" ", i) + "action:\n")
	}
	return b.String()
}

func BenchmarkParse64KiB(b *testing.B) {
	o := options()
	o.Issue = true
	for _, set := range []map[string]string{usual(64 << 10), hostile(64 << 10)} {
		for name, body := range set {
			b.Run(strings.ReplaceAll(name, " ", "_"), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					Parse(body, o)
				}
			})
		}
	}
}

// timeFactor makes time limits generous: they are to find what is quadratic,
// not what is 20 % slower.
const timeFactor = 10

// TestNeverQuadratic holds 256 KiB of each text to its limits: 100 MB exactly,
// and 300 ms with room for a busy machine.
func TestNeverQuadratic(t *testing.T) {
	const n = 256 << 10
	o := options()
	o.Issue = true
	for name, body := range hostile(n) {
		body = body[:min(len(body), MaxBody)]
		took, bytes := measure(func() { Parse(body, o) })
		if took > timeFactor*300*time.Millisecond {
			t.Errorf("%s: 256 KiB take %v", name, took)
		}
		if memoryCounts && bytes > 100<<20 {
			t.Errorf("%s: 256 KiB take %d MB", name, bytes>>20)
		}
	}
}

func measure(f func()) (time.Duration, uint64) {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	start := time.Now()
	f()
	took := time.Since(start)
	runtime.ReadMemStats(&after)
	return took, after.TotalAlloc - before.TotalAlloc
}

func TestHostileTextsRunNothingUnseen(t *testing.T) {
	for name, body := range hostile(8 << 10) {
		check(t, name, body)
	}
}

// check holds what is true of every text.
func check(t *testing.T, name, body string) {
	t.Helper()
	for _, issue := range []bool{false, true} {
		o := options()
		o.Issue = issue
		r := Parse(body, o)
		lines := strings.Split(string(normalize(body)), "\n")
		if r.Refused && (len(r.Commands)+len(r.Records)+len(r.Hints) > 0 || r.Form != nil || len(r.Rejections) != 1) {
			t.Fatalf("%s: refused, and yet: %+v", name, r)
		}
		if len(r.Commands) > MaxCommands || len(r.Records) > MaxRecords || len(r.Hints) > MaxCommands {
			t.Fatalf("%s: %d commands, %d records, %d hints", name, len(r.Commands), len(r.Records), len(r.Hints))
		}
		for _, c := range r.Commands {
			if c.Line < 1 || c.Line > len(lines) {
				t.Fatalf("%s: a command on line %d of %d", name, c.Line, len(lines))
			}
			// A backslash at the end of a line is a break, and nobody sees it.
			if !startsLive(strings.TrimSuffix(lines[c.Line-1], "\\")) {
				t.Fatalf("%s: line %d begins no command: %q", name, c.Line, lines[c.Line-1])
			}
		}
		for _, x := range r.Rejections {
			if x.Line < 1 || x.Line > len(lines) || x.Why == "" || x.Source == "" || !utf8.ValidString(x.Why+x.Suggestion) || strings.Contains(x.Suggestion, "\n") {
				t.Fatalf("%s: rejection %+v of %d lines", name, x, len(lines))
			}
		}
		for _, a := range r.Records {
			if a.Line < 1 || a.Line > len(lines) {
				t.Fatalf("%s: a record on line %d of %d", name, a.Line, len(lines))
			}
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, body := range hostile(300) {
		f.Add(body)
	}
	f.Add(form1)
	for _, s := range []string{
		"- <!--\n\n/withdraw", "> - x\n/withdraw\n---", "| action | outcome |\n|-|-|\n| a | b |\n/withdraw\n---", "[a\n/withdraw](b 'c\n/withdraw')",
		"1) - > * + x\n\n\n   y\n```\n- action: a\n  outcome: b\n", "`a\r/withdraw\r` <a\nb>\n<!-- x", "\ufeff### Requested class\n\n\tx\n\n### Break-glass\n- [x] I request break-glass",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, body string) { check(t, "fuzz", body) })
}

// The same text read twice gives the same: nothing depends on the order of a
// map or on an earlier text.
func TestReadingIsRepeatable(t *testing.T) {
	for name, body := range hostile(2 << 10) {
		a, errA := json.Marshal(Parse(body, options()))
		b, errB := json.Marshal(Parse(body, options()))
		if errA != nil || errB != nil || string(a) != string(b) {
			t.Errorf("%s: %.300s\n%.300s", name, a, b)
		}
	}
}

func startsLive(line string) bool { return command.StartsLive(line, "playbook-bot") }
