package github

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"time"

	sdk "github.com/google/go-github/v62/github"

	"playbook-bot/bot/forge"
	"playbook-bot/bot/forge/internal/wire"
)

// text is what a comment is made of.
type text struct {
	Body string `json:"body"`
}

// CreateComment posts a comment. It is not idempotent: an error with Ambiguous
// set may come after the comment was stored, and the only way to know is to
// look for it. GitHub takes at most 65,536 characters.
func (c *Client) CreateComment(ctx context.Context, repoID, number int64, body string) (forge.Comment, error) {
	what := wire.Write("comment.create", "comment on issue %d of repository %d", number, repoID)
	if body == "" {
		return forge.Comment{}, &forge.Error{Op: what.Op, Kind: forge.ErrPermanent}
	}
	var comment sdk.IssueComment
	ex, _, err := c.onThread(ctx, repoID, request{what, http.MethodPost, inRepo(repoID, "issues", number, "comments"), text{body}, &comment})
	if err != nil {
		return forge.Comment{}, err
	}
	// A 200 is no 201: something on the way answered itself.
	if ex.Status != http.StatusCreated || comment.GetID() <= 0 {
		return forge.Comment{}, nonsense(what, ex)
	}
	out, _ := toComment(&comment)
	out.Number = number
	return out, nil
}

// issueText is what an issue is made of.
type issueText struct {
	Title string `json:"title"`
	Body  string `json:"body"`
}

// CreateIssue opens an issue by the bot's own account. It is as little
// idempotent as CreateComment: an error with Ambiguous set may come after the
// issue was stored.
func (c *Client) CreateIssue(ctx context.Context, repoID int64, title, body string) (forge.Issue, error) {
	what := wire.Write("issue.create", "open an issue in repository %d", repoID)
	if strings.TrimSpace(title) == "" || body == "" {
		return forge.Issue{}, &forge.Error{Op: what.Op, Kind: forge.ErrPermanent}
	}
	var issue sdk.Issue
	ex, _, err := c.onRepo(ctx, repoID, request{what, http.MethodPost, inRepo(repoID, "issues"), issueText{title, body}, &issue})
	if err != nil {
		return forge.Issue{}, err
	}
	if ex.Status != http.StatusCreated || issue.GetNumber() <= 0 {
		return forge.Issue{}, nonsense(what, ex)
	}
	return toIssue(&issue), nil
}

// EditComment replaces a comment's body.
func (c *Client) EditComment(ctx context.Context, repoID, id int64, body string) error {
	what := wire.Write("comment.edit", "edit comment %d of repository %d", id, repoID)
	if body == "" {
		return &forge.Error{Op: what.Op, Kind: forge.ErrPermanent}
	}
	var comment sdk.IssueComment
	ex, _, err := c.onThread(ctx, repoID, request{what, http.MethodPatch, inRepo(repoID, "issues", "comments", id), text{body}, &comment})
	if err != nil {
		return err
	}
	if comment.GetID() != id {
		return nonsense(what, ex)
	}
	return nil
}

// DeleteComment removes a comment. One that is gone already is
// forge.ErrNotFound.
func (c *Client) DeleteComment(ctx context.Context, repoID, id int64) error {
	what := wire.Write("comment.delete", "delete comment %d of repository %d", id, repoID)
	_, _, err := c.onThread(ctx, repoID, request{what, http.MethodDelete, inRepo(repoID, "issues", "comments", id), nil, nil})
	return err
}

// React sets or takes away the bot's own reaction on an issue or comment.
// Setting one that stands, or taking away one that does not, is no error.
func (c *Client) React(ctx context.Context, repoID, number int64, obj forge.Object, r forge.Reaction, on bool) error {
	path := inRepo(repoID, "issues", number, "reactions")
	if obj.Kind == forge.ObjectComment {
		path = inRepo(repoID, "issues", "comments", obj.ID, "reactions")
	}
	if on {
		what := wire.Write("reaction.add", "react on %s %d of repository %d", obj.Kind, obj.ID, repoID)
		_, _, err := c.onThread(ctx, repoID, request{what, http.MethodPost, path, sdk.Reaction{Content: sdk.String(string(r))}, nil})
		return err
	}
	id, err := c.ownReaction(ctx, repoID, path, obj, r)
	if err != nil || id == 0 {
		return err
	}
	what := wire.Write("reaction.remove", "take back a reaction on %s %d of repository %d", obj.Kind, obj.ID, repoID)
	_, _, err = c.onThread(ctx, repoID, request{what, http.MethodDelete, path + "/" + escaped(id), nil, nil})
	if errors.Is(err, forge.ErrNotFound) {
		return nil // somebody was quicker
	}
	return err
}

// ownReaction finds the bot's own reaction, which GitHub takes away only by
// its id; 0 if there is none.
func (c *Client) ownReaction(ctx context.Context, repoID int64, path string, obj forge.Object, r forge.Reaction) (id int64, err error) {
	self, err := c.ownID(ctx)
	if err != nil {
		return 0, err
	}
	what := wire.Read("reaction.list", "list the reactions on %s %d of repository %d", obj.Kind, obj.ID, repoID)
	seen := map[int64]bool{}
	err = pages(func(number int) (int, bool, error) {
		var list []*sdk.Reaction
		_, next, err := c.onThread(ctx, repoID, get(what, &list, page(path, number, time.Time{}, "content", string(r))))
		fresh := false
		for _, have := range list {
			if !seen[have.GetID()] {
				seen[have.GetID()], fresh = true, true
			}
			if have.GetUser().GetID() == self && have.GetContent() == string(r) {
				id = have.GetID()
			}
		}
		return next, fresh && id == 0, err
	})
	return id, err
}
