package setup

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"playbook-bot/bot/forge"
)

// Branch is the branch of the pull request that proposes the form.
const Branch = "playbook-bot/setup"

// labels plans the labels. Only what the bot's work hangs on is repaired:
// colours and descriptions are people's to change.
func (p *planner) labels(ctx context.Context, at place) error {
	found, err := p.labelsByName(ctx, at)
	if err != nil {
		return err
	}
	kept := 0
	for _, want := range p.Labels {
		have, ok := found[want.Name]
		switch {
		case !ok:
			p.add(at, "label "+want.Name, Create, func(ctx context.Context) error { return p.Admin.CreateLabel(ctx, at.Place, want) }, "")
		case want.Exclusive && !have.Exclusive:
			fixed := have.LabelSpec
			fixed.Exclusive = true
			p.add(at, "label "+want.Name, Repair, func(ctx context.Context) error { return p.Admin.EditLabel(ctx, at.Place, have, fixed) },
				"it becomes exclusive: one of its scope stands on an issue")
		default:
			kept++
		}
	}
	if kept > 0 {
		p.add(at, "labels", Keep, nil, "%d of %d are there", kept, len(p.Labels))
	}
	return nil
}

// labelsByName takes the oldest of those with one name, as the adapter does.
func (p *planner) labelsByName(ctx context.Context, at place) (map[string]forge.LabelFound, error) {
	list, err := p.Admin.Labels(ctx, at.Place)
	if err != nil {
		return nil, fmt.Errorf("list the labels of %s: %w", at.name, err)
	}
	found := map[string]forge.LabelFound{}
	for _, l := range list {
		if _, ok := found[l.Name]; !ok {
			found[l.Name] = l
		}
	}
	return found, nil
}

// unlabel removes the labels that no issue bears: on the others hangs what
// happened.
func (p *planner) unlabel(ctx context.Context, at place) error {
	found, err := p.labelsByName(ctx, at)
	if err != nil {
		return err
	}
	for _, l := range p.Labels {
		have, ok := found[l.Name]
		if !ok {
			continue
		}
		used, err := p.Admin.LabelInUse(ctx, at.Place, l.Name)
		if err != nil {
			return fmt.Errorf("look for issues with label %s in %s: %w", l.Name, at.name, err)
		}
		if used {
			p.add(at, "label "+l.Name, Keep, nil, "issues bear it")
			continue
		}
		p.add(at, "label "+l.Name, Delete, func(ctx context.Context) error { return p.Admin.DeleteLabel(ctx, at.Place, have) }, "")
	}
	return nil
}

func (p *planner) formPath() string { return p.Admin.Traits().FormDir + "/" + p.FormPath }

// form plans the issue form. One with other contents is people's work unless
// Replace says otherwise.
func (p *planner) form(ctx context.Context, at place) error {
	have, err := p.Admin.ReadFile(ctx, at.repo.ID, p.formPath(), "")
	missing := errors.Is(err, forge.ErrNotFound)
	switch {
	case err != nil && !missing:
		return fmt.Errorf("read %s of %s: %w", p.formPath(), at.name, err)
	case !missing && bytes.Equal(have.Content, p.Form):
		p.add(at, "form", Keep, nil, "%s", p.formPath())
		return nil
	case !missing && !p.Replace:
		p.add(at, "form", Keep, nil, "%s has other contents; --replace overwrites them", p.formPath())
		return nil
	}
	change := forge.FileChange{Path: p.formPath(), Content: p.Form, Version: have.Version, Message: "Add the form for restart requests"}
	action := Create
	if !missing {
		action, change.Message = Repair, "Bring the form for restart requests up to date"
	}
	if !p.PullRequest {
		p.add(at, "form", action, func(ctx context.Context) error { return p.commit(ctx, at, change) },
			"%s, a commit to the default branch", p.formPath())
		return nil
	}
	return p.propose(ctx, at, action, change)
}

// commit puts the form on the default branch.
func (p *planner) commit(ctx context.Context, at place, change forge.FileChange) error {
	err := p.Admin.ChangeFile(ctx, at.repo.ID, change)
	if errors.Is(err, forge.ErrPermanent) || errors.Is(err, forge.ErrUnverified) {
		return fmt.Errorf("%w; if the default branch is protected, --pull-request proposes it", err)
	}
	return err
}

// propose plans a pull request. One that is open already is brought up to date
// by hand: its branch is people's as soon as they have it.
func (p *planner) propose(ctx context.Context, at place, action Action, change forge.FileChange) error {
	number, err := p.Admin.PullOf(ctx, at.repo.ID, Branch)
	if err != nil && !errors.Is(err, forge.ErrNotFound) {
		return fmt.Errorf("look for the pull request of %s in %s: %w", Branch, at.name, err)
	}
	if number != 0 {
		p.add(at, "form", Keep, nil, "proposed by pull request %d", number)
		return nil
	}
	change.NewBranch = Branch
	p.add(at, "form", action, func(ctx context.Context) error {
		// A branch left by a pull request that was closed would be in the way.
		if err := p.Admin.DeleteBranch(ctx, at.repo.ID, Branch); err != nil && !errors.Is(err, forge.ErrNotFound) {
			return err
		}
		if err := p.Admin.ChangeFile(ctx, at.repo.ID, change); err != nil {
			return fmt.Errorf("%w; a repository without a commit can have no pull request", err)
		}
		_, err := p.Admin.OpenPull(ctx, at.repo.ID, Branch, change.Message,
			"An issue opened with this form is a restart request, which playbook-bot answers.")
		return err
	}, "%s, a pull request from %s", p.formPath(), Branch)
	return nil
}

// unform takes the form away. A pull request that proposes it is people's to
// close.
func (p *planner) unform(ctx context.Context, at place) error {
	if number, err := p.Admin.PullOf(ctx, at.repo.ID, Branch); err == nil && number != 0 {
		p.add(at, "form", Keep, nil, "pull request %d proposes it still: close it", number)
	}
	have, err := p.Admin.ReadFile(ctx, at.repo.ID, p.formPath(), "")
	switch {
	case errors.Is(err, forge.ErrNotFound):
		return nil
	case err != nil:
		return fmt.Errorf("read %s of %s: %w", p.formPath(), at.name, err)
	case !bytes.Equal(have.Content, p.Form) && !p.Replace:
		p.add(at, "form", Keep, nil, "%s has other contents; --replace removes it all the same", p.formPath())
		return nil
	}
	change := forge.FileChange{Path: p.formPath(), Version: have.Version, Message: "Remove the form for restart requests"}
	p.add(at, "form", Delete, func(ctx context.Context) error { return p.Admin.ChangeFile(ctx, at.repo.ID, change) }, "%s", p.formPath())
	return nil
}
