package templates

import (
	"fmt"
	"slices"
	"strings"
)

// rejections shows, once, what of the whole text answered could not be taken:
// a table with the lines, and the cures in one fence, which works as pasted
// because a comment may hold several commands. Cures that already stand in
// the answer are not said again.
func (w *viewer) rejections(before string) string {
	if len(w.a.Rejections) == 0 {
		return ""
	}
	var b strings.Builder
	b.WriteString("| line | not taken, because |\n|---:|---|\n")
	shown, left := head(w.a.Rejections, w.lim.rows)
	var cures []string
	for _, rej := range shown {
		line := "–"
		if rej.Line > 0 {
			line = fmt.Sprint(rej.Line)
		}
		b.WriteString(row(line, capital(Words(rej.Why))) + "\n")
		cure := clean(rej.Suggestion)
		known := cure == "" || len(cure) > w.lim.post || slices.Contains(cures, cure) ||
			strings.Contains(before, "`\n"+cure+"\n")
		if !known && len(cures) < maxCures {
			cures = append(cures, cure)
		}
	}
	if left > 0 {
		fmt.Fprintf(&b, "\nand %d more.\n", left)
	}
	if len(cures) > 0 {
		b.WriteString("\nPost instead, in a new comment:\n")
		b.WriteString(fenceLines(cures))
	}
	return strings.TrimRight(b.String(), "\n")
}

// maxCures is how many commands one comment may hold (page 2.2 of the
// design); pasting more would be refused.
const maxCures = 20

// fenceLines is fence for several lines.
func fenceLines(lines []string) string {
	text := strings.Join(lines, "\n")
	ticks := strings.Repeat("`", max(3, 1+longestRun(text, '`')))
	return ticks + "\n" + text + "\n" + ticks
}
