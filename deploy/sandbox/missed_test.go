//go:build unix

package main

import (
	"testing"

	"playbook-bot/deploy/sandbox/internal/tracker"
)

// TestWhatWasMissedIsFound shows that a command written while no bot runs –
// Gitea's delivery of it fails and is never repeated – is answered after the
// next start, once.
func TestWhatWasMissedIsFound(t *testing.T) {
	t.Parallel()
	repo, ctx := newRepo(t), t.Context()
	b := startBot(t, repo)
	number := must(repo.Open(ctx, "rhea", "search is down", "Since noon."))(t)
	answer := func(what string, after int64) tracker.Entry {
		t.Helper()
		thread := must(tracker.Await(bounded(t, what), repo, number, func(thread tracker.Thread) bool {
			return len(thread.After(after, botLogin)) > 0
		}))(t)
		return thread.After(after, botLogin)[0]
	}
	first := must(repo.Comment(ctx, "rhea", number, "/recommend stale_capability"))(t)
	answer("an answer while the bot runs", first)

	b.Kill()
	missed := must(repo.Comment(ctx, "wren", number, "/restart full_mcp_restart"))(t)
	ok(t, b.Start(ctx))
	answer("an answer to what was missed", missed)

	// By the time this is answered, a second answer to the other would be too.
	last := must(repo.Comment(ctx, "rhea", number, "/playbook ladder"))(t)
	answer("an answer after the restart", last)
	thread := must(repo.Thread(ctx, number))(t)
	if got := len(thread.After(0, botLogin)); got != 3 {
		t.Errorf("%d answers to three commands", got)
	}
}
