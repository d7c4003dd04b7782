package main

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"playbook-bot/bot/forge/forgetest"
	"playbook-bot/bot/webhook"
)

// What is planted in a run, and must come out nowhere but in the thread.
const (
	plantedHook    = "0d9f-literal-hook-secret-0d9f"
	plantedSession = "mcp-session-7b1e6c52d0f84a9bb3a1"
	plantedBody    = "the-words-of-a-person-71c4"
	plantedTitle   = "the-title-of-an-issue-93e0"
	plantedForge   = "the-words-of-the-forge-5aa2"
	plantedQuery   = "token-in-a-query-e2b7"
	plantedHeader  = "token-in-a-header-c81f"
)

// TestNothingLeaks plays a conversation, forged and broken deliveries and a
// forge full of errors, at log level debug in both formats, and looks through
// everything that comes out for what was planted.
func TestNothingLeaks(t *testing.T) {
	for _, format := range []string{"text", "json"} {
		t.Run(format, func(t *testing.T) {
			g := newFakeGitea(t)
			dir := t.TempDir()
			environ := serveEnv(g, dir)
			environ["LOG_LEVEL"], environ["LOG_FORMAT"] = "debug", format
			environ["HOOK_SECRETS"] = "/webhook/gitea/repo/99=" + plantedHook
			environ["SETTLE"], environ["SETTLE_PROXY"], environ["SWEEP_INTERVAL"] = "10ms", "20ms", "50ms"
			// Starts with a forge that answers nothing but its own words.
			g.Order(always, forgetest.Fault{Status: http.StatusInternalServerError, Body: "<html>" + plantedForge})
			s := startWatched(t, environ)
			out := &strings.Builder{}
			errorsOfTheForge(g)
			hostileDeliveries(t, s, out, g.Repo("ops/incidents").ID)
			number := g.incident(t, s)
			if _, err := g.Comment("ada", "ops/incidents", number, "/restart full_mcp_restart "+plantedBody+" "+plantedSession); err != nil {
				t.Fatal(err)
			}
			g.waitForAnswer(t)
			if _, err := g.OpenIssue("rhea", "ops/incidents", plantedTitle+" "+planted, "```json\n{\"action\": \""+plantedBody+"\"\n```\n/break-glass full_mcp_restart "+plantedSession); err != nil {
				t.Fatal(err)
			}
			g.waitForAnswer(t)
			operate(environ, dir, out)
			for _, path := range []string{"/metrics", "/healthz", "/readyz"} {
				status, body := get(t, s.admin+path)
				fmt.Fprintln(out, status, body)
			}
			s.end(t)
			out.WriteString(s.logged())
			operate(environ, dir, out)

			if lines := strings.Count(s.logged(), "\n"); lines < 20 || !strings.Contains(s.logged(), "401") {
				t.Errorf("a log of %d lines says nothing of what was refused:\n%s", lines, s.logged())
			}
			found(t, out.String(), plants(g, environ))
			secretsAtRest(t, dir, plants(g, environ))
		})
	}
}

func always(string, string) bool { return true }

// errorsOfTheForge orders one error of each sort, all with the forge's words.
func errorsOfTheForge(g *fakeGitea) {
	words := `{"message": "` + plantedForge + `", "url": "http://x/?token=` + plantedQuery + `"}`
	json := http.Header{"Content-Type": {"application/json"}}
	for _, f := range []forgetest.Fault{
		{Status: http.StatusForbidden, Header: json, Body: words},
		{Status: http.StatusInternalServerError, Header: json, Body: words},
		{Status: http.StatusMovedPermanently, Header: http.Header{"Location": {"http://x/" + plantedForge + "?token=" + plantedQuery}}},
		{Truncate: true}, {Drop: true},
		{Status: http.StatusOK, Header: http.Header{"Content-Type": {"text/html"}}, Body: plantedForge},
	} {
		g.Order(always, f)
	}
}

// hostileDeliveries posts what is refused, in every way, and one that is
// signed and nonsense; what the sender is told goes into out.
func hostileDeliveries(t *testing.T, s *watched, out io.Writer, repo int64) {
	t.Helper()
	path := webhook.HookPath("gitea", webhook.ScopeRepo, repo)
	sign := func(body, secret string) string {
		m := hmac.New(sha256.New, []byte(secret))
		m.Write([]byte(body))
		return hex.EncodeToString(m.Sum(nil))
	}
	own := webhook.HookSecret(planted, "gitea", webhook.ScopeRepo, repo)
	words := `{"action": "` + plantedBody + `", "secret": "` + plantedSession + `"`
	for _, c := range []struct {
		path, contentType, body, mac string
		want                         int
	}{
		{path, "application/json", words + "}", sign(words+"}", "wrong"), 401},
		{path, "application/json", words + "}", "", 401},
		{path, "application/json", words, sign(words, own), 400},
		{path, "text/" + plantedBody, words, "", 415},
		{path, "application/x-www-form-urlencoded", "payload=" + plantedBody + "%zz", "", 400},
		{path + "/" + plantedQuery, "application/json", words, "", 404},
		{path, "application/json", strings.Repeat(plantedBody, webhook.MaxBody/len(plantedBody)+1), "", 413},
		{"/webhook/gitea/repo/99", "application/json", words, sign(words, plantedHook), 400},
	} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.url+c.path+"?token="+plantedQuery, strings.NewReader(c.body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Type", c.contentType)
		req.Header.Set("Authorization", "Bearer "+plantedHeader)
		req.Header.Set("X-Gitea-Event", "issue_comment")
		req.Header.Set("X-Gitea-Event-Type", plantedHeader)
		req.Header.Set("X-Gitea-Signature", c.mac)
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		b, _ := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		if resp.StatusCode != c.want {
			t.Errorf("POST %s as %s: %d, want %d", c.path, c.contentType, resp.StatusCode, c.want)
		}
		fmt.Fprintln(out, resp.Status, resp.Header, string(b))
	}
}

// operate runs what operators run; approval and audit tell logins, actions
// and targets, and no reasons.
func operate(environ map[string]string, dir string, out io.Writer) {
	for _, args := range [][]string{
		{"approval", "1/1"}, {"dead"}, {"audit"}, {"audit", "--csv"}, {"audit", "--json"}, {"audit", "--verify"}, {"db", "prune"}, {"migrate"},
		{"db", "copy", "-", "sqlite:" + filepath.Join(dir, "no", "\x00")}, {"db", "backup", filepath.Join(dir, "data", "bot.db")}, {"serve", "now"}, {"version"},
	} {
		_, o, e := program(environ, args...)
		fmt.Fprintln(out, args[0], o, e)
	}
}

// plants are all that must not come out.
func plants(g *fakeGitea, environ map[string]string) map[string]string {
	repo := g.Repo("ops/incidents").ID
	return map[string]string{
		"PLAYBOOK_SECRET": planted, "GITEA_TOKEN": environ["GITEA_TOKEN"], "HOOK_SECRETS": plantedHook,
		"a derived hook secret": webhook.HookSecret(planted, "gitea", webhook.ScopeRepo, repo),
		"a session id":          plantedSession, "a body": plantedBody, "a title": plantedTitle,
		"the forge's words": plantedForge, "a query": plantedQuery, "a header": plantedHeader,
	}
}

func found(t *testing.T, out string, plants map[string]string) {
	t.Helper()
	for what, p := range plants {
		for line := range strings.Lines(out) {
			if strings.Contains(line, p) {
				t.Errorf("shows %s:\n%s", what, line)
				break
			}
		}
	}
}

// secretsAtRest looks into the database's files, which hold answers, and so
// reasons, but no key to anything.
func secretsAtRest(t *testing.T, dir string, plants map[string]string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "data", "*"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no database: %v", err)
	}
	whole := ""
	for _, name := range files {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		whole += string(b)
	}
	for _, what := range []string{"PLAYBOOK_SECRET", "GITEA_TOKEN", "HOOK_SECRETS", "a derived hook secret", "a title", "a query", "a header", "the forge's words"} {
		if strings.Contains(whole, plants[what]) {
			t.Errorf("the database holds %s", what)
		}
	}
	// The search itself can find something.
	if !strings.Contains(whole, plantedSession) {
		t.Error("the database lacks even the reason that the answer shows")
	}
}

// TestServersAreBounded: whatever a peer could take its time or space with
// has a limit.
func TestServersAreBounded(t *testing.T) {
	v := &service{log: newLogger(io.Discard, 0, "text")}
	srv := v.server(http.NotFoundHandler())
	for _, field := range []string{"ReadHeaderTimeout", "ReadTimeout", "WriteTimeout", "IdleTimeout"} {
		if d := reflect.ValueOf(srv).Elem().FieldByName(field).Interface().(time.Duration); d <= 0 || d > time.Minute {
			t.Errorf("%s is %s", field, d)
		}
	}
	s := httptest.NewUnstartedServer(nil)
	s.Config = srv
	s.Start()
	defer s.Close()
	conn, err := net.Dial("tcp", s.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	go func() {
		// The server stops reading; how far this comes is of no interest.
		_, _ = fmt.Fprintf(conn, "GET / HTTP/1.1\r\nHost: x\r\nX-Long: %s\r\n\r\n", strings.Repeat("x", 128<<10))
	}()
	b := make([]byte, 64)
	n, err := conn.Read(b)
	if err != nil || !strings.HasPrefix(string(b[:n]), "HTTP/1.1 431 ") {
		t.Errorf("a header of 128 KiB is answered by %q, %v", b[:n], err)
	}
}
