package playbook

import "time"

// Code is the stable, machine-readable name of a gate's answer.
type Code string

// The codes, in the order in which the gate asks.
const (
	CodeUnknownAction           Code = "unknown_action"
	CodeForbiddenAction         Code = "forbidden_action"
	CodeStandingUnknown         Code = "standing_unknown"
	CodeClassMatrixDenied       Code = "class_matrix_denied"
	CodeAllowed                 Code = "allowed"
	CodeAllowedAttemptLog       Code = "allowed_attempt_log"
	CodeAllowedBreakGlass       Code = "allowed_break_glass"
	CodeBreakGlassNotAuthorized Code = "break_glass_not_authorized"
	CodeAttemptLogMissing       Code = "attempt_log_missing"
	CodeAttemptLogInsufficient  Code = "attempt_log_insufficient"
	// CodePlaybookInvalid is given by the bot, not by the gate: the
	// repository's own playbook cannot be read and none valid is known.
	CodePlaybookInvalid Code = "playbook_invalid"
)

// Escalation is everything the gate is asked about.
type Escalation struct {
	Action   string
	Target   string
	Symptoms []string
	Attempts []Attempt
	// Excluded are attempts that the caller knows not to count (altered by
	// another, from before the last recovery), with why: they are reported as
	// ignored, and make an empty log "insufficient" instead of "missing".
	Excluded []IgnoredAttempt
	// Since is the start of the present incident: attempts recorded before it
	// are ignored. Zero: no limit.
	Since time.Time
	// Cleared is when an admin last lifted the contamination mark: kills
	// recorded until then are no longer named. Zero: never.
	Cleared    time.Time
	BreakGlass BreakGlass
	Standing   Standing
	// Actor is the login the standing belongs to, for the words only.
	Actor string
	// Request is the request's id, e.g. "41/1", for the lines to post; may be
	// empty (offline).
	Request string
	Now     time.Time
}

// Assessment is the gate's answer. All of it is always filled in; no slice is
// nil. The JSON field names are a published contract: they are part of
// DecisionSchema, and fields are only ever added.
type Assessment struct {
	Allowed bool   `json:"allowed"`
	Code    Code   `json:"code"`
	Action  string `json:"action"`
	Target  string `json:"target"`
	// Rung is the requested action's rank, nil where it is no rung.
	Rung *int `json:"rung"`
	// Reasons are whole clauses for people; the first explains Code.
	Reasons             []string         `json:"reasons"`
	AttemptLogRequired  bool             `json:"attempt_log_required"`
	AttemptLogSatisfied bool             `json:"attempt_log_satisfied"`
	Counted             []Attempt        `json:"counted"`
	Ignored             []IgnoredAttempt `json:"ignored"`
	BreakGlass          BreakGlass       `json:"break_glass"`
	Matrix              MatrixAnswer     `json:"matrix"`
	Contaminated        bool             `json:"contaminated"`
	Contamination       []Attempt        `json:"contamination"`
	// Next is the rung to try now, empty where nothing is left. After a
	// refusal it is narrower than the request (or, where a disabled action has
	// nothing narrower, a broader one without a gate); after a refusal for want
	// of a log it would satisfy the gate. Allowed, it is the action itself, or, as
	// advice beside a rung without a gate, a narrower one not yet tried.
	Next string `json:"next"`
	// Missing lists every condition still open, not only the first.
	Missing []Missing `json:"missing"`
	// Suggestions are actions near to an unknown one.
	Suggestions []string `json:"suggestions"`
	// UnknownSymptoms never decide anything.
	UnknownSymptoms []UnknownSymptom `json:"unknown_symptoms"`
}

// IgnoredAttempt is a record that does not count for this request, and why.
type IgnoredAttempt struct {
	Attempt
	Why string `json:"why"`
}

// MatrixAnswer is what the class matrix says of the actor.
type MatrixAnswer struct {
	Allowed bool   `json:"allowed"`
	Why     string `json:"why"`
}

// Missing is one open condition: who can meet it, and the line to post.
type Missing struct {
	// What is one of "action", "standing", "endorsement", "attempt",
	// "break_glass_grant".
	What string `json:"what"`
	Who  string `json:"who"`
	// Post is a whole line that works as pasted; empty where nothing to post
	// helps (a grant).
	Post string `json:"post"`
	// Text says the condition in words, for people.
	Text string `json:"text"`
}

// UnknownSymptom is a symptom outside the vocabulary and the codes it may
// have meant.
type UnknownSymptom struct {
	Symptom     string   `json:"symptom"`
	Suggestions []string `json:"suggestions"`
}

// Recommendation is the rung to try next and the ladder from there.
type Recommendation struct {
	// Next is empty where nothing is left; then the contact is to be called.
	Next            string           `json:"next"`
	Ladder          []LadderStep     `json:"ladder"`
	UnknownSymptoms []UnknownSymptom `json:"unknown_symptoms"`
	// Notes are advice from symptoms without a rung ("wait, tell the
	// operators"), for people.
	Notes []string `json:"notes"`
}

// LadderStep is a rung as a recommendation or the ladder document shows it.
type LadderStep struct {
	Action      string   `json:"action"`
	Rank        int      `json:"rank"`
	SelfService bool     `json:"self_service"`
	Gated       bool     `json:"gated"`
	Disabled    bool     `json:"disabled,omitempty"`
	Delegation  string   `json:"delegation"`
	References  []string `json:"references"`
}
