package bot_test

import (
	"testing"
	"time"

	"playbook-bot/bot/golden"
)

// TestALostDatabaseAnswersNothingTwice, also where the sweep, and not the next
// comment, finds the thread: then every text of the last day comes as an event.
func TestALostDatabaseAnswersNothingTwice(t *testing.T) {
	for _, age := range []time.Duration{0, time.Minute, 23 * time.Hour, 48 * time.Hour} {
		t.Run(age.String(), func(t *testing.T) {
			a := newAudited(t)
			if err := a.w.Advance(age); err != nil {
				t.Fatal(err)
			}
			before := len(a.w.Forge.CommentsBy(a.w.BotLogin(), golden.RepoName, a.thread.Number))
			if err := a.w.LoseDatabase(); err != nil {
				t.Fatal(err)
			}
			if err := a.w.Sweep(); err != nil {
				t.Fatal(err)
			}
			if n := len(a.w.Forge.CommentsBy(a.w.BotLogin(), golden.RepoName, a.thread.Number)); n != before {
				t.Errorf("%d answers became %d", before, n)
			}
		})
	}
}
