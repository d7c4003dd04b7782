package mcp

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

func asCallError(t *testing.T, err error) *CallError {
	t.Helper()
	var e *CallError
	if !errors.As(err, &e) {
		t.Fatalf("error is %T (%v), want *CallError", err, err)
	}
	return e
}

func wantCounts(t *testing.T, p *peer, want map[string]int) {
	t.Helper()
	for method, n := range want {
		if got := p.count(method); got != n {
			t.Errorf("%s arrived %d times, want %d", method, got, n)
		}
	}
}

// Rule 1: recover on 404 only, and only if that request carried a session id.
func TestRule01RecoverOn404Only(t *testing.T) {
	for _, status := range []int{400, 401, 403, 405, 410, 429, 500, 502, 503, 504} {
		t.Run(fmt.Sprint(status), func(t *testing.T) {
			p := newPeer(t, plainText)
			var hit atomic.Bool
			p.on(func(w http.ResponseWriter, _ *http.Request, method, _ string) bool {
				if method == "tools/list" && hit.CompareAndSwap(false, true) {
					http.Error(w, canary, status)
					return true
				}
				return false
			})
			c := connectTo(t, p.server(), ClientOptions{})
			_, err := c.ListTools(testContext(t), nil)
			e := asCallError(t, err)
			if e.Status != status || e.Fate != Refused || errors.Is(err, ErrSessionExpired) {
				t.Errorf("got %+v", e)
			}
			wantCounts(t, p, map[string]int{"initialize": 1, "tools/list": 1})
			// The session still stands, and so must the client.
			if _, err := c.ListTools(testContext(t), nil); err != nil {
				t.Errorf("after %d: %v", status, err)
			}
			wantCounts(t, p, map[string]int{"initialize": 1, "tools/list": 2})
			if c.Epoch() != 1 {
				t.Errorf("epoch %d, want 1", c.Epoch())
			}
		})
	}
	t.Run("404 without a session id", func(t *testing.T) {
		p := newPeer(t, plainText)
		p.sessionless = true
		p.on(func(w http.ResponseWriter, _ *http.Request, method, _ string) bool {
			if method != "tools/list" {
				return false
			}
			http.Error(w, canary, 404)
			return true
		})
		c := connectTo(t, p.server(), ClientOptions{})
		_, err := c.ListTools(testContext(t), nil)
		if !errors.Is(err, ErrNoSession) || errors.Is(err, ErrSessionExpired) {
			t.Errorf("got %v", err)
		}
		wantCounts(t, p, map[string]int{"initialize": 1, "tools/list": 1})
	})
}

// barrier holds the first n requests it is asked about until all are there, so
// that they meet the same fate together.
type barrier struct {
	n    int
	mu   sync.Mutex
	seen int
	open chan struct{}
}

func newBarrier(n int) *barrier { return &barrier{n: n, open: make(chan struct{})} }

func (b *barrier) pass() {
	b.mu.Lock()
	b.seen++
	if b.seen == b.n {
		close(b.open)
	}
	late := b.seen > b.n
	b.mu.Unlock()
	if !late {
		<-b.open
	}
}

// Rule 2: restarts are single-flight.
func TestRule02RestartIsSingleFlight(t *testing.T) {
	const callers = 32
	t.Run("one initialize for all", func(t *testing.T) {
		p := newPeer(t, echoedID)
		b := newBarrier(callers)
		p.on(func(_ http.ResponseWriter, _ *http.Request, method, _ string) bool {
			if method == "tools/list" {
				b.pass()
			}
			return false
		})
		c := connectTo(t, p.server(), ClientOptions{})
		p.expire()
		for i, err := range together(callers, func() error {
			_, err := c.ListTools(testContext(t), nil)
			return err
		}) {
			if err != nil {
				t.Errorf("caller %d: %v", i, err)
			}
		}
		wantCounts(t, p, map[string]int{"initialize": 2, "tools/list": 2 * callers})
	})
	t.Run("all get the leader's error", func(t *testing.T) {
		p := newPeer(t, plainText)
		c := connectTo(t, p.server(), ClientOptions{})
		b := newBarrier(callers)
		p.on(func(w http.ResponseWriter, _ *http.Request, method, _ string) bool {
			switch method {
			case "tools/list":
				b.pass()
			case "initialize":
				http.Error(w, canary, 500)
				return true
			}
			return false
		})
		p.expire()
		for i, err := range together(callers, func() error {
			_, err := c.ListTools(testContext(t), nil)
			return err
		}) {
			if !errors.Is(err, ErrHandshake) {
				t.Errorf("caller %d got %v, want the handshake's error", i, err)
			}
		}
		wantCounts(t, p, map[string]int{"initialize": 2, "tools/list": callers})
	})
	t.Run("a leader who gives up fails nobody", func(t *testing.T) {
		p := newPeer(t, plainText)
		c := connectTo(t, p.server(), ClientOptions{})
		p.expire()
		reached, release := make(chan struct{}), make(chan struct{})
		p.on(func(_ http.ResponseWriter, _ *http.Request, method, _ string) bool {
			if method == "initialize" {
				close(reached)
				<-release
			}
			return false
		})
		ctx, cancel := context.WithCancel(testContext(t))
		leader := make(chan error, 1)
		go func() {
			_, err := c.ListTools(ctx, nil)
			leader <- err
		}()
		<-reached
		joined := make(chan error, 1)
		go func() {
			_, err := c.ListTools(testContext(t), nil)
			joined <- err
		}()
		cancel()
		if err := <-leader; !errors.Is(err, context.Canceled) {
			t.Errorf("the leader got %v", err)
		}
		close(release)
		if err := <-joined; err != nil {
			t.Errorf("who joined got %v", err)
		}
		wantCounts(t, p, map[string]int{"initialize": 2})
	})
}

func together(n int, f func() error) []error {
	errs := make([]error, n)
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() { errs[i] = f() })
	}
	wg.Wait()
	return errs
}

// Rule 3: the epoch moves before the replacement handshake, on DELETE, and
// when a handshake brings another id; initialize carries no id (peer checks it
// in every test); cursors of event streams are dropped.
func TestRule03EpochMovesFirst(t *testing.T) {
	t.Run("before the replacement handshake", func(t *testing.T) {
		p := newPeer(t, plainText)
		c := connectTo(t, p.server(), ClientOptions{})
		p.expire()
		var during atomic.Int64
		p.on(func(_ http.ResponseWriter, _ *http.Request, method, _ string) bool {
			if method == "initialize" {
				during.Store(int64(c.Epoch()))
			}
			return false
		})
		if _, err := c.ListTools(testContext(t), nil); err != nil {
			t.Fatal(err)
		}
		if during.Load() != 2 || c.Epoch() != 2 {
			t.Errorf("epoch %d during the handshake and %d after it, want 2 and 2", during.Load(), c.Epoch())
		}
	})
	t.Run("on DELETE", func(t *testing.T) {
		p := newPeer(t, plainText)
		c := connectTo(t, p.server(), ClientOptions{})
		var during atomic.Int64
		p.on(func(_ http.ResponseWriter, _ *http.Request, method, _ string) bool {
			if method == http.MethodDelete {
				during.Store(int64(c.Epoch()))
			}
			return false
		})
		if err := c.Renew(testContext(t)); err != nil {
			t.Fatal(err)
		}
		if during.Load() != 2 || c.Epoch() != 2 {
			t.Errorf("epoch %d during DELETE and %d after, want 2 and 2", during.Load(), c.Epoch())
		}
		wantCounts(t, p, map[string]int{"DELETE": 1, "initialize": 2})
	})
	t.Run("when a handshake brings an id", func(t *testing.T) {
		p := newPeer(t, plainText)
		p.sessionless = true
		c := connectTo(t, p.server(), ClientOptions{})
		if !c.Sessionless() {
			t.Error("the server issued no id")
		}
		if err := c.Reconnect(testContext(t)); err != nil {
			t.Fatal(err)
		}
		if c.Epoch() != 1 {
			t.Errorf("epoch %d: no session, nothing ended", c.Epoch())
		}
		p.with(func() { p.sessionless = false })
		if err := c.Reconnect(testContext(t)); err != nil {
			t.Fatal(err)
		}
		if c.Epoch() != 2 || c.Sessionless() {
			t.Errorf("epoch %d, want 2", c.Epoch())
		}
	})
}

func TestRule03CursorsAreDropped(t *testing.T) {
	p := newPeer(t, plainText)
	opened := make(chan string, 8)
	p.on(func(w http.ResponseWriter, r *http.Request, method, _ string) bool {
		if method != http.MethodGet {
			return false
		}
		opened <- r.Header.Get(lastEventHeader)
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprint(w, "id: cursor-7\nevent: message\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/tools/list_changed\"}\n\n")
		w.(http.Flusher).Flush()
		select {
		case <-r.Context().Done():
		case <-p.quit:
		}
		return true
	})
	seen := make(chan struct{}, 8)
	c := connectTo(t, p.server(), ClientOptions{SDK: sdk.ClientOptions{
		ToolListChangedHandler: func(context.Context, *sdk.ToolListChangedRequest) { seen <- struct{}{} },
	}})
	<-opened
	<-seen // the client has the cursor now
	p.expire()
	if _, err := c.ListTools(testContext(t), nil); err != nil {
		t.Fatal(err)
	}
	if cursor := <-opened; cursor != "" {
		t.Errorf("the new session's stream was opened with cursor %q of the old", cursor)
	}
}

// Rule 4: only an allow-list of idempotent methods is sent again, once.
func TestRule04OnlyIdempotentMethodsAreSentAgain(t *testing.T) {
	type call struct {
		method string
		send   func(context.Context, *Client) error
	}
	raw := func(method string, f func(context.Context, *sdk.ClientSession) error) call {
		return call{method, func(ctx context.Context, c *Client) error {
			_, err := Do(ctx, c, method, func(ctx context.Context, cs *sdk.ClientSession) (none, error) { return none{}, f(ctx, cs) })
			return err
		}}
	}
	again := []call{
		{"ping", func(ctx context.Context, c *Client) error { return c.Ping(ctx) }},
		{"tools/list", func(ctx context.Context, c *Client) error { _, err := c.ListTools(ctx, nil); return err }},
		{"resources/list", func(ctx context.Context, c *Client) error { _, err := c.ListResources(ctx, nil); return err }},
		{"resources/templates/list", func(ctx context.Context, c *Client) error { _, err := c.ListResourceTemplates(ctx, nil); return err }},
		{"prompts/list", func(ctx context.Context, c *Client) error { _, err := c.ListPrompts(ctx, nil); return err }},
		{"resources/read", func(ctx context.Context, c *Client) error {
			_, err := c.ReadResource(ctx, &sdk.ReadResourceParams{URI: "file:///a"})
			return err
		}},
		{"prompts/get", func(ctx context.Context, c *Client) error {
			_, err := c.GetPrompt(ctx, &sdk.GetPromptParams{Name: "a"})
			return err
		}},
		{"completion/complete", func(ctx context.Context, c *Client) error {
			_, err := c.Complete(ctx, &sdk.CompleteParams{Ref: &sdk.CompleteReference{Type: "ref/prompt", Name: "a"}})
			return err
		}},
		raw("logging/setLevel", func(ctx context.Context, cs *sdk.ClientSession) error {
			//lint:ignore SA1019 servers up to 2025-11-25 have it, and the rule names it.
			return cs.SetLoggingLevel(ctx, &sdk.SetLoggingLevelParams{Level: "error"})
		}),
		{"resources/subscribe", func(ctx context.Context, c *Client) error {
			return c.Subscribe(ctx, &sdk.SubscribeParams{URI: "file:///a"})
		}},
		{"resources/unsubscribe", func(ctx context.Context, c *Client) error {
			return c.Unsubscribe(ctx, &sdk.UnsubscribeParams{URI: "file:///a"})
		}},
	}
	for _, tt := range again {
		t.Run(tt.method, func(t *testing.T) {
			p := newPeer(t, plainText)
			c := connectTo(t, p.server(), ClientOptions{})
			p.expire()
			if err := tt.send(testContext(t), c); err != nil {
				t.Fatal(err)
			}
			wantCounts(t, p, map[string]int{"initialize": 2, tt.method: 2})
		})
	}
	never := []call{
		{"tools/call", callEcho},
		// A method nobody put on the list: asked for by another name, so that
		// no list of forbidden ones can pass for the allow-list.
		raw("tasks/cancel", func(ctx context.Context, cs *sdk.ClientSession) error {
			_, err := cs.CallTool(ctx, &sdk.CallToolParams{Name: "echo"})
			return err
		}),
	}
	for _, tt := range never {
		t.Run("not "+tt.method, func(t *testing.T) {
			p := newPeer(t, plainText)
			c := connectTo(t, p.server(), ClientOptions{})
			p.expire()
			err := tt.send(testContext(t), c)
			e := asCallError(t, err)
			if !errors.Is(err, ErrNotResent) || !errors.Is(err, ErrOutcomeUnknown) || !e.Restarted || e.Fate != Unknown {
				t.Errorf("got %+v", e)
			}
			for _, part := range []string{"restarted", "NOT sent again", "may already have executed"} {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("%q does not say %q", err, part)
				}
			}
			wantCounts(t, p, map[string]int{"initialize": 2, "tools/call": 1})
			if err := tt.send(testContext(t), c); err != nil {
				t.Errorf("in the new session: %v", err)
			}
		})
	}
}

func callEcho(ctx context.Context, c *Client) error {
	_, err := c.CallTool(ctx, &sdk.CallToolParams{Name: "echo"})
	return err
}

// A session whose end the stream has noticed: nothing of the call was written
// to it, so that even tools/call goes into the new one, once.
func TestRule04StreamLearnsOfTheExpiryFirst(t *testing.T) {
	p := newPeer(t, nullID)
	drop, refused := make(chan struct{}), make(chan struct{}, 64)
	var streams atomic.Int32
	p.on(func(w http.ResponseWriter, _ *http.Request, method, _ string) bool {
		if method != http.MethodGet {
			return false
		}
		switch streams.Add(1) {
		case 1:
			w.Header().Set("Content-Type", "text/event-stream")
			fmt.Fprint(w, "id: 1\nretry: 1\ndata:\n\n")
			w.(http.Flusher).Flush()
			<-drop
		case 2:
			p.sayGone(w, "1")
			refused <- struct{}{}
		default:
			return false
		}
		return true
	})
	c := connectTo(t, p.server(), ClientOptions{})
	s := c.sess
	p.expire()
	close(drop)
	<-refused
	_ = s.cs.Wait() // until the SDK has given up the connection
	if err := callEcho(testContext(t), c); err != nil {
		t.Error(err)
	}
	wantCounts(t, p, map[string]int{"initialize": 2, "tools/call": 1})
}

// Rule 5: a second 404 after the restart does not recurse; repeated expiry
// opens a breaker with backoff.
func TestRule05RepeatedExpiryOpensTheBreaker(t *testing.T) {
	p := newPeer(t, errorID)
	ck := newClock()
	c := connectTo(t, p.server(), ClientOptions{Now: ck.Now})
	if _, err := c.ListTools(testContext(t), nil); err != nil {
		t.Fatal(err)
	}
	// From here on even a fresh session is unknown.
	p.on(func(w http.ResponseWriter, _ *http.Request, method, id string) bool {
		if method != "tools/list" {
			return false
		}
		p.sayGone(w, id)
		return true
	})
	_, err := c.ListTools(testContext(t), nil)
	if !errors.Is(err, ErrSessionExpired) || !strings.Contains(err.Error(), "again right after its restart") {
		t.Errorf("got %v", err)
	}
	wantCounts(t, p, map[string]int{"initialize": 2, "tools/list": 3})

	inits, lists := 2, 3
	for _, backoff := range []time.Duration{time.Second, 2 * time.Second, 4 * time.Second} {
		ck.add(backoff - time.Millisecond)
		_, err = c.ListTools(testContext(t), nil)
		if !errors.Is(err, ErrBreakerOpen) || !errors.Is(err, ErrSessionExpired) || asCallError(t, err).Fate != NotSent {
			t.Errorf("before %v: %v", backoff, err)
		}
		wantCounts(t, p, map[string]int{"initialize": inits, "tools/list": lists})
		ck.add(time.Millisecond)
		if _, err = c.ListTools(testContext(t), nil); !errors.Is(err, ErrSessionExpired) {
			t.Errorf("after %v: %v", backoff, err)
		}
		inits, lists = inits+1, lists+1
		wantCounts(t, p, map[string]int{"initialize": inits, "tools/list": lists})
	}
	p.on(nil)
	ck.add(time.Minute)
	if _, err := c.ListTools(testContext(t), nil); err != nil {
		t.Errorf("once the server is well again: %v", err)
	}
}

// Sessions that each answer once and expire are no better.
func TestRule05BurstOfRestartsOpensTheBreaker(t *testing.T) {
	p := newPeer(t, plainText)
	ck := newClock()
	c := connectTo(t, p.server(), ClientOptions{Now: ck.Now})
	var opened error
	for range 20 {
		ck.add(time.Second)
		if _, opened = c.ListTools(testContext(t), nil); opened != nil {
			break
		}
		p.expire()
	}
	if !errors.Is(opened, ErrBreakerOpen) {
		t.Fatalf("twenty restarts in twenty seconds: %v", opened)
	}
	if n := p.count("initialize"); n > breakerBurst+2 {
		t.Errorf("%d times initialized", n)
	}
}

// Rule 6: a request pinned to an epoch that is over is refused before anything
// is written.
func TestRule06PinnedRequestsEndWithTheirEpoch(t *testing.T) {
	p := newPeer(t, plainText)
	c := connectTo(t, p.server(), ClientOptions{})
	ctx := WithEpoch(testContext(t), c.Epoch())
	if err := callEcho(ctx, c); err != nil {
		t.Fatal(err)
	}
	p.expire()
	// The pin holds until the 404 shows that its session is over; then even an
	// idempotent request is not taken into the next.
	if _, err := c.ListTools(ctx, nil); !errors.Is(err, ErrEpochOver) {
		t.Errorf("got %v", err)
	}
	wantCounts(t, p, map[string]int{"tools/list": 1, "initialize": 1})
	err := callEcho(ctx, c)
	if e := asCallError(t, err); !errors.Is(err, ErrEpochOver) || e.Fate != NotSent {
		t.Errorf("got %+v", e)
	}
	wantCounts(t, p, map[string]int{"tools/call": 1, "initialize": 1})
	if err := callEcho(testContext(t), c); err != nil {
		t.Errorf("not pinned: %v", err)
	}
	if err := callEcho(ctx, c); !errors.Is(err, ErrEpochOver) {
		t.Errorf("pinned to epoch 1 in epoch %d: %v", c.Epoch(), err)
	}
	wantCounts(t, p, map[string]int{"tools/call": 2})
}

// Rule 7: a connection dropped in the middle of tools/call is outcome unknown.
func TestRule07DroppedConnectionIsOutcomeUnknown(t *testing.T) {
	drops := map[string]func(w http.ResponseWriter){
		"before the answer": hangUp,
		"within a JSON answer": func(w http.ResponseWriter) {
			w.Header().Set("Content-Type", "application/json")
			w.Header().Set("Content-Length", "1000")
			_, _ = w.Write([]byte(`{"jsonrpc":"2.0",`))
			w.(http.Flusher).Flush()
			hangUp(w)
		},
		"within an event stream": func(w http.ResponseWriter) {
			w.Header().Set("Content-Type", "text/event-stream")
			_, _ = w.Write([]byte("event: message\n"))
			w.(http.Flusher).Flush()
			hangUp(w)
		},
	}
	for name, drop := range drops {
		t.Run(name, func(t *testing.T) {
			p := newPeer(t, plainText)
			var once atomic.Bool
			p.on(func(w http.ResponseWriter, _ *http.Request, method, _ string) bool {
				if method == "tools/call" && once.CompareAndSwap(false, true) {
					drop(w)
					return true
				}
				return false
			})
			s := p.server()
			s.Header = func(context.Context) (http.Header, error) {
				return http.Header{"Idempotency-Key": {"k"}, "X-Idempotency-Key": {"k"}}, nil
			}
			c := connectTo(t, s, ClientOptions{})
			if err := c.Ping(testContext(t)); err != nil { // warm: the call meets a used connection
				t.Fatal(err)
			}
			err := callEcho(testContext(t), c)
			if e := asCallError(t, err); !errors.Is(err, ErrOutcomeUnknown) || e.Fate != Unknown {
				t.Errorf("got %+v", e)
			}
			wantCounts(t, p, map[string]int{"tools/call": 1, "initialize": 1})
			// The session was not the casualty.
			if err := callEcho(testContext(t), c); err != nil {
				t.Errorf("next call: %v", err)
			}
			wantCounts(t, p, map[string]int{"tools/call": 2, "initialize": 1, "DELETE": 0})
			if c.Epoch() != 1 {
				t.Errorf("epoch %d, want 1", c.Epoch())
			}
		})
	}
	t.Run("never written", func(t *testing.T) {
		p := newPeer(t, plainText)
		c := connectTo(t, p.server(), ClientOptions{})
		c.base.(*http.Transport).CloseIdleConnections()
		p.Listener.Close()
		err := callEcho(testContext(t), c)
		if e := asCallError(t, err); e.Fate != NotSent || errors.Is(err, ErrOutcomeUnknown) {
			t.Errorf("got %+v", e)
		}
	})
}

// Rule 8: after a restart the lists are fetched again and the changes reported.
func TestRule08RestartRefreshesTheLists(t *testing.T) {
	p := newPeer(t, plainText)
	ev := newEvents()
	c := connectTo(t, p.server(), ClientOptions{OnEvent: ev.add})
	if _, err := c.Capabilities(testContext(t)); err != nil {
		t.Fatal(err)
	}
	if err := c.Subscribe(testContext(t), &sdk.SubscribeParams{URI: "file:///a"}); err != nil {
		t.Fatal(err)
	}
	p.expire()
	p.with(func() { p.tools = []string{"echo2", "evil\x1b[2J\u202e"} })
	if err := c.Ping(testContext(t)); err != nil {
		t.Fatal(err)
	}
	if got := ev.wait(t, "restarted"); got.Epoch != 2 || got.Err != nil {
		t.Errorf("restarted: %+v", got)
	}
	got := ev.wait(t, "refreshed")
	want := Changes{Added: []string{"echo2", "evil\ufffd[2J\ufffd"}, Removed: []string{"echo"}}
	if fmt.Sprint(got.Changes) != fmt.Sprint(want) || !slices.Equal(got.Changes.Added, want.Added) || !slices.Equal(got.Changes.Removed, want.Removed) {
		t.Errorf("changes %+v, want %+v", got.Changes, want)
	}
	wantCounts(t, p, map[string]int{"tools/list": 2, "resources/subscribe": 2, "initialize": 2})
}

// Rule 9: session ids and the peer's payload are in no log and no error.
func TestRule09NothingOfThePeerIsRepeated(t *testing.T) {
	var buf bytes.Buffer
	var mu sync.Mutex
	log := slog.New(slog.NewTextHandler(writerFunc(func(b []byte) (int, error) {
		mu.Lock()
		defer mu.Unlock()
		return buf.Write(b)
	}), &slog.HandlerOptions{Level: slog.LevelDebug}))
	ck := newClock()
	var texts []string
	check := func(err error) {
		for e := err; e != nil; e = errors.Unwrap(e) {
			texts = append(texts, fmt.Sprintf("%v|%+v|%q", e, e, e.Error()))
		}
	}
	for _, d := range append(slices.Clone(goneDialects), badRequest) {
		p := newPeer(t, d)
		ev := newEvents()
		c := connectTo(t, p.server(), ClientOptions{Logger: log, OnEvent: ev.add, Now: ck.Now})
		if _, err := c.Capabilities(testContext(t)); err != nil {
			t.Fatal(err)
		}
		p.expire()
		check(callEcho(testContext(t), c))
		p.on(func(w http.ResponseWriter, _ *http.Request, method, id string) bool {
			if method == "tools/call" {
				p.sayGone(w, id)
				return true
			}
			if method == "prompts/get" {
				rpcAnswer(w, 200, `{"jsonrpc":"2.0","id":`+id+`,"error":{"code":-32000,"message":"`+canary+`"}}`)
				return true
			}
			if method == "initialize" {
				w.Header().Set(sessionHeader, canary)
				http.Error(w, canary, 500)
				return true
			}
			return false
		})
		_, err := c.GetPrompt(testContext(t), &sdk.GetPromptParams{Name: "a"})
		if d.status == 404 && asCallError(t, err).Code != -32000 {
			t.Errorf("got %v", err)
		}
		check(err)
		check(callEcho(testContext(t), c))
		check(callEcho(testContext(t), c))
		c.Close()
		close(ev.ch)
		for e := range ev.ch {
			texts = append(texts, fmt.Sprintf("%+v", e))
		}
	}
	mu.Lock()
	all := buf.String() + strings.Join(texts, "\n")
	mu.Unlock()
	if len(texts) < 20 || !strings.Contains(all, "mcp session") {
		t.Fatalf("the test saw too little: %d texts", len(texts))
	}
	for _, secret := range []string{"secret-session", canary, "127.0.0.1"} {
		if i := strings.Index(all, secret); i >= 0 {
			t.Errorf("%q leaked: …%s…", secret, all[max(0, i-80):min(len(all), i+80)])
		}
	}
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(b []byte) (int, error) { return f(b) }

// Rule 9: valid ids are 1 to 4,096 characters of 0x21-0x7E.
func TestRule09SessionIDsAreChecked(t *testing.T) {
	for id, ok := range map[string]bool{
		"a": true, "!~": true, strings.Repeat("x", 4096): true,
		"": false, strings.Repeat("x", 4097): false, "a b": false, "a\tb": false, "ä": false, "\x7f": false,
	} {
		if validSessionID(id) != ok {
			t.Errorf("validSessionID(%q) = %v", id[:min(len(id), 10)], !ok)
		}
	}
	for name, ids := range map[string][]string{"space": {"a b"}, "too long": {strings.Repeat("x", 4097)}, "two": {"a", "b"}} {
		t.Run(name, func(t *testing.T) {
			p := newPeer(t, plainText)
			p.on(func(w http.ResponseWriter, _ *http.Request, method, id string) bool {
				if method != "initialize" {
					return false
				}
				w.Header()[sessionHeader] = ids
				p.reply(w, id, `{"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{"name":"p","version":"1"}}`)
				return true
			})
			_, err := Connect(testContext(t), p.server(), ClientOptions{})
			if !errors.Is(err, ErrBadSessionID) || !errors.Is(err, ErrHandshake) {
				t.Errorf("got %v", err)
			}
		})
	}
}

// Rule 10: Close sends DELETE once, bounded to 5 s, and never fails the caller.
func TestRule10Close(t *testing.T) {
	t.Run("once", func(t *testing.T) {
		p := newPeer(t, plainText)
		c := connectTo(t, p.server(), ClientOptions{})
		together(8, func() error { c.Close(); return nil })
		c.Close()
		wantCounts(t, p, map[string]int{"DELETE": 1})
		if err := c.Ping(testContext(t)); !errors.Is(err, ErrClosed) {
			t.Errorf("after Close: %v", err)
		}
	})
	t.Run("not for a session that is gone", func(t *testing.T) {
		p := newPeer(t, plainText)
		c := connectTo(t, p.server(), ClientOptions{})
		p.expire()
		if err := c.Ping(testContext(t)); err != nil {
			t.Fatal(err)
		}
		c.Close()
		wantCounts(t, p, map[string]int{"DELETE": 1, "initialize": 2})
	})
	t.Run("calls in flight return", func(t *testing.T) {
		p := newPeer(t, plainText)
		arrived := make(chan struct{})
		p.on(func(_ http.ResponseWriter, _ *http.Request, method, _ string) bool {
			if method == "tools/call" {
				close(arrived)
				<-p.quit
			}
			return false
		})
		c := connectTo(t, p.server(), ClientOptions{})
		got := make(chan error, 1)
		go func() { got <- callEcho(context.Background(), c) }()
		<-arrived
		c.Close()
		if err := <-got; !errors.Is(err, ErrOutcomeUnknown) {
			t.Errorf("got %v", err)
		}
	})
	t.Run("bounded", func(t *testing.T) {
		p := newPeer(t, plainText)
		p.on(func(_ http.ResponseWriter, r *http.Request, method, _ string) bool {
			if method == http.MethodDelete {
				select {
				case <-p.quit:
				case <-r.Context().Done():
				}
			}
			return false
		})
		c := connectTo(t, p.server(), ClientOptions{})
		start := time.Now()
		c.Close()
		if took := time.Since(start); took < time.Second || took > closeTimeout+2*time.Second {
			t.Errorf("Close took %v against a server that never answers DELETE", took)
		}
	})
}
