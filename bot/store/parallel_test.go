package store

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// crew are workers that finish events one at a time and write down which.
// Some die with a thread in hand, some freeze past their lease and go on.
type crew struct {
	t      *testing.T
	clock  *clock
	expect int64 // events to finish

	finished atomic.Int64
	fenced   atomic.Int64

	mu     sync.Mutex
	order  map[int64][]int64 // thread's number → comments as finished
	frozen []hand
}

// hand is what a frozen worker still believes to hold.
type hand struct {
	s     Store
	lease *Lease
	event Event
}

// work runs until all expected events are finished. deaths of a hundred
// acquisitions end in death, as many in frost.
func (c *crew) work(s Store, name string, seed uint64, deaths int) {
	r := rand.New(rand.NewPCG(seed, 1))
	idle := 0
	for life := 0; c.finished.Load() < c.expect && !c.t.Failed(); life++ {
		owner := fmt.Sprint(name, "/", life)
		l, err := s.Acquire(c.t.Context(), owner, 10*time.Second)
		if err != nil {
			c.t.Error(err)
			return
		}
		if l == nil {
			if idle++; idle > 20_000 {
				c.t.Errorf("%d of %d events finished, and no thread is due", c.finished.Load(), c.expect)
			}
			if r.IntN(8) == 0 {
				c.thaw(func(hand) bool { return true })
			}
			c.clock.advance(time.Second) // so that the leases of the dead end
			continue
		}
		// Whoever froze with this thread in hand has been overtaken.
		c.thaw(func(h hand) bool { return h.lease.Thread == l.Thread })
		c.turn(s, l, r.IntN(100), deaths)
	}
}

func (c *crew) turn(s Store, l *Lease, luck, deaths int) {
	ctx := c.t.Context()
	th, err := s.Load(ctx, l)
	if errors.Is(err, ErrFenced) {
		c.fenced.Add(1)
		return
	}
	if err != nil {
		c.t.Error(err)
		return
	}
	if len(th.Events) > 0 {
		h := hand{s, l, th.Events[0]}
		switch {
		case luck < deaths:
			return
		case luck < 2*deaths:
			c.mu.Lock()
			c.frozen = append(c.frozen, h)
			c.mu.Unlock()
			return
		}
		c.finish(h)
	}
	if err := s.Release(ctx, l); err != nil && !errors.Is(err, ErrFenced) {
		c.t.Error(err)
	}
}

// finish settles the event in hand, if the thread is still its worker's.
func (c *crew) finish(h hand) {
	c.mu.Lock()
	defer c.mu.Unlock() // the log must have the order of the commits
	err := h.s.Commit(c.t.Context(), h.lease, Change{Finish: done(h.event.ID)})
	switch {
	case errors.Is(err, ErrFenced):
		c.fenced.Add(1)
	case err != nil:
		c.t.Error(err)
	default:
		n := h.lease.Thread.Number
		c.order[n] = append(c.order[n], h.event.Object.ID)
		c.finished.Add(1)
	}
}

// thaw lets a frozen worker go on where it was.
func (c *crew) thaw(which func(hand) bool) {
	c.mu.Lock()
	i := slices.IndexFunc(c.frozen, which)
	if i < 0 {
		c.mu.Unlock()
		return
	}
	h := c.frozen[i]
	c.frozen = slices.Delete(c.frozen, i, i+1)
	c.mu.Unlock()
	c.finish(h)
}

// check asserts that each thread's comments were finished once, in order.
func (c *crew) check(perThread int64) {
	for number, ids := range c.order {
		if int64(len(ids)) != perThread {
			c.t.Errorf("thread %d: %d events finished, want %d", number, len(ids), perThread)
		}
		if !slices.IsSorted(ids) {
			c.t.Errorf("thread %d: out of order: %v", number, ids)
		}
	}
	if n := c.finished.Load(); n != c.expect {
		c.t.Errorf("%d events finished, want %d", n, c.expect)
	}
}

// replicas are the stores that serve one database together.
func (s *fixture) replicas(t *testing.T) []*ledger {
	if _, ok := s.e.(*postgresDB); ok {
		return []*ledger{s.ledger, s.again(t)}
	}
	return []*ledger{s.ledger}
}

// While events come in, workers on all replicas finish them; a fifth of the
// workers die or freeze. Nothing is lost, doubled or out of order.
func TestThreadsAreSerialAndNothingIsLost(t *testing.T) {
	const threads, perThread, workers = 6, 25, 3
	eachDatabase(t, func(t *testing.T, s *fixture) {
		stores := s.replicas(t)
		c := &crew{t: t, clock: s.clock, expect: threads * perThread, order: map[int64][]int64{}}
		var all sync.WaitGroup
		for n := range int64(threads) {
			all.Go(func() {
				for i := range int64(perThread) {
					taken, err := stores[n%int64(len(stores))].Accept(t.Context(), comment(n+1, 1000*(n+1)+i))
					if err != nil || !taken {
						t.Errorf("accept: taken %v, %v", taken, err)
					}
				}
			})
		}
		for i, st := range stores {
			for w := range workers {
				all.Go(func() { c.work(st, fmt.Sprint("r", i, "w", w), uint64(10*i+w), 10) })
			}
		}
		all.Wait()
		c.check(perThread)
		if c.fenced.Load() == 0 {
			t.Error("no worker was fenced: the test tested nothing")
		}
		if st := must1(s.Stats(t.Context())); st.Waiting != 0 {
			t.Errorf("%d events still wait", st.Waiting)
		}
	})
}

// Case 23.
func TestTwoHundredDeliveriesWhileWorkersClaim(t *testing.T) {
	eachDatabase(t, func(t *testing.T, s *fixture) {
		const deliveries, threads = 200, 20
		c := &crew{t: t, clock: s.clock, expect: deliveries, order: map[int64][]int64{}}
		var all sync.WaitGroup
		for i := range int64(deliveries) {
			all.Go(func() {
				taken, err := s.Accept(t.Context(), comment(1+i%threads, 100+i))
				if err != nil || !taken {
					t.Errorf("accept: taken %v, %v", taken, err)
				}
			})
		}
		for w := range 4 {
			all.Go(func() { c.work(s, fmt.Sprint("w", w), uint64(w), 0) })
		}
		all.Wait()
		if n := c.finished.Load(); n != deliveries {
			t.Errorf("%d events finished, want %d", n, deliveries)
		}
		for number, ids := range c.order {
			slices.Sort(ids)
			if len(slices.Compact(ids)) != deliveries/threads {
				t.Errorf("thread %d: finished %v", number, ids)
			}
		}
	})
}

// Whoever gives up waiting gets an error in time, and the next delivery is
// not worse off.
func TestAcceptGivesUpWithItsCaller(t *testing.T) {
	s := sqliteFixture(t)
	hold, held := make(chan struct{}), make(chan struct{})
	var all sync.WaitGroup
	all.Go(func() {
		must(t, s.quietly(context.Background(), func(runner) error {
			close(held)
			<-hold
			return nil
		}))
	})
	<-held
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if _, err := s.Accept(ctx, comment(3, 12)); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("accept while the database is busy: %v", err)
	}
	if _, err := s.Acquire(ctx, "w", time.Second); err != nil && !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("acquire while the database is busy: %v", err)
	}
	close(hold)
	all.Wait()
	if !s.mustAccept(t, comment(3, 13)) {
		t.Error("the next delivery was not taken")
	}
	// The first may have been taken nevertheless; then again it is not.
	s.mustAccept(t, comment(3, 12))
	if st := must1(s.Stats(t.Context())); st.Waiting != 2 {
		t.Errorf("%d events wait, want 2", st.Waiting)
	}
}
