package templates

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"playbook-bot/playbook"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// world is a playbook as a team would have it, and decisions made by it.
type world struct {
	t      testing.TB
	pb     *playbook.Playbook
	shapes map[string]string // see shapeOf
}

var now = time.Date(2026, 12, 1, 3, 9, 11, 0, time.UTC)

func newWorld(t testing.TB) world {
	t.Helper()
	text, err := os.ReadFile("../playbook/mcp.yaml")
	if err != nil {
		t.Fatal(err)
	}
	yaml := string(text)
	for _, r := range [][2]string{
		{"contact: the operators on duty", "contact: 'duty phone: 555 0100'"},
		{"notify: []", "notify: [ada, ops/oncall]"},
		{"controller: []", "controller: [ops-duty]"},
	} {
		if !strings.Contains(yaml, r[0]) {
			t.Fatalf("the default playbook no longer has %q", r[0])
		}
		yaml = strings.Replace(yaml, r[0], r[1], 1)
	}
	pb, err := playbook.Load(strings.NewReader(yaml))
	if err != nil {
		t.Fatal(err)
	}
	return world{t, pb, map[string]string{}}
}

func (w world) renderer() *Renderer {
	w.t.Helper()
	r, err := New(Options{Playbook: w.pb})
	if err != nil {
		w.t.Fatal(err)
	}
	return r
}

// request is a question to the gate, in short.
type request struct {
	action, target, by, reason string
	standing                   playbook.Permission
	roles, symptoms            []string
	attempts                   []playbook.Attempt
	glass                      playbook.BreakGlass
	endorser                   string
	bare                       bool // no request comes of it
}

// decide asks the gate and puts the answer into its conversation, as the bot
// does.
func (w world) decide(q request) *playbook.Decision {
	if q.roles == nil {
		q.roles = []string{}
	}
	standing := playbook.Standing{Permission: q.standing, Roles: q.roles}
	actor, id, state := q.by, "41/1", "open"
	if q.bare {
		id, state = "", "none"
	}
	d := &playbook.Decision{
		Schema: playbook.DecisionSchema, Request: id, AnswersComment: 812, State: state, Verdict: "refused",
		Requester: q.by, Standing: standing, Symptoms: append([]string{}, q.symptoms...), Rejections: []playbook.RejectedText{},
		Playbook: playbook.Identity{Name: w.pb.Identity().Name, SHA256: strings.Repeat("9f2c", 16)}, DecidedAt: now,
		Audit: &playbook.AuditMark{Seq: 118, Hash: strings.Repeat("4be1", 16)},
	}
	if q.endorser != "" {
		d.Endorser, actor = &q.endorser, q.endorser
	}
	d.Assessment = w.pb.AssessEscalation(playbook.Escalation{
		Action: q.action, Target: q.target, Symptoms: q.symptoms, Attempts: q.attempts, BreakGlass: q.glass,
		Standing: standing, Actor: actor, Request: id, Now: now,
	})
	switch {
	case d.Code == playbook.CodeStandingUnknown:
		d.Verdict = "undecided"
	case d.Allowed:
		d.Verdict = "approved"
		if d.AttemptLogRequired {
			until := now.Add(time.Hour)
			d.State, d.ApprovedUntil = "approved", &until
		}
	}
	return d
}

func (w world) rung(action string) *playbook.Rung {
	r, ok := w.pb.Rung(action)
	if !ok {
		return nil
	}
	return &r
}

// section is a section with what the bot always fills in.
func (w world) section(kind Kind, q request) Section {
	d := w.decide(q)
	return Section{Kind: kind, D: d, Rung: w.rung(d.Action), Next: w.rung(d.Next), Reason: q.reason, Author: q.by}
}

func tried(action, outcome, by string, ago time.Duration) playbook.Attempt {
	at := now.Add(-ago)
	return playbook.Attempt{Action: action, Outcome: outcome, Actor: by, RecordedBy: by, RecordedAt: at, PostedAt: at}
}

// one makes an answer of one section; its decision is folded.
func one(s Section) Answer {
	return Answer{Sections: []Section{s}, Decision: s.D, Bot: "playbook-bot", At: now}
}

// with changes a section in passing.
func with(s Section, f func(*Section)) Section {
	f(&s)
	return s
}

// full restart by an admin, the request of the models.
var full1 = request{action: "full_mcp_restart", target: "mcp-search", by: "ada", standing: playbook.PermissionAdmin,
	reason: "all clients 404", symptoms: []string{"stale_capability"}}

func but(q request, f func(*request)) request {
	f(&q)
	return q
}

// goldens are realistic answers of every kind. The letters are those of the
// design's models.
func goldens(w world) map[string]Answer {
	refresh := tried("capability_refresh", "insufficient", "ada", 2*time.Minute)
	loud := tried("session_reconnect", "insufficient", "ada", 26*time.Hour)
	loud.Target, loud.Reason = "mcp-mail", "worked 5 min then same"
	claimed := tried("client_reconnect", "failed", "ben", 12*time.Minute)
	claimed.RecordedBy = "mallory"
	kill := playbook.Attempt{Action: "pkill -9 mcp", Actor: "ben", RecordedBy: "mallory", RecordedAt: now.Add(-8 * time.Minute), Kill: true}
	kill.PostedAt = kill.RecordedAt
	reader := but(full1, func(q *request) { q.by, q.standing = "cursor-7", playbook.PermissionRead })
	approvedBy := but(full1, func(q *request) { q.attempts = []playbook.Attempt{refresh} })
	out := map[string]Answer{}

	// A
	out["refused-log-missing"] = one(with(w.section(KindRefused, full1), func(s *Section) { s.NextSymptom = "stale_capability" }))
	out["refused-insufficient"] = one(with(w.section(KindRefused, but(full1, func(q *request) {
		q.attempts = []playbook.Attempt{tried("full_mcp_restart", "denied", "ada", time.Hour), loud, kill, tried("client_reconnect", "skipped", "ada", time.Minute)}
		q.symptoms = []string{"session_expired", "flaky"}
	})), func(s *Section) { s.Replaced, s.NextSymptom = "41/0", "session_expired" }))
	// B
	out["refused-standing"] = one(with(w.section(KindRefused, reader), func(s *Section) { s.Notify = []string{"ada", "ops/oncall"} }))
	out["refused-standing-only"] = one(with(w.section(KindRefused, but(reader, func(q *request) { q.attempts = []playbook.Attempt{refresh} })),
		func(s *Section) { s.Endorsers = []string{"ada", "ops/oncall"} }))
	out["refused-unknown-action"] = one(w.section(KindRefused, but(full1, func(q *request) { q.action = "full_mсp_restart" })))
	out["refused-kill"] = one(w.section(KindRefused, but(full1, func(q *request) { q.action = "pkill" })))
	// E
	e := one(w.section(KindRefused, full1))
	e.Rejections = []playbook.RejectedText{{Line: 4, Source: "table", Problem: playbook.Problem{
		Why:        "`2026-06-11T14:05` names no offset (whose clock?); write it like `2026-06-11T14:05:00+02:00`",
		Suggestion: "/attempt session_reconnect insufficient worked 5 min then same"}}}
	out["refused-unreadable-attempt"] = e
	// H, both ways
	glass := but(full1, func(q *request) {
		q.glass.Requested, q.reason, q.symptoms = true, "registry gone, payments down", nil
	})
	out["refused-no-grant"] = one(with(w.section(KindRefused, glass), func(s *Section) {
		s.Grant = "ops/incidents#41:full_mcp_restart@2026-12-01T06:00:00Z"
	}))
	out["refused-no-grant-no-standing"] = one(with(w.section(KindRefused, but(glass, func(q *request) {
		q.by, q.standing = "cursor-7", playbook.PermissionRead
	})), func(s *Section) {
		s.Grant, s.Notify = "ops/incidents#41:full_mcp_restart@2026-12-01T06:00:00Z", []string{"ada", "ops/oncall"}
	}))
	out["approved-break-glass"] = one(with(w.section(KindApproved, but(glass, func(q *request) { q.glass.Authorized = true })), func(s *Section) {
		s.Grant, s.Notify, s.D.Audit.Seq = "ops/incidents:full_mcp_restart", []string{"ops/owners"}, 119
	}))
	// C, and F
	out["approved"] = one(w.section(KindApproved, but(approvedBy, func(q *request) { q.attempts = []playbook.Attempt{refresh, claimed, loud, kill} })))
	out["approved-endorsed"] = one(w.section(KindApproved, but(reader, func(q *request) {
		q.endorser, q.standing, q.roles, q.attempts = "ops-duty", playbook.PermissionWrite, []string{"controller"}, []playbook.Attempt{refresh}
	})))
	out["approved-now"] = one(with(w.section(KindApproved, approvedBy), func(s *Section) {
		s.Since = &Since{RefusedAt: now.Add(-5 * time.Minute), New: []playbook.Attempt{refresh}}
	}))
	// D
	unknown := but(full1, func(q *request) { q.by, q.standing = "ben", playbook.PermissionUnknown })
	out["undecided"] = one(with(w.section(KindUndecided, unknown), func(s *Section) {
		s.Forge, s.Status, s.Until, s.Endorsers = "Gitea", 403, now.Add(55*time.Minute), []string{"ops-duty"}
	}))
	out["undecided-no-answer"] = one(with(w.section(KindUndecided, unknown), func(s *Section) {
		s.Forge, s.Until = "Gitea", now.Add(55*time.Minute)
	}))
	out["undecided-github"] = one(with(w.section(KindUndecided, unknown), func(s *Section) {
		s.Forge, s.Status, s.Until = "github", 403, now.Add(55*time.Minute)
	}))
	app := out["undecided-github"]
	app.Bot = "restarts[bot]"
	out["undecided-github-app"] = app
	// G
	out["revoked"] = one(with(w.section(KindRevoked, full1), func(s *Section) {
		s.Because, s.ApprovedAt = "ben deleted the only attempt", now.Add(-time.Minute)
	}))
	out["revoked-closed"] = one(with(w.section(KindRevoked, full1), func(s *Section) {
		s.D.State, s.Because, s.ApprovedAt = "closed", "ben closed the issue", now.Add(-26*time.Hour)
	}))
	short(w, out)
	more(w, out)
	return out
}

// short are the answers of one line.
func short(w world, out map[string]Answer) {
	refresh := tried("capability_refresh", "insufficient", "ada", 2*time.Minute)
	approved := but(full1, func(q *request) { q.attempts = []playbook.Attempt{refresh} })
	reader := but(full1, func(q *request) {
		q.by, q.standing, q.attempts = "cursor-7", playbook.PermissionRead, []playbook.Attempt{refresh}
	})
	out["goahead"] = one(w.section(KindGoAhead, request{action: "client_reconnect", by: "ada", standing: playbook.PermissionRead, bare: true}))
	out["goahead-ends-session"] = one(with(w.section(KindGoAhead, request{action: "session_reconnect", target: "mcp-search", by: "ada", standing: playbook.PermissionRead, bare: true}),
		func(s *Section) { s.Open = "41/1" }))
	out["recorded"] = one(with(w.section(KindRecorded, reader), func(s *Section) { s.Taken = []playbook.Attempt{refresh} }))
	out["recorded-no-request"] = one(Section{Kind: KindRecorded, Taken: []playbook.Attempt{refresh}, Author: "ada"})
	out["pointer-refused"] = one(with(w.section(KindPointer, full1), func(s *Section) {}))
	out["pointer-approved"] = one(w.section(KindPointer, approved))
	out["recovered"] = one(with(w.section(KindRecovered, full1), func(s *Section) {
		s.D.State, s.Taken = "recovered", []playbook.Attempt{tried("capability_refresh", "succeeded", "ada", 0)}
	}))
	out["recovered-approved"] = one(with(w.section(KindRecovered, approved), func(s *Section) {
		s.D.State, s.Taken, s.ApprovedAt = "recovered", []playbook.Attempt{tried("session_reconnect", "succeeded", "ada", 0)}, now.Add(-9*time.Minute)
	}))
	out["withdrawn"] = one(with(w.section(KindWithdrawn, approved), func(s *Section) { s.ApprovedAt = now.Add(-9 * time.Minute) }))
	out["cleared"] = one(Section{Kind: KindCleared, Author: "adam", Reason: "the host was rebooted since"})
	out["notyours"] = one(with(w.section(KindNotYours, full1), func(s *Section) {
		s.Author, s.Taken = "cursor-7", []playbook.Attempt{tried("client_reconnect", "succeeded", "cursor-7", 0)}
	}))
	for _, name := range []string{"recovered", "recovered-approved", "withdrawn", "notyours", "pointer-refused", "pointer-approved"} {
		a := out[name]
		a.Decision = nil
		out[name] = a
	}
}

// more are the remaining kinds, and several sections in one comment.
func more(w world, out map[string]Answer) {
	refresh := tried("capability_refresh", "insufficient", "cursor-9", 2*time.Minute)
	reader := but(full1, func(q *request) { q.by, q.standing = "cursor-7", playbook.PermissionRead })
	out["wouldallow"] = one(with(w.section(KindWouldAllow, but(full1, func(q *request) { q.attempts = []playbook.Attempt{refresh} })),
		func(s *Section) { s.Author = "cursor-9" }))
	out["expired"] = one(with(w.section(KindExpired, full1), func(s *Section) {
		s.D.State, s.OutcomeMissing, s.ApprovedAt = "expired", true, now.Add(-time.Hour)
	}))
	out["endorsed"] = one(with(w.section(KindEndorsed, but(reader, func(q *request) { q.endorser, q.standing = "ada", playbook.PermissionAdmin })),
		func(s *Section) { s.Author = "ada" }))
	rec := w.pb.RecommendActions([]string{"stale_capability", "session not found", "upstream_outage"}, nil)
	out["recommend"] = one(Section{Kind: KindRecommend, Recommendation: &rec, Next: w.rung(rec.Next), NextSymptom: "stale_capability"})
	wait := w.pb.RecommendActions([]string{"upstream_outage"}, nil)
	out["recommend-wait"] = one(Section{Kind: KindRecommend, Recommendation: &wait})
	out["assess"] = one(w.section(KindAssess, but(reader, func(q *request) { q.bare = true })))
	out["ladder"] = one(Section{Kind: KindLadder, Ladder: w.pb.Rungs()})
	out["attempts"] = one(w.section(KindAttempts, but(full1, func(q *request) {
		q.attempts = []playbook.Attempt{refresh, tried("host_restart", "denied", "ada", time.Hour)}
	})))
	out["attempts-empty"] = one(Section{Kind: KindAttempts})
	m := w.pb.RecoveryMetrics([]playbook.Attempt{refresh, tried("client_reconnect", "failed", "ada", time.Hour),
		tried("session_reconnect", "succeeded", "ada", time.Minute), tried("full_mcp_restart", "succeeded", "ada", time.Hour)})
	out["metrics"] = one(Section{Kind: KindMetrics, Metrics: &m})
	none := w.pb.RecoveryMetrics(nil)
	out["metrics-none"] = one(Section{Kind: KindMetrics, Metrics: &none})
	out["help"] = Answer{Sections: []Section{w.section(KindHelp, full1)}, Bot: "playbook-bot", At: now}
	out["unreadable"] = Answer{Bot: "playbook-bot", At: now, Sections: []Section{{Kind: KindUnreadable, Author: "bob", Taken: []playbook.Attempt{refresh}}},
		Rejections: []playbook.RejectedText{
			{Line: 4, Source: "table", Problem: playbook.Problem{Why: "`14:05 CEST` is no time with date and offset; write it like `2026-06-11T14:05:00+02:00`", Suggestion: "/attempt session_reconnect insufficient worked 5 min then same"}},
			{Line: 4, Source: "table", Problem: playbook.Problem{Why: "`worked 5 min then same` is no outcome; did you mean `insufficient`?", Suggestion: "/attempt session_reconnect insufficient worked 5 min then same"}},
			{Line: 9, Source: "command", Problem: playbook.Problem{Why: "a quote drew this line in; put a blank line above it", Suggestion: "/restart full_mcp_restart target=mcp-search"}},
		}}
	out["altered"] = one(Section{Kind: KindAltered, Author: "ada", Post: "/restart full_mcp_restart target=mcp-search all clients 404"})
	out["notice"] = one(Section{Kind: KindNotice, Title: "Too many questions", Text: "cursor-7 has had 10 answers here within the hour; commands wait until 04:00 UTC. Attempts are still recorded."})
	out["notice-line"] = one(Section{Kind: KindNotice, Title: "⛔ Nobody endorses their own request", Text: "Somebody else with standing posts:", Post: "/endorse 41/1"})
	deed := tried("client_reconnect", "failed", "ada", time.Minute)
	deed.Kill, deed.Reason = true, "did pkill -9 mcp, then reconnected"
	out["refused-contaminated"] = one(w.section(KindRefused, but(full1, func(q *request) { q.attempts = []playbook.Attempt{deed} })))
	first := w.section(KindGoAhead, request{action: "session_reconnect", target: "search", by: "ada", standing: playbook.PermissionAdmin, bare: true})
	second := with(w.section(KindApproved, but(full1, func(q *request) {
		q.action, q.target, q.attempts = "rolling_mcp_restart", "search", []playbook.Attempt{tried("client_reconnect", "insufficient", "ada", 0)}
	})), func(s *Section) { s.Replaced = "41/1"; s.D.Request = "41/2" })
	out["several"] = Answer{Sections: []Section{first, second, {Kind: KindRecorded, Taken: []playbook.Attempt{refresh}}}, Decision: second.D, Bot: "playbook-bot", At: now}
}

func TestGolden(t *testing.T) {
	w := newWorld(t)
	r := w.renderer()
	cases := goldens(w)
	have := map[Kind]bool{}
	for name, a := range cases {
		for _, s := range a.Sections {
			have[s.Kind] = true
		}
		t.Run(name, func(t *testing.T) {
			got, err := r.Render(a)
			if err != nil {
				t.Fatal(err)
			}
			path := filepath.Join("testdata", name+".md")
			if *update {
				if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if got != string(want) {
				t.Errorf("differs from %s (run with -update and read it):\n%s", path, got)
			}
		})
	}
	for _, k := range Kinds {
		if !have[k] {
			t.Errorf("no golden answer of kind %s", k)
		}
	}
	files, err := filepath.Glob("testdata/*.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if _, ok := cases[strings.TrimSuffix(filepath.Base(f), ".md")]; !ok {
			t.Errorf("%s belongs to no case", f)
		}
	}
}
