package gitea

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"playbook-bot/bot/forge"
	"playbook-bot/bot/forge/forgetest"
	"playbook-bot/bot/forge/internal/wire"
)

func jsonAnswer(body string) forgetest.Fault {
	return forgetest.Fault{Status: 200, Header: http.Header{"Content-Type": {"application/json"}}, Body: body, Times: -1}
}

func TestPermissionValues(t *testing.T) { // case 11
	for value, want := range map[string]forge.Permission{
		"none": forge.PermissionNone, "read": forge.PermissionRead, "write": forge.PermissionWrite,
		"admin": forge.PermissionAdmin, "owner": forge.PermissionOwner,
		"maintain": forge.PermissionNone, "": forge.PermissionNone, "Admin": forge.PermissionNone,
	} {
		f := newFixture(t)
		f.OrderKind("permission.read", jsonAnswer(`{"permission":"`+value+`","user":{"id":2,"login":"bob"}}`))
		got, id, err := f.c.Permission(t.Context(), f.repo.ID, "bob")
		if err != nil || got != want || id != 2 {
			t.Errorf("%q: %q of account %d, %v; want %q", value, got, id, err, want)
		}
	}
	f := newFixture(t)
	f.OrderKind("permission.read", jsonAnswer(`{"permission":"admin","user":null}`))
	if got, _, err := f.c.Permission(t.Context(), f.repo.ID, "bob"); !errors.Is(err, forge.ErrRetry) || got != forge.PermissionNone {
		t.Errorf("without an account: %q, %v", got, err)
	}
}

// TestAServerThatRepeatsItself is case 4: every page is the same.
func TestAServerThatRepeatsItself(t *testing.T) {
	f := newFixture(t)
	user := `"user":{"id":2,"login":"bob"},"issue_url":"http://gitea.test/ops/runtime/issues/1"`
	f.OrderKind("comment.list", jsonAnswer(`[{"id":7,`+user+`},{"id":5,`+user+`},{"id":7,`+user+`},null]`))
	got := ok(f.c.Comments(t.Context(), f.repo.ID, f.issue, time.Time{}))(t)
	if len(got) != 2 || got[0].ID != 5 || got[1].ID != 7 {
		t.Errorf("comments %+v", got)
	}
	repo := `[{"id":1,"name":"runtime","owner":{"id":4,"login":"ops"}}]`
	again := jsonAnswer(repo)
	again.Header.Set("Link", `<http://gitea.test/api/v1/users/ops/repos?page=2>; rel="next"`)
	f.OrderKind("repo.list", again)
	if got := ok(f.c.ReposOf(t.Context(), "ops"))(t); len(got) != 1 {
		t.Errorf("repositories %+v", got)
	}
	f.OrderKind("label.list", jsonAnswer(`[{"id":1,"name":"a"}]`))
	if err := f.c.EnsureLabels(t.Context(), f.repo.ID, []forge.LabelSpec{{Name: "a"}}); err != nil {
		t.Error(err)
	}
	f.OrderKind("team.list", jsonAnswer(`[{"id":1,"name":"a"}]`))
	if _, err := f.c.TeamMember(t.Context(), "ops", "b", "bob"); !errors.Is(err, forge.ErrNotFound) {
		t.Errorf("a team of a list without end: %v", err)
	}
}

func TestPagesOfUpdates(t *testing.T) {
	f := newFixture(t)
	for i := range 120 {
		ok(f.OpenIssue("bob", "ops/runtime", fmt.Sprint(i), "b"))(t)
	}
	seen := map[int64]bool{}
	pages := 0
	for more := true; more; {
		var list []forge.Issue
		var err error
		pages++
		list, more, _, err = f.c.UpdatedIssues(t.Context(), f.repo.ID, time.Time{}, pages)
		if err != nil {
			t.Fatal(err)
		}
		for _, i := range list {
			seen[i.Number] = true
		}
	}
	if len(seen) != 121 || pages != 3 {
		t.Errorf("%d issues in %d pages", len(seen), pages)
	}
}

func TestMore(t *testing.T) {
	for _, tt := range []struct {
		name        string
		page, got   int
		total, link string
		want        bool
	}{
		{"the only page", 1, 3, "3", "", false},
		{"the first of two", 1, 50, "53", "", true},
		{"a server with short pages", 1, 20, "53", "", true},
		{"the last, full", 2, 50, "100", "", false},
		{"in the middle", 2, 50, "101", "", true},
		{"short and last by its links", 2, 3, "53", `<x?page=1>; rel="first"`, false},
		{"short with a next", 2, 20, "53", `<x?page=3>; rel="next"`, true},
		{"short and nothing said", 2, 3, "53", "", true},
		{"no total", 1, 50, "", "", true},
		{"empty", 3, 0, "100", "", false},
		{"empty, no total", 1, 0, "", "", false},
	} {
		ex := &wire.Exchange{Header: http.Header{}}
		ex.Header.Set("X-Total-Count", tt.total)
		if tt.link != "" {
			ex.Header.Set("Link", tt.link)
		}
		if got := hasMore(ex, tt.page, tt.got); got != tt.want {
			t.Errorf("%s: %v", tt.name, got)
		}
	}
}

func TestAPullRequestIsAThreadToo(t *testing.T) { // case 18
	f := newFixture(t)
	n := ok(f.OpenPull("bob", "ops/runtime", "t", "b"))(t)
	id := ok(f.Comment("bob", "ops/runtime", n, "/restart x"))(t)
	if c := ok(f.c.Comment(t.Context(), f.repo.ID, id))(t); c.Number != n {
		t.Errorf("comment of thread %d, want %d", c.Number, n)
	}
	if i := ok(f.c.Issue(t.Context(), f.repo.ID, n))(t); !i.Pull {
		t.Error("the pull request is read as an issue")
	}
	list, _, _, err := f.c.UpdatedIssues(t.Context(), f.repo.ID, time.Time{}, 1)
	if err != nil || len(list) != 2 {
		t.Errorf("updated: %d, %v; want issue and pull request", len(list), err)
	}
}

// TestImportedTextsAreMarked: with original_author blank, as Gitea 1.26.0
// leaves it, what came with a migrated repository is known by its age.
func TestImportedTextsAreMarked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		f.BlankOriginalAuthor = true
		past := time.Now().Add(-time.Hour)
		r := f.AddRepo("ops/imported", forgetest.Migrated("https://git.example.org/x/y"))
		n := f.ImportIssue("ops/imported", "olga", "mallory", "t", "b", past)
		old := f.ImportComment("ops/imported", n, "olga", "mallory", "/endorse 1/1", past)
		<-time.After(2 * time.Second)
		own := ok(f.Comment("olga", "ops/imported", n, "my own"))(t)
		if i := ok(f.c.Issue(t.Context(), r.ID, n))(t); i.OriginalAuthor == "" {
			t.Errorf("issue by %+v passes for its importer's", i.Author)
		}
		for id, want := range map[int64]bool{old: true, own: false} {
			c := ok(f.c.Comment(t.Context(), r.ID, id))(t)
			if got := c.OriginalAuthor != ""; got != want {
				t.Errorf("comment %d: imported %v, want %v", id, got, want)
			}
		}
		for _, c := range ok(f.c.Comments(t.Context(), r.ID, n, time.Time{}))(t) {
			if (c.OriginalAuthor != "") != (c.ID == old) {
				t.Errorf("listed comment %d has the original author %q", c.ID, c.OriginalAuthor)
			}
		}
	})
}

func TestAnOriginalAuthorIsKept(t *testing.T) {
	f := newFixture(t)
	id := f.ImportComment("ops/runtime", f.issue, "olga", "mallory", "x", time.Now())
	if c := ok(f.c.Comment(t.Context(), f.repo.ID, id))(t); c.OriginalAuthor != "mallory" || c.Author.Login != "olga" {
		t.Errorf("comment %+v", c)
	}
}

func TestTheGhostIsNotReal(t *testing.T) {
	f := newFixture(t)
	f.DeleteAccount("bob")
	if c := ok(f.c.Comment(t.Context(), f.repo.ID, f.comment))(t); c.Author.Real() {
		t.Errorf("author %+v", c.Author)
	}
	f.OrderKind("comment.read", jsonAnswer(fmt.Sprintf(`{"id":%d,"user":null,"issue_url":"http://gitea.test/o/r/issues/1"}`, f.comment)))
	if c := ok(f.c.Comment(t.Context(), f.repo.ID, f.comment))(t); c.Author.Real() {
		t.Errorf("author %+v", c.Author)
	}
}

// TestReposBehindShortPages: pages are cut before what may not be seen is left
// out.
func TestReposBehindShortPages(t *testing.T) {
	f := newFixture(t)
	var want []string
	want = append(want, "runtime")
	for i := range 130 {
		name := fmt.Sprintf("r%03d", i)
		if i < 100 {
			f.AddRepo("ops/"+name, forgetest.Private())
			continue
		}
		f.AddRepo("ops/" + name)
		want = append(want, name)
	}
	var got []string
	for _, r := range ok(f.c.ReposOf(t.Context(), "ops"))(t) {
		got = append(got, r.Name)
	}
	if !slices.Equal(got, want) {
		t.Errorf("%d repositories, want %d", len(got), len(want))
	}
	if _, err := f.c.ReposOf(t.Context(), "nobody"); !errors.Is(err, forge.ErrNotFound) {
		t.Errorf("of nobody: %v", err)
	}
}

// TestARealServerErrorStaysOne: a 500 of the comment calls is looked into, and
// is a missing issue only if the issue is missing.
func TestARealServerErrorStaysOne(t *testing.T) {
	f := newFixture(t)
	f.OrderKind("comment.create", forgetest.AnswerDone(500))
	_, err := f.c.CreateComment(t.Context(), f.repo.ID, f.issue, "x")
	var e *forge.Error
	if !errors.As(err, &e) || !errors.Is(err, forge.ErrRetry) || !e.Ambiguous {
		t.Errorf("error %v", err)
	}
	if got := f.CallCounts(); got["issue.read"] != 1 || got["comment.create"] != 1 {
		t.Errorf("calls %v", got)
	}
}

// TestTheNameIsProvedBeforeAPost: a name may by now be another repository's,
// so after a minute without proof the id is resolved first.
func TestTheNameIsProvedBeforeAPost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		ok(f.c.RepoByID(t.Context(), f.repo.ID))(t)
		if err := f.Rename("ops/runtime", "ops/elsewhere"); err != nil {
			t.Fatal(err)
		}
		other := f.AddRepo("ops/runtime")
		f.AddCollaborator("ops/runtime", "botty", "admin")
		ok(f.OpenIssue("bob", "ops/runtime", "another", "b"))(t)
		<-time.After(trustName)
		ok(f.c.CreateComment(t.Context(), f.repo.ID, f.issue, "x"))(t)
		if got := f.CommentsBy("botty", "ops/runtime", 1); len(got) != 0 {
			t.Errorf("repository %d got %+v", other.ID, got)
		}
		if got := f.CommentsBy("botty", "ops/elsewhere", f.issue); len(got) != 1 {
			t.Errorf("the thread got %+v", got)
		}
	})
}

func TestObserve(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		post := func() string {
			f.ResetCalls()
			ok(f.c.CreateComment(t.Context(), f.repo.ID, f.issue, "x"))(t)
			kinds := []string{}
			for _, c := range f.Calls() {
				kinds = append(kinds, c.Kind)
			}
			return strings.Join(kinds, " ")
		}
		f.c.Observe(f.repo) // nothing is known yet: no proof of anything
		if got := post(); got != "repo.by_id comment.create" {
			t.Errorf("at first: %q", got)
		}
		<-time.After(2 * trustName)
		f.c.Observe(f.repo)
		if got := post(); got != "comment.create" {
			t.Errorf("after a delivery under the same name: %q", got)
		}
		if err := f.Rename("ops/runtime", "ops/elsewhere"); err != nil {
			t.Fatal(err)
		}
		f.c.Observe(f.Repo("ops/elsewhere"))
		if got := post(); got != "repo.by_id comment.create" {
			t.Errorf("after a delivery under another name: %q", got)
		}
	})
}

// TestAbsenceUnderAProvedName: "no such file" is believed where the name was
// proved a moment ago, and else only once the id was resolved.
func TestAbsenceUnderAProvedName(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		look := func() string {
			f.ResetCalls()
			if _, _, err := f.c.File(t.Context(), f.repo.ID, ".gitea/recovery-playbook.yaml"); !errors.Is(err, forge.ErrNotFound) {
				t.Errorf("error %v", err)
			}
			kinds := []string{}
			for _, c := range f.Calls() {
				kinds = append(kinds, c.Kind)
			}
			return strings.Join(kinds, " ")
		}
		ok(f.c.Comments(t.Context(), f.repo.ID, f.issue, time.Time{}))(t)
		if got := look(); got != "file.read" {
			t.Errorf("after the thread was listed: %q", got)
		}
		<-time.After(trustAbsence)
		if got := look(); got != "file.read repo.by_id" {
			t.Errorf("a while later: %q", got)
		}
		<-time.After(trustAbsence)
		if err := f.Rename("ops/runtime", "ops/elsewhere"); err != nil {
			t.Fatal(err)
		}
		f.AddRepo("ops/runtime")
		f.AddCollaborator("ops/runtime", "botty", "admin")
		if got := look(); got != "file.read repo.by_id file.read" {
			t.Errorf("when the name was given to another repository: %q", got)
		}
	})
}

func TestBodiesThatSayNothingAreNotSent(t *testing.T) {
	f := newFixture(t)
	_, err := f.c.CreateComment(t.Context(), f.repo.ID, f.issue, "")
	err2 := f.c.EditComment(t.Context(), f.repo.ID, f.comment, "")
	if !errors.Is(err, forge.ErrPermanent) || !errors.Is(err2, forge.ErrPermanent) || len(f.Calls()) != 0 {
		t.Errorf("%v, %v after %d calls", err, err2, len(f.Calls()))
	}
}

// TestAGatewaysPageIsNoSuccess: calls without a result look at no body.
func TestAGatewaysPageIsNoSuccess(t *testing.T) {
	f := newFixture(t)
	for _, tt := range []struct {
		kind string
		call func() error
	}{
		{"reaction.remove", func() error {
			return f.c.React(t.Context(), f.repo.ID, f.issue, forge.Object{Kind: forge.ObjectComment, ID: f.comment}, forge.ReactionSeen, false)
		}},
		{"comment.delete", func() error { return f.c.DeleteComment(t.Context(), f.repo.ID, f.comment) }},
	} {
		f.OrderKind(tt.kind, forgetest.GatewayPage(200))
		var e *forge.Error
		if err := tt.call(); !errors.As(err, &e) || !errors.Is(err, forge.ErrRetry) || !e.Ambiguous || e.FromForge {
			t.Errorf("%s: %v", tt.kind, err)
		}
		if err := tt.call(); err != nil {
			t.Errorf("%s without the page: %v", tt.kind, err)
		}
	}
}

// TestALabelDeletedMeanwhileIsOff: it was on the issue when that was read.
func TestALabelDeletedMeanwhileIsOff(t *testing.T) {
	f := newFixture(t)
	if err := f.c.SetLabels(t.Context(), f.repo.ID, f.issue, []string{"recovery/approved"}, nil); err != nil {
		t.Fatal(err)
	}
	f.OrderKind("label.remove", forgetest.Answer(422))
	if err := f.c.SetLabels(t.Context(), f.repo.ID, f.issue, nil, []string{"recovery/approved"}); err != nil {
		t.Error(err)
	}
	f.OrderKind("label.remove", forgetest.Answer(500))
	if err := f.c.SetLabels(t.Context(), f.repo.ID, f.issue, nil, []string{"recovery/approved"}); !errors.Is(err, forge.ErrRetry) {
		t.Errorf("a server error: %v", err)
	}
}
