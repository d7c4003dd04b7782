// Package conformance holds the facts about a Gitea server on which the bot
// stands, each as a named test of the adapter against a server: the fake of
// forgetest in every run of the tests, and a real Gitea where there is one.
// A fact that holds for only one of the two is a fault of the fake.
package conformance

import (
	"errors"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"playbook-bot/bot/forge"
	"playbook-bot/bot/forge/gitea"
)

// Role is what an account may do in the repositories of Server.NewRepo.
type Role string

// The accounts of a Server. All tokens but Bot's have every scope; Bot's has
// forgetest.BotScopes.
const (
	Site   Role = "site"   // a site administrator, without a right of its own
	Owner  Role = "owner"  // in the organisation's team Owners, no collaborator
	Admin  Role = "admin"  // collaborator
	Writer Role = "writer" // collaborator
	Reader Role = "reader" // collaborator
	Nobody Role = "nobody" // no right of its own
	Bot    Role = "bot"    // collaborator, admin
)

// Account is an account's log-in name and token.
type Account struct{ Login, Token string }

// Server is a forge to run the suite against.
type Server struct {
	BaseURL string
	// HTTP reaches it. nil: http.DefaultClient.
	HTTP     *http.Client
	Accounts map[Role]Account
	// Org is the organisation that owns the repositories.
	Org string
	// NewRepo makes a public, empty repository of Org with the rights of the
	// roles. Each test has its own.
	NewRepo func(t *testing.T) forge.Repo
}

// Run runs the suite. Its tests are independent and leave their repositories
// behind.
func Run(t *testing.T, s Server) {
	for _, group := range []map[string]func(*testing.T, *world){
		threadFacts, commentFacts, standingFacts, renameFacts, refusalFacts, labelFacts,
	} {
		for name, test := range group {
			t.Run(name, func(t *testing.T) { test(t, newWorld(t, s)) })
		}
	}
}

// world is one test's: a repository, the bot's adapter and its calls.
type world struct {
	s    Server
	repo forge.Repo
	bot  *gitea.Client

	mu    sync.Mutex
	calls []string
	// ahead is added to the adapter's clock.
	ahead time.Duration
}

func newWorld(t *testing.T, s Server) *world {
	w := &world{s: s, repo: s.NewRepo(t)}
	w.bot = w.adapter(t, Bot)
	return w
}

// adapter is the adapter with a role's token.
func (w *world) adapter(t *testing.T, role Role) *gitea.Client {
	t.Helper()
	c, err := gitea.New(gitea.Config{
		BaseURL: w.s.BaseURL, HTTP: w.s.HTTP,
		Token: func() string { return w.s.Accounts[role].Token },
		OnCall: func(kind string, _ int, _ time.Duration) {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.calls = append(w.calls, kind)
		},
		Now: func() time.Time {
			w.mu.Lock()
			defer w.mu.Unlock()
			return time.Now().Add(w.ahead)
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// counted runs f and gives the kinds of the calls it made.
func (w *world) counted(f func()) string {
	w.mu.Lock()
	w.calls = nil
	w.mu.Unlock()
	f()
	w.mu.Lock()
	defer w.mu.Unlock()
	return strings.Join(w.calls, " ")
}

// age makes everything the adapter has cached an hour older.
func (w *world) age() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ahead += time.Hour
}

// get takes a call that must not fail: get(call())(t).
func get[T any](v T, err error) func(*testing.T) T {
	return func(t *testing.T) T {
		t.Helper()
		mustDo(t, err)
		return v
	}
}

func mustDo(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatalf("unexpected error: %v", err)
	}
}

// refused fails the test unless err is of the kind, comes from the forge
// itself and leaves nothing in doubt.
func refused(t *testing.T, err, kind error) {
	t.Helper()
	var e *forge.Error
	switch {
	case !errors.As(err, &e):
		t.Fatalf("error %v, want a *forge.Error of the kind %q", err, kind)
	case !errors.Is(err, kind):
		t.Fatalf("error %v is not of the kind %q", err, kind)
	case e.Ambiguous:
		t.Errorf("%v is ambiguous, want a definite refusal", err)
	}
}
