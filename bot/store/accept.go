package store

import (
	"context"
	"errors"
	"fmt"
	"sort"
	"sync"
	"time"

	"playbook-bot/bot/forge"
)

const (
	// acceptGroup is how many deliveries one transaction takes in at most:
	// they share its fsync.
	acceptGroup = 64
	// acceptTimeout bounds one such transaction. A forge waits 5 s for its
	// answer, and so must come before that.
	acceptTimeout = 4 * time.Second
)

// ErrClosed: the store was closed.
var ErrClosed = errors.New("the database is closed")

// acceptor gathers concurrent Accepts into common transactions: whatever
// queued up while the last one was made durable becomes the next. Nobody is
// kept waiting for company.
type acceptor struct {
	queue   chan *arrival
	closing chan struct{}
	once    sync.Once
	workers sync.WaitGroup
}

// arrival is one Accept under way.
type arrival struct {
	ctx   context.Context
	in    Incoming
	taken bool
	err   error
	done  chan struct{}
}

func (a *acceptor) close() {
	a.once.Do(func() { close(a.closing) })
	a.workers.Wait()
}

func (l *ledger) Accept(ctx context.Context, in Incoming) (bool, error) {
	if err := in.check(); err != nil {
		return false, err
	}
	a := &arrival{ctx: ctx, in: in, done: make(chan struct{})}
	select {
	case l.accept.queue <- a:
	case <-ctx.Done():
		return false, fmt.Errorf("take in %s: %w", in.name(), ctx.Err())
	case <-l.accept.closing:
		return false, ErrClosed
	}
	select {
	case <-a.done:
		if a.err != nil {
			return false, fmt.Errorf("take in %s: %w", in.name(), a.err)
		}
		return a.taken, nil
	case <-ctx.Done():
		// It may still be written; taking it in again does no harm.
		return false, fmt.Errorf("take in %s: %w", in.name(), ctx.Err())
	case <-l.accept.closing:
		return false, ErrClosed
	}
}

// AcceptFound takes in what a sweep found, in groups; each group is durable
// before the next begins.
func (l *ledger) AcceptFound(ctx context.Context, found []Incoming) (taken int, err error) {
	for _, in := range found {
		if err := in.check(); err != nil {
			return 0, err
		}
	}
	for len(found) > 0 {
		group := make([]*arrival, min(len(found), acceptGroup))
		for i := range group {
			group[i] = &arrival{ctx: ctx, in: found[i]}
		}
		found = found[len(group):]
		if err := l.acceptTogether(ctx, group); err != nil {
			return taken, fmt.Errorf("take in what was found: %w", err)
		}
		for _, a := range group {
			if a.taken {
				taken++
			}
		}
	}
	return taken, nil
}

func (l *ledger) acceptLoop() {
	for {
		var first *arrival
		select {
		case first = <-l.accept.queue:
		case <-l.accept.closing:
			return
		}
		group := []*arrival{first}
	gather:
		for len(group) < acceptGroup {
			select {
			case a := <-l.accept.queue:
				group = append(group, a)
			default:
				break gather
			}
		}
		l.acceptGroup(group)
	}
}

// acceptGroup answers every arrival of the group. Where the common
// transaction fails, each gets one of its own, so that a bad one fails alone.
func (l *ledger) acceptGroup(group []*arrival) {
	live := group[:0]
	for _, a := range group {
		if a.err = a.ctx.Err(); a.err != nil {
			close(a.done) // its caller is gone
			continue
		}
		live = append(live, a)
	}
	if len(live) == 0 {
		return
	}
	// Not the callers' contexts: one that leaves must not fail the others.
	ctx, cancel := context.WithTimeout(context.Background(), acceptTimeout)
	defer cancel()
	err := l.acceptTogether(ctx, live)
	for _, a := range live {
		if a.err = err; err != nil && len(live) > 1 {
			a.err = l.acceptTogether(ctx, []*arrival{a})
		}
		close(a.done)
	}
}

// acceptTogether takes the group in, in one transaction, ordered by thread:
// two replicas that lock threads in the same order cannot deadlock.
func (l *ledger) acceptTogether(ctx context.Context, group []*arrival) error {
	sorted := append([]*arrival(nil), group...)
	sort.SliceStable(sorted, func(i, j int) bool { return sorted[i].in.threadBefore(sorted[j].in) })
	named := map[repoKey]forge.Repo{}
	err := l.inTx(ctx, func(tx runner) (wake bool, err error) {
		for _, a := range sorted {
			key := repoKey{a.in.Forge, a.in.Repo.ID}
			if !l.renames(a.in) || named[key] == a.in.Repo {
				continue
			}
			if err := saveRepo(ctx, tx, a.in.Forge, a.in.Repo); err != nil {
				return false, fmt.Errorf("save the repository's name: %w", err)
			}
			named[key] = a.in.Repo
		}
		for _, a := range sorted {
			if a.taken, err = accept(ctx, tx, a.in); err != nil {
				return false, err
			}
			wake = wake || a.taken
		}
		return wake, nil
	})
	if err != nil {
		return err
	}
	for key, repo := range named {
		l.repoNames.Store(key, repo)
	}
	return nil
}

// renames reports whether the event names its repository otherwise than it
// was named last.
func (l *ledger) renames(in Incoming) bool {
	if in.Repo.Owner == "" || in.Repo.Name == "" {
		return false
	}
	known, ok := l.repoNames.Load(repoKey{in.Forge, in.Repo.ID})
	if !ok {
		return true
	}
	k := known.(forge.Repo)
	return k.Owner != in.Repo.Owner || k.Name != in.Repo.Name || (in.Repo.OwnerID != 0 && k.OwnerID != in.Repo.OwnerID)
}

// check refuses what could never be worked on.
func (in Incoming) check() error {
	switch {
	case in.Forge == "" || in.Repo.ID <= 0 || in.Number <= 0 || in.Object.ID <= 0:
		return errors.New("an event needs a forge and the ids of repository, thread and object")
	case in.Object.Kind != forge.ObjectIssue && in.Object.Kind != forge.ObjectComment:
		return errors.New("an event needs to be about an issue or a comment")
	case in.Source != SourceDelivery && in.Source != SourceSweep && in.Source != SourceTool:
		return errors.New("an event needs a source")
	}
	switch in.Action {
	case forge.ActionOpened, forge.ActionCreated, forge.ActionEdited, forge.ActionDeleted,
		forge.ActionClosed, forge.ActionReopened, forge.ActionTransferred:
		return nil
	}
	return errors.New("an event needs an action that is acted upon")
}

// name says which event, for errors: ids only, the words are the adapter's.
func (in Incoming) name() string {
	return fmt.Sprintf("%s %d %s in thread %d of %s repository %d",
		in.Object.Kind, in.Object.ID, in.Action, in.Number, in.Forge, in.Repo.ID)
}

// once reports whether the event is one that is taken once for ever; all
// others are hints.
func (in Incoming) once() bool {
	return in.Action == forge.ActionOpened || in.Action == forge.ActionCreated
}

// attests reports whether the delivery proves that the author wrote the body.
// Closing, say, carries the body too, but as whoever edited it last left it,
// and its sender need not even have looked.
func (in Incoming) attests() bool {
	return in.Source != SourceSweep && in.Sender.ID > 0 && in.Sender.ID == in.Author.ID &&
		(in.once() || in.Action == forge.ActionEdited)
}

func (in Incoming) threadBefore(o Incoming) bool {
	if in.Forge != o.Forge {
		return in.Forge < o.Forge
	}
	if in.Repo.ID != o.Repo.ID {
		return in.Repo.ID < o.Repo.ID
	}
	return in.Number < o.Number
}

// comment is the comment's id, 0 for an event about the issue.
func (in Incoming) comment() int64 {
	if in.Object.Kind == forge.ObjectComment {
		return in.Object.ID
	}
	return 0
}

// accept writes one event. The order of its statements is the order of their
// locks: the thread's row comes before all others, and is what makes two
// events of one thread come one after the other on PostgreSQL.
func accept(ctx context.Context, tx runner, in Incoming) (taken bool, err error) {
	if in.once() {
		seen, err := isSeen(ctx, tx, in)
		if err != nil {
			return false, err
		}
		if seen {
			return false, acceptAgain(ctx, tx, in)
		}
	}
	t, err := touchThread(ctx, tx, in)
	if err != nil {
		return false, err
	}
	return acceptInto(ctx, tx, t, in)
}

// touched is what accept needs of a thread's row, which it holds locked.
type touched struct {
	id, maxComment, loaded int64
}

// touchThread locks the thread's row, made if need be, and lets it wake now.
func touchThread(ctx context.Context, tx runner, in Incoming) (t touched, err error) {
	err = tx.one(ctx, `INSERT INTO threads (forge, repo, number, pull, max_comment, wake_at) VALUES (?, ?, ?, ?, ?, {now})
		ON CONFLICT (forge, repo, number) DO UPDATE SET
			wake_at = CASE WHEN threads.wake_at < excluded.wake_at THEN threads.wake_at ELSE excluded.wake_at END,
			max_comment = CASE WHEN threads.max_comment > excluded.max_comment THEN threads.max_comment ELSE excluded.max_comment END
		RETURNING id, max_comment, loaded`,
		args{in.Forge, in.Repo.ID, in.Number, in.Pull, in.comment()}, &t.id, &t.maxComment, &t.loaded)
	if err != nil {
		return t, fmt.Errorf("lock the thread: %w", err)
	}
	return t, nil
}

// acceptInto writes the event into a thread whose row is locked.
func acceptInto(ctx context.Context, tx runner, t touched, in Incoming) (taken bool, err error) {
	if in.once() {
		fresh, err := tx.exec(ctx, `INSERT INTO seen (forge, repo, kind, object) VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING`,
			in.Forge, in.Repo.ID, string(in.Object.Kind), in.Object.ID)
		if err != nil {
			return false, fmt.Errorf("note the event as seen: %w", err)
		}
		if fresh == 0 { // another replica was quicker
			return false, acceptAgain(ctx, tx, in)
		}
	}
	if err := attest(ctx, tx, in); err != nil {
		return false, err
	}
	ord := in.ord(t)
	if !in.once() {
		merged, err := merge(ctx, tx, t, in, ord)
		if err != nil || merged {
			return false, err
		}
	}
	_, err = tx.exec(ctx, `INSERT INTO events (thread, kind, object, action, ord, sender_id, sender_login,
			author_id, author_login, body_sha, source, delivery, received_at, next_at)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, {now}, {now})`,
		t.id, string(in.Object.Kind), in.Object.ID, string(in.Action), ord, in.Sender.ID, in.Sender.Login,
		in.Author.ID, in.Author.Login, in.BodySHA[:], in.Source, in.Delivery)
	if err != nil {
		return false, fmt.Errorf("write the event: %w", err)
	}
	return true, nil
}

// ord is the event's place in its thread; see Event.Ord.
func (in Incoming) ord(t touched) int64 {
	switch {
	case in.Object.Kind == forge.ObjectComment:
		return in.Object.ID
	case in.Action == forge.ActionOpened:
		return 0
	}
	return t.maxComment
}

func isSeen(ctx context.Context, tx runner, in Incoming) (bool, error) {
	var n int
	err := tx.one(ctx, `SELECT 1 FROM seen WHERE forge = ? AND repo = ? AND kind = ? AND object = ?`,
		args{in.Forge, in.Repo.ID, string(in.Object.Kind), in.Object.ID}, &n)
	if errors.Is(err, ErrNotFound) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("look whether the event was seen: %w", err)
	}
	return true, nil
}

// acceptAgain is for an event seen before. If it was finished there is nothing
// to do; if not, its row is still there and will be worked on. What a delivery
// vouches for counts in either case, also for an event a sweep was first to
// find.
func acceptAgain(ctx context.Context, tx runner, in Incoming) error {
	if in.Source == SourceSweep {
		return nil
	}
	if err := attest(ctx, tx, in); err != nil {
		return err
	}
	_, err := tx.exec(ctx, `UPDATE events SET sender_id = ?, sender_login = ?, author_id = ?, author_login = ?,
			body_sha = ?, source = ?, delivery = ?
		WHERE thread = (SELECT id FROM threads WHERE forge = ? AND repo = ? AND number = ?)
			AND status = 'waiting' AND ord = ? AND kind = ? AND object = ? AND action = ? AND source = 'sweep'`,
		in.Sender.ID, in.Sender.Login, in.Author.ID, in.Author.Login, in.BodySHA[:], in.Source, in.Delivery,
		in.Forge, in.Repo.ID, in.Number, in.ord(touched{}), string(in.Object.Kind), in.Object.ID, string(in.Action))
	if err != nil {
		return fmt.Errorf("vouch for the event found: %w", err)
	}
	return nil
}

func attest(ctx context.Context, tx runner, in Incoming) error {
	if !in.attests() {
		return nil
	}
	_, err := tx.exec(ctx, `INSERT INTO attested (forge, repo, kind, object, sha) VALUES (?, ?, ?, ?, ?) ON CONFLICT DO NOTHING`,
		in.Forge, in.Repo.ID, string(in.Object.Kind), in.Object.ID, in.BodySHA[:])
	if err != nil {
		return fmt.Errorf("note the body as attested: %w", err)
	}
	return nil
}

// merge lets a hint go that says no more than one already waiting: the newest
// event of its object, at the same place in the thread, with the same action
// and sender, which no worker has seen. Anything less would lose something: a
// reopening between two closings, a command between them, an edit that came
// after a worker had read the text, whose hand it was.
func merge(ctx context.Context, tx runner, t touched, in Incoming, ord int64) (bool, error) {
	var (
		id, tries, sender int64
		action, source    string
	)
	err := tx.one(ctx, `SELECT id, action, tries, sender_id, source FROM events
		WHERE thread = ? AND status = 'waiting' AND ord = ? AND kind = ? AND object = ? ORDER BY id DESC LIMIT 1`,
		args{t.id, ord, string(in.Object.Kind), in.Object.ID}, &id, &action, &tries, &sender, &source)
	switch {
	case errors.Is(err, ErrNotFound):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("look for an equal hint: %w", err)
	}
	if action != string(in.Action) || tries > 0 || id <= t.loaded {
		return false, nil
	}
	if in.Source == SourceSweep {
		return true, nil // a sweep knows no more than that there is something
	}
	if source != SourceSweep && sender != in.Sender.ID {
		return false, nil
	}
	_, err = tx.exec(ctx, `UPDATE events SET sender_id = ?, sender_login = ?, author_id = ?, author_login = ?,
			body_sha = ?, source = ?, delivery = ? WHERE id = ?`,
		in.Sender.ID, in.Sender.Login, in.Author.ID, in.Author.Login, in.BodySHA[:], in.Source, in.Delivery, id)
	if err != nil {
		return false, fmt.Errorf("merge with an equal hint: %w", err)
	}
	return true, nil
}
