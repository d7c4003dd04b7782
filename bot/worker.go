package bot

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"playbook-bot/bot/forge"
	"playbook-bot/bot/store"
)

// turnsPerLease is how many events of one thread are handled before its lease
// is given back, so that a busy thread cannot keep the others waiting.
const turnsPerLease = 64

// Run works until ctx ends, then finishes what is in hand, at most grace
// long, and hands back the rest.
func (b *Bot) Run(ctx context.Context, grace time.Duration) error {
	// Work in hand outlives ctx by grace: a POST that was begun should end.
	work, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	context.AfterFunc(ctx, func() { time.AfterFunc(grace, stop) })

	var background sync.WaitGroup
	background.Go(func() { b.heartbeat(work) })
	background.Go(func() { b.connect(ctx) })
	background.Go(func() { b.sweepLoop(ctx) })

	b.dispatch(ctx, work)
	b.courtesies.Wait()
	stop()
	background.Wait()
	// A new context: work is over, and handing back must still be possible.
	back, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	if err := b.Ledger.ReleaseAll(back, b.Owner); err != nil {
		return fmt.Errorf("hand back the threads in hand: %w", err)
	}
	return nil
}

// dispatch claims due threads and hands them to at most Workers goroutines.
// It waits on a wake-up or on the next time known, and never polls.
//
// Until a forge has been met no thread can be worked on. Claiming them all the
// same would put each off, again and again, in transactions that the deliveries
// of a forge catching up have to wait for.
func (b *Bot) dispatch(ctx, work context.Context) {
	select {
	case <-b.met.opened():
	case <-ctx.Done():
		return
	}
	slots := make(chan struct{}, b.Workers)
	var busy sync.WaitGroup
	defer busy.Wait()
	for {
		select {
		case slots <- struct{}{}:
		case <-ctx.Done():
			return
		}
		l, err := b.Ledger.Acquire(ctx, b.Owner, b.Lease)
		if err != nil || l == nil {
			<-slots
			if ctx.Err() != nil {
				return
			}
			if err != nil {
				b.Log.ErrorContext(ctx, "cannot claim work", "error", err)
			}
			b.rest(ctx, err != nil)
			continue
		}
		b.Fail("acquired")
		busy.Go(func() {
			defer func() { <-slots }()
			b.workOn(work, l)
		})
	}
}

// rest waits until a thread may have become due.
func (b *Bot) rest(ctx context.Context, failed bool) {
	wait := time.Minute
	if failed {
		wait = time.Second
	} else if next, err := b.Ledger.NextWake(ctx); err != nil {
		wait = time.Second
	} else if !next.IsZero() {
		now, err := b.Ledger.Now(ctx)
		if err == nil {
			wait = min(wait, max(next.Sub(now), time.Millisecond))
		}
	}
	t := time.NewTimer(wait)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-t.C:
	case <-b.Ledger.Wakes():
	case <-b.nudges:
	}
}

func (b *Bot) nudge() {
	select {
	case b.nudges <- struct{}{}:
	default: // one is waiting to be seen already
	}
}

// Drain works until no thread is due, in this goroutine: for replays and for
// tests that move the clock themselves.
func (b *Bot) Drain(ctx context.Context) error {
	for name := range b.Forges {
		if _, ok := b.ready.Load(name); !ok {
			// Not to be reached is no error here either: work waits.
			_ = b.meet(ctx, name)
		}
	}
	for {
		l, err := b.Ledger.Acquire(ctx, b.Owner, b.Lease)
		if err != nil {
			return err
		}
		if l == nil {
			return nil
		}
		b.workOn(ctx, l)
		b.courtesies.Wait()
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
}

// workOn does what there is to do in one thread, and gives it back.
func (b *Bot) workOn(ctx context.Context, l *store.Lease) {
	log := b.Log.With("forge", l.Thread.Forge, "repo", l.Thread.Repo.ID, "thread", l.Thread.Number)
	first := &courtesy{b: b}
	err := b.turns(ctx, l, first)
	first.pay()
	switch {
	case errors.Is(err, store.ErrFenced):
		log.WarnContext(ctx, "lost the lease; all in hand is dropped")
		return
	case err != nil && ctx.Err() == nil:
		log.ErrorContext(ctx, "work on the thread stopped", "error", err)
	}
	b.Fail("releasing")
	back, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	if err := b.Ledger.Release(back, l); err != nil && !errors.Is(err, store.ErrFenced) {
		log.ErrorContext(ctx, "cannot release the thread; its lease will end", "error", err)
	}
	b.Fail("released")
}

// turns works until nothing is left or due. Each turn loads afresh: what
// another worker, or a delivery, wrote meanwhile is part of it.
func (b *Bot) turns(ctx context.Context, l *store.Lease, c *courtesy) error {
	for range turnsPerLease {
		if err := ctx.Err(); err != nil {
			return err
		}
		again, err := b.oneTurn(ctx, l, c)
		if err != nil || !again {
			return err
		}
	}
	return nil
}

// oneTurn does one thing in a thread. Whatever fails in it and is nobody's
// to try again puts the thread off.
func (b *Bot) oneTurn(ctx context.Context, l *store.Lease, c *courtesy) (again bool, err error) {
	s, err := b.open(ctx, l, c)
	if err == nil {
		again, err = s.turn(ctx)
	}
	switch {
	case err == nil:
		b.setbacks.clear(l.Thread.ID)
	case s != nil:
		err = s.postpone(ctx, err)
	}
	return again, err
}

// heartbeat keeps all leases of this process alive.
func (b *Bot) heartbeat(ctx context.Context) {
	t := time.NewTicker(max(b.Lease/3, time.Millisecond))
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.C:
			if err := b.Ledger.Heartbeat(ctx, b.Owner, b.Lease); err != nil && ctx.Err() == nil {
				b.Log.ErrorContext(ctx, "cannot extend the leases", "error", err)
			}
		}
	}
}

// connect learns who the bot is on each forge, trying until it is known.
func (b *Bot) connect(ctx context.Context) {
	var wg sync.WaitGroup
	defer wg.Wait()
	for name := range b.Forges {
		wg.Go(func() {
			wait := 100 * time.Millisecond
			for {
				err := b.meet(ctx, name)
				if err == nil {
					b.checkRights(ctx, name)
					return
				}
				b.Log.WarnContext(ctx, "the forge does not answer yet", "forge", name, "error", err)
				select {
				case <-ctx.Done():
					return
				case <-time.After(wait):
					wait = min(2*wait, 30*time.Second)
				}
			}
		})
	}
}

// meet learns who the bot is on a forge, and what the names of the
// configuration stand for there.
func (b *Bot) meet(ctx context.Context, name string) error {
	a, err := b.self(ctx, name)
	if err != nil {
		return err
	}
	b.roles.resolve(ctx, name)
	b.pinAll(ctx, name)
	b.ready.Store(name, struct{}{})
	b.met.open()
	b.Log.InfoContext(ctx, "connected", "forge", name, "account", a.Login, "account_id", a.ID)
	return nil
}

// gate is closed until it is opened, for good. The zero value is closed.
type gate struct {
	mu sync.Mutex
	ch chan struct{}
}

// opened is closed when the gate is open.
func (g *gate) opened() <-chan struct{} {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.ch == nil {
		g.ch = make(chan struct{})
	}
	return g.ch
}

func (g *gate) open() {
	ch := g.opened()
	g.mu.Lock()
	defer g.mu.Unlock()
	select {
	case <-ch:
	default:
		close(g.ch)
	}
}

// Ready reports whether every forge has answered once, naming one that has
// not.
func (b *Bot) Ready() (bool, string) {
	for name := range b.Forges {
		if _, ok := b.ready.Load(name); !ok {
			return false, name
		}
	}
	return true, ""
}

// checkRights says at start where the bot cannot read standings.
func (b *Bot) checkRights(ctx context.Context, name string) {
	self, err := b.self(ctx, name)
	if err != nil {
		return
	}
	repos, err := b.sweepRepos(ctx, name)
	if err != nil {
		return
	}
	for _, r := range repos {
		p, _, err := b.Forges[name].Permission(ctx, r.ID, self.Login)
		if err != nil {
			b.Log.WarnContext(ctx, "cannot read the bot's own rights", "forge", name, "repo", r.FullName(), "error", err)
			continue
		}
		if p != forge.PermissionAdmin && p != forge.PermissionOwner {
			b.Log.WarnContext(ctx, "the bot is no administrator of the repository, so it cannot read anyone's permission: "+
				"requests from rung 3 up stay undecided. Cure: repository Settings → Collaborators → the bot → Administrator",
				"forge", name, "repo", r.FullName(), "have", string(p))
		}
	}
}
