package main

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"playbook-bot/bot/forge/forgetest"
	"playbook-bot/bot/webhook"
)

// anotherEnv is a configuration without any forge.
func anotherEnv(more map[string]string) map[string]string {
	m := map[string]string{"PLAYBOOK_SECRET": planted, "REPOSITORIES": "ops/incidents"}
	for k, v := range more {
		m[k] = v
	}
	return m
}

func newKey(t *testing.T) (*rsa.PrivateKey, string) {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	return key, string(pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)}))
}

func TestForgesAreSwitchedOnByTheirVariables(t *testing.T) {
	_, key := newKey(t)
	for name, c := range map[string]struct {
		env  map[string]string
		want string
	}{
		"Gitea":          {map[string]string{"GITEA_URL": "https://g.example.org", "GITEA_TOKEN": "t"}, "gitea https://g.example.org"},
		"Forgejo":        {map[string]string{"FORGEJO_URL": "https://f.example.org/", "FORGEJO_TOKEN": "t"}, "forgejo https://f.example.org"},
		"GitHub":         {map[string]string{"GITHUB_TOKEN": "t"}, "github https://github.com"},
		"Enterprise":     {map[string]string{"GITHUB_TOKEN": "t", "GITHUB_URL": "https://ghe.example.org/"}, "github https://ghe.example.org"},
		"Enterprise API": {map[string]string{"GITHUB_TOKEN": "t", "GITHUB_URL": "https://ghe.example.org/api/v3"}, "github https://ghe.example.org"},
		"GitHub's API":   {map[string]string{"GITHUB_TOKEN": "t", "GITHUB_URL": "https://api.github.com"}, "github https://github.com"},
		"an app":         {map[string]string{"GITHUB_APP_ID": "12", "GITHUB_APP_KEY": key}, "github https://github.com app"},
		"an app, one line": {map[string]string{"GITHUB_APP_ID": "Iv1.8a61f9b3a7aba766", "GITHUB_APP_KEY": strings.ReplaceAll(key, "\n", `\n`)},
			"github https://github.com app"},
		"an app, by file":  {map[string]string{"GITHUB_APP_ID": "12", "GITHUB_APP_KEY_FILE": write(t, "key", key)}, "github https://github.com app"},
		"blank are not on": {map[string]string{"GITEA_URL": "", "GITEA_TOKEN_FILE": " ", "FORGEJO_URL": "https://f.example.org", "FORGEJO_TOKEN": "t"}, "forgejo https://f.example.org"},
		"all": {map[string]string{"GITEA_URL": "https://g.example.org", "GITEA_TOKEN": "t", "FORGEJO_URL": "https://f.example.org", "FORGEJO_TOKEN": "t",
			"GITHUB_TOKEN": "t", "REPOSITORIES": "gitea:ops/incidents, github:ops/*", "MCP_ACCOUNT": "forgejo:ada"},
			"gitea https://g.example.org, forgejo https://f.example.org, github https://github.com"},
	} {
		s, err := loadConfig(anotherEnv(c.env), nil)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		var got []string
		for _, f := range s.Forges {
			if _, err := s.dial(f, nil, nil); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			one := f.name + " " + f.web()
			if f.app != nil {
				one += " app"
			}
			got = append(got, one)
		}
		if strings.Join(got, ", ") != c.want {
			t.Errorf("%s: %s, want %s", name, strings.Join(got, ", "), c.want)
		}
	}
}

func TestForgeErrors(t *testing.T) {
	_, key := newKey(t)
	two := func(more map[string]string) map[string]string {
		m := map[string]string{"GITEA_URL": "https://g.example.org", "GITEA_TOKEN": "t", "GITHUB_TOKEN": planted, "REPOSITORIES": "gitea:ops/incidents"}
		for k, v := range more {
			m[k] = v
		}
		return m
	}
	for name, c := range map[string]struct {
		env  map[string]string
		want []string
	}{
		"none":                    {nil, []string{"GITEA_URL is not set, nor FORGEJO_URL, GITHUB_TOKEN or GITHUB_APP_ID; one forge is needed"}},
		"Forgejo by half":         {map[string]string{"FORGEJO_TOKEN": planted}, []string{"FORGEJO_URL is not set, but FORGEJO_TOKEN is"}},
		"Forgejo's other half":    {map[string]string{"FORGEJO_URL": "https://f.example.org"}, []string{"FORGEJO_TOKEN is not set (nor FORGEJO_TOKEN_FILE)"}},
		"an address alone":        {map[string]string{"GITHUB_URL": "https://ghe.example.org"}, []string{"GITHUB_TOKEN is not set, nor GITHUB_APP_ID"}},
		"an app without its key":  {map[string]string{"GITHUB_APP_ID": "12"}, []string{"GITHUB_APP_KEY is not set"}},
		"a key without its app":   {map[string]string{"GITHUB_APP_KEY": key}, []string{"GITHUB_APP_ID is not set, but GITHUB_APP_KEY is"}},
		"a key that is none":      {map[string]string{"GITHUB_APP_ID": "12", "GITHUB_APP_KEY": planted}, []string{"GITHUB_APP_KEY must be the app's private key"}},
		"a user and an app":       {map[string]string{"GITHUB_APP_ID": "12", "GITHUB_APP_KEY": key, "GITHUB_TOKEN": planted}, []string{"GITHUB_TOKEN and GITHUB_APP_ID are both set"}},
		"all of it at once":       {map[string]string{"FORGEJO_URL": planted, "GITHUB_APP_ID": planted}, []string{"FORGEJO_URL must be an address", "FORGEJO_TOKEN is not set", "GITHUB_APP_ID must be", "GITHUB_APP_KEY is not set"}},
		"whose repository":        {two(map[string]string{"REPOSITORIES": "gitea:ops/incidents,ops/web"}), []string{"REPOSITORIES must say in place 2 which forge", "GITEA_URL, GITHUB_TOKEN"}},
		"a forge that is off":     {two(map[string]string{"REPOSITORIES": "forgejo:ops/web"}), []string{"REPOSITORIES names a forge in place 1 that no variable"}},
		"a forge there is not":    {two(map[string]string{"REPOSITORIES": "gitlab:ops/web"}), []string{"REPOSITORIES names a forge in place 1 that is none of gitea, forgejo, github"}},
		"whose account":           {two(map[string]string{"MCP_ACCOUNT": "ada"}), []string{"MCP_ACCOUNT must say in place 1"}},
		"whose token":             {two(map[string]string{"MCP_TOKENS": "github:ada=" + planted + ",ada=" + planted + "2"}), []string{"MCP_TOKENS must say in place 2"}},
		"no repository after all": {two(map[string]string{"REPOSITORIES": "github:ops"}), []string{"REPOSITORIES holds something in place 1"}},
	} {
		_, err := loadConfig(anotherEnv(c.env), nil)
		if err == nil {
			t.Errorf("%s: no error", name)
			continue
		}
		for _, want := range c.want {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%s: error lacks %q:\n%v", name, want, err)
			}
		}
		if strings.Contains(err.Error(), planted) {
			t.Errorf("%s: error shows a value:\n%v", name, err)
		}
	}
}

// TestServeSeveralForges: one process answers on three forges, each by its own
// path and in its own repositories; what is asked of it says which is meant.
func TestServeSeveralForges(t *testing.T) {
	fakes := map[string]*fakeGitea{
		"gitea": newFakeGitea(t), "forgejo": newFake(t, forgetest.NewForgejo(time.Now)), "github": newFake(t, forgetest.NewGitHub(time.Now)),
	}
	environ := map[string]string{
		"PLAYBOOK_SECRET": planted, "LISTEN": "127.0.0.1:0", "LOG_FORMAT": "json",
		"REPOSITORIES": "gitea:ops/incidents,forgejo:ops/incidents,github:ops/incidents",
		"DATABASE_URL": "sqlite:" + filepath.Join(t.TempDir(), "bot.db"),
	}
	for name, f := range fakes {
		environ[strings.ToUpper(name)+"_URL"], environ[strings.ToUpper(name)+"_TOKEN"] = f.url, f.Token("playbook-bot", append(slices.Clone(forgetest.BotScopes), "read:organization")...)
	}
	s := startServe(t, environ)
	for name, f := range fakes {
		f.AddRepoHook("ops/incidents", webhook.HookSecret(planted, name, webhook.ScopeRepo, f.Repo("ops/incidents").ID))
		f.SetSink(forgetest.URLSink(http.DefaultClient, s.url))
		if _, err := f.OpenIssue("ada", "ops/incidents", "search is down", "/attempt client_reconnect insufficient\n/restart full_mcp_restart"); err != nil {
			t.Fatal(err)
		}
		f.waitForAnswer(t)
		if said := f.CommentsBy("playbook-bot", "ops/incidents", 1); len(said) != 1 || !strings.Contains(said[0].Body, "Approved until") {
			t.Errorf("%s: %d answers: %+v", name, len(said), said)
		}
	}
	s.stop()
	if code := s.wait(t); code != exitOK {
		t.Errorf("serve ended with %d", code)
	}
	code, _, errs := program(environ, "approval", "ops/incidents#1/1")
	if code != exitUsage || !strings.Contains(errs, "github:ops/incidents#1/1") || !strings.Contains(errs, "gitea:ops/incidents#1/1") {
		t.Errorf("an approval that may be one of three: exit %d\n%s", code, errs)
	}
	for name := range fakes {
		if code, out, errs := program(environ, "approval", name+":ops/incidents#1/1"); code != exitOK {
			t.Errorf("approval on %s: exit %d\n%s%s", name, code, out, errs)
		}
		code, out, errs := program(environ, "hook-secret", "--forge", name, "ops/incidents", "--json")
		var h hook
		if err := json.Unmarshal([]byte(out), &h); code != exitOK || err != nil || !strings.Contains(h.Path, "/webhook/"+name+"/repo/") {
			t.Errorf("hook-secret on %s: exit %d\n%s%s", name, code, out, errs)
		}
	}
	if code, _, errs := program(environ, "hook-secret", "ops/incidents"); code != exitUsage || !strings.Contains(errs, "--forge") {
		t.Errorf("hook-secret on one of three: exit %d\n%s", code, errs)
	}
	if code, out, errs := program(environ, "audit", "--verify"); code != exitOK || !strings.Contains(out, "3 threads") {
		t.Errorf("audit --verify: exit %d\n%s%s", code, out, errs)
	}
	if code, out, errs := program(environ, "audit", "--thread", "github:ops/incidents#1", "--json"); code != exitOK || strings.Contains(out, `"gitea"`) || !strings.Contains(out, `"github"`) {
		t.Errorf("audit of one of three: exit %d\n%s%s", code, out, errs)
	}
}

// TestAForgeThatIsDownKeepsNoOtherWaiting: what is asked on the others is
// answered.
func TestAForgeThatIsDownKeepsNoOtherWaiting(t *testing.T) {
	g := newFakeGitea(t)
	environ := serveEnv(g, t.TempDir())
	environ["REPOSITORIES"] = "gitea:ops/incidents,forgejo:ops/incidents"
	environ["FORGEJO_URL"], environ["FORGEJO_TOKEN"] = "http://127.0.0.1:1", "t"
	s := startServe(t, environ)
	g.AddRepoHook("ops/incidents", webhook.HookSecret(planted, "gitea", webhook.ScopeRepo, g.Repo("ops/incidents").ID))
	g.SetSink(forgetest.URLSink(http.DefaultClient, s.url))
	if _, err := g.OpenIssue("ada", "ops/incidents", "search is down", "/restart client_reconnect"); err != nil {
		t.Fatal(err)
	}
	g.waitForAnswer(t)
	if status, body := get(t, s.url+"/readyz"); status != http.StatusServiceUnavailable || body != "waiting for forgejo\n" {
		t.Errorf("/readyz: %d %q", status, body)
	}
}

// TestServeAsAnApp: a GitHub App hears of all its repositories by one hook.
func TestServeAsAnApp(t *testing.T) {
	key, text := newKey(t)
	f := newFake(t, forgetest.NewGitHub(time.Now))
	id, account := f.AddApp("restarts", &key.PublicKey)
	f.Install("restarts", "ops")
	environ := map[string]string{
		"PLAYBOOK_SECRET": planted, "LISTEN": "127.0.0.1:0", "LOG_FORMAT": "json", "REPOSITORIES": "ops/incidents",
		"DATABASE_URL": "sqlite:" + filepath.Join(t.TempDir(), "bot.db"),
		"GITHUB_URL":   f.url, "GITHUB_APP_ID": strconv.FormatInt(id, 10), "GITHUB_APP_KEY_FILE": write(t, "key.pem", text),
	}
	code, out, errs := program(environ, "hook-secret", "--app", strconv.FormatInt(id, 10), "--json")
	var h hook
	if err := json.Unmarshal([]byte(out), &h); code != exitOK || err != nil || h.Secret != webhook.HookSecret(planted, "github", webhook.ScopeApp, id) {
		t.Fatalf("hook-secret --app: exit %d\n%s%s", code, out, errs)
	}
	f.AddRepo("ops/other")
	for _, repo := range []string{"ops/incidents", "ops/other"} {
		f.AddRepoHook(repo, h.Secret, forgetest.HookPath(h.Path))
	}
	s := startServe(t, environ)
	f.SetSink(forgetest.URLSink(http.DefaultClient, s.url))
	for _, repo := range []string{"ops/other", "ops/incidents"} {
		if _, err := f.OpenIssue("ada", repo, "search is down", "/attempt client_reconnect insufficient\n@restarts restart full_mcp_restart"); err != nil {
			t.Fatal(err)
		}
	}
	f.waitForAnswer(t)
	if said := f.CommentsBy(account.Login, "ops/incidents", 1); len(said) != 1 || !strings.Contains(said[0].Body, "Approved until") {
		t.Errorf("%d answers: %+v", len(said), said)
	}
	s.stop()
	s.wait(t)
	if said := f.CommentsBy(account.Login, "ops/other", 1); len(said) != 0 {
		t.Errorf("a repository that REPOSITORIES does not name got an answer: %+v", said)
	}
	if code, _, errs := program(environ, "setup", "ops/incidents"); code == exitOK || !strings.Contains(errs, "ADMIN_TOKEN") {
		t.Errorf("setup without a token: exit %d\n%s", code, errs)
	}
	environ["ADMIN_TOKEN"] = "t"
	if code, _, errs := program(environ, "setup", "ops/incidents"); code != exitUsage || !strings.Contains(errs, "GitHub App needs no setup") {
		t.Errorf("setup of an app: exit %d\n%s", code, errs)
	}
}

// TestSetupOnGitHub: setup picks the forge, asks GitHub with the right tokens,
// and plans what GitHub needs. (Package setup shows that the plan works.)
func TestSetupOnGitHub(t *testing.T) {
	f := newFake(t, forgetest.NewGitHub(time.Now))
	g := newFakeGitea(t)
	// The fake has no hooks to list, nor collaborators: there are none.
	none := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/hooks") || strings.HasSuffix(r.URL.Path, "/collaborators") {
			w.Header().Set("Content-Type", "application/json; charset=utf-8")
			w.Header().Set("X-GitHub-Media-Type", "github.v3; format=json")
			w.Header().Set("X-GitHub-Request-Id", "1")
			_, _ = io.WriteString(w, "[]")
			return
		}
		f.ServeHTTP(w, r)
	}))
	t.Cleanup(none.Close)
	environ := map[string]string{
		"PLAYBOOK_SECRET": planted, "REPOSITORIES": "gitea:ops/elsewhere,github:ops/incidents", "PUBLIC_URL": "http://bot.example.org",
		"GITEA_URL": g.url, "GITEA_TOKEN": g.Token("playbook-bot"),
		"GITHUB_URL": none.URL, "GITHUB_TOKEN": f.Token("playbook-bot"), "ADMIN_TOKEN": f.Token("ada"),
	}
	code, out, errs := program(environ, "setup", "--forge", "github", "--dry-run")
	if code != exitOK {
		t.Fatalf("exit %d\n%s%s", code, out, errs)
	}
	path := webhook.HookPath("github", webhook.ScopeRepo, f.Repo("ops/incidents").ID)
	for _, want := range []string{"ops/incidents", ".github/ISSUE_TEMPLATE", path} {
		if !strings.Contains(out, want) {
			t.Errorf("the plan lacks %q:\n%s", want, out)
		}
	}
	if strings.Contains(out, "elsewhere") {
		t.Errorf("another forge's repository is in the plan:\n%s", out)
	}
	if code, _, errs := program(environ, "setup", "--dry-run"); code != exitUsage || !strings.Contains(errs, "--forge") {
		t.Errorf("without --forge: exit %d\n%s", code, errs)
	}
	if n := len(g.Calls()); n != 0 {
		t.Errorf("Gitea was asked %d times", n)
	}
}

// TestDoctorKeepsForgesApart: with several, an administrator's token goes to
// the one of --forge alone, and findings say which forge they are about.
func TestDoctorKeepsForgesApart(t *testing.T) {
	fakes := map[string]*fakeGitea{"gitea": newFakeGitea(t), "forgejo": newFake(t, forgetest.NewForgejo(time.Now))}
	environ := anotherEnv(map[string]string{
		"REPOSITORIES": "gitea:ops/incidents,forgejo:ops/incidents", "LISTEN": "127.0.0.1:1",
		"DATABASE_URL": "sqlite:" + filepath.Join(t.TempDir(), "bot.db"), "ADMIN_TOKEN": planted + "-admin",
	})
	for name, f := range fakes {
		environ[strings.ToUpper(name)+"_URL"], environ[strings.ToUpper(name)+"_TOKEN"] = f.url, f.Token("playbook-bot")
	}
	type report struct {
		Findings []struct{ Check, Place, Status, Detail string }
	}
	examine := func(args ...string) string {
		t.Helper()
		_, out, errs := program(environ, append([]string{"doctor", "--json"}, args...)...)
		var r report
		if err := json.Unmarshal([]byte(out), &r); err != nil {
			t.Fatalf("%v\n%s%s", err, out, errs)
		}
		var lines []string
		for _, f := range r.Findings {
			lines = append(lines, strings.Join([]string{f.Check, f.Place, f.Status, f.Detail}, "|"))
		}
		return strings.Join(lines, "\n")
	}
	all := examine()
	for _, want := range []string{"token|gitea|ok", "token|forgejo|ok", "rights|forgejo:ops/incidents|ok", "ADMIN_TOKEN is one forge's"} {
		if !strings.Contains(all, want) {
			t.Errorf("lacks %q:\n%s", want, all)
		}
	}
	one := examine("--forge", "forgejo")
	if strings.Contains(one, "gitea:") || strings.Contains(one, "|gitea|") || !strings.Contains(one, "rights|forgejo:ops/incidents|ok") {
		t.Errorf("of one:\n%s", one)
	}
	if off := examine("--forge", "github"); !strings.Contains(off, "address|github|failed") {
		t.Errorf("of one that is off:\n%s", off)
	}
}

// TestPlaybookNamesItsForges: with several, whom a playbook names is on one.
func TestPlaybookNamesItsForges(t *testing.T) {
	own, err := os.ReadFile("../../playbook/mcp.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for old, c := range map[string]struct{ now, want string }{
		"controller: []": {"controller: [ada]", "role controller names ada"},
		"notify: []":     {"notify: [ops/duty]", "notify names ops/duty"},
	} {
		text := strings.Replace(string(own), old, c.now, 1)
		environ := anotherEnv(map[string]string{"GITEA_URL": "http://127.0.0.1:1", "GITEA_TOKEN": "t", "GITHUB_TOKEN": "t",
			"REPOSITORIES": "gitea:ops/incidents", "PLAYBOOK_FILE": write(t, "playbook.yaml", text), "DATABASE_URL": "sqlite:" + filepath.Join(t.TempDir(), "bot.db")})
		if code, _, errs := program(environ, "serve"); code != exitFailure || !strings.Contains(errs, c.want) {
			t.Errorf("%s: exit %d\n%s", c.now, code, errs)
		}
	}
}
