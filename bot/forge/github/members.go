package github

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	sdk "github.com/google/go-github/v62/github"

	"playbook-bot/bot/forge"
	"playbook-bot/bot/forge/internal/wire"
)

// minServer is the first Enterprise Server with what the adapter asks for.
const minServer = 3

// Version is an Enterprise Server's, or the name of github.com, which is always
// new enough.
func (c *Client) Version(ctx context.Context) (forge.Version, error) {
	what := wire.Read("version", "read the server's version")
	v := forge.Version{Needed: fmt.Sprintf("GitHub Enterprise Server %d", minServer)}
	var meta struct {
		Installed string `json:"installed_version"`
	}
	ex, err := c.onAnyone(ctx, get(what, &meta, "meta"))
	v.Date = ex.Date()
	if err != nil {
		return v, err
	}
	if v.Text = meta.Installed; v.Text == "" {
		v.Text, v.Known, v.Enough = "github.com", true, true
		return v, nil
	}
	var major int
	n, _ := fmt.Sscanf(v.Text, "%d.", &major)
	v.Known, v.Enough = n == 1, n == 1 && major >= minServer
	return v, nil
}

// Writers lists the accounts that may write to the repository, by their own
// right or a team's.
func (c *Client) Writers(ctx context.Context, repoID int64) ([]forge.Account, error) {
	what := wire.Read("repo.writers", "list who may write to repository %d", repoID)
	var all []forge.Account
	seen := map[int64]bool{}
	err := pages(func(number int) (int, bool, error) {
		var list []*sdk.User
		_, next, err := c.onRepo(ctx, repoID, get(what, &list, page(inRepo(repoID, "collaborators"), number, time.Time{}, "permission", "push")))
		fresh := false
		for _, u := range list {
			a := toAccount(u)
			if seen[a.ID] {
				continue
			}
			seen[a.ID], fresh = true, true
			if a.Real() && u.GetPermissions()["push"] {
				all = append(all, a)
			}
		}
		return next, fresh, err
	})
	return all, err
}

// IsCollaborator reports whether the account was made a collaborator of the
// repository itself, with whatever right.
func (c *Client) IsCollaborator(ctx context.Context, repoID int64, login string) (bool, error) {
	what := wire.Read("collaborator.read", "read whether an account collaborates on repository %d", repoID)
	is := false
	err := pages(func(number int) (int, bool, error) {
		var list []*sdk.User
		_, next, err := c.onRepo(ctx, repoID, get(what, &list, page(inRepo(repoID, "collaborators"), number, time.Time{}, "affiliation", "direct")))
		for _, u := range list {
			is = is || strings.EqualFold(u.GetLogin(), login)
		}
		return next, !is && len(list) > 0, err
	})
	return is, err
}

// Admit invites an account to collaborate on the repository with write, which
// is what reading permissions takes; it must accept (AcceptRepo).
func (c *Client) Admit(ctx context.Context, repoID int64, login string) error {
	what := wire.Write("collaborator.add", "invite an account to repository %d", repoID)
	in := map[string]string{"permission": "push"}
	_, _, err := c.onRepo(ctx, repoID, request{what, http.MethodPut, inRepo(repoID, "collaborators", login), in, nil})
	return err
}

// RemoveCollaborator takes an account's own right on a repository away.
func (c *Client) RemoveCollaborator(ctx context.Context, repoID int64, login string) error {
	what := wire.Write("collaborator.remove", "take an account's right on repository %d away", repoID)
	_, _, err := c.onRepo(ctx, repoID, request{what, http.MethodDelete, inRepo(repoID, "collaborators", login), nil, nil})
	return err
}

// AcceptRepo accepts the invitation to a repository, if there is one.
func (c *Client) AcceptRepo(ctx context.Context, repoID int64) error {
	what := wire.Read("invitation.list", "list the account's invitations to repositories")
	var found int64
	err := pages(func(number int) (int, bool, error) {
		var list []*sdk.RepositoryInvitation
		r := get(what, &list, page("user/repository_invitations", number, time.Time{}))
		var next int
		_, next, err := c.do(ctx, func() (identity, error) { return c.auth.anyone(ctx, what) }, r)
		for _, i := range list {
			if i.GetRepo().GetID() == repoID {
				found = i.GetID()
			}
		}
		return next, found == 0 && len(list) > 0, err
	})
	if err != nil || found == 0 {
		return err
	}
	what = wire.Write("invitation.accept", "accept the invitation to repository %d", repoID)
	_, err = c.onAnyone(ctx, request{what, http.MethodPatch, escaped("user", "repository_invitations", found), nil, nil})
	return err
}

// AcceptOrg accepts the invitation to an organisation; one that was accepted
// already is no error.
func (c *Client) AcceptOrg(ctx context.Context, org string) error {
	what := wire.Write("org.join", "accept the invitation to the organisation")
	in := map[string]string{"state": "active"}
	_, err := c.onAnyone(ctx, request{what, http.MethodPatch, escaped("user", "memberships", "orgs", org), in, nil})
	return err
}

// Teams lists an organisation's teams. It needs one of its members.
func (c *Client) Teams(ctx context.Context, org string) ([]forge.Team, error) {
	what := wire.Read("team.list", "list the teams of the organisation")
	var all []forge.Team
	seen := map[int64]bool{}
	err := pages(func(number int) (int, bool, error) {
		var list []*sdk.Team
		_, next, err := c.onOwner(ctx, org, get(what, &list, page(escaped("orgs", org, "teams"), number, time.Time{})))
		before := len(all)
		for _, t := range list {
			if !seen[t.GetID()] {
				seen[t.GetID()] = true
				all = append(all, toTeam(t))
			}
		}
		return next, len(all) > before, err
	})
	return all, err
}

// toTeam calls every team one that has what the bot needs: on GitHub the right
// goes with each repository (AddTeamRepo).
func toTeam(t *sdk.Team) forge.Team {
	return forge.Team{ID: t.GetID(), Name: t.GetName(), Admin: true}
}

// CreateTeam makes a team.
func (c *Client) CreateTeam(ctx context.Context, org, name, description string) (forge.Team, error) {
	what := wire.Write("team.create", "create a team of the organisation")
	in := map[string]string{"name": name, "description": description, "privacy": "closed"}
	var team sdk.Team
	ex, _, err := c.onOwner(ctx, org, request{what, http.MethodPost, escaped("orgs", org, "teams"), in, &team})
	if err != nil {
		return forge.Team{}, err
	}
	if team.GetID() <= 0 {
		return forge.Team{}, nonsense(what, ex)
	}
	return toTeam(&team), nil
}

// EditTeam has nothing to do: see toTeam.
func (c *Client) EditTeam(context.Context, string, forge.Team) error { return nil }

func teamPath(org string, team forge.Team, parts ...any) string {
	return escaped(append([]any{"orgs", org, "teams", slug(team.Name)}, parts...)...)
}

// DeleteTeam removes a team; its members keep what rights they have otherwise.
func (c *Client) DeleteTeam(ctx context.Context, org string, team forge.Team) error {
	what := wire.Write("team.delete", "delete team %d", team.ID)
	_, _, err := c.onOwner(ctx, org, request{what, http.MethodDelete, teamPath(org, team), nil, nil})
	return err
}

// TeamMembers lists a team's members, without those who have yet to accept.
func (c *Client) TeamMembers(ctx context.Context, org string, team forge.Team) ([]forge.Account, error) {
	what := wire.Read("team.members", "list the members of team %d", team.ID)
	var all []forge.Account
	err := pages(func(number int) (int, bool, error) {
		var list []*sdk.User
		_, next, err := c.onOwner(ctx, org, get(what, &list, page(teamPath(org, team, "members"), number, time.Time{})))
		for _, u := range list {
			all = append(all, toAccount(u))
		}
		return next, len(list) > 0, err
	})
	return all, err
}

// AddTeamMember adds an account to a team; one that is no member of the
// organisation is invited, and must accept (AcceptOrg).
func (c *Client) AddTeamMember(ctx context.Context, org string, team forge.Team, login string) error {
	what := wire.Write("team.add_member", "add an account to team %d", team.ID)
	in := map[string]string{"role": "member"}
	_, _, err := c.onOwner(ctx, org, request{what, http.MethodPut, teamPath(org, team, "memberships", login), in, nil})
	return err
}

// TeamRepos lists the repositories that a team may write to.
func (c *Client) TeamRepos(ctx context.Context, org string, team forge.Team) ([]forge.Repo, error) {
	what := wire.Read("team.repos", "list the repositories of team %d", team.ID)
	var all []forge.Repo
	seen := map[int64]bool{}
	err := pages(func(number int) (int, bool, error) {
		var list []*sdk.Repository
		_, next, err := c.onOwner(ctx, org, get(what, &list, page(teamPath(org, team, "repos"), number, time.Time{})))
		fresh := false
		for _, r := range list {
			if seen[r.GetID()] {
				continue
			}
			seen[r.GetID()], fresh = true, true
			if repo, ok := c.remember(r); ok && r.GetPermissions()["push"] {
				all = append(all, repo)
			}
		}
		return next, fresh, err
	})
	return all, err
}

// AddTeamRepo lets a team write to a repository of its organisation.
func (c *Client) AddTeamRepo(ctx context.Context, org string, team forge.Team, repo forge.Repo) error {
	what := wire.Write("team.add_repo", "give team %d repository %d", team.ID, repo.ID)
	in := map[string]string{"permission": "push"}
	_, _, err := c.onOwner(ctx, org, request{what, http.MethodPut, teamPath(org, team, "repos", repo.Owner, repo.Name), in, nil})
	return err
}

// RemoveTeamRepo takes a repository away from a team.
func (c *Client) RemoveTeamRepo(ctx context.Context, org string, team forge.Team, repo forge.Repo) error {
	what := wire.Write("team.remove_repo", "take repository %d away from team %d", repo.ID, team.ID)
	_, _, err := c.onOwner(ctx, org, request{what, http.MethodDelete, teamPath(org, team, "repos", repo.Owner, repo.Name), nil, nil})
	if errors.Is(err, forge.ErrNotFound) {
		return nil // it has none to lose
	}
	return err
}
