package store

import (
	"context"
	"errors"
	"os"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"playbook-bot/bot/store/pgtest"
)

func TestMain(m *testing.M) {
	if path := os.Getenv(serveEnv); path != "" {
		os.Exit(serveAlone(path))
	}
	os.Exit(pgtest.Main(m))
}

// postgresFixture is a fresh PostgreSQL database whose clock is a row.
func postgresFixture(t *testing.T) *fixture {
	url := pgtest.URL(t)
	conn := connect(t, url)
	c := newClock()
	set := func(at time.Time) {
		if _, err := conn.Exec(context.Background(), "UPDATE test_clock SET ms = $1", at.UnixMilli()); err != nil {
			t.Error(err)
		}
	}
	if _, err := conn.Exec(t.Context(), "CREATE TABLE test_clock (ms bigint); INSERT INTO test_clock VALUES (0)"); err != nil {
		t.Fatal(err)
	}
	set(c.at)
	c.set = set
	o := Options{postgresClock: "(SELECT ms FROM test_clock)"}
	return &fixture{ledger: mustOpen(t, url, o), clock: c, again: func(t *testing.T) *ledger { return mustOpen(t, url, o) }}
}

func connect(t testing.TB, url string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	return conn
}

// The race of Release: an Accept that holds the thread's row commits while the
// release waits for it. In one statement the wake-up is lost, which is why
// Release has two.
func TestReleaseSeesWhatCommittedMeanwhile(t *testing.T) {
	for _, tt := range []struct {
		name    string
		release func(s *fixture, l *Lease) error
		lost    bool
	}{
		{"two statements", func(s *fixture, l *Lease) error { return s.Release(context.Background(), l) }, false},
		{"one statement", func(s *fixture, l *Lease) error {
			return s.quietly(context.Background(), func(tx runner) error {
				_, err := handBackWhere(context.Background(), tx, "id = ?", l.Thread.ID)
				return err
			})
		}, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := postgresFixture(t)
			ctx := t.Context()
			l, ev := inHand(t, s)
			must(t, s.Commit(ctx, l, Change{Finish: done(ev.ID)}))
			released := make(chan error, 1)
			err := s.quietly(ctx, func(tx runner) error {
				if _, err := intake(ctx, tx, []*arrival{{in: comment(3, 13)}}); err != nil {
					return err
				}
				go func() { released <- tt.release(s, l) }()
				return waitUntilBlocked(ctx, s)
			})
			must(t, err)
			must(t, <-released)
			if lost := s.wakesAt(t) != 0; lost != tt.lost {
				t.Errorf("wake-up lost: %v, want %v", lost, tt.lost)
			}
		})
	}
}

// waitUntilBlocked returns when some statement waits for another's row lock.
func waitUntilBlocked(ctx context.Context, s *fixture) error {
	for blocked := false; !blocked; {
		err := s.e.read(ctx, func(r runner) error {
			return r.one(ctx, `SELECT EXISTS (SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database())`, nil, &blocked)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func awaitWake(t *testing.T, s *ledger, what string) {
	t.Helper()
	select {
	case <-s.Wakes():
	case <-time.After(10 * time.Second):
		t.Fatal("not woken by " + what)
	}
}

func TestReplicasWakeEachOther(t *testing.T) {
	s := postgresFixture(t)
	ctx := t.Context()
	other := s.again(t)
	awaitWake(t, other, "listening for the first time")
	s.mustAccept(t, comment(3, 12))
	awaitWake(t, other, "an accept elsewhere")
	l := mustAcquire(t, s, "w")
	must(t, s.Release(ctx, l))
	awaitWake(t, other, "a release elsewhere")

	// Cut off, it listens again, and looks what it missed.
	conn := s.e.(*postgresDB).db
	var cut int
	err := conn.QueryRowContext(ctx, `SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
		WHERE query = 'LISTEN `+pgChannel+`' AND datname = current_database()`).Scan(&cut)
	if err != nil || cut < 2 {
		t.Fatalf("cut off %d listeners: %v", cut, err)
	}
	awaitWake(t, other, "listening again")
	drain(s.Wakes())
	if _, err := other.AcceptFound(ctx, []Incoming{comment(3, 14)}); err != nil {
		t.Fatal(err)
	}
	awaitWake(t, s.ledger, "an accept by the one cut off")
	s.mustAccept(t, comment(3, 15))
	awaitWake(t, other, "an accept after listening again")
}

// A database that went away is an error, not a hang, and its return is
// enough.
func TestConnectionsComeBack(t *testing.T) {
	s := postgresFixture(t)
	s.mustAccept(t, comment(3, 12))
	_, err := s.e.(*postgresDB).db.ExecContext(t.Context(), `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
		WHERE pid <> pg_backend_pid() AND application_name = 'playbook-bot' AND datname = current_database()`)
	must(t, err)
	for range 20 { // each broken connection may cost one error
		if _, err = s.Accept(t.Context(), comment(3, 13)); err == nil {
			break
		}
	}
	must(t, err)
	if st := must1(s.Stats(t.Context())); st.Waiting != 2 {
		t.Errorf("%d events wait", st.Waiting)
	}
}

// A replica that is frozen in the middle of a transaction must not keep its
// thread locked.
func TestSilentTransactionsEnd(t *testing.T) {
	s := postgresFixture(t)
	for name, want := range map[string]string{"idle_in_transaction_session_timeout": "5s", "application_name": "playbook-bot"} {
		var got string
		if err := s.e.(*postgresDB).db.QueryRowContext(t.Context(), "SHOW "+name).Scan(&got); err != nil || got != want {
			t.Errorf("%s is %q (%v), want %s", name, got, err, want)
		}
	}
	c, err := postgresConfig("postgres://h/db?idle_in_transaction_session_timeout=7&pool_max_conns=3&connect_timeout=9")
	if err != nil || c.ConnConfig.RuntimeParams["idle_in_transaction_session_timeout"] != "7" || c.MaxConns != 3 ||
		c.ConnConfig.ConnectTimeout != 9*time.Second {
		t.Errorf("the URL's own settings are lost: %v", err)
	}
}

// A statement whose answer never comes is given up.
func TestStatementsAreBounded(t *testing.T) {
	s := postgresFixture(t)
	r := runner{d: s.d(), q: s.e.(*postgresDB).db, limit: 20 * time.Millisecond}
	if _, err := r.exec(t.Context(), "SELECT pg_sleep(60)"); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("exec: %v", err)
	}
	var x any
	if err := r.one(t.Context(), "SELECT pg_sleep(60)", nil, &x); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("query: %v", err)
	}
}
