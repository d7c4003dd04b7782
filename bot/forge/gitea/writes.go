package gitea

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"

	sdk "code.gitea.io/sdk/gitea"

	"playbook-bot/bot/forge"
	"playbook-bot/bot/forge/internal/wire"
)

// CreateComment posts a comment. It is not idempotent: an error with Ambiguous
// set may come after the comment was stored, and the only way to know is to
// look for it. A caller that was refused for a missing issue gets
// forge.ErrNotFound.
func (c *Client) CreateComment(ctx context.Context, repoID, number int64, body string) (forge.Comment, error) {
	what := wire.Write("comment.create", "comment on issue %d of repository %d", number, repoID)
	if body == "" {
		return forge.Comment{}, &forge.Error{Op: what.Op, Kind: forge.ErrPermanent}
	}
	var comment *sdk.Comment
	ex, e, err := c.inRepo(ctx, what, repoID, trustName, func(t target) (err error) {
		comment, _, err = t.api.CreateIssueComment(t.owner(), t.name(), number, sdk.CreateIssueCommentOption{Body: body})
		return err
	})
	if err = c.missingIssue(ctx, what, repoID, number, err); err != nil {
		return forge.Comment{}, err
	}
	// A 200 is no 201: something on the way made a GET of it, or answered
	// itself.
	if ex.Status != http.StatusCreated || comment == nil || comment.ID <= 0 {
		return forge.Comment{}, nonsense(what, ex)
	}
	out, _ := toComment(comment, e)
	out.Number = number
	return out, nil
}

// CreateIssue opens an issue by the bot's own account. It is as little
// idempotent as CreateComment: an error with Ambiguous set may come after the
// issue was stored.
func (c *Client) CreateIssue(ctx context.Context, repoID int64, title, body string) (forge.Issue, error) {
	what := wire.Write("issue.create", "open an issue in repository %d", repoID)
	if strings.TrimSpace(title) == "" || body == "" {
		return forge.Issue{}, &forge.Error{Op: what.Op, Kind: forge.ErrPermanent}
	}
	var issue *sdk.Issue
	ex, e, err := c.inRepo(ctx, what, repoID, trustName, func(t target) (err error) {
		issue, _, err = t.api.CreateIssue(t.owner(), t.name(), sdk.CreateIssueOption{Title: title, Body: body})
		return err
	})
	if err != nil {
		return forge.Issue{}, err
	}
	if ex.Status != http.StatusCreated || issue == nil || issue.Index <= 0 {
		return forge.Issue{}, nonsense(what, ex)
	}
	return toIssue(issue, e), nil
}

// EditComment replaces a comment's body.
func (c *Client) EditComment(ctx context.Context, repoID, id int64, body string) error {
	what := wire.Write("comment.edit", "edit comment %d of repository %d", id, repoID)
	if body == "" {
		return &forge.Error{Op: what.Op, Kind: forge.ErrPermanent}
	}
	var comment *sdk.Comment
	ex, _, err := c.inRepo(ctx, what, repoID, 0, func(t target) (err error) {
		comment, _, err = t.api.EditIssueComment(t.owner(), t.name(), id, sdk.EditIssueCommentOption{Body: body})
		return err
	})
	if err != nil {
		return err
	}
	if comment == nil || comment.ID != id {
		return nonsense(what, ex)
	}
	return nil
}

// DeleteComment removes a comment. One that is gone already is
// forge.ErrNotFound.
func (c *Client) DeleteComment(ctx context.Context, repoID, id int64) error {
	what := wire.Write("comment.delete", "delete comment %d of repository %d", id, repoID)
	_, _, err := c.inRepo(ctx, what, repoID, 0, func(t target) error {
		_, err := t.api.DeleteIssueComment(t.owner(), t.name(), id)
		return err
	})
	return err
}

// React sets or takes away the bot's own reaction on an issue or comment.
// Setting one that stands, or taking away one that does not, is no error.
func (c *Client) React(ctx context.Context, repoID, number int64, obj forge.Object, r forge.Reaction, on bool) error {
	kind := "reaction.add"
	if !on {
		kind = "reaction.remove"
	}
	what := wire.Write(kind, "react on %s %d of repository %d", obj.Kind, obj.ID, repoID)
	maxAge := trustName
	if obj.Kind == forge.ObjectComment {
		maxAge = 0 // comment ids are the server's: under another's name it is not found
	}
	_, _, err := c.inRepo(ctx, what, repoID, maxAge, func(t target) (err error) {
		switch {
		case obj.Kind == forge.ObjectComment && on:
			_, _, err = t.api.PostIssueCommentReaction(t.owner(), t.name(), obj.ID, string(r))
		case obj.Kind == forge.ObjectComment:
			_, err = t.api.DeleteIssueCommentReaction(t.owner(), t.name(), obj.ID, string(r))
		case on:
			_, _, err = t.api.PostIssueReaction(t.owner(), t.name(), number, string(r))
		default:
			_, err = t.api.DeleteIssueReaction(t.owner(), t.name(), number, string(r))
		}
		return err
	})
	return err
}

// hasScope reports whether a label's name has a scope, e.g. "recovery/" in
// "recovery/approved".
func hasScope(name string) bool { return strings.LastIndexByte(name, '/') > 0 }

// EnsureLabels makes the labels that neither the repository nor its
// organisation has. Those that are there are left as they are, whatever their
// colour: people may have changed it.
func (c *Client) EnsureLabels(ctx context.Context, repoID int64, specs []forge.LabelSpec) error {
	c.labels.specify(specs)
	ids, err := c.repoLabels(ctx, repoID)
	if err != nil {
		return err
	}
	lacks := func(spec forge.LabelSpec) bool { _, ok := ids[spec.Name]; return !ok }
	if slices.ContainsFunc(specs, lacks) {
		if err := c.addOrgLabels(ctx, repoID, ids); err != nil {
			return err
		}
	}
	for _, spec := range specs {
		if !lacks(spec) {
			continue
		}
		if ids[spec.Name], err = c.createLabel(ctx, repoID, spec); err != nil {
			return err
		}
	}
	c.labels.put(repoID, ids)
	return nil
}

// addOrgLabels adds to ids, name to id, the labels of the repository's
// organisation that have other names. An owner who is none, or whose labels the
// token may not read (read:organization), has none.
func (c *Client) addOrgLabels(ctx context.Context, repoID int64, ids map[string]int64) error {
	e, ok := c.repos.get(repoID)
	if !ok {
		return nil
	}
	labels, err := c.Labels(ctx, forge.Place{Org: e.repo.Owner})
	if errors.Is(err, forge.ErrNotFound) || errors.Is(err, forge.ErrUnverified) {
		return nil
	}
	for _, l := range labels {
		if _, ok := ids[l.Name]; !ok {
			ids[l.Name] = l.ID
		}
	}
	return err
}

// SetLabels puts add on an issue and takes remove off it; all other labels
// stay as they are. A label of add that the repository lacks is made, exclusive
// if its name has a scope, in which case setting it takes the scope's others
// off. An empty difference costs one call.
func (c *Client) SetLabels(ctx context.Context, repoID, number int64, add, remove []string) error {
	issue, err := c.Issue(ctx, repoID, number)
	if err != nil {
		return err
	}
	stand := map[string]int64{}
	for _, l := range issue.Labels {
		stand[l.Name] = l.ID
	}
	var missing []string
	for _, name := range add {
		if _, ok := stand[name]; !ok {
			missing = append(missing, name)
		}
	}
	if len(missing) > 0 {
		if stand, err = c.addLabels(ctx, repoID, number, missing); err != nil {
			return err
		}
	}
	for _, name := range remove {
		id, ok := stand[name]
		if !ok {
			continue
		}
		what := wire.Write("label.remove", "take a label off issue %d of repository %d", number, repoID)
		ex, _, err := c.inRepo(ctx, what, repoID, trustName, func(t target) error {
			_, err := t.api.DeleteIssueLabel(t.owner(), t.name(), number, id)
			return err
		})
		// 422: the label was deleted from the repository meanwhile.
		if err != nil && !errors.Is(err, forge.ErrNotFound) && ex.Status != http.StatusUnprocessableEntity {
			return err
		}
	}
	return nil
}
