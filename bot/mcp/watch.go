package mcp

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"
)

// Health is one line of a watch.
type Health struct {
	At     time.Time `json:"at"`
	Server string    `json:"server"`
	// Restored: the server did not answer on the connection held, and does on
	// a new one. Was then says what the old one met.
	Restored bool   `json:"restored"`
	Was      *Sight `json:"was,omitempty"`
	Sight
}

// String is one line without any of the peer's text.
func (h Health) String() string {
	state := "down"
	switch {
	case h.Restored:
		state = "restored"
	case h.Answering:
		state = "ok"
	}
	parts := []string{h.At.UTC().Format(time.RFC3339), h.Server, state}
	if h.Was != nil && h.Restored {
		parts = append(parts, "("+h.Was.Seen+")")
	}
	parts = append(parts, h.Seen)
	if h.Symptom != "" {
		parts = append(parts, "["+h.Symptom+"]")
	}
	return strings.Join(parts, " ")
}

// Watch looks at a server now and then every so often, until ctx ends, and
// hands each result to tell, one at a time. It keeps one connection and makes
// a new one when that no longer answers. The error is a bad [Server], or
// ctx's.
func Watch(ctx context.Context, s Server, o Options, every time.Duration, tell func(Health)) error {
	if every <= 0 {
		return fmt.Errorf("watching %s: the interval must be positive", s.Name)
	}
	tick := time.NewTicker(every)
	defer tick.Stop()
	return watch(ctx, s, o, tick.C, tell)
}

// watch looks once at the start and at every tick.
func watch(ctx context.Context, s Server, o Options, tick <-chan time.Time, tell func(Health)) error {
	o = o.withDefaults()
	c := o.Session
	if c == nil {
		var err error
		if c, err = newClient(s, o.Client); err != nil {
			return fmt.Errorf("watching: %w", err)
		}
		defer c.Close()
	}
	for {
		h := c.health(ctx, o)
		if ctx.Err() == nil {
			tell(h)
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("watching %s: %w", s.Name, context.Cause(ctx))
		case <-tick:
		}
	}
}

func (c *Client) health(ctx context.Context, o Options) Health {
	ctx, stop := context.WithTimeout(ctx, o.Deadline)
	defer stop()
	h := Health{At: o.Now().UTC(), Server: c.server.Name}
	held := c.connected()
	shareOf(ctx, 2, func(ctx context.Context) { h.Sight = c.look(ctx) })
	if h.Answering || !held {
		return h
	}
	was := h.Sight
	h.Was = &was
	if err := c.Reconnect(ctx); err != nil {
		h.Sight = failure(err)
		return h
	}
	h.Sight = c.look(ctx)
	h.Restored = h.Answering
	return h
}

// Pool holds one connection to each server of a configuration, so that a probe
// sees the trouble of a session in use and not only whether a newcomer is
// answered. Connections are made by the first probe. Safe for concurrent use.
type Pool struct {
	servers Servers
	options Options

	mu     sync.Mutex
	held   map[string]*holding
	closed bool
}

type holding struct {
	mu     sync.Mutex // one probe at a time
	client *Client
	closed bool
}

// NewPool makes a pool; o.Session is not used.
func NewPool(servers Servers, o Options) *Pool {
	return &Pool{servers: servers, options: o.withDefaults(), held: map[string]*holding{}}
}

// Servers are the servers that may be probed.
func (p *Pool) Servers() Servers { return p.servers }

// Probe probes a server by its name, which may come from a comment, and keeps
// the connection for the next time. Errors are those of [Servers.Lookup] and
// of [Probe]. Probes of the same server wait for each other; that wait is
// bounded by ctx only.
func (p *Pool) Probe(ctx context.Context, name string) (Report, error) {
	s, err := p.servers.Lookup(name)
	if err != nil {
		return Report{}, fmt.Errorf("probing: %w", err)
	}
	p.mu.Lock()
	if p.closed {
		p.mu.Unlock()
		return Report{}, fmt.Errorf("probing %s: %w", s.Name, ErrClosed)
	}
	h := p.held[s.Name]
	if h == nil {
		h = &holding{}
		p.held[s.Name] = h
	}
	p.mu.Unlock()

	h.mu.Lock()
	defer h.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return Report{}, fmt.Errorf("probing %s: %w", s.Name, err)
	}
	if h.closed {
		return Report{}, fmt.Errorf("probing %s: %w", s.Name, ErrClosed)
	}
	if h.client == nil {
		if h.client, err = newClient(s, p.options.Client); err != nil {
			return Report{}, fmt.Errorf("probing: %w", err)
		}
	}
	o := p.options
	o.Session = h.client
	return Probe(ctx, s, o)
}

// Close ends all connections, within 5 s.
func (p *Pool) Close() {
	p.mu.Lock()
	p.closed = true
	held := p.held
	p.held = nil
	p.mu.Unlock()
	var wg sync.WaitGroup
	for _, h := range held {
		wg.Go(func() {
			h.mu.Lock()
			defer h.mu.Unlock()
			h.closed = true
			if h.client != nil {
				h.client.Close()
			}
		})
	}
	wg.Wait()
}
