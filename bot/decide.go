package bot

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"playbook-bot/bot/forge"
	"playbook-bot/playbook"
	"playbook-bot/templates"
)

// Times of an undecided request (page 2.6): how long a first answer waits
// for a forge that may answer in a moment, how often the bot looks again, and
// until when.
const (
	undecidedAfter = 12 * time.Second
	undecidedEvery = time.Minute
	undecidedUntil = time.Hour
)

// assess asks the gate about a request, with what is known now.
func (tr *turn) assess(r *request, fresh bool) (playbook.Assessment, look) {
	actor := r.Requester
	if r.Endorsement != nil {
		actor = r.Endorsement.By
	}
	lk := tr.standingFor(r.Action, actor, fresh)
	if now, renamed := tr.renamed(r, actor, lk); renamed {
		lk = tr.standingFor(r.Action, now, fresh)
	}
	return tr.assessAs(r, lk, fresh)
}

// assessAs is assess with a standing.
func (tr *turn) assessAs(r *request, lk look, fresh bool) (playbook.Assessment, look) {
	actor := r.Requester
	if r.Endorsement != nil {
		actor = r.Endorsement.By
	}
	if r.Unvouched && r.Endorsement == nil {
		// Who can comment can read; no more is lent by a text that may be
		// anybody's.
		lk = look{Standing: playbook.Standing{Permission: playbook.PermissionRead, Roles: []string{}}}
	}
	weigh, excluded := tr.attempts()
	_, granted := tr.grant(r)
	book := tr.policy(fresh)
	a := book.AssessEscalation(playbook.Escalation{
		Action: r.Action, Target: r.Target, Symptoms: r.Symptoms, Attempts: weigh, Excluded: excluded, Since: tr.st.Since,
		BreakGlass: playbook.BreakGlass{Requested: r.BreakGlass, Authorized: granted},
		Standing:   lk.Standing, Actor: actor.Login, Request: r.ID, Now: tr.now,
	})
	if a.Code == playbook.CodeClassMatrixDenied && lk.rolesUnread() {
		// A role might have opened it: not to know is no denial.
		lk.Err, lk.Standing.Permission = lk.RoleErr, playbook.PermissionUnknown
		return tr.assessAs(r, lk, fresh)
	}
	tr.refuseInvalid(&a, r, weigh)
	if rung, ok := book.Rung(r.Action); ok && rung.Gated && a.Allowed && !tr.named() {
		why := "gated rungs are approved only in repositories that the operator's REPOSITORIES names in full, not by a wildcard"
		a.Allowed, a.Code = false, playbook.CodeClassMatrixDenied
		a.Matrix = playbook.MatrixAnswer{Why: why}
		a.Reasons = append([]string{why}, a.Reasons...)
		a.Missing = append(a.Missing, playbook.Missing{What: "repository", Who: "the bot's operator", Text: "name this repository in full in `REPOSITORIES`"})
	}
	if r.Unvouched && r.Endorsement == nil && !a.Matrix.Allowed {
		a.Matrix.Why = "I found this request later, while looking for what I had missed, and cannot tell whether it is its author's own word"
		a.Reasons[0] = a.Matrix.Why
		a.Missing = append([]playbook.Missing{{What: "vouch", Who: "its author", Text: "post it again, in a new comment", Post: r.line()}}, a.Missing...)
	}
	return a, lk
}

// renamed gives the account of a request's text under its present login, where
// the one it had is no longer its own: rights hang on the id, and permissions
// can only be asked for by login.
func (tr *turn) renamed(r *request, actor forge.Account, lk look) (forge.Account, bool) {
	if !lk.Stranger && !errors.Is(lk.Err, forge.ErrNotFound) {
		return actor, false
	}
	of := r.Trigger
	if r.Endorsement != nil {
		of = r.Endorsement.Comment
	}
	t, err := tr.fetch(tr.ctx, of)
	if err != nil || t.author.ID != actor.ID || t.author.Login == actor.Login {
		return actor, false
	}
	if r.Endorsement != nil {
		r.Endorsement.By.Login = t.author.Login
	} else {
		r.Requester.Login = t.author.Login
	}
	return t.author, true
}

// standingFor looks an account up as far as the rung needs: who can comment
// can read, and the self-service rungs need no more.
func (tr *turn) standingFor(action string, a forge.Account, fresh bool) look {
	if rung, ok := tr.policy(fresh).Rung(action); !ok || rung.SelfService {
		return look{Standing: playbook.Standing{Permission: playbook.PermissionRead, Roles: []string{}}}
	}
	lk := tr.standing(tr.ctx, a, fresh)
	if a.ID == tr.text.author.ID && lk.Standing.Permission >= playbook.PermissionWrite {
		tr.low = false
	}
	return lk
}

// grant is the break-glass grant in force for a request.
func (tr *turn) grant(r *request) (playbook.Grant, bool) {
	if !r.BreakGlass {
		return playbook.Grant{}, false
	}
	return tr.b.grantFor(tr.ctx, tr.t.Forge, tr.repo, tr.t.Number, r.Action, tr.now)
}

// named reports whether the repository is named in full: only there are gated
// rungs approved, because whoever may create a repository is its admin.
func (tr *turn) named() bool {
	ok, err := tr.b.namedIn(tr.ctx, tr.t.Forge, tr.repo)
	if err != nil && tr.err == nil {
		tr.err = err
	}
	return ok
}

// weigh asks the gate, and before it would approve a gated rung lists the
// whole thread and reads standings afresh, and asks again.
func (tr *turn) weigh(r *request) (playbook.Assessment, look) {
	a, lk := tr.assess(r, tr.listed)
	if rung, ok := tr.policy(false).Rung(r.Action); tr.err != nil || !ok || !a.Allowed || !rung.Gated || tr.listed {
		return a, lk
	}
	upTo := tr.order(tr.text.Object)
	if tr.ev.Action != forge.ActionCreated {
		upTo = tr.t.MaxComment
	}
	if err := tr.relist(tr.ctx, upTo); err != nil {
		tr.err = err
		return a, lk
	}
	tr.listed = true
	return tr.assess(r, true)
}

// judge decides on the open request and says so: in the answer to the text in
// hand, or under key where no text asked.
func (tr *turn) judge(r *request, key string) {
	if tr.err != nil {
		return
	}
	a, lk := tr.weigh(r)
	if tr.err != nil {
		return
	}
	if a.Code == playbook.CodeStandingUnknown && tr.holdOn(lk) {
		return
	}
	if tr.broken != "" {
		tr.endBroken()
		return
	}
	tr.rule(r, a, lk, key)
}

// standing is the session's, within what the text in hand may still wait for
// its first answer: one call that hangs must not use it all up.
func (tr *turn) standing(ctx context.Context, a forge.Account, fresh bool) look {
	if tr.ev.ID != 0 {
		left := undecidedAfter - tr.now.Sub(tr.ev.ReceivedAt)
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, max(left, 2*time.Second))
		defer cancel()
	}
	if lk, ok := tr.looks[a]; ok && fresh {
		return lk // asked for in this very turn
	}
	lk := tr.session.standing(ctx, a, fresh)
	if lk.Asked && lk.Err == nil && lk.RoleErr == nil {
		if tr.looks == nil {
			tr.looks = map[forge.Account]look{}
		}
		tr.looks[a] = lk
	}
	return lk
}

// holdOn has the turn come again in a moment where a standing could not be read
// and may be read then: an error is no denial. It is false when the text has
// waited long enough for its first answer, or would by then.
func (tr *turn) holdOn(lk look) bool {
	wait := max(time.Second, lk.wait())
	if !lk.passing() || tr.ev.ID == 0 || tr.now.Add(wait).Sub(tr.ev.ReceivedAt) > undecidedAfter {
		return false
	}
	tr.err = &waitError{d: wait}
	return true
}

// rule writes the verdict into the state and makes its section.
func (tr *turn) rule(r *request, a playbook.Assessment, lk look, key string) {
	before, refusedAt := r.Verdict, r.DecidedAt
	rung, _ := tr.policy(false).Rung(r.Action)
	r.Code, r.Pointed = a.Code, false
	defer tr.decidedNow(r)
	sec := templates.Section{Reason: r.Reason, Taken: tr.taken()}
	switch {
	case a.Allowed:
		r.Verdict, r.MustAsk, r.Undecided = verdictApproved, false, nil
		sec.Kind = templates.KindGoAhead
		if rung.Gated {
			sec.Kind = templates.KindApproved
			tr.approve(r, a, &sec)
			if before == verdictRefused || before == verdictUndecided {
				sec.Since = tr.since(r, a, before, refusedAt)
			}
		}
		tr.reaction = forge.ReactionApproved
	case a.Code == playbook.CodeStandingUnknown:
		r.Verdict = verdictUndecided
		if r.Undecided == nil {
			r.Undecided = &undecided{Next: tr.now.Add(max(undecidedEvery, lk.wait())), Until: tr.now.Add(undecidedUntil)}
		}
		sec.Kind, sec.Status, sec.Until = templates.KindUndecided, lk.status(), r.Undecided.Until
		sec.Forge = tr.t.Forge
		tr.reaction = forge.ReactionConfused
	default:
		r.refuse(a.Code, tr.now)
		sec.Kind = templates.KindRefused
		tr.reaction = forge.ReactionRefused
	}
	if !a.Allowed {
		tr.findHelp(r, a, &sec)
	}
	tr.publish(r, a, lk.Standing, sec, key)
}

// findHelp adds who can help: mentioned live once per request that needs an
// endorsement, and the grant that break-glass would need.
func (tr *turn) findHelp(r *request, a playbook.Assessment, sec *templates.Section) {
	for _, m := range a.Missing {
		if m.What != "endorsement" && m.What != "standing" {
			continue
		}
		sec.Endorsers = tr.b.Playbook.NotifyOn(tr.t.Forge)
		if !r.Notified && a.Code != playbook.CodeStandingUnknown {
			sec.Notify, r.Notified = tr.b.Playbook.NotifyOn(tr.t.Forge), true
		}
	}
	if a.BreakGlass.Requested && !a.BreakGlass.Authorized {
		sec.Grant = fmt.Sprintf("%s#%d:%s@%s", tr.repo.FullName(), tr.t.Number, r.Action,
			tr.now.Add(2*tr.b.Playbook.ApprovalTTL()).Truncate(time.Hour).Format(time.RFC3339))
	}
}

// approve makes the approval: it names what it rests on, and ends at the
// earlier of its time and the grant's.
func (tr *turn) approve(r *request, a playbook.Assessment, sec *templates.Section) {
	r.Approvals++
	ap := &approval{
		ID: fmt.Sprintf("%s.%d", r.ID, r.Approvals), Request: r.ID, Action: r.Action, Target: r.Target,
		At: tr.now, Expires: tr.now.Add(tr.b.Playbook.ApprovalTTL()), By: r.Requester, Digest: digest(a.Counted),
	}
	if r.Endorsement != nil {
		ap.By, ap.Endorser = r.Endorsement.By, r.Endorsement.By.Login
	}
	if a.BreakGlass.Used {
		g, ok := tr.grant(r)
		if !ok { // the operator took it back between two looks
			tr.err = &waitError{d: time.Second}
			return
		}
		ap.Grant, sec.Grant = g.Text, g.Text
		if !g.Expiry.IsZero() && g.Expiry.Before(ap.Expires) {
			ap.Expires = g.Expiry
		}
		sec.Notify = tr.b.Playbook.NotifyOn(tr.t.Forge)
		tr.st.BreakGlassUsed = true
	}
	tr.st.Approval = ap
}

// digest names the evidence an approval rests on.
func digest(counted []playbook.Attempt) string {
	h := sha256.New()
	for _, c := range counted {
		fmt.Fprintf(h, "%q %q %q %q %d\n", c.Action, c.Outcome, c.Actor, c.Target, c.RecordedAt.Unix())
	}
	return hex.EncodeToString(h.Sum(nil))
}

// since says what is new against the last refusal.
func (tr *turn) since(r *request, a playbook.Assessment, before string, at time.Time) *templates.Since {
	out := &templates.Since{RefusedAt: at, Standing: before == verdictUndecided}
	// The forge dates texts by whole seconds; their order tells apart what came
	// in the second of the refusal.
	later := map[string]bool{}
	for _, o := range tr.ordered() {
		later[ref(o.Object.Object)] = tr.order(o.Object.Object) > r.DecidedOn
	}
	for _, c := range a.Counted {
		if later[c.Ref] || c.PostedAt.After(at) {
			out.New = append(out.New, c)
		}
	}
	if e := r.Endorsement; e != nil && (tr.order(e.Comment) > r.DecidedOn || e.At.After(at)) {
		out.Endorser = e.By.Login
	}
	return out
}

// decidedNow notes when, and on which text, the request was last decided on.
func (tr *turn) decidedNow(r *request) {
	r.DecidedAt, r.DecidedOn = tr.now, max(r.DecidedOn, tr.order(tr.text.Object))
}

// publish makes the decision of an assessment, audits it, and puts it into
// the answer to the text in hand or under a key of its own.
func (tr *turn) publish(r *request, a playbook.Assessment, st playbook.Standing, sec templates.Section, key string) {
	d, err := tr.decide(r, a, st, key)
	if err != nil {
		tr.err = err
		return
	}
	sec.D = d
	tr.fill(&sec, a)
	if key == "" {
		tr.decision = d
		tr.add(sec)
		tr.tellOverlay()
		return
	}
	account := int64(0)
	if tr.ev.ID != 0 && sec.Kind != templates.KindRevoked {
		account = tr.text.author.ID
	}
	tr.extra = append(tr.extra, keyed{key, account, templates.Answer{Sections: []templates.Section{sec}, Decision: d}})
}

// fill adds the rungs that a section's words are about.
func (tr *turn) fill(sec *templates.Section, a playbook.Assessment) {
	book := tr.policy(false)
	if rung, ok := book.Rung(a.Action); ok {
		sec.Rung = &rung
	}
	if next, ok := book.Rung(a.Next); ok {
		sec.Next = &next
		if r := tr.st.Request; r != nil {
			sec.NextSymptom = book.SymptomStartingAt(a.Next, r.Symptoms)
		}
	}
}

// decide wraps an assessment into the published decision and audits it. r is
// nil for a bare assessment.
func (tr *turn) decide(r *request, a playbook.Assessment, st playbook.Standing, key string) (*playbook.Decision, error) {
	d := &playbook.Decision{
		Schema: playbook.DecisionSchema, Assessment: a, State: stateNone, Verdict: verdictNone, Standing: st,
		Symptoms: []string{}, Rejections: []playbook.RejectedText{}, Requester: tr.text.author.Login,
		Playbook: tr.policy(false).Identity(), DecidedAt: tr.now,
	}
	switch {
	case a.Allowed:
		d.Verdict = verdictApproved
	case a.Code == playbook.CodeStandingUnknown:
		d.Verdict = verdictUndecided
	default:
		d.Verdict = verdictRefused
	}
	if tr.text.Kind == forge.ObjectComment {
		d.AnswersComment = tr.text.ID
	}
	if key == "" {
		key = answerKey(tr.text.Object)
	}
	e := AuditEntry{What: "decision", Key: key, Action: a.Action, Target: a.Target, Actor: tr.text.author.Login, ActorID: tr.text.author.ID,
		Verdict: d.Verdict, Code: a.Code, Stand: &st, BreakGlass: a.BreakGlass.Used, Known: evidence(a)}
	if r != nil {
		tr.decideRequest(d, r, &e)
	}
	if err := tr.audit(e); err != nil {
		return nil, err
	}
	d.Audit = &playbook.AuditMark{Seq: tr.st.Audit.Seq, Hash: tr.st.Audit.Hash}
	return d, nil
}

// decideRequest adds what the open request says to a decision and its entry.
func (tr *turn) decideRequest(d *playbook.Decision, r *request, e *AuditEntry) {
	d.Request, d.State, d.Requester = r.ID, stateOpen, r.Requester.Login
	d.Symptoms = append(d.Symptoms, r.Symptoms...)
	e.Request, e.Requester = r.ID, r.Requester.Login
	if r.Endorsement != nil {
		login := r.Endorsement.By.Login
		d.Endorser, e.Endorser = &login, login
	}
	if ap := tr.st.Approval; ap != nil && ap.Request == r.ID {
		until := ap.Expires
		d.State, d.ApprovedUntil, e.Until, e.Grant, e.What = stateApproved, &until, &until, ap.Grant, "approval"
	}
	if r.Undecided != nil {
		s := int(undecidedEvery / time.Second)
		d.RetryAfterS = &s
	}
}
