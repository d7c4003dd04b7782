package gitea

import (
	"context"
	"errors"
	"strings"
	"sync"
	"time"

	sdk "code.gitea.io/sdk/gitea"

	"playbook-bot/bot/forge"
	"playbook-bot/bot/forge/internal/wire"
)

// pageSize is asked for wherever a listing is paged; Gitea gives at most 50.
const pageSize = 50

// trustName is how long a cached name is used by calls whose answer cannot
// show whose repository it was. A name may be given to another repository
// after a rename, and then answers 200 instead of 301: a comment would land in
// the wrong one. In the ordinary course the trigger is read first, which
// proves the name (see proved) and costs nothing more.
const trustName = time.Minute

// trustAbsence is how recent the proof for a name must be for "there is no such
// file" to be believed under it without asking again whose name it is.
const trustAbsence = 2 * time.Second

// errMoved is given by a call that found that its name leads to another
// repository.
var errMoved = errors.New("the name leads to another repository")

// repoEntry is what a repository id was called when last looked up.
type repoEntry struct {
	repo forge.Repo
	// proved is when the name was last seen to lead to the id.
	proved time.Time
	// importedUntil is non-zero for a repository that was migrated: texts from
	// before it were imported. See toComment.
	importedUntil time.Time
}

type repoCache struct {
	mu   sync.Mutex
	byID map[int64]repoEntry
}

func (rc *repoCache) get(id int64) (repoEntry, bool) {
	rc.mu.Lock()
	defer rc.mu.Unlock()
	e, ok := rc.byID[id]
	return e, ok
}

func (rc *repoCache) put(e repoEntry) {
	rc.mu.Lock()
	defer rc.mu.Unlock()
	if rc.byID == nil {
		rc.byID = map[int64]repoEntry{}
	}
	rc.byID[e.repo.ID] = e
}

func (rc *repoCache) drop(id int64) {
	rc.mu.Lock()
	defer rc.mu.Unlock()
	delete(rc.byID, id)
}

// proved notes that repo's name led to its id at this time.
func (rc *repoCache) prove(repo forge.Repo, at time.Time) {
	rc.mu.Lock()
	defer rc.mu.Unlock()
	e, ok := rc.byID[repo.ID]
	if ok && e.repo.Owner == repo.Owner && e.repo.Name == repo.Name && at.After(e.proved) {
		e.proved = at
		rc.byID[repo.ID] = e
	}
}

// Observe takes the name under which a verified delivery speaks of a
// repository. A name that differs from the cached one makes the next call
// resolve the id again; the same name counts as proof that it still holds.
// Without it everything works, with a call more after a minute of silence.
func (c *Client) Observe(repo forge.Repo) {
	e, ok := c.repos.get(repo.ID)
	switch {
	case !ok:
	case e.repo.Owner != repo.Owner || e.repo.Name != repo.Name:
		c.repos.drop(repo.ID)
	default:
		c.repos.prove(e.repo, c.now())
	}
}

// RepoByID is the repository of that id under its present name.
func (c *Client) RepoByID(ctx context.Context, id int64) (forge.Repo, error) {
	e, err := c.resolve(ctx, id)
	return e.repo, err
}

func (c *Client) resolve(ctx context.Context, id int64) (repoEntry, error) {
	what := wire.Read("repo.by_id", "resolve repository %d", id)
	var repo *sdk.Repository
	ex, err := c.do(ctx, what, func(api *sdk.Client) (err error) {
		repo, _, err = api.GetRepoByID(id)
		return err
	})
	if err != nil {
		return repoEntry{}, err
	}
	e, ok := c.remember(repo)
	if !ok || e.repo.ID != id {
		return repoEntry{}, nonsense(what, ex)
	}
	return e, nil
}

// remember caches a repository as the API described it.
func (c *Client) remember(r *sdk.Repository) (repoEntry, bool) {
	if r == nil || r.ID <= 0 || r.Owner == nil || r.Owner.UserName == "" || r.Name == "" {
		return repoEntry{}, false
	}
	e := repoEntry{
		repo:   forge.Repo{ID: r.ID, Owner: r.Owner.UserName, OwnerID: r.Owner.ID, Name: r.Name},
		proved: c.now(),
	}
	if r.OriginalURL != "" {
		e.importedUntil = r.Created
	}
	c.repos.put(e)
	return e, true
}

// RepoByName is the repository that owner/name leads to at present. A name of
// the past is followed once, as Gitea's own 301 says.
func (c *Client) RepoByName(ctx context.Context, owner, name string) (forge.Repo, error) {
	what := wire.Read("repo.by_name", "look up a repository by its name")
	for followed := false; ; followed = true {
		if owner == "" || name == "" {
			return forge.Repo{}, &forge.Error{Op: what.Op, Kind: forge.ErrNotFound}
		}
		var repo *sdk.Repository
		ex, err := c.do(ctx, what, func(api *sdk.Client) (err error) {
			repo, _, err = api.GetRepo(owner, name)
			return err
		})
		if err != nil {
			var ok bool
			if owner, name, ok = redirectTarget(ex); ok && !followed {
				continue
			}
			return forge.Repo{}, err
		}
		e, ok := c.remember(repo)
		if !ok {
			return forge.Repo{}, nonsense(what, ex)
		}
		return e.repo, nil
	}
}

// redirectTarget takes owner and name from the path of a redirect's Location;
// its host is not looked at, so a redirect leads nowhere but to this server.
func redirectTarget(ex *wire.Exchange) (owner, name string, ok bool) {
	_, rest, ok := strings.Cut(ex.Location(), "/api/v1/repos/")
	if !ok {
		return "", "", false
	}
	parts := strings.Split(rest, "/")
	if len(parts) != 2 {
		return "", "", false
	}
	return parts[0], parts[1], true
}

// ReposOf lists the repositories of an account or organisation that the bot's
// account may see, in the order of their ids. It asks by way of /users/, which
// serves organisations too and needs no read:organization.
func (c *Client) ReposOf(ctx context.Context, owner string) ([]forge.Repo, error) {
	what := wire.Read("repo.list", "list the repositories of an owner")
	if owner == "" {
		return nil, &forge.Error{Op: what.Op, Kind: forge.ErrNotFound}
	}
	var all []forge.Repo
	seen := map[int64]bool{}
	for page := 1; page > 0; {
		var repos []*sdk.Repository
		var resp *sdk.Response
		_, err := c.do(ctx, what, func(api *sdk.Client) (err error) {
			repos, resp, err = api.ListUserRepos(owner, sdk.ListReposOptions{ListOptions: sdk.ListOptions{Page: page, PageSize: pageSize}})
			return err
		})
		if err != nil {
			return nil, err
		}
		fresh := false
		for _, r := range repos {
			if e, ok := c.remember(r); ok && !seen[e.repo.ID] {
				seen[e.repo.ID], fresh = true, true
				all = append(all, e.repo)
			}
		}
		// Pages are cut first and filtered by right afterwards, so a short or
		// empty one is not the last: the Link header is. A server that repeats
		// itself is not followed for ever.
		next := resp.NextPage
		if next <= page || (!fresh && len(repos) > 0) {
			next = 0
		}
		page = next
	}
	return all, nil
}

// target is a repository as a call is to address it.
type target struct {
	repoEntry
	api *sdk.Client
}

func (t target) owner() string { return t.repo.Owner }
func (t target) name() string  { return t.repo.Name }

// inRepo makes one call on a repository that is known by id. If the name
// turns out to be of the past (a redirect, 404, errMoved) the id is resolved
// once and the call repeated once, a POST too: a redirected or unfound one has
// done nothing. maxAge is how old the proof for the cached name may be; 0: any
// age, for calls whose answer proves it.
func (c *Client) inRepo(ctx context.Context, what wire.Call, id int64, maxAge time.Duration, fn func(target) error) (*wire.Exchange, repoEntry, error) {
	return c.inRepoOr404(ctx, what, id, maxAge, 0, fn)
}

// inRepoOr404 is inRepo for what may not be there: where the name was proved
// less than surely ago, a 404 is no reason to resolve the id.
func (c *Client) inRepoOr404(ctx context.Context, what wire.Call, id int64, maxAge, surely time.Duration, fn func(target) error) (*wire.Exchange, repoEntry, error) {
	e, ok := c.repos.get(id)
	fresh := false
	if !ok || (maxAge > 0 && c.now().Sub(e.proved) >= maxAge) {
		var err error
		if e, err = c.resolve(ctx, id); err != nil {
			return &wire.Exchange{}, e, err
		}
		fresh = true
	}
	ex, err := c.do(ctx, what, func(api *sdk.Client) error { return fn(target{e, api}) })
	absent := errors.Is(err, forge.ErrNotFound) && c.now().Sub(e.proved) >= surely
	moved := ex.Redirected() || absent || errors.Is(err, errMoved)
	if err == nil || !moved || fresh {
		return ex, e, c.unmoved(what, ex, err)
	}
	now, rerr := c.resolve(ctx, id)
	if rerr != nil {
		return ex, e, rerr
	}
	if now.repo.Owner == e.repo.Owner && now.repo.Name == e.repo.Name {
		return ex, e, c.unmoved(what, ex, err)
	}
	ex, err = c.do(ctx, what, func(api *sdk.Client) error { return fn(target{now, api}) })
	return ex, now, c.unmoved(what, ex, err)
}

// unmoved sorts what is left of errMoved after the id was resolved: a rename
// is under way.
func (c *Client) unmoved(what wire.Call, ex *wire.Exchange, err error) error {
	if errors.Is(err, errMoved) {
		return &forge.Error{Op: what.Op, Status: ex.Status, Kind: forge.ErrRetry, FromForge: true}
	}
	return err
}

// proved notes that the call just made showed its name to lead to the id.
func (c *Client) proved(e repoEntry) { c.repos.prove(e.repo, c.now()) }
