package bot_test

import (
	"strings"
	"testing"

	"playbook-bot/bot"
	"playbook-bot/bot/golden"
	"playbook-bot/bot/store"
)

// backup is a copy of a fake's database as it is now.
func backup(t *testing.T, w *golden.Fake) store.Store {
	t.Helper()
	l, err := store.Open(t.Context(), "sqlite::memory:", store.Options{Now: w.Clock.Now})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	if err := store.CopyTo(t.Context(), w.Ledger, l); err != nil {
		t.Fatal(err)
	}
	return l
}

// TestABackupPutBack: what was decided after the backup is in the threads
// only. Read again, nothing is answered a second time, every attempt is known,
// the log goes on in a new chain, and nothing earlier is approved.
func TestABackupPutBack(t *testing.T) {
	seen := map[string]int{}
	sc, err := golden.Parse("backup", []byte("people: olivia=owner adam=admin rhea=read\n"))
	if err != nil {
		t.Fatal(err)
	}
	w := golden.NewFake(t, sc, func(c *bot.Config) { c.Observe = func(o bot.Observation) { seen[o.What]++ } })
	one, err := w.Open("adam", "search is down", "/restart full_mcp_restart target=mcp-search")
	if err != nil {
		t.Fatal(err)
	}
	// A decision without an answer: its log has a chain that no marker names.
	if err := w.Comment("rhea", one, "/playbook help"); err != nil {
		t.Fatal(err)
	}
	old, again := backup(t, w), backup(t, w)
	for _, body := range []string{"/attempt client_reconnect insufficient still 404", "/playbook attempts"} {
		if err := w.Comment("adam", one, body); err != nil {
			t.Fatal(err)
		}
	}
	two, err := w.Open("adam", "index is down", "/restart full_mcp_restart target=mcp-index")
	if err != nil {
		t.Fatal(err)
	}
	said := len(w.Forge.CommentsBy(w.BotLogin(), golden.RepoName, one)) + len(w.Forge.CommentsBy(w.BotLogin(), golden.RepoName, two))

	if n, err := again.Reread(t.Context()); err != nil || n != 1 {
		t.Fatalf("read again: %d threads, %v", n, err)
	}
	w.StartOn(again)
	if err := w.Sweep(); err != nil {
		t.Fatal(err)
	}
	now := len(w.Forge.CommentsBy(w.BotLogin(), golden.RepoName, one)) + len(w.Forge.CommentsBy(w.BotLogin(), golden.RepoName, two))
	if now != said {
		t.Errorf("%d answers became %d", said, now)
	}
	if seen["database_behind"] != 0 {
		t.Error("a database that was read again is told to be behind")
	}
	a := &audited{w: w}
	a.load(t, one)
	if c := a.check(t, golden.Secret); len(c.Broken) > 0 || len(c.Notes) != 1 {
		t.Errorf("the log afterwards: %+v", c)
	}
	status, err := bot.ApprovalOf(a.thread, "1/1", w.Clock.Now())
	if err != nil || status.Standing {
		t.Errorf("an approval from before stands: %+v, %v", status, err)
	}
	if err := w.Comment("adam", one, "/restart full_mcp_restart target=mcp-search"); err != nil {
		t.Fatal(err)
	}
	answers := w.Forge.CommentsBy(w.BotLogin(), golden.RepoName, one)
	if last := answers[len(answers)-1].Body; !strings.Contains(last, "Approved until") {
		t.Errorf("asked again, with the attempt that was logged after the backup:\n%s", last)
	}
	a.load(t, one)
	if c := a.check(t, golden.Secret); len(c.Broken) > 0 {
		t.Errorf("the log after another decision: %+v", c)
	}

	// Put back and not read again: that is noticed, and the log shows it.
	w.StartOn(old)
	if err := w.Sweep(); err != nil {
		t.Fatal(err)
	}
	a.load(t, one)
	if c := a.check(t, golden.Secret); len(c.Broken) == 0 || seen["database_behind"] == 0 {
		t.Errorf("a backup put back and not read again: noticed %d times, %+v", seen["database_behind"], c)
	}
}

// TestANewChainAfterOneThatNoMarkerNames: the log survives, the thread bears
// no marker; the chain that begins must not collide with the one that is there.
func TestANewChainAfterOneThatNoMarkerNames(t *testing.T) {
	a := newAudited(t)
	for _, c := range a.w.Forge.CommentsBy(a.w.BotLogin(), golden.RepoName, a.thread.Number) {
		a.w.Forge.Hold(true) // nobody tells the bot
		if err := a.w.Forge.DeleteComment("olivia", c.ID); err != nil {
			t.Fatal(err)
		}
	}
	l := backup(t, a.w)
	if _, err := l.Reread(t.Context()); err != nil {
		t.Fatal(err)
	}
	a.w.StartOn(l)
	if err := a.w.Quiet(false); err != nil {
		t.Fatal(err)
	}
	if err := a.w.Comment("adam", a.thread.Number, "/restart full_mcp_restart"); err != nil {
		t.Fatal(err)
	}
	before := len(a.rows)
	a.load(t, a.thread.Number)
	c := a.check(t, golden.Secret)
	if len(a.rows) < before+2 || a.rows[before].Chain != 2 || len(c.Broken) > 0 || c.Markers == 0 {
		t.Errorf("%d entries became %d, %+v", before, len(a.rows), c)
	}
}
