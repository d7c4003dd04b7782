package store

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"

	"playbook-bot/bot/forge"
	"playbook-bot/bot/store/pgtest"
)

func TestDeadAnswersCanBeSentAgain(t *testing.T) {
	eachDatabase(t, func(t *testing.T, s *fixture) {
		ctx := t.Context()
		l, ev := inHand(t, s)
		must(t, s.Commit(ctx, l, Change{Finish: done(ev.ID), Answers: []Answer{
			{Key: "answer:comment:12", Body: "the words", Trigger: ev.Object, Account: ann.ID},
			{Key: "answer:comment:13", Body: "others"},
		}}))
		must1(s.ClaimAnswer(ctx, l, "answer:comment:12", 12, time.Second))
		must(t, s.Commit(ctx, l, Change{Settle: []Answer{{Key: "answer:comment:12", Status: AnswerDead, Note: "post: status 423", Tries: 3}}}))
		must(t, s.Release(ctx, l))

		dead := must1(s.DeadAnswers(ctx))
		if len(dead) != 1 || dead[0].Key != "answer:comment:12" || dead[0].Note != "post: status 423" || dead[0].Tries != 3 ||
			dead[0].Trigger != ev.Object || dead[0].Thread.Number != 3 || dead[0].Bodiless {
			t.Fatalf("dead answers: %+v", dead)
		}
		if st := must1(s.Stats(ctx)); st.DeadAnswers != 1 || st.OpenAnswers != 1 || !st.Now.Equal(s.clock.now()) {
			t.Errorf("stats %+v", st)
		}
		for thread, key := range map[int64]string{l.Thread.ID: "answer:comment:13", l.Thread.ID + 1: "answer:comment:12"} {
			if err := s.ResendAnswer(ctx, thread, key); !errors.Is(err, ErrNotFound) {
				t.Errorf("send %s of thread %d again: %v", key, thread, err)
			}
		}
		// A dead thread would sleep for ever: the answer must wake it.
		must(t, s.ResendAnswer(ctx, l.Thread.ID, dead[0].Key))
		if err := s.ResendAnswer(ctx, l.Thread.ID, dead[0].Key); !errors.Is(err, ErrNotFound) {
			t.Errorf("a second time: %v", err)
		}
		again := mustLoad(t, s, mustAcquire(t, s, "w"))
		for _, a := range again.Open {
			if a.Key == dead[0].Key && (a.Status != AnswerClaimed || a.Tries != 0 || a.Note != "" || a.Body != "the words" || a.After != 12) {
				t.Errorf("sent again as %+v", a)
			}
		}
		if len(again.Open) != 2 {
			t.Errorf("open: %+v", again.Open)
		}
	})
}

func TestAPrunedAnswerIsNotSentAgain(t *testing.T) {
	eachDatabase(t, func(t *testing.T, s *fixture) {
		ctx := t.Context()
		l, ev := inHand(t, s)
		must(t, s.Commit(ctx, l, Change{Finish: done(ev.ID), Answers: []Answer{{Key: "a", Body: "the words"}}}))
		must(t, s.Commit(ctx, l, Change{Settle: []Answer{{Key: "a", Status: AnswerDead}}}))
		s.clock.advance(time.Hour)
		must1(s.Prune(ctx, s.clock.now()))
		if dead := must1(s.DeadAnswers(ctx)); len(dead) != 1 || !dead[0].Bodiless {
			t.Errorf("dead answers: %+v", dead)
		}
		if err := s.ResendAnswer(ctx, l.Thread.ID, "a"); !errors.Is(err, ErrNoBody) {
			t.Errorf("sent again without a body: %v", err)
		}
	})
}

func TestLogsComeInPieces(t *testing.T) {
	eachDatabase(t, func(t *testing.T, s *fixture) {
		ctx := t.Context()
		for n := range int64(5) {
			s.mustAccept(t, comment(n+1, 100+n))
			l := mustAcquire(t, s, "w")
			ev := mustLoad(t, s, l).Events[0]
			obj := func(id int64, keep bool) Object {
				return Object{Object: forge.Object{Kind: forge.ObjectComment, ID: id}, Keep: keep, Data: []byte(`{}`)}
			}
			must(t, s.Commit(ctx, l, Change{Finish: done(ev.ID), Objects: []Object{obj(100+n, n != 2), obj(200+n, false), obj(300+n, n != 2)},
				Audit: []AuditRow{{Chain: 1, Seq: 1}}[:n%2], Answers: []Answer{{Key: "a"}}[:n/4]}))
			must(t, s.Release(ctx, l))
		}
		var got []int64
		pieces := 0
		for after := int64(0); ; pieces++ {
			logs, next, err := s.Logs(ctx, after, 2)
			must(t, err)
			for _, l := range logs {
				got = append(got, l.Number)
				if len(l.Texts) != 2 || l.Texts[0].ID != 99+l.Number || l.Texts[1].ID != 299+l.Number || string(l.Texts[0].Data) != "{}" {
					t.Errorf("thread %d: %+v", l.Number, l.Texts)
				}
			}
			if after = next; next == 0 {
				break
			}
		}
		if want := []int64{1, 2, 4, 5}; len(got) != 4 || got[0] != want[0] || got[3] != want[3] || pieces != 2 {
			t.Errorf("threads %v in %d pieces", got, pieces+1)
		}
		refs := must1(s.AuditThreads(ctx))
		if len(refs) != 3 || refs[0].Number != 2 || refs[1].Number != 4 || refs[2].Number != 5 || refs[0].Repo.FullName() != "ops/search" {
			t.Errorf("audited: %+v", refs)
		}
	})
}

func TestBackupBesideAServer(t *testing.T) {
	ctx := t.Context()
	dir := t.TempDir()
	path, file := filepath.Join(dir, "bot.db"), filepath.Join(dir, "backup.db")
	s := mustOpen(t, path, Options{})
	must1(s.Accept(ctx, comment(3, 12)))
	if _, err := Idle(ctx, path); !errors.Is(err, ErrLocked) {
		t.Errorf("a served database is idle: %v", err)
	}
	must(t, Backup(ctx, "sqlite:"+path, file))
	if info := must1(os.Stat(file)); info.Mode().Perm() != 0o600 {
		t.Errorf("the backup's mode is %v", info.Mode())
	}
	if err := Backup(ctx, path, file); !errors.Is(err, fs.ErrExist) {
		t.Errorf("over an older backup: %v", err)
	}
	if st := must1(mustOpen(t, file, Options{}).Stats(ctx)); st.Waiting != 1 {
		t.Errorf("the backup holds %+v", st)
	}
	for url, want := range map[string]error{
		filepath.Join(dir, "none.db"): ErrNotFound, "sqlite::memory:": ErrNotFound, "postgres://h/d": ErrNotSQLite,
	} {
		if err := Backup(ctx, url, filepath.Join(dir, "x.db")); !errors.Is(err, want) {
			t.Errorf("back up %s: %v", url, err)
		}
	}
}

func TestIdle(t *testing.T) {
	idle := func(t *testing.T, url string) {
		ctx := context.WithoutCancel(t.Context())
		s, err := open(ctx, url, Options{})
		must(t, err)
		must1(s.Accept(ctx, comment(3, 12)))
		l := mustAcquire(t, s, "w")
		if _, err := Idle(ctx, url); !errors.Is(err, ErrLocked) {
			t.Errorf("with a thread in hand: %v", err)
		}
		must(t, s.Release(ctx, l))
		must(t, s.Close())
		release, err := Idle(ctx, url)
		must(t, err)
		must(t, release())
	}
	t.Run("sqlite", func(t *testing.T) { idle(t, filepath.Join(t.TempDir(), "bot.db")) })
	t.Run("postgres", func(t *testing.T) { idle(t, pgtest.URL(t)) })
}

func TestRereadKeepsTheAuditLogAndWhoseWordsTheyAre(t *testing.T) {
	eachDatabase(t, func(t *testing.T, s *fixture) {
		ctx := t.Context()
		l, ev := inHand(t, s)
		s.mustAccept(t, comment(3, 13))
		must(t, s.Commit(ctx, l, Change{State: []byte("{}"), Open: true, Due: s.clock.now(), Finish: done(ev.ID), Objects: []Object{{Object: ev.Object, Keep: true}},
			Answers: []Answer{{Key: "a", Body: "b"}}, Audit: []AuditRow{{Chain: 1, Seq: 1}, {Chain: 2, Seq: 1}}}))
		must(t, s.SetMeta(ctx, "watermark:gitea:41", "then"))
		must(t, s.SetMeta(ctx, "other", "kept"))
		if n := must1(s.Reread(ctx)); n != 1 {
			t.Errorf("%d threads, want 1", n)
		}
		if err := s.Commit(ctx, l, Change{State: []byte("late")}); !errors.Is(err, ErrFenced) {
			t.Errorf("a worker from before commits: %v", err)
		}
		th := must1(s.FindThread(ctx, "gitea", testRepo.ID, 3))
		if th.State != nil || len(th.Events)+len(th.Open)+len(th.Records) > 0 || th.AuditChain != 2 {
			t.Errorf("the thread still holds %+v", th)
		}
		if st := must1(s.Stats(ctx)); st != (Stats{Now: s.clock.now()}) || len(must1(s.OpenThreads(ctx, "gitea", testRepo.ID))) > 0 {
			t.Errorf("still waiting: %+v", st)
		}
		if n := len(must1(s.Audit(ctx, th.ID))); n != 2 {
			t.Errorf("%d audit entries, want 2", n)
		}
		if !must1(s.Attested(ctx, "gitea", testRepo.ID, ev.Object, ev.BodySHA)) {
			t.Error("whose words they are was forgotten")
		}
		if must1(s.Seen(ctx, "gitea", testRepo.ID, ev.Object)) || must1(s.Meta(ctx, "watermark:gitea:41")) != "" || must1(s.Meta(ctx, "other")) != "kept" {
			t.Error("what a sweep compares with stayed, or more went")
		}
		if !s.mustAccept(t, comment(3, 12)) {
			t.Error("the text cannot come again")
		}
	})
}
