package comment

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/text"
)

var whole = goldmark.New(goldmark.WithExtensions(extension.GFM)).Parser()

// visible are the lines that the whole of goldmark, with links, reference
// definitions and tables, shows as text of a paragraph outside quotes, and
// that begin with a text of its own there.
func visible(source []byte) map[int]bool {
	lines := indexLines(source)
	out := map[int]bool{}
	_ = ast.Walk(whole.Parse(text.NewReader(source)), func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		switch n.Kind() {
		case ast.KindBlockquote, ast.KindHeading, ast.KindCodeSpan, ast.KindLink, ast.KindImage, ast.KindAutoLink, ast.KindRawHTML:
			return ast.WalkSkipChildren, nil
		}
		if n.Kind().String() == "Table" {
			return ast.WalkSkipChildren, nil
		}
		if t, ok := n.(*ast.Text); ok && entering {
			out[lines.at(t.Segment.Start)] = true
		}
		return ast.WalkContinue, nil
	})
	return out
}

// TestNoCommandRunsThatThePageDoesNotShow builds texts of Markdown's parts at
// random and reads them with the reduced parser and with the whole one.
func TestNoCommandRunsThatThePageDoesNotShow(t *testing.T) {
	parts := []string{
		"/withdraw", "/withdraw\n", "\n/withdraw\n", "\n/withdraw\n", "\n", "\n", "\n\n", " ", "  ", "    ", "\t", "a", "a b\n",
		"- ", "* ", "1. ", "> ", "> > ", "# ", "---\n", "===\n", "```\n", "~~~\n", "````", "`", "``", "<!--", "-->", "<div>\n", "</div>\n",
		"<details>", "<pre>", "<a b='", "'>", "\"", "<?", "?>", "[", "]", "](", "](b", ")", "][", "[a]:", "[a]: b\n", "[a]: b '", "'", "(",
		"|", "a|b\n", "-|-\n", "|-|\n", "\\", "\\\n", "*", "_", "<", ">", "&amp;", "http://x.test ", "\r", "\r\n", "![", "- [ ] ", ":-\n",
	}
	rng := rand.New(rand.NewPCG(1, 2))
	ran, seen := 0, 0
	for range 20_000 {
		var b strings.Builder
		for range 2 + rng.IntN(14) {
			b.WriteString(parts[rng.IntN(len(parts))])
		}
		body := b.String()
		r := Parse(body, options())
		if len(r.Commands) == 0 {
			continue
		}
		shown := visible(normalize(body))
		for _, c := range r.Commands {
			ran++
			if !shown[c.Line] {
				t.Errorf("%q: line %d runs, and the page does not show it as text", body, c.Line)
				if seen++; seen > 20 {
					t.FailNow()
				}
			}
		}
	}
	if ran < 4_000 {
		t.Errorf("only %d commands ran: the test looks at nothing", ran)
	}
}
