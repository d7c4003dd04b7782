package github

import (
	"context"
	"encoding/base64"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"time"

	sdk "github.com/google/go-github/v62/github"

	"playbook-bot/bot/forge"
	"playbook-bot/bot/forge/internal/wire"
)

// Labels lists the labels of a repository. An organisation has none. GitHub
// knows no exclusive labels; those with a scope count as such, because the
// adapter keeps them so.
func (c *Client) Labels(ctx context.Context, p forge.Place) ([]forge.LabelFound, error) {
	what := wire.Read("label.list", "list the labels of %s", placeName(p))
	if p.Org != "" {
		return nil, &forge.Error{Op: what.Op, Kind: forge.ErrNotFound}
	}
	var all []forge.LabelFound
	seen := map[int64]bool{}
	err := pages(func(number int) (int, bool, error) {
		var list []*sdk.Label
		_, next, err := c.inPlace(ctx, p, get(what, &list, page("labels", number, time.Time{})))
		before := len(all)
		for _, l := range list {
			if id := l.GetID(); !seen[id] {
				seen[id] = true
				all = append(all, forge.LabelFound{ID: id, LabelSpec: forge.LabelSpec{
					Name: l.GetName(), Color: l.GetColor(), Description: l.GetDescription(), Exclusive: strings.Contains(l.GetName(), "/")}})
			}
		}
		return next, len(all) > before, err
	})
	return all, err
}

// CreateLabel makes a label of a repository.
func (c *Client) CreateLabel(ctx context.Context, p forge.Place, spec forge.LabelSpec) error {
	return c.createLabel(ctx, p.Repo, spec)
}

// EditLabel gives a label the looks of spec.
func (c *Client) EditLabel(ctx context.Context, p forge.Place, have forge.LabelFound, spec forge.LabelSpec) error {
	what := wire.Write("label.edit", "edit label %d of %s", have.ID, placeName(p))
	color := strings.TrimPrefix(spec.Color, "#")
	in := sdk.Label{Name: &spec.Name, Color: &color, Description: &spec.Description}
	_, _, err := c.inPlace(ctx, p, request{what, http.MethodPatch, escaped("labels", have.Name), in, nil})
	return err
}

// DeleteLabel removes a label, and with it from every issue that bears it.
func (c *Client) DeleteLabel(ctx context.Context, p forge.Place, have forge.LabelFound) error {
	what := wire.Write("label.delete", "delete label %d of %s", have.ID, placeName(p))
	_, _, err := c.inPlace(ctx, p, request{what, http.MethodDelete, escaped("labels", have.Name), nil, nil})
	return err
}

// LabelInUse reports whether an issue or pull request of the repository, open
// or closed, bears a label of that name.
func (c *Client) LabelInUse(ctx context.Context, p forge.Place, name string) (bool, error) {
	what := wire.Read("issue.labelled", "look for issues with a label in %s", placeName(p))
	var list []struct{}
	q := url.Values{"labels": {name}, "state": {"all"}, "per_page": {"1"}}
	_, _, err := c.inPlace(ctx, p, get(what, &list, "issues?"+q.Encode()))
	return len(list) > 0, err
}

// contents is the path of a file, whose slashes stay.
func contents(repoID int64, path string) string {
	parts := []any{"contents"}
	for part := range strings.SplitSeq(path, "/") {
		parts = append(parts, part)
	}
	return inRepo(repoID, parts...)
}

// ReadFile reads a file of a repository on a branch; "" is the default branch.
// One that is not there, in a repository without a commit too, is
// forge.ErrNotFound.
func (c *Client) ReadFile(ctx context.Context, repoID int64, path, branch string) (forge.File, error) {
	what := wire.Read("file.read", "read a file of repository %d", repoID)
	p := contents(repoID, path)
	if branch != "" {
		p += "?" + url.Values{"ref": {branch}}.Encode()
	}
	var file sdk.RepositoryContent
	ex, _, err := c.onRepo(ctx, repoID, get(what, &file, p))
	if err != nil {
		return forge.File{}, err
	}
	text, err := file.GetContent()
	if err != nil || file.GetSHA() == "" {
		return forge.File{}, nonsense(what, ex)
	}
	return forge.File{Content: []byte(text), Version: file.GetSHA()}, nil
}

// ChangeFile makes one commit that writes a file, or removes it where Content
// is nil. A file that is no longer at the change's Version is
// forge.ErrPermanent, and so is a branch that is protected from the account.
func (c *Client) ChangeFile(ctx context.Context, repoID int64, change forge.FileChange) error {
	what := wire.Write("file.change", "commit a file to repository %d", repoID)
	if change.NewBranch != "" {
		if err := c.branch(ctx, repoID, change.NewBranch); err != nil {
			return err
		}
	}
	in := map[string]string{"message": change.Message}
	if change.NewBranch != "" {
		in["branch"] = change.NewBranch
	}
	if change.Version != "" {
		in["sha"] = change.Version
	}
	method := http.MethodDelete
	if change.Content != nil {
		method = http.MethodPut
		in["content"] = base64.StdEncoding.EncodeToString(change.Content)
	}
	ex, _, err := c.onRepo(ctx, repoID, request{what, method, contents(repoID, change.Path), in, nil})
	if err != nil && ex.Status == http.StatusConflict {
		return &forge.Error{Op: what.Op, Status: ex.Status, Kind: forge.ErrPermanent, FromForge: true}
	}
	return err
}

// branch makes a branch at the tip of the default one.
func (c *Client) branch(ctx context.Context, repoID int64, name string) error {
	base, err := c.defaultBranch(ctx, repoID)
	if err != nil {
		return err
	}
	what := wire.Read("branch.read", "read the default branch of repository %d", repoID)
	var ref sdk.Reference
	ex, _, err := c.onRepo(ctx, repoID, get(what, &ref, inRepo(repoID, "git", "ref", "heads", base)))
	if err != nil {
		return err
	}
	sha := ref.GetObject().GetSHA()
	if sha == "" {
		return nonsense(what, ex)
	}
	what = wire.Write("branch.create", "create a branch of repository %d", repoID)
	in := map[string]string{"ref": "refs/heads/" + name, "sha": sha}
	_, _, err = c.onRepo(ctx, repoID, request{what, http.MethodPost, inRepo(repoID, "git", "refs"), in, nil})
	return err
}

func (c *Client) defaultBranch(ctx context.Context, repoID int64) (string, error) {
	what := wire.Read("repo.by_id", "read the default branch of repository %d", repoID)
	var repo sdk.Repository
	ex, _, err := c.onRepo(ctx, repoID, get(what, &repo, inRepo(repoID)))
	if err == nil && repo.GetDefaultBranch() == "" {
		err = nonsense(what, ex)
	}
	return repo.GetDefaultBranch(), err
}

// OpenPull opens a pull request from a branch of the repository into its
// default branch and returns its number.
func (c *Client) OpenPull(ctx context.Context, repoID int64, branch, title, body string) (int64, error) {
	base, err := c.defaultBranch(ctx, repoID)
	if err != nil {
		return 0, err
	}
	what := wire.Write("pull.create", "open a pull request in repository %d", repoID)
	var pull sdk.PullRequest
	in := map[string]string{"head": branch, "base": base, "title": title, "body": body}
	ex, _, err := c.onRepo(ctx, repoID, request{what, http.MethodPost, inRepo(repoID, "pulls"), in, &pull})
	if err != nil {
		return 0, err
	}
	if pull.GetNumber() <= 0 {
		return 0, nonsense(what, ex)
	}
	return int64(pull.GetNumber()), nil
}

// PullOf is the number of the open pull request from a branch of the
// repository; 0 if there is none.
func (c *Client) PullOf(ctx context.Context, repoID int64, branch string) (int64, error) {
	repo, err := c.RepoByID(ctx, repoID)
	if err != nil {
		return 0, err
	}
	what := wire.Read("pull.list", "look for an open pull request of repository %d", repoID)
	var list []*sdk.PullRequest
	q := url.Values{"head": {repo.Owner + ":" + branch}, "state": {"open"}}
	if _, _, err := c.onRepo(ctx, repoID, get(what, &list, inRepo(repoID, "pulls")+"?"+q.Encode())); err != nil {
		return 0, err
	}
	for _, p := range list {
		// Whoever does not understand "head" answers with all of them.
		if p.GetHead().GetRef() == branch && p.GetHead().GetRepo().GetID() == repoID {
			return int64(p.GetNumber()), nil
		}
	}
	return 0, nil
}

// DeleteBranch removes a branch. One that is not there is forge.ErrNotFound.
func (c *Client) DeleteBranch(ctx context.Context, repoID int64, branch string) error {
	what := wire.Write("branch.delete", "delete a branch of repository %d", repoID)
	parts := []any{"git", "refs", "heads"}
	for part := range strings.SplitSeq(branch, "/") {
		parts = append(parts, part)
	}
	ex, _, err := c.onRepo(ctx, repoID, request{what, http.MethodDelete, inRepo(repoID, parts...), nil, nil})
	if errors.Is(err, forge.ErrPermanent) && ex.Status == http.StatusUnprocessableEntity {
		// GitHub's word for a reference that does not exist.
		return &forge.Error{Op: what.Op, Status: ex.Status, Kind: forge.ErrNotFound, FromForge: true}
	}
	return err
}
