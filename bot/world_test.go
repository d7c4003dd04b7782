package bot_test

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"flag"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"playbook-bot/bot"
	"playbook-bot/bot/forge"
	"playbook-bot/bot/forge/forgetest"
	"playbook-bot/bot/forge/gitea"
	"playbook-bot/bot/golden"
	"playbook-bot/bot/store"
	"playbook-bot/bot/webhook"
)

var verbose = flag.Bool("bot.log", false, "show the bot's log")

const (
	repoName = golden.RepoName
	botLogin = "playbook-bot"
	full     = "full_mcp_restart"
)

// world is a forge with people and a bot beside it, in one process and, by way
// of testing/synctest, on one clock that moves only when nobody has anything
// left to do. Faults that take minutes cost nothing, and a loop without a
// pause is found because the clock stands still in it.
type world struct {
	t      testing.TB
	forge  *forgetest.Forge
	repo   forge.Repo
	sc     *golden.Scenario
	change func(*bot.Config)

	client *gitea.Client
	token  string
	ledger *countingLedger
	bot    *bot.Bot
	intake http.Handler
	// then happens when the bot comes by the boundary at; see during.
	at   string
	then func()
	// faults are those ordered by a random history.
	faults []*forgetest.Order
	// crash is the boundary at which the process dies; see crashAt.
	crash string
	// noTotals: listings do not say how much there is.
	noTotals bool
	// excused: a comment of the bot's could not be restored.
	excused bool
	// numbers are the threads opened by opens.
	numbers []int64
	// nextOwner numbers the bots, whose names among the leases must differ.
	nextOwner int

	mu   sync.Mutex
	seen map[string]int // observations
}

// people of most tests: one of each permission.
var people = []golden.Person{{Login: "olivia", Permission: "owner"}, {Login: "adam", Permission: "admin"},
	{Login: "wren", Permission: "write"}, {Login: "rhea", Permission: "read"}}

// inBubble runs f in a synctest bubble with a world in it.
func inBubble(t *testing.T, f func(*world)) { inBubbleWith(t, worldOptions{}, f) }

type worldOptions struct {
	people []golden.Person
	// repos is REPOSITORIES; grants are the break-glass grants; playbook is
	// another playbook, as YAML.
	repos, grants, playbook string
	change                  func(*bot.Config)
	adapter                 func(*gitea.Config)
	// scopes of the bot's token; nil: those that suffice without teams.
	scopes []string
}

func inBubbleWith(t *testing.T, o worldOptions, f func(*world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, o)
		defer w.close()
		f(w)
		w.checkChains()
		if !w.excused {
			w.checkMarkers()
		}
	})
}

func newWorld(t testing.TB, o worldOptions) *world {
	t.Helper()
	w := &world{t: t, change: o.change, seen: map[string]int{}}
	if o.people == nil {
		o.people = people
	}
	if o.repos == "" {
		o.repos = repoName
	}
	w.sc = &golden.Scenario{Name: t.Name(), People: o.people, Repos: o.repos, Grants: o.grants, BotPerm: "admin", Playbook: o.playbook}
	w.forge = forgetest.New(time.Now)
	w.forge.AddUser(botLogin)
	var owners []string
	for _, p := range o.people {
		w.forge.AddUser(p.Login)
		if p.Permission == "owner" {
			owners = append(owners, p.Login)
		}
	}
	w.forge.AddOrg("ops", owners...)
	w.repo = w.forge.AddRepo(repoName)
	for _, p := range o.people {
		if p.Permission == "write" || p.Permission == "admin" {
			w.forge.AddCollaborator(repoName, p.Login, p.Permission)
		}
	}
	w.forge.AddCollaborator(repoName, botLogin, "admin")
	w.hook(w.repo)
	w.token = w.forge.Token(botLogin, o.scopes...)
	cfg := gitea.Config{BaseURL: w.forge.Host, HTTP: &http.Client{Transport: totals{w, w.forge.RoundTripper()}}, Token: func() string { return w.token }}
	if o.adapter != nil {
		o.adapter(&cfg)
	}
	var err error
	if w.client, err = gitea.New(cfg); err != nil {
		t.Fatal(err)
	}
	w.loseDatabase()
	return w
}

// totals takes X-Total-Count and Link away where the world says so.
type totals struct {
	w    *world
	next http.RoundTripper
}

func (t totals) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := t.next.RoundTrip(r)
	if err == nil && t.w.noTotals {
		resp.Header.Del("X-Total-Count")
		resp.Header.Del("Link")
	}
	return resp, err
}

// hook has the forge tell the bot of a repository.
func (w *world) hook(r forge.Repo) {
	w.forge.AddRepoHook(r.FullName(), webhook.HookSecret(golden.Secret, "gitea", webhook.ScopeRepo, r.ID))
}

// loseDatabase starts a bot with an empty one.
func (w *world) loseDatabase() {
	w.t.Helper()
	l, err := store.Open(context.Background(), "sqlite::memory:", store.Options{Now: time.Now})
	if err != nil {
		w.t.Fatal(err)
	}
	if w.ledger != nil {
		w.must(w.ledger.Close())
	}
	w.ledger = &countingLedger{Store: l}
	w.restart()
}

// restart gives the same database to a new bot, which has forgotten all else.
func (w *world) restart() {
	w.t.Helper()
	w.nextOwner++
	b, h, err := golden.Assemble(w.sc, golden.Parts{Forge: w.client, Ledger: w.ledger, Settle: 3 * time.Second, Change: func(c *bot.Config) {
		c.Owner = fmt.Sprintf("bot %d", w.nextOwner)
		c.SettleUnknown = time.Minute
		c.Log = w.log()
		c.Observe = func(o bot.Observation) {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.seen[o.What]++
		}
		c.Fail = func(point string) {
			if then := w.then; then != nil && point == w.at {
				w.then = nil
				then()
			}
			if point != "" && point == w.crash {
				panic(crash{point})
			}
		}
		if w.change != nil {
			w.change(c)
		}
	}})
	w.must(err)
	w.bot, w.intake = b, h
	w.forge.SetSink(forgetest.HandlerSink(h))
}

// log is where the bot's log goes: nowhere, but with -bot.log.
func (w *world) log() *slog.Logger {
	if !*verbose {
		return slog.New(slog.DiscardHandler)
	}
	return slog.New(slog.NewTextHandler(w.t.Output(), &slog.HandlerOptions{Level: slog.LevelDebug}))
}

func (w *world) close() {
	w.forge.Settle()
	w.forge.Close()
	w.must(w.ledger.Close())
}

func (w *world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) observed(what string) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.seen[what]
}

// settle lets deliveries arrive and the bot do what is due now, moving the
// clock over waits of a few seconds, as people would not notice them.
func (w *world) settle() { w.settleFor(15 * time.Second) }

// settleFor works until nothing is due within the patience, which covers all
// waits together.
func (w *world) settleFor(patience time.Duration) {
	w.t.Helper()
	end := time.Now().Add(patience)
	for {
		w.forge.Settle()
		w.must(w.bot.Drain(context.Background()))
		next, err := w.ledger.NextWake(context.Background())
		w.must(err)
		if next.IsZero() || next.After(end) {
			return
		}
		pass(max(time.Until(next), time.Millisecond))
	}
}

// pass moves the bubble's clock.
func pass(d time.Duration) {
	<-time.After(d)
}

// advance lets time pass, and what becomes due in it happen.
func (w *world) advance(d time.Duration) {
	w.t.Helper()
	end := time.Now().Add(d)
	w.settleFor(d)
	if left := time.Until(end); left > 0 {
		pass(left)
	}
	w.settle()
}

// breath is what people need between two acts; no two texts share a second.
func breath() { pass(2 * time.Second) }

func (w *world) opens(as, body string) int64 {
	w.t.Helper()
	n := w.files(as, body)
	w.settle()
	breath()
	return n
}

// files is opens without the bot getting to work.
func (w *world) files(as, body string) int64 {
	w.t.Helper()
	n, err := w.forge.OpenIssue(as, repoName, "MCP is down", body)
	w.must(err)
	w.numbers = append(w.numbers, n)
	return n
}

func (w *world) says(as string, number int64, lines ...string) int64 {
	w.t.Helper()
	id := w.posts(as, number, lines...)
	w.settle()
	breath()
	return id
}

// posts is says without the bot getting to work.
func (w *world) posts(as string, number int64, lines ...string) int64 {
	w.t.Helper()
	id, err := w.forge.Comment(as, repoName, number, strings.Join(lines, "\n"))
	w.must(err)
	return id
}

func (w *world) edits(as string, id int64, lines ...string) {
	w.t.Helper()
	w.must(w.forge.EditComment(as, id, strings.Join(lines, "\n")))
	w.settle()
	breath()
}

func (w *world) deletes(as string, id int64) {
	w.t.Helper()
	w.must(w.forge.DeleteComment(as, id))
	w.settle()
	breath()
}

func (w *world) sweep() {
	w.t.Helper()
	w.must(w.bot.Sweep(context.Background(), "gitea"))
	w.settle()
}

// answers are the bot's comments in a thread.
func (w *world) answers(number int64) []forge.Comment {
	return w.forge.CommentsBy(w.botName(), repoName, number)
}

func (w *world) botName() string {
	a, err := w.client.Self(context.Background())
	if err != nil {
		return botLogin
	}
	return a.Login
}

// heads are the first lines of the bot's comments.
func (w *world) heads(number int64) []string {
	var out []string
	for _, c := range w.answers(number) {
		head, _, _ := strings.Cut(c.Body, "\n")
		out = append(out, head)
	}
	return out
}

// wantHeads checks that the first lines of the bot's comments hold these words,
// one by one.
func (w *world) wantHeads(number int64, words ...string) {
	w.t.Helper()
	got := w.heads(number)
	ok := len(got) == len(words)
	for i := 0; ok && i < len(got); i++ {
		ok = strings.Contains(got[i], words[i])
	}
	if !ok {
		w.t.Errorf("the bot said\n\t%s\nwanted, by their words\n\t%s", strings.Join(got, "\n\t"), strings.Join(words, "\n\t"))
	}
}

// Words by which answers are known; what signs stand before them is the
// templates' affair.
const (
	refused   = "Refused"
	approved  = "Approved until"
	nowOK     = "Now approved until"
	undecided = "Not decided"
	goAhead   = "Go ahead"
	recorded  = "Recorded"
	revoked   = "Revoked"

	postedAgain = "Posted again"
)

// snapshot is the part of the bot's document on a thread that tests look at.
type snapshot struct {
	Closed  bool
	Gone    bool
	Request *struct {
		ID, Action, Target, Verdict, Code string
		Requester                         forge.Account
		Trigger                           forge.Object
		Endorsement                       *struct {
			By      forge.Account
			Comment forge.Object
		}
		MustAsk bool `json:"must_ask"`
	}
	Approval *struct {
		ID      string
		Expires time.Time
	}
	Ended string
}

func (s snapshot) verdict() string {
	if s.Request == nil {
		return ""
	}
	return s.Request.Verdict
}

func (w *world) thread(number int64) *store.Thread {
	w.t.Helper()
	th, err := w.ledger.FindThread(context.Background(), "gitea", w.repo.ID, number)
	w.must(err)
	return th
}

func (w *world) state(number int64) (s snapshot) {
	w.t.Helper()
	if raw := w.thread(number).State; len(raw) > 0 {
		w.must(json.Unmarshal(raw, &s))
	}
	return s
}

// approvalStands asks as `playbook-bot approval` does.
func (w *world) approvalStands(number int64, request string) bool {
	w.t.Helper()
	st, err := bot.ApprovalOf(w.thread(number), request, time.Now())
	w.must(err)
	return st.Standing
}

// checkChains verifies the audit chain of every thread.
func (w *world) checkChains() {
	w.t.Helper()
	rows, err := w.ledger.Audit(context.Background(), 0)
	w.must(err)
	for len(rows) > 0 {
		n := 1
		for n < len(rows) && rows[n].Thread.ID == rows[0].Thread.ID {
			n++
		}
		if _, err := bot.VerifyChain([]string{golden.Secret}, rows[:n]); err != nil {
			w.t.Errorf("thread %d: %v", rows[0].Thread.Number, err)
		}
		rows = rows[n:]
	}
}

// checkMarkers verifies that all that stands under the bot's name is its own
// word, and that no two comments of one thread bear one key.
func (w *world) checkMarkers() {
	w.t.Helper()
	for _, n := range w.numbers {
		keys := map[string]int64{}
		for _, c := range w.answers(n) {
			if !bot.Genuine([]string{golden.Secret}, "gitea", w.repo.ID, n, c.Body) {
				w.t.Errorf("comment %d of thread %d bears no marker that fits", c.ID, n)
				continue
			}
			key := markerKey(c.Body)
			if other, twice := keys[key]; twice {
				w.t.Errorf("comments %d and %d of thread %d are both %s", other, c.ID, n, key)
			}
			keys[key] = c.ID
		}
	}
}

func signature(secret string, body []byte) string {
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write(body)
	return hex.EncodeToString(mac.Sum(nil))
}

func markerKey(body string) string {
	_, rest, _ := strings.Cut(body, "<!-- playbook-bot:1 key=")
	key, _, _ := strings.Cut(rest, " ")
	return key
}

// quiet asserts that the bot has nothing left to do, ever, but by its timers.
func (w *world) quiet() {
	w.t.Helper()
	st, err := w.ledger.Stats(context.Background())
	w.must(err)
	if st.Waiting > 0 || st.OpenAnswers > 0 {
		w.t.Errorf("%d events wait and %d answers are open", st.Waiting, st.OpenAnswers)
	}
}

// dead are the notes of the dead events.
func (w *world) dead() []string {
	w.t.Helper()
	events, err := w.ledger.Dead(context.Background())
	w.must(err)
	var out []string
	for _, e := range events {
		out = append(out, e.Note)
	}
	return out
}

// reactions are the bot's on a comment, sorted.
func (w *world) reactions(number, comment int64) []forge.Reaction {
	out := w.forge.Reactions(w.botName(), repoName, number, forge.Object{Kind: forge.ObjectComment, ID: comment})
	slices.Sort(out)
	return out
}

// countingLedger finds loops without a pause: the clock stands still while
// threads are claimed over and over, or the time between two claims is always
// the same small one.
type countingLedger struct {
	store.Store
	mu    sync.Mutex
	at    time.Time
	count int
	// refuse is what Accept answers; nil: it takes in.
	refuse error
	// notes say why answers and events were given up.
	notes []string
}

// maxClaims is how many claims may fall into one second: far more than any
// test has threads.
const maxClaims = 3000

func (l *countingLedger) Acquire(ctx context.Context, owner string, lease time.Duration) (*store.Lease, error) {
	le, err := l.Store.Acquire(ctx, owner, lease)
	l.mu.Lock()
	defer l.mu.Unlock()
	if now := time.Now().Truncate(time.Second); now != l.at {
		l.at, l.count = now, 0
	}
	if l.count++; l.count > maxClaims {
		return nil, fmt.Errorf("a loop: %d claims within the second of %s", l.count, l.at)
	}
	return le, err
}

func (l *countingLedger) Accept(ctx context.Context, in store.Incoming) (bool, error) {
	if l.refuse != nil {
		return false, l.refuse
	}
	return l.Store.Accept(ctx, in)
}

// Commit notes what becomes of answers: no call lists the dead ones.
func (l *countingLedger) Commit(ctx context.Context, le *store.Lease, c store.Change) error {
	err := l.Store.Commit(ctx, le, c)
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, a := range c.Settle {
		if err == nil && a.Status == store.AnswerDead {
			l.notes = append(l.notes, "answer: "+a.Note)
		}
	}
	for _, e := range c.Finish {
		switch e.Note {
		case "the thread is gone", "the repository is gone", "deleted before it was read":
			l.notes = append(l.notes, e.Note)
		}
	}
	return err
}

// playbookWith is the embedded playbook with other values for some of its
// keys, given as pairs of old and new text.
func playbookWith(t testing.TB, pairs ...string) string {
	t.Helper()
	data, err := os.ReadFile("../playbook/mcp.yaml")
	if err != nil {
		t.Fatal(err)
	}
	text := string(data)
	for i := 0; i < len(pairs); i += 2 {
		if !strings.Contains(text, pairs[i]) {
			t.Fatalf("the playbook holds no %q", pairs[i])
		}
		text = strings.Replace(text, pairs[i], pairs[i+1], 1)
	}
	return text
}

// patientPlaybook lets approvals and requests stand for days, for tests that
// look at something else that takes long.
func patientPlaybook(t testing.TB) string {
	return playbookWith(t, "approval_ttl: 1h", "approval_ttl: 720h", "request_ttl: 24h", "request_ttl: 1000h")
}
