package gitea

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	sdk "code.gitea.io/sdk/gitea"

	"playbook-bot/bot/forge"
	"playbook-bot/bot/forge/internal/wire"
)

// Issue reads an issue or pull request.
func (c *Client) Issue(ctx context.Context, repoID, number int64) (forge.Issue, error) {
	what := wire.Read("issue.read", "read issue %d of repository %d", number, repoID)
	var issue *sdk.Issue
	ex, e, err := c.inRepo(ctx, what, repoID, 0, func(t target) (err error) {
		issue, _, err = t.api.GetIssue(t.owner(), t.name(), number)
		if err == nil && issue != nil && issue.Repository != nil && issue.Repository.ID != repoID {
			return errMoved
		}
		return err
	})
	if err != nil {
		return forge.Issue{}, err
	}
	if issue == nil || issue.ID <= 0 || issue.Index != number {
		return forge.Issue{}, nonsense(what, ex)
	}
	if issue.Repository != nil {
		c.proved(e)
	}
	return toIssue(issue, e), nil
}

// Comment reads one comment by its id. An id that belongs to another
// repository, or to something in a thread that is no comment (a "closed"
// line), is forge.ErrNotFound.
func (c *Client) Comment(ctx context.Context, repoID, id int64) (forge.Comment, error) {
	what := wire.Read("comment.read", "read comment %d of repository %d", id, repoID)
	var comment *sdk.Comment
	ex, e, err := c.inRepo(ctx, what, repoID, 0, func(t target) (err error) {
		comment, _, err = t.api.GetIssueComment(t.owner(), t.name(), id)
		return err
	})
	if ex.Status == http.StatusNoContent {
		return forge.Comment{}, &forge.Error{Op: what.Op, Status: ex.Status, Kind: forge.ErrNotFound, FromForge: true}
	}
	if err != nil {
		return forge.Comment{}, err
	}
	if comment == nil || comment.ID != id {
		return forge.Comment{}, nonsense(what, ex)
	}
	c.proved(e) // comment ids are the server's, and it looks the repository up
	out, ok := toComment(comment, e)
	if !ok {
		return forge.Comment{}, &forge.Error{Op: what.Op, Status: ex.Status, Kind: forge.ErrNotFound, FromForge: true}
	}
	return out, nil
}

// Comments lists the comments of a thread that were updated at or after since
// (whole seconds; zero: all), ascending by id, each once. One call, however
// long the thread: Gitea does not page this listing and ignores page and
// limit.
func (c *Client) Comments(ctx context.Context, repoID, number int64, since time.Time) ([]forge.Comment, error) {
	what := wire.Read("comment.list", "list the comments of issue %d of repository %d", number, repoID)
	var comments []*sdk.Comment
	_, e, err := c.inRepo(ctx, what, repoID, trustName, func(t target) (err error) {
		comments, _, err = t.api.ListIssueComments(t.owner(), t.name(), number, sdk.ListIssueCommentOptions{
			ListOptions: sdk.ListOptions{Page: -1}, Since: since.UTC()})
		return err
	})
	if err = c.missingIssue(ctx, what, repoID, number, err); err != nil {
		return nil, err
	}
	out := toComments(comments, e)
	for i := range out {
		out[i].Number = number
	}
	return out, nil
}

// ListsAtOnce is true: Comments costs one call, however long the thread.
func (c *Client) ListsAtOnce() bool { return true }

// missingIssue finds out whether a 500 stands for an issue that is gone: Gitea
// 1.26 answers 500, not 404, to reading or writing the comments of an issue
// that does not exist. Only its own 500s are looked into, with one call more.
func (c *Client) missingIssue(ctx context.Context, what wire.Call, repoID, number int64, err error) error {
	var e *forge.Error
	if !errors.As(err, &e) || e.Status != http.StatusInternalServerError || !e.FromForge {
		return err
	}
	if _, ierr := c.Issue(ctx, repoID, number); errors.Is(ierr, forge.ErrNotFound) {
		return &forge.Error{Op: what.Op, Status: http.StatusNotFound, Kind: forge.ErrNotFound, FromForge: true}
	}
	return err
}

// UpdatedIssues is one page (from 1) of a repository's issues and pull
// requests, open or closed, updated at or after since. more is false when the
// server says that this was the last; a caller still stops when a page brings
// it nothing new. date is the server's clock by the answer's Date header, zero
// if it sent none.
func (c *Client) UpdatedIssues(ctx context.Context, repoID int64, since time.Time, page int) (issues []forge.Issue, more bool, date time.Time, err error) {
	what := wire.Read("issue.updated", "list the updated issues of repository %d", repoID)
	var list []*sdk.Issue
	ex, e, err := c.inRepo(ctx, what, repoID, trustName, func(t target) (err error) {
		list, _, err = t.api.ListRepoIssues(t.owner(), t.name(), sdk.ListIssueOption{
			ListOptions: sdk.ListOptions{Page: page, PageSize: pageSize}, State: sdk.StateAll, Since: since.UTC()})
		if err == nil && slices.ContainsFunc(list, func(i *sdk.Issue) bool {
			return i != nil && i.Repository != nil && i.Repository.ID != repoID
		}) {
			return errMoved
		}
		return err
	})
	if err != nil {
		return nil, false, time.Time{}, err
	}
	for _, i := range list {
		if i != nil && i.ID > 0 && i.Index > 0 {
			issues = append(issues, toIssue(i, e))
		}
	}
	if len(issues) > 0 && list[0].Repository != nil {
		c.proved(e)
	}
	return issues, hasMore(ex, page, len(list)), ex.Date(), nil
}

// UpdatedComments is one page (from 1) of a repository's comments updated at
// or after since; more and date are as in UpdatedIssues.
func (c *Client) UpdatedComments(ctx context.Context, repoID int64, since time.Time, page int) (comments []forge.Comment, more bool, date time.Time, err error) {
	what := wire.Read("comment.updated", "list the updated comments of repository %d", repoID)
	var list []*sdk.Comment
	ex, e, err := c.inRepo(ctx, what, repoID, trustName, func(t target) (err error) {
		list, _, err = t.api.ListRepoIssueComments(t.owner(), t.name(), sdk.ListIssueCommentOptions{
			ListOptions: sdk.ListOptions{Page: page, PageSize: pageSize}, Since: since.UTC()})
		return err
	})
	if err != nil {
		return nil, false, time.Time{}, err
	}
	return toComments(list, e), hasMore(ex, page, len(list)), ex.Date(), nil
}

// hasMore reports whether a page after this one may hold something. The server's
// page size is its own affair (50 at most, less if it is so configured), so
// X-Total-Count decides only where it can; an empty page always ends.
func hasMore(ex *wire.Exchange, page, got int) bool {
	if got == 0 {
		return false
	}
	total, err := strconv.Atoi(ex.Header.Get("X-Total-Count"))
	switch {
	case err != nil:
		return true
	case page <= 1:
		return got < total
	case got == pageSize:
		return page*pageSize < total
	}
	// A short page: the last one, or a server whose pages are shorter.
	return strings.Contains(ex.Header.Get("Link"), `rel="next"`) || ex.Header.Get("Link") == ""
}

// Permission is the standing of an account on a repository, and the id of the
// account that the server means by that login: rights hang on it. A value the
// adapter does not know is forge.PermissionNone. The bot's account must be an
// administrator of the repository, else forge.ErrUnverified; a login that
// exists nowhere is forge.ErrNotFound.
func (c *Client) Permission(ctx context.Context, repoID int64, login string) (forge.Permission, int64, error) {
	what := wire.Read("permission.read", "read an account's permission on repository %d", repoID)
	if strings.TrimSpace(login) == "" {
		return forge.PermissionNone, 0, &forge.Error{Op: what.Op, Kind: forge.ErrNotFound}
	}
	var result *sdk.CollaboratorPermissionResult
	ex, _, err := c.inRepo(ctx, what, repoID, trustName, func(t target) (err error) {
		result, _, err = t.api.CollaboratorPermission(t.owner(), t.name(), login)
		return err
	})
	if err != nil {
		return forge.PermissionNone, 0, err
	}
	if result == nil || result.User == nil || result.User.ID <= 0 {
		return forge.PermissionNone, 0, nonsense(what, ex)
	}
	return toPermission(result.Permission), result.User.ID, nil
}

func toPermission(mode sdk.AccessMode) forge.Permission {
	switch p := forge.Permission(mode); p {
	case forge.PermissionRead, forge.PermissionWrite, forge.PermissionAdmin, forge.PermissionOwner:
		return p
	}
	return forge.PermissionNone
}

// imported stands in Issue.OriginalAuthor and Comment.OriginalAuthor for texts
// that came with a migrated repository. Gitea 1.26.0 has the field
// original_author in its API but fills it nowhere (tried with a migration), so the importer would pass for the
// author of everything that was imported. What is no younger than its migrated
// repository can only have come with it.
const imported = "(imported)"

func originalAuthor(named string, created time.Time, e repoEntry) string {
	if named == "" && !e.importedUntil.IsZero() && !created.After(e.importedUntil) {
		return imported
	}
	return named
}

func toIssue(i *sdk.Issue, e repoEntry) forge.Issue {
	out := forge.Issue{
		ID: i.ID, Number: i.Index,
		Author:         toAccount(i.Poster),
		OriginalAuthor: originalAuthor(i.OriginalAuthor, i.Created, e),
		Title:          i.Title, Body: i.Body,
		Closed: i.State == sdk.StateClosed, Pull: i.PullRequest != nil,
		Comments:  i.Comments,
		CreatedAt: i.Created.UTC(), UpdatedAt: i.Updated.UTC(),
	}
	for _, l := range i.Labels {
		if l != nil {
			out.Labels = append(out.Labels, forge.Label{ID: l.ID, Name: l.Name})
		}
	}
	return out
}

// toComment is false for a comment that belongs to no thread any more.
func toComment(m *sdk.Comment, e repoEntry) (forge.Comment, bool) {
	number := wire.ThreadNumber(cmp.Or(m.IssueURL, m.PRURL))
	return forge.Comment{
		ID: m.ID, Number: number,
		Author:         toAccount(m.Poster),
		OriginalAuthor: originalAuthor(m.OriginalAuthor, m.Created, e),
		Body:           m.Body,
		CreatedAt:      m.Created.UTC(), UpdatedAt: m.Updated.UTC(),
	}, number > 0
}

func toComments(list []*sdk.Comment, e repoEntry) []forge.Comment {
	out := make([]forge.Comment, 0, len(list))
	seen := make(map[int64]bool, len(list))
	for _, m := range list {
		if m == nil || m.ID <= 0 || seen[m.ID] {
			continue
		}
		seen[m.ID] = true
		if cm, ok := toComment(m, e); ok {
			out = append(out, cm)
		}
	}
	slices.SortFunc(out, func(a, b forge.Comment) int { return cmp.Compare(a.ID, b.ID) })
	return out
}
