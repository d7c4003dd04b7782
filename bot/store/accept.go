package store

import (
	"context"
	"errors"
	"fmt"
	"runtime"
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
	// acceptPatience is how long a group has the database for itself. One after
	// the other they are larger, and so cheaper; but one that waits for a row
	// that another replica has locked must not hold up the rest.
	acceptPatience = 25 * time.Millisecond
)

// ErrClosed: the store was closed.
var ErrClosed = errors.New("the database is closed")

// acceptor gathers concurrent Accepts into common transactions: whatever
// queued up while the last one was made durable becomes the next. Nobody is
// kept waiting for company.
type acceptor struct {
	queue chan *arrival
	// turn holds a token; whoever has it gathers the next group.
	turn    chan struct{}
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
		case <-l.accept.turn:
		case <-l.accept.closing:
			return
		}
		select {
		case first = <-l.accept.queue:
		case <-l.accept.closing:
			return
		}
		// Let whoever is about to come come: the deliveries that could run now
		// are in the queue when this goes on. Where none could it goes on at once.
		runtime.Gosched()
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
		next := func() { l.accept.turn <- struct{}{} }
		impatient := time.AfterFunc(acceptPatience, next)
		l.acceptGroup(group)
		if impatient.Stop() {
			next()
		}
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
		return intake(ctx, tx, sorted)
	})
	if err != nil {
		for _, a := range group {
			a.taken = false // and nothing came of it
		}
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
