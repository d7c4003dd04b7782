package main

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"playbook-bot/bot/forge"
	"playbook-bot/bot/store"
)

// pruning is a store that counts who prunes, and may fail at it.
type pruning struct {
	store.Store
	mu     sync.Mutex
	pruned []time.Time
	err    error
}

func (p *pruning) Prune(_ context.Context, before time.Time) (int64, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.pruned = append(p.pruned, before)
	return 0, p.err
}

func TestOneReplicaPrunesAnHour(t *testing.T) {
	now := time.Date(2026, 12, 1, 3, 0, 0, 0, time.UTC)
	db, err := store.Open(t.Context(), "sqlite::memory:", store.Options{Now: func() time.Time { return now }})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	p := &pruning{Store: db}
	turn := func(want int) {
		t.Helper()
		if err := retainOnce(t.Context(), p, 24*time.Hour); !errors.Is(err, p.err) {
			t.Fatal(err)
		}
		if len(p.pruned) != want {
			t.Fatalf("at %s: pruned %d times, want %d", now, len(p.pruned), want)
		}
	}
	turn(1)
	if got := p.pruned[0]; !got.Equal(now.Add(-24 * time.Hour)) {
		t.Errorf("pruned what is older than %s", got)
	}
	turn(1) // another replica, at the same time
	now = now.Add(30 * time.Minute)
	turn(1) // a third, started meanwhile
	now = now.Add(30 * time.Minute)
	turn(2)
	// Whose pruning fails leaves the turn to the next.
	now, p.err = now.Add(time.Hour), errors.New("no space left")
	turn(3)
	p.err = nil
	turn(4)
	// A clock that was set back must not stop it for ever.
	now = now.Add(-48 * time.Hour)
	turn(5)
}

// TestRetentionKeepsWhatIsNeeded: it drops finished events and nothing that
// the bot goes by.
func TestRetentionKeepsWhatIsNeeded(t *testing.T) {
	now := time.Date(2026, 12, 1, 3, 0, 0, 0, time.UTC)
	db, err := store.Open(t.Context(), "sqlite::memory:", store.Options{Now: func() time.Time { return now }})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	in := store.Incoming{Forge: "gitea", Repo: forge.Repo{ID: 7, Owner: "ops", Name: "x"}, Number: 41, Action: forge.ActionCreated,
		Object: forge.Object{Kind: forge.ObjectComment, ID: 812}, Source: store.SourceDelivery,
		Sender: forge.Account{ID: 3, Login: "ada"}, Author: forge.Account{ID: 3, Login: "ada"}, BodySHA: [32]byte{1}}
	if _, err := db.Accept(t.Context(), in); err != nil {
		t.Fatal(err)
	}
	l, err := db.Acquire(t.Context(), "w", time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	th, err := db.Load(t.Context(), l)
	if err != nil {
		t.Fatal(err)
	}
	err = db.Commit(t.Context(), l, store.Change{Finish: []store.EventEnd{{ID: th.Events[0].ID, Status: store.EventDone}},
		Audit: []store.AuditRow{{Chain: 1, Seq: 1, Entry: []byte("{}")}}})
	if err != nil {
		t.Fatal(err)
	}
	now = now.Add(100 * 24 * time.Hour)
	if err := retainOnce(t.Context(), db, 24*time.Hour); err != nil {
		t.Fatal(err)
	}
	seen, err := db.Seen(t.Context(), "gitea", 7, in.Object)
	if err != nil || !seen {
		t.Errorf("what was seen is forgotten: %v", err)
	}
	if ok, err := db.Attested(t.Context(), "gitea", 7, in.Object, in.BodySHA); err != nil || !ok {
		t.Errorf("whose words it was is forgotten: %v", err)
	}
	if rows, err := db.Audit(t.Context(), 0); err != nil || len(rows) != 1 {
		t.Errorf("the audit log holds %d entries: %v", len(rows), err)
	}
	if n, err := db.Prune(t.Context(), now); err != nil || n != 0 {
		t.Errorf("%d finished events were left: %v", n, err)
	}
}
