package store

import (
	"context"
	"database/sql"
	"fmt"
	"time"
)

func (l *ledger) Dead(ctx context.Context) (dead []DeadEvent, err error) {
	err = l.e.read(ctx, func(r runner) error {
		return r.each(ctx, func(rows *sql.Rows) error {
			var d DeadEvent
			if err := scanEvent(rows, &d.Event, append([]any{&d.Note}, refDest(&d.Thread)...)...); err != nil {
				return err
			}
			dead = append(dead, d)
			return nil
		}, `SELECT `+eventColumns+`, e.note, `+threadColumns+` FROM events e JOIN threads t ON t.id = e.thread`+repoOfThread+`
			WHERE e.status = 'dead' ORDER BY e.id`)
	})
	if err != nil {
		return nil, fmt.Errorf("list the dead events: %w", err)
	}
	return dead, nil
}

func (l *ledger) Resend(ctx context.Context, event int64) error {
	err := l.inTx(ctx, func(tx runner) (bool, error) {
		var thread int64
		err := tx.one(ctx, `SELECT thread FROM events WHERE id = ? AND status = 'dead'`, args{event}, &thread)
		if err != nil {
			return false, err
		}
		// The thread's row first, as everywhere.
		_, err = tx.exec(ctx, `UPDATE threads SET wake_at = CASE WHEN wake_at < {now} THEN wake_at ELSE {now} END WHERE id = ?`, thread)
		if err != nil {
			return false, err
		}
		n, err := tx.exec(ctx, `UPDATE events SET status = 'waiting', tries = 0, next_at = {now}, ended_at = NULL
			WHERE id = ? AND status = 'dead'`, event)
		if err == nil && n == 0 {
			err = ErrNotFound
		}
		return true, err
	})
	if err != nil {
		return fmt.Errorf("send dead event %d again: %w", event, err)
	}
	return nil
}

func (l *ledger) Audit(ctx context.Context, thread int64) (entries []AuditRow, err error) {
	err = l.e.read(ctx, func(r runner) error {
		return r.each(ctx, func(rows *sql.Rows) error {
			var x AuditRow
			var at int64
			dest := append([]any{&x.Chain, &x.Seq, &at, &x.Entry, &x.Prev, &x.Hash}, refDest(&x.Thread)...)
			if err := rows.Scan(dest...); err != nil {
				return err
			}
			x.At, x.Prev, x.Hash = fromMillis(at), orNil(x.Prev), orNil(x.Hash)
			entries = append(entries, x)
			return nil
		}, `SELECT a.chain, a.seq, a.at, a.entry, a.prev, a.hash, `+threadColumns+`
			FROM audit a JOIN threads t ON t.id = a.thread`+repoOfThread+`
			WHERE a.thread = ? OR CAST(? AS BIGINT) = 0 ORDER BY a.thread, a.chain, a.seq`, thread, thread)
	})
	if err != nil {
		return nil, fmt.Errorf("read the audit log: %w", err)
	}
	return entries, nil
}

func (l *ledger) Stats(ctx context.Context) (s Stats, err error) {
	err = l.e.read(ctx, func(r runner) error {
		var oldest, now int64
		err := r.one(ctx, `SELECT
			(SELECT count(*) FROM events WHERE status = 'waiting'),
			(SELECT coalesce(min(received_at), 0) FROM events WHERE status = 'waiting'),
			(SELECT count(*) FROM events WHERE status = 'dead'),
			(SELECT count(*) FROM answers WHERE status IN ('pending', 'claimed')),
			(SELECT count(*) FROM answers WHERE status = 'dead'), CAST({now} AS BIGINT)`,
			nil, &s.Waiting, &oldest, &s.Dead, &s.OpenAnswers, &s.DeadAnswers, &now)
		s.Oldest, s.Now = fromMillis(oldest), fromMillis(now)
		return err
	})
	if err != nil {
		return Stats{}, fmt.Errorf("count what waits: %w", err)
	}
	return s, nil
}

// pruneGroup is how many rows Prune changes in one transaction: few enough
// that a delivery does not wait for it.
const pruneGroup = 500

func (l *ledger) Prune(ctx context.Context, before time.Time) (pruned int64, err error) {
	pruned, err = l.inGroups(ctx, `DELETE FROM events WHERE id IN
		(SELECT id FROM events WHERE status = 'done' AND ended_at < ? ORDER BY ended_at LIMIT ?)`, millis(before))
	if err != nil {
		return pruned, fmt.Errorf("delete finished events: %w", err)
	}
	_, err = l.inGroups(ctx, `UPDATE answers SET body = '' WHERE (thread, key) IN
		(SELECT thread, key FROM answers WHERE status IN ('posted', 'dead') AND body <> '' AND created_at < ? ORDER BY created_at LIMIT ?)`,
		millis(before))
	if err != nil {
		return pruned, fmt.Errorf("drop the bodies of old answers: %w", err)
	}
	return pruned, nil
}

// inGroups runs a statement with a time and a limit until it changes fewer rows
// than that, in a transaction each.
func (l *ledger) inGroups(ctx context.Context, query string, before int64) (changed int64, err error) {
	for {
		var n int64
		err := l.quietly(ctx, func(tx runner) (err error) {
			n, err = tx.exec(ctx, query, before, pruneGroup)
			return err
		})
		changed += n
		if err != nil || n < pruneGroup {
			return changed, err
		}
	}
}
