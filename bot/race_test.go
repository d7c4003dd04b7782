package bot_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"playbook-bot/bot/forge/forgetest"
)

// TestEditRacesApproval: an edit or deletion that would have revoked an
// approval ends in the same state whether it comes before it, after it, or
// while the bot is at it, and whichever delivery arrives first.
func TestEditRacesApproval(t *testing.T) {
	acts := map[string]func(w *world, evidence, trigger int64){
		"the evidence is edited away": func(w *world, evidence, _ int64) {
			w.must(w.forge.EditComment("wren", evidence, "/attempt client_reconnect partial"))
		},
		"the evidence is edited by another": func(w *world, evidence, _ int64) {
			w.must(w.forge.EditComment("olivia", evidence, "/attempt capability_refresh failed"))
		},
		"the evidence is deleted": func(w *world, evidence, _ int64) { w.must(w.forge.DeleteComment("wren", evidence)) },
		"the line is edited away": func(w *world, _, trigger int64) {
			w.must(w.forge.EditComment("adam", trigger, "never mind"))
		},
		"the line is deleted": func(w *world, _, trigger int64) { w.must(w.forge.DeleteComment("adam", trigger)) },
		"the issue is closed": func(w *world, _, _ int64) { w.must(w.forge.CloseIssue("adam", repoName, w.numbers[0])) },
		"the issue is reopened": func(w *world, _, _ int64) {
			w.must(w.forge.CloseIssue("adam", repoName, w.numbers[0]))
			w.must(w.forge.Reopen("adam", repoName, w.numbers[0]))
		},
	}
	for name, act := range acts {
		t.Run(name, func(t *testing.T) {
			var want string
			for when, order := range map[string]func(w *world, act func()){
				"after": func(w *world, act func()) {
					w.asksAgain()
					w.settle()
					act()
				},
				"at once": func(w *world, act func()) {
					w.forge.Hold(true)
					w.asksAgain()
					act()
					w.forge.Hold(false)
				},
				"at once, the other way round": func(w *world, act func()) {
					w.forge.Hold(true)
					w.asksAgain()
					act()
					held := w.forge.Take()
					w.forge.Hold(false)
					for i := len(held) - 1; i >= 0; i-- {
						w.forge.Send(held[i])
					}
				},
				"while the thread is listed": func(w *world, act func()) { w.during("listed", act) },
				"while it is decided":        func(w *world, act func()) { w.during("deciding", act) },
				"while it is posted":         func(w *world, act func()) { w.during("claimed", act) },
				"unheard": func(w *world, act func()) {
					w.asksAgain()
					w.settle()
					w.forge.Hold(true)
					act()
					w.forge.Take()
					w.forge.Hold(false)
					pass(time.Minute)
					w.sweep()
				},
			} {
				if name == "the issue is reopened" && (when == "unheard" || when == "at once, the other way round") {
					// Nothing on the forge's API tells of what came and went, and
					// a closing that is heard of after the reopening looks like an
					// old delivery sent again.
					continue
				}
				inBubble(t, func(w *world) {
					n := w.opens("olivia", "search is down")
					evidence := w.says("wren", n, "/attempt client_reconnect failed")
					order(w, func() { act(w, evidence, w.lastBy("adam", n)) })
					w.advance(2 * time.Minute)
					st := w.state(n)
					got := fmt.Sprintf("closed=%v approved=%v", st.Closed, st.Approval != nil)
					if st.Request != nil {
						got += fmt.Sprintf(" %s %s", st.Request.ID, st.verdict())
					}
					if want == "" {
						want = got
					}
					if got != want || st.Approval != nil {
						t.Errorf("%s: %s, elsewhere %s; said %q", when, got, want, w.heads(n))
					}
					w.quiet()
				})
			}
		})
	}
}

// asksAgain posts the request that the evidence allows.
func (w *world) asksAgain() { w.posts("adam", w.numbers[0], "/restart full_mcp_restart") }

// during has something happen on the forge while the bot is at a point of its
// work on the request.
func (w *world) during(point string, act func()) {
	w.t.Helper()
	w.at = point
	w.then = act
	w.asksAgain()
	w.settle()
	if w.then != nil {
		w.t.Fatalf("it never came by %q", point)
	}
}

// TestReplicaBehind: a read replica that shows a new comment late loses no
// command, no record and no answer.
func TestReplicaBehind(t *testing.T) {
	t.Run("single reads", func(t *testing.T) {
		inBubble(t, func(w *world) {
			n := w.opens("adam", "/restart full_mcp_restart")
			behind := w.forge.OrderKind("comment.read", forgetest.Answer(404).For(-1))
			w.restart() // so that it is not read from a listing
			w.forge.Hold(true)
			w.posts("wren", n, "/attempt client_reconnect failed")
			held := w.forge.Take()
			w.forge.Hold(false)
			w.forge.Send(held...)
			w.restart()
			w.settleFor(2 * time.Minute)
			behind.Cancel()
			w.live(10 * time.Minute)
			w.wantHeads(n, refused, nowOK)
			w.quiet()
		})
	})
	t.Run("listings", func(t *testing.T) {
		inBubble(t, func(w *world) {
			n := w.opens("adam", "/restart full_mcp_restart")
			behind := w.forge.OrderKind("comment.list", forgetest.Stale(0))
			w.posts("wren", n, "/attempt client_reconnect failed")
			w.settle()
			behind.Cancel()
			w.live(10 * time.Minute)
			w.wantHeads(n, refused, nowOK)
			if st := w.state(n); st.Approval == nil {
				t.Errorf("state %+v", st.Request)
			}
			w.quiet()
		})
	})
	t.Run("an answer's own comment", func(t *testing.T) {
		inBubble(t, func(w *world) {
			n := w.opens("adam", "search is down")
			behind := w.forge.OrderKind("comment.list", forgetest.Stale(1))
			w.forge.OrderKind("comment.create", forgetest.AnswerDone(500))
			w.posts("adam", n, "/restart full_mcp_restart")
			w.settleFor(2 * time.Minute)
			behind.Cancel()
			w.live(15 * time.Minute)
			w.wantHeads(n, refused)
			if w.observed("double_deleted") != 1 {
				t.Errorf("%d doubles deleted", w.observed("double_deleted"))
			}
			w.quiet()
		})
	})
}

// TestRestoredOnce: what others do to the bot's comments is undone once, also
// after the database was lost.
func TestRestoredOnce(t *testing.T) {
	for _, lost := range []bool{false, true} {
		t.Run(fmt.Sprintf("database lost %v", lost), func(t *testing.T) {
			inBubble(t, func(w *world) {
				n := w.opens("adam", "/restart full_mcp_restart")
				w.says("olivia", n, "/playbook ladder")
				if lost {
					w.loseDatabase()
					w.sweep()
				}
				first, second := w.answers(n)[0], w.answers(n)[1]
				w.edits("wren", first.ID, strings.Replace(first.Body, "Refused", "Approved", 1))
				w.wantHeads(n, refused, "ladder")
				w.deletes("wren", second.ID)
				w.wantHeads(n, refused, postedAgain)
				again := w.answers(n)[1]
				w.deletes("wren", again.ID)
				w.wantHeads(n, refused)
				w.edits("wren", first.ID, "gone")
				w.excused = true
				if got := w.answers(n)[0].Body; got != "gone" {
					t.Errorf("restored a second time")
				}
				w.quiet()
				w.loseDatabase()
				w.sweep()
				w.advance(10 * time.Minute)
				if got := len(w.answers(n)); got > 3 {
					t.Errorf("%d answers after a rebuild: %q", got, w.heads(n))
				}
			})
		})
	}
}
