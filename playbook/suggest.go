package playbook

import (
	"slices"
	"strings"
)

// fieldNames are the keys of a record and the synonyms people use for them, in
// headings of tables and as keys of JSON and YAML alike.
var fieldNames = map[string]string{
	"action": "action", "what": "action", "rung": "action",
	"outcome": "outcome", "result": "outcome", "status": "outcome",
	"recorded_at": "recorded_at", "when": "recorded_at", "time": "recorded_at", "at": "recorded_at",
	"actor": "actor", "who": "actor", "by": "actor",
	"reason": "reason", "note": "reason", "notes": "reason", "why": "reason",
	"target":   "target",
	"verified": "verified",
}

// FieldName gives the canonical field ("action", "outcome", "reason", "actor",
// "recorded_at", "target", "verified") for a heading or key and its synonyms.
func FieldName(s string) (string, bool) {
	name, ok := fieldNames[normalize(s)]
	return name, ok
}

// NormalizeAction gives the rung's action for a spelling of it.
func (p *Playbook) NormalizeAction(s string) (action string, ok bool) {
	action = normalize(s)
	_, ok = p.byAction[action]
	return action, ok
}

// NormalizeOutcome gives the outcome for a spelling of it or of a synonym.
func (p *Playbook) NormalizeOutcome(s string) (outcome string, ok bool) {
	i, ok := p.bySynonym[normalize(s)]
	if !ok {
		return "", false
	}
	return p.outcomes[i].name, true
}

// SuggestActions gives up to three actions that an unknown spelling may have
// meant, likeliest first.
func (p *Playbook) SuggestActions(s string) []string {
	s = s[:min(len(s), MaxReason)]
	words := wordsOf(strings.ReplaceAll(latin(s), "_", " "))
	longest, byPhrase := 0, ""
	for i := range p.rungs {
		if p.rungs[i].Disabled {
			continue // to be offered would be to be recommended
		}
		if n := phraseIn(words, p.rungs[i].phrases); n > longest {
			longest, byPhrase = n, p.rungs[i].Action
		}
	}
	var names []string
	for i := range p.rungs {
		if !p.rungs[i].Disabled {
			names = append(names, p.rungs[i].Action)
		}
	}
	out := nearest(s, names)
	if len(out) == 0 || normalize(latin(s)) != out[0] {
		for _, name := range names {
			if sameWords(words, wordsOf(strings.ReplaceAll(name, "_", " "))) {
				out = append([]string{name}, out...)
			}
		}
		if byPhrase != "" {
			out = append(out, byPhrase)
		}
	}
	return firstThree(out)
}

// sameWords reports whether two texts hold the same words in any order.
func sameWords(a, b string) bool {
	if len(a) != len(b) {
		return false
	}
	x, y := strings.Fields(a), strings.Fields(b)
	slices.Sort(x)
	slices.Sort(y)
	return slices.Equal(x, y)
}

func firstThree(names []string) []string {
	out := []string{}
	for _, n := range names {
		if !slices.Contains(out, n) && len(out) < 3 {
			out = append(out, n)
		}
	}
	return out
}

// SuggestOutcomes gives up to three outcomes that an unknown spelling may have
// meant, likeliest first.
func (p *Playbook) SuggestOutcomes(s string) []string {
	s = s[:min(len(s), MaxReason)]
	words := wordsOf(strings.ReplaceAll(latin(s), "_", " "))
	longest, byPhrase := 0, ""
	var names []string
	for i := range p.outcomes {
		o := &p.outcomes[i]
		names = append(names, o.name)
		n := phraseIn(words, o.phrases)
		if n > longest || n == longest && n > 0 && o.kind == OutcomeCounts && byPhrase == "" {
			longest, byPhrase = n, o.name
		}
	}
	var out []string
	if byPhrase != "" {
		out = append(out, byPhrase)
	}
	out = append(out, nearest(s, names)...)
	for i := range p.outcomes {
		if len(nearest(s, p.outcomes[i].synonyms)) > 0 {
			out = append(out, p.outcomes[i].name)
		}
	}
	return firstThree(out)
}

// ActionProblem says why s is no action of the ladder. The suggestion is the
// whole line that asks for the likeliest action, or for the ladder.
func (p *Playbook) ActionProblem(s string) Problem {
	near := p.SuggestActions(s)
	pr := Problem{Why: p.whyNoAction(s, near), Suggestion: "/playbook ladder"}
	switch {
	case isKillAction(s):
		pr.Suggestion = "/recommend"
	case len(near) > 0:
		pr.Suggestion = "/restart " + near[0]
	}
	return pr
}

func (p *Playbook) whyNoAction(s string, near []string) string {
	switch {
	case isKillAction(s):
		return quote(s) + " is a manual process kill: forbidden, and no recovery step"
	case plain(s, 1) == "":
		return "no action is named"
	}
	return quote(s) + " is no action of the ladder" + because(s) + didYouMean(near)
}

// OutcomeProblem says why s is no outcome. The suggestion is the likeliest
// outcome's name alone, empty where none is near: the line it belongs in is
// the caller's to know (BuildAttemptRecord gives whole lines).
func (p *Playbook) OutcomeProblem(s string) Problem {
	near := p.SuggestOutcomes(s)
	pr := Problem{Why: p.whyNoOutcome(s, near)}
	if len(near) > 0 {
		pr.Suggestion = near[0]
	}
	return pr
}

func (p *Playbook) whyNoOutcome(s string, near []string) string {
	all := "one of " + strings.Join(p.Outcomes(), ", ") + " is wanted"
	switch {
	case plain(s, 1) == "":
		return "no outcome is given; " + all
	case len(near) == 0:
		return quote(s) + " is no outcome" + because(s) + "; " + all
	}
	return quote(s) + " is no outcome" + because(s) + didYouMean(near)
}

func because(s string) string {
	if strange := strangeLetter(s); strange != "" {
		return " (" + strange + ")"
	}
	return ""
}

func didYouMean(near []string) string {
	if len(near) == 0 {
		return ""
	}
	quoted := make([]string, len(near))
	for i, n := range near {
		quoted[i] = "`" + n + "`"
	}
	return "; did you mean " + strings.Join(quoted, " or ") + "?"
}
