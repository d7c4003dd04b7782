package conformance_test

import (
	"context"
	"fmt"
	"net/url"
	"testing"
	"time"

	sdk "github.com/google/go-github/v62/github"

	"playbook-bot/bot/forge"
	"playbook-bot/bot/forge/forgetest"
	"playbook-bot/bot/forge/forgetest/conformance"
	"playbook-bot/bot/forge/github"
)

// fake is a server of the suite on a dialect of the fake.
func fake(t *testing.T, f *forgetest.Forge) conformance.Server {
	t.Cleanup(f.Close)
	s := conformance.Server{BaseURL: f.Host, HTTP: f.Client(), Org: "ops",
		Accounts: map[conformance.Role]conformance.Account{}}
	f.AddAdmin("root")
	for _, login := range []string{"olga", "alice", "wendy", "rita", "nobody", "botty"} {
		f.AddUser(login)
	}
	for role, login := range map[conformance.Role]string{
		conformance.Site: "root", conformance.Owner: "olga", conformance.Admin: "alice", conformance.Writer: "wendy",
		conformance.Reader: "rita", conformance.Nobody: "nobody",
	} {
		s.Accounts[role] = conformance.Account{Login: login, Token: f.Token(login, "all")}
	}
	s.Accounts[conformance.Bot] = conformance.Account{Login: "botty", Token: f.Token("botty")}
	f.AddOrg("ops", "olga")
	repos := 0
	s.NewRepo = func(t *testing.T) forge.Repo {
		repos++
		name := fmt.Sprintf("ops/repo-%d", repos)
		r := f.AddRepo(name)
		for login, right := range map[string]string{"alice": "admin", "botty": "admin", "wendy": "write", "rita": "read"} {
			f.AddCollaborator(name, login, right)
		}
		return r
	}
	return s
}

func TestFake(t *testing.T) { conformance.Run(t, fake(t, forgetest.New(time.Now))) }

func TestFakeForgejo(t *testing.T) { conformance.Run(t, fake(t, forgetest.NewForgejo(time.Now))) }

func TestFakeGitHub(t *testing.T) {
	f := forgetest.NewGitHub(time.Now)
	f.SetRateLimit(1e9)
	s := fake(t, f)
	s.Facts = conformance.Facts{
		Page: 100, PagedThreads: true, LongestText: 65536,
		SiteHasNoRight: true, WritersSeeStandings: true, OwnersNeedOrgScope: true,
		ArchiveRefusesAll: true, PlainLabels: true,
	}
	s.Adapter = func(c conformance.AdapterConfig) (conformance.Adapter, error) {
		return github.New(github.Config{BaseURL: c.BaseURL, HTTP: c.HTTP, Token: c.Token, OnCall: c.OnCall, Now: c.Now})
	}
	s.People = func(t *testing.T, as conformance.Account) conformance.People {
		api := sdk.NewClient(s.HTTP).WithAuthToken(as.Token)
		base, err := url.Parse(s.BaseURL + "/api/v3/")
		if err != nil {
			t.Fatal(err)
		}
		api.BaseURL = base
		return githubUser{t.Context(), api, f, as.Login}
	}
	conformance.Run(t, s)
}

// githubUser is an account of GitHub. What people do only on GitHub's pages
// they do by the fake's own hand.
type githubUser struct {
	ctx   context.Context
	api   *sdk.Client
	fake  *forgetest.Forge
	login string
}

func (u githubUser) Open(repo forge.Repo, title, body string) (int64, error) {
	i, _, err := u.api.Issues.Create(u.ctx, repo.Owner, repo.Name, &sdk.IssueRequest{Title: &title, Body: &body})
	return int64(i.GetNumber()), err
}

func (u githubUser) Comment(repo forge.Repo, number int64, body string) (int64, error) {
	c, _, err := u.api.Issues.CreateComment(u.ctx, repo.Owner, repo.Name, int(number), &sdk.IssueComment{Body: &body})
	return c.GetID(), err
}

func (u githubUser) EditComment(repo forge.Repo, id int64, body string) error {
	_, _, err := u.api.Issues.EditComment(u.ctx, repo.Owner, repo.Name, id, &sdk.IssueComment{Body: &body})
	return err
}

func (u githubUser) SetClosed(repo forge.Repo, number int64, closed bool) error {
	state := "open"
	if closed {
		state = "closed"
	}
	_, _, err := u.api.Issues.Edit(u.ctx, repo.Owner, repo.Name, int(number), &sdk.IssueRequest{State: &state})
	return err
}

func (u githubUser) Lock(repo forge.Repo, number int64) error {
	_, err := u.api.Issues.Lock(u.ctx, repo.Owner, repo.Name, int(number), nil)
	return err
}

// DeleteIssue has no call in GitHub's REST API.
func (u githubUser) DeleteIssue(repo forge.Repo, number int64) error {
	return u.fake.DeleteIssue(u.login, repo.FullName(), number)
}

func (u githubUser) Rename(repo forge.Repo, name string) error {
	_, _, err := u.api.Repositories.Edit(u.ctx, repo.Owner, repo.Name, &sdk.Repository{Name: &name})
	return err
}

func (u githubUser) Archive(repo forge.Repo) error {
	_, _, err := u.api.Repositories.Edit(u.ctx, repo.Owner, repo.Name, &sdk.Repository{Archived: sdk.Bool(true)})
	return err
}

func (u githubUser) Bodies(repo forge.Repo, number int64) ([]string, error) {
	list, _, err := u.api.Issues.ListComments(u.ctx, repo.Owner, repo.Name, int(number), nil)
	out := []string{}
	for _, c := range list {
		out = append(out, c.GetBody())
	}
	return out, err
}

func (u githubUser) Labels(repo forge.Repo) ([]forge.LabelSpec, error) {
	list, _, err := u.api.Issues.ListLabels(u.ctx, repo.Owner, repo.Name, nil)
	var out []forge.LabelSpec
	for _, l := range list {
		out = append(out, forge.LabelSpec{Name: l.GetName(), Color: l.GetColor(), Description: l.GetDescription()})
	}
	return out, err
}

func (u githubUser) DeleteLabel(repo forge.Repo, name string) error {
	_, err := u.api.Issues.DeleteLabel(u.ctx, repo.Owner, repo.Name, url.PathEscape(name))
	return err
}

func (u githubUser) Label(repo forge.Repo, number int64, name string) error {
	_, _, err := u.api.Issues.AddLabelsToIssue(u.ctx, repo.Owner, repo.Name, int(number), []string{name})
	return err
}

func (u githubUser) Reactions(repo forge.Repo, number int64, obj forge.Object, login string) ([]string, error) {
	var list []*sdk.Reaction
	var err error
	if obj.Kind == forge.ObjectComment {
		list, _, err = u.api.Reactions.ListIssueCommentReactions(u.ctx, repo.Owner, repo.Name, obj.ID, nil)
	} else {
		list, _, err = u.api.Reactions.ListIssueReactions(u.ctx, repo.Owner, repo.Name, int(number), nil)
	}
	out := []string{}
	for _, r := range list {
		if r.GetUser().GetLogin() == login {
			out = append(out, r.GetContent())
		}
	}
	return out, err
}
