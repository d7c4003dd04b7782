package golden

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"playbook-bot/bot"
	"playbook-bot/bot/forge"
	"playbook-bot/bot/forge/forgetest"
	"playbook-bot/bot/forge/gitea"
	"playbook-bot/bot/store"
	"playbook-bot/bot/webhook"
	"playbook-bot/playbook"
	"playbook-bot/templates"
)

// Secret is PLAYBOOK_SECRET in the scenarios.
const Secret = "a secret of the golden conversations, 32+"

// RepoName is where the scenarios take place.
const RepoName = "ops/incidents"

// Dialect is a kind of forge to play on.
type Dialect struct {
	// Hooks is its side of the intake; its name is the forge's.
	Hooks webhook.Dialect
	// Fake makes an empty fake of it.
	Fake func(now func() time.Time) *forgetest.Forge
	// Adapter makes the bot's side of it.
	Adapter func(f *forgetest.Forge, token func() string, now func() time.Time) (bot.Forge, error)
}

// Gitea is where the scenarios play if nothing else is said.
var Gitea = Dialect{
	Hooks: gitea.Dialect{},
	Fake:  forgetest.New,
	Adapter: func(f *forgetest.Forge, token func() string, now func() time.Time) (bot.Forge, error) {
		return gitea.New(gitea.Config{BaseURL: f.Host, HTTP: f.Client(), Token: token, Now: now})
	},
}

// Parts is what a scenario's bot is assembled from.
type Parts struct {
	Forge bot.Forge
	// Hooks reads the forge's deliveries; nil: Gitea's.
	Hooks  webhook.Dialect
	Ledger bot.Ledger
	Now    func() time.Time // nil: the wall clock
	Settle time.Duration
	Change func(*bot.Config)
}

// Assemble makes the bot that a scenario wants, and its intake.
func Assemble(sc *Scenario, p Parts) (*bot.Bot, http.Handler, error) {
	pb, err := sc.playbook()
	if err != nil {
		return nil, nil, err
	}
	grants, err := playbook.ParseGrants(sc.Grants)
	if err != nil {
		return nil, nil, fmt.Errorf("%s: grants: %w", sc.Name, err)
	}
	repos, err := bot.ParsePatterns(strings.Split(sc.Repos, ","))
	if err != nil {
		return nil, nil, fmt.Errorf("%s: repositories: %w", sc.Name, err)
	}
	r, err := templates.New(templates.Options{Playbook: pb})
	if err != nil {
		return nil, nil, err
	}
	if p.Hooks == nil {
		p.Hooks = Gitea.Hooks
	}
	cfg := bot.Config{
		Forges: map[string]bot.Forge{p.Hooks.Name(): p.Forge}, Ledger: p.Ledger, Playbook: pb, Renderer: r, Repositories: repos,
		Grants:  func() (playbook.Grants, error) { return grants, nil },
		Secrets: func() []string { return []string{Secret} }, Owner: "golden", Now: p.Now,
		Settle: p.Settle, SettleUnknown: p.Settle,
	}
	if p.Change != nil {
		p.Change(&cfg)
	}
	b, err := bot.New(cfg)
	if err != nil {
		return nil, nil, err
	}
	h, err := webhook.New(webhook.Config{Dialects: []webhook.Dialect{p.Hooks}, Masters: cfg.Secrets, Accept: b.Accept, Log: b.Log})
	return b, h, err
}

func (sc *Scenario) playbook() (*playbook.Playbook, error) {
	if sc.Playbook == "" {
		return playbook.Default(), nil
	}
	pb, err := playbook.Load(strings.NewReader(sc.Playbook))
	if err != nil {
		return nil, fmt.Errorf("%s: playbook: %w", sc.Name, err)
	}
	return pb, nil
}

// Clock is a clock that only moves when told to.
type Clock struct {
	mu sync.Mutex
	at time.Time
}

// NewClock starts at a whole second.
func NewClock() *Clock { return &Clock{at: time.Date(2026, 12, 1, 3, 4, 11, 0, time.UTC)} }

// Now is the clock's time.
func (c *Clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.at
}

// Advance moves the clock.
func (c *Clock) Advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = c.at.Add(d)
}

// Fake is a World on the fake forge, in one process and on one clock.
type Fake struct {
	Forge  *forgetest.Forge
	Repo   forge.Repo
	Clock  *Clock
	Bot    *bot.Bot
	Ledger store.Store

	t     testing.TB
	sc    *Scenario
	parts Parts
	login string
	hurry bool
	name  string // the forge's
}

// Hurry lets the next two acts fall into one second.
func (w *Fake) Hurry() { w.hurry = true }

var (
	_ World     = (*Fake)(nil)
	_ Faker     = (*Fake)(nil)
	_ Committer = (*Fake)(nil)
)

// NewFake makes the world of a scenario, on Gitea.
func NewFake(t testing.TB, sc *Scenario, change func(*bot.Config)) *Fake {
	t.Helper()
	return NewFakeOn(t, Gitea, sc, change)
}

// NewFakeOn makes the world of a scenario on another kind of forge. Where that
// matters to it the scenario must be the one of Scenario.On.
func NewFakeOn(t testing.TB, d Dialect, sc *Scenario, change func(*bot.Config)) *Fake {
	t.Helper()
	w := &Fake{t: t, sc: sc, Clock: NewClock(), login: "playbook-bot", name: d.Hooks.Name()}
	w.Forge = d.Fake(w.Clock.Now)
	t.Cleanup(w.Forge.Close)
	w.Forge.AddUser(w.login)
	owner := "ops"
	var owners []string
	for _, p := range sc.People {
		w.Forge.AddUser(p.Login)
		if p.Permission == "owner" {
			owners = append(owners, p.Login)
		}
	}
	w.Forge.AddOrg(owner, owners...)
	w.Repo = w.Forge.AddRepo(RepoName)
	for _, p := range sc.People {
		if p.Permission != "owner" && p.Permission != "none" && p.Permission != "read" {
			w.Forge.AddCollaborator(RepoName, p.Login, p.Permission)
		}
	}
	w.Forge.AddCollaborator(RepoName, w.login, sc.BotPerm)
	client, err := d.Adapter(w.Forge, w.token, w.Clock.Now)
	if err != nil {
		t.Fatal(err)
	}
	w.parts = Parts{Forge: client, Hooks: d.Hooks, Now: w.Clock.Now, Settle: time.Second, Change: change}
	w.start()
	w.Forge.AddRepoHook(RepoName, webhook.HookSecret(Secret, w.name, webhook.ScopeRepo, w.Repo.ID))
	return w
}

var tokens sync.Map // *Fake → token

func (w *Fake) token() string {
	if v, ok := tokens.Load(w); ok {
		return v.(string)
	}
	// Roles by team take the organisation's scope, and on GitHub so does seeing
	// who owns.
	v := w.Forge.Token(w.login, append(slices.Clone(forgetest.BotScopes), "read:organization")...)
	tokens.Store(w, v)
	return v
}

// start gives the world a bot with an empty database.
func (w *Fake) start() {
	w.t.Helper()
	ctx := w.t.Context()
	l, err := store.Open(ctx, "sqlite::memory:", store.Options{Now: w.Clock.Now})
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { _ = l.Close() })
	w.StartOn(l)
}

// StartOn gives the world a bot on a database of the caller's.
func (w *Fake) StartOn(l store.Store) {
	w.t.Helper()
	w.Ledger, w.parts.Ledger = l, l
	w.Restart()
}

// Restart gives the world a new bot on the database it has.
func (w *Fake) Restart() {
	w.t.Helper()
	b, h, err := Assemble(w.sc, w.parts)
	if err != nil {
		w.t.Fatal(err)
	}
	w.Bot = b
	w.Forge.SetSink(forgetest.HandlerSink(h))
}

// settle lets deliveries arrive and the bot work, until neither has anything
// left to do now. Waits of a few seconds are over at once: the clock moves.
func (w *Fake) settle(err error) error {
	if err != nil {
		return err
	}
	for range 20 {
		w.Forge.Settle()
		if err := w.Bot.Drain(w.t.Context()); err != nil {
			return err
		}
		next, err := w.Ledger.NextWake(w.t.Context())
		if err != nil {
			return err
		}
		wait := next.Sub(w.Clock.Now())
		if next.IsZero() || wait > 15*time.Second {
			break
		}
		w.Clock.Advance(max(wait, time.Millisecond))
	}
	// People take their time: no two texts within one second, unless they hurry.
	if !w.hurry {
		w.Clock.Advance(2 * time.Second)
	}
	w.hurry = false
	return nil
}

func (w *Fake) Open(as, title, body string) (int64, error) {
	n, err := w.Forge.OpenIssue(as, RepoName, title, body)
	return n, w.settle(err)
}

func (w *Fake) Comment(as string, number int64, body string) error {
	_, err := w.Forge.Comment(as, RepoName, number, body)
	return w.settle(err)
}

func (w *Fake) EditIssue(as string, number int64, body string) error {
	return w.settle(w.Forge.EditIssue(as, RepoName, number, nil, &body))
}

func (w *Fake) EditTitle(as string, number int64, title string) error {
	return w.settle(w.Forge.EditIssue(as, RepoName, number, &title, nil))
}

func (w *Fake) EditComment(as string, _, id int64, body string) error {
	return w.settle(w.Forge.EditComment(as, id, body))
}

func (w *Fake) DeleteComment(as string, _, id int64) error {
	return w.settle(w.Forge.DeleteComment(as, id))
}

// Commit writes a file of the default branch, or removes it. The bot hears of
// it by itself, a minute later at most.
func (w *Fake) Commit(as, path, content string) error {
	var raw []byte
	if content != "" {
		raw = []byte(content)
	}
	return w.settle(w.Forge.Commit(as, RepoName, path, raw))
}

func (w *Fake) SetClosed(as string, number int64, closed bool) error {
	if closed {
		return w.settle(w.Forge.CloseIssue(as, RepoName, number))
	}
	return w.settle(w.Forge.Reopen(as, RepoName, number))
}

func (w *Fake) Thread(number int64) ([]Post, error) {
	var out []Post
	for _, c := range w.Forge.Comments(RepoName, number) {
		out = append(out, Post{ID: c.ID, Author: c.Author.Login, Body: c.Body})
	}
	return out, nil
}

func (w *Fake) BotLogin() string { return w.login }

func (w *Fake) Genuine(number int64, p Post) bool {
	return bot.Genuine([]string{Secret}, w.name, w.Repo.ID, number, p.Body)
}

func (w *Fake) End(number int64) (string, error) {
	var out bytes.Buffer
	fmt.Fprintf(&out, "labels: %s\n", strings.Join(w.Forge.Labels(RepoName, number), " "))
	issue := w.Forge.Reactions(w.login, RepoName, number, forge.Object{Kind: forge.ObjectIssue, ID: number})
	fmt.Fprintf(&out, "issue: %s\n", words(issue))
	for i, c := range w.Forge.Comments(RepoName, number) {
		if c.Author.Login == w.login {
			continue
		}
		r := w.Forge.Reactions(w.login, RepoName, number, forge.Object{Kind: forge.ObjectComment, ID: c.ID})
		fmt.Fprintf(&out, "comment %d: %s\n", i+1, words(r))
	}
	return out.String(), nil
}

func words(rs []forge.Reaction) string {
	out := make([]string, len(rs))
	for i, r := range rs {
		out[i] = string(r)
	}
	slices.Sort(out)
	return strings.Join(out, " ")
}

// Advance moves the clock and lets what became due happen.
func (w *Fake) Advance(d time.Duration) error {
	w.Clock.Advance(d)
	return w.settle(nil)
}

// Become gives an account another permission.
func (w *Fake) Become(login, permission string) error {
	w.Forge.AddCollaborator(RepoName, login, permission)
	return nil
}

// Import adds a migrated comment: no delivery tells of it.
func (w *Fake) Import(as, original string, number int64, body string) error {
	w.Forge.ImportComment(RepoName, number, as, original, body, w.Clock.Now())
	return w.settle(nil)
}

// Sweep has the bot look for what it missed.
func (w *Fake) Sweep() error {
	w.Clock.Advance(30 * time.Second)
	if err := w.Bot.Sweep(w.t.Context(), w.name); err != nil {
		return err
	}
	return w.settle(nil)
}

// Quiet stops deliveries: what happens meanwhile nobody tells the bot.
func (w *Fake) Quiet(on bool) error {
	w.Forge.Hold(on)
	if !on {
		return w.settle(nil)
	}
	return nil
}

// LoseDatabase starts the bot anew with an empty database.
func (w *Fake) LoseDatabase() error {
	w.start()
	if err := w.Bot.Sweep(context.WithoutCancel(w.t.Context()), w.name); err != nil {
		return err
	}
	return w.settle(nil)
}
