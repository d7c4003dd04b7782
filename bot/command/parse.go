package command

import (
	"strings"

	"playbook-bot/playbook"
)

// Match says whose a line is.
type Match uint8

const (
	// NotOurs: the line gets silence; other bots live in the thread too.
	NotOurs Match = iota
	// Ours: one of the table's commands, understood or with a Problem.
	Ours
	// Unclear: the bot is addressed by name with something that is no command.
	Unclear
)

// ParseLine reads one line of text that Markdown shows as text: where the line
// stands is the caller's to judge. lineNo is put into the invocation. bot is
// the bot's own login, so that "@bot restart …" is "/restart …"; empty: none.
// The invocation is meaningful only where the match is Ours.
func ParseLine(line string, lineNo int, bot string, pb *playbook.Playbook) (Invocation, Match) {
	spec, rest, match := split(line, bot)
	if match != Ours {
		return Invocation{}, match
	}
	inv := read(spec, rest, pb)
	inv.Line, inv.Raw = lineNo, cleanText(line)
	if inv.Problem != nil && !works(inv.Problem.Suggestion, pb) {
		inv.Problem.Suggestion = "/playbook help"
	}
	return inv, Ours
}

func read(spec Spec, rest string, pb *playbook.Playbook) Invocation {
	inv := Invocation{Name: spec.Name, Symptoms: []string{}}
	spec.args(&tokens{rest: rest}, &inv, pb)
	return inv
}

// works reports whether a cure is none or does what it promises. A line may be
// wrong in more ways than its first problem tells.
func works(cure string, pb *playbook.Playbook) bool {
	if cure == "" {
		return true
	}
	spec, rest, match := split(cure, "")
	return match == Ours && !strings.ContainsAny(cure, "\n\r") && read(spec, rest, pb).Problem == nil
}

// StartsLive reports whether a line would begin with a command, or address
// the bot, once it stood in a comment as text: also behind list markers, which
// do not keep a command from running.
func StartsLive(line, bot string) bool {
	t := tokens{rest: line}
	for {
		if _, _, match := split(t.rest, bot); match != NotOurs {
			return true
		}
		marker, ok := t.next()
		if !ok || !listMarker(marker) {
			return false
		}
	}
}

// LeadsWithAction reports whether a text begins with an action of the playbook
// or a manual kill, as what stands behind /attempt does.
func LeadsWithAction(s string, pb *playbook.Playbook) bool {
	var inv Invocation
	if !readAction(&tokens{rest: s}, &inv, pb) {
		return false
	}
	_, known := pb.NormalizeAction(inv.Action)
	return known || playbook.IsKill(inv.Action)
}

// listMarker reports whether s is a Markdown list marker such as "-" or "12.".
func listMarker(s string) bool {
	switch s {
	case "-", "*", "+":
		return true
	}
	digits := strings.TrimRight(s, ".)")
	return digits != "" && len(s) == len(digits)+1 && len(digits) <= 9 && strings.Trim(digits, "0123456789") == ""
}

// split takes the command's name off a line.
func split(line, bot string) (Spec, string, Match) {
	t := tokens{rest: line}
	t.skip()
	if t.rest == "" || t.rest[0] != '/' && t.rest[0] != '@' {
		return Spec{}, "", NotOurs
	}
	first, _ := t.next()
	if name, ok := strings.CutPrefix(first, "/"); ok {
		spec, ok := lookupWord(name)
		if !ok {
			return Spec{}, "", NotOurs
		}
		return spec, t.rest, Ours
	}
	if bot == "" || !strings.EqualFold(strings.TrimRight(first[1:], trailing), bot) {
		return Spec{}, "", NotOurs
	}
	name, _ := t.next()
	spec, ok := lookupWord(strings.TrimPrefix(name, "/"))
	if !ok {
		return Spec{}, "", Unclear
	}
	return spec, t.rest, Ours
}

// lookupWord is Lookup for a name in a sentence: "/withdraw." is a /withdraw.
func lookupWord(s string) (Spec, bool) {
	return Lookup(strings.TrimRight(s, trailing))
}
