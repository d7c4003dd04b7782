package playbook

import (
	"fmt"
	"strings"
	"time"
	"unicode/utf8"
)

// Limits of a record's short fields, in characters.
const (
	maxTarget = 200
	maxActor  = 100
)

// fieldProblem is a Problem and the field it lies in, so that a parser can
// give the line.
type fieldProblem struct {
	field string
	Problem
}

// BuildAttemptRecord makes a valid record, or says everything that is wrong:
// problems is empty exactly where a is valid. Spelling is normalised, meaning
// is not. Each problem's suggestion is a whole /attempt line that works as
// pasted. notes are remarks on a valid record, e.g. that its reason was cut.
//
// A manual process kill is a valid record with Kill set: it never counts, and
// it contaminates. It needs no valid outcome, and an unreadable time does not
// get rid of it.
func (p *Playbook) BuildAttemptRecord(raw RawAttempt, c Context) (a Attempt, notes []string, problems []Problem) {
	a, notes, found := p.build(raw, c)
	for _, f := range found {
		problems = append(problems, f.Problem)
	}
	return a, notes, problems
}

func (p *Playbook) build(raw RawAttempt, c Context) (Attempt, []string, []fieldProblem) {
	var problems []fieldProblem
	var notes []string
	fail := func(field, why string) { problems = append(problems, fieldProblem{field, Problem{Why: why}}) }

	a := Attempt{RecordedBy: c.Author, PostedAt: utc(c.At), RecordedAt: utc(c.At)}
	a.Reason, a.Cut = cutReason(raw.Reason)
	deed := plain(raw.Action, maxActor) // as it will stand in the record, and be read there again
	a.Kill = isKillAction(deed) || statesKill(a.Reason) || statesKill(raw.Outcome[:min(len(raw.Outcome), MaxReason)])

	var known bool
	if a.Action, known = p.NormalizeAction(raw.Action); !known && a.Kill {
		a.Action = deed
	} else if !known {
		fail("action", p.whyNoAction(raw.Action, p.SuggestActions(raw.Action)))
	}
	if a.Outcome, known = p.NormalizeOutcome(raw.Outcome); !known && !a.Kill {
		fail("outcome", p.whyNoOutcome(raw.Outcome, p.SuggestOutcomes(raw.Outcome)))
	}
	if text := present(raw.RecordedAt); text != "" {
		at, why := readTime(text)
		switch {
		case why == "" && !c.At.IsZero() && at.After(c.At.Add(MaxSkew)):
			why = quote(text) + " is more than 5 minutes after this text was posted"
		case why == "":
			a.RecordedAt = at
		}
		if why != "" && !a.Kill {
			fail("recorded_at", why)
		} else if why != "" {
			notes = append(notes, why+"; the text's own time is taken for the kill")
		}
	}
	// What is invisible goes first: what is left may be a dash, or have an @ before it.
	if a.Target = present(plain(raw.Target, maxTarget+1)); utf8.RuneCountInString(a.Target) > maxTarget {
		fail("target", fmt.Sprintf("the target is longer than %d characters", maxTarget))
	}
	a.Actor = c.Author
	if actor := present(strings.TrimLeft(plain(raw.Actor, maxActor), "@ ")); actor != "" {
		a.Actor = actor
	}
	if len(problems) > 0 {
		cure := p.cure(raw)
		for i := range problems {
			problems[i].Suggestion = cure
		}
		return Attempt{}, nil, problems
	}
	return a, append(notes, remarks(raw, a)...), nil
}

// remarks are the notes on a valid record.
func remarks(raw RawAttempt, a Attempt) []string {
	var notes []string
	if a.Cut {
		notes = append(notes, fmt.Sprintf("the reason was cut to %d characters", MaxReason))
	}
	if raw.Verified {
		notes = append(notes, "`verified` is set by the bot's own probes only, and was ignored")
	}
	if a.Kill {
		notes = append(notes, quote(a.Action)+" records a manual process kill: it does not count, and it contaminates")
	}
	return notes
}

func utc(t time.Time) time.Time {
	if t.IsZero() {
		return time.Time{}
	}
	return t.UTC().Round(0)
}

// present gives a field's text, where a dash or the like means that there is none.
func present(s string) string {
	s = strings.TrimSpace(s)
	switch strings.ToLower(s) {
	case "-", "–", "—", "--", "---", "n/a", "?", "null", "~":
		return ""
	}
	return s
}

// cutReason keeps a reason as written, MaxReason characters of it. Bytes that
// no store takes (NUL, broken UTF-8) become U+FFFD.
func cutReason(s string) (string, bool) {
	cut := false
	if len(s) > MaxReason {
		n := 0
		for i := range s {
			if n == MaxReason {
				s, cut = s[:i], true
				break
			}
			n++
		}
	}
	return strings.ReplaceAll(strings.ToValidUTF8(s, "\ufffd"), "\x00", "\ufffd"), cut
}

// timeLayouts are the spellings of an RFC 3339 time that are taken; all of
// them say the offset.
var timeLayouts = []string{time.RFC3339, "2006-01-02T15:04Z07:00", "2006-01-02T15:04:05Z0700", "2006-01-02T15:04Z0700"}

// bareLayouts are times that only lack their offset.
var bareLayouts = []string{"2006-01-02T15:04:05", "2006-01-02T15:04", "2006-01-02", "15:04:05", "15:04"}

// readTime reads a time with its offset, or says why it is none. A time
// without an offset is refused and not guessed at: whose clock?
func readTime(s string) (time.Time, string) {
	text := strings.ToUpper(strings.Join(strings.Fields(s), " "))
	text = strings.TrimSuffix(text, " UTC") + map[bool]string{true: "Z"}[strings.HasSuffix(text, " UTC")]
	if len(text) > 10 && text[10] == ' ' {
		text = text[:10] + "T" + text[11:]
	}
	text = strings.ReplaceAll(text, " ", "")
	if len(text) <= 64 {
		for _, layout := range timeLayouts {
			if t, err := time.Parse(layout, text); err == nil && t.UTC().Year() >= 1 && t.UTC().Year() <= 9999 {
				return t.UTC(), ""
			}
		}
		for _, layout := range bareLayouts {
			if _, err := time.Parse(layout, text); err == nil {
				return time.Time{}, quote(s) + " names no offset (whose clock?); write it like `2026-06-11T14:05:00+02:00`"
			}
		}
	}
	return time.Time{}, quote(s) + " is no time with date and offset; write it like `2026-06-11T14:05:00+02:00`"
}

// cure gives the /attempt line that logs what raw meant, as far as that can be
// known; else the line that tells what could be written.
func (p *Playbook) cure(raw RawAttempt) string {
	action, ok := p.NormalizeAction(raw.Action)
	if !ok {
		near := p.SuggestActions(raw.Action)
		if len(near) == 0 {
			return "/playbook ladder"
		}
		action = near[0]
	}
	reason := raw.Reason
	outcome, ok := p.NormalizeOutcome(raw.Outcome)
	if !ok {
		near := p.SuggestOutcomes(raw.Outcome)
		if len(near) == 0 {
			return "/playbook help"
		}
		outcome = near[0]
		// People write the story where the outcome belongs: it is the reason.
		if strings.TrimSpace(reason) == "" && len(strings.Fields(raw.Outcome)) > 1 {
			reason = raw.Outcome
		}
	}
	return AttemptLine(action, outcome, present(raw.Target), reason)
}

// AttemptLine gives the /attempt line for a record; it is one line, and short.
func AttemptLine(action, outcome, target, reason string) string {
	line := "/attempt " + action + " " + outcome + targetArg(target)
	reason = plain(reason, 200)
	if low := strings.ToLower(reason); strings.HasPrefix(low, "target=") || strings.HasPrefix(low, "symptom=") {
		reason = "(" + reason + ")" // or it would be read as the option
	}
	if reason != "" {
		line += " " + reason
	}
	return line
}

// targetArg gives ` target=NAME` for a line to paste, empty without a target.
func targetArg(target string) string {
	target = strings.ReplaceAll(plain(target, maxTarget), `"`, "")
	switch {
	case target == "":
		return ""
	case strings.ContainsAny(target, " '“”‘’"):
		return ` target="` + target + `"`
	}
	return " target=" + target
}

// SameAttempt reports whether two records are of one attempt: actor and target
// (case-folded), action, outcome and minute agree, whatever form they came in.
func SameAttempt(a, b Attempt) bool {
	return a.Action == b.Action && a.Outcome == b.Outcome && minute(a.RecordedAt) == minute(b.RecordedAt) &&
		fold(a.Actor) == fold(b.Actor) && fold(a.Target) == fold(b.Target)
}

func minute(t time.Time) int64 {
	s := t.Unix()
	if s < 0 {
		s -= 59
	}
	return s / 60
}

// Dedupe gives the attempts without repeats, the first of each kept, in order;
// never nil.
func Dedupe(attempts []Attempt) []Attempt {
	out := make([]Attempt, 0, len(attempts))
	seen := newAttemptSet(attempts)
	for i := range attempts {
		if seen.add(i) {
			out = append(out, attempts[i])
		}
	}
	return out
}
