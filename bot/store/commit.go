package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"playbook-bot/bot/forge"
)

func (l *ledger) Commit(ctx context.Context, le *Lease, c Change) error {
	for _, in := range c.Found {
		if err := in.check(); err != nil {
			return fmt.Errorf("commit to thread %d: %w", le.Thread.ID, err)
		}
		if in.Forge != le.Thread.Forge || in.Repo.ID != le.Thread.Repo.ID || in.Number != le.Thread.Number {
			return fmt.Errorf("commit to thread %d: %s is another thread's", le.Thread.ID, in.name())
		}
	}
	err := l.quietly(ctx, func(tx runner) error {
		t, err := hold(ctx, tx, le)
		if err != nil {
			return err
		}
		return commit(ctx, tx, t, c)
	})
	if err != nil {
		return fmt.Errorf("commit to thread %d: %w", le.Thread.ID, err)
	}
	return nil
}

// commit writes a change into a thread whose row is locked. Nothing of it
// wakes the thread: it is in hand, and its release looks at all times anew.
func commit(ctx context.Context, tx runner, t touched, c Change) error {
	for _, o := range c.Objects {
		if err := saveObject(ctx, tx, t.id, o); err != nil {
			return fmt.Errorf("save %s %d: %w", o.Kind, o.ID, err)
		}
	}
	for _, e := range c.Finish {
		if err := finish(ctx, tx, t.id, e); err != nil {
			return fmt.Errorf("finish event %d: %w", e.ID, err)
		}
	}
	for _, a := range c.Answers {
		if err := insertAnswer(ctx, tx, t.id, a); err != nil {
			return fmt.Errorf("write answer %s: %w", a.Key, err)
		}
	}
	for _, a := range c.Settle {
		if err := settle(ctx, tx, t.id, a); err != nil {
			return fmt.Errorf("settle answer %s: %w", a.Key, err)
		}
	}
	for _, r := range c.Audit {
		_, err := tx.exec(ctx, `INSERT INTO audit (thread, chain, seq, at, entry, prev, hash) VALUES (?, ?, ?, ?, ?, ?, ?)`,
			t.id, r.Chain, r.Seq, millis(r.At), notNil(r.Entry), notNil(r.Prev), notNil(r.Hash))
		if err != nil {
			return fmt.Errorf("write audit entry %d/%d: %w", r.Chain, r.Seq, err)
		}
	}
	if err := saveThread(ctx, tx, t, c); err != nil {
		return err
	}
	found := make([]*arrival, len(c.Found))
	for i, in := range c.Found {
		found[i] = &arrival{in: in}
	}
	if _, err := intake(ctx, tx, found); err != nil {
		return fmt.Errorf("take in what was found: %w", err)
	}
	return nil
}

// maxComment is the greatest comment id known after the change.
func (c Change) maxComment(known int64) int64 {
	for _, o := range c.Objects {
		if o.Kind == forge.ObjectComment {
			known = max(known, o.ID)
		}
	}
	for _, a := range c.Answers {
		known = max(known, a.CommentID)
	}
	for _, a := range c.Settle {
		known = max(known, a.CommentID)
	}
	return known
}

func saveThread(ctx context.Context, tx runner, t touched, c Change) error {
	greatest := c.maxComment(t.maxComment)
	var err error
	switch {
	case c.State != nil:
		_, err = tx.exec(ctx, `UPDATE threads SET state = ?, due = ?, open = ?, max_comment = ? WHERE id = ?`,
			c.State, orNever(c.Due), c.Open, greatest, t.id)
	case greatest > t.maxComment:
		_, err = tx.exec(ctx, `UPDATE threads SET max_comment = ? WHERE id = ?`, greatest, t.id)
	}
	if err != nil {
		return fmt.Errorf("save the thread's state: %w", err)
	}
	return nil
}

func saveObject(ctx context.Context, tx runner, thread int64, o Object) error {
	_, err := tx.exec(ctx, `INSERT INTO objects (thread, kind, id, author_id, author_login, original_author, body_sha,
			created_at, updated_at, deleted, keep, data)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
		ON CONFLICT (thread, kind, id) DO UPDATE SET author_id = excluded.author_id, author_login = excluded.author_login,
			original_author = excluded.original_author, body_sha = excluded.body_sha, created_at = excluded.created_at,
			updated_at = excluded.updated_at, deleted = excluded.deleted, keep = excluded.keep, data = excluded.data`,
		thread, string(o.Kind), o.ID, o.Author.ID, o.Author.Login, o.OriginalAuthor, o.BodySHA[:],
		millis(o.CreatedAt), millis(o.UpdatedAt), o.Deleted, o.Keep, o.Data)
	return err
}

// finish fails for an event that does not wait in the thread: it would be
// worked on twice.
func finish(ctx context.Context, tx runner, thread int64, e EventEnd) error {
	switch e.Status {
	case EventWaiting, EventDone, EventDead:
	default:
		return fmt.Errorf("%q is no end of an event", e.Status)
	}
	n, err := tx.exec(ctx, `UPDATE events SET status = ?, next_at = ?, tries = ?, note = ?,
			ended_at = CASE WHEN ? THEN {now} END
		WHERE id = ? AND thread = ? AND status = 'waiting'`,
		e.Status, millis(e.NextAt), e.Tries, e.Note, e.Status != EventWaiting, e.ID, thread)
	if err == nil && n == 0 {
		err = fmt.Errorf("it does not wait: %w", ErrNotFound)
	}
	return err
}

const answerColumns = `key, body, trigger_kind, trigger_id, account, low, status, after_id, deadline, next_at, tries, comment_id, created_at, note`

// insertAnswer writes a new answer. Its status is pending unless it says
// otherwise: a rebuild writes answers that it found posted.
func insertAnswer(ctx context.Context, tx runner, thread int64, a Answer) error {
	if a.Status == "" {
		a.Status = AnswerPending
	}
	if err := a.check(); err != nil {
		return err
	}
	n, err := tx.exec(ctx, `INSERT INTO answers (thread, `+answerColumns+`)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, CASE WHEN CAST(? AS BIGINT) > 0 THEN ? ELSE {now} END, ?) ON CONFLICT DO NOTHING`,
		thread, a.Key, a.Body, string(a.Trigger.Kind), a.Trigger.ID, a.Account, a.Low, a.Status, a.After,
		millis(a.Deadline), millis(a.NextAt), a.Tries, a.CommentID, millis(a.CreatedAt), millis(a.CreatedAt), a.Note)
	if err == nil && n == 0 {
		err = ErrExists
	}
	return err
}

func (a Answer) check() error {
	if a.Key == "" {
		return errors.New("an answer needs a key")
	}
	switch a.Status {
	case AnswerPending, AnswerClaimed, AnswerPosted, AnswerDead:
		return nil
	}
	return fmt.Errorf("%q is no state of an answer", a.Status)
}

func settle(ctx context.Context, tx runner, thread int64, a Answer) error {
	if err := a.check(); err != nil {
		return err
	}
	n, err := tx.exec(ctx, `UPDATE answers SET status = ?, comment_id = ?, next_at = ?, tries = ?, note = ?
		WHERE thread = ? AND key = ?`,
		a.Status, a.CommentID, millis(a.NextAt), a.Tries, a.Note, thread, a.Key)
	if err == nil && n == 0 {
		err = ErrNotFound
	}
	return err
}

func (l *ledger) ClaimAnswer(ctx context.Context, le *Lease, key string, after int64, ttl time.Duration) (a Answer, err error) {
	err = l.quietly(ctx, func(tx runner) error {
		t, err := hold(ctx, tx, le)
		if err != nil {
			return err
		}
		// next_at is now: should this process die, whoever comes next may find
		// the comment at once, and only its absence proves nothing before the
		// deadline.
		n, err := tx.exec(ctx, `UPDATE answers SET status = 'claimed', after_id = ?, deadline = {now} + ?, next_at = {now}
			WHERE thread = ? AND key = ? AND (status = 'pending' OR status = 'claimed' AND deadline < {now})`,
			after, ceilMillis(ttl), t.id, key)
		if err != nil {
			return err
		}
		found, err := readAnswers(ctx, tx, `thread = ? AND key = ?`, t.id, key)
		switch {
		case err != nil:
			return err
		case len(found) == 0:
			return ErrNotFound
		case n == 0 && found[0].Status == AnswerClaimed:
			return ErrClaimed
		case n == 0:
			return fmt.Errorf("it is %s", found[0].Status)
		}
		a = found[0]
		return nil
	})
	if err != nil {
		return Answer{}, fmt.Errorf("claim answer %s of thread %d: %w", key, le.Thread.ID, err)
	}
	return a, nil
}

func readAnswers(ctx context.Context, r runner, cond string, a ...any) (answers []Answer, err error) {
	err = r.each(ctx, func(rows *sql.Rows) error {
		var x Answer
		var deadline, next, created int64
		err := rows.Scan(&x.Key, &x.Body, &x.Trigger.Kind, &x.Trigger.ID, &x.Account, &x.Low, &x.Status, &x.After,
			&deadline, &next, &x.Tries, &x.CommentID, &created, &x.Note)
		if err != nil {
			return err
		}
		x.Deadline, x.NextAt, x.CreatedAt = fromMillis(deadline), fromMillis(next), fromMillis(created)
		answers = append(answers, x)
		return nil
	}, `SELECT `+answerColumns+` FROM answers WHERE `+cond, a...)
	return answers, err
}

// notNil is for columns that are never NULL.
func notNil(b []byte) []byte {
	if b == nil {
		return []byte{}
	}
	return b
}

// orNil undoes notNil.
func orNil(b []byte) []byte {
	if len(b) == 0 {
		return nil
	}
	return b
}
