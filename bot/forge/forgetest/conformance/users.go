package conformance

import (
	"net/http"
	"testing"

	sdk "code.gitea.io/sdk/gitea"

	"playbook-bot/bot/forge"
)

// People is what people do and see. The suite does it through the forge's API,
// so that it needs nothing of a server but that.
type People interface {
	Open(repo forge.Repo, title, body string) (number int64, err error)
	Comment(repo forge.Repo, number int64, body string) (id int64, err error)
	EditComment(repo forge.Repo, id int64, body string) error
	SetClosed(repo forge.Repo, number int64, closed bool) error
	Lock(repo forge.Repo, number int64) error
	DeleteIssue(repo forge.Repo, number int64) error
	Rename(repo forge.Repo, name string) error
	Archive(repo forge.Repo) error
	// Bodies are the comments of a thread.
	Bodies(repo forge.Repo, number int64) ([]string, error)
	// Labels are a repository's; colours without a "#".
	Labels(repo forge.Repo) ([]forge.LabelSpec, error)
	DeleteLabel(repo forge.Repo, name string) error
	// Label puts a label on an issue that the repository lacks.
	Label(repo forge.Repo, number int64, name string) error
	// Reactions are those of an account.
	Reactions(repo forge.Repo, number int64, obj forge.Object, login string) ([]string, error)
}

func (w *world) people(t *testing.T, role Role) People { return w.s.People(t, w.s.Accounts[role]) }

func (w *world) open(t *testing.T, as Role, title, body string) int64 {
	t.Helper()
	return get(w.people(t, as).Open(w.repo, title, body))(t)
}

func (w *world) comment(t *testing.T, as Role, number int64, body string) int64 {
	t.Helper()
	return get(w.people(t, as).Comment(w.repo, number, body))(t)
}

func (w *world) edit(t *testing.T, as Role, id int64, body string) {
	t.Helper()
	mustDo(t, w.people(t, as).EditComment(w.repo, id, body))
}

func (w *world) close(t *testing.T, as Role, number int64) {
	t.Helper()
	mustDo(t, w.people(t, as).SetClosed(w.repo, number, true))
}

func (w *world) lock(t *testing.T, number int64) {
	t.Helper()
	mustDo(t, w.people(t, Admin).Lock(w.repo, number))
}

func (w *world) deleteIssue(t *testing.T, number int64) {
	t.Helper()
	mustDo(t, w.people(t, Admin).DeleteIssue(w.repo, number))
}

// rename gives the world's repository another name; w.repo is it afterwards.
func (w *world) rename(t *testing.T) (before forge.Repo) {
	t.Helper()
	before = w.repo
	name := before.Name + "-renamed"
	mustDo(t, w.people(t, Admin).Rename(before, name))
	w.repo.Name = name
	return before
}

// takeName renames another repository to a name of the past.
func (w *world) takeName(t *testing.T, name string) forge.Repo {
	t.Helper()
	other := w.s.NewRepo(t)
	mustDo(t, w.people(t, Admin).Rename(other, name))
	other.Name = name
	return other
}

func (w *world) archive(t *testing.T) {
	t.Helper()
	mustDo(t, w.people(t, Admin).Archive(w.repo))
}

// bodies are the comments of a thread as a person sees them.
func (w *world) bodies(t *testing.T, repo forge.Repo, number int64) []string {
	t.Helper()
	return get(w.people(t, Admin).Bodies(repo, number))(t)
}

// giteaUser is an account of a Gitea or Forgejo server.
type giteaUser struct{ api *sdk.Client }

func giteaPeople(t *testing.T, baseURL string, client *http.Client, as Account) People {
	t.Helper()
	opts := []sdk.ClientOption{sdk.SetToken(as.Token), sdk.SetContext(t.Context()), sdk.SetGiteaVersion("")}
	if client != nil {
		opts = append(opts, sdk.SetHTTPClient(client))
	}
	c, err := sdk.NewClient(baseURL, opts...)
	if err != nil {
		t.Fatal(err)
	}
	return giteaUser{c}
}

func (u giteaUser) Open(repo forge.Repo, title, body string) (int64, error) {
	issue, _, err := u.api.CreateIssue(repo.Owner, repo.Name, sdk.CreateIssueOption{Title: title, Body: body})
	if err != nil {
		return 0, err
	}
	return issue.Index, nil
}

func (u giteaUser) Comment(repo forge.Repo, number int64, body string) (int64, error) {
	c, _, err := u.api.CreateIssueComment(repo.Owner, repo.Name, number, sdk.CreateIssueCommentOption{Body: body})
	if err != nil {
		return 0, err
	}
	return c.ID, nil
}

func (u giteaUser) EditComment(repo forge.Repo, id int64, body string) error {
	_, _, err := u.api.EditIssueComment(repo.Owner, repo.Name, id, sdk.EditIssueCommentOption{Body: body})
	return err
}

func (u giteaUser) SetClosed(repo forge.Repo, number int64, closed bool) error {
	state := sdk.StateOpen
	if closed {
		state = sdk.StateClosed
	}
	_, _, err := u.api.EditIssue(repo.Owner, repo.Name, number, sdk.EditIssueOption{State: &state})
	return err
}

func (u giteaUser) Lock(repo forge.Repo, number int64) error {
	_, err := u.api.LockIssue(repo.Owner, repo.Name, number, sdk.LockIssueOption{})
	return err
}

func (u giteaUser) DeleteIssue(repo forge.Repo, number int64) error {
	_, err := u.api.DeleteIssue(repo.Owner, repo.Name, number)
	return err
}

func (u giteaUser) Rename(repo forge.Repo, name string) error {
	_, _, err := u.api.EditRepo(repo.Owner, repo.Name, sdk.EditRepoOption{Name: &name})
	return err
}

func (u giteaUser) Archive(repo forge.Repo) error {
	yes := true
	_, _, err := u.api.EditRepo(repo.Owner, repo.Name, sdk.EditRepoOption{Archived: &yes})
	return err
}

func (u giteaUser) Bodies(repo forge.Repo, number int64) ([]string, error) {
	list, _, err := u.api.ListIssueComments(repo.Owner, repo.Name, number, sdk.ListIssueCommentOptions{})
	out := []string{}
	for _, c := range list {
		out = append(out, c.Body)
	}
	return out, err
}

func (u giteaUser) Labels(repo forge.Repo) ([]forge.LabelSpec, error) {
	list, _, err := u.api.ListRepoLabels(repo.Owner, repo.Name, sdk.ListLabelsOptions{})
	var out []forge.LabelSpec
	for _, l := range list {
		out = append(out, forge.LabelSpec{Name: l.Name, Color: l.Color, Description: l.Description, Exclusive: l.Exclusive})
	}
	return out, err
}

func (u giteaUser) DeleteLabel(repo forge.Repo, name string) error {
	list, _, err := u.api.ListRepoLabels(repo.Owner, repo.Name, sdk.ListLabelsOptions{})
	for _, l := range list {
		if err == nil && l.Name == name {
			_, err = u.api.DeleteLabel(repo.Owner, repo.Name, l.ID)
		}
	}
	return err
}

func (u giteaUser) Label(repo forge.Repo, number int64, name string) error {
	l, _, err := u.api.CreateLabel(repo.Owner, repo.Name, sdk.CreateLabelOption{Name: name, Color: "#123456"})
	if err != nil {
		return err
	}
	_, _, err = u.api.AddIssueLabels(repo.Owner, repo.Name, number, sdk.IssueLabelsOption{Labels: []int64{l.ID}})
	return err
}

func (u giteaUser) Reactions(repo forge.Repo, number int64, obj forge.Object, login string) ([]string, error) {
	var list []*sdk.Reaction
	var err error
	if obj.Kind == forge.ObjectComment {
		list, _, err = u.api.GetIssueCommentReactions(repo.Owner, repo.Name, obj.ID)
	} else {
		list, _, err = u.api.ListIssueReactions(repo.Owner, repo.Name, number, sdk.ListIssueReactionsOptions{})
	}
	out := []string{}
	for _, r := range list {
		if r.User.UserName == login {
			out = append(out, r.Reaction)
		}
	}
	return out, err
}
