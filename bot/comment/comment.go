// Package comment reads a Markdown text once, and gives what in it is meant
// for the bot: commands, attempt records, what could not be read, and the
// restart-request form. It reads text and nothing else: who wrote it, and
// whether it may act, is the bot's to decide.
package comment

import (
	"slices"
	"strings"

	"playbook-bot/bot/command"
	"playbook-bot/playbook"
)

// The limits of one text.
const (
	MaxBody     = 256 << 10 // bytes; a longer text is not parsed
	MaxCommands = 20        // more: none runs
	MaxRecords  = 200       // more: none is taken
)

// Sources of records and rejections.
const (
	SourceCommand = "command"
	SourceFence   = "fence"
	SourceTable   = "table"
	SourceForm    = "form"
)

// Options is what the reader knows of the text.
type Options struct {
	Playbook *playbook.Playbook
	// Bot is the bot's own login; "@Bot restart …" is a command. Empty: none.
	Bot string
	// Context gives author and time of the text for records' defaults.
	Context playbook.Context
	// Issue is true for the body of an issue or pull request: only there is
	// the form looked for.
	Issue bool
}

// Read is what a text holds for the bot. No slice is nil, apart from Notes.
// Everything in it is in the order of its lines.
type Read struct {
	// Commands are those that are to run, and those with a Problem, which are
	// to be answered and not to run.
	Commands []command.Invocation
	Records  []Record
	// Rejections are all texts meant for the bot that it could not take:
	// records, commands (each Problem of one in Commands), the form, and the
	// hints.
	Rejections []playbook.RejectedText
	// Form is the restart request, nil where the text is no form.
	Form *Form
	// Hints are those of the Rejections that only look like something for the
	// bot: a line that Markdown drew elsewhere, a fence of commands, the bot
	// addressed with something that is no command. Nothing ran for them.
	Hints []playbook.RejectedText
	// Notes are remarks on what was taken ("reason cut to 2,000 characters").
	Notes []string
	// Refused is set where nothing of the text may run or be taken: too long,
	// too many commands or records, hostile nesting. The one Rejection says so.
	Refused bool
}

// Record is an attempt and where it stood in the text.
type Record struct {
	playbook.Attempt
	Line   int    `json:"line"`
	Source string `json:"source"`
}

// Parse reads a Markdown text. It never fails: what it cannot take is among
// the rejections.
func Parse(body string, o Options) Read {
	r := &reader{o: o, out: empty()}
	if len(body) > MaxBody {
		return refused(1, "the text is longer than 256 KiB and was not read; post what matters in a comment of its own")
	}
	r.src = normalize(body)
	r.lines = indexLines(r.src)
	doc, deep := parseMarkdown(r.src, r.lines)
	if deep >= 0 {
		return refused(r.lines.at(deep), "the text is nested or indented too deeply here and was not read; put commands at the start of a line")
	}
	r.document(doc)
	switch {
	case len(r.out.Commands) > MaxCommands:
		return refused(r.out.Commands[MaxCommands].Line, "more than 20 commands in one text; none ran. Post them in several comments")
	case r.tried > MaxRecords:
		return refused(r.triedLine, "more than 200 attempts in one text; none was taken. Post them in several comments")
	}
	r.out.sort()
	return r.out
}

func empty() Read {
	return Read{
		Commands:   []command.Invocation{},
		Records:    []Record{},
		Rejections: []playbook.RejectedText{},
		Hints:      []playbook.RejectedText{},
	}
}

func refused(line int, why string) Read {
	r := empty()
	r.Refused = true
	r.Rejections = append(r.Rejections, playbook.RejectedText{
		Line: line, Source: SourceCommand, Problem: playbook.Problem{Why: why},
	})
	return r
}

// sort brings everything into the order of the lines.
func (r *Read) sort() {
	slices.SortStableFunc(r.Commands, func(a, b command.Invocation) int { return a.Line - b.Line })
	slices.SortStableFunc(r.Records, func(a, b Record) int { return a.Line - b.Line })
	byLine := func(a, b playbook.RejectedText) int { return a.Line - b.Line }
	slices.SortStableFunc(r.Rejections, byLine)
	slices.SortStableFunc(r.Hints, byLine)
}

// normalize gives the text as Markdown is to see it: line ends are newlines
// (CRLF and a lone CR are line ends too), the encoding is valid, and no byte
// order mark stands in front of the first line. Lines keep their numbers.
func normalize(body string) []byte {
	body = strings.TrimLeft(body, "\ufeff")
	body = strings.ToValidUTF8(body, "\ufffd")
	return []byte(lineEnds.Replace(body))
}

var lineEnds = strings.NewReplacer("\r\n", "\n", "\r", "\n", "\x00", "\ufffd")
