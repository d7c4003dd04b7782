package mcp

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"

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
	t.Run("a refusal harms no other call", func(t *testing.T) {
		p := newPeer(t, plainText)
		arrived, release := make(chan struct{}), make(chan struct{})
		p.on(func(w http.ResponseWriter, _ *http.Request, method, id string) bool {
			switch method {
			case "tools/call":
				w.Header().Set("Content-Type", "text/event-stream")
				w.(http.Flusher).Flush()
				close(arrived)
				<-release
				fmt.Fprintf(w, "data: {\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":{\"content\":[]}}\n\n", id)
			case "tools/list":
				http.Error(w, canary, http.StatusUnauthorized)
			default:
				return false
			}
			return true
		})
		c := connectTo(t, p.server(), ClientOptions{})
		called := make(chan error, 1)
		go func() { called <- callEcho(testContext(t), c) }()
		<-arrived
		if err := listAll(testContext(t), c); asCallError(t, err).Status != 401 {
			t.Errorf("got %v", err)
		}
		close(release)
		if err := <-called; err != nil {
			t.Errorf("the call in flight: %v", err)
		}
	})
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
