package bot

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"playbook-bot/bot/forge"
	"playbook-bot/bot/store"
	"playbook-bot/templates"
)

// Keys of answers. A key makes an answer unique in its thread for ever:
// whatever crashes, at most one lasting comment bears it.
func answerKey(o forge.Object) string      { return fmt.Sprintf("answer:%s:%d", o.Kind, o.ID) }
func hintKey(o forge.Object) string        { return fmt.Sprintf("hint:%s:%d", o.Kind, o.ID) }
func flipKey(request string, n int) string { return fmt.Sprintf("flip:%s:%d", request, n) }
func revokeKey(approval string) string     { return "revoke:" + approval }
func expiredKey(approval string) string    { return "expired:" + approval }

// restoredKey is the key of an answer that somebody deleted, posted again.
func restoredKey(k string) string { return restoredPrefix + k }

const restoredPrefix = "restored:"

// answeredObject is the text that an answer of this key is about, if it was
// given to one text: an answer, restored or not, or a hint.
func answeredObject(k string) (o forge.Object, ok bool) {
	k = strings.TrimPrefix(k, restoredPrefix)
	for _, what := range []string{"answer:", "hint:"} {
		for _, kind := range []forge.ObjectKind{forge.ObjectIssue, forge.ObjectComment} {
			if n, err := fmt.Sscanf(k, what+string(kind)+":%d", &o.ID); n == 1 && err == nil {
				o.Kind = kind
				return o, true
			}
		}
	}
	return forge.Object{}, false
}

// Notes on a claimed answer: how far the search for a POST without a known
// end has come. With any other note it has not begun.
const (
	noteWaiting = "waiting until the POST can no longer take effect"
	noteLooked  = "looked once, not there"
)

// say renders an answer and adds it to the turn's change, pending.
func (s *session) say(key string, trigger forge.Object, account int64, low bool, a templates.Answer) error {
	a.Bot = s.self.Login
	body, err := s.b.Renderer.Render(a)
	if err != nil {
		return fmt.Errorf("render the answer %s: %w", key, err)
	}
	head := s.st.Audit
	m := marker{Key: key, Chain: head.Chain, Seq: head.Seq, Hash: head.Hash}
	s.change.Answers = append(s.change.Answers, store.Answer{
		Key: key, Body: sign(s.b.Secrets()[0], s.place(), m, body), Trigger: trigger, Account: account, Low: low,
		Status: store.AnswerPending,
	})
	o := Observation{What: "answer"}
	if a.Decision != nil {
		o.Verdict, o.Code = a.Decision.Verdict, string(a.Decision.Code)
	}
	s.observe = append(s.observe, o)
	return nil
}

// deliver brings one answer a step further, from decision to proof. Creating
// a comment is not idempotent: between claim and record only the thread
// itself knows whether it took effect.
func (s *session) deliver(ctx context.Context, a store.Answer) (bool, error) {
	if a.NextAt.After(s.now) {
		return false, nil
	}
	if a.Status == store.AnswerClaimed {
		return s.reconcile(ctx, a)
	}
	return s.post(ctx, a)
}

func (s *session) post(ctx context.Context, a store.Answer) (bool, error) {
	// The deadline is measured from before the claim: whatever the database's
	// clock says later, this POST is over by then.
	limit := time.Now().Add(s.b.RequestTimeout)
	s.b.Fail("claiming")
	claim, err := s.b.Ledger.ClaimAnswer(ctx, s.lease, a.Key, s.t.MaxComment, s.b.RequestTimeout)
	if err != nil {
		return false, fmt.Errorf("claim the answer %s: %w", a.Key, err)
	}
	s.b.Fail("claimed")
	if !time.Now().Before(limit) {
		// The process slept past its own deadline (SIGSTOP, a suspended
		// machine); somebody else may be looking for this POST already.
		return true, nil
	}
	post, cancel := context.WithDeadline(ctx, limit)
	c, err := s.forge.CreateComment(post, s.t.Repo.ID, s.t.Number, claim.Body)
	cancel()
	s.courtesy.pay()
	s.b.Fail("posted")
	if err != nil {
		return s.postFailed(ctx, claim, err)
	}
	return true, s.recordPosted(ctx, claim, c.ID, "")
}

// recordPosted notes that an answer stands.
func (s *session) recordPosted(ctx context.Context, a store.Answer, id int64, note string) error {
	a.CommentID, a.NextAt = id, time.Time{}
	s.settle(a, store.AnswerPosted, note)
	s.change.Objects = append(s.change.Objects, store.Object{
		Object: forge.Object{Kind: forge.ObjectComment, ID: id}, Author: s.self, BodySHA: bodySHA(a.Body),
	})
	err := s.commit(ctx)
	if errors.Is(err, store.ErrFenced) {
		// A successor may have looked too early and posted as well. Both see
		// the double; the later one goes.
		s.tidy(context.WithoutCancel(ctx), a.Key)
	}
	s.b.Fail("recorded")
	return err
}

func (s *session) postFailed(ctx context.Context, a store.Answer, err error) (bool, error) {
	var fe *forge.Error
	if !errors.As(err, &fe) {
		fe = &forge.Error{Op: "post the answer", Kind: forge.ErrRetry, Ambiguous: true, Cause: err}
	}
	s.b.Log.WarnContext(ctx, "answer not posted", "thread", s.t.Number, "key", a.Key, "ambiguous", fe.Ambiguous, "error", fe)
	if ctx.Err() != nil {
		return false, ctx.Err() // the claim stays open; whoever comes next looks for it
	}
	if fe.Ambiguous {
		settle := s.b.SettleUnknown
		if fe.FromForge {
			settle = s.b.Settle
		}
		a.NextAt = later(a.Deadline, s.now).Add(settle)
		if found, ferr := s.find(ctx, a); ferr == nil && found != 0 {
			s.observe = append(s.observe, Observation{What: "adopted"})
			return true, s.recordPosted(ctx, a, found, "adopted")
		}
		s.settle(a, store.AnswerClaimed, noteWaiting)
		return false, s.commit(ctx)
	}
	if fe.RetryAfter == 0 || fe.Kind != forge.ErrRetry { // waiting as told is no failed try
		a.Tries++
	}
	if errors.Is(err, forge.ErrPermanent) || lasting(err, a.Tries) || a.Tries >= maxTries {
		return true, s.giveUp(ctx, a, fe.Error())
	}
	a.NextAt = s.now.Add(backoff(max(a.Tries-1, 0), err))
	s.settle(a, store.AnswerPending, fe.Error())
	return false, s.commit(ctx)
}

// giveUp ends an answer that will not be posted, and says so to the operator.
func (s *session) giveUp(ctx context.Context, a store.Answer, why string) error {
	s.b.Log.ErrorContext(ctx, "answer given up", "thread", s.t.Number, "key", a.Key, "tries", a.Tries, "why", why)
	s.observe = append(s.observe, Observation{What: "dead"})
	a.NextAt = time.Time{}
	s.settle(a, store.AnswerDead, why)
	return s.commit(ctx)
}

// reconcile looks for the comment of a claim whose end is not known, and
// posts again only after it could no longer appear and two looks found
// nothing.
func (s *session) reconcile(ctx context.Context, a store.Answer) (bool, error) {
	found, err := s.find(ctx, a)
	if err != nil {
		a.Tries++
		if !errors.Is(err, forge.ErrRetry) && (errors.Is(err, forge.ErrPermanent) || lasting(err, a.Tries) || a.Tries >= maxTries) {
			return true, s.giveUp(ctx, a, note(err))
		}
		// To look is harmless, and while a forge is down nothing is given up.
		wait := backoff(a.Tries-1, err)
		if wait <= time.Hour {
			wait = min(wait, maxSetback)
		}
		a.NextAt = s.now.Add(wait)
		s.settle(a, store.AnswerClaimed, a.Note)
		return false, s.commit(ctx)
	}
	if found != 0 {
		s.observe = append(s.observe, Observation{What: "adopted"})
		return true, s.recordPosted(ctx, a, found, "adopted")
	}
	switch a.Note {
	default:
		// Nothing is known of this claim's POST. The note may be an earlier
		// try's: that one is over, and says nothing about this one.
		a.NextAt = later(a.Deadline, s.now).Add(s.b.SettleUnknown)
		s.settle(a, store.AnswerClaimed, noteWaiting)
	case noteWaiting:
		a.NextAt = s.now.Add(s.b.Settle)
		s.settle(a, store.AnswerClaimed, noteLooked)
	case noteLooked:
		if a.Tries++; a.Tries >= maxTries {
			return true, s.giveUp(ctx, a, "posted again and again, and never there")
		}
		a.NextAt = s.now.Add(backoff(a.Tries-1, nil))
		s.settle(a, store.AnswerPending, "two looks found nothing")
	}
	return false, s.commit(ctx)
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// find gives the id of the comment that bears the answer's key, 0 for none.
func (s *session) find(ctx context.Context, a store.Answer) (int64, error) {
	var since time.Time
	if o, err := s.b.Ledger.Object(ctx, s.t.ID, a.Trigger); err == nil {
		since = o.CreatedAt // the forge's own clock, never ours
	}
	comments, err := s.forge.Comments(ctx, s.t.Repo.ID, s.t.Number, since)
	if err != nil {
		return 0, err
	}
	ours := s.ours(comments, a.Key, a.After)
	if len(ours) == 0 {
		return 0, nil
	}
	_ = s.deleteDoubles(ctx, ours) // logged; what is left of them the sweep finds
	return ours[0], nil
}

// ours lists the ids of our comments with a key, ascending.
func (s *session) ours(comments []forge.Comment, key string, after int64) []int64 {
	var ids []int64
	for _, c := range comments {
		if c.ID <= after || c.Author.ID != s.self.ID {
			continue
		}
		if m, ok, _ := verify(s.b.Secrets(), s.place(), c.Body); ok && m.Key == key {
			ids = append(ids, c.ID)
		}
	}
	slices.Sort(ids)
	return ids
}

// deleteDoubles keeps the first of our comments with one key: the promise is
// one lasting answer. The first is from then on the answer, whichever of them
// was recorded.
func (s *session) deleteDoubles(ctx context.Context, ids []int64) error {
	var errs []error
	for _, id := range ids[1:] {
		if err := s.forge.DeleteComment(ctx, s.t.Repo.ID, id); err != nil {
			s.b.Log.ErrorContext(ctx, "cannot delete a double of an answer", "thread", s.t.Number, "comment", id, "error", err)
			errs = append(errs, err)
			continue
		}
		s.b.Observe(Observation{What: "double_deleted"})
		errs = append(errs, s.disown(ctx, id, ids[0]))
	}
	return errors.Join(errs...)
}

// disown records that our comment id was a double, now deleted, of another.
func (s *session) disown(ctx context.Context, id, of int64) error {
	known, err := s.lookup(ctx, forge.Object{Kind: forge.ObjectComment, ID: id})
	if err != nil {
		return err
	}
	if known != nil {
		known.Deleted, known.dirty = true, true
	}
	a, err := s.b.Ledger.AnswerByComment(ctx, s.t.ID, id)
	if isNotStored(err) {
		return nil
	}
	if err != nil {
		return err
	}
	a.CommentID = of
	s.settle(a, store.AnswerPosted, "its double was deleted")
	s.change.Objects = append(s.change.Objects, store.Object{
		Object: forge.Object{Kind: forge.ObjectComment, ID: of}, Author: s.self, BodySHA: bodySHA(a.Body)})
	return nil
}

// tidy removes doubles of one key, as a worker that lost its lease must.
func (s *session) tidy(ctx context.Context, key string) {
	ctx, cancel := context.WithTimeout(ctx, s.b.RequestTimeout)
	defer cancel()
	comments, err := s.forge.Comments(ctx, s.t.Repo.ID, s.t.Number, time.Time{})
	if err != nil {
		s.b.Log.ErrorContext(ctx, "cannot look for doubles after a lost lease", "thread", s.t.Number, "error", err)
		return
	}
	if ours := s.ours(comments, key, 0); len(ours) > 1 {
		_ = s.deleteDoubles(ctx, ours)
	}
}

// unknownOwn follows a hint about a comment under our account that nobody
// recorded. A POST that took effect long after anyone could expect it leaves
// such a one: a double, if its answer was posted again meanwhile.
func (s *session) unknownOwn(ctx context.Context, ev store.Event, body string) error {
	known, err := s.lookup(ctx, ev.Object)
	if err != nil {
		return err
	}
	m, ok, _ := verify(s.b.Secrets(), s.place(), body)
	if known == nil && ok {
		comments, err := s.forge.Comments(ctx, s.t.Repo.ID, s.t.Number, time.Time{})
		if err != nil {
			return err
		}
		if ours := s.ours(comments, m.Key, 0); len(ours) > 1 {
			if err := s.deleteDoubles(ctx, ours); err != nil {
				return err
			}
		}
	}
	if known == nil && body != "" && !slices.ContainsFunc(s.change.Objects, func(o store.Object) bool { return o.Object == ev.Object }) {
		s.change.Objects = append(s.change.Objects, store.Object{Object: ev.Object, Author: s.self, BodySHA: bodySHA(body)})
	}
	s.finish(ev, "as it should be")
	return s.commit(ctx)
}
