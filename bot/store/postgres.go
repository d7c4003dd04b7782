package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"
)

const (
	// pgChannel is the NOTIFY channel on which replicas wake each other. The
	// payload is the sender's instance, so that it can skip its own.
	pgChannel = "playbook_bot_wake"
	// pgClock is the start of the statement: stable, so that indexes apply,
	// and at most the statement's own duration behind.
	pgClock = "(floor(extract(epoch FROM statement_timestamp()) * 1000)::bigint)"
	// pgConns is the pool's size where the URL says nothing
	// (pool_max_conns=N).
	pgConns = 12
	// pgConnectTimeout bounds one attempt to connect where the URL says
	// nothing (connect_timeout=SECONDS).
	pgConnectTimeout = 5 * time.Second
	// pgTimeout bounds a statement and, from its beginning, a transaction, but
	// for those of CopyTo: a network that swallows packets must not hold a
	// worker for ever.
	pgTimeout = 20 * time.Second
	// pgIdle is when the server ends a transaction whose client has gone
	// silent, in milliseconds: a replica that is frozen, or cut off, half-way
	// through a transaction would keep its thread locked for all others.
	pgIdle = "5000"
	// pgAccepts is how many groups of Accepts may run side by side; see
	// acceptPatience.
	pgAccepts = 3
)

// postgresDB is a PostgreSQL shared by any number of replicas.
type postgresDB struct {
	d        *dialect
	pool     *pgxpool.Pool
	db       *sql.DB
	instance string
	listener *listener
}

var errPostgresURL = errors.New("the database URL is not a valid PostgreSQL URL (postgres://user:password@host:port/database, special characters percent-encoded)")

// postgresConfig never returns the parsers' errors: they quote the URL, and
// what they take for the password need not be all of it.
func postgresConfig(databaseURL string) (*pgxpool.Config, error) {
	u, err := url.Parse(databaseURL)
	if err != nil || strings.Contains(u.Path, "@") {
		// A slash in a password ends the host early: its first half would be
		// taken for a port and printed.
		return nil, errPostgresURL
	}
	c, err := pgxpool.ParseConfig(databaseURL)
	if err != nil {
		return nil, errPostgresURL
	}
	if c.ConnConfig.ConnectTimeout == 0 {
		c.ConnConfig.ConnectTimeout = pgConnectTimeout
	}
	if !u.Query().Has("pool_max_conns") {
		c.MaxConns = pgConns
	}
	for name, value := range map[string]string{
		"application_name": "playbook-bot", "idle_in_transaction_session_timeout": pgIdle,
	} {
		if _, given := c.ConnConfig.RuntimeParams[name]; !given {
			c.ConnConfig.RuntimeParams[name] = value
		}
	}
	return c, nil
}

func openPostgres(ctx context.Context, databaseURL string, d *dialect) (*postgresDB, error) {
	c, err := postgresConfig(databaseURL)
	if err != nil {
		return nil, err
	}
	pool, err := pgxpool.NewWithConfig(ctx, c)
	if err != nil {
		return nil, fmt.Errorf("set up the PostgreSQL pool: %w", err)
	}
	p := &postgresDB{d: d, pool: pool, db: stdlib.OpenDBFromPool(pool), instance: newInstance()}
	if err := pool.Ping(ctx); err != nil {
		_ = p.close()
		return nil, fmt.Errorf("connect to PostgreSQL: %w", err)
	}
	return p, nil
}

func (p *postgresDB) inTx(ctx context.Context, f func(runner) error) error {
	ctx, cancel := context.WithTimeout(ctx, pgTimeout)
	defer cancel()
	return inSQLTx(ctx, p.db, nil, runner{d: p.d, limit: pgTimeout}, f)
}

func (p *postgresDB) longTx(ctx context.Context, f func(runner) error) error {
	return inSQLTx(ctx, p.db, nil, runner{d: p.d}, f)
}

func (p *postgresDB) snapshot(ctx context.Context, f func(runner) error) error {
	o := &sql.TxOptions{Isolation: sql.LevelRepeatableRead, ReadOnly: true}
	return inSQLTx(ctx, p.db, o, runner{d: p.d}, f)
}

func (p *postgresDB) read(_ context.Context, f func(runner) error) error {
	return f(runner{d: p.d, q: p.db, limit: pgTimeout})
}

func (p *postgresDB) continueIDs(ctx context.Context, tx runner, table, column string) error {
	var next int64
	return tx.one(ctx, `SELECT setval(pg_get_serial_sequence(?, ?), (SELECT coalesce(max(`+column+`), 0) + 1 FROM `+table+`), false)`,
		args{table, column}, &next)
}

func (p *postgresDB) accepts() int { return pgAccepts }

// announce is part of the transaction: were it sent after the commit, a
// process killed between the two would leave work that no replica knows of.
func (p *postgresDB) announce(ctx context.Context, tx runner) error {
	_, err := tx.exec(ctx, "SELECT pg_notify(?, ?)", pgChannel, p.instance)
	return err
}

func (p *postgresDB) close() error {
	if p.listener != nil {
		p.listener.stop()
	}
	err := p.db.Close()
	p.pool.Close()
	return err
}

const (
	// listenCheck is how long the listener waits in silence before it makes
	// sure that its connection still stands.
	listenCheck = 30 * time.Second
	// listenBackoff is the first pause before connecting again; it doubles up
	// to listenBackoffMax.
	listenBackoff    = 50 * time.Millisecond
	listenBackoffMax = 5 * time.Second
)

// listener holds a connection of its own that LISTENs.
type listener struct {
	config   *pgx.ConnConfig
	instance string
	// wake is called for every notification of another instance, and after
	// every connect, since what was sent meanwhile is lost.
	wake   func()
	logger *slog.Logger
	cancel context.CancelFunc
	done   chan struct{}
}

// listen starts the listener. It returns when the first connection listens,
// so that nothing said after Open is missed, or could not be made.
func (p *postgresDB) listen(ctx context.Context, wake func(), logger *slog.Logger) error {
	run, cancel := context.WithCancel(context.WithoutCancel(ctx))
	l := &listener{
		config: p.pool.Config().ConnConfig, instance: p.instance,
		wake: wake, logger: logger, cancel: cancel, done: make(chan struct{}),
	}
	conn, err := l.connect(ctx)
	if err != nil {
		cancel()
		return err
	}
	p.listener = l
	go l.loop(run, conn)
	return nil
}

func (l *listener) stop() {
	l.cancel()
	<-l.done
}

func (l *listener) connect(ctx context.Context) (*pgx.Conn, error) {
	conn, err := pgx.ConnectConfig(ctx, l.config.Copy())
	if err != nil {
		return nil, fmt.Errorf("connect to PostgreSQL to listen: %w", err)
	}
	if _, err := conn.Exec(ctx, "LISTEN "+pgChannel); err != nil {
		_ = conn.Close(ctx)
		return nil, fmt.Errorf("listen for wake-ups: %w", err)
	}
	return conn, nil
}

// loop receives until the listener is stopped, over as many connections as it
// takes.
func (l *listener) loop(ctx context.Context, conn *pgx.Conn) {
	defer close(l.done)
	pause := listenBackoff
	for {
		if conn != nil {
			l.wake()
			pause = listenBackoff
			err := l.receive(ctx, conn)
			closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
			_ = conn.Close(closing)
			cancel()
			if ctx.Err() != nil {
				return
			}
			l.logger.Warn("lost the connection that listens for wake-ups", "err", err)
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return
		}
		pause = min(2*pause, listenBackoffMax)
		var err error
		if conn, err = l.connect(ctx); err != nil {
			conn = nil
			if ctx.Err() == nil {
				l.logger.Warn("cannot listen for wake-ups", "err", err, "again_in", pause)
			}
		}
	}
}

func (l *listener) receive(ctx context.Context, conn *pgx.Conn) error {
	for {
		wait, cancel := context.WithTimeout(ctx, listenCheck)
		n, err := conn.WaitForNotification(wait)
		silent := wait.Err() != nil && ctx.Err() == nil
		cancel()
		switch {
		case err == nil:
			if n.Payload != l.instance {
				l.wake()
			}
		case silent && !conn.IsClosed():
			check, cancel := context.WithTimeout(ctx, pgConnectTimeout)
			err := conn.Ping(check)
			cancel()
			if err != nil {
				return err
			}
		default:
			return err
		}
	}
}
