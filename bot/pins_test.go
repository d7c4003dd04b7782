package bot_test

import (
	"strings"
	"testing"

	"playbook-bot/bot/golden"
	"playbook-bot/bot/webhook"
)

// TestNamesStayWithTheirRepository: a repository that is renamed keeps the
// rights that the operator gave to its name, and one that takes the name gets
// none.
func TestNamesStayWithTheirRepository(t *testing.T) {
	sc := &golden.Scenario{Name: t.Name(), Repos: golden.RepoName, BotPerm: "admin", Grants: golden.RepoName,
		People: []golden.Person{{Login: "adam", Permission: "admin"}, {Login: "mallory", Permission: "read"}}}
	w := golden.NewFake(t, sc, nil)
	n, err := w.Open("adam", "search is down", "/restart worker_restart")
	must(t, err)

	must(t, w.Forge.Rename(golden.RepoName, "incidents-2026"))
	_, err = w.Forge.Comment("adam", "ops/incidents-2026", n, "/break-glass full_mcp_restart payments down")
	must(t, err)
	must(t, w.Advance(0))
	var last string
	for _, c := range w.Forge.CommentsBy(w.BotLogin(), "ops/incidents-2026", n) {
		last = c.Body
	}
	if !strings.Contains(last, "Approved by break-glass") {
		t.Errorf("the renamed repository lost its grant:\n%s", last)
	}

	taker := w.Forge.AddRepo(golden.RepoName)
	w.Forge.AddCollaborator(golden.RepoName, "mallory", "admin")
	w.Forge.AddCollaborator(golden.RepoName, w.BotLogin(), "admin")
	w.Forge.AddRepoHook(golden.RepoName, webhook.HookSecret(golden.Secret, "gitea", webhook.ScopeRepo, taker.ID))
	m, err := w.Forge.OpenIssue("mallory", golden.RepoName, "mine", "/break-glass full_mcp_restart because I can")
	must(t, err)
	must(t, w.Advance(0))
	if said := w.Forge.CommentsBy(w.BotLogin(), golden.RepoName, m); len(said) != 0 {
		t.Errorf("the repository that took the name got an answer:\n%s", said[0].Body)
	}
}
