package setup

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"playbook-bot/bot/forge"
)

// TeamName is the organisation's team through which the bot administers its
// repositories.
const TeamName = "playbook-bot"

// team plans the organisation's team: one, whose only right is what the bot
// needs in the repositories named. The team's id is known only once it is made, so the
// steps share it.
func (p *planner) team(ctx context.Context, org place, repos []place) error {
	team, err := p.findTeam(ctx, org)
	if err != nil {
		return err
	}
	switch {
	case team.ID == 0:
		p.add(org, "team "+TeamName, Create, func(ctx context.Context) (err error) {
			*team, err = p.Admin.CreateTeam(ctx, org.name, TeamName, "Lets playbook-bot read who may approve what")
			return err
		}, "for the bot, and for the repositories it is given")
	case !team.Admin:
		p.add(org, "team "+TeamName, Repair, func(ctx context.Context) error { return p.Admin.EditTeam(ctx, org.name, *team) }, "its members get the right they need")
	default:
		p.add(org, "team "+TeamName, Keep, nil, "")
	}
	if err := p.teamMember(ctx, org, team); err != nil {
		return err
	}
	return p.teamRepos(ctx, org, team, repos)
}

func (p *planner) findTeam(ctx context.Context, org place) (*forge.Team, error) {
	list, err := p.Admin.Teams(ctx, org.name)
	if err != nil {
		return nil, fmt.Errorf("list the teams of %s: %w", org.name, err)
	}
	for _, t := range list {
		if strings.EqualFold(t.Name, TeamName) {
			return &t, nil
		}
	}
	return &forge.Team{}, nil
}

func (p *planner) teamMember(ctx context.Context, org place, team *forge.Team) error {
	if team.ID != 0 {
		list, err := p.Admin.TeamMembers(ctx, org.name, *team)
		if err != nil {
			return fmt.Errorf("list the members of team %s/%s: %w", org.name, TeamName, err)
		}
		if slices.ContainsFunc(list, func(a forge.Account) bool { return a.ID == p.Bot.ID }) {
			p.add(org, "team member "+p.Bot.Login, Keep, nil, "")
			return nil
		}
	}
	p.add(org, "team member "+p.Bot.Login, Create, func(ctx context.Context) error {
		if err := p.Admin.AddTeamMember(ctx, org.name, *team, p.Bot.Login); err != nil || p.Invited == nil {
			return err
		}
		return p.Invited.AcceptOrg(ctx, org.name)
	}, "")
	return nil
}

func (p *planner) teamRepos(ctx context.Context, org place, team *forge.Team, repos []place) error {
	has := map[int64]bool{}
	if team.ID != 0 {
		list, err := p.Admin.TeamRepos(ctx, org.name, *team)
		if err != nil {
			return fmt.Errorf("list the repositories of team %s/%s: %w", org.name, TeamName, err)
		}
		for _, r := range list {
			has[r.ID] = true
		}
	}
	for _, r := range repos {
		if has[r.repo.ID] || team.AllRepos {
			p.add(r, "access", Keep, nil, "by team %s", TeamName)
			continue
		}
		p.add(r, "access", Create, func(ctx context.Context) error { return p.Admin.AddTeamRepo(ctx, org.name, *team, r.repo) }, "by team %s", TeamName)
	}
	return nil
}

// unteam plans the team's end and reports whether there is one: while it has
// repositories beside those named, it only loses these, and what serves all of
// them stays.
func (p *planner) unteam(ctx context.Context, org place, repos []place) (ends bool, err error) {
	team, err := p.findTeam(ctx, org)
	if err != nil || team.ID == 0 {
		return true, err
	}
	list, err := p.Admin.TeamRepos(ctx, org.name, *team)
	if err != nil {
		return false, fmt.Errorf("list the repositories of team %s/%s: %w", org.name, TeamName, err)
	}
	named := func(id int64) bool {
		return slices.ContainsFunc(repos, func(r place) bool { return r.repo.ID == id })
	}
	others := slices.DeleteFunc(slices.Clone(list), func(r forge.Repo) bool { return named(r.ID) })
	if len(repos) == 0 || len(others) == 0 {
		p.add(org, "team "+TeamName, Delete, func(ctx context.Context) error { return p.Admin.DeleteTeam(ctx, org.name, *team) }, "")
		return true, nil
	}
	for _, r := range list {
		if named(r.ID) {
			p.add(org, "access to "+r.Name, Delete, func(ctx context.Context) error { return p.Admin.RemoveTeamRepo(ctx, org.name, *team, r) }, "by team %s", TeamName)
		}
	}
	p.add(org, "hook, labels and team", Keep, nil, "%d other repositories are served", len(others))
	return false, nil
}
