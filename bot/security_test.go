package bot_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"playbook-bot/bot"
	"playbook-bot/bot/forge"
	"playbook-bot/bot/forge/forgetest"
	"playbook-bot/bot/golden"
)

// What SECURITY.md promises and no golden conversation shows.

func newPeople(t *testing.T, people string) *golden.Fake {
	t.Helper()
	sc, err := golden.Parse(t.Name(), []byte("people: "+people+"\n"))
	if err != nil {
		t.Fatal(err)
	}
	return golden.NewFake(t, sc, nil)
}

// saidIn is how many comments the bot has written.
func saidIn(w *golden.Fake, number int64) int {
	return len(w.Forge.CommentsBy(w.BotLogin(), golden.RepoName, number))
}

// approvalStands reports whether the approval of a thread's first request stands.
func approvalStands(t *testing.T, w *golden.Fake, number int64) bool {
	t.Helper()
	th, err := w.Ledger.FindThread(t.Context(), "gitea", w.Repo.ID, number)
	if err != nil {
		t.Fatal(err)
	}
	s, err := bot.ApprovalOf(th, fmt.Sprintf("%d/1", number), w.Clock.Now())
	if err != nil {
		t.Fatal(err)
	}
	return s.Standing
}

func accountOf(t *testing.T, w *golden.Fake, login string) forge.Account {
	t.Helper()
	a, err := w.Bot.Forges["gitea"].AccountByLogin(t.Context(), login)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// TestTwoBotsCannotTalkForEver: a bot that answers each of our comments with a
// command is answered ten times an hour, and stands in nobody else's way.
func TestTwoBotsCannotTalkForEver(t *testing.T) {
	w := newPeople(t, "olivia=owner adam=admin chatty=read")
	n, err := w.Open("chatty", "hello", "/playbook help")
	if err != nil {
		t.Fatal(err)
	}
	heard := 0
	for range 50 {
		if now := saidIn(w, n); now == heard {
			break
		} else {
			heard = now
		}
		if err := w.Comment("chatty", n, fmt.Sprintf("/assess full_mcp_restart target=t%d", heard)); err != nil {
			t.Fatal(err)
		}
	}
	if heard != 10 {
		t.Errorf("the conversation ended after %d answers, want 10", heard)
	}
	if err := w.Comment("adam", n, "/assess full_mcp_restart"); err != nil {
		t.Fatal(err)
	}
	if now := saidIn(w, n); now != heard+1 {
		t.Errorf("somebody else got %d answers", now-heard)
	}
	if err := w.Advance(61 * time.Minute); err != nil {
		t.Fatal(err)
	}
	if err := w.Comment("chatty", n, "/playbook help"); err != nil {
		t.Fatal(err)
	}
	if now := saidIn(w, n); now != heard+2 {
		t.Errorf("an hour later it got %d answers", now-heard-1)
	}
}

// TestAGenuineDeliveryMayLie: whoever knows a hook's secret (Gitea shows it to
// the repository's admins) can sign what they like. What they say of texts,
// authors and states is looked up and not believed.
func TestAGenuineDeliveryMayLie(t *testing.T) {
	w := newPeople(t, "olivia=owner adam=admin rhea=read")
	n, err := w.Open("adam", "search is down", "/restart full_mcp_restart target=mcp-search")
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Comment("adam", n, "/attempt client_reconnect insufficient"); err != nil {
		t.Fatal(err)
	}
	if !approvalStands(t, w, n) {
		t.Fatal("nothing was approved")
	}
	texts := w.Forge.Comments(golden.RepoName, n)
	var evidence forge.Comment
	for _, c := range texts {
		if strings.HasPrefix(c.Body, "/attempt") {
			evidence = c
		}
	}
	issue := forge.Object{Kind: forge.ObjectIssue, ID: n}
	told := saidIn(w, n)
	lie := func(what string, e forge.Event) {
		t.Helper()
		e.Forge, e.Delivery, e.Repo, e.Number = "gitea", what, w.Repo, n
		if _, err := w.Bot.Accept(t.Context(), e); err != nil {
			t.Fatal(err)
		}
		for range 3 { // while it is being looked at, no approval stands
			if err := w.Advance(2 * time.Minute); err != nil {
				t.Fatal(err)
			}
		}
		if !approvalStands(t, w, n) || saidIn(w, n) != told {
			t.Errorf("%s: approval stands: %v, %d new comments", what, approvalStands(t, w, n), saidIn(w, n)-told)
		}
	}
	lie("a comment that is not there", forge.Event{Action: forge.ActionCreated, Object: forge.Object{Kind: forge.ObjectComment, ID: 99999},
		Sender: accountOf(t, w, "olivia"), Author: accountOf(t, w, "olivia"), Body: "/withdraw"})
	lie("a comment with other words", forge.Event{Action: forge.ActionCreated, Object: forge.Object{Kind: forge.ObjectComment, ID: evidence.ID},
		Sender: accountOf(t, w, "adam"), Author: accountOf(t, w, "adam"), Body: "/withdraw"})
	lie("evidence edited", forge.Event{Action: forge.ActionEdited, Object: forge.Object{Kind: forge.ObjectComment, ID: evidence.ID},
		Sender: accountOf(t, w, "adam"), Author: accountOf(t, w, "adam"), Body: "nothing"})
	lie("evidence deleted", forge.Event{Action: forge.ActionDeleted, Object: forge.Object{Kind: forge.ObjectComment, ID: evidence.ID},
		Sender: accountOf(t, w, "adam"), Author: accountOf(t, w, "adam")})
	lie("the issue closed", forge.Event{Action: forge.ActionClosed, Object: issue, Sender: accountOf(t, w, "olivia"), Author: accountOf(t, w, "adam")})
	lie("the issue deleted", forge.Event{Action: forge.ActionDeleted, Object: issue, Sender: accountOf(t, w, "olivia"), Author: accountOf(t, w, "adam")})
}

// TestADeliverysAuthorIsLookedUp: a reader's words, signed as an
// administrator's, lend the reader nothing.
func TestADeliverysAuthorIsLookedUp(t *testing.T) {
	w := newPeople(t, "olivia=owner adam=admin rhea=read")
	n, err := w.Open("rhea", "search is down", "/restart full_mcp_restart target=mcp-search")
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Comment("rhea", n, "/attempt client_reconnect insufficient"); err != nil {
		t.Fatal(err)
	}
	if err := w.Quiet(true); err != nil {
		t.Fatal(err)
	}
	words := fmt.Sprintf("/endorse %d/1", n)
	if err := w.Comment("rhea", n, words); err != nil {
		t.Fatal(err)
	}
	texts := w.Forge.Comments(golden.RepoName, n)
	adam := accountOf(t, w, "adam")
	_, err = w.Bot.Accept(t.Context(), forge.Event{Forge: "gitea", Delivery: "lie", Repo: w.Repo, Number: n, Action: forge.ActionCreated,
		Object: forge.Object{Kind: forge.ObjectComment, ID: texts[len(texts)-1].ID}, Sender: adam, Author: adam, Body: words})
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Advance(time.Minute); err != nil {
		t.Fatal(err)
	}
	if approvalStands(t, w, n) {
		t.Error("a reader endorsed the reader's own request, in an administrator's name")
	}
}

// TestAPermissionIsTheAccountsNotTheLogins: where the forge answers for
// another account than the text's author, as after a login changed hands, the
// answer lends nothing.
func TestAPermissionIsTheAccountsNotTheLogins(t *testing.T) {
	for name, want := range map[string]bool{"adam": true, "olivia": false} {
		w := newPeople(t, "olivia=owner adam=admin")
		own, other := accountOf(t, w, "adam"), accountOf(t, w, name)
		w.Forge.OrderKind("permission.read", forgetest.Fault{Times: -1, Rewrite: func(b []byte) []byte {
			return bytes.ReplaceAll(b, fmt.Appendf(nil, `"id":%d,`, own.ID), fmt.Appendf(nil, `"id":%d,`, other.ID))
		}})
		n, err := w.Open("adam", "search is down", "/attempt client_reconnect insufficient\n\n/restart full_mcp_restart target=mcp-search")
		if err != nil {
			t.Fatal(err)
		}
		if got := approvalStands(t, w, n); got != want {
			t.Errorf("adam's permission, answered for %s: approved %v, want %v", name, got, want)
		}
	}
}
