package playbook

import "time"

// MaxReason is the longest reason an attempt record keeps, in characters.
// A longer one is cut and the record says so (Attempt.Cut).
const MaxReason = 2000

// MaxSkew is how far after the time its text reached the forge an attempt may
// claim to have happened. The time of reading never matters, so that reading
// the same text again gives the same log.
const MaxSkew = 5 * time.Minute

// Attempt is one recovery action that somebody tried, and how it went.
type Attempt struct {
	// Action is a rung of the ladder, or, for a contaminating record, the
	// manual kill as written.
	Action string `json:"action"`
	// Outcome is one of the playbook's outcomes in its canonical spelling.
	Outcome string `json:"outcome"`
	// Reason is free text, kept as written, at most MaxReason characters.
	Reason string `json:"reason"`
	// Actor is who tried it: the author of the text, or whom the text claims.
	Actor string `json:"actor"`
	// RecordedAt is when it was tried, by the text, or else PostedAt.
	RecordedAt time.Time `json:"recorded_at"`
	// Target is the server or namespace it was tried on; empty speaks for the
	// whole thread. Compared case-folded.
	Target string `json:"target,omitempty"`
	// Verified is set by the bot's own probes and by nothing that a person
	// wrote.
	Verified bool `json:"verified,omitempty"`
	// RecordedBy is the forge account that wrote the text. Only the forge
	// knows it; empty offline. It differs from Actor where the text claims
	// another actor.
	RecordedBy string `json:"recorded_by,omitempty"`
	// PostedAt is when the text reached the forge; zero offline.
	PostedAt time.Time `json:"posted_at,omitzero"`
	// Cut says that Reason was longer than MaxReason.
	Cut bool `json:"cut,omitempty"`
	// Kill says that this record is a manual process kill (#630): it never
	// counts, and it contaminates.
	Kill bool `json:"kill,omitempty"`
	// Ref says where the record stands, e.g. "comment 812"; for people.
	Ref string `json:"ref,omitempty"`
}

// RawAttempt is an attempt as somebody wrote it, before any normalising.
// Empty strings are absent fields.
type RawAttempt struct {
	Action, Outcome, Reason, Actor, RecordedAt, Target string
	// Verified is true where the text claimed verified: true; it is ignored,
	// and Problem-free records say so in Notes.
	Verified bool
}

// Context is what the reader of a text knows and the text does not say.
type Context struct {
	// Author wrote the text; the default actor. Empty offline.
	Author string
	// At is when the text reached the forge; the default RecordedAt.
	At time.Time
}

// Problem is why a text is not a record, and the cure.
type Problem struct {
	// Why is one clause in words for people, e.g.
	// "`didnt_work` is no outcome". Text of people in it stands in backquotes
	// and is stripped of backquotes and control characters.
	Why string `json:"why"`
	// Suggestion is a whole line that works as pasted, such as
	// "/attempt client_reconnect failed still 404"; empty where none can be
	// given.
	Suggestion string `json:"suggestion"`
}
