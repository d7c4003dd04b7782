package bot

import (
	"context"
	"errors"
	"slices"

	"playbook-bot/bot/forge"
	"playbook-bot/bot/store"
	"playbook-bot/playbook"
	"playbook-bot/templates"
)

// What follows when the record changes: an open request is assessed again, a
// standing approval is asked for again and revoked if the gate would refuse.

// taken are the records of the text in hand, for the words about them.
func (tr *turn) taken() []playbook.Attempt {
	if tr.object == nil || tr.object.Deleted {
		return nil
	}
	var out []playbook.Attempt
	for _, r := range tr.object.data.Records {
		if !r.Altered {
			out = append(out, r.Attempt)
		}
	}
	return out
}

// changed follows a change of the record. Under a standing approval the gate
// is asked again; an open request is assessed again. own: the text is its
// author's own word.
func (tr *turn) changed(ctx context.Context, logChanged, own bool) {
	if tr.err != nil {
		return
	}
	tr.ctx = ctx
	lost := ""
	if tr.object != nil {
		if tr.object.Deleted {
			lost = tr.basis(tr.object, nil)
		} else {
			lost = tr.basis(tr.object, &tr.read)
		}
	}
	r := tr.st.Request
	switch {
	case r == nil:
		tr.recordedOnly(logChanged)
	case tr.broken != "":
		tr.endBroken()
	case tr.st.Approval != nil && (logChanged || lost != ""):
		tr.reconsider(r, lost)
	case lost != "" && tr.st.Approval == nil && r.Verdict == verdictApproved:
		tr.takeBack(r, lost)
	case logChanged && !tr.judged() && tr.isEvidence():
		tr.evidence(r, own)
	}
}

// judged reports whether the text in hand was answered with a verdict, which
// speaks of its records as well.
func (tr *turn) judged() bool {
	return tr.decision != nil || tr.logSaid || slices.ContainsFunc(tr.extra, func(k keyed) bool { return k.key != hintKey(tr.text.Object) })
}

func (tr *turn) isEvidence() bool { return len(tr.taken()) > 0 }

// recordedOnly says one line about an attempt logged where nothing is open.
func (tr *turn) recordedOnly(logChanged bool) {
	if !logChanged || tr.judged() || tr.mute() {
		return
	}
	if tr.logged && tr.isEvidence() {
		tr.add(templates.Section{Kind: templates.KindRecorded, Taken: tr.taken(), Notes: tr.read.Notes})
		return
	}
	if tr.reaction == "" && tr.isEvidence() {
		tr.reaction = forge.ReactionSeen
	}
}

// triggerless: the text in hand was answered before, or is none.
func (tr *turn) triggerless() bool {
	return tr.ev.Action != forge.ActionOpened && tr.ev.Action != forge.ActionCreated
}

// mute: a line about the text in hand alone is not said: it was answered
// before, or its author has had this hour's answers.
func (tr *turn) mute() bool { return tr.triggerless() || tr.limited }

// reconsider asks the gate again under a standing approval, and revokes it if
// it would refuse on the record as it now stands.
func (tr *turn) reconsider(r *request, lost string) {
	a, lk := tr.assess(r, true)
	if a.Code == playbook.CodeStandingUnknown {
		if tr.holdOn(lk) {
			return
		}
		// Not to know a standing is no reason to take back what was known: the
		// approval ends by itself, and the next change asks again. What is
		// known to be missing is one.
		evidence := a.AttemptLogSatisfied || a.BreakGlass.Requested && a.BreakGlass.Authorized
		if lk.passing() && evidence && lost == "" {
			return
		}
	}
	if a.Allowed {
		if !tr.judged() && !tr.mute() && tr.isEvidence() {
			tr.add(templates.Section{Kind: templates.KindRecorded, Taken: tr.taken(), Open: r.ID, Notes: tr.read.Notes})
		}
		return
	}
	tr.revokeBy(r, a, lk, tr.because(lost, a))
}

// takeBack takes a go-ahead back that rested on an endorsement. Rungs without
// a gate have no approval, but verdict and label, which people go by.
func (tr *turn) takeBack(r *request, lost string) {
	a, lk := tr.assess(r, true)
	if tr.err != nil || a.Allowed || a.Code == playbook.CodeStandingUnknown && tr.holdOn(lk) {
		return
	}
	at := r.DecidedAt
	r.refuse(a.Code, tr.now)
	tr.decidedNow(r)
	r.Flips++
	tr.observe = append(tr.observe, Observation{What: "revoked"})
	tr.err = tr.audit(AuditEntry{What: "revoked", Request: r.ID, Action: r.Action, Target: r.Target, Note: lost,
		Actor: tr.ev.Sender.Login, ActorID: tr.ev.Sender.ID})
	if tr.err == nil {
		sec := templates.Section{Kind: templates.KindRevoked, Because: lost, ApprovedAt: at, Reason: r.Reason}
		tr.publish(r, a, lk.Standing, sec, flipKey(r.ID, r.Flips))
	}
}

// because says in one clause what brought a revocation about.
func (tr *turn) because(lost string, a playbook.Assessment) string {
	switch {
	case lost != "":
		return lost
	case tr.object != nil && tr.object.Deleted:
		return ref(tr.object.Object.Object) + " with the evidence behind it was deleted" + tr.byWhom()
	case tr.ev.Action == forge.ActionEdited:
		return ref(tr.text.Object) + ", which held the evidence behind it, was edited" + tr.byWhom()
	case len(a.Reasons) > 0:
		return a.Reasons[0]
	}
	return "the record changed"
}

// byWhom names who did what the event tells of, where a delivery says so: the
// API names no editor.
func (tr *turn) byWhom() string {
	if tr.ev.Source != store.SourceDelivery || !tr.ev.Sender.Real() {
		return ""
	}
	return " by " + tr.ev.Sender.Login
}

// revoke ends the approval, if one stands, of a request that is itself about
// to end as state says.
func (tr *turn) revoke(because, state string) {
	r := tr.st.Request
	if r == nil || tr.st.Approval == nil {
		return
	}
	a, lk := tr.assess(r, false)
	a.Allowed = false
	tr.revokeBy(r, a, lk, because)
	if tr.err == nil {
		tr.extra[len(tr.extra)-1].a.Decision.State = state
	}
}

func (tr *turn) revokeBy(r *request, a playbook.Assessment, lk look, because string) {
	ap := tr.st.Approval
	if ap == nil {
		return
	}
	tr.st.Approval = nil
	r.Verdict, r.Code, r.DecidedAt = verdictRefused, a.Code, tr.now
	tr.observe = append(tr.observe, Observation{What: "revoked"})
	tr.err = tr.audit(AuditEntry{What: "revoked", Request: r.ID, Action: r.Action, Target: r.Target, Note: because,
		Actor: tr.ev.Sender.Login, ActorID: tr.ev.Sender.ID})
	if tr.err == nil {
		sec := templates.Section{Kind: templates.KindRevoked, Because: because, ApprovedAt: ap.At, Reason: r.Reason}
		tr.publish(r, a, lk.Standing, sec, revokeKey(ap.ID))
	}
}

// endBroken ends a request whose own line is gone.
func (tr *turn) endBroken() {
	tr.revoke(tr.broken, stateWithdrawn)
	if tr.err == nil {
		tr.err = tr.endRequest(tr.ev, "ended", stateWithdrawn)
	}
}

// evidence follows new records under an open request.
func (tr *turn) evidence(r *request, own bool) {
	if r.MustAsk {
		if !tr.mute() {
			tr.add(templates.Section{Kind: templates.KindRecorded, Taken: tr.taken(), Open: r.ID, Notes: tr.read.Notes,
				Post: r.line()})
		}
		return
	}
	a, lk := tr.assess(r, false)
	if tr.err != nil {
		return
	}
	if r.Verdict == verdictApproved && a.Allowed || !a.Allowed {
		tr.nothingFlips(r, a, lk)
		return
	}
	may, who := tr.mayAct(tr.ctx, tr.text.author)
	if !may && tr.holdOn(who) {
		return
	}
	if !own && may {
		if !tr.mute() {
			tr.add(templates.Section{Kind: templates.KindNotice, Title: "☑️ Would now be allowed, but nobody vouches for this text",
				Text: "I found it later, while looking for what I had missed, and cannot tell whether its author wrote it as it is now. " +
					"Its attempts are recorded. Who made request " + r.ID + ", or an account with `write`, asks for it, if they are true:", Post: r.line()})
		}
		return
	}
	if !may {
		if !tr.mute() {
			sec := templates.Section{Kind: templates.KindWouldAllow, Taken: tr.taken(), Open: r.ID, Post: r.line()}
			tr.fill(&sec, a)
			tr.add(sec)
		}
		return
	}
	if tr.triggerless() {
		if tr.limited, tr.err = tr.overLimit(tr.ctx); tr.err != nil {
			return
		}
	}
	if tr.limited && tr.text.author.ID == r.Requester.ID {
		return // one's own answer one can have used up; another's one cannot
	}
	key := ""
	if tr.triggerless() {
		r.Flips++
		key = flipKey(r.ID, r.Flips)
	}
	tr.judge(r, key)
}

// nothingFlips says one line: recorded, and what is still missing.
func (tr *turn) nothingFlips(r *request, a playbook.Assessment, lk look) {
	if !a.Allowed && r.Verdict == verdictRefused {
		r.refuse(a.Code, tr.now)
	}
	if tr.mute() {
		return
	}
	d := &playbook.Decision{Schema: playbook.DecisionSchema, Assessment: a, Request: r.ID, State: stateOpen, Verdict: r.Verdict,
		Requester: r.Requester.Login, Standing: lk.Standing, DecidedAt: tr.now, Playbook: tr.policy(false).Identity()}
	sec := templates.Section{Kind: templates.KindRecorded, D: d, Taken: tr.taken(), Open: r.ID, Notes: tr.read.Notes}
	tr.fill(&sec, a)
	tr.add(sec)
}

// errForge reports an error that is the forge's, not ours.
func errForge(err error) bool {
	var fe *forge.Error
	return errors.As(err, &fe)
}
