package bot

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"playbook-bot/bot/comment"
	"playbook-bot/bot/store"
	"playbook-bot/playbook"
	"playbook-bot/templates"
)

// timers does what is due by the clock alone: an approval's end, a request's,
// another look at a standing that could not be read.
func (s *session) timers(ctx context.Context) (ran bool, err error) {
	r, ap := s.st.Request, s.st.Approval
	switch {
	case ap != nil && !s.now.Before(ap.Expires):
		return true, s.expire(ctx)
	case r != nil && !s.now.Before(r.At.Add(s.b.Playbook.RequestTTL())):
		if err := s.endRequest(store.Event{}, "expired", stateExpired); err != nil {
			return true, err
		}
		return true, s.commit(ctx)
	case r != nil && r.Undecided != nil && !s.now.Before(r.Undecided.Next):
		return true, s.lookAgain(ctx)
	}
	return false, nil
}

// clockTurn is a turn that no text triggered; it speaks about the text that
// opened the request.
func (s *session) clockTurn(ctx context.Context) *turn {
	r := s.st.Request
	tr := s.newTurn(store.Event{}, text{Object: r.Trigger, author: r.Requester}, comment.Read{})
	tr.ctx = ctx
	return tr
}

// expire ends an approval. Unless the log tells how the approved action went,
// one comment asks; silence is audited.
func (s *session) expire(ctx context.Context) error {
	ap, r := s.st.Approval, s.st.Request
	tr := s.clockTurn(ctx)
	reported := slices.ContainsFunc(tr.everyAttempt(), func(a playbook.Attempt) bool {
		return a.Action == ap.Action && !a.PostedAt.Before(ap.At.Truncate(time.Second))
	})
	s.st.Approval = nil
	r.Verdict, r.MustAsk = verdictExpired, true
	if err := s.audit(AuditEntry{What: "expired", Request: r.ID, Action: r.Action, Target: r.Target, Requester: r.Requester.Login}); err != nil {
		return err
	}
	if !reported {
		if err := s.audit(AuditEntry{What: "outcome_unreported", Request: r.ID, Action: r.Action, Target: r.Target}); err != nil {
			return err
		}
		a, lk := tr.assess(r, false)
		sec := templates.Section{Kind: templates.KindExpired, ApprovedAt: ap.At, OutcomeMissing: true, Open: r.ID, Post: r.line()}
		tr.publish(r, a, lk.Standing, sec, expiredKey(ap.ID))
		if n := len(tr.extra); n > 0 {
			tr.extra[n-1].a.Decision.Verdict = verdictExpired
		}
	}
	return tr.commit(ctx)
}

// lookAgain reads a standing, or a repository's playbook, that could not be
// read, and decides by itself once it can.
func (s *session) lookAgain(ctx context.Context) error {
	r := s.st.Request
	tr := s.clockTurn(ctx)
	a, lk := tr.assess(r, true)
	if a.Code != playbook.CodeStandingUnknown {
		a, lk = tr.weigh(r)
	}
	var wait *waitError
	switch {
	case errors.As(tr.err, &wait) && len(wait.found) > 0:
		s.reset()
		s.change.Found = wait.found
		return s.commit(ctx)
	case tr.err != nil && !isWait(tr.err) && !errForge(tr.err):
		return tr.err
	case tr.err != nil || a.Code == playbook.CodeStandingUnknown || a.Code == playbook.CodePlaybookInvalid && r.Code == a.Code:
		s.reset()
		r = s.st.Request
		if last := r.Undecided.Next; last.Add(undecidedEvery).After(r.Undecided.Until) {
			// Looked for long enough; the next one to ask is looked at afresh.
			r.Undecided = nil
		} else {
			r.Undecided.Next = s.now.Add(max(undecidedEvery, lk.wait()))
		}
		return s.commit(ctx)
	case tr.broken != "":
		tr.endBroken()
		return tr.commit(ctx)
	}
	r.Flips++
	tr.rule(r, a, lk, flipKey(r.ID, r.Flips))
	// Nobody wrote anything now: there is no text to react to.
	tr.reaction = ""
	return tr.commit(ctx)
}

// tampered follows an edit (body) or deletion ("") of one of the bot's own
// comments by somebody else: audited, and restored once.
func (s *session) tampered(ctx context.Context, ev store.Event, body string) error {
	a, err := s.b.Ledger.AnswerByComment(ctx, s.t.ID, ev.Object.ID)
	if isNotStored(err) {
		s.noticeBehind(ctx, ev.Object, body)
		return s.unknownOwn(ctx, ev, body)
	}
	if err != nil {
		return err
	}
	whole, resumed := body != "" && canonical(body) == canonical(a.Body), s.st.Restoring == ev.Object.ID
	if whole && !resumed {
		s.finish(ev, "as it should be")
		return s.commit(ctx)
	}
	known, err := s.lookup(ctx, ev.Object)
	if err != nil {
		return err
	}
	sha := bodySHA(body)
	if known != nil && known.BodySHA == sha && (body != "" || known.Deleted) && !resumed {
		s.finish(ev, "known already")
		return s.commit(ctx)
	}
	again := slices.Contains(s.st.Restored, ev.Object.ID) || strings.HasPrefix(a.Key, restoredPrefix)
	if !again && body != "" && !resumed {
		// The intention first. The deed shows no trace of what was mended: were
		// the process to end before the record, nobody would ever hear of it.
		s.st.Restoring = ev.Object.ID
		return s.commit(ctx)
	}
	s.st.Restoring = 0
	if known != nil {
		known.BodySHA, known.Deleted, known.dirty = sha, body == "", true
	}
	what := "restored"
	if again {
		what = "tampered"
	}
	s.observe = append(s.observe, Observation{What: "marker_tampered"})
	if err := s.audit(AuditEntry{What: what, Key: a.Key, Actor: ev.Sender.Login, ActorID: ev.Sender.ID, Note: ref(ev.Object)}); err != nil {
		return err
	}
	if !again {
		if err := s.putBack(ctx, a, known, body == ""); err != nil {
			return err
		}
	}
	s.finish(ev, "")
	return s.commit(ctx)
}

// putBack has an answer stand again as it was posted; known is what is stored
// of its comment, or nil.
func (s *session) putBack(ctx context.Context, a store.Answer, known *object, deleted bool) error {
	s.observe = append(s.observe, Observation{What: "restored"})
	s.st.Restored = append(s.st.Restored, a.CommentID)
	if deleted {
		s.repost(a)
		return nil
	}
	// Idempotent, so it needs no claim: a crash before the record repeats it.
	if err := s.forge.EditComment(ctx, s.t.Repo.ID, a.CommentID, a.Body); err != nil {
		return err
	}
	if known != nil {
		known.BodySHA = bodySHA(a.Body)
	}
	return nil
}

// repost has a deleted answer posted again, as an answer of its own.
func (s *session) repost(a store.Answer) {
	body := canonical(a.Body)
	if at := markerLine.FindStringIndex(body); at != nil {
		body = body[:at[0]]
	}
	// It stands below all that was said since: a revoked approval must not
	// read as one just given.
	body = fmt.Sprintf("♻️ Posted again: somebody deleted this answer of %s. What was said after it holds, whatever it says.\n\n%s",
		a.CreatedAt.UTC().Format("2006-01-02 15:04 UTC"), body)
	m := marker{Key: restoredKey(a.Key), Chain: s.st.Audit.Chain, Seq: s.st.Audit.Seq, Hash: s.st.Audit.Hash}
	s.change.Answers = append(s.change.Answers, store.Answer{Key: m.Key, Body: sign(s.b.Secrets()[0], s.place(), m, body),
		Trigger: a.Trigger, Status: store.AnswerPending})
}

// ApprovalStatus is what `playbook-bot approval` tells.
type ApprovalStatus struct {
	Thread   string    `json:"thread"`
	Request  string    `json:"request"`
	Standing bool      `json:"standing"`
	Action   string    `json:"action,omitempty"`
	Target   string    `json:"target,omitempty"`
	Endorser string    `json:"endorser,omitempty"`
	Grant    string    `json:"grant,omitempty"`
	Digest   string    `json:"digest,omitempty"`
	At       time.Time `json:"at,omitzero"`
	Expires  time.Time `json:"expires,omitzero"`
	Why      string    `json:"why"`
}

// ApprovalOf reads from a stored thread whether a request's approval stands.
// Labels, reactions and comments are no proof; this is.
func ApprovalOf(t *store.Thread, request string, now time.Time) (ApprovalStatus, error) {
	out := ApprovalStatus{Thread: t.Repo.FullName(), Request: request}
	st, err := decodeState(t.State)
	if err != nil {
		return out, err
	}
	ap := st.Approval
	switch {
	case ap == nil || ap.Request != request:
		out.Why = "no approval of this request stands"
	case !now.Before(ap.Expires):
		out.Why = "the approval is over"
	case len(t.Events) > 0:
		// What waits may revoke it: an answer now would be about a record
		// that has changed.
		out.Why = "changes in the thread are still to be looked at"
	default:
		out.Standing, out.Why = true, "the approval stands"
	}
	if ap != nil && ap.Request == request {
		out.Action, out.Target, out.Endorser, out.Grant, out.Digest = ap.Action, ap.Target, ap.Endorser, ap.Grant, ap.Digest
		out.At, out.Expires = ap.At, ap.Expires
	}
	return out, nil
}
