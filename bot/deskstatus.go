package bot

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"playbook-bot/bot/comment"
	"playbook-bot/bot/forge"
	"playbook-bot/bot/store"
	"playbook-bot/playbook"
)

// Inquiry asks how a request stands.
type Inquiry struct {
	Account    string
	Repository string
	Number     int64
	// Request is its id, such as "41/1"; empty: the thread's last.
	Request string
}

// Status gives the decision in force for a request, from the database and with
// standing as it is now, if the account may read the repository. It decides
// and audits nothing.
func (d *Desk) Status(ctx context.Context, q Inquiry) (playbook.Decision, error) {
	s, err := d.enter(ctx, q.Account, q.Repository)
	if err != nil {
		return playbook.Decision{}, err
	}
	t, err := d.b.Ledger.FindThread(ctx, d.forge, s.repo.ID, q.Number)
	if isNotStored(err) || err == nil && len(t.State) == 0 {
		return playbook.Decision{}, &DeskError{Why: fmt.Sprintf("the bot has said nothing in issue %d yet", q.Number), Cure: "ask again in a few seconds"}
	}
	if err != nil {
		return playbook.Decision{}, err
	}
	v, err := d.view(s, t)
	if err != nil {
		return playbook.Decision{}, err
	}
	r, ended := v.st.Request, false
	if r == nil {
		r, ended = v.st.Last, true
	}
	switch {
	case r == nil && len(t.Events) > 0:
		return playbook.Decision{}, &DeskError{Why: "the bot is still looking at that issue", Cure: "ask again in a few seconds"}
	case r == nil:
		return playbook.Decision{}, &DeskError{Why: "no request was ever made in that issue"}
	case q.Request != "" && r.ID != q.Request:
		return playbook.Decision{}, &DeskError{Why: "request " + q.Request + " is not the last one of that issue, so it is over", Cure: "ask about " + r.ID}
	case v.st.Approval != nil && (len(t.Events) > 0 || !v.now.Before(v.st.Approval.Expires)):
		// What waits may revoke it: an answer now would be about a record that
		// has changed.
		return playbook.Decision{}, &DeskError{Why: "something new in that issue is still to be looked at", Cure: "ask again in a few seconds"}
	}
	return v.status(ctx, r, ended)
}

// view is a thread as it is stored, for looking at only: it holds no lease.
func (d *Desk) view(s seat, t *store.Thread) (*session, error) {
	v := &session{b: d.b, forge: d.b.Forges[d.forge], self: s.self, t: t, repo: s.repo, objects: map[forge.Object]*object{}, now: t.Now.UTC()}
	var err error
	if v.old, err = decodeState(t.State); err != nil {
		return nil, err
	}
	v.st = v.old.clone()
	for _, row := range t.Records {
		o := &object{Object: row}
		if err := decodeObject(row.Data, &o.data); err != nil {
			return nil, err
		}
		v.objects[row.Object] = o
	}
	return v, nil
}

func (s *session) status(ctx context.Context, r *request, ended bool) (playbook.Decision, error) {
	tr := s.newTurn(store.Event{}, text{Object: r.Trigger, author: r.Requester}, comment.Read{})
	tr.ctx = ctx
	a, lk := tr.assess(r, false)
	if tr.err != nil {
		return playbook.Decision{}, tr.err
	}
	d := playbook.Decision{
		Schema: playbook.DecisionSchema, Assessment: a, Request: r.ID, State: stateOpen, Verdict: r.Verdict, Requester: r.Requester.Login,
		Symptoms: append([]string{}, r.Symptoms...), Standing: lk.Standing, Rejections: []playbook.RejectedText{},
		Playbook: tr.policy(false).Identity(), DecidedAt: r.DecidedAt,
	}
	if r.Endorsement != nil {
		login := r.Endorsement.By.Login
		d.Endorser = &login
	}
	switch ap := s.st.Approval; {
	case ended:
		d.State, d.Verdict = s.st.Ended, verdictNone
	case ap != nil && ap.Request == r.ID:
		until := ap.Expires
		d.State, d.ApprovedUntil = stateApproved, &until
	case r.Verdict == verdictExpired || r.Verdict == "":
		d.Verdict = verdictNone
	}
	if r.Undecided != nil && !ended {
		seconds := int(undecidedEvery / time.Second)
		d.RetryAfterS = &seconds
	}
	return d, nil
}

// Rights are an account's standing in a repository ("owner/name"; empty: the
// one that REPOSITORIES names, if it is only one), and whether break-glass on
// an action is authorised there. An error is standing unknown; an account that
// cannot read the repository has none.
func (d *Desk) Rights(ctx context.Context, login, repository, action string) (playbook.Standing, bool, error) {
	if repository == "" {
		here := d.b.Repositories.On(d.forge)
		if len(here) != 1 || strings.HasSuffix(here[0], "/*") {
			return playbook.Standing{}, false, errors.New("no repository is named to read a standing in")
		}
		repository = here[0]
	}
	s, err := d.enter(ctx, login, repository)
	var refused *DeskError
	if errors.As(err, &refused) && refused.Cure == "" {
		return playbook.Standing{Permission: playbook.PermissionNone, Roles: []string{}}, false, nil
	}
	if err != nil {
		return playbook.Standing{}, false, err
	}
	_, granted := d.b.grantFor(ctx, d.forge, s.repo, 0, action, d.b.Now())
	return s.look.Standing, granted, nil
}
