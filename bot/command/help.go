package command

import "strings"

// MarkdownTable is the README's section on the commands, made from the table.
func MarkdownTable() string {
	var b strings.Builder
	b.WriteString("| command | what it does | who | for example |\n|---|---|---|---|\n")
	for _, s := range Table {
		for _, cell := range []string{"`" + s.Synopsis() + "`", s.Summary, s.Who, "`" + s.Examples[0] + "`"} {
			b.WriteString("| " + strings.ReplaceAll(cell, "|", `\|`) + " ")
		}
		b.WriteString("|\n")
	}
	return b.String()
}
