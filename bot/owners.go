package bot

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"time"

	"playbook-bot/bot/forge"
)

// owners knows whom repositories belong to, by the forge's own word.
//
// An organisation's hook signs for all its repositories, and which these are
// only its payloads say: the owners of one organisation, who know its hook's
// secret, could sign for a repository of another by writing their own id beside
// its. So what a delivery says of a repository's owner is held against this.
type owners struct {
	mu sync.Mutex
	m  map[standingKey]int64
	// unsaid are repositories of which the ledger knew nothing when last asked.
	unsaid map[standingKey]time.Time
}

// unsaidAge is how long the ledger is not asked again whose a repository is: it
// is asked with every delivery until the forge, or another replica, has said.
const unsaidAge = time.Second

func (o *owners) get(key standingKey) int64 {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.m[key]
}

func (o *owners) set(key standingKey, owner int64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.m == nil || len(o.m) > 10_000 { // a bound, not a policy: the ledger has them
		o.m = map[standingKey]int64{}
	}
	o.m[key] = owner
}

// silent reports whether the ledger knew nothing a moment ago.
func (o *owners) silent(key standingKey) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return time.Since(o.unsaid[key]) < unsaidAge
}

func (o *owners) noteSilent(key standingKey) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.unsaid == nil || len(o.unsaid) > 10_000 {
		o.unsaid = map[standingKey]time.Time{}
	}
	o.unsaid[key] = time.Now()
}

func ownerMeta(key standingKey) string { return fmt.Sprintf("owner:%s:%d", key.forge, key.repo) }

// belongs keeps what the forge said of a repository's owner. The ledger has it
// as well, for the deliveries that come before the next process has met the
// forge.
func (b *Bot) belongs(ctx context.Context, forgeName string, r forge.Repo) {
	key := standingKey{forge: forgeName, repo: r.ID}
	if r.ID == 0 || r.OwnerID == 0 || b.owners.get(key) == r.OwnerID {
		return
	}
	if err := b.Ledger.SetMeta(ctx, ownerMeta(key), strconv.FormatInt(r.OwnerID, 10)); err != nil {
		b.Log.WarnContext(ctx, "cannot keep whose a repository is", "forge", forgeName, "repo", r.ID, "error", err)
		return // asked for again at the next look
	}
	b.owners.set(key, r.OwnerID)
}

// owner is the id of a repository's owner as last heard from the forge, 0 where
// it has never said.
func (b *Bot) owner(ctx context.Context, key standingKey) (int64, error) {
	if id := b.owners.get(key); id != 0 {
		return id, nil
	}
	if b.owners.silent(key) {
		return 0, nil
	}
	raw, err := b.Ledger.Meta(ctx, ownerMeta(key))
	if err != nil {
		return 0, fmt.Errorf("read whose repository %d is: %w", key.repo, err)
	}
	id, err := strconv.ParseInt(raw, 10, 64)
	if err != nil {
		b.owners.noteSilent(key)
		return 0, nil
	}
	b.owners.set(key, id)
	return id, nil
}

// ownerTimeout bounds the one question to the forge that taking in may need:
// the sender waits 5 s.
const ownerTimeout = 3 * time.Second

// truly reports whether a delivery names its repository's owner. Only where it
// names another than was known is the forge asked: the repository may just have
// been transferred.
func (b *Bot) truly(ctx context.Context, e forge.Event) (bool, error) {
	key := standingKey{forge: e.Forge, repo: e.Repo.ID}
	known, err := b.owner(ctx, key)
	if err != nil {
		return false, err
	}
	f, ok := b.Forges[e.Forge]
	if !ok || known == 0 || e.Repo.OwnerID == 0 || known == e.Repo.OwnerID {
		return true, nil
	}
	ctx, cancel := context.WithTimeout(ctx, ownerTimeout)
	defer cancel()
	r, err := f.RepoByID(ctx, e.Repo.ID)
	if err != nil {
		return false, fmt.Errorf("ask whose repository %d is: %w", e.Repo.ID, err)
	}
	b.belongs(ctx, e.Forge, r)
	return r.OwnerID == e.Repo.OwnerID, nil
}
