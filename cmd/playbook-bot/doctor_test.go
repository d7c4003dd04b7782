package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"playbook-bot/bot/setup"
)

// TestOnlySetupReadsTheAdminToken: the bot itself must not hold it, nor fail
// for the want of its file.
func TestOnlySetupReadsTheAdminToken(t *testing.T) {
	for _, env := range []map[string]string{
		{"ADMIN_TOKEN": planted},
		{"ADMIN_TOKEN_FILE": filepath.Join(t.TempDir(), "none")},
		{"ADMIN_TOKEN": planted, "ADMIN_TOKEN_FILE": "none"},
	} {
		s, err := loadConfig(goodEnv(env), nil)
		if err != nil || s.Admin != nil {
			t.Errorf("%v: %v", env, err)
		}
	}
	if _, err := loadConfig(map[string]string{"ADMIN_TOKEN_FILE": "none"}, nil, "ADMIN_TOKEN"); err == nil {
		t.Error("setup takes a file that is not there")
	}
}

// TestDoctorLooksAtSecrets: who else can read or guess them.
func TestDoctorLooksAtSecrets(t *testing.T) {
	if os.PathSeparator != '/' {
		t.Skip("files have no such modes here")
	}
	file := func(mode os.FileMode) string {
		path := write(t, "it's secret", planted)
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
		return path
	}
	for name, c := range map[string]struct {
		env  map[string]string
		want []string // of places
	}{
		"good":               {map[string]string{"PLAYBOOK_SECRET": planted}, nil},
		"for the owner":      {map[string]string{"PLAYBOOK_SECRET": "", "PLAYBOOK_SECRET_FILE": file(0o600)}, nil},
		"for a group":        {map[string]string{"PLAYBOOK_SECRET": "", "PLAYBOOK_SECRET_FILE": file(0o640)}, nil},
		"for all":            {map[string]string{"PLAYBOOK_SECRET": "", "PLAYBOOK_SECRET_FILE": file(0o644)}, []string{"PLAYBOOK_SECRET_FILE"}},
		"an admin's for all": {map[string]string{"PLAYBOOK_SECRET": planted, "ADMIN_TOKEN_FILE": file(0o604)}, []string{"ADMIN_TOKEN_FILE"}},
		"the token":          {map[string]string{"PLAYBOOK_SECRET": planted, "GITEA_TOKEN": planted}, []string{"PLAYBOOK_SECRET"}},
		"guessable":          {map[string]string{"PLAYBOOK_SECRET": planted + "," + strings.Repeat("x", 40)}, []string{"PLAYBOOK_SECRET"}},
		"unset and mistyped": {map[string]string{"PLAYBOOK_SECRET": "short", "GITEA_TOKEN": ""}, []string{"GITEA_TOKEN", "PLAYBOOK_SECRET"}},
	} {
		d := &doctor{app: &app{environ: goodEnv(c.env)}}
		d.configuration()
		var red []string
		for _, f := range d.found {
			if strings.Contains(f.Detail+f.Cure+strings.Join(f.Run, ""), planted) {
				t.Errorf("%s: a secret is shown", name)
			}
			if f.Check == "secrets" && f.Status == setup.Failed {
				red = append(red, f.Place)
			}
		}
		if !slices.Equal(red, c.want) {
			t.Errorf("%s: red %q, want %q", name, red, c.want)
		}
	}
}

// TestQuoted: a cure's line is one that a shell takes as it stands.
func TestQuoted(t *testing.T) {
	for in, want := range map[string]string{
		"secrets/token": "secrets/token", "it's": `'it'\''s'`, "a b": "'a b'", "$(x)": "'$(x)'", "": "",
	} {
		if got := quoted(in); got != want {
			t.Errorf("quoted(%q) = %s, want %s", in, got, want)
		}
	}
}
