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
	// Raw is the line as written, after normalising spaces; for hints, never
	// for rights.
	Raw string `json:"-"`
	// Action is normalised where the playbook knows it, else as written.
	Action string `json:"action"`
	// Outcome is canonical where the playbook knows it, else as written.
	Outcome  string   `json:"outcome"`
	Target   string   `json:"target"`
	Symptoms []string `json:"symptoms"` // never nil
	Reason   string   `json:"reason"`
	// Request is the id an /endorse names.
	Request string `json:"request,omitempty"`
	// Topic is what a /playbook asks for: "ladder", "attempts", "metrics",
	// "help" or "clear-contamination".
	Topic string `json:"topic,omitempty"`
	// Server is what a /probe names.
	Server string `json:"server,omitempty"`
	// Problem is set where the arguments could not be understood: the command
	// does not run, and its one answer says this. An action that the playbook
	// does not know is a Problem only where a record would come of it; to the
	// others the gate answers, with suggestions.
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
	Probe(Invocation)
}

// Spec declares one command.
type Spec struct {
	// Name is what follows the slash.
	Name string
	// Args is the arguments' synopsis, e.g. "ACTION [target=NAME] [reason…]".
	Args string
	// Want is what somebody who needs it wants, for help.
	Want string
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

// Synopsis is the command as one writes it, e.g. "/withdraw [note…]".
func (s Spec) Synopsis() string {
	if s.Args == "" {
		return "/" + s.Name
	}
	return "/" + s.Name + " " + s.Args
}

// The topics of /playbook.
const (
	TopicLadder             = "ladder"
	TopicAttempts           = "attempts"
	TopicMetrics            = "metrics"
	TopicHelp               = "help"
	TopicClearContamination = "clear-contamination"
)

// Table is every command there is, in the order in which help shows them.
var Table = []Spec{
	{
		Name: "restart", Args: "ACTION [target=NAME] [symptom=A,B] [reason…]",
		Want:    "a restart",
		Who:     "anyone who can comment; broad rungs need standing or an endorsement",
		Summary: "Opens a request and answers approval, refusal, or the next rung.",
		Examples: []string{
			"/restart full_mcp_restart target=mcp-search symptom=stale_capability all clients 404",
			`/restart worker_restart target="search worker" hangs since noon`,
		},
		Run: Handler.Restart, args: readRestart,
	},
	{
		Name: "attempt", Args: "ACTION OUTCOME [target=NAME] [reason…]",
		Want:    "to log a try",
		Who:     "anyone who can comment",
		Summary: "Records one attempt; an open request is assessed again.",
		Examples: []string{
			"/attempt client_reconnect insufficient still EOF",
			"/attempt session_reconnect failed target=mcp-search 404 again",
		},
		Run: Handler.Attempt, args: readAttempt,
	},
	{
		Name: "resolved", Args: "ACTION [note…]",
		Want:     "to say it works",
		Who:      "the requester, or an account with write; from others it is a record only",
		Summary:  "Records an attempt that succeeded; ends the open request as recovered.",
		Examples: []string{"/resolved capability_refresh tools are listed again"},
		Run:      Handler.Resolved, args: readResolved,
	},
	{
		Name: "recommend", Args: "[SYMPTOM…]",
		Want:     "to know what to try",
		Who:      "anyone who can comment",
		Summary:  "Names the next rung to try and the ladder from there.",
		Examples: []string{"/recommend transport_eof", "/recommend"},
		Run:      Handler.Recommend, args: readRecommend,
	},
	{
		Name: "assess", Args: "ACTION [target=NAME]",
		Want:     "only the gate's answer",
		Who:      "anyone who can comment",
		Summary:  "Gives the gate's answer without opening a request.",
		Examples: []string{"/assess full_mcp_restart target=mcp-search"},
		Run:      Handler.Assess, args: readAssess,
	},
	{
		Name: "break-glass", Args: "ACTION [target=NAME] reason…",
		Want:     "to skip the log",
		Who:      "anyone who can comment; counts only under the operator's grant, and never replaces standing",
		Summary:  "Opens a request that skips the attempt log; the reason is mandatory.",
		Examples: []string{"/break-glass full_mcp_restart registry gone, payments down"},
		Run:      Handler.BreakGlass, args: readBreakGlass,
	},
	{
		Name: "endorse", Args: "REQUEST",
		Want:     "to adopt a request",
		Who:      "an account with standing that is not the requester",
		Summary:  "Adopts the request of that id.",
		Examples: []string{"/endorse 41/1"},
		Run:      Handler.Endorse, args: readEndorse,
	},
	{
		Name:     "withdraw",
		Want:     "to take it back",
		Who:      "the requester, or an account with write",
		Summary:  "Takes the open request, or a standing approval, back.",
		Examples: []string{"/withdraw"},
		Run:      Handler.Withdraw, args: readNote,
	},
	{
		Name: "probe", Args: "SERVER",
		Want:     "the bot to try the first rungs itself",
		Who:      "anyone who can comment; servers are named in the bot's configuration",
		Summary:  "Has the bot try rungs 0 to 2 on an MCP server itself, and logs each as a verified attempt.",
		Examples: []string{"/probe mcp-search"},
		Run:      Handler.Probe, args: readProbe,
	},
	{
		Name: "playbook", Args: "[ladder|attempts|metrics|help]",
		Want:     "the ladder, this thread's log, figures",
		Who:      "anyone who can comment",
		Summary:  "Shows the ladder; this thread's log with what counts and why; figures; help.",
		Examples: []string{"/playbook", "/playbook ladder", "/playbook attempts", "/playbook metrics", "/playbook help"},
		Run:      Handler.Playbook, args: readPlaybook,
	},
	{
		Name: "playbook", Args: "clear-contamination reason…",
		Want:     "to lift the mark of a manual kill",
		Who:      "an account with admin",
		Summary:  "Lifts the mark that a manual process kill left; audited.",
		Examples: []string{"/playbook clear-contamination host checked, no stray process left"},
		Run:      Handler.Playbook, args: readPlaybook,
	},
}

// MaxSymptoms is the most symptoms one command may name.
const MaxSymptoms = 32

// Lookup gives the command of that name, compared whole and case-folded. Only
// ASCII letters fold: a look-alike is another name.
func Lookup(name string) (Spec, bool) {
	for _, s := range Table {
		if equalASCII(s.Name, name) {
			return s, true
		}
	}
	return Spec{}, false
}

func equalASCII(lower, s string) bool {
	if len(lower) != len(s) {
		return false
	}
	for i := range len(s) {
		c := s[i]
		if 'A' <= c && c <= 'Z' {
			c += 'a' - 'A'
		}
		if c != lower[i] {
			return false
		}
	}
	return true
}
