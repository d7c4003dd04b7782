package store

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"playbook-bot/bot/store/pgtest"
)

func TestSQLitePath(t *testing.T) {
	tests := []struct {
		url, path string
		memory    bool
		bad       bool
	}{
		{url: "data/bot.db", path: "data/bot.db"},
		{url: `C:\bot\bot.db`, path: `C:\bot\bot.db`},
		{url: "sqlite:data/bot.db", path: "data/bot.db"},
		{url: "sqlite:///var/lib/bot.db", path: "/var/lib/bot.db"},
		{url: "sqlite:/var/lib/bot.db", path: "/var/lib/bot.db"},
		{url: "file:bot.db", path: "bot.db"},
		{url: "file:///var/lib/my%20bot.db", path: "/var/lib/my bot.db"},
		{url: ":memory:", memory: true},
		{url: "sqlite::memory:", memory: true},
		{url: "file:x?mode=memory", memory: true},
		{url: "", bad: true},
		{url: "sqlite:", bad: true},
		{url: "mysql://root:hunter2@host/db", bad: true},
		{url: "bot.db?_pragma=synchronous(off)", bad: true},
		{url: "file:bot.db?_pragma=synchronous(off)", bad: true},
		{url: "file:%zz-hunter2", bad: true},
	}
	for _, tt := range tests {
		path, memory, err := sqlitePath(tt.url)
		if path != tt.path || memory != tt.memory || (err != nil) != tt.bad {
			t.Errorf("%q: path %q, memory %v, error %v", tt.url, path, memory, err)
		}
		if err != nil && strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%q: the error shows it: %v", tt.url, err)
		}
	}
}

// Nothing of a password may be in an error or a log line, however the URL is
// spoiled.
func TestPasswordsStayOut(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	for _, url := range []string{
		"postgres://bot:hunter2@127.0.0.1:1/db",
		"postgres://bot:hunter2@127.0.0.1:1/db?sslmode=nonsense",
		"postgres://bot:hunter2@127.0.0.1:1/db?pool_max_conns=hunter2",
		"postgres://bot:%zzhunter2@127.0.0.1:1/db",
		"postgres://bot:4242/hunter2@127.0.0.1:1/db",
		"postgres://bot:hunter2@127.0.0.1:port/db",
		"postgresql://127.0.0.1:1/db?password=hunter2&sslmode=nonsense",
		"postgresql://127.0.0.1:1/db?password=hunter2",
	} {
		_, err := Open(ctx, url, Options{})
		if err == nil {
			t.Fatal("connected to nothing")
		}
		_, _, migrateErr := Migrate(ctx, url)
		for _, text := range []string{err.Error(), migrateErr.Error(), Describe(url)} {
			if strings.Contains(text, "hunter2") || strings.Contains(text, "4242") {
				t.Errorf("%s: the password is in %q", url, text)
			}
		}
	}
}

func TestDescribe(t *testing.T) {
	for url, want := range map[string]string{
		"postgres://bot:hunter2@db.example:5432/playbook?sslmode=require": "PostgreSQL db.example:5432/playbook",
		"sqlite:data/bot.db": "SQLite data/bot.db",
		":memory:":           "SQLite in memory",
		"mysql://x":          "unknown database",
	} {
		if got := Describe(url); got != want {
			t.Errorf("%s is described as %q, want %q", url, got, want)
		}
	}
}

func TestSQLiteServesOneProcess(t *testing.T) {
	path := filepath.Join(t.TempDir(), "new", "bot.db")
	first := mustOpen(t, path, Options{})
	if _, err := Open(t.Context(), path, Options{}); !errors.Is(err, ErrLocked) {
		t.Fatalf("a second server: %v", err)
	}
	if _, _, err := Migrate(t.Context(), path); !errors.Is(err, ErrLocked) {
		t.Errorf("migrating below a server: %v", err)
	}
	if taken, err := first.Accept(t.Context(), comment(3, 12)); err != nil || !taken {
		t.Errorf("the refused server broke the first: %v", err)
	}
	if info, err := os.Stat(path); err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != 0o600 {
		t.Errorf("the file is %v (%v)", info.Mode(), err)
	}
	must(t, first.Close())
	mustOpen(t, path, Options{})
}

// serveEnv makes the test binary serve the database of that path.
const serveEnv = "STORE_TEST_SERVE"

// serveAlone says that it serves, and then does until it is killed.
func serveAlone(path string) int {
	if _, err := Open(context.Background(), path, Options{}); err != nil {
		fmt.Println(err)
		return 1
	}
	fmt.Println("serving")
	select {}
}

// The lock holds between processes, and ends with a process however it dies.
func TestLockEndsWithItsProcess(t *testing.T) {
	path := filepath.Join(t.TempDir(), "bot.db")
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), serveEnv+"="+path)
	out, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	line, err := bufio.NewReader(out).ReadString('\n')
	if line != "serving\n" {
		t.Errorf("the other process says %q (%v)", line, err)
	}
	if _, err := Open(t.Context(), path, Options{}); !errors.Is(err, ErrLocked) {
		t.Errorf("beside another process: %v", err)
	}
	must(t, cmd.Process.Kill())
	_ = cmd.Wait() // killed, and says so
	mustOpen(t, path, Options{})
}

// The offline commands work beside a server and leave its leases alone.
func TestOfflineBesideAServer(t *testing.T) {
	s := sqliteFixture(t)
	path := s.e.(*sqliteDB).path
	l, ev := inHand(t, s)
	must(t, s.Commit(t.Context(), l, Change{Finish: []EventEnd{{ID: ev.ID, Status: EventDead}}}))
	off := mustOpen(t, path, Options{Offline: true})
	if dead := must1(off.Dead(t.Context())); len(dead) != 1 {
		t.Errorf("dead: %+v", dead)
	}
	must(t, off.Resend(t.Context(), ev.ID))
	if err := off.Close(); err != nil {
		t.Error(err)
	}
	if ev := mustLoad(t, s, l).Events; len(ev) != 1 {
		t.Errorf("waiting: %+v", ev)
	}
	_, err := Open(t.Context(), path+".none", Options{Offline: true})
	if !errors.Is(err, ErrNotFound) {
		t.Errorf("no such file: %v", err)
	}
	if _, err := os.Stat(path + ".none"); !errors.Is(err, fs.ErrNotExist) {
		t.Error("an offline command made a database")
	}
}

func TestOfflineRefusesAnUnmigratedDatabase(t *testing.T) {
	path := filepath.Join(t.TempDir(), "bot.db")
	must(t, os.WriteFile(path, nil, 0o600))
	if _, err := Open(t.Context(), path, Options{Offline: true}); !errors.Is(err, errNoSchema) {
		t.Errorf("opened offline: %v", err)
	}
}

func TestInMemory(t *testing.T) {
	l := mustOpen(t, "sqlite::memory:", Options{})
	s := &fixture{ledger: l}
	s.mustAccept(t, comment(3, 12))
	le := mustAcquire(t, s, "w")
	if th := mustLoad(t, s, le); len(th.Events) != 1 {
		t.Errorf("loaded %+v", th)
	}
	other := mustOpen(t, "sqlite::memory:", Options{})
	if st := must1(other.Stats(t.Context())); st.Waiting != 0 {
		t.Error("two databases in memory are one")
	}
}

// databaseURLs are fresh databases of both kinds, by name.
func databaseURLs(t *testing.T, f func(t *testing.T, url string)) {
	t.Run("sqlite", func(t *testing.T) { f(t, filepath.Join(t.TempDir(), "bot.db")) })
	t.Run("postgres", func(t *testing.T) { f(t, pgtest.URL(t)) })
}

func TestMigrate(t *testing.T) {
	databaseURLs(t, func(t *testing.T, url string) {
		from, to, err := Migrate(t.Context(), url)
		if err != nil || from != 0 || to < 1 {
			t.Fatalf("migrated from %d to %d: %v", from, to, err)
		}
		if from, again, err := Migrate(t.Context(), url); err != nil || from != to || again != to {
			t.Errorf("migrated again, from %d to %d: %v", from, again, err)
		}
		mustOpen(t, url, Options{})
	})
}

func TestOlderBinaryRefusesNewerSchema(t *testing.T) {
	databaseURLs(t, func(t *testing.T, url string) {
		l := mustOpen(t, url, Options{})
		must(t, l.quietly(t.Context(), func(tx runner) error {
			_, err := tx.exec(t.Context(), "INSERT INTO "+versionTable+" (version_id, is_applied) VALUES (?, ?)", 97, true)
			return err
		}))
		must(t, l.Close())
		knows := fmt.Sprint("up to ", sqliteMigrator(nil).newest())
		for name, o := range map[string]Options{"serving": {}, "offline": {Offline: true}} {
			_, err := Open(t.Context(), url, o)
			if !errors.Is(err, ErrNewerSchema) || !strings.Contains(err.Error(), "97") || !strings.Contains(err.Error(), knows) {
				t.Errorf("%s: %v", name, err)
			}
		}
		if _, _, err := Migrate(t.Context(), url); !errors.Is(err, ErrNewerSchema) {
			t.Errorf("migrating: %v", err)
		}
	})
}

func TestReplicasStartTogether(t *testing.T) {
	url := pgtest.URL(t)
	errs := make(chan error, 5)
	for range cap(errs) {
		go func() {
			l, err := Open(context.Background(), url, Options{})
			if err == nil {
				err = l.Close()
			}
			errs <- err
		}()
	}
	for range cap(errs) {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
}

// One set of queries needs one set of columns, and CopyTo knows them all.
func TestBothSchemasHaveTheSameColumns(t *testing.T) {
	createTable := regexp.MustCompile(`(?s)CREATE TABLE (\w+) \((.*?)\n\)`)
	index := regexp.MustCompile(`(?m)^CREATE INDEX .*$`)
	read := func(dir string) (map[string][]string, []string) {
		files, err := fs.Glob(migrations, "migrations/"+dir+"/*.sql")
		must(t, err)
		cols := map[string][]string{}
		var indexes []string
		for _, f := range files {
			text, err := fs.ReadFile(migrations, f)
			must(t, err)
			for _, m := range createTable.FindAllStringSubmatch(string(text), -1) {
				for line := range strings.Lines(m[2]) {
					word, _, _ := strings.Cut(strings.TrimSpace(line), " ")
					if word != "" && word != "--" && word == strings.ToLower(word) && !strings.HasPrefix(strings.TrimSpace(line), "ones") {
						cols[m[1]] = append(cols[m[1]], word)
					}
				}
			}
			indexes = append(indexes, index.FindAllString(string(text), -1)...)
		}
		return cols, indexes
	}
	lite, liteIndexes := read("sqlite")
	pg, pgIndexes := read("postgres")
	if !slices.Equal(liteIndexes, pgIndexes) {
		t.Errorf("indexes differ:\n%q\n%q", liteIndexes, pgIndexes)
	}
	if len(lite) != len(tables) || len(pg) != len(tables) {
		t.Errorf("%d and %d tables, of which %d are copied", len(lite), len(pg), len(tables))
	}
	for _, tab := range tables {
		var copied []string
		for _, c := range tab.columns {
			copied = append(copied, c.name)
		}
		if !slices.Equal(lite[tab.name], copied) || !slices.Equal(pg[tab.name], copied) {
			t.Errorf("%s: copied %q\nsqlite %q\npostgres %q", tab.name, copied, lite[tab.name], pg[tab.name])
		}
	}
}

func TestTranslate(t *testing.T) {
	now := func() time.Time { return time.UnixMilli(77) }
	lite := &dialect{now: now}
	pg := &dialect{numbered: true, clock: "clock()", lock: "FOR UPDATE", skip: "FOR UPDATE SKIP LOCKED"}
	const q = "SELECT ? WHERE a < {now} AND b = ? {lock}"
	if got := lite.text(q); got.sql != "SELECT ? WHERE a < ? AND b = ? " {
		t.Errorf("SQLite: %s", got.sql)
	}
	if got := lite.bind(lite.text(q), []any{"x", "y"}); !slices.Equal(got, []any{"x", int64(77), "y"}) {
		t.Errorf("SQLite's arguments: %v", got)
	}
	if got := pg.text(q); got.sql != "SELECT $1 WHERE a < clock() AND b = $2 FOR UPDATE" {
		t.Errorf("PostgreSQL: %s", got.sql)
	}
	if got := pg.bind(pg.text(q), []any{"x", "y"}); !slices.Equal(got, []any{"x", "y"}) {
		t.Errorf("PostgreSQL's arguments: %v", got)
	}
}
