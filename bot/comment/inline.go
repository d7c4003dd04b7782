package comment

import (
	"bytes"
	"sort"

	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/text"
)

// span is a range of offsets in the source.
type span struct{ start, stop int }

// covered lists, in order, the ranges of a paragraph that the page does not
// show as its text: code spans, raw HTML with its comments, the text, target
// and title of links, and reference definitions. A line that begins inside one
// of them begins no command.
func covered(n ast.Node, source []byte) spans {
	out := inlineSpans(n)
	lines := n.Lines()
	out = append(out, linkSpans(lines, source, out)...)
	if end := definitions(lines, source); end > lines.At(0).Start {
		out = append(out, span{lines.At(0).Start, end})
	}
	sort.Slice(out, func(i, j int) bool { return out[i].start < out[j].start })
	return out.merge()
}

type spans []span

// merge joins what overlaps, so that contains can search.
func (s spans) merge() spans {
	out := s[:0]
	for _, r := range s {
		if k := len(out); k > 0 && r.start < out[k-1].stop {
			out[k-1].stop = max(out[k-1].stop, r.stop)
			continue
		}
		out = append(out, r)
	}
	return out
}

// contains reports whether offset lies inside a range and not at its start.
func (s spans) contains(offset int) bool {
	i := sort.Search(len(s), func(i int) bool { return s[i].stop > offset })
	return i < len(s) && s[i].start < offset
}

// inlineSpans are the code spans and raw HTML that goldmark found, in order.
func inlineSpans(n ast.Node) spans {
	var out spans
	for c := n.FirstChild(); c != nil; c = c.NextSibling() {
		switch c := c.(type) {
		case *ast.CodeSpan:
			first, okFirst := c.FirstChild().(*ast.Text)
			last, okLast := c.LastChild().(*ast.Text)
			if okFirst && okLast {
				// The backticks before it do not matter: nobody asks for them.
				out = append(out, span{first.Segment.Start - 1, last.Segment.Stop})
			}
		case *ast.RawHTML:
			if k := c.Segments.Len(); k > 0 {
				out = append(out, span{c.Segments.At(0).Start, c.Segments.At(k - 1).Stop})
			}
		}
	}
	return out
}

// linkSpans finds the links of a paragraph, "[text](target "title")" and
// "[text][label]", in one pass. It takes for a link what may be none (a
// "[text][label]" whose label is defined nowhere): then a line inside the
// brackets is lost, which is the safe side.
func linkSpans(lines *text.Segments, source []byte, skip spans) spans {
	var out spans
	var open []int // offsets of the brackets not yet closed
	p := para{lines, source}
	for i := range lines.Len() {
		s := lines.At(i)
		for pos := s.Start; pos < s.Stop; pos++ {
			if len(skip) > 0 && pos >= skip[0].stop {
				skip = skip[1:]
			}
			if len(skip) > 0 && pos > skip[0].start {
				continue
			}
			switch source[pos] {
			case '\\':
				pos++
			case '[':
				open = append(open, pos)
			case ']':
				if len(open) == 0 {
					continue
				}
				start := open[len(open)-1]
				open = open[:len(open)-1]
				if stop, ok := p.linkTail(i, pos+1); ok {
					out = append(out, span{start, stop})
				}
			}
		}
	}
	return out
}

// para reads across the lines of a paragraph.
type para struct {
	lines  *text.Segments
	source []byte
}

// cursor is a place in a paragraph: a line, and an offset in it.
type cursor struct{ line, pos int }

// byte gives the byte at a cursor, 0 at the paragraph's end.
func (p para) byte(c cursor) byte {
	if c.line >= p.lines.Len() || c.pos >= p.lines.At(c.line).Stop {
		return 0
	}
	return p.source[c.pos]
}

func (p para) next(c cursor) cursor {
	c.pos++
	if c.pos >= p.lines.At(c.line).Stop && c.line+1 < p.lines.Len() {
		return cursor{c.line + 1, p.lines.At(c.line + 1).Start}
	}
	return c
}

// space skips blanks and at most one line end.
func (p para) space(c cursor) cursor {
	ends := 0
	for {
		switch p.byte(c) {
		case '\n':
			if ends++; ends > 1 {
				return c
			}
		case ' ', '\t':
		default:
			return c
		}
		c = p.next(c)
	}
}

// linkTail reads what makes a link of "[text]": a target in parentheses, or a
// label. It gives the offset behind it.
func (p para) linkTail(line, pos int) (stop int, ok bool) {
	c := cursor{line, pos}
	switch p.byte(c) {
	case '[':
		for range 1000 { // a label has at most 999 characters
			c = p.next(c)
			switch p.byte(c) {
			case ']':
				return c.pos + 1, true
			case '[', 0:
				return 0, false
			}
		}
		return 0, false
	case '(':
		c = p.space(p.next(c))
		c, _ = p.target(c, true)
		c = p.space(c)
		if after, ok := p.title(c); ok {
			c = p.space(after)
		}
		return c.pos + 1, p.byte(c) == ')'
	}
	return 0, false
}

// target skips a link's target. Inside parentheses, its own parentheses must
// balance.
func (p para) target(c cursor, inParens bool) (cursor, bool) {
	start := c
	if p.byte(c) == '<' {
		for c = p.next(c); ; c = p.next(c) {
			switch p.byte(c) {
			case '>':
				return p.next(c), true
			case '<', '\n', 0:
				return start, false
			case '\\':
				c = p.next(c)
			}
		}
	}
	depth := 0
	for ; ; c = p.next(c) {
		switch b := p.byte(c); {
		case b <= ' ':
			return c, c != start
		case b == '\\':
			if p.byte(p.next(c)) > ' ' {
				c = p.next(c)
			}
		case b == '(':
			// As in cmark; without a limit "[a](" over and over is quadratic.
			if depth++; depth > 32 {
				return c, false
			}
		case b == ')':
			if inParens && depth == 0 {
				return c, c != start
			}
			depth--
		}
	}
}

// title skips a link's title, which may run over lines.
func (p para) title(c cursor) (cursor, bool) {
	closer := p.byte(c)
	switch closer {
	case '"', '\'':
	case '(':
		closer = ')'
	default:
		return c, false
	}
	for c = p.next(c); ; c = p.next(c) {
		switch b := p.byte(c); b {
		case closer:
			return p.next(c), true
		case '\\':
			c = p.next(c)
		case 0:
			return c, false
		case '(':
			if closer == ')' {
				return c, false
			}
		}
	}
}

// definitions gives the offset behind the link reference definitions with
// which a paragraph begins. The page shows nothing of them.
func definitions(lines *text.Segments, source []byte) int {
	p := para{lines, source}
	c := cursor{0, lines.At(0).Start}
	end := c.pos
	for p.byte(c) == '[' {
		after, ok := p.definition(c)
		if !ok {
			break
		}
		c, end = after, after.pos
	}
	return end
}

func (p para) definition(c cursor) (cursor, bool) {
	blank := true
	for n := 0; ; n++ {
		c = p.next(c)
		b := p.byte(c)
		if b == ']' {
			break
		}
		if b == 0 || b == '[' || n > 999 {
			return c, false
		}
		if b == '\\' {
			c = p.next(c)
		}
		blank = blank && b <= ' '
	}
	c = p.next(c)
	if blank || p.byte(c) != ':' {
		return c, false
	}
	c, ok := p.target(p.space(p.next(c)), false)
	if !ok {
		return c, false
	}
	bare, endsLine := p.lineEnd(c)
	if after, ok := p.title(p.space(c)); ok && p.space(c) != c {
		if after, ok := p.lineEnd(after); ok {
			return after, true
		}
	}
	return bare, endsLine
}

// lineEnd skips blanks up to the line's end, and reports whether there was
// nothing else.
func (p para) lineEnd(c cursor) (cursor, bool) {
	for p.byte(c) == ' ' || p.byte(c) == '\t' {
		c = p.next(c)
	}
	switch p.byte(c) {
	case '\n':
		return p.next(c), true
	case 0:
		return c, true
	}
	return c, false
}

// isLabel reports whether a line is "[label]:" and nothing else: what follows
// on the next line would be the target of a reference definition.
func isLabel(line []byte) bool {
	line = bytes.TrimSpace(line)
	return len(line) > 3 && line[0] == '[' && bytes.HasSuffix(line, []byte("]:")) &&
		!bytes.ContainsAny(line[1:len(line)-2], "[]")
}
