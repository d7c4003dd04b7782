package templates

import (
	"fmt"
	"strings"
	"text/template"
	"time"

	"playbook-bot/playbook"
)

// funcs are what a template can call besides text/template's own. All take
// raw text and give Markdown that is safe where the name says.
func (r *Renderer) funcs() template.FuncMap {
	return template.FuncMap{
		"code":    func(v any) string { return codeSpan(raw(v), maxName) },
		"quote":   func(v any) string { return "“" + inert(raw(v), maxText) + "”" },
		"fence":   func(v any) string { return fence("", raw(v)) },
		"fencein": func(indent string, v any) string { return fence(indent, raw(v)) },
		"row":     row,
		"list":    func(v []Text) string { return joinAnd(v, inertName) },
		"either": func(v []Text) string {
			return joinWith(v, " or ", func(t Text) string { return codeSpan(string(t), maxName) })
		},
		"line":     line,
		"codeline": func(v Text) string { return codeSpan(string(v), maxPost) },
		"yesno":    yesno,
		"count":    count,
		"clock":    clock,
		"stamp":    stamp,
		"inc":      func(i int) int { return i + 1 },
		"capital":  capital,
		"sentence": sentence,
		"dash":     dash,
	}
}

// raw gives the text inside v, before any escaping.
func raw(v any) string {
	switch v := v.(type) {
	case Text:
		return string(v)
	case Words:
		return string(v)
	case string:
		return v
	case playbook.Code:
		return string(v)
	}
	return fmt.Sprint(v)
}

// line joins words to a line to post. It is a Text: printed by itself it is
// inert, in {{fence}} and {{code}} it stands as it is.
func line(words ...any) Text {
	parts := make([]string, 0, len(words))
	for _, w := range words {
		if s := raw(w); s != "" {
			parts = append(parts, s)
		}
	}
	return Text(strings.Join(parts, " "))
}

func yesno(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}

// dash shows an empty cell as one.
func dash(v any) any {
	if raw(v) == "" {
		return "–"
	}
	return v
}

func inertName(t Text) string { return inert(string(t), maxName) }

// row makes one row of a table from cells that are Markdown already. A "|"
// can stand in them in code only, where "\|" is the one spelling that shows
// it; after a backslash readers of Markdown disagree, so there it becomes a
// broken bar.
func row(cells ...any) string {
	var b strings.Builder
	b.WriteString("|")
	for _, c := range cells {
		s := strings.ReplaceAll(fmt.Sprint(c), `\|`, `\¦`)
		s = strings.ReplaceAll(s, "|", `\|`)
		b.WriteString(" " + strings.TrimSpace(strings.ReplaceAll(s, "\n", " ")) + " |")
	}
	return b.String()
}

// joinAnd lists texts as "a, b and c".
func joinAnd(v []Text, show func(Text) string) string { return joinWith(v, " and ", show) }

// joinWith is joinAnd with another last conjunction.
func joinWith(v []Text, last string, show func(Text) string) string {
	var b strings.Builder
	for i, t := range v {
		switch {
		case i == 0:
		case i == len(v)-1:
			b.WriteString(last)
		default:
			b.WriteString(", ")
		}
		b.WriteString(show(t))
	}
	return b.String()
}

// count gives a number with its noun: "1 attempt", "3 attempts".
func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// clock gives a time of day in UTC, with its date where that is not now's.
func clock(t, now time.Time) string {
	return stamp(t, now) + " UTC"
}

// stamp is clock without the zone, for a column that names it.
func stamp(t, now time.Time) string {
	t, now = t.UTC(), now.UTC()
	if t.Year() == now.Year() && t.YearDay() == now.YearDay() {
		return t.Format("15:04")
	}
	return t.Format("2006-01-02 15:04")
}

// duration gives a length of time as people say it.
func duration(d time.Duration) string {
	switch {
	case d < time.Minute:
		return "under a minute"
	case d < 2*time.Hour:
		return fmt.Sprintf("%d min", d/time.Minute)
	case d < 48*time.Hour:
		return fmt.Sprintf("%d h", d/time.Hour)
	}
	return fmt.Sprintf("%d days", d/(24*time.Hour))
}

// sentence gives a clause as a whole sentence.
func sentence(v any) string {
	s := capital(v)
	if s == "" || strings.ContainsRune(".!?", rune(s[len(s)-1])) {
		return s
	}
	return s + "."
}

// capital gives a clause as the beginning of a sentence, unless it begins
// with code. What a letter's case may make live is escaped after that.
func capital(v any) string {
	switch v := v.(type) {
	case Words:
		return Words(upper(string(v))).String()
	case Text:
		return Text(upper(string(v))).String()
	}
	return fmt.Sprint(v)
}

func upper(s string) string {
	if s == "" || s[0] < 'a' || s[0] > 'z' {
		return s
	}
	return strings.ToUpper(s[:1]) + s[1:]
}
