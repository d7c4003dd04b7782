package store

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"

	"playbook-bot/bot/forge"
)

// place names a thread from outside.
type place struct {
	forge        string
	repo, number int64
}

// key names a text of a repository.
type key struct {
	forge string
	repo  int64
	forge.Object
}

func (in Incoming) place() place { return place{in.Forge, in.Repo.ID, in.Number} }
func (in Incoming) key() key     { return key{in.Forge, in.Repo.ID, in.Object} }

// comment is the comment's id, 0 for an event about the issue.
func (in Incoming) comment() int64 {
	if in.Object.Kind == forge.ObjectComment {
		return in.Object.ID
	}
	return 0
}

// touched is what is needed of a thread's row that is locked.
type touched struct {
	id, maxComment, loaded int64
}

// ord is the event's place in its thread; see Event.Ord.
func (in Incoming) ord(t touched) int64 {
	switch {
	case in.Object.Kind == forge.ObjectComment:
		return in.Object.ID
	case in.Action == forge.ActionOpened:
		return 0
	}
	return t.maxComment
}

// intake writes the events of a group that is in order of thread, and sets
// taken of each. A thread's row is locked before anything else is written of
// it, and is what makes two events of one thread come one after the other on
// PostgreSQL.
func intake(ctx context.Context, tx runner, group []*arrival) (wake bool, err error) {
	for len(group) > 0 {
		n := 0
		for n < len(group) && group[n].in.once() {
			n++
		}
		if n > 0 {
			err = takeOnce(ctx, tx, group[:n])
		} else {
			n = 1
			group[0].taken, err = takeHint(ctx, tx, group[0].in)
		}
		if err != nil {
			return false, err
		}
		for _, a := range group[:n] {
			wake = wake || a.taken
		}
		group = group[n:]
	}
	return wake, nil
}

// takeOnce takes in events that are taken once for ever, with as many
// statements for sixteen as for one: on PostgreSQL each is a round trip.
func takeOnce(ctx context.Context, tx runner, run []*arrival) error {
	threads, err := lockOrMake(ctx, tx, run)
	if err != nil {
		return fmt.Errorf("lock the thread: %w", err)
	}
	fresh, err := markSeen(ctx, tx, run)
	if err != nil {
		return fmt.Errorf("note the event as seen: %w", err)
	}
	if err := attest(ctx, tx, run); err != nil {
		return fmt.Errorf("note the body as attested: %w", err)
	}
	var events [][]any
	var again []Incoming
	wake := map[int64]bool{}
	for _, a := range run {
		if a.taken = fresh[a.in.key()]; !a.taken {
			again = append(again, a.in)
			continue
		}
		delete(fresh, a.in.key()) // the group may hold it twice
		t := touched{id: threads[a.in.place()]}
		events = append(events, eventRow(t, a.in))
		wake[t.id] = true
	}
	if err := insertEvents(ctx, tx, events); err != nil {
		return err
	}
	if err := wakeNow(ctx, tx, wake); err != nil {
		return fmt.Errorf("wake the thread: %w", err)
	}
	for _, in := range again {
		if err := vouch(ctx, tx, threads[in.place()], in); err != nil {
			return fmt.Errorf("vouch for the event found: %w", err)
		}
	}
	return nil
}

// lockOrMake locks the rows of the run's threads, in order, and makes those
// that are missing. They are not woken: an event seen before is no reason.
func lockOrMake(ctx context.Context, tx runner, run []*arrival) (map[place]int64, error) {
	greatest := map[place]int64{}
	for _, a := range run {
		greatest[a.in.place()] = max(greatest[a.in.place()], a.in.comment())
	}
	ids := make(map[place]int64, len(greatest))
	var rows [][]any
	for _, a := range run {
		p := a.in.place()
		if _, done := ids[p]; done {
			continue
		}
		ids[p] = 0
		rows = append(rows, []any{p.forge, p.repo, p.number, a.in.Pull, greatest[p]})
	}
	err := tx.rows(ctx, `INSERT INTO threads (forge, repo, number, pull, max_comment) VALUES `, `(?, ?, ?, ?, ?)`,
		` ON CONFLICT (forge, repo, number) DO UPDATE SET
			max_comment = CASE WHEN threads.max_comment > excluded.max_comment THEN threads.max_comment ELSE excluded.max_comment END
		RETURNING id, forge, repo, number`, rows, func(r *sql.Rows) error {
			var id int64
			var p place
			if err := r.Scan(&id, &p.forge, &p.repo, &p.number); err != nil {
				return err
			}
			ids[p] = id
			return nil
		})
	return ids, err
}

// markSeen returns which of the run's events were not seen before.
func markSeen(ctx context.Context, tx runner, run []*arrival) (map[key]bool, error) {
	rows := make([][]any, len(run))
	for i, a := range run {
		rows[i] = []any{a.in.Forge, a.in.Repo.ID, string(a.in.Object.Kind), a.in.Object.ID}
	}
	fresh := make(map[key]bool, len(run))
	err := tx.rows(ctx, `INSERT INTO seen (forge, repo, kind, object) VALUES `, `(?, ?, ?, ?)`,
		` ON CONFLICT DO NOTHING RETURNING forge, repo, kind, object`, rows, func(r *sql.Rows) error {
			var k key
			if err := r.Scan(&k.forge, &k.repo, &k.Kind, &k.ID); err != nil {
				return err
			}
			fresh[k] = true
			return nil
		})
	return fresh, err
}

func attest(ctx context.Context, tx runner, run []*arrival) error {
	var rows [][]any
	for _, a := range run {
		if a.in.attests() {
			rows = append(rows, []any{a.in.Forge, a.in.Repo.ID, string(a.in.Object.Kind), a.in.Object.ID, a.in.BodySHA[:]})
		}
	}
	return tx.rows(ctx, `INSERT INTO attested (forge, repo, kind, object, sha) VALUES `, `(?, ?, ?, ?, ?)`,
		` ON CONFLICT DO NOTHING`, rows, nil)
}

func eventRow(t touched, in Incoming) []any {
	return []any{t.id, string(in.Object.Kind), in.Object.ID, string(in.Action), in.ord(t), in.Sender.ID, in.Sender.Login,
		in.Author.ID, in.Author.Login, in.BodySHA[:], in.Source, in.Delivery}
}

func insertEvents(ctx context.Context, tx runner, rows [][]any) error {
	err := tx.rows(ctx, `INSERT INTO events (thread, kind, object, action, ord, sender_id, sender_login,
			author_id, author_login, body_sha, source, delivery, received_at, next_at) VALUES `,
		`(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, {now}, {now})`, ``, rows, nil)
	if err != nil {
		return fmt.Errorf("write the event: %w", err)
	}
	return nil
}

// wakeNow sets wake_at of threads that are locked.
func wakeNow(ctx context.Context, tx runner, threads map[int64]bool) error {
	var ids [][]any
	for id := range threads {
		ids = append(ids, []any{id})
	}
	return tx.rows(ctx, `UPDATE threads SET wake_at = CASE WHEN wake_at < {now} THEN wake_at ELSE {now} END WHERE id IN (`, `?`, `)`,
		ids, nil)
}

// vouch is for an event seen before. If it was finished there is nothing to
// do; if not, its row is still there and will be worked on: but if it was a
// sweep that found it, it now has the word of a delivery.
func vouch(ctx context.Context, tx runner, thread int64, in Incoming) error {
	if in.Source == SourceSweep {
		return nil
	}
	_, err := tx.exec(ctx, `UPDATE events SET sender_id = ?, sender_login = ?, author_id = ?, author_login = ?,
			body_sha = ?, source = ?, delivery = ?
		WHERE thread = ? AND status = 'waiting' AND ord = ? AND kind = ? AND object = ? AND action = ? AND source = 'sweep'`,
		in.Sender.ID, in.Sender.Login, in.Author.ID, in.Author.Login, in.BodySHA[:], in.Source, in.Delivery,
		thread, in.ord(touched{}), string(in.Object.Kind), in.Object.ID, string(in.Action))
	return err
}

// takeHint takes in an event of which there may be many.
func takeHint(ctx context.Context, tx runner, in Incoming) (taken bool, err error) {
	t, err := touch(ctx, tx, in)
	if err != nil {
		return false, fmt.Errorf("lock the thread: %w", err)
	}
	if err := attest(ctx, tx, []*arrival{{in: in}}); err != nil {
		return false, fmt.Errorf("note the body as attested: %w", err)
	}
	merged, err := merge(ctx, tx, t, in)
	if err != nil || merged {
		return false, err
	}
	return true, insertEvents(ctx, tx, [][]any{eventRow(t, in)})
}

// touch locks the thread's row, made if need be, and wakes it.
func touch(ctx context.Context, tx runner, in Incoming) (t touched, err error) {
	err = tx.one(ctx, `INSERT INTO threads (forge, repo, number, pull, max_comment, wake_at) VALUES (?, ?, ?, ?, ?, {now})
		ON CONFLICT (forge, repo, number) DO UPDATE SET
			wake_at = CASE WHEN threads.wake_at < excluded.wake_at THEN threads.wake_at ELSE excluded.wake_at END,
			max_comment = CASE WHEN threads.max_comment > excluded.max_comment THEN threads.max_comment ELSE excluded.max_comment END
		RETURNING id, max_comment, loaded`,
		args{in.Forge, in.Repo.ID, in.Number, in.Pull, in.comment()}, &t.id, &t.maxComment, &t.loaded)
	return t, err
}

// merge lets a hint go that says no more than one already waiting: the newest
// event of its object, at the same place in the thread, with the same action
// and sender, which no worker has seen. Anything less would lose something: a
// reopening between two closings, a command between them, an edit that came
// after a worker had read the text, whose hand it was.
func merge(ctx context.Context, tx runner, t touched, in Incoming) (bool, error) {
	var (
		id, tries, sender int64
		action, source    string
		sha               []byte
	)
	err := tx.one(ctx, `SELECT id, action, tries, sender_id, source, body_sha FROM events
		WHERE thread = ? AND status = 'waiting' AND ord = ? AND kind = ? AND object = ? ORDER BY id DESC LIMIT 1`,
		args{t.id, in.ord(t), string(in.Object.Kind), in.Object.ID}, &id, &action, &tries, &sender, &source, &sha)
	switch {
	case errors.Is(err, ErrNotFound):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("look for an equal hint: %w", err)
	}
	if action != string(in.Action) || tries > 0 || id <= t.loaded {
		return false, nil
	}
	if in.Source == SourceSweep {
		return true, nil // a sweep knows no more than that there is something
	}
	if source != SourceSweep && sender != in.Sender.ID {
		return false, nil
	}
	if source != SourceSweep && in.Author.ID == 0 && bytes.Equal(sha, in.BodySHA[:]) {
		return true, nil // it vouches for nothing (a title was edited), and the one waiting may
	}
	_, err = tx.exec(ctx, `UPDATE events SET sender_id = ?, sender_login = ?, author_id = ?, author_login = ?,
			body_sha = ?, source = ?, delivery = ? WHERE id = ?`,
		in.Sender.ID, in.Sender.Login, in.Author.ID, in.Author.Login, in.BodySHA[:], in.Source, in.Delivery, id)
	if err != nil {
		return false, fmt.Errorf("merge with an equal hint: %w", err)
	}
	return true, nil
}
