package bot_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"playbook-bot/bot"
)

// TestNothingIsClaimedBeforeTheForgeIsMet: while a forge is away at start its
// deliveries come all the same, or will in a burst. To claim their threads and
// put them off again costs transactions that the deliveries wait for.
func TestNothingIsClaimedBeforeTheForgeIsMet(t *testing.T) {
	inBubble(t, func(w *world) {
		var claimed atomic.Int64
		w.change = func(c *bot.Config) {
			c.Fail = func(point string) {
				if point == "acquired" {
					claimed.Add(1)
				}
			}
		}
		w.forge.SetDown(true)
		w.restart()
		ctx, stop := context.WithCancel(context.Background())
		var running sync.WaitGroup
		running.Go(func() { w.must(w.bot.Run(ctx, time.Second)) })
		defer running.Wait()
		defer stop()

		number, err := w.forge.OpenIssue("rhea", repoName, "search is down", "/recommend transport_eof")
		w.must(err)
		w.forge.Settle()
		pass(2 * time.Minute)
		if n := claimed.Load(); n != 0 {
			t.Errorf("claimed %d times while there was nobody to ask", n)
		}
		w.forge.SetDown(false)
		pass(2 * time.Minute)
		if got := w.forge.CommentsBy(botLogin, repoName, number); claimed.Load() == 0 || len(got) != 1 {
			t.Errorf("after the forge came back: claimed %d times, %d answers, want some and 1", claimed.Load(), len(got))
		}
	})
}
