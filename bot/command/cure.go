package command

import (
	"strings"
	"unicode"

	"playbook-bot/playbook"
)

const (
	maxShown  = 60  // characters of foreign text in a Why
	maxPasted = 300 // characters of a reason in a Suggestion
)

// show puts foreign text into backquotes, so that it cannot be anything else.
func show(s string) string {
	s = strings.Map(func(r rune) rune {
		if r == '`' || unicode.IsControl(r) || isInvisible(r) {
			return -1
		}
		return r
	}, s)
	return "`" + cut(s, maxShown) + "`"
}

// cut shortens s to at most n characters.
func cut(s string, n int) string {
	if len(s) <= n {
		return s
	}
	r := []rune(s[:min(len(s), 4*n)])
	if len(r) <= n {
		return string(r)
	}
	return string(r[:n-1]) + "…"
}

// CommandLine writes the invocation as a line that works as pasted; long texts
// in it are cut.
func (inv *Invocation) CommandLine() string {
	parts := []string{"/" + inv.Name}
	add := func(s string) {
		if s != "" {
			parts = append(parts, s)
		}
	}
	add(quoteIfSpaced(inv.Action))
	if inv.Name == "attempt" {
		add(quoteIfSpaced(inv.Outcome))
	}
	if inv.Target != "" {
		add("target=" + quoteIfSpaced(inv.Target))
	}
	if len(inv.Symptoms) > 0 {
		s := strings.Join(inv.Symptoms, ",")
		if inv.Name == "recommend" {
			add(s)
		} else {
			add("symptom=" + quoteIfSpaced(s))
		}
	}
	reason := cut(inv.Reason, maxPasted)
	if key, _, _ := strings.Cut(strings.ToLower(reason), "="); key == "target" || strings.HasPrefix(key, "symptom") {
		reason = "(" + reason + ")" // or it would be read as the option
	}
	add(reason)
	return strings.Join(parts, " ")
}

func quoteIfSpaced(s string) string {
	s = cut(strings.ReplaceAll(s, `"`, ""), maxShown)
	if strings.ContainsFunc(s, isSpace) {
		return `"` + s + `"`
	}
	return s
}

// checkPlace turns an option that stood before the action into a problem with
// the line as it should be.
func checkPlace(inv *Invocation, misplaced string) {
	if misplaced != "" && inv.Problem == nil {
		inv.Problem = &playbook.Problem{
			Why:        "`" + misplaced + "=` stands after what the command is about, not before it",
			Suggestion: inv.CommandLine(),
		}
	}
}

// checkRecord sets the problem of a line from which no record comes. words are
// the tokens from the outcome on: a line that gives no outcome has begun its
// reason there.
func checkRecord(inv *Invocation, words tokens, pb *playbook.Playbook) {
	_, actionKnown := pb.NormalizeAction(inv.Action)
	_, outcomeKnown := pb.NormalizeOutcome(inv.Outcome)
	raw := playbook.RawAttempt{Action: inv.Action, Outcome: inv.Outcome, Reason: inv.Reason, Target: inv.Target}
	story := inv.Reason
	if !outcomeKnown {
		story = words.text()
		raw.Reason = story
	}
	a, _, problems := pb.BuildAttemptRecord(raw, playbook.Context{})
	if len(problems) == 0 {
		if a.Kill && !outcomeKnown { // a kill needs no outcome
			inv.Outcome, inv.Reason = "", story
		}
		return
	}
	why := make([]string, len(problems))
	for i, p := range problems {
		why[i] = p.Why
	}
	cure := *inv
	if !actionKnown && !playbook.IsKill(inv.Action) {
		near := pb.SuggestActions(inv.Action)
		if len(near) == 0 {
			inv.Problem = &playbook.Problem{Why: strings.Join(why, "; "), Suggestion: "/playbook ladder"}
			return
		}
		cure.Action = near[0]
	}
	if !outcomeKnown {
		cure.Outcome, cure.Reason = "insufficient", story
		if near := pb.SuggestOutcomes(story); len(near) > 0 {
			cure.Outcome = near[0]
		}
	}
	inv.Problem = &playbook.Problem{Why: strings.Join(why, "; "), Suggestion: cure.CommandLine()}
}

func narrowest(pb *playbook.Playbook) string {
	return pb.Rungs()[0].Action
}

func broadest(pb *playbook.Playbook) string {
	r := pb.Rungs()
	return r[len(r)-1].Action
}
