package bot_test

import (
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"playbook-bot/bot"
	"playbook-bot/bot/forge"
	"playbook-bot/bot/forge/forgetest"
	"playbook-bot/bot/golden"
	"playbook-bot/playbook"
)

// deskWorld is a fake forge with the bot's desk.
type deskWorld struct {
	*golden.Fake
	t *testing.T
	// crash names a boundary at which the desk's process dies, once.
	crash atomic.Value
}

// died is what a crash at a boundary panics with.
type died struct{ at string }

func newDeskWorld(t *testing.T) *deskWorld {
	t.Helper()
	w := &deskWorld{t: t}
	w.crash.Store("")
	sc := &golden.Scenario{Name: t.Name(), Repos: golden.RepoName, BotPerm: "admin", People: []golden.Person{
		{Login: "adam", Permission: "admin"}, {Login: "wren", Permission: "write"}, {Login: "rhea", Permission: "read"}, {Login: "rob", Permission: "read"}}}
	w.Fake = golden.NewFake(t, sc, func(c *bot.Config) {
		c.Fail = func(point string) {
			if w.crash.CompareAndSwap(point, "") {
				panic(died{point})
			}
		}
	})
	return w
}

func (w *deskWorld) desk() *bot.Desk { return w.Bot.Desk("gitea") }

// full is a request for a full restart with one attempt that did not help.
func (w *deskWorld) full(account string) bot.Filing {
	return bot.Filing{Account: account, Tool: "request_mcp_restart", Repository: golden.RepoName, Action: "full_mcp_restart", Target: "mcp-search",
		Symptoms: []string{"session_expired"}, Reason: "every client gets 404", Attempts: []playbook.Attempt{w.attempt(account)}}
}

func (w *deskWorld) attempt(account string) playbook.Attempt {
	return playbook.Attempt{Action: "client_reconnect", Outcome: "failed", Reason: "still 404", Actor: account, RecordedAt: w.Clock.Now()}
}

func (w *deskWorld) file(q bot.Filing) bot.Filed {
	w.t.Helper()
	filed, err := w.desk().File(w.t.Context(), q)
	must(w.t, err)
	must(w.t, w.Advance(0))
	return filed
}

// dies files, and says whether the process died of it.
func (w *deskWorld) dies(q bot.Filing) (dead bool) {
	defer func() {
		if r := recover(); r != nil {
			if _, ok := r.(died); !ok {
				panic(r)
			}
			dead = true
		}
	}()
	_, err := w.desk().File(w.t.Context(), q)
	must(w.t, err)
	return false
}

func (w *deskWorld) says(number int64, parts ...string) {
	w.t.Helper()
	got := said(w.t, w.Fake, number)
	for _, p := range parts {
		if !strings.Contains(got, p) {
			w.t.Errorf("issue %d: the bot does not say %q:\n%s", number, p, got)
		}
	}
}

// issues counts the issues that the bot's account opened.
func (w *deskWorld) issues() (n int) {
	w.t.Helper()
	for number := int64(1); ; number++ {
		i, ok := w.issue(number)
		if !ok {
			return n
		}
		if i.Author.Login == w.BotLogin() {
			n++
		}
	}
}

func (w *deskWorld) issue(number int64) (i forge.Issue, ok bool) {
	defer func() { ok = recover() == nil }()
	return w.Forge.Issue(golden.RepoName, number), true
}

func (w *deskWorld) refused(err error, part string) {
	w.t.Helper()
	var e *bot.DeskError
	if !errors.As(err, &e) || !strings.Contains(e.Error(), part) {
		w.t.Errorf("error %v, want one for the caller that says %q", err, part)
	}
}

func TestAFiledRequestIsJudgedByItsRequester(t *testing.T) {
	w := newDeskWorld(t)
	filed := w.file(w.full("adam"))
	w.says(filed.Number, "pproved until", `"requester": "adam"`, `"endorser": null`, "session_expired")

	filed = w.file(w.full("rhea"))
	w.says(filed.Number, "Refused", `"requester": "rhea"`, `"code": "class_matrix_denied"`, "/endorse "+fmt.Sprint(filed.Number)+"/1")
	must(t, w.Comment("rhea", filed.Number, fmt.Sprintf("/endorse %d/1", filed.Number)))
	w.says(filed.Number, "Nobody endorses their own request")
	must(t, w.Comment("adam", filed.Number, fmt.Sprintf("/endorse %d/1", filed.Number)))
	w.says(filed.Number, "pproved until", `"requester": "rhea"`, `"endorser": "adam"`)
	must(t, w.Comment("rhea", filed.Number, "/withdraw"))
	w.says(filed.Number, "Withdrawn", `"state": "withdrawn"`)
}

func TestFilingIsForReadersOfItsRepositories(t *testing.T) {
	w := newDeskWorld(t)
	w.Forge.AddUser("stranger")
	w.Forge.AddRepo("ops/private", forgetest.Private())
	w.Forge.AddRepo("ops/other")
	w.Forge.AddCollaborator("ops/other", "playbook-bot", "admin")
	for _, c := range []struct {
		change func(*bot.Filing)
		want   string
	}{
		{func(q *bot.Filing) { q.Repository = "ops/other" }, "none of this bot's repositories"},
		{func(q *bot.Filing) { q.Repository = "ops/private" }, "none of this bot's repositories"},
		{func(q *bot.Filing) { q.Repository = "ops" }, "none of this bot's repositories"},
		{func(q *bot.Filing) { q.Account = "nobody-at-all" }, "no account"},
		{func(q *bot.Filing) { q.Account = w.BotLogin() }, "own account"},
		{func(q *bot.Filing) { q.BreakGlass, q.Reason = true, " " }, "needs a reason"},
	} {
		q := w.full("rhea")
		c.change(&q)
		_, err := w.desk().File(t.Context(), q)
		w.refused(err, c.want)
	}
	w.Forge.RenameAccount("rob", "rob-old")
	w.file(w.full("rhea"))
	if n := w.issues(); n != 1 {
		t.Errorf("%d issues", n)
	}
}

// TestALoginThatChangedHandsFilesNothing: a token belongs to an account, not
// to whoever bears its login later.
func TestALoginThatChangedHandsFilesNothing(t *testing.T) {
	w := newDeskWorld(t)
	w.file(w.full("adam"))
	w.Forge.RenameAccount("adam", "adam-old")
	w.Forge.AddUser("adam")
	q := w.full("adam")
	q.Target = "another"
	_, err := w.desk().File(t.Context(), q)
	w.refused(err, "changed hands")
}

func TestFilingTwiceGivesTheFirst(t *testing.T) {
	w := newDeskWorld(t)
	first := w.file(w.full("rhea"))
	q := w.full("rhea")
	q.Target, q.Reason = "MCP-Search", "in other words"
	again := w.file(q)
	if !again.Existing || again.Number != first.Number || again.Request != fmt.Sprintf("%d/1", first.Number) {
		t.Errorf("again: %+v, first: %+v", again, first)
	}
	// Before the worker has looked, too.
	q.Target = "mcp-index"
	one, err := w.desk().File(t.Context(), q)
	must(t, err)
	two, err := w.desk().File(t.Context(), q)
	must(t, err)
	if !two.Existing || two.Number != one.Number {
		t.Errorf("at once: %+v and %+v", one, two)
	}
	must(t, w.Advance(0))
	// One that was opened by hand is the same.
	n, err := w.Open("rob", "search is down", "/restart full_mcp_restart target=mcp-search")
	must(t, err)
	if by := w.file(w.full("rob")); !by.Existing || by.Number != n {
		t.Errorf("opened by hand as %d, filed as %+v", n, by)
	}
	// Over is over.
	must(t, w.Comment("rhea", first.Number, "/withdraw"))
	if anew := w.file(w.full("rhea")); anew.Existing || anew.Number == first.Number {
		t.Errorf("anew: %+v", anew)
	}
	if n := w.issues(); n != 3 {
		t.Errorf("%d issues, want 3", n)
	}
}

func TestFilingIsLimited(t *testing.T) {
	w := newDeskWorld(t)
	q := w.full("rhea")
	for i := range 5 {
		q.Target = fmt.Sprint("server-", i)
		w.file(q)
	}
	q.Target = "server-5"
	_, err := w.desk().File(t.Context(), q)
	w.refused(err, "within the hour")
	w.file(w.full("rob"))
	must(t, w.Advance(time.Hour))
	w.file(q)
}

// TestWhoeverChangesAFiledTextEndsIt: by a word in the form, beside it, or
// the marker; and what was changed back opens nothing.
func TestWhoeverChangesAFiledTextEndsIt(t *testing.T) {
	for name, change := range map[string]func(string) string{
		"form":   func(s string) string { return strings.Replace(s, "full_mcp_restart", "host_restart", 1) },
		"beside": func(s string) string { return "see also the wiki\n\n" + s },
		"name":   func(s string) string { return strings.Replace(s, "login=adam", "login=adan", 1) },
		"marker": func(s string) string { return s[:strings.Index(s, "<!--")] },
		"all":    func(string) string { return "nothing to see here" },
	} {
		t.Run(name, func(t *testing.T) {
			w := newDeskWorld(t)
			filed := w.file(w.full("adam"))
			w.says(filed.Number, "pproved until")
			before := w.Forge.Issue(golden.RepoName, filed.Number).Body
			must(t, w.EditIssue("wren", filed.Number, change(before)))
			w.says(filed.Number, "Revoked")
			must(t, w.EditIssue("wren", filed.Number, before))
			d, err := w.desk().Status(t.Context(), bot.Inquiry{Account: "adam", Repository: golden.RepoName, Number: filed.Number})
			must(t, err)
			if d.State != "replaced" && d.State != "withdrawn" || d.Verdict != "none" {
				t.Errorf("after the change: %s, %s", d.State, d.Verdict)
			}
		})
	}
}

// TestAChangeThatNobodyToldOfIsSeenBeforeAnApproval: the delivery of the edit
// is still on its way when the endorsement comes.
func TestAChangeThatNobodyToldOfIsSeenBeforeAnApproval(t *testing.T) {
	w := newDeskWorld(t)
	filed := w.file(w.full("rhea"))
	must(t, w.Quiet(true))
	body := w.Forge.Issue(golden.RepoName, filed.Number).Body
	must(t, w.EditIssue("wren", filed.Number, "see also the wiki\n\n"+body))
	w.Forge.Take()
	must(t, w.Quiet(false))
	must(t, w.Comment("adam", filed.Number, fmt.Sprintf("/endorse %d/1", filed.Number)))
	if got := said(t, w.Fake, filed.Number); strings.Contains(got, "pproved until") {
		t.Errorf("approved on a text that was changed:\n%s", got)
	}
}

// TestAMarkerVouchesForOneText: copied into another of the bot's texts, or
// kept until the database is lost, it gives nothing.
func TestAMarkerVouchesForOneText(t *testing.T) {
	w := newDeskWorld(t)
	adams := w.file(w.full("adam"))
	body := w.Forge.Issue(golden.RepoName, adams.Number).Body
	must(t, w.Comment("adam", adams.Number, "/withdraw"))

	q := w.full("rhea")
	q.Action = "worker_restart"
	rheas := w.file(q)
	must(t, w.EditIssue("wren", rheas.Number, body))
	if got := said(t, w.Fake, rheas.Number); strings.Contains(got, "Approved") || strings.Contains(got, `"requester": "adam"`) {
		t.Errorf("a copy was taken for adam's word:\n%s", got)
	}
	// Into one of the bot's issues that it has never read.
	n, err := w.Forge.OpenIssue(w.BotLogin(), golden.RepoName, "copy", body)
	must(t, err)
	must(t, w.Sweep())
	if got := said(t, w.Fake, n); got != "" {
		t.Errorf("a copy got an answer:\n%s", got)
	}
	must(t, w.Advance(time.Hour))
	must(t, w.LoseDatabase())
	n, err = w.Forge.OpenIssue(w.BotLogin(), golden.RepoName, "copy", body)
	must(t, err)
	must(t, w.Sweep())
	if got := said(t, w.Fake, n); got != "" {
		t.Errorf("an old copy got an answer once the database was lost:\n%s", got)
	}
	if got := said(t, w.Fake, rheas.Number); strings.Contains(got, "Approved") {
		t.Errorf("the first copy got an approval:\n%s", got)
	}
}

// TestACrashWhileFilingLeavesOneIssue: wherever the desk's process dies, the
// sweep and asking again leave one issue with one answer.
func TestACrashWhileFilingLeavesOneIssue(t *testing.T) {
	for _, at := range []string{"filing-claimed", "filing-posted", "filing-settled", "filing-accepted"} {
		for _, first := range []string{"delivery", "sweep", "ask again"} {
			t.Run(at+", "+first, func(t *testing.T) {
				w := newDeskWorld(t)
				must(t, w.Sweep()) // the bot knows who it is
				w.crash.Store(at)
				must(t, w.Quiet(first != "delivery"))
				if !w.dies(w.full("adam")) {
					t.Fatalf("the process did not die at %s", at)
				}
				if first != "delivery" {
					w.Forge.Take()
				}
				must(t, w.Quiet(false))
				if first == "sweep" {
					must(t, w.Sweep())
				}
				if at != "filing-claimed" && first != "ask again" {
					if said := len(w.Forge.CommentsBy(w.BotLogin(), golden.RepoName, 1)); said != 1 {
						t.Errorf("%d answers before anybody asks again, want 1", said)
					}
				}
				var filed bot.Filed
				var err error
				for range 3 {
					if filed, err = w.desk().File(t.Context(), w.full("adam")); err == nil {
						break
					}
					w.refused(err, "not filed twice")
					must(t, w.Advance(30*time.Second))
				}
				must(t, err)
				must(t, w.Sweep())
				if n := w.issues(); n != 1 {
					t.Errorf("%d issues, want 1", n)
				}
				w.says(filed.Number, "pproved until", `"requester": "adam"`)
				if said := w.Forge.CommentsBy(w.BotLogin(), golden.RepoName, filed.Number); len(said) != 1 {
					t.Errorf("%d answers, want 1", len(said))
				}
			})
		}
	}
}

// TestAnIssueWithoutAnAnswerIsLookedFor: creating is not idempotent.
func TestAnIssueWithoutAnAnswerIsLookedFor(t *testing.T) {
	for name, c := range map[string]struct {
		fault  forgetest.Fault
		at     string // what the first try says, "" if it is filed
		issues int    // then
	}{
		"stored, answer lost":       {forgetest.DroppedDone(), "", 1},
		"stored, 500":               {forgetest.AnswerDone(500), "", 1},
		"not stored, dropped":       {forgetest.Dropped(), "not filed twice", 0},
		"not stored, gateway":       {forgetest.GatewayPage(502), "not filed twice", 0},
		"refused, so nothing stood": {forgetest.Answer(403), "the forge refuses it", 0},
		"archived":                  {forgetest.Answer(423), "the forge refuses it", 0},
	} {
		t.Run(name, func(t *testing.T) {
			w := newDeskWorld(t)
			w.Forge.OrderKind("issue.create", c.fault)
			_, err := w.desk().File(t.Context(), w.full("adam"))
			if c.at == "" {
				must(t, err)
			} else {
				w.refused(err, c.at)
			}
			if n := w.issues(); n != c.issues {
				t.Errorf("%d issues after the first try, want %d", n, c.issues)
			}
			if c.at == "not filed twice" {
				_, err := w.desk().File(t.Context(), w.full("adam"))
				w.refused(err, c.at)
				must(t, w.Advance(30*time.Second))
			}
			filed := w.file(w.full("adam"))
			w.says(filed.Number, "pproved until")
			if n := w.issues(); n != 1 {
				t.Errorf("%d issues at last, want 1", n)
			}
		})
	}
}

// TestAnIssueThatComesLateIsFound: it was in flight when the first look found
// nothing.
func TestAnIssueThatComesLateIsFound(t *testing.T) {
	w := newDeskWorld(t)
	blind := w.Forge.OrderKind("issue.updated", forgetest.Answer(503).For(-1))
	w.Forge.OrderKind("issue.create", forgetest.DroppedDone())
	_, err := w.desk().File(t.Context(), w.full("adam"))
	w.refused(err, "not filed twice")
	blind.Cancel()
	filed := w.file(w.full("adam"))
	if n := w.issues(); n != 1 || !filed.Existing {
		t.Errorf("%d issues, %+v", n, filed)
	}
	w.says(filed.Number, "pproved until")
}

func TestAFiledRequestSurvivesTheDatabase(t *testing.T) {
	w := newDeskWorld(t)
	filed := w.file(w.full("rhea"))
	must(t, w.LoseDatabase())
	must(t, w.Comment("adam", filed.Number, fmt.Sprintf("/endorse %d/1", filed.Number)))
	w.says(filed.Number, "pproved until", `"requester": "rhea"`, `"endorser": "adam"`)
	if again := w.file(w.full("rhea")); !again.Existing || again.Number != filed.Number {
		t.Errorf("filed again: %+v", again)
	}
}

func TestARecordIsItsAccountsOwn(t *testing.T) {
	w := newDeskWorld(t)
	q := w.full("adam")
	q.Attempts = nil
	filed := w.file(q)
	w.says(filed.Number, "Refused", `"code": "attempt_log_missing"`)
	rec := bot.Recording{Account: "adam", Tool: "record_attempt", Repository: golden.RepoName, Number: filed.Number, Attempt: w.attempt("adam")}
	one, err := w.desk().Record(t.Context(), rec)
	must(t, err)
	two, err := w.desk().Record(t.Context(), rec)
	must(t, err)
	if !two.Existing || two.Comment != one.Comment || one.Existing {
		t.Errorf("recorded %+v, then %+v", one, two)
	}
	must(t, w.Advance(0))
	// Its requester's evidence flips the verdict by itself.
	w.says(filed.Number, "pproved until", `"recorded_by": "adam"`)
	// And whoever alters it takes it away.
	body := ""
	for _, c := range w.Forge.Comments(golden.RepoName, filed.Number) {
		if c.ID == one.Comment {
			body = c.Body
		}
	}
	must(t, w.EditComment("wren", filed.Number, one.Comment, strings.Replace(body, "still 404", "still 405", 1)))
	w.says(filed.Number, "Revoked")
	must(t, w.EditComment("wren", filed.Number, one.Comment, body))
	must(t, w.Comment("adam", filed.Number, "/restart full_mcp_restart target=mcp-search"))
	if got := said(t, w.Fake, filed.Number); strings.Contains(got, "pproved until") {
		t.Errorf("a record that somebody else put back counts:\n%s", got)
	}

	must(t, w.SetClosed("adam", filed.Number, true))
	_, err = w.desk().Record(t.Context(), rec)
	w.refused(err, "closed")
	rec.Number = 4711
	_, err = w.desk().Record(t.Context(), rec)
	w.refused(err, "no issue")
}

// TestARecordOfAnotherHelpsAndDecidesNothing: evidence of an account without
// standing is taken, and flips nothing by itself.
func TestARecordOfAnotherHelpsAndDecidesNothing(t *testing.T) {
	w := newDeskWorld(t)
	n, err := w.Open("adam", "search is down", "/restart full_mcp_restart")
	must(t, err)
	_, err = w.desk().Record(t.Context(), bot.Recording{Account: "rhea", Tool: "record_attempt", Repository: golden.RepoName, Number: n, Attempt: w.attempt("rhea")})
	must(t, err)
	must(t, w.Advance(0))
	w.says(n, "ould now be allowed")
}

func TestStatus(t *testing.T) {
	w := newDeskWorld(t)
	ask := func(account string, number int64, request string) (playbook.Decision, error) {
		return w.desk().Status(t.Context(), bot.Inquiry{Account: account, Repository: golden.RepoName, Number: number, Request: request})
	}
	filed, err := w.desk().File(t.Context(), w.full("rhea"))
	must(t, err)
	_, err = ask("rhea", filed.Number, "")
	w.refused(err, "ask again in a few seconds")
	must(t, w.Advance(0))
	id := fmt.Sprintf("%d/1", filed.Number)
	d, err := ask("rhea", filed.Number, id)
	must(t, err)
	if d.State != "open" || d.Verdict != "refused" || d.Request != id || d.Requester != "rhea" || len(d.Counted) != 1 || len(d.Missing) == 0 {
		t.Errorf("refused: %+v", d)
	}
	must(t, w.Comment("adam", filed.Number, "/endorse "+id))
	d, err = ask("wren", filed.Number, "")
	must(t, err)
	if d.State != "approved" || d.Verdict != "approved" || d.ApprovedUntil == nil || d.Endorser == nil || *d.Endorser != "adam" {
		t.Errorf("approved: %+v", d)
	}
	must(t, w.Comment("rhea", filed.Number, "/resolved session_reconnect it was that"))
	d, err = ask("rhea", filed.Number, id)
	must(t, err)
	if d.State != "recovered" || d.Verdict != "none" || d.ApprovedUntil != nil || d.Request != id {
		t.Errorf("recovered: %+v", d)
	}
	_, err = ask("rhea", filed.Number, fmt.Sprintf("%d/7", filed.Number))
	w.refused(err, "not the last one")
	_, err = ask("rhea", 4711, "")
	w.refused(err, "said nothing")
	w.Forge.AddUser("stranger")
	w.Forge.AddRepo("ops/closed", forgetest.Private())
	_, err = w.desk().Status(t.Context(), bot.Inquiry{Account: "rhea", Repository: "ops/closed", Number: 1})
	w.refused(err, "none of this bot's repositories")
}
