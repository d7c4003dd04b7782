package mcp

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

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

// A client that has just lost its connection, and is told to begin anew, must
// not go on with the old session.
func TestReconnectAfterALostConnection(t *testing.T) {
	for name, again := range map[string]func(*Client, context.Context) error{"Reconnect": (*Client).Reconnect, "Renew": (*Client).Renew} {
		t.Run(name, func(t *testing.T) {
			p := newPeer(t, plainText)
			c := connectTo(t, p.server(), ClientOptions{})
			c.detach(c.sess)
			if err := again(c, testContext(t)); err != nil {
				t.Fatal(err)
			}
			wantCounts(t, p, map[string]int{"initialize": 2})
			if c.Epoch() != 2 {
				t.Errorf("epoch %d, want 2", c.Epoch())
			}
		})
	}
}

// The SDK must see an expiry in every dialect: without link it takes a 404
// with an echoed id for the call's own answer.
func TestLinkBlanksThe404(t *testing.T) {
	for _, d := range goneDialects {
		p := newPeer(t, d)
		c := connectTo(t, p.server(), ClientOptions{NoStream: true})
		p.expire()
		if err := c.sess.cs.Ping(testContext(t), nil); !errors.Is(err, sdk.ErrSessionMissing) || strings.Contains(err.Error(), canary) {
			t.Errorf("%s: the SDK saw %v", d.name, err)
		}
	}
}
