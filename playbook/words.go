package playbook

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
)

// normalize gives a word's canonical spelling: case, surrounding space and
// backquotes go, `-` and inner space become `_`. Only ASCII letters change
// case: the Kelvin sign would otherwise pass for a k.
func normalize(s string) string {
	s = strings.TrimFunc(s, func(r rune) bool { return unicode.IsSpace(r) || r == '`' })
	canonical := true
	for i := range len(s) {
		if c := s[i]; !('a' <= c && c <= 'z' || '0' <= c && c <= '9' || c == '_' && i > 0 && s[i-1] != '_') {
			canonical = false
			break
		}
	}
	if canonical {
		return s
	}
	var b strings.Builder
	gap := false
	for _, r := range s {
		if r == '-' || r == '_' || unicode.IsSpace(r) {
			gap = true
			continue
		}
		if gap {
			b.WriteByte('_')
			gap = false
		}
		if 'A' <= r && r <= 'Z' {
			r += 'a' - 'A'
		}
		b.WriteRune(r)
	}
	if gap {
		b.WriteByte('_')
	}
	return b.String()
}

// fold gives the form in which logins and targets compare.
func fold(s string) string {
	for i := range len(s) {
		if c := s[i]; 'A' <= c && c <= 'Z' || c >= 0x80 {
			return strings.ToLower(s)
		}
	}
	return s
}

// invisible are characters that change how text reads without being seen:
// controls, bidi marks, zero-width characters.
func invisible(r rune) bool {
	return unicode.IsControl(r) || unicode.Is(unicode.Cf, r) || r == '\u2028' || r == '\u2029' || r == unicode.ReplacementChar
}

// plain makes people's text fit for one line of ours: no line ends, invisible
// characters or backquotes, at most limit characters.
func plain(s string, limit int) string {
	var b strings.Builder
	n, gap := 0, false
	for _, r := range s {
		if unicode.IsSpace(r) {
			gap = n > 0
			continue
		}
		if r == '`' || invisible(r) {
			continue
		}
		if n >= limit {
			b.WriteRune('…')
			break
		}
		if gap {
			b.WriteByte(' ')
			n++
			gap = false
		}
		b.WriteRune(r)
		n++
	}
	return b.String()
}

// quote shows people's text in backquotes.
func quote(s string) string {
	if s = plain(s, 60); s != "" {
		return "`" + s + "`"
	}
	return "(nothing)"
}

// lookalikes maps letters of other scripts to the ASCII letter they pass for.
var lookalikes = map[rune]byte{
	'а': 'a', 'с': 'c', 'ԁ': 'd', 'е': 'e', 'һ': 'h', 'і': 'i', 'ј': 'j', 'ӏ': 'l', 'о': 'o', 'р': 'p', 'ԛ': 'q', 'ѕ': 's',
	'у': 'y', 'х': 'x', 'ԝ': 'w', 'к': 'k', 'м': 'm', 'т': 't', 'в': 'b', 'г': 'r', 'п': 'n', 'А': 'a', 'В': 'b', 'С': 'c', 'Е': 'e',
	'Н': 'h', 'І': 'i', 'Ј': 'j', 'К': 'k', 'М': 'm', 'О': 'o', 'Р': 'p', 'Ѕ': 's', 'Т': 't', 'У': 'y', 'Х': 'x',
	'α': 'a', 'ϲ': 'c', 'ε': 'e', 'ι': 'i', 'κ': 'k', 'ν': 'v', 'ο': 'o', 'ρ': 'p', 'τ': 't', 'υ': 'u', 'χ': 'x', 'γ': 'y', 'η': 'n', 'ω': 'w',
	'Α': 'a', 'Β': 'b', 'Ε': 'e', 'Η': 'h', 'Ι': 'i', 'Κ': 'k', 'Μ': 'm', 'Ν': 'n', 'Ο': 'o', 'Ρ': 'p', 'Τ': 't', 'Υ': 'y', 'Χ': 'x', 'Ζ': 'z',
	'ı': 'i', 'ɑ': 'a', 'ɡ': 'g', 'ӷ': 'r', 'ո': 'n', 'ս': 'u', 'օ': 'o', 'ց': 'g', 'հ': 'h', 'ſ': 's', 'K': 'k', 'ⅼ': 'l', 'ⅽ': 'c', 'ⅾ': 'd', 'ⅿ': 'm', 'ⅰ': 'i', 'ⅴ': 'v', 'ⅹ': 'x',
	'‐': '-', '‑': '-', '‒': '-', '–': '-', '—': '-', '−': '-', '＿': '_',
}

// latin gives s with look-alike letters replaced, for suggestions only.
func latin(s string) string {
	return strings.Map(func(r rune) rune {
		if c, ok := lookalikes[r]; ok {
			return rune(c)
		}
		if 'ａ' <= r && r <= 'ｚ' {
			return r - 'ａ' + 'a'
		}
		if 'Ａ' <= r && r <= 'Ｚ' {
			return r - 'Ａ' + 'a'
		}
		if invisible(r) {
			return -1
		}
		return r
	}, s)
}

// strangeLetter names the first character that does not belong in a word of
// ours, with its code point; empty where all do.
func strangeLetter(s string) string {
	for _, r := range s {
		if r < 0x80 || unicode.IsSpace(r) {
			continue
		}
		if c, ok := lookalikes[r]; ok {
			return fmt.Sprintf("it holds U+%04X, which only looks like %c", r, c)
		}
		return fmt.Sprintf("it holds U+%04X", r)
	}
	return ""
}

// maxWord bounds, in bytes, what is compared for likeness.
const maxWord = 80

// nearest gives the names within a few typing errors of s, nearest first, at
// most three.
func nearest(s string, names []string) []string {
	s = normalize(latin(s))
	if s == "" || len(s) > maxWord {
		return nil
	}
	type hit struct {
		name string
		d    int
	}
	var hits []hit
	for _, name := range names {
		if d := distance(s, name); d <= max(1, min(len(name), len(s))/3) {
			hits = append(hits, hit{name, d})
		}
	}
	slices.SortStableFunc(hits, func(a, b hit) int { return a.d - b.d })
	var out []string
	for _, h := range hits[:min(len(hits), 3)] {
		if h.d <= hits[0].d+1 {
			out = append(out, h.name)
		}
	}
	return out
}

// distance is the optimal string alignment distance in bytes: insertions,
// deletions, substitutions and swaps of neighbours.
func distance(a, b string) int {
	width := len(b) + 1
	before, above, row := make([]int, width), make([]int, width), make([]int, width)
	for j := range above {
		above[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			row[j] = min(above[j]+1, row[j-1]+1, above[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, above, row = above, row, before
	}
	return above[len(b)]
}

// wordsOf gives the lower-case words of a text in one string, each between
// single spaces, for finding phrases in it.
func wordsOf(s string) string {
	var b strings.Builder
	b.WriteByte(' ')
	gap := true
	for _, r := range strings.ToLower(s) {
		switch {
		case unicode.IsLetter(r) || unicode.IsDigit(r):
			b.WriteRune(r)
			gap = false
		case r == '\'' || r == '’': // didn't and didnt are one word
		case !gap:
			b.WriteByte(' ')
			gap = true
		}
	}
	if !gap {
		b.WriteByte(' ')
	}
	return b.String()
}

// asWords gives each phrase as wordsOf does.
func asWords(phrases []string) []string {
	out := make([]string, len(phrases))
	for i, phrase := range phrases {
		out[i] = wordsOf(phrase)
	}
	return out
}

// phraseIn gives the length of the longest phrase found whole in a text, 0 for
// none. Both are as wordsOf gives them.
func phraseIn(words string, phrases []string) int {
	longest := 0
	for _, phrase := range phrases {
		if len(phrase) > max(2, longest) && strings.Contains(words, phrase) {
			longest = len(phrase)
		}
	}
	return longest
}
