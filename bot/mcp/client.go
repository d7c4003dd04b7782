package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"sync"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// Epoch numbers the sessions of a client, from 1. What a server handed out in
// one epoch (task ids, input keys) means nothing, or something else, in the
// next.
type Epoch int64

// ClientOptions configures a [Client]. The zero value works.
type ClientOptions struct {
	// Name and Version tell the server who calls; "playbook-bot" and "dev".
	Name, Version string
	// SDK is handed to the SDK's client. Its Logger is replaced (the SDK logs
	// session ids and the peer's texts), and multi round-trips are off: they
	// would send tools/call again without the caller's word.
	SDK sdk.ClientOptions
	// HandshakeTimeout bounds connecting and initialize; 10 s.
	HandshakeTimeout time.Duration
	// BodyLimit bounds one answer in bytes after decompression, and one event
	// or line of a stream; 8 MiB.
	BodyLimit int64
	// StreamLimit bounds a whole event stream in bytes; 0: no limit.
	StreamLimit int64
	// NoStream leaves the GET stream for the server's own messages unopened.
	NoStream bool
	// Transport is used under every HTTP connection; nil: one of the client's
	// own, which asks no proxy (that would read the environment).
	Transport http.RoundTripper
	// Environ is the environment that a stdio server starts from, as
	// "KEY=value". Nil is an empty one: the bot's own holds its secrets.
	Environ []string
	// Logger gets a line for each restart. Nil: none.
	Logger *slog.Logger
	// OnEvent is told of restarts; called from one goroutine at a time, and not
	// after Close. It must not call Close.
	OnEvent func(Event)
	// Now is the clock of the breaker; time.Now.
	Now func() time.Time

	// streamWait is how long the GET stream may take to begin: 5 s, less in
	// tests.
	streamWait time.Duration
}

func (o ClientOptions) withDefaults() ClientOptions {
	if o.Name == "" {
		o.Name = "playbook-bot"
	}
	if o.Version == "" {
		o.Version = "dev"
	}
	if o.HandshakeTimeout <= 0 {
		o.HandshakeTimeout = 10 * time.Second
	}
	if o.BodyLimit <= 0 {
		o.BodyLimit = 8 << 20
	}
	if o.streamWait <= 0 {
		o.streamWait = streamHeaderWait
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return o
}

// Event is something that happened to a client's session.
type Event struct {
	// Kind is "restarted", "restart_failed" or "refreshed".
	Kind  string
	Epoch Epoch
	// Session is a short hash of the session's id, "" where there is none.
	Session string
	Took    time.Duration
	// Changes is what a refresh found; set with "refreshed".
	Changes Changes
	// Err is set with "restart_failed", and with "refreshed" where a list
	// could not be had.
	Err error
}

// Client is a connection to one MCP server that replaces its session when the
// server has ended it. Create one with [Connect]; it is safe for concurrent
// use, and must be closed.
type Client struct {
	server Server
	opts   ClientOptions
	base   http.RoundTripper
	life   context.Context // ends with Close
	kill   context.CancelFunc
	work   sync.WaitGroup // handshakes, with the events they emit

	events sync.Mutex // serialises OnEvent

	mu     sync.Mutex
	closed bool
	epoch  Epoch
	moved  bool // the epoch has moved for the session being made
	sess   *session
	// left is a session that Reconnect walked away from without ending it.
	left    *session
	lastID  string
	resume  *resumption
	flight  *flight
	breaker breaker
	state   state
}

// session is one session of the SDK and what is ours about it.
type session struct {
	cs    *sdk.ClientSession
	link  *link // nil: stdio
	epoch Epoch
	// ctx ends when nobody may wait on this session any longer.
	ctx    context.Context
	cancel context.CancelCauseFunc
	// proven: it is the client's first session, or a request got an answer in
	// it. Guarded by Client.mu.
	proven bool
	made   time.Time
}

// flight is a handshake that several callers wait for.
type flight struct {
	done chan struct{}
	stop context.CancelFunc
	// asked: for a Reconnect or Renew, whose caller looks after the lists.
	asked bool
	err   error
}

// newClient makes a client without a session; its first use makes one.
func newClient(s Server, o ClientOptions) (*Client, error) {
	if err := s.Validate(); err != nil {
		return nil, err
	}
	c := &Client{server: s, opts: o.withDefaults(), epoch: 1, moved: true, base: o.Transport}
	if c.base == nil && s.URL != "" {
		c.base = newTransport()
	}
	c.life, c.kill = context.WithCancel(context.Background())
	return c, nil
}

// newTransport gives each client its own connections: "open a new connection"
// must mean one.
func newTransport() *http.Transport {
	return &http.Transport{
		MaxIdleConnsPerHost:    4,
		IdleConnTimeout:        90 * time.Second,
		TLSHandshakeTimeout:    10 * time.Second,
		ExpectContinueTimeout:  time.Second,
		MaxResponseHeaderBytes: 64 << 10,
		ForceAttemptHTTP2:      true,
	}
}

// Connect opens a connection to s and holds the handshake. ctx bounds this
// alone, not the client's life.
func Connect(ctx context.Context, s Server, o ClientOptions) (*Client, error) {
	c, err := newClient(s, o)
	if err != nil {
		return nil, err
	}
	if _, err := c.current(ctx, methodInitialize, false); err != nil {
		c.Close()
		return nil, err
	}
	return c, nil
}

// Epoch is the session's number.
func (c *Client) Epoch() Epoch {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.epoch
}

// Protocol is the negotiated protocol version, "" while there is no session.
func (c *Client) Protocol() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.sess == nil {
		return ""
	}
	return c.sess.cs.InitializeResult().ProtocolVersion
}

// Sessionless reports that the server keeps no session: there is nothing to
// expire, and nothing that a restart of it could recover.
func (c *Client) Sessionless() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.sess != nil && c.sess.link.session() == ""
}

// Reconnect abandons the connection and makes a new one with a new session,
// without ending the old session on the server and without asking the breaker.
// Subscriptions are made again; whoever asks for this looks at the lists
// (Capabilities), unlike after an expiry.
func (c *Client) Reconnect(ctx context.Context) error {
	c.callOff()
	c.mu.Lock()
	old, over := c.sess, c.left
	c.dropResumeLocked()
	if old != nil {
		c.left = old
		if old.link == nil { // a process is not left running
			c.left = nil
			over = old
		}
		c.endLocked(old)
	}
	c.mu.Unlock()
	if old != nil {
		old.cancel(errReplaced)
		if t, ok := c.base.(*http.Transport); ok {
			t.CloseIdleConnections()
		}
		if over != nil {
			go c.closeAll(context.Background(), over)
		}
	}
	_, err := c.current(ctx, methodInitialize, true)
	return err
}

// Renew ends the session on the server (DELETE, at most 5 s) and makes a new
// one.
func (c *Client) Renew(ctx context.Context) error {
	c.callOff()
	c.mu.Lock()
	old, left := c.sess, c.left
	c.left = nil
	c.dropResumeLocked()
	if old != nil {
		c.endLocked(old)
	}
	c.mu.Unlock()
	c.closeAll(ctx, old, left)
	_, err := c.current(ctx, methodInitialize, true)
	return err
}

// Close ends the session: calls in flight return, DELETE is sent once, and
// after at most 5 s it gives up on the server. It never fails; calling it
// again does nothing.
func (c *Client) Close() {
	c.mu.Lock()
	if c.closed {
		c.mu.Unlock()
		return
	}
	c.closed = true
	old, left := c.sess, c.left
	c.sess, c.left = nil, nil
	c.mu.Unlock()
	c.kill()
	c.closeAll(context.Background(), old, left)
	// A handshake under way has lost its context, and closes what it made.
	c.work.Wait()
	if t, ok := c.base.(*http.Transport); ok && c.opts.Transport == nil {
		t.CloseIdleConnections()
	}
}

// closeTimeout bounds ending a session.
const closeTimeout = 5 * time.Second

// closeAll ends sessions and waits for it, until ctx ends or closeTimeout.
func (c *Client) closeAll(ctx context.Context, sessions ...*session) {
	ctx, stop := context.WithTimeout(ctx, closeTimeout)
	var wg sync.WaitGroup
	for _, s := range sessions {
		if s != nil {
			wg.Go(func() { s.close(ctx, c.server.URL) })
		}
	}
	done := make(chan struct{})
	go func() { wg.Wait(); stop(); close(done) }()
	select {
	case <-done:
	case <-ctx.Done():
	}
}

// close ends s. The SDK waits for calls in flight, so they go first.
func (s *session) close(ctx context.Context, url string) {
	s.cancel(errReplaced)
	if s.link != nil {
		s.link.end(ctx, url, s.cs.InitializeResult().ProtocolVersion)
	}
	_ = s.cs.Close() // the peer's failure to say goodbye is nobody's error
}

// errReplaced is the cause with which calls on a session left behind end.
var errReplaced = errors.New("the session was replaced")

// end takes s out of service because the server no longer knows it. Of the
// callers who find out, the first does it.
func (c *Client) end(s *session) {
	c.mu.Lock()
	// By epoch: the same session may be attached to a newer connection.
	if c.sess == nil || c.sess.epoch != s.epoch {
		c.mu.Unlock()
		return
	}
	old := c.sess
	now := c.opts.Now()
	if old.proven || now.Sub(old.made) > breakerWindow {
		c.breaker.restart(now)
	} else {
		c.breaker.strike(now, ErrSessionExpired)
	}
	c.endLocked(old)
	c.mu.Unlock()
	go c.closeAll(context.Background(), old)
}

// endLocked moves the epoch on, before any replacement is begun: from here on
// nothing pinned to the old session is written.
func (c *Client) endLocked(s *session) {
	c.sess, c.resume = nil, nil
	if s.link == nil || s.link.session() != "" {
		c.epoch++
		c.moved = true
	}
}

// dropResumeLocked gives up a session that no connection is attached to.
func (c *Client) dropResumeLocked() {
	if c.resume != nil {
		c.resume = nil
		c.epoch++
		c.moved = true
	}
}

// detach drops s's broken connection and keeps its session.
func (c *Client) detach(s *session) {
	id := s.link.session()
	result, err := json.Marshal(s.cs.InitializeResult())
	c.mu.Lock()
	if c.sess != s || err != nil {
		c.mu.Unlock()
		return
	}
	c.sess = nil
	if id != "" {
		c.resume = &resumption{id: id, result: result, proven: s.proven}
	}
	c.mu.Unlock()
	s.link.keep()
	go c.closeAll(context.Background(), s)
}

// current gives the session in force. Where there is none it starts a
// handshake, or joins the one under way and shares its result. force asks no
// breaker.
func (c *Client) current(ctx context.Context, method string, force bool) (*session, error) {
	for {
		c.mu.Lock()
		if c.closed {
			c.mu.Unlock()
			return nil, &CallError{Method: method, Fate: NotSent, Why: ErrClosed.Error(), kinds: []error{ErrClosed}}
		}
		if s := c.sess; s != nil {
			c.mu.Unlock()
			return s, nil
		}
		f := c.flight
		if f == nil {
			if wait := c.breaker.wait(c.opts.Now()); wait > 0 && !force {
				last := c.breaker.last
				c.mu.Unlock()
				return nil, breakerError(method, wait, last)
			}
			f = c.launchLocked(force)
		}
		c.mu.Unlock()
		select {
		case <-f.done:
			if f.err != nil {
				return nil, f.err
			}
		case <-ctx.Done():
			return nil, &CallError{Method: method, Fate: NotSent, Why: "gave up waiting for the session",
				kinds: []error{context.Cause(ctx)}, cause: ctx.Err()}
		}
	}
}

func (c *Client) launchLocked(asked bool) *flight {
	ctx, stop := context.WithTimeout(c.life, c.opts.HandshakeTimeout)
	f := &flight{done: make(chan struct{}), stop: stop, asked: asked}
	c.flight = f
	resume := c.resume
	c.work.Go(func() { c.handshake(ctx, f, resume) })
	return f
}

// callOff ends a handshake under way, for callers who want one begun now.
func (c *Client) callOff() {
	c.mu.Lock()
	f := c.flight
	c.mu.Unlock()
	if f != nil {
		f.stop()
		<-f.done
	}
}

func breakerError(method string, wait time.Duration, last error) error {
	return &CallError{
		Method: method, Fate: NotSent, cause: last, kinds: []error{ErrBreakerOpen},
		Why: fmt.Sprintf("%v (%s)", ErrBreakerOpen, wait.Round(time.Millisecond)),
	}
}

// handshake makes a session for all who wait on f. Its context is the
// client's: a leader who gives up must not fail the others.
func (c *Client) handshake(ctx context.Context, f *flight, resume *resumption) {
	start := time.Now()
	defer f.stop()
	s, err := c.dial(ctx, resume)

	c.mu.Lock()
	first := !c.state.started
	switch {
	case err != nil:
		if !first && !errors.Is(ctx.Err(), context.Canceled) {
			c.breaker.strike(c.opts.Now(), err)
		}
	case c.closed:
		err = &CallError{Method: methodInitialize, Fate: NotSent, Why: ErrClosed.Error(), kinds: []error{ErrClosed}}
	default:
		s.proven = first || resume != nil && resume.proven
		c.installLocked(s)
	}
	if err != nil && s != nil {
		defer c.closeAll(context.Background(), s)
	}
	f.err = err
	c.flight = nil
	ev := Event{Kind: "restarted", Epoch: c.epoch, Took: time.Since(start), Err: err}
	c.mu.Unlock()
	close(f.done)

	if first || resume != nil {
		return
	}
	if err != nil {
		ev.Kind = "restart_failed"
		c.emit(ev)
		return
	}
	ev.Session = sessionHash(s.link.session())
	c.emit(ev)
	c.restore(s, !f.asked)
}

func (c *Client) installLocked(s *session) {
	id := s.link.session()
	if id != "" && id != c.lastID && !c.moved {
		c.epoch++
	}
	c.moved, c.lastID, c.resume = false, id, nil
	c.state.started = true
	s.epoch, s.made = c.epoch, c.opts.Now()
	c.sess = s
}

func (c *Client) emit(ev Event) {
	attrs := []any{"server", c.server.Name, "event", ev.Kind, "epoch", int64(ev.Epoch), "session", ev.Session, "took", ev.Took}
	if ev.Err != nil {
		attrs = append(attrs, "error", ev.Err.Error())
	}
	c.opts.Logger.Info("mcp session", attrs...)
	if c.opts.OnEvent != nil {
		c.events.Lock()
		defer c.events.Unlock()
		c.opts.OnEvent(ev)
	}
}
