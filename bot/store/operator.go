package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
)

func (l *ledger) DeadAnswers(ctx context.Context) (dead []DeadAnswer, err error) {
	err = l.e.read(ctx, func(r runner) error {
		return r.each(ctx, func(rows *sql.Rows) error {
			var d DeadAnswer
			var created int64
			dest := append([]any{&d.Key, &d.Trigger.Kind, &d.Trigger.ID, &d.Account, &d.Low, &d.Tries, &created, &d.Note, &d.Bodiless},
				refDest(&d.Thread)...)
			if err := rows.Scan(dest...); err != nil {
				return err
			}
			d.Status, d.CreatedAt = AnswerDead, fromMillis(created)
			dead = append(dead, d)
			return nil
		}, `SELECT a.key, a.trigger_kind, a.trigger_id, a.account, a.low, a.tries, a.created_at, a.note, a.body = '', `+threadColumns+`
			FROM answers a JOIN threads t ON t.id = a.thread`+repoOfThread+` WHERE a.status = 'dead' ORDER BY a.thread, a.key`)
	})
	if err != nil {
		return nil, fmt.Errorf("list the dead answers: %w", err)
	}
	return dead, nil
}

func (l *ledger) ResendAnswer(ctx context.Context, thread int64, key string) error {
	err := l.inTx(ctx, func(tx runner) (bool, error) {
		// The thread's row first, as everywhere.
		n, err := tx.exec(ctx, `UPDATE threads SET wake_at = CASE WHEN wake_at < {now} THEN wake_at ELSE {now} END WHERE id = ?`, thread)
		if err == nil && n == 0 {
			err = ErrNotFound
		}
		if err != nil {
			return false, err
		}
		var bodiless bool
		err = tx.one(ctx, `SELECT body = '' FROM answers WHERE thread = ? AND key = ? AND status = 'dead'`, args{thread, key}, &bodiless)
		if err == nil && bodiless {
			err = ErrNoBody
		}
		if err != nil {
			return false, err
		}
		_, err = tx.exec(ctx, `UPDATE answers SET status = 'claimed', tries = 0, next_at = {now}, note = ''
			WHERE thread = ? AND key = ? AND status = 'dead'`, thread, key)
		return true, err
	})
	if err != nil {
		return fmt.Errorf("send dead answer %s of thread %d again: %w", key, thread, err)
	}
	return nil
}

func (l *ledger) AuditThreads(ctx context.Context) (refs []ThreadRef, err error) {
	err = l.e.read(ctx, func(r runner) error {
		refs, err = readRefs(ctx, r, `EXISTS (SELECT 1 FROM audit a WHERE a.thread = t.id)
			OR EXISTS (SELECT 1 FROM answers a WHERE a.thread = t.id) ORDER BY t.id`)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("list the threads to audit: %w", err)
	}
	return refs, nil
}

func (l *ledger) Logs(ctx context.Context, after int64, limit int) (logs []ThreadLog, next int64, err error) {
	err = l.e.read(ctx, func(r runner) error {
		refs, err := readRefs(ctx, r, `t.id > ? ORDER BY t.id LIMIT ?`, after, limit)
		if err != nil || len(refs) == 0 {
			return err
		}
		last := refs[len(refs)-1].ID
		texts := map[int64][]Object{}
		err = r.each(ctx, func(rows *sql.Rows) error {
			var thread int64
			var o Object
			if err := rows.Scan(&thread, &o.Kind, &o.ID, &o.Deleted, &o.Data); err != nil {
				return err
			}
			o.Keep = true
			texts[thread] = append(texts[thread], o)
			return nil
		}, `SELECT thread, kind, id, deleted, data FROM objects WHERE keep AND thread > ? AND thread <= ?
			ORDER BY thread, CASE kind WHEN 'issue' THEN 0 ELSE 1 END, id`, after, last)
		if err != nil {
			return err
		}
		for _, ref := range refs {
			if len(texts[ref.ID]) > 0 {
				logs = append(logs, ThreadLog{ref, texts[ref.ID]})
			}
		}
		if len(refs) == limit {
			next = last
		}
		return nil
	})
	if err != nil {
		return nil, 0, fmt.Errorf("read the threads' logs after %d: %w", after, err)
	}
	return logs, next, nil
}

// Reread forgets all that the threads themselves tell: states, texts, events,
// answers, what was taken in and how far sweeps came. The audit log, whose
// words a text is, and the repositories' names stay. It is for a database that
// was put back from a backup: the bot would not know what it answered since,
// and answer again; after this it reads every thread as if the database had
// been lost. No bot may be serving the database: see Idle. It returns how many
// threads there are.
func (l *ledger) Reread(ctx context.Context) (threads int64, err error) {
	err = l.e.longTx(ctx, func(tx runner) error {
		for _, q := range []string{
			`DELETE FROM events`, `DELETE FROM answers`, `DELETE FROM objects`, `DELETE FROM seen`,
			`DELETE FROM meta WHERE key LIKE 'watermark:%'`,
		} {
			if _, err := tx.exec(ctx, q); err != nil {
				return err
			}
		}
		threads, err = tx.exec(ctx, `UPDATE threads SET state = NULL, due = NULL, open = FALSE, wake_at = NULL, owner = '', lease_until = 0, fence = fence + 1`)
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("forget what the threads tell: %w", err)
	}
	return threads, nil
}

// ErrNotSQLite: what was asked for is there for SQLite only.
var ErrNotSQLite = errors.New("not a SQLite database")

// Backup writes a consistent copy of a SQLite database to a new file, which
// only its owner may read, while a bot may be serving the database. The copy
// is a database like the first. Errors: ErrNotSQLite; fs.ErrExist where the
// file is there; ErrNotFound where the database is not.
func Backup(ctx context.Context, databaseURL, file string) (err error) {
	if isPostgres(databaseURL) {
		return fmt.Errorf("back up the database: %w", ErrNotSQLite)
	}
	path, memory, err := sqlitePath(databaseURL)
	if err != nil {
		return err
	}
	if memory {
		return fmt.Errorf("back up a database in memory: %w", ErrNotFound)
	}
	db, err := openSQLite(ctx, path, false, false, &dialect{})
	if err != nil {
		return err
	}
	defer func() { _ = db.close() }()
	// SQLite writes into an empty file, and would make one that others can read.
	f, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return fmt.Errorf("make the backup's file: %w", err)
	}
	if err := f.Close(); err != nil {
		return fmt.Errorf("make the backup's file: %w", err)
	}
	if _, err := db.writeDB.ExecContext(ctx, "VACUUM INTO ?", file); err != nil {
		_ = os.Remove(file)
		return fmt.Errorf("back up the database: %w", err)
	}
	return nil
}

// Idle makes sure that no bot serves a database, for as long as release is not
// called. On SQLite it takes the lock that a serving process holds
// (ErrLocked). On PostgreSQL, which has no such lock, it only looks whether a
// thread is in some worker's hands at the moment (ErrLocked).
func Idle(ctx context.Context, databaseURL string) (release func() error, err error) {
	if isPostgres(databaseURL) {
		return func() error { return nil }, postgresIdle(ctx, databaseURL)
	}
	path, memory, err := sqlitePath(databaseURL)
	if err != nil {
		return nil, err
	}
	if memory {
		return func() error { return nil }, nil
	}
	if err := prepareFile(path, false); err != nil {
		return nil, err
	}
	lock, err := lockSQLite(ctx, path)
	if err != nil {
		return nil, err
	}
	return lock.release, nil
}

func postgresIdle(ctx context.Context, databaseURL string) error {
	s, err := open(ctx, databaseURL, Options{Offline: true})
	if err != nil {
		return err
	}
	defer func() { _ = s.Close() }()
	var held bool
	err = s.e.read(ctx, func(r runner) error {
		return r.one(ctx, `SELECT EXISTS (SELECT 1 FROM threads WHERE owner <> '' AND lease_until > {now})`, nil, &held)
	})
	if err == nil && held {
		err = ErrLocked
	}
	if err != nil {
		return fmt.Errorf("look whether the database is being served: %w", err)
	}
	return nil
}
