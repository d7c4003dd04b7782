package bot

import (
	"context"
	"crypto/sha256"
	"errors"
	"slices"
	"time"

	"playbook-bot/bot/forge"
	"playbook-bot/bot/store"
)

// Ledger is what the bot needs of its database; package store says what each
// method promises.
type Ledger interface {
	Accept(ctx context.Context, e store.Incoming) (bool, error)
	AcceptFound(ctx context.Context, found []store.Incoming) (taken int, err error)

	Acquire(ctx context.Context, owner string, lease time.Duration) (*store.Lease, error)
	NextWake(ctx context.Context) (time.Time, error)
	Wakes() <-chan struct{}
	Heartbeat(ctx context.Context, owner string, lease time.Duration) error
	Release(ctx context.Context, l *store.Lease) error
	ReleaseAll(ctx context.Context, owner string) error

	Load(ctx context.Context, l *store.Lease) (*store.Thread, error)
	Object(ctx context.Context, thread int64, o forge.Object) (store.Object, error)
	Objects(ctx context.Context, thread int64) ([]store.Object, error)
	Attested(ctx context.Context, forgeName string, repo int64, o forge.Object, sha [32]byte) (bool, error)
	Seen(ctx context.Context, forgeName string, repo int64, o forge.Object) (bool, error)
	Commit(ctx context.Context, l *store.Lease, c store.Change) error
	AnswerByComment(ctx context.Context, thread, comment int64) (store.Answer, error)
	ClaimAnswer(ctx context.Context, l *store.Lease, key string, after int64, ttl time.Duration) (store.Answer, error)
	Posted(ctx context.Context, thread, account int64, since time.Time) (byAccount, byLow int, err error)

	OpenThreads(ctx context.Context, forgeName string, repo int64) ([]store.ThreadRef, error)
	FindThread(ctx context.Context, forgeName string, repo, number int64) (*store.Thread, error)
	KnownObjects(ctx context.Context, forgeName string, repo int64, objs []forge.Object) (map[forge.Object]store.Known, error)
	ClaimFiling(ctx context.Context, c store.FilingClaim) (f store.Filing, claimed bool, err error)
	ReclaimFiling(ctx context.Context, f store.Filing, ttl time.Duration) (out store.Filing, ok bool, err error)
	SettleFiling(ctx context.Context, f store.Filing) (bound bool, err error)
	VoidFiling(ctx context.Context, key string) error
	Meta(ctx context.Context, key string) (string, error)
	SetMeta(ctx context.Context, key, value string) error
	SaveRepo(ctx context.Context, forgeName string, r forge.Repo) error
	Repos(ctx context.Context) ([]store.RepoRow, error)
	Now(ctx context.Context) (time.Time, error)
}

// bodySHA is how bodies are compared, byte for byte, without being kept.
func bodySHA(body string) [32]byte { return sha256.Sum256([]byte(body)) }

func isNotStored(err error) bool { return errors.Is(err, store.ErrNotFound) }

func sortObjects(os []*object) {
	slices.SortFunc(os, func(a, b *object) int { return compareObjects(a.Object.Object, b.Object.Object) })
}
