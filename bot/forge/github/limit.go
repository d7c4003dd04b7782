package github

import (
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"playbook-bot/bot/forge"
	"playbook-bot/bot/forge/internal/wire"
)

// The waits where GitHub asks for patience and does not say how long: a minute
// at least, and twice as long each time it asks again.
const (
	minWait = time.Minute
	maxWait = 16 * time.Minute
)

// limits keeps each account within GitHub's two kinds of rate limit: the
// primary one, so many calls an hour, counted in headers, and the secondary
// ones, which answer 403 or 429 to bursts. While one holds no call is made:
// GitHub bans those who go on asking.
type limits struct {
	mu   sync.Mutex
	byID map[string]hold
}

type hold struct {
	until time.Time
	// status is what the first refused call was answered.
	status int
	// strikes counts the refusals in a row that named no time.
	strikes int
}

// held is the error for a call that must not be made now, nil if it may.
func (l *limits) held(key string, what wire.Call, now time.Time) *forge.Error {
	l.mu.Lock()
	defer l.mu.Unlock()
	h := l.byID[key]
	if !now.Before(h.until) {
		return nil
	}
	return &forge.Error{Op: what.Op, Status: h.status, Kind: forge.ErrRetry, RetryAfter: h.until.Sub(now), FromForge: true}
}

// note takes in what an answer says of the limits. It gives how long the
// account must wait if the call was refused for one, 0 if not.
func (l *limits) note(key string, ex *wire.Exchange, now time.Time) time.Duration {
	if ex.Status == 0 || origin(ex) == wire.Foreign {
		return 0
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	h := l.byID[key]
	var wait, rest time.Duration // for this call, and for the next
	if limited(ex) {
		var said bool
		if wait, said = stated(ex, now); !said {
			wait = min(minWait<<h.strikes, maxWait)
			if !now.Before(h.until) { // else one of a burst that was under way
				h.strikes = min(h.strikes+1, 10)
			}
		}
		h.status, rest = ex.Status, wait
	} else if out, reset := usedUp(ex, now); out {
		h.status, rest = http.StatusTooManyRequests, reset // the next would be refused
	}
	if ex.Status/100 == 2 {
		h.strikes = 0
	}
	if until := now.Add(rest); rest > 0 && until.After(h.until) {
		h.until = until
	}
	if l.byID == nil {
		l.byID = map[string]hold{}
	}
	l.byID[key] = h
	return wait
}

// limited reports whether a call was refused for a rate limit. A call that the
// account may not make is counted too, so the header alone does not say so.
func limited(ex *wire.Exchange) bool {
	if ex.Status == http.StatusTooManyRequests {
		return true
	}
	text := ex.Message()
	return ex.Status == http.StatusForbidden && (ex.Header.Get("Retry-After") != "" ||
		strings.Contains(text, "rate limit") || strings.Contains(text, "abuse detection"))
}

// stated is how long to wait by GitHub's own order: Retry-After if it is
// there, else the reset of the primary limit if that is used up.
func stated(ex *wire.Exchange, now time.Time) (time.Duration, bool) {
	if after := ex.RetryAfter(now); after > 0 {
		return after, true
	}
	if out, reset := usedUp(ex, now); out {
		return reset, reset > 0
	}
	return 0, false
}

// usedUp reports whether the primary limit is, and how long until its reset.
// X-RateLimit-Reset is in seconds of the server's clock.
func usedUp(ex *wire.Exchange, now time.Time) (bool, time.Duration) {
	if ex.Header.Get("X-RateLimit-Remaining") != "0" {
		return false, 0
	}
	at, err := strconv.ParseInt(ex.Header.Get("X-RateLimit-Reset"), 10, 64)
	if err != nil {
		return false, 0
	}
	return true, ex.Until(time.Unix(at, 0), now)
}
