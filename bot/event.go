package bot

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"time"

	"playbook-bot/bot/comment"
	"playbook-bot/bot/forge"
	"playbook-bot/bot/store"
)

// Limits of what runs without a delivery, and of waiting.
const (
	// foundAge: a command found by listing is too old to run after this.
	foundAge = 24 * time.Hour
	// lateDelivery: a text younger than this may still have its delivery on
	// the way; a listing leaves it alone.
	lateDelivery = 10 * time.Second
	// notYet: how often a text just reported may be missing (a read replica
	// behind its primary) before it is taken for deleted.
	notYet = 3
)

// lasting reports whether an object is gone for good: by the forge's own word
// (410), or because it is still not found after several tries.
func lasting(err error, tries int) bool {
	var fe *forge.Error
	if errors.As(err, &fe) && fe.Status == http.StatusGone {
		return true
	}
	return errors.Is(err, forge.ErrNotFound) && tries >= notYet
}

// gone reports whether the forge says that there is no such object (any more).
func gone(err error) bool { return errors.Is(err, forge.ErrNotFound) || lasting(err, 0) }

// handle does what an event asks for. Opened and created are taken once for
// ever; every other action is only a hint to look.
func (s *session) handle(ctx context.Context, ev store.Event) error {
	switch ev.Action {
	case forge.ActionOpened, forge.ActionCreated:
		return s.created(ctx, ev)
	case forge.ActionEdited:
		return s.edited(ctx, ev)
	case forge.ActionDeleted, forge.ActionTransferred:
		if ev.Object.Kind == forge.ObjectIssue {
			return s.vanished(ctx, ev)
		}
		return s.deleted(ctx, ev)
	case forge.ActionClosed:
		return s.closed(ctx, ev)
	case forge.ActionReopened:
		return s.reopened(ctx, ev)
	}
	s.finish(ev, "nothing to do")
	return s.commit(ctx)
}

// created takes a new text in: its records, then its commands.
func (s *session) created(ctx context.Context, ev store.Event) error {
	if known, err := s.lookup(ctx, ev.Object); err != nil {
		return err
	} else if known != nil && !known.data.Unread {
		s.finish(ev, "known already")
		return s.commit(ctx)
	}
	t, err := s.firstLook(ctx, ev.Object)
	if lasting(err, ev.Tries) || errors.Is(err, forge.ErrNotFound) && s.waits(ev.Object, forge.ActionDeleted) {
		// Not for ever: a replica far behind its primary says the same. The
		// sweep brings the text back if it is seen after all.
		s.objects[ev.Object] = &object{dirty: true, data: objectData{Unread: true},
			Object: store.Object{Object: ev.Object, Author: ev.Author, Deleted: true}}
		s.finish(ev, "deleted before it was read")
		return s.commit(ctx)
	}
	if err != nil {
		return err
	}
	s.b.Fail("read")
	if t.number != s.t.Number || t.author.ID == s.self.ID {
		s.finish(ev, "not in this thread, or the bot's own")
		return s.commit(ctx)
	}
	if s.b.Ignored(t.author.Login) { // the list grew, or a payload named another
		s.finish(ev, "by an account on the ignore list")
		return s.commit(ctx)
	}
	runs, counts, err := s.ownWords(ctx, ev, t)
	if err != nil {
		return err
	}
	tr := s.newTurn(ev, t, s.read(t, t.created))
	tr.object = s.take(t, tr.read, counts)
	tr.object.data.Ran = true
	return tr.run(ctx, runs)
}

// ownWords decides whose words a text is: whether its commands may run, and
// whether its records count. On Gitea any writer may edit anyone's text, the
// author stays, and an edit within the same second leaves no trace.
func (s *session) ownWords(ctx context.Context, ev store.Event, t text) (runs, counts bool, err error) {
	if !t.rights() {
		return false, false, nil
	}
	if t.proved {
		return s.now.Sub(t.created) < foundAge, true, nil
	}
	sha := bodySHA(t.body)
	if ev.Source == store.SourceDelivery {
		runs = ev.BodySHA == sha && ev.Sender.ID == t.author.ID
		if t.Kind == forge.ObjectComment {
			// Page 2.8 stops at the body. But an administrator of the repository
			// can read the hook's secret, hold back a delivery, edit the comment
			// and sign for what it says now; only its time of update tells.
			runs = runs && t.unedited()
		}
	} else {
		// Nobody vouches for the sender: only a young text that was never
		// edited runs.
		runs = t.unedited() && s.now.Sub(t.created) < foundAge
	}
	if runs || ev.Source != store.SourceDelivery && t.unedited() {
		return runs, true, nil
	}
	counts, err = s.b.Ledger.Attested(ctx, s.t.Forge, s.t.Repo.ID, t.Object, sha)
	return runs, counts, err
}

// waits reports whether an event about an object is still to be handled.
func (s *session) waits(o forge.Object, a forge.Action) bool {
	return slices.ContainsFunc(s.t.Events, func(e store.Event) bool { return e.Object == o && e.Action == a })
}

// unheard follows a hint about a text whose creation was not handled: it is
// on its way, and says more than this hint; or it was missed, and nobody
// vouches for the text, unless an earlier delivery did before it could be read.
func (s *session) unheard(ctx context.Context, ev store.Event, t text, known *object) error {
	if s.waits(ev.Object, opening(t)) {
		s.finish(ev, "its creation is still to come")
		return s.commit(ctx)
	}
	if known == nil && ev.Source == store.SourceDelivery && s.now.Sub(ev.ReceivedAt) < lateDelivery {
		return &waitError{d: time.Second}
	}
	ev.Source = store.SourceSweep
	if known != nil && t.unedited() {
		sha := bodySHA(t.body)
		attested, err := s.b.Ledger.Attested(ctx, s.t.Forge, s.t.Repo.ID, t.Object, sha)
		if err != nil {
			return err
		}
		if attested {
			ev.Source, ev.BodySHA, ev.Sender = store.SourceDelivery, sha, t.author
		}
	}
	return s.created(ctx, ev)
}

// edited reads a text again. Commands never run here.
func (s *session) edited(ctx context.Context, ev store.Event) error {
	known, err := s.lookup(ctx, ev.Object)
	if err != nil {
		return err
	}
	t, err := s.fetch(ctx, ev.Object)
	if gone(err) {
		return s.deleted(ctx, ev)
	}
	if err != nil {
		return err
	}
	if t.author.ID == s.self.ID {
		if t.Kind == forge.ObjectIssue {
			s.finish(ev, "the bot's own issue, and no filing that fits")
			return s.commit(ctx)
		}
		return s.tampered(ctx, ev, t.body)
	}
	if known == nil || known.data.Unread {
		return s.unheard(ctx, ev, t, known)
	}
	tr := s.newTurn(ev, t, s.read(t, t.updated))
	tr.object = known
	if known.BodySHA == bodySHA(t.body) && !known.Deleted {
		return s.unchanged(ctx, ev, t)
	}
	attested, err := s.b.Ledger.Attested(ctx, s.t.Forge, s.t.Repo.ID, t.Object, bodySHA(t.body))
	if err != nil {
		return err
	}
	// Nobody edits what was filed in their name: whoever did is another.
	attested = attested && t.rights() && !t.filed
	// What the text was answered stands; of an edit only a hint is said, once.
	tr.rejections = nil
	first := !known.data.Commands && len(runs(tr.read)) > 0
	worse := len(tr.read.Rejections) > 0 && known.data.Rejected != rejected(tr.read)
	formBefore := known.data.Form
	logChanged := s.retake(known, t, tr.read, attested)
	if attested && !known.data.Hinted && (first || worse) {
		tr.hint(ctx, first)
	}
	if ev.Object.Kind == forge.ObjectIssue && (t.filed || s.otherForm(formBefore, tr.read.Form)) {
		tr.formEdited(ctx, attested && s.lastHand(t))
	} else {
		tr.changed(ctx, logChanged, attested)
	}
	return tr.commit(ctx)
}

// lastHand reports whether the last edit of a text that deliveries tell of, of
// those waiting, was its author's and left it as it is. That some delivery
// carried this text from its author is not enough for a form: another may have
// put back what its author has changed since. Edits of a title alone, which name
// no author here, are passed over.
func (s *session) lastHand(t text) bool {
	var last *store.Event
	for i := range s.t.Events {
		e := &s.t.Events[i]
		told := e.Object == t.Object && e.Action == forge.ActionEdited && e.Source == store.SourceDelivery && e.Author.Real()
		if told && (last == nil || e.ID > last.ID) {
			last = e
		}
	}
	return last != nil && last.Sender.ID == t.author.ID && last.Author.ID == t.author.ID && last.BodySHA == bodySHA(t.body)
}

// unchanged ends a hint that found nothing new in the text.
func (s *session) unchanged(ctx context.Context, ev store.Event, t text) error {
	if ev.Object.Kind == forge.ObjectIssue && t.closed != s.st.Closed {
		if t.closed {
			return s.closed(ctx, ev)
		}
		return s.reopened(ctx, ev)
	}
	s.finish(ev, "unchanged")
	return s.commit(ctx)
}

// otherForm reports whether an edit made another request of the form. Where
// somebody else's edit had ended the last one, any change by its author does.
func (s *session) otherForm(before, now *comment.Form) bool {
	if before != nil && now != nil && s.st.Request == nil && s.st.Ended == stateReplaced {
		return !before.Equal(now)
	}
	return !sameForm(before, now)
}

// sameForm reports whether two readings of a form ask for the same thing. A
// typo mended in its reason, or a symptom added, makes no other request of it
// and revokes nothing (pages 2.3 and 2.5 say two things; 2.5 names what a
// request id covers).
func sameForm(a, b *comment.Form) bool {
	if a == nil || b == nil {
		return a == b
	}
	return (a.Problem == nil) == (b.Problem == nil) && a.Action == b.Action && strings.EqualFold(a.Target, b.Target) && a.BreakGlass == b.BreakGlass
}

// deleted strikes a comment's records.
func (s *session) deleted(ctx context.Context, ev store.Event) error {
	known, err := s.lookup(ctx, ev.Object)
	if err != nil {
		return err
	}
	if known == nil {
		s.finish(ev, "never read")
		return s.commit(ctx)
	}
	if known.Deleted {
		s.finish(ev, "known to be deleted")
		return s.commit(ctx)
	}
	// A hint, not proof: whoever can sign for the repository could say so of
	// a comment that still stands.
	if _, err := s.fetch(ctx, ev.Object); err == nil {
		if ev.Action == forge.ActionEdited {
			// It was not there a moment ago: the edit is still to be read.
			return &waitError{d: time.Second}
		}
		s.finish(ev, "it still stands")
		return s.commit(ctx)
	} else if !gone(err) {
		return err
	}
	if known.Author.ID == s.self.ID {
		return s.tampered(ctx, ev, "")
	}
	tr := s.newTurn(ev, text{Object: ev.Object, author: known.Author}, comment.Read{})
	tr.object = known
	tr.changed(ctx, s.strike(known), false)
	return tr.commit(ctx)
}

// vanished ends what is open in a thread that is no more.
func (s *session) vanished(ctx context.Context, ev store.Event) error {
	if _, err := s.fetch(ctx, ev.Object); err == nil {
		s.finish(ev, "it still stands")
		return s.commit(ctx)
	} else if !errors.Is(err, forge.ErrNotFound) && !errors.Is(err, forge.ErrPermanent) {
		return err
	}
	if err := s.endRequest(ev, "ended", stateClosed); err != nil {
		return err
	}
	s.st.Gone = true
	s.finish(ev, "the thread is gone")
	return s.commit(ctx)
}

// closed ends request and approval. Closed and opened again before anyone
// looked, the issue is open now: then a reopening waits, or comes within
// seconds. A closing that nothing bears out is an old delivery sent again.
func (s *session) closed(ctx context.Context, ev store.Event) error {
	t, err := s.issueNow(ctx)
	if err != nil {
		return err
	}
	reopens := slices.ContainsFunc(s.t.Events, func(e store.Event) bool { return e.Action == forge.ActionReopened && e.ID > ev.ID })
	switch {
	case s.st.Closed:
		s.finish(ev, "known to be closed")
		return s.commit(ctx)
	case !t.closed && !reopens && s.now.Sub(ev.ReceivedAt) < 3*time.Second:
		return &waitError{d: time.Second}
	case !t.closed && !reopens:
		s.finish(ev, "it is open")
		return s.commit(ctx)
	}
	if err := s.endRequest(ev, "ended", stateClosed); err != nil {
		return err
	}
	s.st.Closed, s.st.Ended = true, stateClosed
	s.st.newIncident(t.updated, max(ev.Ord, s.st.SinceComment))
	s.finish(ev, "")
	return s.commit(ctx)
}

// reopened begins a new incident.
func (s *session) reopened(ctx context.Context, ev store.Event) error {
	t, err := s.issueNow(ctx)
	if err != nil {
		return err
	}
	if !s.st.Closed || t.closed {
		s.finish(ev, "nothing was closed, or it still is")
		return s.commit(ctx)
	}
	s.st.Closed, s.st.Ended = false, ""
	s.st.newIncident(t.updated, ev.Ord)
	s.finish(ev, "")
	return s.commit(ctx)
}

// issueNow reads the issue itself; a thread that is gone is closed.
func (s *session) issueNow(ctx context.Context) (text, error) {
	t, err := s.fetch(ctx, forge.Object{Kind: forge.ObjectIssue, ID: s.t.Number})
	if errors.Is(err, forge.ErrNotFound) {
		return text{closed: true, updated: s.now.Truncate(time.Second)}, nil
	}
	return t, err
}

// endRequest takes an open request and its approval away, on the record.
func (s *session) endRequest(ev store.Event, what, how string) error {
	r := s.st.Request
	if r == nil {
		return nil
	}
	e := AuditEntry{What: what, Request: r.ID, Action: r.Action, Target: r.Target, Requester: r.Requester.Login,
		Actor: ev.Sender.Login, ActorID: ev.Sender.ID, Note: how}
	s.st.end(how)
	return s.audit(e)
}
