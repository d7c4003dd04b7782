package store

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"playbook-bot/bot/forge"
)

func filing(key, question string) FilingClaim {
	return FilingClaim{
		Filing: Filing{Key: key, Forge: "gitea", Repo: testRepo.ID, Account: ann.ID, Kind: forge.ObjectIssue, Question: question},
		TTL:    10 * time.Second, Most: 5, Within: time.Hour,
	}
}

func TestFilingTheSameIsTheFirst(t *testing.T) {
	eachDatabase(t, func(t *testing.T, s *fixture) {
		ctx := t.Context()
		claim := func(c FilingClaim) (Filing, bool) {
			t.Helper()
			f, claimed, err := s.ClaimFiling(ctx, c)
			must(t, err)
			return f, claimed
		}
		first, claimed := claim(filing("k1", "q"))
		if !claimed || first.Key != "k1" || first.Deadline.Sub(first.ClaimedAt) != 10*time.Second || first.Status != FilingClaimed {
			t.Fatalf("first: %+v, %v", first, claimed)
		}
		if again, claimed := claim(filing("k2", "q")); claimed || again.Key != "k1" {
			t.Errorf("again: %+v, %v", again, claimed)
		}
		first.Number, first.Object = 41, 41
		for range 2 {
			if !must1(s.SettleFiling(ctx, first)) {
				t.Error("not bound to its own text")
			}
		}
		if again, claimed := claim(filing("k3", "q")); claimed || again.Object != 41 || again.Status != FilingPosted {
			t.Errorf("after settling: %+v, %v", again, claimed)
		}
		over := filing("k4", "q")
		over.Over = "k1"
		if next, claimed := claim(over); !claimed || next.Key != "k4" {
			t.Errorf("over: %+v, %v", next, claimed)
		}
		over.Key = "k5"
		if next, claimed := claim(over); claimed || next.Key != "k4" {
			t.Errorf("over twice: %+v, %v", next, claimed)
		}
		bobs := filing("k6", "q")
		bobs.Account = bob.ID
		if f, claimed := claim(bobs); !claimed {
			t.Errorf("another account: %+v", f)
		}
	})
}

func TestFilingsAreLimited(t *testing.T) {
	eachDatabase(t, func(t *testing.T, s *fixture) {
		ctx := t.Context()
		for i := range 5 {
			if _, _, err := s.ClaimFiling(ctx, filing(fmt.Sprint("k", i), fmt.Sprint("q", i))); err != nil {
				t.Fatal(err)
			}
		}
		if _, _, err := s.ClaimFiling(ctx, filing("k9", "q9")); !errors.Is(err, ErrTooMany) {
			t.Errorf("the sixth: %v", err)
		}
		if f, claimed, err := s.ClaimFiling(ctx, filing("k9", "q3")); err != nil || claimed || f.Key != "k3" {
			t.Errorf("the same again: %+v %v %v", f, claimed, err)
		}
		must(t, s.VoidFiling(ctx, "k4"))
		if _, claimed, err := s.ClaimFiling(ctx, filing("k9", "q4")); err != nil || !claimed {
			t.Errorf("in place of one that came to nothing: %v %v", claimed, err)
		}
		s.clock.advance(time.Hour + time.Second)
		if _, claimed, err := s.ClaimFiling(ctx, filing("k10", "q10")); err != nil || !claimed {
			t.Errorf("an hour later: %v %v", claimed, err)
		}
	})
}

// TestFilingsAtOnce: of many who file the same at once one claims; and the
// limit holds for many who file different things.
func TestFilingsAtOnce(t *testing.T) {
	eachDatabase(t, func(t *testing.T, s *fixture) {
		for _, same := range []bool{true, false} {
			var mu sync.Mutex
			var wg sync.WaitGroup
			got := 0
			for i := range 8 {
				wg.Go(func() {
					c := filing(fmt.Sprint(same, i), fmt.Sprint("q", same))
					c.Account = map[bool]int64{true: 100, false: 200}[same]
					if !same {
						c.Question += fmt.Sprint(i)
					}
					_, claimed, err := s.ClaimFiling(t.Context(), c)
					if err != nil && !errors.Is(err, ErrTooMany) {
						t.Error(err)
					}
					if claimed {
						mu.Lock()
						got++
						mu.Unlock()
					}
				})
			}
			wg.Wait()
			if want := map[bool]int{true: 1, false: 5}[same]; got != want {
				t.Errorf("same %v: %d claims, want %d", same, got, want)
			}
		}
	})
}

// TestAKeyHasOneText: a marker copied into another text is found out.
func TestAKeyHasOneText(t *testing.T) {
	eachDatabase(t, func(t *testing.T, s *fixture) {
		ctx := t.Context()
		f, _, err := s.ClaimFiling(ctx, filing("k1", "q"))
		must(t, err)
		at := func(number int64) Filing { g := f; g.Number, g.Object = number, number; return g }
		if !must1(s.SettleFiling(ctx, at(41))) {
			t.Fatal("not bound")
		}
		other := at(42)
		if must1(s.SettleFiling(ctx, other)) {
			t.Error("the key took a second text")
		}
		other = at(41)
		other.Key = "unknown"
		if must1(s.SettleFiling(ctx, other)) {
			t.Error("the text took a second key")
		}
		other = at(43)
		other.Key = "unknown"
		for range 2 {
			if !must1(s.SettleFiling(ctx, other)) {
				t.Error("a key that the database has lost is not taken in again")
			}
		}
		other.Object, other.Number = 44, 44
		if must1(s.SettleFiling(ctx, other)) {
			t.Error("nor bound")
		}
		g, _, err := s.ClaimFiling(ctx, filing("k2", "q2"))
		must(t, err)
		g.Number, g.Object, g.Account = 45, 45, bob.ID
		if must1(s.SettleFiling(ctx, g)) {
			t.Error("another account took the key")
		}
	})
}

func TestReclaimFiling(t *testing.T) {
	eachDatabase(t, func(t *testing.T, s *fixture) {
		ctx := t.Context()
		f, _, err := s.ClaimFiling(ctx, filing("k1", "q"))
		must(t, err)
		s.clock.advance(time.Minute)
		again, ok, err := s.ReclaimFiling(ctx, f, 10*time.Second)
		must(t, err)
		if !ok || again.Deadline.Sub(f.Deadline) != time.Minute {
			t.Errorf("again: %+v, %v", again, ok)
		}
		if _, ok, err := s.ReclaimFiling(ctx, f, 10*time.Second); err != nil || ok {
			t.Errorf("by the old deadline: %v, %v", ok, err)
		}
		again.Number, again.Object = 41, 41
		must1(s.SettleFiling(ctx, again))
		if _, ok, err := s.ReclaimFiling(ctx, again, 10*time.Second); err != nil || ok {
			t.Errorf("what stands: %v, %v", ok, err)
		}
	})
}
