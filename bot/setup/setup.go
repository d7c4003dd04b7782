// Package setup makes a repository or an organisation ready for the bot, undoes
// that, and finds out what is missing (see Check). It knows what must be so on
// a tracker; how each of it is done is the adapters' affair.
//
// A change is planned first and made afterwards, so that a dry run prints what
// a real one does, and a second run finds nothing left to do.
package setup

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"playbook-bot/bot/forge"
	"playbook-bot/bot/webhook"
)

// Admin is what setting up needs of a tracker, with an administrator's token.
// Errors are *forge.Error.
type Admin interface {
	Name() string
	Traits() forge.Traits
	RepoByName(ctx context.Context, owner, name string) (forge.Repo, error)
	AccountByLogin(ctx context.Context, login string) (forge.Account, error)
	hooks
	labels
	files
	members
	teams
}

type hooks interface {
	Hooks(ctx context.Context, p forge.Place) ([]forge.Hook, error)
	CreateHook(ctx context.Context, p forge.Place, spec forge.HookSpec) (int64, error)
	// EditHook changes the secret too where forge.Traits.EditSecret says so.
	EditHook(ctx context.Context, p forge.Place, id int64, spec forge.HookSpec) error
	DeleteHook(ctx context.Context, p forge.Place, id int64) error
}

type labels interface {
	Labels(ctx context.Context, p forge.Place) ([]forge.LabelFound, error)
	CreateLabel(ctx context.Context, p forge.Place, spec forge.LabelSpec) error
	EditLabel(ctx context.Context, p forge.Place, have forge.LabelFound, spec forge.LabelSpec) error
	DeleteLabel(ctx context.Context, p forge.Place, have forge.LabelFound) error
	LabelInUse(ctx context.Context, p forge.Place, name string) (bool, error)
}

type files interface {
	// ReadFile reads from a branch, "" for the default one.
	ReadFile(ctx context.Context, repo int64, path, branch string) (forge.File, error)
	ChangeFile(ctx context.Context, repo int64, change forge.FileChange) error
	OpenPull(ctx context.Context, repo int64, branch, title, body string) (int64, error)
	// PullOf is the open pull request from a branch, 0 for none.
	PullOf(ctx context.Context, repo int64, branch string) (int64, error)
	DeleteBranch(ctx context.Context, repo int64, branch string) error
}

type members interface {
	Permission(ctx context.Context, repo int64, login string) (forge.Permission, int64, error)
	IsCollaborator(ctx context.Context, repo int64, login string) (bool, error)
	// Admit gives an account, as a collaborator, the right the bot needs.
	Admit(ctx context.Context, repo int64, login string) error
	RemoveCollaborator(ctx context.Context, repo int64, login string) error
}

type teams interface {
	Teams(ctx context.Context, org string) ([]forge.Team, error)
	CreateTeam(ctx context.Context, org, name, description string) (forge.Team, error)
	// EditTeam gives a team's members the right the bot needs.
	EditTeam(ctx context.Context, org string, team forge.Team) error
	DeleteTeam(ctx context.Context, org string, team forge.Team) error
	TeamMembers(ctx context.Context, org string, team forge.Team) ([]forge.Account, error)
	AddTeamMember(ctx context.Context, org string, team forge.Team, login string) error
	TeamRepos(ctx context.Context, org string, team forge.Team) ([]forge.Repo, error)
	AddTeamRepo(ctx context.Context, org string, team forge.Team, repo forge.Repo) error
	RemoveTeamRepo(ctx context.Context, org string, team forge.Team, repo forge.Repo) error
}

// Invited accepts, in the bot's own name, what an administrator offered it.
// GitHub admits nobody who did not agree.
type Invited interface {
	AcceptRepo(ctx context.Context, repo int64) error
	AcceptOrg(ctx context.Context, org string) error
}

// Want is what is to be so.
type Want struct {
	Admin Admin
	// Bot is the bot's own account.
	Bot forge.Account
	// Invited speaks as the bot; nil where nobody needs to be asked.
	Invited Invited
	// PublicURL is where the forge reaches the bot, without a slash at its end.
	PublicURL string
	// Secret gives the secret of a hook by its scope (webhook.ScopeRepo, …) and
	// id; it is not asked where hooks are taken away.
	Secret func(scope string, id int64) string
	Labels []forge.LabelSpec
	// Form is the issue form and FormPath its place below Traits.FormDir.
	Form     []byte
	FormPath string

	// Org is the organisation to set up; "": the repositories by themselves.
	Org string
	// Repos are names such as "ops/incidents"; with Org, those that get its
	// team and the form.
	Repos []string

	// PullRequest proposes the form in a pull request instead of committing it.
	PullRequest bool
	// NewSecret makes a hook anew that is there already: Gitea neither shows a
	// hook's secret nor lets it be changed.
	NewSecret bool
	// Replace also takes over what may be somebody else's: a form with other
	// contents, a hook to the same path at another address.
	Replace bool
}

// Action is what a step does.
type Action string

// The actions. Keep does nothing: it is there or is not the bot's to change.
const (
	Create Action = "create"
	Repair Action = "repair"
	Delete Action = "delete"
	Keep   Action = "keep"
)

// Step is one thing that setting up or undoing comes to.
type Step struct {
	// Place is the repository or organisation by name.
	Place string `json:"place"`
	// What is the thing: "hook", "label recovery/approved".
	What   string `json:"what"`
	Action Action `json:"action"`
	// Detail says more, in a clause.
	Detail string `json:"detail,omitempty"`
	do     func(context.Context) error
}

// Changes reports whether the step does anything.
func (s Step) Changes() bool { return s.do != nil }

// Do does it. It is not asked of steps that change nothing.
func (s Step) Do(ctx context.Context) error {
	if err := s.do(ctx); err != nil {
		return fmt.Errorf("%s the %s of %s: %w", s.Action, s.What, s.Place, err)
	}
	return nil
}

// place is a repository or organisation that is being planned for.
type place struct {
	forge.Place
	name string
	repo forge.Repo // of a repository
	// scope and id are its hook's key.
	scope string
	id    int64
}

func (p *planner) path(at place) string { return webhook.HookPath(p.Admin.Name(), at.scope, at.id) }

// planner collects steps.
type planner struct {
	Want
	steps []Step
}

func (p *planner) add(at place, what string, a Action, do func(context.Context) error, detail string, args ...any) {
	p.steps = append(p.steps, Step{Place: at.name, What: what, Action: a, Detail: fmt.Sprintf(detail, args...), do: do})
}

// Plan reads what is there and gives the steps that are left, in their order.
// Steps that change nothing tell what was found in order.
func (w Want) Plan(ctx context.Context) ([]Step, error) {
	return w.plan(ctx, func(p *planner, org *place, repos []place) error {
		if org != nil {
			if err := p.inOrg(ctx, *org, repos); err != nil {
				return err
			}
		}
		for _, repo := range repos {
			if err := p.inRepo(ctx, repo, org != nil); err != nil {
				return err
			}
		}
		// The hooks are last: from then on the bot is told, and all is ready.
		if org != nil {
			return p.hook(ctx, *org)
		}
		for _, repo := range repos {
			if err := p.hook(ctx, repo); err != nil {
				return err
			}
		}
		return nil
	})
}

// PlanRemoval gives the steps that take away what Plan's would have made.
// What issues bear or people have changed stays.
func (w Want) PlanRemoval(ctx context.Context) ([]Step, error) {
	return w.plan(ctx, func(p *planner, org *place, repos []place) error {
		for _, repo := range repos {
			if err := p.outOfRepo(ctx, repo, org != nil); err != nil {
				return err
			}
		}
		if org != nil {
			return p.outOfOrg(ctx, *org, repos)
		}
		return nil
	})
}

func (w Want) plan(ctx context.Context, f func(p *planner, org *place, repos []place) error) ([]Step, error) {
	p := &planner{Want: w}
	org, err := p.findOrg(ctx)
	if err != nil {
		return nil, err
	}
	repos, err := p.findRepos(ctx)
	if err != nil {
		return nil, err
	}
	return p.steps, f(p, org, repos)
}

func (p *planner) findOrg(ctx context.Context) (*place, error) {
	if p.Org == "" {
		return nil, nil
	}
	a, err := p.Admin.AccountByLogin(ctx, p.Org)
	if err != nil {
		return nil, fmt.Errorf("look for organisation %s: %w", p.Org, err)
	}
	return &place{Place: forge.Place{Org: a.Login}, name: a.Login, scope: webhook.ScopeOrg, id: a.ID}, nil
}

func (p *planner) findRepos(ctx context.Context) ([]place, error) {
	var out []place
	for _, full := range p.Repos {
		owner, name, ok := strings.Cut(full, "/")
		if !ok {
			return nil, fmt.Errorf("%q is no owner/repo", full)
		}
		if p.Org != "" && !strings.EqualFold(owner, p.Org) {
			return nil, fmt.Errorf("%s is not of organisation %s", full, p.Org)
		}
		r, err := p.Admin.RepoByName(ctx, owner, name)
		if err != nil {
			return nil, fmt.Errorf("look for repository %s: %w", full, err)
		}
		out = append(out, place{Place: forge.Place{Repo: r.ID}, name: r.FullName(), repo: r, scope: webhook.ScopeRepo, id: r.ID})
	}
	return out, nil
}

// inRepo plans for one repository. What its organisation provides for it is
// left to that.
func (p *planner) inRepo(ctx context.Context, at place, byOrg bool) error {
	if !byOrg {
		if err := p.access(ctx, at); err != nil {
			return err
		}
	}
	if !byOrg || !p.Admin.Traits().OrgLabels {
		if err := p.labels(ctx, at); err != nil {
			return err
		}
	}
	return p.form(ctx, at)
}

func (p *planner) inOrg(ctx context.Context, org place, repos []place) error {
	if err := p.team(ctx, org, repos); err != nil {
		return err
	}
	if !p.Admin.Traits().OrgLabels {
		return nil
	}
	return p.labels(ctx, org)
}

// access gives the bot the right without which it cannot read who may approve
// what.
func (p *planner) access(ctx context.Context, at place) error {
	perm, id, err := p.Admin.Permission(ctx, at.repo.ID, p.Bot.Login)
	if err != nil {
		return fmt.Errorf("read what %s may do in %s: %w", p.Bot.Login, at.name, err)
	}
	if id != p.Bot.ID {
		return fmt.Errorf("the login %s is another account's than the bot's token", p.Bot.Login)
	}
	needs := p.Admin.Traits().Needs
	if suffices(perm, needs) {
		p.add(at, "access", Keep, nil, "%s has %s", p.Bot.Login, perm)
		return nil
	}
	p.add(at, "access", Create, func(ctx context.Context) error {
		if err := p.Admin.Admit(ctx, at.repo.ID, p.Bot.Login); err != nil || p.Invited == nil {
			return err
		}
		return p.Invited.AcceptRepo(ctx, at.repo.ID)
	}, "%s gets %s", p.Bot.Login, needs)
	return nil
}

// suffices reports whether a permission is no less than another.
func suffices(have, needed forge.Permission) bool {
	order := []forge.Permission{forge.PermissionNone, forge.PermissionRead, forge.PermissionWrite, forge.PermissionAdmin, forge.PermissionOwner}
	return slices.Index(order, have) >= slices.Index(order, needed)
}

func (p *planner) outOfRepo(ctx context.Context, at place, byOrg bool) error {
	if !byOrg {
		if err := p.unhook(ctx, at); err != nil {
			return err
		}
	}
	if err := p.unform(ctx, at); err != nil {
		return err
	}
	if !byOrg || !p.Admin.Traits().OrgLabels {
		if err := p.unlabel(ctx, at); err != nil {
			return err
		}
	}
	if byOrg {
		return nil
	}
	is, err := p.Admin.IsCollaborator(ctx, at.repo.ID, p.Bot.Login)
	if err != nil && !errors.Is(err, forge.ErrNotFound) {
		return fmt.Errorf("read whether %s collaborates on %s: %w", p.Bot.Login, at.name, err)
	}
	if is {
		p.add(at, "access", Delete, func(ctx context.Context) error {
			return p.Admin.RemoveCollaborator(ctx, at.repo.ID, p.Bot.Login)
		}, "%s is no longer a collaborator", p.Bot.Login)
	}
	return nil
}

func (p *planner) outOfOrg(ctx context.Context, org place, repos []place) error {
	ends, err := p.unteam(ctx, org, repos)
	if err != nil || !ends {
		return err
	}
	if err := p.unhook(ctx, org); err != nil || !p.Admin.Traits().OrgLabels {
		return err
	}
	return p.unlabel(ctx, org)
}
