package main

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"playbook-bot/bot/forge/forgetest"
	"playbook-bot/bot/webhook"
)

// patience bounds every wait of these tests; none of them sleeps.
const patience = 20 * time.Second

// gitea is a fake forge on a loopback port, which tells of each comment that
// was posted to it.
type fakeGitea struct {
	*forgetest.Forge
	url    string
	posted chan struct{}
}

func newFakeGitea(t *testing.T) *fakeGitea { t.Helper(); return newFake(t, forgetest.New(time.Now)) }

// newFake puts a fake forge of any dialect on a port.
func newFake(t *testing.T, f *forgetest.Forge) *fakeGitea {
	t.Helper()
	g := &fakeGitea{Forge: f, posted: make(chan struct{}, 100)}
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		g.ServeHTTP(w, r)
		if r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/comments") {
			g.posted <- struct{}{}
		}
	}))
	t.Cleanup(srv.Close)
	t.Cleanup(g.Close)
	g.url = srv.URL
	for _, login := range []string{"ada", "rhea", "playbook-bot"} {
		g.AddUser(login)
	}
	g.AddOrg("ops")
	g.AddRepo("ops/incidents")
	g.AddCollaborator("ops/incidents", "ada", "admin")
	g.AddCollaborator("ops/incidents", "playbook-bot", "admin")
	return g
}

func (g *fakeGitea) waitForAnswer(t *testing.T) {
	t.Helper()
	select {
	case <-g.posted:
	case <-time.After(patience):
		t.Fatal("no answer came")
	}
}

// served is a running "playbook-bot serve".
type served struct {
	url  string
	stop context.CancelFunc
	exit chan int
}

// startServe runs serve in this process and waits until it listens.
func startServe(t *testing.T, environ map[string]string) *served {
	t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan struct{})
	// What serves must be over before the test's directories go.
	t.Cleanup(func() { stop(); <-ended })
	s := &served{stop: stop, exit: make(chan int, 1)}
	logs, w := io.Pipe()
	addresses := make(chan string, 1)
	go func() {
		in := bufio.NewScanner(logs)
		for in.Scan() {
			var line struct{ Msg, For, Address string }
			if json.Unmarshal(in.Bytes(), &line) == nil && line.Msg == "listening" && line.For == "LISTEN" {
				addresses <- line.Address
			}
		}
	}()
	go func() {
		defer close(ended)
		s.exit <- run(ctx, []string{"serve"}, environ, strings.NewReader(""), io.Discard, w)
		_ = w.Close()
	}()
	select {
	case addr := <-addresses:
		s.url = "http://" + addr
	case code := <-s.exit:
		t.Fatalf("serve ended with %d before it listened", code)
	case <-time.After(patience):
		t.Fatal("serve does not listen")
	}
	return s
}

func (s *served) wait(t *testing.T) int {
	t.Helper()
	select {
	case code := <-s.exit:
		return code
	case <-time.After(patience):
		t.Fatal("serve does not end")
		return 0
	}
}

func serveEnv(g *fakeGitea, dir string) map[string]string {
	return map[string]string{
		"GITEA_URL": g.url, "GITEA_TOKEN": g.Token("playbook-bot"), "PLAYBOOK_SECRET": planted,
		"REPOSITORIES": "ops/incidents", "LISTEN": "127.0.0.1:0", "LOG_FORMAT": "json",
		"DATABASE_URL": "sqlite:" + filepath.Join(dir, "data", "bot.db"),
	}
}

// TestServe runs the program as an operator does: a request is refused, an
// attempt logged, the approval comes and is proved; then it is stopped and
// started again.
func TestServe(t *testing.T) {
	g := newFakeGitea(t)
	environ := serveEnv(g, t.TempDir())
	s := startServe(t, environ)
	repo := g.Repo("ops/incidents")
	g.AddRepoHook("ops/incidents", webhook.HookSecret(planted, "gitea", webhook.ScopeRepo, repo.ID))
	g.SetSink(forgetest.URLSink(http.DefaultClient, s.url))

	number, err := g.OpenIssue("ada", "ops/incidents", "search is down", "/restart full_mcp_restart all clients 404")
	if err != nil {
		t.Fatal(err)
	}
	g.waitForAnswer(t)
	if code, out, errs := program(environ, "approval", "1/1"); code != exitRefused || !strings.Contains(out, "NOT APPROVED") {
		t.Errorf("approval before the log: exit %d\n%s%s", code, out, errs)
	}
	if _, err := g.Comment("ada", "ops/incidents", number, "/attempt client_reconnect insufficient still 404"); err != nil {
		t.Fatal(err)
	}
	g.waitForAnswer(t)
	answers := g.CommentsBy("playbook-bot", "ops/incidents", number)
	if len(answers) != 2 || !strings.Contains(answers[0].Body, "Refused") || !strings.Contains(answers[1].Body, "approved until") {
		t.Fatalf("the answers are %d: %+v", len(answers), answers)
	}

	s.stop()
	if code := s.wait(t); code != exitOK {
		t.Errorf("serve ended with %d", code)
	}
	// Stopped, so that nothing waits in the thread: now it is the database's
	// word alone.
	for _, id := range []string{"1/1", "ops/incidents#1/1"} {
		if code, out, errs := program(environ, "approval", id); code != exitOK || !strings.Contains(out, "APPROVED until") {
			t.Errorf("approval %s: exit %d\n%s%s", id, code, out, errs)
		}
	}
	for _, id := range []string{"1/2", "7/1", "ops/other#1/1"} {
		if code, out, _ := program(environ, "approval", id, "--json"); code != exitRefused || !strings.Contains(out, `"standing": false`) {
			t.Errorf("approval %s: exit %d\n%s", id, code, out)
		}
	}
	if code, out, errs := program(environ, "migrate"); code != exitOK || !strings.Contains(out, "up to date") {
		t.Errorf("migrate: exit %d\n%s%s", code, out, errs)
	}

	again := startServe(t, environ)
	if code, _, errs := program(environ, "serve"); code != exitFailure || !strings.Contains(errs, "another process") {
		t.Errorf("a second serve on one SQLite file: exit %d\n%s", code, errs)
	}
	again.stop()
	again.wait(t)
	if n := len(g.CommentsBy("playbook-bot", "ops/incidents", number)); n != 2 {
		t.Errorf("%d answers after the second start, want 2", n)
	}
}

func program(environ map[string]string, args ...string) (code int, stdout, stderr string) {
	var out, errs strings.Builder
	code = run(context.Background(), args, environ, strings.NewReader(""), &out, &errs)
	return code, out.String(), errs.String()
}

// TestServeStartsWithoutTheForge: deliveries are taken in before the forge is
// there, and /readyz says what is waited for.
func TestServeStartsWithoutTheForge(t *testing.T) {
	g := newFakeGitea(t)
	g.SetDown(true)
	s := startServe(t, serveEnv(g, t.TempDir()))
	for path, want := range map[string]int{"/healthz": 200, "/readyz": 503, "/": 404, "/webhook/gitea/repo/1": 405} {
		if status, _ := get(t, s.url+path); status != want {
			t.Errorf("GET %s: %d, want %d", path, status, want)
		}
	}
	if _, body := get(t, s.url+"/readyz"); body != "waiting for gitea\n" {
		t.Errorf("/readyz says %q", body)
	}
	s.stop()
	if code := s.wait(t); code != exitOK {
		t.Errorf("serve ended with %d", code)
	}
}

func get(t *testing.T, url string) (status int, body string) {
	t.Helper()
	resp, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(b)
}

// TestServeRefusesToStart names what is wrong, all of it, and shows no value.
func TestServeRefusesToStart(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	dir := t.TempDir()
	for name, c := range map[string]struct {
		env  map[string]string
		want []string
	}{
		"nothing set":        {nil, []string{"GITEA_URL", "GITEA_TOKEN", "PLAYBOOK_SECRET", "REPOSITORIES"}},
		"blank secret":       {goodEnv(map[string]string{"PLAYBOOK_SECRET": "  ", "REPOSITORIES": ""}), []string{"PLAYBOOK_SECRET is blank", "REPOSITORIES is not set"}},
		"no playbook":        {goodEnv(map[string]string{"PLAYBOOK_FILE": "/nowhere", "WORKERS": "x"}), []string{"open the playbook", "WORKERS"}},
		"no templates":       {goodEnv(map[string]string{"TEMPLATES_DIR": "/nowhere"}), []string{"TEMPLATES_DIR"}},
		"address in use":     {goodEnv(map[string]string{"LISTEN": taken.Addr().String(), "DATABASE_URL": "sqlite:" + filepath.Join(dir, "a.db")}), []string{"LISTEN: "}},
		"unreachable server": {goodEnv(map[string]string{"DATABASE_URL": "postgres://bot:" + planted + "@127.0.0.1:1/bot"}), []string{"DATABASE_URL"}},
	} {
		t.Run(name, func(t *testing.T) {
			code, out, errs := program(c.env, "serve")
			if code != exitFailure || out != "" {
				t.Errorf("exit %d, output %q", code, out)
			}
			for _, want := range c.want {
				if !strings.Contains(errs, want) {
					t.Errorf("says nothing of %s:\n%s", want, errs)
				}
			}
			if strings.Contains(errs, planted) {
				t.Errorf("shows a secret:\n%s", errs)
			}
		})
	}
}

func TestHookSecretAsksTheForge(t *testing.T) {
	g := newFakeGitea(t)
	environ := serveEnv(g, t.TempDir())
	code, out, errs := program(environ, "hook-secret", "ops/incidents", "--json")
	var h hook
	if err := json.Unmarshal([]byte(out), &h); code != exitOK || err != nil {
		t.Fatalf("exit %d, %v\n%s", code, err, errs)
	}
	id := g.Repo("ops/incidents").ID
	if h.ID != id || h.Secret != webhook.HookSecret(planted, "gitea", webhook.ScopeRepo, id) || !strings.HasSuffix(h.URL, h.Path) {
		t.Errorf("the hook is %+v", h)
	}
	code, _, errs = program(environ, "hook-secret", "ops/nowhere")
	if code != exitFailure || !strings.Contains(errs, "repository ops/nowhere") {
		t.Errorf("an unknown repository: exit %d\n%s", code, errs)
	}
	code, out, errs = program(environ, "hook-secret", "--org", "ops")
	if code != exitOK || !strings.Contains(out, "/webhook/gitea/org/") {
		t.Errorf("an organisation: exit %d\n%s%s", code, out, errs)
	}
}

// TestReplay runs the deliveries recorded from a real Gitea.
func TestReplay(t *testing.T) {
	const dir = "../../bot/forge/gitea/testdata"
	play := func(args ...string) (int, []replayed, string) {
		t.Helper()
		code, out, errs := program(nil, append([]string{"replay", dir, "--json"}, args...)...)
		var list []replayed
		if err := json.Unmarshal([]byte(out), &list); err != nil {
			t.Fatalf("exit %d, %v\n%s", code, err, errs)
		}
		return code, list, errs
	}
	answer := func(list []replayed, delivery string) string {
		t.Helper()
		for _, r := range list {
			if r.Delivery == delivery && len(r.Answers) > 0 {
				return r.Answers[0].Body
			}
		}
		return ""
	}

	code, list, errs := play("--secret", "s3cret", "--permission", "bob=admin")
	if code != exitOK || errs != "" {
		t.Errorf("exit %d\n%s", code, errs)
	}
	for _, r := range list {
		if r.Status != http.StatusAccepted {
			t.Errorf("%s got %d", r.Delivery, r.Status)
		}
	}
	if body := answer(list, "issues-opened-form"); !strings.Contains(body, "Approved until 23:11 UTC") || strings.Contains(body, "<!--") {
		t.Errorf("an admin's form is answered by\n%s", body)
	}
	if body := answer(list, "comment-created-by-reader-org-hook"); body != "" {
		t.Errorf("the same comment by a second hook is answered again:\n%s", body)
	}
	_, list, _ = play("--secret", "s3cret")
	if body := answer(list, "issues-opened-form"); !strings.Contains(body, "endors") {
		t.Errorf("a reader's form is answered by\n%s", body)
	}
	code, list, errs = play("--secret", "wrong")
	if code != exitFailure || list[0].Status != http.StatusUnauthorized || !strings.Contains(errs, "401") {
		t.Errorf("a wrong secret: exit %d, %+v\n%s", code, list[0], errs)
	}
	if code, _, errs := program(nil, "replay", dir); code != exitFailure || !strings.Contains(errs, "--secret") {
		t.Errorf("without a secret: exit %d\n%s", code, errs)
	}
	if code, _, errs := program(nil, "replay", t.TempDir(), "--secret", "x"); code != exitFailure || !strings.Contains(errs, "no recorded delivery") {
		t.Errorf("an empty directory: exit %d\n%s", code, errs)
	}
	for _, bad := range []string{"bob", "bob=king", "nobody=admin"} {
		if code, _, _ := program(nil, "replay", dir, "--secret", "s3cret", "--permission", bad); code != exitUsage {
			t.Errorf("--permission %s: exit %d", bad, code)
		}
	}
}
