package setup

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"playbook-bot/bot/forge"
	"playbook-bot/bot/webhook"
	"playbook-bot/playbook"
)

// Probe is what a check-up needs of a tracker, with the bot's own token.
type Probe interface {
	Name() string
	Traits() forge.Traits
	Version(ctx context.Context) (forge.Version, error)
	Self(ctx context.Context) (forge.Account, error)
	AccountByLogin(ctx context.Context, login string) (forge.Account, error)
	RepoByName(ctx context.Context, owner, name string) (forge.Repo, error)
	ReposOf(ctx context.Context, owner string) ([]forge.Repo, error)
	Permission(ctx context.Context, repo int64, login string) (forge.Permission, int64, error)
	// Writers are the accounts that may write to a repository.
	Writers(ctx context.Context, repo int64) ([]forge.Account, error)
	Hooks(ctx context.Context, p forge.Place) ([]forge.Hook, error)
	TeamMember(ctx context.Context, org, team, login string) (bool, error)
	// File reads a file of the default branch and names the commit that
	// changed it last; forge.ErrNotFound where there is none.
	File(ctx context.Context, repo int64, path string) (content []byte, commit string, err error)
	React(ctx context.Context, repo, number int64, obj forge.Object, r forge.Reaction, on bool) error
}

// Tester is what an administrator's token adds to a check-up.
type Tester interface {
	Hooks(ctx context.Context, p forge.Place) ([]forge.Hook, error)
	// TestHook has the forge send a test delivery through a hook. For those of
	// organisations, Traits.OrgTest says whether it can.
	TestHook(ctx context.Context, p forge.Place, hook int64) error
}

// Teller is a Tester whose forge keeps a record of deliveries itself. at is
// zero where none was made.
type Teller interface {
	LastDelivery(ctx context.Context, p forge.Place, hook int64) (at time.Time, status int, err error)
}

// Status is the outcome of a check.
type Status string

// The outcomes. Skipped is what could not be looked at, because of something
// that failed or was not given; it is no fault by itself.
const (
	OK      Status = "ok"
	Failed  Status = "failed"
	Skipped Status = "skipped"
)

// Finding is one check's outcome.
type Finding struct {
	// Check is its name, the same for ever: "hook".
	Check string `json:"check"`
	// Place is the repository, variable or the like it is about; "": all.
	Place  string `json:"place,omitempty"`
	Status Status `json:"status"`
	Detail string `json:"detail"`
	// Cure is what to do about it, set where it failed; Run are commands that
	// do it, ready to be pasted.
	Cure string   `json:"cure,omitempty"`
	Run  []string `json:"run,omitempty"`
}

// Checkup is what a check-up looks at.
type Checkup struct {
	Forge Probe
	// Tester is nil where no administrator's token is at hand.
	Tester Tester
	// Repositories are REPOSITORIES: owner/repo and owner/*.
	Repositories []string
	// PublicURL is where the forge reaches the bot; Assumed, that nobody said so.
	PublicURL string
	Assumed   bool
	Playbook  *playbook.Playbook
	// Record reads the bot's own record of a hook's deliveries; nil where the
	// database cannot be read.
	Record func(ctx context.Context, path string) (webhook.Record, error)
	// App: the bot is a GitHub App, which is no collaborator and has one hook
	// of its own; AppID is the number in that hook's path, 0 where unknown.
	App   bool
	AppID int64
	// Args is what the commands of cures need beside their names, such as
	// " --forge github".
	Args string
	// Running reports that the bot serves now: else no test is made.
	Running bool
	Now     func() time.Time
	// Patience is how long a test delivery may take to come.
	Patience time.Duration
	// Poll is how often its coming is looked for.
	Poll time.Duration
}

// MaxSkew is how far the clocks may be apart. More would let the sweep's
// watermark, and an approval's expiry, be off by it.
const MaxSkew = 30 * time.Second

// maxOfOwner bounds how many repositories of an owner/* are looked at.
const maxOfOwner = 50

// checker collects findings.
type checker struct {
	Checkup
	found []Finding
	self  forge.Account
}

func (c *checker) add(f Finding) { c.found = append(c.found, f) }

func (c *checker) ok(check, place, detail string, args ...any) {
	c.add(Finding{Check: check, Place: place, Status: OK, Detail: fmt.Sprintf(detail, args...)})
}

func (c *checker) skip(check, place, detail string, args ...any) {
	c.add(Finding{Check: check, Place: place, Status: Skipped, Detail: fmt.Sprintf(detail, args...)})
}

func (c *checker) fail(check, place, detail, cure string, run ...string) {
	c.add(Finding{Check: check, Place: place, Status: Failed, Detail: detail, Cure: cure, Run: run})
}

// Run makes the checks, each once, and gives their findings in the order of
// dependence: what hangs on something that failed is skipped, so that one
// fault is one failure.
func (u Checkup) Run(ctx context.Context) []Finding {
	c := &checker{Checkup: u}
	if !c.server(ctx) || !c.token(ctx) {
		return c.found
	}
	c.roles(ctx)
	repos := c.repositories(ctx)
	c.scopes(ctx, repos)
	for _, r := range repos {
		c.repository(ctx, r)
	}
	return c.found
}

// server checks address, version and clock, and reports whether to go on.
func (c *checker) server(ctx context.Context) bool {
	before := c.Now()
	v, err := c.Forge.Version(ctx)
	middle := before.Add(c.Now().Sub(before) / 2)
	var e *forge.Error
	switch {
	case errors.As(err, &e) && e.Status == 401:
		c.ok("address", "", "it answers")
		c.badToken()
		return false
	case errors.Is(err, forge.ErrUnverified):
		// It is there and keeps its version to itself.
		c.ok("address", "", "it answers")
		c.skip("version", "", "the server does not tell it")
	case err != nil:
		c.fail("address", "", "no proper answer from the forge: "+err.Error(),
			"Is the address right, with the path it is served under and https:// where it redirects there? Try: "+c.tryIt())
		return false
	default:
		c.ok("address", "", "it answers")
		c.version(v)
	}
	c.clock(middle, v.Date)
	return true
}

// tryIt is a command that anybody may try.
func (c *checker) tryIt() string {
	if c.onGitHub() {
		return "curl -fsSI https://api.github.com/meta (Enterprise Server: $GITHUB_URL/api/v3/meta)"
	}
	return `curl -fsS "$` + strings.ToUpper(c.Forge.Name()) + `_URL/api/v1/version"`
}

func (c *checker) version(v forge.Version) {
	switch {
	case !v.Known:
		c.skip("version", "", "%q is no version this program knows to read", shorten(v.Text))
	case !v.Enough:
		c.fail("version", "", fmt.Sprintf("it is %s; needed is %s or later", shorten(v.Text), v.Needed), "Upgrade the forge.")
	default:
		c.ok("version", "", "%s", shorten(v.Text))
	}
}

// shorten keeps what a server says of itself to a line.
func shorten(s string) string { return shortenTo(s, 60) }

func shortenTo(s string, most int) string {
	s = strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' {
			return -1
		}
		return r
	}, s)
	return s[:min(len(s), most)]
}

func (c *checker) clock(here, there time.Time) {
	if there.IsZero() {
		c.skip("clock", "", "the forge does not tell its time")
		return
	}
	// The forge's has whole seconds, cut off.
	skew := here.Sub(there.Add(time.Second / 2)).Round(time.Second)
	if skew.Abs() > MaxSkew {
		c.fail("clock", "", fmt.Sprintf("this machine's clock is %s off the forge's", signed(skew)),
			"Set both clocks by a time server.", "timedatectl set-ntp true")
		return
	}
	c.ok("clock", "", "within %s of the forge's", MaxSkew)
}

func signed(d time.Duration) string {
	if d > 0 {
		return "+" + d.String()
	}
	return d.String()
}

func (c *checker) badToken() {
	c.fail("token", "", "the forge does not know it: it was revoked, has run out, or is mistyped",
		"Make another for the bot's account and put it into "+c.tokenVar()+", or into the file of "+c.tokenVar()+"_FILE; a running bot reads the file again. "+
			c.onGiteasMachine(", and the account has the usual name"), c.newToken("playbook-bot")...)
}

// token finds out who the bot is.
func (c *checker) token(ctx context.Context) bool {
	self, err := c.Forge.Self(ctx)
	var e *forge.Error
	switch {
	case errors.As(err, &e) && e.Status == 401:
		c.badToken()
	case errors.Is(err, forge.ErrUnverified):
		c.ok("token", "", "the forge knows it")
		c.lacking("read:user")
	case err != nil:
		c.fail("address", "", "no proper answer from the forge: "+err.Error(), "Look again in a moment; then at the forge's log.")
	default:
		c.self = self
		c.ok("token", "", "it is %s's", self.Login)
		return true
	}
	return false
}

func (c *checker) lacking(scopes ...string) {
	if c.onGitHub() {
		c.fail("scopes", "", "the token may not do what the bot must",
			"It takes, of a classic token, repo and read:org; of a fine-grained one or an app, Issues (write), Pull requests, Contents, Metadata and Members (read).")
		return
	}
	c.fail("scopes", "", "the token lacks "+strings.Join(scopes, ", "),
		"Scopes cannot be added to a token: make another for the bot's account and put it into "+c.tokenVar()+". "+c.onGiteasMachine(""),
		c.newToken(cmp.Or(c.self.Login, "playbook-bot"))...)
}

func (c *checker) onGitHub() bool { return c.Forge.Name() == "github" }

// tokenVar is the variable that holds the bot's token, or an app's key.
func (c *checker) tokenVar() string {
	if c.App {
		return "GITHUB_APP_KEY"
	}
	return strings.ToUpper(c.Forge.Name()) + "_TOKEN"
}

// onGiteasMachine leads to the command of newToken.
func (c *checker) onGiteasMachine(also string) string {
	if c.onGitHub() {
		return "Settings → Developer settings makes it."
	}
	return "On the forge's machine, if it is Gitea" + also + ":"
}

// newToken is the command that makes the bot's token on Gitea; its name must
// be new.
func (c *checker) newToken(login string) []string {
	if c.onGitHub() {
		return nil
	}
	return []string{"gitea admin user generate-access-token --username " + login +
		" --token-name bot-2 --scopes write:issue,read:repository,read:user,read:organization --raw"}
}

// target is a repository that is looked at.
type target struct {
	repo forge.Repo
	// named in full: gated rungs can be approved in it.
	named bool
}

// repositories resolves REPOSITORIES.
func (c *checker) repositories(ctx context.Context) []target {
	var out []target
	seen := map[int64]bool{}
	// Those named in full first: an owner/* may name them again.
	items := slices.Clone(c.Repositories)
	slices.SortStableFunc(items, func(a, b string) int {
		return btoi(strings.HasSuffix(a, "/*")) - btoi(strings.HasSuffix(b, "/*"))
	})
	for _, item := range items {
		owner, name, _ := strings.Cut(item, "/")
		for _, r := range c.resolve(ctx, item, owner, name) {
			if !seen[r.ID] {
				seen[r.ID] = true
				out = append(out, target{r, name != "*"})
			}
		}
	}
	return out
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

func (c *checker) resolve(ctx context.Context, item, owner, name string) []forge.Repo {
	if name == "*" {
		repos, err := c.Forge.ReposOf(ctx, owner)
		switch {
		case err != nil:
			c.unreadable(item, err)
		case len(repos) > maxOfOwner:
			c.ok("repository", item, "%d repositories, of which the first %d are looked at", len(repos), maxOfOwner)
			repos = repos[:maxOfOwner]
		default:
			c.ok("repository", item, "%d repositories", len(repos))
		}
		return repos
	}
	r, err := c.Forge.RepoByName(ctx, owner, name)
	switch {
	case err != nil:
		c.unreadable(item, err)
		return nil
	case !strings.EqualFold(r.FullName(), item):
		c.fail("repository", item, "it is called "+r.FullName()+" now, and the bot answers by name: not there",
			"Put the new name into REPOSITORIES and start the bot again.")
		return nil
	}
	c.ok("repository", item, "it is number %d", r.ID)
	return []forge.Repo{r}
}

func (c *checker) unreadable(item string, err error) {
	switch {
	case errors.Is(err, forge.ErrNotFound):
		var run []string
		if !strings.HasSuffix(item, "/*") {
			run = []string{"playbook-bot setup " + item + c.Args}
		}
		c.fail("repository", item, "the forge has none of that name that "+c.self.Login+" may see",
			"Correct REPOSITORIES; if it is private, give the bot access, with an administrator's token in ADMIN_TOKEN.", run...)
	case errors.Is(err, forge.ErrUnverified):
		if !slices.ContainsFunc(c.found, func(f Finding) bool { return f.Check == "scopes" }) {
			c.lacking("read:repository")
		}
		c.skip("repository", item, "cannot be read with this token")
	default:
		c.fail("repository", item, "it could not be read: "+err.Error(), "Look again in a moment; then at the forge's log.")
	}
}

// noIssue is a number no issue has. A reaction to it changes nothing, and is
// refused for the want of a scope before it is refused for the want of an
// issue.
const noIssue = 1<<31 - 1

// scopes tries what only a token with write:issue may.
func (c *checker) scopes(ctx context.Context, repos []target) {
	if slices.ContainsFunc(c.found, func(f Finding) bool { return f.Check == "scopes" }) {
		return
	}
	if len(repos) == 0 {
		c.skip("scopes", "", "they show only in a repository")
		return
	}
	err := c.Forge.React(ctx, repos[0].repo.ID, noIssue, forge.Object{Kind: forge.ObjectIssue, ID: noIssue}, forge.ReactionSeen, true)
	switch {
	case errors.Is(err, forge.ErrUnverified):
		c.lacking("write:issue")
	case err == nil || errors.Is(err, forge.ErrNotFound) || errors.Is(err, forge.ErrPermanent):
		c.ok("scopes", "", "the token may read repositories and accounts, and write in issues")
	default:
		c.skip("scopes", "", "could not be tried: %s", err)
	}
}

// roles checks that the teams the playbook gives roles to can be read.
func (c *checker) roles(ctx context.Context) {
	if c.Playbook == nil {
		return
	}
	for _, m := range c.Playbook.RolesOn(c.Forge.Name()) {
		org, team, ok := strings.Cut(m.Member, "/")
		if !ok {
			continue
		}
		_, err := c.Forge.TeamMember(ctx, org, team, c.self.Login)
		switch {
		case err == nil:
			c.ok("roles", m.Member, "its members have the role %s", m.Role)
		case errors.Is(err, forge.ErrNotFound):
			c.fail("roles", m.Member, "there is no such team, so nobody has the role "+m.Role,
				"Correct the roles of the playbook, or make the team.")
		case errors.Is(err, forge.ErrUnverified):
			c.fail("roles", m.Member, "the bot may not read who is in it, so nobody has the role "+m.Role,
				"The bot must be a member of the organisation, and its token needs the scope read:organization.",
				"playbook-bot setup --org "+org+c.Args)
		default:
			c.skip("roles", m.Member, "it could not be read: %s", err)
		}
	}
}
