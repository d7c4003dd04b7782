package playbook

import (
	"fmt"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// parseJSONC reads JSON as people write it: with // and /* */ comments and
// trailing commas, several documents one after another. It is a reader of our
// own because encoding/json keeps neither lines nor repeated keys, and because
// a YAML parser stumbles over JSON's surrogate pairs.
func parseJSONC(text string) ([]node, *syntaxError) {
	p := &jsonParser{text: text, line: 1}
	var docs []node
	for {
		if err := p.space(); err != nil {
			return nil, err
		}
		if p.pos == len(p.text) {
			return docs, nil
		}
		n, err := p.value(0)
		if err != nil {
			return nil, err
		}
		docs = append(docs, n)
	}
}

type jsonParser struct {
	text            string
	pos             int
	line, lineStart int
}

func (p *jsonParser) fail(format string, args ...any) *syntaxError {
	col := 1
	if p.pos <= len(p.text) && p.lineStart <= p.pos {
		col = utf8.RuneCountInString(p.text[p.lineStart:p.pos]) + 1
	}
	return &syntaxError{line: p.line, col: col, why: fmt.Sprintf(format, args...)}
}

func (p *jsonParser) peek() byte {
	if p.pos < len(p.text) {
		return p.text[p.pos]
	}
	return 0
}

func (p *jsonParser) newline() { p.line++; p.lineStart = p.pos }

// space skips white space and comments.
func (p *jsonParser) space() *syntaxError {
	for p.pos < len(p.text) {
		rest := p.text[p.pos:]
		switch c := rest[0]; {
		case c == '\n':
			p.pos++
			p.newline()
		case c == ' ' || c == '\t' || c == '\r':
			p.pos++
		case strings.HasPrefix(rest, "\ufeff"):
			p.pos += len("\ufeff")
		case strings.HasPrefix(rest, "\u00a0"):
			p.pos += len("\u00a0")
		case strings.HasPrefix(rest, "//"):
			end := strings.IndexByte(rest, '\n')
			if end < 0 {
				end = len(rest)
			}
			p.pos += end
		case strings.HasPrefix(rest, "/*"):
			end := strings.Index(rest, "*/")
			if end < 0 {
				return p.fail("a comment is not closed")
			}
			for stop := p.pos + end + 2; p.pos < stop; {
				p.pos++
				if p.text[p.pos-1] == '\n' {
					p.newline()
				}
			}
		default:
			return nil
		}
	}
	return nil
}

func (p *jsonParser) value(depth int) (node, *syntaxError) {
	if depth > maxDepth {
		return node{}, p.fail("nested deeper than %d", maxDepth)
	}
	n := node{line: p.line}
	switch c := p.peek(); {
	case c == '{':
		n.kind = objectNode
		err := p.members('}', func() *syntaxError {
			f, err := p.member(depth)
			n.fields = append(n.fields, f)
			return err
		})
		return n, err
	case c == '[':
		n.kind = listNode
		err := p.members(']', func() *syntaxError {
			item, err := p.value(depth + 1)
			n.items = append(n.items, item)
			return err
		})
		return n, err
	case c == '"':
		s, err := p.str()
		n.tag, n.text = "!!str", s
		return n, err
	default:
		return p.word(n)
	}
}

// members reads the inside of an object or list, up to and with its closer.
func (p *jsonParser) members(closer byte, one func() *syntaxError) *syntaxError {
	p.pos++
	for {
		if err := p.space(); err != nil {
			return err
		}
		if p.peek() == closer {
			p.pos++
			return nil
		}
		if p.pos == len(p.text) {
			return p.fail("ends before its %q", string(closer))
		}
		if err := one(); err != nil {
			return err
		}
		if err := p.space(); err != nil {
			return err
		}
		switch p.peek() {
		case ',':
			p.pos++
		case closer:
		default:
			return p.fail("a comma or %q is missing", string(closer))
		}
	}
}

func (p *jsonParser) member(depth int) (field, *syntaxError) {
	f := field{line: p.line}
	if p.peek() != '"' {
		return f, p.fail("a key in double quotes is missing")
	}
	var err *syntaxError
	if f.name, err = p.str(); err != nil {
		return f, err
	}
	if err = p.space(); err != nil {
		return f, err
	}
	if p.peek() != ':' {
		return f, p.fail("a colon is missing")
	}
	p.pos++
	if err = p.space(); err != nil {
		return f, err
	}
	f.value, err = p.value(depth + 1)
	return f, err
}

// word reads a number, true, false or null, and keeps its text.
func (p *jsonParser) word(n node) (node, *syntaxError) {
	start := p.pos
	for p.pos < len(p.text) && strings.IndexByte(" \t\r\n,:{}[]\"/", p.text[p.pos]) < 0 {
		p.pos++
	}
	n.text = p.text[start:p.pos]
	switch n.text {
	case "null":
		n.kind, n.text = nullNode, ""
	case "true", "false":
		n.tag = "!!bool"
	default:
		if !jsonNumber(n.text) {
			p.pos = start
			return n, p.fail("a value is missing, or not in double quotes")
		}
		n.tag = "!!float"
		if strings.Trim(n.text, "-0123456789") == "" {
			n.tag = "!!int"
		}
	}
	return n, nil
}

func jsonNumber(s string) bool {
	digits := strings.TrimLeft(strings.TrimPrefix(s, "-"), "0123456789")
	return s != "" && s != "-" && strings.IndexByte("0123456789", strings.TrimPrefix(s, "-")[0]) >= 0 &&
		strings.Trim(digits, "0123456789.eE+-") == ""
}

// str reads a string in double quotes. A line end inside one is what a missing
// quote looks like, and is refused on that line.
func (p *jsonParser) str() (string, *syntaxError) {
	open := p.pos
	p.pos++
	var b strings.Builder
	for p.pos < len(p.text) {
		switch c := p.text[p.pos]; c {
		case '"':
			p.pos++
			return strings.ToValidUTF8(b.String(), "\ufffd"), nil
		case '\n', '\r':
			p.pos = open
			return "", p.fail("a double quote is not closed on its line")
		case '\\':
			if err := p.escape(&b); err != nil {
				return "", err
			}
		default:
			b.WriteByte(c)
			p.pos++
		}
	}
	p.pos = open
	return "", p.fail("a double quote is not closed")
}

func (p *jsonParser) escape(b *strings.Builder) *syntaxError {
	if p.pos+1 >= len(p.text) {
		return p.fail("ends in an escape")
	}
	c := p.text[p.pos+1]
	if i := strings.IndexByte(`"\/bfnrt`, c); i >= 0 {
		b.WriteByte("\"\\/\b\f\n\r\t"[i])
		p.pos += 2
		return nil
	}
	r, ok := p.hex4(p.pos)
	if !ok {
		return p.fail("an escape that JSON does not know")
	}
	p.pos += 6
	if utf16.IsSurrogate(r) {
		low, ok := p.hex4(p.pos)
		pair := utf16.DecodeRune(r, low)
		if ok && pair != utf8.RuneError {
			p.pos += 6
		}
		r = pair
	}
	b.WriteRune(r)
	return nil
}

// hex4 reads \uXXXX at a position.
func (p *jsonParser) hex4(at int) (rune, bool) {
	if at+6 > len(p.text) || p.text[at:at+2] != `\u` {
		return 0, false
	}
	var r rune
	for _, c := range []byte(p.text[at+2 : at+6]) {
		d := strings.IndexByte("0123456789abcdef0123456789ABCDEF", c)
		if d < 0 {
			return 0, false
		}
		r = r<<4 | rune(d&15)
	}
	return r, true
}
