package github

import (
	"context"
	"encoding/base64"
	"net/http"
	"net/url"
	"strings"

	sdk "github.com/google/go-github/v62/github"

	"playbook-bot/bot/forge"
	"playbook-bot/bot/forge/internal/wire"
)

// File reads a file of the default branch and names the commit that changed it
// last: one call where no commit ever did, else two, the second for the file
// as that commit left it. One that is not there, in a repository without a
// commit too, is forge.ErrNotFound; what is there and is no file is
// forge.ErrRetry with the status of an answer. It needs Contents: read.
func (c *Client) File(ctx context.Context, repoID int64, path string) (content []byte, commit string, err error) {
	what := wire.Read("commit.list", "read which commit changed a file of repository %d", repoID)
	var commits []*sdk.RepositoryCommit
	query := url.Values{"path": {path}, "per_page": {"1"}}
	ex, _, err := c.onRepo(ctx, repoID, get(what, &commits, inRepo(repoID, "commits")+"?"+query.Encode()))
	switch {
	case err != nil && ex.Status == http.StatusConflict, err == nil && len(commits) == 0:
		return nil, "", &forge.Error{Op: what.Op, Status: http.StatusNotFound, Kind: forge.ErrNotFound, FromForge: true}
	case err != nil:
		return nil, "", err
	case commits[0].GetSHA() == "":
		return nil, "", nonsense(what, ex)
	}
	commit = commits[0].GetSHA()

	what = wire.Read("file.read", "read a file of repository %d", repoID)
	var file sdk.RepositoryContent
	parts := []any{"contents"}
	for part := range strings.SplitSeq(path, "/") {
		parts = append(parts, part)
	}
	ex, _, err = c.onRepo(ctx, repoID, get(what, &file, inRepo(repoID, parts...)+"?"+url.Values{"ref": {commit}}.Encode()))
	if err != nil {
		return nil, "", err
	}
	// GitHub breaks base64 into lines and sends none of a file above 1 MiB.
	if file.GetType() != "file" || file.Content == nil || file.GetEncoding() != "base64" {
		return nil, "", nonsense(what, ex)
	}
	if content, err = base64.StdEncoding.DecodeString(strings.ReplaceAll(*file.Content, "\n", "")); err != nil {
		return nil, "", nonsense(what, ex)
	}
	return content, commit, nil
}
