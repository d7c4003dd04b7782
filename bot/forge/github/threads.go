package github

import (
	"cmp"
	"context"
	"slices"
	"time"

	sdk "github.com/google/go-github/v62/github"

	"playbook-bot/bot/forge"
	"playbook-bot/bot/forge/internal/wire"
)

// onThread makes a call about an issue or pull request, or a comment of one. A
// thread that was transferred to another repository is not found here, and
// neither are its comments.
func (c *Client) onThread(ctx context.Context, repoID int64, r request) (ex *wire.Exchange, next int, err error) {
	ex, next, err = c.onRepo(ctx, repoID, r)
	if err != nil && moved(ex) {
		err = &forge.Error{Op: r.Op, Status: ex.Status, Kind: forge.ErrNotFound, FromForge: true}
	}
	return ex, next, err
}

// Issue reads an issue or pull request. One that was deleted or transferred is
// forge.ErrNotFound.
func (c *Client) Issue(ctx context.Context, repoID, number int64) (forge.Issue, error) {
	what := wire.Read("issue.read", "read issue %d of repository %d", number, repoID)
	var issue sdk.Issue
	ex, _, err := c.onThread(ctx, repoID, get(what, &issue, inRepo(repoID, "issues", number)))
	if err != nil {
		return forge.Issue{}, err
	}
	if issue.GetID() <= 0 || int64(issue.GetNumber()) != number {
		return forge.Issue{}, nonsense(what, ex)
	}
	return toIssue(&issue), nil
}

// Comment reads one comment by its id. An id that belongs to another
// repository is forge.ErrNotFound.
func (c *Client) Comment(ctx context.Context, repoID, id int64) (forge.Comment, error) {
	what := wire.Read("comment.read", "read comment %d of repository %d", id, repoID)
	var comment sdk.IssueComment
	ex, _, err := c.onThread(ctx, repoID, get(what, &comment, inRepo(repoID, "issues", "comments", id)))
	if err != nil {
		return forge.Comment{}, err
	}
	out, ok := toComment(&comment)
	if !ok || out.ID != id {
		return forge.Comment{}, nonsense(what, ex)
	}
	return out, nil
}

// ListsAtOnce is false: Comments takes a call for every hundred.
func (c *Client) ListsAtOnce() bool { return false }

// Comments lists the comments of a thread that were updated at or after since
// (whole seconds; zero: all), ascending by id, each once. It takes one call
// for every hundred.
func (c *Client) Comments(ctx context.Context, repoID, number int64, since time.Time) ([]forge.Comment, error) {
	what := wire.Read("comment.list", "list the comments of issue %d of repository %d", number, repoID)
	var out []forge.Comment
	seen := map[int64]bool{}
	err := pages(func(n int) (int, bool, error) {
		var list []*sdk.IssueComment
		_, next, err := c.onThread(ctx, repoID, get(what, &list, page(inRepo(repoID, "issues", number, "comments"), n, before(since))))
		fresh := false
		for _, m := range list {
			cm, ok := toComment(m)
			if !ok || seen[cm.ID] {
				continue
			}
			seen[cm.ID], fresh = true, true
			if cm.Number = number; inTime(cm.UpdatedAt, since) {
				out = append(out, cm)
			}
		}
		return next, fresh, err
	})
	if err != nil {
		return nil, err
	}
	slices.SortFunc(out, func(a, b forge.Comment) int { return cmp.Compare(a.ID, b.ID) })
	return out, nil
}

// before is a second before since, inTime what since means: GitHub says
// "after" of it and does not say whether the second itself is meant.
func before(since time.Time) time.Time {
	if since.IsZero() {
		return since
	}
	return since.Truncate(time.Second).Add(-time.Second)
}

func inTime(at, since time.Time) bool { return !at.Before(since.Truncate(time.Second)) }

// oldest is the order of all listings by pages: by creation, oldest first. In
// it nothing that changes while the pages are read makes anything be missed;
// only what is deleted does, until the next look.
var oldest = []string{"sort", "created", "direction", "asc"}

// UpdatedIssues is one page (from 1) of a repository's issues and pull
// requests, open or closed, updated at or after since. more is false when the
// server names no next page. date is the server's clock by the answer's Date
// header, zero if it sent none.
func (c *Client) UpdatedIssues(ctx context.Context, repoID int64, since time.Time, number int) (issues []forge.Issue, more bool, date time.Time, err error) {
	what := wire.Read("issue.updated", "list the updated issues of repository %d", repoID)
	var list []*sdk.Issue
	path := page(inRepo(repoID, "issues"), number, before(since), append([]string{"state", "all"}, oldest...)...)
	ex, next, err := c.onRepo(ctx, repoID, get(what, &list, path))
	if err != nil {
		return nil, false, time.Time{}, err
	}
	for _, i := range list {
		if out := toIssue(i); out.ID > 0 && out.Number > 0 && inTime(out.UpdatedAt, since) {
			issues = append(issues, out)
		}
	}
	return issues, len(list) > 0 && next > number, ex.Date(), nil
}

// UpdatedComments is one page (from 1) of a repository's comments updated at
// or after since; more and date are as in UpdatedIssues.
func (c *Client) UpdatedComments(ctx context.Context, repoID int64, since time.Time, number int) (comments []forge.Comment, more bool, date time.Time, err error) {
	what := wire.Read("comment.updated", "list the updated comments of repository %d", repoID)
	var list []*sdk.IssueComment
	path := page(inRepo(repoID, "issues", "comments"), number, before(since), oldest...)
	ex, next, err := c.onRepo(ctx, repoID, get(what, &list, path))
	if err != nil {
		return nil, false, time.Time{}, err
	}
	for _, m := range list {
		if cm, ok := toComment(m); ok && inTime(cm.UpdatedAt, since) {
			comments = append(comments, cm)
		}
	}
	return comments, len(list) > 0 && next > number, ex.Date(), nil
}

// toIssue is the zero issue for null.
func toIssue(i *sdk.Issue) forge.Issue {
	if i == nil {
		return forge.Issue{}
	}
	out := forge.Issue{
		ID: i.GetID(), Number: int64(i.GetNumber()),
		Author: toAccount(i.GetUser()), OriginalAuthor: originalAuthor(i.GetUser()),
		Title: i.GetTitle(), Body: i.GetBody(),
		Closed: i.GetState() == "closed", Pull: i.IsPullRequest(),
		Comments:  i.GetComments(),
		CreatedAt: i.GetCreatedAt().UTC(), UpdatedAt: i.GetUpdatedAt().UTC(),
	}
	for _, l := range i.Labels {
		if l != nil {
			out.Labels = append(out.Labels, forge.Label{ID: l.GetID(), Name: l.GetName()})
		}
	}
	return out
}

// toComment is false for what is no comment of a thread.
func toComment(m *sdk.IssueComment) (forge.Comment, bool) {
	if m == nil {
		return forge.Comment{}, false
	}
	out := forge.Comment{
		ID: m.GetID(), Number: wire.ThreadNumber(m.GetIssueURL()),
		Author: toAccount(m.GetUser()), OriginalAuthor: originalAuthor(m.GetUser()),
		Body:      m.GetBody(),
		CreatedAt: m.GetCreatedAt().UTC(), UpdatedAt: m.GetUpdatedAt().UTC(),
	}
	return out, out.ID > 0 && out.Number > 0
}
