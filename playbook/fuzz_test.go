package playbook

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

// The parsers take whatever people write: no input may make one panic, and
// what they give has to hold its promises.

func FuzzParseAttempts(f *testing.F) {
	for _, lang := range []string{"", "json", "yaml", "attempts"} {
		for _, text := range []string{
			`[{"action":"client_reconnect","outcome":"failed",},] // x`, "prior_recovery_attempts:\n  - action: worker_restart\n    outcome: no\n",
			"what: x\nresult: y\nwhat: z\n", "- &a {action: client_reconnect, outcome: failed}\n- *a\n", `{"attempts":"[{\"action\":\"pkill\"}]"}`,
			"{action: client_reconnect, outcome: [", "action: \"\\ud83d", "? [action: a]\n: b\n", "action: client_reconnect\n---\noutcome: failed",
		} {
			f.Add(text, lang)
		}
	}
	p := Default()
	c := Context{Author: "ada", At: noon}
	f.Fuzz(func(t *testing.T, text, lang string) {
		r := p.ParseAttempts(text, lang, c)
		if !r.About && len(r.Attempts)+len(r.Rejections)+len(r.Notes) > 0 {
			t.Fatalf("not about attempts, and yet %+v", r)
		}
		lines := strings.Count(text, "\n") + strings.Count(text, "\r") + strings.Count(text, "\u0085") + strings.Count(text, "\u2028") + strings.Count(text, "\u2029") + 1
		for _, a := range r.Attempts {
			checkRecord(t, p, a.Attempt)
			if a.Line < 1 || a.Line > lines {
				t.Fatalf("line %d of %d", a.Line, lines)
			}
		}
		for _, j := range r.Rejections {
			checkProblem(t, p, j.Problem)
			if j.Line < 1 || j.Line > lines {
				t.Fatalf("line %d of %d: %+v", j.Line, lines, j)
			}
		}
	})
}

// checkRecord holds a record to what Attempt promises.
func checkRecord(t *testing.T, p *Playbook, a Attempt) {
	t.Helper()
	_, rung := p.Rung(a.Action)
	_, known := p.byOutcome[a.Outcome]
	if !a.Kill && (!rung || !known) || a.Verified || utf8.RuneCountInString(a.Reason) > MaxReason || !utf8.ValidString(a.Reason) {
		t.Fatalf("record %+v", a)
	}
	if a.Kill && p.Counts(a) || a.RecordedAt.After(a.PostedAt.Add(MaxSkew)) && !a.PostedAt.IsZero() {
		t.Fatalf("record %+v", a)
	}
	if _, err := json.Marshal(a); err != nil {
		t.Fatal(err)
	}
}

// checkProblem holds a rejection to being safe to show, and its cure to being
// one line that would be taken.
func checkProblem(t *testing.T, p *Playbook, pr Problem) {
	t.Helper()
	for _, s := range []string{pr.Why, pr.Suggestion} {
		if strings.ContainsAny(s, "\n\r\x00") || strings.Contains(pr.Suggestion, "`") || len(s) > 4000 {
			t.Fatalf("unsafe %q", s)
		}
	}
	if pr.Why == "" || pr.Suggestion != "" && !strings.HasPrefix(pr.Suggestion, "/") {
		t.Fatalf("problem %+v", pr)
	}
	words := strings.Fields(pr.Suggestion)
	if len(words) > 2 && words[0] == "/attempt" {
		if _, _, problems := p.BuildAttemptRecord(RawAttempt{Action: words[1], Outcome: words[2]}, Context{}); len(problems) > 0 {
			t.Fatalf("%q is refused: %+v", pr.Suggestion, problems)
		}
	}
}

func FuzzBuildAttemptRecord(f *testing.F) {
	f.Add("client_reconnect", "failed", "still 404", "ada", "2026-05-02T07:10:00+05:30", "search")
	f.Add("сlient reconnect", "worked 5 min then same", "nobody ran pkill", "@bob", "14:05 CEST", "mcp search")
	f.Add("pkill -f x", "", "", "", "-", "-")
	f.Add("pkill\v\xd5l \xdbFx?\xdb\v\xd5l[", "", "\xcf3\xb2J", "p\xf7vJ\x9e", "\x9b\xa1@", "\xff")
	f.Add("client_reconnect", "failed", "still", "@\x00 LL", "-", "-\x00")
	f.Add("client_reconnect", "failed", "still", "@@-", "-", "\u200b?")
	p := Default()
	f.Fuzz(func(t *testing.T, action, outcome, reason, actor, at, target string) {
		c := Context{Author: "ada", At: noon}
		raw := RawAttempt{Action: action, Outcome: outcome, Reason: reason, Actor: actor, RecordedAt: at, Target: target}
		a, _, problems := p.BuildAttemptRecord(raw, c)
		for _, pr := range problems {
			checkProblem(t, p, pr)
		}
		if len(problems) > 0 {
			return
		}
		checkRecord(t, p, a)
		// A record that was built is taken again as it stands.
		raw = RawAttempt{Action: a.Action, Outcome: a.Outcome, Reason: a.Reason, Actor: a.Actor, RecordedAt: a.RecordedAt.Format(time.RFC3339Nano), Target: a.Target}
		b, _, problems := p.BuildAttemptRecord(raw, c)
		if len(problems) > 0 || !a.Kill && !SameAttempt(a, b) {
			t.Fatalf("%+v again: %+v, %+v", a, b, problems)
		}
	})
}

func FuzzLoad(f *testing.F) {
	f.Add(defaultYAML)
	f.Add([]byte("name: a\nrungs:\n  - {action: a, rank: 0, standing: read, delegation: x}\noutcomes:\n  - {outcome: a, kind: counts}\n  - {outcome: b, kind: recovered}\n"))
	f.Add([]byte("rungs: [{rank: 1000, gate: {max_age: 1e9h}}]"))
	f.Fuzz(func(t *testing.T, text []byte) {
		p, err := Load(bytes.NewReader(text))
		if (p == nil) != (err != nil) {
			t.Fatalf("%v, %v", p, err)
		}
		if err != nil {
			return
		}
		for i, r := range p.Rungs() {
			if r.Rank != i || r.Gated && (r.MinAttempts < 1 || r.MinAttempts > i) {
				t.Fatalf("rung %+v", r)
			}
			a := p.AssessEscalation(Escalation{Action: r.Action, Standing: Standing{Permission: PermissionOwner}})
			if a.Allowed == r.Gated {
				t.Fatalf("%s on an empty log: %+v", r.Action, a)
			}
		}
		if _, err := json.Marshal(p.LadderDocument()); err != nil {
			t.Fatal(err)
		}
	})
}

func FuzzParseGrants(f *testing.F) {
	f.Add("ops/incidents#41:full_mcp_restart@2026-12-01T06:00:00Z,*")
	f.Add("true")
	f.Fuzz(func(t *testing.T, text string) {
		gs, err := ParseGrants(text)
		if err != nil && gs != nil {
			t.Fatal("both grants and an error")
		}
		for _, g := range gs {
			again, err := ParseGrants(g.Text)
			if err != nil || len(again) != 1 || again[0] != g {
				t.Fatalf("%+v again: %+v, %v", g, again, err)
			}
			if g.Blanket() != (g.Owner == "") || g.Issue > 0 && g.Repo == "" {
				t.Fatalf("%+v", g)
			}
		}
	})
}

func FuzzParseInventory(f *testing.F) {
	f.Add([]byte(inventory))
	f.Add([]byte("sessions: [a]\nleases: [{id: l, holder: a}]\nprior_recovery_attempts: x\n"))
	p := Default()
	f.Fuzz(func(t *testing.T, text []byte) {
		inv, err := ParseInventory(text)
		if err != nil {
			return
		}
		im := p.EvaluateRestartImpact(inv, ImpactOptions{Now: noon})
		noNil(t, im)
		if im.PlaybookEscalation != nil && im.PlaybookEscalation.Allowed && p.NeedsLookup(im.RestartClass) {
			t.Fatalf("allowed without standing: %+v", im.PlaybookEscalation)
		}
	})
}

func FuzzIsKill(f *testing.F) {
	for _, s := range []string{"nobody ran pkill", "did not help, so I ran kill -9 1", "pkill was not used", "killed the process by hand"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if IsKill(s) && !mentionsKill(s) {
			t.Fatal("a kill without the word")
		}
	})
}
