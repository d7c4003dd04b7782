package playbook

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"time"
)

// maxPlaybook is the largest playbook file that is read, in bytes.
const maxPlaybook = 1 << 20

// FieldError is one thing wrong with a playbook file.
type FieldError struct {
	// Line counts from 1.
	Line int
	// Field is the path of the field, e.g. "rungs[3].rank"; empty for a text
	// that is no document at all.
	Field string
	Why   string
}

func (e *FieldError) Error() string {
	if e.Field == "" {
		return fmt.Sprintf("line %d: %s", e.Line, e.Why)
	}
	return fmt.Sprintf("line %d: %s: %s", e.Line, e.Field, e.Why)
}

// Load reads a playbook and checks it strictly: an unknown or repeated key, a
// repeated action, a gap or repeat in rank, an unknown target of a symptom, or
// a broader gated rung that is laxer than a narrower one is an error. The
// error holds every fault found, one *FieldError each (errors.As, or one a
// line in its text). The file may be 1 MiB at most.
func Load(r io.Reader) (*Playbook, error) {
	const doing = "reading playbook"
	raw, n, err := readDocument(r, doing, maxPlaybook)
	if err != nil {
		return nil, err
	}
	d := &decoder{}
	p := d.playbook(n)
	if err := d.fault(doing); err != nil {
		return nil, err
	}
	sum := sha256.Sum256(raw)
	p.id.SHA256 = hex.EncodeToString(sum[:])
	p.precompute()
	return p, nil
}

// readDocument reads the one document of a file of limit bytes at most; doing
// begins its errors.
func readDocument(r io.Reader, doing string, limit int) (raw []byte, n node, err error) {
	raw, err = io.ReadAll(io.LimitReader(r, int64(limit)+1))
	if err != nil {
		return nil, n, fmt.Errorf("%s: %w", doing, err)
	}
	if len(raw) > limit {
		return nil, n, fmt.Errorf("%s: longer than %d bytes", doing, limit)
	}
	docs, serr := parseYAML(string(bytes.TrimPrefix(raw, []byte("\ufeff"))))
	if serr != nil {
		return nil, n, fmt.Errorf("%s: %w", doing, &FieldError{Line: serr.line, Why: serr.why})
	}
	if len(docs) != 1 {
		line := 1
		if len(docs) > 1 {
			line = docs[1].line
		}
		return nil, n, fmt.Errorf("%s: %w", doing, &FieldError{Line: line, Why: fmt.Sprintf("one document is wanted, not %d", len(docs))})
	}
	return raw, docs[0], nil
}

// fault is every fault found, by line; nil where there is none.
func (d *decoder) fault(doing string) error {
	if len(d.errs) == 0 {
		return nil
	}
	slices.SortStableFunc(d.errs, func(a, b *FieldError) int { return cmp.Compare(a.Line, b.Line) })
	all := make([]error, len(d.errs))
	for i, e := range d.errs {
		all[i] = e
	}
	return fmt.Errorf("%s: %w", doing, errors.Join(all...))
}

var (
	nameRE = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$`)
	codeRE = regexp.MustCompile(`^[a-z][a-z0-9_]{0,63}$`)
	// A member may name the forge it is on.
	memberRE = regexp.MustCompile(`^([a-z]{1,20}:)?[A-Za-z0-9._-]{1,100}(/[A-Za-z0-9._-]{1,100})?$`)
	urlRE    = regexp.MustCompile(`^(https?://[!-~]+)?$`)
)

func (d *decoder) playbook(n node) *Playbook {
	m := d.object(n, "", "name", "contact", "notify", "references_url", "approval_ttl", "request_ttl",
		"roles", "rungs", "outcomes", "symptoms", "ambiguous")
	p := &Playbook{
		contact:       "the operators",
		approvalTTL:   d.duration(m["approval_ttl"], "approval_ttl", time.Hour),
		requestTTL:    d.duration(m["request_ttl"], "request_ttl", 24*time.Hour),
		notify:        d.texts(m["notify"], "notify", memberRE),
		referencesURL: d.match(m["references_url"], "references_url", urlRE),
	}
	p.id.Name = d.match(d.need(m, n, "", "name"), "name", nameRE)
	if c := d.text(m["contact"], "contact"); c != "" {
		p.contact = c
	}
	if strings.ContainsAny(p.contact, "\r\n") || len(p.contact) > 500 {
		d.fail(m["contact"].line, "contact", "must be one line of 500 bytes at most")
	}
	roles := d.roles(p, m["roles"])
	d.rungs(p, d.need(m, n, "", "rungs"), roles)
	d.outcomes(p, d.need(m, n, "", "outcomes"))
	d.symptoms(p, m["symptoms"])
	d.ambiguous(p, m["ambiguous"])
	return p
}

// roles reads who holds which role, and gives the roles' names.
func (d *decoder) roles(p *Playbook, n *node) map[string]bool {
	names := map[string]bool{}
	if n == nil || n.kind == nullNode {
		return names
	}
	for _, f := range d.objectOf(*n, "roles") {
		path := "roles." + plain(f.name, 40)
		if !codeRE.MatchString(f.name) {
			d.fail(f.line, path, "a role's name is made of a-z, 0-9 and _")
		}
		names[f.name] = true
		for _, member := range d.texts(&f.value, path, memberRE) {
			p.members = append(p.members, RoleMember{Role: f.name, Member: member})
		}
	}
	return names
}

func (d *decoder) outcomes(p *Playbook, n *node) {
	p.byOutcome, p.bySynonym = map[string]int{}, map[string]int{}
	kinds := map[OutcomeKind]bool{}
	for i, item := range d.list(n, "outcomes") {
		path := fmt.Sprintf("outcomes[%d]", i)
		m := d.object(item, path, "outcome", "kind", "not_on_gated", "synonyms", "phrases")
		o := outcome{
			name:       d.match(d.need(m, item, path, "outcome"), path+".outcome", codeRE),
			kind:       OutcomeKind(d.oneOf(d.need(m, item, path, "kind"), path+".kind", "counts", "recovered", "neutral")),
			notOnGated: d.boolean(m["not_on_gated"], path+".not_on_gated"),
			synonyms:   d.texts(m["synonyms"], path+".synonyms", nil),
			phrases:    asWords(d.texts(m["phrases"], path+".phrases", nil)),
		}
		kinds[o.kind] = true
		for j, s := range append([]string{o.name}, o.synonyms...) {
			s = normalize(s)
			if _, dup := p.bySynonym[s]; dup || s == "" {
				d.fail(item.line, path, "the name or synonym %s is empty or taken", quote(s))
			}
			p.bySynonym[s] = len(p.outcomes)
			if j == 0 {
				p.byOutcome[o.name] = len(p.outcomes)
			}
		}
		p.outcomes = append(p.outcomes, o)
	}
	if n != nil && n.kind == listNode && (!kinds[OutcomeCounts] || !kinds[OutcomeRecovered]) {
		d.fail(n.line, "outcomes", "at least one must be of kind counts and one of kind recovered")
	}
}

func (d *decoder) symptoms(p *Playbook, n *node) {
	p.bySymptom = map[string]int{}
	for i, item := range d.list(n, "symptoms") {
		path := fmt.Sprintf("symptoms[%d]", i)
		m := d.object(item, path, "code", "meaning", "phrases", "first", "advice", "example")
		s := symptom{
			code:    d.match(d.need(m, item, path, "code"), path+".code", codeRE),
			meaning: d.text(d.need(m, item, path, "meaning"), path+".meaning"),
			phrases: d.texts(m["phrases"], path+".phrases", nil),
			example: d.text(m["example"], path+".example"),
			advice:  d.text(m["advice"], path+".advice"),
			first:   -1,
		}
		if first := d.text(m["first"], path+".first"); first != "" {
			rank, ok := p.byAction[first]
			if !ok {
				d.fail(m["first"].line, path+".first", "%s is no rung of this ladder", quote(first))
			}
			s.first = rank
		} else if s.advice == "" {
			d.fail(item.line, path, "needs first (a rung) or advice")
		}
		if _, dup := p.bySymptom[s.code]; dup {
			d.fail(item.line, path+".code", "%s stands twice", quote(s.code))
		}
		p.bySymptom[s.code] = len(p.symptoms)
		s.words = asWords(s.phrases)
		p.symptoms = append(p.symptoms, s)
	}
}

func (d *decoder) ambiguous(p *Playbook, n *node) {
	for i, item := range d.list(n, "ambiguous") {
		path := fmt.Sprintf("ambiguous[%d]", i)
		m := d.object(item, path, "text", "codes")
		a := ambiguousText{
			text:  d.text(d.need(m, item, path, "text"), path+".text"),
			codes: d.texts(d.need(m, item, path, "codes"), path+".codes", codeRE),
		}
		for _, code := range a.codes {
			if _, ok := p.bySymptom[code]; !ok {
				d.fail(item.line, path+".codes", "%s is no symptom of this playbook", quote(code))
			}
		}
		p.ambiguous = append(p.ambiguous, a)
	}
}

// precompute fills in what the gate would otherwise work out per attempt.
func (p *Playbook) precompute() {
	for _, o := range p.outcomes {
		why := "outcome `" + o.name + "` does not count toward escalation"
		if o.kind == OutcomeRecovered {
			why = "it recovered; only an attempt that did not help counts"
		}
		p.whyNeutral = append(p.whyNeutral, why)
	}
	var actions []string
	for i := range p.rungs {
		r := &p.rungs[i]
		r.whyGate = "being refused `" + r.Action + "` is not having tried it"
		actions = append(actions, r.Action)
	}
	p.rankOf, p.outcomeOf = newWordIndex(actions), newWordIndex(p.Outcomes())
}
