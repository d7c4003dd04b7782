package sqlite3

import (
	"database/sql"
	"path/filepath"
	"testing"
)

func TestTranslate(t *testing.T) {
	for name, want := range map[string]string{
		"/data/x.db": "/data/x.db",
		"file:/data/x.db?cache=shared&mode=rwc&_busy_timeout=500&_txlock=immediate": "file:/data/x.db?cache=shared&mode=rwc&_pragma=busy_timeout%28500%29&_txlock=immediate",
		"file:x.db?_journal_mode=WAL": "file:x.db?_pragma=journal_mode%28WAL%29",
	} {
		if got := translate(name); got != want {
			t.Errorf("translate(%q) = %q, want %q", name, got, want)
		}
	}
}

// TestPragmasReachSQLite shows that the translated parameters take effect, not
// only that they are spelled as expected: an unknown parameter is no error to
// the driver, it is ignored.
func TestPragmasReachSQLite(t *testing.T) {
	db, err := sql.Open("sqlite3", "file:"+filepath.Join(t.TempDir(), "x.db")+
		"?cache=shared&mode=rwc&_busy_timeout=1234&_txlock=immediate&_journal_mode=WAL")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	var timeout int
	var journal string
	if err := db.QueryRow("PRAGMA busy_timeout").Scan(&timeout); err != nil {
		t.Fatal(err)
	}
	if err := db.QueryRow("PRAGMA journal_mode").Scan(&journal); err != nil {
		t.Fatal(err)
	}
	if timeout != 1234 || journal != "wal" {
		t.Errorf("busy_timeout = %d, journal_mode = %q; want 1234 and wal", timeout, journal)
	}
}
