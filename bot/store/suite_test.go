package store

import (
	"crypto/sha256"
	"fmt"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"playbook-bot/bot/forge"
)

// clock is a database's clock that the test moves.
type clock struct {
	mu  sync.Mutex
	at  time.Time
	set func(time.Time) // also tells the database, where that is elsewhere
}

func newClock() *clock { return &clock{at: time.UnixMilli(1_780_000_000_000).UTC()} }

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.at
}

func (c *clock) advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = c.at.Add(d)
	if c.set != nil {
		c.set(c.at)
	}
}

// fixture is a fresh database with a clock of the test's.
type fixture struct {
	*ledger
	clock *clock
	// again opens the same database once more, as another replica or, on
	// SQLite, after closing the first.
	again func(t *testing.T) *ledger
}

// eachDatabase runs a test on every database there is.
func eachDatabase(t *testing.T, f func(t *testing.T, s *fixture)) {
	t.Run("sqlite", func(t *testing.T) { f(t, sqliteFixture(t)) })
	t.Run("postgres", func(t *testing.T) { f(t, postgresFixture(t)) })
}

func sqliteFixture(t *testing.T) *fixture {
	c := newClock()
	path := filepath.Join(t.TempDir(), "bot.db")
	o := Options{Now: c.now}
	l := mustOpen(t, path, o)
	return &fixture{ledger: l, clock: c, again: func(t *testing.T) *ledger {
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		return mustOpen(t, path, o)
	}}
}

func mustOpen(t testing.TB, url string, o Options) *ledger {
	t.Helper()
	l, err := open(t.Context(), url, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return l
}

// The people and places of the tests.
var (
	testRepo = forge.Repo{ID: 41, Owner: "ops", OwnerID: 7, Name: "search"}
	ann      = forge.Account{ID: 11, Login: "ann"}
	bob      = forge.Account{ID: 12, Login: "bob"}
)

func sum(body string) [32]byte { return sha256.Sum256([]byte(body)) }

// delivered is an event in thread number, by its author, as a delivery.
func delivered(number int64, action forge.Action, kind forge.ObjectKind, id int64) Incoming {
	return Incoming{
		Forge: "gitea", Delivery: fmt.Sprintf("d-%d-%s-%d", number, action, id), Repo: testRepo, Number: number,
		Object: forge.Object{Kind: kind, ID: id}, Action: action, Sender: ann, Author: ann,
		BodySHA: sum(fmt.Sprint("body of ", kind, id)), Source: SourceDelivery,
	}
}

func comment(number, id int64) Incoming {
	return delivered(number, forge.ActionCreated, forge.ObjectComment, id)
}

func hint(number int64, action forge.Action) Incoming {
	return delivered(number, action, forge.ObjectIssue, number)
}

func (s *fixture) mustAccept(t *testing.T, in Incoming) bool {
	t.Helper()
	taken, err := s.Accept(t.Context(), in)
	if err != nil {
		t.Fatal(err)
	}
	return taken
}

func mustAcquire(t *testing.T, s Store, owner string) *Lease {
	t.Helper()
	l, err := s.Acquire(t.Context(), owner, 10*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	if l == nil {
		t.Fatal("no thread is due")
	}
	return l
}

func mustLoad(t *testing.T, s Store, l *Lease) *Thread {
	t.Helper()
	th, err := s.Load(t.Context(), l)
	if err != nil {
		t.Fatal(err)
	}
	return th
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func done(ids ...int64) (ends []EventEnd) {
	for _, id := range ids {
		ends = append(ends, EventEnd{ID: id, Status: EventDone})
	}
	return ends
}
