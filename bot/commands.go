package bot

import (
	"fmt"
	"strings"

	"playbook-bot/bot/command"
	"playbook-bot/bot/comment"
	"playbook-bot/bot/forge"
	"playbook-bot/playbook"
	"playbook-bot/templates"
)

// Restart opens a request, or answers a narrower one beside it.
func (tr *turn) Restart(inv command.Invocation) { tr.ask(tr.commandRequest(inv, false)) }

// BreakGlass opens a request that asks to skip the attempt log.
func (tr *turn) BreakGlass(inv command.Invocation) { tr.ask(tr.commandRequest(inv, true)) }

// form opens the request that an issue's form makes.
func (tr *turn) form(f comment.Form) { tr.ask(formRequest(tr.text, f)) }

func (tr *turn) commandRequest(inv command.Invocation, breakGlass bool) request {
	return request{Action: inv.Action, Target: inv.Target, Symptoms: inv.Symptoms, BreakGlass: breakGlass, Reason: inv.Reason,
		Requester: tr.text.author, Trigger: tr.text.Object}
}

func formRequest(t text, f comment.Form) request {
	return request{Action: f.Action, Target: f.Target, Symptoms: f.Symptoms, BreakGlass: f.BreakGlass, Reason: f.Reason,
		Requester: t.author, Trigger: t.Object, Form: true}
}

// ask is a request on its way to the gate.
func (tr *turn) ask(q request) {
	rung, known := tr.policy(false).Rung(q.Action)
	if !known {
		tr.bare(q, templates.KindRefused, forge.ReactionConfused)
		return
	}
	if tr.st.Closed {
		tr.add(templates.Section{Kind: templates.KindNotice, Title: "⏸️ This issue is closed, so nothing is decided here",
			Text: "Reopen it (that begins a new incident), then ask again in a new comment."})
		tr.reaction = forge.ReactionConfused
		return
	}
	open := tr.st.Request
	replaced := ""
	if open != nil {
		openRung, _ := tr.b.Playbook.Rung(open.Action)
		switch {
		case open.same(q.Action, q.Target, q.BreakGlass, q.Requester):
			tr.repeat(open)
			return
		case !rung.Gated && rung.Rank < openRung.Rank:
			tr.bare(q, "", "")
			return
		case !tr.mine():
			return
		}
		replaced = open.ID
		tr.err = tr.audit(AuditEntry{What: "ended", Request: open.ID, Action: open.Action, Target: open.Target,
			Requester: open.Requester.Login, Actor: tr.text.author.Login, ActorID: tr.text.author.ID, Note: stateReplaced})
		tr.st.end(stateReplaced)
	}
	r := tr.open(q)
	tr.judge(r, "")
	if n := len(tr.sections); tr.err == nil && n > 0 {
		tr.sections[n-1].Replaced = replaced
	}
}

// open gives a request its id.
func (tr *turn) open(q request) *request {
	tr.st.LastRequest++
	q.ID = fmt.Sprintf("%d/%d", tr.t.Number, tr.st.LastRequest)
	q.At, q.Unvouched = tr.now, !tr.vouched
	tr.st.Request, tr.st.Approval, tr.st.Ended = &q, nil, ""
	return &q
}

// bare answers about an action without opening or changing a request. With no
// kind given, the section is a go-ahead or a refusal as the gate says.
func (tr *turn) bare(q request, kind templates.Kind, reaction forge.Reaction) {
	a, lk := tr.assess(&q, false)
	if tr.err != nil {
		return
	}
	if a.Code == playbook.CodeStandingUnknown && tr.holdOn(lk) {
		return
	}
	sec := templates.Section{Kind: kind, Reason: q.Reason}
	if tr.st.Request != nil {
		sec.Open = tr.st.Request.ID
	}
	if kind == "" {
		sec.Kind, reaction = templates.KindGoAhead, forge.ReactionApproved
		if !a.Allowed {
			sec.Kind, reaction = templates.KindRefused, forge.ReactionRefused
		}
		if a.Code == playbook.CodeStandingUnknown {
			sec.Kind, reaction = templates.KindUndecided, forge.ReactionConfused
			sec.Status, sec.Forge = lk.status(), tr.t.Forge
		}
	}
	if tr.reaction == "" {
		tr.reaction = reaction
	}
	d, err := tr.decide(nil, a, lk.Standing, "")
	if err != nil {
		tr.err = err
		return
	}
	d.Symptoms = append(d.Symptoms, q.Symptoms...)
	sec.D = d
	tr.fill(&sec, a)
	tr.decision = d
	tr.add(sec)
	tr.tellOverlay()
}

// repeat answers the same question asked again: the gate is asked anew, and
// where nothing changed one short pointer is all, and then not even that.
func (tr *turn) repeat(r *request) {
	if r.Unvouched && tr.vouched {
		// Now it is certainly the requester's own word, and stands here.
		r.Unvouched, r.Trigger, r.Form = false, tr.text.Object, false
	}
	if ap := tr.st.Approval; ap != nil {
		tr.pointer(r)
		return
	}
	verdict, code := r.Verdict, r.Code
	a, lk := tr.weigh(r)
	changed := a.Code != code || !a.Allowed && verdict == verdictApproved || a.Allowed && verdict != verdictApproved || verdict == verdictExpired
	switch {
	case tr.err != nil:
	case tr.broken != "":
		tr.endBroken()
	case changed && !tr.vouched && (!r.Unvouched || r.Endorsement != nil):
		// To ask again is to ask: what comes of it, now or once a standing can
		// be read, takes the requester's own word as the first time did.
		tr.vouch()
	case changed:
		tr.rule(r, a, lk, "")
	default:
		tr.pointer(r)
	}
}

func (tr *turn) pointer(r *request) {
	tr.reaction = forge.ReactionSeen
	tr.logSaid = true
	if r.Pointed {
		return
	}
	r.Pointed = true
	sec := templates.Section{Kind: templates.KindPointer, Open: r.ID, Post: r.line()}
	if ap := tr.st.Approval; ap != nil {
		sec.Until = ap.Expires
	}
	tr.fillFor(&sec, r)
	tr.add(sec)
}

// fillFor adds to a section what is still missing for a request.
func (tr *turn) fillFor(sec *templates.Section, r *request) {
	a, lk := tr.assess(r, false)
	d := &playbook.Decision{Schema: playbook.DecisionSchema, Assessment: a, Request: r.ID, State: stateOpen, Verdict: r.Verdict,
		Requester: r.Requester.Login, Standing: lk.Standing, DecidedAt: r.DecidedAt, Playbook: tr.policy(false).Identity()}
	if tr.st.Approval != nil {
		d.State = stateApproved
	}
	sec.D = d
	tr.fill(sec, a)
}

// mine reports whether the author may replace, resolve or withdraw the open
// request, and answers where not.
func (tr *turn) mine() bool {
	if !tr.vouch() {
		return false
	}
	may, lk := tr.mayAct(tr.ctx, tr.text.author)
	if !may && !tr.holdOn(lk) {
		tr.notYours(tr.st.Request, lk)
	}
	return may
}

// vouch reports whether the text may lend its author's standing, and asks for
// it to be posted again where not.
func (tr *turn) vouch() bool {
	if tr.vouched {
		return true
	}
	tr.reaction, tr.logSaid = forge.ReactionConfused, true
	for _, s := range tr.sections {
		if s.Kind == templates.KindNotice && s.Title == unvouchedTitle {
			return false
		}
	}
	tr.add(templates.Section{Kind: templates.KindNotice, Title: unvouchedTitle,
		Text: "I found this text later, while looking for what I had missed, and cannot tell whether its author wrote it as it is now. " +
			"Attempts in it are taken; what needs its author's standing is not done. The author posts it again, in a new comment."})
	return false
}

const unvouchedTitle = "✍️ Not done: nobody vouches for this text"

// notYours answers a line about somebody else's request.
func (tr *turn) notYours(r *request, lk look) {
	tr.reaction = forge.ReactionConfused
	sec := templates.Section{Kind: templates.KindNotYours, Open: r.ID, Reason: r.Requester.Login, Taken: tr.taken()}
	if lk.Err != nil {
		sec.Because = "your permission could not be read, and request " + r.ID + " is somebody else's; post it again in a while"
	}
	tr.fillFor(&sec, r)
	tr.add(sec)
	tr.logSaid = true
}

// Attempt records; the record itself was taken in when the text was read.
func (tr *turn) Attempt(command.Invocation) { tr.logged = true }

// Resolved ends the open request as recovered, if it is the author's to end.
func (tr *turn) Resolved(inv command.Invocation) {
	tr.logged = true
	r := tr.st.Request
	if r == nil {
		if tr.taken() != nil {
			tr.recovered(inv, nil)
		}
		return
	}
	if tr.mine() {
		tr.recovered(inv, r)
	}
}

func (tr *turn) recovered(inv command.Invocation, r *request) {
	sec := templates.Section{Kind: templates.KindRecovered, Reason: inv.Reason, Taken: tr.taken()}
	tr.reaction, tr.logSaid = forge.ReactionApproved, true
	if rung, ok := tr.b.Playbook.Rung(inv.Action); ok {
		sec.Rung = &rung
	}
	if r == nil {
		tr.add(sec)
		return
	}
	sec.Open = r.ID
	if ap := tr.st.Approval; ap != nil {
		sec.ApprovedAt = ap.At
	}
	a, lk := tr.assess(r, false)
	tr.end(r, a, lk, stateRecovered, sec)
	tr.st.newIncident(tr.text.created, tr.order(tr.text.Object))
}

// end ends a request with an answer and its decision.
func (tr *turn) end(r *request, a playbook.Assessment, lk look, state string, sec templates.Section) {
	if tr.err != nil {
		return
	}
	tr.st.Approval = nil
	tr.err = tr.audit(AuditEntry{What: state, Request: r.ID, Action: r.Action, Target: r.Target, Requester: r.Requester.Login,
		Actor: tr.text.author.Login, ActorID: tr.text.author.ID})
	if tr.err != nil {
		return
	}
	d, err := tr.decide(r, a, lk.Standing, "")
	if err != nil {
		tr.err = err
		return
	}
	d.State, d.Verdict = state, verdictNone
	sec.D = d
	tr.decision = d
	tr.add(sec)
	tr.st.end(state)
}

// Withdraw takes the open request, or a standing approval, back.
func (tr *turn) Withdraw(command.Invocation) {
	r := tr.st.Request
	if r == nil {
		tr.notice("🤷 No request is open here, so there is nothing to withdraw", "", "")
		return
	}
	if !tr.mine() {
		return
	}
	a, lk := tr.assess(r, false)
	sec := templates.Section{Kind: templates.KindWithdrawn, Open: r.ID}
	if ap := tr.st.Approval; ap != nil {
		sec.ApprovedAt = ap.At
	}
	tr.fill(&sec, a)
	tr.reaction = forge.ReactionApproved
	tr.end(r, a, lk, stateWithdrawn, sec)
}

func (tr *turn) notice(title, text, post string) {
	tr.add(templates.Section{Kind: templates.KindNotice, Title: title, Text: text, Post: post})
	if tr.reaction == "" {
		tr.reaction = forge.ReactionConfused
	}
}

// Endorse lets an account with standing adopt the open request. Nobody
// endorses their own, and an endorsement covers exactly one request id.
func (tr *turn) Endorse(inv command.Invocation) {
	r := tr.st.Request
	by := tr.text.author
	switch {
	case r == nil:
		tr.notice("🤷 No request is open here to endorse", "", "")
		return
	case r.ID != inv.Request:
		tr.notice("🤷 That is not the open request", "Open here is request "+r.ID+". Read what it asks for, then adopt that one:", "/endorse "+r.ID)
		return
	case r.Requester.ID == by.ID || r.Requester.ID == 0 && strings.EqualFold(r.Requester.Login, by.Login):
		tr.notice("⛔ Nobody endorses their own request", "Somebody else with standing posts:", "/endorse "+r.ID)
		tr.reaction = forge.ReactionRefused
		return
	}
	if tr.st.Approval != nil {
		tr.pointer(r)
		return
	}
	if !tr.vouch() {
		return
	}
	before := r.Endorsement
	r.Endorsement = &endorsement{By: by, Comment: tr.text.Object, At: tr.text.created}
	a, lk := tr.weigh(r)
	if tr.err != nil {
		return
	}
	if tr.broken != "" {
		tr.endBroken()
		return
	}
	if a.Code == playbook.CodeStandingUnknown && tr.holdOn(lk) {
		return
	}
	if !a.Matrix.Allowed {
		// The endorser's own standing does not suffice, or cannot be read: the
		// request stays as it was, and the answer says whose it is about.
		r.Endorsement = before
		if before != nil && tr.objects[before.Comment] != nil && tr.objects[before.Comment].dirty {
			// This very turn found its comment changed or gone, and held that
			// against the new one only.
			r.Endorsement = nil
		}
		kind, reaction := templates.KindRefused, forge.ReactionRefused
		if a.Code == playbook.CodeStandingUnknown {
			kind, reaction = templates.KindUndecided, forge.ReactionConfused
		}
		tr.reaction = reaction
		sec := templates.Section{Kind: kind, Open: r.ID, Actor: by.Login, Status: lk.status(), Forge: tr.t.Forge}
		tr.publish(r, a, lk.Standing, sec, "")
		return
	}
	tr.err = tr.audit(AuditEntry{What: "endorsed", Request: r.ID, Action: r.Action, Target: r.Target, Actor: by.Login, ActorID: by.ID, Stand: &lk.Standing})
	if a.Allowed {
		tr.rule(r, a, lk, "")
		return
	}
	tr.decidedNow(r)
	r.refuse(a.Code, tr.now)
	tr.reaction = forge.ReactionApproved
	tr.publish(r, a, lk.Standing, templates.Section{Kind: templates.KindEndorsed, Open: r.ID}, "")
}

// Recommend gives the next rung for symptoms, after what was tried.
func (tr *turn) Recommend(inv command.Invocation) {
	weigh, _ := tr.attempts()
	book := tr.policy(false)
	rec := book.RecommendActions(inv.Symptoms, weigh)
	sec := templates.Section{Kind: templates.KindRecommend, Recommendation: &rec}
	if next, ok := book.Rung(rec.Next); ok {
		sec.Next = &next
		sec.NextSymptom = book.SymptomStartingAt(rec.Next, inv.Symptoms)
	}
	tr.reaction = forge.ReactionApproved
	tr.add(sec)
}

// Assess gives the gate's answer without opening a request.
func (tr *turn) Assess(inv command.Invocation) {
	tr.bare(tr.commandRequest(inv, false), templates.KindAssess, forge.ReactionApproved)
}

// Playbook shows the ladder, the log, the figures or help, or lifts the mark
// of contamination.
func (tr *turn) Playbook(inv command.Invocation) {
	weigh, excluded := tr.attempts()
	switch inv.Topic {
	case "ladder":
		tr.add(templates.Section{Kind: templates.KindLadder, Ladder: tr.policy(false).Rungs()})
	case "metrics":
		m := tr.b.Playbook.RecoveryMetrics(tr.everyAttempt())
		tr.add(templates.Section{Kind: templates.KindMetrics, Metrics: &m})
	case "attempts":
		tr.attemptsSection(weigh, excluded)
	case "clear-contamination":
		tr.clearContamination(inv)
		return
	default:
		sec := templates.Section{Kind: templates.KindHelp, Help: helpRows()}
		if r := tr.st.Request; r != nil {
			sec.Open = r.ID
			tr.fillFor(&sec, r)
		}
		tr.add(sec)
	}
	if tr.reaction == "" {
		tr.reaction = forge.ReactionApproved
	}
}

// helpRows are the commands as help shows them: what one wants, and a line.
func helpRows() []templates.HelpRow {
	var rows []templates.HelpRow
	for _, s := range command.Table {
		rows = append(rows, templates.HelpRow{Want: s.Want, Post: s.Examples[0]})
	}
	return rows
}

// everyAttempt is the whole thread's log, of all incidents: for figures.
func (tr *turn) everyAttempt() []playbook.Attempt {
	var out []playbook.Attempt
	for _, o := range tr.ordered() {
		out = append(out, o.data.attempts()...)
	}
	return out
}

// attemptsSection shows what counts and why, for the open request or, with
// none, for a full restart.
func (tr *turn) attemptsSection(weigh []playbook.Attempt, excluded []playbook.IgnoredAttempt) {
	sec := templates.Section{Kind: templates.KindAttempts}
	if r := tr.st.Request; r != nil {
		sec.Open = r.ID
		tr.fillFor(&sec, r)
	} else {
		book := tr.policy(false)
		a := book.AssessEscalation(playbook.Escalation{Action: broadest(book), Attempts: weigh, Excluded: excluded,
			Since: tr.st.Since, Standing: playbook.Standing{Permission: playbook.PermissionOwner}, Now: tr.now})
		sec.D = &playbook.Decision{Schema: playbook.DecisionSchema, Assessment: a, DecidedAt: tr.now}
	}
	tr.add(sec)
}

func (tr *turn) clearContamination(inv command.Invocation) {
	if !tr.vouch() {
		return
	}
	lk := tr.standing(tr.ctx, tr.text.author, true)
	if lk.Standing.Permission < playbook.PermissionAdmin {
		if tr.holdOn(lk) {
			return
		}
		tr.reaction = forge.ReactionRefused
		why := "It takes `admin` on this repository."
		if lk.Err != nil {
			why = "Your permission could not be read; it takes `admin` on this repository."
		}
		tr.notice("⛔ The mark stays: lifting it is an administrator's", why, "")
		return
	}
	tr.contamination()
	if !tr.st.Contaminated {
		tr.notice("🤷 This thread bears no mark of contamination", "", "")
		return
	}
	tr.st.ClearedComment = max(tr.order(tr.text.Object), tr.st.ClearedComment)
	tr.st.ClearedAt = later(tr.text.created, tr.st.ClearedAt)
	tr.reaction, tr.logSaid = forge.ReactionApproved, true
	tr.add(templates.Section{Kind: templates.KindCleared, Reason: inv.Reason})
	tr.err = tr.audit(AuditEntry{What: "cleared", Actor: tr.text.author.Login, ActorID: tr.text.author.ID, Stand: &lk.Standing})
}
