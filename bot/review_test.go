package bot_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"playbook-bot/bot/golden"
)

// TestARestoredApprovalIsNoNewOne: whoever deletes an approval that was revoked
// since gets it posted again, below the revocation; it must not read as if the
// bot had just approved.
func TestARestoredApprovalIsNoNewOne(t *testing.T) {
	inBubble(t, func(w *world) {
		w.excused = true
		n := w.opens("adam", "/attempt client_reconnect failed\n\n/restart full_mcp_restart")
		w.says("adam", n, "/withdraw")
		w.deletes("wren", w.answers(n)[0].ID)
		heads := w.heads(n)
		last := heads[len(heads)-1]
		if strings.Contains(last, "Approved") || !strings.Contains(last, "again") {
			t.Errorf("the last comment begins %q", last)
		}
		all := w.answers(n)
		if body := all[len(all)-1].Body; !strings.Contains(body, "### ✅ Approved") {
			t.Errorf("the answer itself is not there:\n%s", body)
		}
	})
}

// TestAnUnvouchedRepeatApprovesNothing: asking again approves what was refused
// or is over, so it needs its author's word as the first time did.
func TestAnUnvouchedRepeatApprovesNothing(t *testing.T) {
	inBubble(t, func(w *world) {
		n := w.opens("adam", "/restart full_mcp_restart")
		w.says("rhea", n, "/attempt client_reconnect failed")
		w.forge.Hold(true)
		id := w.posts("adam", n, "looking")
		w.must(w.forge.EditComment("wren", id, "/restart full_mcp_restart"))
		w.forge.Take()
		w.forge.Hold(false)
		pass(time.Minute)
		w.sweep()
		if w.approvalStands(n, fmt.Sprintf("%d/1", n)) {
			t.Errorf("a writer asked in an administrator's name:\n%s", strings.Join(w.heads(n), "\n"))
		}
		w.says("adam", n, "/restart full_mcp_restart")
		if !w.approvalStands(n, fmt.Sprintf("%d/1", n)) {
			t.Errorf("the administrator's own word approves nothing:\n%s", strings.Join(w.heads(n), "\n"))
		}
	})
}

// TestAskingAgainAsksTheSame: the line to paste for a break-glass request keeps
// it one; a plain /restart would be another request, without its endorsement.
func TestAskingAgainAsksTheSame(t *testing.T) {
	const urgent = "/break-glass full_mcp_restart payments down"
	inBubble(t, func(w *world) {
		n := w.opens("adam", urgent)
		w.says("rhea", n, "/attempt client_reconnect failed")
		all := w.answers(n)
		if body := all[len(all)-1].Body; !strings.Contains(body, "Would now be allowed") || !strings.Contains(body, urgent) {
			t.Errorf("the line to paste is not %q:\n%s", urgent, body)
		}
		w.says("adam", n, urgent)
		pass(61 * time.Minute)
		w.settle()
		w.says("adam", n, "/attempt capability_refresh failed")
		for _, c := range w.answers(n)[len(all)+1:] {
			if !strings.Contains(c.Body, urgent) {
				t.Errorf("the line to paste is not %q:\n%s", urgent, c.Body)
			}
		}
	})
}

// TestWithoutItsEndorsementNoGoAheadStands: rungs without a gate have no
// approval to revoke, but a verdict and a label, which follow the record too.
func TestWithoutItsEndorsementNoGoAheadStands(t *testing.T) {
	inBubble(t, func(w *world) {
		n := w.opens("rhea", "/restart worker_restart")
		id := w.says("wren", n, fmt.Sprintf("/endorse %d/1", n))
		if got := w.state(n).verdict(); got != "approved" {
			t.Fatalf("verdict %q", got)
		}
		w.wantHeads(n, refused, goAhead)
		w.deletes("wren", id)
		if got := w.state(n).verdict(); got != "refused" {
			t.Errorf("the endorsement is gone and the verdict is %q:\n%s", got, strings.Join(w.heads(n), "\n"))
		}
	})
}

// TestARepostedDecisionIsNoLaterOne: a decision that was deleted and posted
// again stands at the end of the thread, and is no newer for that when the
// thread is read anew.
func TestARepostedDecisionIsNoLaterOne(t *testing.T) {
	inBubble(t, func(w *world) {
		w.excused = true
		n := w.opens("rhea", "/restart full_mcp_restart")
		w.says("adam", n, fmt.Sprintf("/endorse %d/1", n))
		w.says("rhea", n, "/withdraw")
		w.deletes("wren", w.answers(n)[1].ID)
		w.loseDatabase()
		w.says("wren", n, "/attempt client_reconnect failed")
		if st := w.state(n); st.Request != nil {
			t.Errorf("request %s, which was withdrawn, is open again", st.Request.ID)
		}
	})
}

// TestAnAnswerApprovesNothingThatIsOver: of a request that a later line of the
// same comment ended no approval is shown.
func TestAnAnswerApprovesNothingThatIsOver(t *testing.T) {
	for _, then := range []string{"/restart host_restart", "/withdraw", "/resolved client_reconnect"} {
		inBubble(t, func(w *world) {
			n := w.opens("adam", "/attempt client_reconnect failed\n\n/restart rolling_mcp_restart")
			w.wantHeads(n, approved)
			m := w.opens("adam", "/attempt client_reconnect failed\n/restart rolling_mcp_restart\n"+then)
			for _, c := range w.answers(m) {
				if strings.Contains(c.Body, approved) {
					t.Errorf("%s: the answer still says\n%s", then, c.Body)
				}
			}
		})
	}
}

// TestAKillAfterTheMarkWasLiftedMarksAgain: an administrator lifts what was
// recorded until then, not what is written into an older text later.
func TestAKillAfterTheMarkWasLiftedMarksAgain(t *testing.T) {
	inBubble(t, func(w *world) {
		n := w.opens("adam", "/attempt client_reconnect failed ran pkill -f mcp")
		id := w.says("wren", n, "/attempt session_reconnect failed")
		w.says("adam", n, "/playbook clear-contamination a test host")
		marked := func() bool { return strings.Contains(fmt.Sprint(w.forge.Labels(repoName, n)), "contaminated") }
		if marked() {
			t.Fatal("the mark was not lifted")
		}
		w.edits("wren", id, "/attempt session_reconnect failed ran pkill -f mcp")
		if !marked() {
			t.Error("a kill recorded since the mark was lifted leaves none")
		}
	})
}

// TestAnEndorsementTakenBackStaysSo: a second endorser, who turns out to have
// lost the standing, does not bring back an endorsement that the same look at
// the thread found gone.
func TestAnEndorsementTakenBackStaysSo(t *testing.T) {
	inBubbleWith(t, worldOptions{people: append([]golden.Person{{Login: "ada", Permission: "admin"}, {Login: "ravi", Permission: "read"}}, people...)}, func(w *world) {
		n := w.opens("rhea", "/restart full_mcp_restart")
		id := w.says("adam", n, fmt.Sprintf("/endorse %d/1", n))
		w.says("ravi", n, "/attempt client_reconnect failed")
		w.says("ada", n, "/assess full_mcp_restart")
		w.forge.Hold(true)
		w.must(w.forge.DeleteComment("adam", id))
		w.forge.AddCollaborator(repoName, "ada", "read")
		w.forge.Take()
		w.forge.Hold(false)
		w.says("ada", n, fmt.Sprintf("/endorse %d/1", n))
		if st := w.state(n); st.Request == nil || st.Request.Endorsement != nil {
			t.Errorf("endorsed by %+v, whose comment is gone:\n%s", st.Request, strings.Join(w.heads(n), "\n"))
		}
	})
}

// TestEvidenceThatWasFoundSaysWhatItLacks: of the requester's own attempt, whose
// delivery was lost, it is not said that its author has nothing to do with it;
// and the line shown works.
func TestEvidenceThatWasFoundSaysWhatItLacks(t *testing.T) {
	inBubble(t, func(w *world) {
		n := w.opens("adam", "/restart full_mcp_restart")
		w.forge.Hold(true)
		w.posts("adam", n, "/attempt client_reconnect failed")
		w.forge.Take()
		w.forge.Hold(false)
		pass(time.Minute)
		w.sweep()
		all := w.answers(n)
		body := all[len(all)-1].Body
		if strings.Contains(body, "adam neither") || !strings.Contains(body, "\n/restart full_mcp_restart\n") {
			t.Errorf("said\n%s", body)
		}
		w.says("adam", n, "/restart full_mcp_restart")
		if !w.approvalStands(n, fmt.Sprintf("%d/1", n)) {
			t.Errorf("the line that was shown does not help:\n%s", strings.Join(w.heads(n), "\n"))
		}
	})
}

// TestEndorsingNothingNamesTheOpenRequest: the cure is a line to paste.
func TestEndorsingNothingNamesTheOpenRequest(t *testing.T) {
	inBubble(t, func(w *world) {
		n := w.opens("rhea", "/restart full_mcp_restart")
		w.says("adam", n, "/endorse")
		all := w.answers(n)
		if body := all[len(all)-1].Body; !strings.Contains(body, fmt.Sprintf("\n/endorse %d/1\n", n)) {
			t.Errorf("said\n%s", body)
		}
	})
}

// TestARevertedFormIsNotItsAuthors: a form that another puts back to what its
// author once posted, and has changed since, asks nothing in the author's name.
func TestARevertedFormIsNotItsAuthors(t *testing.T) {
	const asks = "### Requested class\n\nfull_mcp_restart\n\n### What happened\n\nall clients 404\n"
	inBubble(t, func(w *world) {
		n := w.opens("adam", asks)
		edit := func(as, body string) {
			w.must(w.forge.EditIssue(as, repoName, n, nil, &body))
			w.settle()
			breath()
		}
		edit("adam", strings.Replace(asks, "full_mcp_restart", "client_reconnect", 1))
		w.says("rhea", n, "/attempt client_reconnect failed")
		edit("wren", asks)
		if st := w.state(n); st.Request != nil || st.Approval != nil {
			t.Errorf("a writer asked in an administrator's name: %+v\n%s", st.Request, strings.Join(w.heads(n), "\n"))
		}
		edit("adam", asks+"\nmore\n")
		if st := w.state(n); st.Request == nil || st.Request.Action != full {
			t.Errorf("its author's own change opens nothing:\n%s", strings.Join(w.heads(n), "\n"))
		}
	})
}
