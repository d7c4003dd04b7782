package playbook

import (
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"

	yaml "go.yaml.in/yaml/v3"
)

// nodeKind sorts the values of a document.
type nodeKind uint8

const (
	scalarNode nodeKind = iota
	nullNode
	listNode
	objectNode
)

// maxDepth bounds how deep a document may nest; nothing we read nests deeper
// than five.
const maxDepth = 32

// node is a value of a JSON or YAML document that has kept its line, the text
// of its scalars and repeated keys: all three are lost where a decoder fills
// Go values, and all three are needed for honest rejections.
type node struct {
	kind   nodeKind
	tag    string // "!!str", "!!int", "!!bool", …; scalars only
	text   string // scalars only, exactly as meant (no number rounding)
	line   int    // from 1
	items  []node
	fields []field
}

// field is one key of an object, in the order written.
type field struct {
	name  string
	line  int
	value node
}

// repeated gives the second occurrence of a key that stands twice.
func (n *node) repeated() (field, bool) {
	seen := make(map[string]struct{}, len(n.fields))
	for _, f := range n.fields {
		if _, ok := seen[f.name]; ok {
			return f, true
		}
		seen[f.name] = struct{}{}
	}
	return field{}, false
}

// syntaxError is why a text is no document. col is 0 where the parser has none.
type syntaxError struct {
	line, col int
	why       string
}

func (e *syntaxError) Error() string {
	if e.col > 0 {
		return fmt.Sprintf("line %d, column %d: %s", e.line, e.col, e.why)
	}
	return fmt.Sprintf("line %d: %s", e.line, e.why)
}

// parseYAML reads all documents of a YAML text. Anchors and aliases are
// refused: a record has no use for them, and they are how a small text becomes
// a large one.
func parseYAML(text string) ([]node, *syntaxError) {
	if line := tooDeep(text); line > 0 {
		return nil, &syntaxError{line: line, why: fmt.Sprintf("more than %d brackets are open", 2*maxDepth)}
	}
	dec := yaml.NewDecoder(strings.NewReader(text))
	var docs []node
	for {
		var doc yaml.Node
		err := dec.Decode(&doc)
		if errors.Is(err, io.EOF) {
			return docs, nil
		}
		if err != nil {
			return nil, yamlError(text, err)
		}
		if len(docs) == 1000 {
			return nil, &syntaxError{line: max(doc.Line, 1), why: "more than 1000 documents"}
		}
		n, serr := fromYAML(&doc, 0)
		if serr != nil {
			return nil, serr
		}
		docs = append(docs, n)
	}
}

// tooDeep gives the line on which more brackets are open than any record has;
// 0 where there is none. The parser would find out in quadratic time, seconds
// for 128 KiB. Brackets inside text count too: nobody's reason has 64 open.
func tooDeep(text string) int {
	open := 0
	for i := range len(text) {
		switch text[i] {
		case '{', '[':
			if open++; open > 2*maxDepth {
				return 1 + strings.Count(text[:i], "\n")
			}
		case '}', ']':
			open = max(0, open-1)
		}
	}
	return 0
}

func fromYAML(y *yaml.Node, depth int) (node, *syntaxError) {
	n := node{line: max(y.Line, 1)}
	switch {
	case depth > maxDepth:
		return n, &syntaxError{line: n.line, why: fmt.Sprintf("nested deeper than %d", maxDepth)}
	case y.Kind == yaml.AliasNode || y.Anchor != "":
		return n, &syntaxError{line: n.line, why: "anchors and aliases are not read; write the value out"}
	}
	switch y.Kind {
	case yaml.DocumentNode:
		if len(y.Content) == 0 {
			n.kind = nullNode
			return n, nil
		}
		return fromYAML(y.Content[0], depth)
	case yaml.SequenceNode:
		n.kind = listNode
		for _, c := range y.Content {
			item, err := fromYAML(c, depth+1)
			if err != nil {
				return n, err
			}
			n.items = append(n.items, item)
		}
	case yaml.MappingNode:
		n.kind = objectNode
		for i := 0; i+1 < len(y.Content); i += 2 {
			key, err := fromYAML(y.Content[i], depth+1)
			if err != nil {
				return n, err
			}
			value, err := fromYAML(y.Content[i+1], depth+1)
			if err != nil {
				return n, err
			}
			n.fields = append(n.fields, field{name: key.text, line: key.line, value: value})
		}
	default:
		n.tag, n.text = y.ShortTag(), y.Value
		if n.tag == "!!null" {
			n.kind, n.text = nullNode, ""
		}
	}
	return n, nil
}

var yamlLine = regexp.MustCompile(`^yaml: (?:line (\d+): )?(.*)$`)

// yamlError gives the parser's complaint with a line that is true. The
// parser's own is the start of the enclosing block, or one too small, so it is
// checked against the text where that is short enough to parse again.
func yamlError(text string, err error) *syntaxError {
	e := &syntaxError{line: 1, why: "is no YAML"}
	if m := yamlLine.FindStringSubmatch(err.Error()); m != nil {
		if l, aerr := strconv.Atoi(m[1]); aerr == nil {
			e.line = l
		}
		e.why = plain(m[2], 120)
	}
	lines := strings.SplitAfter(text, "\n")
	if n := len(lines); n > 1 && lines[n-1] == "" {
		lines = lines[:n-1]
	}
	if len(text) <= 8<<10 {
		e.line = firstBadLine(lines)
	}
	e.line = min(max(e.line, 1), len(lines))
	return e
}

// firstBadLine finds the line that ends what can be parsed: the first with
// which, and with everything after which, the text is no YAML. A multi-line
// value that is still open breaks the text and mends it again, hence the look
// ahead.
func firstBadLine(lines []string) int {
	good, bad := 0, len(lines)
	for range 8 {
		for bad-good > 1 {
			if mid := (good + bad) / 2; parses(lines[:mid]) {
				good = mid
			} else {
				bad = mid
			}
		}
		mended := 0
		for k := bad + 1; k < len(lines) && k <= bad+20; k++ {
			if parses(lines[:k]) {
				mended = k
			}
		}
		if mended == 0 {
			break
		}
		good, bad = mended, len(lines)
	}
	return bad
}

func parses(lines []string) bool {
	dec := yaml.NewDecoder(strings.NewReader(strings.Join(lines, "")))
	for {
		var n yaml.Node
		if err := dec.Decode(&n); err != nil {
			return errors.Is(err, io.EOF)
		}
	}
}
