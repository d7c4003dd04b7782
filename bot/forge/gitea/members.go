package gitea

import (
	"context"
	"errors"
	"strings"
	"time"

	sdk "code.gitea.io/sdk/gitea"

	"playbook-bot/bot/forge"
	"playbook-bot/bot/forge/internal/wire"
)

// Version is what the server calls its version, e.g. "1.26.0" or
// "11.0.1+gitea-1.22.0", and its clock at the answer (zero: untold). Where it
// wants no token for it, none is needed.
func (c *Client) Version(ctx context.Context) (version string, date time.Time, err error) {
	what := wire.Read("version", "read the server's version")
	ex, err := c.do(ctx, what, func(api *sdk.Client) (err error) {
		version, _, err = api.ServerVersion()
		return err
	})
	if err == nil && strings.TrimSpace(version) == "" {
		err = nonsense(what, ex)
	}
	return version, ex.Date(), err
}

// Writers lists the accounts that may write to the repository, by their own
// right or a team's. Site administrators are not among them unless they are
// named in one.
func (c *Client) Writers(ctx context.Context, repoID int64) ([]forge.Account, error) {
	what := wire.Read("repo.assignees", "list who may write to repository %d", repoID)
	var users []*sdk.User
	_, _, err := c.inRepo(ctx, what, repoID, trustName, func(t target) (err error) {
		users, _, err = t.api.GetAssignees(t.owner(), t.name())
		return err
	})
	if err != nil {
		return nil, err
	}
	var out []forge.Account
	for _, u := range users {
		if a := toAccount(u); a.Real() {
			out = append(out, a)
		}
	}
	return out, nil
}

// IsCollaborator reports whether the account was made a collaborator of the
// repository itself, with whatever right.
func (c *Client) IsCollaborator(ctx context.Context, repoID int64, login string) (bool, error) {
	what := wire.Read("collaborator.read", "read whether an account collaborates on repository %d", repoID)
	is := false
	_, _, err := c.inRepo(ctx, what, repoID, trustName, func(t target) (err error) {
		is, _, err = t.api.IsCollaborator(t.owner(), t.name(), login)
		return err
	})
	if errors.Is(err, forge.ErrNotFound) {
		return false, nil
	}
	return is, err
}

// AddAdmin makes an account a collaborator of the repository that administers
// it; one that collaborates with less gets that right.
func (c *Client) AddAdmin(ctx context.Context, repoID int64, login string) error {
	what := wire.Write("collaborator.add", "make an account an administrator of repository %d", repoID)
	mode := sdk.AccessModeAdmin
	_, _, err := c.inRepo(ctx, what, repoID, trustName, func(t target) error {
		_, err := t.api.AddCollaborator(t.owner(), t.name(), login, sdk.AddCollaboratorOption{Permission: &mode})
		return err
	})
	return err
}

// RemoveCollaborator takes an account's own right on a repository away.
func (c *Client) RemoveCollaborator(ctx context.Context, repoID int64, login string) error {
	what := wire.Write("collaborator.remove", "take an account's right on repository %d away", repoID)
	_, _, err := c.inRepo(ctx, what, repoID, trustName, func(t target) error {
		_, err := t.api.DeleteCollaborator(t.owner(), t.name(), login)
		return err
	})
	return err
}

// Teams lists an organisation's teams. It needs one of its members.
func (c *Client) Teams(ctx context.Context, org string) ([]forge.Team, error) {
	what := wire.Read("team.list", "list the teams of the organisation")
	teams, err := pages(func(t *sdk.Team) int64 { return t.ID }, func(page int) (teams []*sdk.Team, ex *wire.Exchange, err error) {
		ex, err = c.do(ctx, what, func(api *sdk.Client) (err error) {
			teams, _, err = api.ListOrgTeams(org, sdk.ListTeamsOptions{ListOptions: listPage(page)})
			return err
		})
		return teams, ex, err
	})
	var out []forge.Team
	for _, t := range teams {
		out = append(out, toTeam(t))
	}
	return out, err
}

func toTeam(t *sdk.Team) forge.Team {
	return forge.Team{ID: t.ID, Name: t.Name, AllRepos: t.IncludesAllRepositories,
		Admin: t.Permission == sdk.AccessModeAdmin || t.Permission == sdk.AccessModeOwner}
}

// CreateTeam makes a team whose members administer the repositories it will be
// given.
func (c *Client) CreateTeam(ctx context.Context, org, name, description string) (forge.Team, error) {
	what := wire.Write("team.create", "create a team of the organisation")
	var team *sdk.Team
	ex, err := c.do(ctx, what, func(api *sdk.Client) (err error) {
		team, _, err = api.CreateTeam(org, sdk.CreateTeamOption{Name: name, Description: description, Permission: sdk.AccessModeAdmin})
		return err
	})
	if err != nil {
		return forge.Team{}, err
	}
	if team == nil || team.ID <= 0 {
		return forge.Team{}, nonsense(what, ex)
	}
	return toTeam(team), nil
}

// EditTeam lets a team's members administer its repositories.
func (c *Client) EditTeam(ctx context.Context, team forge.Team) error {
	what := wire.Write("team.edit", "edit team %d", team.ID)
	_, err := c.do(ctx, what, func(api *sdk.Client) error {
		_, err := api.EditTeam(team.ID, sdk.EditTeamOption{Name: team.Name, Permission: sdk.AccessModeAdmin})
		return err
	})
	return err
}

// DeleteTeam removes a team; its members keep what rights they have otherwise.
func (c *Client) DeleteTeam(ctx context.Context, id int64) error {
	what := wire.Write("team.delete", "delete team %d", id)
	_, err := c.do(ctx, what, func(api *sdk.Client) error {
		_, err := api.DeleteTeam(id)
		return err
	})
	return err
}

// TeamMembers lists a team's members.
func (c *Client) TeamMembers(ctx context.Context, id int64) ([]forge.Account, error) {
	what := wire.Read("team.members", "list the members of team %d", id)
	users, err := pages(func(u *sdk.User) int64 { return u.ID }, func(page int) (users []*sdk.User, ex *wire.Exchange, err error) {
		ex, err = c.do(ctx, what, func(api *sdk.Client) (err error) {
			users, _, err = api.ListTeamMembers(id, sdk.ListTeamMembersOptions{ListOptions: listPage(page)})
			return err
		})
		return users, ex, err
	})
	var out []forge.Account
	for _, u := range users {
		out = append(out, toAccount(u))
	}
	return out, err
}

// AddTeamMember adds an account to a team, which makes it a member of the
// organisation.
func (c *Client) AddTeamMember(ctx context.Context, id int64, login string) error {
	what := wire.Write("team.add_member", "add an account to team %d", id)
	_, err := c.do(ctx, what, func(api *sdk.Client) error {
		_, err := api.AddTeamMember(id, login)
		return err
	})
	return err
}

// TeamRepos lists a team's repositories.
func (c *Client) TeamRepos(ctx context.Context, id int64) ([]forge.Repo, error) {
	what := wire.Read("team.repos", "list the repositories of team %d", id)
	repos, err := pages(func(r *sdk.Repository) int64 { return r.ID }, func(page int) (repos []*sdk.Repository, ex *wire.Exchange, err error) {
		ex, err = c.do(ctx, what, func(api *sdk.Client) (err error) {
			repos, _, err = api.ListTeamRepositories(id, sdk.ListTeamRepositoriesOptions{ListOptions: listPage(page)})
			return err
		})
		return repos, ex, err
	})
	var out []forge.Repo
	for _, r := range repos {
		if e, ok := c.remember(r); ok {
			out = append(out, e.repo)
		}
	}
	return out, err
}

// AddTeamRepo gives a team a repository of its organisation.
func (c *Client) AddTeamRepo(ctx context.Context, id int64, repo forge.Repo) error {
	what := wire.Write("team.add_repo", "give team %d repository %d", id, repo.ID)
	_, err := c.do(ctx, what, func(api *sdk.Client) error {
		_, err := api.AddTeamRepository(id, repo.Owner, repo.Name)
		return err
	})
	return err
}

// RemoveTeamRepo takes a repository away from a team.
func (c *Client) RemoveTeamRepo(ctx context.Context, id int64, repo forge.Repo) error {
	what := wire.Write("team.remove_repo", "take repository %d away from team %d", repo.ID, id)
	_, err := c.do(ctx, what, func(api *sdk.Client) error {
		_, err := api.RemoveTeamRepository(id, repo.Owner, repo.Name)
		return err
	})
	return err
}
