package comment

import (
	"strings"

	"playbook-bot/playbook"
)

// maxColumns is the widest table that is read.
const maxColumns = 32

// tableAt finds the table in a paragraph's lines and gives the index of its
// header, -1 if there is none. The line above the first delimiter row that fits
// is the header, and every line below belongs to the table. GFM wants as
// many cells in the header as in the delimiter row; Gitea also takes fewer, and
// what one forge shows as a table must not run.
func tableAt(lines []string) int {
	for i := 1; i < len(lines); i++ {
		n := delimiterColumns(lines[i])
		if n == 0 {
			continue
		}
		if countCells(lines[i-1]) <= n {
			return i - 1
		}
	}
	return -1
}

// delimiterColumns counts the columns of a delimiter row, 0 where the line is
// none.
func delimiterColumns(line string) int {
	line = strings.TrimSpace(line)
	if line == "" || strings.Trim(line, "|:- \t") != "" || !strings.Contains(line, "-") {
		return 0
	}
	n := 0
	for cell := range strings.SplitSeq(strings.TrimSuffix(strings.TrimPrefix(line, "|"), "|"), "|") {
		cell = strings.TrimSpace(cell)
		cell = strings.TrimSuffix(strings.TrimPrefix(cell, ":"), ":")
		if cell == "" || strings.Trim(cell, "-") != "" {
			return 0
		}
		n++
	}
	return n
}

// row strips a row of the pipes at its ends.
func row(line string) string {
	line = strings.TrimPrefix(strings.TrimSpace(line), "|")
	if strings.HasSuffix(line, "|") && !strings.HasSuffix(line, `\|`) {
		line = line[:len(line)-1]
	}
	return line
}

func countCells(line string) int {
	line = row(line)
	n := 1
	for i := range len(line) {
		if line[i] == '|' && (i == 0 || line[i-1] != '\\') {
			n++
		}
	}
	return n
}

// splitRow gives a row's cells, at most limit of them; `\|` is a pipe.
func splitRow(line string, limit int) []string {
	line = row(line)
	var cells []string
	start := 0
	for i := 0; i <= len(line) && len(cells) < limit; i++ {
		if i == len(line) || line[i] == '|' && (i == 0 || line[i-1] != '\\') {
			cells = append(cells, strings.TrimSpace(strings.ReplaceAll(line[start:i], `\|`, "|")))
			start = i + 1
		}
	}
	return cells
}

// columns says which field each column of a header holds, "" for one that is
// none. about is false where the table is not about attempts; twice names a
// field that two columns hold.
func columns(header []string) (fields []string, about bool, twice string) {
	seen := map[string]bool{}
	for _, h := range header {
		f, ok := playbook.FieldName(plain(h))
		if !ok {
			f = ""
		}
		if f != "" && seen[f] {
			twice = f
		}
		seen[f] = true
		fields = append(fields, f)
	}
	return fields, seen["action"] && seen["outcome"], twice
}

// rawAttempt reads a row's cells by its columns. A dash is an absent field.
func rawAttempt(fields, cells []string) (raw playbook.RawAttempt, empty bool) {
	empty = true
	for i, f := range fields {
		if i >= len(cells) {
			break
		}
		value := cells[i]
		if f != "reason" {
			value = plain(value)
		}
		if strings.Trim(value, "-–— ") == "" {
			continue
		}
		switch f {
		case "":
			continue
		case "action":
			raw.Action = value
		case "outcome":
			raw.Outcome = value
		case "reason":
			raw.Reason = value
		case "actor":
			raw.Actor = value
		case "recorded_at":
			raw.RecordedAt = value
		case "target":
			raw.Target = value
		case "verified":
			raw.Verified = strings.EqualFold(value, "true") || strings.EqualFold(value, "yes")
		}
		empty = false
	}
	return raw, empty
}
