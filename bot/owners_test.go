package bot_test

import (
	"testing"
	"time"

	"playbook-bot/bot"
	"playbook-bot/bot/forge"
	"playbook-bot/bot/golden"
)

const wholeForm = "### Requested class\n\nfull_mcp_restart\n\n### Target\n\nmcp-search\n\n### What happened\n\nall clients 404\n\n" +
	"### Prior recovery attempts\n\n```yaml\n- action: client_reconnect\n  outcome: skipped\n```\n"

// TestAnOrganisationSpeaksForItsOwn: what the hook of another organisation signs
// for a repository that is not its own vouches for nothing, not even after the
// bot was started anew and has not met the forge yet.
func TestAnOrganisationSpeaksForItsOwn(t *testing.T) {
	for name, own := range map[string]bool{"its own": true, "another": false} {
		t.Run(name, func(t *testing.T) {
			w := newPeople(t, "olivia=owner adam=admin wren=write")
			n, err := w.Open("adam", "search is down", wholeForm)
			if err != nil {
				t.Fatal(err)
			}
			if err := w.Quiet(true); err != nil {
				t.Fatal(err)
			}
			altered := wholeForm[:len(wholeForm)-len("skipped\n```\n")] + "failed\n```\n"
			if err := w.EditIssue("wren", n, altered); err != nil {
				t.Fatal(err)
			}
			w.Restart()
			adam, repo := accountOf(t, w, "adam"), w.Repo
			want := bot.OutcomeTaken
			if !own {
				repo.OwnerID, want = w.Forge.AddOrg("others").ID, bot.OutcomeElsewhere
			}
			got, err := w.Bot.Accept(t.Context(), forge.Event{Forge: "gitea", Delivery: "lie", Repo: repo, OrgID: repo.OwnerID, Number: n,
				Action: forge.ActionEdited, Object: forge.Object{Kind: forge.ObjectIssue, ID: n}, Sender: adam, Author: adam, Body: altered})
			if err != nil || got != want {
				t.Errorf("accepting: %s, %v, want %s", got, err, want)
			}
			if err := w.Advance(time.Minute); err != nil {
				t.Fatal(err)
			}
			if err := w.Sweep(); err != nil {
				t.Fatal(err)
			}
			if got := approvalStands(t, w, n); got != own {
				t.Errorf("the altered attempt approved: %v, want %v", got, own)
			}
		})
	}
}

// TestATransferredRepositoryIsStillHeard: a delivery that names a new owner is
// taken where the forge says the same, and nothing is lost where it cannot say.
func TestATransferredRepositoryIsStillHeard(t *testing.T) {
	w := newPeople(t, "olivia=owner adam=admin")
	n, err := w.Open("adam", "search is down", "")
	if err != nil {
		t.Fatal(err)
	}
	adam := accountOf(t, w, "adam")
	w.Forge.AddOrg("others")
	if err := w.Forge.Rename(golden.RepoName, "others/incidents"); err != nil {
		t.Fatal(err)
	}
	moved := w.Forge.Repo("others/incidents")
	said := forge.Event{Forge: "gitea", Delivery: "moved", Repo: moved, OrgID: moved.OwnerID, Number: n, Action: forge.ActionCreated,
		Object: forge.Object{Kind: forge.ObjectComment, ID: 77}, Sender: adam, Author: adam, Body: "hello"}
	w.Forge.SetDown(true)
	if got, err := w.Bot.Accept(t.Context(), said); err == nil {
		t.Errorf("without the forge's word: %s, want an error, for the sender to be told 503", got)
	}
	w.Forge.SetDown(false)
	if got, err := w.Bot.Accept(t.Context(), said); err != nil || got != bot.OutcomeTaken {
		t.Errorf("accepting: %s, %v", got, err)
	}
}
