package conformance

import (
	"testing"

	sdk "code.gitea.io/sdk/gitea"

	"playbook-bot/bot/forge"
)

// api is the SDK with a role's token: what people do, the suite does through
// the API, so that it needs nothing of the server but that.
func (w *world) api(t *testing.T, role Role) *sdk.Client {
	t.Helper()
	opts := []sdk.ClientOption{sdk.SetToken(w.s.Accounts[role].Token), sdk.SetContext(t.Context()), sdk.SetGiteaVersion("")}
	if w.s.HTTP != nil {
		opts = append(opts, sdk.SetHTTPClient(w.s.HTTP))
	}
	c, err := sdk.NewClient(w.s.BaseURL, opts...)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func (w *world) open(t *testing.T, as Role, title, body string) int64 {
	t.Helper()
	issue, _, err := w.api(t, as).CreateIssue(w.repo.Owner, w.repo.Name, sdk.CreateIssueOption{Title: title, Body: body})
	mustDo(t, err)
	return issue.Index
}

func (w *world) comment(t *testing.T, as Role, number int64, body string) int64 {
	t.Helper()
	c, _, err := w.api(t, as).CreateIssueComment(w.repo.Owner, w.repo.Name, number, sdk.CreateIssueCommentOption{Body: body})
	mustDo(t, err)
	return c.ID
}

func (w *world) edit(t *testing.T, as Role, id int64, body string) {
	t.Helper()
	_, _, err := w.api(t, as).EditIssueComment(w.repo.Owner, w.repo.Name, id, sdk.EditIssueCommentOption{Body: body})
	mustDo(t, err)
}

func (w *world) setState(t *testing.T, as Role, number int64, state sdk.StateType) {
	t.Helper()
	_, _, err := w.api(t, as).EditIssue(w.repo.Owner, w.repo.Name, number, sdk.EditIssueOption{State: &state})
	mustDo(t, err)
}

func (w *world) lock(t *testing.T, number int64) {
	t.Helper()
	_, err := w.api(t, Admin).LockIssue(w.repo.Owner, w.repo.Name, number, sdk.LockIssueOption{})
	mustDo(t, err)
}

func (w *world) deleteIssue(t *testing.T, number int64) {
	t.Helper()
	_, err := w.api(t, Admin).DeleteIssue(w.repo.Owner, w.repo.Name, number)
	mustDo(t, err)
}

// rename gives the world's repository another name; w.repo is it afterwards.
func (w *world) rename(t *testing.T) (before forge.Repo) {
	t.Helper()
	before = w.repo
	name := before.Name + "-renamed"
	_, _, err := w.api(t, Admin).EditRepo(before.Owner, before.Name, sdk.EditRepoOption{Name: &name})
	mustDo(t, err)
	w.repo.Name = name
	return before
}

// takeName renames another repository to a name of the past.
func (w *world) takeName(t *testing.T, name string) forge.Repo {
	t.Helper()
	other := w.s.NewRepo(t)
	_, _, err := w.api(t, Admin).EditRepo(other.Owner, other.Name, sdk.EditRepoOption{Name: &name})
	mustDo(t, err)
	other.Name = name
	return other
}

func (w *world) archive(t *testing.T) {
	t.Helper()
	yes := true
	_, _, err := w.api(t, Admin).EditRepo(w.repo.Owner, w.repo.Name, sdk.EditRepoOption{Archived: &yes})
	mustDo(t, err)
}

// bodies are the comments of a thread as a person sees them.
func (w *world) bodies(t *testing.T, repo forge.Repo, number int64) []string {
	t.Helper()
	list, _, err := w.api(t, Admin).ListIssueComments(repo.Owner, repo.Name, number, sdk.ListIssueCommentOptions{})
	mustDo(t, err)
	out := []string{}
	for _, c := range list {
		out = append(out, c.Body)
	}
	return out
}
