package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"
)

const (
	// busyTimeout is how long a statement waits for another process (an
	// offline command) to end its write.
	busyTimeout = 5 * time.Second
	// sqliteReaders is how many connections read beside the writer.
	sqliteReaders = 4
)

// sqliteDB is a SQLite file served by this process: one connection that
// writes, some that read, and the lock that keeps other servers out.
type sqliteDB struct {
	d    *dialect
	path string // empty: in memory
	// turn holds one token; whoever has it may use conn.
	turn    chan struct{}
	closed  chan struct{}
	writeDB *sql.DB
	conn    *sql.Conn
	// stmts are prepared on conn. SQLite spends as long on reading a small
	// statement as on running it.
	stmts  map[string]*sql.Stmt
	readDB *sql.DB
	lock   *sqliteLock
}

// sqlitePath takes a database URL apart: sqlite:PATH, file:URI or a bare path.
// memory is true for a database that lives and dies with the process.
func sqlitePath(databaseURL string) (path string, memory bool, err error) {
	rest, isSQLite := strings.CutPrefix(databaseURL, "sqlite:")
	switch {
	case isSQLite:
		path = strings.TrimPrefix(rest, "//")
	case strings.HasPrefix(databaseURL, "file:"):
		u, err := url.Parse(databaseURL)
		if err != nil {
			return "", false, errors.New("the database URL is not a valid file: URI")
		}
		if u.Query().Get("mode") == "memory" {
			return "", true, nil
		}
		if u.RawQuery != "" {
			return "", false, errors.New("a file: database URL takes no parameters here")
		}
		if path = u.Path; path == "" {
			if path, err = url.PathUnescape(u.Opaque); err != nil {
				return "", false, errors.New("the database URL is not a valid file: URI")
			}
		}
	case strings.Contains(databaseURL, "://"):
		return "", false, errors.New("the database URL must begin with sqlite:, file: or postgres://, or be the path of a SQLite file")
	default:
		path = databaseURL
	}
	if path == ":memory:" {
		return "", true, nil
	}
	if strings.TrimSpace(path) == "" {
		return "", false, errors.New("the database URL names no file")
	}
	if strings.Contains(path, "?") {
		return "", false, errors.New("the path of a SQLite database must not contain a question mark")
	}
	return path, false, nil
}

// openSQLite opens the file for writing; with serve it takes the lock first
// and makes what is missing of the path.
func openSQLite(ctx context.Context, path string, memory, serve bool, d *dialect) (_ *sqliteDB, err error) {
	// The same durability for half the cost on journaling file systems; where
	// the platform has no fdatasync the setting stays off.
	_, _ = sqlite.Fdatasync(true)

	s := &sqliteDB{d: d, path: path, turn: make(chan struct{}, 1), closed: make(chan struct{}), stmts: map[string]*sql.Stmt{}}
	defer func() {
		if err != nil {
			_ = s.close()
		}
	}()
	name := ":memory:"
	if !memory {
		name = path
		if err := prepareFile(path, serve); err != nil {
			return nil, err
		}
		if serve {
			if s.lock, err = lockSQLite(ctx, path); err != nil {
				return nil, err
			}
		}
	}
	params := url.Values{
		"_busy_timeout": {fmt.Sprint(busyTimeout.Milliseconds())},
		"_journal_mode": {"WAL"},
		"_synchronous":  {"FULL"},
		"_foreign_keys": {"ON"},
		"_dqs":          {"0"},
		"_defensive":    {"1"},
		// After a burst the log shrinks to this again; and 16 MB of pages, so that
		// the upper parts of the indexes stay at hand however long the history is.
		"_pragma": {"journal_size_limit(67108864)", "cache_size(-16384)"},
	}
	if s.writeDB, err = sql.Open("sqlite", name+"?"+params.Encode()); err != nil {
		return nil, fmt.Errorf("open the SQLite database: %w", err)
	}
	s.writeDB.SetMaxOpenConns(1)
	if err = s.writeDB.PingContext(ctx); err != nil {
		return nil, fmt.Errorf("open the SQLite database: %w", err)
	}
	if memory {
		return s, nil
	}
	params.Set("_query_only", "1")
	params.Del("_journal_mode") // the writer has set it, for good
	if s.readDB, err = sql.Open("sqlite", name+"?"+params.Encode()); err != nil {
		return nil, fmt.Errorf("open the SQLite database for reading: %w", err)
	}
	s.readDB.SetMaxOpenConns(sqliteReaders)
	s.readDB.SetMaxIdleConns(sqliteReaders)
	return s, nil
}

// pin takes the writing connection out of its pool, for good. Migrations, which
// want the pool, come before.
func (s *sqliteDB) pin(ctx context.Context) (err error) {
	if s.conn, err = s.writeDB.Conn(ctx); err != nil {
		return fmt.Errorf("open the SQLite database: %w", err)
	}
	s.turn <- struct{}{}
	return nil
}

// prepareFile makes sure that the file is there and, if it is new, that only
// its owner may read it.
func prepareFile(path string, create bool) error {
	if !create {
		if _, err := os.Stat(path); err != nil {
			if errors.Is(err, fs.ErrNotExist) {
				return fmt.Errorf("the database %s: %w", path, ErrNotFound)
			}
			return fmt.Errorf("find the database: %w", err)
		}
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
		return fmt.Errorf("make the database's directory: %w", err)
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return fmt.Errorf("open the database: %w", err)
	}
	return f.Close()
}

// inTx pins every writing transaction to the one writing connection. The
// statements run outside sql.Tx so that they stay prepared between
// transactions, and are not interrupted half-way: an interrupted write ends
// the whole transaction behind our back. The context is looked at between
// them; each takes microseconds, or busyTimeout at worst.
func (s *sqliteDB) inTx(ctx context.Context, f func(runner) error) (err error) {
	if err := s.take(ctx); err != nil {
		return err
	}
	defer s.give()
	if _, err := s.ExecContext(ctx, "BEGIN IMMEDIATE"); err != nil {
		return fmt.Errorf("begin a transaction: %w", err)
	}
	committed := false
	defer func() {
		if !committed { // an error, or a panic in f
			_, rerr := s.ExecContext(context.WithoutCancel(ctx), "ROLLBACK")
			if rerr != nil {
				err = errors.Join(err, fmt.Errorf("roll back: %w", rerr))
			}
		}
	}()
	if err := f(runner{d: s.d, q: s}); err != nil {
		return err
	}
	if _, err := s.ExecContext(ctx, "COMMIT"); err != nil {
		return fmt.Errorf("commit: %w", err)
	}
	committed = true
	return nil
}

// longTx is inTx: there is no other server to lose.
func (s *sqliteDB) longTx(ctx context.Context, f func(runner) error) error { return s.inTx(ctx, f) }

func (s *sqliteDB) take(ctx context.Context) error {
	select {
	case <-s.turn:
		return nil
	case <-s.closed:
		return ErrClosed
	case <-ctx.Done():
		return fmt.Errorf("wait for the database's writer: %w", ctx.Err())
	}
}

func (s *sqliteDB) give() { s.turn <- struct{}{} }

// ExecContext runs a prepared statement on the writing connection.
func (s *sqliteDB) ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error) {
	st, err := s.stmt(ctx, query)
	if err != nil {
		return nil, err
	}
	return st.ExecContext(context.WithoutCancel(ctx), args...)
}

// QueryContext runs a prepared statement on the writing connection.
func (s *sqliteDB) QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
	st, err := s.stmt(ctx, query)
	if err != nil {
		return nil, err
	}
	return st.QueryContext(context.WithoutCancel(ctx), args...)
}

func (s *sqliteDB) stmt(ctx context.Context, query string) (*sql.Stmt, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if st := s.stmts[query]; st != nil {
		return st, nil
	}
	st, err := s.conn.PrepareContext(context.WithoutCancel(ctx), query)
	if err != nil {
		return nil, err
	}
	s.stmts[query] = st
	return st, nil
}

func (s *sqliteDB) read(ctx context.Context, f func(runner) error) error {
	if s.readDB != nil {
		return f(runner{d: s.d, q: s.readDB})
	}
	if err := s.take(ctx); err != nil {
		return err
	}
	defer s.give()
	return f(runner{d: s.d, q: s})
}

func (s *sqliteDB) snapshot(ctx context.Context, f func(runner) error) error {
	if s.readDB == nil {
		return s.read(ctx, f)
	}
	return inSQLTx(ctx, s.readDB, &sql.TxOptions{ReadOnly: true}, runner{d: s.d}, f)
}

// continueIDs has nothing to do: AUTOINCREMENT has seen the ids.
func (s *sqliteDB) continueIDs(context.Context, runner, string, string) error { return nil }

func (s *sqliteDB) accepts() int { return 1 }

// announce has nobody to tell: SQLite serves one process.
func (s *sqliteDB) announce(context.Context, runner) error { return nil }

func (s *sqliteDB) close() error {
	if s.conn != nil {
		select {
		case <-s.turn: // for good: whoever comes now finds it closed
			close(s.closed)
		case <-s.closed:
			return nil
		}
	}
	var errs []error
	if s.readDB != nil {
		errs = append(errs, s.readDB.Close())
	}
	for _, st := range s.stmts {
		errs = append(errs, st.Close())
	}
	if s.conn != nil {
		errs = append(errs, s.conn.Close())
	}
	if s.writeDB != nil {
		errs = append(errs, s.writeDB.Close())
	}
	if s.lock != nil {
		errs = append(errs, s.lock.release())
	}
	return errors.Join(errs...)
}

// sqliteLock is a SQLite database beside the real one, exclusively locked for
// as long as the process serves. SQLite's own locking is the one lock that
// works alike on all platforms we build for, ends with the process however it
// dies, and needs no file removed.
type sqliteLock struct {
	db   *sql.DB
	conn *sql.Conn
}

func lockSQLite(ctx context.Context, path string) (_ *sqliteLock, err error) {
	l := &sqliteLock{}
	defer func() {
		if err != nil {
			_ = l.release()
		}
	}()
	if l.db, err = sql.Open("sqlite", path+".lock?_busy_timeout=0&_journal_mode=DELETE"); err != nil {
		return nil, fmt.Errorf("open the lock file: %w", err)
	}
	if l.conn, err = l.db.Conn(ctx); err != nil {
		return nil, lockError(path, err)
	}
	if _, err = l.conn.ExecContext(ctx, "BEGIN EXCLUSIVE"); err != nil {
		return nil, lockError(path, err)
	}
	return l, nil
}

func lockError(path string, err error) error {
	var e *sqlite.Error
	if errors.As(err, &e) && (e.Code()&0xff == sqlite3.SQLITE_BUSY || e.Code()&0xff == sqlite3.SQLITE_LOCKED) {
		return fmt.Errorf("%s: %w", path, ErrLocked)
	}
	return fmt.Errorf("take the lock of %s: %w", path, err)
}

func (l *sqliteLock) release() error {
	var errs []error
	if l.conn != nil {
		errs = append(errs, l.conn.Close())
	}
	if l.db != nil {
		errs = append(errs, l.db.Close())
	}
	return errors.Join(errs...)
}
