package github

import (
	"context"
	"sync"
	"time"
)

// shared is a value that is fetched once for all who ask, however many ask at
// once, and again when it is due.
type shared[T any] struct {
	mu      sync.Mutex
	value   T
	due     time.Time // zero: there is none
	fetched time.Time
	running *fetching[T]
}

type fetching[T any] struct {
	done  chan struct{}
	value T
	err   error
}

// get gives the value, or fetches it. Who fetches goes on if the first to ask
// gives up: the others still want it. fetch says until when the value is good.
func (s *shared[T]) get(ctx context.Context, now func() time.Time, fetch func(context.Context) (T, time.Time, error)) (T, error) {
	s.mu.Lock()
	if now().Before(s.due) {
		defer s.mu.Unlock()
		return s.value, nil
	}
	f := s.running
	if f == nil {
		f = &fetching[T]{done: make(chan struct{})}
		s.running = f
		go func() {
			defer close(f.done)
			var due time.Time
			f.value, due, f.err = fetch(context.WithoutCancel(ctx))
			s.mu.Lock()
			defer s.mu.Unlock()
			s.running = nil
			if f.err == nil {
				s.value, s.due, s.fetched = f.value, due, now()
			}
		}()
	}
	s.mu.Unlock()
	select {
	case <-f.done:
		return f.value, f.err
	case <-ctx.Done():
		var none T
		return none, ctx.Err()
	}
}

// dropIf makes the next get fetch if the value is one that is refused.
func (s *shared[T]) dropIf(bad func(value T, fetched time.Time) bool) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.due.IsZero() || !bad(s.value, s.fetched) {
		return false
	}
	s.due = time.Time{}
	return true
}
