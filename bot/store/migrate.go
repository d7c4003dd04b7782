package store

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"

	"github.com/pressly/goose/v3"
)

//go:embed migrations
var migrations embed.FS

const (
	// versionTable holds the schema's version, by goose.
	versionTable = "schema_version"
	// migrationLock is the key of the advisory lock under which PostgreSQL is
	// migrated: "playbook" in ASCII.
	migrationLock = 0x706c6179626f6f6b
)

// migrator moves one database to the newest schema this binary knows.
type migrator struct {
	db      *sql.DB
	dialect goose.Dialect
	// dir is the directory of the migrations.
	dir string
	// tables asks whether the version table exists.
	tables string
}

func sqliteMigrator(db *sql.DB) migrator {
	return migrator{db, goose.DialectSQLite3, "migrations/sqlite",
		"SELECT count(*) FROM sqlite_master WHERE type = 'table' AND name = '" + versionTable + "'"}
}

func postgresMigrator(db *sql.DB) migrator {
	return migrator{db, goose.DialectPostgres, "migrations/postgres",
		"SELECT count(*) FROM pg_tables WHERE schemaname = current_schema() AND tablename = '" + versionTable + "'"}
}

// up migrates and returns the versions before and after.
func (m migrator) up(ctx context.Context) (from, to int64, err error) {
	if from, err = m.check(ctx); err != nil {
		return from, from, err
	}
	to = m.newest()
	if from == to {
		return from, to, nil
	}
	dir, err := fs.Sub(migrations, m.dir)
	if err != nil {
		return from, from, fmt.Errorf("read the embedded migrations: %w", err)
	}
	opts := []goose.ProviderOption{
		goose.WithTableName(versionTable),
		goose.WithDisableGlobalRegistry(true),
		goose.WithSlog(slog.New(slog.DiscardHandler)),
	}
	if m.dialect == goose.DialectPostgres {
		opts = append(opts, goose.WithSessionLocker(advisoryLock{}))
	}
	p, err := goose.NewProvider(m.dialect, m.db, dir, opts...)
	if err != nil {
		return from, from, fmt.Errorf("read the embedded migrations: %w", err)
	}
	// Not p.Close: it would close the database.
	if _, err := p.Up(ctx); err != nil {
		return from, from, fmt.Errorf("migrate the database from version %d to %d: %w", from, to, err)
	}
	// A newer binary may have been waiting for the same lock.
	if _, err := m.check(ctx); err != nil {
		return from, from, err
	}
	return from, to, nil
}

// check reads the schema's version without changing anything; 0 for an empty
// database, ErrNewerSchema for one this binary does not know.
func (m migrator) check(ctx context.Context) (int64, error) {
	var tables int
	if err := m.db.QueryRowContext(ctx, m.tables).Scan(&tables); err != nil {
		return 0, fmt.Errorf("read the schema's version: %w", err)
	}
	if tables == 0 {
		return 0, nil
	}
	var version sql.NullInt64
	err := m.db.QueryRowContext(ctx, "SELECT max(version_id) FROM "+versionTable+" WHERE is_applied").Scan(&version)
	if err != nil {
		return 0, fmt.Errorf("read the schema's version: %w", err)
	}
	if newest := m.newest(); version.Int64 > newest {
		return version.Int64, fmt.Errorf("%w: its schema is version %d, this binary knows up to %d", ErrNewerSchema, version.Int64, newest)
	}
	return version.Int64, nil
}

// newest is the highest version embedded.
func (m migrator) newest() int64 {
	var newest int64
	files, _ := fs.Glob(migrations, m.dir+"/*.sql")
	for _, f := range files {
		if v, err := goose.NumericComponent(f); err == nil {
			newest = max(newest, v)
		}
	}
	return newest
}

// advisoryLock waits for PostgreSQL's advisory lock instead of trying again
// every few seconds, as goose's own does, so that replicas started together
// start together.
type advisoryLock struct{}

func (advisoryLock) SessionLock(ctx context.Context, conn *sql.Conn) error {
	if _, err := conn.ExecContext(ctx, "SELECT pg_advisory_lock($1)", int64(migrationLock)); err != nil {
		return fmt.Errorf("lock the database for migration: %w", err)
	}
	return nil
}

func (advisoryLock) SessionUnlock(ctx context.Context, conn *sql.Conn) error {
	if _, err := conn.ExecContext(ctx, "SELECT pg_advisory_unlock($1)", int64(migrationLock)); err != nil {
		return fmt.Errorf("unlock the database after migration: %w", err)
	}
	return nil
}

// errNoSchema: an offline command met a database that needs migrating first.
var errNoSchema = errors.New("the database's schema is older than this playbook-bot; run `playbook-bot migrate`")
