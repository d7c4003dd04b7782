package templates

import (
	"strings"
	"testing"
)

// TestForgeSaid: each forge is called by its own name, and a 403 is cured by
// the right that its own page offers.
func TestForgeSaid(t *testing.T) {
	for _, c := range []struct {
		forge, bot      Text
		said, admission string
		app             bool
	}{
		{"gitea", "playbook-bot", "Gitea answered 403: `playbook-bot` is not an administrator", "Administrator", false},
		{"forgejo", "playbook-bot", "Forgejo answered 403: `playbook-bot` is not an administrator", "Administrator", false},
		{"github", "playbook-bot", "GitHub answered 403: `playbook-bot` cannot push", "Write", false},
		{"github", "playbook[bot]", "GitHub answered 403: `playbook[bot]` may not look it up", "Write", true},
		{"gitea", "playbook[bot]", "Gitea answered 403: `playbook[bot]` is not an administrator", "Administrator", false},
		{"codeberg", "playbook-bot", "Codeberg answered 403: ", "Administrator", false},
	} {
		v := &View{}
		v.Forge, v.Bot, v.Status = c.forge, c.bot, 403
		if got := v.ForgeSaid(); !strings.HasPrefix(got, c.said) {
			t.Errorf("%s: %q", c.forge, got)
		}
		if v.Admission() != c.admission || v.BotIsApp() != c.app {
			t.Errorf("%s, %s: %s, app %v", c.forge, c.bot, v.Admission(), v.BotIsApp())
		}
	}
	if got := (&View{}).ForgeSaid(); got != "The forge gave no answer." {
		t.Errorf("without a name: %q", got)
	}
}
