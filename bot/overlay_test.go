package bot_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"playbook-bot/bot/forge/forgetest"
	"playbook-bot/bot/golden"
)

const (
	overlayPath = ".gitea/recovery-playbook.yaml"
	twoTries    = "tighten: [{action: rolling_mcp_restart, min_attempts: 2}, {action: full_mcp_restart, min_attempts: 2}, {action: host_restart, min_attempts: 2}]\n"
	oneTry      = "/attempt client_reconnect insufficient"
)

func overlayWorld(t *testing.T) *golden.Fake {
	t.Helper()
	return golden.NewFake(t, &golden.Scenario{Name: t.Name(), Repos: golden.RepoName, BotPerm: "admin", People: []golden.Person{
		{Login: "adam", Permission: "admin"}, {Login: "rhea", Permission: "read"}}}, nil)
}

func open(t *testing.T, w *golden.Fake, body string) int64 {
	t.Helper()
	n, err := w.Open("adam", "MCP is down", body)
	must(t, err)
	return n
}

func wantSaid(t *testing.T, w *golden.Fake, n int64, wants ...string) {
	t.Helper()
	got := said(t, w, n)
	for _, want := range wants {
		if !strings.Contains(got, want) {
			t.Errorf("want %q in\n%s", want, got)
		}
	}
}

func times(calls map[string]int, kind string) int { return calls[kind] }

// TestWarmAnswersDoNotAskForThePlaybook: within a minute the file is not read
// again, there or not, but before each approval it is.
func TestWarmAnswersDoNotAskForThePlaybook(t *testing.T) {
	for name, file := range map[string]string{"none": "", "one": "tighten: [{action: host_restart, disable: true}]"} {
		t.Run(name, func(t *testing.T) {
			w := overlayWorld(t)
			must(t, w.Commit("adam", overlayPath, file))
			n := open(t, w, "/restart full_mcp_restart")
			w.Forge.ResetCalls()
			must(t, w.Comment("adam", n, "/recommend"))
			must(t, w.Comment("adam", n, "/restart client_reconnect"))
			must(t, w.Comment("adam", n, "/assess full_mcp_restart"))
			if got := times(w.Forge.CallCounts(), "file.read"); got != 0 {
				t.Errorf("warm answers read the file %d times", got)
			}
			must(t, w.Comment("adam", n, oneTry))
			wantSaid(t, w, n, "Now approved")
			if got := times(w.Forge.CallCounts(), "file.read"); got == 0 {
				t.Error("approved without a fresh look at the file")
			}
			w.Forge.ResetCalls()
			must(t, w.Advance(61*time.Second))
			must(t, w.Comment("rhea", n, "nothing for the bot here"))
			if got := times(w.Forge.CallCounts(), "file.read"); got != 0 {
				t.Errorf("small talk read the file %d times", got)
			}
		})
	}
}

// TestTighteningHoldsAtOnceForApprovals: what was read a moment ago approves
// nothing.
func TestTighteningHoldsAtOnceForApprovals(t *testing.T) {
	w := overlayWorld(t)
	n := open(t, w, "/restart full_mcp_restart")
	must(t, w.Commit("adam", overlayPath, twoTries))
	must(t, w.Comment("adam", n, oneTry))
	wantSaid(t, w, n, "needs 2", "Refused for now")
	must(t, w.Comment("adam", n, "/attempt session_reconnect failed"))
	wantSaid(t, w, n, "Now approved", `"overlay": "`)
}

// TestLastUsablePlaybookOutlivesTheBot: it is in the database, so that a
// restart beside a broken file loosens nothing.
func TestLastUsablePlaybookOutlivesTheBot(t *testing.T) {
	w := overlayWorld(t)
	must(t, w.Commit("adam", overlayPath, twoTries))
	open(t, w, "/restart full_mcp_restart")
	must(t, w.Commit("adam", overlayPath, "tighten: [[["))
	w.Restart()
	n := open(t, w, oneTry+"\n/restart full_mcp_restart")
	wantSaid(t, w, n, "attempt_log_insufficient", "holds.", "cannot be used")
	must(t, w.Comment("adam", n, "/attempt session_reconnect failed"))
	wantSaid(t, w, n, "Now approved")
	if strings.Contains(said(t, w, n), "cannot be used") {
		t.Error("the thread was told twice")
	}
	// Removed, it is forgotten: a broken file after that has no usable version.
	must(t, w.Commit("adam", overlayPath, ""))
	must(t, w.Advance(61*time.Second))
	open(t, w, "/restart full_mcp_restart")
	must(t, w.Commit("adam", overlayPath, "tighten: 1"))
	must(t, w.Advance(61*time.Second))
	wantSaid(t, w, open(t, w, oneTry+"\n/restart full_mcp_restart"), "playbook_invalid")
}

// TestUnreadablePlaybook: a file that the forge does not give is no leave.
func TestUnreadablePlaybook(t *testing.T) {
	// Only a forge that does not answer is waited for.
	waits := map[string]bool{"never answers": true}
	for name, fault := range map[string]forgetest.Fault{
		"forbidden":     {Status: http.StatusForbidden, Times: -1},
		"no file":       {Status: http.StatusOK, Header: http.Header{"Content-Type": {"application/json"}}, Body: "[]", Times: -1},
		"without end":   {Pad: 40 << 20, Times: -1},
		"never answers": {Drop: true, Times: -1},
	} {
		t.Run(name, func(t *testing.T) {
			w := overlayWorld(t)
			must(t, w.Commit("adam", overlayPath, "tighten: [{action: host_restart, disable: true}]"))
			order, asked := w.Forge.OrderKind("file.read", fault), w.Clock.Now()
			n := open(t, w, oneTry+"\n/restart full_mcp_restart")
			if took := w.Clock.Now().Sub(asked); waits[name] != (took >= 10*time.Second) {
				t.Errorf("answered after %s", took)
			}
			wantSaid(t, w, n, "playbook_invalid", "cannot be used")
			must(t, w.Comment("adam", n, "/restart client_reconnect"))
			wantSaid(t, w, n, "Go ahead")
			order.Cancel()
			must(t, w.Advance(61*time.Second))
			wantSaid(t, w, n, "Now approved")
		})
	}
}

// TestPassingFailureIsWaitedFor: a forge that stumbles once refuses nobody.
func TestPassingFailureIsWaitedFor(t *testing.T) {
	w := overlayWorld(t)
	w.Forge.OrderKind("file.read", forgetest.Fault{Status: http.StatusBadGateway, Times: 2})
	n := open(t, w, oneTry+"\n/restart full_mcp_restart")
	wantSaid(t, w, n, "Approved until")
}

// TestPlaybookOfAnotherDirectory: the first of the known places holds.
func TestPlaybookOfAnotherDirectory(t *testing.T) {
	w := overlayWorld(t)
	must(t, w.Commit("adam", ".github/recovery-playbook.yaml", twoTries))
	n := open(t, w, oneTry+"\n/restart full_mcp_restart")
	wantSaid(t, w, n, "attempt_log_insufficient", `"overlay": "`)
	must(t, w.Commit("adam", overlayPath, "tighten: []\n"))
	must(t, w.Comment("adam", n, "/attempt session_reconnect failed"))
	wantSaid(t, w, n, "Now approved", `"overlay": "`)
}

// TestBrokenWhileARequestIsOpen: evidence and endorsements are taken while the
// playbook cannot be used, and the mended file decides without anybody coming.
func TestBrokenWhileARequestIsOpen(t *testing.T) {
	w := overlayWorld(t)
	n, err := w.Open("rhea", "MCP is down", "/restart full_mcp_restart")
	must(t, err)
	must(t, w.Commit("adam", overlayPath, "tighten: 1"))
	must(t, w.Advance(61*time.Second))
	must(t, w.Comment("rhea", n, oneTry))
	must(t, w.Comment("adam", n, "/endorse 1/1"))
	wantSaid(t, w, n, "Endorsed", "playbook_invalid", "cannot be used")
	must(t, w.Commit("adam", overlayPath, "tighten: []"))
	must(t, w.Advance(61*time.Second))
	wantSaid(t, w, n, "Now approved", "endorsed by adam")
}

// TestLookingAgainEnds: an hour after, the bot leaves a broken file alone, and
// whoever asks then is answered by it as it is.
func TestLookingAgainEnds(t *testing.T) {
	w := overlayWorld(t)
	must(t, w.Commit("adam", overlayPath, "tighten: 1"))
	n := open(t, w, oneTry+"\n/restart full_mcp_restart")
	for range 62 {
		must(t, w.Advance(61*time.Second))
	}
	w.Forge.ResetCalls()
	must(t, w.Advance(10*time.Minute))
	if got := times(w.Forge.CallCounts(), "file.read"); got != 0 {
		t.Errorf("still looking: %d times", got)
	}
	must(t, w.Commit("adam", overlayPath, "tighten: []"))
	must(t, w.Comment("adam", n, "/restart full_mcp_restart"))
	wantSaid(t, w, n, "pproved until")
}
