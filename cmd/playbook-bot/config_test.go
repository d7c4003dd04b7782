package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// planted stands for a secret wherever a test puts one.
const planted = "planted-0123456789-0123456789-0123456789"

func goodEnv(more map[string]string) map[string]string {
	m := map[string]string{
		"GITEA_URL":       "https://git.example.org/",
		"GITEA_TOKEN":     "0123456789abcdef",
		"PLAYBOOK_SECRET": strings.Repeat("s", MinSecret),
		"REPOSITORIES":    "ops/incidents, infra/*",
	}
	for k, v := range more {
		m[k] = v
	}
	return m
}

func write(t *testing.T, name, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestConfigDefaults(t *testing.T) {
	s, err := loadConfig(goodEnv(nil), nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(s.Forges) != 1 || s.Forges[0].url != "https://git.example.org" {
		t.Errorf("Forges = %+v, want Gitea's address without the slash", s.Forges)
	}
	if want := []string{"ops/incidents", "infra/*"}; !slices.Equal(s.Repositories, want) {
		t.Errorf("Repositories = %q, want %q", s.Repositories, want)
	}
	if s.Database != "sqlite:data/playbook-bot.db" || s.Listen != "127.0.0.1:8080" || !s.Labels || s.RequestTimeout != 10*time.Second {
		t.Errorf("defaults are not filled in: %q %q %v %v", s.Database, s.Listen, s.Labels, s.RequestTimeout)
	}
	if g, err := s.Grants(); err != nil || len(g) != 0 {
		t.Errorf("Grants = %v, %v; want none", g, err)
	}
	if len(s.Forges) != 1 || s.Forges[0].name != "gitea" || s.Forges[0].token() != "0123456789abcdef" || len(s.Secrets()) != 1 || len(s.Hooks()) != 0 {
		t.Errorf("secrets are not handed on")
	}
}

func TestConfigNamesAllErrorsAtOnce(t *testing.T) {
	_, err := loadConfig(map[string]string{"WORKERS": "many", "LABELS": "perhaps", "LOG_LEVEL": "loud"}, nil)
	if err == nil {
		t.Fatal("no error")
	}
	lines := strings.Split(err.Error(), "\n")[1:]
	for i, name := range []string{"GITEA_URL ", "GITEA_TOKEN ", "PLAYBOOK_SECRET ", "REPOSITORIES ", "LABELS ", "WORKERS ", "LOG_LEVEL "} {
		if i >= len(lines) || !strings.HasPrefix(lines[i], name) {
			t.Fatalf("line %d does not name %s in the table's order:\n%s", i+1, name, err)
		}
	}
}

func TestConfigErrors(t *testing.T) {
	blank := write(t, "blank", " \n\t\n")
	short := write(t, "short", "too short")
	for name, c := range map[string]struct {
		env  map[string]string
		want string
	}{
		"blank token":            {map[string]string{"GITEA_TOKEN": "  "}, "GITEA_TOKEN is blank"},
		"blank secret":           {map[string]string{"PLAYBOOK_SECRET": ""}, "PLAYBOOK_SECRET is blank"},
		"short secret":           {map[string]string{"PLAYBOOK_SECRET": "short"}, "must have 32 characters or more, it has 5"},
		"short second secret":    {map[string]string{"PLAYBOOK_SECRET": strings.Repeat("x", 32) + ",short"}, "it has 5 in place 2"},
		"blank second secret":    {map[string]string{"PLAYBOOK_SECRET": strings.Repeat("x", 32) + ", "}, "blank secret in place 2"},
		"both ways":              {map[string]string{"GITEA_TOKEN_FILE": short}, "GITEA_TOKEN and GITEA_TOKEN_FILE are both set"},
		"blank file":             {map[string]string{"GITEA_TOKEN": "", "GITEA_TOKEN_FILE": blank}, "GITEA_TOKEN_FILE names a blank file"},
		"missing file":           {map[string]string{"GITEA_TOKEN": "", "GITEA_TOKEN_FILE": "/nowhere/" + planted}, "GITEA_TOKEN_FILE names a file that is not there"},
		"short secret in file":   {map[string]string{"PLAYBOOK_SECRET": "", "PLAYBOOK_SECRET_FILE": short}, "PLAYBOOK_SECRET_FILE names a file that must have 32"},
		"directory":              {map[string]string{"GITEA_TOKEN": "", "GITEA_TOKEN_FILE": t.TempDir()}, "GITEA_TOKEN_FILE names a file that cannot be read"},
		"no scheme":              {map[string]string{"GITEA_URL": "git.example.org"}, "GITEA_URL must be an address"},
		"password in address":    {map[string]string{"GITEA_URL": "https://ada:" + planted + "@git.example.org"}, "must not hold a user name"},
		"repository without /":   {map[string]string{"REPOSITORIES": "ops/incidents,infra"}, "place 2 that is not owner/repo"},
		"everything everywhere":  {map[string]string{"REPOSITORIES": "*"}, "not owner/repo or owner/*"},
		"blank repositories":     {map[string]string{"REPOSITORIES": " "}, "REPOSITORIES is not set"},
		"no duration":            {map[string]string{"LEASE": "10"}, "LEASE must be a duration such as 30s"},
		"no time at all":         {map[string]string{"SETTLE": "0s"}, "SETTLE must be longer than nothing"},
		"no workers":             {map[string]string{"WORKERS": "0"}, "WORKERS must be between"},
		"log format":             {map[string]string{"LOG_FORMAT": "xml"}, "LOG_FORMAT must be text or json"},
		"listen without port":    {map[string]string{"LISTEN": "localhost"}, "LISTEN must be HOST:PORT"},
		"same listener twice":    {map[string]string{"ADMIN_LISTEN": "127.0.0.1:8080"}, "another address than LISTEN"},
		"unknown database":       {map[string]string{"DATABASE_URL": "mysql://u:" + planted + "@h/d"}, "DATABASE_URL must begin with sqlite:"},
		"hook without secret":    {map[string]string{"HOOK_SECRETS": "/webhook/gitea/repo/1="}, "HOOK_SECRETS holds a blank secret"},
		"hook without path":      {map[string]string{"HOOK_SECRETS": planted}, "HOOK_SECRETS holds something in place 1"},
		"grant that is no grant": {map[string]string{"GITEA_BREAKGLASS_RESTART_AUTHORIZATION": "a/b/c/" + planted}, "GITEA_BREAKGLASS_RESTART_AUTHORIZATION cannot be read"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := loadConfig(goodEnv(c.env), nil)
			if err == nil {
				t.Fatal("no error")
			}
			if !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %q\nlacks %q", err, c.want)
			}
			if strings.Contains(err.Error(), planted) {
				t.Errorf("error shows a value: %q", err)
			}
		})
	}
}

// TestConfigNeverShowsValues puts a recognisable value into each variable in
// turn, where it is wrong, and looks for it in what comes back.
func TestConfigNeverShowsValues(t *testing.T) {
	for _, name := range variables() {
		for _, v := range []string{planted, planted + "://x", "a/b/" + planted, "[" + planted, "x," + planted + " y"} {
			_, err := loadConfig(goodEnv(map[string]string{name: v}), nil)
			if err != nil && strings.Contains(err.Error(), "planted") {
				t.Errorf("%s: error shows its value: %v", name, err)
			}
			if err != nil && !strings.Contains(err.Error(), name) {
				t.Errorf("%s: error does not name it: %v", name, err)
			}
		}
	}
}

func TestConfigOnlyWhatACommandUses(t *testing.T) {
	if _, err := loadConfig(map[string]string{"REPOSITORIES": "nonsense"}, nil, "DATABASE_URL"); err != nil {
		t.Errorf("a command that needs the database alone was refused: %v", err)
	}
	_, err := loadConfig(map[string]string{}, nil, "GITEA_URL", "GITEA_TOKEN")
	if err == nil || !strings.Contains(err.Error(), "GITEA_TOKEN is not set") {
		t.Errorf("a missing token was not named: %v", err)
	}
}

func TestSecretFileIsReadAgain(t *testing.T) {
	path := write(t, "token", " first \n")
	var warned []error
	f, err := openSecret("GITEA_TOKEN_FILE", path, checkToken, func(err error) { warned = append(warned, err) })
	if err != nil {
		t.Fatal(err)
	}
	stamp := time.Now()
	put := func(s string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(s), 0o600); err != nil {
			t.Fatal(err)
		}
		// A coarse file clock must not decide whether this test sees it.
		stamp = stamp.Add(time.Second)
		if err := os.Chtimes(path, stamp, stamp); err != nil {
			t.Fatal(err)
		}
	}
	want := func(s string, warnings int) {
		t.Helper()
		if got := f.value(); got != s {
			t.Errorf("value = %q, want %q", got, s)
		}
		if len(warned) != warnings {
			t.Errorf("%d warnings, want %d: %v", len(warned), warnings, warned)
		}
	}
	want("first", 0)
	put("second")
	want("second", 0)
	put("")
	want("second", 1)
	want("second", 1) // the same trouble is told once
	put("two words")
	want("second", 2)
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	want("second", 3)
	put("third")
	want("third", 3)
	for _, w := range warned {
		if strings.Contains(w.Error(), "words") && strings.Contains(w.Error(), "two") {
			t.Errorf("warning shows the content: %v", w)
		}
	}
}

func TestMastersAndHooks(t *testing.T) {
	a, b := strings.Repeat("a", 32), strings.Repeat("b", 40)
	s, err := loadConfig(goodEnv(map[string]string{
		"PLAYBOOK_SECRET": a + " , " + b,
		"HOOK_SECRETS":    "/webhook/gitea/repo/4=s3cret, /webhook/gitea/org/7=x=y",
	}), nil)
	if err != nil {
		t.Fatal(err)
	}
	if got := s.Secrets(); !slices.Equal(got, []string{a, b}) {
		t.Errorf("Secrets = %q", got)
	}
	hooks := s.Hooks()
	if hooks["/webhook/gitea/repo/4"] != "s3cret" || hooks["/webhook/gitea/org/7"] != "x=y" {
		t.Errorf("Hooks = %q", hooks)
	}
}

func TestConfigTable(t *testing.T) {
	table, err := configTable()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range variables() {
		base := strings.TrimSuffix(name, "_FILE")
		if base == "PLAYBOOK" {
			base = name
		}
		if !strings.Contains(table, "| `"+base+"`") {
			t.Errorf("the table lacks %s:\n%s", name, table)
		}
		if helpOf(name) == "" && !strings.HasSuffix(name, "_FILE") {
			t.Errorf("%s has no help", name)
		}
	}
}
