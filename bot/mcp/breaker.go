package mcp

import "time"

const (
	breakerBase = time.Second
	breakerMax  = time.Minute
	// A server whose sessions do answer, but never live long, is as broken as
	// one whose fresh sessions are gone: more than breakerBurst restarts
	// within breakerWindow count as a failure too.
	breakerBurst  = 5
	breakerWindow = time.Minute
)

// breaker stops a client from initialising over and over against a server
// that forgets sessions as fast as it issues them (several replicas without
// affinity look like that). It is guarded by its owner.
type breaker struct {
	strikes int // failures in a row
	until   time.Time
	recent  []time.Time // restarts within breakerWindow
	last    error
}

// restart notes an ordinary restart: the session had answered before.
func (b *breaker) restart(now time.Time) {
	keep := b.recent[:0]
	for _, t := range b.recent {
		if now.Sub(t) < breakerWindow {
			keep = append(keep, t)
		}
	}
	b.recent = append(keep, now)
	if len(b.recent) > breakerBurst {
		b.strike(now, ErrSessionExpired)
	}
}

// strike opens the breaker: 1 s, then twice as long each time, up to 1 min.
func (b *breaker) strike(now time.Time, why error) {
	d := breakerMax
	if b.strikes < 6 {
		d = min(breakerBase<<b.strikes, breakerMax)
	}
	b.strikes++
	b.until, b.last = now.Add(d), why
}

// ok closes the breaker after an answer, unless restarts came in a burst:
// there, each session answers once.
func (b *breaker) ok(now time.Time) {
	if len(b.recent) > breakerBurst && now.Sub(b.recent[len(b.recent)-1]) < breakerWindow {
		return
	}
	b.strikes, b.until, b.last = 0, time.Time{}, nil
}

func (b *breaker) wait(now time.Time) time.Duration { return b.until.Sub(now) }
