package forge

import (
	"errors"
	"fmt"
	"net/http"
	"time"
)

// The kinds of error. Adapters sort each failure into exactly one, once; all
// others use errors.Is.
var (
	// ErrRetry: try again later (5xx, timeouts, rate limits, no answer).
	ErrRetry = errors.New("the forge is not answering properly, try again later")
	// ErrPermanent: trying again cannot help (410, locked, archived, blocked,
	// 422).
	ErrPermanent = errors.New("the forge refuses for good")
	// ErrNotFound: 404. Whether it lasts is the caller's to find out.
	ErrNotFound = errors.New("not found on the forge")
	// ErrUnverified: 401, or 403 for want of scope or right: nothing was
	// proved, nothing denied.
	ErrUnverified = errors.New("the bot's account may not see this")
)

// Error is a failed call to a forge. Its text holds operation and status, and
// never the forge's own words, a URL or a body.
type Error struct {
	// Op is what was being done to which object, e.g. "read comment 812".
	Op string
	// Status is the HTTP status, 0 where none came.
	Status int
	// Kind is one of the Err values above.
	Kind error
	// RetryAfter is how long the forge asks to be left alone; 0: unsaid.
	RetryAfter time.Duration
	// Ambiguous: the call was a write and may have taken effect.
	Ambiguous bool
	// FromForge: the status came from the forge itself, so nothing is in
	// flight any more but what its own process still does; false for timeouts,
	// dropped connections and the answers of proxies.
	FromForge bool
	// Cause is kept for errors.Is (context.Canceled), never printed.
	Cause error
}

func (e *Error) Error() string {
	if e.Status == 0 {
		return fmt.Sprintf("%s: no answer from the forge", e.Op)
	}
	return fmt.Sprintf("%s: status %d %s", e.Op, e.Status, http.StatusText(e.Status))
}

// Unwrap gives the kind and the cause.
func (e *Error) Unwrap() []error {
	if e.Cause == nil {
		return []error{e.Kind}
	}
	return []error{e.Kind, e.Cause}
}
