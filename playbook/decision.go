package playbook

import "time"

// DecisionSchema names the one published form of a decision. Fields are only
// ever added to it.
const DecisionSchema = "playbook-bot/decision/v1"

// Decision is an assessment in its conversation: the JSON that a comment, the
// command line and the MCP tools all show.
type Decision struct {
	Schema string `json:"schema"`
	// Request is the request's id ("41/1"), empty for a bare assessment.
	Request string `json:"request"`
	// AnswersComment is the forge's id of the comment answered, 0 for an
	// issue's body or where there is none.
	AnswersComment int64 `json:"answers_comment"`
	// State is "open", "approved", "recovered", "withdrawn", "replaced",
	// "closed", "expired" or "none".
	State string `json:"state"`
	// Verdict is "approved", "refused", "undecided" or "none".
	Verdict string `json:"verdict"`
	Assessment
	Symptoms      []string       `json:"symptoms"`
	Requester     string         `json:"requester"`
	Endorser      *string        `json:"endorser"`
	Standing      Standing       `json:"standing"`
	Rejections    []RejectedText `json:"rejections"`
	ApprovedUntil *time.Time     `json:"approved_until"`
	RetryAfterS   *int           `json:"retry_after_s"`
	Playbook      Identity       `json:"playbook"`
	DecidedAt     time.Time      `json:"decided_at"`
	Audit         *AuditMark     `json:"audit"`
	Hypothetical  bool           `json:"hypothetical,omitempty"`
}

// RejectedText is something meant for the bot that it could not take.
type RejectedText struct {
	Line   int    `json:"line"`
	Source string `json:"source"`
	Problem
}

// Identity says which playbook decided.
type Identity struct {
	Name   string `json:"name"`
	SHA256 string `json:"sha256"`
	// Overlay is the commit of the repository's own file that tightened it, or
	// "sha256:…" of a file that no commit names; empty where there is none.
	Overlay string `json:"overlay,omitempty"`
}

// AuditMark is a decision's place in its thread's audit chain.
type AuditMark struct {
	Seq  int64  `json:"seq"`
	Hash string `json:"hash"`
}

// Decide is the gate's answer outside any thread, in the published form: no
// request, no state, nobody to endorse. DecidedAt is e.Now to the second.
func (p *Playbook) Decide(e Escalation, rejections []RejectedText) Decision {
	d := Decision{
		Schema:     DecisionSchema,
		State:      "none",
		Assessment: p.AssessEscalation(e),
		Symptoms:   append([]string{}, e.Symptoms...),
		Standing:   e.Standing,
		Rejections: append([]RejectedText{}, rejections...),
		Playbook:   p.Identity(),
		DecidedAt:  e.Now.Truncate(time.Second),
	}
	switch {
	case d.Allowed:
		d.Verdict = "approved"
	case d.Code == CodeStandingUnknown:
		d.Verdict = "undecided"
	default:
		d.Verdict = "refused"
	}
	return d
}
