package store

import (
	"errors"
	"reflect"
	"testing"
	"time"

	"playbook-bot/bot/forge"
	"playbook-bot/bot/store/pgtest"
)

func TestCopyTo(t *testing.T) {
	t.Run("sqlite to sqlite", func(t *testing.T) {
		copyAndCompare(t, sqliteFixture(t), mustOpen(t, t.TempDir()+"/copy.db", Options{}))
	})
	t.Run("sqlite to postgres", func(t *testing.T) { copyAndCompare(t, sqliteFixture(t), mustOpen(t, pgtest.URL(t), Options{})) })
	t.Run("postgres to sqlite", func(t *testing.T) {
		copyAndCompare(t, postgresFixture(t), mustOpen(t, t.TempDir()+"/copy.db", Options{}))
	})
	t.Run("memory to memory", func(t *testing.T) {
		copyAndCompare(t, &fixture{ledger: mustOpen(t, ":memory:", Options{}), clock: newClock()}, mustOpen(t, ":memory:", Options{}))
	})
}

func copyAndCompare(t *testing.T, s *fixture, dst *ledger) {
	ctx := t.Context()
	counts := func(l *ledger) Stats {
		st := must1(l.Stats(ctx))
		st.Now = time.Time{} // two databases, two clocks
		return st
	}
	var found []Incoming
	for id := range int64(copyGroup*2 + 7) {
		found = append(found, comment(3, 20+id))
	}
	must1(s.AcceptFound(ctx, found))
	l, ev := inHand(t, s)
	must(t, s.Commit(ctx, l, Change{
		State: []byte("state"), Due: time.UnixMilli(1_900_000_000_000), Open: true, Finish: done(ev.ID),
		Objects: []Object{{Object: ev.Object, Author: ann, Keep: true, UpdatedAt: time.UnixMilli(5).UTC()}, {Object: forge.Object{Kind: forge.ObjectComment, ID: 77}, Data: []byte("d")}},
		Answers: []Answer{{Key: "a", Body: "b", Low: true, NextAt: time.UnixMilli(9).UTC()}},
		Audit:   []AuditRow{{Chain: 1, Seq: 1, Entry: []byte("{}")}},
	}))
	must(t, s.Release(ctx, l))
	must(t, s.SetMeta(ctx, "k", "v"))

	filed, _, err := s.ClaimFiling(ctx, filing("filed", "q"))
	must(t, err)

	must(t, CopyTo(ctx, s.ledger, dst))
	if f, claimed, err := dst.ClaimFiling(ctx, filing("other", "q")); err != nil || claimed || f != filed {
		t.Errorf("copied filing %+v, %v of %+v", f, err, filed)
	}
	want, got := must1(s.FindThread(ctx, "gitea", testRepo.ID, 3)), must1(dst.FindThread(ctx, "gitea", testRepo.ID, 3))
	want.Now, got.Now = time.Time{}, time.Time{}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("copied thread\n%+v\nof\n%+v", got, want)
	}
	for name, pair := range map[string][2]any{
		"stats":   {counts(s.ledger), counts(dst)},
		"repos":   {must1(s.Repos(ctx)), must1(dst.Repos(ctx))},
		"audit":   {must1(s.Audit(ctx, 0)), must1(dst.Audit(ctx, 0))},
		"objects": {must1(s.Objects(ctx, l.Thread.ID)), must1(dst.Objects(ctx, l.Thread.ID))},
		"meta":    {must1(s.Meta(ctx, "k")), must1(dst.Meta(ctx, "k"))},
		"open":    {must1(s.OpenThreads(ctx, "gitea", testRepo.ID)), must1(dst.OpenThreads(ctx, "gitea", testRepo.ID))},
		"next":    {must1(s.NextWake(ctx)), must1(dst.NextWake(ctx))},
	} {
		if !reflect.DeepEqual(pair[0], pair[1]) {
			t.Errorf("%s: %+v became %+v", name, pair[0], pair[1])
		}
	}
	if taken := must1(dst.Accept(ctx, comment(3, 20))); taken {
		t.Error("the copy forgot what was seen")
	}
	if ok := must1(dst.Attested(ctx, "gitea", testRepo.ID, comment(3, 20).Object, comment(3, 20).BodySHA)); !ok {
		t.Error("the copy forgot what was attested")
	}
	if taken := must1(dst.Accept(ctx, comment(9, 9000))); !taken {
		t.Error("the copy takes nothing new in")
	}
	if err := CopyTo(ctx, s.ledger, dst); !errors.Is(err, ErrNotEmpty) {
		t.Errorf("copied over something: %v", err)
	}
}
