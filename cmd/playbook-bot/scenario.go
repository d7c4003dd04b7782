package main

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"playbook-bot/playbook"
)

const scenarioHelp = `A scenario FILE is text with sections; what stands before the first is prose:

  Two different tries before we restart everything.

  -- overlay --
  tighten:
    - {action: full_mcp_restart, min_attempts: 2}
    - {action: host_restart, min_attempts: 2}
  -- attempts --
  - {action: client_reconnect, outcome: failed}
  -- case: one try is not enough here --
  action: full_mcp_restart
  standing: admin
  code: attempt_log_insufficient
  next: capability_refresh

Sections, each of which holds for the cases that follow:
  playbook     a whole playbook, instead of --playbook
  overlay      what tightens it, as in 'playbook check --help'
  attempts     what was tried, in any form that 'assess --attempts' reads
  case: NAME   one question and the answer wanted, KEY: VALUE on each line

Keys of the question: action (needed), target, standing (none, read, write,
admin or owner; without it unknown), roles and symptoms (comma lists),
break_glass (requested, or authorized: requested and granted), now (RFC 3339,
when attempts that name no time were made; default 2026-01-01T12:00:00Z), after
(how long after that is asked, such as 90m).

Keys of the answer, at least one: verdict (approved, refused or undecided),
code, next (none: no action), missing (a comma list of what is missing, in the
answer's order; none: nothing).`

// scenarioNow is when the attempts of a scenario were made unless they or the
// case say otherwise: results must not depend on the day they are run.
var scenarioNow = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

// scenarioResult is one case, and how its answer differs from the one wanted.
type scenarioResult struct {
	File string `json:"file"`
	Line int    `json:"line"`
	Case string `json:"case"`
	OK   bool   `json:"ok"`
	// Differs are the differences, and then the gate's reasons.
	Differs []string `json:"differs"`
}

// section is a part of a txtar file; line is that of its marker.
type section struct {
	line       int
	name, text string
}

var sectionMark = regexp.MustCompile(`^-- (.+) --\s*$`)

// sections splits a file in txtar's form and, unlike its reader, keeps lines.
func sections(text string) []section {
	var out []section
	n := 0
	for line := range strings.Lines(text) {
		n++
		if m := sectionMark.FindStringSubmatch(line); m != nil {
			out = append(out, section{line: n, name: strings.TrimSpace(m[1])})
		} else if len(out) > 0 {
			out[len(out)-1].text += line
		}
	}
	return out
}

// scenario is a file under way: what holds for its next case.
type scenario struct {
	base, book *playbook.Playbook
	overlay    section
	attempts   section
}

// runScenarios runs the cases of one file. An error is about the file; it
// names the line.
func runScenarios(book *playbook.Playbook, text string) ([]scenarioResult, error) {
	s := scenario{base: book, book: book}
	var out []scenarioResult
	for _, sec := range sections(text) {
		what, name, isCase := strings.Cut(sec.name, ":")
		switch {
		case isCase && what == "case":
			r, err := s.run(sec)
			if err != nil {
				return nil, err
			}
			r.Case = strings.TrimSpace(name)
			out = append(out, r)
		case sec.name == "playbook":
			p, err := playbook.Load(strings.NewReader(sec.text))
			if err != nil {
				return nil, inSection(sec, err)
			}
			s.base = p
			if err := s.tighten(s.overlay); err != nil {
				return nil, err
			}
		case sec.name == "overlay":
			if err := s.tighten(sec); err != nil {
				return nil, err
			}
		case sec.name == "attempts":
			s.attempts = sec
		default:
			return nil, fmt.Errorf("line %d: there is no section %q: want playbook, overlay, attempts or case: NAME", sec.line, sec.name)
		}
	}
	return out, nil
}

func (s *scenario) tighten(sec section) error {
	s.overlay, s.book = sec, s.base
	if strings.TrimSpace(sec.text) == "" {
		return nil
	}
	p, err := tighten(s.base, sec.text)
	if err != nil {
		return inSection(sec, err)
	}
	s.book = p
	return nil
}

// inSection gives the first fault with its line in the whole file.
func inSection(sec section, err error) error {
	faults := playbook.Faults(err)
	if len(faults) == 0 {
		return fmt.Errorf("line %d: %s: %w", sec.line, sec.name, err)
	}
	f := *faults[0]
	f.Line += sec.line
	return &f
}

// The keys of a case.
var (
	askKeys  = []string{"action", "target", "standing", "roles", "symptoms", "break_glass", "now", "after"}
	wantKeys = []string{"verdict", "code", "next", "missing"}
)

// keys reads the lines of a case.
func keys(sec section) (map[string]string, error) {
	m, wants := map[string]string{}, false
	n := sec.line
	for line := range strings.Lines(sec.text) {
		n++
		if line = strings.TrimSpace(line); line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		key, value, ok := strings.Cut(line, ":")
		key, value = strings.TrimSpace(key), strings.TrimSpace(value)
		want := slices.Contains(wantKeys, key)
		switch _, twice := m[key]; {
		case !ok:
			return nil, fmt.Errorf("line %d: want KEY: VALUE", n)
		case !want && !slices.Contains(askKeys, key):
			return nil, fmt.Errorf("line %d: there is no key %q: want one of %s, %s", n, key, strings.Join(askKeys, ", "), strings.Join(wantKeys, ", "))
		case twice:
			return nil, fmt.Errorf("line %d: %s stands twice", n, key)
		case value == "":
			return nil, fmt.Errorf("line %d: %s has no value", n, key)
		}
		m[key], wants = value, wants || want
	}
	switch {
	case m["action"] == "":
		return nil, fmt.Errorf("line %d: the case names no action", sec.line)
	case !wants:
		return nil, fmt.Errorf("line %d: the case wants nothing: add one of %s", sec.line, strings.Join(wantKeys, ", "))
	}
	return m, nil
}

// run asks one question.
func (s *scenario) run(sec section) (scenarioResult, error) {
	r := scenarioResult{Line: sec.line, Differs: []string{}}
	m, err := keys(sec)
	if err != nil {
		return r, err
	}
	e, err := s.question(m)
	if err != nil {
		return r, fmt.Errorf("line %d: %w", sec.line, err)
	}
	d := s.book.Decide(e, nil)
	got := map[string]string{"verdict": d.Verdict, "code": string(d.Code), "next": orNone(d.Next), "missing": missingText(d.Missing)}
	for _, key := range wantKeys {
		want, ok := m[key]
		if key == "missing" {
			want = strings.Join(splitList(want), ", ")
		}
		if ok && want != got[key] {
			r.Differs = append(r.Differs, fmt.Sprintf("%s: %s, want %s", key, got[key], want))
		}
	}
	if r.OK = len(r.Differs) == 0; !r.OK {
		r.Differs = append(r.Differs, d.Reasons...)
	}
	return r, nil
}

// question is what a case asks the gate.
func (s *scenario) question(m map[string]string) (playbook.Escalation, error) {
	e := playbook.Escalation{Action: m["action"], Target: m["target"], Symptoms: splitList(m["symptoms"]), Now: scenarioNow,
		Standing: playbook.Standing{Roles: append([]string{}, splitList(m["roles"])...)}}
	var err error
	if v, ok := m["standing"]; ok {
		if e.Standing.Permission, err = playbook.ParsePermission(v); err != nil {
			return e, err
		}
	}
	if v, ok := m["now"]; ok {
		if e.Now, err = time.Parse(time.RFC3339, v); err != nil {
			return e, fmt.Errorf("now is %q: want a time with its offset, such as 2026-12-01T03:04:05Z", v)
		}
	}
	switch m["break_glass"] {
	case "":
	case "requested", "authorized":
		e.BreakGlass = playbook.BreakGlass{Requested: true, Authorized: m["break_glass"] == "authorized"}
	default:
		return e, fmt.Errorf("break_glass is %q: want requested or authorized", m["break_glass"])
	}
	if e.Attempts, err = s.tried(e.Now); err != nil {
		return e, err
	}
	if v, ok := m["after"]; ok {
		d, err := time.ParseDuration(v)
		if err != nil || d < 0 {
			return e, fmt.Errorf("after is %q: want a time such as 90m", v)
		}
		e.Now = e.Now.Add(d)
	}
	return e, nil
}

// tried are the attempts that hold now; at is when those without a time were
// made.
func (s *scenario) tried(at time.Time) ([]playbook.Attempt, error) {
	if strings.TrimSpace(s.attempts.text) == "" {
		return nil, nil
	}
	parsed := s.book.ReadAttempts(s.attempts.text, playbook.Context{At: at})
	if len(parsed.Rejections) > 0 {
		bad := parsed.Rejections[0]
		return nil, fmt.Errorf("the attempts cannot be read: line %d: %s", s.attempts.line+bad.Line, bad.Why)
	}
	for i := range parsed.Attempts {
		parsed.Attempts[i].PostedAt = time.Time{} // it has reached no forge
	}
	return values(parsed), nil
}

func orNone(s string) string {
	if s == "" {
		return "none"
	}
	return s
}

// missingText lists the kinds of what is missing.
func missingText(list []playbook.Missing) string {
	var out []string
	for _, m := range list {
		out = append(out, m.What)
	}
	return orNone(strings.Join(out, ", "))
}
