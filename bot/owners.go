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
	m  map[standingKey]ownerEntry
}

// ownerEntry is the id of a repository's owner; 0: the ledger, asked at that
// time, knew nothing.
type ownerEntry struct {
	id int64
	at time.Time
}

// unsaidAge is how long the ledger is not asked again whose a repository is: it
// is asked with every delivery until the forge, or another replica, has said.
const unsaidAge = time.Second

// get reports known where the ledger need not be asked.
func (o *owners) get(key standingKey) (owner int64, known bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	e := o.m[key]
	return e.id, e.id != 0 || time.Since(e.at) < unsaidAge
}

// set keeps an owner, or that the ledger knew none: the forge may have said one
// while it was asked.
func (o *owners) set(key standingKey, owner int64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if owner == 0 && o.m[key].id != 0 {
		return
	}
	if o.m == nil || len(o.m) > 10_000 { // a bound, not a policy: the ledger has them
		o.m = map[standingKey]ownerEntry{}
	}
	o.m[key] = ownerEntry{owner, time.Now()}
}

func ownerMeta(key standingKey) string { return fmt.Sprintf("owner:%s:%d", key.forge, key.repo) }

// belongs keeps what the forge said of a repository's owner. The ledger has it
// as well, for the deliveries that come before the next process has met the
// forge.
func (b *Bot) belongs(ctx context.Context, forgeName string, r forge.Repo) {
	key := standingKey{forge: forgeName, repo: r.ID}
	if known, _ := b.owners.get(key); r.ID == 0 || r.OwnerID == 0 || known == r.OwnerID {
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
	if id, known := b.owners.get(key); known {
		return id, nil
	}
	raw, err := b.Ledger.Meta(ctx, ownerMeta(key))
	if err != nil {
		return 0, fmt.Errorf("read whose repository %d is: %w", key.repo, err)
	}
	id, err := strconv.ParseInt(raw, 10, 64)
	if err != nil {
		id = 0 // nothing was said
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
