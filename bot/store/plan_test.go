package store

import (
	"database/sql"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"playbook-bot/bot/forge"
)

// everything calls every method of the store once, so that the dialect has
// seen every query there is.
func everything(t *testing.T, s *fixture) {
	ctx := t.Context()
	s.mustAccept(t, comment(3, 12))
	s.mustAccept(t, comment(3, 12))
	s.mustAccept(t, hint(3, forge.ActionClosed))
	s.mustAccept(t, hint(3, forge.ActionClosed))
	l := mustAcquire(t, s, "w")
	ev := mustLoad(t, s, l).Events
	s.mustAccept(t, comment(3, 14))
	mustLoad(t, s, l)
	must(t, s.Commit(ctx, l, Change{State: []byte("s"), Objects: []Object{{Object: ev[0].Object}}, Answers: []Answer{{Key: "a"}},
		Finish: []EventEnd{{ID: ev[0].ID, Status: EventDead}}, Audit: []AuditRow{{Chain: 1, Seq: 1}}}))
	must(t, s.Commit(ctx, l, Change{Objects: []Object{{Object: forge.Object{Kind: forge.ObjectComment, ID: 90}}}}))
	must1(s.ClaimAnswer(ctx, l, "a", 0, time.Second))
	must(t, s.Commit(ctx, l, Change{Settle: []Answer{{Key: "a", Status: AnswerPosted, CommentID: 5}}}))
	must(t, s.Heartbeat(ctx, "w", time.Second))
	must(t, s.Release(ctx, l))
	must(t, s.ReleaseAll(ctx, "w"))
	must(t, s.Resend(ctx, ev[0].ID))
	must1(s.Prune(ctx, s.clock.now()))
	must1(s.NextWake(ctx))
	must1(s.Object(ctx, 1, ev[0].Object))
	must1(s.Objects(ctx, 1))
	must1(s.Attested(ctx, "gitea", 1, ev[0].Object, [32]byte{}))
	must1(s.AnswerByComment(ctx, l.Thread.ID, 5))
	_, _, err := s.Posted(ctx, 1, 1, s.clock.now())
	must(t, err)
	must1(s.OpenThreads(ctx, "gitea", 1))
	must1(s.FindThread(ctx, "gitea", testRepo.ID, 3))
	must1(s.ThreadsByNumber(ctx, 3))
	must1(s.KnownObjects(ctx, "gitea", 1, []forge.Object{ev[0].Object}))
	must1(s.Dead(ctx))
	must1(s.Stats(ctx))
	must1(s.DeadAnswers(ctx))
	if err := s.ResendAnswer(ctx, l.Thread.ID, "a"); !errors.Is(err, ErrNotFound) {
		t.Error(err)
	}
	must(t, s.Commit(ctx, mustAcquire(t, s, "w"), Change{Answers: []Answer{{Key: "dead", Body: "b", Status: AnswerPending}}, Settle: []Answer{{Key: "dead", Status: AnswerDead}}}))
	must(t, s.ResendAnswer(ctx, l.Thread.ID, "dead"))
	must1(s.AuditThreads(ctx))
	_, _, err = s.Logs(ctx, 0, 10)
	must(t, err)
	must1(s.Seen(ctx, "gitea", 1, ev[0].Object))
	f, _, err := s.ClaimFiling(ctx, filing("k", "q"))
	must(t, err)
	f, _, err = s.ReclaimFiling(ctx, f, time.Second)
	must(t, err)
	must(t, s.VoidFiling(ctx, "k"))
	f.Number, f.Object = 1, 1
	must1(s.SettleFiling(ctx, f))
	f.Key, f.Object = "lost", 2
	must1(s.SettleFiling(ctx, f))
}

// No query may cost more the more history there is: each finds its rows by an
// index. A partial index read whole is one, too: it holds what waits.
func TestQueriesUseIndexes(t *testing.T) {
	t.Run("sqlite", queriesUseIndexesOnSQLite)
	t.Run("postgres", queriesUseIndexesOnPostgres)
}

// whole are small tables, which are read whole for good reason.
var whole = regexp.MustCompile(`\b(repos|meta|test_clock)\b`)

func queriesUseIndexesOnSQLite(t *testing.T) {
	s := sqliteFixture(t)
	everything(t, s)
	scan := regexp.MustCompile(`^SCAN (\w+)( USING .*INDEX .*)?$`)
	queries := 0
	for _, q := range translated(s) {
		queries++
		nulls := make([]any, strings.Count(q, "?"))
		must(t, s.e.read(t.Context(), func(r runner) error {
			return r.each(t.Context(), func(rows *sql.Rows) error {
				var id, parent, unused int
				var line string
				if err := rows.Scan(&id, &parent, &unused, &line); err != nil {
					return err
				}
				m := scan.FindStringSubmatch(line)
				if m != nil && strings.HasPrefix(q, "INSERT INTO threads") && m[1] == "events" {
					return nil // for a foreign key found broken earlier in the transaction, so never
				}
				if m != nil && m[2] == "" && !whole.MatchString(q) && !constant[m[1]] {
					t.Errorf("%s\nin\n%s", line, q)
				}
				return nil
			}, "EXPLAIN QUERY PLAN "+q, nulls...)
		}))
	}
	if queries < 40 {
		t.Errorf("only %d queries were looked at", queries)
	}
}

func queriesUseIndexesOnPostgres(t *testing.T) {
	s := postgresFixture(t)
	everything(t, s)
	conn, err := s.e.(*postgresDB).db.Conn(t.Context())
	must(t, err)
	defer conn.Close()
	exec := func(q string) { t.Helper(); must(t, second(conn.ExecContext(t.Context(), q))) }
	exec("SET enable_seqscan = off")
	exec("SET plan_cache_mode = force_generic_plan")
	seq := regexp.MustCompile(`Seq Scan on (\w+)`)
	n := 0
	for _, q := range translated(s) {
		n++
		exec(fmt.Sprintf("PREPARE q%d AS %s", n, q))
		nulls := strings.TrimSuffix(strings.Repeat("NULL,", strings.Count(q, "$")), ",")
		if nulls != "" {
			nulls = "(" + nulls + ")"
		}
		rows, err := conn.QueryContext(t.Context(), fmt.Sprintf("EXPLAIN EXECUTE q%d%s", n, nulls))
		must(t, err)
		for rows.Next() {
			var line string
			must(t, rows.Scan(&line))
			if m := seq.FindStringSubmatch(line); m != nil && !whole.MatchString(m[1]) {
				t.Errorf("%s\nin\n%s", line, q)
			}
		}
		must(t, rows.Err())
	}
}

// constant are what SQLite scans that is no table.
var constant = map[string]bool{"CONSTANT": true, "v": true, "w": true}

// translated are the queries that the fixture's dialect has seen so far.
func translated(s *fixture) (queries []string) {
	s.d().texts.Range(func(_, v any) bool {
		queries = append(queries, v.(*text).sql)
		return true
	})
	return queries
}
