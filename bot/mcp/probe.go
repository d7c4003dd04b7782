package mcp

import (
	"context"
	"errors"
	"fmt"
	"time"

	"playbook-bot/playbook"
)

// The rungs that a probe does itself: harmless, and self-service in the
// default ladder (seed: MCP scoped recovery playbook, ranks 0 to 2).
const (
	ActionReconnect = "client_reconnect"
	ActionRefresh   = "capability_refresh"
	ActionSession   = "session_reconnect"
)

// The outcomes that a probe records, in the playbook's canonical spelling.
const (
	OutcomeSucceeded = "succeeded"
	OutcomeFailed    = "failed"
	OutcomeTimeout   = "timeout"
	OutcomeSkipped   = "skipped"
)

// Options configures probes. The zero value works.
type Options struct {
	Client ClientOptions
	// Session is the connection in use, whose trouble the probe is to see and
	// mend. Nil: the probe opens and closes one of its own, and can only tell
	// whether the server answers a newcomer. It must be to the same server.
	Session *Client
	// Deadline bounds the whole probe; 10 s.
	Deadline time.Duration
	// Actor is who the records say tried it; "playbook-bot".
	Actor string
	// Now gives the records' times; time.Now.
	Now func() time.Time
}

// probeBodyLimit bounds one answer to a probe. The SDK decodes a list into
// structures up to two hundred times its size ("tools":[{},{},…]), so this is
// tight on purpose.
const probeBodyLimit = 1 << 20

func (o Options) withDefaults() Options {
	if o.Deadline <= 0 {
		o.Deadline = 10 * time.Second
	}
	if o.Actor == "" {
		o.Actor = "playbook-bot"
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Client.BodyLimit <= 0 {
		o.Client.BodyLimit = probeBodyLimit
	}
	if o.Client.StreamLimit <= 0 {
		o.Client.StreamLimit = o.Client.BodyLimit
	}
	if o.Client.HandshakeTimeout <= 0 {
		o.Client.HandshakeTimeout = o.Deadline
	}
	o.Client.NoStream = true
	return o
}

// Report is what a probe found. Everything in it may be shown; the names in
// Changes are inert but foreign, and are to be escaped like any such text.
type Report struct {
	Server    string    `json:"server"`
	StartedAt time.Time `json:"started_at"`
	TookMS    int64     `json:"took_ms"`
	// Answering: the server answers now.
	Answering bool `json:"answering"`
	// RecoveredBy is the rung that brought it back, "" where none did or had to.
	RecoveredBy string `json:"recovered_by"`
	// SessionEnded: it came back with another session. What was in flight on
	// the old one was not sent again.
	SessionEnded bool `json:"session_ended,omitempty"`
	// Verdict is one sentence for people, with that advice.
	Verdict string `json:"verdict"`
	// Before is the look taken before the first rung.
	Before Sight `json:"before"`
	// Steps are the rungs tried, in order, each with its attempt record.
	Steps []Step `json:"steps"`
	// Attempts are the records of Steps, or the one skipped record of a server
	// that answered before the first rung.
	Attempts []playbook.Attempt `json:"attempts"`
}

// Step is one rung.
type Step struct {
	Action  string `json:"action"`
	Outcome string `json:"outcome"`
	TookMS  int64  `json:"took_ms"`
	Sight
}

// Sight is what one look at a server saw.
type Sight struct {
	Answering bool   `json:"answering"`
	Protocol  string `json:"protocol,omitempty"`
	Epoch     Epoch  `json:"epoch,omitempty"`
	// Session is a short hash of the session's id.
	Session string `json:"session,omitempty"`
	// Listed counts what the server offers, by kind.
	Listed map[string]int `json:"listed,omitempty"`
	// Changes is how the lists differ from those last seen on this connection.
	Changes Changes `json:"changes,omitzero"`
	// Symptom is the playbook's code for what was seen, "" where none fits.
	Symptom string `json:"symptom,omitempty"`
	// Seen is one clause for people.
	Seen string `json:"seen"`

	timeout bool // it did not answer in time
	untried bool // the rung could not even be tried
}

// Probe tries rungs 0 to 2 on a server and stops at the first that leaves it
// answering. It calls no tool and restarts nothing (a stdio server is a
// process of its own, started for the probe). A server that does not answer is
// no error: errors are a bad [Server] and a ctx that was cancelled; the latter
// comes with the report so far, in which the rung cut short is missing.
func Probe(ctx context.Context, s Server, o Options) (Report, error) {
	o = o.withDefaults()
	c := o.Session
	if c == nil {
		var err error
		if c, err = newClient(s, o.Client); err != nil {
			return Report{}, fmt.Errorf("probing: %w", err)
		}
		defer leave(c)
	}
	p := &probe{client: c, o: o, report: Report{
		Server: s.Name, StartedAt: o.Now().UTC(), Steps: []Step{}, Attempts: []playbook.Attempt{},
	}}
	start := time.Now()
	bounded, stop := context.WithTimeout(ctx, o.Deadline)
	defer stop()
	p.run(bounded)
	p.report.TookMS = time.Since(start).Milliseconds()
	if err := ctx.Err(); errors.Is(err, context.Canceled) {
		return p.report, fmt.Errorf("probing %s: %w", s.Name, err)
	}
	return p.report, nil
}

// leave closes c and waits a moment for it: a server too slow for the probe
// must not keep its answer back.
func leave(c *Client) {
	done := make(chan struct{})
	go func() { c.Close(); close(done) }()
	select {
	case <-done:
	case <-time.After(time.Second):
	}
}

type probe struct {
	client *Client
	o      Options
	report Report
}

func (p *probe) run(ctx context.Context) {
	rungs := []struct {
		action string
		try    func(context.Context) Sight
	}{
		{ActionReconnect, p.reconnect},
		{ActionRefresh, p.refresh},
		{ActionSession, p.renew},
	}
	shareOf(ctx, len(rungs)+1, func(ctx context.Context) { p.report.Before = p.client.look(ctx) })
	if cancelled(ctx) {
		return
	}
	if p.report.Before.Answering {
		p.report.Answering = true
		p.report.Verdict = "The server answered before the first rung; there was nothing to recover."
		p.record(ActionReconnect, OutcomeSkipped, "the server answered before the first rung: "+p.report.Before.Seen)
		return
	}
	for i, r := range rungs {
		start := time.Now()
		step := Step{Action: r.action}
		shareOf(ctx, len(rungs)-i, func(ctx context.Context) { step.Sight = r.try(ctx) })
		if cancelled(ctx) {
			p.report.Verdict = "The probe was called off."
			return
		}
		took := time.Since(start)
		step.TookMS = took.Milliseconds()
		step.Outcome = outcomeOf(step.Sight)
		p.report.Steps = append(p.report.Steps, step)
		p.record(r.action, step.Outcome, fmt.Sprintf("%s (%s)", step.Seen, took.Round(time.Millisecond)))
		if step.Answering {
			p.report.Answering, p.report.RecoveredBy = true, r.action
			p.report.Verdict = fmt.Sprintf("Recovered on rung %d (%s); no restart is needed.", i, r.action)
			if r.action == ActionSession || p.report.Before.Symptom == "session_expired" {
				p.report.SessionEnded = true
				p.report.Verdict += " " + noReplay
			}
			return
		}
	}
	p.report.Verdict = "The server does not answer, and the rungs that a probe can do did not change that."
}

// shareOf gives f its share of the time left, where n are still to come: a
// server that answers nothing must not use up the later rungs' time.
func shareOf(ctx context.Context, n int, f func(context.Context)) {
	if deadline, ok := ctx.Deadline(); ok {
		var stop context.CancelFunc
		ctx, stop = context.WithTimeout(ctx, time.Until(deadline)/time.Duration(n))
		defer stop()
	}
	f(ctx)
}

func cancelled(ctx context.Context) bool { return errors.Is(ctx.Err(), context.Canceled) }

func outcomeOf(s Sight) string {
	switch {
	case s.Answering:
		return OutcomeSucceeded
	case s.untried:
		return OutcomeSkipped
	case s.timeout:
		return OutcomeTimeout
	}
	return OutcomeFailed
}

// record adds the attempt: verified, because the bot itself saw it.
func (p *probe) record(action, outcome, seen string) {
	p.report.Attempts = append(p.report.Attempts, playbook.Attempt{
		Action: action, Outcome: outcome, Reason: "probe: " + seen,
		Actor: p.o.Actor, RecordedAt: p.o.Now().UTC(), Target: p.report.Server, Verified: true,
	})
}

func (p *probe) reconnect(ctx context.Context) Sight {
	err := p.client.Reconnect(ctx)
	return p.after(ctx, "opened a new connection", err)
}

func (p *probe) refresh(ctx context.Context) Sight {
	if !p.client.connected() {
		// Saying that it failed would claim an attempt that could not be made.
		return Sight{Seen: "there is no connection to list over", untried: true}
	}
	return p.after(ctx, "listed again", nil)
}

func (p *probe) renew(ctx context.Context) Sight {
	err := p.client.Renew(ctx)
	return p.after(ctx, "ended the session and began a new one", err)
}

func (p *probe) after(ctx context.Context, did string, err error) Sight {
	s := failure(err)
	if err == nil {
		s = p.client.look(ctx)
	}
	s.Seen = did + ": " + s.Seen
	return s
}

func (c *Client) connected() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.sess != nil
}

// look asks the server whether it answers: ping, then the lists it declares.
// It recovers nothing; where there is no session at all it makes one. It ends
// with ctx even while the SDK is busy decoding, which nothing interrupts.
func (c *Client) look(ctx context.Context) Sight {
	done := make(chan Sight, 1)
	go func() { done <- c.lookNow(ctx) }()
	select {
	case s := <-done:
		return s
	case <-ctx.Done():
	}
	select { // what it was doing when time ran out says more
	case s := <-done:
		return s
	case <-time.After(100 * time.Millisecond):
		return failure(&CallError{Method: "looking", Fate: Unknown, Why: "no answer in time", cause: ctx.Err()})
	}
}

func (c *Client) lookNow(ctx context.Context) Sight {
	start := time.Now()
	s, err := c.current(ctx, methodInitialize, true)
	if err != nil {
		return failure(err)
	}
	protocol := s.cs.InitializeResult().ProtocolVersion
	if protocol >= modern && s.link != nil {
		// No ping, and the SDK answers lists from a cache where the server set a
		// lifetime: only a new connection shows whether the server is there.
		// Without sessions it is as good as the one held.
		fresh, err := c.dial(ctx, nil)
		if err != nil {
			return failure(err)
		}
		defer c.closeAll(ctx, fresh)
		fresh.epoch = s.epoch
		s = fresh
	}
	lists, err := s.look(ctx, protocol)
	if err != nil {
		out := failure(err)
		out.Protocol, out.Epoch, out.Session = protocol, s.epoch, sessionHash(s.link.session())
		return out
	}
	before := c.know(lists)
	out := Sight{
		Answering: true, Protocol: protocol, Epoch: s.epoch, Session: sessionHash(s.link.session()),
		Listed: map[string]int{}, Changes: Compare(before, lists),
	}
	for kind, items := range lists {
		out.Listed[kind] = len(items)
	}
	out.Seen = fmt.Sprintf("answered in %s over protocol %s with %s", time.Since(start).Round(time.Millisecond), protocol, lists)
	if before.Count() > 0 && lists.Count() == 0 {
		c.know(before) // so that a later look still knows what is missing
		out.Answering, out.Symptom = false, "capability_empty"
		out.Seen += fmt.Sprintf(", where %s were known", before)
	} else if out.Changes.Any() {
		out.Symptom = "stale_capability"
		out.Seen += " (" + out.Changes.String() + " since the last look)"
	}
	return out
}

// modern is the first protocol version without sessions, initialize and ping.
const modern = "2026-07-28"
