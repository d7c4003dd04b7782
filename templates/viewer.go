package templates

import (
	"slices"
	"strings"
	"time"

	"playbook-bot/playbook"
)

// limits bound what a section shows.
type limits struct{ rows, notes, post int }

// viewer makes the views of one answer.
type viewer struct {
	r    *Renderer
	a    *Answer
	now  time.Time
	lim  limits
	told map[string]bool // mentioned live in this answer already
	// cures are kept for all sizes an answer is tried in.
	cures map[*playbook.Decision]cure
}

func (w *viewer) view(s *Section) *View {
	v := &View{
		Kind: s.Kind, Reason: textOf(s.Reason), Author: textOf(s.Author),
		Replaced: textOf(s.Replaced), NextSymptom: textOf(s.NextSymptom),
		Endorsers: texts(s.Endorsers), Grant: textOf(s.Grant), Forge: textOf(s.Forge), Status: s.Status,
		Until: s.Until, Because: sentenceOf(s.Because), ApprovedAt: s.ApprovedAt,
		OutcomeMissing: s.OutcomeMissing, SessionEnded: s.SessionEnded, Metrics: w.metrics(s.Metrics),
		Title: sentenceOf(s.Title), Text: sentenceOf(s.Text), Post: w.post(s.Post),
		Contact: operator(w.r.pb.Contact()), Bot: textOf(w.a.Bot), Now: w.now, Unread: len(w.a.Rejections),
		pb: w.r.pb, failing: w.r.failing, failed: w.r.failed, neutral: w.r.neutral,
	}
	if s.Rung != nil {
		v.Rung = w.rung(*s.Rung)
	}
	if s.Next != nil {
		v.Next = w.rung(*s.Next)
	}
	if s.D != nil {
		w.decision(v, s.D)
	}
	v.Taken, v.TakenLeft = w.evidences(s.Taken, w.lim.rows)
	notes, left := head(s.Notes, w.lim.notes)
	v.Notes, v.NotesLeft = wordsOf(notes), left
	if s.Since != nil {
		v.Since = &SinceView{RefusedAt: s.Since.RefusedAt, Endorser: textOf(s.Since.Endorser), Standing: s.Since.Standing}
		v.Since.New, _ = w.evidences(s.Since.New, w.lim.notes)
	}
	for _, r := range s.Ladder {
		v.Ladder = append(v.Ladder, *w.rung(r))
	}
	v.Mentions = w.mentions(s.Notify)
	w.complete(v, s)
	v.Recommendation = w.recommendation(s.Recommendation)
	if s.Kind == KindHelp {
		v.Help = w.help(s.Help, string(v.Request))
	}
	return v
}

// complete fills in what a section says in other places than its decision.
func (w *viewer) complete(v *View, s *Section) {
	if s.Actor != "" {
		v.Actor = textOf(s.Actor)
	}
	if v.Action == "" && v.Rung != nil {
		v.Action = v.Rung.Action
	}
	switch {
	case s.Open == "" || s.Open == string(v.Request):
	case v.Made && v.Request == "":
		v.Beside = textOf(s.Open) // an answer beside the open request
	case v.Request == "":
		v.Request = textOf(s.Open)
	default:
		v.Beside = textOf(s.Open)
	}
	v.Alone = len(w.a.Sections) == 1 && v.Request == "" && v.Beside == ""
	if v.ApprovedUntil.IsZero() && v.Kind == KindPointer {
		v.ApprovedUntil = s.Until
	}
}

// decision adds what the gate said.
func (w *viewer) decision(v *View, d *playbook.Decision) {
	v.Made, v.Code, v.Verdict, v.State, v.Allowed = true, d.Code, d.Verdict, d.State, d.Allowed
	v.Request, v.Action, v.Target = textOf(d.Request), textOf(d.Action), textOf(d.Target)
	v.Requester, v.Actor = textOf(d.Requester), textOf(d.Requester)
	if d.Endorser != nil {
		v.Endorser, v.Actor = textOf(*d.Endorser), textOf(*d.Endorser)
	}
	v.Permission, v.Roles = d.Standing.Permission.String(), texts(d.Standing.Roles)
	if len(d.Reasons) > 0 {
		v.Why = sentenceOf(d.Reasons[0])
	}
	v.MatrixWhy, v.MatrixAllowed, v.BreakGlass = sentenceOf(d.Matrix.Why), d.Matrix.Allowed, d.BreakGlass
	if rung, ok := w.r.pb.Rung(d.Action); ok {
		v.permits = d.Standing.Permission >= rung.Standing
	}
	if d.ApprovedUntil != nil {
		v.ApprovedUntil = *d.ApprovedUntil
	}
	if d.Audit != nil {
		v.AuditSeq = d.Audit.Seq
	}
	for _, m := range d.Missing {
		v.Steps = append(v.Steps, w.step(m))
	}
	v.Counted, v.CountedLeft = w.evidences(d.Counted, w.lim.rows)
	ignored, left := head(d.Ignored, w.lim.rows)
	v.Ignored, v.IgnoredLeft = make([]Evidence, len(ignored)), left
	for i, a := range ignored {
		v.Ignored[i] = w.evidence(a.Attempt)
		v.Ignored[i].Why = sentenceOf(a.Why)
	}
	v.Contamination, _ = w.evidences(d.Contamination, w.lim.notes)
	v.Suggestions = texts(d.Suggestions)
	unknown, left := head(d.UnknownSymptoms, w.lim.notes)
	v.Unknown, v.UnknownLeft = symptoms(unknown), left
	c := w.cure(d)
	v.Cure = w.post(c.line)
	v.Enough = c.enough && v.Cure != ""
}

func (w *viewer) step(m playbook.Missing) Step {
	s := Step{What: m.What, Who: sentenceOf(m.Who), Text: sentenceOf(m.Text), Post: w.post(m.Post)}
	if a, ok := w.r.attemptLine(m.Post); ok {
		if rung, ok := w.r.pb.Rung(a.Action); ok {
			s.Rung = w.rung(rung)
		}
	}
	return s
}

// maxTries is how many rejections cure asks the gate about.
const maxTries = 20

// cure looks among the first rejections for an attempt that would have
// counted, and asks the gate whether it would have been enough.
func (w *viewer) cure(d *playbook.Decision) cure {
	if d.Allowed || len(w.a.Rejections) == 0 {
		return cure{}
	}
	if c, ok := w.cures[d]; ok {
		return c
	}
	var found cure
	// One attempt a rung says all that the gate asks of those that count.
	var counted []playbook.Attempt
	for _, a := range d.Counted {
		if !slices.ContainsFunc(counted, func(b playbook.Attempt) bool { return a.Action == b.Action && a.Verified == b.Verified }) {
			a.Reason = ""
			counted = append(counted, a)
		}
	}
	tries, _ := head(w.a.Rejections, maxTries)
	for _, r := range tries {
		a, ok := w.r.attemptLine(r.Suggestion)
		if !ok {
			continue
		}
		a.RecordedAt, a.PostedAt, a.Actor = d.DecidedAt, d.DecidedAt, d.Requester
		got := w.r.pb.AssessEscalation(playbook.Escalation{
			Action: d.Action, Target: d.Target, Attempts: append(slices.Clip(counted), a),
			Standing: d.Standing, Actor: d.Requester, Request: d.Request, Now: d.DecidedAt,
		})
		if got.Allowed {
			found = cure{r.Suggestion, true}
			break
		}
		if found.line == "" && len(got.Counted) > len(counted) {
			found.line = r.Suggestion
		}
	}
	w.cures[d] = found
	return found
}

// cure is a line that logs what could not be read.
type cure struct {
	line   string
	enough bool
}

// attemptLine reads a cure of ours, "/attempt ACTION OUTCOME …". It only has
// to read what the playbook itself suggests, not what people write.
func (r *Renderer) attemptLine(line string) (playbook.Attempt, bool) {
	f := strings.Fields(line)
	if len(f) < 3 || f[0] != "/attempt" {
		return playbook.Attempt{}, false
	}
	action, ok := r.pb.NormalizeAction(f[1])
	outcome, ok2 := r.pb.NormalizeOutcome(f[2])
	a := playbook.Attempt{Action: action, Outcome: outcome}
	if len(f) > 3 {
		if t, is := strings.CutPrefix(f[3], "target="); is {
			a.Target = strings.Trim(t, `"`)
		}
	}
	return a, ok && ok2 && r.pb.Counts(a)
}

// post is a line to paste; a line too long for the answer as it has to be
// made now is left out, never cut.
func (w *viewer) post(line string) Text {
	if len(line) > w.lim.post {
		return ""
	}
	return Text(clean(line))
}

// evidences shows at most n attempts, and says how many it left out.
func (w *viewer) evidences(as []playbook.Attempt, n int) ([]Evidence, int) {
	as, left := head(as, n)
	out := make([]Evidence, len(as))
	for i, a := range as {
		out[i] = w.evidence(a)
	}
	return out, left
}

func (w *viewer) evidence(a playbook.Attempt) Evidence {
	e := Evidence{
		Action: textOf(a.Action), Outcome: textOf(a.Outcome), Target: textOf(a.Target), By: textOf(a.Actor),
		At: a.RecordedAt, Verified: a.Verified, Reason: textOf(a.Reason), Ref: textOf(a.Ref), Kill: a.Kill,
		Recovered: w.r.pb.Recovered(a),
	}
	if a.RecordedBy != "" && !strings.EqualFold(a.RecordedBy, a.Actor) {
		e.Recorder = textOf(a.RecordedBy)
	}
	// An attempt is as old as the earlier of its two times.
	since := a.RecordedAt
	if !a.PostedAt.IsZero() && (since.IsZero() || a.PostedAt.Before(since)) {
		since = a.PostedAt
	}
	if !since.IsZero() && !w.now.IsZero() {
		e.Age = max(0, w.now.Sub(since))
	}
	return e
}

func (w *viewer) rung(r playbook.Rung) *RungView {
	return &RungView{
		Action: textOf(r.Action), Rank: r.Rank, SelfService: r.SelfService, Gated: r.Gated,
		EndsSessions: r.Blast != playbook.BlastNone, How: sentenceOf(r.Delegation), Refs: w.refs(r.References, r.Delegation),
		Standing: r.Standing.String(), Roles: texts(r.Roles), MinAttempts: r.MinAttempts,
		Open: r.Standing <= playbook.PermissionRead, Disabled: r.Disabled,
	}
}

// refs shows issues of the operator's tracker. A bare "#584" would link to an
// issue of the repository the answer stands in.
// One that the words beside it name already is not said again.
func (w *viewer) refs(refs []string, beside string) string {
	out := make([]string, 0, len(refs))
	base := w.r.pb.ReferencesURL()
	linked := func(ref string) bool { return base != "" && plainURL(base+ref) }
	for _, ref := range refs {
		ref = strings.TrimPrefix(ref, "#")
		text := inert("#"+ref, maxName)
		if !linked(ref) && strings.Contains(beside, "#"+ref) {
			continue
		}
		if linked(ref) {
			text = "[" + text + "](<" + base + ref + ">)"
		}
		out = append(out, text)
	}
	return strings.Join(out, " ")
}

// mentions gives live mentions, each account once in an answer.
func (w *viewer) mentions(names []string) string {
	var live []string
	for _, n := range names {
		if key := strings.ToLower(n); mentionable(n) && !w.told[key] && len(live) < 20 {
			w.told[key] = true
			live = append(live, "@"+n)
		}
	}
	return strings.Join(live, " ")
}

// mentionable reports whether n is a login or org/team and nothing else. Names
// that begin or end with a sign no forge allows, and Markdown would read "_".
func mentionable(n string) bool {
	parts := strings.Split(n, "/")
	for _, p := range parts {
		if p == "" || !isWord(p[0]) || !isWord(p[len(p)-1]) || strings.Trim(p, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-") != "" {
			return false
		}
	}
	return len(parts) <= 2 && len(n) <= maxName
}

func (w *viewer) recommendation(r *playbook.Recommendation) *RecommendView {
	if r == nil {
		return nil
	}
	v := &RecommendView{Next: textOf(r.Next)}
	for _, s := range r.Ladder {
		if rung, ok := w.r.pb.Rung(s.Action); ok {
			v.Ladder = append(v.Ladder, *w.rung(rung))
		}
	}
	unknown, _ := head(r.UnknownSymptoms, w.lim.notes)
	notes, _ := head(r.Notes, w.lim.notes)
	v.Unknown, v.Notes = symptoms(unknown), wordsOf(notes)
	return v
}

func symptoms(in []playbook.UnknownSymptom) []Symptom {
	out := make([]Symptom, len(in))
	for i, u := range in {
		out[i] = Symptom{Symptom: textOf(u.Symptom), Suggestions: texts(u.Suggestions)}
	}
	return out
}

// textOf and sentenceOf take the invisible away at once, so that a template's
// {{if .Target}} asks whether there is something to see.
func textOf(s string) Text { return Text(cleanTo(s, maxText)) }

func sentenceOf(s string) Words { return Words(cleanTo(s, maxWords)) }

func texts(in []string) []Text {
	out := make([]Text, 0, len(in))
	for _, s := range in {
		if t := textOf(s); t != "" {
			out = append(out, t)
		}
	}
	return out
}

func wordsOf(in []string) []Words {
	out := make([]Words, len(in))
	for i, s := range in {
		out[i] = sentenceOf(s)
	}
	return out
}

// head gives at most n of s, and how many it left out.
func head[E any](s []E, n int) ([]E, int) {
	if len(s) <= n {
		return s, 0
	}
	return s[:n], len(s) - n
}
