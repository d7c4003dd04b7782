package comment

import (
	"bytes"
	"slices"

	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"
)

// The limits of nesting. Nobody writes such texts by hand; goldmark's cost is
// the product of lines and open containers, in time and in memory.
const (
	maxDepth  = 32      // containers within each other (quotes, lists)
	maxIndent = 200     // columns before a line's first character, outside code
	maxWork   = 200_000 // lines times the containers open on them
)

// markdown reads the block structure, code spans and raw HTML, and nothing
// else. Links, reference definitions and tables are left out because they are
// quadratic in goldmark (64 KiB of one wide table takes 17 s and 7 GB); what of
// them decides whether a line may run is read in inline.go and table.go.
// Safe for concurrent use.
var markdown = parser.NewParser(
	parser.WithBlockParsers(
		util.Prioritized(parser.NewSetextHeadingParser(), 100),
		util.Prioritized(parser.NewThematicBreakParser(), 200),
		util.Prioritized(container{parser.NewListParser()}, 300),
		util.Prioritized(container{parser.NewListItemParser()}, 400),
		util.Prioritized(parser.NewCodeBlockParser(), 500),
		util.Prioritized(parser.NewATXHeadingParser(), 600),
		util.Prioritized(parser.NewFencedCodeBlockParser(), 700),
		util.Prioritized(container{parser.NewBlockquoteParser()}, 800),
		util.Prioritized(parser.NewHTMLBlockParser(), 900),
		util.Prioritized(parser.NewParagraphParser(), 1000),
	),
	parser.WithInlineParsers(
		util.Prioritized(codeSpan{parser.NewCodeSpanParser()}, 100),
		util.Prioritized(parser.NewRawHTMLParser(), 400),
	),
)

var (
	nestingKey  = parser.NewContextKey()
	backtickKey = parser.NewContextKey()
)

// nesting is the budget of one parse.
type nesting struct {
	work int
	// tooDeep is the offset at which a limit was passed, -1 while none was.
	tooDeep int
}

// container guards a block parser that holds other blocks. A limit on the
// markers of each line by itself would not do: depth adds up over lines, and
// every blank line costs as much as there are containers open.
type container struct{ parser.BlockParser }

func (c container) Open(parent ast.Node, reader text.Reader, pc parser.Context) (ast.Node, parser.State) {
	n := pc.Get(nestingKey).(*nesting)
	if n.tooDeep >= 0 {
		return nil, parser.NoChildren
	}
	node, state := c.BlockParser.Open(parent, reader, pc)
	if node == nil {
		return nil, state
	}
	if _, list := node.(*ast.List); !list && depth(parent) >= maxDepth {
		_, at := reader.Position()
		n.tooDeep = at.Start
	}
	return node, state
}

func depth(n ast.Node) int {
	d := 0
	for ; n != nil; n = n.Parent() {
		switch n.Kind() {
		case ast.KindBlockquote, ast.KindListItem:
			d++
		}
	}
	return d
}

func (c container) Continue(node ast.Node, reader text.Reader, pc parser.Context) parser.State {
	n := pc.Get(nestingKey).(*nesting)
	if n.work++; n.work > maxWork && n.tooDeep < 0 {
		_, at := reader.Position()
		n.tooDeep = at.Start
	}
	if n.tooDeep >= 0 {
		return parser.Close
	}
	return c.BlockParser.Continue(node, reader, pc)
}

// codeSpan looks whether a run of backticks has a partner before it lets
// goldmark search for it: goldmark searches to the end of the block for every
// run of another length, and keeps a node for every line on the way.
type codeSpan struct{ parser.InlineParser }

// lastRuns gives, for each length of a run of backticks in one block, where
// the last such run begins.
type lastRuns struct {
	block ast.Node
	at    map[int]int
}

func (c codeSpan) Parse(parent ast.Node, block text.Reader, pc parser.Context) ast.Node {
	line, seg := block.PeekLine()
	n := 0
	for n < len(line) && line[n] == '`' {
		n++
	}
	runs, _ := pc.Get(backtickKey).(*lastRuns)
	if runs == nil || runs.block != parent {
		runs = &lastRuns{parent, backtickRuns(parent.Lines(), block.Source())}
		pc.Set(backtickKey, runs)
	}
	if runs.at[n] <= seg.Start {
		block.Advance(n)
		return ast.NewTextSegment(seg.WithStop(seg.Start + n))
	}
	return c.InlineParser.Parse(parent, block, pc)
}

func backtickRuns(lines *text.Segments, source []byte) map[int]int {
	at := map[int]int{}
	for i := range lines.Len() {
		s := lines.At(i)
		for p := s.Start; p < s.Stop; p++ {
			if source[p] != '`' {
				continue
			}
			start := p
			for p < s.Stop && source[p] == '`' {
				p++
			}
			at[p-start] = start
		}
	}
	return at
}

// parseMarkdown gives the tree, and the offset at which the text is nested too
// deeply to go on, -1 if it is not.
func parseMarkdown(source []byte, lines lineIndex) (ast.Node, int) {
	n := &nesting{tooDeep: -1}
	pc := parser.NewContext()
	pc.Set(nestingKey, n)
	doc := markdown.Parse(text.NewReader(source), parser.WithContext(pc))
	if n.tooDeep >= 0 {
		return doc, n.tooDeep
	}
	return doc, tooIndented(doc, source, lines)
}

// tooIndented finds the first line outside fenced code that is indented by
// more than maxIndent columns, and gives its offset, -1 if there is none.
func tooIndented(doc ast.Node, source []byte, lines lineIndex) int {
	var fenced map[int]bool
	for i, start := range lines {
		end := len(source)
		if i+1 < len(lines) {
			end = lines[i+1]
		}
		if end-start <= maxIndent/4 || !wide(source[start:end]) {
			continue
		}
		if fenced == nil {
			fenced = fencedLines(doc, lines)
		}
		if !fenced[i+1] {
			return start
		}
	}
	return -1
}

// wide reports whether a line that is not blank begins behind column maxIndent.
func wide(line []byte) bool {
	w := 0
	for _, c := range line {
		switch c {
		case ' ':
			w++
		case '\t':
			w += util.TabWidth(w)
		case '\n':
			return false
		default:
			return w > maxIndent
		}
	}
	return false
}

// fencedLines are the numbers of the lines inside fences.
func fencedLines(doc ast.Node, lines lineIndex) map[int]bool {
	in := map[int]bool{}
	_ = ast.Walk(doc, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if n.Type() == ast.TypeInline {
			return ast.WalkSkipChildren, nil
		}
		if entering && n.Kind() == ast.KindFencedCodeBlock {
			for i := range n.Lines().Len() {
				in[lines.at(n.Lines().At(i).Start)] = true
			}
		}
		return ast.WalkContinue, nil
	})
	return in
}

// lineIndex holds the offset at which each line begins.
type lineIndex []int

func indexLines(source []byte) lineIndex {
	idx := make(lineIndex, 1, 1+bytes.Count(source, []byte{'\n'}))
	for i, c := range source {
		if c == '\n' && i+1 < len(source) {
			idx = append(idx, i+1)
		}
	}
	return idx
}

// at gives the number, from 1, of the line that holds the offset.
func (l lineIndex) at(offset int) int {
	i, found := slices.BinarySearch(l, offset)
	if found {
		return i + 1
	}
	return max(i, 1)
}
