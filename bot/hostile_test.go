package bot_test

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"playbook-bot/bot/forge/forgetest"
	"playbook-bot/bot/forge/gitea"
)

// hostility is one way in which a forge can fail.
type hostility struct {
	name  string
	fault func() forgetest.Fault
	// ends: the forge says, in so many words, that trying again is no use. Then
	// the event or answer may be dead, with a reason; all else must be done.
	ends bool
	// lasts: it never stops, so that waiting for it with a stated time is all
	// that can be asked.
	lasts bool
	// slow: what is done may be done only after this; zero: within two minutes.
	slow time.Duration
}

func hostilities() []hostility {
	of := func(f forgetest.Fault) func() forgetest.Fault { return func() forgetest.Fault { return f } }
	words := forgetest.Fault{Status: 403, Header: http.Header{"Content-Type": {"application/json"}},
		Body: `{"message":"API rate limit exceeded","url":"x"}`}
	locked := forgetest.Fault{Status: 403, Header: http.Header{"Content-Type": {"application/json"}},
		Body: `{"message":"You cannot comment on a locked issue.","url":"x"}`}
	date := func() forgetest.Fault { return forgetest.RateLimitedUntil(429, time.Now().Add(90*time.Second)) }
	day := 24 * time.Hour
	return []hostility{
		{name: "500 after the deed", fault: of(forgetest.AnswerDone(500))},
		{name: "500", fault: of(forgetest.Answer(500))},
		{name: "500 for ever", fault: of(forgetest.Answer(500).For(-1)), ends: true, lasts: true},
		{name: "dropped after the deed", fault: of(forgetest.DroppedDone()), slow: 3 * time.Minute},
		{name: "dropped", fault: of(forgetest.Dropped()), slow: 3 * time.Minute},
		{name: "answer after the timeout", fault: of(forgetest.Late(30 * time.Second)), slow: 3 * time.Minute},
		{name: "deed after the timeout", fault: of(forgetest.LateDone(12 * time.Second)), slow: 3 * time.Minute},
		{name: "slow drip", fault: of(forgetest.Dripping(40, time.Second)), slow: 3 * time.Minute},
		{name: "refused connection", fault: of(forgetest.Fault{Refuse: true})},
		{name: "429", fault: of(forgetest.Answer(429))},
		{name: "429 Retry-After", fault: of(forgetest.RateLimited(429, 30*time.Second))},
		{name: "429 with a date", fault: date, slow: 4 * time.Minute},
		{name: "429 for a day", fault: of(forgetest.RateLimited(429, day)), slow: day + time.Hour},
		{name: "403 rate limit", fault: of(forgetest.RateLimited(403, time.Minute)), slow: 3 * time.Minute},
		{name: "403 rate limit in words", fault: of(words)},
		{name: "403 locked", fault: of(locked), ends: true},
		{name: "401 once", fault: of(forgetest.Answer(401))},
		{name: "404 once", fault: of(forgetest.Answer(404))},
		{name: "404 for ever", fault: of(forgetest.Answer(404).For(-1)), ends: true, lasts: true},
		{name: "410", fault: of(forgetest.Answer(410)), ends: true},
		{name: "423", fault: of(forgetest.Answer(423)), ends: true},
		{name: "301", fault: of(forgetest.Redirect(301, "/api/v1/repos/ops/elsewhere"))},
		{name: "truncated JSON", fault: of(forgetest.Fault{Truncate: true})},
		{name: "HTML with 200", fault: of(forgetest.GatewayPage(200)), slow: 3 * time.Minute},
		{name: "HTML with 502", fault: of(forgetest.GatewayPage(502)), slow: 3 * time.Minute},
		{name: "100 MB", fault: of(forgetest.Fault{Pad: 100 << 20})},
	}
}

// hostileCall is a call of the bot's that a fault is put upon.
type hostileCall struct {
	kind string
	// nth is which call of the kind is hit first, counted from the act.
	nth     int
	prepare func(w *world) int64
	act     func(w *world, n int64)
	// done reports whether all that was asked for stands.
	done func(w *world, n int64) bool
	// slow is added to the hostility's: what no delivery tells takes a sweep.
	slow time.Duration
	// found: it is the sweep's own call. While that fails for ever the bot
	// cannot know that there is a question.
	found bool
	// courtesy: labels and reactions. That they are given up after a while
	// costs nobody anything.
	courtesy bool
}

func says(who string, lines ...string) func(*world, int64) {
	return func(w *world, n int64) { w.posts(who, n, lines...) }
}

func answered(words ...string) func(*world, int64) bool {
	return func(w *world, n int64) bool {
		got := w.heads(n)
		return slices.EqualFunc(got, words, strings.Contains)
	}
}

func both(a, b func(*world, int64) bool) func(*world, int64) bool {
	return func(w *world, n int64) bool { return a(w, n) && b(w, n) }
}

func either(a, b func(*world, int64) bool) func(*world, int64) bool {
	return func(w *world, n int64) bool { return a(w, n) || b(w, n) }
}

func labelled(label string) func(*world, int64) bool {
	return func(w *world, n int64) bool { return slices.Contains(w.forge.Labels(repoName, n), label) }
}

func asked(w *world) int64 {
	n := w.opens("adam", "search is down")
	w.says("adam", n, "/restart full_mcp_restart")
	return n
}

// askedAnew leaves the bot without anything in memory.
func askedAnew(w *world) int64 {
	n := asked(w)
	w.restart()
	return n
}

func hostileCalls() []hostileCall {
	attempt := says("wren", "/attempt client_reconnect failed")
	flipped := answered(refused, nowOK)
	// What no delivery told may not flip a verdict by itself; and whoever's
	// right to do so cannot be read for long is told the line to paste.
	told := answered(refused, "Would now be allowed")
	return []hostileCall{
		{kind: "issue.read", nth: 1, prepare: func(*world) int64 { return 0 }, act: opensForm, done: answered(refused)},
		{kind: "issue.read", nth: 2, prepare: func(*world) int64 { return 0 }, act: opensForm, done: answered(refused)},
		{kind: "comment.read", nth: 1, prepare: asked, act: elsewhere(attempt), done: flipped},
		{kind: "comment.list", nth: 1, prepare: asked, act: attempt, done: flipped},
		{kind: "permission.read", nth: 1, prepare: asked, act: attempt, done: either(flipped, told)},
		{kind: "permission.read", nth: 2, prepare: asked, act: attempt, done: either(flipped, either(answered(refused, undecided), answered(refused, undecided, nowOK)))},
		{kind: "repo.by_id", nth: 1, prepare: askedAnew, act: attempt, done: flipped},
		{kind: "user.self", nth: 1, prepare: askedAnew, act: attempt, done: flipped},
		{kind: "issue.updated", nth: 1, prepare: asked, act: unheard, done: told, slow: 6 * time.Minute, found: true},
		{kind: "comment.updated", nth: 1, prepare: asked, act: unheard, done: told, slow: 6 * time.Minute, found: true},
		{kind: "comment.create", nth: 1, prepare: asked, act: attempt, done: flipped},
		{kind: "comment.edit", nth: 1, prepare: asked, act: tamper, done: answered(refused)},
		{kind: "comment.create", nth: 1, prepare: asked, act: deleteAnswer, done: answered(postedAgain)},
		{kind: "comment.delete", nth: 1, prepare: doubled, act: func(*world, int64) {}, done: flipped, slow: 6 * time.Minute},
		{kind: "label.add", nth: 1, prepare: asked, act: attempt, done: both(flipped, labelled("recovery/approved")), courtesy: true},
		{kind: "reaction.add", nth: 1, prepare: asked, act: attempt, done: both(flipped, func(w *world, n int64) bool {
			return slices.Contains(w.reactions(n, w.lastBy("wren", n)), "+1")
		}), courtesy: true},
	}
}

// elsewhere has another process work on what was delivered to this one.
func elsewhere(act func(*world, int64)) func(*world, int64) {
	return func(w *world, n int64) {
		act(w, n)
		w.forge.Settle()
		w.restart()
	}
}

func opensForm(w *world, _ int64) { w.files("adam", "/restart full_mcp_restart") }

// unheard is a comment whose delivery is lost.
func unheard(w *world, n int64) {
	w.forge.Hold(true)
	w.posts("wren", n, "/attempt client_reconnect failed")
	w.forge.Take()
	w.forge.Hold(false)
	pass(time.Minute)
}

func tamper(w *world, n int64) {
	c := w.answers(n)[0]
	w.must(w.forge.EditComment("wren", c.ID, strings.Replace(c.Body, "Refused", "Approved", 1)))
}

func deleteAnswer(w *world, n int64) { w.must(w.forge.DeleteComment("wren", w.answers(n)[0].ID)) }

// doubled is a thread with a double: a POST that took effect long after anyone
// could expect it.
func doubled(w *world) int64 {
	n := asked(w)
	w.forge.OrderKind("comment.create", forgetest.LateDone(4*time.Minute))
	w.posts("wren", n, "/attempt client_reconnect failed")
	w.settleFor(3 * time.Minute)
	pass(4 * time.Minute)
	if got := len(w.answers(n)); got != 3 {
		w.t.Fatalf("%d answers, want a double to begin with", got)
	}
	return n
}

// lastBy is the id of somebody's last comment.
func (w *world) lastBy(login string, n int64) int64 {
	all := w.forge.CommentsBy(login, repoName, n)
	if len(all) == 0 {
		return 0
	}
	return all[len(all)-1].ID
}

// live lets time pass with the sweeps that a running bot makes.
func (w *world) live(d time.Duration) {
	w.t.Helper()
	end := time.Now().Add(d)
	for step := 5 * time.Minute; time.Now().Before(end); {
		w.advance(min(step, time.Until(end)))
		_ = w.bot.Sweep(context.Background(), "gitea") // its failure is the fault's
		w.settle()
		if time.Until(end) > 6*time.Hour {
			step = time.Hour
		}
	}
}

// outcome puts into words how a question ended.
func (w *world) outcome(done bool) string {
	next, err := w.ledger.NextWake(context.Background())
	w.must(err)
	w.ledger.mu.Lock()
	notes := append(w.dead(), w.ledger.notes...)
	w.ledger.mu.Unlock()
	if w.observed("effects_dropped") > 0 {
		notes = append(notes, "label or reaction given up, in the log")
	}
	switch {
	case done:
		return "done"
	case len(notes) > 0:
		slices.Sort(notes)
		return "dead: " + strings.Join(slices.Compact(notes), "; ")
	case next.After(time.Now()) && time.Until(next) < 48*time.Hour: // later is the end of request or approval
		return "waiting until +" + time.Until(next).Round(time.Second).String()
	}
	return "lost"
}

// TestHostileForge is the fault matrix: each fault on each call of the bot's
// ends in one lasting answer, in a stated next try, or dead with a reason;
// never twice, never lost, never in a loop.
func TestHostileForge(t *testing.T) {
	var mu sync.Mutex
	var rows []string
	counts := map[string]int{}
	t.Cleanup(func() {
		slices.Sort(rows)
		t.Logf("what becomes of an answer (after two minutes, and in the end):\n%s%v", strings.Join(rows, ""), counts)
	})
	for _, c := range hostileCalls() {
		for _, h := range hostilities() {
			if c.found && h.lasts {
				continue
			}
			name := fmt.Sprintf("%s %d/%s", c.kind, c.nth, h.name)
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				inBubbleWith(t, worldOptions{playbook: patientPlaybook(t), adapter: func(cfg *gitea.Config) { cfg.MaxBody = 8 << 20 }}, func(w *world) {
					first, last := w.suffer(c, h)
					mu.Lock()
					defer mu.Unlock()
					rows = append(rows, fmt.Sprintf("%-18s %-26s %-34s %s\n", c.kind, h.name, first, last))
					counts[strings.SplitN(last, " ", 2)[0]]++
				})
			})
		}
	}
}

// suffer plays one cell, and says what stood soon and what stood at last.
func (w *world) suffer(c hostileCall, h hostility) (first, last string) {
	w.t.Helper()
	n := c.prepare(w)
	if c.nth > 1 {
		w.forge.OrderKind(c.kind, forgetest.Fault{}.For(c.nth-1))
	}
	order := w.forge.OrderKind(c.kind, h.fault())
	c.act(w, n)
	if n == 0 {
		n = w.numbers[0]
	}
	w.live(2 * time.Minute)
	first = w.outcome(c.done(w, n))
	slow := h.slow + c.slow
	w.live(slow)
	if soon := w.outcome(c.done(w, n)); soon != "done" && !h.ends && !c.courtesy {
		w.t.Errorf("after %s: %s", 2*time.Minute+slow, soon)
	}
	if h.lasts || slow > time.Hour {
		w.live(2*24*time.Hour - slow)
	} else {
		w.live(time.Hour)
	}
	last = w.outcome(c.done(w, n))
	w.excused = last != "done"
	switch {
	case order.Applied() == 0:
		w.t.Error("the fault never happened")
	case last == "lost":
		w.t.Errorf("lost: %v", w.heads(n))
	case last == "done", h.ends, c.courtesy && h.lasts:
	default:
		w.t.Errorf("in the end: %s (%v)", last, w.heads(n))
	}
	if a := order.Applied(); a > 1500 {
		w.t.Errorf("%d calls against a forge that refuses them", a)
	}
	return first, last
}
