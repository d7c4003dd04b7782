package templates

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"playbook-bot/playbook"
)

// detail is how much of a decision its JSON holds.
type detail struct {
	rows, text int // attempts per list, characters per text of people; -1: all
	indent     bool
	none       bool
}

// jsonDetails are the details to try with the sections of size i.
func jsonDetails(i int, d *playbook.Decision) []detail {
	switch i {
	case 0:
		if d != nil && tooLong(d) {
			return nil
		}
		return []detail{{rows: -1, text: -1, indent: true}, {rows: -1, text: -1}}
	case 1:
		return []detail{{rows: 40, text: 400}, {rows: 20, text: 200}}
	case 2:
		return []detail{{rows: 10, text: 200}}
	}
	return []detail{{rows: 3, text: 100}, {none: true}}
}

// tooLong reports whether the whole decision cannot fit, without the work of
// encoding it.
func tooLong(d *playbook.Decision) bool {
	n := 0
	for _, list := range [][]playbook.Attempt{d.Counted, d.Contamination} {
		for i := range list {
			n += 60 + len(list[i].Reason)
		}
	}
	for i := range d.Ignored {
		n += 60 + len(d.Ignored[i].Reason) + len(d.Ignored[i].Why)
	}
	return n > MaxComment
}

// decision gives the folded JSON, "" where there is none to show: records
// taken without a change of verdict carry none.
func (r *Renderer) decision(a *Answer, want detail) string {
	if a.Decision == nil || !slices.ContainsFunc(a.Sections, func(s Section) bool { return s.Kind != KindRecorded }) {
		return ""
	}
	if want.none {
		return "The decision as JSON is too long for a comment; `playbook-bot approval` and the audit have it."
	}
	d, left := trim(*a.Decision, want)
	text, err := encode(d, want.indent)
	if err != nil {
		return "The decision cannot be shown as JSON."
	}
	note := ""
	if left > 0 {
		note = fmt.Sprintf("Left out of the JSON for length: %s.\n\n", count(left, "entry"))
		note = strings.Replace(note, "entrys", "entries", 1)
	}
	ticks := strings.Repeat("`", max(3, 1+longestRun(text, '`')))
	return "<details><summary>Decision as JSON</summary>\n\n" + note + ticks + "json\n" + text + "\n" + ticks + "\n\n</details>"
}

// encode gives the decision as JSON in which nothing is invisible: characters
// that steer the direction of text, or show as nothing, are written \uXXXX.
func encode(d playbook.Decision, indent bool) (string, error) {
	raw, err := json.Marshal(d)
	if err != nil {
		return "", fmt.Errorf("encode decision: %w", err)
	}
	if indent {
		var b bytes.Buffer
		if err := json.Indent(&b, raw, "", "  "); err != nil {
			return "", fmt.Errorf("indent decision: %w", err)
		}
		raw = b.Bytes()
	}
	var b strings.Builder
	b.Grow(len(raw))
	for _, r := range string(raw) {
		switch {
		case r == '\n' || unicode.IsPrint(r):
			b.WriteRune(r)
		case r > 0xffff:
			fmt.Fprintf(&b, `\u%04x\u%04x`, 0xd800+(r-0x10000)>>10, 0xdc00+(r-0x10000)&0x3ff)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
	}
	return b.String(), nil
}

// trim cuts a decision's lists and texts, and says how many entries of lists
// it left out.
func trim(d playbook.Decision, want detail) (playbook.Decision, int) {
	if want.rows < 0 {
		return d, 0
	}
	left := 0
	d.Counted, left = trimList(d.Counted, want, left, trimAttempt)
	d.Contamination, left = trimList(d.Contamination, want, left, trimAttempt)
	d.Ignored, left = trimList(d.Ignored, want, left, func(a *playbook.IgnoredAttempt, n int) {
		trimAttempt(&a.Attempt, n)
		a.Why = cut(a.Why, 2*n)
	})
	d.Rejections, left = trimList(d.Rejections, want, left, func(r *playbook.RejectedText, n int) {
		r.Why = cut(r.Why, 2*n)
		if len(r.Suggestion) > 2*n {
			r.Suggestion = "" // half a line would not work as pasted
		}
	})
	d.UnknownSymptoms, left = trimList(d.UnknownSymptoms, want, left, func(u *playbook.UnknownSymptom, n int) { u.Symptom = cut(u.Symptom, n) })
	d.Missing, left = trimList(d.Missing, want, left, func(m *playbook.Missing, n int) {
		if m.Text = cut(m.Text, 4*n); len(m.Post) > 8*n {
			m.Post = ""
		}
	})
	d.Reasons, left = trimList(d.Reasons, want, left, func(s *string, n int) { *s = cut(*s, 4*n) })
	d.Action, d.Target = cut(d.Action, 4*want.text), cut(d.Target, 4*want.text)
	return d, left
}

// trimList gives a copy of at most want.rows entries, each with its texts cut.
func trimList[E any](in []E, want detail, left int, short func(*E, int)) ([]E, int) {
	out, more := head(slices.Clone(in), want.rows)
	if in != nil && out == nil {
		out = []E{}
	}
	if want.text >= 0 {
		for i := range out {
			short(&out[i], want.text)
		}
	}
	return out, left + more
}

func trimAttempt(a *playbook.Attempt, n int) {
	if r := cut(a.Reason, n); r != a.Reason {
		a.Reason, a.Cut = r, true
	}
	a.Action, a.Target, a.Actor, a.RecordedBy = cut(a.Action, n), cut(a.Target, n), cut(a.Actor, n), cut(a.RecordedBy, n)
}
