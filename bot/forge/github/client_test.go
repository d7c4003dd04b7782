package github

import (
	"context"
	"errors"
	"net/http"
	"strconv"
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
	f := &fixture{Forge: forgetest.NewGitHub(time.Now)}
	t.Cleanup(f.Close)
	f.AddUser("olga")
	f.AddUser("bob")
	f.AddUser("botty")
	f.AddOrg("ops", "olga")
	f.repo = f.AddRepo("ops/runtime")
	f.AddCollaborator("ops/runtime", "botty", "write")
	f.issue = ok(f.OpenIssue("bob", "ops/runtime", "t", "b"))(t)
	f.comment = ok(f.Comment("bob", "ops/runtime", f.issue, "c"))(t)
	token := f.Token("botty", "all")
	cfg := Config{BaseURL: f.Host, HTTP: f.Client(), Token: func() string { return token }}
	for _, ch := range change {
		ch(&cfg)
	}
	f.c = ok(New(cfg))(t)
	return f
}

func ok[T any](v T, err error) func(testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

// want fails the test unless the error is of that kind.
func want(t *testing.T, err, kind error) *forge.Error {
	t.Helper()
	var e *forge.Error
	if !errors.As(err, &e) || !errors.Is(err, kind) {
		t.Fatalf("error %v, want the kind %q", err, kind)
	}
	return e
}

func (f *fixture) kinds() string {
	var out []string
	for _, c := range f.Calls() {
		out = append(out, c.Kind)
	}
	return strings.Join(out, " ")
}

func TestNewRefuses(t *testing.T) {
	token := func() string { return "t" }
	key := func() []byte { return []byte("hunter2") }
	for name, cfg := range map[string]Config{
		"nobody":              {},
		"both":                {Token: token, App: &App{ID: "1", Key: key}},
		"an app without a id": {App: &App{Key: key}},
		"an app without key":  {App: &App{ID: "1"}},
		"a key that is none":  {App: &App{ID: "1", Key: key}},
		"no scheme":           {BaseURL: "github.com", Token: token},
		"credentials":         {BaseURL: "https://u:hunter2@github.example.org", Token: token},
	} {
		if _, err := New(cfg); err == nil || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: error %v", name, err)
		}
	}
}

func TestAPIRoot(t *testing.T) {
	for raw, want := range map[string]string{
		"https://github.com":                        "https://api.github.com/",
		"https://WWW.github.com/":                   "https://api.github.com/",
		"https://api.github.com":                    "https://api.github.com/",
		"https://octo.ghe.com":                      "https://api.octo.ghe.com/",
		"https://api.octo.ghe.com/":                 "https://api.octo.ghe.com/",
		"https://github.example.org":                "https://github.example.org/api/v3/",
		"https://github.example.org/api/v3/":        "https://github.example.org/api/v3/",
		"http://github.example.org:8080/sub/":       "http://github.example.org:8080/sub/api/v3/",
		"https://github.com.evil.example":           "https://github.com.evil.example/api/v3/",
		"https://notghe.com":                        "https://notghe.com/api/v3/",
		"https://github.example.org/api/v3/?a=b":    "",
		"https://u:p@github.example.org":            "",
		"github.example.org":                        "",
		"":                                          "",
		" https://github.example.org ":              "https://github.example.org/api/v3/",
		"https://github.example.org/#fragment-only": "",
	} {
		got, err := apiRoot(raw)
		if (err == nil) != (want != "") || err == nil && got.String() != want {
			t.Errorf("%q: %v, %v; want %q", raw, got, err, want)
		}
	}
	c := ok(New(Config{Token: func() string { return "t" }}))(t)
	if got := c.base.String(); got != "https://api.github.com/" {
		t.Errorf("without a URL: %s", got)
	}
}

// TestFailuresAreSorted is the table of page 2.7: each failure of a read and of
// a write is one kind, and a write is in doubt exactly when it may have been
// done.
func TestFailuresAreSorted(t *testing.T) {
	text := func(status int, kind, body string) forgetest.Fault {
		return forgetest.Fault{Status: status, Header: http.Header{"Content-Type": {kind}}, Body: body}
	}
	own := func(status int, message string, headers ...string) forgetest.Fault {
		f := text(status, "application/json; charset=utf-8", `{"message":"`+message+`","documentation_url":"x"}`)
		for i := 0; i+1 < len(headers); i += 2 {
			f.Header.Set(headers[i], headers[i+1])
		}
		return f
	}
	reset := strconv.FormatInt(time.Now().Add(20*time.Minute).Unix(), 10)
	const minute = time.Minute
	// White space behind the value would not be read at all.
	inflate := func(body []byte) []byte { return append([]byte("{"+strings.Repeat(" ", 1<<20)), body[1:]...) }
	tests := []struct {
		name      string
		fault     forgetest.Fault
		kind      error
		ambiguous bool // as a write
		own       bool
		after     time.Duration // within two seconds
	}{
		{"500", forgetest.Answer(500), forge.ErrRetry, true, true, 0},
		{"500 after the deed", forgetest.AnswerDone(500), forge.ErrRetry, true, true, 0},
		{"502 of GitHub's balancers", forgetest.GatewayPage(502), forge.ErrRetry, true, false, 0},
		{"503 with its time", forgetest.RateLimited(503, 7*time.Second), forge.ErrRetry, true, true, 7 * time.Second},
		{"429", forgetest.RateLimited(429, 30*time.Second), forge.ErrRetry, false, true, 30 * time.Second},
		{"429 of a gateway", forgetest.GatewayPage(429), forge.ErrRetry, false, false, 0},
		{"403 secondary, with its time", forgetest.RateLimited(403, 2*minute), forge.ErrRetry, false, true, 2 * minute},
		{"403 secondary, without", own(403, "You have exceeded a secondary rate limit."), forge.ErrRetry, false, true, minute},
		{"403 abuse", own(403, "You have triggered an abuse detection mechanism."), forge.ErrRetry, false, true, minute},
		{"403 primary", own(403, "API rate limit exceeded for user ID 1.", "X-RateLimit-Remaining", "0", "X-RateLimit-Reset", reset),
			forge.ErrRetry, false, true, 20 * minute},
		{"429 primary", own(429, "API rate limit exceeded", "X-RateLimit-Remaining", "0", "X-RateLimit-Reset", reset),
			forge.ErrRetry, false, true, 20 * minute},
		{"403 locked", own(403, "Unable to create comment because issue is locked."), forge.ErrPermanent, false, true, 0},
		{"403 archived", own(403, "Repository was archived so is read-only."), forge.ErrPermanent, false, true, 0},
		{"403 blocked", own(403, "User is blocked"), forge.ErrPermanent, false, true, 0},
		{"403 of a token", own(403, "Resource not accessible by personal access token"), forge.ErrUnverified, false, true, 0},
		{"403 of SAML", own(403, "Resource protected by organization SAML enforcement."), forge.ErrUnverified, false, true, 0},
		{"403 of a gateway", forgetest.GatewayPage(403), forge.ErrRetry, true, false, 0},
		{"401", own(401, "Bad credentials"), forge.ErrUnverified, false, true, 0},
		{"401 of a gateway", forgetest.GatewayPage(401), forge.ErrRetry, true, false, 0},
		{"404", forgetest.Answer(404), forge.ErrNotFound, false, true, 0},
		{"404 of a gateway", forgetest.GatewayPage(404), forge.ErrRetry, true, false, 0},
		{"404 of a proxy in JSON", text(404, "application/json", `{"message":"no Route matched"}`), forge.ErrRetry, true, false, 0},
		{"404 without a body", text(404, "application/json", " "), forge.ErrRetry, true, false, 0},
		{"408", forgetest.Answer(408), forge.ErrRetry, true, true, 0},
		{"409", forgetest.Answer(409), forge.ErrRetry, false, true, 0},
		{"410 deleted", own(410, "This issue was deleted"), forge.ErrNotFound, false, true, 0},
		{"410 without issues", own(410, "Issues are disabled for this repo"), forge.ErrPermanent, false, true, 0},
		{"422", own(422, "Validation Failed"), forge.ErrPermanent, false, true, 0},
		{"422 too fast", text(422, "application/json", `{"message":"Validation Failed","documentation_url":"x","errors":[{"message":"was submitted too quickly"}]}`),
			forge.ErrRetry, false, true, 0},
		{"451", own(451, "Repository access blocked"), forge.ErrPermanent, false, true, 0},
		{"a redirect of a proxy", forgetest.Redirect(302, "https://login.example.org/"), forge.ErrRetry, false, false, 0},
		{"202", text(202, "application/json", `{}`), forge.ErrRetry, true, true, 0},
		{"dropped before the deed", forgetest.Dropped(), forge.ErrRetry, true, false, 0},
		{"dropped after the deed", forgetest.DroppedDone(), forge.ErrRetry, true, false, 0},
		{"refused", forgetest.Fault{Refuse: true}, forge.ErrRetry, false, false, 0},
		{"truncated after the deed", forgetest.Fault{Truncate: true}, forge.ErrRetry, true, true, 0},
		{"HTML with 200", forgetest.GatewayPage(200), forge.ErrRetry, true, false, 0},
		{"nonsense with 200", text(200, "application/json", `{"message":"x"}`), forge.ErrRetry, true, true, 0},
		{"too large", forgetest.Fault{Rewrite: inflate}, forge.ErrRetry, true, true, 0},
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
				e := want(t, err, tt.kind)
				if e.Ambiguous != (write && tt.ambiguous) || e.FromForge != tt.own {
					t.Errorf("ambiguous %v, from the forge %v; want %v, %v", e.Ambiguous, e.FromForge, write && tt.ambiguous, tt.own)
				}
				if d := tt.after - e.RetryAfter; d < 0 || d > 2*time.Second {
					t.Errorf("retry after %v, want %v", e.RetryAfter, tt.after)
				}
				if s := err.Error(); strings.Contains(s, "http") || strings.Contains(s, "secret") || strings.Contains(s, "access") {
					t.Errorf("the error says %q", s)
				}
			})
		}
	}
}

// TestAPostInFlightLandsAfterTheTimeout: the answer comes after the client's
// timeout, and the comment is there all the same.
func TestAPostInFlightLandsAfterTheTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, func(cfg *Config) { cfg.Timeout = 2 * time.Second })
		f.OrderKind("comment.create", forgetest.Fault{Delay: 5 * time.Second})
		_, err := f.c.CreateComment(t.Context(), f.repo.ID, f.issue, "late")
		if e := want(t, err, forge.ErrRetry); !e.Ambiguous || e.FromForge || e.Status != 0 || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("error %+v", e)
		}
		<-time.After(4 * time.Second) // the bubble's clock
		if got := f.CommentsBy("botty", "ops/runtime", f.issue); len(got) != 1 {
			t.Errorf("%d comments after it landed", len(got))
		}
	})
}

func TestATokenIsReadBeforeEveryCall(t *testing.T) {
	token := ""
	f := newFixture(t, func(cfg *Config) { cfg.Token = func() string { return token } })
	_, err := f.c.Self(t.Context())
	if want(t, err, forge.ErrUnverified); len(f.Calls()) != 0 {
		t.Errorf("without a token: %d calls", len(f.Calls()))
	}
	token = f.Token("botty") + "\n"
	if self := ok(f.c.Self(t.Context()))(t); self.Login != "botty" {
		t.Errorf("self %+v", self)
	}
	f.RevokeToken(strings.TrimSpace(token))
	_, err = f.c.Self(t.Context())
	want(t, err, forge.ErrUnverified)
}

// TestContextsAndTokensDoNotMix under many calls at once.
func TestContextsAndTokensDoNotMix(t *testing.T) {
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
	if got := strings.Join(heard, ", "); got != "comment.read OK, comment.create " {
		t.Errorf("heard %q", got)
	}
	if got := f.kinds(); got != "comment.read comment.create" {
		t.Errorf("the fake's log has %q", got)
	}
}

// TestWhatIsHiddenIsNotGone: GitHub answers 404 for a private repository the
// bot has lost its right to, as for a comment that was deleted.
func TestWhatIsHiddenIsNotGone(t *testing.T) {
	f := newFixture(t)
	r := f.AddRepo("ops/secret", forgetest.Private())
	f.AddCollaborator("ops/secret", "bob", "write")
	f.AddCollaborator("ops/secret", "botty", "write")
	n := ok(f.OpenIssue("bob", "ops/secret", "t", "b"))(t)
	id := ok(f.Comment("bob", "ops/secret", n, "c"))(t)
	ok(f.c.Comment(t.Context(), r.ID, id))(t)
	_, err := f.c.Comment(t.Context(), r.ID, id+1000)
	want(t, err, forge.ErrNotFound)
	f.AddCollaborator("ops/secret", "botty", "none")
	_, err = f.c.Comment(t.Context(), r.ID, id)
	want(t, err, forge.ErrUnverified)
	_, err = f.c.Issue(t.Context(), r.ID, n)
	want(t, err, forge.ErrUnverified)
	_, err = f.c.RepoByID(t.Context(), r.ID)
	want(t, err, forge.ErrNotFound)
}
