package bot_test

import (
	"testing"
	"time"

	"playbook-bot/bot/forge/forgetest"
)

// TestStandingIsCached: an answer about a permission serves for a minute, but
// never for an approval; an error serves for nothing.
func TestStandingIsCached(t *testing.T) {
	inBubble(t, func(w *world) {
		n := w.opens("olivia", "search is down")
		reads := func(act func()) int {
			w.forge.ResetCalls()
			act()
			return w.forge.CallCounts()["permission.read"]
		}
		if got := reads(func() { w.says("adam", n, "/restart worker_restart") }); got != 1 {
			t.Errorf("the first look cost %d calls", got)
		}
		if got := reads(func() { w.says("adam", n, "/assess worker_restart") }); got != 0 {
			t.Errorf("the second look cost %d calls", got)
		}
		w.says("rhea", n, "/attempt client_reconnect failed")
		if got := reads(func() { w.says("adam", n, "/restart full_mcp_restart") }); got != 1 {
			t.Errorf("an approval's look cost %d calls, want one afresh", got)
		}
		pass(61 * time.Second)
		if got := reads(func() { w.says("adam", n, "/assess worker_restart") }); got != 1 {
			t.Errorf("a minute later the look cost %d calls", got)
		}
	})
	t.Run("what was granted is gone", func(t *testing.T) {
		inBubble(t, func(w *world) {
			n := w.opens("adam", "/restart worker_restart")
			w.says("rhea", n, "/attempt client_reconnect failed")
			w.forge.AddCollaborator(repoName, "adam", "read")
			w.says("adam", n, "/restart full_mcp_restart") // within the minute
			if w.state(n).Approval != nil {
				t.Error("approved on a standing of the past")
			}
		})
	})
}

// TestStandingHangsOnTheAccount: a login that changed hands lends nothing, an
// account that was renamed loses nothing.
func TestStandingHangsOnTheAccount(t *testing.T) {
	t.Run("somebody took the login", func(t *testing.T) {
		inBubble(t, func(w *world) {
			n := w.opens("adam", "/restart full_mcp_restart")
			w.says("olivia", n, "hello")
			w.forge.RenameAccount("adam", "adam2")
			w.forge.RenameAccount("wren", "adam")
			w.forge.AddCollaborator(repoName, "adam", "admin") // wren, now
			w.forge.AddCollaborator(repoName, "adam2", "read")
			pass(2 * time.Minute)
			w.says("rhea", n, "/attempt client_reconnect failed")
			w.says("adam", n, "/endorse "+w.state(n).Request.ID)
			if st := w.state(n); st.Approval == nil || st.Request.Requester.Login != "adam2" {
				// wren, who is an administrator under that name, may endorse
				t.Errorf("state %+v", st.Request)
			}
		})
	})
	t.Run("the requester was renamed", func(t *testing.T) {
		inBubble(t, func(w *world) {
			n := w.opens("adam", "/restart full_mcp_restart")
			w.forge.RenameAccount("adam", "ada")
			pass(2 * time.Minute)
			w.says("wren", n, "/attempt client_reconnect failed")
			w.wantHeads(n, refused, nowOK)
			if r := w.state(n).Request; r.Requester.Login != "ada" {
				t.Errorf("requester %+v", r.Requester)
			}
			w.says("ada", n, "/withdraw")
			if w.state(n).Request != nil {
				t.Error("may not withdraw after the renaming")
			}
		})
	})
	t.Run("the endorser was renamed", func(t *testing.T) {
		inBubble(t, func(w *world) {
			n := w.opens("rhea", "/restart full_mcp_restart")
			w.says("adam", n, "/endorse "+w.state(n).Request.ID)
			w.forge.RenameAccount("adam", "ada")
			pass(2 * time.Minute)
			w.says("rhea", n, "/attempt client_reconnect failed")
			if w.state(n).Approval == nil {
				t.Errorf("said %q", w.heads(n))
			}
		})
	})
	t.Run("the account was deleted", func(t *testing.T) {
		inBubble(t, func(w *world) {
			n := w.opens("adam", "/restart full_mcp_restart")
			w.forge.DeleteAccount("adam")
			pass(2 * time.Minute)
			w.says("wren", n, "/attempt client_reconnect failed")
			if st := w.state(n); st.Approval != nil {
				t.Errorf("approved for nobody: %+v", st.Request)
			}
		})
	})
}

// TestTeamRoles: a role given to a team opens its rungs to the team's members,
// while they are members; a team that cannot be read denies nobody.
func TestTeamRoles(t *testing.T) {
	o := worldOptions{
		playbook: playbookWith(t, "controller: []", "controller: [ops/oncall]"),
		scopes:   []string{"write:issue", "read:repository", "read:user", "read:organization"},
	}
	ask := func(w *world) int64 {
		w.forge.AddTeam("ops", "oncall", "read", "rhea")
		n := w.opens("wren", "/attempt client_reconnect failed")
		return n
	}
	t.Run("member", func(t *testing.T) {
		inBubbleWith(t, o, func(w *world) {
			n := ask(w)
			w.says("rhea", n, "/restart host_restart")
			w.wantHeads(n, recorded, approved)
			w.forge.RemoveTeamMember("ops", "oncall", "rhea")
			w.says("wren", n, "/attempt capability_refresh failed")
			w.wantHeads(n, recorded, approved, revoked)
		})
	})
	t.Run("no member", func(t *testing.T) {
		inBubbleWith(t, o, func(w *world) {
			n := ask(w)
			w.says("wren", n, "/restart host_restart")
			w.wantHeads(n, recorded, refused)
		})
	})
	t.Run("error is no denial", func(t *testing.T) {
		inBubbleWith(t, o, func(w *world) {
			n := ask(w)
			w.forge.OrderKind("team.member", forgetest.Answer(500).For(3))
			w.says("rhea", n, "/restart host_restart")
			w.advance(time.Minute)
			w.wantHeads(n, recorded, approved)
		})
	})
	t.Run("while permissions cannot be read", func(t *testing.T) {
		inBubbleWith(t, o, func(w *world) {
			n := ask(w)
			w.forge.OrderKind("permission.read", forgetest.Answer(500).For(-1))
			w.says("rhea", n, "/restart host_restart")
			w.advance(time.Minute)
			w.wantHeads(n, recorded, approved)
		})
	})
	t.Run("by login, which changes hands", func(t *testing.T) {
		byLogin := o
		byLogin.playbook = playbookWith(t, "controller: []", "controller: [rhea]")
		inBubbleWith(t, byLogin, func(w *world) {
			n := ask(w)
			w.forge.RenameAccount("rhea", "rhea2")
			w.forge.RenameAccount("wren", "rhea")
			w.says("rhea", n, "/restart host_restart")
			w.says("rhea2", n, "/restart full_mcp_restart")
			w.wantHeads(n, recorded, refused, "Not done for")
			w.says("rhea", n, "/withdraw")
			w.says("rhea2", n, "/restart full_mcp_restart")
			if w.state(n).Approval == nil {
				t.Errorf("said %q", w.heads(n))
			}
		})
	})
}

// TestLossOfStanding: an approval whose bearer lost the standing is revoked at
// the next change of the record, and not before.
func TestLossOfStanding(t *testing.T) {
	inBubble(t, func(w *world) {
		n := w.opens("rhea", "/restart full_mcp_restart")
		w.says("rhea", n, "/attempt client_reconnect failed")
		w.says("adam", n, "/endorse "+w.state(n).Request.ID)
		w.wantHeads(n, refused, recorded, nowOK)
		w.forge.AddCollaborator(repoName, "adam", "write")
		w.says("wren", n, "a remark")
		w.wantHeads(n, refused, recorded, nowOK)
		w.forge.OrderKind("permission.read", forgetest.Answer(500).For(2))
		w.says("wren", n, "/attempt capability_refresh failed")
		w.advance(time.Minute)
		w.wantHeads(n, refused, recorded, nowOK, revoked)
		if st := w.state(n); st.Approval != nil || st.verdict() != "refused" || w.approvalStands(n, st.Request.ID) {
			t.Errorf("state %+v", st)
		}
	})
	t.Run("evidence is gone while nobody's standing can be read", func(t *testing.T) {
		inBubble(t, func(w *world) {
			n := w.opens("adam", "/restart full_mcp_restart")
			id := w.says("wren", n, "/attempt client_reconnect failed")
			w.wantHeads(n, refused, nowOK)
			w.forge.OrderKind("permission.read", forgetest.Answer(500).For(-1))
			w.deletes("wren", id)
			w.advance(time.Minute)
			if st := w.state(n); st.Approval != nil {
				t.Errorf("it stands on nothing: %q", w.heads(n))
			}
		})
	})
}
