package store

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"playbook-bot/bot/forge"
)

func TestAcceptTakesOnceForEver(t *testing.T) {
	eachDatabase(t, func(t *testing.T, s *fixture) {
		opened := delivered(3, forge.ActionOpened, forge.ObjectIssue, 3)
		for _, in := range []Incoming{comment(3, 12), opened} {
			if !s.mustAccept(t, in) {
				t.Errorf("%s was not taken", in.name())
			}
			in.Delivery = "another"
			if s.mustAccept(t, in) {
				t.Errorf("%s was taken twice while it waits", in.name())
			}
		}
		other := comment(3, 12)
		other.Forge = "github"
		if !s.mustAccept(t, other) {
			t.Error("another forge's comment of the same ids was not taken")
		}
		l := mustAcquire(t, s, "w")
		th := mustLoad(t, s, l)
		if len(th.Events) != 2 {
			t.Fatalf("%d events wait, want 2", len(th.Events))
		}
		must(t, s.Commit(t.Context(), l, Change{Finish: done(th.Events[0].ID, th.Events[1].ID)}))
		must(t, s.Release(t.Context(), l))
		s.clock.advance(time.Hour)
		if n, err := s.Prune(t.Context(), s.clock.now()); err != nil || n != 2 {
			t.Fatalf("pruned %d events: %v", n, err)
		}
		for _, in := range []Incoming{comment(3, 12), opened} {
			if s.mustAccept(t, in) {
				t.Errorf("%s was taken again after retention", in.name())
			}
			if !must1(s.Seen(t.Context(), "gitea", testRepo.ID, in.Object)) {
				t.Errorf("%s is not seen", in.name())
			}
		}
		for _, never := range []Incoming{comment(3, 13), delivered(4, forge.ActionOpened, forge.ObjectIssue, 4)} {
			if must1(s.Seen(t.Context(), "gitea", testRepo.ID, never.Object)) {
				t.Errorf("%s is seen", never.name())
			}
		}
	})
}

// Case 5: the repository's and the organisation's hook deliver at once.
func TestAcceptTwoDeliveriesInParallel(t *testing.T) {
	eachDatabase(t, func(t *testing.T, s *fixture) {
		stores := []*ledger{s.ledger}
		if _, ok := s.e.(*postgresDB); ok {
			stores = append(stores, s.again(t)) // the other replica
		}
		var taken atomic.Int64
		var all sync.WaitGroup
		for id := range int64(20) {
			for i := range 4 {
				all.Go(func() {
					in := comment(3, 100+id)
					in.Delivery = fmt.Sprint(i)
					ok, err := stores[i%len(stores)].Accept(t.Context(), in)
					if err != nil {
						t.Error(err)
					}
					if ok {
						taken.Add(1)
					}
				})
			}
		}
		all.Wait()
		if taken.Load() != 20 {
			t.Errorf("%d of 20 comments were taken", taken.Load())
		}
		if st, err := s.Stats(t.Context()); err != nil || st.Waiting != 20 {
			t.Errorf("%d events wait (%v)", st.Waiting, err)
		}
	})
}

func TestAttested(t *testing.T) {
	ghost := forge.Account{ID: -1, Login: "Ghost"}
	tests := []struct {
		name string
		in   func(*Incoming)
		want bool
	}{
		{"created by its author", func(*Incoming) {}, true},
		{"edited by its author", func(in *Incoming) { in.Action = forge.ActionEdited }, true},
		{"edited by another", func(in *Incoming) { in.Action, in.Sender = forge.ActionEdited, bob }, false},
		{"created, sent by another", func(in *Incoming) { in.Sender = bob }, false},
		{"the ghost's", func(in *Incoming) { in.Sender, in.Author = ghost, ghost }, false},
		{"nobody's", func(in *Incoming) { in.Sender, in.Author = forge.Account{}, forge.Account{} }, false},
		{"found by a sweep", func(in *Incoming) { in.Source = SourceSweep }, false},
		{"deleted by its author", func(in *Incoming) { in.Action = forge.ActionDeleted }, false},
		{"closed by its author, edited before by another", func(in *Incoming) {
			in.Object, in.Action = forge.Object{Kind: forge.ObjectIssue, ID: 3}, forge.ActionClosed
		}, false},
	}
	eachDatabase(t, func(t *testing.T, s *fixture) {
		for i, tt := range tests {
			in := comment(3, int64(20+i))
			tt.in(&in)
			s.mustAccept(t, in)
			got, err := s.Attested(t.Context(), in.Forge, in.Repo.ID, in.Object, in.BodySHA)
			if err != nil || got != tt.want {
				t.Errorf("%s: attested %v, want %v (%v)", tt.name, got, tt.want, err)
			}
			if got, _ := s.Attested(t.Context(), in.Forge, in.Repo.ID, in.Object, sum("other")); got {
				t.Errorf("%s: another body is attested too", tt.name)
			}
		}
	})
}

// What a sweep found first and a delivery then vouches for is the delivery's.
func TestDeliveryVouchesForWhatTheSweepFound(t *testing.T) {
	eachDatabase(t, func(t *testing.T, s *fixture) {
		in := comment(3, 12)
		found := in
		found.Source, found.Sender, found.BodySHA = SourceSweep, forge.Account{}, sum("as listed")
		if n, err := s.AcceptFound(t.Context(), []Incoming{found, found}); err != nil || n != 1 {
			t.Fatalf("took %d of one comment found twice: %v", n, err)
		}
		if s.mustAccept(t, in) {
			t.Error("taken twice")
		}
		l := mustAcquire(t, s, "w")
		th := mustLoad(t, s, l)
		if len(th.Events) != 1 || th.Events[0].Source != SourceDelivery || th.Events[0].Sender != ann || th.Events[0].BodySHA != in.BodySHA {
			t.Errorf("waits: %+v", th.Events)
		}
		if ok, err := s.Attested(t.Context(), in.Forge, in.Repo.ID, in.Object, in.BodySHA); err != nil || !ok {
			t.Errorf("not attested (%v)", err)
		}
		// The other way round the delivery's word stands.
		second := comment(3, 13)
		s.mustAccept(t, second)
		second.Source, second.BodySHA = SourceSweep, sum("edited since")
		if n, err := s.AcceptFound(t.Context(), []Incoming{second}); err != nil || n != 0 {
			t.Errorf("took %d (%v)", n, err)
		}
		if e := mustLoad(t, s, l).Events[1]; e.Source != SourceDelivery || e.BodySHA != sum("body of comment13") {
			t.Errorf("the sweep wrote over the delivery: %+v", e)
		}
	})
}

func TestHintsMerge(t *testing.T) {
	edit := func(id int64) Incoming { return delivered(3, forge.ActionEdited, forge.ObjectComment, id) }
	by := func(in Incoming, who forge.Account) Incoming { in.Sender = who; return in }
	swept := func(in Incoming) Incoming {
		in.Source, in.Sender = SourceSweep, forge.Account{}
		return in
	}
	closed, reopened := hint(3, forge.ActionClosed), hint(3, forge.ActionReopened)
	tests := []struct {
		name string
		in   []Incoming
		want string // the actions that wait, with their objects' ids
	}{
		{"equal hints", []Incoming{edit(12), edit(12), edit(12)}, "edited12"},
		{"of two comments", []Incoming{edit(12), edit(13), edit(12)}, "edited12 edited13"},
		{"close twice", []Incoming{closed, closed}, "closed3"},
		{"close and reopen", []Incoming{closed, reopened}, "closed3 reopened3"},
		{"close, reopen, close", []Incoming{closed, reopened, closed, closed}, "closed3 reopened3 closed3"},
		{"a comment between two closings", []Incoming{closed, comment(3, 20), closed}, "closed3 created20 closed3"},
		{"edit, delete", []Incoming{edit(12), delivered(3, forge.ActionDeleted, forge.ObjectComment, 12)}, "edited12 deleted12"},
		{"edits by two people", []Incoming{edit(12), by(edit(12), bob), by(edit(12), bob)}, "edited12 edited12"},
		{"a sweep after a delivery", []Incoming{edit(12), swept(edit(12))}, "edited12"},
		{"a delivery after a sweep", []Incoming{swept(edit(12)), edit(12)}, "edited12"},
		{"transferred", []Incoming{closed, hint(3, forge.ActionTransferred)}, "closed3 transferred3"},
	}
	eachDatabase(t, func(t *testing.T, s *fixture) {
		for i, tt := range tests {
			number := int64(100 + i)
			for _, in := range tt.in {
				in.Number = number
				s.mustAccept(t, in)
			}
			th, err := s.FindThread(t.Context(), "gitea", testRepo.ID, number)
			must(t, err)
			var got []string
			for _, e := range th.Events {
				got = append(got, fmt.Sprint(e.Action, e.Object.ID))
				if e.Sender.ID == 0 && strings.Contains(tt.name, "delivery") {
					t.Errorf("%s: the delivery's sender is lost", tt.name)
				}
			}
			if strings.Join(got, " ") != tt.want {
				t.Errorf("%s: waiting are %v, want %s", tt.name, got, tt.want)
			}
		}
	})
}

// A hint that a worker has read, and may have acted on, is not merged with:
// what it was about has changed once more.
func TestHintsDoNotMergeWithStartedOnes(t *testing.T) {
	edit := delivered(3, forge.ActionEdited, forge.ObjectComment, 12)
	eachDatabase(t, func(t *testing.T, s *fixture) {
		s.mustAccept(t, edit)
		l := mustAcquire(t, s, "w")
		first := mustLoad(t, s, l).Events
		if !s.mustAccept(t, edit) {
			t.Error("merged with an edit that is being worked on")
		}
		if s.mustAccept(t, edit) {
			t.Error("did not merge with one that is not")
		}
		second := mustLoad(t, s, l).Events
		if len(first) != 1 || len(second) != 2 {
			t.Fatalf("loaded %d, then %d events", len(first), len(second))
		}
		if !s.mustAccept(t, edit) {
			t.Error("merged with an edit loaded by the second Load")
		}
		must(t, s.Commit(t.Context(), l, Change{Finish: []EventEnd{
			{ID: second[0].ID, Status: EventDone},
			{ID: second[1].ID, Status: EventWaiting, Tries: 1, NextAt: s.clock.now().Add(time.Minute)},
		}}))
		must(t, s.Release(t.Context(), l))
		if s.mustAccept(t, edit) {
			t.Error("after the release: did not merge with the one never loaded")
		}
		if n := len(must1(s.FindThread(t.Context(), "gitea", testRepo.ID, 3)).Events); n != 2 {
			t.Errorf("%d events wait, want 2", n)
		}
		// What was loaded, left alone and given back is in nobody's hands.
		l = mustAcquire(t, s, "w")
		mustLoad(t, s, l)
		must(t, s.Release(t.Context(), l))
		if s.mustAccept(t, edit) {
			t.Error("did not merge with a hint that nobody works on any more")
		}
	})
}

// However hints and workers interleave: what the workers see of the issue, one
// after the other, is what happened to it, but for immediate repetitions.
func TestNoHintIsLostOrOutOfOrder(t *testing.T) {
	actions := []forge.Action{forge.ActionClosed, forge.ActionReopened, forge.ActionEdited}
	eachDatabase(t, func(t *testing.T, s *fixture) {
		for seed := range uint64(8) {
			r := rand.New(rand.NewPCG(seed, 2))
			number := int64(seed + 1)
			var happened, handled []string
			turn := func() {
				l := must1(s.Acquire(t.Context(), "w", time.Minute))
				if l == nil {
					return
				}
				var c Change
				// Between reading a hint and finishing it, another may come.
				events := mustLoad(t, s, l).Events
				if r.IntN(2) == 0 {
					in := hint(number, actions[r.IntN(3)])
					happened = append(happened, string(in.Action))
					s.mustAccept(t, in)
				}
				for _, e := range events[:r.IntN(len(events)+1)] {
					c.Finish = append(c.Finish, done(e.ID)...)
					if e.Object.Kind == forge.ObjectIssue {
						handled = append(handled, string(e.Action))
					}
				}
				must(t, s.Commit(t.Context(), l, c))
				must(t, s.Release(t.Context(), l))
			}
			for i := range int64(40) {
				switch r.IntN(5) {
				case 0:
					turn()
				case 1:
					s.mustAccept(t, comment(number, number*1000+i))
				default:
					in := hint(number, actions[r.IntN(3)])
					happened = append(happened, string(in.Action))
					s.mustAccept(t, in)
				}
			}
			for len(must1(s.FindThread(t.Context(), "gitea", testRepo.ID, number)).Events) > 0 {
				turn()
			}
			if want, got := slices.Compact(happened), slices.Compact(handled); !slices.Equal(want, got) {
				t.Errorf("seed %d: happened %v\nhandled %v", seed, want, got)
			}
		}
	})
}

func must1[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func TestEventsComeInOrderOfPlace(t *testing.T) {
	eachDatabase(t, func(t *testing.T, s *fixture) {
		for _, in := range []Incoming{
			comment(3, 15), hint(3, forge.ActionClosed), comment(3, 12),
			delivered(3, forge.ActionOpened, forge.ObjectIssue, 3), comment(3, 18), hint(3, forge.ActionReopened),
		} {
			s.mustAccept(t, in)
		}
		th := mustLoad(t, s, mustAcquire(t, s, "w"))
		var got []string
		for _, e := range th.Events {
			got = append(got, fmt.Sprint(e.Action, "@", e.Ord))
		}
		want := "opened@0 created@12 created@15 closed@15 created@18 reopened@18"
		if strings.Join(got, " ") != want {
			t.Errorf("order %v, want %s", got, want)
		}
		if th.MaxComment != 18 {
			t.Errorf("greatest comment %d, want 18", th.MaxComment)
		}
	})
}

func TestAcceptRefusesNonsense(t *testing.T) {
	for name, spoil := range map[string]func(*Incoming){
		"no forge":       func(in *Incoming) { in.Forge = "" },
		"no repository":  func(in *Incoming) { in.Repo.ID = 0 },
		"no thread":      func(in *Incoming) { in.Number = 0 },
		"no object":      func(in *Incoming) { in.Object.ID = -1 },
		"unknown object": func(in *Incoming) { in.Object.Kind = "review" },
		"other action":   func(in *Incoming) { in.Action = forge.ActionOther },
		"no source":      func(in *Incoming) { in.Source = "" },
	} {
		in := comment(3, 12)
		spoil(&in)
		if in.check() == nil {
			t.Errorf("%s: was not refused", name)
		}
	}
	if err := comment(3, 12).check(); err != nil {
		t.Error(err)
	}
}

// A group whose transaction fails is taken in one by one.
func TestBadEventFailsAlone(t *testing.T) {
	eachDatabase(t, func(t *testing.T, s *fixture) {
		// The database refuses this one, as a stand-in for whatever it may
		// refuse.
		must(t, s.quietly(t.Context(), func(tx runner) error {
			_, err := tx.exec(t.Context(), refuseDelivery[s.d().numbered])
			return err
		}))
		var group []*arrival
		for i := range 5 {
			in := comment(int64(i+1), 12)
			if in.Object.ID += int64(i); i == 2 {
				in.Delivery = "refuse me"
			}
			group = append(group, &arrival{ctx: t.Context(), in: in, done: make(chan struct{})})
		}
		left, cancel := context.WithCancel(t.Context())
		cancel()
		group = append(group, &arrival{ctx: left, in: comment(6, 77), done: make(chan struct{})})
		s.acceptGroup(group)
		for i, a := range group {
			<-a.done
			switch {
			case i == 2 && (a.err == nil || a.taken):
				t.Error("the bad event was taken")
			case i == 5 && !errors.Is(a.err, context.Canceled):
				t.Errorf("the caller that left got %v", a.err)
			case i != 2 && i != 5 && (a.err != nil || !a.taken):
				t.Errorf("event %d was not taken: %v", i, a.err)
			}
		}
		if st := must1(s.Stats(t.Context())); st.Waiting != 4 {
			t.Errorf("%d events wait, want 4", st.Waiting)
		}
	})
}

// refuseDelivery makes the table refuse one delivery id; by whether arguments
// are numbered, which is to say PostgreSQL.
var refuseDelivery = map[bool]string{
	true: `ALTER TABLE events ADD CHECK (delivery <> 'refuse me')`,
	false: `CREATE TRIGGER refuse BEFORE INSERT ON events WHEN new.delivery = 'refuse me'
		BEGIN SELECT RAISE(ABORT, 'refused'); END`,
}

func (l *ledger) d() *dialect {
	switch e := l.e.(type) {
	case *sqliteDB:
		return e.d
	case *postgresDB:
		return e.d
	}
	panic("unknown engine")
}

func TestAcceptAfterClose(t *testing.T) {
	eachDatabase(t, func(t *testing.T, s *fixture) {
		must(t, s.Close())
		if _, err := s.Accept(t.Context(), comment(3, 12)); !errors.Is(err, ErrClosed) {
			t.Errorf("accept after close: %v", err)
		}
	})
}

func TestAcceptRemembersTheRepositorysName(t *testing.T) {
	eachDatabase(t, func(t *testing.T, s *fixture) {
		s.mustAccept(t, comment(3, 12))
		renamed := comment(3, 13)
		renamed.Repo.Owner, renamed.Repo.Name, renamed.Repo.OwnerID = "new", "y", 0
		s.mustAccept(t, renamed)
		nameless := comment(3, 14)
		nameless.Repo = forge.Repo{ID: testRepo.ID}
		s.mustAccept(t, nameless)
		l := mustAcquire(t, s, "w")
		if got := l.Thread.Repo; got.Owner != "new" || got.Name != "y" || got.ID != testRepo.ID {
			t.Errorf("the repository is %+v", got)
		}
		th := mustLoad(t, s, l)
		if len(th.Events) != 3 {
			t.Errorf("%d events in the renamed repository's thread, want 3", len(th.Events))
		}
		must(t, s.SaveRepo(t.Context(), "gitea", forge.Repo{ID: testRepo.ID, Owner: "new", OwnerID: 9, Name: "z"}))
		repos, err := s.Repos(t.Context())
		must(t, err)
		if len(repos) != 1 || repos[0].Repo.Name != "z" || repos[0].Repo.OwnerID != 9 || repos[0].Forge != "gitea" {
			t.Errorf("repositories: %+v", repos)
		}
	})
}
