package playbook

import (
	"io"
	"time"
)

// The signatures below are the package's contract.

type Playbook struct{}

func Default() *Playbook                            { panic("contract") }
func Load(r io.Reader) (*Playbook, error)           { panic("contract") }
func (p *Playbook) Identity() Identity              { panic("contract") }
func (p *Playbook) ApprovalTTL() time.Duration      { panic("contract") }
func (p *Playbook) RequestTTL() time.Duration       { panic("contract") }
func (p *Playbook) Contact() string                 { panic("contract") }
func (p *Playbook) Notify() []string                { panic("contract") } // accounts or org/team
func (p *Playbook) ReferencesURL() string           { panic("contract") }
func (p *Playbook) Rungs() []Rung                   { panic("contract") }
func (p *Playbook) Rung(action string) (Rung, bool) { panic("contract") } // normalised action only
func (p *Playbook) LadderDocument() LadderDocument  { panic("contract") }
func (p *Playbook) RoleMembers() []RoleMember       { panic("contract") } // role -> login or org/team, as the roles section has them

// NormalizeAction gives the rung's action for a spelling of it.
func (p *Playbook) NormalizeAction(s string) (action string, ok bool)   { panic("contract") }
func (p *Playbook) NormalizeOutcome(s string) (outcome string, ok bool) { panic("contract") }

// IsKill reports whether s is a manual process kill as an action or as a stated deed.
func IsKill(s string) bool { panic("contract") }

// SuggestActions gives the nearest actions; a look-alike letter is named with its code point in why.
func (p *Playbook) ActionProblem(s string) Problem  { panic("contract") }
func (p *Playbook) OutcomeProblem(s string) Problem { panic("contract") }

// FieldName gives the canonical field ("action", "outcome", …) for a heading or key and its synonyms.
func FieldName(s string) (string, bool) { panic("contract") }

// BuildAttemptRecord makes a valid record, or says everything that is wrong. notes are remarks on a valid record.
func (p *Playbook) BuildAttemptRecord(raw RawAttempt, c Context) (a Attempt, notes []string, problems []Problem) {
	panic("contract")
}

// ParseAttempts reads JSON (with comments and trailing commas) or YAML: one record, a list, or an object with prior_recovery_attempts (or attempts).
// lang is "json", "yaml", "attempts" or "". Lines are counted from 1 within text.
func (p *Playbook) ParseAttempts(text string, lang string, c Context) ParsedAttempts {
	panic("contract")
}

type ParsedAttempts struct {
	// About is false where the text is not about attempts at all; then all else is empty.
	About      bool
	Attempts   []LocatedAttempt
	Rejections []RejectedText // Source left empty
	Notes      []string
}

type LocatedAttempt struct {
	Attempt
	Line int `json:"line"`
}

func (p *Playbook) AssessEscalation(e Escalation) Assessment { panic("contract") }
func (p *Playbook) RecommendActions(symptoms []string, attempts []Attempt) Recommendation {
	panic("contract")
}
func (p *Playbook) RecoveryMetrics(attempts []Attempt) Metrics                  { panic("contract") }
func (p *Playbook) EvaluateRestartImpact(inv Inventory, o ImpactOptions) Impact { panic("contract") }
func (p *Playbook) Matrix(action string, s Standing, actor string) MatrixAnswer { panic("contract") }

// Counts reports whether the outcome counts towards escalation on that rung (denied on a gated rung does not).
func (p *Playbook) Counts(a Attempt) bool    { panic("contract") }
func (p *Playbook) Recovered(a Attempt) bool { panic("contract") }

// SameAttempt: actor (case-folded), action, outcome, target (case-folded) and minute agree.
func SameAttempt(a, b Attempt) bool       { panic("contract") }
func Dedupe(attempts []Attempt) []Attempt { panic("contract") }

// ParseGrants reads GITEA_BREAKGLASS_RESTART_AUTHORIZATION.
func ParseGrants(s string) (Grants, error) { panic("contract") }

type Grants []Grant
type Grant struct {
	// Text is the grant as written, for people.
	Text        string
	Owner, Repo string    // "" is *
	Issue       int64     // 0: any
	Action      string    // "": any
	Expiry      time.Time // zero: none
}

// Blanket reports a grant without any limit on repository (bare truthy value or *).
func (g Grant) Blanket() bool { panic("contract") }

// Match gives the grant in force for a request that lasts longest.
func (gs Grants) Match(owner, repo string, issue int64, action string, now time.Time) (Grant, bool) {
	panic("contract")
}

// Types completed by their files.
type Rung struct{}
type LadderDocument struct{}
type RoleMember struct{ Role, Member string }
type Metrics struct{}
type Inventory struct{}
type ImpactOptions struct{}
type Impact struct{}
