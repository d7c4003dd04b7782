package playbook

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// The properties of overlays, on seeded random files. A failure prints the
// seed's index; the same index gives the same file again.

const overlays = 1000

// overlayText writes a random overlay: anything its format allows, loosening
// included. Half of them keep broader rungs as strict as narrower ones, or
// hardly any would be taken.
func (g gen) overlayText() string {
	var b strings.Builder
	b.WriteString("tighten:\n")
	orderly := g.IntN(2) == 0
	var standing Permission
	least, strict := 1, false
	for _, r := range g.p.rungs {
		if g.IntN(3) > 0 && !orderly {
			continue
		}
		fmt.Fprintf(&b, "  - action: %s\n", r.Action)
		if g.IntN(4) == 0 {
			b.WriteString("    disable: true\n")
			continue
		}
		if orderly {
			standing = max(standing, r.Standing)
			least = max(least, r.MinAttempts)
			if g.IntN(6) == 0 && standing < PermissionOwner {
				standing++
			}
		} else {
			standing = Permission(1 + g.IntN(5))
			least = 1 + g.IntN(4)
		}
		fmt.Fprintf(&b, "    standing: %s\n", standing)
		if orderly && !r.Gated {
			continue
		}
		if g.IntN(3) == 0 && orderly {
			least++
		}
		fmt.Fprintf(&b, "    min_attempts: %d\n", least)
		if g.IntN(3) == 0 || strict {
			strict = orderly
			fmt.Fprintf(&b, "    require_verified: true\n")
		}
		if orderly && r.MaxAge > 0 || !orderly && g.IntN(4) == 0 {
			fmt.Fprintf(&b, "    max_age: %dm\n", pick(g, 30, 60, 600))
		}
	}
	return b.String()
}

func eachOverlay(t *testing.T, property func(t *testing.T, g gen, q *Playbook)) {
	t.Helper()
	books := []*Playbook{Default(), strictPlaybook(t)}
	taken := 0
	for i := range uint64(overlays) {
		g := gen{rand.New(rand.NewPCG(i, 7)), books[i%2]}
		text := g.overlayText()
		o, err := LoadOverlay(strings.NewReader(text))
		if err != nil {
			t.Fatalf("file %d: %v\n%s", i, err, text)
		}
		q, err := g.p.Tighten(o)
		if err != nil {
			if q != nil || !strings.Contains(err.Error(), "line ") {
				t.Fatalf("file %d: %v", i, err)
			}
			continue
		}
		taken++
		property(t, g, q)
		if t.Failed() {
			t.Fatalf("file %d:\n%s", i, text)
		}
	}
	if taken < overlays/10 {
		t.Errorf("only %d of %d files were taken: the property was hardly tested", taken, overlays)
	}
}

// neverLoosens is the promise of this file, on one escalation.
func neverLoosens(t *testing.T, p, q *Playbook, e Escalation) (allowed bool) {
	t.Helper()
	a := q.AssessEscalation(e)
	if a.Allowed && !p.AssessEscalation(e).Allowed {
		t.Errorf("%s is allowed as %s, and by the operator's playbook it is not: %+v", a.Action, a.Code, e)
	}
	if rung, _ := q.Rung(a.Action); rung.Disabled && a.Allowed {
		t.Errorf("%s is disabled, and allowed as %s", a.Action, a.Code)
	}
	return a.Allowed
}

func TestPropertyNoOverlayLoosens(t *testing.T) {
	allowed := 0
	eachOverlay(t, func(t *testing.T, g gen, q *Playbook) {
		for range 30 {
			if neverLoosens(t, g.p, q, g.escalation(false)) {
				allowed++
			}
		}
	})
	if allowed < overlays {
		t.Errorf("only %d escalations were allowed: the property was hardly tested", allowed)
	}
}

func TestPropertyDisabledIsNeverRecommended(t *testing.T) {
	seen := 0
	eachOverlay(t, func(t *testing.T, g gen, q *Playbook) {
		disabled := func(action string) bool { r, _ := q.Rung(action); return r.Disabled }
		for range 30 {
			e := g.escalation(false)
			a := q.AssessEscalation(e)
			if a.Code == CodeActionDisabled {
				seen++
			}
			if disabled(a.Next) || slices.ContainsFunc(a.Counted, func(at Attempt) bool { return disabled(at.Action) }) {
				t.Errorf("next %q, counted %+v", a.Next, a.Counted)
			}
			for _, m := range a.Missing {
				if f := strings.Fields(m.Post); len(f) > 1 && m.What != "standing" && disabled(f[1]) {
					t.Errorf("%s posts %q", a.Code, m.Post)
				}
			}
			rec := q.RecommendActions(e.Symptoms, e.Attempts)
			for _, s := range append(rec.Ladder, LadderStep{Action: rec.Next}) {
				if disabled(s.Action) {
					t.Errorf("recommended %s", s.Action)
				}
			}
			for _, s := range q.SuggestActions(e.Action + "x") {
				if disabled(s) {
					t.Errorf("suggested %s", s)
				}
			}
		}
	})
	if seen < overlays/2 {
		t.Errorf("only %d requests for disabled rungs", seen)
	}
}

// TestPropertyTightenedGatesCanBeMet: after a refusal for want of a log, doing
// what the answer says opens the gate, as under the operator's playbook.
func TestPropertyTightenedGatesCanBeMet(t *testing.T) {
	refused := 0
	eachOverlay(t, func(t *testing.T, g gen, q *Playbook) {
		own := gen{g.Rand, q}
		for range 30 {
			e := g.escalation(false)
			e.Standing = Standing{Permission: PermissionOwner}
			e.BreakGlass = BreakGlass{}
			a := q.AssessEscalation(e)
			if a.Code != CodeAttemptLogMissing && a.Code != CodeAttemptLogInsufficient {
				continue
			}
			refused++
			if next, ok := q.Rung(a.Next); !ok || next.Disabled || next.Rank >= *a.Rung {
				t.Fatalf("next is %q for %s, missing %+v", a.Next, a.Action, a.Missing)
			}
			for _, m := range a.Missing {
				at := Attempt{Action: a.Next, Outcome: "insufficient", Actor: "carol", RecordedAt: noon, Verified: true}
				if m.Post != "" {
					at.Action = own.attemptOf(t, m.Post)
				}
				e.Attempts = append(e.Attempts, at)
			}
			if after := q.AssessEscalation(e); !after.Allowed {
				t.Errorf("%s for %s, missing %+v; with those: %s", a.Code, a.Action, a.Missing, after.Code)
			}
		}
	})
	if refused < overlays {
		t.Errorf("only %d were refused for want of a log", refused)
	}
}

// TestPropertyTightenedIsALadder: among the rungs that are left, whatever
// allows a broader request allows every narrower one.
func TestPropertyTightenedIsALadder(t *testing.T) {
	eachOverlay(t, func(t *testing.T, g gen, q *Playbook) {
		for range 10 {
			e := g.escalation(true)
			e.BreakGlass = BreakGlass{}
			broad := q.AssessEscalation(e)
			if !broad.Allowed {
				continue
			}
			for rank := range *broad.Rung {
				if e.Action = q.rungs[rank].Action; q.rungs[rank].Disabled {
					continue
				}
				if narrow := q.AssessEscalation(e); !narrow.Allowed {
					t.Errorf("%s is allowed as %s, but %s is %s", broad.Action, broad.Code, narrow.Action, narrow.Code)
				}
			}
		}
	})
}

func FuzzOverlay(f *testing.F) {
	f.Add(fullOverlay, uint64(1))
	for _, c := range overlayFaults {
		f.Add(c.text, uint64(2))
	}
	p := strictPlaybook(f)
	f.Fuzz(func(t *testing.T, text string, seed uint64) {
		o, err := LoadOverlay(strings.NewReader(text))
		if err != nil {
			return
		}
		q, err := p.Tighten(o)
		if err != nil {
			return
		}
		g := gen{rand.New(rand.NewPCG(seed, 3)), p}
		for range 20 {
			neverLoosens(t, p, q, g.escalation(false))
		}
	})
}
