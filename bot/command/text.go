package command

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// isSpace reports whether r separates tokens. Every Unicode space does:
// people paste no-break spaces without seeing them.
func isSpace(r rune) bool { return unicode.IsSpace(r) }

// isInvisible reports whether r vanishes from a token: byte order marks,
// zero-width and direction characters, variation selectors. What nobody can
// see must not decide what is a command and what is not.
func isInvisible(r rune) bool {
	return r > unicode.MaxASCII && (unicode.Is(unicode.Cf, r) || r >= 0xFE00 && r <= 0xFE0F || r == 0x034F)
}

// joins reports whether r is invisible and yet changes how its neighbours
// look: free text keeps it, or emoji and several scripts fall apart.
func joins(r rune) bool {
	return r == 0x200C || r == 0x200D || r >= 0xFE00 && r <= 0xFE0F
}

// Clean gives a token as it is meant: no invisible characters, every run of
// Unicode spaces one space, none at the ends.
func Clean(s string) string {
	var b strings.Builder
	space := false
	for _, r := range s {
		switch {
		case isInvisible(r):
		case isSpace(r):
			space = b.Len() > 0
		default:
			if space {
				b.WriteByte(' ')
				space = false
			}
			b.WriteRune(r)
		}
	}
	return b.String()
}

// cleanText gives free text as written, apart from what cannot be seen:
// Unicode spaces are spaces, invisible characters vanish where they only hide.
func cleanText(s string) string {
	s = strings.Map(func(r rune) rune {
		switch {
		case r <= unicode.MaxASCII || joins(r):
			return r
		case isInvisible(r):
			return -1
		case isSpace(r):
			return ' '
		}
		return r
	}, s)
	return strings.TrimSpace(s)
}

// quotes lists, for every opening quote, the marks that may close it. Word
// processors turn one into the other, and not always both ends alike.
func quotes(open rune) string {
	const double, single = "\"“”„‟«»", "'‘’‚‛‹›"
	switch {
	case open == '`':
		return "`"
	case strings.ContainsRune(double, open):
		return double
	case strings.ContainsRune(single, open):
		return single
	}
	return ""
}

// trailing is what people put after a word without meaning it.
const trailing = ".,;:!?…"

// word strips from an argument what belongs to the sentence and not to the
// word: trailing punctuation, and the backslash that rich editors put before
// an underscore.
func word(s string) string {
	s = strings.ReplaceAll(s, `\_`, "_")
	if t := strings.TrimRight(s, trailing); t != "" {
		return t
	}
	return s
}

// tokens are the arguments of a command line, read from left to right.
type tokens struct{ rest string }

// skip drops spaces and invisible characters at the front.
func (t *tokens) skip() {
	t.rest = strings.TrimLeftFunc(t.rest, func(r rune) bool { return isSpace(r) || isInvisible(r) })
}

// next takes one token. A token in quotes may hold spaces and comes without
// the quotes; a quote that is not closed is an ordinary character.
func (t *tokens) next() (token string, ok bool) {
	t.skip()
	if t.rest == "" {
		return "", false
	}
	if token, rest, ok := quoted(t.rest); ok {
		t.rest = rest
		return Clean(token), true
	}
	end := strings.IndexFunc(t.rest, isSpace)
	if end < 0 {
		end = len(t.rest)
	}
	token, t.rest = Clean(t.rest[:end]), t.rest[end:]
	return token, true
}

// peek gives the next n tokens without taking them, fewer at the end, and
// with each the tokens as they stand after it.
func (t *tokens) peek(n int) (words []string, after []tokens) {
	c := *t
	for range n {
		w, ok := c.next()
		if !ok {
			break
		}
		words, after = append(words, w), append(after, c)
	}
	return words, after
}

// text takes all that is left as free text. Quotes around the whole of it are
// quotes, any others are the writer's.
func (t *tokens) text() string {
	s := cleanText(t.rest)
	t.rest = ""
	if in, rest, ok := quoted(s); ok && strings.Trim(rest, trailing) == "" {
		return cleanText(in)
	}
	return s
}

// quoted splits s, which begins with a quote, at the quote that closes it: the
// first of its kind that a space, punctuation or the end follows.
func quoted(s string) (in, rest string, ok bool) {
	open, size := utf8.DecodeRuneInString(s)
	marks := quotes(open)
	if marks == "" {
		return "", "", false
	}
	for i, r := range s[size:] {
		if !strings.ContainsRune(marks, r) {
			continue
		}
		end := size + i
		rest = s[end+utf8.RuneLen(r):]
		next, _ := utf8.DecodeRuneInString(rest)
		if rest == "" || isSpace(next) || strings.ContainsRune(trailing, next) {
			return s[size:end], rest, end > size
		}
	}
	return "", "", false
}

// option takes an option with one of the names if it stands next. The names
// are compared case-folded; the value may be quoted.
func (t *tokens) option(names ...string) (name, value string, ok bool) {
	c := *t
	c.skip()
	key, _, found := strings.Cut(c.rest, "=")
	if !found || len(key) > 64 {
		return "", "", false
	}
	key = Clean(key)
	for _, n := range names {
		if !strings.EqualFold(key, n) {
			continue
		}
		_, c.rest, _ = strings.Cut(c.rest, "=")
		if first, _ := utf8.DecodeRuneInString(c.rest); c.rest == "" || isSpace(first) {
			*t = c
			return n, "", true
		}
		_, _, isQuoted := quoted(c.rest)
		value, _ = c.next()
		if !isQuoted {
			value = strings.TrimRight(value, ".;:!?…")
		}
		*t = c
		return n, value, true
	}
	return "", "", false
}
