package store

import (
	"bytes"
	"context"
	"errors"
	"reflect"
	"testing"
	"time"

	"playbook-bot/bot/forge"
)

// inHand accepts one comment and acquires its thread.
func inHand(t *testing.T, s *fixture) (*Lease, Event) {
	t.Helper()
	s.mustAccept(t, comment(3, 12))
	l := mustAcquire(t, s, "w")
	return l, mustLoad(t, s, l).Events[0]
}

func TestCommitKeepsObjects(t *testing.T) {
	eachDatabase(t, func(t *testing.T, s *fixture) {
		ctx := t.Context()
		l, _ := inHand(t, s)
		at := s.clock.now()
		objs := []Object{
			{Object: forge.Object{Kind: forge.ObjectComment, ID: 30}, Author: bob, BodySHA: sum("c"), CreatedAt: at, UpdatedAt: at, Keep: true, Data: []byte(`{}`)},
			{Object: forge.Object{Kind: forge.ObjectComment, ID: 9}, Author: ann, OriginalAuthor: "old", BodySHA: sum("b")},
			{Object: forge.Object{Kind: forge.ObjectIssue, ID: 3}, Author: ann, BodySHA: sum("a"), CreatedAt: at, Keep: true},
		}
		must(t, s.Commit(ctx, l, Change{Objects: objs}))
		all := must1(s.Objects(ctx, l.Thread.ID))
		if want := []Object{objs[2], objs[1], objs[0]}; !reflect.DeepEqual(all, want) {
			t.Errorf("objects\n%+v, want\n%+v", all, want)
		}
		th := mustLoad(t, s, l)
		if len(th.Records) != 2 || th.Records[0].Kind != forge.ObjectIssue || th.Records[1].ID != 30 {
			t.Errorf("kept: %+v", th.Records)
		}
		if th.MaxComment != 30 {
			t.Errorf("greatest comment %d, want 30", th.MaxComment)
		}
		changed := objs[0]
		changed.Keep, changed.Deleted, changed.Data, changed.BodySHA = false, true, nil, sum("")
		must(t, s.Commit(ctx, l, Change{Objects: []Object{changed}}))
		if got := must1(s.Object(ctx, l.Thread.ID, changed.Object)); !reflect.DeepEqual(got, changed) {
			t.Errorf("object %+v, want %+v", got, changed)
		}
		if th := mustLoad(t, s, l); len(th.Records) != 1 {
			t.Errorf("kept: %+v", th.Records)
		}
		if _, err := s.Object(ctx, l.Thread.ID, forge.Object{Kind: forge.ObjectComment, ID: 99}); !errors.Is(err, ErrNotFound) {
			t.Errorf("an unknown object: %v", err)
		}
	})
}

func TestCommitIsAllOrNothing(t *testing.T) {
	eachDatabase(t, func(t *testing.T, s *fixture) {
		ctx := t.Context()
		l, ev := inHand(t, s)
		must(t, s.Commit(ctx, l, Change{State: []byte("one"), Answers: []Answer{{Key: "answer:comment:12", Body: "x"}}}))
		good := Change{State: []byte("two"), Finish: done(ev.ID), Objects: []Object{{Object: ev.Object}},
			Audit: []AuditRow{{Chain: 1, Seq: 1, Entry: []byte("{}")}}}
		for name, tt := range map[string]struct {
			spoil func(*Change)
			want  error
		}{
			"an answer decided twice": {func(c *Change) { c.Answers = []Answer{{Key: "answer:comment:12"}} }, ErrExists},
			"an unknown answer":       {func(c *Change) { c.Settle = []Answer{{Key: "none", Status: AnswerPosted}} }, ErrNotFound},
			"an unknown event":        {func(c *Change) { c.Finish = done(ev.ID + 1) }, ErrNotFound},
			"an event finished twice": {func(c *Change) { c.Finish = done(ev.ID, ev.ID) }, ErrNotFound},
			"no such end":             {func(c *Change) { c.Finish = []EventEnd{{ID: ev.ID, Status: "lost"}} }, nil},
			"no such answer state":    {func(c *Change) { c.Settle = []Answer{{Key: "answer:comment:12", Status: "?"}} }, nil},
			"an audit entry twice":    {func(c *Change) { c.Audit = append(c.Audit, c.Audit[0]) }, nil},
			"another thread's event":  {func(c *Change) { c.Found = []Incoming{comment(4, 50)} }, nil},
		} {
			c := good
			tt.spoil(&c)
			err := s.Commit(ctx, l, c)
			if err == nil || (tt.want != nil && !errors.Is(err, tt.want)) {
				t.Errorf("%s: %v, want %v", name, err, tt.want)
			}
		}
		th := mustLoad(t, s, l)
		if string(th.State) != "one" || len(th.Events) != 1 || len(must1(s.Audit(ctx, 0))) != 0 || len(must1(s.Objects(ctx, l.Thread.ID))) != 0 {
			t.Errorf("something of a failed commit was written: %+v", th)
		}
		must(t, s.Commit(ctx, l, good))
	})
}

func TestCommitTakesInWhatWasFound(t *testing.T) {
	eachDatabase(t, func(t *testing.T, s *fixture) {
		ctx := t.Context()
		l, ev := inHand(t, s)
		swept := func(in Incoming) Incoming { in.Source = SourceSweep; return in }
		must(t, s.Commit(ctx, l, Change{Finish: done(ev.ID), Found: []Incoming{
			swept(comment(3, 12)), swept(comment(3, 40)), swept(comment(3, 40)), swept(hint(3, forge.ActionClosed)), swept(hint(3, forge.ActionClosed)),
		}}))
		th := mustLoad(t, s, l)
		if len(th.Events) != 2 || th.Events[0].Object.ID != 40 || th.Events[1].Action != forge.ActionClosed || th.Events[1].Ord != 40 {
			t.Errorf("found events: %+v", th.Events)
		}
		if th.MaxComment != 40 {
			t.Errorf("greatest comment %d", th.MaxComment)
		}
		if s.mustAccept(t, comment(3, 40)) {
			t.Error("a delivery of what was found is taken again")
		}
	})
}

func TestAnswerFromDecisionToProof(t *testing.T) {
	eachDatabase(t, func(t *testing.T, s *fixture) {
		ctx := t.Context()
		l, _ := inHand(t, s)
		const key = "answer:comment:12"
		in := Answer{Key: key, Body: "whole", Trigger: forge.Object{Kind: forge.ObjectComment, ID: 12}, Account: ann.ID, Low: true}
		must(t, s.Commit(ctx, l, Change{Answers: []Answer{in}}))
		open := mustLoad(t, s, l).Open
		in.Status, in.CreatedAt = AnswerPending, s.clock.now()
		if len(open) != 1 || !reflect.DeepEqual(open[0], in) {
			t.Fatalf("open: %+v, want %+v", open, in)
		}
		if _, err := s.ClaimAnswer(ctx, l, "other", 0, time.Second); !errors.Is(err, ErrNotFound) {
			t.Errorf("claim of an unknown answer: %v", err)
		}
		a := must1(s.ClaimAnswer(ctx, l, key, 17, time.Second))
		now := s.clock.now()
		if a.Status != AnswerClaimed || a.After != 17 || !a.Deadline.Equal(now.Add(time.Second)) || !a.NextAt.Equal(now) || a.Body != "whole" {
			t.Errorf("claimed: %+v", a)
		}
		s.clock.advance(time.Second)
		if _, err := s.ClaimAnswer(ctx, l, key, 17, time.Second); !errors.Is(err, ErrClaimed) {
			t.Errorf("claimed twice: %v", err)
		}
		s.clock.advance(time.Millisecond)
		if a = must1(s.ClaimAnswer(ctx, l, key, 19, time.Second)); a.After != 19 {
			t.Errorf("claimed anew: %+v", a)
		}
		a.Status, a.CommentID, a.Note = AnswerPosted, 21, "adopted"
		must(t, s.Commit(ctx, l, Change{Settle: []Answer{a}}))
		th := mustLoad(t, s, l)
		if len(th.Open) != 0 || th.MaxComment != 21 {
			t.Errorf("after posting: %+v", th)
		}
		if _, err := s.ClaimAnswer(ctx, l, key, 21, time.Second); err == nil {
			t.Error("a posted answer can be claimed")
		}
		got, err := s.AnswerByComment(ctx, l.Thread.ID, 21)
		if err != nil || got.Key != key || got.Body != "whole" || got.Note != "adopted" || got.Status != AnswerPosted {
			t.Errorf("the answer that is comment 21: %+v (%v)", got, err)
		}
		for _, id := range []int64{0, 22} {
			if _, err := s.AnswerByComment(ctx, l.Thread.ID, id); !errors.Is(err, ErrNotFound) {
				t.Errorf("the answer that is comment %d: %v", id, err)
			}
		}
	})
}

func TestPostedCounts(t *testing.T) {
	eachDatabase(t, func(t *testing.T, s *fixture) {
		ctx := t.Context()
		l, _ := inHand(t, s)
		now := s.clock.now()
		must(t, s.Commit(ctx, l, Change{Answers: []Answer{
			{Key: "1", Account: ann.ID, Low: true},
			{Key: "2", Account: ann.ID, Low: true, Status: AnswerPosted, CommentID: 4},
			{Key: "3", Account: bob.ID, Low: true},
			{Key: "4", Account: ann.ID},
			{Key: "5", Account: ann.ID, Low: true, Status: AnswerDead},
			{Key: "6", Account: ann.ID, Low: true, CreatedAt: now.Add(-2 * time.Hour)},
		}}))
		byAnn, low, err := s.Posted(ctx, l.Thread.ID, ann.ID, now.Add(-time.Hour))
		if err != nil || byAnn != 3 || low != 3 {
			t.Errorf("ann %d, low %d, %v; want 3 and 3", byAnn, low, err)
		}
		if byAnn, low, err := s.Posted(ctx, l.Thread.ID+1, ann.ID, now); err != nil || byAnn != 0 || low != 0 {
			t.Errorf("another thread: %d, %d, %v", byAnn, low, err)
		}
	})
}

func TestLookups(t *testing.T) {
	eachDatabase(t, func(t *testing.T, s *fixture) {
		ctx := t.Context()
		l, ev := inHand(t, s)
		elsewhere := comment(3, 12)
		elsewhere.Repo = forge.Repo{ID: 42, Owner: "ops", Name: "other"}
		s.mustAccept(t, elsewhere)
		var objs []Object
		var ask []forge.Object
		for id := range int64(120) {
			o := forge.Object{Kind: forge.ObjectComment, ID: 500 + id}
			ask = append(ask, o, forge.Object{Kind: forge.ObjectComment, ID: 5000 + id})
			objs = append(objs, Object{Object: o, BodySHA: sum("x"), UpdatedAt: s.clock.now(), Deleted: id == 7})
		}
		issue := forge.Object{Kind: forge.ObjectIssue, ID: 3}
		must(t, s.Commit(ctx, l, Change{State: []byte("s"), Open: true, Objects: append(objs, Object{Object: issue, BodySHA: sum("i")})}))
		known := must1(s.KnownObjects(ctx, "gitea", testRepo.ID, append(ask, issue)))
		if len(known) != 121 || known[issue].BodySHA != sum("i") || !known[ask[14]].Deleted || known[ask[0]].Deleted ||
			!known[ask[0]].UpdatedAt.Equal(s.clock.now()) {
			t.Errorf("known are %d objects", len(known))
		}
		if known := must1(s.KnownObjects(ctx, "gitea", 42, append(ask, issue))); len(known) != 0 {
			t.Errorf("another repository knows %d objects", len(known))
		}
		if refs := must1(s.OpenThreads(ctx, "gitea", testRepo.ID)); len(refs) != 1 || refs[0] != l.Thread {
			t.Errorf("open threads: %+v", refs)
		}
		if refs := must1(s.OpenThreads(ctx, "gitea", 42)); len(refs) != 0 {
			t.Errorf("open threads elsewhere: %+v", refs)
		}
		if all := must1(s.ThreadsByNumber(ctx, 3)); len(all) != 2 || all[0].Repo != testRepo || all[1].Repo.Name != "other" {
			t.Errorf("threads of number 3: %+v", all)
		}
		th := must1(s.FindThread(ctx, "gitea", testRepo.ID, 3))
		if th.ID != l.Thread.ID || string(th.State) != "s" || len(th.Events) != 1 || th.Events[0].ID != ev.ID {
			t.Errorf("found %+v", th)
		}
		if _, err := s.FindThread(ctx, "gitea", testRepo.ID, 99); !errors.Is(err, ErrNotFound) {
			t.Errorf("an unknown thread: %v", err)
		}
		must(t, s.Commit(ctx, l, Change{State: []byte("s"), Open: false}))
		if refs := must1(s.OpenThreads(ctx, "gitea", testRepo.ID)); len(refs) != 0 {
			t.Errorf("open threads after closing: %+v", refs)
		}
	})
}

func TestLoadIsBounded(t *testing.T) {
	eachDatabase(t, func(t *testing.T, s *fixture) {
		var found []Incoming
		for id := range int64(maxLoad + 30) {
			in := comment(3, 10_000-id) // the last in come first
			in.Source = SourceSweep
			found = append(found, in)
		}
		if n, err := s.AcceptFound(t.Context(), found); err != nil || n != len(found) {
			t.Fatalf("took in %d: %v", n, err)
		}
		var ids []int64
		for range 2 {
			l := mustAcquire(t, s, "w")
			var c Change
			for _, e := range mustLoad(t, s, l).Events {
				ids = append(ids, e.Object.ID)
				c.Finish = append(c.Finish, done(e.ID)...)
			}
			must(t, s.Commit(t.Context(), l, c))
			must(t, s.Release(t.Context(), l))
		}
		if len(ids) != len(found) {
			t.Fatalf("worked off %d of %d", len(ids), len(found))
		}
		for i := 1; i < len(ids); i++ {
			if ids[i] < ids[i-1] {
				t.Fatalf("out of order: %d after %d", ids[i], ids[i-1])
			}
		}
	})
}

func TestAuditIsAppendOnly(t *testing.T) {
	eachDatabase(t, func(t *testing.T, s *fixture) {
		ctx := t.Context()
		l, _ := inHand(t, s)
		rows := []AuditRow{
			{Chain: 1, Seq: 1, At: s.clock.now(), Entry: []byte(`{"a":1}`), Hash: []byte{1}},
			{Chain: 1, Seq: 2, At: s.clock.now(), Entry: []byte(`{"a":2}`), Prev: []byte{1}, Hash: []byte{2}},
		}
		must(t, s.Commit(ctx, l, Change{Audit: rows}))
		for _, thread := range []int64{0, l.Thread.ID} {
			got := must1(s.Audit(ctx, thread))
			if len(got) != 2 || got[1].Thread != l.Thread || !bytes.Equal(got[1].Prev, rows[1].Prev) ||
				!bytes.Equal(got[0].Entry, rows[0].Entry) || !got[0].At.Equal(rows[0].At) {
				t.Errorf("audit of %d: %+v", thread, got)
			}
		}
		if got := must1(s.Audit(ctx, l.Thread.ID+1)); len(got) != 0 {
			t.Errorf("audit of another thread: %+v", got)
		}
		for _, q := range []string{"DELETE FROM audit", "UPDATE audit SET entry = prev"} {
			err := s.quietly(ctx, func(tx runner) error {
				_, err := tx.exec(ctx, q)
				return err
			})
			if err == nil {
				t.Errorf("%s went through", q)
			}
		}
	})
}

func TestMeta(t *testing.T) {
	eachDatabase(t, func(t *testing.T, s *fixture) {
		ctx := t.Context()
		if v := must1(s.Meta(ctx, "watermark:41")); v != "" {
			t.Errorf("an absent value is %q", v)
		}
		must(t, s.SetMeta(ctx, "watermark:41", "a"))
		must(t, s.SetMeta(ctx, "watermark:41", "b"))
		if v := must1(s.Meta(ctx, "watermark:41")); v != "b" {
			t.Errorf("value %q", v)
		}
		if now := must1(s.Now(ctx)); !now.Equal(s.clock.now()) {
			t.Errorf("the database's clock says %v, want %v", now, s.clock.now())
		}
		must(t, s.Ping(context.Background()))
	})
}

func TestDeadEventsCanBeSentAgain(t *testing.T) {
	eachDatabase(t, func(t *testing.T, s *fixture) {
		ctx := t.Context()
		l, ev := inHand(t, s)
		must(t, s.Commit(ctx, l, Change{Finish: []EventEnd{{ID: ev.ID, Status: EventDead, Tries: 10, Note: "locked"}}}))
		must(t, s.Release(ctx, l))
		if got := s.wakesAt(t); got != -1 {
			t.Errorf("a dead event wakes its thread after %v", got)
		}
		dead := must1(s.Dead(ctx))
		if len(dead) != 1 || dead[0].Note != "locked" || dead[0].Thread != l.Thread || dead[0].Tries != 10 || dead[0].Object != ev.Object {
			t.Fatalf("dead: %+v", dead)
		}
		s.clock.advance(100 * 24 * time.Hour)
		if n := must1(s.Prune(ctx, s.clock.now())); n != 0 {
			t.Errorf("pruned %d dead events", n)
		}
		drain(s.Wakes())
		must(t, s.Resend(ctx, ev.ID))
		select {
		case <-s.Wakes():
		default:
			t.Error("nobody was woken")
		}
		for _, id := range []int64{ev.ID, ev.ID + 1} {
			if err := s.Resend(ctx, id); !errors.Is(err, ErrNotFound) {
				t.Errorf("resend of event %d, which is not dead: %v", id, err)
			}
		}
		if e := mustLoad(t, s, mustAcquire(t, s, "w")).Events; len(e) != 1 || e[0].Tries != 0 || e[0].ID != ev.ID {
			t.Errorf("waiting: %+v", e)
		}
	})
}

func drain(c <-chan struct{}) {
	select {
	case <-c:
	default:
	}
}

func TestStatsAndPrune(t *testing.T) {
	eachDatabase(t, func(t *testing.T, s *fixture) {
		ctx := t.Context()
		if st := must1(s.Stats(ctx)); st != (Stats{Now: s.clock.now()}) {
			t.Errorf("stats of an empty database: %+v", st)
		}
		var found []Incoming
		for id := range int64(pruneGroup + 40) {
			found = append(found, comment(3, 100+id))
		}
		must1(s.AcceptFound(ctx, found))
		oldest := s.clock.now()
		s.clock.advance(time.Minute)
		s.mustAccept(t, comment(4, 5000))
		l := mustAcquire(t, s, "w")
		must(t, s.Commit(ctx, l, Change{Answers: []Answer{
			{Key: "a", Body: "open"}, {Key: "dead", Body: "x", Status: AnswerDead}, {Key: "posted", Body: "y", Status: AnswerPosted, CommentID: 7},
		}}))
		if st := must1(s.Stats(ctx)); st != (Stats{Waiting: pruneGroup + 41, OpenAnswers: 1, DeadAnswers: 1, Oldest: oldest, Now: s.clock.now()}) {
			t.Errorf("stats: %+v", st)
		}
		for range 2 {
			var c Change
			for _, e := range mustLoad(t, s, l).Events {
				c.Finish = append(c.Finish, done(e.ID)...)
			}
			must(t, s.Commit(ctx, l, c))
		}
		if n := must1(s.Prune(ctx, s.clock.now())); n != 0 {
			t.Errorf("pruned %d events that finished just now", n)
		}
		s.clock.advance(time.Millisecond)
		if n := must1(s.Prune(ctx, s.clock.now())); n != pruneGroup+40 {
			t.Errorf("pruned %d events", n)
		}
		if st := must1(s.Stats(ctx)); st.Waiting != 1 {
			t.Errorf("stats: %+v", st)
		}
		must(t, s.e.read(ctx, func(r runner) error {
			all, err := readAnswers(ctx, r, "thread = ? ORDER BY key", l.Thread.ID)
			if len(all) != 3 || all[0].Body != "open" || all[1].Body != "" || all[2].Body != "" {
				t.Errorf("answers after pruning: %+v", all)
			}
			return err
		}))
	})
}
