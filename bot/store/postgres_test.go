package store

import (
	"context"
	"os"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"playbook-bot/bot/store/pgtest"
)

func TestMain(m *testing.M) { os.Exit(pgtest.Main(m)) }

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
