package store

import (
	"errors"
	"testing"
	"time"
)

func TestThreadHasOneOwner(t *testing.T) {
	eachDatabase(t, func(t *testing.T, s *fixture) {
		ctx := t.Context()
		if l := must1(s.Acquire(ctx, "w1", time.Second)); l != nil {
			t.Fatalf("acquired %+v of an empty database", l)
		}
		s.mustAccept(t, comment(3, 12))
		l := mustAcquire(t, s, "w1")
		if l.Thread.Number != 3 || l.Owner != "w1" || !l.Until.Equal(s.clock.now().Add(10*time.Second)) {
			t.Errorf("lease %+v", l)
		}
		s.mustAccept(t, comment(3, 13)) // wakes a thread that is in hand
		if other := must1(s.Acquire(ctx, "w2", time.Second)); other != nil {
			t.Error("two workers have the thread")
		}
		s.mustAccept(t, comment(4, 14))
		if other := must1(s.Acquire(ctx, "w2", time.Second)); other == nil || other.Thread.Number != 4 {
			t.Errorf("the other thread was not to be had: %+v", other)
		}
	})
}

func TestTakeoverFencesTheFormerOwner(t *testing.T) {
	eachDatabase(t, func(t *testing.T, s *fixture) {
		ctx := t.Context()
		s.mustAccept(t, comment(3, 12))
		old := mustAcquire(t, s, "w1")
		th := mustLoad(t, s, old)
		must(t, s.Commit(ctx, old, Change{Answers: []Answer{{Key: "a", Body: "b"}}}))
		s.clock.advance(10 * time.Second)
		if l := must1(s.Acquire(ctx, "w2", time.Second)); l != nil {
			t.Error("taken over in the last moment of the lease")
		}
		s.clock.advance(time.Millisecond)
		// Slept past its lease, but nobody came: nothing is lost.
		must(t, s.Commit(ctx, old, Change{State: []byte("late")}))
		l := mustAcquire(t, s, "w2")
		if l.Fence != old.Fence+1 || l.Thread.ID != old.Thread.ID {
			t.Errorf("lease %+v after %+v", l, old)
		}
		for name, err := range map[string]error{
			"commit":  s.Commit(ctx, old, Change{State: []byte("stale"), Finish: done(th.Events[0].ID)}),
			"load":    second(s.Load(ctx, old)),
			"claim":   second(s.ClaimAnswer(ctx, old, "a", 0, time.Second)),
			"release": s.Release(ctx, old),
		} {
			if !errors.Is(err, ErrFenced) {
				t.Errorf("%s by the former owner: %v", name, err)
			}
		}
		if th := mustLoad(t, s, l); string(th.State) != "late" || len(th.Events) != 1 {
			t.Errorf("the former owner wrote: %q, %d events", th.State, len(th.Events))
		}
		must(t, s.Release(ctx, l))
		if err := s.Commit(ctx, l, Change{State: []byte("x")}); !errors.Is(err, ErrFenced) {
			t.Errorf("commit after release: %v", err)
		}
	})
}

// The fence, and not the owner's name, tells a lease from a later one.
func TestSameOwnerIsFencedToo(t *testing.T) {
	eachDatabase(t, func(t *testing.T, s *fixture) {
		s.mustAccept(t, comment(3, 12))
		old := mustAcquire(t, s, "w")
		s.clock.advance(11 * time.Second)
		l := mustAcquire(t, s, "w")
		if err := s.Commit(t.Context(), old, Change{State: []byte("stale")}); !errors.Is(err, ErrFenced) {
			t.Errorf("commit under the old lease: %v", err)
		}
		if _, err := s.Load(t.Context(), old); !errors.Is(err, ErrFenced) {
			t.Errorf("load under the old lease: %v", err)
		}
		must(t, s.Commit(t.Context(), l, Change{State: []byte("fresh")}))
	})
}

func second[T any](_ T, err error) error { return err }

func TestHeartbeatKeepsAllLeases(t *testing.T) {
	eachDatabase(t, func(t *testing.T, s *fixture) {
		ctx := t.Context()
		for n := range int64(3) {
			s.mustAccept(t, comment(3+n, 12+n))
		}
		mustAcquire(t, s, "w1")
		mustAcquire(t, s, "w1")
		mustAcquire(t, s, "w2")
		s.clock.advance(9 * time.Second)
		must(t, s.Heartbeat(ctx, "w1", 10*time.Second))
		s.clock.advance(9 * time.Second)
		if l := mustAcquire(t, s, "w3"); l.Fence != 2 {
			t.Errorf("lease %+v", l)
		}
		if l := must1(s.Acquire(ctx, "w3", time.Second)); l != nil {
			t.Errorf("took over a lease that was extended: %+v", l)
		}
	})
}

// wakesAt is NextWake relative to now; -1: never.
func (s *fixture) wakesAt(t *testing.T) time.Duration {
	t.Helper()
	next, err := s.NextWake(t.Context())
	must(t, err)
	if next.IsZero() {
		return -1
	}
	return next.Sub(s.clock.now())
}

func TestReleaseSetsTheNextWake(t *testing.T) {
	const min = time.Minute
	waiting := func(s *fixture, id int64, d time.Duration) EventEnd {
		return EventEnd{ID: id, Status: EventWaiting, Tries: 1, NextAt: s.clock.now().Add(d)}
	}
	tests := []struct {
		name   string
		change func(s *fixture, ev []Event) Change
		want   time.Duration
	}{
		{"nothing done", func(*fixture, []Event) Change { return Change{} }, 0},
		{"all done", func(_ *fixture, ev []Event) Change { return Change{Finish: done(ev[0].ID, ev[1].ID)} }, -1},
		{"the first in retry holds back the second", func(s *fixture, ev []Event) Change {
			return Change{Finish: []EventEnd{waiting(s, ev[0].ID, 5*min)}}
		}, 5 * min},
		{"the second in retry", func(s *fixture, ev []Event) Change {
			return Change{Finish: append(done(ev[0].ID), waiting(s, ev[1].ID, 3*min))}
		}, 3 * min},
		{"a dead one holds back nothing", func(s *fixture, ev []Event) Change {
			return Change{Finish: []EventEnd{{ID: ev[0].ID, Status: EventDead}, waiting(s, ev[1].ID, 3*min)}}
		}, 3 * min},
		{"due", func(s *fixture, ev []Event) Change {
			return Change{Finish: done(ev[0].ID, ev[1].ID), State: []byte("s"), Due: s.clock.now().Add(7 * min)}
		}, 7 * min},
		{"due before a retry", func(s *fixture, ev []Event) Change {
			return Change{Finish: []EventEnd{waiting(s, ev[0].ID, 9*min)}, State: []byte("s"), Due: s.clock.now().Add(7 * min)}
		}, 7 * min},
		{"an open answer holds back all", func(s *fixture, ev []Event) Change {
			return Change{Answers: []Answer{{Key: "a", NextAt: s.clock.now().Add(2 * min)}, {Key: "b"}},
				State: []byte("s"), Due: s.clock.now().Add(min)}
		}, 2 * min},
		{"a posted answer does not", func(s *fixture, ev []Event) Change {
			return Change{Answers: []Answer{{Key: "a", Status: AnswerPosted, CommentID: 5}}}
		}, 0},
	}
	eachDatabase(t, func(t *testing.T, s *fixture) {
		for i, tt := range tests {
			s.mustAccept(t, comment(int64(i+1), int64(100+2*i)))
			s.mustAccept(t, comment(int64(i+1), int64(101+2*i)))
			l := mustAcquire(t, s, "w")
			must(t, s.Commit(t.Context(), l, tt.change(s, mustLoad(t, s, l).Events)))
			must(t, s.Release(t.Context(), l))
			if got := s.wakesAt(t); got != tt.want {
				t.Errorf("%s: wakes after %v, want %v", tt.name, got, tt.want)
			}
			// Clear the way for the next: it must be the only one.
			must(t, s.quietly(t.Context(), func(tx runner) error {
				_, err := tx.exec(t.Context(), "UPDATE threads SET wake_at = NULL")
				return err
			}))
		}
	})
}

// A thread with much to do does not keep those that came later waiting.
func TestReleasedThreadGoesToTheEndOfTheLine(t *testing.T) {
	eachDatabase(t, func(t *testing.T, s *fixture) {
		s.mustAccept(t, comment(3, 12))
		s.clock.advance(time.Second)
		s.mustAccept(t, comment(4, 13))
		s.clock.advance(time.Second)
		l := mustAcquire(t, s, "w")
		if l.Thread.Number != 3 {
			t.Fatalf("acquired %+v", l)
		}
		must(t, s.Release(t.Context(), l)) // nothing done
		for _, want := range []int64{4, 3} {
			if l := mustAcquire(t, s, "w"); l.Thread.Number != want {
				t.Errorf("acquired thread %d, want %d", l.Thread.Number, want)
			}
		}
	})
}

func TestNextWakeCountsLeases(t *testing.T) {
	eachDatabase(t, func(t *testing.T, s *fixture) {
		if got := s.wakesAt(t); got != -1 {
			t.Errorf("an empty database wakes after %v", got)
		}
		s.mustAccept(t, comment(3, 12))
		if got := s.wakesAt(t); got != 0 {
			t.Errorf("wakes after %v, want now", got)
		}
		mustAcquire(t, s, "w")
		if got := s.wakesAt(t); got != 10*time.Second+time.Millisecond {
			t.Errorf("wakes after %v, want the end of the lease", got)
		}
		s.clock.advance(s.wakesAt(t))
		if got := mustAcquire(t, s, "w2"); got.Thread.Number != 3 {
			t.Errorf("took over %+v", got)
		}
	})
}

// An event that comes while the thread is in hand wakes it after the release,
// also where its owner never saw it.
func TestAcceptDuringLeaseIsNotLost(t *testing.T) {
	eachDatabase(t, func(t *testing.T, s *fixture) {
		s.mustAccept(t, comment(3, 12))
		l := mustAcquire(t, s, "w")
		ev := mustLoad(t, s, l).Events
		s.mustAccept(t, comment(3, 13))
		must(t, s.Commit(t.Context(), l, Change{Finish: done(ev[0].ID)}))
		must(t, s.Release(t.Context(), l))
		l = mustAcquire(t, s, "w")
		if ev := mustLoad(t, s, l).Events; len(ev) != 1 || ev[0].Object.ID != 13 {
			t.Errorf("waiting: %+v", ev)
		}
	})
}

func TestReleaseAll(t *testing.T) {
	eachDatabase(t, func(t *testing.T, s *fixture) {
		ctx := t.Context()
		for n := range int64(3) {
			s.mustAccept(t, comment(3+n, 12+n))
		}
		a, other := mustAcquire(t, s, "w1"), mustAcquire(t, s, "w2")
		b := mustAcquire(t, s, "w1")
		must(t, s.ReleaseAll(ctx, "w1"))
		if err := s.Commit(ctx, a, Change{}); !errors.Is(err, ErrFenced) {
			t.Errorf("commit after being released: %v", err)
		}
		must(t, s.Commit(ctx, other, Change{}))
		got := map[int64]bool{mustAcquire(t, s, "w3").Thread.ID: true, mustAcquire(t, s, "w3").Thread.ID: true}
		if !got[a.Thread.ID] || !got[b.Thread.ID] {
			t.Errorf("released %d and %d, acquired %v", a.Thread.ID, b.Thread.ID, got)
		}
	})
}

// A restart on SQLite finds its own leases and need not wait for their end.
func TestSQLiteClearsLeasesAtStart(t *testing.T) {
	s := sqliteFixture(t)
	s.mustAccept(t, comment(3, 12))
	before := mustAcquire(t, s, "killed")
	l := mustAcquire(t, s.again(t), "w")
	if l.Fence <= before.Fence {
		t.Errorf("fence %d after %d", l.Fence, before.Fence)
	}
}

// Fresh work must not keep a dead worker's threads waiting.
func TestEndedLeaseComesBeforeFreshWork(t *testing.T) {
	eachDatabase(t, func(t *testing.T, s *fixture) {
		s.mustAccept(t, comment(3, 12))
		mustAcquire(t, s, "killed")
		s.mustAccept(t, comment(4, 13))
		s.clock.advance(11 * time.Second)
		if l := mustAcquire(t, s, "w"); l.Thread.Number != 3 {
			t.Errorf("thread %d came first", l.Thread.Number)
		}
	})
}
