package playbook

import (
	"cmp"
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"
)

// OverlaySchemaJSON is the JSON Schema (draft 2020-12) of the overlay file,
// for editors and for checks in CI. LoadOverlay and Tighten are stricter: they
// also check what binds the overlay to the playbook it tightens.
//
//go:embed overlay-schema.json
var OverlaySchemaJSON string

// MaxOverlay is the largest overlay file that is read, in bytes.
const MaxOverlay = 64 << 10

// CodeActionDisabled: the repository's overlay has disabled the action. The
// gate asks it right after whether it is an action at all, and nothing passes
// it.
const CodeActionDisabled Code = "action_disabled"

// whyDisabled is why an attempt on a disabled rung does not count: a
// repository that takes a rung away does not want it tried as evidence either.
const whyDisabled = "its action is disabled in this repository"

// Overlay is a repository's own tightening of the operator's playbook, as
// LoadOverlay reads it. It says nothing until Tighten holds it against a
// playbook. The zero Overlay tightens nothing.
type Overlay struct {
	// Commit names the file's version where it was read from; it is shown as
	// Identity.Overlay and decides nothing. Empty: the file's SHA-256 is shown.
	Commit string

	sha256 string
	items  []tightening
}

// tightening is what an overlay says of one action.
type tightening struct {
	action          string
	disable         bool
	standing        Permission // PermissionUnknown: as it is
	minAttempts     int        // 0: as it is
	maxAge          time.Duration
	requireVerified bool

	path   string
	start  int
	fields map[string]*node
}

// LoadOverlay reads an overlay strictly: an unknown or repeated key, an action
// named twice, or a value of the wrong kind is an error that holds every fault
// with its line, as Load's does. Whether it fits a playbook is Tighten's to
// say. The file may be MaxOverlay bytes at most.
func LoadOverlay(r io.Reader) (Overlay, error) {
	const doing = "reading overlay"
	raw, n, err := readDocument(r, doing, MaxOverlay)
	if err != nil {
		return Overlay{}, err
	}
	d := &decoder{}
	m := d.object(n, "", "tighten")
	o := Overlay{}
	for i, item := range d.list(d.need(m, n, "", "tighten"), "tighten") {
		it := d.tightening(item, fmt.Sprintf("tighten[%d]", i))
		if slices.ContainsFunc(o.items, func(other tightening) bool { return other.action == it.action }) && it.action != "" {
			d.fail(it.line("action"), it.path+".action", "%s stands twice", quote(it.action))
		}
		o.items = append(o.items, it)
	}
	if err := d.fault(doing); err != nil {
		return Overlay{}, err
	}
	sum := sha256.Sum256(raw)
	o.sha256 = hex.EncodeToString(sum[:])
	return o, nil
}

func (d *decoder) tightening(item node, path string) tightening {
	m := d.object(item, path, "action", "disable", "standing", "min_attempts", "max_age", "require_verified")
	it := tightening{
		action:          d.match(d.need(m, item, path, "action"), path+".action", codeRE),
		disable:         d.onlyTrue(m["disable"], path+".disable"),
		maxAge:          d.duration(m["max_age"], path+".max_age", 0),
		requireVerified: d.onlyTrue(m["require_verified"], path+".require_verified"),
		path:            path, start: item.line, fields: m,
	}
	if n := m["standing"]; n != nil {
		it.standing, _ = ParsePermission(d.oneOf(n, path+".standing", "none", "read", "write", "admin", "owner"))
	}
	if n := m["min_attempts"]; n != nil {
		it.minAttempts = d.integer(n, path+".min_attempts", 1)
	}
	switch {
	case item.kind == objectNode && len(item.fields) < 2:
		d.fail(item.line, path, "says nothing of its action; disable, standing, min_attempts, max_age or require_verified is wanted")
	case it.disable && len(m) > 2:
		d.fail(it.line("disable"), path+".disable", "stands alone: what is disabled needs no other rule")
	}
	return it
}

// onlyTrue is a switch that an overlay can turn on and never off.
func (d *decoder) onlyTrue(n *node, path string) bool {
	before := len(d.errs)
	on := d.boolean(n, path)
	if n != nil && !on && len(d.errs) == before {
		d.fail(n.line, path, "can only be true: an overlay switches nothing off; leave it out")
	}
	return on
}

// line is where one of the item's keys stands, or the item itself.
func (it *tightening) line(key string) int {
	if n := it.fields[key]; n != nil {
		return n.line
	}
	return it.start
}

// fail adds a fault of one key.
func (it *tightening) fail(d *decoder, key, format string, args ...any) {
	d.fail(it.line(key), it.path+"."+key, format, args...)
}

// Faults are the faults that an error of Load, LoadOverlay or Tighten holds, by
// line; none where it is about something else, such as reading.
func Faults(err error) []*FieldError {
	switch e := err.(type) {
	case nil:
		return nil
	case *FieldError:
		return []*FieldError{e}
	case interface{ Unwrap() []error }:
		var out []*FieldError
		for _, inner := range e.Unwrap() {
			out = append(out, Faults(inner)...)
		}
		return out
	}
	return Faults(errors.Unwrap(err))
}

// Tighten gives the playbook as the overlay tightens it; p stays as it is.
// Whatever the result allows, p allows too. A disabled rung keeps its rank, is
// neither allowed nor recommended, and attempts on it no longer count.
//
// An overlay that does not fit is an error, with every fault and its line: an
// action that p lacks, a rule laxer than p's own (a file that reads as if
// write were enough would mislead whoever reads it, even without effect), a
// gate where p has none, a narrower rung made stricter than a broader one, a
// gate that could not be met any more, or no rung without a gate left.
func (p *Playbook) Tighten(o Overlay) (*Playbook, error) {
	t := *p
	t.rungs = slices.Clone(p.rungs)
	d := &decoder{}
	by := make([]*tightening, len(t.rungs)) // by rank
	for i := range o.items {
		it := &o.items[i]
		rank, ok := p.byAction[it.action]
		if !ok {
			it.fail(d, "action", "%s is no action of the playbook %s%s", quote(it.action), p.id.Name, didYouMean(p.SuggestActions(it.action)))
			continue
		}
		by[rank] = it
		it.apply(d, &t.rungs[rank])
	}
	if len(d.errs) == 0 {
		d.stillLadder(t.rungs, by)
	}
	if err := d.fault("tightening the playbook " + p.id.Name); err != nil {
		return nil, err
	}
	if o.sha256 != "" {
		t.id.Overlay = cmp.Or(o.Commit, "sha256:"+o.sha256)
	}
	return &t, nil
}

// apply tightens one rung.
func (it *tightening) apply(d *decoder, r *Rung) {
	r.Disabled = it.disable
	if it.fields["standing"] != nil {
		if it.standing < r.Standing {
			it.fail(d, "standing", "%s is laxer than the playbook's %s", it.standing, r.Standing)
		}
		r.Standing = it.standing
		if r.Standing > PermissionRead {
			r.SelfService = false // it takes a look-up now, and somebody's leave
		}
	}
	if !r.Gated {
		for _, key := range []string{"min_attempts", "max_age", "require_verified"} {
			if it.fields[key] != nil {
				it.fail(d, key, "`%s` has no gate in the playbook, and an overlay adds none", r.Action)
			}
		}
		return
	}
	if it.minAttempts > 0 {
		if it.minAttempts < r.MinAttempts {
			it.fail(d, "min_attempts", "%d is laxer than the playbook's %d", it.minAttempts, r.MinAttempts)
		}
		r.MinAttempts = it.minAttempts
	}
	if it.maxAge > 0 {
		if r.MaxAge > 0 && it.maxAge > r.MaxAge {
			it.fail(d, "max_age", "%s is laxer than the playbook's %s", it.maxAge, r.MaxAge)
		}
		r.MaxAge = it.maxAge
	}
	r.RequireVerified = r.RequireVerified || it.requireVerified
}

// stillLadder checks across the rungs that are left what Load checks of all,
// and that every gate can still be met.
func (d *decoder) stillLadder(rungs []Rung, by []*tightening) {
	var narrower *Rung // the next narrower one that is left
	var lastDisabled, last *tightening
	left, free := 0, 0
	for rank := range rungs {
		r := &rungs[rank]
		if by[rank] != nil {
			last = by[rank]
		}
		if r.Disabled {
			lastDisabled = by[rank]
			continue
		}
		if narrower != nil {
			d.notLaxer(narrower, r, by[narrower.Rank])
		}
		if r.Gated && r.MinAttempts > left {
			it, key := by[rank], "min_attempts"
			if it == nil || it.fields[key] == nil {
				it, key = lastDisabled, "disable"
			}
			it.fail(d, key, "`%s` could not be asked for any more: it needs attempts on %d narrower rungs, and %d are left; disable it too", r.Action, r.MinAttempts, left)
		}
		if !r.Gated {
			free++
		}
		narrower = r
		left++
	}
	if free == 0 && last != nil {
		d.fail(last.start, last.path, "no rung without a gate is left; at least one stays")
	}
}

// notLaxer checks that the broader of two neighbours is not easier to get. The
// playbook's own rungs are in order, so only what the overlay says of the
// narrower one, it, can have broken that.
func (d *decoder) notLaxer(narrow, broad *Rung, it *tightening) {
	fail := func(key, broader string) {
		it.fail(d, key, "makes `%s` stricter than the broader `%s` (%s); tighten that as well", narrow.Action, broad.Action, broader)
	}
	if broad.Standing < narrow.Standing {
		fail("standing", broad.Standing.String())
	}
	if !narrow.Gated {
		return
	}
	if broad.MinAttempts < narrow.MinAttempts {
		fail("min_attempts", fmt.Sprint(broad.MinAttempts))
	}
	if narrow.MaxAge > 0 && (broad.MaxAge == 0 || broad.MaxAge > narrow.MaxAge) {
		fail("max_age", ageText(broad.MaxAge))
	}
	if narrow.RequireVerified && !broad.RequireVerified {
		fail("require_verified", "false")
	}
}
