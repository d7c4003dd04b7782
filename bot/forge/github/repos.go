package github

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	sdk "github.com/google/go-github/v62/github"

	"playbook-bot/bot/forge"
	"playbook-bot/bot/forge/internal/wire"
)

// pageSize is asked for wherever a listing is paged: GitHub's most.
const pageSize = 100

// pages reads the pages of a listing from 1, until there is no next or one
// brings nothing new: a server that repeats itself is not followed for ever.
func pages(read func(number int) (next int, fresh bool, err error)) error {
	for number := 1; number > 0; {
		next, fresh, err := read(number)
		if err != nil {
			return err
		}
		if next <= number || !fresh {
			return nil
		}
		number = next
	}
	return nil
}

// trustOwner is how long it is remembered whose a repository is, where that
// decides who is its owner.
const trustOwner = time.Minute

// ownerCache knows whose repositories are.
type ownerCache struct {
	mu   sync.Mutex
	byID map[int64]owned
}

type owned struct {
	repo forge.Repo
	org  bool
	at   time.Time
}

func (oc *ownerCache) get(id int64) (owned, bool) {
	oc.mu.Lock()
	defer oc.mu.Unlock()
	o, ok := oc.byID[id]
	return o, ok
}

func (oc *ownerCache) put(o owned) {
	oc.mu.Lock()
	defer oc.mu.Unlock()
	if oc.byID == nil {
		oc.byID = map[int64]owned{}
	}
	oc.byID[o.repo.ID] = o
}

func (oc *ownerCache) drop(id int64) {
	oc.mu.Lock()
	defer oc.mu.Unlock()
	delete(oc.byID, id)
}

// Observe takes what a verified delivery calls a repository. Only a change is
// taken in, as a reason to ask: whoever knows the hook's secret can claim to
// own the repository.
func (c *Client) Observe(repo forge.Repo) {
	if o, ok := c.owners.get(repo.ID); ok && (o.repo.OwnerID != repo.OwnerID || o.repo.Name != repo.Name) {
		c.owners.drop(repo.ID)
	}
}

// RepoByID is the repository of that id under its present name.
func (c *Client) RepoByID(ctx context.Context, id int64) (forge.Repo, error) {
	what := wire.Read("repo.by_id", "read repository %d", id)
	app, isApp := c.auth.(*installations)
	if isApp {
		if _, known := app.home(id); !known {
			return app.locate(ctx, id)
		}
	}
	r, ex, err := c.readRepo(ctx, func() (identity, error) { return c.auth.forRepo(ctx, what, id) }, what, inRepo(id))
	switch {
	case isApp && (errors.Is(err, forge.ErrNotFound) || errors.Is(err, forge.ErrUnverified)):
		// It may have passed to another account. If not, an app that was taken
		// out of this one does not prove it deleted.
		app.setHome(id, 0)
		r, lerr := app.locate(ctx, id)
		if errors.Is(lerr, forge.ErrNotFound) {
			return forge.Repo{}, err
		}
		return r, lerr
	case err != nil:
		return forge.Repo{}, err
	case r.ID != id:
		return forge.Repo{}, nonsense(what, ex)
	}
	return r, nil
}

// RepoByName is the repository that owner/name leads to at present. A name of
// the past is answered with a redirect to the repository's id, which is
// followed to this server alone.
func (c *Client) RepoByName(ctx context.Context, owner, name string) (forge.Repo, error) {
	what := wire.Read("repo.by_name", "look up a repository by its name")
	if owner == "" || name == "" {
		return forge.Repo{}, &forge.Error{Op: what.Op, Kind: forge.ErrNotFound}
	}
	r, ex, err := c.readRepo(ctx, func() (identity, error) { return c.auth.forOwner(ctx, what, owner) }, what, escaped("repos", owner, name))
	if err != nil {
		if id, ok := redirectedTo(ex); ok {
			return c.RepoByID(ctx, id)
		}
		return forge.Repo{}, err
	}
	return r, nil
}

// redirectedTo is the repository a redirect leads to.
func redirectedTo(ex *wire.Exchange) (int64, bool) {
	_, rest, ok := strings.Cut(ex.Location(), "/repositories/")
	id, err := strconv.ParseInt(rest, 10, 64)
	return id, ok && err == nil && id > 0
}

// readRepo reads one repository and remembers whose it is.
func (c *Client) readRepo(ctx context.Context, who func() (identity, error), what wire.Call, path string) (forge.Repo, *wire.Exchange, error) {
	var repo sdk.Repository
	ex, _, err := c.do(ctx, who, get(what, &repo, path))
	if err != nil {
		return forge.Repo{}, ex, err
	}
	r, ok := c.remember(&repo)
	if !ok {
		return forge.Repo{}, ex, nonsense(what, ex)
	}
	return r, ex, nil
}

func (c *Client) remember(r *sdk.Repository) (forge.Repo, bool) {
	owner := r.GetOwner()
	out := forge.Repo{ID: r.GetID(), Owner: owner.GetLogin(), OwnerID: owner.GetID(), Name: r.GetName()}
	if out.ID <= 0 || out.Owner == "" || out.OwnerID <= 0 || out.Name == "" {
		return forge.Repo{}, false
	}
	c.owners.put(owned{out, owner.GetType() == "Organization", c.now()})
	if app, ok := c.auth.(*installations); ok {
		app.setHome(out.ID, out.OwnerID)
	}
	return out, true
}

// ReposOf lists the repositories of an account or organisation that the bot
// may see, each once. A user's private ones are listed only to themselves and
// to collaborators, by way of /user/repos.
func (c *Client) ReposOf(ctx context.Context, owner string) ([]forge.Repo, error) {
	what := wire.Read("repo.list", "list the repositories of an owner")
	if owner == "" {
		return nil, &forge.Error{Op: what.Op, Kind: forge.ErrNotFound}
	}
	if _, ok := c.auth.(*installations); ok {
		return c.listRepos(ctx, what, owner, "installation/repositories")
	}
	var account sdk.User
	ex, err := c.onAnyone(ctx, get(wire.Read("user.read", "read the owner of repositories"), &account, "users/"+escaped(owner)))
	if err != nil {
		return nil, err
	}
	switch account.GetType() {
	case "Organization":
		return c.listRepos(ctx, what, owner, escaped("orgs", owner, "repos"))
	case "":
		return nil, nonsense(what, ex)
	}
	return c.listRepos(ctx, what, owner, escaped("users", owner, "repos"), "user/repos")
}

func (c *Client) listRepos(ctx context.Context, what wire.Call, owner string, paths ...string) ([]forge.Repo, error) {
	var all []forge.Repo
	seen := map[int64]bool{}
	for _, path := range paths {
		err := pages(func(number int) (int, bool, error) {
			// An app's are in an object, all others in a list.
			var list []*sdk.Repository
			var object sdk.ListRepositories
			r := get(what, &list, page(path, number, time.Time{}))
			if path == "installation/repositories" {
				r.out = &object
			}
			_, next, err := c.onOwner(ctx, owner, r)
			fresh := false
			for _, r := range append(list, object.Repositories...) {
				if seen[r.GetID()] {
					continue
				}
				seen[r.GetID()], fresh = true, true
				if out, ok := c.remember(r); ok && strings.EqualFold(out.Owner, owner) {
					all = append(all, out)
				}
			}
			return next, fresh, err
		})
		if err != nil {
			return nil, err
		}
	}
	return all, nil
}

// TeamMember reports whether the account of that login is in the
// organisation's team or in one below it. The team is named by its slug or its
// name, in any case. It needs the scope read:org, or Members: read; without it
// the answer is forge.ErrUnverified or, of a team GitHub hides,
// forge.ErrNotFound, as for one that does not exist.
func (c *Client) TeamMember(ctx context.Context, org, team, login string) (bool, error) {
	what := wire.Read("team.member", "read whether an account is in a team")
	if org == "" || slug(team) == "" || login == "" {
		return false, &forge.Error{Op: what.Op, Kind: forge.ErrNotFound}
	}
	var m sdk.Membership
	_, _, err := c.onOwner(ctx, org, get(what, &m, escaped("orgs", org, "teams", slug(team), "memberships", login)))
	if !errors.Is(err, forge.ErrNotFound) {
		return err == nil && m.GetState() == "active", err
	}
	// Neither in the team, or there is no such team.
	var t sdk.Team
	_, _, err = c.onOwner(ctx, org, get(wire.Read("team.read", "read a team"), &t, escaped("orgs", org, "teams", slug(team))))
	return false, err
}

// slug is the form of a team's name in addresses: "Ops & Duty" is "ops-duty".
func slug(team string) string {
	parts := strings.FieldsFunc(strings.ToLower(team), func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < '0' || r > '9') && r != '_' && r != '-'
	})
	return strings.Join(parts, "-")
}

// permissionAnswer is GitHub's, whose role_name go-github v62 does not read.
type permissionAnswer struct {
	Permission string `json:"permission"`
	RoleName   string `json:"role_name"`
	User       *struct {
		ID       int64  `json:"id"`
		Login    string `json:"login"`
		RoleName string `json:"role_name"`
	} `json:"user"`
}

// Permission is the standing of an account on a repository, and the id of the
// account that GitHub means by that login: rights hang on it. How roles are
// mapped the package's comment says. The bot's account must have push access,
// else forge.ErrUnverified; a login that exists nowhere is forge.ErrNotFound.
//
// It is one call, and for an administrator a second one about the
// organisation, or the repository where its owner was not looked up within a
// minute.
func (c *Client) Permission(ctx context.Context, repoID int64, login string) (forge.Permission, int64, error) {
	what := wire.Read("permission.read", "read an account's permission on repository %d", repoID)
	if strings.TrimSpace(login) == "" {
		return forge.PermissionNone, 0, &forge.Error{Op: what.Op, Kind: forge.ErrNotFound}
	}
	var a permissionAnswer
	ex, _, err := c.onRepo(ctx, repoID, get(what, &a, inRepo(repoID, "collaborators", login, "permission")))
	if err != nil {
		return forge.PermissionNone, 0, err
	}
	if a.User == nil || a.User.ID <= 0 || ghost(a.User.Login) {
		return forge.PermissionNone, 0, nonsense(what, ex)
	}
	role := a.RoleName
	if role == "" {
		role = a.User.RoleName
	}
	p := toPermission(a.Permission, role)
	if p != forge.PermissionAdmin {
		return p, a.User.ID, nil
	}
	owner, err := c.owns(ctx, repoID, a.User.ID, login)
	if err != nil {
		return forge.PermissionNone, 0, err
	}
	if owner {
		p = forge.PermissionOwner
	}
	return p, a.User.ID, nil
}

// ranks are GitHub's words for rights, new and old.
var ranks = map[string]forge.Permission{
	"read": forge.PermissionRead, "pull": forge.PermissionRead, "triage": forge.PermissionRead,
	"write": forge.PermissionWrite, "push": forge.PermissionWrite, "maintain": forge.PermissionWrite,
	"admin": forge.PermissionAdmin,
}

// toPermission gives the lesser of what permission and role say. A role that
// an organisation made counts as what permission says of it.
func toPermission(permission, role string) forge.Permission {
	p, ok := ranks[permission]
	if !ok {
		return forge.PermissionNone
	}
	r, known := ranks[role]
	switch {
	case role == "none":
		return forge.PermissionNone
	case !known, r == p:
		return p
	case r == forge.PermissionRead || p == forge.PermissionRead:
		return forge.PermissionRead
	}
	return forge.PermissionWrite
}

// owns reports whether an administrator is the repository's owner. Where the
// bot may not see the members of the organisation it is not known, and nobody
// is.
func (c *Client) owns(ctx context.Context, repoID, account int64, login string) (bool, error) {
	o, ok := c.owners.get(repoID)
	if !ok || c.now().Sub(o.at) >= trustOwner {
		if _, err := c.RepoByID(ctx, repoID); err != nil {
			return false, err
		}
		o, _ = c.owners.get(repoID)
	}
	if !o.org {
		return o.repo.OwnerID == account, nil
	}
	var m sdk.Membership
	what := wire.Read("org.member", "read an account's role in the organisation of repository %d", repoID)
	ex, _, err := c.onOwner(ctx, o.repo.Owner, get(what, &m, escaped("orgs", o.repo.Owner, "memberships", login)))
	switch {
	case errors.Is(err, forge.ErrNotFound), errors.Is(err, forge.ErrUnverified) && ex.Status == http.StatusForbidden:
		return false, nil
	case err != nil:
		return false, err
	}
	return m.GetRole() == "admin" && m.GetState() == "active" &&
		m.GetOrganization().GetID() == o.repo.OwnerID && m.GetUser().GetID() == account, nil
}
