package playbook

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Grants are the operator's break-glass grants in force for this process.
type Grants []Grant

// Grant lets requests with break-glass pass without an attempt log. It never
// gives standing.
type Grant struct {
	// Text is the grant as written, for people.
	Text string
	// Owner and Repo are as written and compare case-folded; "" is any. An
	// Owner without a Repo is all of the owner's repositories.
	Owner, Repo string
	// Issue is the one thread it holds for; 0: any.
	Issue int64
	// Action is the one action it holds for; "": any.
	Action string
	// Expiry is when it ends; zero: never.
	Expiry time.Time
}

var scopeRE = regexp.MustCompile(`^([A-Za-z0-9._-]+)/(?:\*|([A-Za-z0-9._-]+)(?:#([1-9][0-9]{0,17}))?)$`)

// ParseGrants reads GITEA_BREAKGLASS_RESTART_AUTHORIZATION: a comma list of
// SCOPE[:ACTION][@EXPIRY], SCOPE being owner/repo#12, owner/repo, owner/* or *,
// EXPIRY an RFC 3339 time. A bare truthy value (1, true, yes, on) is *; a bare
// falsy one (0, false, no, off) or an empty text is no grant. The error names
// the position of every faulty grant, counted from 1, and never its text:
// secrets end up in the wrong variable.
func ParseGrants(s string) (Grants, error) {
	switch strings.ToLower(strings.TrimSpace(s)) {
	case "", "0", "false", "no", "off":
		return nil, nil
	case "1", "true", "yes", "on":
		return Grants{{Text: strings.TrimSpace(s)}}, nil
	}
	var grants Grants
	var errs []error
	items := strings.Split(s, ",")
	for i, item := range items {
		item = strings.TrimSpace(item)
		if item == "" && i == len(items)-1 {
			break // a trailing comma
		}
		g, err := parseGrant(item)
		if err != nil {
			errs = append(errs, fmt.Errorf("grant %d: %w", i+1, err))
			continue
		}
		grants = append(grants, g)
	}
	if len(errs) > 0 {
		return nil, errors.Join(errs...)
	}
	return grants, nil
}

func parseGrant(item string) (Grant, error) {
	g := Grant{Text: item}
	rest, expiry, expires := strings.Cut(item, "@")
	scope, action, acts := strings.Cut(strings.TrimSpace(rest), ":")
	switch m := scopeRE.FindStringSubmatch(strings.TrimSpace(scope)); {
	case strings.TrimSpace(scope) == "*":
	case m == nil:
		return Grant{}, errors.New("the scope must be owner/repo#12, owner/repo, owner/* or *")
	default:
		g.Owner, g.Repo = m[1], m[2]
		if m[3] != "" {
			g.Issue, _ = strconv.ParseInt(m[3], 10, 64) // 18 digits fit
		}
	}
	if acts {
		if g.Action = normalize(action); !codeRE.MatchString(g.Action) {
			return Grant{}, errors.New("the action after the colon must be an action's name")
		}
	}
	if expires {
		t, why := readTime(expiry)
		if why != "" {
			return Grant{}, errors.New("the expiry after the @ must be a time with offset such as 2026-12-01T06:00:00Z")
		}
		g.Expiry = t
	}
	return g, nil
}

// Blanket reports a grant without any limit on repository (a bare truthy
// value, or *).
func (g Grant) Blanket() bool { return g.Owner == "" }

// covers reports whether the grant holds for the request at that time.
func (g Grant) covers(owner, repo string, issue int64, action string, now time.Time) bool {
	return (g.Owner == "" || fold(g.Owner) == fold(owner)) &&
		(g.Repo == "" || fold(g.Repo) == fold(repo)) &&
		(g.Issue == 0 || g.Issue == issue) &&
		(g.Action == "" || g.Action == action) &&
		(g.Expiry.IsZero() || now.Before(g.Expiry))
}

// Match gives the grant in force for a request that lasts longest. action is
// in canonical spelling.
func (gs Grants) Match(owner, repo string, issue int64, action string, now time.Time) (Grant, bool) {
	var best Grant
	found := false
	for _, g := range gs {
		if g.covers(owner, repo, issue, action, now) &&
			(!found || !best.Expiry.IsZero() && (g.Expiry.IsZero() || g.Expiry.After(best.Expiry))) {
			best, found = g, true
		}
	}
	return best, found
}

// UselessGrants gives the positions, from 1, of grants that name an action
// without a gate or outside the ladder: they authorise nothing, and their
// writer believes otherwise.
func (p *Playbook) UselessGrants(gs Grants) []int {
	var at []int
	for i, g := range gs {
		if r, ok := p.Rung(g.Action); g.Action != "" && (!ok || !r.Gated) {
			at = append(at, i+1)
		}
	}
	return slices.Clip(at)
}
