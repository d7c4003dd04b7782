package store

import (
	"context"
	"fmt"

	"playbook-bot/bot/forge"
)

// Seen reports whether an object's creation was ever taken in. One that was,
// and is not stored as an object, ended without being read: it is dead, or
// was gone when it was looked for.
func (l *ledger) Seen(ctx context.Context, forgeName string, repo int64, o forge.Object) (seen bool, err error) {
	err = l.e.read(ctx, func(r runner) error {
		return r.one(ctx, `SELECT EXISTS (SELECT 1 FROM seen WHERE forge = ? AND repo = ? AND kind = ? AND object = ?)`,
			args{forgeName, repo, string(o.Kind), o.ID}, &seen)
	})
	if err != nil {
		return false, fmt.Errorf("look whether %s %d of %s repository %d was seen: %w", o.Kind, o.ID, forgeName, repo, err)
	}
	return seen, nil
}
