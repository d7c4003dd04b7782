package playbook

import (
	"bytes"
	_ "embed"
	"strings"
	"sync"
	"time"
)

//go:embed mcp.yaml
var defaultYAML []byte

// SchemaJSON is the JSON Schema (draft 2020-12) of the playbook file, for
// editors and for checks in CI. Load is stricter: it also checks what binds
// several places together, such as ranks without a gap.
//
//go:embed schema.json
var SchemaJSON string

// Playbook is the policy as data, read and checked by Load. It is never
// changed after that, so that any number of goroutines may share it.
type Playbook struct {
	id            Identity
	contact       string
	notify        []string
	referencesURL string
	approvalTTL   time.Duration
	requestTTL    time.Duration
	rungs         []Rung // by rank
	outcomes      []outcome
	symptoms      []symptom
	ambiguous     []ambiguousText
	members       []RoleMember

	// What Load works out once, so that the gate does not for every attempt.
	byAction   map[string]int // action → rank
	byOutcome  map[string]int // outcome → index in outcomes
	bySynonym  map[string]int // accepted synonym → index in outcomes
	bySymptom  map[string]int // code → index in symptoms
	whyNeutral []string       // by outcome: why it does not count
	rankOf     wordIndex      // byAction again, faster
	outcomeOf  wordIndex      // byOutcome again, faster
}

// Rung is one step of the ladder.
type Rung struct {
	// Action is its name in canonical spelling.
	Action string `json:"action"`
	// Rank counts from 0, the narrowest, without a gap.
	Rank int `json:"rank"`
	// SelfService says that whoever needs it may do it without asking.
	SelfService bool `json:"self_service"`
	// Delegation is what carries the action out, in words.
	Delegation string `json:"delegation"`
	// References are issue numbers of the operator's tracker, without a sign.
	References []string `json:"references"`
	// Standing is the least permission that may ask for it.
	Standing Permission `json:"standing"`
	// Roles open it whatever the permission is. They include the roles of
	// every broader rung.
	Roles []string `json:"roles"`
	// Gated says that it needs an attempt log; the fields below are zero
	// where it does not.
	Gated bool `json:"gated"`
	// MinAttempts is how many distinct narrower rungs must have been tried.
	MinAttempts int `json:"min_attempts,omitempty"`
	// MaxAge is how old an attempt may be; 0 is no limit.
	MaxAge time.Duration `json:"-"`
	// RequireVerified demands that one of the attempts was the bot's own probe.
	RequireVerified bool `json:"require_verified,omitempty"`
	// FullRestart marks what a scoped recovery avoids, for the metrics.
	FullRestart bool `json:"full_restart,omitempty"`
	// Blast is what ends with it.
	Blast Blast `json:"blast"`
	// Disabled says that an overlay took it away: see Tighten.
	Disabled bool `json:"disabled,omitempty"`

	phrases []string // as wordsOf gives them
	whyGate string   // why an attempt on this rung with a denied outcome is ignored
}

// Blast is how far a rung's effect reaches.
type Blast string

// The reaches. BlastTarget is the whole host where no target is named.
const (
	BlastNone   Blast = "none"
	BlastTarget Blast = "target"
	BlastHost   Blast = "host"
)

// OutcomeKind says what an outcome means to the gate.
type OutcomeKind string

// The kinds of outcome.
const (
	OutcomeCounts    OutcomeKind = "counts"
	OutcomeRecovered OutcomeKind = "recovered"
	OutcomeNeutral   OutcomeKind = "neutral"
)

type outcome struct {
	name       string
	kind       OutcomeKind
	notOnGated bool
	synonyms   []string
	phrases    []string // as wordsOf gives them
}

type symptom struct {
	code, meaning, example string
	phrases, words         []string // as written, and as wordsOf gives them
	first                  int      // rank; -1: none
	advice                 string
}

// ambiguousText is what people write that alone means nothing certain.
type ambiguousText struct {
	text  string
	codes []string
}

// RoleMember is one entry of the roles section: a role, and the login or
// org/team that holds it, perhaps with its forge before it ("github:ada").
type RoleMember struct {
	Role   string `json:"role"`
	Member string `json:"member"`
}

// Default gives the embedded playbook, mcp-scoped-recovery.
func Default() *Playbook { return defaultPlaybook() }

var defaultPlaybook = sync.OnceValue(func() *Playbook {
	p, err := Load(bytes.NewReader(defaultYAML))
	if err != nil {
		panic("playbook: the embedded default is invalid: " + err.Error())
	}
	return p
})

// Identity names the playbook and the SHA-256 of the file it was read from.
func (p *Playbook) Identity() Identity { return p.id }

// ApprovalTTL is how long an approval stands.
func (p *Playbook) ApprovalTTL() time.Duration { return p.approvalTTL }

// RequestTTL is how long a request stays open.
func (p *Playbook) RequestTTL() time.Duration { return p.requestTTL }

// Contact is the one line that tells how to reach the operators; never empty.
func (p *Playbook) Contact() string { return p.contact }

// Notify gives the accounts or org/team that may be mentioned.
func (p *Playbook) Notify() []string { return append([]string{}, p.notify...) }

// NotifyOn gives those of Notify that are on one forge, as RolesOn does.
func (p *Playbook) NotifyOn(forgeName string) []string {
	out := []string{}
	for _, member := range p.notify {
		if rest, here := onForge(member, forgeName); here {
			out = append(out, rest)
		}
	}
	return out
}

// ReferencesURL is what a reference's number is appended to; empty: none.
func (p *Playbook) ReferencesURL() string { return p.referencesURL }

// Rungs gives the ladder, narrowest first; the index is the rank.
func (p *Playbook) Rungs() []Rung { return append([]Rung{}, p.rungs...) }

// Rung gives the rung of an action in canonical spelling.
func (p *Playbook) Rung(action string) (Rung, bool) {
	if rank, ok := p.byAction[action]; ok {
		return p.rungs[rank], true
	}
	return Rung{}, false
}

// RoleMembers gives who holds which role, as the roles section has it.
func (p *Playbook) RoleMembers() []RoleMember { return append([]RoleMember{}, p.members...) }

// RolesOn gives who holds which role on one forge, such as "github": those
// members that name it, by what follows its name, and those that name none. A
// login on two forges is two accounts, of two people perhaps: where a bot
// serves several, members say which they mean.
func (p *Playbook) RolesOn(forgeName string) []RoleMember {
	out := []RoleMember{}
	for _, m := range p.members {
		if rest, here := onForge(m.Member, forgeName); here {
			out = append(out, RoleMember{Role: m.Role, Member: rest})
		}
	}
	return out
}

// onForge takes the forge's name off a member, and reports whether it is that
// one; a member that names none is on every forge.
func onForge(member, forgeName string) (rest string, here bool) {
	name, rest, qualified := strings.Cut(member, ":")
	if !qualified {
		return member, true
	}
	return rest, name == forgeName
}

// Outcomes gives the outcomes in canonical spelling, in the file's order.
func (p *Playbook) Outcomes() []string {
	names := make([]string, len(p.outcomes))
	for i, o := range p.outcomes {
		names[i] = o.name
	}
	return names
}

// Succeeded is the outcome that /resolved records: the first that recovers.
func (p *Playbook) Succeeded() string {
	for _, o := range p.outcomes {
		if o.kind == OutcomeRecovered {
			return o.name
		}
	}
	return "" // Load refuses a playbook without one
}

// Counts reports whether an attempt counts toward escalation at all: an
// outcome that does, on a rung of the ladder, and no kill. An outcome marked
// not_on_gated (denied) does not count on a gated rung: being refused a
// restart is not having tried it.
func (p *Playbook) Counts(a Attempt) bool {
	rank, ok := p.byAction[a.Action]
	if !ok || a.Kill {
		return false
	}
	i, ok := p.byOutcome[a.Outcome]
	return ok && p.countsAt(i, rank)
}

func (p *Playbook) countsAt(outcome, rank int) bool {
	o := &p.outcomes[outcome]
	return o.kind == OutcomeCounts && !(o.notOnGated && p.rungs[rank].Gated)
}

// Recovered reports whether the attempt ended the trouble.
func (p *Playbook) Recovered(a Attempt) bool {
	i, ok := p.byOutcome[a.Outcome]
	_, rung := p.byAction[a.Action]
	return ok && rung && !a.Kill && p.outcomes[i].kind == OutcomeRecovered
}
