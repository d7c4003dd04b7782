package forgetest

import (
	"fmt"
	"hash/fnv"
	"strings"
	"time"
)

// This file is the shape of GitHub's JSON, in API and deliveries alike: the
// keys that say something, without node ids and most of the addresses.

type hubUser struct {
	Login     string `json:"login"`
	ID        int64  `json:"id"`
	AvatarURL string `json:"avatar_url"`
	URL       string `json:"url"`
	HTMLURL   string `json:"html_url"`
	Type      string `json:"type"`
	SiteAdmin bool   `json:"site_admin"`
}

// hubGhost is the account that GitHub shows for a deleted one: it has an id
// like any other.
const hubGhost = 10137

func (g *github) user(a *account) hubUser {
	u := hubUser{Login: a.login, ID: a.id, AvatarURL: g.f.Host + "/avatars/" + a.login,
		URL: g.apiURL("/users/%s", a.login), HTMLURL: g.f.Host + "/" + a.login, Type: "User", SiteAdmin: a.admin}
	switch {
	case a == ghost:
		u.Login, u.ID = "ghost", hubGhost
	case a.org:
		u.Type = "Organization"
	case a.app != nil:
		u.Type = "Bot"
	}
	return u
}

// author is who is shown as the author of a text. What an importer brought is
// a mannequin's, an account that nobody can use.
func (g *github) author(a *account, original string) hubUser {
	if original == "" {
		return g.user(a)
	}
	sum := fnv.New32a()
	_, _ = sum.Write([]byte(original))
	u := g.user(&account{login: original, id: 1e9 + int64(sum.Sum32())})
	u.Type = "Mannequin"
	return u
}

type hubRepo struct {
	ID            int64   `json:"id"`
	Name          string  `json:"name"`
	FullName      string  `json:"full_name"`
	Private       bool    `json:"private"`
	Owner         hubUser `json:"owner"`
	HTMLURL       string  `json:"html_url"`
	URL           string  `json:"url"`
	Fork          bool    `json:"fork"`
	HasIssues     bool    `json:"has_issues"`
	Archived      bool    `json:"archived"`
	Disabled      bool    `json:"disabled"`
	Visibility    string  `json:"visibility"`
	DefaultBranch string  `json:"default_branch"`
	CreatedAt     string  `json:"created_at"`
	UpdatedAt     string  `json:"updated_at"`
}

func (g *github) repo(r *repo) hubRepo {
	visibility := "public"
	if r.private {
		visibility = "private"
	}
	return hubRepo{ID: r.id, Name: r.name, FullName: r.fullName(), Private: r.private, Owner: g.user(r.owner),
		HTMLURL: g.f.Host + "/" + r.fullName(), URL: g.apiURL("/repos/%s", r.fullName()), HasIssues: true, Archived: r.archived,
		Visibility: visibility, DefaultBranch: "main", CreatedAt: stamp(r.created), UpdatedAt: stamp(r.created)}
}

type hubLabel struct {
	ID          int64  `json:"id"`
	URL         string `json:"url"`
	Name        string `json:"name"`
	Color       string `json:"color"`
	Default     bool   `json:"default"`
	Description string `json:"description"`
}

func (g *github) labels(list []*label) []hubLabel {
	out := []hubLabel{}
	for _, l := range list {
		out = append(out, hubLabel{ID: l.id, URL: g.apiURL("/repos/%s/labels/%s", l.repo.fullName(), l.name),
			Name: l.name, Color: l.color, Description: l.description})
	}
	return out
}

type hubPullLinks struct {
	URL     string `json:"url"`
	HTMLURL string `json:"html_url"`
}

type hubIssue struct {
	URL               string        `json:"url"`
	RepositoryURL     string        `json:"repository_url"`
	CommentsURL       string        `json:"comments_url"`
	HTMLURL           string        `json:"html_url"`
	ID                int64         `json:"id"`
	Number            int64         `json:"number"`
	Title             string        `json:"title"`
	User              hubUser       `json:"user"`
	Labels            []hubLabel    `json:"labels"`
	State             string        `json:"state"`
	StateReason       *string       `json:"state_reason"`
	Locked            bool          `json:"locked"`
	Assignees         []hubUser     `json:"assignees"`
	Milestone         *string       `json:"milestone"`
	Comments          int           `json:"comments"`
	CreatedAt         string        `json:"created_at"`
	UpdatedAt         string        `json:"updated_at"`
	ClosedAt          *string       `json:"closed_at"`
	AuthorAssociation string        `json:"author_association"`
	PullRequest       *hubPullLinks `json:"pull_request,omitempty"`
	Body              string        `json:"body"`
}

func (g *github) issuePage(i *issue) string {
	return strings.Replace(g.f.page(i), "/pulls/", "/pull/", 1)
}

func (g *github) issue(i *issue) hubIssue {
	url := g.apiURL("/repos/%s/issues/%d", i.repo.fullName(), i.index)
	out := hubIssue{URL: url, RepositoryURL: g.apiURL("/repos/%s", i.repo.fullName()), CommentsURL: url + "/comments",
		HTMLURL: g.issuePage(i), ID: i.id, Number: i.index, Title: i.title, User: g.author(i.author, g.f.shownAuthor(i.originalAuthor)),
		Labels: g.labels(i.labels), State: stateName(i), Locked: i.locked, Assignees: []hubUser{},
		Comments: len(g.f.st.threadComments(i)), CreatedAt: stamp(i.created), UpdatedAt: stamp(i.updated),
		ClosedAt: stampOrNil(i.closedAt), AuthorAssociation: g.association(i.author, i.repo), Body: i.body}
	if i.closed {
		reason := "completed"
		out.StateReason = &reason
	}
	if i.pull {
		out.PullRequest = &hubPullLinks{g.apiURL("/repos/%s/pulls/%d", i.repo.fullName(), i.index), g.issuePage(i)}
	}
	return out
}

// association is GitHub's hint at who an author is: no right hangs on it.
func (g *github) association(a *account, r *repo) string {
	switch right := g.f.st.accessOf(a, r); {
	case a == r.owner:
		return "OWNER"
	case right == accessOwner:
		return "MEMBER"
	case right > accessRead:
		return "COLLABORATOR"
	}
	return "NONE"
}

type hubComment struct {
	URL               string  `json:"url"`
	HTMLURL           string  `json:"html_url"`
	IssueURL          string  `json:"issue_url"`
	ID                int64   `json:"id"`
	User              hubUser `json:"user"`
	CreatedAt         string  `json:"created_at"`
	UpdatedAt         string  `json:"updated_at"`
	AuthorAssociation string  `json:"author_association"`
	Body              string  `json:"body"`
	ViaApp            *string `json:"performed_via_github_app"`
}

// comment names its thread by the address of its issue alone, as GitHub does;
// a pull request is an issue there.
func (g *github) comment(c *comment) hubComment {
	full := c.issue.repo.fullName()
	return hubComment{URL: g.apiURL("/repos/%s/issues/comments/%d", full, c.id),
		HTMLURL:  fmt.Sprintf("%s#issuecomment-%d", g.issuePage(c.issue), c.id),
		IssueURL: g.apiURL("/repos/%s/issues/%d", full, c.issue.index), ID: c.id,
		User:      g.author(c.author, g.f.shownAuthor(c.originalAuthor)),
		CreatedAt: stamp(c.created), UpdatedAt: stamp(c.updated), AuthorAssociation: g.association(c.author, c.issue.repo), Body: c.body}
}

type hubReaction struct {
	ID        int64   `json:"id"`
	User      hubUser `json:"user"`
	Content   string  `json:"content"`
	CreatedAt string  `json:"created_at"`
}

func (g *github) reaction(r reaction) hubReaction {
	return hubReaction{r.id, g.user(r.account), r.content, stamp(r.created)}
}

// hubRole are role_name and the older permission of a right.
func hubRole(a access) (permission, role string) {
	switch a {
	case accessOwner, accessAdmin:
		return "admin", "admin"
	case accessMaintain:
		return "write", "maintain"
	case accessTriage:
		return "read", "triage"
	case accessNone:
		return "none", ""
	}
	return a.String(), a.String()
}

type hubMembership struct {
	State        string   `json:"state"`
	Role         string   `json:"role"`
	Organization *hubUser `json:"organization,omitempty"`
	User         *hubUser `json:"user,omitempty"`
}

type hubInstallation struct {
	ID                  int64             `json:"id"`
	AppID               int64             `json:"app_id"`
	AppSlug             string            `json:"app_slug"`
	Account             hubUser           `json:"account"`
	TargetType          string            `json:"target_type"`
	RepositorySelection string            `json:"repository_selection"`
	Permissions         map[string]string `json:"permissions"`
	SuspendedAt         *string           `json:"suspended_at"`
}

// appPermissions are those the package github asks for.
var appPermissions = map[string]string{"issues": "write", "metadata": "read", "members": "read"}

func (g *github) installation(a *app, in *install) hubInstallation {
	owner := g.user(in.owner)
	out := hubInstallation{ID: in.id, AppID: a.id, AppSlug: a.slug, Account: owner, TargetType: owner.Type,
		RepositorySelection: "all", Permissions: appPermissions}
	if in.suspended {
		out.SuspendedAt = stampOrNil(g.f.clock())
	}
	return out
}

func created[T *issue | *comment](v T) time.Time {
	switch v := any(v).(type) {
	case *issue:
		return v.created
	case *comment:
		return v.created
	}
	return time.Time{}
}

func updated[T *issue | *comment](v T) time.Time {
	switch v := any(v).(type) {
	case *issue:
		return v.updated
	case *comment:
		return v.updated
	}
	return time.Time{}
}
