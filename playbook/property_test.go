package playbook

import (
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"time"
)

// The properties of the gate, on seeded random escalations. A failure prints
// the seed's index; the same index gives the same escalation again.

const runs = 3000

// gen draws random values.
type gen struct {
	*rand.Rand
	p *Playbook
}

func each(t *testing.T, property func(t *testing.T, g gen)) {
	t.Helper()
	strict := load(t, "gate: {min_attempts: 1}\n  - action: host_restart", "gate: {min_attempts: 2, max_age: 2h}\n  - action: host_restart",
		"gate: {min_attempts: 1}\n\n", "gate: {min_attempts: 3, max_age: 1h, require_verified: true}\n\n")
	for i := range uint64(runs) {
		p := Default()
		if i%2 == 1 {
			p = strict
		}
		property(t, gen{rand.New(rand.NewPCG(i, 1)), p})
		if t.Failed() {
			t.Fatalf("run %d", i)
		}
	}
}

func pick[T any](g gen, from ...T) T { return from[g.IntN(len(from))] }

func (g gen) rung(ungated bool) string {
	for {
		if r := g.p.rungs[g.IntN(len(g.p.rungs))]; !ungated || !r.Gated {
			return r.Action
		}
	}
}

func (g gen) attempt(ungated bool) Attempt {
	a := Attempt{Action: g.rung(ungated), Outcome: pick(g, append(g.p.Outcomes(), "nonsense")...), Actor: pick(g, "ada", "Ada", "bob"),
		Target: pick(g, "", "", "search", "Search", "mail"), RecordedAt: noon.Add(-time.Duration(g.IntN(180)) * time.Minute), Verified: g.IntN(6) == 0}
	if g.IntN(3) == 0 {
		a.PostedAt = noon.Add(-time.Duration(g.IntN(180)) * time.Minute)
	}
	if !ungated && g.IntN(8) == 0 {
		a.Kill = true
	}
	return a
}

func (g gen) standing() Standing {
	s := Standing{Permission: Permission(g.IntN(7))}
	if g.IntN(4) == 0 {
		s.Roles = []string{pick(g, "controller", "janitor")}
	}
	return s
}

func (g gen) escalation(ungated bool) Escalation {
	e := Escalation{Action: g.rung(false), Target: pick(g, "", "search", "mail"), Standing: g.standing(), Now: noon,
		BreakGlass: BreakGlass{Requested: g.IntN(2) == 0, Authorized: g.IntN(2) == 0}}
	for range g.IntN(6) {
		e.Attempts = append(e.Attempts, g.attempt(ungated))
	}
	for range g.IntN(3) {
		e.Symptoms = append(e.Symptoms, pick(g, "stale_capability", "worker_hung", "host_exhausted", "upstream_outage", "no such"))
	}
	if g.IntN(4) == 0 {
		e.Since = noon.Add(-time.Duration(g.IntN(180)) * time.Minute)
	}
	return e
}

func TestPropertyMoreEvidenceNeverRefuses(t *testing.T) {
	allowed := 0
	each(t, func(t *testing.T, g gen) {
		e := g.escalation(false)
		before := g.p.AssessEscalation(e)
		more := g.attempt(false)
		at := g.IntN(len(e.Attempts) + 1)
		e.Attempts = slices.Insert(slices.Clone(e.Attempts), at, more)
		if before.Allowed {
			allowed++
			// Whatever is added, counting or not, a kill even.
			if after := g.p.AssessEscalation(e); !after.Allowed {
				t.Errorf("allowed as %s, and refused as %s after one more attempt: %+v", before.Code, after.Code, more)
			}
		}
	})
	if allowed < runs/20 {
		t.Errorf("only %d of %d were allowed: the property was hardly tested", allowed, runs)
	}
}

func TestPropertyBreakGlassNeverChangesAMatrixDenial(t *testing.T) {
	each(t, func(t *testing.T, g gen) {
		e := g.escalation(false)
		e.BreakGlass = BreakGlass{}
		before := g.p.AssessEscalation(e)
		e.BreakGlass = BreakGlass{Requested: true, Authorized: true}
		after := g.p.AssessEscalation(e)
		if before.Matrix != after.Matrix {
			t.Errorf("the matrix said %+v and then %+v", before.Matrix, after.Matrix)
		}
		if !before.Matrix.Allowed && (after.Allowed || after.Code != before.Code || after.BreakGlass.Used) {
			t.Errorf("%s became %s", before.Code, after.Code)
		}
		if before.Allowed && !after.Allowed {
			t.Errorf("break-glass refused %s as %s", before.Code, after.Code)
		}
	})
}

func TestPropertyWhatAllowsBroaderAllowsNarrower(t *testing.T) {
	allowed := 0
	each(t, func(t *testing.T, g gen) {
		e := g.escalation(true)
		e.BreakGlass = BreakGlass{}
		for i := range e.Attempts {
			e.Attempts[i].Kill = false
		}
		broad := g.p.AssessEscalation(e)
		if !broad.Allowed {
			return
		}
		allowed++
		for rank := range *broad.Rung {
			e.Action = g.p.rungs[rank].Action
			if narrow := g.p.AssessEscalation(e); !narrow.Allowed {
				t.Errorf("%s is allowed as %s, but %s is %s", broad.Action, broad.Code, narrow.Action, narrow.Code)
			}
		}
	})
	if allowed < runs/20 {
		t.Errorf("only %d of %d were allowed", allowed, runs)
	}
}

func TestPropertyNextSatisfiesTheGate(t *testing.T) {
	refused := 0
	each(t, func(t *testing.T, g gen) {
		e := g.escalation(false)
		a := g.p.AssessEscalation(e)
		switch a.Code {
		case CodeAttemptLogMissing, CodeAttemptLogInsufficient, CodeBreakGlassNotAuthorized:
		default:
			return
		}
		refused++
		rank, ok := g.p.byAction[a.Next]
		if !ok || rank >= *a.Rung {
			t.Fatalf("next is %q for %s", a.Next, a.Action)
		}
		// Doing what missing says, by a verified probe, opens the gate.
		posts := 0
		for _, m := range a.Missing {
			if m.What != "attempt" {
				continue
			}
			posts++
			at := Attempt{Action: a.Next, Outcome: "insufficient", Actor: "carol", RecordedAt: noon, Verified: true}
			if m.Post != "" {
				at.Action = g.attemptOf(t, m.Post)
			}
			e.Attempts = append(e.Attempts, at)
		}
		if posts == 0 {
			t.Fatalf("%s without a missing attempt", a.Code)
		}
		if after := g.p.AssessEscalation(e); !after.Allowed {
			t.Errorf("%s for %s, missing %+v; with those: %s", a.Code, a.Action, a.Missing, after.Code)
		}
	})
	if refused < runs/50 {
		t.Errorf("only %d of %d were refused for want of a log", refused, runs)
	}
}

// attemptOf reads a line to post.
func (g gen) attemptOf(t *testing.T, line string) string {
	for _, r := range g.p.rungs {
		if line == "/attempt "+r.Action+" insufficient" {
			return r.Action
		}
	}
	t.Fatalf("%q is no line to post", line)
	return ""
}

func TestPropertyNothingIsLostAndNothingIsChanged(t *testing.T) {
	each(t, func(t *testing.T, g gen) {
		e := g.escalation(false)
		before := slices.Clone(e.Attempts)
		a, b := g.p.AssessEscalation(e), g.p.AssessEscalation(e)
		if !reflect.DeepEqual(a, b) {
			t.Error("the same question, another answer")
		}
		if !slices.Equal(before, e.Attempts) {
			t.Error("the attempts were changed")
		}
		if len(a.Counted)+len(a.Ignored) != len(e.Attempts) {
			t.Errorf("%d counted, %d ignored of %d", len(a.Counted), len(a.Ignored), len(e.Attempts))
		}
		for _, i := range a.Ignored {
			if i.Why == "" {
				t.Errorf("ignored without a why: %+v", i)
			}
		}
		kills := slices.ContainsFunc(e.Attempts, func(a Attempt) bool { return a.Kill })
		if a.Contaminated != kills || a.Allowed != (len(a.Missing) == 0) || len(a.Reasons) == 0 {
			t.Errorf("contaminated %v with kills %v; missing %+v", a.Contaminated, kills, a.Missing)
		}
		// Without the kills, the same verdict.
		e.Attempts = slices.DeleteFunc(slices.Clone(e.Attempts), func(a Attempt) bool { return a.Kill })
		if clean := g.p.AssessEscalation(e); clean.Allowed != a.Allowed {
			t.Errorf("kills turned %s into %s", clean.Code, a.Code)
		}
		noNil(t, a)
	})
}

func TestPropertyOrderDoesNotMatter(t *testing.T) {
	each(t, func(t *testing.T, g gen) {
		e := g.escalation(false)
		a := g.p.AssessEscalation(e)
		e.Attempts = slices.Clone(e.Attempts)
		slices.Reverse(e.Attempts)
		if b := g.p.AssessEscalation(e); a.Code != b.Code || a.Next != b.Next {
			t.Errorf("%s, next %q; reversed %s, next %q", a.Code, a.Next, b.Code, b.Next)
		}
	})
}
