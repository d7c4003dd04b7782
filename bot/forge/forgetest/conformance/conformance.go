// Package conformance holds the facts about a forge on which the bot stands,
// each as a named test of the adapter against a server: the dialects of the
// fake of forgetest in every run of the tests, and a real Gitea where there is
// one. A fact that holds for only one of fake and real server is a fault of the
// fake; where the kinds of forge differ, Facts says so.
package conformance

import (
	"context"
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
	// Adapter makes the adapter that is tested. nil: Gitea's.
	Adapter func(AdapterConfig) (Adapter, error)
	// People acts as an account by other means than the adapter. nil: by
	// Gitea's SDK.
	People func(t *testing.T, as Account) People
	// Facts are those that differ from one kind of forge to another. The zero
	// value is Gitea's.
	Facts Facts
}

// Facts are what differs, each told as the difference from Gitea.
type Facts struct {
	// Page is how much a page of a listing holds at most; 0: 50.
	Page int
	// PagedThreads: the listing of a thread is paged too.
	PagedThreads bool
	// LongestText is the most characters of a comment; 0: no limit was found.
	LongestText int
	// SiteHasNoRight: a site administrator has no right on a repository by
	// being one.
	SiteHasNoRight bool
	// WritersSeeStandings: a writer may read everybody's permission. Else a
	// writer may read only their own, and it takes an administrator.
	WritersSeeStandings bool
	// OwnersNeedOrgScope: without the scope for organisations an owner passes
	// for an administrator.
	OwnersNeedOrgScope bool
	// ArchiveRefusesAll: reactions and labels too.
	ArchiveRefusesAll bool
	// PlainLabels: the forge knows no exclusive labels; the adapter does.
	PlainLabels bool
}

// Adapter is what the bot needs of a forge, and EnsureLabels.
type Adapter interface {
	Self(ctx context.Context) (forge.Account, error)
	RepoByID(ctx context.Context, id int64) (forge.Repo, error)
	RepoByName(ctx context.Context, owner, name string) (forge.Repo, error)
	ReposOf(ctx context.Context, owner string) ([]forge.Repo, error)
	AccountByLogin(ctx context.Context, login string) (forge.Account, error)
	TeamMember(ctx context.Context, org, team, login string) (bool, error)
	Issue(ctx context.Context, repo, number int64) (forge.Issue, error)
	Comment(ctx context.Context, repo, id int64) (forge.Comment, error)
	Comments(ctx context.Context, repo, number int64, since time.Time) ([]forge.Comment, error)
	UpdatedIssues(ctx context.Context, repo int64, since time.Time, page int) ([]forge.Issue, bool, time.Time, error)
	UpdatedComments(ctx context.Context, repo int64, since time.Time, page int) ([]forge.Comment, bool, time.Time, error)
	Permission(ctx context.Context, repo int64, login string) (forge.Permission, int64, error)
	CreateIssue(ctx context.Context, repo int64, title, body string) (forge.Issue, error)
	CreateComment(ctx context.Context, repo, number int64, body string) (forge.Comment, error)
	EditComment(ctx context.Context, repo, id int64, body string) error
	DeleteComment(ctx context.Context, repo, id int64) error
	React(ctx context.Context, repo, number int64, obj forge.Object, r forge.Reaction, on bool) error
	SetLabels(ctx context.Context, repo, number int64, add, remove []string) error
	EnsureLabels(ctx context.Context, repo int64, specs []forge.LabelSpec) error
	File(ctx context.Context, repo int64, path string) (content []byte, commit string, err error)
}

// AdapterConfig is what an adapter of the suite is made of, as in the
// adapters' own Config.
type AdapterConfig struct {
	BaseURL string
	HTTP    *http.Client
	Token   func() string
	OnCall  func(kind string, status int, d time.Duration)
	Now     func() time.Time
}

func newGitea(c AdapterConfig) (Adapter, error) {
	return gitea.New(gitea.Config{BaseURL: c.BaseURL, HTTP: c.HTTP, Token: c.Token, OnCall: c.OnCall, Now: c.Now})
}

// Run runs the suite. Its tests are independent and leave their repositories
// behind.
func Run(t *testing.T, s Server) {
	if s.Adapter == nil {
		s.Adapter = newGitea
	}
	if s.People == nil {
		s.People = func(t *testing.T, as Account) People { return giteaPeople(t, s.BaseURL, s.HTTP, as) }
	}
	if s.Facts.Page == 0 {
		s.Facts.Page = 50
	}
	for _, group := range []map[string]func(*testing.T, *world){
		threadFacts, commentFacts, standingFacts, renameFacts, refusalFacts, labelFacts, fileFacts,
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
	bot  Adapter

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
func (w *world) adapter(t *testing.T, role Role) Adapter {
	t.Helper()
	c, err := w.s.Adapter(AdapterConfig{
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
