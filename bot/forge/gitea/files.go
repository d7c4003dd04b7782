package gitea

import (
	"context"
	"encoding/base64"
	"net/http"

	sdk "code.gitea.io/sdk/gitea"

	"playbook-bot/bot/forge"
	"playbook-bot/bot/forge/internal/wire"
)

// ReadFile reads a file of a repository on a branch; "" is the default branch.
// One that is not there, in a repository without a commit too, is
// forge.ErrNotFound.
func (c *Client) ReadFile(ctx context.Context, repoID int64, path, branch string) (forge.File, error) {
	file, content, _, err := c.readFile(ctx, repoID, path, branch)
	if err != nil {
		return forge.File{}, err
	}
	return forge.File{Content: content, Version: file.SHA}, nil
}

// File reads a file of the default branch and names the commit that changed it
// last. One that is not there is forge.ErrNotFound; what is there and is no
// file (a directory, a link) is forge.ErrRetry with the status of an answer.
func (c *Client) File(ctx context.Context, repoID int64, path string) (content []byte, commit string, err error) {
	file, content, ex, err := c.readFile(ctx, repoID, path, "")
	if err != nil {
		return nil, "", err
	}
	if file.LastCommitSha == nil || *file.LastCommitSha == "" {
		return nil, "", nonsense(wire.Read("file.read", "read a file of repository %d", repoID), ex)
	}
	return content, *file.LastCommitSha, nil
}

func (c *Client) readFile(ctx context.Context, repoID int64, path, branch string) (*sdk.ContentsResponse, []byte, *wire.Exchange, error) {
	what := wire.Read("file.read", "read a file of repository %d", repoID)
	var file *sdk.ContentsResponse
	ex, _, err := c.inRepoOr404(ctx, what, repoID, trustName, trustAbsence, func(t target) (err error) {
		file, _, err = t.api.GetContents(t.owner(), t.name(), branch, path)
		return err
	})
	if err != nil {
		return nil, nil, ex, err
	}
	if file == nil || file.SHA == "" || file.Content == nil {
		return nil, nil, ex, nonsense(what, ex)
	}
	content, err := base64.StdEncoding.DecodeString(*file.Content)
	if err != nil {
		return nil, nil, ex, nonsense(what, ex)
	}
	return file, content, ex, nil
}

// ChangeFile makes one commit that writes a file, or removes it where Content
// is nil. A file that is no longer at the change's Version is
// forge.ErrPermanent, and so is a branch that is protected from the account.
func (c *Client) ChangeFile(ctx context.Context, repoID int64, change forge.FileChange) error {
	what := wire.Write("file.change", "commit a file to repository %d", repoID)
	opt := sdk.FileOptions{Message: change.Message, NewBranchName: change.NewBranch}
	content := base64.StdEncoding.EncodeToString(change.Content)
	ex, _, err := c.inRepo(ctx, what, repoID, trustName, func(t target) (err error) {
		switch {
		case change.Content == nil:
			_, err = t.api.DeleteFile(t.owner(), t.name(), change.Path, sdk.DeleteFileOptions{FileOptions: opt, SHA: change.Version})
		case change.Version == "":
			_, _, err = t.api.CreateFile(t.owner(), t.name(), change.Path, sdk.CreateFileOptions{FileOptions: opt, Content: content})
		default:
			_, _, err = t.api.UpdateFile(t.owner(), t.name(), change.Path, sdk.UpdateFileOptions{FileOptions: opt, SHA: change.Version, Content: content})
		}
		return err
	})
	if err != nil && ex.Status == http.StatusConflict {
		return &forge.Error{Op: what.Op, Status: ex.Status, Kind: forge.ErrPermanent, FromForge: true}
	}
	return err
}

// OpenPull opens a pull request from a branch of the repository into its
// default branch and returns its number.
func (c *Client) OpenPull(ctx context.Context, repoID int64, branch, title, body string) (int64, error) {
	base, err := c.defaultBranch(ctx, repoID)
	if err != nil {
		return 0, err
	}
	what := wire.Write("pull.create", "open a pull request in repository %d", repoID)
	var pull *sdk.PullRequest
	ex, _, err := c.inRepo(ctx, what, repoID, trustName, func(t target) (err error) {
		pull, _, err = t.api.CreatePullRequest(t.owner(), t.name(), sdk.CreatePullRequestOption{
			Head: branch, Base: base, Title: title, Body: body})
		return err
	})
	if err != nil {
		return 0, err
	}
	if pull == nil || pull.Index <= 0 {
		return 0, nonsense(what, ex)
	}
	return pull.Index, nil
}

// PullOf is the number of the open pull request from a branch of the
// repository; 0 if there is none.
func (c *Client) PullOf(ctx context.Context, repoID int64, branch string) (int64, error) {
	what := wire.Read("pull.list", "list the open pull requests of repository %d", repoID)
	pulls, err := pages(func(p *sdk.PullRequest) int64 { return p.Index }, func(page int) (pulls []*sdk.PullRequest, ex *wire.Exchange, err error) {
		ex, _, err = c.inRepo(ctx, what, repoID, trustName, func(t target) (err error) {
			pulls, _, err = t.api.ListRepoPullRequests(t.owner(), t.name(), sdk.ListPullRequestsOptions{ListOptions: listPage(page), State: sdk.StateOpen})
			return err
		})
		return pulls, ex, err
	})
	for _, p := range pulls {
		if p.Head != nil && p.Head.Name == branch && p.Head.RepoID == repoID {
			return p.Index, nil
		}
	}
	return 0, err
}

// DeleteBranch removes a branch.
func (c *Client) DeleteBranch(ctx context.Context, repoID int64, branch string) error {
	what := wire.Write("branch.delete", "delete a branch of repository %d", repoID)
	_, _, err := c.inRepo(ctx, what, repoID, trustName, func(t target) error {
		_, _, err := t.api.DeleteRepoBranch(t.owner(), t.name(), branch)
		return err
	})
	return err
}

func (c *Client) defaultBranch(ctx context.Context, repoID int64) (string, error) {
	what := wire.Read("repo.by_id", "read the default branch of repository %d", repoID)
	var repo *sdk.Repository
	ex, err := c.do(ctx, what, func(api *sdk.Client) (err error) {
		repo, _, err = api.GetRepoByID(repoID)
		return err
	})
	if err != nil {
		return "", err
	}
	if repo == nil || repo.DefaultBranch == "" {
		return "", nonsense(what, ex)
	}
	return repo.DefaultBranch, nil
}
