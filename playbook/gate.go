package playbook

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// AssessEscalation is the gate. It asks, in this order, and the first that
// fails names the code: is it an action; is it disabled here; does the actor's standing open its
// rung (nothing passes this, not attempts and not break-glass); is the rung
// free of a gate; does the log hold enough narrower attempts that did not
// help; is break-glass requested and authorized.
//
// Contamination informs and never changes the verdict.
func (p *Playbook) AssessEscalation(e Escalation) Assessment {
	g := gate{p: p, e: e, symptoms: p.readSymptoms(e.Symptoms)}
	g.a = Assessment{
		Target: e.Target, Reasons: []string{}, Missing: []Missing{}, Suggestions: []string{},
		BreakGlass:      BreakGlass{Requested: e.BreakGlass.Requested, Authorized: e.BreakGlass.Authorized},
		UnknownSymptoms: g.symptoms.unknown,
	}
	action, ok := p.NormalizeAction(e.Action)
	g.a.Action = action
	if !ok {
		return g.noAction()
	}
	rank := p.byAction[action]
	g.rung, g.a.Rung = &p.rungs[rank], &rank
	g.sift()
	g.a.AttemptLogRequired = g.rung.Gated
	g.a.AttemptLogSatisfied = !g.rung.Gated || g.distinct >= g.rung.MinAttempts && (!g.rung.RequireVerified || g.verified)
	var unknown bool
	g.a.Matrix, unknown = p.matrix(rank, e.Standing, e.Actor)
	g.decide(unknown)
	g.next()
	g.missing()
	g.contamination()
	return g.a
}

// gate is one assessment under way.
type gate struct {
	p        *Playbook
	e        Escalation
	a        Assessment
	rung     *Rung // nil where the action is none
	symptoms symptomReading
	tried    []bool // by rank: an attempt counted for this request
	distinct int    // rungs tried
	verified bool   // one of the counted is the bot's own probe
	newest   time.Time
	kills    []Attempt
}

// noAction answers a request for what is no rung.
func (g *gate) noAction() Assessment {
	e := g.e
	near := g.p.SuggestActions(e.Action)
	g.a.Action = plain(e.Action, maxActor)
	g.a.Code, g.a.Matrix.Why = CodeUnknownAction, "the request names no rung of the ladder"
	g.sift()
	g.a.Next = g.p.RecommendActions(e.Symptoms, e.Attempts).Next
	post := "/playbook ladder"
	if isKillAction(e.Action) {
		g.a.Code, near, post = CodeForbiddenAction, nil, "/recommend"
		if g.a.Next != "" {
			post = "/restart " + g.a.Next + targetArg(e.Target)
		}
	} else if len(near) > 0 {
		g.a.Suggestions = near
		post = "/restart " + near[0] + targetArg(e.Target)
	}
	why := g.p.whyNoAction(e.Action, near)
	g.a.Reasons = append(g.a.Reasons, why)
	g.a.Missing = append(g.a.Missing, Missing{What: "action", Who: "the requester", Post: post, Text: why})
	g.contamination()
	return g.a
}

// decide names the code and its reason.
func (g *gate) decide(standingUnknown bool) {
	a, r := &g.a, g.rung
	name := fmt.Sprintf("`%s` (rung %d)", r.Action, r.Rank)
	switch {
	case r.Disabled:
		g.verdict(false, CodeActionDisabled, name+" is disabled in this repository, for everybody")
		return
	case standingUnknown:
		g.verdict(false, CodeStandingUnknown, "standing is unknown, and unknown is denied: "+a.Matrix.Why)
	case !a.Matrix.Allowed:
		g.verdict(false, CodeClassMatrixDenied, a.Matrix.Why)
	case !r.Gated:
		g.verdict(true, CodeAllowed, name+" needs no attempt log")
	case a.AttemptLogSatisfied:
		g.verdict(true, CodeAllowedAttemptLog, g.countedText())
	case a.BreakGlass.Requested && a.BreakGlass.Authorized:
		a.BreakGlass.Used = true
		g.verdict(true, CodeAllowedBreakGlass, "the attempt log was skipped by authorized break-glass")
	case a.BreakGlass.Requested:
		g.verdict(false, CodeBreakGlassNotAuthorized, "break-glass was requested, and no grant of the operator authorizes it; "+g.wantText())
	case len(g.e.Attempts)+len(g.e.Excluded) == 0:
		g.verdict(false, CodeAttemptLogMissing, "no narrower attempt in the log")
	default:
		g.verdict(false, CodeAttemptLogInsufficient, g.wantText())
	}
	if a.BreakGlass.Requested && !a.Matrix.Allowed {
		a.Reasons = append(a.Reasons, "break-glass cannot replace standing")
	}
	if !a.Matrix.Allowed && !a.AttemptLogSatisfied && !(a.BreakGlass.Requested && a.BreakGlass.Authorized) {
		a.Reasons = append(a.Reasons, g.wantText())
	}
	g.targetsText()
}

func (g *gate) verdict(allowed bool, code Code, why string) {
	g.a.Allowed, g.a.Code = allowed, code
	g.a.Reasons = append(g.a.Reasons, why)
}

// countedText says what satisfied the gate, and how old it is.
func (g *gate) countedText() string {
	var parts []string
	for i, c := range g.a.Counted {
		if i == 3 {
			parts = append(parts, fmt.Sprintf("and %d more", len(g.a.Counted)-i))
			break
		}
		parts = append(parts, "`"+c.Action+"` "+c.Outcome)
	}
	text := "a narrower attempt did not help: "
	if len(g.a.Counted) > 1 {
		text = "narrower attempts did not help: "
	}
	text += strings.Join(parts, ", ")
	if age := g.e.Now.Sub(g.newest); !g.e.Now.IsZero() && !g.newest.IsZero() && age >= time.Minute {
		text += "; the newest is " + roughAge(age) + " old"
	}
	return text
}

// roughAge gives a duration in its largest unit that says enough.
func roughAge(d time.Duration) string {
	switch {
	case d < 2*time.Hour:
		return fmt.Sprintf("%d min", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%d h", int(d.Hours()))
	}
	return fmt.Sprintf("%d days", int(d.Hours()/24))
}

// wantText says what the log lacks.
func (g *gate) wantText() string {
	r := g.rung
	switch {
	case g.distinct >= r.MinAttempts && r.RequireVerified && !g.verified:
		return "none of the narrower attempts is verified by the bot's own probe"
	case r.MinAttempts > 1:
		return fmt.Sprintf("the log holds attempts that did not help on %d narrower rungs; `%s` needs %d", g.distinct, r.Action, r.MinAttempts)
	case len(g.e.Attempts)+len(g.e.Excluded) == 0:
		return "no narrower attempt in the log"
	}
	return "none of the attempts in the log counts for `" + r.Action + "`: one is needed on a narrower rung that did not help"
}

// targetsText names the targets whose attempts counted for a request that
// names none.
func (g *gate) targetsText() {
	if g.e.Target != "" || !g.rung.Gated {
		return
	}
	var names []string
	for i := range g.a.Counted {
		if t := g.a.Counted[i].Target; t != "" && len(names) < 5 {
			if t = quote(t); !slices.Contains(names, t) {
				names = append(names, t)
			}
		}
	}
	if len(names) > 0 {
		g.a.Reasons = append(g.a.Reasons, "the request names no target, so attempts on any count: "+strings.Join(names, ", "))
	}
}

// next names the rung to try now. Refused, that is the narrowest rung below
// the request without a counting attempt, so that it would satisfy the gate;
// it starts at the symptoms' first rung where that is below the request.
// Allowed, it is an untried narrower rung as advice (rungs without a gate
// only), or else the action itself.
func (g *gate) next() {
	rank, start := g.rung.Rank, 0
	if g.symptoms.given && g.symptoms.first < rank {
		start = g.symptoms.first
	}
	narrower := g.untried(start, rank)
	if narrower < 0 && start > 0 {
		narrower = g.untried(0, rank)
	}
	wantsProbe := g.rung.Gated && !g.a.AttemptLogSatisfied && g.distinct >= g.rung.MinAttempts
	switch {
	case g.a.Allowed && (g.rung.Gated || g.symptoms.given && g.symptoms.first >= rank):
		g.a.Next = g.rung.Action
	case narrower < 0 && g.rung.Disabled:
		if free := g.untried(rank+1, len(g.p.rungs)); free >= 0 && !g.p.rungs[free].Gated {
			g.a.Next = g.p.rungs[free].Action
		}
	case narrower >= 0:
		g.a.Next = g.p.rungs[narrower].Action
		if g.a.Allowed {
			g.a.Reasons = append(g.a.Reasons, "advice: `"+g.a.Next+"` is narrower and not yet tried")
		}
	case g.a.Allowed:
		g.a.Next = g.rung.Action
	case wantsProbe: // all tried, but none by the bot itself
		for start < rank && g.p.rungs[start].Disabled {
			start++
		}
		if start == rank {
			start = slices.IndexFunc(g.p.rungs, func(r Rung) bool { return !r.Disabled })
		}
		g.a.Next = g.p.rungs[start].Action
	}
}

// untried is the first rung in [from, to) that is left to try, -1 for none.
func (g *gate) untried(from, to int) int {
	for i := from; i < to; i++ {
		if !g.tried[i] && !g.p.rungs[i].Disabled {
			return i
		}
	}
	return -1
}

// missing lists every condition still open.
func (g *gate) missing() {
	a, e, r := &g.a, &g.e, g.rung
	switch {
	case a.Allowed:
		return
	case r.Disabled:
		// Nothing else helps: what it would need besides is not to be sought.
		m := Missing{What: "action", Who: "the requester", Text: "another action: `" + r.Action + "` is disabled in this repository"}
		if a.Next != "" {
			m.Post = "/restart " + a.Next + targetArg(e.Target)
		}
		a.Missing = append(a.Missing, m)
		return
	}
	if !a.Matrix.Allowed {
		m := Missing{What: "standing", Who: "an account with " + g.p.needText(r), Text: a.Matrix.Why,
			Post: "/restart " + r.Action + targetArg(e.Target)}
		if e.Request != "" {
			m.What, m.Post = "endorsement", "/endorse "+plain(e.Request, 40)
		}
		a.Missing = append(a.Missing, m)
	}
	byGlass := a.BreakGlass.Requested && a.BreakGlass.Authorized
	if a.AttemptLogSatisfied || byGlass {
		return
	}
	g.missingAttempts()
	if a.BreakGlass.Requested {
		a.Missing = append(a.Missing, Missing{What: "break_glass_grant", Who: "the operator",
			Text: "or, instead of the attempt: a break-glass grant for `" + r.Action + "` in the operator's configuration"})
	}
}

// missingAttempts gives one line to post for each attempt the log lacks.
func (g *gate) missingAttempts() {
	r, rank := g.rung, 0
	if next, ok := g.p.byAction[g.a.Next]; ok {
		rank = next
	}
	lack := r.MinAttempts - g.distinct
	for i := 0; i < r.Rank && lack > 0; i++ {
		at := (rank + i) % r.Rank // from next on, and then from the narrowest
		if g.tried[at] || g.p.rungs[at].Disabled {
			continue
		}
		action := g.p.rungs[at].Action
		g.a.Missing = append(g.a.Missing, Missing{What: "attempt", Who: "anyone",
			Post: AttemptLine(action, g.p.commonOutcome(), "", ""),
			Text: "an attempt narrower than `" + r.Action + "` that did not help, such as `" + action + "`"})
		lack--
	}
	if r.RequireVerified && !g.verified {
		g.a.Missing = append(g.a.Missing, Missing{What: "attempt", Who: "the bot's own probe",
			Text: "one verified attempt narrower than `" + r.Action + "`; what people log themselves is not verified"})
	}
}

// commonOutcome is the outcome that lines to post suggest for an attempt that
// did not help.
func (p *Playbook) commonOutcome() string {
	name := ""
	for _, o := range p.outcomes {
		if o.kind == OutcomeCounts && !o.notOnGated && (name == "" || o.name == "insufficient") {
			name = o.name
		}
	}
	return name
}
