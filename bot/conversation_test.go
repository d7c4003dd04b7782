package bot_test

import (
	"path/filepath"
	"strings"
	"testing"

	"playbook-bot/bot/golden"
)

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
		})
	}
	t.Logf("%d of these scenarios run on the fake forge only", fakeOnly)
}
