package templates

import (
	"bytes"
	"html"
	"regexp"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/parser"
	gmhtml "github.com/yuin/goldmark/renderer/html"
	"github.com/yuin/goldmark/text"
)

// forge renders as forges do: GitHub's Markdown, HTML let through.
var forgeMarkdown = goldmark.New(goldmark.WithExtensions(extension.GFM, extension.Footnote, extension.DefinitionList),
	goldmark.WithParserOptions(parser.WithAutoHeadingID()), goldmark.WithRendererOptions(gmhtml.WithUnsafe()))

func toHTML(t testing.TB, md string) string {
	t.Helper()
	var b bytes.Buffer
	if err := forgeMarkdown.Convert([]byte(md), &b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// hostile are texts that people have written, or would.
var hostile = []string{
	"", " ", "plain", "@ada", "@ops/oncall", " @ada ", "ada @", "#12", "see #12.", "#", "x #", "C#", "owner/repo#12", "!12", "!", "o/r!12",
	"fixes #12", "closes o/r#3", "0123456", "deadbeefdeadbeefdeadbeefdeadbeefdeadbeef", "o/r@deadbeef", "x@y.example", "mailto:x@y.example",
	"https://git.example/o/r/issues/12", "http://x", "http: x", "http", "https:", "say ftp", "www.example.com", "ftp://x.example/y", "<https://x.example>", "[a](https://x)", "![a](x)",
	"[a][b]", "[a]: x", "[^1]", "[[wiki]]", "[[a|b]]", "[ ] task", "[x]", ":tada:", ":+1:", ":100:", "a:b:c", "10:30", "ABC-123", "GH-12", "gh-12 x",
	"/restart full_mcp_restart", "/attempt client_reconnect failed", "@playbook-bot restart full_mcp_restart", "\u200b/restart x", "\ufeff@ada",
	"```", "````\n/restart x\n````", "~~~", "`", "``", "`a`", "` a", "a `", "a``b`c", "\\", "\\`", "a\\", "\\@ada", "&#64;ada", "&#35;12", "&lt;", "&", "&amp;amp;",
	"<!--", "-->", "<!-- x -->", "<details>", "</details>", "</summary>", "<script>alert(1)</script>", "<img src=x onerror=y>", "<b>x", "</td>", "<a", "<",
	"a|b", "|", "\\|", "a \\\\| b", "|---|", "a\nb", "a\r\nb\rc", "a\n\n# b", "# h", "## h #", "- x", "+ x", "* x", "1. x", "1) x", "12345678901. x", "> q", "===", "---",
	"= x", "    code", "\tcode", "*x*", "**x**", "_x_", "__x__", "a_b_c", "~x~", "~~x~~", "$x$", "$$x$$", "^x^", "{.cls}", "{#id}", "==x==", "term\n: definition",
	"\u202emoc.elpmaxe", "\u2066x\u2069", "a\u0000b", "a\u001b[31mb", "\x80\xff", "a\u2028b\u2029c", "\u00a0x\u00a0", "e\u0301\u0301\u0301\u0301\u0301\u0301\u0301",
	"\U000e0041\U000e0042", "\u3164", "\u00ad", "\ufe0f", "2", "123456789", "é", "日本語", "👩\u200d💻", "–", "“x”", "'x'", "\"x\"", "x\u200by", "@\u200bada",
	strings.Repeat("a", 5000), strings.Repeat("`", 400), strings.Repeat("@a ", 400), strings.Repeat("<", 400), strings.Repeat("\\", 401), strings.Repeat("日", 3000),
}

var (
	codeHTML = regexp.MustCompile(`(?s)<pre>.*?</pre>|<code>.*?</code>`)
	tagHTML  = regexp.MustCompile(`<[^>]*>`)
)

// visible gives the text of a page outside code, as a forge looks for
// mentions and references in it. A "\x00" stands where a tag or code was.
func visible(page string) string {
	return html.UnescapeString(tagHTML.ReplaceAllString(codeHTML.ReplaceAllString(page, "\x00"), "\x00"))
}

// What Gitea and GitHub turn into links or mail, wherever it stands: the
// characters before it are looked at more strictly by them than here.
var live = map[string]*regexp.Regexp{
	"mention":   regexp.MustCompile(`@[\w-]`),
	"reference": regexp.MustCompile(`[#!][0-9]`),
	"commit":    regexp.MustCompile(`(?:^|[^0-9A-Za-z\x{200b}])[0-9a-fA-F]{7,64}(?:$|[^0-9A-Za-z\x{200b}])`),
	"wiki":      regexp.MustCompile(`\[\[.*?\]\]`),
	"address":   regexp.MustCompile(`(?i)://\S|www\.\w|(?:https?|ftp):`),
	"emoji":     regexp.MustCompile(`:[a-z+][-+\w]*:`),
	"tracker":   regexp.MustCompile(`[A-Z]-[0-9]|(?i:gh-[0-9])`),
}

func TestInertShowsTheTextAndDoesNothing(t *testing.T) {
	for _, s := range hostile {
		checkInert(t, s)
	}
}

func FuzzInert(f *testing.F) {
	addHostile(f)
	f.Fuzz(func(t *testing.T, s string) {
		checkInert(t, s)
		checkCode(t, s)
	})
}

// addHostile seeds with the short ones: the fuzzer spends its time on making
// long ones shorter.
func addHostile(f *testing.F) {
	for _, s := range hostile {
		if len(s) < 200 {
			f.Add(s)
		}
	}
}

func checkInert(t *testing.T, s string) {
	t.Helper()
	got := inert(s, maxText)
	want := cut(clean(s), maxText)
	if strings.ContainsAny(got, "`|<>\n\r") {
		t.Fatalf("inert(%q) = %q holds what it must not", s, got)
	}
	// At the beginning of a line, after words, in a table, in a list.
	for _, frame := range []string{"%", "x % y", "x %", "| a | b |\n|---|---|\n| % | x |", "- %", "### %", "“%”"} {
		page := toHTML(t, strings.ReplaceAll(frame, "%", got))
		text := visible(page)
		for what, re := range live {
			if m := re.FindString(text); m != "" {
				t.Fatalf("inert(%q) in %q leaves a live %s: %q", s, frame, what, m)
			}
		}
		for _, tag := range []string{"<a ", "<img", "<em", "<strong", "<del", "<input", "<sup", "<code", "<pre", "<blockquote", "<hr", "<dl", "<ol", "<br"} {
			if strings.Contains(page, tag) {
				t.Fatalf("inert(%q) in %q makes %s: %s", s, frame, tag, page)
			}
		}
		plain := strings.ReplaceAll(text, zwsp, "")
		if !strings.Contains(strings.Join(strings.Fields(strings.ReplaceAll(plain, "\x00", " ")), " "), strings.ReplaceAll(want, zwsp, "")) {
			t.Fatalf("inert(%q) in %q shows %q, want %q", s, frame, plain, want)
		}
	}
}

var codeOf = regexp.MustCompile(`(?s)<code>(.*?)</code>`)

func TestCodeShowsTheText(t *testing.T) {
	for _, s := range hostile {
		checkCode(t, s)
	}
}

func checkCode(t *testing.T, s string) {
	t.Helper()
	want := cut(clean(s), maxName)
	if want == "" {
		if got := codeSpan(s, maxName); got != "(none)" {
			t.Fatalf("codeSpan(%q) = %q", s, got)
		}
		return
	}
	page := toHTML(t, "x "+codeSpan(s, maxName)+" y")
	if m := codeOf.FindStringSubmatch(page); m == nil || html.UnescapeString(m[1]) != want || strings.Count(page, "<code>") != 1 {
		t.Fatalf("codeSpan(%q) shows %s, want %q", s, page, want)
	}
	// In a table the cells stay two, and only a bar after a backslash changes.
	page = toHTML(t, "| a | b |\n|---|---|\n"+row(codeSpan(s, maxName), "x"))
	m := codeOf.FindStringSubmatch(page)
	if m == nil || strings.Count(page, "<td>") != 2 || html.UnescapeString(m[1]) != strings.ReplaceAll(want, `\|`, `\¦`) {
		t.Fatalf("codeSpan(%q) in a table shows %s", s, page)
	}
}

func TestFenceHoldsTheLineAsItIs(t *testing.T) {
	for _, s := range hostile {
		line := "/attempt client_reconnect failed " + s
		for _, indent := range []string{"", "   "} {
			md := "1. x\n" + fence(indent, line) + "\n"
			doc := forgeMarkdown.Parser().Parse(text.NewReader([]byte(md)))
			var got []string
			_ = ast.Walk(doc, func(n ast.Node, in bool) (ast.WalkStatus, error) {
				if f, ok := n.(*ast.FencedCodeBlock); ok && in {
					got = append(got, string(f.Lines().Value([]byte(md))))
				}
				return ast.WalkContinue, nil
			})
			if utf8.RuneCountInString(clean(line)) > maxPost {
				if len(got) != 0 {
					t.Errorf("%.40q…: a line too long is shown", s)
				}
				continue
			}
			if len(got) != 1 || got[0] != clean(line)+"\n" {
				t.Errorf("fence(%q): blocks %q", line, got)
			}
		}
	}
}

func TestWordsKeepCodeAndNothingElse(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{"`didnt_work` is no outcome; did you mean `failed`?", "`didnt_work` is no outcome; did you mean `failed`?"},
		{"a ` b", "a &#96; b"},
		{"`@ada` and @ada", "`@ada` and @" + zwsp + "ada"},
		{"say ``: <b>", "say (none): &lt;b&gt;"},
		{"`a``b`", "`a``b`"},
		{"- x `y`", `\- x ` + "`y`"},
		{"(#584) `x`: y", "(#" + zwsp + "584) `x`: y"},
	} {
		if got := Words(c.in).String(); got != c.want {
			t.Errorf("Words(%q) = %q, want %q", c.in, got, c.want)
		}
	}
}

func TestOperatorsLineStaysUsable(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{"duty phone: +49 30 5550100", "duty phone: +49 30 5550100"},
		{"https://status.example/oncall?x=1", "<https://status.example/oncall?x=1>"},
		{"@ops/duty or #12", `\@` + zwsp + "ops/duty or #" + zwsp + "12"},
		{"https://x.example/#12", "https" + zwsp + ":" + zwsp + "//x.example/#" + zwsp + "12"},
		{"<b>555</b>", "&lt;b&gt;555&lt;/b&gt;"},
		{"- 5", `\- 5`},
		{"1. 5", "1" + zwsp + ". 5"},
		{"+49 5", `\+49 5`},
	} {
		if got := operator(c.in); got != c.want {
			t.Errorf("operator(%q) = %q, want %q", c.in, got, c.want)
		}
	}
}

func TestCleanLeavesNothingInvisible(t *testing.T) {
	for _, s := range hostile {
		got := clean(s)
		for _, r := range got {
			if r != ' ' && !unicode.IsPrint(r) {
				t.Errorf("clean(%q) keeps %U", s, r)
			}
		}
		if again := clean(got); again != got {
			t.Errorf("clean(%q) = %q, and again %q", s, got, again)
		}
	}
}

func TestCut(t *testing.T) {
	for _, c := range []struct {
		in   string
		n    int
		want string
	}{{"abc", 3, "abc"}, {"abcd", 3, "ab…"}, {"日本語", 3, "日本語"}, {"日本語x", 3, "日本…"}, {"a  bcd", 3, "a…"}, {"", 3, ""}} {
		if got := cut(c.in, c.n); got != c.want {
			t.Errorf("cut(%q, %d) = %q, want %q", c.in, c.n, got, c.want)
		}
	}
}
