package mcp

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

const (
	sessionHeader   = "Mcp-Session-Id"
	lastEventHeader = "Last-Event-Id"

	methodInitialize  = "initialize"
	methodDiscover    = "server/discover"
	methodInitialized = "notifications/initialized"

	// errorBodyLimit bounds what is read of an answer that is an error.
	errorBodyLimit = 64 << 10
	// streamHeaderWait is how long the GET stream may take to begin. The SDK
	// opens it inside Connect on a context of its own, so that without this a
	// server that accepts the GET and stays silent would hold Connect forever.
	streamHeaderWait = 5 * time.Second
)

// link is the http.RoundTripper of one SDK connection. It keeps the rules that
// need the exchange itself: who carried a session id and got a 404, what was
// written, how much may be read. It never logs.
type link struct {
	base   http.RoundTripper
	header func(context.Context) (http.Header, error)
	// bodyLimit bounds one answer, streamLimit one event stream (0: none, the
	// SDK bounds the single event), in bytes after decompression.
	bodyLimit, streamLimit int64
	streamWait             time.Duration
	resume                 *resumption

	mu       sync.Mutex
	id       string // as initialize issued it
	expired  bool   // a request that carried id was answered 404
	over     bool   // no DELETE any more: sent, or the session lives on elsewhere
	streamed bool   // the GET stream once was answered with success
	tooLarge bool
	badID    bool
}

// resumption lets a new SDK connection go on with a session that still stands:
// the handshake is answered from here and nothing is sent. The SDK has no
// other way to attach to a session, and a broken connection is no expiry.
type resumption struct {
	id     string
	result json.RawMessage // the InitializeResult of the real handshake
	proven bool            // see session
}

// trace is what link saw of one call.
type trace struct {
	mu     sync.Mutex
	traced bool // the base transport calls httptrace hooks
	wrote  bool // headers were written; the body may have been
	status int
	rpc    bool // an error status whose body was a JSON-RPC error
	gone   bool // carried a session id and was answered 404
	open   bool // a response body is still being read
}

type (
	traceKey  struct{}
	methodKey struct{}
)

func traceOf(ctx context.Context) *trace {
	if t, ok := ctx.Value(traceKey{}).(*trace); ok {
		return t
	}
	return new(trace)
}

func (t *trace) set(f func(*trace)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	f(t)
}

func (t *trace) hook(ctx context.Context) context.Context {
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GetConn:      func(string) { t.set(func(t *trace) { t.traced = true }) },
		WroteHeaders: func() { t.set(func(t *trace) { t.wrote = true }) },
	})
}

func (l *link) RoundTrip(req *http.Request) (*http.Response, error) {
	method, _ := req.Context().Value(methodKey{}).(string)
	if l.resume != nil && req.Method == http.MethodPost {
		if resp, ok := l.resume.answer(req, method); ok {
			l.remember(l.resume.id)
			return resp, nil
		}
	}
	if req.Method == http.MethodDelete && req.Context().Value(endKey{}) == nil {
		// The SDK ends the session by itself when its connection breaks, also
		// where the session still stands. Only end does.
		return localAnswer(req, http.StatusNoContent, nil), nil
	}
	tr := new(trace)
	if req.Method == http.MethodPost { // what a stream meets is no answer to the call
		tr = traceOf(req.Context())
	}
	out, err := l.prepare(req, tr)
	if err != nil {
		return nil, err
	}
	resp, err := l.send(out, tr)
	if err != nil {
		return nil, err
	}
	tr.set(func(t *trace) { t.status, t.rpc = resp.StatusCode, false })
	return l.judge(out, resp, tr, method)
}

// prepare gives the request that goes out: the operator's headers in, and what
// must not be there out.
func (l *link) prepare(req *http.Request, tr *trace) (*http.Request, error) {
	out := req.Clone(tr.hook(req.Context()))
	if l.header != nil {
		h, err := l.header(req.Context())
		if err != nil {
			return nil, ErrCredentials
		}
		for name, values := range h {
			if name = http.CanonicalHeaderKey(name); !strings.HasPrefix(name, "Mcp-") {
				out.Header[name] = values
			}
		}
	}
	// With either of these set, net/http takes a POST for safe to repeat and
	// sends it again on a connection that broke after it was written.
	out.Header.Del("Idempotency-Key")
	out.Header.Del("X-Idempotency-Key")
	return out, nil
}

// send is one exchange. The start of the GET stream is bounded; a server that
// does not begin it in time is taken for one that offers none.
func (l *link) send(out *http.Request, tr *trace) (*http.Response, error) {
	if out.Method != http.MethodGet {
		resp, err := l.base.RoundTrip(out)
		if err != nil {
			// A transport without hooks tells nothing: assume the worst.
			tr.set(func(t *trace) { t.wrote = t.wrote || !t.traced })
		} else {
			tr.set(func(t *trace) { t.wrote = true })
		}
		return resp, err
	}
	ctx, cancel := context.WithCancel(out.Context())
	late := time.AfterFunc(l.streamWait, cancel)
	resp, err := l.base.RoundTrip(out.WithContext(ctx))
	if !late.Stop() && out.Context().Err() == nil {
		if err == nil {
			resp.Body.Close()
		}
		cancel()
		return localAnswer(out, http.StatusMethodNotAllowed, nil), nil
	}
	if err != nil {
		cancel()
		return nil, err
	}
	resp.Body = &body{ReadCloser: resp.Body, left: -1, done: cancel}
	return resp, nil
}

// judge decides what the SDK gets to see of an answer.
func (l *link) judge(out *http.Request, resp *http.Response, tr *trace, method string) (*http.Response, error) {
	carried := out.Header.Get(sessionHeader) != ""
	resuming := out.Header.Get(lastEventHeader) != ""
	ok := resp.StatusCode >= 200 && resp.StatusCode < 300
	switch {
	case carried && resp.StatusCode == http.StatusNotFound &&
		(out.Method == http.MethodPost || out.Method == http.MethodGet && (resuming || l.hasStreamed())):
		// The first GET is no evidence: servers answer it 404 to say that they
		// have no stream. The body is blanked because the SDK takes a JSON-RPC
		// error in it for the call's own answer and overlooks the expiry.
		resp.Body.Close()
		l.expire()
		tr.set(func(t *trace) { t.gone = true })
		return localAnswer(out, http.StatusNotFound, nil), nil
	case resp.StatusCode/100 == 3: // for sameOrigin to judge
		resp.Header.Del(sessionHeader)
	case !ok && out.Method == http.MethodPost:
		return l.judgeError(out, resp, tr), nil
	case ok && method == methodInitialize:
		if err := l.adopt(resp); err != nil {
			resp.Body.Close()
			return nil, err
		}
	default:
		// Only initialize issues sessions. One that came with the answer to the
		// version probe before it would be carried by initialize; over another
		// id in a later answer the SDK breaks the connection, with both ids in
		// the error's text.
		resp.Header.Del(sessionHeader)
	}
	if ok && out.Method == http.MethodGet {
		l.mu.Lock()
		l.streamed = true
		l.mu.Unlock()
	}
	l.limit(resp, tr)
	return resp, nil
}

// judgeError bounds the body of an error answer, and replaces one that is no
// JSON-RPC error: the SDK breaks the whole connection over it, so that one 401
// would end a session that still stands.
func (l *link) judgeError(out *http.Request, resp *http.Response, tr *trace) *http.Response {
	data, _ := io.ReadAll(io.LimitReader(resp.Body, errorBodyLimit))
	resp.Body.Close()
	if msg, err := jsonrpc.DecodeMessage(data); err == nil {
		if r, ok := msg.(*jsonrpc.Response); ok && r.Error != nil {
			tr.set(func(t *trace) { t.rpc = true })
			return localAnswer(out, resp.StatusCode, data)
		}
	}
	return localAnswer(out, resp.StatusCode,
		fmt.Appendf(nil, `{"jsonrpc":"2.0","id":0,"error":{"code":-32000,"message":"HTTP %d"}}`, resp.StatusCode))
}

// adopt takes the session id that initialize issued, if any.
func (l *link) adopt(resp *http.Response) error {
	values := resp.Header.Values(sessionHeader)
	if len(values) == 0 {
		return nil
	}
	if len(values) > 1 || !validSessionID(values[0]) {
		l.mu.Lock()
		l.badID = true
		l.mu.Unlock()
		return ErrBadSessionID
	}
	l.remember(values[0])
	return nil
}

func (l *link) limit(resp *http.Response, tr *trace) {
	limit := l.bodyLimit
	if strings.HasPrefix(resp.Header.Get("Content-Type"), "text/event-stream") {
		limit = l.streamLimit
	}
	if limit <= 0 {
		limit = -1
	}
	tr.set(func(t *trace) { t.open = true })
	resp.Body = &body{
		ReadCloser: resp.Body, left: limit,
		over: func() {
			l.mu.Lock()
			l.tooLarge = true
			l.mu.Unlock()
		},
		done: func() { tr.set(func(t *trace) { t.open = false }) },
	}
}

func (l *link) remember(id string) {
	l.mu.Lock()
	l.id = id
	l.mu.Unlock()
}

func (l *link) expire() {
	l.mu.Lock()
	l.expired = true
	l.mu.Unlock()
}

// keep leaves the session standing whatever becomes of this connection.
func (l *link) keep() {
	l.mu.Lock()
	l.over = true
	l.mu.Unlock()
}

type endKey struct{}

// end tells the server, once, that the session is over: DELETE, bounded by ctx.
// What comes of it is nobody's error.
func (l *link) end(ctx context.Context, url, protocol string) {
	l.mu.Lock()
	id, skip := l.id, l.over || l.expired || l.id == ""
	l.over = true
	l.mu.Unlock()
	if skip {
		return
	}
	req, err := http.NewRequestWithContext(context.WithValue(ctx, endKey{}, true), http.MethodDelete, url, nil)
	if err != nil {
		return
	}
	req.Header.Set(sessionHeader, id)
	req.Header.Set("Mcp-Protocol-Version", protocol)
	client := http.Client{Transport: l, CheckRedirect: sameOrigin}
	if resp, err := client.Do(req); err == nil {
		resp.Body.Close()
	}
}

func (l *link) hasStreamed() bool { l.mu.Lock(); defer l.mu.Unlock(); return l.streamed }

// facts are link's flags, copied.
type facts struct{ expired, tooLarge, badID bool }

func (l *link) facts() facts {
	if l == nil { // stdio
		return facts{}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return facts{expired: l.expired, tooLarge: l.tooLarge, badID: l.badID}
}

func (l *link) session() string {
	if l == nil {
		return ""
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.id
}

// answer plays the handshake that an earlier connection has already held.
func (r *resumption) answer(req *http.Request, method string) (*http.Response, bool) {
	switch method {
	case methodInitialized:
		return localAnswer(req, http.StatusAccepted, nil), true
	case methodDiscover, methodInitialize:
	default:
		return nil, false
	}
	var call struct {
		ID json.RawMessage `json:"id"`
	}
	if req.Body != nil {
		defer req.Body.Close()
		data, err := io.ReadAll(io.LimitReader(req.Body, errorBodyLimit))
		if err != nil || json.Unmarshal(data, &call) != nil {
			return nil, false
		}
	}
	if method == methodDiscover { // sends the SDK on to initialize
		return localAnswer(req, http.StatusOK,
			fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"resumed"}}`, call.ID)), true
	}
	resp := localAnswer(req, http.StatusOK,
		fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"result":%s}`, call.ID, r.result))
	resp.Header.Set(sessionHeader, r.id)
	return resp, true
}

// localAnswer is a response made here. data is JSON or nil.
func localAnswer(req *http.Request, status int, data []byte) *http.Response {
	h := http.Header{}
	if data != nil {
		h.Set("Content-Type", "application/json")
	}
	return &http.Response{
		Status: http.StatusText(status), StatusCode: status,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: h, Body: io.NopCloser(bytes.NewReader(data)),
		ContentLength: int64(len(data)), Request: req,
	}
}

// body bounds and watches a response body, as the caller reads it: after the
// transport's decompression, so that a compressed bomb counts in full.
type body struct {
	io.ReadCloser
	left int64 // bytes still allowed; -1: no limit
	over func()
	done func()
	once sync.Once
}

func (b *body) Read(p []byte) (int, error) {
	if b.left < 0 {
		return b.ReadCloser.Read(p)
	}
	if b.left == 0 {
		// Only the attempt to read on shows that there is more.
		var one [1]byte
		n, err := b.ReadCloser.Read(one[:])
		if n > 0 {
			b.over()
			return 0, ErrTooLarge
		}
		return 0, err
	}
	n, err := b.ReadCloser.Read(p[:min(int64(len(p)), b.left)])
	b.left -= int64(n)
	return n, err
}

func (b *body) Close() error {
	err := b.ReadCloser.Close()
	b.once.Do(b.done)
	return err
}

// validSessionID: 1 to 4096 characters of visible ASCII, as the protocol says
// (2025-11-25, transports, session management), with a bound of ours.
func validSessionID(id string) bool {
	if id == "" || len(id) > 4096 {
		return false
	}
	for i := range len(id) {
		if id[i] < 0x21 || id[i] > 0x7E {
			return false
		}
	}
	return true
}

// sessionHash is what logs and reports may show of a session id.
func sessionHash(id string) string {
	if id == "" {
		return ""
	}
	sum := sha256.Sum256([]byte(id))
	return hex.EncodeToString(sum[:4])
}

// errRedirect refuses a redirect. Its text holds no address: that is the peer's.
var errRedirect = errors.New("redirect to another origin or method refused")

// sameOrigin follows redirects only within the configured origin and without a
// change of method: Go would carry Mcp-Session-Id and the operator's headers
// to whatever host the peer names, and would turn a POST into a GET.
func sameOrigin(req *http.Request, via []*http.Request) error {
	first := via[0]
	if len(via) > 3 || req.URL.Scheme != first.URL.Scheme || req.URL.Host != first.URL.Host || req.Method != first.Method {
		return errRedirect
	}
	return nil
}
