package playbook

import (
	"regexp"
	"strings"
)

// A manual process kill is forbidden and contaminates the thread it stands in.
// It is recognised by the command's name, as an action or as the stated deed
// in a text. "Nobody ran pkill" states no deed, nor does "should I pkill?";
// "did not help, so I ran pkill" does. Where the reader cannot be sure, no
// deed is assumed: contamination informs and never changes a verdict, but a
// record taken for a kill does not count.

// killActionRE matches a kill named as an action, after normalize.
var killActionRE = regexp.MustCompile(`^(?:sudo_)?(?:[a-z/]*/)?(?:` +
	`(?:pkill|killall5?|xkill|tskill|taskkill(?:\.exe)?|stop_process|sigkill|kill_process(?:es)?|process_kill|manual_(?:process_)?kill|force_kill|hard_kill)(?:_.*)?` +
	`|kill(?:_(?:9|15|kill|term|int|hup|sig[a-z]+|s_.*|[0-9]+|%[0-9]+|pid|the|all|worker|server|process|daemon)(?:_.*)?)?|kill9` +
	`|(?:systemctl|docker|podman|nerdctl|crictl|launchctl)_kill(?:_.*)?|docker_compose_kill(?:_.*)?` +
	`|fuser_k[a-z]*(?:_.*)?)$`)

// killWordRE finds a kill command in the words of a text.
var killWordRE = regexp.MustCompile(`(?:^|[^\pL\pN_.-])(` +
	`(?:pkill|killall5?|xkill|tskill|taskkill(?:\.exe)?|stop-process)(?:ed|'d|ing)?` +
	`|kill\s*-\s*(?:9|15|kill|term|int|hup|sig[a-z]+|s\s+[a-z0-9]+|[0-9]+)(?:'d)?` +
	`|kill\s+(?:[0-9]{2,}|%[0-9]+|\$)` +
	`|(?:systemctl|docker|podman|nerdctl|crictl|launchctl|docker[ -]compose)\s+kill(?:ed)?` +
	`|fuser\s+-\S*k\S*` +
	`|sen(?:d|t|ding)\s+(?:it\s+|them\s+|a\s+)?sig(?:kill|term)` +
	`)(?:[^\pL\pN_]|$)`)

// killProseRE finds a kill told in prose, with the one who tells as its doer.
var killProseRE = regexp.MustCompile(`(?:^|[^\pL\pN_])(` +
	`(?:i|we)\s+(?:(?:just|then|also|had|have|ve|manually|force|hard|simply|finally|first|even)[\s-]+){0,3}killed` +
	`|(?:manually|force|hard)[\s-]+killed` +
	`|killed\s+(?:\S+\s+){0,4}(?:manually|by\s+hand)` +
	`)(?:[^\pL\pN_]|$)|^\s*(?:then\s+|just\s+)?(killed)\s+(?:the|that|its|our|all|pid|process)(?:[^\pL\pN_]|$)`)

var (
	// clauseRE separates what one negation can reach.
	clauseRE = regexp.MustCompile(`[,;\n()]|[.!?:](?:\s|$)|\s(?:but|so|then|and|because|until|after|with|–|—|-)\s`)
	// idleRE are negations that say the deed was in vain, not that it was not done.
	idleRE = regexp.MustCompile(`(?:^|[^\pL\pN_])(?:no\s+(?:luck|change|effect|help|success|joy|improvement|response|answer|result|difference|reply)` +
		`|(?:do|does|did|would|could|was|is|will)(?:n'?t|\s+not)\s+(?:help|work|respond|answer|recover|reconnect|fix|change|die|stop|exit|start|come|go)[a-z]*` +
		`|not\s+(?:responding|answering|working|helping|enough))`)
	// noDeedRE, before the kill, makes it no deed: negations and what is only thought of.
	noDeedRE = regexp.MustCompile(`(?:^|[^\pL\pN_])(?:no|not|never|nobody|none|neither|nor|without|cannot|avoid(?:ed|ing|s)?|refus(?:e|ed|ing|es)` +
		`|forbid(?:s|den)?|forbade|instead\s+of|rather\s+than|no\s*one|should|could|would|might|may|can|shall|will|if|whether|tempted|consider(?:ed|ing)?` +
		`|suggest(?:ed|s|ing)?|propos(?:ed|e|es|ing)|asked|want(?:ed|s)?|plan(?:ned|s|ning)?|about\s+to|going\s+to|(?:do|did|does|has|have|had|was|were|is|are|ca|wo|would|could|should|must)n'?t)(?:[^\pL\pN_]|$)`)
	// doerRE, between a kill that was not done and another, starts a new deed: "instead of pkill I ran killall".
	doerRE = regexp.MustCompile(`(?:^|[^\pL\pN_])(?:i|we|he|she|they|used|ran)(?:[^\pL\pN_]|$)`)
	// notDoneRE, after the kill, says that it was not done.
	notDoneRE = regexp.MustCompile(`^[^\pL\pN]*(?:\S+\s+){0,4}?(?:(?:was|were|is|are|has\s+been|had\s+been)\s+(?:not|never)|(?:was|were|is|are|has|had)n'?t|never|not)\s+(?:been\s+)?` +
		`(?:used|run|ran|executed|done|needed|necessary|tried|allowed|permitted|issued|sent|involved|an\s+option|required)` +
		`|^[^\pL\pN]*(?:\S+\s+){0,4}?(?:is|was|are|were|remains?)\s+(?:forbidden|avoided|prohibited|banned|off\s+limits)`)
)

// IsKill reports whether s is a manual process kill, as an action ("pkill",
// "kill -9 4711") or as the stated deed in a text ("ran pkill -f mcp").
func IsKill(s string) bool { return isKillAction(s) || statesKill(s) }

func isKillAction(s string) bool {
	if len(s) > 4*maxWord || !mentionsKill(s) || !killActionRE.MatchString(normalize(s)) {
		return false
	}
	stated, denied := killIn(s)
	return stated || !denied // "pkill was not used" begins like a command
}

// mentionsKill is the cheap look that nearly every text ends with: whether any
// word of a kill is in it at all.
func mentionsKill(s string) bool {
	for i := range len(s) {
		switch s[i] | 0x20 {
		case 'k':
			if hasFold(s[i:], "kill") {
				return true
			}
		case 's':
			if hasFold(s[i:], "stop-process") || hasFold(s[i:], "stop_process") || hasFold(s[i:], "sigterm") {
				return true
			}
		case 'f':
			if hasFold(s[i:], "fuser") {
				return true
			}
		}
	}
	return false
}

// hasFold is strings.HasPrefix for lower-case ASCII prefixes, case-folded.
func hasFold(s, prefix string) bool {
	return len(s) >= len(prefix) && strings.EqualFold(s[:len(prefix)], prefix)
}

// statesKill reports whether the text says that somebody did it.
func statesKill(s string) bool {
	stated, _ := killIn(s)
	return stated
}

// killIn looks for a kill clause by clause. denied is whether one was spoken
// of that was not done.
func killIn(s string) (stated, denied bool) {
	if !mentionsKill(s) {
		return false, false
	}
	text := strings.ToLower(strings.ReplaceAll(s, "’", "'"))
	before := false // the clause before spoke of a kill that was not done
	for len(text) > 0 {
		clause, end := text, ""
		if at := clauseRE.FindStringIndex(text); at != nil {
			clause, end, text = text[:at[0]], text[at[0]:at[1]], text[at[1]:]
		} else {
			text = ""
		}
		start, stop, ok := findKill(clause)
		if !ok {
			before = before && strings.TrimSpace(clause) == ""
			continue
		}
		lead, rest := idleRE.ReplaceAllString(clause[:start], " "), clause[stop:]
		listed := before && strings.Trim(lead, " `'\"") == "" // "nobody ran pkill, killall or kill -9"
		if listed || strings.HasPrefix(end, "?") || noDeedRE.MatchString(lead) || notDoneRE.MatchString(rest) {
			before, denied = true, true
			if start, _, ok := findKill(rest); !ok || !doerRE.MatchString(rest[:start]) || noDeedRE.MatchString(rest[:start]) {
				continue
			}
		}
		return true, false
	}
	return false, denied
}

// findKill gives where a clause speaks of a kill.
func findKill(clause string) (start, stop int, ok bool) {
	m := killWordRE.FindStringSubmatchIndex(clause)
	if m == nil {
		m = killProseRE.FindStringSubmatchIndex(clause)
	}
	for i := 2; i+1 < len(m); i += 2 {
		if m[i] >= 0 {
			return m[i], m[i+1], true
		}
	}
	return 0, 0, false
}
