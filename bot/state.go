package bot

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"playbook-bot/bot/comment"
	"playbook-bot/bot/forge"
	"playbook-bot/playbook"
)

// state is the bot's document about one thread. It is written whole with each
// decision; fields are only ever added.
type state struct {
	// Since and SinceComment begin the present incident: records in older
	// texts, or of earlier times, are from before the last close or recovery.
	Since        time.Time `json:"since,omitzero"`
	SinceComment int64     `json:"since_comment,omitempty"`
	Closed       bool      `json:"closed,omitempty"`
	Gone         bool      `json:"gone,omitempty"` // deleted or transferred
	// LastRequest is the number of the last request id given.
	LastRequest int       `json:"last_request,omitempty"`
	Request     *request  `json:"request,omitempty"`
	Approval    *approval `json:"approval,omitempty"`
	// Outcome of the last request that ended ("recovered" keeps its label).
	Ended string `json:"ended,omitempty"`
	// Last is that request, for those who ask how it went.
	Last *request `json:"last,omitempty"`
	// ClearedComment: contamination recorded in texts up to this comment was
	// lifted by an admin.
	ClearedComment int64 `json:"cleared_comment,omitempty"`
	// ClearedAt is when, by the forge's clock: what is written into an older text
	// later is not covered.
	ClearedAt time.Time `json:"cleared_at,omitzero"`
	// BreakGlassUsed keeps the loud label until the incident is over.
	BreakGlassUsed bool `json:"break_glass_used,omitempty"`
	// Contaminated as of the last look, for the label.
	Contaminated bool      `json:"contaminated,omitempty"`
	Audit        auditHead `json:"audit"`
	// Labels as last set; nil: never.
	Labels []string `json:"labels,omitempty"`
	// Reactions wait to be given.
	Reactions []pendingReaction `json:"reactions,omitempty"`
	// EffectTries counts failed tries to set labels and reactions.
	EffectTries int `json:"effect_tries,omitempty"`
	// EffectsAt is when to try again.
	EffectsAt time.Time `json:"effects_at,omitzero"`
	// OverlayTold is the version of the repository's playbook of which the
	// thread was told that it cannot be used.
	OverlayTold string `json:"overlay_told,omitempty"`
	// Restoring is the one of the bot's own comments that is about to be put
	// back as it was; Restored are those that were, once.
	Restoring int64   `json:"restoring,omitempty"`
	Restored  []int64 `json:"restored,omitempty"`
}

// request is one question to the gate. Any change of action, target,
// break-glass or requester is another request.
type request struct {
	ID         string        `json:"id"`
	Action     string        `json:"action"`
	Target     string        `json:"target,omitempty"`
	Symptoms   []string      `json:"symptoms,omitempty"`
	BreakGlass bool          `json:"break_glass,omitempty"`
	Reason     string        `json:"reason,omitempty"`
	Requester  forge.Account `json:"requester"`
	Trigger    forge.Object  `json:"trigger"`
	At         time.Time     `json:"at"`
	Form       bool          `json:"form,omitempty"`
	// Unvouched: the line was found without a delivery, so it may be anybody's:
	// see turn.vouched.
	Unvouched bool `json:"unvouched,omitempty"`

	Endorsement *endorsement `json:"endorsement,omitempty"`

	Verdict   string        `json:"verdict,omitempty"`
	Code      playbook.Code `json:"code,omitempty"`
	DecidedAt time.Time     `json:"decided_at,omitzero"`
	// DecidedOn is the comment in hand at the last decision; 0: the text.
	DecidedOn int64 `json:"decided_on,omitempty"`
	// Flips, Approvals count for the keys of answers.
	Flips     int  `json:"flips,omitempty"`
	Approvals int  `json:"approvals,omitempty"`
	Notified  bool `json:"notified,omitempty"`
	// Pointed: a repeat that changed nothing was answered already.
	Pointed bool `json:"pointed,omitempty"`
	// MustAsk: an approval expired, or the database was rebuilt: nothing is
	// approved until somebody asks again.
	MustAsk bool `json:"must_ask,omitempty"`
	// Undecided is set while the standing could not be read.
	Undecided *undecided `json:"undecided,omitempty"`
}

type endorsement struct {
	By      forge.Account `json:"by"`
	Comment forge.Object  `json:"comment"`
	At      time.Time     `json:"at"`
}

type undecided struct {
	Next  time.Time `json:"next"`
	Until time.Time `json:"until"`
}

// approval stands until it expires or is revoked. ID is unique in the thread.
type approval struct {
	ID       string        `json:"id"`
	Request  string        `json:"request"`
	Action   string        `json:"action"`
	Target   string        `json:"target,omitempty"`
	At       time.Time     `json:"at"`
	Expires  time.Time     `json:"expires"`
	By       forge.Account `json:"by"` // whose standing carries it
	Endorser string        `json:"endorser,omitempty"`
	Grant    string        `json:"grant,omitempty"`
	// Digest is over the attempts that counted.
	Digest string `json:"digest"`
}

type auditHead struct {
	Chain int64  `json:"chain"`
	Seq   int64  `json:"seq"`
	Hash  string `json:"hash"`
}

type pendingReaction struct {
	Object   forge.Object   `json:"object"`
	Reaction forge.Reaction `json:"reaction"`
}

// objectData is the bot's document about one text of a thread.
type objectData struct {
	Records []record `json:"records,omitempty"`
	// Rights: the author is a real account that wrote here itself.
	Rights bool `json:"rights"`
	// Filed: the bot's account posted it in the author's name.
	Filed bool `json:"filed,omitempty"`
	// Commands: the text bore commands when it was first read.
	Commands bool `json:"commands,omitempty"`
	// Rejected tells apart what of the text could not be taken; see rejected.
	Rejected string `json:"rejected,omitempty"`
	// Hinted: an edit of the text was answered with a hint.
	Hinted bool `json:"hinted,omitempty"`
	// Ran: its commands were carried out, or are never to be.
	Ran bool `json:"ran,omitempty"`
	// Unread: the text's event ended without the text being read (dead, or not
	// to be found), so that its commands were not carried out; if it comes
	// again, they are.
	Unread bool `json:"unread,omitempty"`
	// Form as it stood in an issue's body.
	Form *comment.Form `json:"form,omitempty"`
	// Old are the records of earlier versions, newest last, at most 20.
	Old []superseded `json:"old,omitempty"`
}

// record is an attempt as it stands in a text.
type record struct {
	comment.Record
	// Altered: it is not, or not provably, what the text's author posted.
	Altered bool `json:"altered,omitempty"`
}

type superseded struct {
	At      time.Time `json:"at"`
	Records []record  `json:"records"`
}

func decodeState(raw []byte) (*state, error) {
	s := &state{}
	if len(raw) == 0 {
		return s, nil
	}
	if err := json.Unmarshal(raw, s); err != nil {
		return nil, fmt.Errorf("read the thread's stored state: %w", err)
	}
	return s, nil
}

// due is when the state needs looking at without any event, with requests
// that live for ttl.
func (s *state) due(ttl time.Duration) time.Time {
	var at time.Time
	sooner := func(t time.Time) {
		if !t.IsZero() && (at.IsZero() || t.Before(at)) {
			at = t
		}
	}
	if s.Approval != nil {
		sooner(s.Approval.Expires)
	}
	if r := s.Request; r != nil {
		sooner(r.At.Add(ttl))
		if r.Undecided != nil {
			sooner(r.Undecided.Next)
		}
	}
	return at
}

// clone is a deep copy: decisions work on a copy and are committed whole, or
// not at all.
func (s *state) clone() *state {
	c := *s
	if s.Request != nil {
		r := *s.Request
		if r.Endorsement != nil {
			e := *r.Endorsement
			r.Endorsement = &e
		}
		if r.Undecided != nil {
			u := *r.Undecided
			r.Undecided = &u
		}
		r.Symptoms = slices.Clone(r.Symptoms)
		c.Request = &r
	}
	if s.Approval != nil {
		a := *s.Approval
		c.Approval = &a
	}
	c.Labels = slices.Clone(s.Labels)
	c.Reactions = slices.Clone(s.Reactions)
	c.Restored = slices.Clone(s.Restored)
	return &c
}

// same reports whether a command asks what the open request asks: action,
// target, break-glass and requester. Anything else is another request.
func (r *request) same(action, target string, breakGlass bool, by forge.Account) bool {
	return r.Action == action && strings.EqualFold(r.Target, target) && r.BreakGlass == breakGlass && r.Requester.ID == by.ID
}

// end takes the open request and its approval away.
func (s *state) end(how string) {
	if s.Request != nil {
		s.Last = s.Request
	}
	s.Request, s.Approval, s.Ended = nil, nil, how
}

// cleared reports whether an admin has lifted the mark of a kill recorded at
// that place of the thread at that time.
func (s *state) cleared(order int64, posted time.Time) bool {
	if s.ClearedAt.IsZero() { // lifted by an older version of the bot, or never
		return s.ClearedComment > 0 && order <= s.ClearedComment
	}
	return order <= s.ClearedComment && !posted.After(s.ClearedAt)
}

// newIncident puts everything written so far behind.
func (s *state) newIncident(at time.Time, lastComment int64) {
	s.Since, s.SinceComment, s.BreakGlassUsed = at, max(s.SinceComment, lastComment), false
}
