package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"playbook-bot/bot/forge"
)

// ledger is the Store of both databases; what differs is in its engine.
type ledger struct {
	e      engine
	logger *slog.Logger
	wakes  chan struct{}
	accept acceptor

	// repoNames spares Accept writing a repository's name with every delivery.
	repoNames sync.Map // repoKey → forge.Repo
}

type repoKey struct {
	forge string
	id    int64
}

var _ Store = (*ledger)(nil)

func newLedger(e engine, o Options) *ledger {
	l := &ledger{e: e, logger: o.Logger, wakes: make(chan struct{}, 1)}
	l.accept.queue = make(chan *arrival, 4*acceptGroup)
	l.accept.turn = make(chan struct{}, 1)
	l.accept.turn <- struct{}{}
	l.accept.closing = make(chan struct{})
	return l
}

func (l *ledger) start() {
	for range l.e.accepts() {
		l.accept.workers.Go(l.acceptLoop)
	}
}

func (l *ledger) Wakes() <-chan struct{} { return l.wakes }

func (l *ledger) signal() {
	select {
	case l.wakes <- struct{}{}:
	default: // one is waiting to be seen already
	}
}

// inTx commits what f wrote and then signals, here and elsewhere, if f says
// that a thread may have become due.
func (l *ledger) inTx(ctx context.Context, f func(tx runner) (wake bool, err error)) error {
	wake := false
	err := l.e.inTx(ctx, func(tx runner) (err error) {
		if wake, err = f(tx); err != nil || !wake {
			return err
		}
		return l.e.announce(ctx, tx)
	})
	if err == nil && wake {
		l.signal()
	}
	return err
}

// quietly is inTx for what makes no thread due.
func (l *ledger) quietly(ctx context.Context, f func(tx runner) error) error {
	return l.e.inTx(ctx, f)
}

func (l *ledger) Now(ctx context.Context) (now time.Time, err error) {
	err = l.e.read(ctx, func(r runner) error {
		var ms int64
		if err := r.one(ctx, "SELECT CAST({now} AS BIGINT)", nil, &ms); err != nil {
			return fmt.Errorf("read the database's clock: %w", err)
		}
		now = fromMillis(ms)
		return nil
	})
	return now, err
}

func (l *ledger) Ping(ctx context.Context) error {
	_, err := l.Now(ctx)
	return err
}

func (l *ledger) Close() error {
	l.accept.close()
	return l.e.close()
}

func (l *ledger) Meta(ctx context.Context, key string) (value string, err error) {
	err = l.e.read(ctx, func(r runner) error {
		err := r.one(ctx, "SELECT value FROM meta WHERE key = ?", args{key}, &value)
		if errors.Is(err, ErrNotFound) {
			return nil
		}
		return err
	})
	if err != nil {
		return "", fmt.Errorf("read %s from the database: %w", key, err)
	}
	return value, nil
}

func (l *ledger) SetMeta(ctx context.Context, key, value string) error {
	err := l.quietly(ctx, func(tx runner) error {
		_, err := tx.exec(ctx, `INSERT INTO meta (key, value) VALUES (?, ?)
			ON CONFLICT (key) DO UPDATE SET value = excluded.value`, key, value)
		return err
	})
	if err != nil {
		return fmt.Errorf("write %s to the database: %w", key, err)
	}
	return nil
}

func (l *ledger) SaveRepo(ctx context.Context, forgeName string, r forge.Repo) error {
	err := l.quietly(ctx, func(tx runner) error { return saveRepo(ctx, tx, forgeName, r) })
	if err != nil {
		return fmt.Errorf("save the name of %s repository %d: %w", forgeName, r.ID, err)
	}
	l.repoNames.Store(repoKey{forgeName, r.ID}, r)
	return nil
}

// saveRepo writes nothing over what it does not know: an owner's id is absent
// from some payloads.
func saveRepo(ctx context.Context, tx runner, forgeName string, r forge.Repo) error {
	_, err := tx.exec(ctx, `INSERT INTO repos (forge, repo, owner, owner_id, name, seen_at) VALUES (?, ?, ?, ?, ?, {now})
		ON CONFLICT (forge, repo) DO UPDATE SET owner = excluded.owner, name = excluded.name, seen_at = excluded.seen_at,
			owner_id = CASE WHEN excluded.owner_id = 0 AND excluded.owner = repos.owner THEN repos.owner_id ELSE excluded.owner_id END`,
		forgeName, r.ID, r.Owner, r.OwnerID, r.Name)
	return err
}

func (l *ledger) Repos(ctx context.Context) (repos []RepoRow, err error) {
	err = l.e.read(ctx, func(r runner) error {
		return r.each(ctx, func(rows *sql.Rows) error {
			var x RepoRow
			if err := rows.Scan(&x.Forge, &x.Repo.ID, &x.Repo.Owner, &x.Repo.OwnerID, &x.Repo.Name); err != nil {
				return err
			}
			repos = append(repos, x)
			return nil
		}, "SELECT forge, repo, owner, owner_id, name FROM repos ORDER BY forge, repo")
	})
	if err != nil {
		return nil, fmt.Errorf("read the repositories: %w", err)
	}
	return repos, nil
}
