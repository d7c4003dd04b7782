package templates

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"playbook-bot/playbook"
)

// The methods here say in words what a template would need a page of
// conditions for. Those that give a string give Markdown.

// Stop ends a sentence that the contact ends, unless it brings its own stop.
func (v *View) Stop() string {
	if v.Contact == "" || strings.ContainsRune(".!?>", rune(v.Contact[len(v.Contact)-1])) {
		return ""
	}
	return "."
}

// StepsAre counts what is missing: "Two things are missing". A break-glass
// grant is not counted: it would stand in for the attempt.
func (v *View) StepsAre() string {
	n := 0
	for _, s := range v.Steps {
		if s.What != "break_glass_grant" {
			n++
		}
	}
	if n == 1 {
		return "One thing is missing"
	}
	names := []string{"No", "", "Two", "Three", "Four", "Five"}
	if n < len(names) {
		return names[n] + " things are missing"
	}
	return fmt.Sprintf("%d things are missing", n)
}

// OnlyAttempt reports whether one attempt that anybody can make and log is
// all that is missing.
func (v *View) OnlyAttempt() bool { return len(v.Steps) == 1 && v.Steps[0].Rung != nil }

// Has says by what the actor may ask: "has `admin`", "holds the role `x`".
func (v *View) Has() string {
	if v.Rung != nil && !v.permits && len(v.Roles) > 0 {
		return "holds the role " + codeSpan(string(v.Roles[0]), maxName)
	}
	return "has " + codeSpan(v.Permission, maxName)
}

// NewInWords says what brought an approval about.
func (v *View) NewInWords() string {
	var parts []string
	for _, e := range v.Since.New {
		parts = append(parts, e.teller()+"'s "+e.Did()+", "+e.Outcome.String())
	}
	if v.Since.Endorser != "" {
		parts = append(parts, inertName(v.Since.Endorser)+"'s endorsement")
	}
	if v.Since.Standing {
		parts = append(parts, inertName(v.Actor)+"'s permission can be read again")
	}
	if len(parts) == 0 {
		return "the record as it now stands"
	}
	return strings.Join(parts, "; ")
}

// TakenInWords lists the records taken, in one line.
func (v *View) TakenInWords() string {
	shown, left := head(v.Taken, 3)
	parts := make([]string, len(shown))
	for i, e := range shown {
		if e.Kill {
			parts[i] = e.Did() + ", a manual process kill"
			continue
		}
		parts[i] = e.Did() + " " + e.Outcome.String()
	}
	out := strings.Join(parts, ", ")
	if left += v.TakenLeft; left > 0 {
		out += fmt.Sprintf(" and %d more", left)
	}
	return out
}

// ByRole names the accounts that can adopt a request while permissions cannot
// be read: whom the playbook gives, by login, a role that opens the rung.
// (Whether somebody is in a team the forge would have to say.)
func (v *View) ByRole() string {
	if v.Rung == nil {
		return ""
	}
	var names []Text
	for _, m := range v.pb.RolesOn(string(v.Forge)) {
		if slices.Contains(v.Rung.Roles, Text(m.Role)) && !strings.Contains(m.Member, "/") && !slices.Contains(names, Text(m.Member)) {
			names = append(names, Text(m.Member))
		}
	}
	names, _ = head(names, 5)
	return joinWith(names, " or ", inertName)
}

// RankOf names an action's rung: "rung 1"; "" for what is none.
func (v *View) RankOf(action Text) string {
	if rung, ok := v.pb.Rung(string(action)); ok {
		return fmt.Sprintf("rung %d", rung.Rank)
	}
	return ""
}

// Deed shows a manual process kill: the action as written, or, where the
// action is a rung and the reason tells of the kill, the reason.
func (v *View) Deed(e Evidence) string {
	if _, rung := v.pb.Rung(string(e.Action)); rung && e.Reason != "" {
		return "“" + inert(string(e.Reason), maxName) + "” (with " + codeSpan(string(e.Action), maxName) + ")"
	}
	return codeSpan(string(e.Action), maxName)
}

// Leads reports whether the text announces the line to post by itself.
func (v *View) Leads() bool { return strings.HasSuffix(string(v.Text), ":") }

// Spared reports whether something narrower than the request did it.
func (v *View) Spared() bool {
	by := v.RecoveredBy()
	if by == nil || !v.Made {
		return false
	}
	did, ok := v.pb.Rung(string(by.Action))
	asked, ok2 := v.pb.Rung(string(v.Action))
	return ok && ok2 && did.Rank < asked.Rank
}

// EndedSessions reports whether what brought the recovery ended sessions.
func (v *View) EndedSessions() bool {
	by := v.RecoveredBy()
	if by == nil {
		return v.SessionEnded
	}
	did, ok := v.pb.Rung(string(by.Action))
	return v.SessionEnded || ok && did.Blast != playbook.BlastNone
}

// AskPost is the line that asks for the same again.
func (v *View) AskPost() Text {
	switch {
	case v.Post != "":
		return v.Post
	case v.BreakGlass.Requested && v.Reason != "":
		return Text("/break-glass "+string(v.Action)+targetArg(string(v.Target))+" ") + Text(cut(clean(string(v.Reason)), maxText))
	}
	return Text("/restart " + string(v.Action) + targetArg(string(v.Target)))
}

// targetArg gives " target=NAME" as the reader of commands takes it; empty
// without a target.
func targetArg(target string) string {
	target = strings.ReplaceAll(clean(target), `"`, "")
	switch {
	case target == "":
		return ""
	case strings.ContainsAny(target, " '“”‘’"):
		return ` target="` + target + `"`
	}
	return " target=" + target
}

// ForgeSaid says why the standing is not known.
func (v *View) ForgeSaid() string {
	name := "The forge"
	if v.Forge != "" {
		name = forgeTitle(v.Forge)
	}
	switch {
	case v.Status == 0:
		return name + " gave no answer."
	case v.Status == 401:
		return name + " answered 401: it does not accept the bot's token."
	case v.Status == 403 && v.BotIsApp():
		return name + " answered 403: " + v.BotName() + " may not look it up here."
	case v.Status == 403 && v.onGitHub():
		return name + " answered 403: " + v.BotName() + " cannot push to this repository."
	case v.Status == 403:
		return name + " answered 403: " + v.BotName() + " is not an administrator of this repository."
	}
	return fmt.Sprintf("%s answered %d, which says nothing about anybody's permission.", name, v.Status)
}

// forgeTitles are the names that forges give themselves.
var forgeTitles = map[Text]string{"gitea": "Gitea", "forgejo": "Forgejo", "github": "GitHub"}

func forgeTitle(name Text) string {
	if title, ok := forgeTitles[name]; ok {
		return title
	}
	return capital(name)
}

func (v *View) onGitHub() bool { return v.Forge == "github" }

// BotIsApp reports that the bot is a GitHub App, which nobody can make a
// collaborator.
func (v *View) BotIsApp() bool { return v.onGitHub() && strings.HasSuffix(string(v.Bot), "[bot]") }

// Admission is the least right, in the words of the forge's page, with which
// the bot's account can read the permissions of others: on GitHub push access
// is enough.
func (v *View) Admission() string {
	if v.onGitHub() {
		return "Write"
	}
	return "Administrator"
}

// BotName is the bot's login as code.
func (v *View) BotName() string {
	if v.Bot == "" {
		return "this bot's account"
	}
	return codeSpan(string(v.Bot), maxName)
}

// Whose names the requester.
func (v *View) Whose() string {
	if v.Requester == "" {
		return "the requester"
	}
	return inertName(v.Requester)
}

// Total counts a list of which some were left out.
func (v *View) Total(shown []Evidence, left int) int { return len(shown) + left }

// Failing is the outcome to suggest for a try that did not help, Failed for a
// restart that did not, NotDone for one that nobody carried out (may be "").
func (v *View) Failing() string { return v.failing }

// Failed is described at Failing.
func (v *View) Failed() string { return v.failed }

// NotDone is described at Failing.
func (v *View) NotDone() string { return v.neutral }

// ExampleAttempt is a whole /attempt for the narrowest rung.
func (v *View) ExampleAttempt() Text {
	return Text(playbook.AttemptLine(v.pb.Rungs()[0].Action, v.failing, "", ""))
}

// ASymptom is a symptom to show how to name one.
func (v *View) ASymptom() Text {
	for _, s := range v.pb.LadderDocument().Symptoms {
		return Text(s.Code)
	}
	return ""
}

// Did shows the action, and on what.
func (e Evidence) Did() string {
	if e.Target == "" {
		return codeSpan(string(e.Action), maxName)
	}
	return codeSpan(string(e.Action), maxName) + " on " + codeSpan(string(e.Target), maxName)
}

// Time is when it was tried, for a column in UTC.
func (e Evidence) Time(now time.Time) string {
	if e.At.IsZero() {
		return "–"
	}
	return stamp(e.At, now)
}

// Proof says what stands behind the record, and how old it is.
func (e Evidence) Proof() string {
	var s string
	switch {
	case e.Verified:
		s = "verified by probe"
	case e.Recorder != "":
		s = "told by " + inertName(e.Recorder)
	default:
		s = "self-reported"
	}
	if e.Age >= time.Minute {
		s += ", " + duration(e.Age) + " old"
	}
	return s
}

// Teller is the account that wrote the record.
func (e Evidence) Teller() Text {
	if e.Recorder != "" {
		return e.Recorder
	}
	return e.By
}

func (e Evidence) teller() string { return inertName(e.Teller()) }

// Carried says what carries the rung out, with references.
func (r RungView) Carried() string {
	s := r.How.String()
	if r.Refs != "" {
		s += " · " + r.Refs
	}
	return s
}

// Opens says which standing opens the rung: "`write` or the role `x`". Where
// whoever reads may ask, roles are not worth a word.
func (r RungView) Opens() string {
	s := codeSpan(r.Standing, maxName)
	if len(r.Roles) > 0 && !r.Open {
		s += " or the role " + joinWith(r.Roles, " or ", func(t Text) string { return codeSpan(string(t), maxName) })
	}
	return s
}

// Needs is Opens with the gate.
func (r RungView) Needs() string {
	switch {
	case r.Disabled:
		return "disabled in this repository"
	case r.Gated && r.MinAttempts > 1:
		return fmt.Sprintf("%s, and %d attempts that did not help", r.Opens(), r.MinAttempts)
	case r.Gated:
		return r.Opens() + ", and an attempt that did not help"
	}
	return r.Opens()
}

// help gives the rows of the help: the bot's, or else ones made from the
// playbook.
func (w *viewer) help(rows []HelpRow, request string) []HelpView {
	if len(rows) == 0 {
		rows = w.r.defaultHelp(cmp.Or(request, "41/1"))
	}
	out := make([]HelpView, len(rows))
	for i, h := range rows {
		out[i] = HelpView{Want: Words(h.Want), Post: Text(h.Post)}
	}
	return out
}

func (r *Renderer) defaultHelp(request string) []HelpRow {
	rungs := r.pb.Rungs()
	narrow, broad := rungs[0].Action, rungs[len(rungs)-1].Action
	if i := slices.IndexFunc(rungs, func(r playbook.Rung) bool { return r.FullRestart }); i >= 0 {
		broad = rungs[i].Action
	}
	recommend := "/recommend"
	if s := r.pb.LadderDocument().Symptoms; len(s) > 0 {
		recommend += " " + s[0].Code
	}
	return []HelpRow{
		{"to know what to try", recommend},
		{"to log a try", playbook.AttemptLine(narrow, r.failing, "", "still the same")},
		{"to say it works", "/resolved " + narrow},
		{"a restart", "/restart " + broad + " what you see"},
		{"only the gate's answer", "/assess " + broad},
		{"to adopt a request", "/endorse " + request},
		{"to take yours back", "/withdraw"},
		{"to skip the log", "/break-glass " + broad + " why it cannot wait"},
		{"the ladder, this thread's log, figures", "/playbook ladder"},
	}
}

// countingOutcome is the outcome to suggest for what did not help: want where
// the playbook knows it and it counts, else the first that does.
func countingOutcome(pb *playbook.Playbook, want string) string {
	narrow := pb.Rungs()[0].Action
	for _, o := range append([]string{want}, pb.Outcomes()...) {
		if pb.Counts(playbook.Attempt{Action: narrow, Outcome: o}) {
			return o
		}
	}
	return want
}
