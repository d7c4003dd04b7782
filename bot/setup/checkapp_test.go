package setup

import (
	"context"
	"strings"
	"testing"
	"time"

	"playbook-bot/bot/forge"
	"playbook-bot/bot/forge/github"
	"playbook-bot/bot/webhook"
)

// reacting is a client whose token may write in issues.
type reacting struct{ *github.Client }

func (reacting) React(context.Context, int64, int64, forge.Object, forge.Reaction, bool) error {
	return nil
}

// TestCheckingAnApp: an app is no collaborator and has no hook in any
// repository; neither is a fault.
func TestCheckingAnApp(t *testing.T) {
	for _, c := range []struct {
		id   int64
		came bool
		want []string
	}{
		{12, true, []string{"ok rights: the app can read who may what", "ok hook: the app's own", "skipped reachability: an app's hook", "ok delivery: the last one was taken"}},
		{12, false, []string{"failed delivery: no delivery ever came"}},
		{0, false, []string{"skipped hook: an app's is on the app's page", "skipped delivery"}},
	} {
		_, client := newHub(t)
		var asked []string
		now := time.Date(2026, 12, 1, 0, 0, 0, 0, time.UTC)
		u := Checkup{
			Forge: reacting{client}, Repositories: []string{"ops/incidents"}, PublicURL: "http://bot.example.org",
			App: true, AppID: c.id, Now: func() time.Time { return now }, Running: true,
			Record: func(_ context.Context, path string) (webhook.Record, error) {
				asked = append(asked, path)
				if !c.came {
					return webhook.Record{}, nil
				}
				return webhook.Record{AcceptedAt: now}, nil
			},
		}
		var lines []string
		for _, f := range u.Run(t.Context()) {
			lines = append(lines, string(f.Status)+" "+f.Check+": "+f.Detail)
		}
		all := strings.Join(lines, "\n")
		for _, want := range c.want {
			if !strings.Contains(all, want) {
				t.Errorf("app %d lacks %q:\n%s", c.id, want, all)
			}
		}
		for _, path := range asked {
			if path != "/webhook/github/app/12" {
				t.Errorf("looked at the record of %s", path)
			}
		}
	}
}
