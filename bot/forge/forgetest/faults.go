package forgetest

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// Fault is what goes wrong with a call. Its parts combine; the zero value lets
// the call through.
type Fault struct {
	// Times is how often the fault happens; 0: once, negative: always.
	Times int
	// Done: the call takes effect before it goes wrong (the comment is stored,
	// then the answer is lost). Otherwise it has none.
	Done bool
	// Delay passes, by the clock of the process, before the answer: before the
	// effect of a call too unless Done, and in that case the call takes effect
	// even if nobody waits for it any more, as a request in flight does.
	Delay time.Duration
	// Refuse: no connection is made (in process; on a listener it is dropped).
	Refuse bool
	// Drop: the connection is closed without an answer.
	Drop bool
	// Status, Header and Body are answered in place of the forge's. A Status
	// without Body has the forge's own JSON.
	Status int
	Header http.Header
	Body   string
	// Truncate: the forge's own answer breaks off in the middle. The call has
	// taken effect.
	Truncate bool
	// Pad grows the forge's own answer to this many bytes by white space.
	Pad int
	// Ask changes the call before the forge looks at it; Rewrite changes the
	// body of the forge's own answer.
	Ask     func(*http.Request)
	Rewrite func(body []byte) []byte
	// Drip gives the forge's own answer in this many pieces, with Delay before
	// each: the header comes at once, the body hardly ever.
	Drip int
}

// The usual faults.

// Answer is a status of the forge's own instead of the call's effect.
func Answer(status int) Fault { return Fault{Status: status} }

// AnswerDone is a status of the forge's own after the call took effect.
func AnswerDone(status int) Fault { return Fault{Status: status, Done: true} }

// Dropped closes the connection before the call takes effect.
func Dropped() Fault { return Fault{Drop: true} }

// DroppedDone closes the connection after the call took effect.
func DroppedDone() Fault { return Fault{Drop: true, Done: true} }

// GatewayPage is a proxy's HTML page.
func GatewayPage(status int) Fault {
	return Fault{Status: status,
		Header: http.Header{"Content-Type": {"text/html; charset=utf-8"}},
		Body:   fmt.Sprintf("<html><head><title>%d %s</title></head></html>\n", status, http.StatusText(status))}
}

// RateLimited is a refusal that says when to come again.
func RateLimited(status int, after time.Duration) Fault {
	return Fault{Status: status, Header: http.Header{"Retry-After": {strconv.Itoa(int(after / time.Second))}}}
}

// Redirect sends the caller elsewhere.
func Redirect(status int, location string) Fault {
	return Fault{Status: status, Header: http.Header{"Location": {location}, "Content-Type": {"text/html"}}, Body: "moved"}
}

// For makes a fault happen n times; negative: always.
func (f Fault) For(n int) Fault {
	f.Times = n
	return f
}

// Order is a fault that was ordered.
type Order struct {
	forge   *Forge
	match   func(method, path string) bool
	fault   Fault
	left    int
	applied int
}

// Applied is how often the fault has happened.
func (o *Order) Applied() int {
	o.forge.mu.Lock()
	defer o.forge.mu.Unlock()
	return o.applied
}

// Cancel ends the order.
func (o *Order) Cancel() {
	o.forge.mu.Lock()
	defer o.forge.mu.Unlock()
	o.left = 0
}

// use counts one happening.
func (o *Order) use() {
	if o.left > 0 {
		o.left--
	}
	o.applied++
}

// Order makes calls that match go wrong. Of several orders that match, the
// oldest that is not used up has its turn: faults in turn are ordered in turn.
func (f *Forge) Order(match func(method, path string) bool, fault Fault) *Order {
	o := &Order{forge: f, match: match, fault: fault, left: fault.Times}
	if o.left == 0 {
		o.left = 1
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.orders = append(f.orders, o)
	return o
}

// OrderKind is Order for calls of a kind, e.g. "comment.create".
func (f *Forge) OrderKind(kind string, fault Fault) *Order {
	return f.Order(func(method, path string) bool {
		return f.dialect.kind(method, path) == kind
	}, fault)
}

// On matches calls by method and a part of the path.
func On(method, part string) func(method, path string) bool {
	return func(m, p string) bool { return m == method && strings.Contains(p, part) }
}

// fault is the fault of a call, if any, with its use counted.
func (f *Forge) fault(method, path string) (Fault, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.down {
		return Fault{Refuse: true}, true
	}
	for _, o := range f.orders {
		if o.left != 0 && o.match(method, path) {
			o.use()
			return o.fault, true
		}
	}
	return Fault{}, false
}
