package forgetest

import (
	"crypto/md5"
	"encoding/hex"
	"fmt"
	"strconv"
	"time"
)

// This file is the shape of Gitea's JSON, in API and deliveries alike: every
// key of a recorded delivery, in its order, also those that nobody here reads.

func itoa(n int) string { return strconv.Itoa(n) }

// stamp is a time as Gitea writes it: whole seconds.
func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }

func stampOrNil(t time.Time) *string {
	if t.IsZero() {
		return nil
	}
	s := stamp(t)
	return &s
}

type jsonUser struct {
	ID            int64  `json:"id"`
	Login         string `json:"login"`
	LoginName     string `json:"login_name"`
	SourceID      int64  `json:"source_id"`
	FullName      string `json:"full_name"`
	Email         string `json:"email"`
	AvatarURL     string `json:"avatar_url"`
	HTMLURL       string `json:"html_url"`
	Language      string `json:"language"`
	IsAdmin       bool   `json:"is_admin"`
	LastLogin     string `json:"last_login"`
	Created       string `json:"created"`
	Restricted    bool   `json:"restricted"`
	Active        bool   `json:"active"`
	ProhibitLogin bool   `json:"prohibit_login"`
	Location      string `json:"location"`
	Website       string `json:"website"`
	Description   string `json:"description"`
	Visibility    string `json:"visibility"`
	Followers     int    `json:"followers_count"`
	Following     int    `json:"following_count"`
	Starred       int    `json:"starred_repos_count"`
	Username      string `json:"username"`
}

func (f *Forge) jsonUser(a *account) jsonUser {
	sum := md5.Sum([]byte(a.login))
	u := jsonUser{ID: a.id, Login: a.login, Username: a.login,
		AvatarURL: f.Host + "/avatars/" + hex.EncodeToString(sum[:]), HTMLURL: f.Host + "/" + a.login,
		LastLogin: "0001-01-01T00:00:00Z", Created: stamp(a.created), Visibility: "public"}
	if !a.org {
		u.Email = fmt.Sprintf("%d+%s@noreply.localhost", a.id, a.login)
	}
	return u
}

type jsonPermissions struct {
	Admin bool `json:"admin"`
	Push  bool `json:"push"`
	Pull  bool `json:"pull"`
}

type jsonTracker struct {
	EnableTimeTracker                bool `json:"enable_time_tracker"`
	AllowOnlyContributorsToTrackTime bool `json:"allow_only_contributors_to_track_time"`
	EnableIssueDependencies          bool `json:"enable_issue_dependencies"`
}

type jsonRepo struct {
	ID                            int64           `json:"id"`
	Owner                         jsonUser        `json:"owner"`
	Name                          string          `json:"name"`
	FullName                      string          `json:"full_name"`
	Description                   string          `json:"description"`
	Empty                         bool            `json:"empty"`
	Private                       bool            `json:"private"`
	Fork                          bool            `json:"fork"`
	Template                      bool            `json:"template"`
	Mirror                        bool            `json:"mirror"`
	Size                          int             `json:"size"`
	Language                      string          `json:"language"`
	LanguagesURL                  string          `json:"languages_url"`
	HTMLURL                       string          `json:"html_url"`
	URL                           string          `json:"url"`
	Link                          string          `json:"link"`
	SSHURL                        string          `json:"ssh_url"`
	CloneURL                      string          `json:"clone_url"`
	OriginalURL                   string          `json:"original_url"`
	Website                       string          `json:"website"`
	Stars                         int             `json:"stars_count"`
	Forks                         int             `json:"forks_count"`
	Watchers                      int             `json:"watchers_count"`
	BranchCount                   int             `json:"branch_count"`
	OpenIssues                    int             `json:"open_issues_count"`
	OpenPulls                     int             `json:"open_pr_counter"`
	Releases                      int             `json:"release_counter"`
	DefaultBranch                 string          `json:"default_branch"`
	Archived                      bool            `json:"archived"`
	Created                       string          `json:"created_at"`
	Updated                       string          `json:"updated_at"`
	ArchivedAt                    string          `json:"archived_at"`
	Permissions                   jsonPermissions `json:"permissions"`
	HasCode                       bool            `json:"has_code"`
	HasIssues                     bool            `json:"has_issues"`
	InternalTracker               jsonTracker     `json:"internal_tracker"`
	HasWiki                       bool            `json:"has_wiki"`
	HasPullRequests               bool            `json:"has_pull_requests"`
	HasProjects                   bool            `json:"has_projects"`
	ProjectsMode                  string          `json:"projects_mode"`
	HasReleases                   bool            `json:"has_releases"`
	HasPackages                   bool            `json:"has_packages"`
	HasActions                    bool            `json:"has_actions"`
	IgnoreWhitespaceConflicts     bool            `json:"ignore_whitespace_conflicts"`
	AllowMergeCommits             bool            `json:"allow_merge_commits"`
	AllowRebase                   bool            `json:"allow_rebase"`
	AllowRebaseExplicit           bool            `json:"allow_rebase_explicit"`
	AllowSquashMerge              bool            `json:"allow_squash_merge"`
	AllowFastForwardOnlyMerge     bool            `json:"allow_fast_forward_only_merge"`
	AllowRebaseUpdate             bool            `json:"allow_rebase_update"`
	AllowManualMerge              bool            `json:"allow_manual_merge"`
	AutodetectManualMerge         bool            `json:"autodetect_manual_merge"`
	DefaultDeleteBranchAfterMerge bool            `json:"default_delete_branch_after_merge"`
	DefaultMergeStyle             string          `json:"default_merge_style"`
	DefaultAllowMaintainerEdit    bool            `json:"default_allow_maintainer_edit"`
	AvatarURL                     string          `json:"avatar_url"`
	Internal                      bool            `json:"internal"`
	MirrorInterval                string          `json:"mirror_interval"`
	ObjectFormatName              string          `json:"object_format_name"`
	MirrorUpdated                 string          `json:"mirror_updated"`
	Topics                        []string        `json:"topics"`
	Licenses                      []string        `json:"licenses"`
}

// jsonRepo shows a repository to an account.
func (f *Forge) jsonRepo(r *repo, to *account) jsonRepo {
	right := f.st.accessOf(to, r)
	full := r.fullName()
	out := jsonRepo{
		ID: r.id, Owner: f.jsonUser(r.owner), Name: r.name, FullName: full, Private: r.private, Size: 25,
		LanguagesURL: f.Host + "/api/v1/repos/" + full + "/languages", HTMLURL: f.Host + "/" + full,
		URL: f.Host + "/api/v1/repos/" + full, SSHURL: "git@localhost:" + full + ".git", CloneURL: f.Host + "/" + full + ".git",
		OriginalURL: r.originalURL, Watchers: 1, BranchCount: 1, DefaultBranch: "main", Archived: r.archived,
		Created: stamp(r.created), Updated: stamp(r.created), ArchivedAt: "1970-01-01T00:00:00Z",
		Permissions: jsonPermissions{Admin: right >= accessAdmin, Push: right >= accessWrite, Pull: right >= accessRead},
		HasCode:     true, HasIssues: true, InternalTracker: jsonTracker{true, true, true},
		HasWiki: true, HasPullRequests: true, HasProjects: true, ProjectsMode: "all", HasReleases: true, HasPackages: true,
		HasActions: true, AllowMergeCommits: true, AllowRebase: true, AllowRebaseExplicit: true, AllowSquashMerge: true,
		AllowFastForwardOnlyMerge: true, AllowRebaseUpdate: true, DefaultMergeStyle: "merge", DefaultAllowMaintainerEdit: true,
		ObjectFormatName: "sha1", MirrorUpdated: "0001-01-01T00:00:00Z", Topics: []string{}, Licenses: []string{},
	}
	for _, i := range f.st.issues {
		switch {
		case i.repo != r || i.closed:
		case i.pull:
			out.OpenPulls++
		default:
			out.OpenIssues++
		}
	}
	return out
}

type jsonTeam struct {
	ID         int64  `json:"id"`
	Name       string `json:"name"`
	Permission string `json:"permission"`
}

type jsonPermission struct {
	Permission string   `json:"permission"`
	RoleName   string   `json:"role_name"`
	User       jsonUser `json:"user"`
}

type jsonLabel struct {
	ID          int64  `json:"id"`
	Name        string `json:"name"`
	Exclusive   bool   `json:"exclusive"`
	IsArchived  bool   `json:"is_archived"`
	Color       string `json:"color"`
	Description string `json:"description"`
	URL         string `json:"url"`
}

func (f *Forge) jsonLabel(l *label) jsonLabel {
	return jsonLabel{ID: l.id, Name: l.name, Exclusive: l.exclusive, Color: l.color, Description: l.description,
		URL: fmt.Sprintf("%s/api/v1/repos/%s/labels/%d", f.Host, l.repo.fullName(), l.id)}
}

func (f *Forge) jsonLabels(list []*label) []jsonLabel {
	out := []jsonLabel{}
	for _, l := range list {
		out = append(out, f.jsonLabel(l))
	}
	return out
}

type jsonPullMeta struct {
	Merged   bool    `json:"merged"`
	MergedAt *string `json:"merged_at"`
	Draft    bool    `json:"draft"`
	HTMLURL  string  `json:"html_url"`
}

type jsonRepoMeta struct {
	ID       int64  `json:"id"`
	Name     string `json:"name"`
	Owner    string `json:"owner"`
	FullName string `json:"full_name"`
}

type jsonIssue struct {
	ID               int64         `json:"id"`
	URL              string        `json:"url"`
	HTMLURL          string        `json:"html_url"`
	Number           int64         `json:"number"`
	User             jsonUser      `json:"user"`
	OriginalAuthor   string        `json:"original_author"`
	OriginalAuthorID int64         `json:"original_author_id"`
	Title            string        `json:"title"`
	Body             string        `json:"body"`
	Ref              string        `json:"ref"`
	Assets           []string      `json:"assets"`
	Labels           []jsonLabel   `json:"labels"`
	Milestone        *string       `json:"milestone"`
	Assignee         *jsonUser     `json:"assignee"`
	Assignees        []jsonUser    `json:"assignees"`
	State            string        `json:"state"`
	IsLocked         bool          `json:"is_locked"`
	Comments         int           `json:"comments"`
	Created          string        `json:"created_at"`
	Updated          string        `json:"updated_at"`
	Closed           *string       `json:"closed_at"`
	DueDate          *string       `json:"due_date"`
	TimeEstimate     int           `json:"time_estimate"`
	PullRequest      *jsonPullMeta `json:"pull_request"`
	Repository       jsonRepoMeta  `json:"repository"`
	PinOrder         int           `json:"pin_order"`
	ContentVersion   int           `json:"content_version"`
}

func stateName(i *issue) string {
	if i.closed {
		return "closed"
	}
	return "open"
}

// page is the address of an issue's or pull request's page.
func (f *Forge) page(i *issue) string {
	kind := "issues"
	if i.pull {
		kind = "pulls"
	}
	return fmt.Sprintf("%s/%s/%s/%d", f.Host, i.repo.fullName(), kind, i.index)
}

func (f *Forge) jsonIssue(i *issue) jsonIssue {
	r := i.repo
	out := jsonIssue{
		ID: i.id, URL: fmt.Sprintf("%s/api/v1/repos/%s/issues/%d", f.Host, r.fullName(), i.index), HTMLURL: f.page(i),
		Number: i.index, User: f.jsonUser(i.author), OriginalAuthor: f.shownAuthor(i.originalAuthor),
		Title: i.title, Body: i.body, Assets: []string{}, Labels: f.jsonLabels(i.labels), State: stateName(i), IsLocked: i.locked,
		Comments: len(f.st.threadComments(i)), Created: stamp(i.created), Updated: stamp(i.updated), Closed: stampOrNil(i.closedAt),
		Repository:     jsonRepoMeta{ID: r.id, Name: r.name, Owner: r.owner.login, FullName: r.fullName()},
		ContentVersion: i.version,
	}
	if i.pull {
		out.PullRequest = &jsonPullMeta{HTMLURL: f.page(i)}
	}
	return out
}

type jsonComment struct {
	ID               int64    `json:"id"`
	HTMLURL          string   `json:"html_url"`
	PRURL            string   `json:"pull_request_url"`
	IssueURL         string   `json:"issue_url"`
	User             jsonUser `json:"user"`
	OriginalAuthor   string   `json:"original_author"`
	OriginalAuthorID int64    `json:"original_author_id"`
	Body             string   `json:"body"`
	Assets           []string `json:"assets"`
	Created          string   `json:"created_at"`
	Updated          string   `json:"updated_at"`
}

// jsonComment names its thread by the address of its page alone, as Gitea does.
func (f *Forge) jsonComment(c *comment) jsonComment {
	out := jsonComment{
		ID: c.id, HTMLURL: fmt.Sprintf("%s#issuecomment-%d", f.page(c.issue), c.id), User: f.jsonUser(c.author),
		OriginalAuthor: f.shownAuthor(c.originalAuthor), Body: c.body, Assets: []string{},
		Created: stamp(c.created), Updated: stamp(c.updated),
	}
	if c.issue.pull {
		out.PRURL = f.page(c.issue)
	} else {
		out.IssueURL = f.page(c.issue)
	}
	return out
}

type jsonReaction struct {
	User    jsonUser `json:"user"`
	Content string   `json:"content"`
	Created string   `json:"created_at"`
}
