//go:build unix

package tracker

import (
	"context"
	"encoding/base64"
	"fmt"
	"net/http"
	"slices"
	"strings"

	sdk "code.gitea.io/sdk/gitea"
)

// Person is an account's standing in a repository: "none", "read", "write",
// "admin", or "owner". An owner is a member of the organisation's Owners team;
// on Gitea nobody else but a site administrator is called that.
type Person struct {
	Login, Permission string
}

// RepoSpec says what repository to make.
type RepoSpec struct {
	// Org and Name; where one is empty it is a new one. An organisation that
	// is there already is used.
	Org, Name string
	// Owner makes both; he is an owner whatever People says.
	Owner  string
	People []Person
	// Private hides the repository from people without standing, who may
	// otherwise read it.
	Private bool
}

// Repo is a repository on the server. It is a World.
type Repo struct {
	ID          int64
	Org, Name   string
	Owner       string
	server      *Server
	maintaining string // who reads threads: an account that always may
}

var _ World = (*Repo)(nil)

// FullName is owner/name.
func (r *Repo) FullName() string { return r.Org + "/" + r.Name }

// URL is the repository's page.
func (r *Repo) URL() string { return r.server.URL + "/" + r.FullName() }

// NewRepo makes a repository with people in it.
func (s *Server) NewRepo(ctx context.Context, spec RepoSpec) (*Repo, error) {
	if spec.Org == "" {
		spec.Org = s.fresh("org")
	}
	if spec.Name == "" {
		spec.Name = s.fresh("repo")
	}
	r := &Repo{Org: spec.Org, Name: spec.Name, Owner: spec.Owner, server: s, maintaining: spec.Owner}
	owner, err := s.As(ctx, spec.Owner)
	if err != nil {
		return nil, err
	}
	if _, _, err := owner.GetOrg(spec.Org); err != nil {
		if _, _, err := owner.CreateOrg(sdk.CreateOrgOption{Name: spec.Org}); err != nil {
			return nil, fmt.Errorf("make organisation %s: %w", spec.Org, err)
		}
	}
	made, _, err := owner.CreateOrgRepo(spec.Org, sdk.CreateRepoOption{
		Name: spec.Name, AutoInit: true, DefaultBranch: "main", Private: spec.Private,
	})
	if err != nil {
		return nil, fmt.Errorf("make repository %s: %w", r.FullName(), err)
	}
	r.ID = made.ID
	for _, p := range spec.People {
		if err := r.Admit(ctx, p); err != nil {
			return nil, err
		}
	}
	return r, nil
}

// Admit gives an account its standing in the repository.
func (r *Repo) Admit(ctx context.Context, p Person) error {
	if _, err := r.server.Account(ctx, p.Login); err != nil {
		return err
	}
	switch p.Permission {
	case "none":
		return nil
	case "owner":
		return r.server.JoinTeam(ctx, r.Owner, r.Org, "Owners", p.Login)
	}
	err := r.do(ctx, r.Owner, "admit "+p.Login+" to", func(c *sdk.Client) error {
		mode := sdk.AccessMode(p.Permission)
		_, err := c.AddCollaborator(r.Org, r.Name, p.Login, sdk.AddCollaboratorOption{Permission: &mode})
		return err
	})
	return err
}

// OrgID is an organisation's id, by which its hooks are named.
func (s *Server) OrgID(ctx context.Context, org string) (int64, error) {
	c, err := s.As(ctx, operator)
	if err != nil {
		return 0, err
	}
	found, _, err := c.GetOrg(org)
	if err != nil {
		return 0, fmt.Errorf("read organisation %s: %w", org, err)
	}
	return found.ID, nil
}

// JoinTeam adds an account to an organisation's team. A team that is not there
// is made, without any right of its own.
func (s *Server) JoinTeam(ctx context.Context, owner, org, team, login string) error {
	if _, err := s.Account(ctx, login); err != nil {
		return err
	}
	c, err := s.As(ctx, owner)
	if err != nil {
		return err
	}
	teams, _, err := c.ListOrgTeams(org, sdk.ListTeamsOptions{})
	if err != nil {
		return fmt.Errorf("list the teams of %s: %w", org, err)
	}
	var id int64
	for _, t := range teams {
		if strings.EqualFold(t.Name, team) {
			id = t.ID
		}
	}
	if id == 0 {
		made, _, err := c.CreateTeam(org, sdk.CreateTeamOption{
			Name: team, Permission: sdk.AccessModeRead, Units: []sdk.RepoUnitType{sdk.RepoUnitIssues},
		})
		if err != nil {
			return fmt.Errorf("make team %s/%s: %w", org, team, err)
		}
		id = made.ID
	}
	if _, err := c.AddTeamMember(id, login); err != nil {
		return fmt.Errorf("add %s to team %s/%s: %w", login, org, team, err)
	}
	return nil
}

// do runs a call as somebody and says, if it fails, what was to be done. what
// is a phrase that the repository's name completes.
func (r *Repo) do(ctx context.Context, as, what string, call func(*sdk.Client) error) error {
	c, err := r.server.As(ctx, as)
	if err == nil {
		err = call(c)
	}
	if err != nil {
		return fmt.Errorf("as %s, %s %s: %w", as, what, r.FullName(), err)
	}
	return nil
}

// Hook makes a webhook of the repository for what happens to issues, pull
// requests and their comments.
func (r *Repo) Hook(ctx context.Context, url, secret string) error {
	return r.do(ctx, r.Owner, "make a hook of", func(c *sdk.Client) error {
		_, _, err := c.CreateRepoHook(r.Org, r.Name, HookOption(url, secret))
		return err
	})
}

// OrgHook makes a webhook of the repository's organisation for the same.
func (r *Repo) OrgHook(ctx context.Context, url, secret string) error {
	return r.do(ctx, r.Owner, "make a hook of the organisation of", func(c *sdk.Client) error {
		_, _, err := c.CreateOrgHook(r.Org, HookOption(url, secret))
		return err
	})
}

// HookOption is the webhook that Hook and OrgHook make.
func HookOption(url, secret string) sdk.CreateHookOption {
	return sdk.CreateHookOption{
		Type:   sdk.HookTypeGitea,
		Config: map[string]string{"url": url, "content_type": "json", "secret": secret},
		// "issues" and "pull_request" each stand for their whole family.
		Events: []string{"issues", "issue_comment", "pull_request"},
		Active: true,
	}
}

// Label makes a label of the repository.
func (r *Repo) Label(ctx context.Context, label sdk.CreateLabelOption) error {
	return r.do(ctx, r.Owner, "make label "+label.Name+" in", func(c *sdk.Client) error {
		_, _, err := c.CreateLabel(r.Org, r.Name, label)
		return err
	})
}

// Commit puts a new file on the default branch.
func (r *Repo) Commit(ctx context.Context, path string, content []byte) error {
	return r.do(ctx, r.Owner, "commit "+path+" to", func(c *sdk.Client) error {
		_, _, err := c.CreateFile(r.Org, r.Name, path, sdk.CreateFileOptions{
			FileOptions: sdk.FileOptions{Message: "Add " + path},
			Content:     base64.StdEncoding.EncodeToString(content),
		})
		return err
	})
}

// Write has somebody make the default branch hold a file; without content the
// file is removed.
func (r *Repo) Write(ctx context.Context, as, path string, content []byte) error {
	return r.do(ctx, as, "write "+path+" in", func(c *sdk.Client) error {
		old, resp, err := c.GetContents(r.Org, r.Name, "", path)
		if err != nil && (resp == nil || resp.StatusCode != http.StatusNotFound) {
			return err
		}
		sha := ""
		if err == nil {
			sha = old.SHA
		}
		text := base64.StdEncoding.EncodeToString(content)
		switch opt := (sdk.FileOptions{Message: "Change " + path}); {
		case len(content) == 0:
			_, err = c.DeleteFile(r.Org, r.Name, path, sdk.DeleteFileOptions{FileOptions: opt, SHA: sha})
		case sha == "":
			_, _, err = c.CreateFile(r.Org, r.Name, path, sdk.CreateFileOptions{FileOptions: opt, Content: text})
		default:
			_, _, err = c.UpdateFile(r.Org, r.Name, path, sdk.UpdateFileOptions{FileOptions: opt, SHA: sha, Content: text})
		}
		return err
	})
}

// Pull opens a pull request of one new file and returns its number.
func (r *Repo) Pull(ctx context.Context, as, title, body string) (number int64, err error) {
	branch := r.server.fresh("branch")
	err = r.do(ctx, as, "open a pull request in", func(c *sdk.Client) error {
		_, _, err := c.CreateFile(r.Org, r.Name, branch+".txt", sdk.CreateFileOptions{
			FileOptions: sdk.FileOptions{Message: title, NewBranchName: branch},
			Content:     base64.StdEncoding.EncodeToString([]byte(title + "\n")),
		})
		if err != nil {
			return err
		}
		pull, _, err := c.CreatePullRequest(r.Org, r.Name, sdk.CreatePullRequestOption{
			Head: branch, Base: "main", Title: title, Body: body,
		})
		if err == nil {
			number = pull.Index
		}
		return err
	})
	return number, err
}

// Rename gives the repository another name; r follows.
func (r *Repo) Rename(ctx context.Context, name string) error {
	err := r.do(ctx, r.Owner, "rename", func(c *sdk.Client) error {
		_, _, err := c.EditRepo(r.Org, r.Name, sdk.EditRepoOption{Name: &name})
		return err
	})
	if err == nil {
		r.Name = name
	}
	return err
}

// Delete removes the repository, so that its name can be used again.
func (r *Repo) Delete(ctx context.Context) error {
	return r.do(ctx, r.Owner, "delete", func(c *sdk.Client) error {
		_, err := c.DeleteRepo(r.Org, r.Name)
		return err
	})
}

// Archive makes the repository read-only.
func (r *Repo) Archive(ctx context.Context) error {
	return r.do(ctx, r.Owner, "archive", func(c *sdk.Client) error {
		archived := true
		_, _, err := c.EditRepo(r.Org, r.Name, sdk.EditRepoOption{Archived: &archived})
		return err
	})
}

// Open implements World.
func (r *Repo) Open(ctx context.Context, as, title, body string) (number int64, err error) {
	err = r.do(ctx, as, "open an issue in", func(c *sdk.Client) error {
		issue, _, err := c.CreateIssue(r.Org, r.Name, sdk.CreateIssueOption{Title: title, Body: body})
		if err == nil {
			number = issue.Index
		}
		return err
	})
	return number, err
}

// EditIssue implements World.
func (r *Repo) EditIssue(ctx context.Context, as string, number int64, title, body string) error {
	return r.do(ctx, as, fmt.Sprintf("edit issue %d of", number), func(c *sdk.Client) error {
		_, _, err := c.EditIssue(r.Org, r.Name, number, sdk.EditIssueOption{Title: title, Body: &body})
		return err
	})
}

// EditTitle changes an issue's title alone.
func (r *Repo) EditTitle(ctx context.Context, as string, number int64, title string) error {
	return r.do(ctx, as, fmt.Sprintf("edit the title of issue %d of", number), func(c *sdk.Client) error {
		_, _, err := c.EditIssue(r.Org, r.Name, number, sdk.EditIssueOption{Title: title})
		return err
	})
}

// DeleteIssue implements World.
func (r *Repo) DeleteIssue(ctx context.Context, as string, number int64) error {
	return r.do(ctx, as, fmt.Sprintf("delete issue %d of", number), func(c *sdk.Client) error {
		_, err := c.DeleteIssue(r.Org, r.Name, number)
		return err
	})
}

// SetClosed implements World.
func (r *Repo) SetClosed(ctx context.Context, as string, number int64, closed bool) error {
	state := sdk.StateOpen
	if closed {
		state = sdk.StateClosed
	}
	return r.do(ctx, as, fmt.Sprintf("set issue %d %s in", number, state), func(c *sdk.Client) error {
		_, _, err := c.EditIssue(r.Org, r.Name, number, sdk.EditIssueOption{State: &state})
		return err
	})
}

// Lock implements World.
func (r *Repo) Lock(ctx context.Context, as string, number int64) error {
	return r.do(ctx, as, fmt.Sprintf("lock issue %d of", number), func(c *sdk.Client) error {
		_, err := c.LockIssue(r.Org, r.Name, number, sdk.LockIssueOption{})
		return err
	})
}

// Comment implements World.
func (r *Repo) Comment(ctx context.Context, as string, number int64, body string) (id int64, err error) {
	err = r.do(ctx, as, fmt.Sprintf("comment on issue %d of", number), func(c *sdk.Client) error {
		comment, _, err := c.CreateIssueComment(r.Org, r.Name, number, sdk.CreateIssueCommentOption{Body: body})
		if err == nil {
			id = comment.ID
		}
		return err
	})
	return id, err
}

// EditComment implements World.
func (r *Repo) EditComment(ctx context.Context, as string, id int64, body string) error {
	return r.do(ctx, as, fmt.Sprintf("edit comment %d of", id), func(c *sdk.Client) error {
		_, _, err := c.EditIssueComment(r.Org, r.Name, id, sdk.EditIssueCommentOption{Body: body})
		return err
	})
}

// DeleteComment implements World.
func (r *Repo) DeleteComment(ctx context.Context, as string, id int64) error {
	return r.do(ctx, as, fmt.Sprintf("delete comment %d of", id), func(c *sdk.Client) error {
		_, err := c.DeleteIssueComment(r.Org, r.Name, id)
		return err
	})
}

// Thread implements World.
func (r *Repo) Thread(ctx context.Context, number int64) (t Thread, err error) {
	err = r.do(ctx, r.maintaining, fmt.Sprintf("read issue %d of", number), func(c *sdk.Client) error {
		issue, _, err := c.GetIssue(r.Org, r.Name, number)
		if err != nil {
			return err
		}
		// Gitea answers the whole thread at once, whatever page is asked for.
		comments, _, err := c.ListIssueComments(r.Org, r.Name, number, sdk.ListIssueCommentOptions{})
		if err != nil {
			return err
		}
		t = threadOf(issue, comments)
		return nil
	})
	return t, err
}

func threadOf(issue *sdk.Issue, comments []*sdk.Comment) Thread {
	t := Thread{
		Number: issue.Index, Title: issue.Title,
		Closed: issue.State == sdk.StateClosed, Locked: issue.IsLocked,
		Entries: []Entry{{
			Author: login(issue.Poster), Body: issue.Body, Created: issue.Created, Updated: issue.Updated,
		}},
	}
	for _, label := range issue.Labels {
		t.Labels = append(t.Labels, label.Name)
	}
	for _, c := range comments {
		t.Entries = append(t.Entries, Entry{
			ID: c.ID, Author: login(c.Poster), Body: c.Body, Created: c.Created, Updated: c.Updated,
		})
	}
	slices.SortFunc(t.Entries, func(a, b Entry) int { return int(a.ID - b.ID) })
	return t
}

func login(u *sdk.User) string {
	if u == nil {
		return "ghost"
	}
	return u.UserName
}

// Reactions implements World.
func (r *Repo) Reactions(ctx context.Context, number, comment int64) (map[string][]string, error) {
	found := map[string][]string{}
	err := r.do(ctx, r.maintaining, fmt.Sprintf("read the reactions of issue %d of", number), func(c *sdk.Client) error {
		var reactions []*sdk.Reaction
		var err error
		if comment == 0 {
			reactions, _, err = c.ListIssueReactions(r.Org, r.Name, number, sdk.ListIssueReactionsOptions{})
		} else {
			reactions, _, err = c.GetIssueCommentReactions(r.Org, r.Name, comment)
		}
		for _, reaction := range reactions {
			found[reaction.Reaction] = append(found[reaction.Reaction], login(reaction.User))
		}
		return err
	})
	return found, err
}
