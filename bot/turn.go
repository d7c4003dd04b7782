package bot

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"playbook-bot/bot/command"
	"playbook-bot/bot/comment"
	"playbook-bot/bot/forge"
	"playbook-bot/bot/store"
	"playbook-bot/playbook"
	"playbook-bot/templates"
)

// States of a request and verdicts on it, as in the published decision.
const (
	stateNone      = "none"
	stateOpen      = "open"
	stateApproved  = "approved"
	stateRecovered = "recovered"
	stateWithdrawn = "withdrawn"
	stateReplaced  = "replaced"
	stateClosed    = "closed"
	stateExpired   = "expired"

	verdictApproved  = "approved"
	verdictRefused   = "refused"
	verdictUndecided = "undecided"
	verdictExpired   = "expired"
	verdictNone      = "none"
)

var ownLabels = func() []string {
	var names []string
	for _, l := range templates.Labels() {
		names = append(names, l.Name)
	}
	return names
}()

// turn is one event's way through the conversation: commands run on it one
// after another, and come to one answer. It implements command.Handler.
type turn struct {
	*session
	ctx    context.Context
	ev     store.Event
	text   text
	read   comment.Read
	object *object

	sections []templates.Section
	// decision is the last one made, shown folded.
	decision *playbook.Decision
	reaction forge.Reaction
	err      error
	// listed: the thread was listed and standings are fresh.
	listed bool
	// extra are answers with keys of their own (revocations), beside the one
	// to the text.
	extra []keyed
	// low: the author has less than write, as far as was looked.
	low bool
	// vouched: a delivery whose sender is the author carried this very text.
	// Without one nobody knows whose words they are: an edit by another within
	// the second of posting leaves no trace on the forge. Such a text is
	// answered and its attempts are taken, but it lends no standing: page 2.8
	// would let it, and a writer's script could then endorse in an
	// administrator's name whenever the bot was down.
	vouched bool
	// limited: the author has used up this hour's answers. Records are taken
	// in all the same, and what follows from them for others is said.
	limited bool
	// looks are the standings that were asked for afresh in this turn.
	looks map[forge.Account]look
	// logged: an /attempt stands in the text, so its author waits for a word.
	logged bool
	// logSaid: a section already speaks of the records taken.
	logSaid    bool
	rejections []playbook.RejectedText
}

// keyed is an answer that no new text of a person triggered. account is whose
// edit brought it about, for the limits; 0: it is nobody's to be counted.
type keyed struct {
	key     string
	account int64
	a       templates.Answer
}

var _ command.Handler = (*turn)(nil)

func (s *session) newTurn(ev store.Event, t text, r comment.Read) *turn {
	return &turn{session: s, ev: ev, text: t, read: r, low: true, rejections: r.Rejections}
}

// run carries out a new text and commits what came of it.
func (tr *turn) run(ctx context.Context, runs bool) error {
	tr.ctx = ctx
	tr.vouched = runs && (tr.ev.Source == store.SourceDelivery || tr.text.proved)
	form := tr.read.Form != nil && tr.read.Form.Problem == nil
	wants := len(tr.read.Commands) > 0 || form
	if wants && !runs {
		return tr.notRun(ctx)
	}
	if wants || len(tr.read.Rejections) > 0 || len(tr.read.Records) > 0 {
		var err error
		if tr.limited, err = tr.overLimit(ctx); err != nil {
			return err
		}
	}
	if wants && !tr.limited {
		tr.seen(ctx, tr.text.Object)
	}
	switch {
	case tr.limited:
		if wants {
			tr.reaction = forge.ReactionConfused
		}
		tr.rejections, tr.read.Rejections = nil, nil
	case wants:
		tr.nameTheOpen()
		if form {
			tr.form(*tr.read.Form)
		}
		for _, inv := range tr.read.Commands {
			tr.command(inv)
		}
	}
	tr.changed(ctx, len(tr.read.Records) > 0, tr.vouched)
	return tr.commit(ctx)
}

// nameTheOpen adds the line to paste to an /endorse that names no request: the
// reader of the text does not know which one is open.
func (tr *turn) nameTheOpen() {
	r := tr.st.Request
	if r == nil || r.Requester.ID == tr.text.author.ID {
		return
	}
	tr.rejections = slices.Clone(tr.rejections)
	for _, inv := range tr.read.Commands {
		if inv.Name != "endorse" || inv.Problem == nil || inv.Problem.Suggestion != "" {
			continue
		}
		for i := range tr.rejections {
			if x := &tr.rejections[i]; x.Line == inv.Line && x.Source == comment.SourceCommand && x.Suggestion == "" {
				x.Suggestion = "/endorse " + r.ID
			}
		}
	}
}

// command dispatches one command line through the table.
func (tr *turn) command(inv command.Invocation) {
	if tr.err != nil {
		return
	}
	if inv.Problem != nil {
		// The reader has it among the rejections, which the answer shows.
		tr.reaction = forge.ReactionConfused
		return
	}
	spec, ok := command.Lookup(inv.Name)
	if !ok {
		tr.err = fmt.Errorf("the command table has no %q", inv.Name)
		return
	}
	spec.Run(tr, inv)
}

// notRun answers a text whose commands may not run.
func (tr *turn) notRun(ctx context.Context) error {
	why := "found without a delivery, and edited or too old"
	switch {
	case !tr.text.rights():
		why = "migrated, or by no account"
	case tr.ev.Source == store.SourceDelivery || tr.now.Sub(tr.text.created) < foundAge:
		why = "not what its author posted"
		limited, err := tr.overLimit(ctx)
		if err != nil {
			return err
		}
		if !limited {
			tr.add(templates.Section{Kind: templates.KindAltered, Author: tr.text.author.Login})
		}
		tr.reaction = forge.ReactionConfused
	}
	err := tr.audit(AuditEntry{What: "not_run", Actor: tr.text.author.Login, ActorID: tr.text.author.ID, Note: ref(tr.text.Object) + ": " + why})
	if err != nil {
		return err
	}
	tr.rejections = nil
	tr.changed(ctx, len(tr.read.Records) > 0, false)
	return tr.commit(ctx)
}

// Limits of the conversation, an hour: two bots cannot talk for ever, and no
// crowd can drown a thread.
const (
	limitAccount = 10
	limitLow     = 30
)

// overLimit reports whether the author has used up this hour's answers.
func (tr *turn) overLimit(ctx context.Context) (bool, error) {
	mine, low, err := tr.b.Ledger.Posted(ctx, tr.t.ID, tr.text.author.ID, tr.now.Add(-time.Hour))
	if err != nil {
		return false, fmt.Errorf("count the last hour's answers: %w", err)
	}
	if mine >= limitAccount {
		return true, nil
	}
	if low < limitLow {
		return false, nil
	}
	return tr.standing(ctx, tr.text.author, false).Standing.Permission < playbook.PermissionWrite, nil
}

func (tr *turn) add(s templates.Section) {
	if s.Author == "" {
		s.Author = tr.text.author.Login
	}
	tr.sections = append(tr.sections, s)
}

// runs are the commands of a text that would do more than its records, which
// an edit brings in as well.
func runs(r comment.Read) []command.Invocation {
	return slices.DeleteFunc(slices.Clone(r.Commands), func(i command.Invocation) bool { return i.Name == "attempt" || i.Problem != nil })
}

// hint answers an edit that brought a text its first command, or something
// that could not be taken: edits run nothing, and whoever wrote it should learn
// so. A text gets one.
func (tr *turn) hint(ctx context.Context, first bool) {
	limited, err := tr.overLimit(ctx)
	if err != nil {
		tr.err = err
		return
	}
	if limited {
		return
	}
	tr.object.data.Hinted = true
	a := templates.Answer{
		Sections:   []templates.Section{{Kind: templates.KindUnreadable, Author: tr.text.author.Login}},
		Rejections: slices.Clone(tr.read.Rejections),
	}
	if first {
		inv := runs(tr.read)[0]
		a.Rejections = append(a.Rejections, playbook.RejectedText{Line: inv.Line, Source: comment.SourceCommand, Problem: playbook.Problem{
			Why: "an edit runs no command", Suggestion: inv.Raw}})
	}
	tr.extra = append(tr.extra, keyed{hintKey(tr.text.Object), tr.text.author.ID, a})
}

// commit renders the turn's answers and writes it all.
func (tr *turn) commit(ctx context.Context) error {
	if tr.err != nil {
		return tr.err
	}
	tr.contamination()
	if tr.ev.ID != 0 {
		tr.finish(tr.ev, "")
	}
	for _, k := range tr.extra {
		if err := tr.say(k.key, tr.text.Object, k.account, k.account != 0 && tr.low, k.a); err != nil {
			return err
		}
	}
	rejections := tr.rejections
	tr.dropEnded()
	if len(tr.sections) == 0 && len(rejections) > 0 {
		tr.add(templates.Section{Kind: templates.KindUnreadable, Taken: tr.taken()})
		if tr.reaction == "" {
			tr.reaction = forge.ReactionConfused
		}
	}
	if len(tr.sections) > 0 {
		if tr.decision != nil {
			tr.decision.Rejections = append([]playbook.RejectedText{}, rejections...)
		}
		a := templates.Answer{Sections: tr.sections, Rejections: rejections, Decision: tr.decision}
		if err := tr.say(answerKey(tr.text.Object), tr.text.Object, tr.text.author.ID, tr.low, a); err != nil {
			return err
		}
	}
	if tr.reaction != "" {
		tr.st.Reactions = append(tr.st.Reactions, pendingReaction{tr.text.Object, tr.reaction})
	}
	return tr.session.commit(ctx)
}

// dropEnded leaves out the approvals of requests that a later line of the same
// text has ended: whoever reads no further than the first would go by it. The
// section that ended the request says so.
func (tr *turn) dropEnded() {
	left := slices.DeleteFunc(slices.Clone(tr.sections), func(s templates.Section) bool {
		return s.Kind == templates.KindApproved && s.D != nil && (tr.st.Approval == nil || tr.st.Approval.Request != s.D.Request)
	})
	if len(left) > 0 {
		tr.sections = left
	}
}

// contamination keeps the label's mark up to date.
func (s *session) contamination() {
	weigh, _ := s.attempts()
	s.st.Contaminated = slices.ContainsFunc(weigh, func(a playbook.Attempt) bool { return a.Kill })
}

// basis asks, of a text that changed (r) or went (nil), whether the request
// and its endorsement still stand on it.
func (s *session) basis(o *object, r *comment.Read) (lost string) {
	req := s.st.Request
	if req == nil {
		return ""
	}
	if e := req.Endorsement; e != nil && e.Comment == o.Object.Object {
		endorses := func(i command.Invocation) bool { return i.Name == "endorse" && i.Problem == nil && i.Request == req.ID }
		if r == nil || !slices.ContainsFunc(r.Commands, endorses) {
			req.Endorsement = nil
			lost = "the endorsement is gone from " + ref(o.Object.Object)
		}
	}
	if req.Trigger != o.Object.Object {
		return lost
	}
	if r == nil || !stillAsks(*r, *req) {
		s.broken = "the line that asked for it is gone from " + ref(o.Object.Object)
		return s.broken
	}
	return lost
}

// stillAsks reports whether a text still holds the request.
func stillAsks(r comment.Read, req request) bool {
	if f := r.Form; req.Form && f != nil && f.Problem == nil && f.Action == req.Action && strings.EqualFold(f.Target, req.Target) && f.BreakGlass == req.BreakGlass {
		return true
	}
	return slices.ContainsFunc(r.Commands, func(i command.Invocation) bool {
		breakGlass := i.Name == "break-glass"
		return (i.Name == "restart" || breakGlass) && i.Problem == nil && i.Action == req.Action &&
			strings.EqualFold(i.Target, req.Target) && breakGlass == req.BreakGlass
	})
}

// formEdited follows an edit of the restart-request form: by its own author
// it is a new request; by another, or by nobody knows whom, it ends the old
// one and opens none.
func (tr *turn) formEdited(ctx context.Context, own bool) {
	tr.ctx = ctx
	old := tr.st.Request
	fromForm := old != nil && old.Form
	revoked := tr.st.Approval != nil
	if fromForm {
		because := "the form was changed by its author"
		if !own {
			because = "the form was changed, and not provably by its author"
		}
		tr.revoke(because, stateReplaced)
		if err := tr.endRequest(tr.ev, "ended", stateReplaced); err != nil {
			tr.err = err
			return
		}
	}
	f := tr.read.Form
	if own && f != nil && f.Problem == nil && (fromForm || old == nil) && !tr.st.Closed {
		var err error
		if tr.limited, err = tr.overLimit(ctx); err != nil {
			tr.err = err
			return
		}
		if tr.limited {
			tr.reaction = forge.ReactionConfused
			return
		}
		tr.vouched = true
		r := tr.open(formRequest(tr.text, *f))
		tr.judge(r, flipKey(r.ID, 0))
		return
	}
	if !own && fromForm && !revoked {
		tr.extra = append(tr.extra, keyed{"ended:" + old.ID, 0, templates.Answer{Sections: []templates.Section{{
			Kind: templates.KindNotice, Title: "🛑 Request " + old.ID + " is over: its form was changed by somebody else",
			Text: "Nothing was opened in its place. Who still needs it asks again in a new comment.",
			Post: old.line()}}}})
	}
	tr.changed(ctx, true, false)
}

// line is the command that asks for just this again: anything else would be
// another request, without the endorsement this one has.
func (r *request) line() string {
	line := "/restart " + r.Action
	if r.BreakGlass {
		line = "/break-glass " + r.Action
	}
	if r.Target != "" {
		line += " target=" + quoteTarget(r.Target)
	}
	if !r.BreakGlass {
		return line
	}
	reason := strings.Join(strings.Fields(r.Reason), " ")
	switch first := strings.ToLower(reason); {
	case reason == "": // lost with the database
		reason = command.UrgentReason
	case strings.HasPrefix(first, "target"):
		reason = "(" + reason + ")" // or it might be read as the option
	}
	if cut := []rune(reason); len(cut) > maxAskedReason {
		reason = string(cut[:maxAskedReason-1]) + "…"
	}
	return line + " " + reason
}

// maxAskedReason is how much of a reason, in characters, a line to paste
// repeats.
const maxAskedReason = 300

func quoteTarget(t string) string {
	t = strings.ReplaceAll(t, `"`, "")
	if strings.ContainsAny(t, " \t'“”‘’") {
		return `"` + t + `"`
	}
	return t
}

// isWait reports an error that only asks to come again.
func isWait(err error) bool {
	var w *waitError
	return errors.As(err, &w)
}
