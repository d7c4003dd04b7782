package mcp

import (
	"fmt"
	"strings"
	"time"

	"playbook-bot/playbook"
)

// The texts beside structured output, for hosts that drop it. They repeat
// verdict, code and next line.

func (t *tools) decisionText(d playbook.Decision) string {
	var b strings.Builder
	if d.Hypothetical {
		b.WriteString("HYPOTHETICAL: standing or authorization was given as an argument, and nobody's word counts for that.\n")
	}
	fmt.Fprintf(&b, "%s: %s (%s)", strings.ToUpper(d.Verdict), d.Action, d.Code)
	if d.Target != "" {
		fmt.Fprintf(&b, " on %s", d.Target)
	}
	if d.Request != "" {
		fmt.Fprintf(&b, ", request %s, %s", d.Request, d.State)
	}
	b.WriteByte('\n')
	for _, r := range d.Reasons {
		fmt.Fprintf(&b, "- %s\n", r)
	}
	switch {
	case d.ApprovedUntil != nil:
		fmt.Fprintf(&b, "Approved until %s.\n", d.ApprovedUntil.UTC().Format(time.RFC3339))
	case d.Next != "":
		fmt.Fprintf(&b, "Next: %s\n", d.Next)
	default:
		fmt.Fprintf(&b, "Next: nothing is left on the ladder; %s\n", t.p.Contact())
	}
	if r, ok := t.p.Rung(d.Action); ok && d.Allowed && r.Blast != playbook.BlastNone {
		b.WriteString(noReplay + "\n")
	}
	for _, m := range d.Missing {
		fmt.Fprintf(&b, "Missing: %s\n", m.Text)
		if m.Post != "" {
			fmt.Fprintf(&b, "  to post: %s\n", m.Post)
		}
	}
	for _, r := range d.Rejections {
		fmt.Fprintf(&b, "Not taken: %s\n", rejectionText(r))
	}
	for _, s := range d.Suggestions {
		fmt.Fprintf(&b, "Did you mean %s?\n", s)
	}
	unknownText(&b, d.UnknownSymptoms)
	b.WriteString("Nothing was restarted; this never restarts anything.")
	return b.String()
}

func unknownText(b *strings.Builder, unknown []playbook.UnknownSymptom) {
	for _, u := range unknown {
		fmt.Fprintf(b, "Unknown symptom: %s", u.Symptom)
		if len(u.Suggestions) > 0 {
			fmt.Fprintf(b, "; did you mean %s?", strings.Join(u.Suggestions, ", "))
		}
		b.WriteByte('\n')
	}
}

func rejectionText(r playbook.RejectedText) string {
	return fmt.Sprintf("line %d: %s", r.Line, problemText(r.Problem))
}

func problemText(p playbook.Problem) string {
	if p.Suggestion == "" {
		return p.Why
	}
	return p.Why + " (try: " + p.Suggestion + ")"
}

func (t *tools) recommendationText(r playbook.Recommendation) string {
	var b strings.Builder
	if r.Next == "" {
		fmt.Fprintf(&b, "Next: nothing is left on the ladder; %s\n", t.p.Contact())
	} else {
		fmt.Fprintf(&b, "Next: %s\n", r.Next)
	}
	for _, s := range r.Ladder {
		fmt.Fprintf(&b, "%d. %s%s\n", s.Rank, s.Action, gatedText(s.Gated))
	}
	for _, n := range r.Notes {
		fmt.Fprintf(&b, "- %s\n", n)
	}
	unknownText(&b, r.UnknownSymptoms)
	return strings.TrimSuffix(b.String(), "\n")
}

func gatedText(gated bool) string {
	if gated {
		return " (only with a log of narrower attempts)"
	}
	return ""
}

func ladderText(d playbook.LadderDocument) string {
	var b strings.Builder
	fmt.Fprintf(&b, "Playbook %s, narrow to broad:\n", d.Name)
	for _, r := range d.Rungs {
		fmt.Fprintf(&b, "%d. %s: %s%s\n", r.Rank, r.Action, r.Delegation, gatedText(r.Gated))
	}
	fmt.Fprintf(&b, "Contact: %s", d.Contact)
	return b.String()
}

func metricsText(m playbook.Metrics) string {
	fraction := "no recoveries"
	if f := m.FractionAvoidedFullRestart; f != nil {
		fraction = fmt.Sprintf("%.0f%% of %d recoveries avoided a full restart", *f*100, m.Recoveries)
	}
	return fmt.Sprintf("%d attempts; %s; %d manual kills.", m.Attempts, fraction, m.ManualKills)
}
