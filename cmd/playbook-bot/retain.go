package main

import (
	"context"
	"errors"
	"time"

	"playbook-bot/bot/store"
)

// retainEvery is how often what is older than RETAIN is dropped, all replicas
// together.
const retainEvery = time.Hour

// retainKey holds when a replica last took the turn, by the database's clock.
const retainKey = "retention:turn"

// retain drops what finished longer than RETAIN ago, at start and then every
// hour, on one replica at a time.
func (v *service) retain(ctx context.Context) {
	t := time.NewTicker(retainEvery)
	defer t.Stop()
	for {
		if err := retainOnce(ctx, v.db, v.s.Retain); err != nil && ctx.Err() == nil {
			v.log.Error("cannot drop what is older than RETAIN", "error", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-t.C:
		}
	}
}

// retainOnce prunes if it is anybody's turn. The turn is a lease that ends by
// itself, shortly before the next tick. It only spares the others the work:
// where two take it at once no harm is done, so it needs no lock.
func retainOnce(ctx context.Context, db store.Store, age time.Duration) error {
	now, err := db.Now(ctx)
	if err != nil {
		return err
	}
	last, err := db.Meta(ctx, retainKey)
	if err != nil {
		return err
	}
	taken, err := time.Parse(time.RFC3339Nano, last)
	since := now.Sub(taken)
	if err == nil && since >= 0 && since < retainEvery-time.Minute {
		return nil
	}
	if err := db.SetMeta(ctx, retainKey, now.Format(time.RFC3339Nano)); err != nil {
		return err
	}
	if _, err := db.Prune(ctx, now.Add(-age)); err != nil {
		// Another may try; until then the lease would keep all from it.
		return errors.Join(err, db.SetMeta(context.WithoutCancel(ctx), retainKey, ""))
	}
	return nil
}
