package pgtest_test

import (
	"errors"
	"io/fs"
	"os"
	"testing"

	"github.com/jackc/pgx/v5"

	"playbook-bot/bot/store/pgtest"
)

func TestServerComesAndGoes(t *testing.T) {
	s, err := pgtest.Start(t.Context())
	if errors.Is(err, pgtest.ErrNotInstalled) && os.Getenv(pgtest.RequireEnv) != "1" {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	url, err := s.NewDatabase(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	var fsync string
	if err := conn.QueryRow(t.Context(), "SHOW fsync").Scan(&fsync); err != nil || fsync != "on" {
		t.Errorf("fsync is %q (%v)", fsync, err)
	}
	_ = conn.Close(t.Context())
	if err := s.Stop(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(s.Socket()); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the directory is still there: %v", err)
	}
	if _, err := pgx.Connect(t.Context(), url); err == nil {
		t.Error("the server still answers")
	}
}
