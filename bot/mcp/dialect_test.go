package mcp

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"text/tabwriter"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// A row is one line of the table: what a server did to a client, how often
// each method arrived at it, and what the caller got.
type row struct {
	dialect, happened string
	counts            map[string]int
	got               string
}

func (p *peer) arrived() map[string]int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return maps.Clone(p.counts)
}

// got says in a word or two what the caller got, from the error's type alone.
func got(err error) string {
	var e *CallError
	switch {
	case err == nil:
		return "result"
	case !errors.As(err, &e):
		return "untyped error"
	case errors.Is(err, ErrNotResent):
		return "not resent, may have executed"
	case errors.Is(err, ErrEpochOver):
		return "epoch over"
	case errors.Is(err, ErrBreakerOpen):
		return "breaker open"
	case errors.Is(err, ErrNoSession) && e.Fate == Unknown:
		return "outcome unknown, no session"
	case errors.Is(err, ErrNoSession):
		return "no session"
	case errors.Is(err, ErrOutcomeUnknown):
		return "outcome unknown"
	case errors.Is(err, ErrSessionExpired):
		return "session expired"
	}
	return fmt.Sprintf("%s, HTTP %d", e.Fate, e.Status)
}

// TestDialects prints the table "server dialect x what happened x how often
// each method arrived x what the caller got", and holds every line to what is
// wanted. Run it with -v.
func TestDialects(t *testing.T) {
	var rows []row
	for _, sse := range []bool{false, true} {
		for _, d := range goneDialects {
			rows = append(rows, expiryRows(t, d, sse)...)
		}
	}
	rows = append(rows, unknownSession400(t), freshSessionGone(t))
	rows = append(rows, deadSocket(t)...)
	rows = append(rows, goSDKRows(t)...)
	rows = append(rows, sessionlessRows(t)...)

	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "SERVER DIALECT\tWHAT HAPPENED\tINITIALIZE\tOTHER METHODS ARRIVED\tTHE CALLER GOT")
	for _, r := range rows {
		var others []string
		for _, m := range slices.Sorted(maps.Keys(r.counts)) {
			if m != "initialize" && m != methodInitialized && m != methodDiscover && m != "GET" {
				others = append(others, fmt.Sprintf("%s %d", m, r.counts[m]))
			}
		}
		fmt.Fprintf(w, "%s\t%s\t%d\t%s\t%s\n", r.dialect, r.happened, r.counts["initialize"], strings.Join(others, ", "), r.got)
	}
	w.Flush()
	t.Log("\n" + b.String())
}

func (r row) want(t *testing.T, initialize int, method string, n int, outcome string) row {
	t.Helper()
	if r.counts["initialize"] != initialize || r.counts[method] != n || r.got != outcome {
		t.Errorf("%s, %s: initialize %d, %s %d, caller got %q; want %d, %d, %q", r.dialect, r.happened,
			r.counts["initialize"], method, r.counts[method], r.got, initialize, n, outcome)
	}
	return r
}

func listAll(ctx context.Context, c *Client) error { _, err := c.ListTools(ctx, nil); return err }

func expiryRows(t *testing.T, d dialect, sse bool) []row {
	name := d.name
	if sse {
		name += ", SSE"
	}
	one := func(happened string, callers int, call func(context.Context, *Client) error) row {
		p := newPeer(t, d)
		p.sse = sse
		c := connectTo(t, p.server(), ClientOptions{})
		b := newBarrier(callers)
		p.on(func(_ http.ResponseWriter, _ *http.Request, method, _ string) bool {
			if strings.HasPrefix(method, "tools/") {
				b.pass()
			}
			return false
		})
		p.expire()
		errs := together(callers, func() error { return call(testContext(t), c) })
		for _, err := range errs[1:] {
			if got(err) != got(errs[0]) {
				t.Errorf("%s, %s: one caller got %q, another %q", name, happened, got(errs[0]), got(err))
			}
		}
		return row{name, happened, p.arrived(), got(errs[0])}
	}
	return []row{
		one("session expired, tools/list", 1, listAll).want(t, 2, "tools/list", 2, "result"),
		one("session expired, tools/call", 1, callEcho).want(t, 2, "tools/call", 1, "not resent, may have executed"),
		one("all expired, 32 x tools/list", 32, listAll).want(t, 2, "tools/list", 64, "result"),
		one("all expired, 32 x tools/call", 32, callEcho).want(t, 2, "tools/call", 32, "not resent, may have executed"),
	}
}

func unknownSession400(t *testing.T) row {
	p := newPeer(t, badRequest)
	c := connectTo(t, p.server(), ClientOptions{})
	p.expire()
	err := callEcho(testContext(t), c)
	return row{badRequest.name, "session expired, tools/call", p.arrived(), got(err)}.
		want(t, 1, "tools/call", 1, "refused, HTTP 400")
}

func freshSessionGone(t *testing.T) row {
	p := newPeer(t, plainText)
	c := connectTo(t, p.server(), ClientOptions{})
	p.on(func(w http.ResponseWriter, _ *http.Request, method, id string) bool {
		if method != "tools/list" {
			return false
		}
		p.sayGone(w, id)
		return true
	})
	err := listAll(testContext(t), c)
	return row{plainText.name, "fresh session is 404 too, tools/list", p.arrived(), got(err)}.
		want(t, 2, "tools/list", 2, "session expired")
}

func deadSocket(t *testing.T) []row {
	one := func(happened string, call func(context.Context, *Client) error) row {
		p := newPeer(t, plainText)
		c := connectTo(t, p.server(), ClientOptions{})
		p.on(func(w http.ResponseWriter, _ *http.Request, method, _ string) bool {
			if !strings.HasPrefix(method, "tools/") {
				return false
			}
			hangUp(w)
			return true
		})
		err := call(testContext(t), c)
		return row{"dead socket", happened, p.arrived(), got(err)}
	}
	return []row{
		one("dropped mid-call, tools/call", callEcho).want(t, 1, "tools/call", 1, "outcome unknown"),
		// Not sent again either: nothing says that the session is over. The
		// caller, who knows that it is harmless, may.
		one("dropped mid-call, tools/list", listAll).want(t, 1, "tools/list", 1, "outcome unknown"),
	}
}

// goServer is the Go SDK's own server; restart replaces it by one that knows
// no sessions, behind the same address.
type goServer struct {
	*httptest.Server
	handler atomic.Pointer[http.Handler]
	counter *peer // counts only
	opts    *sdk.StreamableHTTPOptions
}

func newGoServer(t testing.TB, opts *sdk.StreamableHTTPOptions) *goServer {
	g := &goServer{counter: &peer{counts: map[string]int{}}, opts: opts}
	g.restart()
	g.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		(*g.handler.Load()).ServeHTTP(w, r)
	}))
	t.Cleanup(func() { g.CloseClientConnections(); g.Close() })
	return g
}

func (g *goServer) restart() {
	s := sdk.NewServer(&sdk.Implementation{Name: "go", Version: "1"}, nil)
	sdk.AddTool(s, &sdk.Tool{Name: "echo"}, func(context.Context, *sdk.CallToolRequest, struct{}) (*sdk.CallToolResult, any, error) {
		return &sdk.CallToolResult{}, nil, nil
	})
	s.AddReceivingMiddleware(func(next sdk.MethodHandler) sdk.MethodHandler {
		return func(ctx context.Context, method string, req sdk.Request) (sdk.Result, error) {
			g.counter.with(func() { g.counter.counts[method]++ })
			return next(ctx, method, req)
		}
	})
	var h http.Handler = sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return s }, g.opts)
	g.handler.Store(&h)
}

func (g *goServer) server() Server { return Server{Name: "go", URL: g.URL} }

// goSDKRows counts in the server's own middleware, so a request that met 404
// is not counted: what is shown is how often each method was carried out.
func goSDKRows(t *testing.T) []row {
	one := func(name, happened string, opts *sdk.StreamableHTTPOptions, call func(context.Context, *Client) error) row {
		g := newGoServer(t, opts)
		// Without the GET stream: it might learn of the restart first, and then
		// the call goes into the new session right away.
		c := connectTo(t, g.server(), ClientOptions{NoStream: true})
		if err := call(testContext(t), c); err != nil {
			t.Fatal(err)
		}
		g.restart()
		g.CloseClientConnections()
		// The client's transport learns of the closing on its own goroutine; a
		// call that came before would be outcome unknown, rightly.
		c.base.(*http.Transport).CloseIdleConnections()
		err := call(testContext(t), c)
		return row{name, happened, g.counter.arrived(), got(err)}
	}
	json := &sdk.StreamableHTTPOptions{JSONResponse: true}
	return []row{
		one("Go SDK, SSE", "restart between two tools/list", nil, listAll).want(t, 2, "tools/list", 2, "result"),
		one("Go SDK, SSE", "restart between two tools/call", nil, callEcho).want(t, 2, "tools/call", 1, "not resent, may have executed"),
		one("Go SDK, JSON", "restart between two tools/list", json, listAll).want(t, 2, "tools/list", 2, "result"),
		one("Go SDK, JSON", "restart between two tools/call", json, callEcho).want(t, 2, "tools/call", 1, "not resent, may have executed"),
		one("Go SDK, stateless", "restart between two tools/call", &sdk.StreamableHTTPOptions{Stateless: true}, callEcho).
			want(t, 0, "tools/call", 2, "result"),
	}
}

func sessionlessRows(t *testing.T) []row {
	one := func(happened string, answer func(w http.ResponseWriter), call func(context.Context, *Client) error) row {
		p := newPeer(t, plainText)
		p.modern = true
		c := connectTo(t, p.server(), ClientOptions{})
		if !c.Sessionless() || c.Protocol() != "2026-07-28" {
			t.Errorf("protocol %q, sessionless %v", c.Protocol(), c.Sessionless())
		}
		p.on(func(w http.ResponseWriter, _ *http.Request, method, _ string) bool {
			if !strings.HasPrefix(method, "tools/") {
				return false
			}
			answer(w)
			return true
		})
		err := call(testContext(t), c)
		return row{"2026-07-28, no sessions", happened, p.arrived(), got(err)}
	}
	gone := func(w http.ResponseWriter) { http.Error(w, canary, 404) }
	return []row{
		one("404, tools/list", gone, listAll).want(t, 0, "tools/list", 1, "no session"),
		one("404, tools/call", gone, callEcho).want(t, 0, "tools/call", 1, "no session"),
		one("stream lost mid-call, tools/call", hangUp, callEcho).want(t, 0, "tools/call", 1, "outcome unknown, no session"),
	}
}
