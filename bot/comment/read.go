package comment

import (
	"bytes"
	"strings"
	"unicode"

	"github.com/yuin/goldmark/ast"

	"playbook-bot/bot/command"
	"playbook-bot/playbook"
)

// reader walks one parsed text.
type reader struct {
	o     Options
	src   []byte
	lines lineIndex
	out   Read
	// hidden is the offset from which on the page shows nothing.
	hidden int
	form   *formReader // nil: no form
	// tried counts the attempts written, taken or not; triedLine is where the
	// first too many stands.
	tried, triedLine int
}

// document reads all blocks, in order.
func (r *reader) document(doc ast.Node) {
	r.hidden = hiddenFrom(doc, r.src)
	if r.o.Issue {
		r.form = r.findForm(doc)
	}
	for n := doc.FirstChild(); n != nil; n = n.NextSibling() {
		if r.form == nil || !r.form.enter(r, n) {
			r.block(n, false)
		}
	}
	if r.form != nil {
		r.form.finish(r)
	}
	r.fencedCommands(doc)
}

// full reports whether the text has more than may be taken; it is refused
// then, and reading on is idle.
func (r *reader) full() bool {
	return len(r.out.Commands) > MaxCommands || r.tried > MaxRecords
}

// block reads a block and what it holds. quoted is true inside a quote:
// whatever stands there are other people's words.
func (r *reader) block(n ast.Node, quoted bool) {
	if r.full() || start(n) >= r.hidden {
		return
	}
	switch n := n.(type) {
	case *ast.Paragraph, *ast.TextBlock:
		r.paragraph(n, quoted)
	case *ast.Heading:
		r.heading(n, quoted)
	case *ast.FencedCodeBlock:
		if !quoted {
			r.fence(n)
		}
	case *ast.HTMLBlock:
		if !quoted {
			r.html(n)
		}
	case *ast.Blockquote:
		r.children(n, true)
	case *ast.List, *ast.ListItem:
		r.children(n, quoted)
	}
}

func (r *reader) children(n ast.Node, quoted bool) {
	for c := n.FirstChild(); c != nil; c = c.NextSibling() {
		r.block(c, quoted)
	}
}

// start is the offset of a block's first line of text. For a container it is
// 0: its blocks are asked one by one.
func start(n ast.Node) int {
	if n.Lines().Len() == 0 {
		return 0
	}
	return n.Lines().At(0).Start
}

// textLines gives a block's lines without their ends.
func (r *reader) textLines(n ast.Node) []string {
	out := make([]string, n.Lines().Len())
	for i := range out {
		s := n.Lines().At(i)
		out[i] = string(bytes.TrimRight(s.Value(r.src), "\n"))
	}
	return out
}

// paragraph reads the lines of a paragraph: commands, and a table. It may have
// become a heading by the line under it.
func (r *reader) paragraph(n ast.Node, quoted bool) {
	lines := r.textLines(n)
	table := tableAt(lines)
	_, heading := n.(*ast.Heading)
	var hidden spans
	looked := false
	for i, line := range lines {
		if r.full() {
			return
		}
		at := n.Lines().At(i).Start
		if !addressed(line) {
			if r.form != nil && !quoted && !heading && (table < 0 || i < table) {
				r.form.line(r, n, i, line)
			}
			continue
		}
		lazy := quoted && r.lazy(at)
		if quoted && !lazy {
			continue
		}
		if i > 0 {
			if !looked {
				hidden, looked = covered(n, r.src), true
			}
			if hidden.contains(at) || isLabel([]byte(lines[i-1])) {
				continue
			}
		}
		if i < len(lines)-1 {
			line = strings.TrimSuffix(line, `\`) // a hard line break
		}
		switch {
		case lazy:
			r.drawn(line, at, "drawn into the quote above it")
		case table >= 0 && i >= table:
			r.drawn(line, at, "drawn into the table it touches")
		case heading:
			r.drawn(line, at, "made a heading by the line under it")
		default:
			r.command(line, r.lines.at(at))
		}
	}
	if table >= 0 && !quoted {
		r.table(n, lines, table)
	}
}

// addressed reports whether a line may begin with a command or the bot's
// name; it is quick, since nearly no line does.
func addressed(line string) bool {
	for _, c := range line {
		switch {
		case c == '/' || c == '@':
			return true
		case c > unicode.MaxASCII:
			// Perhaps one of the characters that vanish in front of it.
			word := command.Clean(line[:min(len(line), 256)])
			return strings.HasPrefix(word, "/") || strings.HasPrefix(word, "@")
		case !unicode.IsSpace(c):
			return false
		}
	}
	return false
}

// lazy reports whether a line in a quote carries no quote mark itself.
func (r *reader) lazy(at int) bool {
	return bytes.IndexByte(r.src[r.lines[r.lines.at(at)-1]:at], '>') < 0
}

// heading reads a heading. A line with "---" under it is one by accident, and
// a table above "---" is none: forges read tables first.
func (r *reader) heading(n *ast.Heading, quoted bool) {
	if n.Lines().Len() == 0 {
		return
	}
	first := n.Lines().At(0).Start
	if bytes.IndexByte(r.src[r.lines[r.lines.at(first)-1]:first], '#') < 0 {
		r.paragraph(n, quoted)
	}
}

// command takes a line that stands where commands run.
func (r *reader) command(line string, lineNo int) {
	inv, match := command.ParseLine(line, lineNo, r.o.Bot, r.o.Playbook)
	switch match {
	case command.Unclear:
		r.hint(lineNo, "`@"+r.o.Bot+"` is followed by nothing that the bot understands; it knows the commands listed by", "/playbook help")
	case command.Ours:
		if inv.Problem == nil && (inv.Name == "attempt" || inv.Name == "resolved") {
			inv.Problem = r.record(playbook.RawAttempt{
				Action: inv.Action, Outcome: inv.Outcome, Reason: inv.Reason, Target: inv.Target,
			}, lineNo, SourceCommand)
		} else if inv.Problem != nil {
			r.reject(lineNo, SourceCommand, *inv.Problem)
		}
		r.out.Commands = append(r.out.Commands, inv)
	}
}

// record takes an attempt into the log, or rejects it for every problem it
// has, and gives the first.
func (r *reader) record(raw playbook.RawAttempt, lineNo int, source string) *playbook.Problem {
	r.count(lineNo)
	a, notes, problems := r.o.Playbook.BuildAttemptRecord(raw, r.o.Context)
	if len(problems) > 0 {
		for _, p := range problems {
			r.reject(lineNo, source, p)
		}
		return &problems[0]
	}
	r.out.Records = append(r.out.Records, Record{Attempt: a, Line: lineNo, Source: source})
	r.out.Notes = append(r.out.Notes, notes...)
	return nil
}

// count counts an attempt that somebody wrote.
func (r *reader) count(lineNo int) {
	if r.tried++; r.tried == MaxRecords+1 {
		r.triedLine = lineNo
	}
}

func (r *reader) reject(lineNo int, source string, p playbook.Problem) {
	r.out.Rejections = append(r.out.Rejections, playbook.RejectedText{Line: lineNo, Source: source, Problem: p})
}
