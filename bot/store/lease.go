package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"
)

// threadColumns are the columns that scanRef reads, of threads t joined with
// repos r.
const (
	threadColumns = `t.id, t.forge, t.repo, t.number, t.pull,
		coalesce(r.owner, ''), coalesce(r.owner_id, 0), coalesce(r.name, '')`
	repoOfThread = ` LEFT JOIN repos r ON r.forge = t.forge AND r.repo = t.repo`
	threadTables = `threads t` + repoOfThread
)

func refDest(t *ThreadRef) []any {
	return []any{&t.ID, &t.Forge, &t.Repo.ID, &t.Number, &t.Pull, &t.Repo.Owner, &t.Repo.OwnerID, &t.Repo.Name}
}

// Acquire takes over ended leases before fresh work: under a steady load there
// is always fresh work, and a dead process's threads would wait for its end.
// Both halves read the index of a few rows, never the threads at rest.
//
// wake_at stays as it is until Release, so that a process that dies leaves it
// behind.
func (l *ledger) Acquire(ctx context.Context, owner string, lease time.Duration) (*Lease, error) {
	if owner == "" {
		return nil, errors.New("acquire a thread: the owner needs a name")
	}
	due, err := l.anyDue(ctx)
	if err != nil || !due {
		return nil, err
	}
	var out *Lease
	err = l.quietly(ctx, func(tx runner) error {
		le := Lease{Owner: owner}
		var until int64
		err := tx.one(ctx, `UPDATE threads SET owner = ?, fence = fence + 1, lease_until = {now} + ?,
				loaded = coalesce((SELECT max(e.id) FROM events e WHERE e.thread = threads.id AND e.status = 'waiting'), 0)
			WHERE id = coalesce(
				(SELECT id FROM threads WHERE owner <> '' AND lease_until < {now} ORDER BY lease_until LIMIT 1 {skip}),
				(SELECT id FROM threads WHERE owner = '' AND wake_at <= {now} ORDER BY wake_at LIMIT 1 {skip}))
			RETURNING id, fence, lease_until`,
			args{owner, ceilMillis(lease)}, &le.Thread.ID, &le.Fence, &until)
		if errors.Is(err, ErrNotFound) {
			return nil
		}
		if err != nil {
			return err
		}
		le.Until = fromMillis(until)
		if err := tx.one(ctx, `SELECT `+threadColumns+` FROM `+threadTables+` WHERE t.id = ?`,
			args{le.Thread.ID}, refDest(&le.Thread)...); err != nil {
			return err
		}
		out = &le
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("acquire a thread: %w", err)
	}
	return out, nil
}

// anyDue spares the idle a writing transaction.
func (l *ledger) anyDue(ctx context.Context) (due bool, err error) {
	err = l.e.read(ctx, func(r runner) error {
		return r.one(ctx, `SELECT EXISTS (SELECT 1 FROM threads WHERE owner <> '' AND lease_until < {now})
			OR EXISTS (SELECT 1 FROM threads WHERE owner = '' AND wake_at <= {now})`, nil, &due)
	})
	if err != nil {
		return false, fmt.Errorf("look for a thread that is due: %w", err)
	}
	return due, nil
}

func (l *ledger) NextWake(ctx context.Context) (next time.Time, err error) {
	err = l.e.read(ctx, func(r runner) error {
		var wake, lease sql.NullInt64
		err := r.one(ctx, `SELECT (SELECT min(wake_at) FROM threads WHERE owner = '' AND wake_at IS NOT NULL),
			(SELECT min(lease_until) FROM threads WHERE owner <> '')`, nil, &wake, &lease)
		if err != nil {
			return err
		}
		if wake.Valid {
			next = fromMillis(wake.Int64)
			if wake.Int64 == 0 {
				next = time.UnixMilli(0).UTC() // due since for ever, which is not never
			}
		}
		// A lease is over in the millisecond after its last.
		if end := fromMillis(lease.Int64).Add(time.Millisecond); lease.Valid && (!wake.Valid || end.Before(next)) {
			next = end
		}
		return nil
	})
	if err != nil {
		return time.Time{}, fmt.Errorf("look for the next thread to wake: %w", err)
	}
	return next, nil
}

func (l *ledger) Heartbeat(ctx context.Context, owner string, lease time.Duration) error {
	err := l.quietly(ctx, func(tx runner) error {
		if err := lockThreads(ctx, tx, "owner <> '' AND owner = ?", owner); err != nil {
			return err
		}
		_, err := tx.exec(ctx, `UPDATE threads SET lease_until = {now} + ? WHERE owner <> '' AND owner = ?`,
			ceilMillis(lease), owner)
		return err
	})
	if err != nil {
		return fmt.Errorf("extend the leases of %s: %w", owner, err)
	}
	return nil
}

// lockThreads locks several threads' rows in the order in which a group of
// Accepts locks them: in any other the two could wait for each other.
func lockThreads(ctx context.Context, tx runner, cond string, a ...any) error {
	if tx.d.lock == "" {
		return nil
	}
	err := tx.each(ctx, func(*sql.Rows) error { return nil },
		`SELECT id FROM threads WHERE `+cond+` ORDER BY forge, repo, number {lock}`, a...)
	if err != nil {
		return fmt.Errorf("lock the threads: %w", err)
	}
	return nil
}

// hold locks the lease's thread and makes sure that it is still the owner's.
// Not that the lease has not ended: the fence decides, and it changes when
// another takes the thread over. A worker that slept past its lease while
// nobody else wanted the thread has lost nothing.
func hold(ctx context.Context, tx runner, l *Lease) (touched, error) {
	t := touched{id: l.Thread.ID}
	err := tx.one(ctx, `SELECT max_comment, loaded FROM threads WHERE id = ? AND owner = ? AND owner <> '' AND fence = ? {lock}`,
		args{l.Thread.ID, l.Owner, l.Fence}, &t.maxComment, &t.loaded)
	if errors.Is(err, ErrNotFound) {
		return t, ErrFenced
	}
	if err != nil {
		return t, fmt.Errorf("lock the thread: %w", err)
	}
	return t, nil
}

// handBack is what Release sets. wake_at becomes the earliest of what the
// thread's next worker could do: the first open answer holds back all else,
// and the first waiting event all behind it, so that theirs are the times that
// count. Were the times of those held back counted too, a thread whose first
// event is in retry would be acquired and released over and over until then.
//
// It is never before now: threads are served in the order in which they became
// due, and one with much to do goes to the end of the line with the rest of it,
// or those that came later would wait until it was done.
const handBack = `UPDATE threads SET owner = '', lease_until = 0, loaded = 0, wake_at = (
	SELECT CASE WHEN v.at < {now} THEN {now} ELSE v.at END FROM (SELECT CASE
	WHEN EXISTS (SELECT 1 FROM answers a WHERE a.thread = threads.id AND a.status IN ('pending', 'claimed'))
	THEN (SELECT a.next_at FROM answers a WHERE a.thread = threads.id AND a.status IN ('pending', 'claimed')
		ORDER BY a.created_at, a.key LIMIT 1)
	ELSE (SELECT min(w.at) FROM (
		SELECT threads.due AS at
		UNION ALL
		SELECT (SELECT e.next_at FROM events e WHERE e.thread = threads.id AND e.status = 'waiting'
			ORDER BY e.ord, e.id LIMIT 1)) w)
	END AS at) v) WHERE `

func (l *ledger) Release(ctx context.Context, le *Lease) error {
	err := l.inTx(ctx, func(tx runner) (bool, error) {
		// Two statements, and in this order. On PostgreSQL a statement sees
		// what was committed before it began. An UPDATE alone would begin,
		// wait for the row that an Accept holds, and then compute wake_at
		// from events as they were before that Accept: its wake-up would be
		// overwritten, and its event wait for ever. The second statement
		// begins when the row is ours, and sees everything.
		if _, err := hold(ctx, tx, le); err != nil {
			return false, err
		}
		return handBackWhere(ctx, tx, "id = ?", le.Thread.ID)
	})
	if err != nil {
		return fmt.Errorf("release thread %d: %w", le.Thread.ID, err)
	}
	return nil
}

func (l *ledger) ReleaseAll(ctx context.Context, owner string) error {
	if err := l.releaseWhere(ctx, "owner <> '' AND owner = ?", owner); err != nil {
		return fmt.Errorf("release the threads of %s: %w", owner, err)
	}
	return nil
}

// releaseWhere is Release for all threads of a condition, without a fence: for
// an owner that says so itself, or is known to be dead.
func (l *ledger) releaseWhere(ctx context.Context, cond string, a ...any) error {
	return l.inTx(ctx, func(tx runner) (bool, error) {
		if err := lockThreads(ctx, tx, cond, a...); err != nil {
			return false, err
		}
		return handBackWhere(ctx, tx, cond, a...)
	})
}

// handBackWhere reports whether a thread is to wake again.
func handBackWhere(ctx context.Context, tx runner, cond string, a ...any) (wake bool, err error) {
	err = tx.each(ctx, func(rows *sql.Rows) error {
		var at sql.NullInt64
		if err := rows.Scan(&at); err != nil {
			return err
		}
		wake = wake || at.Valid
		return nil
	}, handBack+cond+` RETURNING wake_at`, a...)
	return wake, err
}
