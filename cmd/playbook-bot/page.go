package main

import (
	"fmt"
	"io"
	"strings"
	"time"
	"unicode"

	"playbook-bot/playbook"
)

// page is the human-readable form of an answer. What people wrote is shown on
// a terminal, so everything printed is made plain first: a reason with escape
// sequences in it must not repaint the screen of the one on duty.
type page struct {
	w       io.Writer
	started bool
}

// head begins a section, after an empty line where something stands before.
func (p *page) head(format string, args ...any) {
	if p.started {
		fmt.Fprintln(p.w)
	}
	p.line("", format, args...)
}

// item prints an indented line.
func (p *page) item(format string, args ...any) { p.line("  ", format, args...) }

// paste prints a line that is to be copied, further in.
func (p *page) paste(s string) {
	if s != "" {
		p.line("      ", "%s", s)
	}
}

func (p *page) line(indent, format string, args ...any) {
	p.started = true
	fmt.Fprintln(p.w, indent+plain(fmt.Sprintf(format, args...)))
}

// plain turns s into one line without control and direction characters.
func plain(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\r' || r == '\t' || r == '\u2028' || r == '\u2029':
			return ' '
		case unicode.IsControl(r), unicode.Is(unicode.Cf, r):
			return -1
		}
		return r
	}, s)
}

// onTarget is " on NAME" where there is a target.
func onTarget(target string) string {
	if target == "" {
		return ""
	}
	return " on " + target
}

// attemptText is an attempt as one clause.
func attemptText(a playbook.Attempt) string {
	var b strings.Builder
	b.WriteString(a.Action)
	if a.Outcome != "" {
		b.WriteString(" " + a.Outcome)
	}
	b.WriteString(onTarget(a.Target))
	if a.Actor != "" {
		b.WriteString(", by " + a.Actor)
	}
	if !a.RecordedAt.IsZero() {
		b.WriteString(", " + utc(a.RecordedAt))
	}
	if a.Verified {
		b.WriteString(", verified")
	}
	if a.Reason != "" {
		fmt.Fprintf(&b, ": %q", a.Reason)
	}
	return b.String()
}

func utc(t time.Time) string { return t.UTC().Format("2006-01-02 15:04 UTC") }

func (p *page) rejections(list []playbook.RejectedText) {
	if len(list) == 0 {
		return
	}
	p.head("Could not be read, and is not in the log:")
	for _, r := range list {
		where := fmt.Sprintf("line %d", r.Line)
		if r.Source != "" {
			where += " (" + r.Source + ")"
		}
		p.item("%s: %s", where, r.Why)
		p.paste(r.Suggestion)
	}
}

func (p *page) unknownSymptoms(list []playbook.UnknownSymptom) {
	if len(list) == 0 {
		return
	}
	p.head("Symptoms that this playbook does not know:")
	for _, u := range list {
		if len(u.Suggestions) == 0 {
			p.item("%s", u.Symptom)
			continue
		}
		p.item("%s; did you mean %s?", u.Symptom, strings.Join(u.Suggestions, " or "))
	}
}

func (p *page) notes(list []string) {
	if len(list) == 0 {
		return
	}
	p.head("Notes:")
	for _, n := range list {
		p.item("%s", n)
	}
}

// contact prints the playbook's line on whom to call.
func (p *page) contact(b *playbook.Playbook) {
	if c := b.Contact(); c != "" {
		p.item("Operators: %s", c)
	}
}
