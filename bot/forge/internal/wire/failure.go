package wire

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"path"
	"strconv"
	"strings"
	"time"

	"playbook-bot/bot/forge"
)

// Origin says whose answer it is.
type Origin int

// The origins. Unsure is an answer that the forge may have given as well as
// something in front of it.
const (
	Unsure Origin = iota
	Own
	Foreign
)

// Failure sorts a failed call. err is the SDK's and is only looked at for what
// kind of error it is: its text holds the server's words. kind sorts a 4xx
// that is not foreign.
func Failure(what Call, ex *Exchange, whose Origin, kind func(*Exchange) error, err error, now time.Time) *forge.Error {
	e := &forge.Error{Op: what.Op, Status: ex.Status, Kind: forge.ErrRetry, FromForge: whose == Own, Cause: contextCause(err)}
	if ex.Status != 0 {
		e.RetryAfter = ex.RetryAfter(now)
	}
	switch s := ex.Status; {
	case s == 0:
		e.Ambiguous = what.Write && !neverSent(err)
	case s/100 == 2:
		// The status says done; the body broke off, is no JSON, or is a
		// gateway's page. Whatever was written is written.
		e.Ambiguous = what.Write
	case s/100 == 3:
		// Redirects are not followed: nothing was done.
	case s == http.StatusTooManyRequests:
		// Refused before it was looked at, whoever says so.
	case s >= 500, s == http.StatusRequestTimeout:
		e.Ambiguous = what.Write
	case whose == Foreign:
		// A page or text of something in front of the server (a proxy's "404
		// page not found" while the server is redeployed) says nothing about
		// the object: it must not pass for a deleted comment.
		e.Ambiguous = what.Write
	default:
		e.Kind = kind(ex)
	}
	return e
}

// Nonsense is the error for an answer that came whole, was JSON, and does not
// hold what it must (no id). After a write nobody knows what was done.
func Nonsense(what Call, ex *Exchange, whose Origin) *forge.Error {
	return &forge.Error{Op: what.Op, Status: ex.Status, Kind: forge.ErrRetry, FromForge: whose == Own, Ambiguous: what.Write}
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

// RetryAfter reads the header of that name, in seconds or as an HTTP date,
// which is taken against the answer's own Date and, without one, against now.
// Nonsense and the past are 0.
func (ex *Exchange) RetryAfter(now time.Time) time.Duration {
	value := strings.TrimSpace(ex.Header.Get("Retry-After"))
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
	return ex.Until(at, now)
}

// Until is how long it is to a time of the server's, by its own clock where
// the answer tells it and by now where not; 0 for the past.
func (ex *Exchange) Until(at, now time.Time) time.Duration {
	if date := ex.Date(); !date.IsZero() {
		now = date
	}
	return max(0, at.Sub(now))
}

func lastNumber(p string) int64 {
	n, err := strconv.ParseInt(path.Base(p), 10, 64)
	if err != nil || n < 0 {
		return 0
	}
	return n
}
