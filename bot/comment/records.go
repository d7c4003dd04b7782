package comment

import (
	"strconv"
	"strings"

	"github.com/yuin/goldmark/ast"

	"playbook-bot/bot/command"
	"playbook-bot/playbook"
)

// plain gives a cell or a field without the marks that only dress it.
func plain(s string) string {
	return strings.TrimSpace(strings.Trim(command.Clean(s), "`*"))
}

// fenceLang gives the language in which a fence's records are read, by its
// info string; ok is false for fences of other languages.
func fenceLang(info string) (lang string, ok bool) {
	lang, _, _ = strings.Cut(strings.TrimSpace(info), " ")
	switch lang = strings.ToLower(lang); lang {
	case "", "json", "yaml", "attempts":
		return lang, true
	case "yml":
		return "yaml", true
	case "jsonc", "json5":
		return "json", true // comments and trailing commas are read anyway
	}
	return "", false
}

// fence takes the records of a fenced block.
func (r *reader) fence(n *ast.FencedCodeBlock) {
	info := ""
	if n.Info != nil {
		info = string(n.Info.Segment.Value(r.src))
	}
	lang, ok := fenceLang(info)
	if !ok || n.Lines().Len() == 0 {
		return
	}
	r.attempts(string(n.Lines().Value(r.src)), lang, r.lines.at(n.Lines().At(0).Start), r.source(SourceFence))
}

// attempts takes what the playbook reads of a text whose first line is first,
// and reports whether the text is about attempts at all.
func (r *reader) attempts(text, lang string, first int, source string) bool {
	return r.taken(r.o.Playbook.ParseAttempts(shallow(text), lang, r.o.Context), first, source)
}

// maxFlow is how many brackets of a block may be open at once. A record needs
// none beyond its list.
const maxFlow = 64

// shallow cuts a text where more brackets are open than a list of records can
// need, so that it does not parse: the YAML parser's time is quadratic in them.
// Brackets inside words are not counted, those in quotes are.
func shallow(text string) string {
	open := 0
	for i := range len(text) {
		switch text[i] {
		case '{', '[':
			if i > 0 && strings.IndexByte(" \t\n,:-?[{\"'", text[i-1]) < 0 {
				continue
			}
			if open++; open > maxFlow {
				return text[:i+1]
			}
		case '}', ']':
			open = max(open-1, 0)
		}
	}
	return text
}

// taken takes what the playbook read of a text whose first line is first.
func (r *reader) taken(p playbook.ParsedAttempts, first int, source string) bool {
	if !p.About {
		return false
	}
	for _, a := range p.Attempts {
		line := first + max(a.Line, 1) - 1
		r.count(line)
		r.out.Records = append(r.out.Records, Record{Attempt: a.Attempt, Line: line, Source: source})
	}
	for _, x := range p.Rejections {
		line := first + max(x.Line, 1) - 1
		r.count(line)
		r.reject(line, source, x.Problem)
	}
	r.out.Notes = append(r.out.Notes, p.Notes...)
	return true
}

// source is where records of the present place come from.
func (r *reader) source(usual string) string {
	if r.form != nil && r.form.section == LabelAttempts {
		return SourceForm
	}
	return usual
}

// table takes the records of a paragraph's table.
func (r *reader) table(n ast.Node, lines []string, header int) {
	headerLine := r.lines.at(n.Lines().At(header).Start)
	fields, about, twice := columns(splitRow(lines[header], maxColumns+1))
	source := r.source(SourceTable)
	switch {
	case !about:
		return
	case len(fields) > maxColumns:
		r.reject(headerLine, source, playbook.Problem{
			Why:        "the table has more than " + strconv.Itoa(maxColumns) + " columns and was not read",
			Suggestion: r.exampleAttempt(),
		})
		return
	case twice != "":
		r.reject(headerLine, source, playbook.Problem{
			Why:        "two columns of the table hold `" + twice + "`, so none of its rows was read",
			Suggestion: r.exampleAttempt(),
		})
		return
	}
	for i := header + 2; i < len(lines) && !r.full(); i++ {
		lineNo := r.lines.at(n.Lines().At(i).Start)
		if _, match := command.ParseLine(lines[i], lineNo, r.o.Bot, r.o.Playbook); match == command.Ours {
			continue // its own hint says so
		}
		raw, nothing := rawAttempt(fields, splitRow(lines[i], len(fields)))
		if !nothing {
			r.record(raw, lineNo, source)
		}
	}
}

// exampleAttempt is a line for whose outcome the writer must answer.
func (r *reader) exampleAttempt() string {
	return "/attempt " + r.o.Playbook.Rungs()[0].Action + " insufficient"
}
