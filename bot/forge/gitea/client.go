// Package gitea speaks to a Gitea or Forgejo server: it reads threads and
// standings, posts comments, and decodes the server's deliveries into neutral
// events. It knows nothing of the policy.
//
// Facts about the wire that shape this package, each held by a test of
// forgetest/conformance:
//   - the SDK takes no context per call, so every call has a client of its own
//     over one shared http.Client;
//   - a renamed repository answers 301 and a POST that follows it is turned
//     into a GET, so redirects are never followed and repositories are
//     addressed by id;
//   - the listing of a thread is not paged, whatever page is asked for;
//   - the SDK's errors hold the server's words and URLs, so none of them is
//     passed on.
package gitea

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"strings"
	"time"

	sdk "code.gitea.io/sdk/gitea"

	"playbook-bot/bot/forge"
	"playbook-bot/bot/forge/internal/wire"
)

// The limits of a call where Config says nothing.
const (
	DefaultTimeout = wire.DefaultTimeout
	DefaultMaxBody = wire.DefaultMaxBody
)

// Config is what a Client needs. BaseURL and Token are required.
type Config struct {
	// BaseURL is the server's root, e.g. "https://git.example.org/gitea":
	// http or https, a host, and neither credentials nor a query.
	BaseURL string
	// Token is asked before every call, so that a rotated token is used without
	// a restart. An empty token fails the call as forge.ErrUnverified.
	Token func() string
	// HTTP gives transport and jar; it is copied, its redirect policy and
	// timeout are replaced. nil: http.DefaultTransport.
	HTTP *http.Client
	// Timeout bounds one HTTP exchange, its body included, beside whatever
	// deadline the caller's context has. 0: DefaultTimeout.
	Timeout time.Duration
	// MaxBody bounds an answer's body in bytes, after decompression. A longer
	// one is forge.ErrRetry. 0: DefaultMaxBody.
	MaxBody int64
	// Name is the forge's name in events and keys. "": "gitea".
	Name string
	// UserAgent is sent with every call. "": "playbook-bot".
	UserAgent string
	// OnCall is told of every HTTP exchange: what kind of call it was (e.g.
	// "comment.create"), the status (0: no answer) and how long it took. It is
	// called on the caller's goroutine, from many at once.
	OnCall func(kind string, status int, d time.Duration)
	// Now is the clock for the age of cached names and for Retry-After dates
	// without a Date beside them. nil: time.Now.
	Now func() time.Time
}

// Client is an adapter for one server and one account. It is safe for
// concurrent use.
type Client struct {
	Dialect
	base      string
	token     func() string
	http      *http.Client
	timeout   time.Duration
	userAgent string
	onCall    func(kind string, status int, d time.Duration)
	now       func() time.Time
	repos     repoCache
	labels    labelCache
}

// New makes a Client. It talks to nobody: a server that is down at start is
// found by the first call.
func New(cfg Config) (*Client, error) {
	base, err := wire.BaseURL(cfg.BaseURL)
	if err != nil {
		return nil, err
	}
	if cfg.Token == nil {
		return nil, errors.New("no source for the forge's token")
	}
	c := &Client{
		Dialect:   Dialect{Forge: cfg.Name},
		base:      base,
		token:     cfg.Token,
		timeout:   cmp.Or(cfg.Timeout, DefaultTimeout),
		userAgent: cmp.Or(cfg.UserAgent, "playbook-bot"),
		onCall:    cfg.OnCall,
		now:       cfg.Now,
	}
	if c.now == nil {
		c.now = time.Now
	}
	// English is asked for because 403 is "locked", "blocked" and "no right"
	// alike, which only the text tells apart.
	c.http = wire.NewClient(cfg.HTTP, cmp.Or(cfg.MaxBody, DefaultMaxBody),
		map[string]string{"Accept-Language": "en-US", "Accept": "application/json"})
	return c, nil
}

// do makes one HTTP exchange through the SDK and sorts its failure. The
// exchange is returned in either case.
func (c *Client) do(ctx context.Context, what wire.Call, fn func(*sdk.Client) error) (*wire.Exchange, error) {
	ex := &wire.Exchange{}
	token := c.token()
	if strings.TrimSpace(token) == "" {
		return ex, &forge.Error{Op: what.Op, Kind: forge.ErrUnverified}
	}
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	api, err := sdk.NewClient(c.base,
		sdk.SetHTTPClient(c.http),
		sdk.SetContext(wire.With(ctx, ex)),
		sdk.SetToken(token),
		sdk.SetUserAgent(c.userAgent),
		sdk.SetGiteaVersion(""), // ask no version: also serves Forgejo, and a server that is down
	)
	if err != nil {
		return ex, &forge.Error{Op: what.Op, Kind: forge.ErrPermanent}
	}
	start := c.now()
	err = fn(api)
	if c.onCall != nil {
		c.onCall(what.Kind, ex.Status, c.now().Sub(start))
	}
	if errors.Is(err, errMoved) {
		return ex, err // inRepo's to sort
	}
	// Calls without a result look at the status alone: a gateway's page with
	// 200 must not pass for a comment that was deleted.
	if err == nil && origin(ex) != wire.Foreign {
		return ex, nil
	}
	return ex, wire.Failure(what, ex, origin(ex), refusalKind, err, c.now())
}

// Self is the account the token belongs to.
func (c *Client) Self(ctx context.Context) (forge.Account, error) {
	var user *sdk.User
	what := wire.Read("user.self", "read the bot's own account")
	ex, err := c.do(ctx, what, func(api *sdk.Client) (err error) {
		user, _, err = api.GetMyUserInfo()
		return err
	})
	return oneAccount(ex, what, user, err)
}

// AccountByLogin is the account that has this login at present.
func (c *Client) AccountByLogin(ctx context.Context, login string) (forge.Account, error) {
	what := wire.Read("user.read", "read the account of a login")
	if strings.TrimSpace(login) == "" {
		return forge.Account{}, &forge.Error{Op: what.Op, Kind: forge.ErrNotFound}
	}
	var user *sdk.User
	ex, err := c.do(ctx, what, func(api *sdk.Client) (err error) {
		user, _, err = api.GetUserInfo(login)
		return err
	})
	return oneAccount(ex, what, user, err)
}

func oneAccount(ex *wire.Exchange, what wire.Call, user *sdk.User, err error) (forge.Account, error) {
	if err != nil {
		return forge.Account{}, err
	}
	if user == nil || user.ID <= 0 {
		return forge.Account{}, nonsense(what, ex)
	}
	return toAccount(user), nil
}

// TeamMember reports whether the account of that login is in the
// organisation's team. The team's name is compared without regard to case. It
// needs the token scope read:organization; without it the answer is
// forge.ErrUnverified. An organisation or team that does not exist is
// forge.ErrNotFound.
func (c *Client) TeamMember(ctx context.Context, org, team, login string) (bool, error) {
	id, err := c.teamID(ctx, org, team)
	if err != nil {
		return false, err
	}
	var user *sdk.User
	what := wire.Read("team.member", "read whether an account is in team %d", id)
	_, err = c.do(ctx, what, func(api *sdk.Client) (err error) {
		user, _, err = api.GetTeamMember(id, login)
		return err
	})
	if errors.Is(err, forge.ErrNotFound) {
		return false, nil
	}
	return err == nil && user != nil && user.ID > 0, err
}

func (c *Client) teamID(ctx context.Context, org, team string) (int64, error) {
	what := wire.Read("team.list", "list the teams of an organisation")
	seen := map[int64]bool{}
	for page := 1; ; page++ {
		var teams []*sdk.Team
		ex, err := c.do(ctx, what, func(api *sdk.Client) (err error) {
			teams, _, err = api.ListOrgTeams(org, sdk.ListTeamsOptions{ListOptions: sdk.ListOptions{Page: page, PageSize: pageSize}})
			return err
		})
		if err != nil {
			return 0, err
		}
		fresh := false
		for _, t := range teams {
			if t == nil || seen[t.ID] {
				continue
			}
			seen[t.ID], fresh = true, true
			if strings.EqualFold(t.Name, team) {
				return t.ID, nil
			}
		}
		if !fresh {
			return 0, &forge.Error{Op: what.Op, Status: ex.Status, Kind: forge.ErrNotFound, FromForge: true}
		}
	}
}

// toAccount keeps the ghost's negative id, so that forge.Account.Real denies.
func toAccount(u *sdk.User) forge.Account {
	if u == nil {
		return forge.Account{}
	}
	return forge.Account{ID: u.ID, Login: u.UserName}
}
