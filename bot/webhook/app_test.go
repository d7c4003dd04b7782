package webhook

import (
	"bytes"
	"net/http"
	"testing"
)

// TestAnAppsHookIsAboutAnyRepository: a GitHub App has one hook for all that
// have installed it. Only forges named in Apps have such paths, and a
// repository's secret opens none.
func TestAnAppsHookIsAboutAnyRepository(t *testing.T) {
	in := newIntake(t, func(cfg *Config) {
		cfg.Dialects = append(cfg.Dialects, likeGitHub{})
		cfg.Apps = []string{"github"}
	})
	d := named(t, "comment-created-by-reader")
	post := func(path, secret string) int {
		h := http.Header{"Content-Type": {"application/json"}}
		h.Set("X-GitHub-Event", d.Header.Get("X-GitHub-Event"))
		h.Set("X-Gitea-Event", d.Header.Get("X-Gitea-Event"))
		h.Set("X-Hub-Signature-256", "sha256="+sign(secret, d.Body))
		status, _ := in.post(http.MethodPost, path, h, bytes.NewReader(d.Body))
		return status
	}
	own := HookSecret(master, "github", ScopeApp, 7)
	for _, c := range []struct {
		name, path, secret string
		status             int
	}{
		{"its own", "/webhook/github/app/7", own, 202},
		{"another app's secret", "/webhook/github/app/7", HookSecret(master, "github", ScopeApp, 8), 401},
		{"a repository's secret", "/webhook/github/app/7", HookSecret(master, "github", ScopeRepo, 7), 401},
		{"its secret on a repository's path", "/webhook/github/repo/3", own, 401},
		{"another spelling", "/webhook/github/app/07", own, 404},
		{"a forge without apps", "/webhook/gitea/app/7", HookSecret(master, "gitea", ScopeApp, 7), 404},
	} {
		if got := post(c.path, c.secret); got != c.status {
			t.Errorf("%s: %d, want %d", c.name, got, c.status)
		}
	}
	if len(in.events) != 1 || in.events[0].Repo.ID != 3 {
		t.Errorf("%d events were accepted, want the one in repository 3", len(in.events))
	}
	none := newIntake(t, func(cfg *Config) { cfg.Dialects = []Dialect{likeGitHub{}} })
	if status, _ := none.post(http.MethodPost, "/webhook/github/app/7", d.Header, bytes.NewReader(d.Body)); status != 404 {
		t.Errorf("without Apps: %d", status)
	}
}
