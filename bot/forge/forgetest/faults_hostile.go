package forgetest

import (
	"encoding/json"
	"net/http"
	"time"
)

// Late takes effect at once and answers after d, by when nobody waits for it
// any more.
func Late(d time.Duration) Fault { return Fault{Done: true, Delay: d} }

// LateDone takes effect only after d, when its caller has long gone, as a
// request stuck in a queue does.
func LateDone(d time.Duration) Fault { return Fault{Delay: d} }

// RateLimitedUntil is RateLimited with an HTTP date.
func RateLimitedUntil(status int, at time.Time) Fault {
	return Fault{Status: status, Header: http.Header{"Retry-After": {at.UTC().Format(http.TimeFormat)}}}
}

// Dripping takes effect at once and gives its answer in pieces that take d
// each.
func Dripping(pieces int, d time.Duration) Fault { return Fault{Drip: pieces, Delay: d} }

// SamePage answers every page of a listing with the first.
func SamePage() Fault {
	return Fault{Times: -1, Ask: func(r *http.Request) {
		q := r.URL.Query()
		q.Set("page", "1")
		r.URL.RawQuery = q.Encode()
	}}
}

// Stale is a read replica behind its primary: listings lack what has an id
// above newest.
func Stale(newest int64) Fault {
	return Fault{Times: -1, Rewrite: func(body []byte) []byte {
		var list []map[string]any
		if json.Unmarshal(body, &list) != nil {
			return body
		}
		kept := []map[string]any{}
		for _, item := range list {
			if id, _ := item["id"].(float64); int64(id) <= newest {
				kept = append(kept, item)
			}
		}
		out, err := json.Marshal(kept)
		if err != nil {
			return body
		}
		return out
	}}
}

// Kind names a call as CallCounts does, for matches of one's own.
func (f *Forge) Kind(method, path string) string { return f.dialect.kind(method, path) }
