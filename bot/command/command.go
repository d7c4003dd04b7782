// Package command holds the one table of the bot's commands, and reads the
// tokens of a command line. Parser, help, README and the offline explain all
// come from the table.
package command

import "playbook-bot/playbook"

// Invocation is one command line, read.
type Invocation struct {
	// Name is the command's name in the table, e.g. "restart".
	Name string `json:"name"`
	// Line is its line in the text, from 1.
	Line int `json:"line"`
	// Raw is the line as written, after normalising spaces and quotes; for
	// hints, never for rights.
	Raw string `json:"-"`
	// Action is normalised where the playbook knows it, else as written.
	Action   string   `json:"action"`
	Outcome  string   `json:"outcome"`
	Target   string   `json:"target"`
	Symptoms []string `json:"symptoms"`
	Reason   string   `json:"reason"`
	// Request is the id an /endorse names.
	Request string `json:"request,omitempty"`
	// Topic is what a /playbook asks for: "ladder", "attempts", "metrics",
	// "help" or "clear-contamination".
	Topic string `json:"topic,omitempty"`
	// Server is what a /probe names.
	Server string `json:"server,omitempty"`
	// Problem is set where the arguments could not be understood: the command
	// does not run, and its one answer says this.
	Problem *playbook.Problem `json:"problem,omitempty"`
}

// Handler carries out commands; the table's Run is a method expression of it,
// so that a command without a handler does not compile.
type Handler interface {
	Restart(Invocation)
	Attempt(Invocation)
	Resolved(Invocation)
	Recommend(Invocation)
	Assess(Invocation)
	BreakGlass(Invocation)
	Endorse(Invocation)
	Withdraw(Invocation)
	Playbook(Invocation)
}

// Spec declares one command.
type Spec struct {
	// Name is what follows the slash.
	Name string
	// Args is the arguments' synopsis, e.g. "ACTION [target=NAME] [reason…]".
	Args string
	// Who may use it, in words.
	Who     string
	Summary string
	// Examples are whole lines that parse without a Problem.
	Examples []string
	// Run hands an invocation of it to the handler.
	Run func(Handler, Invocation)
	// args reads the tokens after the name.
	args func(*tokens, *Invocation, *playbook.Playbook)
}

// tokens are the arguments of a command line, read from left to right.
type tokens struct{ rest string }
