package templates

import (
	"slices"
	"time"

	"playbook-bot/playbook"
)

// View is what a template sees of a section: the section and its decision in
// one, every text of people as Text, every sentence as Words. There is no way
// from it to a raw string but the functions that know how to show one.
type View struct {
	Kind Kind
	// Made says that a decision was made; without one the fields from Code to
	// UnknownSymptoms are empty.
	Made           bool
	Code           playbook.Code
	Verdict, State string
	Allowed        bool
	Request        Text
	Action, Target Text
	Requester      Text
	Endorser       Text // empty: none
	Actor          Text // whose standing was asked: the endorser, or else the requester
	Permission     string
	Roles          []Text
	Why            Words // the first reason
	MatrixWhy      Words
	MatrixAllowed  bool
	Steps          []Step // what is missing
	BreakGlass     playbook.BreakGlass
	ApprovedUntil  time.Time
	AuditSeq       int64 // 0: none
	Counted        []Evidence
	CountedLeft    int // left out for length
	Ignored        []Evidence
	IgnoredLeft    int
	Contamination  []Evidence
	Suggestions    []Text
	Unknown        []Symptom
	UnknownLeft    int

	Rung, Next  *RungView
	NextSymptom Text
	Reason      Text
	Author      Text
	Replaced    Text
	Beside      Text // another request that is open beside the one answered
	Alone       bool // the only section, and no request is open
	Since       *SinceView
	Taken       []Evidence
	TakenLeft   int
	// Mentions are the only live mentions there are, ready to print; empty
	// where nobody is to be told.
	Mentions  string
	Endorsers []Text
	Grant     Text
	Forge     Text
	Status    int
	Until     time.Time
	Because   Words
	// ApprovedAt is when the approval that ended was given.
	ApprovedAt     time.Time
	OutcomeMissing bool
	SessionEnded   bool
	Recommendation *RecommendView
	Ladder         []RungView
	Metrics        *MetricsView
	Help           []HelpView
	Title          Words
	Text           Words
	Post           Text
	Notes          []Words
	NotesLeft      int

	// Cure is a line among the rejections that would have counted had it been
	// readable; Enough says that the gate would then have allowed the request.
	Cure   Text
	Enough bool
	// Unread counts the rejections of the whole answer.
	Unread int

	Contact string // Markdown
	Bot     Text
	Now     time.Time

	pb      *playbook.Playbook
	failing string // outcome of a try that did not help
	failed  string // outcome of a restart that did not
	neutral string // outcome of what was not done; may be empty
	permits bool   // the permission alone opens the rung
}

// Step is one open condition.
type Step struct {
	What string // as playbook.Missing
	Who  Words
	Text Words
	Post Text
	Rung *RungView // the rung to try, for an attempt; nil where none is named
}

// Evidence is an attempt as a table shows it.
type Evidence struct {
	Action, Outcome, Target, By Text
	// Recorder is set where the record claims another actor than the account
	// that wrote it.
	Recorder  Text
	At        time.Time
	Age       time.Duration
	Verified  bool
	Reason    Text
	Ref       Text
	Why       Words // why it does not count
	Kill      bool
	Recovered bool
}

// RungView is a rung of the ladder.
type RungView struct {
	Action       Text
	Rank         int
	SelfService  bool
	Gated        bool
	EndsSessions bool
	How          Words  // what carries it out
	Refs         string // Markdown: references, as links where the playbook says where
	Standing     string // the least permission that may ask for it
	Roles        []Text // who may whatever the permission
	MinAttempts  int
	Open         bool // whoever reads may ask
	Disabled     bool // this repository took it away
}

// Symptom is an unknown symptom and the codes it may have meant.
type Symptom struct {
	Symptom     Text
	Suggestions []Text
}

// SinceView is what brought an approval about.
type SinceView struct {
	RefusedAt time.Time
	New       []Evidence
	Endorser  Text
	Standing  bool
}

// RecommendView is a recommendation.
type RecommendView struct {
	Next    Text
	Ladder  []RungView
	Unknown []Symptom
	Notes   []Words
}

// HelpView is a line of the help.
type HelpView struct {
	Want Words
	Post Text
}

// oneLine are the kinds that say in their one line which request stays open.
var oneLine = map[Kind]bool{KindGoAhead: true, KindRecorded: true, KindPointer: true, KindNotYours: true}

// InLine reports whether the answer is a line that says itself what is open.
func (v *View) InLine() bool { return oneLine[v.Kind] }

// Notable reports whether something stands below the verdict.
func (v *View) Notable() bool {
	return len(v.Contamination) > 0 || len(v.Unknown) > 0 || len(v.Notes) > 0 || v.Replaced != "" || v.Beside != "" && !oneLine[v.Kind]
}

// Needs reports whether a condition of that kind is open.
func (v *View) Needs(what string) bool { return v.step(what) != nil }

// Need gives the open condition of that kind; an empty one if there is none.
func (v *View) Need(what string) Step {
	if s := v.step(what); s != nil {
		return *s
	}
	return Step{}
}

func (v *View) step(what string) *Step {
	for i := range v.Steps {
		if v.Steps[i].What == what {
			return &v.Steps[i]
		}
	}
	return nil
}

// Short names the open conditions in a few words each, for one line.
func (v *View) Short() string {
	var names []Text
	for _, s := range v.Steps {
		name := Text(map[string]string{
			"action":            "an action of the ladder",
			"standing":          "an endorsement",
			"endorsement":       "an endorsement",
			"attempt":           "a narrower attempt that did not help",
			"break_glass_grant": "a break-glass grant",
			"vouch":             "a repost of the request by its author",
		}[s.What])
		if name != "" && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return joinAnd(names, inertName)
}

// AttemptPost is the line that logs a try of the next rung.
func (v *View) AttemptPost() Text {
	if s := v.step("attempt"); s != nil && s.Post != "" {
		return s.Post
	}
	if v.Next == nil {
		return ""
	}
	return Text(playbook.AttemptLine(string(v.Next.Action), v.failing, "", ""))
}

// RecoveredBy is the record that says it works again.
func (v *View) RecoveredBy() *Evidence {
	for i := range slices.Backward(v.Taken) {
		if v.Taken[i].Recovered {
			return &v.Taken[i]
		}
	}
	return nil
}
