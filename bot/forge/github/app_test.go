package github

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"playbook-bot/bot/forge"
	"playbook-bot/bot/forge/forgetest"
)

// key is made once: it takes a tenth of a second.
var key = sync.OnceValue(func() *rsa.PrivateKey {
	k, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		panic(err)
	}
	return k
})

func pkcs1() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key())})
}

// appFixture is a fixture whose bot is an app, installed in ops.
func appFixture(t *testing.T, change ...func(*Config)) *fixture {
	t.Helper()
	f := &fixture{Forge: forgetest.NewGitHub(time.Now)}
	t.Cleanup(f.Close)
	id, _ := f.AddApp("playbook-bot", &key().PublicKey)
	f.AddUser("olga")
	f.AddUser("bob")
	f.AddOrg("ops", "olga")
	f.repo = f.AddRepo("ops/runtime")
	f.issue = ok(f.OpenIssue("bob", "ops/runtime", "t", "b"))(t)
	f.comment = ok(f.Comment("bob", "ops/runtime", f.issue, "c"))(t)
	f.Install("playbook-bot", "ops")
	cfg := Config{BaseURL: f.Host, HTTP: f.Client(), App: &App{ID: strconv.FormatInt(id, 10), Key: pkcs1}}
	for _, ch := range change {
		ch(&cfg)
	}
	f.c = ok(New(cfg))(t)
	return f
}

func TestAnAppActsAsItsBot(t *testing.T) {
	f := appFixture(t)
	self := ok(f.c.Self(t.Context()))(t)
	if self.Login != "playbook-bot[bot]" || !self.Real() {
		t.Errorf("self %+v", self)
	}
	ok(f.c.CreateComment(t.Context(), f.repo.ID, f.issue, "x"))(t)
	if got := f.CommentsBy(self.Login, "ops/runtime", f.issue); len(got) != 1 || got[0].Author != self {
		t.Errorf("comments %+v", got)
	}
	p, id, err := f.c.Permission(t.Context(), f.repo.ID, "olga")
	if err != nil || p != forge.PermissionOwner || id != f.mustID(t, "olga") {
		t.Errorf("olga: %s, %d, %v", p, id, err)
	}
	if list := ok(f.c.ReposOf(t.Context(), "ops"))(t); len(list) != 1 || list[0] != f.repo {
		t.Errorf("repositories %+v", list)
	}
	if r := ok(f.c.RepoByName(t.Context(), "ops", "runtime"))(t); r != f.repo {
		t.Errorf("by name %+v", r)
	}
	if in := ok(f.c.TeamMember(t.Context(), "ops", "owners", "olga"))(t); !in {
		t.Error("olga is not in Owners")
	}
	obj := forge.Object{Kind: forge.ObjectComment, ID: f.comment}
	for _, on := range []bool{true, false} {
		if err := f.c.React(t.Context(), f.repo.ID, f.issue, obj, forge.ReactionSeen, on); err != nil {
			t.Error(err)
		}
		if got := len(f.Reactions(self.Login, "ops/runtime", f.issue, obj)); (got == 1) != on {
			t.Errorf("%d reactions, want on: %v", got, on)
		}
	}
}

func (f *fixture) mustID(t *testing.T, login string) int64 {
	t.Helper()
	return ok(f.c.AccountByLogin(t.Context(), login))(t).ID
}

// TestATokenIsRenewedInTime and fetched once for all who need it at once.
func TestATokenIsRenewedInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := appFixture(t)
		read := func() {
			var wg sync.WaitGroup
			for range 20 {
				wg.Go(func() {
					if _, err := f.c.Comment(t.Context(), f.repo.ID, f.comment); err != nil {
						t.Error(err)
					}
				})
			}
			wg.Wait()
		}
		read()
		if got := f.CallCounts()["app.token"]; got != 1 {
			t.Errorf("%d tokens at first, want 1", got)
		}
		<-time.After(54 * time.Minute)
		read()
		if got := f.CallCounts()["app.token"]; got != 1 {
			t.Errorf("%d tokens after 54 minutes, want 1", got)
		}
		<-time.After(2 * time.Minute) // it would last for four more
		read()
		if got := f.CallCounts()["app.token"]; got != 2 {
			t.Errorf("%d tokens after 56 minutes, want 2", got)
		}
	})
}

func TestATokenThatWasRevokedIsReplaced(t *testing.T) {
	f := appFixture(t)
	ok(f.c.Comment(t.Context(), f.repo.ID, f.comment))(t)
	f.EndTokens("playbook-bot")
	ok(f.c.CreateComment(t.Context(), f.repo.ID, f.issue, "once"))(t)
	if got := f.CommentsBy("playbook-bot[bot]", "ops/runtime", f.issue); len(got) != 1 {
		t.Errorf("%d comments", len(got))
	}
	// One that is refused again and again is asked for no third time.
	f.ResetCalls()
	f.OrderKind("comment.read", forgetest.Answer(401).For(-1))
	_, err := f.c.Comment(t.Context(), f.repo.ID, f.comment)
	want(t, err, forge.ErrUnverified)
	if got := f.kinds(); got != "comment.read app.token comment.read" {
		t.Errorf("calls %q", got)
	}
}

func TestAClockThatIsWrongIsMadeUpFor(t *testing.T) {
	for _, off := range []time.Duration{-20 * time.Minute, 20 * time.Minute} {
		f := appFixture(t, func(cfg *Config) { cfg.Now = func() time.Time { return time.Now().Add(off) } })
		ok(f.c.Comment(t.Context(), f.repo.ID, f.comment))(t)
		f.ResetCalls()
		ok(f.c.Comment(t.Context(), f.repo.ID, f.comment))(t)
		if got := f.kinds(); got != "comment.read" {
			t.Errorf("by a clock %v off: calls %q", off, got)
		}
	}
}

// TestEachAccountHasATokenOfItsOwn: a private repository is seen only by way
// of its owner's installation, and found without knowing whose it is.
func TestEachAccountHasATokenOfItsOwn(t *testing.T) {
	f := appFixture(t)
	f.AddOrg("dev", "olga")
	r := f.AddRepo("dev/secret", forgetest.Private())
	n := ok(f.OpenIssue("olga", "dev/secret", "t", "b"))(t)
	_, err := f.c.Issue(t.Context(), r.ID, n)
	want(t, err, forge.ErrUnverified) // not installed there
	_, err = f.c.RepoByID(t.Context(), r.ID)
	want(t, err, forge.ErrNotFound)
	f.Install("playbook-bot", "dev")
	f.c = appFixtureAgain(t, f)
	ok(f.c.CreateComment(t.Context(), r.ID, n, "x"))(t)
	ok(f.c.CreateComment(t.Context(), f.repo.ID, f.issue, "x"))(t)
	if got := f.CallCounts()["app.token"]; got < 2 {
		t.Errorf("%d tokens for two accounts", got)
	}
	f.ResetCalls()
	ok(f.c.CreateComment(t.Context(), r.ID, n, "y"))(t)
	ok(f.c.CreateComment(t.Context(), f.repo.ID, f.issue, "y"))(t)
	if got := f.kinds(); got != "comment.create comment.create" {
		t.Errorf("calls %q", got)
	}
}

// appFixtureAgain is the bot after a restart.
func appFixtureAgain(t *testing.T, f *fixture) *Client {
	t.Helper()
	app := f.c.auth.(*installations).app
	return ok(New(Config{BaseURL: f.Host, HTTP: f.Client(), App: &app}))(t)
}

// TestARepositoryThatPassesToAnotherAccount is followed there.
func TestARepositoryThatPassesToAnotherAccount(t *testing.T) {
	f := appFixture(t)
	f.AddOrg("dev", "olga")
	f.Install("playbook-bot", "dev")
	r := f.AddRepo("ops/secret", forgetest.Private())
	n := ok(f.OpenIssue("olga", "ops/secret", "t", "b"))(t)
	ok(f.c.CreateComment(t.Context(), r.ID, n, "x"))(t)
	if err := f.Rename("ops/secret", "dev/secret"); err != nil {
		t.Fatal(err)
	}
	ok(f.c.CreateComment(t.Context(), r.ID, n, "y"))(t)
	if got := len(f.CommentsBy("playbook-bot[bot]", "dev/secret", n)); got != 2 {
		t.Errorf("%d comments", got)
	}
	if got := ok(f.c.RepoByID(t.Context(), r.ID))(t); got.Owner != "dev" {
		t.Errorf("found in %q", got.Owner)
	}
}

// TestAnAppThatWasTakenOutIsNotVerified: nothing it cannot see is taken for
// deleted.
func TestAnAppThatWasTakenOutIsNotVerified(t *testing.T) {
	for name, end := range map[string]func(*fixture){
		"uninstalled": func(f *fixture) { f.Uninstall("playbook-bot", "ops") },
		"suspended":   func(f *fixture) { f.Suspend("playbook-bot", "ops", true) },
	} {
		f := appFixture(t)
		ok(f.c.Comment(t.Context(), f.repo.ID, f.comment))(t)
		end(f)
		_, err := f.c.Comment(t.Context(), f.repo.ID, f.comment)
		if !errors.Is(err, forge.ErrUnverified) {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := f.c.RepoByID(t.Context(), f.repo.ID); !errors.Is(err, forge.ErrUnverified) {
			t.Errorf("%s: the repository: %v", name, err)
		}
	}
}

func TestAJWTNeedsTheRightKey(t *testing.T) {
	f := appFixture(t)
	other, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	f.c.auth.(*installations).app.Key = func() []byte {
		raw, err := x509.MarshalPKCS8PrivateKey(other)
		if err != nil {
			t.Fatal(err)
		}
		return pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: raw})
	}
	_, err = f.c.Self(t.Context())
	want(t, err, forge.ErrUnverified)
	f.c.auth.(*installations).app.Key = func() []byte { return nil }
	_, err = f.c.Comment(t.Context(), f.repo.ID, f.comment)
	want(t, err, forge.ErrUnverified)
	f.c.auth.(*installations).app.Key = pkcs1
	ok(f.c.Comment(t.Context(), f.repo.ID, f.comment))(t)
}

// TestWhoGivesUpDoesNotStopTheOthers: the first to want a token leaves, the
// token is fetched all the same.
func TestWhoGivesUpDoesNotStopTheOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := appFixture(t)
		f.OrderKind("app.token", forgetest.Fault{Delay: 3 * time.Second})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := f.c.Comment(ctx, f.repo.ID, f.comment)
		if e := want(t, err, forge.ErrRetry); e.Ambiguous || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("error %+v", e)
		}
		ok(f.c.Comment(t.Context(), f.repo.ID, f.comment))(t)
		if got := f.CallCounts()["app.token"]; got != 1 {
			t.Errorf("%d tokens were fetched", got)
		}
	})
}

func TestAnAppsErrorsSayNothing(t *testing.T) {
	f := appFixture(t)
	f.Uninstall("playbook-bot", "ops")
	_, err := f.c.Comment(t.Context(), f.repo.ID, f.comment)
	_, err2 := f.c.ReposOf(t.Context(), "ops")
	text := errors.Join(err, err2).Error()
	for _, foreign := range []string{"http", "BEGIN", "ghs_", "Bearer", "eyJ"} {
		if strings.Contains(text, foreign) {
			t.Errorf("the errors hold %q: %s", foreign, text)
		}
	}
}
