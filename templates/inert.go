package templates

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Text is a string that somebody outside wrote: a login, a target, a reason.
// It prints inert, whatever verb or pipeline a template prints it with,
// because its String method is what text/template calls; so a template that
// forgets to think of it is safe. Where it should stand as code, a template
// says {{code .Target}}.
type Text string

// String gives the text as inert Markdown for running text.
func (t Text) String() string { return inert(string(t), maxText) }

// Words are a sentence of ours in which text of people stands in backquotes
// (playbook.Problem says so of its Why). It prints as Markdown: what stands
// in backquotes as code, all else inert. A lone backquote opens nothing.
type Words string

// String gives the sentence as inert Markdown.
func (w Words) String() string { return words(string(w), maxWords) }

// The longest that is shown of a text, in characters; a longer one is cut
// before it is rendered, so that what was opened is always closed.
const (
	maxText  = 300
	maxName  = 120
	maxWords = 900
	// maxPost is the longest line to paste that is shown. It must hold a
	// whole attempt, reason and all (playbook.MaxReason): a line that was cut
	// would not work as pasted, so a longer one is not shown at all.
	maxPost = 2600
)

// Code gives text of people as it may stand in a sentence of ours (Title,
// Text, Because, Notes): in backquotes, without its own.
func Code(s string) string {
	s = strings.ReplaceAll(cut(clean(s), maxName), "`", "'")
	if s == "" {
		return "(nothing)"
	}
	return "`" + s + "`"
}

// zwsp stands between a sign and what follows it. Gitea and GitHub make no
// link and send no mail for "@\u200bname" and "#\u200b12"; for a backslash or
// an entity before the name they still do.
const zwsp = "\u200b"

// clean makes one line of s without anything invisible: control characters
// and all kinds of space become one space, format characters (bidirectional
// overrides, zero-width characters, byte order marks, tags) vanish, and no
// more than four combining marks stack on one letter.
func clean(s string) string { return cleanTo(s, len(s)) }

// cleanTo is clean for a text of which no more than n characters are shown:
// it looks no further than that takes, and leaves one more for cut to see.
func cleanTo(s string, n int) string {
	if len(s) <= n && isClean(s) {
		return s
	}
	var b strings.Builder
	b.Grow(min(len(s), 4*n))
	marks, space, count := 0, false, 0
	for _, r := range s {
		switch {
		case r > ' ' && r <= '~':
			marks = 0
		case r <= ' ' || r == 0x7f || isSpace(r):
			space = count > 0
			continue
		case isInvisible(r):
			continue
		case unicode.In(r, unicode.Mn, unicode.Me):
			if marks++; marks > 4 {
				continue
			}
		default:
			marks = 0
		}
		if space {
			b.WriteByte(' ')
			space = false
			count++
		}
		b.WriteRune(r)
		if count++; count > n {
			break
		}
	}
	return b.String()
}

// isSpace and isInvisible ask about characters that are not ASCII.
func isSpace(r rune) bool {
	return unicode.IsSpace(r) || unicode.IsControl(r) || unicode.Is(unicode.Z, r) || r == '\u2800'
}

func isInvisible(r rune) bool {
	return unicode.In(r, unicode.Cf, unicode.Co, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector)
}

// isClean is the quick way out for what most texts are: printable ASCII with
// single spaces inside.
func isClean(s string) bool {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c > '~' || c == ' ' && (i == 0 || i == len(s)-1 || s[i-1] == ' ') {
			return false
		}
	}
	return true
}

// cut shortens s to at most n characters, the last of them "…" where
// something was left out.
func cut(s string, n int) string {
	if len(s) <= n || utf8.RuneCountInString(s) <= n {
		return s
	}
	i := 0
	for range n - 1 {
		_, w := utf8.DecodeRuneInString(s[i:])
		i += w
	}
	return strings.TrimRight(s[:i], " ") + "…"
}

// inert gives s, at most n characters of it, as Markdown that shows exactly
// these characters in running text or in a table's cell and does nothing
// else: no emphasis, link, mention, reference, commit link, emoji, HTML or
// block, and no table column. It holds no backquote, no "|", "<", ">" or bare
// "&".
func inert(s string, n int) string {
	s = cut(clean(s), n)
	switch {
	case leads(s):
		return `\` + inertly(s)
	case orderedItem(s, len(s)):
		return s + zwsp // or a full stop of ours after it would make it a list
	}
	return inertly(s)
}

// inertly is inert for a clean text that begins no line.
func inertly(s string) string {
	var b strings.Builder
	b.Grow(len(s) + len(s)/8)
	hash, done := 0, 0 // digits left, and written, of what would link to a commit
	for i, r := range s {
		if hash == 0 {
			hash, done = hashAt(s, i), 0
		}
		if hash > 0 {
			if done > 0 && done%6 == 0 {
				b.WriteString(zwsp)
			}
			hash, done = hash-1, done+1
		}
		writeInert(&b, s, i, r)
	}
	if endsInScheme(s) {
		b.WriteString(zwsp) // a colon of ours may follow
	}
	return b.String()
}

// endsInScheme reports whether a colon after s would begin an address. To
// Gitea 1.26 "http:" alone does: it then takes everything up to the end of
// the next address on the line for the link, be that within code, and makes a
// cross-reference of it.
func endsInScheme(s string) bool {
	for _, scheme := range []string{"http", "https", "ftp"} {
		if n := len(s) - len(scheme); n >= 0 && strings.EqualFold(s[n:], scheme) {
			return true
		}
	}
	return false
}

// hashAt gives the length of the word at s[i:] if a forge would take it for a
// commit: seven or more hexadecimal digits by themselves. Else 0.
func hashAt(s string, i int) int {
	if i > 0 && isWord(s[i-1]) {
		return 0
	}
	n := 0
	for i+n < len(s) && isHex(s[i+n]) {
		n++
	}
	if n < 7 || i+n < len(s) && isWord(s[i+n]) {
		return 0
	}
	return n
}

// writeInert writes the one character r at s[i:].
func writeInert(b *strings.Builder, s string, i int, r rune) {
	rest := s[i+utf8.RuneLen(r):]
	switch r {
	case '<':
		b.WriteString("&lt;")
	case '>':
		b.WriteString("&gt;")
	case '&':
		b.WriteString("&amp;")
	case '`':
		b.WriteString("&#96;")
	case '|':
		b.WriteString("&#124;")
	case '@':
		b.WriteString("@" + zwsp)
	case '#':
		b.WriteString("#" + zwsp)
	case '!':
		// "!12" is a pull request to Gitea.
		b.WriteByte('!')
		if rest == "" || isDigit(rest[0]) {
			b.WriteString(zwsp)
		}
	case '[', ']':
		b.WriteByte('\\')
		b.WriteRune(r)
		// Gitea reads "[[page]]" in the rendered text, after all escapes.
		b.WriteString(zwsp)
	case '\\', '*', '_', '~', '$', '^', '{', '}':
		b.WriteByte('\\')
		b.WriteRune(r)
	case ':':
		if endsInScheme(s[:i]) {
			b.WriteString(zwsp)
		}
		// Breaks "//…" off, and ":emoji:".
		b.WriteByte(':')
		if rest != "" && rest[0] != ' ' && (!isDigit(rest[0]) || i == 0 || !isDigit(s[i-1])) {
			b.WriteString(zwsp)
		}
	case '-':
		// "GH-12" on GitHub, "ABC-12" where Gitea has an outside tracker.
		b.WriteByte('-')
		if rest != "" && isDigit(rest[0]) && i > 0 && trackerPrefix(s[:i]) {
			b.WriteString(zwsp)
		}
	case '.':
		if i >= 3 && strings.EqualFold(s[i-3:i], "www") || orderedItem(s, i) {
			b.WriteString(zwsp)
		}
		b.WriteByte('.')
	case ')':
		if orderedItem(s, i) {
			b.WriteString(zwsp)
		}
		b.WriteByte(')')
	default:
		b.WriteRune(r)
	}
}

// leads reports whether s would, at the beginning of a line, be a block's
// marker, a command or a mention of a bot. A zero-width space would not do
// against the last two: a reader that drops such characters finds the command
// again.
func leads(s string) bool { return s != "" && strings.IndexByte("-+=/@:", s[0]) >= 0 }

// orderedItem reports whether s[:i] is nothing but digits, so that the sign
// at i would make it an item of a list.
func orderedItem(s string, i int) bool {
	return i > 0 && i < 10 && strings.Trim(s[:i], "0123456789") == ""
}

func trackerPrefix(s string) bool {
	last := s[len(s)-1]
	return last >= 'A' && last <= 'Z' || len(s) >= 2 && strings.EqualFold(s[len(s)-2:], "gh")
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

func isHex(c byte) bool { return isDigit(c) || c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F' }

func isWord(c byte) bool { return isDigit(c) || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' }

// codeSpan gives s, at most n characters of it, as an inline code span: with
// more backquotes around it than there are within. An empty s gives "(none)",
// because two backquotes with nothing between are text.
func codeSpan(s string, n int) string {
	s = cut(clean(s), n)
	if s == "" {
		return "(none)"
	}
	ticks := strings.Repeat("`", 1+longestRun(s, '`'))
	if s[0] == '`' || s[len(s)-1] == '`' {
		return ticks + " " + s + " " + ticks
	}
	return ticks + s + ticks
}

// fence gives one line in a fenced block of its own, every line of it after
// indent. The line stands there exactly as given, so that it works as pasted;
// only what no command line may hold is taken away.
func fence(indent, line string) string {
	line = clean(line)
	if utf8.RuneCountInString(line) > maxPost {
		return indent + "(The line is too long to show here; write it with a shorter reason.)"
	}
	ticks := strings.Repeat("`", max(3, 1+longestRun(line, '`')))
	return indent + ticks + "\n" + indent + line + "\n" + indent + ticks
}

// words renders a sentence of ours; see Words.
func words(s string, n int) string {
	parts := strings.Split(cut(clean(s), n), "`")
	var b strings.Builder
	for i, p := range parts {
		switch {
		case i%2 == 0:
			b.WriteString(inertPart(p, b.Len() == 0))
		case i == len(parts)-1:
			b.WriteString("&#96;" + inertPart(p, false))
		default:
			b.WriteString(codeSpan(p, n))
		}
	}
	return b.String()
}

// inertPart is inert for a piece of a sentence: it keeps the spaces around
// it, which separate the piece from the code beside it.
func inertPart(p string, first bool) string {
	body := strings.Trim(p, " ")
	if body == "" {
		if p == "" || first {
			return ""
		}
		return " "
	}
	var out string
	if first {
		out = inert(body, maxWords)
	} else {
		out = inertly(body)
		if p[0] == ' ' {
			out = " " + out
		}
	}
	if strings.HasSuffix(p, " ") {
		out += " "
	}
	return out
}

// operator renders a line of the operator's own, such as the contact: as
// inert as any other, but its addresses stay links and its long numbers stay
// whole, because at night somebody copies a telephone number from here.
func operator(s string) string {
	fields := strings.Fields(cut(clean(s), maxText))
	for i, f := range fields {
		switch {
		case plainURL(f):
			fields[i] = "<" + f + ">"
		case strings.Trim(f, "0123456789+-/()") == "" && (i > 0 || isDigit(f[len(f)-1])):
			if i == 0 && leads(f) {
				fields[i] = `\` + f
			}
		case i == 0:
			fields[i] = inert(f, maxText)
		default:
			fields[i] = inertly(f)
		}
	}
	return strings.Join(fields, " ")
}

// plainURL reports whether f is a web address that can stand in <…> without
// mentioning or quoting anything.
func plainURL(f string) bool {
	rest, ok := strings.CutPrefix(f, "https://")
	if !ok {
		if rest, ok = strings.CutPrefix(f, "http://"); !ok {
			return false
		}
	}
	for _, r := range rest {
		if r > '~' || strings.ContainsRune("<>@#|`\\\"'[]{}^*", r) {
			return false
		}
	}
	return rest != ""
}

func longestRun(s string, c byte) int {
	longest, run := 0, 0
	for i := range len(s) {
		if s[i] == c {
			run++
			longest = max(longest, run)
		} else {
			run = 0
		}
	}
	return longest
}
