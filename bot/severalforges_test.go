package bot_test

import (
	"strings"
	"testing"

	"playbook-bot/bot"
	"playbook-bot/bot/golden"
)

// TestNamesOfAnotherForgeAreNotMeant: a name on two forges is two people's.
// What the operator gave to one on GitHub nobody gets who has it on Gitea.
func TestNamesOfAnotherForgeAreNotMeant(t *testing.T) {
	for repos, answers := range map[string]bool{
		"ops/incidents": true, "gitea:ops/incidents": true, "github:ops/incidents": false,
		"gitea:ops/*": true, "github:ops/*": false,
	} {
		w := golden.NewFake(t, &golden.Scenario{Name: t.Name(), Repos: repos, BotPerm: "admin",
			People: []golden.Person{{Login: "adam", Permission: "admin"}}}, nil)
		n, err := w.Open("adam", "search is down", "/restart client_reconnect")
		must(t, err)
		must(t, w.Advance(0))
		if said := w.Forge.CommentsBy(w.BotLogin(), golden.RepoName, n); len(said) > 0 != answers {
			t.Errorf("REPOSITORIES=%s: %d answers", repos, len(said))
		}
	}
}

func TestRolesOfAnotherForgeAreNotHeld(t *testing.T) {
	for member, holds := range map[string]bool{"rhea": true, "gitea:rhea": true, "github:rhea": false} {
		roles := playbookWith(t, "controller: []", "controller: ['"+member+"']")
		w := golden.NewFake(t, &golden.Scenario{Name: t.Name(), Repos: golden.RepoName, BotPerm: "admin", Playbook: roles,
			People: []golden.Person{{Login: "rhea", Permission: "read"}}}, nil)
		n, err := w.Open("rhea", "search is down", "/attempt client_reconnect insufficient\n/restart full_mcp_restart")
		must(t, err)
		must(t, w.Advance(0))
		said := w.Forge.CommentsBy(w.BotLogin(), golden.RepoName, n)
		if len(said) != 1 || strings.Contains(said[0].Body, "### ✅") != holds {
			t.Errorf("controller: [%s]: %d answers\n%v", member, len(said), said)
		}
	}
}

func TestPatternsOn(t *testing.T) {
	all := bot.Patterns{"ops/incidents", "github:ops/web", "forgejo:infra/*"}
	for name, want := range map[string]string{
		"gitea": "ops/incidents", "github": "ops/incidents ops/web", "forgejo": "ops/incidents infra/*", "": "ops/incidents",
	} {
		if got := strings.Join(all.On(name), " "); got != want {
			t.Errorf("On(%q) = %q, want %q", name, got, want)
		}
	}
}
