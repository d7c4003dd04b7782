package mcp

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"
)

// A dialect is how a server says that it does not know a session.
type dialect struct {
	name   string
	status int
	// body is what the server writes; %s stands for the request's JSON-RPC id.
	contentType, body string
}

var (
	plainText  = dialect{"404 plain text", 404, "text/plain", "session not found: tell nobody " + canary}
	html       = dialect{"404 HTML page", 404, "text/html", "<html><h1>Not Found " + canary + "</h1></html>"}
	nullID     = dialect{"404 JSON-RPC, id null", 404, "application/json", `{"jsonrpc":"2.0","id":null,"error":{"code":-32001,"message":"Session not found ` + canary + `"}}`}
	echoedID   = dialect{"404 JSON-RPC, id echoed", 404, "application/json", `{"jsonrpc":"2.0","id":%s,"error":{"code":-32001,"message":"Session not found ` + canary + `"}}`}
	errorID    = dialect{"404 JSON-RPC, id server-error", 404, "application/json", `{"jsonrpc":"2.0","id":"server-error","error":{"code":-32600,"message":"Session not found ` + canary + `"}}`}
	badRequest = dialect{"400 unknown session", 400, "application/json", `{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"Bad Request: No valid session ID ` + canary + `"}}`}

	goneDialects = []dialect{plainText, html, nullID, echoedID, errorID}
)

// canary is in everything a peer sends that no error and no log may repeat.
const canary = "CANARY-4711"

// peer is a small MCP server that counts what arrives and misbehaves to order.
type peer struct {
	*httptest.Server
	gone dialect

	mu       sync.Mutex
	counts   map[string]int
	sessions map[string]bool
	issued   []string
	cursors  []string // Last-Event-ID headers seen
	wrong    []string // what a client must never do
	// sessionless: no session ids; modern: speaks 2026-07-28 only.
	sessionless, modern bool
	sse                 bool
	tools               []string
	version             string
	// before runs ahead of the ordinary treatment; true: it has answered.
	before func(w http.ResponseWriter, r *http.Request, method, id string) bool
	quit   chan struct{}
}

func newPeer(t testing.TB, gone dialect) *peer {
	p := &peer{
		gone: gone, counts: map[string]int{}, sessions: map[string]bool{},
		tools: []string{"echo"}, version: "2025-11-25", quit: make(chan struct{}),
	}
	p.Server = httptest.NewServer(p)
	t.Cleanup(func() {
		close(p.quit)
		p.CloseClientConnections()
		p.Close()
		for _, w := range p.wrong {
			t.Errorf("the client must never: %s", w)
		}
	})
	return p
}

func (p *peer) on(f func(w http.ResponseWriter, r *http.Request, method, id string) bool) {
	p.with(func() { p.before = f })
}

func (p *peer) intercepts(w http.ResponseWriter, r *http.Request, method, id string) bool {
	var f func(http.ResponseWriter, *http.Request, string, string) bool
	p.with(func() { f = p.before })
	return f != nil && f(w, r, method, id)
}

func (p *peer) with(f func()) { p.mu.Lock(); defer p.mu.Unlock(); f() }

func (p *peer) count(method string) (n int) {
	p.with(func() { n = p.counts[method] })
	return n
}

// expire forgets all sessions, as a restart does.
func (p *peer) expire() { p.with(func() { clear(p.sessions) }) }

func (p *peer) server() Server { return Server{Name: "peer", URL: p.URL} }

func (p *peer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	session := r.Header.Get(sessionHeader)
	if r.Method != http.MethodPost {
		p.with(func() { p.counts[r.Method]++ })
		p.serveOther(w, r, session)
		return
	}
	data, _ := io.ReadAll(r.Body)
	var call struct {
		ID     json.RawMessage `json:"id"`
		Method string          `json:"method"`
		Params struct {
			ProtocolVersion string `json:"protocolVersion"`
		} `json:"params"`
	}
	if err := json.Unmarshal(data, &call); err != nil {
		http.Error(w, "not JSON", http.StatusBadRequest)
		return
	}
	p.with(func() {
		p.counts[call.Method]++
		if r.Header.Get("Idempotency-Key") != "" {
			p.wrong = append(p.wrong, "send an Idempotency-Key")
		}
		if call.Method == methodInitialize && session != "" {
			p.wrong = append(p.wrong, "initialize with a session id")
		}
	})
	if p.intercepts(w, r, call.Method, string(call.ID)) {
		return
	}
	p.serveCall(w, call.Method, string(call.ID), session)
}

func (p *peer) serveOther(w http.ResponseWriter, r *http.Request, session string) {
	if p.intercepts(w, r, r.Method, "") {
		return
	}
	switch {
	case r.Method == http.MethodDelete:
		p.with(func() { delete(p.sessions, session) })
	default:
		p.with(func() { p.cursors = append(p.cursors, r.Header.Get(lastEventHeader)) })
		w.WriteHeader(http.StatusMethodNotAllowed)
	}
}

func (p *peer) serveCall(w http.ResponseWriter, method, id, session string) {
	switch {
	case method == methodDiscover && p.modern:
		p.reply(w, id, `{"supportedVersions":["2026-07-28"],"capabilities":{"tools":{}},"resultType":"complete"}`)
		return
	case method == methodDiscover:
		// A server that issues a session to whatever comes without one.
		w.Header().Set(sessionHeader, "stray")
		rpcAnswer(w, 200, fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"%s"}}`, id, canary))
		return
	case method == methodInitialize:
		p.initialize(w, id)
		return
	}
	known := p.sessionless || p.modern
	p.with(func() { known = known || p.sessions[session] })
	if !known {
		p.sayGone(w, id)
		return
	}
	if strings.HasPrefix(method, "notifications/") {
		w.WriteHeader(http.StatusAccepted)
		return
	}
	p.reply(w, id, p.result(method))
}

func (p *peer) initialize(w http.ResponseWriter, id string) {
	p.with(func() {
		if p.sessionless {
			return
		}
		session := fmt.Sprintf("secret-session-%d", len(p.issued)+1)
		p.issued = append(p.issued, session)
		p.sessions[session] = true
		w.Header().Set(sessionHeader, session)
	})
	p.reply(w, id, `{"protocolVersion":"`+p.version+`","capabilities":{"tools":{},"resources":{"subscribe":true},"prompts":{},"completions":{},"logging":{}},"serverInfo":{"name":"peer","version":"1"}}`)
}

func (p *peer) result(method string) string {
	switch method {
	case "tools/list":
		var items []string
		p.with(func() {
			for _, name := range p.tools {
				quoted, _ := json.Marshal(name)
				items = append(items, `{"name":`+string(quoted)+`,"inputSchema":{"type":"object"}}`)
			}
		})
		return `{"tools":[` + strings.Join(items, ",") + `],"resultType":"complete"}`
	case "tools/call":
		return `{"content":[{"type":"text","text":"done"}],"resultType":"complete"}`
	case "resources/list":
		return `{"resources":[{"uri":"file:///a","name":"a"}]}`
	case "resources/templates/list":
		return `{"resourceTemplates":[]}`
	case "resources/read":
		return `{"contents":[{"uri":"file:///a","text":"a"}]}`
	case "prompts/list":
		return `{"prompts":[]}`
	case "prompts/get":
		return `{"messages":[]}`
	case "completion/complete":
		return `{"completion":{"values":[]}}`
	}
	return `{}`
}

func (p *peer) reply(w http.ResponseWriter, id, result string) {
	msg := fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":%s}`, id, result)
	if p.sse {
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprintf(w, "event: message\ndata: %s\n\n", msg)
		return
	}
	rpcAnswer(w, 200, msg)
}

func (p *peer) sayGone(w http.ResponseWriter, id string) {
	body := p.gone.body
	if strings.Contains(body, "%s") {
		body = fmt.Sprintf(body, id)
	}
	w.Header().Set("Content-Type", p.gone.contentType)
	w.WriteHeader(p.gone.status)
	_, _ = io.WriteString(w, body)
}

func rpcAnswer(w http.ResponseWriter, status int, body string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = io.WriteString(w, body)
}

// hangUp drops the connection without an answer.
func hangUp(w http.ResponseWriter) {
	conn, _, err := w.(http.Hijacker).Hijack()
	if err == nil {
		conn.Close()
	}
}

// events collects a client's events and lets a test wait for one.
type events struct{ ch chan Event }

func newEvents() *events { return &events{make(chan Event, 1024)} }

func (e *events) add(ev Event) { e.ch <- ev }

func (e *events) wait(t *testing.T, kind string) Event {
	t.Helper()
	late := time.After(10 * time.Second)
	for {
		select {
		case ev := <-e.ch:
			if ev.Kind == kind {
				return ev
			}
		case <-late:
			t.Fatalf("no event %q", kind)
		}
	}
}

func connectTo(t *testing.T, s Server, o ClientOptions) *Client {
	t.Helper()
	c, err := Connect(testContext(t), s, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func testContext(t *testing.T) context.Context {
	ctx, stop := context.WithTimeout(context.Background(), 30*time.Second)
	t.Cleanup(stop)
	return ctx
}

// clock is a time that only the test moves.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func newClock() *clock { return &clock{now: time.Date(2026, 8, 1, 12, 0, 0, 0, time.UTC)} }

func (c *clock) Now() time.Time { c.mu.Lock(); defer c.mu.Unlock(); return c.now }

func (c *clock) add(d time.Duration) { c.mu.Lock(); c.now = c.now.Add(d); c.mu.Unlock() }
