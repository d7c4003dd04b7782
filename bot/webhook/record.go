package webhook

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"sync"
	"time"
)

// Record is what is known of the last deliveries to one hook's path. Gitea has
// no call for past deliveries, so the bot keeps its own.
type Record struct {
	// AcceptedAt is when the last one came that was verified and taken, be it
	// to do nothing about it; zero: none ever.
	AcceptedAt time.Time `json:"accepted_at,omitzero"`
	// RefusedAt is when the last one came that was not; Status and Why are its
	// answer. It need not be the forge's: anybody can send to the path.
	RefusedAt time.Time `json:"refused_at,omitzero"`
	Status    int       `json:"status,omitempty"`
	Why       string    `json:"why,omitempty"`
}

// Keeper keeps small values by key. The bot's store is one.
type Keeper interface {
	Meta(ctx context.Context, key string) (string, error)
	SetMeta(ctx context.Context, key, value string) error
}

func recordKey(path string) string { return "delivery:" + path }

// ReadRecord reads the record of a hook's path (HookPath); the zero Record if
// no delivery came.
func ReadRecord(ctx context.Context, k Keeper, path string) (Record, error) {
	var rec Record
	text, err := k.Meta(ctx, recordKey(path))
	if err != nil {
		return rec, fmt.Errorf("read the last delivery: %w", err)
	}
	if text == "" {
		return rec, nil
	}
	if err := json.Unmarshal([]byte(text), &rec); err != nil {
		return rec, fmt.Errorf("read the last delivery: %w", err)
	}
	return rec, nil
}

const (
	// recordEvery is the least time between two writes of a Recorder: what
	// comes in between is written together.
	recordEvery = time.Second
	// maxRefused bounds how many paths are kept that only refused deliveries
	// came to: those cost their sender nothing.
	maxRefused = 64
)

// Recorder keeps the Record of each path. Noting never waits for the database,
// so that a delivery's answer does not.
type Recorder struct {
	keep Keeper
	log  *slog.Logger
	now  func() time.Time

	mu      sync.Mutex
	dirty   map[string]Record
	refused map[string]bool // paths without an accepted delivery so far
	wake    chan struct{}
}

// NewRecorder makes a Recorder; nothing is written before Run. log may be nil,
// and so may now, for time.Now.
func NewRecorder(keep Keeper, log *slog.Logger, now func() time.Time) *Recorder {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	if now == nil {
		now = time.Now
	}
	return &Recorder{keep: keep, log: log, now: now,
		dirty: map[string]Record{}, refused: map[string]bool{}, wake: make(chan struct{}, 1)}
}

// Note takes a delivery's outcome in; it is a Config.Record.
func (r *Recorder) Note(path string, status int, why string) {
	accepted := status/100 == 2
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case accepted:
		delete(r.refused, path)
	case status == http.StatusServiceUnavailable:
		return // the database is away: nothing could be written, nor is the hook at fault
	case len(r.refused) >= maxRefused && !r.refused[path]:
		return
	default:
		r.refused[path] = true
	}
	rec, now := r.dirty[path], r.now().UTC().Truncate(time.Millisecond)
	if accepted {
		rec.AcceptedAt = now
	} else {
		rec.RefusedAt, rec.Status, rec.Why = now, status, why
	}
	r.dirty[path] = rec
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// Run writes what is noted, at once and then at most every second, until ctx
// ends; what is left is written then.
func (r *Recorder) Run(ctx context.Context) {
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case <-r.wake:
			r.write(ctx)
			pause := time.NewTimer(recordEvery)
			select {
			case <-ctx.Done():
			case <-pause.C:
			}
			pause.Stop()
		}
	}
	r.write(ctx)
}

// write writes the noted records over what is kept. What cannot be written is
// dropped: the next delivery brings another.
func (r *Recorder) write(ctx context.Context) {
	// The end of the process is no reason to lose what was noted before it.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*recordEvery)
	defer cancel()
	r.mu.Lock()
	dirty := r.dirty
	r.dirty = map[string]Record{}
	r.mu.Unlock()
	for path, rec := range dirty {
		if err := r.merge(ctx, path, rec); err != nil {
			r.log.WarnContext(ctx, "cannot keep the time of the last delivery", "error", err)
		}
	}
}

// merge keeps the newer of each half. Two replicas may both write; one may be
// lost, which costs no more than a delivery's time.
func (r *Recorder) merge(ctx context.Context, path string, rec Record) error {
	kept, err := ReadRecord(ctx, r.keep, path)
	if err != nil {
		return err
	}
	if rec.AcceptedAt.After(kept.AcceptedAt) {
		kept.AcceptedAt = rec.AcceptedAt
	}
	if rec.RefusedAt.After(kept.RefusedAt) {
		kept.RefusedAt, kept.Status, kept.Why = rec.RefusedAt, rec.Status, rec.Why
	}
	text, err := json.Marshal(kept)
	if err != nil {
		return err
	}
	return r.keep.SetMeta(ctx, recordKey(path), string(text))
}
