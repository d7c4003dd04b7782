package gitea

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"playbook-bot/bot/forge"
	"playbook-bot/bot/forge/forgetest"
)

// fixture is a fake with one repository, one issue by bob, and the bot's
// adapter.
type fixture struct {
	*forgetest.Forge
	c     *Client
	repo  forge.Repo
	issue int64
	// comment is bob's.
	comment int64
}

func newFixture(t *testing.T, change ...func(*Config)) *fixture {
	t.Helper()
	f := &fixture{Forge: forgetest.New(time.Now)}
	t.Cleanup(f.Close)
	f.AddUser("olga")
	f.AddUser("bob")
	f.AddUser("botty")
	f.AddOrg("ops", "olga")
	f.repo = f.AddRepo("ops/runtime")
	f.AddCollaborator("ops/runtime", "botty", "admin")
	f.issue = ok(f.OpenIssue("bob", "ops/runtime", "t", "b"))(t)
	f.comment = ok(f.Comment("bob", "ops/runtime", f.issue, "c"))(t)
	token := f.Token("botty")
	cfg := Config{BaseURL: "http://gitea.test", HTTP: f.Client(), Token: func() string { return token }}
	for _, ch := range change {
		ch(&cfg)
	}
	c, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	f.c = c
	return f
}

func ok[T any](v T, err error) func(*testing.T) T {
	return func(t *testing.T) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

func TestNewRefuses(t *testing.T) {
	token := func() string { return "t" }
	for name, cfg := range map[string]Config{
		"nothing":     {},
		"no token":    {BaseURL: "https://git.example.org"},
		"no scheme":   {BaseURL: "git.example.org", Token: token},
		"no host":     {BaseURL: "https://", Token: token},
		"another":     {BaseURL: "ftp://git.example.org", Token: token},
		"credentials": {BaseURL: "https://u:hunter2@git.example.org", Token: token},
		"a query":     {BaseURL: "https://git.example.org/?a=b", Token: token},
		"nonsense":    {BaseURL: "https://hunter2\x7f:x", Token: token},
	} {
		if _, err := New(cfg); err == nil || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: error %v", name, err)
		}
	}
	if _, err := New(Config{BaseURL: "https://git.example.org/gitea/", Token: token}); err != nil {
		t.Error(err)
	}
}

// TestFailuresAreSorted is the table of 2.7: each failure of a read and of a
// write is one kind, and a write is in doubt exactly when it may have been
// done.
func TestFailuresAreSorted(t *testing.T) {
	text := func(status int, kind, body string) forgetest.Fault {
		return forgetest.Fault{Status: status, Header: http.Header{"Content-Type": {kind}}, Body: body}
	}
	own := func(status int, message string) forgetest.Fault {
		return text(status, "application/json;charset=utf-8", `{"message":"`+message+`","url":"x"}`)
	}
	tests := []struct {
		name      string
		fault     forgetest.Fault
		kind      error
		ambiguous bool // as a write
		own       bool
		after     time.Duration
	}{
		{"500", forgetest.Answer(500), forge.ErrRetry, true, true, 0},
		{"500 after the deed", forgetest.AnswerDone(500), forge.ErrRetry, true, true, 0},
		{"502 of a gateway", forgetest.GatewayPage(502), forge.ErrRetry, true, false, 0},
		{"503 with its time", forgetest.RateLimited(503, 7*time.Second), forge.ErrRetry, true, true, 7 * time.Second},
		{"429", forgetest.RateLimited(429, 30*time.Second), forge.ErrRetry, false, true, 30 * time.Second},
		{"429 of a gateway", forgetest.GatewayPage(429), forge.ErrRetry, false, false, 0},
		{"403 rate limit", forgetest.RateLimited(403, time.Minute), forge.ErrRetry, false, true, time.Minute},
		{"403 rate limit in words", own(403, "API rate limit exceeded"), forge.ErrRetry, false, true, 0},
		{"403 rate limit used up", forgetest.Fault{Status: 403, Header: http.Header{"X-RateLimit-Remaining": {"0"}}}, forge.ErrRetry, false, true, 0},
		{"403 locked", own(403, "You cannot comment on a locked issue."), forge.ErrPermanent, false, true, 0},
		{"403 blocked", own(403, "user is blocked"), forge.ErrPermanent, false, true, 0},
		{"403 scope", own(403, "token does not have at least one of required scope(s)"), forge.ErrUnverified, false, true, 0},
		{"403 empty", text(403, "", " "), forge.ErrUnverified, false, false, 0},
		{"403 of a gateway", forgetest.GatewayPage(403), forge.ErrRetry, true, false, 0},
		{"401", forgetest.Answer(401), forge.ErrUnverified, false, true, 0},
		{"401 of a gateway", forgetest.GatewayPage(401), forge.ErrRetry, true, false, 0},
		{"404", forgetest.Answer(404), forge.ErrNotFound, false, true, 0},
		{"404 of a gateway", forgetest.GatewayPage(404), forge.ErrRetry, true, false, 0},
		{"404 of a proxy in text", text(404, "text/plain", "404 page not found\n"), forge.ErrRetry, true, false, 0},
		{"404 of a proxy in JSON", text(404, "application/json", `{"message":"no Route matched with those values"}`), forge.ErrRetry, true, false, 0},
		{"404 without a body", text(404, "application/json", " "), forge.ErrRetry, true, false, 0},
		{"408", forgetest.Answer(408), forge.ErrRetry, true, true, 0},
		{"409", forgetest.Answer(409), forge.ErrRetry, false, true, 0},
		{"410", forgetest.Answer(410), forge.ErrPermanent, false, true, 0},
		{"422 blocked", own(422, "blocked"), forge.ErrPermanent, false, true, 0},
		{"423 archived", own(423, "ops/runtime is archived"), forge.ErrPermanent, false, true, 0},
		{"413 of a gateway", forgetest.GatewayPage(413), forge.ErrRetry, true, false, 0},
		{"a redirect in circles", forgetest.Redirect(301, "/elsewhere"), forge.ErrRetry, false, false, 0},
		{"dropped before the deed", forgetest.Dropped(), forge.ErrRetry, true, false, 0},
		{"dropped after the deed", forgetest.DroppedDone(), forge.ErrRetry, true, false, 0},
		{"refused", forgetest.Fault{Refuse: true}, forge.ErrRetry, false, false, 0},
		{"truncated after the deed", forgetest.Fault{Truncate: true}, forge.ErrRetry, true, true, 0},
		{"HTML with 200", forgetest.GatewayPage(200), forge.ErrRetry, true, false, 0},
		{"nonsense with 200", text(200, "application/json", `{"message":"x"}`), forge.ErrRetry, true, true, 0},
		{"too large", forgetest.Fault{Pad: 1 << 20}, forge.ErrRetry, true, true, 0},
	}
	for _, tt := range tests {
		for _, write := range []bool{false, true} {
			name := tt.name + ", reading"
			if write {
				name = tt.name + ", writing"
			}
			t.Run(name, func(t *testing.T) {
				f := newFixture(t, func(cfg *Config) { cfg.MaxBody = 1 << 19 })
				tt.fault.Times = -1
				var err error
				if write {
					f.OrderKind("comment.create", tt.fault)
					_, err = f.c.CreateComment(t.Context(), f.repo.ID, f.issue, "secret words")
				} else {
					f.OrderKind("comment.read", tt.fault)
					_, err = f.c.Comment(t.Context(), f.repo.ID, f.comment)
				}
				var e *forge.Error
				if !errors.As(err, &e) || !errors.Is(err, tt.kind) {
					t.Fatalf("error %v, want the kind %q", err, tt.kind)
				}
				if e.Ambiguous != (write && tt.ambiguous) || e.FromForge != tt.own || e.RetryAfter != tt.after {
					t.Errorf("ambiguous %v, from the forge %v, after %v; want %v, %v, %v",
						e.Ambiguous, e.FromForge, e.RetryAfter, write && tt.ambiguous, tt.own, tt.after)
				}
				if s := err.Error(); strings.Contains(s, "http") || strings.Contains(s, "secret") || strings.Contains(s, "scope") {
					t.Errorf("the error says %q", s)
				}
			})
		}
	}
}

func TestFaultsDoOrDoNot(t *testing.T) {
	for name, tt := range map[string]struct {
		fault forgetest.Fault
		want  int
	}{
		"500 before":     {forgetest.Answer(500), 0},
		"500 after":      {forgetest.AnswerDone(500), 1},
		"dropped before": {forgetest.Dropped(), 0},
		"dropped after":  {forgetest.DroppedDone(), 1},
		"refused":        {forgetest.Fault{Refuse: true}, 0},
		"truncated":      {forgetest.Fault{Truncate: true}, 1},
	} {
		f := newFixture(t)
		f.OrderKind("comment.create", tt.fault)
		if _, err := f.c.CreateComment(t.Context(), f.repo.ID, f.issue, "x"); err == nil {
			t.Errorf("%s: no error", name)
		}
		if got := len(f.CommentsBy("botty", "ops/runtime", f.issue)); got != tt.want {
			t.Errorf("%s: %d comments, want %d", name, got, tt.want)
		}
		if _, err := f.c.CreateComment(t.Context(), f.repo.ID, f.issue, "x"); err != nil {
			t.Errorf("%s: the fault stays: %v", name, err)
		}
	}
}

// TestAPostInFlightLandsAfterTheTimeout is case 1(c): the answer comes after
// the client's timeout, and the comment is there all the same.
func TestAPostInFlightLandsAfterTheTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, func(cfg *Config) { cfg.Timeout = 2 * time.Second })
		f.OrderKind("comment.create", forgetest.Fault{Delay: 5 * time.Second})
		start := time.Now()
		_, err := f.c.CreateComment(t.Context(), f.repo.ID, f.issue, "late")
		var e *forge.Error
		if !errors.As(err, &e) || !e.Ambiguous || e.FromForge || e.Status != 0 || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("error %+v", e)
		}
		if waited := time.Since(start); waited != 2*time.Second {
			t.Errorf("waited %v", waited)
		}
		if got := f.CommentsBy("botty", "ops/runtime", f.issue); len(got) != 0 {
			t.Errorf("landed early: %+v", got)
		}
		<-time.After(4 * time.Second) // the bubble's clock
		if got := f.CommentsBy("botty", "ops/runtime", f.issue); len(got) != 1 {
			t.Errorf("%d comments after it landed", len(got))
		}
	})
}

func TestACancelledCallSaysSo(t *testing.T) {
	f := newFixture(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := f.c.Issue(ctx, f.repo.ID, f.issue); !errors.Is(err, context.Canceled) || !errors.Is(err, forge.ErrRetry) {
		t.Errorf("error %v", err)
	}
}

func TestRefusalsInTurn(t *testing.T) { // case 15
	f := newFixture(t)
	f.OrderKind("comment.create", forgetest.Fault{Status: 403, Body: `{"message":"You cannot comment on a locked issue.","url":"x"}`,
		Header: http.Header{"Content-Type": {"application/json"}}})
	f.OrderKind("comment.create", forgetest.Answer(423))
	f.OrderKind("comment.create", forgetest.RateLimited(403, 9*time.Second))
	for i, want := range []error{forge.ErrPermanent, forge.ErrPermanent, forge.ErrRetry} {
		if _, err := f.c.CreateComment(t.Context(), f.repo.ID, f.issue, "x"); !errors.Is(err, want) {
			t.Errorf("refusal %d: %v, want %v", i, err, want)
		}
	}
	if _, err := f.c.CreateComment(t.Context(), f.repo.ID, f.issue, "x"); err != nil {
		t.Error(err)
	}
}

func TestATokenIsReadBeforeEveryCall(t *testing.T) {
	token := ""
	f := newFixture(t, func(cfg *Config) { cfg.Token = func() string { return token } })
	if _, err := f.c.Self(t.Context()); !errors.Is(err, forge.ErrUnverified) || len(f.Calls()) != 0 {
		t.Errorf("without a token: %v after %d calls", err, len(f.Calls()))
	}
	token = f.Token("botty")
	if self := ok(f.c.Self(t.Context()))(t); self.Login != "botty" {
		t.Errorf("self %+v", self)
	}
	f.RevokeToken(token)
	if _, err := f.c.Self(t.Context()); !errors.Is(err, forge.ErrUnverified) {
		t.Errorf("revoked: %v", err)
	}
	token = f.Token("botty")
	ok(f.c.Self(t.Context()))(t)
}

// TestContextsDoNotMix: the SDK keeps one context per client, so each call has
// a client of its own.
func TestContextsDoNotMix(t *testing.T) {
	f := newFixture(t)
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	var wg sync.WaitGroup
	for i := range 200 {
		wg.Go(func() {
			ctx := t.Context()
			if i%2 == 1 {
				ctx = cancelled
			}
			_, err := f.c.Issue(ctx, f.repo.ID, f.issue)
			if got := errors.Is(err, context.Canceled); got != (i%2 == 1) {
				t.Errorf("call %d: %v", i, err)
			}
		})
	}
	wg.Wait()
}

func TestOnCallHearsEveryExchange(t *testing.T) {
	var heard []string
	f := newFixture(t, func(cfg *Config) {
		cfg.OnCall = func(kind string, status int, _ time.Duration) {
			heard = append(heard, kind+" "+http.StatusText(status))
		}
	})
	ok(f.c.Comment(t.Context(), f.repo.ID, f.comment))(t)
	f.OrderKind("comment.create", forgetest.Dropped())
	_, _ = f.c.CreateComment(t.Context(), f.repo.ID, f.issue, "x")
	want := "repo.by_id OK, comment.read OK, comment.create "
	if got := strings.Join(heard, ", "); got != want {
		t.Errorf("heard %q, want %q", got, want)
	}
	kinds := []string{}
	for _, c := range f.Calls() {
		kinds = append(kinds, c.Kind)
	}
	if got := strings.Join(kinds, ","); got != "repo.by_id,comment.read,comment.create" {
		t.Errorf("the fake's log has %q", got)
	}
}
