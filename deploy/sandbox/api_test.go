//go:build unix

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	sdk "code.gitea.io/sdk/gitea"

	"playbook-bot/deploy/sandbox/internal/tracker"
)

// These tests hold the real Gitea to what the adapter in bot/forge/gitea takes
// for granted. One that fails after a change of Gitea's version names the
// assumption that broke.

// answer is a response, read.
type answer struct {
	status int
	header http.Header
	body   []byte
}

// api makes a plain call, without the SDK between, as a token's account; an
// empty token is nobody's. Redirects are not followed.
func api(t *testing.T, token, method, path string, body any) answer {
	t.Helper()
	var content io.Reader
	if body != nil {
		data, err := json.Marshal(body)
		ok(t, err)
		content = bytes.NewReader(data)
	}
	req, err := http.NewRequestWithContext(t.Context(), method, box.gitea.URL+"/api/v1"+path, content)
	ok(t, err)
	req.Header.Set("Content-Type", "application/json")
	if token != "" {
		req.Header.Set("Authorization", "token "+token)
	}
	client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	resp, err := client.Do(req)
	ok(t, err)
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	ok(t, err)
	return answer{resp.StatusCode, resp.Header, data}
}

func tokenOf(t *testing.T, login string) string {
	t.Helper()
	return must(box.gitea.Account(t.Context(), login))(t).Token
}

func decode[T any](t *testing.T, a answer) T {
	t.Helper()
	var v T
	if err := json.Unmarshal(a.body, &v); err != nil {
		t.Fatalf("status %d, %v: %s", a.status, err, a.body)
	}
	return v
}

func TestVersion(t *testing.T) {
	a := api(t, "", "GET", "/version", nil)
	if got := decode[map[string]string](t, a)["version"]; got != "1.26.0" {
		t.Errorf("version %q; clients refuse one they cannot read", got)
	}
}

func TestThreadListingIsNotPaged(t *testing.T) {
	t.Parallel()
	repo, ctx := newRepo(t), t.Context()
	number := must(repo.Open(ctx, "rhea", "a thread", "body"))(t)
	const total = 55
	for range total {
		must(repo.Comment(ctx, "wren", number, "text"))(t)
	}
	path := "/repos/" + repo.FullName() + "/issues/" + strconv.FormatInt(number, 10) + "/comments"
	for _, query := range []string{"", "?page=1&limit=10", "?page=2&limit=10", "?page=99"} {
		if got := len(decode[[]sdk.Comment](t, api(t, tokenOf(t, "wren"), "GET", path+query, nil))); got != total {
			t.Errorf("%q lists %d comments, want all %d", query, got, total)
		}
	}

	// The repository's list is paged, 50 at most.
	path = "/repos/" + repo.FullName() + "/issues/comments"
	for query, want := range map[string]int{"": 30, "?limit=1000": 50, "?limit=50&page=2": 5, "?limit=50&page=3": 0} {
		a := api(t, tokenOf(t, "wren"), "GET", path+query, nil)
		if got := len(decode[[]sdk.Comment](t, a)); got != want {
			t.Errorf("repository %q lists %d comments, want %d", query, got, want)
		}
		if got := a.header.Get("X-Total-Count"); got != strconv.Itoa(total) {
			t.Errorf("repository %q counts %q, want %d", query, got, total)
		}
		if _, err := http.ParseTime(a.header.Get("Date")); err != nil {
			t.Errorf("repository %q: no Date: %v", query, err)
		}
	}
}

func TestSinceComparesWholeSecondsOfUpdated(t *testing.T) {
	t.Parallel()
	repo, ctx := newRepo(t), t.Context()
	number := must(repo.Open(ctx, "rhea", "a thread", "body"))(t)
	id := must(repo.Comment(ctx, "wren", number, "text"))(t)
	thread := must(repo.Thread(ctx, number))(t)
	comment := thread.Entries[1]
	if comment.ID != id || comment.Updated.Nanosecond() != 0 {
		t.Fatalf("comment %+v, want id %d and whole seconds", comment, id)
	}
	path := "/repos/" + repo.FullName() + "/issues/" + strconv.FormatInt(number, 10) + "/comments?since="
	for since, want := range map[time.Time]int{comment.Updated: 1, comment.Updated.Add(time.Second): 0} {
		a := api(t, tokenOf(t, "wren"), "GET", path+since.UTC().Format(time.RFC3339), nil)
		if got := len(decode[[]sdk.Comment](t, a)); got != want {
			t.Errorf("since updated%+v lists %d, want %d", since.Sub(comment.Updated), got, want)
		}
	}
}

func TestPermissions(t *testing.T) {
	t.Parallel()
	repo, ctx := newRepo(t), t.Context()
	ok(t, repo.Admit(ctx, tracker.Person{Login: "otto", Permission: "owner"}))
	path := "/repos/" + repo.FullName() + "/collaborators/"
	for login, want := range map[string]string{
		"olivia": "owner", "otto": "owner", "adam": "admin", "wren": "write", "rhea": "read",
		"nora":     "read",  // who may read a public repository anyway
		"operator": "owner", // a site administrator
	} {
		a := api(t, tokenOf(t, "adam"), "GET", path+login+"/permission", nil)
		got := decode[struct {
			Permission string
			User       struct{ ID int64 }
		}](t, a)
		if got.Permission != want || got.User.ID != must(box.gitea.Account(ctx, login))(t).ID {
			t.Errorf("%s has %+v, want %s and the account's id", login, got, want)
		}
	}
	for asker, want := range map[string]int{"adam": 200, "olivia": 200, "wren": 403, "rhea": 403} {
		if got := api(t, tokenOf(t, asker), "GET", path+"adam/permission", nil).status; got != want {
			t.Errorf("%s asks about adam: %d, want %d", asker, got, want)
		}
	}
	if got := api(t, tokenOf(t, "wren"), "GET", path+"wren/permission", nil).status; got != 200 {
		t.Errorf("wren asks about himself: %d, want 200", got)
	}
	if got := api(t, tokenOf(t, "wren"), "GET", "/repos/"+repo.FullName()+"/assignees", nil).status; got != 200 {
		t.Errorf("a writer lists assignees: %d, want 200", got)
	}
}

func TestNoneOnAPrivateRepository(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	repo := must(box.gitea.NewRepo(ctx, tracker.RepoSpec{Owner: "olivia", People: people, Private: true}))(t)
	a := api(t, tokenOf(t, "adam"), "GET", "/repos/"+repo.FullName()+"/collaborators/nora/permission", nil)
	if got := decode[struct{ Permission string }](t, a).Permission; got != "none" {
		t.Errorf("nora has %q, want none", got)
	}
	if _, err := repo.Open(ctx, "nora", "a thread", "body"); err == nil {
		t.Error("nora opened an issue in a private repository")
	}
}

func TestTeamMembership(t *testing.T) {
	t.Parallel()
	repo, ctx := newRepo(t), t.Context()
	ok(t, box.gitea.JoinTeam(ctx, "olivia", repo.Org, "oncall", "wren"))
	full := must(box.gitea.Token(ctx, "wren", []string{"read:organization"}))(t)
	less := must(box.gitea.Token(ctx, "wren", []string{"write:issue", "read:repository", "read:user"}))(t)
	path := "/orgs/" + repo.Org + "/teams"
	if got := api(t, less, "GET", path, nil).status; got != 403 {
		t.Errorf("teams without read:organization: %d, want 403", got)
	}
	if got := api(t, full, "GET", path, nil).status; got != 200 {
		t.Errorf("teams with read:organization: %d, want 200", got)
	}
}

func TestScopesThatSuffice(t *testing.T) {
	t.Parallel()
	repo, ctx := newRepo(t), t.Context()
	ok(t, repo.Label(ctx, sdk.CreateLabelOption{Name: "recovery/approved", Color: "#0e8a16", Exclusive: true}))
	ok(t, repo.Label(ctx, sdk.CreateLabelOption{Name: "recovery/refused", Color: "#b60205", Exclusive: true}))
	number := must(repo.Open(ctx, "rhea", "a thread", "body"))(t)
	token := must(box.gitea.Token(ctx, "adam", []string{"write:issue", "read:repository", "read:user"}))(t)
	issue := "/repos/" + repo.FullName() + "/issues/" + strconv.FormatInt(number, 10)

	for _, c := range []struct {
		method, path string
		body         any
		want         int
	}{
		{"GET", "/user", nil, 200},
		{"GET", "/repositories/" + strconv.FormatInt(repo.ID, 10), nil, 200},
		{"GET", "/repos/" + repo.FullName() + "/collaborators/rhea/permission", nil, 200},
		{"POST", issue + "/comments", map[string]any{"body": "text"}, 201},
		{"POST", issue + "/reactions", map[string]any{"content": "eyes"}, 201},
		{"POST", issue + "/labels", map[string]any{"labels": []string{"recovery/approved"}}, 200},
		{"POST", issue + "/labels", map[string]any{"labels": []string{"recovery/refused"}}, 200},
		{"GET", "/repos/" + repo.FullName() + "/labels", nil, 200},
		{"POST", "/repos/" + repo.FullName() + "/labels", map[string]any{"name": "recovery/recovered", "color": "#1d76db", "exclusive": true}, 201},
	} {
		if a := api(t, token, c.method, c.path, c.body); a.status != c.want {
			t.Errorf("%s %s: %d, want %d: %s", c.method, c.path, a.status, c.want, a.body)
		}
	}
	thread := must(repo.Thread(ctx, number))(t)
	if got := strings.Join(thread.Labels, " "); got != "recovery/refused" {
		t.Errorf("labels %q, want the later of two that exclude each other", got)
	}
	if got := must(repo.Reactions(ctx, number, 0))(t)["eyes"]; len(got) != 1 || got[0] != "adam" {
		t.Errorf("eyes by %q, want adam", got)
	}
}

func TestRenamedRepository(t *testing.T) {
	t.Parallel()
	repo, ctx := newRepo(t), t.Context()
	number := must(repo.Open(ctx, "rhea", "a thread", "body"))(t)
	old := repo.FullName()
	ok(t, repo.Rename(ctx, repo.Name+"-new"))
	comments := "/issues/" + strconv.FormatInt(number, 10) + "/comments"

	a := api(t, tokenOf(t, "wren"), "POST", "/repos/"+old+comments, map[string]any{"body": "text"})
	if a.status != 301 {
		t.Errorf("POST to the old name: %d, want 301", a.status)
	}
	if got := must(repo.Thread(ctx, number))(t); len(got.Entries) != 1 {
		t.Errorf("%d entries, want the comment not posted", len(got.Entries))
	}
	a = api(t, tokenOf(t, "wren"), "GET", "/repositories/"+strconv.FormatInt(repo.ID, 10), nil)
	if got := decode[sdk.Repository](t, a).FullName; got != repo.FullName() {
		t.Errorf("by id it is called %q, want %q", got, repo.FullName())
	}
}

func TestLockedArchivedDeleted(t *testing.T) {
	t.Parallel()
	repo, ctx := newRepo(t), t.Context()
	number := must(repo.Open(ctx, "rhea", "a thread", "body"))(t)
	gone := must(repo.Open(ctx, "rhea", "another", "body"))(t)
	comment := func(as string, number int64) answer {
		path := "/repos/" + repo.FullName() + "/issues/" + strconv.FormatInt(number, 10) + "/comments"
		return api(t, tokenOf(t, as), "POST", path, map[string]any{"body": "text"})
	}
	ok(t, repo.Lock(ctx, "adam", number))
	if a := comment("rhea", number); a.status != 403 || !strings.Contains(string(a.body), "You cannot comment on a locked issue.") {
		t.Errorf("a reader on a locked issue: %d %s", a.status, a.body)
	}
	if a := comment("wren", number); a.status != 201 {
		t.Errorf("a writer on a locked issue: %d %s", a.status, a.body)
	}
	ok(t, repo.DeleteIssue(ctx, "olivia", gone))
	// Of a deleted issue only the issue itself is said to be missing. Its
	// thread answers with Gitea's own 500 to readers and writers alike, which
	// looks like a failure that may pass; whoever gets one has to ask for the
	// issue to tell the two apart.
	issue := "/repos/" + repo.FullName() + "/issues/" + strconv.FormatInt(gone, 10)
	if a := api(t, tokenOf(t, "wren"), "GET", issue, nil); a.status != 404 {
		t.Errorf("read a deleted issue: %d %s", a.status, a.body)
	}
	if a := api(t, tokenOf(t, "wren"), "GET", issue+"/comments", nil); a.status != 500 {
		t.Errorf("list the comments of a deleted issue: %d %s", a.status, a.body)
	}
	if a := comment("wren", gone); a.status != 500 {
		t.Errorf("comment on a deleted issue: %d %s", a.status, a.body)
	}
	ok(t, repo.Archive(ctx))
	if a := comment("wren", number); a.status != 423 {
		t.Errorf("on an archived repository: %d %s", a.status, a.body)
	}
}

func TestCommentsOfOthers(t *testing.T) {
	t.Parallel()
	repo, ctx := newRepo(t), t.Context()
	number := must(repo.Open(ctx, "rhea", "a thread", "body"))(t)
	long := strings.Repeat("seventy thousand characters ", 2500)
	id := must(repo.Comment(ctx, "adam", number, long))(t)
	if err := repo.EditComment(ctx, "rhea", id, "mine"); err == nil {
		t.Error("a reader edited another's comment")
	}
	ok(t, repo.EditComment(ctx, "wren", id, "edited"))
	entry := must(repo.Thread(ctx, number))(t).Entries[1]
	if entry.Author != "adam" || entry.Body != "edited" {
		t.Errorf("%s wrote %q, want adam still the author of the edited text", entry.Author, entry.Body)
	}
	ok(t, repo.DeleteComment(ctx, "wren", id))
	if got := must(repo.Thread(ctx, number))(t); len(got.Entries) != 1 {
		t.Errorf("%d entries, want the comment gone", len(got.Entries))
	}
}

func TestRendering(t *testing.T) {
	t.Parallel()
	repo, ctx := newRepo(t), t.Context()
	must(repo.Open(ctx, "rhea", "a thread", "body"))(t)
	for _, c := range []struct {
		name, text string
		want, not  string
	}{
		{"HTML comments are dropped", "before\n<!-- marker -->\nafter", "after", "marker"},
		{"details hold a fence", "<details><summary>s</summary>\n\n```json\n{}\n```\n\n</details>", "<pre", "```"},
		{"a plain mention is one", "@adam", `/adam"`, ""},
		{"a mention in code is none", "`@adam` and\n```\n@adam #1\n```", "@adam", `/adam"`},
		{"nor with a zero-width space", "@\u200badam", "adam", `/adam"`},
		{"an escaped one is still one", `\@adam`, `/adam"`, ""},
		{"an entity is still one", `&#64;adam`, `/adam"`, ""},
		{"a plain reference is one", "#1", "/issues/1", ""},
		{"a reference in code is none", "`#1`", "#1", "/issues/1"},
		{"nor with a zero-width space", "#\u200b1", "1", "/issues/1"},
		{"an escaped one is still one", `\#1`, "/issues/1", ""},
	} {
		html := render(ctx, t, repo, c.text)
		if !strings.Contains(html, c.want) || c.not != "" && strings.Contains(html, c.not) {
			t.Errorf("%s: %q is shown as %s", c.name, c.text, html)
		}
	}
}

func render(_ context.Context, t *testing.T, repo *tracker.Repo, text string) string {
	t.Helper()
	a := api(t, tokenOf(t, "rhea"), "POST", "/markdown", map[string]any{
		"Text": text, "Mode": "comment", "Context": repo.FullName(),
	})
	if a.status != 200 {
		t.Fatalf("render: %d %s", a.status, a.body)
	}
	return string(a.body)
}
