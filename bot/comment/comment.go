// Package comment reads a Markdown text once, and gives what in it is meant
// for the bot: commands, attempt records, what could not be read, and the
// restart-request form. It reads text and nothing else: who wrote it, and
// whether it may act, is the bot's to decide.
package comment

import (
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

// Read is what a text holds for the bot. No slice is nil.
type Read struct {
	Commands   []command.Invocation    `json:"commands"`
	Records    []Record                `json:"records"`
	Rejections []playbook.RejectedText `json:"rejections"`
	Form       *Form                   `json:"form"`
	// Hints are true hints of page 2.2 among Rejections: something that looks
	// like a command and did not run. (They are in Rejections too.)
	// Notes are remarks on what was taken ("reason cut to 2,000 characters").
	Notes []string `json:"notes,omitempty"`
	// Refused is set where nothing of the text may run or be taken: too long,
	// too many commands or records, hostile nesting. The one Rejection says so.
	Refused bool `json:"refused,omitempty"`
}

// Record is an attempt and where it stood in the text.
type Record struct {
	playbook.Attempt
	Line   int    `json:"line"`
	Source string `json:"source"`
}

// Form is a restart request made with the issue form.
type Form struct {
	Action     string   `json:"action"`
	Target     string   `json:"target"`
	Symptoms   []string `json:"symptoms"`
	Reason     string   `json:"reason"`
	BreakGlass bool     `json:"break_glass"`
	// Problem is set where the form is one but cannot be read (no class, a
	// repeated label): no request comes of it.
	Problem *playbook.Problem `json:"problem,omitempty"`
}
