package bot

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"playbook-bot/bot/forge"
	"playbook-bot/bot/store"
	"playbook-bot/playbook"
	"playbook-bot/templates"
)

// Forge is what the bot needs of a tracker. Repositories are addressed by id:
// names change under one's hands. Errors are *forge.Error, sorted by the
// adapter.
type Forge interface {
	// Observe is told what a repository was just called by a verified delivery:
	// it saves asking.
	Observe(forge.Repo)
	// ListsAtOnce reports whether Comments lists a whole thread in one call,
	// however long it is.
	ListsAtOnce() bool
	// Self is the bot's own account.
	Self(ctx context.Context) (forge.Account, error)
	RepoByID(ctx context.Context, id int64) (forge.Repo, error)
	RepoByName(ctx context.Context, owner, name string) (forge.Repo, error)
	// ReposOf are all repositories of an organisation or user.
	ReposOf(ctx context.Context, owner string) ([]forge.Repo, error)
	AccountByLogin(ctx context.Context, login string) (forge.Account, error)
	TeamMember(ctx context.Context, org, team, login string) (bool, error)
	Issue(ctx context.Context, repo, number int64) (forge.Issue, error)
	Comment(ctx context.Context, repo, id int64) (forge.Comment, error)
	// Comments lists a whole thread, or what changed in it since a time.
	Comments(ctx context.Context, repo, number int64, since time.Time) ([]forge.Comment, error)
	// UpdatedIssues and UpdatedComments list a repository's changes by pages
	// from 1; date is the forge's own clock at the answer.
	UpdatedIssues(ctx context.Context, repo int64, since time.Time, page int) (issues []forge.Issue, more bool, date time.Time, err error)
	UpdatedComments(ctx context.Context, repo int64, since time.Time, page int) (comments []forge.Comment, more bool, date time.Time, err error)
	// Permission answers for a login, with the id of the account it answered
	// for: a login may have changed hands.
	Permission(ctx context.Context, repo int64, login string) (forge.Permission, int64, error)
	// CreateIssue and CreateComment are not idempotent: an error may come after
	// they took effect.
	CreateIssue(ctx context.Context, repo int64, title, body string) (forge.Issue, error)
	CreateComment(ctx context.Context, repo, number int64, body string) (forge.Comment, error)
	EditComment(ctx context.Context, repo, id int64, body string) error
	DeleteComment(ctx context.Context, repo, id int64) error
	React(ctx context.Context, repo, number int64, obj forge.Object, r forge.Reaction, on bool) error
	SetLabels(ctx context.Context, repo, number int64, add, remove []string) error
	// File reads a file of the repository's default branch, and names the
	// commit that changed it last; forge.ErrNotFound where there is none.
	File(ctx context.Context, repo int64, path string) (content []byte, commit string, err error)
}

// Config is what a Bot is made of. All fields without a stated default are
// needed.
type Config struct {
	// Forges by name, as in forge.Event.Forge.
	Forges       map[string]Forge
	Ledger       Ledger
	Playbook     *playbook.Playbook
	Renderer     *templates.Renderer
	Repositories Patterns
	// Ignored reports accounts whose events are not even stored; nil: none.
	Ignored func(login string) bool
	// Grants are the break-glass grants in force, read anew at each use.
	Grants func() (playbook.Grants, error)
	// Secrets are the values of PLAYBOOK_SECRET; the first signs, all verify.
	Secrets func() []string
	// Prober tries the harmless rungs on MCP servers; nil: /probe says that
	// none is configured.
	Prober Prober
	// Owner names this process among the database's leases; unique.
	Owner string
	// Workers is how many threads are worked on at once; default 8.
	Workers int
	// Lease is how long a thread is held without a heartbeat; default 10 s.
	Lease time.Duration
	// RequestTimeout bounds one call to the forge; default 10 s.
	RequestTimeout time.Duration
	// Settle is how long after its deadline a POST that the forge itself
	// answered may still take effect, default 3 s; SettleUnknown the same
	// where nobody or a proxy answered, default 60 s.
	Settle, SettleUnknown time.Duration
	// SweepInterval is how often missed changes are looked for; default 5 m.
	SweepInterval time.Duration
	// NoLabels and NoReactions switch those off.
	NoLabels, NoReactions bool
	// Now is the clock decisions are made by; default time.Now.
	Now func() time.Time
	Log *slog.Logger
	// Observe is told what happens, for metrics; may be nil.
	Observe func(Observation)
	// Fail is called at the boundaries of the ledger with their names, for
	// crash tests; nil in production.
	Fail func(point string)
}

// Observation is one thing worth counting.
type Observation struct {
	// What is "answer", "adopted", "double_deleted", "revoked", "dead",
	// "marker_tampered", "restored", "sweep_found", "database_behind",
	// "effects_dropped".
	What string
	// Verdict and Code are set for answers.
	Verdict, Code string
}

// Bot holds the conversation in all threads.
type Bot struct {
	Config
	standings *standingCache
	selves    sync.Map // forge name → forge.Account
	names     *nameCache
	roles     *roleCache
	overlays  *overlayCache
	ready     sync.Map // forge name → struct{}
	met       gate     // opened when the first forge is met
	setbacks  setbacks
	probes    probeLimits
	// nudges have the dispatcher look for work that the ledger told nobody of.
	nudges chan struct{}
	pins   pins
	owners owners
	lively lively
	// courtesies are reactions on their way; nothing but the end waits for them.
	courtesies sync.WaitGroup
}

// New checks the configuration and fills in defaults. It asks nobody
// anything: deliveries are taken in before the forge is reachable.
func New(c Config) (*Bot, error) {
	if len(c.Forges) == 0 || c.Ledger == nil || c.Playbook == nil || c.Renderer == nil || len(c.Repositories) == 0 || c.Secrets == nil || c.Owner == "" {
		return nil, errors.New("bot: a forge, ledger, playbook, renderer, repositories, secrets and owner are needed")
	}
	defaults(&c)
	b := &Bot{Config: c, nudges: make(chan struct{}, 1)}
	b.standings = newStandingCache(b)
	b.names = newNameCache(b)
	b.roles = newRoleCache(b)
	b.overlays = newOverlayCache(b)
	return b, nil
}

func defaults(c *Config) {
	setDuration := func(d *time.Duration, v time.Duration) {
		if *d == 0 {
			*d = v
		}
	}
	setDuration(&c.Lease, 10*time.Second)
	setDuration(&c.RequestTimeout, 10*time.Second)
	setDuration(&c.Settle, 3*time.Second)
	setDuration(&c.SettleUnknown, time.Minute)
	setDuration(&c.SweepInterval, 5*time.Minute)
	if c.Workers == 0 {
		c.Workers = 8
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	if c.Ignored == nil {
		c.Ignored = func(string) bool { return false }
	}
	if c.Grants == nil {
		c.Grants = func() (playbook.Grants, error) { return nil, nil }
	}
	if c.Observe == nil {
		c.Observe = func(Observation) {}
	}
	if c.Fail == nil {
		c.Fail = func(string) {}
	}
}

// self is the bot's own account on a forge, asked for once.
func (b *Bot) self(ctx context.Context, name string) (forge.Account, error) {
	if a, ok := b.selves.Load(name); ok {
		return a.(forge.Account), nil
	}
	f, ok := b.Forges[name]
	if !ok {
		return forge.Account{}, fmt.Errorf("no forge %q is configured", name)
	}
	a, err := f.Self(ctx)
	if err != nil {
		return forge.Account{}, fmt.Errorf("ask who the bot is: %w", err)
	}
	b.selves.Store(name, a)
	return a, nil
}

// Outcomes of Accept, for logs and metrics.
const (
	OutcomeTaken     = "taken"
	OutcomeSeen      = "seen"
	OutcomeElsewhere = "elsewhere"
	OutcomeIgnored   = "ignored"
	OutcomeSelf      = "self"
)

// Accept takes a verified delivery in. When it returns without error the
// event is durable, or is one that the bot has nothing to do with. It asks
// the forge nothing, so that it also works while the forge is down: a payload
// decides only what is stored, and everything it says is checked later. The one
// exception is a delivery that names another owner of its repository than the
// forge did: see owners.
func (b *Bot) Accept(ctx context.Context, e forge.Event) (string, error) {
	if e.Action == forge.ActionOther {
		return OutcomeIgnored, nil
	}
	if !b.answersIn(e.Forge, e.Repo) {
		b.Log.InfoContext(ctx, "not a repository of ours", "forge", e.Forge, "repo", e.Repo.ID, "delivery", e.Delivery)
		return OutcomeElsewhere, nil
	}
	if b.Ignored(e.Sender.Login) || b.Ignored(e.Author.Login) {
		return OutcomeIgnored, nil
	}
	if own, err := b.truly(ctx, e); err != nil {
		return "", err
	} else if !own {
		b.Log.WarnContext(ctx, "a delivery names another owner than the repository has", "forge", e.Forge, "repo", e.Repo.ID,
			"owner", e.Repo.OwnerID, "delivery", e.Delivery)
		return OutcomeElsewhere, nil
	}
	in := incoming(e)
	if self, ok := b.selves.Load(e.Forge); ok && e.Sender.ID == self.(forge.Account).ID {
		if in, ok = b.filedBySelf(e); !ok {
			return OutcomeSelf, nil
		}
	}
	if f, ok := b.Forges[e.Forge]; ok {
		f.Observe(e.Repo)
		if f.ListsAtOnce() {
			b.lively.note(e) // before a worker can be at it
		}
	}
	b.Fail("accepting")
	taken, err := b.Ledger.Accept(ctx, in)
	if err != nil {
		return "", fmt.Errorf("store delivery %s: %w", e.Delivery, err)
	}
	b.Fail("accepted")
	if !taken {
		if in.Source == store.SourceTool {
			b.nudge() // a desk in another process was quicker, and cannot
		}
		return OutcomeSeen, nil
	}
	return OutcomeTaken, nil
}

func incoming(e forge.Event) store.Incoming {
	return store.Incoming{
		Forge: e.Forge, Delivery: e.Delivery, Repo: e.Repo, Number: e.Number, Pull: e.Pull,
		Object: e.Object, Action: e.Action, Sender: e.Sender, Author: e.Author,
		BodySHA: bodySHA(e.Body), Source: store.SourceDelivery,
	}
}
