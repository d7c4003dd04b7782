package playbook

import (
	"fmt"
	"strings"
)

// ParsedAttempts is what a block of text holds. No slice is nil.
type ParsedAttempts struct {
	// About is false where the text is not about attempts at all; then all else is empty.
	About      bool
	Attempts   []LocatedAttempt
	Rejections []RejectedText // Source left empty
	Notes      []string
}

// LocatedAttempt is a record and its line in the text, from 1.
type LocatedAttempt struct {
	Attempt
	Line int `json:"line"`
}

// ParseAttempts reads JSON (with comments and trailing commas) or YAML: one
// record, a list, or an object with prior_recovery_attempts (or attempts).
// lang is the block's info string: "json", "yaml", "attempts" or "". Lines are
// counted from 1 within text.
//
// A text that is not about attempts is left alone. One that is – it has the
// keys, or lang is "attempts" – and does not parse, or repeats a key, is a
// rejection with its line, never a partial record. Scalars stay text, whatever
// YAML calls them, and anchors are refused.
func (p *Playbook) ParseAttempts(text string, lang string, c Context) ParsedAttempts {
	r := reader{p: p, c: c, demanded: strings.EqualFold(strings.TrimSpace(lang), "attempts")}
	r.out = ParsedAttempts{Attempts: []LocatedAttempt{}, Rejections: []RejectedText{}, Notes: []string{}}
	if !r.demanded && !mentionsKeys(text) && strings.Join(strings.Fields(text), "") != "[]" {
		return r.out
	}
	docs, err := parseBlock(text, lang)
	if err != nil {
		if r.demanded || r.sounds(text) {
			r.reject(err.line, syntaxWhy(err), r.salvage(text))
		}
	} else {
		r.documents(docs)
	}
	r.out.About = r.about
	return r.out
}

// ReadAttempts reads a file, of which it is known that it should hold
// attempts: one, a list, or an inventory. Unlike a block of a comment, a file
// that is not about attempts is a rejection; an empty one holds none.
func (p *Playbook) ReadAttempts(text string, c Context) ParsedAttempts {
	out := p.ParseAttempts(text, "", c)
	if out.About {
		return out
	}
	out.About = true
	if strings.TrimSpace(strings.TrimPrefix(text, "\ufeff")) == "" {
		return out
	}
	if inv, err := ParseInventory([]byte(text)); err == nil && inv.known > 0 {
		return out // an inventory without attempts
	}
	return p.ParseAttempts(text, "attempts", c)
}

// The largest texts that are parsed, in bytes. The YAML parser needs some 400
// bytes of memory for each byte of a hostile text; 128 KiB still hold 200
// records with 500 characters of reason each. Files are better given as JSON.
const (
	maxYAML = 128 << 10
	maxJSON = 4 << 20
)

func parseBlock(text, lang string) ([]node, *syntaxError) {
	if len(text) > maxJSON {
		return nil, &syntaxError{line: 1, why: fmt.Sprintf("the text is longer than %d MiB", maxJSON>>20)}
	}
	lang = strings.ToLower(strings.TrimSpace(lang))
	var jsonErr *syntaxError
	if lang == "json" || lang == "jsonc" || lang == "json5" || looksLikeJSON(text) {
		docs, err := parseJSONC(text)
		if err == nil {
			return docs, nil
		}
		jsonErr = err
	}
	if jsonErr != nil && (strings.HasPrefix(lang, "json") || strings.Contains(text, `"`)) {
		return nil, jsonErr
	}
	if len(text) > maxYAML {
		return nil, &syntaxError{line: 1, why: fmt.Sprintf("YAML is read up to %d KiB; write it as JSON, or in several blocks", maxYAML>>10)}
	}
	docs, err := parseYAML(strings.ReplaceAll(text, "\u00a0", " "))
	if err != nil && jsonErr != nil {
		return nil, jsonErr
	}
	return docs, err
}

func looksLikeJSON(text string) bool {
	text = strings.TrimLeft(text, "\ufeff \t\r\n\u00a0")
	for _, start := range []string{"{", "[", "//", "/*"} {
		if strings.HasPrefix(text, start) {
			return true
		}
	}
	return false
}

func syntaxWhy(e *syntaxError) string {
	if e.col > 0 {
		return fmt.Sprintf("the attempts do not parse (column %d): %s", e.col, e.why)
	}
	return "the attempts do not parse: " + e.why
}

// keysIn calls found with the normalised word before each colon and where the
// colon stands; it is how a text is looked at before it is parsed.
func keysIn(text string, found func(key string, colon int) (more bool)) {
	for from := 0; ; {
		i := strings.IndexByte(text[from:], ':')
		if i < 0 {
			return
		}
		colon := from + i
		from = colon + 1
		end := len(strings.TrimRight(text[max(0, colon-40):colon], " \t\"'")) + max(0, colon-40)
		start := end
		for start > max(0, colon-40) && isKeyByte(text[start-1]) {
			start--
		}
		if key := strings.TrimLeft(text[start:end], " -"); key != "" && !found(normalize(key), colon) {
			return
		}
	}
}

func isKeyByte(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || c == '_' || c == '-' || c == ' '
}

// isContainer reports the keys under which attempts stand in an object.
func isContainer(key string) bool { return key == "prior_recovery_attempts" || key == "attempts" }

// mentionsKeys reports whether a text has a container's key or one for the
// action: a cheap look, so that nothing else is ever parsed.
func mentionsKeys(text string) bool {
	mentioned := false
	keysIn(text, func(key string, _ int) bool {
		mentioned = isContainer(key) || fieldNames[key] == "action"
		return !mentioned
	})
	return mentioned
}

// reader takes the records out of parsed documents.
type reader struct {
	p        *Playbook
	c        Context
	demanded bool // the block says it holds attempts
	about    bool
	out      ParsedAttempts
}

// maxRejections is how many rejections one text gets; what comes after them is
// not read, and the last one says so.
const maxRejections = 100

func (r *reader) reject(line int, why, cure string) {
	r.about = true
	switch n := len(r.out.Rejections); {
	case n == maxRejections:
		why, cure = fmt.Sprintf("more than %d faults: nothing is read from this line on", maxRejections), ""
	case n > maxRejections:
		return
	}
	r.out.Rejections = append(r.out.Rejections, RejectedText{Line: line, Problem: Problem{Why: why, Suggestion: cure}})
}

// sounds reports whether a text that does not parse is about attempts.
func (r *reader) sounds(text string) bool {
	raw, container, own := r.scan(text)
	return container || own && raw.Action != "" && raw.Outcome != "" || r.likely(raw)
}

// scan takes what look like a record's first values out of a text that does
// not parse: good enough for a suggestion, never for the log. own says that
// the keys were action and outcome themselves, not synonyms.
func (r *reader) scan(text string) (raw RawAttempt, container, own bool) {
	names := 0
	into := map[string]*string{"action": &raw.Action, "outcome": &raw.Outcome, "reason": &raw.Reason, "target": &raw.Target}
	keysIn(text, func(key string, colon int) bool {
		container = container || key == "prior_recovery_attempts"
		if key == "action" || key == "outcome" {
			names++
		}
		value := into[fieldNames[key]]
		if value == nil || *value != "" {
			return true
		}
		rest := text[colon+1 : min(len(text), colon+300)]
		if end := strings.IndexAny(rest, "\n\r,}]"); end >= 0 {
			rest = rest[:end]
		}
		*value = strings.Trim(plain(rest, 200), ` "'`)
		return true
	})
	return raw, container, names >= 2
}

func setOnce(s *string, value string) {
	if *s == "" {
		*s = value
	}
}

// salvage gives the line that logs what a text meant that does not parse.
func (r *reader) salvage(text string) string {
	raw, _, _ := r.scan(text)
	if raw.Action == "" && raw.Outcome == "" {
		raw = bareWords(text)
	}
	return r.p.cure(raw)
}

// bareWords reads "ACTION OUTCOME reason…", as some write inside a fence that
// says attempts.
func bareWords(text string) RawAttempt {
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	words := strings.Fields(strings.TrimPrefix(strings.TrimSpace(line), "/attempt"))
	if len(words) < 2 {
		return RawAttempt{}
	}
	return RawAttempt{Action: words[0], Outcome: words[1], Reason: strings.Join(words[2:], " ")}
}

// likely reports whether a record's values show that it is an attempt: then
// synonyms as keys are enough. Without that a log line with "what" and
// "status" would be answered.
func (r *reader) likely(raw RawAttempt) bool {
	if raw.Action == "" || raw.Outcome == "" {
		_, known := r.p.NormalizeAction(raw.Action)
		return known || raw.Action != "" && isKillAction(raw.Action)
	}
	if _, known := r.p.NormalizeAction(raw.Action); known || isKillAction(raw.Action) {
		return true
	}
	names := make([]string, len(r.p.rungs))
	for i := range r.p.rungs {
		names[i] = r.p.rungs[i].Action
	}
	return len(nearest(raw.Action, names)) > 0
}
