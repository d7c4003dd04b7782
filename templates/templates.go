// Package templates turns a decision into the comment that people and agents
// read. The texts are *.md.tmpl files beside this one, each overridable from
// a directory; the rules that keep foreign text inert are here, so that no
// template can forget them.
package templates

import (
	"time"

	"playbook-bot/playbook"
)

// Kind names the template of a section.
type Kind string

// The kinds. Each has a file of its name, e.g. refused.md.tmpl.
const (
	KindRefused    Kind = "refused"    // model A, B, E and refusals of every other code
	KindApproved   Kind = "approved"   // C, F (Since set) and H (break-glass used)
	KindUndecided  Kind = "undecided"  // D
	KindGoAhead    Kind = "goahead"    // an ungated rung is allowed
	KindRecorded   Kind = "recorded"   // records taken, verdict unchanged: one line
	KindWouldAllow Kind = "wouldallow" // evidence by somebody who may not flip: line to paste
	KindRecovered  Kind = "recovered"
	KindWithdrawn  Kind = "withdrawn"
	KindRevoked    Kind = "revoked"  // G
	KindExpired    Kind = "expired"  // an approval's end; asks for the outcome
	KindPointer    Kind = "pointer"  // a repeat that changes nothing
	KindEndorsed   Kind = "endorsed" // an endorsement taken, something else still missing
	KindNotYours   Kind = "notyours" // a line of somebody who may not replace, resolve or withdraw
	KindRecommend  Kind = "recommend"
	KindAssess     Kind = "assess"
	KindLadder     Kind = "ladder"
	KindAttempts   Kind = "attempts"
	KindMetrics    Kind = "metrics"
	KindHelp       Kind = "help"       // I
	KindUnreadable Kind = "unreadable" // rejections and hints without a verdict
	KindAltered    Kind = "altered"    // the text is not what its author posted
	KindCleared    Kind = "cleared"    // contamination lifted
	KindNotice     Kind = "notice"     // Title and Text, for the rest
)

// Section is what one command, or one event, comes to. A template reads only
// the fields its kind names; all text of people in it is still raw.
type Section struct {
	Kind Kind
	// D is the decision, nil where none was made.
	D *playbook.Decision
	// Rung is the requested rung, Next the one to try now; nil where none.
	Rung, Next *playbook.Rung
	// NextSymptom is the known symptom that starts at Next, "" where none.
	NextSymptom string
	// Reason is the requester's own.
	Reason string
	// Author is the login that wrote the text answered.
	Author string
	// Actor is the login whose standing was asked, where that is neither D's
	// endorser nor its requester: an endorser who was refused.
	Actor string
	// Replaced is the request this one took the place of; Open the request
	// that is open now, be it the one answered or another beside it.
	Replaced, Open string
	// Since is set where the verdict changed: what is new, and when the last
	// refusal was.
	Since *Since
	// Taken are the records of the text answered.
	Taken []playbook.Attempt
	// Notify are logins or org/team to mention live: at most once a request.
	Notify []string
	// Endorsers are who could endorse, shown without a ping.
	Endorsers []string
	// Grant is the break-glass grant used, or the one the operator would have
	// to add.
	Grant string
	// Forge and Status say whose answer made standing unknown ("Gitea", 403;
	// 0: no answer at all); Until is when the bot stops looking by itself.
	Forge  string
	Status int
	Until  time.Time
	// Because says in one clause why an approval was revoked, or who did what.
	Because string
	// ApprovedAt is when the approval revoked or expired was given.
	ApprovedAt time.Time
	// SessionEnded: what recovered it began another session, whatever the
	// rung's own reach.
	SessionEnded bool
	// OutcomeMissing: nobody has logged how the approved action went.
	OutcomeMissing bool
	Recommendation *playbook.Recommendation
	Ladder         []playbook.Rung
	Metrics        *playbook.Metrics
	// Help is the table of commands, for KindHelp; empty: one made from the
	// playbook.
	Help []HelpRow
	// Title and Text are for KindNotice; Post is a line to paste.
	Title, Text, Post string
	// Notes are remarks below the verdict, in our words.
	Notes []string
}

// HelpRow is one line of the help: what somebody wants, in words of ours, and
// a whole line to post for it.
type HelpRow struct{ Want, Post string }

// Since is what changed between a refusal and an approval.
type Since struct {
	RefusedAt time.Time
	New       []playbook.Attempt
	// Endorser is set where an endorsement is what is new.
	Endorser string
	// Standing is true where the standing could not be read before.
	Standing bool
}

// Answer is one comment.
type Answer struct {
	Sections []Section
	// Rejections of the whole text answered, shown once as a table.
	Rejections []playbook.RejectedText
	// Decision is folded at the end; nil: none.
	Decision *playbook.Decision
	// Bot is the bot's own login.
	Bot string
	// At is the time of the answer, which says what "today" is; zero: the
	// decision's.
	At time.Time
}

// MaxComment is the longest comment rendered, in bytes, marker not included.
const MaxComment = 59 << 10
