package playbook

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// decoder takes typed values out of nodes and keeps every fault with its line
// and field, so that an author mends a file in one go.
type decoder struct{ errs []*FieldError }

func (d *decoder) fail(line int, path, format string, args ...any) {
	d.errs = append(d.errs, &FieldError{Line: line, Field: path, Why: fmt.Sprintf(format, args...)})
}

func join(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}

// objectOf gives the fields of an object in order, without repeats.
func (d *decoder) objectOf(n node, path string) []field {
	if n.kind != objectNode {
		d.fail(n.line, path, "must be a mapping")
		return nil
	}
	if f, ok := n.repeated(); ok {
		d.fail(f.line, join(path, plain(f.name, 40)), "stands twice")
	}
	return n.fields
}

// object gives the fields of an object by name; any other name is a fault.
func (d *decoder) object(n node, path string, known ...string) map[string]*node {
	m := map[string]*node{}
	for _, f := range d.objectOf(n, path) {
		if !slices.Contains(known, f.name) {
			why := "is no key here"
			if near := nearest(f.name, known); len(near) > 0 {
				why += "; did you mean " + near[0] + "?"
			}
			d.fail(f.line, join(path, plain(f.name, 40)), "%s", why)
			continue
		}
		m[f.name] = &f.value
	}
	return m
}

// need gives a field that must be there.
func (d *decoder) need(m map[string]*node, n node, path, key string) *node {
	v := m[key]
	if v == nil && n.kind == objectNode {
		d.fail(n.line, join(path, key), "is missing")
	}
	return v
}

func (d *decoder) list(n *node, path string) []node {
	switch {
	case n == nil || n.kind == nullNode:
		return nil
	case n.kind != listNode:
		d.fail(n.line, path, "must be a list")
		return nil
	case len(n.items) > 1000:
		d.fail(n.line, path, "more than 1000 entries")
		return nil
	}
	return n.items
}

// text takes any scalar as it stands: no, 404 and true are words here.
func (d *decoder) text(n *node, path string) string {
	if n == nil || n.kind == nullNode {
		return ""
	}
	if n.kind != scalarNode {
		d.fail(n.line, path, "must be text")
		return ""
	}
	return strings.TrimSpace(n.text)
}

// match is text that must fit a pattern.
func (d *decoder) match(n *node, path string, re *regexp.Regexp) string {
	before := len(d.errs)
	s := d.text(n, path)
	if n != nil && len(d.errs) == before && !re.MatchString(s) {
		d.fail(n.line, path, "%s does not fit %s", quote(s), re)
	}
	return s
}

func (d *decoder) oneOf(n *node, path string, names ...string) string {
	before := len(d.errs)
	s := d.text(n, path)
	if n != nil && len(d.errs) == before && !slices.Contains(names, s) {
		d.fail(n.line, path, "%s is none of %s", quote(s), strings.Join(names, ", "))
	}
	return s
}

// texts is a list of texts that are not empty and, given a pattern, fit it.
func (d *decoder) texts(n *node, path string, re *regexp.Regexp) []string {
	out := []string{}
	for i, item := range d.list(n, path) {
		at := fmt.Sprintf("%s[%d]", path, i)
		var s string
		if re != nil {
			s = d.match(&item, at, re)
		} else if s = d.text(&item, at); s == "" {
			d.fail(item.line, at, "is empty")
		}
		out = append(out, s)
	}
	return out
}

func (d *decoder) boolean(n *node, path string) bool {
	if n == nil {
		return false
	}
	if n.kind != scalarNode || n.tag != "!!bool" {
		d.fail(n.line, path, "must be true or false")
		return false
	}
	return strings.EqualFold(n.text, "true")
}

func (d *decoder) integer(n *node, path string, least int) int {
	if n == nil {
		return least
	}
	v, err := strconv.Atoi(n.text)
	if n.kind != scalarNode || n.tag != "!!int" || err != nil || v < least || v > 1000 {
		d.fail(n.line, path, "must be a whole number from %d to 1000", least)
		return least
	}
	return v
}

var durationRE = regexp.MustCompile(`^([0-9]+(\.[0-9]+)?(h|m|s))+$`)

// duration is a positive time as Go writes it: 90m, 1h30m, 24h.
func (d *decoder) duration(n *node, path string, otherwise time.Duration) time.Duration {
	if n == nil || n.kind == nullNode {
		return otherwise
	}
	v, err := time.ParseDuration(n.text)
	if n.kind != scalarNode || !durationRE.MatchString(n.text) || err != nil || v <= 0 {
		d.fail(n.line, path, "must be a time above zero such as 90m or 24h")
		return otherwise
	}
	return v
}
