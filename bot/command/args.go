package command

import (
	"slices"
	"strconv"
	"strings"

	"playbook-bot/playbook"
)

// maxWords is the most tokens that may together spell one action or outcome:
// people write "full mcp restart".
const maxWords = 4

func readRestart(t *tokens, inv *Invocation, pb *playbook.Playbook) {
	misplaced := readOptions(t, inv, "target", "symptom")
	if !readAction(t, inv, pb) {
		inv.Problem = &playbook.Problem{
			Why:        "`/restart` names no action; to learn which to try first, ask",
			Suggestion: "/recommend",
		}
		return
	}
	readOptions(t, inv, "target", "symptom")
	inv.Reason = t.text()
	checkPlace(inv, misplaced)
}

func readAssess(t *tokens, inv *Invocation, pb *playbook.Playbook) {
	misplaced := readOptions(t, inv, "target")
	if !readAction(t, inv, pb) {
		inv.Problem = &playbook.Problem{
			Why:        "`/assess` names no action",
			Suggestion: "/assess " + broadest(pb),
		}
		return
	}
	readOptions(t, inv, "target")
	inv.Reason = t.text()
	checkPlace(inv, misplaced)
}

func readBreakGlass(t *tokens, inv *Invocation, pb *playbook.Playbook) {
	misplaced := readOptions(t, inv, "target")
	if !readAction(t, inv, pb) {
		inv.Problem = &playbook.Problem{
			Why:        "`/break-glass` names no action and no reason",
			Suggestion: "/break-glass " + broadest(pb) + " " + UrgentReason,
		}
		return
	}
	readOptions(t, inv, "target")
	inv.Reason = t.text()
	checkPlace(inv, misplaced)
	if inv.Reason == "" && inv.Problem == nil {
		cure := *inv
		cure.Reason = UrgentReason
		inv.Problem = &playbook.Problem{
			Why:        "`/break-glass` needs a reason; it is kept and shown to those who are told",
			Suggestion: cure.CommandLine(),
		}
	}
}

// UrgentReason is the reason in a cure for a /break-glass without one. It claims no
// more than whoever breaks the glass claims anyway.
const UrgentReason = "this cannot wait for a narrower attempt"

func readAttempt(t *tokens, inv *Invocation, pb *playbook.Playbook) {
	misplaced := readOptions(t, inv, "target")
	if !readAction(t, inv, pb) {
		inv.Problem = &playbook.Problem{
			Why:        "`/attempt` names no action and no outcome",
			Suggestion: "/attempt " + narrowest(pb) + " insufficient",
		}
		return
	}
	if _, known := pb.NormalizeAction(inv.Action); !known {
		extendKill(t, inv, pb)
	}
	words := *t
	if !readOutcome(t, inv, pb) {
		readOptions(t, inv, "target")
		words = *t
	}
	readOptions(t, inv, "target")
	inv.Reason = t.text()
	checkPlace(inv, misplaced)
	if inv.Problem == nil {
		checkRecord(inv, words, pb)
	}
}

func readResolved(t *tokens, inv *Invocation, pb *playbook.Playbook) {
	if !readAction(t, inv, pb) {
		inv.Problem = &playbook.Problem{
			Why:        "`/resolved` does not say which action helped",
			Suggestion: "/resolved " + narrowest(pb),
		}
		return
	}
	inv.Outcome = "succeeded"
	inv.Reason = t.text()
	checkRecord(inv, tokens{}, pb)
}

func readRecommend(t *tokens, inv *Invocation, pb *playbook.Playbook) {
	for len(inv.Symptoms) <= MaxSymptoms {
		piece, ok := t.piece()
		if !ok {
			return
		}
		inv.Symptoms = append(inv.Symptoms, symptomWords(piece, pb)...)
	}
	tooManySymptoms(inv)
}

func readEndorse(t *tokens, inv *Invocation, _ *playbook.Playbook) {
	first := *t
	if s, ok := t.next(); ok {
		if id, ok := RequestID(word(s)); ok {
			inv.Request, inv.Reason = id, t.text()
			return
		}
	}
	p := &playbook.Problem{Why: "`/endorse` needs the id of one request, such as `41/1`, from the bot's answer to it"}
	words, _ := first.peek(2 * maxWords)
	for _, w := range words {
		if id, ok := RequestID(strings.Trim(w, "()[]<>"+trailing)); ok {
			p.Suggestion = "/endorse " + id
			break
		}
	}
	inv.Problem = p
}

// readProbe takes one name. That it is one of the configuration's, and no URL,
// is the bot's to say: it knows the names.
func readProbe(t *tokens, inv *Invocation, _ *playbook.Playbook) {
	if s, ok := t.next(); ok {
		inv.Server, inv.Reason = word(s), t.text()
		return
	}
	inv.Problem = &playbook.Problem{Why: "`/probe` names no server", Suggestion: "/playbook help"}
}

// RequestID reads a request's id ("41/1": thread and number) and gives it in
// its one spelling; a leading # is allowed.
func RequestID(s string) (id string, ok bool) {
	thread, number, found := strings.Cut(strings.TrimPrefix(s, "#"), "/")
	if !found {
		return "", false
	}
	t, err := strconv.ParseUint(thread, 10, 63)
	if err != nil || t == 0 {
		return "", false
	}
	n, err := strconv.ParseUint(number, 10, 31)
	if err != nil || n == 0 {
		return "", false
	}
	return strconv.FormatUint(t, 10) + "/" + strconv.FormatUint(n, 10), true
}

func readNote(t *tokens, inv *Invocation, _ *playbook.Playbook) { inv.Reason = t.text() }

func readPlaybook(t *tokens, inv *Invocation, _ *playbook.Playbook) {
	topic, ok := t.next()
	if !ok {
		inv.Topic = TopicHelp
		return
	}
	topic = strings.ToLower(word(topic))
	if topic == "clear" {
		if c, rest := t.peek(1); len(c) == 1 && strings.EqualFold(word(c[0]), "contamination") {
			topic, *t = TopicClearContamination, rest[0]
		}
	}
	topic = strings.ReplaceAll(topic, "_", "-")
	inv.Reason = t.text()
	switch topic {
	case TopicLadder, TopicAttempts, TopicMetrics, TopicHelp:
		inv.Topic = topic
	case TopicClearContamination:
		inv.Topic = topic
		if inv.Reason == "" {
			inv.Problem = &playbook.Problem{
				Why:        "`/playbook clear-contamination` needs a reason; it is audited",
				Suggestion: "/playbook clear-contamination host checked, no stray process left",
			}
		}
	default:
		inv.Problem = &playbook.Problem{
			Why:        show(topic) + " is no topic of `/playbook`",
			Suggestion: "/playbook help",
		}
	}
}

// readAction takes the action, and reports whether one is there. Several
// tokens are one action only if they, and no others, spell a rung together.
func readAction(t *tokens, inv *Invocation, pb *playbook.Playbook) bool {
	words, after := t.peek(maxWords)
	if len(words) == 0 {
		return false
	}
	if a, n := spelled(words, pb.NormalizeAction); n > 0 {
		inv.Action, *t = a, after[n-1]
		return true
	}
	n := 1
	for i := range words {
		// Joined as one action: "kill -9" is one, "foo pkill" is not.
		if playbook.IsKill(strings.Join(words[:i+1], "_")) {
			n = i + 1
			break
		}
	}
	inv.Action, *t = word(strings.Join(words[:n], " ")), after[n-1]
	return true
}

// readOutcome takes the outcome, and reports whether one is there. A dash
// between action and outcome is punctuation.
func readOutcome(t *tokens, inv *Invocation, pb *playbook.Playbook) bool {
	if dash, rest := t.peek(1); len(dash) == 1 && strings.Trim(dash[0], "-–—:=>→") == "" {
		*t = rest[0]
	}
	words, after := t.peek(maxWords)
	if len(words) == 0 || strings.HasPrefix(strings.ToLower(words[0]), "target=") {
		return false
	}
	if o, n := spelled(words, pb.NormalizeOutcome); n > 0 {
		inv.Outcome, *t = o, after[n-1]
		return true
	}
	inv.Outcome, *t = word(words[0]), after[0]
	return true
}

// spelled gives what the first n words spell under normalize. The first word
// alone comes first; of longer spellings there must be exactly one.
func spelled(words []string, normalize func(string) (string, bool)) (s string, n int) {
	if s, ok := normalize(word(words[0])); ok {
		return s, 1
	}
	for i := 1; i < len(words); i++ {
		if strings.Contains(words[i], "=") {
			break
		}
		got, ok := normalize(word(strings.Join(words[:i+1], " ")))
		if !ok {
			continue
		}
		if n > 0 {
			return "", 0
		}
		s, n = got, i+1
	}
	return s, n
}

// extendKill takes the arguments of a kill that is written as an action
// ("pkill -f mcp failed"), up to the outcome.
func extendKill(t *tokens, inv *Invocation, pb *playbook.Playbook) {
	if !playbook.IsKill(inv.Action) {
		return
	}
	words, after := t.peek(2 * maxWords)
	for i, w := range words {
		if _, ok := pb.NormalizeOutcome(word(w)); !ok {
			continue
		}
		if i > 0 {
			inv.Action = inv.Action + " " + strings.Join(words[:i], " ")
			*t = after[i-1]
		}
		return
	}
}

// readOptions takes the options with these names that stand next, in any
// order. It reports which it took, for one in the wrong place.
func readOptions(t *tokens, inv *Invocation, names ...string) (took string) {
	keys := names
	if slices.Contains(names, "symptom") {
		keys = append(slices.Clip(names), "symptoms")
	}
	for {
		name, value, ok := t.option(keys...)
		if !ok {
			return took
		}
		if name == "symptoms" {
			name = "symptom"
		}
		if took == "" {
			took = name
		}
		first := *inv
		repeated := name == "target" && inv.Target != "" || name == "symptom" && len(inv.Symptoms) > 0
		switch name {
		case "target":
			inv.Target = strings.TrimRight(value, ",")
		case "symptom":
			inv.Symptoms = append(inv.Symptoms, t.list(value)...)
			tooManySymptoms(inv)
		}
		if inv.Problem != nil {
			continue
		}
		if empty := name == "target" && inv.Target == "" || name == "symptom" && len(inv.Symptoms) == len(first.Symptoms); empty {
			inv.Problem = &playbook.Problem{Why: "`" + name + "=` is followed by nothing", Suggestion: first.CommandLine()}
		} else if repeated {
			inv.Problem = &playbook.Problem{Why: "`" + name + "=` is given twice", Suggestion: first.CommandLine()}
		}
	}
}

// list splits an option's value at commas. A value that ends with a comma goes
// on with the next token.
func (t *tokens) list(value string) []string {
	out := []string{}
	for {
		parts := strings.Split(value, ",")
		for _, p := range parts {
			if p = Clean(p); p != "" {
				out = append(out, p)
			}
		}
		joined := strings.HasPrefix(t.rest, ",")
		if joined {
			t.rest = t.rest[1:]
		}
		if !joined && strings.TrimSpace(parts[len(parts)-1]) != "" || len(out) > MaxSymptoms {
			return out
		}
		next, ok := t.next()
		if !ok {
			return out
		}
		value = next
	}
}

func tooManySymptoms(inv *Invocation) {
	if len(inv.Symptoms) <= MaxSymptoms {
		return
	}
	cure := *inv
	cure.Symptoms = inv.Symptoms[:1]
	inv.Symptoms = inv.Symptoms[:MaxSymptoms]
	if inv.Problem == nil {
		inv.Problem = &playbook.Problem{
			Why:        "more than " + strconv.Itoa(MaxSymptoms) + " symptoms; name the one seen first",
			Suggestion: cure.CommandLine(),
		}
	}
}

// piece takes what stands before the next comma, or a quoted token.
func (t *tokens) piece() (string, bool) {
	t.rest = strings.TrimLeftFunc(t.rest, func(r rune) bool { return r == ',' || isSpace(r) || isInvisible(r) })
	if t.rest == "" {
		return "", false
	}
	if in, rest, ok := quoted(t.rest); ok {
		t.rest = rest
		return `"` + Clean(in), true
	}
	piece, rest, _ := strings.Cut(t.rest, ",")
	t.rest = rest
	return Clean(piece), true
}

// symptomWords splits a piece between commas into symptoms: codes stand one
// beside the other, but a phrase ("session not found"), in which no word is a
// code, stays whole, so that the code it may mean can be offered.
func symptomWords(piece string, pb *playbook.Playbook) []string {
	if phrase, ok := strings.CutPrefix(piece, `"`); ok {
		return []string{phrase}
	}
	piece = word(piece)
	words := strings.Fields(piece)
	if len(words) < 2 || len(words) > 2*maxWords {
		return words
	}
	for i, w := range words {
		words[i] = word(w)
	}
	if len(pb.RecommendActions(words, nil).UnknownSymptoms) < len(words) {
		return words
	}
	return []string{piece}
}
