package bot_test

import (
	"context"
	"strings"
	"testing"
)

// TestColdTenThousand: a thread of ten thousand comments is read anew in a
// listing or two, and what was open in it is known.
func TestColdTenThousand(t *testing.T) {
	if testing.Short() {
		t.Skip("10,000 comments")
	}
	inBubble(t, func(w *world) {
		n := w.opens("adam", "search is down")
		w.talk(n, 10_000)
		w.says("adam", n, "/restart full_mcp_restart")
		w.loseDatabase()
		w.must(w.bot.Sweep(context.Background(), "gitea"))
		w.forge.ResetCalls()
		w.settle()
		if got := w.forge.CallCounts(); got["comment.list"] > 2 || got["comment.read"] > 3 {
			t.Errorf("calls %v", got)
		}
		w.says("wren", n, "/attempt client_reconnect failed")
		w.says("adam", n, "/restart full_mcp_restart")
		if st := w.state(n); st.Approval == nil {
			t.Errorf("said %q", strings.Join(w.heads(n), "; "))
		}
		w.quiet()
	})
}
