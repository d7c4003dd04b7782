package bot_test

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"playbook-bot/bot"
	"playbook-bot/bot/forge/forgetest"
	"playbook-bot/bot/forge/github"
	"playbook-bot/bot/golden"
)

// gitHub is the other kind of forge on which the conversations are played.
var gitHub = golden.Dialect{
	Hooks: github.Dialect{},
	Fake:  forgetest.NewGitHub,
	Adapter: func(f *forgetest.Forge, token func() string, now func() time.Time) (bot.Forge, error) {
		return github.New(github.Config{BaseURL: f.Host, HTTP: f.Client(), Token: token, Now: now})
	},
}

// TestConversations plays every golden conversation on the fake forge; the
// same files run on a real Gitea in deploy/sandbox.
func TestConversations(t *testing.T) {
	fakeOnly := 0
	for _, sc := range golden.Files(t, "testdata/conversations") {
		if sc.FakeOnly != "" {
			fakeOnly++
		}
		t.Run(strings.TrimSuffix(filepath.Base(sc.Name), ".txtar"), func(t *testing.T) {
			golden.Run(t, golden.NewFake(t, sc, nil), sc)
			t.Run("GitHub", func(t *testing.T) {
				there := sc.On(gitHub.Hooks.Name())
				golden.Run(t, golden.NewFakeOn(t, gitHub, there, nil), there)
			})
		})
	}
	t.Logf("%d of these scenarios run on the fake forge only", fakeOnly)
}
