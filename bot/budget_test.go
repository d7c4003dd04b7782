package bot_test

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// talk fills a thread with n comments that ask for nothing, from long ago.
func (w *world) talk(number int64, n int) {
	for i := range n {
		w.forge.ImportComment(repoName, number, "rhea", "", fmt.Sprintf("remark %d", i), time.Now().Add(-48*time.Hour))
	}
}

// calls counts the API calls of an act, reactions and labels left out.
func (w *world) calls(act func()) map[string]int {
	w.forge.ResetCalls()
	act()
	got := map[string]int{}
	for _, c := range w.forge.Calls() {
		switch {
		case strings.HasPrefix(c.Kind, "reaction."), strings.HasPrefix(c.Kind, "label."):
		case c.As == botLogin:
			got[c.Kind]++
		}
		if c.Kind == "comment.create" && c.As == botLogin {
			return got // what follows is for labels
		}
	}
	return got
}

func total(calls map[string]int) int {
	sum := 0
	for _, n := range calls {
		sum += n
	}
	return sum
}

// TestCallBudget: an answer costs two calls beside reaction and labels, and an
// approval three, however long the thread is.
func TestCallBudget(t *testing.T) {
	for _, length := range []int{10, 1000, 10000} {
		if length > 1000 && testing.Short() {
			continue
		}
		t.Run(fmt.Sprint(length), func(t *testing.T) {
			inBubble(t, func(w *world) {
				n := w.opens("adam", "search is down")
				w.talk(n, length)
				w.says("adam", n, "/restart worker_restart") // reads the thread, once
				w.says("wren", n, "/assess worker_restart")
				within := func(what string, budget int, as, body string) {
					t.Helper()
					got := w.calls(func() { w.says(as, n, body) })
					t.Logf("%s: %v", what, got)
					// Before an approval the repository's own playbook is read
					// afresh, at the two places where it may be.
					if looks := got["file.read"]; looks > 0 && (budget < 3 || looks > 2) {
						t.Errorf("%s: %d looks for the repository's playbook", what, looks)
					}
					delete(got, "file.read")
					if total(got) > budget {
						t.Errorf("%s: %v, want %d", what, got, budget)
					}
				}
				within("help", 2, "adam", "/playbook help")
				within("a refusal", 2, "adam", "/restart full_mcp_restart")
				within("a remark", 1, "wren", "what a day")
				within("neutral evidence", 2, "wren", "/attempt capability_refresh partial")
				within("an approval by evidence", 3, "wren", "/attempt client_reconnect failed")
				within("a pointer", 2, "adam", "/restart full_mcp_restart")
				within("a withdrawal", 2, "adam", "/withdraw")
				within("an approval at once", 3, "adam", "/restart full_mcp_restart")
				within("the end", 2, "adam", "/resolved full_mcp_restart")
			})
		})
	}
}

// TestColdBudget: a thread that the database does not know costs one listing.
func TestColdBudget(t *testing.T) {
	inBubble(t, func(w *world) {
		n := w.opens("adam", "search is down")
		for i := range 30 {
			w.says("rhea", n, fmt.Sprintf("remark %d", i))
		}
		w.says("adam", n, "/restart full_mcp_restart")
		w.says("wren", n, "/attempt client_reconnect failed")
		w.says("wren", n, "```json\n[{\"action\": \"capability_refresh\", \"outcome\": \"failed\"}]\n```")
		for i := range 30 {
			w.says("rhea", n, fmt.Sprintf("remark %d again", i))
		}
		said := len(w.answers(n))
		pass(time.Minute)
		w.loseDatabase()
		got := w.calls(func() { w.sweep() })
		if got["comment.list"] > 2 || got["comment.read"] > 5 {
			t.Errorf("a thread of 65 young comments cost %v", got)
		}
		t.Logf("a rebuild: %v", got)
		if len(w.answers(n)) != said {
			t.Errorf("answered again: %q", w.heads(n))
		}
		if st := w.state(n); st.Approval != nil || st.Request == nil || !st.Request.MustAsk {
			t.Errorf("state %+v", st)
		}
	})
}
