package playbook

import (
	"strings"
	"time"
)

// Why an attempt is ignored, where the words are always the same.
const (
	whyKill     = "a manual process kill is forbidden and never counts"
	whyNoRung   = "its action is no rung of this ladder"
	whyOutcome  = "its outcome is none of this playbook"
	whyNotBelow = "it is not narrower than the request"
	whyBefore   = "it is from before the last close or recovery"
	whyOld      = "it is older than the playbook allows"
	whyNoTime   = "it has no time, and the playbook limits the age"
	whyRepeat   = "the same attempt is counted already"
	whyNoAsk    = "the request names no rung of the ladder"
)

// sift parts the attempts into counted and ignored. It looks at each one once;
// the words are made beforehand and the slices once, in their final size.
func (g *gate) sift() {
	attempts := g.e.Attempts
	why := make([]string, len(attempts))
	seen := newAttemptSet(attempts)
	g.tried = make([]bool, len(g.p.rungs))
	s := sifter{gate: g, target: fold(strings.TrimSpace(g.e.Target))}
	if g.rung != nil && g.rung.MaxAge > 0 && !g.e.Now.IsZero() {
		s.oldest = g.e.Now.Add(-g.rung.MaxAge)
	}
	counted := 0
	for i := range attempts {
		at := &attempts[i]
		rank, reason := s.why(at)
		if reason == "" && !seen.add(i) {
			g.verified = g.verified || at.Verified // the probe's copy proves it still
			reason = whyRepeat
		}
		if why[i] = reason; reason != "" {
			if reason == whyKill {
				g.kills = append(g.kills, *at)
			}
			continue
		}
		counted++
		g.verified = g.verified || at.Verified
		if !g.tried[rank] {
			g.tried[rank] = true
			g.distinct++
		}
		if t := attemptTime(at); t.After(g.newest) {
			g.newest = t
		}
	}
	g.a.Counted = make([]Attempt, 0, counted)
	g.a.Ignored = make([]IgnoredAttempt, len(attempts)-counted, len(attempts)-counted+len(g.e.Excluded))
	ignored := g.a.Ignored
	for i := range attempts {
		if why[i] == "" {
			g.a.Counted = append(g.a.Counted, attempts[i])
			continue
		}
		ignored[0].Attempt, ignored[0].Why = attempts[i], why[i] // in place: one copy
		ignored = ignored[1:]
	}
	g.a.Ignored = append(g.a.Ignored, g.e.Excluded...)
}

// attemptTime is the time an attempt's age is measured from: the earlier of
// when it claims to have been and when its text was posted.
func attemptTime(a *Attempt) time.Time {
	if !a.PostedAt.IsZero() && (a.RecordedAt.IsZero() || a.PostedAt.Before(a.RecordedAt)) {
		return a.PostedAt
	}
	return a.RecordedAt
}

// sifter holds what is the same for all attempts of a request.
type sifter struct {
	gate   *gate
	target string    // folded; empty: any
	oldest time.Time // zero: no limit

	lastTarget, lastWhy string // the words for one other target, kept for the next
}

// why gives the attempt's rank, and why it does not count; empty where it does.
func (s *sifter) why(a *Attempt) (rank int, why string) {
	p, r := s.gate.p, s.gate.rung
	rank, ok := p.rankOf.find(a.Action)
	switch {
	case isKillRecord(a, ok):
		return rank, whyKill
	case !ok:
		return rank, whyNoRung
	case r == nil:
		return rank, whyNoAsk
	}
	out, ok := p.outcomeOf.find(a.Outcome)
	switch {
	case !ok:
		return rank, whyOutcome
	case p.outcomes[out].kind != OutcomeCounts:
		return rank, p.whyNeutral[out]
	case !p.countsAt(out, rank):
		return rank, p.rungs[rank].whyGate
	case p.rungs[rank].Disabled:
		return rank, whyDisabled
	case rank >= r.Rank:
		return rank, whyNotBelow
	case s.target != "" && a.Target != "" && fold(a.Target) != s.target:
		return rank, s.otherTarget(a.Target)
	}
	at := attemptTime(a)
	switch {
	case !s.gate.e.Since.IsZero() && at.Before(s.gate.e.Since):
		return rank, whyBefore
	case r.MaxAge > 0 && at.IsZero():
		return rank, whyNoTime
	case !s.oldest.IsZero() && at.Before(s.oldest):
		return rank, whyOld
	}
	return rank, ""
}

// otherTarget says how to ask so that an attempt on another target counts.
func (s *sifter) otherTarget(target string) string {
	if target != s.lastTarget {
		s.lastTarget = target
		s.lastWhy = "it names the target " + quote(target) + ", the request " + quote(s.gate.e.Target) +
			"; it counts for `/restart " + s.gate.rung.Action + targetArg(target) + "`"
	}
	return s.lastWhy
}

// isKillRecord also knows a kill in attempts that no parser of ours made.
func isKillRecord(a *Attempt, rung bool) bool {
	return a.Kill || !rung && isKillAction(a.Action) || hasKillWord(a.Reason) && statesKill(a.Reason)
}

// hasKillWord looks for "kill" in any case, the fast way: the gate asks it of
// every attempt.
func hasKillWord(s string) bool {
	for _, k := range [...]byte{'k', 'K'} {
		for rest := s; ; {
			i := strings.IndexByte(rest, k)
			if i < 0 {
				break
			}
			if rest = rest[i+1:]; hasFold(rest, "ill") {
				return true
			}
		}
	}
	return false
}

// contamination names the kills and who recorded them. A claimed actor is
// shown as a claim. The start of the incident does not matter here: a process
// stays killed until an admin lifts the mark (Escalation.Cleared).
func (g *gate) contamination() {
	g.a.Contamination = []Attempt{}
	for _, at := range Dedupe(g.kills) {
		if g.e.Cleared.IsZero() || recordTime(&at).After(g.e.Cleared) {
			g.a.Contamination = append(g.a.Contamination, at)
		}
	}
	for i, at := range g.a.Contamination {
		if i == 3 {
			g.a.Reasons = append(g.a.Reasons, "contaminated further: see the decision's contamination list")
			break
		}
		g.a.Reasons = append(g.a.Reasons, contaminationText(at))
	}
	g.a.Contaminated = len(g.a.Contamination) > 0
}

// recordTime is when an attempt came to be known.
func recordTime(a *Attempt) time.Time {
	if !a.PostedAt.IsZero() {
		return a.PostedAt
	}
	return a.RecordedAt
}

func contaminationText(a Attempt) string {
	text := "contaminated by a manual process kill, which is forbidden: " + quote(a.Action)
	switch {
	case a.RecordedBy != "" && fold(a.RecordedBy) != fold(a.Actor):
		text += ", recorded by " + quote(a.RecordedBy) + " (claimed actor: " + quote(a.Actor) + ")"
	case a.RecordedBy != "":
		text += ", recorded by " + quote(a.RecordedBy)
	case a.Actor != "":
		text += ", claimed actor: " + quote(a.Actor)
	}
	return text + "; this informs and does not change the verdict"
}
