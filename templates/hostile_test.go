package templates

import (
	"encoding/json"
	"fmt"
	"hash/crc32"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/text"

	"playbook-bot/playbook"
)

// filled is an answer of one kind in which every text that people, or the
// forge, or an operator wrote is s.
func filled(w world, kind Kind, code playbook.Code, s string) Answer {
	at := playbook.Attempt{Action: s, Outcome: s, Reason: s, Actor: s, RecordedBy: s + "x", Target: s, RecordedAt: now, Ref: s}
	self := at
	self.RecordedBy, self.Target = at.Actor, ""
	until := now.Add(time.Hour)
	d := w.decide(full1)
	d.Code, d.Allowed, d.Action, d.Target, d.Requester, d.Request = code, code == playbook.CodeAllowedAttemptLog, s, s, s, s
	d.Reasons, d.Matrix.Why, d.Next, d.Suggestions = []string{s, s}, s, s, []string{s, s, s}
	d.Counted, d.Contamination = []playbook.Attempt{at, self}, []playbook.Attempt{at, self}
	d.Ignored = []playbook.IgnoredAttempt{{Attempt: at, Why: s}, {Attempt: self, Why: s}}
	d.Endorser, d.ApprovedUntil, d.Standing.Roles = &s, &until, []string{s}
	d.BreakGlass = playbook.BreakGlass{Requested: true, Used: code == playbook.CodeAllowedBreakGlass}
	d.UnknownSymptoms = []playbook.UnknownSymptom{{Symptom: s, Suggestions: []string{s, s}}}
	d.Missing = []playbook.Missing{{What: "endorsement", Who: s, Post: "/endorse " + s, Text: s},
		{What: "attempt", Who: s, Post: "/attempt client_reconnect failed " + s, Text: s},
		{What: "break_glass_grant", Who: s, Text: s}, {What: "action", Who: s, Post: s, Text: s}}
	rung := playbook.Rung{Action: s, Delegation: s, References: []string{s}, Roles: []string{s}, Gated: true, Blast: playbook.BlastTarget}
	rec := playbook.Recommendation{Next: s, Notes: []string{s}, UnknownSymptoms: d.UnknownSymptoms,
		Ladder: []playbook.LadderStep{{Action: "worker_restart"}}}
	metrics := w.pb.RecoveryMetrics(nil)
	metrics.ByOutcome, metrics.ByAction["worker_restart"] = map[string]int{s: 1}, 1
	rejected := playbook.RejectedText{Line: 4, Source: s, Problem: playbook.Problem{Why: s, Suggestion: s}}
	return Answer{Bot: s, At: now, Decision: d, Rejections: []playbook.RejectedText{rejected, rejected}, Sections: []Section{{
		Kind: kind, D: d, Rung: &rung, Next: &rung, NextSymptom: s, Reason: s, Author: s, Actor: s, Replaced: s, Open: s + "y",
		Since: &Since{RefusedAt: now, New: []playbook.Attempt{at}, Endorser: s}, Taken: []playbook.Attempt{at, self},
		Notify: []string{"ada", s}, Endorsers: []string{s, s}, Grant: s, Forge: s, Status: 403, Until: until, Because: s,
		ApprovedAt: now, OutcomeMissing: true, Recommendation: &rec, Ladder: []playbook.Rung{rung, rung}, Metrics: &metrics,
		Help: []HelpRow{{s, s}}, Title: s, Text: s, Post: s, Notes: []string{s},
	}}}
}

var codes = []playbook.Code{playbook.CodeUnknownAction, playbook.CodeForbiddenAction, playbook.CodeStandingUnknown,
	playbook.CodeClassMatrixDenied, playbook.CodeAllowed, playbook.CodeAllowedAttemptLog, playbook.CodeAllowedBreakGlass,
	playbook.CodeBreakGlassNotAuthorized, playbook.CodeAttemptLogMissing, playbook.CodePlaybookInvalid, playbook.CodeActionDisabled}

func TestForeignTextIsInertInEveryAnswer(t *testing.T) {
	w := newWorld(t)
	r := w.renderer()
	for n, k := range Kinds {
		for i, s := range hostile {
			if k != KindRefused && k != KindApproved && (len(s) > 1000 || (i+n)%3 > 0) {
				continue // the rest is the fuzzer's; parsing so much Markdown is slow
			}
			checkAnswer(t, w, r, k, codes[i%len(codes)], s)
		}
	}
}

func FuzzRender(f *testing.F) {
	addHostile(f)
	f.Add("h-12 x")
	w := newWorld(f)
	r := w.renderer()
	f.Fuzz(func(t *testing.T, s string) {
		if len(s) > 4000 {
			return
		}
		n := crc32.ChecksumIEEE([]byte(s)) // any choice that the text makes again
		checkAnswer(t, w, r, Kinds[n%uint32(len(Kinds))], codes[n/64%uint32(len(codes))], s)
	})
}

// quoted is a text as the folded decision holds it, where a control character
// takes six.
func quoted(s string) []byte {
	out, err := json.Marshal(s)
	if err != nil {
		panic(err) // no string is refused
	}
	return out
}

// checkAnswer renders an answer full of s and asks of the page what a forge
// would make of it, and whether it has the shape of one full of nothing bad.
func checkAnswer(t *testing.T, w world, r *Renderer, kind Kind, code playbook.Code, s string) {
	t.Helper()
	fail := func(md, format string, args ...any) {
		t.Helper()
		t.Fatalf("%s, %s, %.200q: %s\n%s", kind, code, s, fmt.Sprintf(format, args...), md)
	}
	md, err := r.Render(filled(w, kind, code, s))
	if err != nil {
		t.Fatal(err)
	}
	if err := balanced(md); err != nil {
		fail(md, "%v", err)
	}
	page := toHTML(t, md)
	shown := visible(page)
	for _, n := range []string{"ada", s} {
		if mentionable(n) {
			shown = strings.ReplaceAll(shown, "@"+n, "")
		}
	}
	for what, re := range live {
		if m := re.FindString(shown); m != "" {
			fail(md, "a live %s: %q", what, m)
		}
	}
	if strings.ContainsAny(shown, "\u202e\u2066\u0007\ufeff\u2028") {
		fail(md, "something invisible is shown")
	}
	if m := foreignTag.FindString(page); m != "" {
		fail(md, "a tag that is not ours: %s", m)
	}
	if line := liveLine(md, s); line != "" {
		fail(md, "a line begins with a command or mention: %q", line)
	}
	benign, c := "word", clean(s)
	switch {
	case strings.HasPrefix(c, "/attempt") || len(quoted(s)) > 150:
		return // a cure of ours, or so long that something is left out: other shapes, rightly
	case c == "":
		benign = ""
	case strings.HasSuffix(c, ":"):
		benign = "word:" // a text that announces a line
	}
	if got, want := shape(md), w.shapeOf(t, r, kind, code, benign); got != want {
		fail(md, "has the shape\n%s\nand not\n%s", got, want)
	}
}

// shapeOf gives the shape of an answer full of s, which it makes only once.
func (w world) shapeOf(t *testing.T, r *Renderer, kind Kind, code playbook.Code, s string) string {
	t.Helper()
	key := fmt.Sprint(kind, code, s)
	if w.shapes[key] == "" {
		md, err := r.Render(filled(w, kind, code, s))
		if err != nil {
			t.Fatal(err)
		}
		w.shapes[key] = shape(md)
	}
	return w.shapes[key]
}

// foreignTag finds tags that no template of ours makes.
var foreignTag = regexp.MustCompile(`<(?:[^a-z/]|/?(?:a|b|i|u|s|em|img|script|iframe|del|input|sup|sub|blockquote|dl|dt|dd|br|span|div|h1|h2)\b)[^>]*>`)

var containers = regexp.MustCompile(`^(?:(?:[0-9]+[.)]|[-+*])\s+|>\s*)*(?:\|\s*)?`)

var commandLine = regexp.MustCompile(`^(?:/[a-z]|@\w)`)

// liveLine finds a line outside code that begins, once what nobody sees is
// taken away, with a command or with a mention that is not ours.
func liveLine(md, s string) string {
	fenced := ""
	for line := range strings.Lines(md) {
		line = strings.TrimSpace(line)
		ticks := line[:len(line)-len(strings.TrimLeft(line, "`"))]
		switch {
		case fenced != "":
			if ticks == line && len(ticks) >= len(fenced) {
				fenced = ""
			}
			continue
		case len(ticks) >= 3 && !strings.Contains(line[len(ticks):], "`"):
			fenced = ticks
			continue
		}
		line = strings.ReplaceAll(line, zwsp, "")
		line = line[len(containers.FindString(line)):]
		if commandLine.MatchString(line) && !strings.HasPrefix(line, "@ada") && !(mentionable(s) && strings.HasPrefix(line, "@"+s)) {
			return line
		}
	}
	return ""
}

// shape is the tree of blocks of a text, without what stands in them.
func shape(md string) string {
	var b strings.Builder
	depth := 0
	_ = ast.Walk(forgeMarkdown.Parser().Parse(text.NewReader([]byte(md))), func(n ast.Node, in bool) (ast.WalkStatus, error) {
		if n.Type() == ast.TypeInline {
			return ast.WalkSkipChildren, nil
		}
		if !in {
			depth--
			return ast.WalkContinue, nil
		}
		fmt.Fprintf(&b, "%s%s\n", strings.Repeat(" ", depth), n.Kind())
		depth++
		return ast.WalkContinue, nil
	})
	return b.String()
}
