package comment

import (
	"bytes"
	"math"
	"strings"

	"github.com/yuin/goldmark/ast"

	"playbook-bot/bot/command"
	"playbook-bot/playbook"
)

// hint tells of something that looks like a command and did not run. Of more
// than MaxCommands, the rest is not told.
func (r *reader) hint(lineNo int, why, suggestion string) {
	if len(r.out.Hints) >= MaxCommands {
		return
	}
	text := playbook.RejectedText{
		Line: lineNo, Source: SourceCommand, Problem: playbook.Problem{Why: why, Suggestion: suggestion},
	}
	r.out.Hints = append(r.out.Hints, text)
	r.out.Rejections = append(r.out.Rejections, text)
}

// drawn hints at a line that begins with a command but is none, because
// Markdown counts it to something else for want of a blank line.
func (r *reader) drawn(line string, at int, how string) {
	lineNo := r.lines.at(at)
	inv, match := command.ParseLine(line, lineNo, r.o.Bot, r.o.Playbook)
	if match != command.Ours {
		return
	}
	r.hint(lineNo, "`/"+inv.Name+"` did not run: Markdown shows this line "+how+"; put a blank line between, in a new comment", asPasted(inv))
}

// asPasted is the line that does what the writer of one that did not run
// meant.
func asPasted(inv command.Invocation) string {
	if inv.Problem != nil {
		return inv.Problem.Suggestion
	}
	return inv.Raw
}

// fencedCommands hints at a comment that is nothing but a fence of commands:
// whoever copies a line out of an answer easily takes its fence along. A fence
// beside other text is there to be shown.
func (r *reader) fencedCommands(doc ast.Node) {
	fence, ok := doc.FirstChild().(*ast.FencedCodeBlock)
	if !ok || fence.NextSibling() != nil || len(r.out.Records)+len(r.out.Rejections) > 0 {
		return
	}
	ours := false
	for i, line := range r.textLines(fence) {
		if strings.TrimSpace(line) == "" {
			continue
		}
		lineNo := r.lines.at(fence.Lines().At(i).Start)
		inv, match := command.ParseLine(line, lineNo, r.o.Bot, r.o.Playbook)
		if match == command.Ours {
			ours = true
			r.hint(lineNo, "`/"+inv.Name+"` did not run: it stands in a code block; post it as plain text", asPasted(inv))
		} else if !ours {
			return // the fence shows something else
		}
	}
}

// html hints at commands that an HTML block swallowed: it ends at a blank
// line, not at the tag's end. Commands in HTML comments and in <pre> are meant
// to be there.
func (r *reader) html(n *ast.HTMLBlock) {
	if n.HTMLBlockType != ast.HTMLBlockType6 && n.HTMLBlockType != ast.HTMLBlockType7 {
		return
	}
	inComment := false
	for i, line := range r.textLines(n) {
		if !inComment && addressed(line) {
			r.drawn(line, n.Lines().At(i).Start, "drawn into the HTML above it")
		}
		inComment = commentOpen([]byte(line), inComment)
	}
}

var (
	commentStart = []byte("<!--")
	commentEnd   = []byte("-->")
)

// commentOpen reports whether an HTML comment is open behind s; inside says
// whether one is open in front of it.
func commentOpen(s []byte, inside bool) bool {
	for {
		if inside {
			i := bytes.Index(s, commentEnd)
			if i < 0 {
				return true
			}
			s, inside = s[i+len(commentEnd):], false
		}
		i := bytes.Index(s, commentStart)
		if i < 0 {
			return false
		}
		// "<!-->" and "<!--->" are whole comments: the end may share the
		// start's dashes.
		s, inside = s[i+len("<!"):], true
	}
}

// hiddenFrom gives the offset behind which a page shows nothing, because an
// HTML comment that begins there is never closed; it reaches beyond the block,
// the list and the quote in which it stands. Where there is none, it gives the
// greatest int.
func hiddenFrom(doc ast.Node, source []byte) int {
	hidden := math.MaxInt
	_ = ast.Walk(doc, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if n.Type() == ast.TypeInline {
			return ast.WalkSkipChildren, nil
		}
		h, ok := n.(*ast.HTMLBlock)
		if !ok || !entering {
			return ast.WalkContinue, nil
		}
		switch h.HTMLBlockType {
		case ast.HTMLBlockType2, ast.HTMLBlockType6, ast.HTMLBlockType7:
		default:
			return ast.WalkContinue, nil
		}
		open := false
		for i := range h.Lines().Len() {
			s := h.Lines().At(i)
			open = commentOpen(s.Value(source), open)
		}
		if h.HasClosure() {
			open = commentOpen(h.ClosureLine.Value(source), open)
		}
		if open {
			hidden = h.Lines().At(0).Start + 1
			return ast.WalkStop, nil
		}
		return ast.WalkContinue, nil
	})
	return hidden
}
