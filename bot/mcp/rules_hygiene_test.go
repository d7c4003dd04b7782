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
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

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
