package gitea

import (
	"context"
	"errors"
	"fmt"
	"strings"

	sdk "code.gitea.io/sdk/gitea"

	"playbook-bot/bot/forge"
	"playbook-bot/bot/forge/internal/wire"
)

// minVersion is the first Gitea with exclusive labels and with tokens whose
// scopes are named as the bot's must be.
var minVersion = [2]int{1, 20}

// Version asks the server for its version. Where it wants a token for that and
// gets a bad one, the error's status is 401.
func (c *Client) Version(ctx context.Context) (forge.Version, error) {
	what := wire.Read("version", "read the server's version")
	v := forge.Version{Needed: fmt.Sprintf("Gitea %d.%d", minVersion[0], minVersion[1])}
	ex, err := c.do(ctx, what, func(api *sdk.Client) (err error) {
		v.Text, _, err = api.ServerVersion()
		return err
	})
	if err == nil && strings.TrimSpace(v.Text) == "" {
		err = nonsense(what, ex)
	}
	v.Date = ex.Date()
	major, minor, ok := readVersion(v.Text)
	v.Known, v.Enough = ok, ok && (major > minVersion[0] || major == minVersion[0] && minor >= minVersion[1])
	return v, err
}

// readVersion reads "1.26.0", "1.27.0+dev-12-gabc" and Forgejo's
// "11.0.1+gitea-1.22.0", of which the Gitea it descends from counts.
func readVersion(text string) (major, minor int, ok bool) {
	if _, gitea, found := strings.Cut(text, "+gitea-"); found {
		text = gitea
	}
	n, _ := fmt.Sscanf(strings.TrimPrefix(text, "v"), "%d.%d", &major, &minor)
	return major, minor, n == 2
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

// Admit makes an account a collaborator of the repository that administers it;
// one that collaborates with less gets that right.
func (c *Client) Admit(ctx context.Context, repoID int64, login string) error {
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
func (c *Client) EditTeam(ctx context.Context, _ string, team forge.Team) error {
	what := wire.Write("team.edit", "edit team %d", team.ID)
	_, err := c.do(ctx, what, func(api *sdk.Client) error {
		_, err := api.EditTeam(team.ID, sdk.EditTeamOption{Name: team.Name, Permission: sdk.AccessModeAdmin})
		return err
	})
	return err
}

// DeleteTeam removes a team; its members keep what rights they have otherwise.
func (c *Client) DeleteTeam(ctx context.Context, _ string, team forge.Team) error {
	what := wire.Write("team.delete", "delete team %d", team.ID)
	_, err := c.do(ctx, what, func(api *sdk.Client) error {
		_, err := api.DeleteTeam(team.ID)
		return err
	})
	return err
}

// TeamMembers lists a team's members.
func (c *Client) TeamMembers(ctx context.Context, _ string, team forge.Team) ([]forge.Account, error) {
	what := wire.Read("team.members", "list the members of team %d", team.ID)
	users, err := pages(func(u *sdk.User) int64 { return u.ID }, func(page int) (users []*sdk.User, ex *wire.Exchange, err error) {
		ex, err = c.do(ctx, what, func(api *sdk.Client) (err error) {
			users, _, err = api.ListTeamMembers(team.ID, sdk.ListTeamMembersOptions{ListOptions: listPage(page)})
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
func (c *Client) AddTeamMember(ctx context.Context, _ string, team forge.Team, login string) error {
	what := wire.Write("team.add_member", "add an account to team %d", team.ID)
	_, err := c.do(ctx, what, func(api *sdk.Client) error {
		_, err := api.AddTeamMember(team.ID, login)
		return err
	})
	return err
}

// TeamRepos lists a team's repositories.
func (c *Client) TeamRepos(ctx context.Context, _ string, team forge.Team) ([]forge.Repo, error) {
	what := wire.Read("team.repos", "list the repositories of team %d", team.ID)
	repos, err := pages(func(r *sdk.Repository) int64 { return r.ID }, func(page int) (repos []*sdk.Repository, ex *wire.Exchange, err error) {
		ex, err = c.do(ctx, what, func(api *sdk.Client) (err error) {
			repos, _, err = api.ListTeamRepositories(team.ID, sdk.ListTeamRepositoriesOptions{ListOptions: listPage(page)})
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
func (c *Client) AddTeamRepo(ctx context.Context, _ string, team forge.Team, repo forge.Repo) error {
	what := wire.Write("team.add_repo", "give team %d repository %d", team.ID, repo.ID)
	_, err := c.do(ctx, what, func(api *sdk.Client) error {
		_, err := api.AddTeamRepository(team.ID, repo.Owner, repo.Name)
		return err
	})
	return err
}

// RemoveTeamRepo takes a repository away from a team.
func (c *Client) RemoveTeamRepo(ctx context.Context, _ string, team forge.Team, repo forge.Repo) error {
	what := wire.Write("team.remove_repo", "take repository %d away from team %d", repo.ID, team.ID)
	_, err := c.do(ctx, what, func(api *sdk.Client) error {
		_, err := api.RemoveTeamRepository(team.ID, repo.Owner, repo.Name)
		return err
	})
	return err
}
