package gitea

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"mime"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	"playbook-bot/bot/forge"
)

// failure sorts a failed call. err is the SDK's and is only looked at for what
// kind of error it is: its text holds the server's words.
func (c *Client) failure(what call, ex *exchange, err error) error {
	e := &forge.Error{Op: what.op, Status: ex.status, Kind: forge.ErrRetry, Cause: contextCause(err)}
	own, foreign := ex.origin()
	e.FromForge = own
	if ex.status != 0 {
		e.RetryAfter = retryAfter(ex.header, c.now())
	}
	switch s := ex.status; {
	case s == 0:
		e.Ambiguous = what.write && !neverSent(err)
	case s/100 == 2:
		// The status says done; the body broke off, is no JSON, or is a
		// gateway's page. Whatever was written is written.
		e.Ambiguous = what.write
	case s/100 == 3:
		// Redirects are not followed: nothing was done.
	case s == http.StatusTooManyRequests:
		// Refused before it was looked at, whoever says so.
	case s >= 500, s == http.StatusRequestTimeout:
		e.Ambiguous = what.write
	case foreign:
		// A page or text of something in front of the server (a proxy's "404
		// page not found" while the server is redeployed) says nothing about
		// the object: it must not pass for a deleted comment.
		e.Ambiguous = what.write
	default:
		e.Kind = refusalKind(ex)
	}
	return e
}

// refusalKind sorts a 4xx of the server itself.
func refusalKind(ex *exchange) error {
	switch ex.status {
	case http.StatusUnauthorized:
		return forge.ErrUnverified
	case http.StatusForbidden:
		return forbiddenKind(ex)
	case http.StatusNotFound:
		return forge.ErrNotFound
	case http.StatusConflict, http.StatusTooEarly:
		return forge.ErrRetry
	}
	return forge.ErrPermanent // 400, 410, 413, 422, 423 …
}

// forbiddenKind tells the meanings of 403 apart. The texts are Gitea's English
// ones, which the transport asks for.
func forbiddenKind(ex *exchange) error {
	text := strings.ToLower(ex.message())
	switch {
	case ex.header.Get("Retry-After") != "",
		ex.header.Get("X-Ratelimit-Remaining") == "0",
		strings.Contains(text, "rate limit"):
		return forge.ErrRetry
	case strings.Contains(text, "locked"), strings.Contains(text, "is blocked"), strings.Contains(text, "archived"):
		return forge.ErrPermanent
	}
	return forge.ErrUnverified
}

// message is the server's own word on a refusal: for recognition only, never
// for an error or a log.
func (ex *exchange) message() string {
	var body struct {
		Message string `json:"message"`
	}
	_ = json.Unmarshal(ex.refusal, &body)
	return body.Message
}

// origin says whose answer this is: own if it is recognisably Gitea's or
// Forgejo's (JSON; a refusal has "message" and "url", which distinguishes it
// from the JSON of API gateways), foreign if it is recognisably not theirs.
// An empty 401 or 403 is neither: Gitea sends such, and so do others.
func (ex *exchange) origin() (own, foreign bool) {
	if ex.status == 0 {
		return false, false
	}
	kind, _, _ := mime.ParseMediaType(ex.header.Get("Content-Type"))
	isJSON := kind == "application/json"
	switch ex.status / 100 {
	case 2:
		return isJSON, !isJSON && kind != ""
	case 3:
		return false, false
	}
	var body map[string]json.RawMessage
	_ = json.Unmarshal(ex.refusal, &body)
	if isJSON && body["message"] != nil && body["url"] != nil {
		return true, false
	}
	switch ex.status {
	case http.StatusUnauthorized, http.StatusForbidden:
		return false, !isJSON && len(bytes.TrimSpace(ex.refusal)) > 0
	case http.StatusNotFound:
		return false, true // Gitea's always has a body of its own
	}
	return false, len(bytes.TrimSpace(ex.refusal)) > 0
}

// nonsense is the error for an answer that came whole, was JSON, and does not
// hold what it must (no id).
func (ex *exchange) nonsense(op string) *forge.Error {
	own, _ := ex.origin()
	return &forge.Error{Op: op, Status: ex.status, Kind: forge.ErrRetry, FromForge: own}
}

// neverSent reports whether the request cannot have reached the server: no
// connection was made.
func neverSent(err error) bool {
	var op *net.OpError
	if errors.As(err, &op) && (op.Op == "dial" || op.Op == "proxyconnect") {
		return true
	}
	var dns *net.DNSError
	var cert *tls.CertificateVerificationError
	return errors.As(err, &dns) || errors.As(err, &cert)
}

// contextCause keeps what callers ask for with errors.Is and drops the rest,
// whose text holds URLs.
func contextCause(err error) error {
	for _, cause := range []error{context.Canceled, context.DeadlineExceeded} {
		if errors.Is(err, cause) {
			return cause
		}
	}
	return nil
}

// retryAfter reads Retry-After, in seconds or as an HTTP date, which is taken
// against the answer's own Date. Nonsense and the past are 0.
func retryAfter(h http.Header, now time.Time) time.Duration {
	value := strings.TrimSpace(h.Get("Retry-After"))
	if value == "" {
		return 0
	}
	if seconds, err := strconv.ParseInt(value, 10, 32); err == nil {
		return max(0, time.Duration(seconds)*time.Second)
	}
	at, err := http.ParseTime(value)
	if err != nil {
		return 0
	}
	if date := serverDate(h); !date.IsZero() {
		now = date
	}
	return max(0, at.Sub(now))
}

// serverDate is the answer's Date header; zero if it has none.
func serverDate(h http.Header) time.Time {
	t, err := http.ParseTime(h.Get("Date"))
	if err != nil {
		return time.Time{}
	}
	return t.UTC()
}
