package bot_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"playbook-bot/bot"
	"playbook-bot/bot/forge"
	"playbook-bot/bot/golden"
)

// TestLimitOfAnAccount: ten answers an hour in a thread, whatever the account
// posts; its records are taken in all the same.
func TestLimitOfAnAccount(t *testing.T) {
	record := func(i int) string {
		return fmt.Sprintf("```json\n{\"action\": \"worker_restart\", \"outcome\": \"skipped\", \"reason\": \"%d\"}\n```", i)
	}
	for name, say := range map[string]func(i int) string{
		"commands":            func(int) string { return "/recommend" },
		"attempts":            func(i int) string { return fmt.Sprintf("/attempt worker_restart skipped %d", i) },
		"records in a fence":  record,
		"what cannot be read": func(i int) string { return fmt.Sprintf("/attempt nonsense_%d failed", i) },
		"other requests":      func(i int) string { return fmt.Sprintf("/restart worker_restart target=t%d", i) },
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(w *world) {
				n := w.opens("wren", "/restart full_mcp_restart")
				w.says("olivia", n, "/playbook ladder")
				before := len(w.answers(n))
				var last int64
				for i := range 20 {
					last = w.says("wren", n, say(i))
				}
				// The one to wren's opening counts too.
				if got := len(w.answers(n)) - before; got != 9 {
					t.Errorf("%d answers more", got)
				}
				if got := w.reactions(n, last); strings.HasPrefix(say(0), "/") && (len(got) != 1 || got[0] != forge.ReactionConfused) {
					t.Errorf("reactions %v", got)
				}
				w.says("olivia", n, "/playbook metrics")
				if got := len(w.answers(n)) - before; got != 10 {
					t.Error("one account's limit withholds another's answer")
				}
				pass(time.Hour)
				w.says("wren", n, say(99))
				if got := len(w.answers(n)) - before; got != 11 {
					t.Error("no answer an hour later")
				}
				w.quiet()
			})
		})
	}
}

// TestLimitWithholdsNoRevocation: over the limit records are taken in, and
// what follows from them for another is said.
func TestLimitWithholdsNoRevocation(t *testing.T) {
	inBubble(t, func(w *world) {
		n := w.opens("adam", "/restart full_mcp_restart")
		for range 12 {
			w.says("wren", n, "/recommend")
		}
		before := len(w.answers(n))
		id := w.says("wren", n, "/attempt client_reconnect failed")
		if st := w.state(n); st.Approval == nil || len(w.answers(n)) != before+1 {
			w.t.Fatalf("one account's limit withholds another's answer: %q", w.heads(n))
		}
		w.edits("wren", id, "never mind")
		if st := w.state(n); st.Approval != nil || len(w.answers(n)) != before+2 {
			t.Errorf("the limit withholds a revocation: %q", w.heads(n))
		}
		w.quiet()
	})
}

// TestLimitOfEdits: edits are answered, where at all, within the same limit.
func TestLimitOfEdits(t *testing.T) {
	form := func(i int) string {
		return fmt.Sprintf("### Requested class\n\nfull_mcp_restart\n\n### Target\n\nt%d\n", i)
	}
	t.Run("forms", func(t *testing.T) {
		inBubble(t, func(w *world) {
			n := w.opens("rhea", form(0))
			if len(w.answers(n)) != 1 {
				w.t.Fatalf("the form was not read: %q", w.heads(n))
			}
			for i := range 20 {
				body := form(i + 1)
				w.must(w.forge.EditIssue("rhea", repoName, n, nil, &body))
				w.settle()
				breath()
			}
			if got := len(w.answers(n)); got != 10 {
				t.Errorf("%d answers", got)
			}
			w.quiet()
		})
	})
	t.Run("hints", func(t *testing.T) {
		inBubble(t, func(w *world) {
			n := w.opens("olivia", "x")
			for range 20 {
				id := w.says("rhea", n, "a word")
				w.edits("rhea", id, "/restart host_restart")
			}
			if got := len(w.answers(n)); got != 10 {
				t.Errorf("%d answers", got)
			}
			w.quiet()
		})
	})
	t.Run("to and fro", func(t *testing.T) {
		inBubble(t, func(w *world) {
			n := w.opens("adam", "/restart full_mcp_restart")
			id := w.says("adam", n, "/attempt client_reconnect failed")
			for range 20 {
				w.edits("adam", id, "/attempt client_reconnect partial")
				w.edits("adam", id, "/attempt client_reconnect failed")
			}
			if got := len(w.answers(n)); got > 20 {
				t.Errorf("%d answers", got)
			}
			w.quiet()
		})
	})
}

// TestLimitOfACrowd: thirty answers an hour in a thread to accounts below
// write together; those who have write are answered all the same.
func TestLimitOfACrowd(t *testing.T) {
	crowd := append([]golden.Person{}, people...)
	for i := range 8 {
		crowd = append(crowd, golden.Person{Login: fmt.Sprintf("reader%d", i), Permission: "read"})
	}
	inBubbleWith(t, worldOptions{people: crowd}, func(w *world) {
		n := w.opens("olivia", "x")
		for i := range 8 {
			for range 6 {
				w.says(fmt.Sprintf("reader%d", i), n, "/recommend")
			}
		}
		if got := len(w.answers(n)); got != 30 {
			t.Errorf("%d answers to the crowd", got)
		}
		w.says("wren", n, "/recommend")
		w.says("adam", n, "/restart host_restart")
		if got := len(w.answers(n)); got != 32 {
			t.Errorf("those with write were not answered: %d", got)
		}
	})
}

// TestTwoBots: two that answer each other end, whatever the other says back.
func TestTwoBots(t *testing.T) {
	for name, reply := range map[string]func(i int) string{
		"a command":     func(int) string { return "/restart full_mcp_restart" },
		"help":          func(int) string { return "@playbook-bot please" },
		"our own words": nil,
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(w *world) {
				n := w.opens("rhea", "/restart full_mcp_restart")
				said := 1
				for i := range 200 {
					all := w.answers(n)
					if len(all) < said {
						break
					}
					said = len(all) + 1
					words := all[len(all)-1].Body
					if reply != nil {
						words = reply(i)
					}
					w.says("rhea", n, words)
				}
				if got := len(w.answers(n)); got > 11 {
					t.Errorf("the bot said %d things", got)
				}
			})
		})
	}
}

// TestIgnoredAccounts: what they do is not even stored, nor found by a sweep.
func TestIgnoredAccounts(t *testing.T) {
	o := worldOptions{change: func(c *bot.Config) { c.Ignored = func(login string) bool { return login == "wren" } }}
	inBubbleWith(t, o, func(w *world) {
		n := w.opens("adam", "/restart full_mcp_restart")
		w.says("wren", n, "/attempt client_reconnect failed")
		w.says("wren", n, "/withdraw")
		pass(time.Minute)
		w.sweep()
		w.wantHeads(n, refused)
		w.quiet()
		w.says("adam", n, "/attempt capability_refresh failed")
		w.wantHeads(n, refused, nowOK)
		w.loseDatabase()
		w.sweep()
		w.says("adam", n, "/restart full_mcp_restart")
		w.wantHeads(n, refused, nowOK, approved)
		if st := w.state(n); st.Approval == nil {
			t.Errorf("said %q", w.heads(n))
		}
	})
}

// TestOwnAccountRenamed: the bot goes on under its new name, and what it said
// under the old one stays its own.
func TestOwnAccountRenamed(t *testing.T) {
	inBubble(t, func(w *world) {
		n := w.opens("adam", "/restart full_mcp_restart")
		w.forge.RenameAccount(botLogin, "robot")
		w.says("wren", n, "/attempt client_reconnect failed")
		w.wantHeads(n, refused, nowOK)
		w.loseDatabase()
		w.sweep()
		w.wantHeads(n, refused, nowOK)
		w.says("adam", n, "@robot restart full_mcp_restart")
		w.wantHeads(n, refused, nowOK, approved)
		w.quiet()
	})
}
