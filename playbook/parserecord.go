package playbook

import (
	"slices"
	"strconv"
	"strings"
)

// documents reads every document of a block: one record each, a list, or an
// object that holds the list.
func (r *reader) documents(docs []node) {
	for i := range docs {
		if !r.full() {
			r.document(&docs[i])
		}
	}
	if r.demanded {
		r.about = true
	}
	if !r.about {
		r.out = ParsedAttempts{Attempts: []LocatedAttempt{}, Rejections: []RejectedText{}, Notes: []string{}}
	}
}

func (r *reader) document(n *node) {
	switch n.kind {
	case objectNode:
		if list, repeat := container(n); repeat > 0 {
			r.reject(repeat, "the attempts stand twice in one object", "")
			return
		} else if list != nil && (list.name == "prior_recovery_attempts" || r.demanded || r.isList(&list.value)) {
			r.about = true
			r.list(&list.value)
			return
		}
		if r.demanded || r.isRecord(n) {
			r.about = true
			r.record(n)
		}
	case listNode:
		if r.demanded || len(n.items) == 0 || r.isList(n) {
			r.about = true
			r.list(n)
		}
	case nullNode: // an empty block, or only comments
	default:
		if r.demanded {
			r.reject(n.line, "no attempt is written here: JSON or YAML with the keys action and outcome is wanted", r.p.cure(bareWords(n.text)))
		}
	}
}

// container finds the field that holds the list, and the line of a second one.
func container(n *node) (list *field, repeat int) {
	for i := range n.fields {
		f := &n.fields[i]
		if !isContainer(normalize(f.name)) {
			continue
		}
		if list != nil {
			if normalize(list.name) == normalize(f.name) {
				return nil, f.line
			}
			if normalize(list.name) == "prior_recovery_attempts" {
				continue
			}
		}
		list = &field{name: normalize(f.name), line: f.line, value: f.value}
	}
	return list, 0
}

// isList reports whether a list (or a single object in its place) holds a
// record: `attempts: 3` and a list of something else are nobody's attempts.
func (r *reader) isList(n *node) bool {
	if n.kind == objectNode {
		return r.isRecord(n)
	}
	for i := range n.items {
		if r.isRecord(&n.items[i]) {
			return true
		}
	}
	return false
}

// isRecord reports whether an object has the keys of a record.
func (r *reader) isRecord(n *node) bool {
	if n.kind != objectNode {
		return false
	}
	var raw RawAttempt
	own := 0
	for _, f := range n.fields {
		key := normalize(f.name)
		switch fieldNames[key] {
		case "action":
			setOnce(&raw.Action, f.value.text)
		case "outcome":
			setOnce(&raw.Outcome, f.value.text)
		}
		if key == "action" || key == "outcome" {
			own++
		}
	}
	return own >= 2 || r.likely(raw)
}

func (r *reader) list(n *node) {
	switch n.kind {
	case nullNode:
		return
	case objectNode:
		r.record(n)
		return
	case scalarNode:
		// Tools pass the list as a string of JSON.
		if docs, err := parseJSONC(n.text); err == nil && looksLikeJSON(n.text) {
			for i := range docs {
				relocate(&docs[i], n.line)
				if docs[i].kind != scalarNode {
					r.list(&docs[i])
				}
			}
			return
		}
		r.reject(n.line, "the attempts must be a list", r.p.cure(bareWords(n.text)))
		return
	}
	for i := range n.items {
		item := &n.items[i]
		if r.full() {
			return
		}
		if item.kind == objectNode {
			r.record(item)
		} else {
			r.reject(item.line, "this entry is no attempt: one with the keys action and outcome is wanted", r.p.cure(bareWords(item.text)))
		}
	}
}

// full reports whether nothing more is read.
func (r *reader) full() bool { return len(r.out.Rejections) > maxRejections }

// relocate gives all of a document read out of a string that string's line.
func relocate(n *node, line int) {
	n.line = line
	for i := range n.items {
		relocate(&n.items[i], line)
	}
	for i := range n.fields {
		n.fields[i].line = line
		relocate(&n.fields[i].value, line)
	}
}

// record reads one object. Everything wrong with it is said, each on its line.
func (r *reader) record(n *node) {
	raw, lines, faults := r.raw(n)
	if len(faults) > 0 {
		cure := r.p.cure(raw)
		for _, f := range faults {
			r.reject(f.Line, f.Why, cure)
		}
		return
	}
	a, notes, problems := r.p.build(raw, r.c)
	for _, pr := range problems {
		line := n.line
		if l, ok := lines[pr.field]; ok {
			line = l
		}
		r.reject(line, pr.Why, pr.Suggestion)
	}
	if len(problems) > 0 {
		return
	}
	for _, note := range notes {
		r.note(n.line, note)
	}
	r.about = true
	r.out.Attempts = append(r.out.Attempts, LocatedAttempt{Attempt: a, Line: n.line})
}

func (r *reader) note(line int, text string) {
	r.out.Notes = append(r.out.Notes, "line "+strconv.Itoa(line)+": "+text)
}

// raw takes a record's fields. Two keys for one field are a fault, whether the
// same key twice or a synonym beside it.
func (r *reader) raw(n *node) (raw RawAttempt, lines map[string]int, faults []RejectedText) {
	lines = map[string]int{}
	var unknown []string
	for _, f := range n.fields {
		name, ok := FieldName(f.name)
		if !ok {
			name = "?" + f.name
		}
		first, repeated := lines[name]
		if repeated {
			why := quote(f.name) + " repeats a key of line " + strconv.Itoa(first)
			faults = append(faults, RejectedText{Line: f.line, Problem: Problem{Why: why}})
			continue
		}
		lines[name] = f.line
		if !ok {
			if len(unknown) < 5 && !ignorable(f.name) {
				unknown = append(unknown, quote(f.name))
			}
			continue
		}
		if f.value.kind == listNode || f.value.kind == objectNode {
			faults = append(faults, RejectedText{Line: f.line, Problem: Problem{Why: quote(f.name) + " must be text"}})
			continue
		}
		setField(&raw, name, f.value.text)
	}
	if len(unknown) > 0 && len(faults) == 0 {
		r.note(n.line, strings.Join(unknown, ", ")+" is no key of an attempt, and was ignored")
	}
	return raw, lines, faults
}

// ignorable are keys of our own output, so that a record shown by the bot can
// be given back to it without a remark.
func ignorable(key string) bool {
	return slices.Contains([]string{"recorded_by", "posted_at", "cut", "kill", "ref", "line", "source"}, normalize(key))
}

func setField(raw *RawAttempt, name, text string) {
	switch name {
	case "action":
		raw.Action = text
	case "outcome":
		raw.Outcome = text
	case "reason":
		raw.Reason = text
	case "actor":
		raw.Actor = text
	case "recorded_at":
		raw.RecordedAt = text
	case "target":
		raw.Target = text
	case "verified":
		raw.Verified = !slices.Contains([]string{"", "false", "no", "off", "0"}, strings.ToLower(strings.TrimSpace(text)))
	}
}
