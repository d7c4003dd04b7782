package github

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"playbook-bot/bot/forge"
	"playbook-bot/bot/forge/forgetest"
)

func jsonAnswer(body string) forgetest.Fault {
	return forgetest.Fault{Status: 200, Header: http.Header{"Content-Type": {"application/json"}}, Body: body}
}

// TestRolesAreMapped is the table in the package's comment, by way of the wire.
func TestRolesAreMapped(t *testing.T) {
	f := newFixture(t)
	for right, want := range map[string]forge.Permission{
		"none": forge.PermissionNone, "read": forge.PermissionRead, "triage": forge.PermissionRead, "write": forge.PermissionWrite,
		"maintain": forge.PermissionWrite, "admin": forge.PermissionAdmin,
	} {
		login := "r-" + right
		account := f.AddUser(login)
		repo := f.AddRepo("ops/for-"+right, forgetest.Private())
		f.AddCollaborator("ops/for-"+right, login, right)
		f.AddCollaborator("ops/for-"+right, "botty", "write")
		got, id, err := f.c.Permission(t.Context(), repo.ID, login)
		if err != nil || got != want || id != account.ID {
			t.Errorf("%s: %s for %d, %v; want %s for %d", right, got, id, err, want, account.ID)
		}
	}
}

func TestToPermission(t *testing.T) {
	for _, tt := range []struct {
		permission, role string
		want             forge.Permission
	}{
		{"admin", "admin", forge.PermissionAdmin},
		{"write", "maintain", forge.PermissionWrite},
		{"read", "triage", forge.PermissionRead},
		{"admin", "", forge.PermissionAdmin}, // an old Enterprise Server
		{"write", "deploy-captain", forge.PermissionWrite},
		{"admin", "maintain", forge.PermissionWrite},
		{"read", "admin", forge.PermissionRead},
		{"write", "triage", forge.PermissionRead},
		{"write", "none", forge.PermissionNone},
		{"push", "push", forge.PermissionWrite},
		{"pull", "", forge.PermissionRead},
		{"none", "", forge.PermissionNone},
		{"none", "admin", forge.PermissionNone},
		{"", "admin", forge.PermissionNone},
		{"superadmin", "superadmin", forge.PermissionNone},
		{"Admin", "Admin", forge.PermissionNone},
	} {
		if got := toPermission(tt.permission, tt.role); got != tt.want {
			t.Errorf("%q, %q: %s, want %s", tt.permission, tt.role, got, tt.want)
		}
	}
}

// TestTheLesserWordCounts, whatever the two are.
func TestTheLesserWordCounts(t *testing.T) {
	order := []forge.Permission{forge.PermissionNone, forge.PermissionRead, forge.PermissionWrite, forge.PermissionAdmin}
	for permission, p := range ranks {
		for role, r := range ranks {
			got := slices.Index(order, toPermission(permission, role))
			if got > slices.Index(order, p) || got > slices.Index(order, r) {
				t.Errorf("%s with %s is %s", permission, role, order[got])
			}
		}
	}
}

func TestWhoOwns(t *testing.T) {
	f := newFixture(t)
	permission := func(repo int64, login string) forge.Permission {
		t.Helper()
		p, _, err := f.c.Permission(t.Context(), repo, login)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	f.AddUser("adam")
	f.AddTeam("ops", "Platform", "admin", "adam")
	if p := permission(f.repo.ID, "olga"); p != forge.PermissionOwner {
		t.Errorf("an organisation's owner: %s", p)
	}
	if p := permission(f.repo.ID, "adam"); p != forge.PermissionAdmin {
		t.Errorf("of a team with admin access: %s", p)
	}
	own := f.AddRepo("bob/own")
	f.AddCollaborator("bob/own", "botty", "write")
	f.AddCollaborator("bob/own", "adam", "admin")
	if p := permission(own.ID, "bob"); p != forge.PermissionOwner {
		t.Errorf("the owner of a repository of their own: %s", p)
	}
	if p := permission(own.ID, "adam"); p != forge.PermissionAdmin {
		t.Errorf("an administrator of somebody's repository: %s", p)
	}
	// Who cannot be seen to own does not.
	f.OrderKind("org.member", forgetest.Answer(403))
	if p := permission(f.repo.ID, "olga"); p != forge.PermissionAdmin {
		t.Errorf("without the right to see members: %s", p)
	}
	for name, membership := range map[string]string{
		"pending":                `{"state":"pending","role":"admin","organization":{"id":4},"user":{"id":1}}`,
		"a member":               `{"state":"active","role":"member","organization":{"id":4},"user":{"id":1}}`,
		"of another of the name": `{"state":"active","role":"admin","organization":{"id":99},"user":{"id":1}}`,
		"another of the login":   `{"state":"active","role":"admin","organization":{"id":4},"user":{"id":99}}`,
	} {
		f.OrderKind("org.member", jsonAnswer(membership))
		if p := permission(f.repo.ID, "olga"); p != forge.PermissionAdmin {
			t.Errorf("%s: %s", name, p)
		}
	}
	// Not to get an answer is not to know.
	f.OrderKind("org.member", forgetest.Answer(502))
	_, _, err := f.c.Permission(t.Context(), f.repo.ID, "olga")
	want(t, err, forge.ErrRetry)
}

func TestPermissionsThatMakeNoSense(t *testing.T) {
	f := newFixture(t)
	for name, answer := range map[string]string{
		"without an account": `{"permission":"admin","role_name":"admin","user":null}`,
		"without an id":      `{"permission":"admin","role_name":"admin","user":{"login":"bob"}}`,
		"of the ghost":       `{"permission":"admin","role_name":"admin","user":{"login":"ghost","id":10137}}`,
	} {
		f.OrderKind("permission.read", jsonAnswer(answer))
		if p, id, err := f.c.Permission(t.Context(), f.repo.ID, "bob"); p != forge.PermissionNone || id != 0 || err == nil {
			t.Errorf("%s: %s, %d, %v", name, p, id, err)
		}
	}
	f.OrderKind("permission.read", jsonAnswer(`{"permission":"write","user":{"login":"bob","id":2,"role_name":"triage"}}`))
	if p, _, err := f.c.Permission(t.Context(), f.repo.ID, "bob"); p != forge.PermissionRead || err != nil {
		t.Errorf("a role in user alone: %s, %v", p, err)
	}
}

// TestATransferredIssueIsNotFoundHere, by whatever call, and neither is it
// taken for the other repository's.
func TestATransferredIssueIsNotFoundHere(t *testing.T) {
	f := newFixture(t)
	other := f.AddRepo("ops/other")
	f.AddCollaborator("ops/other", "botty", "write")
	f.AddCollaborator("ops/other", "bob", "write")
	f.AddCollaborator("ops/runtime", "bob", "write")
	n := ok(f.TransferIssue("bob", "ops/runtime", f.issue, "ops/other"))(t)
	_, err := f.c.Issue(t.Context(), f.repo.ID, f.issue)
	if e := want(t, err, forge.ErrNotFound); e.Status != http.StatusMovedPermanently {
		t.Errorf("status %d", e.Status)
	}
	_, err = f.c.Comment(t.Context(), f.repo.ID, f.comment)
	want(t, err, forge.ErrNotFound)
	_, err = f.c.Comments(t.Context(), f.repo.ID, f.issue, time.Time{})
	want(t, err, forge.ErrNotFound)
	_, err = f.c.CreateComment(t.Context(), f.repo.ID, f.issue, "x")
	want(t, err, forge.ErrNotFound)
	if i := ok(f.c.Issue(t.Context(), other.ID, n))(t); i.Author.Login != "bob" {
		t.Errorf("there %+v", i)
	}
	// A redirect that says nothing of where to, as for what is below an issue.
	f.OrderKind("comment.list", forgetest.Fault{Status: 301, Header: http.Header{"Content-Type": {"application/json"}},
		Body: `{"message":"Moved Permanently","documentation_url":"x"}`})
	_, err = f.c.Comments(t.Context(), f.repo.ID, f.issue, time.Time{})
	want(t, err, forge.ErrNotFound)
	// A proxy's redirect says nothing of the issue.
	f.OrderKind("issue.read", forgetest.Redirect(301, "https://login.example.org/repositories/1"))
	_, err = f.c.Issue(t.Context(), f.repo.ID, f.issue)
	want(t, err, forge.ErrRetry)
}

func TestADeletedIssueIsNotFound(t *testing.T) {
	f := newFixture(t)
	if err := f.DeleteIssue("olga", "ops/runtime", f.issue); err != nil {
		t.Fatal(err)
	}
	_, err := f.c.Issue(t.Context(), f.repo.ID, f.issue)
	if e := want(t, err, forge.ErrNotFound); e.Status != http.StatusGone {
		t.Errorf("status %d", e.Status)
	}
}

// TestLongListings: pages of a hundred, each item once, whatever is repeated.
func TestLongListings(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		ids := []int64{f.comment}
		for i := range 249 {
			ids = append(ids, ok(f.Comment("bob", "ops/runtime", f.issue, fmt.Sprint(i)))(t))
		}
		f.ResetCalls()
		var got []int64
		for _, c := range ok(f.c.Comments(t.Context(), f.repo.ID, f.issue, time.Time{}))(t) {
			got = append(got, c.ID)
		}
		if !slices.Equal(got, ids) || f.kinds() != "comment.list comment.list comment.list" {
			t.Errorf("%d comments by %q", len(got), f.kinds())
		}
		// A comment that came after the first page was read is listed, once.
		f.OrderKind("comment.list", forgetest.SamePage())
		if list := ok(f.c.Comments(t.Context(), f.repo.ID, f.issue, time.Time{}))(t); len(list) != 100 {
			t.Errorf("of a server that repeats itself: %d comments", len(list))
		}
	})
}

func TestListingsHoldPullRequestsToo(t *testing.T) {
	f := newFixture(t)
	n := ok(f.OpenPull("bob", "ops/runtime", "t", "b"))(t)
	id := ok(f.Comment("bob", "ops/runtime", n, "/restart x"))(t)
	list, more, date, err := f.c.UpdatedIssues(t.Context(), f.repo.ID, time.Time{}, 1)
	if err != nil || len(list) != 2 || more || date.IsZero() || list[0].Pull || !list[1].Pull {
		t.Errorf("updated: %+v, more %v, date %v, %v", list, more, date, err)
	}
	if c := ok(f.c.Comment(t.Context(), f.repo.ID, id))(t); c.Number != n {
		t.Errorf("comment of thread %d, want %d", c.Number, n)
	}
}

// TestWhoseTextsCarryNoRights: the ghost's, whom GitHub gives an id, and those
// of an importer's mannequins.
func TestWhoseTextsCarryNoRights(t *testing.T) {
	f := newFixture(t)
	old := f.ImportComment("ops/runtime", f.issue, "olga", "mallory", "/endorse 1/1", time.Now())
	if c := ok(f.c.Comment(t.Context(), f.repo.ID, old))(t); c.OriginalAuthor != "mallory" {
		t.Errorf("imported: %+v", c)
	}
	f.DeleteAccount("bob")
	if c := ok(f.c.Comment(t.Context(), f.repo.ID, f.comment))(t); c.Author.Real() || c.Author.Login != "ghost" {
		t.Errorf("the ghost's: %+v", c.Author)
	}
	f.OrderKind("issue.read", jsonAnswer(`{"id":1,"number":1,"title":"t","user":null}`))
	if i := ok(f.c.Issue(t.Context(), f.repo.ID, f.issue))(t); i.Author.Real() {
		t.Errorf("null's: %+v", i.Author)
	}
}

func TestABotsAccount(t *testing.T) {
	f := newFixture(t)
	_, bot := f.AddApp("dependabot", nil)
	if got := ok(f.c.AccountByLogin(t.Context(), "dependabot[bot]"))(t); got != bot {
		t.Errorf("%+v, want %+v", got, bot)
	}
	// A login is one segment of a path, whatever is in it.
	for _, login := range []string{"../user", "bob/repos", "bob?x=y", ".", "..", "bob#x", "bob%2Frepos"} {
		_, err := f.c.AccountByLogin(t.Context(), login)
		want(t, err, forge.ErrNotFound)
	}
}

func TestTeams(t *testing.T) {
	f := newFixture(t)
	f.AddTeam("ops", "On Call", "read", "bob")
	for name, want := range map[string]bool{"on-call": true, "On Call": true, "ON-CALL": true, "owners": false} {
		if in := ok(f.c.TeamMember(t.Context(), "ops", name, "bob"))(t); in != want {
			t.Errorf("%s: %v", name, in)
		}
	}
	f.OrderKind("team.member", jsonAnswer(`{"state":"pending","role":"member"}`))
	if in := ok(f.c.TeamMember(t.Context(), "ops", "on-call", "olga"))(t); in {
		t.Error("who was only invited is in the team")
	}
	for _, bad := range [][3]string{{"", "a", "b"}, {"ops", "", "b"}, {"ops", "§", "b"}, {"ops", "a", ""}} {
		if in, err := f.c.TeamMember(t.Context(), bad[0], bad[1], bad[2]); in || err == nil {
			t.Errorf("%q: %v, %v", bad, in, err)
		}
	}
}

func TestSlug(t *testing.T) {
	for name, want := range map[string]string{
		"oncall": "oncall", "On Call": "on-call", "Ops & Duty": "ops-duty", "a_b": "a_b", " x ": "x", "../y": "y", "": "",
	} {
		if got := slug(name); got != want {
			t.Errorf("%q: %q, want %q", name, got, want)
		}
	}
}

// TestRepositoriesOfAUser: private ones are listed where the bot is a
// collaborator.
func TestRepositoriesOfAUser(t *testing.T) {
	f := newFixture(t)
	open, shared := f.AddRepo("bob/open"), f.AddRepo("bob/shared", forgetest.Private())
	f.AddRepo("bob/secret", forgetest.Private())
	f.AddCollaborator("bob/shared", "botty", "write")
	if got := ok(f.c.ReposOf(t.Context(), "bob"))(t); !slices.Equal(got, []forge.Repo{open, shared}) {
		t.Errorf("repositories %+v", got)
	}
	_, err := f.c.ReposOf(t.Context(), "nobody-of-that-name")
	want(t, err, forge.ErrNotFound)
}

// TestARedirectLeadsToThisServerAlone: the token goes to no other.
func TestARedirectLeadsToThisServerAlone(t *testing.T) {
	f := newFixture(t)
	for _, to := range []string{"https://evil.example/x", "https://evil.example/repositories/x", "https://evil.example/repositories/1/issues"} {
		f.OrderKind("repo.by_name", forgetest.Redirect(301, to))
		_, err := f.c.RepoByName(t.Context(), "ops", "runtime")
		want(t, err, forge.ErrRetry)
	}
	f.OrderKind("repo.by_name", forgetest.Redirect(301, fmt.Sprintf("https://evil.example/repositories/%d", f.repo.ID)))
	if r := ok(f.c.RepoByName(t.Context(), "ops", "runtime"))(t); r != f.repo {
		t.Errorf("%+v", r)
	}
}

// TestObserveOnlyMakesItAsk: who can sign a delivery does not say who owns.
func TestObserveOnlyMakesItAsk(t *testing.T) {
	f := newFixture(t)
	f.AddCollaborator("ops/runtime", "bob", "admin")
	bob := f.mustID(t, "bob")
	forged := f.repo
	forged.OwnerID, forged.Owner = bob, "bob"
	ok(f.c.RepoByID(t.Context(), f.repo.ID))(t)
	f.c.Observe(forged)
	if p, _, err := f.c.Permission(t.Context(), f.repo.ID, "bob"); p != forge.PermissionAdmin || err != nil {
		t.Errorf("%s, %v", p, err)
	}
}

func TestLabelsKeepToTheirScope(t *testing.T) {
	f := newFixture(t)
	specs := []forge.LabelSpec{
		{Name: "recovery/approved", Exclusive: true, Description: strings.Repeat("ä", 150)},
		{Name: "recovery/refused", Exclusive: true}, {Name: "recovery/note"},
	}
	if err := f.c.EnsureLabels(t.Context(), f.repo.ID, specs); err != nil {
		t.Fatal(err)
	}
	set := func(want []string, add ...string) {
		t.Helper()
		if err := f.c.SetLabels(t.Context(), f.repo.ID, f.issue, add, nil); err != nil {
			t.Fatal(err)
		}
		if got := f.Labels("ops/runtime", f.issue); !slices.Equal(got, want) {
			t.Errorf("labels %q, want %q", got, want)
		}
	}
	set([]string{"recovery/approved", "recovery/note"}, "recovery/approved", "recovery/note")
	set([]string{"recovery/note", "recovery/refused"}, "Recovery/Refused")
	// Somebody made one between the listing and ours.
	f.OrderKind("label.list", jsonAnswer(`[]`))
	if err := f.c.EnsureLabels(t.Context(), f.repo.ID, specs); err != nil {
		t.Errorf("labels that exist: %v", err)
	}
	if err := f.c.SetLabels(t.Context(), f.repo.ID, f.issue, nil, []string{"RECOVERY/refused", "never-there"}); err != nil {
		t.Fatal(err)
	}
	if got := f.Labels("ops/runtime", f.issue); !slices.Equal(got, []string{"recovery/note"}) {
		t.Errorf("labels %q", got)
	}
}
