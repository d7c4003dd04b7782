package playbook

import (
	"fmt"
	"slices"
	"time"
)

// rungs reads the ladder and checks that it is one: ranks from 0 without gap
// or repeat, and no rung laxer than a narrower one.
func (d *decoder) rungs(p *Playbook, n *node, roles map[string]bool) {
	p.byAction = map[string]int{}
	items := d.list(n, "rungs")
	if len(items) == 0 {
		if n != nil && n.kind != objectNode && n.kind != scalarNode {
			d.fail(n.line, "rungs", "must hold at least one rung")
		}
		return
	}
	if len(items) > 100 {
		d.fail(n.line, "rungs", "more than 100 rungs")
		return
	}
	before := len(d.errs)
	at := make([]*rungPlace, len(items)) // by rank
	for i, item := range items {
		r, place := d.rung(item, fmt.Sprintf("rungs[%d]", i), roles)
		if _, dup := p.byAction[r.Action]; dup && r.Action != "" {
			d.fail(place.line("action"), place.path+".action", "%s stands twice", quote(r.Action))
		}
		p.byAction[r.Action] = r.Rank
		switch {
		case r.Rank >= len(items):
			d.fail(place.line("rank"), place.path+".rank", "%d leaves a gap: %d rungs have ranks 0 to %d", r.Rank, len(items), len(items)-1)
		case at[r.Rank] != nil:
			d.fail(place.line("rank"), place.path+".rank", "%d stands twice", r.Rank)
		default:
			place.rung = r
			at[r.Rank] = place
		}
	}
	if len(d.errs) > before {
		return // the checks across rungs need a whole ladder
	}
	for _, place := range at {
		p.rungs = append(p.rungs, place.rung)
	}
	d.monotone(at)
	p.closeRoles()
}

// rungPlace is a rung and where its fields stand.
type rungPlace struct {
	rung   Rung
	path   string
	start  int
	fields map[string]*node
}

func (r *rungPlace) line(key string) int {
	if n := r.fields[key]; n != nil {
		return n.line
	}
	if n := r.fields["gate"]; n != nil && key != "standing" && key != "roles" {
		return n.line
	}
	return r.start
}

func (d *decoder) rung(item node, path string, roles map[string]bool) (Rung, *rungPlace) {
	m := d.object(item, path, "action", "rank", "self_service", "standing", "roles", "delegation",
		"references", "blast", "full_restart", "phrases", "gate")
	place := &rungPlace{path: path, start: item.line, fields: m}
	r := Rung{
		Action:      d.match(d.need(m, item, path, "action"), path+".action", codeRE),
		Rank:        d.integer(d.need(m, item, path, "rank"), path+".rank", 0),
		SelfService: d.boolean(m["self_service"], path+".self_service"),
		Delegation:  d.text(d.need(m, item, path, "delegation"), path+".delegation"),
		References:  d.texts(m["references"], path+".references", nameRE),
		Roles:       d.texts(m["roles"], path+".roles", codeRE),
		FullRestart: d.boolean(m["full_restart"], path+".full_restart"),
		Blast:       BlastTarget,
		phrases:     asWords(d.texts(m["phrases"], path+".phrases", nil)),
	}
	standing := d.oneOf(d.need(m, item, path, "standing"), path+".standing", "none", "read", "write", "admin", "owner")
	r.Standing, _ = ParsePermission(standing)
	if b := m["blast"]; b != nil {
		r.Blast = Blast(d.oneOf(b, path+".blast", "none", "target", "host"))
	}
	for _, role := range r.Roles {
		if !roles[role] {
			d.fail(place.line("roles"), path+".roles", "the role %s is not in the roles section", quote(role))
		}
	}
	if isKillAction(r.Action) {
		d.fail(place.line("action"), path+".action", "%s is a manual process kill and no recovery step", quote(r.Action))
	}
	if gate := m["gate"]; gate != nil && gate.kind != nullNode {
		g := d.object(*gate, path+".gate", "min_attempts", "max_age", "require_verified")
		for k, v := range g {
			m[k] = v
		}
		r.Gated = true
		r.MinAttempts = d.integer(g["min_attempts"], path+".gate.min_attempts", 1)
		r.MaxAge = d.duration(g["max_age"], path+".gate.max_age", 0)
		r.RequireVerified = d.boolean(g["require_verified"], path+".gate.require_verified")
	}
	return r, place
}

// monotone checks every rung against all narrower ones: what is broader may
// never be easier to get. The design pages ask this of gated rungs; it is
// asked of all, because a lax rung above a strict one would let the broader
// request through where the narrower is refused.
func (d *decoder) monotone(at []*rungPlace) {
	var strict rungPlace // the strictest of each, so far
	strict.rung.Roles = nil
	for i, place := range at {
		r, s := place.rung, strict.rung
		fail := func(key, why string, args ...any) {
			path := place.path + "." + key
			if key == "min_attempts" || key == "max_age" || key == "require_verified" {
				path = place.path + ".gate." + key
			}
			d.fail(place.line(key), path, "laxer than a narrower rung: "+why, args...)
		}
		if i > 0 && r.Standing < s.Standing {
			fail("standing", "%s where a narrower rung needs %s", r.Standing, s.Standing)
		}
		if s.Gated && !r.Gated {
			fail("gate", "no gate where a narrower rung has one")
		}
		if r.Gated && r.MinAttempts < s.MinAttempts {
			fail("min_attempts", "%d where a narrower rung demands %d", r.MinAttempts, s.MinAttempts)
		}
		if r.Gated && s.MaxAge > 0 && (r.MaxAge == 0 || r.MaxAge > s.MaxAge) {
			fail("max_age", "%s where a narrower rung has %s", ageText(r.MaxAge), ageText(s.MaxAge))
		}
		if r.Gated && s.RequireVerified && !r.RequireVerified {
			fail("require_verified", "false where a narrower rung has true")
		}
		if s.Gated && r.Gated {
			for _, role := range r.Roles {
				if !slices.Contains(s.Roles, role) {
					fail("roles", "the role %s opens it, and not the narrower gated rung", quote(role))
				}
			}
		}
		if r.Gated && r.MinAttempts > r.Rank {
			d.fail(place.line("min_attempts"), place.path+".gate.min_attempts", "%d cannot be met: only %d rungs are narrower", r.MinAttempts, r.Rank)
		}
		strict.rung = r
	}
}

func ageText(d time.Duration) string {
	if d == 0 {
		return "no limit"
	}
	return d.String()
}

// closeRoles gives each rung the roles of all broader ones.
func (p *Playbook) closeRoles() {
	var above []string
	for i := len(p.rungs) - 1; i >= 0; i-- {
		r := &p.rungs[i]
		for _, role := range r.Roles {
			if !slices.Contains(above, role) {
				above = append(above, role)
			}
		}
		r.Roles = append([]string{}, above...)
		slices.Sort(r.Roles)
	}
}

// LadderSchema names the published form of the ladder document. Fields are
// only ever added to it.
const LadderSchema = "playbook-bot/ladder/v1"

// LadderDocument is the playbook for machines. Its JSON field names are a
// published contract. It names roles but not who holds them, and nobody who
// may be notified: it is shown to everyone.
type LadderDocument struct {
	Schema        string          `json:"schema"`
	Name          string          `json:"name"`
	SHA256        string          `json:"sha256"`
	Contact       string          `json:"contact"`
	ReferencesURL string          `json:"references_url"`
	ApprovalTTLS  int64           `json:"approval_ttl_s"`
	RequestTTLS   int64           `json:"request_ttl_s"`
	Rungs         []LadderRung    `json:"rungs"`
	Outcomes      []LadderOutcome `json:"outcomes"`
	Symptoms      []LadderSymptom `json:"symptoms"`
	// Matrix says, by rank, which standing opens a rung.
	Matrix []LadderMatrix `json:"matrix"`
}

// LadderRung is a rung with its gate, nil where it has none.
type LadderRung struct {
	LadderStep
	Gate        *LadderGate `json:"gate"`
	FullRestart bool        `json:"full_restart"`
	Blast       Blast       `json:"blast"`
}

// LadderGate is what the attempt log of a gated rung must hold.
type LadderGate struct {
	MinAttempts int `json:"min_attempts"`
	// MaxAgeS is in seconds, nil where there is no limit.
	MaxAgeS         *int64 `json:"max_age_s"`
	RequireVerified bool   `json:"require_verified"`
}

// LadderOutcome is an outcome and the spellings taken for it.
type LadderOutcome struct {
	Outcome    string      `json:"outcome"`
	Kind       OutcomeKind `json:"kind"`
	NotOnGated bool        `json:"not_on_gated"`
	Synonyms   []string    `json:"synonyms"`
}

// LadderSymptom is a symptom; First is empty where no rung helps, and then
// Advice says what does.
type LadderSymptom struct {
	Code    string   `json:"code"`
	Meaning string   `json:"meaning"`
	Phrases []string `json:"phrases"`
	First   string   `json:"first"`
	Advice  string   `json:"advice"`
}

// LadderMatrix is a row of the class matrix.
type LadderMatrix struct {
	Rank     int        `json:"rank"`
	Action   string     `json:"action"`
	Standing Permission `json:"standing"`
	Roles    []string   `json:"roles"`
}

// LadderDocument gives the machine-readable ladder. No slice is nil.
func (p *Playbook) LadderDocument() LadderDocument {
	doc := LadderDocument{
		Schema: LadderSchema, Name: p.id.Name, SHA256: p.id.SHA256,
		Contact: p.contact, ReferencesURL: p.referencesURL,
		ApprovalTTLS: int64(p.approvalTTL / time.Second), RequestTTLS: int64(p.requestTTL / time.Second),
		Rungs: []LadderRung{}, Outcomes: []LadderOutcome{}, Symptoms: []LadderSymptom{}, Matrix: []LadderMatrix{},
	}
	for _, r := range p.rungs {
		step := LadderRung{LadderStep: r.step(), FullRestart: r.FullRestart, Blast: r.Blast}
		if r.Gated {
			step.Gate = &LadderGate{MinAttempts: r.MinAttempts, RequireVerified: r.RequireVerified}
			if r.MaxAge > 0 {
				s := int64(r.MaxAge / time.Second)
				step.Gate.MaxAgeS = &s
			}
		}
		doc.Rungs = append(doc.Rungs, step)
		doc.Matrix = append(doc.Matrix, LadderMatrix{Rank: r.Rank, Action: r.Action, Standing: r.Standing, Roles: append([]string{}, r.Roles...)})
	}
	for _, o := range p.outcomes {
		doc.Outcomes = append(doc.Outcomes, LadderOutcome{Outcome: o.name, Kind: o.kind, NotOnGated: o.notOnGated, Synonyms: append([]string{}, o.synonyms...)})
	}
	for _, s := range p.symptoms {
		first := ""
		if s.first >= 0 {
			first = p.rungs[s.first].Action
		}
		doc.Symptoms = append(doc.Symptoms, LadderSymptom{Code: s.code, Meaning: s.meaning, Phrases: append([]string{}, s.phrases...), First: first, Advice: s.advice})
	}
	return doc
}

func (r *Rung) step() LadderStep {
	return LadderStep{Action: r.Action, Rank: r.Rank, SelfService: r.SelfService, Gated: r.Gated, Disabled: r.Disabled,
		Delegation: r.Delegation, References: append([]string{}, r.References...)}
}
