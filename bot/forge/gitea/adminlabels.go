package gitea

import (
	"cmp"
	"context"
	"slices"
	"strings"

	sdk "code.gitea.io/sdk/gitea"

	"playbook-bot/bot/forge"
	"playbook-bot/bot/forge/internal/wire"
)

// Labels lists the labels of a repository, without its organisation's, or of
// an organisation, the oldest first.
func (c *Client) Labels(ctx context.Context, p forge.Place) ([]forge.LabelFound, error) {
	what := wire.Read("label.list", "list the labels of %s", placeName(p))
	labels, err := pages(func(l *sdk.Label) int64 { return l.ID }, func(page int) (labels []*sdk.Label, ex *wire.Exchange, err error) {
		ex, err = c.inPlace(ctx, what, p, func(t target) (err error) {
			labels, _, err = t.api.ListRepoLabels(t.owner(), t.name(), sdk.ListLabelsOptions{ListOptions: listPage(page)})
			return err
		}, func(api *sdk.Client) (err error) {
			labels, _, err = api.ListOrgLabels(p.Org, sdk.ListOrgLabelsOptions{ListOptions: listPage(page)})
			return err
		})
		return labels, ex, err
	})
	if err != nil {
		return nil, err
	}
	out := make([]forge.LabelFound, 0, len(labels))
	for _, l := range labels {
		out = append(out, forge.LabelFound{ID: l.ID, LabelSpec: forge.LabelSpec{
			Name: l.Name, Color: strings.TrimPrefix(l.Color, "#"), Description: l.Description, Exclusive: l.Exclusive,
		}})
	}
	slices.SortFunc(out, func(a, b forge.LabelFound) int { return int(a.ID - b.ID) })
	return out, nil
}

// CreateLabel makes a label.
func (c *Client) CreateLabel(ctx context.Context, p forge.Place, spec forge.LabelSpec) error {
	if p.Org == "" {
		_, err := c.createLabel(ctx, p.Repo, spec)
		return err
	}
	what := wire.Write("label.create", "create a label of %s", placeName(p))
	_, err := c.do(ctx, what, func(api *sdk.Client) error {
		_, _, err := api.CreateOrgLabel(p.Org, sdk.CreateOrgLabelOption{
			Name: spec.Name, Color: "#" + strings.TrimPrefix(cmp.Or(spec.Color, defaultColor), "#"),
			Description: spec.Description, Exclusive: spec.Exclusive && hasScope(spec.Name),
		})
		return err
	})
	return err
}

// EditLabel gives a label the looks and the exclusiveness of spec.
func (c *Client) EditLabel(ctx context.Context, p forge.Place, have forge.LabelFound, spec forge.LabelSpec) error {
	id := have.ID
	what := wire.Write("label.edit", "edit label %d of %s", id, placeName(p))
	color := "#" + strings.TrimPrefix(cmp.Or(spec.Color, defaultColor), "#")
	exclusive := spec.Exclusive && hasScope(spec.Name)
	_, err := c.inPlace(ctx, what, p, func(t target) error {
		_, _, err := t.api.EditLabel(t.owner(), t.name(), id, sdk.EditLabelOption{
			Name: &spec.Name, Color: &color, Description: &spec.Description, Exclusive: &exclusive})
		return err
	}, func(api *sdk.Client) error {
		_, _, err := api.EditOrgLabel(p.Org, id, sdk.EditOrgLabelOption{
			Name: &spec.Name, Color: &color, Description: &spec.Description, Exclusive: &exclusive})
		return err
	})
	return err
}

// DeleteLabel removes a label, and with it from every issue that bears it.
func (c *Client) DeleteLabel(ctx context.Context, p forge.Place, have forge.LabelFound) error {
	id := have.ID
	what := wire.Write("label.delete", "delete label %d of %s", id, placeName(p))
	_, err := c.inPlace(ctx, what, p, func(t target) error {
		_, err := t.api.DeleteLabel(t.owner(), t.name(), id)
		return err
	}, func(api *sdk.Client) error {
		_, err := api.DeleteOrgLabel(p.Org, id)
		return err
	})
	return err
}

// LabelInUse reports whether an issue or pull request that the account may see,
// open or closed, bears a label of that name, in the repository or in any of
// the organisation's.
func (c *Client) LabelInUse(ctx context.Context, p forge.Place, name string) (bool, error) {
	what := wire.Read("issue.labelled", "look for issues with a label in %s", placeName(p))
	opt := sdk.ListIssueOption{ListOptions: sdk.ListOptions{Page: 1, PageSize: 1}, State: sdk.StateAll, Labels: []string{name}}
	var issues []*sdk.Issue
	_, err := c.inPlace(ctx, what, p, func(t target) (err error) {
		issues, _, err = t.api.ListRepoIssues(t.owner(), t.name(), opt)
		return err
	}, func(api *sdk.Client) (err error) {
		opt.Owner = p.Org
		issues, _, err = api.ListIssues(opt)
		return err
	})
	return len(issues) > 0, err
}
