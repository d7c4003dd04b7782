package bot_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"playbook-bot/bot"
	"playbook-bot/bot/forge"
	"playbook-bot/bot/golden"
	"playbook-bot/bot/store"
)

// audited is a thread with some decisions in it, as an auditor finds it.
type audited struct {
	w        *golden.Fake
	thread   *store.Thread
	rows     []store.AuditRow
	comments []forge.Comment
}

func (a *audited) load(t *testing.T, number int64) {
	t.Helper()
	var err error
	if a.thread, err = a.w.Ledger.FindThread(t.Context(), "gitea", a.w.Repo.ID, number); err != nil {
		t.Fatal(err)
	}
	if a.rows, err = a.w.Ledger.Audit(t.Context(), a.thread.ID); err != nil {
		t.Fatal(err)
	}
	a.comments = a.w.Forge.Comments(golden.RepoName, number)
}

func newAudited(t *testing.T) *audited {
	t.Helper()
	sc, err := golden.Parse("audited", []byte("people: olivia=owner adam=admin wren=write rhea=read\n"))
	if err != nil {
		t.Fatal(err)
	}
	a := &audited{w: golden.NewFake(t, sc, nil)}
	n, err := a.w.Open("adam", "search is down", "/restart full_mcp_restart target=mcp-search all clients 404")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []string{"/attempt client_reconnect insufficient", "/playbook help", "/withdraw"} {
		if err := a.w.Comment("adam", n, c); err != nil {
			t.Fatal(err)
		}
	}
	a.load(t, n)
	if len(a.rows) < 3 || len(a.comments) < 6 {
		t.Fatalf("the audited thread has %d entries and %d comments", len(a.rows), len(a.comments))
	}
	return a
}

// bySelf is the bot's account, by one of its comments.
func (a *audited) bySelf(t *testing.T) forge.Account {
	t.Helper()
	for _, c := range a.comments {
		if c.Author.Login == a.w.BotLogin() {
			return c.Author
		}
	}
	t.Fatal("the bot has said nothing")
	return forge.Account{}
}

func (a *audited) check(t *testing.T, secrets ...string) bot.AuditCheck {
	t.Helper()
	c := bot.CheckLog(secrets, a.rows, a.thread.State)
	c.CheckComments(secrets, a.thread.ThreadRef, a.rows, a.bySelf(t), a.comments)
	return c
}

// cut takes the last n entries away, and out of the thread's own row too, as
// somebody who can write the database would.
func (a *audited) cut(t *testing.T, n int) {
	t.Helper()
	a.rows = a.rows[:len(a.rows)-n]
	var st map[string]any
	if err := json.Unmarshal(a.thread.State, &st); err != nil {
		t.Fatal(err)
	}
	head := map[string]any{"chain": 0, "seq": 0, "hash": ""}
	if len(a.rows) > 0 {
		last := a.rows[len(a.rows)-1]
		head = map[string]any{"chain": last.Chain, "seq": last.Seq, "hash": fmt.Sprintf("%x", last.Hash)}
	}
	st["audit"] = head
	var err error
	if a.thread.State, err = json.Marshal(st); err != nil {
		t.Fatal(err)
	}
}

func TestAuditChecks(t *testing.T) {
	for name, c := range map[string]struct {
		spoil func(*audited)
		// log and thread say what the two checks must find; "": nothing.
		log, thread string
	}{
		"whole":           {func(*audited) {}, "", ""},
		"an entry edited": {func(a *audited) { a.rows[1].Entry = bytes.Replace(a.rows[1].Entry, []byte("adam"), []byte("wren"), 1) }, "entry 2 was changed", ""},
		"an entry out":    {func(a *audited) { a.rows = append(a.rows[:1:1], a.rows[2:]...) }, "does not follow", "not in the log"},
		"two exchanged":   {func(a *audited) { a.rows[0], a.rows[1] = a.rows[1], a.rows[0] }, "does not follow", ""},
		"the first out":   {func(a *audited) { a.rows = a.rows[1:] }, "does not follow", "not in the log"},
		"another thread's": {func(a *audited) {
			for i := range a.rows {
				a.rows[i].Thread.Number++
			}
		}, "was changed", ""},
		"tail off the log":         {func(a *audited) { a.rows = a.rows[:len(a.rows)-1] }, "names entry", "not in the log"},
		"tail off log and row":     {func(a *audited) { a.cut(t, 2) }, "", "not in the log"},
		"all off log and row":      {func(a *audited) { a.cut(t, len(a.rows)) }, "", "not in the log"},
		"an older database's tail": {func(a *audited) { a.rows[len(a.rows)-1].Hash = bytes.Repeat([]byte{1}, 32) }, "was changed", "another hash"},
	} {
		t.Run(name, func(t *testing.T) {
			a := newAudited(t)
			c.spoil(a)
			log := bot.CheckLog([]string{golden.Secret}, a.rows, a.thread.State)
			want(t, "the log", log.Broken, c.log)
			n := len(log.Broken)
			log.CheckComments([]string{golden.Secret}, a.thread.ThreadRef, a.rows, a.bySelf(t), a.comments)
			want(t, "the thread", log.Broken[n:], c.thread)
		})
	}
}

func want(t *testing.T, what string, broken []string, want string) {
	t.Helper()
	got := strings.Join(broken, "; ")
	if want == "" && got != "" || want != "" && !strings.Contains(got, want) {
		t.Errorf("%s: found %q, want %q", what, got, want)
	}
}

// TestAuditNeedsTheSecretsItWasWrittenWith: after a rotation the old secret
// still verifies what it signed, and a wrong one verifies nothing.
func TestAuditNeedsTheSecretsItWasWrittenWith(t *testing.T) {
	a := newAudited(t)
	other := "another secret altogether, 32 or more"
	if c := a.check(t, other, golden.Secret); len(c.Broken) > 0 || c.Markers < 3 {
		t.Errorf("with the old secret in second place: %+v", c)
	}
	if c := a.check(t, other); len(c.Broken) == 0 || len(c.Notes) == 0 {
		t.Errorf("with a wrong secret: %+v", c)
	}
}

// TestAuditPassesOverWhatProvesNothing: a marker that somebody else copied, or
// spoiled, neither proves nor breaks anything.
func TestAuditPassesOverWhatProvesNothing(t *testing.T) {
	a := newAudited(t)
	self := a.bySelf(t)
	before := a.check(t, golden.Secret).Markers
	for i, c := range a.comments {
		if c.Author.ID != self.ID {
			continue
		}
		copied := c
		copied.Author = forge.Account{ID: self.ID + 1000, Login: self.Login}
		a.comments = append(a.comments, copied)
		a.comments[i].Body = strings.Replace(c.Body, "key=", "key=x", 1)
		break
	}
	a.cut(t, 0)
	c := a.check(t, golden.Secret)
	if len(c.Broken) > 0 || c.Markers != before-1 || len(c.Notes) != 1 || !strings.Contains(c.Notes[0], "1 of the bot's comments") {
		t.Errorf("%+v, with %d markers before", c, before)
	}
}

// TestAuditAfterALostDatabase: the new chain names the last marker, and that
// is told; it is no break.
func TestAuditAfterALostDatabase(t *testing.T) {
	a := newAudited(t)
	for round := range 2 {
		if err := a.w.LoseDatabase(); err != nil {
			t.Fatal(err)
		}
		if err := a.w.Comment("adam", a.thread.Number, "/restart full_mcp_restart"); err != nil {
			t.Fatal(err)
		}
		a.load(t, a.thread.Number)
		c := a.check(t, golden.Secret)
		if len(c.Broken) > 0 || len(c.Notes) != 1 || !strings.Contains(c.Notes[0], "the database was lost") {
			t.Errorf("after loss %d: %+v", round+1, c)
		}
	}
	// But a tail cut from the new chain is found.
	a.cut(t, 1)
	if c := a.check(t, golden.Secret); len(c.Broken) == 0 {
		t.Errorf("a tail cut after the loss: %+v", c)
	}
}

// TestLoggedAttempts gives what /playbook metrics counts.
func TestLoggedAttempts(t *testing.T) {
	a := newAudited(t)
	logs, next, err := a.w.Ledger.Logs(t.Context(), 0, 10)
	if err != nil || next != 0 || len(logs) != 1 {
		t.Fatalf("logs %+v, next %d, %v", logs, next, err)
	}
	n := 0
	for _, o := range logs[0].Texts {
		list, err := bot.LoggedAttempts(o)
		if err != nil {
			t.Fatal(err)
		}
		for _, at := range list {
			n++
			if at.Action != "client_reconnect" || at.Outcome != "insufficient" || at.RecordedBy != "adam" {
				t.Errorf("attempt %+v", at)
			}
		}
	}
	if n != 1 {
		t.Errorf("%d attempts, want 1", n)
	}
	if _, err := bot.LoggedAttempts(store.Object{Data: []byte("no JSON")}); err == nil {
		t.Error("nonsense was read")
	}
}
