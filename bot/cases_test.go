package bot_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"playbook-bot/bot"
	"playbook-bot/bot/forge/forgetest"
	"playbook-bot/bot/golden"
	"playbook-bot/bot/webhook"
)

// The tests TestCaseNN are the faults that programs of this kind have had, by
// their number in the collection, each with its neighbours.

// TestCase01_doublePost: the forge stores the comment and then fails; the
// answer is found by its marker and the bot's own account, also by another
// replica.
func TestCase01_doublePost(t *testing.T) {
	faults := map[string]forgetest.Fault{
		"500":                    forgetest.AnswerDone(500),
		"dropped":                forgetest.DroppedDone(),
		"after the timeout":      forgetest.Late(30 * time.Second),
		"done after the timeout": forgetest.LateDone(11 * time.Second),
		"truncated":              {Truncate: true},
		"a gateway's page":       {Status: 504, Done: true, Body: "<html>"},
	}
	for name, f := range faults {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(w *world) {
				n := w.opens("adam", "search is down")
				w.forge.OrderKind("comment.create", f)
				w.posts("adam", n, "/restart full_mcp_restart")
				w.advance(5 * time.Minute)
				w.wantHeads(n, refused)
				w.quiet()
			})
		})
		t.Run(name+", and another replica takes over", func(t *testing.T) {
			inBubble(t, func(w *world) {
				n := w.opens("adam", "search is down")
				w.forge.OrderKind("comment.create", f)
				w.crashAt("posted")
				w.posts("adam", n, "/restart full_mcp_restart")
				w.crashes()
				w.advance(5 * time.Minute)
				w.wantHeads(n, refused)
				w.quiet()
			})
		})
	}
	t.Run("somebody copies the answer with its marker", func(t *testing.T) {
		inBubble(t, func(w *world) {
			n := w.opens("adam", "search is down")
			w.says("adam", n, "/restart full_mcp_restart")
			w.says("wren", n, w.answers(n)[0].Body)
			w.forge.OrderKind("comment.create", forgetest.DroppedDone())
			w.posts("wren", n, "/playbook metrics")
			w.advance(5 * time.Minute)
			w.wantHeads(n, refused, "One line", "attempts")
		})
	})
}

// TestCase02_lostWork: the process dies at every boundary, is started again
// and is told the same again: done exactly once.
func TestCase02_lostWork(t *testing.T) {
	points := []string{"reading", "read", "listed", "deciding", "decided", "claiming", "claimed", "posted", "recorded",
		"labelling", "labelled", "reacting", "reacted", "releasing", "released"}
	for _, point := range points {
		for _, again := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, redelivered %v", point, again), func(t *testing.T) {
				inBubble(t, func(w *world) {
					n := w.opens("adam", "/restart full_mcp_restart")
					w.crashAt(point)
					w.posts("wren", n, "/attempt client_reconnect failed")
					w.crashes()
					if again {
						all := w.forge.Deliveries()
						w.forge.Send(w.forge.Redelivered(last(all, "issue_comment created", 4)))
					}
					w.advance(5 * time.Minute)
					w.wantHeads(n, refused, nowOK)
					if got := w.forge.Labels(repoName, n); !slices.Equal(got, []string{"recovery/approved"}) {
						t.Errorf("labels %v", got)
					}
					w.quiet()
				})
			})
		}
	}
	t.Run("an unfinished row blocks no redelivery", func(t *testing.T) {
		inBubble(t, func(w *world) {
			n := w.opens("adam", "search is down")
			w.forge.SetDown(true)
			w.posts("adam", n, "/restart full_mcp_restart")
			w.settle()
			w.restart()
			w.forge.Settle()
			all := w.forge.Deliveries()
			w.forge.Send(w.forge.Redelivered(all[len(all)-1]), all[len(all)-1])
			w.forge.SetDown(false)
			w.advance(10 * time.Minute)
			w.wantHeads(n, refused)
			w.quiet()
		})
	})
}

// last finds the newest delivery of a kind whose sender is an account.
func last(all []forgetest.Delivery, event string, sender int64) forgetest.Delivery {
	for i := len(all) - 1; i >= 0; i-- {
		if all[i].Event == event && strings.Contains(string(all[i].Body), fmt.Sprintf(`"sender": {
    "id": %d,`, sender)) {
			return all[i]
		}
	}
	return forgetest.Delivery{}
}

// runs posts a comment in a new thread and gives what the bot answered.
func (w *world) answerTo(as, body string) []string {
	w.t.Helper()
	n := w.opens("olivia", "search is down")
	w.says(as, n, body)
	return w.heads(n)
}

// TestCase03_CRLF: line ends are not part of an argument.
func TestCase03_CRLF(t *testing.T) {
	for name, body := range map[string]string{
		"CRLF": "/restart full_mcp_restart\r\nplease\r\n", "CR": "/restart full_mcp_restart\rplease\r", "LF": "/restart full_mcp_restart\nplease\n",
		"mixed": "hello\r\n\r/restart full_mcp_restart\r\n\nplease"} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(w *world) {
				if got := w.answerTo("adam", body); len(got) != 1 || !strings.HasSuffix(got[0], "Refused for now: `full_mcp_restart`") {
					t.Errorf("answers %q", got)
				}
			})
		})
	}
}

// TestCase04_pagination: a server that gives the same page for every page is
// not followed for ever, and nothing is taken twice.
func TestCase04_pagination(t *testing.T) {
	inBubble(t, func(w *world) {
		n := w.opens("adam", "/restart full_mcp_restart")
		w.forge.Hold(true)
		for i := range 120 {
			w.posts("wren", n, fmt.Sprintf("line %d of a long story", i))
		}
		w.posts("adam", n, "/attempt client_reconnect failed")
		w.forge.Take()
		w.forge.Hold(false)
		pass(time.Minute)
		for _, kind := range []string{"comment.updated", "issue.updated", "comment.list", "label.list", "repo.list", "team.list"} {
			w.forge.OrderKind(kind, forgetest.SamePage())
		}
		w.forge.ResetCalls()
		w.sweep()
		w.sweep()
		if calls := w.forge.CallCounts()["comment.updated"]; calls > 8 {
			t.Errorf("%d pages asked for", calls)
		}
		w.advance(6 * time.Minute)
		if st := w.state(n); st.Request == nil || len(w.answers(n)) > 2 {
			t.Errorf("state %+v, said %v", st, w.heads(n))
		}
	})
	t.Run("no total, no end", func(t *testing.T) {
		inBubble(t, func(w *world) {
			w.opens("adam", "/restart full_mcp_restart")
			endless := forgetest.SamePage()
			endless.Rewrite = func(b []byte) []byte { return b }
			w.forge.OrderKind("issue.updated", endless)
			w.forge.OrderKind("comment.updated", endless)
			w.noTotals = true
			w.forge.ResetCalls()
			w.sweep()
			if calls := w.forge.CallCounts(); calls["issue.updated"] > 3 || calls["comment.updated"] > 3 {
				t.Errorf("calls %v", calls)
			}
		})
	})
}

// TestCase05_duplicateDelivery: one comment under two delivery ids, by the
// repository's and the organisation's hook, at once, on two replicas.
func TestCase05_duplicateDelivery(t *testing.T) {
	inBubble(t, func(w *world) {
		org, err := w.client.AccountByLogin(context.Background(), "ops")
		w.must(err)
		w.forge.AddOrgHook("ops", webhook.HookSecret(golden.Secret, "gitea", webhook.ScopeOrg, org.ID))
		n := w.opens("adam", "search is down")
		w.forge.Hold(true)
		w.posts("adam", n, "/restart full_mcp_restart")
		w.posts("wren", n, "/attempt client_reconnect failed")
		held := w.forge.Take()
		w.forge.Hold(false)
		if len(held) != 4 {
			t.Fatalf("%d deliveries, want two hooks' of two comments", len(held))
		}
		var all sync.WaitGroup
		for _, d := range append(held, held...) {
			all.Go(func() { w.forge.Send(w.forge.Redelivered(d)) })
		}
		other := w.replica()
		all.Go(func() { w.must(w.bot.Drain(context.Background())) })
		all.Go(func() { w.must(other.Drain(context.Background())) })
		all.Wait()
		w.advance(time.Minute)
		w.wantHeads(n, refused, nowOK)
		w.quiet()
	})
}

// TestCase06_selfAnswer: nothing by the bot's own account is a command, by its
// id and not its name; and no answer's line begins with a live command.
func TestCase06_selfAnswer(t *testing.T) {
	inBubble(t, func(w *world) {
		n := w.opens("adam", "search is down")
		w.says(botLogin, n, "/restart full_mcp_restart")
		w.forge.RenameAccount(botLogin, "robot")
		w.says("robot", n, "/restart full_mcp_restart")
		w.restart() // it does not know yet who it is
		w.says("robot", n, "/restart host_restart")
		if got := w.forge.Comments(repoName, n); len(got) != 3 {
			t.Errorf("%d comments: %v", len(got), w.heads(n))
		}
		for _, c := range w.forge.Comments(repoName, n) {
			w.must(w.forge.DeleteComment("robot", c.ID))
		}
		w.says("adam", n, "/playbook help")
		w.says("adam", n, "/restart host_restart")
		w.says("wren", n, "@robot restart full_mcp_restart")
		for _, c := range w.answers(n) {
			fence := false
			for line := range strings.Lines(c.Body) {
				fence = fence != strings.HasPrefix(strings.TrimSpace(line), "```")
				if trimmed := strings.TrimLeft(line, " >*-+"); !fence && strings.HasPrefix(trimmed, "/") {
					t.Errorf("a live line in an answer: %q", line)
				}
			}
		}
		w.quiet()
	})
}

// TestCase07_editReruns: an edit, or a save without change, runs nothing.
func TestCase07_editReruns(t *testing.T) {
	inBubble(t, func(w *world) {
		n := w.opens("adam", "search is down")
		id := w.says("adam", n, "/restart full_mcp_restart", "with a tpyo")
		a := w.says("wren", n, "/attempt worker_restart partial", "a tpyo")
		w.edits("adam", id, "/restart full_mcp_restart", "with a typo")
		w.edits("adam", id, "/restart full_mcp_restart", "with a typo")
		w.edits("wren", a, "/attempt worker_restart partial", "a typo")
		w.edits("olivia", a, "/attempt worker_restart partial", "a typo!")
		w.wantHeads(n, refused, recorded)
		if r := w.state(n).Request; r == nil || r.ID != fmt.Sprintf("%d/1", n) {
			t.Errorf("request %+v", r)
		}
		w.edits("adam", id, "/restart host_restart")
		if r := w.state(n).Request; r != nil {
			t.Errorf("its line is gone, and the request stays: %+v", r)
		}
		w.wantHeads(n, refused, recorded)
	})
}

// TestCase08_deleteReruns: a deletion runs nothing, and drops a command that
// still waits.
func TestCase08_deleteReruns(t *testing.T) {
	inBubble(t, func(w *world) {
		n := w.opens("adam", "search is down")
		id := w.says("adam", n, "/restart full_mcp_restart")
		w.deletes("adam", id)
		w.wantHeads(n, refused)
		if w.state(n).Request != nil {
			t.Error("the request outlives its line")
		}
		w.forge.Hold(true)
		id = w.posts("adam", n, "/restart host_restart")
		w.must(w.forge.DeleteComment("adam", id))
		w.forge.Hold(false)
		w.advance(2 * time.Minute)
		w.wantHeads(n, refused)
		w.quiet()

		// The two in the wrong order, and one of them alone.
		w.forge.Hold(true)
		id = w.posts("adam", n, "/restart host_restart")
		w.must(w.forge.DeleteComment("adam", id))
		held := w.forge.Take()
		w.forge.Hold(false)
		w.forge.Send(held[1])
		w.settle()
		w.forge.Send(held[0])
		w.advance(2 * time.Minute)
		w.wantHeads(n, refused)
		w.quiet()
	})
}

// TestCase09_quotesAndCode and TestCase10_htmlComment: what is shown as text
// is text.
func TestCase09_quotesAndCode(t *testing.T) {
	inBubble(t, func(w *world) {
		for name, body := range map[string]string{
			"backquotes": "look:\n```\n/restart full_mcp_restart\n```\nno?", "tildes": "look:\n~~~\n/restart full_mcp_restart\n~~~\nno?",
			"longer fence": "so:\n````\n```\n/restart full_mcp_restart\n```\n````\n.", "quote": "> /restart full_mcp_restart\n\nno",
			"inline": "say `/restart full_mcp_restart` then", "inline, first": "`/restart full_mcp_restart`",
			"indented": "so:\n\n    /restart full_mcp_restart\n\nno", "a heading": "# /restarts\n"} {
			if got := w.answerTo("adam", body); len(got) != 0 {
				t.Errorf("%s: %q", name, got)
			}
		}
	})
}

func TestCase10_htmlComment(t *testing.T) {
	inBubble(t, func(w *world) {
		for name, body := range map[string]string{
			"a command": "<!--\n/restart full_mcp_restart\n-->", "unclosed": "<!--\n/restart full_mcp_restart\n",
			"unclosed in the middle": "hi\n\n<!-- template\n\n/restart full_mcp_restart\n"} {
			if got := w.answerTo("adam", body); len(got) != 0 {
				t.Errorf("%s: %q", name, got)
			}
		}
		n := w.opens("adam", "<!--\n```attempts\n[{\"action\":\"client_reconnect\",\"outcome\":\"failed\"}]\n```\n-->")
		w.says("adam", n, "/restart full_mcp_restart")
		w.wantHeads(n, refused)
	})
}

// crashAt has the next bot's process die at a boundary of the ledger, once.
func (w *world) crashAt(point string) { w.crash = point }

type crash struct{ point string }

// crashes lets the bot work until it dies, and starts another.
func (w *world) crashes() {
	w.t.Helper()
	w.forge.Settle()
	if !w.dies() {
		w.t.Fatalf("the process never came by %q", w.crash)
	}
	w.crash = ""
	w.restart()
}

// dies works until the bot dies, or has nothing left to do.
func (w *world) dies() (died bool) {
	w.t.Helper()
	defer func() {
		if p := recover(); p != nil {
			if _, ok := p.(crash); !ok {
				panic(p)
			}
			died = true
		}
	}()
	w.must(w.bot.Drain(context.Background()))
	return false
}

// replica is a second bot on the same database.
func (w *world) replica() *bot.Bot {
	w.t.Helper()
	first, intake := w.bot, w.intake
	w.restart()
	second := w.bot
	w.bot, w.intake = first, intake
	w.forge.SetSink(forgetest.HandlerSink(intake))
	return second
}
