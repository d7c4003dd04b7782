package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"playbook-bot/bot/forge"
)

// maxLoad is how many waiting events Load returns: a thread with ever so many
// is worked off in pieces of bounded size.
const maxLoad = 500

func (l *ledger) Load(ctx context.Context, le *Lease) (*Thread, error) {
	var t *Thread
	var loaded int64
	err := l.e.read(ctx, func(r runner) (err error) {
		t, loaded, err = readThread(ctx, r, `t.id = ? AND t.owner = ? AND t.owner <> '' AND t.fence = ?`,
			le.Thread.ID, le.Owner, le.Fence)
		return err
	})
	if errors.Is(err, ErrNotFound) {
		return nil, fmt.Errorf("load thread %d: %w", le.Thread.ID, ErrFenced)
	}
	if err != nil {
		return nil, fmt.Errorf("load thread %d: %w", le.Thread.ID, err)
	}
	var newest int64
	for _, e := range t.Events {
		newest = max(newest, e.ID)
	}
	if newest <= loaded {
		return t, nil
	}
	// From here on nothing may merge with what the caller now has in hand.
	// What merged since it was read is no loss: the caller has yet to look at
	// the forge.
	err = l.quietly(ctx, func(tx runner) error {
		if _, err := hold(ctx, tx, le); err != nil {
			return err
		}
		_, err := tx.exec(ctx, `UPDATE threads SET loaded = ? WHERE id = ? AND loaded < ?`, newest, le.Thread.ID, newest)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("load thread %d: %w", le.Thread.ID, err)
	}
	return t, nil
}

func (l *ledger) FindThread(ctx context.Context, forgeName string, repo, number int64) (t *Thread, err error) {
	err = l.e.read(ctx, func(r runner) error {
		t, _, err = readThread(ctx, r, `t.forge = ? AND t.repo = ? AND t.number = ?`, forgeName, repo, number)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("find thread %d of %s repository %d: %w", number, forgeName, repo, err)
	}
	return t, nil
}

func (l *ledger) ThreadsByNumber(ctx context.Context, number int64) (threads []*Thread, err error) {
	err = l.e.read(ctx, func(r runner) error {
		refs, err := readRefs(ctx, r, `t.number = ? ORDER BY t.id`, number)
		if err != nil {
			return err
		}
		for _, ref := range refs {
			t, _, err := readThread(ctx, r, `t.id = ?`, ref.ID)
			if err != nil {
				return err
			}
			threads = append(threads, t)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("find threads of number %d: %w", number, err)
	}
	return threads, nil
}

func (l *ledger) OpenThreads(ctx context.Context, forgeName string, repo int64) (refs []ThreadRef, err error) {
	err = l.e.read(ctx, func(r runner) error {
		refs, err = readRefs(ctx, r, `t.open AND t.forge = ? AND t.repo = ? ORDER BY t.number`, forgeName, repo)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("list the open threads of %s repository %d: %w", forgeName, repo, err)
	}
	return refs, nil
}

func readRefs(ctx context.Context, r runner, cond string, a ...any) (refs []ThreadRef, err error) {
	err = r.each(ctx, func(rows *sql.Rows) error {
		var t ThreadRef
		if err := rows.Scan(refDest(&t)...); err != nil {
			return err
		}
		refs = append(refs, t)
		return nil
	}, `SELECT `+threadColumns+` FROM `+threadTables+` WHERE `+cond, a...)
	return refs, err
}

// readThread reads a whole thread, and up to which event it was loaded before.
func readThread(ctx context.Context, r runner, cond string, a ...any) (*Thread, int64, error) {
	var t Thread
	var loaded, now int64
	dest := append(refDest(&t.ThreadRef), &t.State, &t.MaxComment, &t.AuditChain, &loaded, &now)
	err := r.one(ctx, `SELECT `+threadColumns+`, t.state, t.max_comment,
		coalesce((SELECT max(a.chain) FROM audit a WHERE a.thread = t.id), 0), t.loaded, CAST({now} AS BIGINT) FROM `+threadTables+` WHERE `+cond, a, dest...)
	if err != nil {
		return nil, 0, err
	}
	t.Now = fromMillis(now)
	if t.Events, err = readEvents(ctx, r, `e.thread = ? AND e.status = 'waiting' ORDER BY e.ord, e.id LIMIT ?`, t.ID, maxLoad); err != nil {
		return nil, 0, fmt.Errorf("read its events: %w", err)
	}
	if t.Open, err = readAnswers(ctx, r, `thread = ? AND status IN ('pending', 'claimed') ORDER BY created_at, key`, t.ID); err != nil {
		return nil, 0, fmt.Errorf("read its answers: %w", err)
	}
	if t.Records, err = readObjects(ctx, r, `thread = ? AND keep`, t.ID); err != nil {
		return nil, 0, fmt.Errorf("read its records: %w", err)
	}
	return &t, loaded, nil
}

func readEvents(ctx context.Context, r runner, cond string, a ...any) (events []Event, err error) {
	err = r.each(ctx, func(rows *sql.Rows) error {
		var e Event
		if err := scanEvent(rows, &e); err != nil {
			return err
		}
		events = append(events, e)
		return nil
	}, `SELECT `+eventColumns+` FROM events e WHERE `+cond, a...)
	return events, err
}

const eventColumns = `e.id, e.kind, e.object, e.action, e.ord, e.sender_id, e.sender_login, e.author_id, e.author_login,
	e.body_sha, e.source, e.received_at, e.tries, e.next_at`

// scanEvent reads eventColumns and whatever is selected after them.
func scanEvent(rows *sql.Rows, e *Event, more ...any) error {
	var received, next int64
	var sha []byte
	dest := append([]any{&e.ID, &e.Object.Kind, &e.Object.ID, &e.Action, &e.Ord, &e.Sender.ID, &e.Sender.Login,
		&e.Author.ID, &e.Author.Login, &sha, &e.Source, &received, &e.Tries, &next}, more...)
	if err := rows.Scan(dest...); err != nil {
		return err
	}
	copy(e.BodySHA[:], sha)
	e.ReceivedAt, e.NextAt = fromMillis(received), fromMillis(next)
	return nil
}

func (l *ledger) Object(ctx context.Context, thread int64, o forge.Object) (obj Object, err error) {
	err = l.e.read(ctx, func(r runner) error {
		objs, err := readObjects(ctx, r, `thread = ? AND kind = ? AND id = ?`, thread, string(o.Kind), o.ID)
		if err != nil {
			return err
		}
		if len(objs) == 0 {
			return ErrNotFound
		}
		obj = objs[0]
		return nil
	})
	if err != nil {
		return Object{}, fmt.Errorf("read %s %d of thread %d: %w", o.Kind, o.ID, thread, err)
	}
	return obj, nil
}

func (l *ledger) Objects(ctx context.Context, thread int64) (objs []Object, err error) {
	err = l.e.read(ctx, func(r runner) error {
		objs, err = readObjects(ctx, r, `thread = ?`, thread)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read the objects of thread %d: %w", thread, err)
	}
	return objs, nil
}

func readObjects(ctx context.Context, r runner, cond string, a ...any) (objs []Object, err error) {
	err = r.each(ctx, func(rows *sql.Rows) error {
		var o Object
		var created, updated int64
		var sha []byte
		err := rows.Scan(&o.Kind, &o.ID, &o.Author.ID, &o.Author.Login, &o.OriginalAuthor, &sha,
			&created, &updated, &o.Deleted, &o.Keep, &o.Data)
		if err != nil {
			return err
		}
		copy(o.BodySHA[:], sha)
		o.CreatedAt, o.UpdatedAt = fromMillis(created), fromMillis(updated)
		objs = append(objs, o)
		return nil
	}, `SELECT kind, id, author_id, author_login, original_author, body_sha, created_at, updated_at, deleted, keep, data
		FROM objects WHERE `+cond+` ORDER BY CASE kind WHEN 'issue' THEN 0 ELSE 1 END, id`, a...)
	return objs, err
}

func (l *ledger) Attested(ctx context.Context, forgeName string, repo int64, o forge.Object, sha [32]byte) (attested bool, err error) {
	err = l.e.read(ctx, func(r runner) error {
		return r.one(ctx, `SELECT EXISTS (SELECT 1 FROM attested WHERE forge = ? AND repo = ? AND kind = ? AND object = ? AND sha = ?)`,
			args{forgeName, repo, string(o.Kind), o.ID, sha[:]}, &attested)
	})
	if err != nil {
		return false, fmt.Errorf("look whether %s %d of %s repository %d is attested: %w", o.Kind, o.ID, forgeName, repo, err)
	}
	return attested, nil
}

// knownGroup is how many objects one query of KnownObjects asks for. Always
// the same number, the last id repeated, so that there is one statement.
const knownGroup = 50

func (l *ledger) KnownObjects(ctx context.Context, forgeName string, repo int64, objs []forge.Object) (map[forge.Object]Known, error) {
	known := make(map[forge.Object]Known, len(objs))
	ids := map[forge.ObjectKind][]int64{}
	for _, o := range objs {
		ids[o.Kind] = append(ids[o.Kind], o.ID)
	}
	err := l.e.read(ctx, func(r runner) error {
		for kind, all := range ids {
			for len(all) > 0 {
				n := min(len(all), knownGroup)
				if err := readKnown(ctx, r, forgeName, repo, kind, all[:n], known); err != nil {
					return err
				}
				all = all[n:]
			}
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read what is known of %s repository %d: %w", forgeName, repo, err)
	}
	return known, nil
}

func readKnown(ctx context.Context, r runner, forgeName string, repo int64, kind forge.ObjectKind, ids []int64, known map[forge.Object]Known) error {
	a := args{forgeName, repo, string(kind)}
	for i := range knownGroup {
		a = append(a, ids[min(i, len(ids)-1)])
	}
	return r.each(ctx, func(rows *sql.Rows) error {
		var id, updated int64
		var sha []byte
		var k Known
		if err := rows.Scan(&id, &sha, &updated, &k.Deleted); err != nil {
			return err
		}
		copy(k.BodySHA[:], sha)
		k.UpdatedAt = fromMillis(updated)
		known[forge.Object{Kind: kind, ID: id}] = k
		return nil
	}, `SELECT o.id, o.body_sha, o.updated_at, o.deleted FROM objects o JOIN threads t ON t.id = o.thread
		WHERE t.forge = ? AND t.repo = ? AND o.kind = ? AND o.id IN (`+marks(knownGroup)+`)`, a...)
}

func (l *ledger) AnswerByComment(ctx context.Context, thread, comment int64) (a Answer, err error) {
	err = l.e.read(ctx, func(r runner) error {
		found, err := readAnswers(ctx, r, `thread = ? AND comment_id = ? AND status = 'posted'`, thread, comment)
		if err == nil && len(found) == 0 {
			err = ErrNotFound
		}
		if err == nil {
			a = found[0]
		}
		return err
	})
	if err != nil {
		return Answer{}, fmt.Errorf("read the answer that is comment %d of thread %d: %w", comment, thread, err)
	}
	return a, nil
}

func (l *ledger) Posted(ctx context.Context, thread, account int64, since time.Time) (byAccount, byLow int, err error) {
	err = l.e.read(ctx, func(r runner) error {
		return r.one(ctx, `SELECT coalesce(sum(CASE WHEN account = ? THEN 1 ELSE 0 END), 0), coalesce(sum(CASE WHEN low THEN 1 ELSE 0 END), 0)
			FROM answers WHERE thread = ? AND created_at >= ? AND status <> 'dead'`,
			args{account, thread, millis(since)}, &byAccount, &byLow)
	})
	if err != nil {
		return 0, 0, fmt.Errorf("count the answers of thread %d: %w", thread, err)
	}
	return byAccount, byLow, nil
}
