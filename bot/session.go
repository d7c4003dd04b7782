package bot

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"playbook-bot/bot/forge"
	"playbook-bot/bot/store"
	"playbook-bot/playbook"
)

// session is one worker's hold on one thread: what is stored, and the change
// that the present turn will commit.
type session struct {
	b     *Bot
	forge Forge
	self  forge.Account
	lease *store.Lease
	t     *store.Thread
	repo  forge.Repo
	// old is the state as stored; st the one being decided on.
	old, st *state
	// objects are the kept objects by identity, decoded; dirty ones are
	// committed.
	objects map[forge.Object]*object
	now     time.Time

	change  store.Change
	observe []Observation
	// attested are attempts that counted in the bot's signed answers.
	attested []playbook.Attempt
	// verified are the bot's own records, restored from its signed answers.
	verified map[forge.Object][]record
	// listing is the whole thread as listed in this turn, nil: it was not.
	listing []forge.Comment
	// quiet are found texts that the reading of the whole thread takes in.
	quiet []forge.Object
	// cold: the thread was read in full just now.
	cold bool
	// over says why nothing more is to be said in the thread.
	over string
	// overlay is what holds in this repository, once a turn has asked.
	overlay      *overlayView
	overlayFresh bool
	// broken says why the open request no longer stands on the record.
	broken string
	// courtesy is the lease's.
	courtesy *courtesy
}

// object is a stored text of the thread with its decoded document.
type object struct {
	store.Object
	data  objectData
	dirty bool
}

// open loads a thread that is in hand. The session is there even where an
// error is: then it only serves to put off what is due.
func (b *Bot) open(ctx context.Context, l *store.Lease, c *courtesy) (*session, error) {
	t, err := b.Ledger.Load(ctx, l)
	if err != nil {
		return nil, fmt.Errorf("load the thread: %w", err)
	}
	s := &session{b: b, lease: l, courtesy: c, t: t, repo: t.Repo, objects: map[forge.Object]*object{}, now: b.Now().UTC()}
	if !t.Now.IsZero() {
		// One clock for all replicas, and the one that wake-ups are set by.
		s.now = t.Now.UTC()
	}
	if s.old, err = decodeState(t.State); err != nil {
		return s, err
	}
	s.st = s.old.clone()
	for _, row := range t.Records {
		o := &object{Object: row}
		if err := decodeObject(row.Data, &o.data); err != nil {
			return s, err
		}
		s.objects[row.Object] = o
	}
	f, ok := b.Forges[t.Forge]
	if !ok {
		return s, fmt.Errorf("no forge %q is configured", t.Forge)
	}
	s.forge = f
	if s.self, err = b.self(ctx, t.Forge); err != nil {
		return s, err
	}
	return s, s.locate(ctx)
}

// locate finds out what the thread's repository is called, and whether the
// bot answers there: a payload's word for it was enough to take an event in,
// and no more.
func (s *session) locate(ctx context.Context) error {
	repo, gone, err := s.b.names.repo(ctx, s.t.Forge, s.t.Repo.ID)
	switch {
	case gone:
		s.over = "the repository is gone"
		return nil
	case err != nil:
		return err
	}
	s.repo = repo
	if !s.b.answersIn(s.t.Forge, repo) {
		// The payload named a repository of ours; the forge calls it otherwise.
		s.over = "the repository is none of REPOSITORIES"
	}
	return nil
}

func decodeObject(raw []byte, d *objectData) error {
	if len(raw) == 0 {
		return nil
	}
	if err := json.Unmarshal(raw, d); err != nil {
		return fmt.Errorf("read a stored text's document: %w", err)
	}
	return nil
}

// endAll ends whatever is open or waits in a thread of which nothing more is
// to be said.
func (s *session) endAll(ctx context.Context) (again bool, err error) {
	for _, ev := range s.t.Events {
		s.finish(ev, s.over)
	}
	for _, a := range s.t.Open {
		s.settle(a, store.AnswerDead, s.over)
	}
	if err := s.endRequest(store.Event{}, "ended", "gone"); err != nil {
		return false, err
	}
	s.st.Gone, s.cold = true, true
	s.st.Labels, s.st.Reactions = s.st.labels(), nil
	return len(s.t.Events) > 0, s.commit(ctx)
}

// postpone leaves the thread alone for a while after an error that is no
// single event's: all that would be due is put off, or the thread would be
// claimed again at once, over and over.
func (s *session) postpone(ctx context.Context, err error) error {
	if ctx.Err() != nil || errors.Is(err, store.ErrFenced) {
		return err
	}
	at := s.now.Add(s.b.setbacks.next(s.t.ID, err))
	var c store.Change
	if len(s.t.Open) > 0 {
		if a := s.t.Open[0]; a.NextAt.Before(at) {
			a.NextAt = at
			c.Settle = append(c.Settle, a)
		}
	}
	if len(s.t.Events) > 0 {
		if ev := s.t.Events[0]; ev.NextAt.Before(at) {
			c.Finish = append(c.Finish, store.EventEnd{ID: ev.ID, Status: store.EventWaiting, Tries: ev.Tries, NextAt: at})
		}
	}
	switch {
	case s.old == nil: // it cannot be read, and stays as it is
		c.State, c.Due, c.Open = s.t.State, at, true
	case s.t.State != nil:
		if due := s.old.due(s.b.Playbook.RequestTTL()); !due.IsZero() && due.Before(at) {
			c.State, c.Due, c.Open = s.t.State, at, s.old.Request != nil || s.old.Approval != nil
		}
	}
	return errors.Join(err, s.b.Ledger.Commit(ctx, s.lease, c))
}

// setbacks counts the errors in a row of each thread.
type setbacks struct {
	mu sync.Mutex
	m  map[int64]int
}

// maxSetback is the longest wait after an error of this kind: it may be the
// forge's outage, after whose end nobody should wait for long.
const maxSetback = 5 * time.Minute

// next is how long to leave a thread alone after one more error.
func (b *setbacks) next(thread int64, err error) time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.m == nil {
		b.m = map[int64]int{}
	}
	n := b.m[thread]
	b.m[thread]++
	var fe *forge.Error
	if errors.As(err, &fe) && fe.RetryAfter > 0 {
		return fe.RetryAfter
	}
	return min(time.Second<<min(n, 20), maxSetback)
}

func (b *setbacks) clear(thread int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.m, thread)
}

// turn does one thing, and reports whether there may be another to do now.
func (s *session) turn(ctx context.Context) (again bool, err error) {
	switch {
	case s.over != "":
		return s.endAll(ctx)
	case len(s.t.Open) > 0:
		// An answer being posted holds back all that comes after it in this
		// thread: people must not read answers in another order than theirs.
		return s.deliver(ctx, s.t.Open[0])
	case s.t.State == nil && len(s.t.Events) > 0:
		return s.event(ctx, s.t.Events[0], s.coldLoad)
	case s.needsEffects():
		return true, s.effects(ctx)
	}
	if ran, err := s.timers(ctx); ran || err != nil {
		return true, err
	}
	if len(s.t.Events) == 0 {
		return false, nil
	}
	return s.event(ctx, s.t.Events[0], s.handle)
}

// event does something about the first waiting event. An error of the forge
// puts it off; what always fails is dead after ten tries.
func (s *session) event(ctx context.Context, ev store.Event, do func(context.Context, store.Event) error) (bool, error) {
	if ev.NextAt.After(s.now) {
		return false, nil
	}
	err := do(ctx, ev)
	var wait *waitError
	switch {
	case err == nil:
		return true, nil
	case errors.Is(err, store.ErrFenced) || ctx.Err() != nil:
		return false, err
	case errors.As(err, &wait):
		s.reset()
		s.change.Found = wait.found
		s.change.Finish = []store.EventEnd{{ID: ev.ID, Status: store.EventWaiting, Tries: ev.Tries, NextAt: s.now.Add(wait.d)}}
		return wait.d == 0, s.commit(ctx)
	}
	end := s.failed(ev, err)
	s.b.Log.WarnContext(ctx, "event not handled", "thread", s.t.Number, "object", ev.Object.ID, "action", string(ev.Action),
		"tries", end.Tries, "status", end.Status, "error", err)
	s.reset()
	s.change.Finish = []store.EventEnd{end}
	if end.Status == store.EventDead {
		s.observe = append(s.observe, Observation{What: "dead"})
	}
	return end.Status != store.EventWaiting, s.commit(ctx)
}

// waitError is no failure: the turn must come again, after d, and after the
// found events were handled.
type waitError struct {
	d     time.Duration
	found []store.Incoming
}

func (*waitError) Error() string { return "to be looked at again" }

const maxTries = 10

// failed says what becomes of an event that could not be handled.
func (s *session) failed(ev store.Event, err error) store.EventEnd {
	end := store.EventEnd{ID: ev.ID, Status: store.EventWaiting, Tries: ev.Tries + 1, Note: note(err)}
	var fe *forge.Error
	switch {
	case errors.Is(err, forge.ErrPermanent):
		end.Status = store.EventDead
	case errors.As(err, &fe) && fe.RetryAfter > 0:
		// The forge's own clock: waiting as told is no failed try.
		end.Tries, end.NextAt = ev.Tries, s.now.Add(fe.RetryAfter)
	case end.Tries >= maxTries:
		end.Status = store.EventDead
	default:
		end.NextAt = s.now.Add(backoff(ev.Tries, err))
	}
	return end
}

// note puts an error into words for the operator: operation and status, and
// nothing that came from the forge.
func note(err error) string {
	var fe *forge.Error
	if errors.As(err, &fe) {
		return fe.Error()
	}
	return "internal: " + err.Error()
}

// backoff grows from one second to an hour, so that ten tries take hours.
func backoff(tries int, err error) time.Duration {
	var fe *forge.Error
	if errors.As(err, &fe) && fe.RetryAfter > 0 {
		return fe.RetryAfter
	}
	return min(time.Second<<min(2*tries, 20), time.Hour)
}

// reset drops the change of this turn.
func (s *session) reset() {
	s.st = s.old.clone()
	s.change, s.observe, s.broken, s.cold = store.Change{}, nil, "", false
	for _, o := range s.objects {
		o.dirty = false
	}
}

// finish settles an event as done.
func (s *session) finish(ev store.Event, why string) {
	s.change.Finish = append(s.change.Finish, store.EventEnd{ID: ev.ID, Status: store.EventDone, Tries: ev.Tries, Note: why})
}

func (s *session) settle(a store.Answer, status, why string) {
	a.Status, a.Note = status, why
	s.change.Settle = append(s.change.Settle, a)
}

// commit writes the turn's change, whole or not at all.
func (s *session) commit(ctx context.Context) error {
	s.change.Due = s.st.due(s.b.Playbook.RequestTTL())
	if !slices.Equal(s.old.labels(), s.st.labels()) {
		s.st.effectsAnew(s.now)
	}
	if at := later(s.st.EffectsAt, s.now); s.lacksEffects() && (s.change.Due.IsZero() || at.Before(s.change.Due)) {
		// Nothing else would bring the thread back for them, should this
		// process end before they are done.
		s.change.Due = at
	}
	raw, err := json.Marshal(s.st)
	if err != nil {
		return fmt.Errorf("write the thread's state: %w", err)
	}
	if s.t.State != nil || s.cold {
		// A thread that was never read has no state yet, whatever failed in
		// it: it is still to be read in full.
		s.change.State = raw
	}
	s.change.Open = s.st.Request != nil || s.st.Approval != nil
	for _, o := range s.objects {
		if !o.dirty {
			continue
		}
		if o.Data, err = json.Marshal(o.data); err != nil {
			return fmt.Errorf("write a text's document: %w", err)
		}
		o.Keep = len(o.data.Records) > 0 || o.data.Form != nil || o.data.Commands
		s.change.Objects = append(s.change.Objects, o.Object)
	}
	slices.SortFunc(s.change.Objects, func(a, b store.Object) int { return compareObjects(a.Object, b.Object) })
	s.b.Fail("deciding")
	if err := s.b.Ledger.Commit(ctx, s.lease, s.change); err != nil {
		return fmt.Errorf("commit the turn: %w", err)
	}
	s.b.Fail("decided")
	for _, o := range s.observe {
		s.b.Observe(o)
	}
	return nil
}

// compareObjects orders a thread's texts: the issue's body first, then
// comments by id.
func compareObjects(a, b forge.Object) int {
	if a.Kind != b.Kind {
		if a.Kind == forge.ObjectIssue {
			return -1
		}
		return 1
	}
	switch {
	case a.ID < b.ID:
		return -1
	case a.ID > b.ID:
		return 1
	}
	return 0
}

// audit appends to the thread's chain as part of this turn's commit.
func (s *session) audit(e AuditEntry) error {
	e.At = s.now
	e.Thread = fmt.Sprintf("%s#%d", s.repo.FullName(), s.t.Number)
	e.Playbook = s.b.Playbook.Identity().SHA256
	if s.overlay != nil {
		e.Overlay = s.overlay.book.Identity().Overlay
	}
	row, err := chain(s.b.Secrets()[0], s.t.ThreadRef, &s.st.Audit, e)
	if err != nil {
		return err
	}
	s.change.Audit = append(s.change.Audit, row)
	return nil
}

func (s *session) place() place { return place{s.t.Forge, s.t.Repo.ID, s.t.Number} }

func (s *session) standing(ctx context.Context, a forge.Account, fresh bool) look {
	return s.b.standings.look(ctx, s.t.Forge, s.repo, a, fresh)
}

// mayAct reports whether an account may act on somebody else's request: the
// requester, or who has write. Where that cannot be read, the look says why.
func (s *session) mayAct(ctx context.Context, a forge.Account) (bool, look) {
	if s.st.Request != nil && s.st.Request.Requester.ID == a.ID {
		return true, look{}
	}
	lk := s.standing(ctx, a, false)
	return lk.Standing.Permission >= playbook.PermissionWrite, lk
}
