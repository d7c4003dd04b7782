// Package forgetest is one stateful fake of a forge, spoken to over HTTP like
// the real one: accounts, organisations, repositories, issues, comments,
// labels, reactions, webhooks, and faults to order. It is for tests and for
// the replay of recorded deliveries, and imports no package of testing.
//
// The state (state.go, access.go, acts.go) knows no wire format. What is on
// the wire is a dialect's affair (gitea*.go); the quirks of Gitea 1.26.0 that
// matter are kept and checked against a real server by the suite in
// forgetest/conformance. Time is the clock passed in, and nothing here sleeps
// by any other, so the fake works inside a testing/synctest bubble by way of
// RoundTripper.
package forgetest

import (
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"
)

// What users may be refused. The user-side methods of Forge give these; on the
// wire they are the dialect's statuses.
var (
	ErrNotFound  = errors.New("not found")
	ErrForbidden = errors.New("not permitted")
	ErrLocked    = errors.New("locked")
	ErrArchived  = errors.New("archived")
	ErrInvalid   = errors.New("invalid")
	ErrExists    = errors.New("exists already")
)

// Forge is a fake forge. Its zero value is not ready; see New. All methods are
// safe for concurrent use.
type Forge struct {
	// Host is the server's root in the URLs it shows. It is set by New and may
	// be changed before first use.
	Host string
	// BlankOriginalAuthor leaves original_author empty everywhere, as Gitea
	// 1.26.0 does though its API has the field.
	BlankOriginalAuthor bool

	now     func() time.Time
	dialect dialect

	mu     sync.Mutex
	st     state
	orders []*Order
	calls  []Call
	down   bool
	closed chan struct{}
	out    outbox
}

// dialect is how the state looks on the wire.
type dialect interface {
	// name is the forge's in the paths of hooks.
	name() string
	// kind names the call, e.g. "comment.create"; "" if there is no such call.
	kind(method, path string) string
	// serve answers a call. It is called without the lock.
	serve(w http.ResponseWriter, r *http.Request)
	// refusal is the forge's own answer of that status where a test orders one
	// and says no more.
	refusal(status int) (http.Header, string)
	// delivery is what h is sent when e happens. It is called with the lock.
	delivery(h *hook, e happening) *Delivery
}

// New makes an empty fake of Gitea whose clock is now.
func New(now func() time.Time) *Forge {
	f := newForge("http://gitea.test", now)
	f.dialect = newGitea(f, false)
	return f
}

// NewForgejo makes an empty fake of Forgejo, which is Gitea but for its version
// and for the headers of its deliveries.
func NewForgejo(now func() time.Time) *Forge {
	f := newForge("http://forgejo.test", now)
	f.dialect = newGitea(f, true)
	return f
}

// NewGitHub makes an empty fake of GitHub. It answers the API under / as well
// as under /api/v3, as an Enterprise Server has it.
func NewGitHub(now func() time.Time) *Forge {
	f := newForge("http://github.test", now)
	f.dialect = newGitHub(f)
	return f
}

func newForge(host string, now func() time.Time) *Forge {
	f := &Forge{Host: host, now: now, closed: make(chan struct{})}
	f.st.init()
	f.out.init()
	return f
}

// Close ends whatever waits inside the fake: delayed answers and deliveries.
func (f *Forge) Close() {
	f.mu.Lock()
	defer f.mu.Unlock()
	select {
	case <-f.closed:
	default:
		close(f.closed)
	}
}

// clock is the present in the resolution in which Gitea stores times.
func (f *Forge) clock() time.Time { return f.now().UTC().Truncate(time.Second) }

// do runs one user-side act under the lock.
func (f *Forge) do(act func(st *state) error, format string, args ...any) error {
	f.mu.Lock()
	err := act(&f.st)
	f.mu.Unlock()
	f.flush()
	if err != nil {
		return fmt.Errorf(format+": %w", append(args, err)...)
	}
	return nil
}

// Call is one call that was made to the API.
type Call struct {
	Method, Path string
	// Kind is the dialect's name for it, the adapter's too: "comment.create".
	Kind string
	// As is the login of the token's account, "" without one.
	As string
	// Status is what was answered; 0: the connection was dropped or refused.
	Status int
	At     time.Time
}

// Calls lists the calls so far, in the order in which they were answered.
func (f *Forge) Calls() []Call {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]Call(nil), f.calls...)
}

// CallCounts counts the calls so far by kind.
func (f *Forge) CallCounts() map[string]int {
	f.mu.Lock()
	defer f.mu.Unlock()
	counts := map[string]int{}
	for _, c := range f.calls {
		counts[c.Kind]++
	}
	return counts
}

// ResetCalls forgets the calls so far.
func (f *Forge) ResetCalls() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.calls = nil
}

// SetDown makes the forge unreachable, or reachable again: in process every
// call fails as a refused connection, on a listener it is dropped.
func (f *Forge) SetDown(down bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.down = down
}
