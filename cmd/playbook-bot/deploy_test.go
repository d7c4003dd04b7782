package main

import (
	"encoding/json"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"
)

// What is in deploy is not Go, and no compiler holds it to the program. These
// tests do: every variable it sets is one that serve reads, in a form that
// serve takes. (deploymetrics_test.go does the same for metrics.)

const deployDir = "../../deploy"

func deployFile(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(deployDir, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func deployYAML(t *testing.T, name string, into any) {
	t.Helper()
	if err := yaml.Unmarshal([]byte(deployFile(t, name)), into); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
}

// requireTools set to 1 makes a test without its tool fail instead of skip.
const requireTools = "PLAYBOOK_BOT_REQUIRE_DEPLOY_TOOLS"

// tool runs one that may not be on this machine, and gives what it printed.
func tool(t *testing.T, name string, args ...string) (string, error) {
	t.Helper()
	if _, err := exec.LookPath(name); err != nil {
		if os.Getenv(requireTools) == "1" {
			t.Fatalf("%s is not here", name)
		}
		t.Skipf("%s is not here", name)
	}
	out, err := exec.Command(name, args...).CombinedOutput()
	return string(out), err
}

// notOurs are variables that others than the bot read: the Go runtime.
var notOurs = []string{"GOMEMLIMIT"}

// deployed gives the environment that each kind of deployment starts serve
// with, with $VARIABLES of compose at their defaults.
var deployed = map[string]func(*testing.T) map[string]string{
	"compose": func(t *testing.T) map[string]string {
		return composeFile(t).Services["bot"].Environment
	},
	"kubernetes": kubernetesEnvironment,
	"systemd":    systemdEnvironment,
}

type compose struct {
	Services map[string]struct {
		Environment map[string]string
		Secrets     []string
		Grace       string `yaml:"stop_grace_period"`
	}
	Secrets map[string]struct{ File string }
}

func composeFile(t *testing.T) (c compose) {
	t.Helper()
	deployYAML(t, "compose.yaml", &c)
	defaults := regexp.MustCompile(`\$\{\w+:-([^}]*)\}`)
	for _, s := range c.Services {
		for k, v := range s.Environment {
			s.Environment[k] = defaults.ReplaceAllString(v, "$1")
		}
	}
	return c
}

type pod struct {
	Spec struct {
		Template struct {
			Spec struct {
				Grace      int `yaml:"terminationGracePeriodSeconds"`
				Containers []struct {
					Env       []struct{ Name, Value string }
					Lifecycle struct {
						PreStop struct{ Sleep struct{ Seconds int } } `yaml:"preStop"`
					}
				}
			}
		}
	}
}

func kubernetesEnvironment(t *testing.T) map[string]string {
	env := map[string]string{}
	for _, name := range []string{"kubernetes/base/kustomization.yaml", "kubernetes/example/kustomization.yaml"} {
		var k struct {
			Maps []struct{ Literals []string } `yaml:"configMapGenerator"`
		}
		deployYAML(t, name, &k)
		for _, m := range k.Maps {
			maps.Copy(env, assignments(m.Literals))
		}
	}
	var p pod
	deployYAML(t, "kubernetes/base/deployment.yaml", &p)
	for _, e := range p.Spec.Template.Spec.Containers[0].Env {
		env[e.Name] = e.Value
	}
	return env
}

// systemdEnvironment is the unit's, and the file's that deploy/README.md has
// the operator write.
func systemdEnvironment(t *testing.T) map[string]string {
	_, file, ok := strings.Cut(deployFile(t, "README.md"), "playbook-bot.env <<'END'\n")
	file, _, ended := strings.Cut(file, "\nEND\n")
	if !ok || !ended {
		t.Fatal("deploy/README.md does not write a playbook-bot.env")
	}
	env := assignments(strings.Split(file, "\n"))
	for line := range strings.Lines(deployFile(t, "systemd/playbook-bot.service")) {
		if set, ok := strings.CutPrefix(strings.TrimSpace(line), "Environment="); ok {
			maps.Copy(env, assignments([]string{set}))
		}
	}
	return env
}

func assignments(list []string) map[string]string {
	env := map[string]string{}
	for _, kv := range list {
		if k, v, ok := strings.Cut(kv, "="); ok {
			env[k] = v
		}
	}
	return env
}

func TestDeployedEnvironment(t *testing.T) {
	image := map[string]string{} // what the image sets and the others override
	for line := range strings.Lines(deployFile(t, "Dockerfile")) {
		if set, ok := strings.CutPrefix(line, "ENV LISTEN"); ok {
			image = assignments(strings.Fields("LISTEN" + set))
		}
	}
	if image["DATABASE_URL"] == "" {
		t.Fatalf("the image's ENV was not found: %v", image)
	}
	for name, environment := range deployed {
		t.Run(name, func(t *testing.T) {
			env := environment(t)
			if name != "systemd" {
				set := env
				env = maps.Clone(image)
				maps.Copy(env, set)
			}
			for k := range env {
				if !slices.Contains(variables(), k) && !slices.Contains(notOurs, k) {
					t.Errorf("%s is set, and serve reads no such variable", k)
				}
			}
			s, err := loadConfig(withSecrets(t, env), nil)
			if err != nil {
				t.Fatalf("serve would refuse to start: %v", err)
			}
			if wantPostgres := name != "systemd"; strings.HasPrefix(s.Database, "postgres://") != wantPostgres {
				t.Errorf("DATABASE_URL and its file come to %s", s.Database)
			}
		})
	}
}

// withSecrets puts files in place of those that the deployment will have.
func withSecrets(t *testing.T, env map[string]string) map[string]string {
	t.Helper()
	content := map[string]string{
		"GITEA_TOKEN_FILE":     "0123456789abcdef",
		"PLAYBOOK_SECRET_FILE": strings.Repeat("0123456789abcdef", 4) + "\n",
		"DATABASE_URL_FILE":    "postgres://playbook_bot:secret@postgres/playbook_bot\n",
	}
	env = maps.Clone(env)
	for name := range env {
		if !strings.HasSuffix(name, "_FILE") || name == "PLAYBOOK_FILE" {
			continue
		}
		text, ok := content[name]
		if !ok {
			t.Fatalf("this test has no content for %s", name)
		}
		env[name] = filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(env[name], []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return env
}

// TestDeployedGrace holds the time until SIGKILL to SHUTDOWN_TIMEOUT: a bot
// killed while it hands its work back leaves it to the end of the lease.
func TestDeployedGrace(t *testing.T) {
	s, err := loadConfig(withSecrets(t, deployed["compose"](t)), nil)
	if err != nil {
		t.Fatal(err)
	}
	var p pod
	deployYAML(t, "kubernetes/base/deployment.yaml", &p)
	spec := p.Spec.Template.Spec
	unit := regexp.MustCompile(`(?m)^TimeoutStopSec=(\S+)$`).FindStringSubmatch(deployFile(t, "systemd/playbook-bot.service"))
	for name, grace := range map[string]string{"compose": composeFile(t).Services["bot"].Grace, "systemd": unit[1]} {
		if d, err := time.ParseDuration(grace); err != nil || d <= s.ShutdownTimeout {
			t.Errorf("%s gives %s (%v), SHUTDOWN_TIMEOUT is %s", name, grace, err, s.ShutdownTimeout)
		}
	}
	left := time.Duration(spec.Grace-spec.Containers[0].Lifecycle.PreStop.Sleep.Seconds) * time.Second
	if left <= s.ShutdownTimeout {
		t.Errorf("kubernetes leaves %s after preStop, SHUTDOWN_TIMEOUT is %s", left, s.ShutdownTimeout)
	}
}

func TestComposeSecrets(t *testing.T) {
	c := composeFile(t)
	used := map[string]bool{}
	steps := deployFile(t, "README.md")
	for name, s := range c.Services {
		for _, secret := range s.Secrets {
			used[secret] = true
			if c.Secrets[secret].File == "" {
				t.Errorf("%s uses the secret %s, which has no file", name, secret)
			}
		}
		for k, v := range s.Environment {
			if file, ok := strings.CutPrefix(v, "/run/secrets/"); ok && !slices.Contains(s.Secrets, file) {
				t.Errorf("%s: %s names the secret %s, which the service does not have", name, k, file)
			}
		}
	}
	for secret, s := range c.Secrets {
		if !used[secret] {
			t.Errorf("nobody uses the secret %s", secret)
		}
		if !strings.Contains(steps, s.File) {
			t.Errorf("deploy/README.md does not say how %s is made", s.File)
		}
	}
}

// TestOneBuild holds image and release to one way of building, and the image
// to the Go version that go.mod asks for.
func TestOneBuild(t *testing.T) {
	flags := regexp.MustCompile(`-trimpath -buildvcs=false(?: \\\s+)? -ldflags "-s -w -buildid= -X main\.release=\S+"`)
	for _, name := range []string{"Dockerfile", "release"} {
		if text := strings.Join(strings.Fields(strings.ReplaceAll(deployFile(t, name), "\\\n", " ")), " "); !flags.MatchString(text) {
			t.Errorf("%s does not build with %s", name, flags)
		}
	}
	_ = release // main.release of the flags above
	mod, err := os.ReadFile("../../go.mod")
	if err != nil {
		t.Fatal(err)
	}
	want := regexp.MustCompile(`(?m)^go (1\.\d+)`).FindStringSubmatch(string(mod))[1]
	if got := regexp.MustCompile(`ARG GO_IMAGE=golang:(1\.\d+)-`).FindStringSubmatch(deployFile(t, "Dockerfile")); got == nil || got[1] != want {
		t.Errorf("the image is built with golang:%v, go.mod says %s", got, want)
	}
}

// TestUnit has systemd read the unit and say how exposed it leaves the
// service: at most 1.5 of 10, which is what the unit's head states, with
// some room for what other versions of systemd count.
func TestUnit(t *testing.T) {
	if out, err := tool(t, "systemd-analyze", "security", "--offline=true", "--threshold=15", deployDir+"/systemd/playbook-bot.service"); err != nil {
		t.Errorf("systemd-analyze security: %v\n%s", err, out)
	}
	// The program need not be installed for its unit to be looked at.
	unit := filepath.Join(t.TempDir(), "playbook-bot.service")
	text := strings.ReplaceAll(deployFile(t, "systemd/playbook-bot.service"), "ExecStart=/usr/local/bin/playbook-bot", "ExecStart=/bin/true")
	if err := os.WriteFile(unit, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := tool(t, "systemd-analyze", "verify", "--man=no", unit); err != nil || out != "" {
		t.Errorf("systemd-analyze verify: %v\n%s", err, out)
	}
}

func deployJSON(t *testing.T, name string, into any) {
	t.Helper()
	if err := json.Unmarshal([]byte(deployFile(t, name)), into); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
}
