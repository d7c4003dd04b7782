package templates

import (
	"slices"
	"strings"
	"time"

	"playbook-bot/playbook"
)

// View is what a template sees of a section: the section and its decision in
// one, every text of people as Text, every sentence as Words. There is no way
// from it to a raw string but the functions that know how to show one.
type View struct {
	Kind Kind
	// Made says that a decision was made; without one the fields from Code to
	// UnknownSymptoms are empty.
	Made           bool
	Code           playbook.Code
	Verdict, State string
	Allowed        bool
	Request        Text
	Action, Target Text
	Requester      Text
	Endorser       Text // empty: none
	Actor          Text // whose standing was asked: the endorser, or else the requester
	Permission     string
	Roles          []Text
	Why            Words // the first reason
	MatrixWhy      Words
	MatrixAllowed  bool
	Steps          []Step // what is missing
	BreakGlass     playbook.BreakGlass
	ApprovedUntil  time.Time
	AuditSeq       int64 // 0: none
	Counted        []Evidence
	CountedLeft    int // left out for length
	Ignored        []Evidence
	IgnoredLeft    int
	Contamination  []Evidence
	Suggestions    []Text
	Unknown        []Symptom
	UnknownLeft    int

	Rung, Next  *RungView
	NextSymptom Text
	Reason      Text
	Author      Text
	Replaced    Text
	Open        Text
	Since       *SinceView
	Taken       []Evidence
	TakenLeft   int
	// Mentions are the only live mentions there are, ready to print; empty
	// where nobody is to be told.
	Mentions  string
	Endorsers []Text
	Grant     Text
	Forge     Text
	Status    int
	Until     time.Time
	Because   Words
	// ApprovedAt is when the approval that ended was given.
	ApprovedAt     time.Time
	OutcomeMissing bool
	Recommendation *RecommendView
	Ladder         []RungView
	Metrics        *MetricsView
	Help           []HelpView
	Title          Words
	Text           Words
	Post           Text
	Notes          []Words
	NotesLeft      int

	// Cure is a line among the rejections that would have counted had it been
	// readable; Enough says that the gate would then have allowed the request.
	Cure   Text
	Enough bool
	// Unread counts the rejections of the whole answer.
	Unread int

	Contact string // Markdown
	Bot     Text
	Now     time.Time

	pb      *playbook.Playbook
	failing string // outcome of a try that did not help
	failed  string // outcome of a restart that did not
	neutral string // outcome of what was not done; may be empty
	permits bool   // the permission alone opens the rung
}

// Step is one open condition.
type Step struct {
	What string // as playbook.Missing
	Who  Words
	Text Words
	Post Text
	Rung *RungView // the rung to try, for an attempt; nil where none is named
}

// Evidence is an attempt as a table shows it.
type Evidence struct {
	Action, Outcome, Target, By Text
	// Recorder is set where the record claims another actor than the account
	// that wrote it.
	Recorder  Text
	At        time.Time
	Age       time.Duration
	Verified  bool
	Reason    Text
	Ref       Text
	Why       Words // why it does not count
	Kill      bool
	Recovered bool
}

// RungView is a rung of the ladder.
type RungView struct {
	Action       Text
	Rank         int
	SelfService  bool
	Gated        bool
	EndsSessions bool
	How          Words  // what carries it out
	Refs         string // Markdown: references, as links where the playbook says where
	Standing     string // the least permission that may ask for it
	Roles        []Text // who may whatever the permission
	MinAttempts  int
	Open         bool // whoever reads may ask
}

// Symptom is an unknown symptom and the codes it may have meant.
type Symptom struct {
	Symptom     Text
	Suggestions []Text
}

// SinceView is what brought an approval about.
type SinceView struct {
	RefusedAt time.Time
	New       []Evidence
	Endorser  Text
	Standing  bool
}

// RecommendView is a recommendation.
type RecommendView struct {
	Next    Text
	Ladder  []RungView
	Unknown []Symptom
	Notes   []Words
}

// HelpView is a line of the help.
type HelpView struct {
	Want Words
	Post Text
}

// oneLine are the kinds that say in their one line which request stays open.
var oneLine = map[Kind]bool{KindGoAhead: true, KindRecorded: true, KindPointer: true, KindNotYours: true}

// InLine reports whether the answer is a line that says itself what is open.
func (v *View) InLine() bool { return oneLine[v.Kind] }

// Notable reports whether something stands below the verdict.
func (v *View) Notable() bool {
	return len(v.Contamination) > 0 || len(v.Unknown) > 0 || len(v.Notes) > 0 || v.Replaced != "" || v.Open != "" && !oneLine[v.Kind]
}

// Needs reports whether a condition of that kind is open.
func (v *View) Needs(what string) bool { return v.step(what) != nil }

// Need gives the open condition of that kind; an empty one if there is none.
func (v *View) Need(what string) Step {
	if s := v.step(what); s != nil {
		return *s
	}
	return Step{}
}

func (v *View) step(what string) *Step {
	for i := range v.Steps {
		if v.Steps[i].What == what || what == "endorsement" && v.Steps[i].What == "standing" {
			return &v.Steps[i]
		}
	}
	return nil
}

// Short names the open conditions in a few words each, for one line.
func (v *View) Short() string {
	var names []Text
	for _, s := range v.Steps {
		name := Text(map[string]string{
			"action":            "an action of the ladder",
			"standing":          "an endorsement",
			"endorsement":       "an endorsement",
			"attempt":           "a narrower attempt that did not help",
			"break_glass_grant": "a break-glass grant",
		}[s.What])
		if name != "" && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return joinAnd(names, inertName)
}

// AttemptPost is the line that logs a try of the next rung.
func (v *View) AttemptPost() Text {
	if s := v.step("attempt"); s != nil && s.Post != "" {
		return s.Post
	}
	if v.Next == nil {
		return ""
	}
	return Text(playbook.AttemptLine(string(v.Next.Action), v.failing, "", ""))
}

// RecoveredBy is the record that says it works again.
func (v *View) RecoveredBy() *Evidence {
	for i := range slices.Backward(v.Taken) {
		if v.Taken[i].Recovered {
			return &v.Taken[i]
		}
	}
	return nil
}

// limits bound what a section shows.
type limits struct{ rows, notes, post int }

// viewer makes the views of one answer.
type viewer struct {
	r    *Renderer
	a    *Answer
	now  time.Time
	lim  limits
	told map[string]bool // mentioned live in this answer already
}

func (w *viewer) view(s *Section) *View {
	v := &View{
		Kind: s.Kind, Reason: Text(s.Reason), Author: Text(s.Author),
		Replaced: Text(s.Replaced), Open: Text(s.Open), NextSymptom: Text(s.NextSymptom),
		Endorsers: texts(s.Endorsers), Grant: Text(s.Grant), Forge: Text(s.Forge), Status: s.Status,
		Until: s.Until, Because: Words(s.Because), ApprovedAt: s.ApprovedAt,
		OutcomeMissing: s.OutcomeMissing, Metrics: w.metrics(s.Metrics),
		Title: Words(s.Title), Text: Words(s.Text), Post: Text(s.Post),
		Contact: operator(w.r.pb.Contact()), Bot: Text(w.a.Bot), Now: w.now, Unread: len(w.a.Rejections),
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
	v.Taken, v.TakenLeft = head(w.evidences(s.Taken), w.lim.rows)
	v.Notes, v.NotesLeft = head(wordsOf(s.Notes), w.lim.notes)
	if s.Since != nil {
		v.Since = &SinceView{RefusedAt: s.Since.RefusedAt, Endorser: Text(s.Since.Endorser), Standing: s.Since.Standing}
		v.Since.New, _ = head(w.evidences(s.Since.New), w.lim.notes)
	}
	for _, r := range s.Ladder {
		v.Ladder = append(v.Ladder, *w.rung(r))
	}
	v.Mentions = w.mentions(s.Notify)
	v.Recommendation = w.recommendation(s.Recommendation)
	if s.Kind == KindHelp {
		v.Help = w.help(s.Help, string(v.Request))
	}
	return v
}

// decision adds what the gate said.
func (w *viewer) decision(v *View, d *playbook.Decision) {
	v.Made, v.Code, v.Verdict, v.State, v.Allowed = true, d.Code, d.Verdict, d.State, d.Allowed
	v.Request, v.Action, v.Target = Text(d.Request), Text(d.Action), Text(d.Target)
	v.Requester, v.Actor = Text(d.Requester), Text(d.Requester)
	if d.Endorser != nil {
		v.Endorser, v.Actor = Text(*d.Endorser), Text(*d.Endorser)
	}
	v.Permission, v.Roles = d.Standing.Permission.String(), texts(d.Standing.Roles)
	if len(d.Reasons) > 0 {
		v.Why = Words(d.Reasons[0])
	}
	v.MatrixWhy, v.MatrixAllowed, v.BreakGlass = Words(d.Matrix.Why), d.Matrix.Allowed, d.BreakGlass
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
	v.Counted, v.CountedLeft = head(w.evidences(d.Counted), w.lim.rows)
	ignored := make([]Evidence, len(d.Ignored))
	for i, a := range d.Ignored {
		ignored[i] = w.evidence(a.Attempt)
		ignored[i].Why = Words(a.Why)
	}
	v.Ignored, v.IgnoredLeft = head(ignored, w.lim.rows)
	v.Contamination, _ = head(w.evidences(d.Contamination), w.lim.notes)
	v.Suggestions = texts(d.Suggestions)
	v.Unknown, v.UnknownLeft = head(symptoms(d.UnknownSymptoms), w.lim.notes)
	v.Cure, v.Enough = w.cure(d)
}

func (w *viewer) step(m playbook.Missing) Step {
	s := Step{What: m.What, Who: Words(m.Who), Text: Words(m.Text), Post: w.post(m.Post)}
	if a, ok := w.r.attemptLine(m.Post); ok {
		if rung, ok := w.r.pb.Rung(a.Action); ok {
			s.Rung = w.rung(rung)
		}
	}
	return s
}

// cure looks among the rejections for an attempt that would have counted, and
// asks the gate whether it would have been enough.
func (w *viewer) cure(d *playbook.Decision) (Text, bool) {
	if d.Allowed || len(w.a.Rejections) == 0 {
		return "", false
	}
	var found Text
	for _, r := range w.a.Rejections {
		a, ok := w.r.attemptLine(r.Suggestion)
		if !ok {
			continue
		}
		a.RecordedAt, a.PostedAt, a.Actor = d.DecidedAt, d.DecidedAt, d.Requester
		got := w.r.pb.AssessEscalation(playbook.Escalation{
			Action: d.Action, Target: d.Target, Attempts: append(slices.Clone(d.Counted), a),
			Standing: d.Standing, Actor: d.Requester, Request: d.Request, Now: d.DecidedAt,
		})
		if got.Allowed {
			return w.post(r.Suggestion), true
		}
		if found == "" && len(got.Counted) > len(d.Counted) {
			found = w.post(r.Suggestion)
		}
	}
	return found, false
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
	return Text(line)
}

func (w *viewer) evidences(as []playbook.Attempt) []Evidence {
	out := make([]Evidence, len(as))
	for i, a := range as {
		out[i] = w.evidence(a)
	}
	return out
}

func (w *viewer) evidence(a playbook.Attempt) Evidence {
	e := Evidence{
		Action: Text(a.Action), Outcome: Text(a.Outcome), Target: Text(a.Target), By: Text(a.Actor),
		At: a.RecordedAt, Verified: a.Verified, Reason: Text(a.Reason), Ref: Text(a.Ref), Kill: a.Kill,
		Recovered: w.r.pb.Recovered(a),
	}
	if a.RecordedBy != "" && !strings.EqualFold(a.RecordedBy, a.Actor) {
		e.Recorder = Text(a.RecordedBy)
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
		Action: Text(r.Action), Rank: r.Rank, SelfService: r.SelfService, Gated: r.Gated,
		EndsSessions: r.Blast != playbook.BlastNone, How: Words(r.Delegation), Refs: w.refs(r.References),
		Standing: r.Standing.String(), Roles: texts(r.Roles), MinAttempts: r.MinAttempts,
		Open: r.Standing <= playbook.PermissionRead,
	}
}

// refs shows issues of the operator's tracker. A bare "#584" would link to an
// issue of the repository the answer stands in.
func (w *viewer) refs(refs []string) string {
	out := make([]string, 0, len(refs))
	base := w.r.pb.ReferencesURL()
	for _, ref := range refs {
		ref = strings.TrimPrefix(ref, "#")
		text := inert("#"+ref, maxName)
		if plainURL(base + ref) {
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

// mentionable reports whether n is a login or org/team and nothing else.
func mentionable(n string) bool {
	parts := strings.Split(n, "/")
	for _, p := range parts {
		if p == "" || strings.Trim(p, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-") != "" {
			return false
		}
	}
	return len(parts) <= 2 && len(n) <= maxName
}

func (w *viewer) recommendation(r *playbook.Recommendation) *RecommendView {
	if r == nil {
		return nil
	}
	v := &RecommendView{Next: Text(r.Next)}
	for _, s := range r.Ladder {
		if rung, ok := w.r.pb.Rung(s.Action); ok {
			v.Ladder = append(v.Ladder, *w.rung(rung))
		}
	}
	v.Unknown, _ = head(symptoms(r.UnknownSymptoms), w.lim.notes)
	v.Notes, _ = head(wordsOf(r.Notes), w.lim.notes)
	return v
}

func symptoms(in []playbook.UnknownSymptom) []Symptom {
	out := make([]Symptom, len(in))
	for i, u := range in {
		out[i] = Symptom{Symptom: Text(u.Symptom), Suggestions: texts(u.Suggestions)}
	}
	return out
}

func texts(in []string) []Text {
	out := make([]Text, len(in))
	for i, s := range in {
		out[i] = Text(s)
	}
	return out
}

func wordsOf(in []string) []Words {
	out := make([]Words, len(in))
	for i, s := range in {
		out[i] = Words(s)
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
