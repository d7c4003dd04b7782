package store

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"log/slog"
	"net/url"
	"strings"
	"time"
)

// Options are how a database is opened.
type Options struct {
	// Now is SQLite's clock; time.Now where nil. PostgreSQL has its own.
	Now func() time.Time
	// Logger is told of lost connections; silent where nil.
	Logger *slog.Logger
	// Offline opens the database beside a bot that may be serving it: no lock
	// is taken, nothing is migrated and no lease cleared, and the database
	// must exist. Reading and Resend are what it is for.
	Offline bool

	// postgresClock replaces PostgreSQL's clock by an SQL expression, so that
	// tests can move it.
	postgresClock string
}

// Open opens the database of a URL: postgres://… for PostgreSQL; sqlite:PATH,
// file:PATH or a path for SQLite; sqlite::memory: for a SQLite database that
// ends with the process. A missing SQLite file is made, the schema is brought
// up to date. Errors: ErrLocked, ErrNewerSchema, ErrNotFound (offline only).
// No error contains the URL.
func Open(ctx context.Context, databaseURL string, o Options) (Store, error) {
	return open(ctx, databaseURL, o)
}

func open(ctx context.Context, databaseURL string, o Options) (*ledger, error) {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if isPostgres(databaseURL) {
		return openLedgerPostgres(ctx, databaseURL, o)
	}
	return openLedgerSQLite(ctx, databaseURL, o)
}

// Migrate brings the schema up to date without serving and returns the
// versions before and after. On SQLite it needs the lock that a serving
// process holds (ErrLocked).
func Migrate(ctx context.Context, databaseURL string) (from, to int64, err error) {
	if isPostgres(databaseURL) {
		p, err := openPostgres(ctx, databaseURL, &dialect{})
		if err != nil {
			return 0, 0, err
		}
		defer func() { _ = p.close() }()
		return postgresMigrator(p.db).up(ctx)
	}
	path, memory, err := sqlitePath(databaseURL)
	if err != nil {
		return 0, 0, err
	}
	s, err := openSQLite(ctx, path, memory, true, &dialect{})
	if err != nil {
		return 0, 0, err
	}
	defer func() { _ = s.close() }()
	return sqliteMigrator(s.writeDB).up(ctx)
}

func isPostgres(databaseURL string) bool {
	return strings.HasPrefix(databaseURL, "postgres://") || strings.HasPrefix(databaseURL, "postgresql://")
}

// Describe names a database for logs: without user, password and parameters.
func Describe(databaseURL string) string {
	if !isPostgres(databaseURL) {
		path, memory, err := sqlitePath(databaseURL)
		switch {
		case err != nil:
			return "unknown database"
		case memory:
			return "SQLite in memory"
		}
		return "SQLite " + path
	}
	u, err := url.Parse(databaseURL)
	if err != nil || strings.Contains(u.Path, "@") {
		return "PostgreSQL"
	}
	return "PostgreSQL " + u.Host + u.EscapedPath()
}

func openLedgerSQLite(ctx context.Context, databaseURL string, o Options) (*ledger, error) {
	path, memory, err := sqlitePath(databaseURL)
	if err != nil {
		return nil, err
	}
	s, err := openSQLite(ctx, path, memory, !o.Offline, &dialect{now: o.Now})
	if err != nil {
		return nil, err
	}
	l, err := startSQLite(ctx, s, o)
	if err != nil {
		_ = s.close()
		return nil, err
	}
	return l, nil
}

func startSQLite(ctx context.Context, s *sqliteDB, o Options) (*ledger, error) {
	if err := ready(ctx, sqliteMigrator(s.writeDB), o); err != nil {
		return nil, err
	}
	if err := s.pin(ctx); err != nil {
		return nil, err
	}
	l := newLedger(s, o)
	if !o.Offline {
		// Whoever held them is dead: we have the lock.
		if err := l.releaseWhere(ctx, "owner <> ''"); err != nil {
			return nil, fmt.Errorf("clear the leases of the last run: %w", err)
		}
	}
	l.start()
	return l, nil
}

func openLedgerPostgres(ctx context.Context, databaseURL string, o Options) (*ledger, error) {
	d := &dialect{numbered: true, clock: pgClock, lock: "FOR UPDATE", skip: "FOR UPDATE SKIP LOCKED"}
	if o.postgresClock != "" {
		d.clock = o.postgresClock
	}
	p, err := openPostgres(ctx, databaseURL, d)
	if err != nil {
		return nil, err
	}
	if err := ready(ctx, postgresMigrator(p.db), o); err != nil {
		_ = p.close()
		return nil, err
	}
	l := newLedger(p, o)
	if !o.Offline {
		if err := p.listen(ctx, l.signal, o.Logger); err != nil {
			_ = p.close()
			return nil, err
		}
	}
	l.start()
	return l, nil
}

// ready migrates, or offline makes sure that nothing needs migrating.
func ready(ctx context.Context, m migrator, o Options) error {
	if !o.Offline {
		_, _, err := m.up(ctx)
		return err
	}
	version, err := m.check(ctx)
	if err != nil {
		return err
	}
	if version < m.newest() {
		return errNoSchema
	}
	return nil
}

// newInstance is a random name for this opened database.
func newInstance() string {
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails
	return hex.EncodeToString(b[:])
}
