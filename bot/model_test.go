package bot_test

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// This file is what the pages 2.3 to 2.5 promise, written down a second time
// and as simply as can be: one thread, one line a text, no forge that fails,
// no database. The test beside it plays random histories on both.

// line is a text of the model: what it says, and when it came to say so.
type line struct {
	id     int64
	author string
	verb   string // "restart", "attempt", "resolved", "withdraw", "endorse", "remark"
	action string
	what   string // outcome, target or request
	// note is free text below the line.
	note string
	// foreign: somebody else's hand wrote what stands there now.
	foreign, deleted, edited bool
}

func (l line) body() string {
	var s string
	switch l.verb {
	case "restart":
		s = "/restart " + l.action
		if l.what != "" {
			s += " target=" + l.what
		}
	case "attempt":
		s = "/attempt " + l.action + " " + l.what
	case "resolved":
		s = "/resolved " + l.action
	case "endorse":
		s = "/endorse " + l.what
	case "withdraw":
		s = "/withdraw"
	default:
		s = "a remark"
	}
	if l.note != "" {
		s += "\n\n" + l.note
	}
	return s
}

// The rungs the histories use, and what each needs.
var rungs = []string{"client_reconnect", "capability_refresh", "worker_restart", "rolling_mcp_restart", "full_mcp_restart", "host_restart"}

func rank(action string) int { return slices.Index(rungs, action) }
func gated(action string) bool {
	return rank(action) >= rank("rolling_mcp_restart")
}

var ranksOfStanding = []string{"none", "read", "write", "admin", "owner"}

func needs(action string) string {
	switch {
	case action == "host_restart":
		return "owner"
	case gated(action):
		return "admin"
	case action == "worker_restart":
		return "write"
	}
	return "read"
}

// modelRequest is the open request.
type modelRequest struct {
	number         int
	action, target string
	by             string
	trigger        int64
	endorser       string
	endorsement    int64
	verdict        string
	mustAsk        bool
	at             time.Time
}

// model is the reference: one thread.
type model struct {
	number   int64
	closed   bool
	since    int64 // texts up to this belong to the past
	last     int
	request  *modelRequest
	approved bool
	expires  time.Time
	standing map[string]string
	lines    map[int64]*line
	newest   int64
}

func (m *model) has(login, need string) bool {
	return slices.Index(ranksOfStanding, m.standing[login]) >= slices.Index(ranksOfStanding, need)
}

// counting are the attempts that count for a request.
func (m *model) counting(r *modelRequest) int {
	n := 0
	for _, l := range m.lines {
		counts := l.verb == "attempt" && l.what == "failed" && !l.deleted && !l.foreign && l.id > m.since
		if counts && rank(l.action) < rank(r.action) {
			n++
		}
	}
	return n
}

// allows is the gate.
func (m *model) allows(r *modelRequest) bool {
	return m.matrix(r) && (!gated(r.action) || m.counting(r) > 0)
}

func (m *model) matrix(r *modelRequest) bool {
	actor := r.by
	if r.endorser != "" {
		actor = r.endorser
	}
	return m.has(actor, needs(r.action))
}

func (m *model) judge(r *modelRequest, now time.Time) {
	r.verdict = "refused"
	if m.allows(r) {
		r.verdict, r.mustAsk = "approved", false
		if gated(r.action) {
			m.approved, m.expires = true, now.Add(time.Hour)
		}
	}
}

func (m *model) end() { m.request, m.approved = nil, false }

func (m *model) may(login string) bool {
	return m.request.by == login || m.has(login, "write")
}

// said is a new text.
func (m *model) said(l line, now time.Time) {
	m.tick(now)
	m.newest = max(m.newest, l.id)
	m.lines[l.id] = &l
	switch l.verb {
	case "restart":
		m.ask(l, now)
	case "attempt":
		m.evidence(l.author, true, now)
	case "resolved":
		if r := m.request; r != nil && m.may(l.author) {
			m.end()
			m.since = l.id
		} else if r != nil {
			m.reconsider()
		}
	case "withdraw":
		if m.request != nil && m.may(l.author) {
			m.end()
		}
	case "endorse":
		m.endorse(l, now)
	}
}

func (m *model) ask(l line, now time.Time) {
	if m.closed {
		return
	}
	if r := m.request; r != nil {
		switch {
		case r.action == l.action && r.target == l.what && r.by == l.author:
			if !m.approved {
				m.judge(r, now)
			}
			return
		case !gated(l.action) && rank(l.action) < rank(r.action):
			return
		case !m.may(l.author):
			return
		}
		m.end()
	}
	m.last++
	m.request = &modelRequest{number: m.last, action: l.action, target: l.what, by: l.author, trigger: l.id, at: now}
	m.judge(m.request, now)
}

func (m *model) endorse(l line, now time.Time) {
	r := m.request
	if r == nil || l.what != fmt.Sprintf("%d/%d", m.number, r.number) || r.by == l.author || m.approved {
		return
	}
	tried := *r
	tried.endorser, tried.endorsement = l.author, l.id
	if !m.matrix(&tried) {
		return
	}
	*r = tried
	m.judge(r, now)
}

// evidence follows a new or changed record by a text's author.
func (m *model) evidence(author string, own bool, now time.Time) {
	r := m.request
	switch {
	case r == nil:
	case m.approved:
		m.reconsider()
	case r.mustAsk || r.verdict == "approved" || !m.allows(r):
	case own && m.may(author):
		m.judge(r, now)
	}
}

func (m *model) reconsider() {
	if m.approved && !m.allows(m.request) {
		m.approved = false
		m.request.verdict = "refused"
	}
}

// edited replaces a text; by is whose hand it is.
func (m *model) edited(id int64, to line, by string, now time.Time) {
	m.tick(now)
	was := *m.lines[id]
	to.id, to.author, to.edited = id, was.author, true
	record := to.verb == "attempt" || to.verb == "resolved"
	same := was.verb == to.verb && was.action == to.action && was.what == to.what
	to.foreign = record && by != was.author
	if record && same {
		to.foreign = was.foreign
	}
	m.lines[id] = &to
	changed := !same && (record || was.verb == "attempt" || was.verb == "resolved")
	m.follow(id, !same, changed, to.author, by == to.author, record && !to.foreign, now)
}

// deleted strikes a text.
func (m *model) deleted(id int64, now time.Time) {
	m.tick(now)
	l := m.lines[id]
	l.deleted = true
	m.follow(id, true, l.verb == "attempt" || l.verb == "resolved", l.author, false, false, now)
}

// follow is what an edit or deletion brings about.
func (m *model) follow(id int64, other, changed bool, author string, own, record bool, now time.Time) {
	r := m.request
	if r == nil {
		return
	}
	lost := false
	if other && r.endorsement == id {
		r.endorser, r.endorsement, lost = "", 0, true
	}
	if other && r.trigger == id {
		m.end()
		return
	}
	switch {
	case m.approved && (changed || lost):
		m.reconsider()
	case !m.approved && changed && record:
		m.evidence(author, own, now)
	}
}

func (m *model) setClosed(closed bool, now time.Time) {
	m.tick(now)
	if m.closed == closed {
		return
	}
	m.closed = closed
	if closed {
		m.end()
	}
	m.since = max(m.since, m.newest)
}

// tick lets what is due by the clock happen.
func (m *model) tick(now time.Time) {
	if m.approved && !now.Before(m.expires) {
		m.approved = false
		m.request.verdict, m.request.mustAsk = "expired", true
	}
	if r := m.request; r != nil && !now.Before(r.at.Add(24*time.Hour)) {
		m.end()
	}
}

// String is what is compared.
func (m *model) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "closed=%v", m.closed)
	if r := m.request; r != nil {
		fmt.Fprintf(&b, " request=%d/%d %s %q by %s endorser=%q verdict=%s approved=%v", m.number, r.number, r.action, r.target, r.by,
			r.endorser, r.verdict, m.approved)
		fmt.Fprintf(&b, " counted=%d", m.counting(r))
	}
	return b.String()
}
