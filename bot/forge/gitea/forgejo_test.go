package gitea

import (
	"testing"
	"time"

	sdk "code.gitea.io/sdk/gitea"

	"playbook-bot/bot/forge"
	"playbook-bot/bot/forge/forgetest"
)

// TestNoVersionIsRefused: the SDK reads the server's version as one of Gitea's
// and refuses what it cannot read. The adapter asks for none, so that whatever
// a Forgejo calls itself is served, and a server that is down too.
func TestNoVersionIsRefused(t *testing.T) {
	f := forgetest.NewForgejo(time.Now)
	t.Cleanup(f.Close)
	f.AddUser("olga")
	f.AddUser("botty")
	f.AddOrg("ops", "olga")
	repo := f.AddRepo("ops/runtime")
	f.AddCollaborator("ops/runtime", "botty", "admin")
	n := ok(f.OpenIssue("olga", "ops/runtime", "t", "b"))(t)
	token := f.Token("botty")

	api, err := sdk.NewClient(f.Host, sdk.SetHTTPClient(f.Client()), sdk.SetToken(token))
	if err != nil {
		t.Errorf("the SDK refuses Forgejo's own version: %v", err)
	}
	version, _, err := api.ServerVersion()
	if err != nil || version != "11.0.1+gitea-1.22.0" {
		t.Errorf("version %q, %v", version, err)
	}
	f.OrderKind("version", jsonAnswer(`{"version":"11.0.1-dev-1-gdeadbeef~a strange one"}`))
	if _, err := sdk.NewClient(f.Host, sdk.SetHTTPClient(f.Client()), sdk.SetToken(token)); err == nil {
		t.Error("this test shows nothing: the SDK takes any version")
	}
	c := ok(New(Config{BaseURL: f.Host, HTTP: f.Client(), Token: func() string { return token }, Name: "forgejo"}))(t)
	f.ResetCalls()
	ok(c.CreateComment(t.Context(), repo.ID, n, "x"))(t)
	if p, _, err := c.Permission(t.Context(), repo.ID, "olga"); err != nil || p != forge.PermissionOwner {
		t.Errorf("olga: %s, %v", p, err)
	}
	if c.Name() != "forgejo" || f.CallCounts()["version"] != 0 {
		t.Errorf("name %q, calls %v", c.Name(), f.CallCounts())
	}
}
