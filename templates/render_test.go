package templates

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"playbook-bot/bot/command"
	"playbook-bot/bot/comment"
	"playbook-bot/playbook"
)

func render(t testing.TB, r *Renderer, a Answer) string {
	t.Helper()
	got, err := r.Render(a)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

var foldedJSON = regexp.MustCompile("(?s)<details><summary>Decision as JSON</summary>\n\n(.*?)(`{3,})json\n(.*?)\n`{3,}\n\n</details>\n$")

func TestTheFoldedDecisionIsTheDecision(t *testing.T) {
	w := newWorld(t)
	r := w.renderer()
	for _, s := range append(slices.Clone(hostile), "a\u202eb", "\U000e0041") {
		a := filled(w, KindRefused, playbook.CodeAttemptLogMissing, s)
		m := foldedJSON.FindStringSubmatch(render(t, r, a))
		if m == nil {
			if len(s) < 300 {
				t.Errorf("%q: no folded JSON at the end", s)
			}
			continue
		}
		var got playbook.Decision
		if err := json.Unmarshal([]byte(m[3]), &got); err != nil {
			t.Errorf("%q: the JSON does not parse: %v", s, err)
			continue
		}
		if !utf8.ValidString(s) {
			continue // JSON has only valid text
		}
		back, _ := json.Marshal(got)
		want, _ := json.Marshal(a.Decision)
		if string(back) != string(want) && m[1] == "" && len(s) < 300 {
			t.Errorf("%q: the JSON is not the decision:\n%s\n%s", s, back, want)
		}
		if strings.ContainsAny(m[3], "\u202e\u2066\U000e0041\u200b") {
			t.Errorf("%q: something invisible stands in the JSON", s)
		}
	}
}

// TestShortAnswersAreOneLine: besides the JSON, and none of that with records.
func TestShortAnswersAreOneLine(t *testing.T) {
	w := newWorld(t)
	r := w.renderer()
	for name, a := range goldens(w) {
		if len(a.Sections) > 1 || !slices.Contains([]Kind{KindRecorded, KindPointer, KindGoAhead, KindRecovered, KindWithdrawn, KindCleared}, a.Sections[0].Kind) {
			continue
		}
		text, folded, _ := strings.Cut(render(t, r, a), "\n<details>")
		if n := strings.Count(strings.TrimSpace(text), "\n"); n != 0 {
			t.Errorf("%s has %d lines:\n%s", name, n+1, text)
		}
		if wants := a.Decision != nil && a.Sections[0].Kind != KindRecorded; wants != (folded != "") {
			t.Errorf("%s: folded JSON %v, want %v", name, folded != "", wants)
		}
	}
}

// TestTheVerdictIsInTheFirstLine, in words and as a sign.
func TestTheVerdictIsInTheFirstLine(t *testing.T) {
	w := newWorld(t)
	r := w.renderer()
	for prefix, words := range map[string]string{
		"refused": "⛔", "approved": "pproved", "approved-break-glass": "🚨 Approved by break-glass", "undecided": "❔ Not decided",
		"goahead": "✅ Go ahead", "recorded": "📝 Recorded", "revoked": "🛑 Revoked: do not start", "expired": "⌛ Expired", "recovered": "✅ Recovered",
		"wouldallow": "☑️ Would now be allowed", "altered": "Not run", "assess": "Would be refused", "endorsed": "🤝 Endorsed", "withdrawn": "Withdrawn",
	} {
		n := 0
		for name, a := range goldens(w) {
			if strings.HasPrefix(name, prefix) {
				n++
				if first, _, _ := strings.Cut(render(t, r, a), "\n"); !strings.Contains(first, words) {
					t.Errorf("%s begins %q, want %q in it", name, first, words)
				}
			}
		}
		if n == 0 {
			t.Errorf("no golden answer %s", prefix)
		}
	}
}

// TestPastedLinesWork: every line of a fence is a command that the reader of
// comments understands, and no answer holds a command outside code.
func TestPastedLinesWork(t *testing.T) {
	w := newWorld(t)
	r := w.renderer()
	fences := regexp.MustCompile("(?m)^ *```\n((?: *[^` ].*\n)+) *```$")
	o := comment.Options{Playbook: w.pb, Bot: "playbook-bot", Context: playbook.Context{Author: "ada", At: now}}
	for name, a := range goldens(w) {
		got := render(t, r, a)
		for _, m := range fences.FindAllStringSubmatch(got, -1) {
			if strings.Contains(m[1], "ops/incidents#41:") {
				continue // a grant, for the operator's environment
			}
			body := strings.ReplaceAll(m[1], "   ", "")
			read := comment.Parse(body, o)
			if len(read.Commands) != strings.Count(body, "\n") || len(read.Rejections) > 0 {
				t.Errorf("%s: to be pasted, but not understood: %q: %+v", name, body, read.Rejections)
			}
			for _, c := range read.Commands {
				if c.Problem != nil {
					t.Errorf("%s: to be pasted, but %q: %s", name, body, c.Problem.Why)
				}
			}
		}
		if read := comment.Parse(got, o); len(read.Commands) > 0 || len(read.Records) > 0 {
			t.Errorf("%s, read as a comment, has commands %v and records %v", name, read.Commands, read.Records)
		}
	}
}

// TestHelpTakesTheCommandTable: the rows are the bot's to give.
func TestHelpTakesTheCommandTable(t *testing.T) {
	w := newWorld(t)
	var rows []HelpRow
	for _, c := range command.Table {
		rows = append(rows, HelpRow{c.Summary, c.Examples[0]})
	}
	got := render(t, w.renderer(), one(Section{Kind: KindHelp, Help: rows}))
	for _, c := range command.Table {
		if !strings.Contains(got, codeSpan(c.Examples[0], maxPost)) {
			t.Errorf("the help lacks %q:\n%s", c.Examples[0], got)
		}
	}
}

func TestOnlyNotifyIsMentionedAndOnce(t *testing.T) {
	w := newWorld(t)
	r := w.renderer()
	s := with(w.section(KindRefused, but(full1, func(q *request) { q.by, q.standing = "rhea", playbook.PermissionRead })), func(s *Section) {
		s.Notify = []string{"ada", "Ada", "ops/oncall", "no body", "x/y/z", "-x", "_x_", "@eve", ""}
	})
	got := render(t, r, Answer{Sections: []Section{s, s}})
	for _, m := range regexp.MustCompile(`@[^\x{200b}]\S*`).FindAllString(got, -1) {
		if m != "@ada" && m != "@ops/oncall:" {
			t.Errorf("mentions %q", m)
		}
	}
	if strings.Count(got, "@ada") != 1 || strings.Count(got, "@ops/oncall") != 1 {
		t.Errorf("not each once:\n%s", got)
	}
}

// TestSize: the worst that can be asked for stays under the limit, is
// balanced, and says what it left out.
func TestSize(t *testing.T) {
	w := newWorld(t)
	r := w.renderer()
	long := strings.Repeat("@<`|\\日", 400)[:playbook.MaxReason]
	var log []playbook.Attempt
	for i := range 700 {
		a := tried("client_reconnect", "failed", long, time.Duration(i)*time.Minute)
		a.Reason, a.Target = long, "t"
		log = append(log, a)
	}
	rejections := slices.Repeat([]playbook.RejectedText{{Line: 3, Problem: playbook.Problem{Why: long, Suggestion: "/attempt client_reconnect failed " + long}}}, 200)
	for _, kind := range Kinds {
		for _, n := range []int{1, 20} {
			q := but(full1, func(q *request) {
				q.target, q.reason, q.attempts, q.symptoms = "t", long, log, slices.Repeat([]string{"flaky"}, 200)
			})
			if kind == KindRefused {
				q.action, q.target = "full_mcp_restart", long
			}
			s := w.section(kind, q)
			s.Taken, s.Notes, s.Text, s.Because, s.Title = log, slices.Repeat([]string{long}, 200), strings.Repeat(long, 50), long, long
			a := Answer{Sections: slices.Repeat([]Section{s}, n), Decision: s.D, Rejections: rejections, At: now}
			got := render(t, r, a)
			if len(got) > MaxComment {
				t.Errorf("%s ×%d: %d bytes, at most %d", kind, n, len(got), MaxComment)
			}
			if err := balanced(got); err != nil {
				t.Errorf("%s ×%d: %v", kind, n, err)
			}
			if !strings.Contains(got, " more") && !strings.Contains(got, "eft out") && !strings.Contains(got, "left out") {
				t.Errorf("%s ×%d: does not say what is left out:\n%.2000s", kind, n, got)
			}
		}
	}
}

func TestRenderRefusesNothingToSay(t *testing.T) {
	r := newWorld(t).renderer()
	for _, a := range []Answer{{}, {Sections: []Section{{Kind: "nonsense"}}}} {
		if got, err := r.Render(a); err == nil {
			t.Errorf("Render(%+v) = %q", a, got)
		}
	}
}

func TestOverrides(t *testing.T) {
	w := newWorld(t)
	for _, c := range []struct{ name, file, text, wrong string }{
		{"good", "goahead.md.tmpl", "Go on with {{code .Action}}.", ""},
		{"shared piece", "shared.md.tmpl", `{{define "noreplay"}}Look before you repeat.{{end}}`, ""},
		{"other files", "notes.txt", "{{", ""},
		{"no such answer", "refusal.md.tmpl", "x", "refusal.md.tmpl"},
		{"does not parse", "refused.md.tmpl", "{{if}}", "refused.md.tmpl"},
		{"no such field", "refused.md.tmpl", "{{.Nope}}", "refused.md.tmpl"},
		{"no such piece", "refused.md.tmpl", `{{template "nope" .}}`, "refused.md.tmpl"},
		{"absent value", "recorded.md.tmpl", "{{.Rung.Action}}", "recorded.md.tmpl"},
		{"open fence", "notice.md.tmpl", "x\n```\n{{.Text}}", "notice.md.tmpl"},
		{"open details", "notice.md.tmpl", "<details>{{.Text}}", "notice.md.tmpl"},
		{"broken piece", "shared.md.tmpl", `{{define "what"}}{{.Nope}}{{end}}`, "shared.md.tmpl"},
	} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, c.file), []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := New(Options{Playbook: w.pb, Dir: dir})
		if c.wrong == "" && err != nil || c.wrong != "" && (err == nil || !strings.Contains(err.Error(), filepath.Join(dir, c.wrong))) {
			t.Errorf("%s: %v, want an error that names %q", c.name, err, c.wrong)
		}
	}
	if _, err := New(Options{Playbook: w.pb, Dir: filepath.Join(t.TempDir(), "nowhere")}); err == nil {
		t.Error("a directory that is not there is no error")
	}
	if _, err := New(Options{}); err == nil {
		t.Error("no playbook is no error")
	}
}

// TestAnOverrideThatFailsAtNightFallsBack to the text of ours.
func TestAnOverrideThatFailsAtNightFallsBack(t *testing.T) {
	w := newWorld(t)
	dir := t.TempDir()
	text := `{{if eq .Target "boom"}}{{index .Counted 99}}{{else if eq .Target "open"}}` + "```\n" + `{{end}}Go on.`
	if err := os.WriteFile(filepath.Join(dir, "goahead.md.tmpl"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	var told []error
	r, err := New(Options{Playbook: w.pb, Dir: dir, Fallback: func(k Kind, err error) {
		if k != KindGoAhead {
			err = errors.New("wrong kind " + string(k))
		}
		told = append(told, err)
	}})
	if err != nil {
		t.Fatal(err)
	}
	for target, want := range map[string]string{"mcp": "Go on.", "boom": "✅ Go ahead: `client_reconnect` on `boom`", "open": "✅ Go ahead: `client_reconnect` on `open`"} {
		s := w.section(KindGoAhead, request{action: "client_reconnect", target: target, by: "ada", standing: playbook.PermissionRead, bare: true})
		if got := render(t, r, Answer{Sections: []Section{s}}); !strings.HasPrefix(got, want) {
			t.Errorf("%s: %q, want %q", target, got, want)
		}
	}
	if len(told) != 2 || !strings.Contains(told[0].Error()+told[1].Error(), "fence") {
		t.Errorf("told %v", told)
	}
}

// TestAForgetfulOverrideIsSafe: no way of printing a text of people is live.
func TestAForgetfulOverrideIsSafe(t *testing.T) {
	w := newWorld(t)
	dir := t.TempDir()
	text := `{{.Author}} {{print .Author}} {{printf "%s %v" .Reason .Target}} {{.Title}} {{println .Text}} {{range .Notes}}{{.}}{{end}}
{{range .Taken}}{{.By}} {{.Reason}} {{printf "%v" .Action}} {{.Target}}{{end}} {{line "x" .Author}} {{quote .Author}} {{list .Endorsers}} {{or .Grant .Author}}`
	if err := os.WriteFile(filepath.Join(dir, "notice.md.tmpl"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	r, err := New(Options{Playbook: w.pb, Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range hostile {
		a := filled(w, KindNotice, playbook.CodeAllowed, s)
		a.Decision, a.Rejections = nil, nil
		shown := visible(toHTML(t, render(t, r, a)))
		for what, re := range live {
			if m := re.FindString(shown); m != "" {
				t.Errorf("%q leaves a live %s: %q", s, what, m)
			}
		}
	}
}

func TestTimes(t *testing.T) {
	for _, c := range []struct {
		at   time.Time
		want string
	}{
		{now, "03:09 UTC"},
		{now.In(time.FixedZone("CET", 3600)), "03:09 UTC"},
		{now.Add(-4 * time.Hour), "2026-11-30 23:09 UTC"},
		{now.AddDate(1, 0, 0), "2027-12-01 03:09 UTC"},
	} {
		if got := clock(c.at, now); got != c.want {
			t.Errorf("clock(%s) = %q, want %q", c.at, got, c.want)
		}
	}
	for d, want := range map[time.Duration]string{time.Second: "under a minute", 61 * time.Minute: "61 min", 3 * time.Hour: "3 h", 72 * time.Hour: "3 days"} {
		if got := duration(d); got != want {
			t.Errorf("duration(%s) = %q, want %q", d, got, want)
		}
	}
}

func TestBalanced(t *testing.T) {
	for text, ok := range map[string]bool{
		"x": true, "```\n/x\n```": true, "````\n```\n````": true, "```\nx": false, "<details>\n\n</details>": true, "<details>": false,
		"</details>\n<details>": false, "`<details>`": true, "`` ` <details> ``": true, "`<details>": false, "```\n<details>\n```": true, "```json\nx\n```": true,
	} {
		if err := balanced(text); (err == nil) != ok {
			t.Errorf("balanced(%q) = %v", text, err)
		}
	}
}

func BenchmarkRender(b *testing.B) {
	w := newWorld(b)
	r := w.renderer()
	cases := goldens(w)
	for _, name := range []string{"goahead", "refused-log-missing", "refused-insufficient", "approved", "several"} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := r.Render(cases[name]); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
