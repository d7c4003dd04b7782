package bot

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"playbook-bot/bot/forge"
	"playbook-bot/playbook"
)

// standingAge is how long an answer about permissions may be used again; an
// approval always asks afresh. Errors are never kept.
const standingAge = time.Minute

// look is one answer about an account's standing. Err is why the permission
// could not be read; then the standing is unknown, but for roles.
type look struct {
	Standing playbook.Standing
	Err      error
	// RoleErr is why a role could not be looked up.
	RoleErr error
	// Asked: all of it comes from the forge and nothing from a cache.
	Asked bool
	// Stranger: the login belongs to another account now.
	Stranger bool
}

// rolesUnread reports whether a role may be there that could only not be read
// just now.
func (l look) rolesUnread() bool {
	return l.Err == nil && look{Err: l.RoleErr}.passing()
}

// status is the HTTP status behind an unreadable standing, 0 for no answer.
func (l look) status() int {
	var e *forge.Error
	if errors.As(l.Err, &e) {
		return e.Status
	}
	return 0
}

// passing reports whether the error may be gone in a moment: then a first
// answer waits for it, up to undecidedAfter.
func (l look) passing() bool {
	return l.Err != nil && (errors.Is(l.Err, forge.ErrRetry) || l.status() == 401)
}

// wait is how long the forge asks to be left alone.
func (l look) wait() time.Duration {
	var e *forge.Error
	if errors.As(l.Err, &e) {
		return e.RetryAfter
	}
	return 0
}

type standingKey struct {
	forge   string
	repo    int64
	account int64
}

type standingCache struct {
	b  *Bot
	mu sync.Mutex
	m  map[standingKey]cachedPermission
}

type cachedPermission struct {
	p  playbook.Permission
	at time.Time
}

func newStandingCache(b *Bot) *standingCache {
	return &standingCache{b: b, m: map[standingKey]cachedPermission{}}
}

// look gives the standing of an account in a repository: never from a
// payload, and only where the account that the forge answered for is the one
// asked about.
func (c *standingCache) look(ctx context.Context, forgeName string, repo forge.Repo, a forge.Account, fresh bool) look {
	roles, roleErr := c.b.roles.of(ctx, forgeName, a, fresh)
	key := standingKey{forgeName, repo.ID, a.ID}
	now := c.b.Now()
	if !fresh {
		c.mu.Lock()
		hit, ok := c.m[key]
		c.mu.Unlock()
		if ok && now.Sub(hit.at) < standingAge && !now.Before(hit.at) {
			return look{Standing: playbook.Standing{Permission: hit.p, Roles: roles}, RoleErr: roleErr}
		}
	}
	unknown := playbook.Standing{Permission: playbook.PermissionUnknown, Roles: roles}
	if !a.Real() {
		return look{Standing: playbook.Standing{Permission: playbook.PermissionNone, Roles: []string{}}}
	}
	p, id, err := c.b.Forges[forgeName].Permission(ctx, repo.ID, a.Login)
	if err != nil {
		return look{Standing: unknown, Err: err, RoleErr: roleErr}
	}
	if id != a.ID {
		// The login has changed hands since the text was written. Whoever has
		// it now did not write it.
		return look{Standing: playbook.Standing{Permission: playbook.PermissionNone, Roles: roles}, Stranger: true}
	}
	have := permission(p)
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.m) > 10_000 {
		clear(c.m) // a bound, not a policy: the next look-ups fill it again
	}
	c.m[key] = cachedPermission{have, now}
	return look{Standing: playbook.Standing{Permission: have, Roles: roles}, RoleErr: roleErr,
		Asked: fresh || len(c.b.Playbook.RoleMembers()) == 0}
}

func permission(p forge.Permission) playbook.Permission {
	switch p {
	case forge.PermissionOwner:
		return playbook.PermissionOwner
	case forge.PermissionAdmin:
		return playbook.PermissionAdmin
	case forge.PermissionWrite:
		return playbook.PermissionWrite
	case forge.PermissionRead:
		return playbook.PermissionRead
	}
	return playbook.PermissionNone
}

// roleCache resolves the playbook's roles. A role given to a login is bound
// to the account that bears the login when the bot first asks, and stays with
// its id: whoever takes the login later does not get the role.
type roleCache struct {
	b     *Bot
	mu    sync.Mutex
	ids   map[string]int64 // forge + login → account id
	teams map[teamKey]teamAnswer
}

type teamKey struct {
	forge, team string
	account     int64
}

type teamAnswer struct {
	in bool
	at time.Time
}

func newRoleCache(b *Bot) *roleCache {
	return &roleCache{b: b, ids: map[string]int64{}, teams: map[teamKey]teamAnswer{}}
}

// resolve binds the role logins to account ids. What cannot be asked now is
// asked at first use.
func (c *roleCache) resolve(ctx context.Context, forgeName string) {
	for _, m := range c.b.Playbook.RolesOn(forgeName) {
		if !strings.Contains(m.Member, "/") {
			c.account(ctx, forgeName, m.Member)
		}
	}
}

func (c *roleCache) account(ctx context.Context, forgeName, login string) int64 {
	key := forgeName + "\x00" + strings.ToLower(login)
	c.mu.Lock()
	id, ok := c.ids[key]
	c.mu.Unlock()
	if ok {
		return id
	}
	a, err := c.b.Forges[forgeName].AccountByLogin(ctx, login)
	if err != nil && !errors.Is(err, forge.ErrNotFound) {
		return 0 // asked again at the next use; nobody has the role meanwhile
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if id, ok := c.ids[key]; ok {
		return id
	}
	c.ids[key] = a.ID
	return a.ID
}

// of gives the roles of an account, never nil; err is why some could not be
// looked up.
func (c *roleCache) of(ctx context.Context, forgeName string, a forge.Account, fresh bool) (roles []string, err error) {
	roles = []string{}
	if !a.Real() {
		return roles, nil
	}
	for _, m := range c.b.Playbook.RolesOn(forgeName) {
		if slices.Contains(roles, m.Role) {
			continue
		}
		if org, team, ok := strings.Cut(m.Member, "/"); ok {
			in, merr := c.member(ctx, forgeName, org, team, a, fresh)
			if merr != nil {
				err = merr
			}
			if in {
				roles = append(roles, m.Role)
			}
		} else if c.account(ctx, forgeName, m.Member) == a.ID {
			roles = append(roles, m.Role)
		}
	}
	return roles, err
}

// member asks whether the account is in a team.
func (c *roleCache) member(ctx context.Context, forgeName, org, team string, a forge.Account, fresh bool) (bool, error) {
	key := teamKey{forgeName, org + "/" + team, a.ID}
	now := c.b.Now()
	c.mu.Lock()
	hit, ok := c.teams[key]
	c.mu.Unlock()
	if ok && !fresh && now.Sub(hit.at) < standingAge {
		return hit.in, nil
	}
	in, err := c.b.Forges[forgeName].TeamMember(ctx, org, team, a.Login)
	if err != nil {
		return false, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.teams[key] = teamAnswer{in, now}
	return in, nil
}

// nameCache knows what repositories are called at present: state is keyed by
// id, but where the bot answers is configured by name.
type nameCache struct {
	b  *Bot
	mu sync.Mutex
	m  map[standingKey]cachedRepo
	// missing counts the answers in a row that there is no such repository.
	missing map[standingKey]int
}

type cachedRepo struct {
	repo forge.Repo
	at   time.Time
}

const nameAge = 10 * time.Minute

func newNameCache(b *Bot) *nameCache {
	return &nameCache{b: b, m: map[standingKey]cachedRepo{}, missing: map[standingKey]int{}}
}

// repo asks the forge for a repository's name, at most every ten minutes, and
// again where the name known is none of ours: a repository may just have been
// renamed into them. A payload's word for it is not taken: who knows one
// repository's hook secret could claim to be another. gone is true where the
// forge has said often enough that there is no such repository.
func (c *nameCache) repo(ctx context.Context, forgeName string, id int64) (r forge.Repo, gone bool, err error) {
	key := standingKey{forge: forgeName, repo: id}
	now := c.b.Now()
	c.mu.Lock()
	hit, ok := c.m[key]
	c.mu.Unlock()
	if ok && now.Sub(hit.at) < nameAge && !now.Before(hit.at) && c.b.answersIn(forgeName, hit.repo) {
		return hit.repo, false, nil
	}
	r, err = c.b.Forges[forgeName].RepoByID(ctx, id)
	if errors.Is(err, forge.ErrNotFound) || errors.Is(err, forge.ErrPermanent) {
		c.mu.Lock()
		defer c.mu.Unlock()
		gone = lasting(err, c.missing[key])
		c.missing[key]++
		return r, gone, err
	}
	if err != nil {
		return r, false, err
	}
	if err := c.b.Ledger.SaveRepo(ctx, forgeName, r); err != nil {
		return r, false, err
	}
	c.b.belongs(ctx, forgeName, r)
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.missing, key)
	c.m[key] = cachedRepo{r, now}
	return r, false, nil
}
