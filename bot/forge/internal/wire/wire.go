// Package wire is what the adapters' HTTP exchanges have in common: recording
// and bounding them, telling a forge's own answer from a gateway's, sorting
// failures into the kinds of package forge, and the shape of issue deliveries,
// which Gitea took over from GitHub.
package wire

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// The limits of a call where an adapter's configuration says nothing.
const (
	DefaultTimeout = 10 * time.Second
	// DefaultMaxBody is far above the 13 MB of a thread of 10,000 comments,
	// which Gitea gives in one answer.
	DefaultMaxBody = 32 << 20
)

// maxErrorBody bounds what is read of a refusal, in bytes: enough to recognise
// a forge's own JSON, which is a few hundred.
const maxErrorBody = 64 << 10

// errTooLarge ends the reading of a body that is longer than allowed.
var errTooLarge = errors.New("the answer is too large")

// Call names one call: for metrics, for errors, and whether it may change
// something on the server.
type Call struct {
	// Kind is the kind of call, e.g. "comment.create".
	Kind string
	// Op is what is being done to which object, e.g. "read comment 812".
	Op    string
	Write bool
}

// Read is a call that changes nothing.
func Read(kind, format string, args ...any) Call {
	return Call{Kind: kind, Op: fmt.Sprintf(format, args...)}
}

// Write is a call that may change something.
func Write(kind, format string, args ...any) Call {
	return Call{Kind: kind, Op: fmt.Sprintf(format, args...), Write: true}
}

// Exchange is what one HTTP exchange looked like below an SDK, which turns
// status, headers and the cause of a failure into one line of text. It belongs
// to a single call.
type Exchange struct {
	Status int // 0: no answer
	Header http.Header
	// Refusal is the body of a status outside 200–299, cut at 64 KiB.
	Refusal []byte
}

// Redirected reports whether the answer leads elsewhere. Redirects are never
// followed: a POST would be turned into a GET.
func (ex *Exchange) Redirected() bool {
	switch ex.Status {
	case http.StatusMovedPermanently, http.StatusFound, http.StatusTemporaryRedirect, http.StatusPermanentRedirect:
		return true
	}
	return false
}

// Location is the path to which a redirect leads; "" if it says none. Its host
// is not told, so that nobody is led to another server.
func (ex *Exchange) Location() string {
	if !ex.Redirected() {
		return ""
	}
	loc, err := (&http.Response{Header: ex.Header}).Location()
	if err != nil {
		return ""
	}
	return loc.Path
}

// JSON reports whether the answer says that it is JSON; typed is false for one
// that names no type at all.
func (ex *Exchange) JSON() (isJSON, typed bool) {
	kind, _, _ := mime.ParseMediaType(ex.Header.Get("Content-Type"))
	return kind == "application/json", kind != ""
}

// Fields are the members of a refusal's JSON object, nil if it is none. They
// are for recognition only, never for an error or a log.
func (ex *Exchange) Fields() map[string]json.RawMessage {
	var body map[string]json.RawMessage
	_ = json.Unmarshal(ex.Refusal, &body)
	return body
}

// Message is the server's own word on a refusal in lower case: for recognition
// only, never for an error or a log.
func (ex *Exchange) Message() string {
	var text string
	_ = json.Unmarshal(ex.Fields()["message"], &text)
	return strings.ToLower(text)
}

// Blank reports whether a refusal came without a body.
func (ex *Exchange) Blank() bool { return len(bytes.TrimSpace(ex.Refusal)) == 0 }

// Date is the server's clock by the answer's Date header; zero if it has none.
func (ex *Exchange) Date() time.Time {
	t, err := http.ParseTime(ex.Header.Get("Date"))
	if err != nil {
		return time.Time{}
	}
	return t.UTC()
}

type exchangeKey struct{}

// With gives a context whose next HTTP exchange is recorded in ex.
func With(ctx context.Context, ex *Exchange) context.Context {
	return context.WithValue(ctx, exchangeKey{}, ex)
}

// NewClient is a copy of an http.Client that records exchanges, bounds bodies
// to maxBody bytes, follows no redirect, and has no timeout of its own: the
// context's deadline does that, and can be told apart. set gives the headers
// of every request. base may be nil.
func NewClient(base *http.Client, maxBody int64, set map[string]string) *http.Client {
	var c http.Client
	if base != nil {
		c = *base
	}
	c.Timeout = 0
	c.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	c.Transport = &transport{next: c.Transport, maxBody: maxBody, set: set}
	return &c
}

type transport struct {
	next    http.RoundTripper // nil: http.DefaultTransport
	maxBody int64
	set     map[string]string
}

func (t *transport) RoundTrip(req *http.Request) (*http.Response, error) {
	next := t.next
	if next == nil {
		next = http.DefaultTransport
	}
	req = req.Clone(req.Context())
	for name, value := range t.set {
		req.Header.Set(name, value)
	}
	resp, err := next.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	ex, _ := req.Context().Value(exchangeKey{}).(*Exchange)
	if ex == nil {
		ex = &Exchange{}
	}
	ex.Status, ex.Header = resp.StatusCode, resp.Header
	if resp.StatusCode/100 == 2 {
		resp.Body = &boundedBody{body: resp.Body, left: t.maxBody}
		return resp, nil
	}
	// A refusal that breaks off is still the refusal its status says.
	ex.Refusal, _ = io.ReadAll(io.LimitReader(resp.Body, maxErrorBody))
	_ = resp.Body.Close()
	resp.Body = io.NopCloser(bytes.NewReader(ex.Refusal))
	return resp, nil
}

// boundedBody fails instead of ending early, so that a body cut short cannot
// pass for a whole one.
type boundedBody struct {
	body io.ReadCloser
	left int64
}

func (b *boundedBody) Read(p []byte) (int, error) {
	if b.left < 0 {
		return 0, errTooLarge
	}
	// One byte more than allowed is asked for, to tell "just fits" from "more".
	if int64(len(p)) > b.left+1 {
		p = p[:b.left+1]
	}
	n, err := b.body.Read(p)
	b.left -= int64(n)
	if b.left < 0 {
		return n + int(b.left), errTooLarge
	}
	return n, err
}

func (b *boundedBody) Close() error { return b.body.Close() }

// BaseURL checks a server's root and gives it without a slash at its end. The
// errors never repeat the URL, which may hold credentials.
func BaseURL(raw string) (string, error) {
	base, err := url.Parse(strings.TrimSpace(raw))
	switch {
	case err != nil:
		return "", errors.New("the forge's base URL cannot be parsed")
	case base.Scheme != "http" && base.Scheme != "https":
		return "", errors.New("the forge's base URL must begin with http:// or https://")
	case base.Host == "":
		return "", errors.New("the forge's base URL names no host")
	case base.User != nil || base.RawQuery != "" || base.Fragment != "":
		return "", errors.New("the forge's base URL must hold neither credentials nor a query")
	}
	return strings.TrimSuffix(base.String(), "/"), nil
}

// ThreadNumber is the number at the end of the address of an issue or pull
// request, 0 if there is none: a comment names its thread in no other way.
func ThreadNumber(address string) int64 {
	u, err := url.Parse(address)
	if err != nil {
		return 0
	}
	return lastNumber(u.Path)
}
