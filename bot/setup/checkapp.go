package setup

import (
	"context"

	"playbook-bot/bot/forge"
	"playbook-bot/bot/webhook"
)

// appRights checks that a GitHub App can read who may what: as no collaborator
// it has no permission that could be asked for.
func (c *checker) appRights(ctx context.Context, repo forge.Repo) bool {
	name := repo.FullName()
	if _, err := c.Forge.Writers(ctx, repo.ID); err != nil {
		c.fail("rights", name, "the app cannot read who may approve what, and decides nothing: "+err.Error(),
			"Install it in "+repo.Owner+" for this repository, and accept its permissions there: Issues (write), Pull requests, Contents, Metadata and Members (read).")
		return false
	}
	c.ok("rights", name, "the app can read who may what")
	return true
}

// appHook is the app's one hook. Only the app's page shows it, so all that can
// be said of it is what came through it.
func (c *checker) appHook(_ context.Context, repo forge.Repo, _ bool) (hooked, bool) {
	name := repo.FullName()
	if c.AppID == 0 {
		c.skip("hook", name, "an app's is on the app's page; with the number that it calls App ID in GITHUB_APP_ID, its deliveries can be looked at")
		return hooked{}, false
	}
	c.ok("hook", name, "the app's own; what belongs on the app's page prints: playbook-bot hook-secret --app %d", c.AppID)
	return hooked{path: webhook.HookPath(c.Forge.Name(), webhook.ScopeApp, c.AppID), org: true}, true
}
