package github

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	sdk "github.com/google/go-github/v62/github"

	"playbook-bot/bot/forge"
	"playbook-bot/bot/forge/internal/wire"
)

// The limits of a call where Config says nothing.
const (
	DefaultTimeout = wire.DefaultTimeout
	DefaultMaxBody = wire.DefaultMaxBody
)

// Config is what a Client needs: one of Token and App.
type Config struct {
	// BaseURL is the server's root. "": https://github.com. An Enterprise
	// Server's is "https://github.example.org"; its API below /api/v3 is found
	// from it.
	BaseURL string
	// Token is a personal or fine-grained access token. It is asked before
	// every call, so that a rotated token is used without a restart. An empty
	// token fails the call as forge.ErrUnverified.
	Token func() string
	// App makes the bot a GitHub App in place of a user.
	App *App
	// HTTP gives transport and jar; it is copied, its redirect policy and
	// timeout are replaced. nil: http.DefaultTransport.
	HTTP *http.Client
	// Timeout bounds one HTTP exchange, its body included, beside whatever
	// deadline the caller's context has. 0: DefaultTimeout.
	Timeout time.Duration
	// MaxBody bounds an answer's body in bytes, after decompression. A longer
	// one is forge.ErrRetry. 0: DefaultMaxBody.
	MaxBody int64
	// Name is the forge's name in events and keys. "": "github".
	Name string
	// UserAgent is sent with every call; GitHub refuses an empty one. "":
	// "playbook-bot".
	UserAgent string
	// OnCall is told of every HTTP exchange: what kind of call it was (e.g.
	// "comment.create"), the status (0: no answer) and how long it took. It is
	// called on the caller's goroutine, from many at once.
	OnCall func(kind string, status int, d time.Duration)
	// Now is the clock for tokens, rate limits and cached owners. nil:
	// time.Now.
	Now func() time.Time
}

// Client is an adapter for one server and one account. It is safe for
// concurrent use.
type Client struct {
	Dialect
	base      *url.URL
	http      *http.Client
	timeout   time.Duration
	userAgent string
	onCall    func(kind string, status int, d time.Duration)
	now       func() time.Time
	auth      authority
	limits    limits
	owners    ownerCache
	labels    labelSpecs
	self      struct {
		mu      sync.Mutex
		account forge.Account
	}
}

// authority says in whose name a call is made. Its errors are *forge.Error.
type authority interface {
	// forRepo and forOwner are for calls about a repository, or about what
	// belongs to an account or organisation; anyone is for all others.
	forRepo(ctx context.Context, what wire.Call, repo int64) (identity, error)
	forOwner(ctx context.Context, what wire.Call, login string) (identity, error)
	anyone(ctx context.Context, what wire.Call) (identity, error)
	// refused is told that a token was answered with 401; it reports whether
	// asking again may give another one.
	refused(identity) bool
}

// identity is who makes a call: the key under which GitHub counts its calls,
// and its token.
type identity struct {
	key, token string
}

// New makes a Client. It talks to nobody: a server that is down at start is
// found by the first call.
func New(cfg Config) (*Client, error) {
	base, err := apiRoot(cmp.Or(strings.TrimSpace(cfg.BaseURL), "https://github.com"))
	if err != nil {
		return nil, err
	}
	if (cfg.Token == nil) == (cfg.App == nil) {
		return nil, errors.New("the forge needs a token or an app's key, and not both")
	}
	c := &Client{
		Dialect:   Dialect{Forge: cfg.Name},
		base:      base,
		timeout:   cmp.Or(cfg.Timeout, DefaultTimeout),
		userAgent: cmp.Or(cfg.UserAgent, "playbook-bot"),
		onCall:    cfg.OnCall,
		now:       cfg.Now,
	}
	if c.now == nil {
		c.now = time.Now
	}
	// No header asks for compression: net/http does, and undoes it.
	c.http = wire.NewClient(cfg.HTTP, cmp.Or(cfg.MaxBody, DefaultMaxBody), nil)
	c.auth = personal(cfg.Token)
	if cfg.App != nil {
		if c.auth, err = newInstallations(c, *cfg.App); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// apiRoot is the API's root for a server's. github.com and the
// subdomains of ghe.com have a host of their own for it; an Enterprise Server
// has it below /api/v3. An address of an API is taken as it is.
func apiRoot(raw string) (*url.URL, error) {
	text, err := wire.BaseURL(raw)
	if err != nil {
		return nil, err
	}
	u, err := url.Parse(text)
	if err != nil {
		return nil, errors.New("the forge's base URL cannot be parsed")
	}
	host := strings.ToLower(u.Host)
	switch {
	case host == "github.com" || host == "www.github.com":
		u.Host, u.Path = "api.github.com", ""
	case strings.HasPrefix(host, "api."):
	case strings.HasSuffix(host, ".ghe.com"):
		u.Host, u.Path = "api."+host, ""
	case !strings.HasSuffix(u.Path, "/api/v3"):
		u.Path += "/api/v3"
	}
	u.Path += "/" // else the last part is replaced by what is resolved against it
	return u, nil
}

// request is one call on the API.
type request struct {
	wire.Call
	method string
	// path is below the API's root, escaped, with its query.
	path string
	// in is sent as JSON, out is read from it; nil: neither.
	in, out any
}

func get(what wire.Call, out any, path string) request {
	return request{what, http.MethodGet, path, nil, out}
}

// escaped is a path of these parts, each of which is one segment, dots too: they
// would else lead up.
func escaped(parts ...any) string {
	out := make([]string, len(parts))
	for i, p := range parts {
		out[i] = url.PathEscape(fmt.Sprint(p))
		if out[i] == "." || out[i] == ".." {
			out[i] = strings.ReplaceAll(out[i], ".", "%2E")
		}
	}
	return strings.Join(out, "/")
}

// inRepo is a path below a repository.
func inRepo(id int64, parts ...any) string {
	return escaped(append([]any{"repositories", id}, parts...)...)
}

// page adds a query of pages to a path; zero since: none.
func page(path string, number int, since time.Time, more ...string) string {
	q := url.Values{"per_page": {fmt.Sprint(pageSize)}, "page": {fmt.Sprint(number)}}
	if !since.IsZero() {
		q.Set("since", since.UTC().Format(time.RFC3339))
	}
	for i := 0; i+1 < len(more); i += 2 {
		q.Set(more[i], more[i+1])
	}
	return path + "?" + q.Encode()
}

// send makes one exchange in somebody's name and sorts its failure. The
// exchange is returned in either case; next is the page after this one, 0 if
// there is none.
func (c *Client) send(ctx context.Context, as identity, r request) (ex *wire.Exchange, next int, err error) {
	ex = &wire.Exchange{}
	if as.token == "" {
		return ex, 0, &forge.Error{Op: r.Op, Kind: forge.ErrUnverified}
	}
	if held := c.limits.held(as.key, r.Call, c.now()); held != nil {
		return ex, 0, held
	}
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	api := sdk.NewClient(c.http)
	api.BaseURL, api.UserAgent = c.base, c.userAgent
	req, err := api.NewRequest(r.method, r.path, r.in)
	if err != nil {
		return ex, 0, &forge.Error{Op: r.Op, Kind: forge.ErrPermanent}
	}
	req.Header.Set("Authorization", "Bearer "+as.token)
	start := c.now()
	resp, err := api.Do(wire.With(ctx, ex), req, r.out)
	if c.onCall != nil {
		c.onCall(r.Kind, ex.Status, c.now().Sub(start))
	}
	wait := c.limits.note(as.key, ex, c.now())
	// Calls without a result look at the status alone: a gateway's page with
	// 200 must not pass for a comment that was deleted.
	if err == nil && origin(ex) != wire.Foreign {
		return ex, resp.NextPage, nil
	}
	failure := wire.Failure(r.Call, ex, origin(ex), refusalKind, err, c.now())
	failure.RetryAfter = max(failure.RetryAfter, wait)
	return ex, 0, failure
}

// do makes a call in the name that who gives. A token that is refused is
// replaced once, where there may be another: what was refused so has done
// nothing.
func (c *Client) do(ctx context.Context, who func() (identity, error), r request) (ex *wire.Exchange, next int, err error) {
	for again := false; ; again = true {
		as, err := who()
		if err != nil {
			return &wire.Exchange{}, 0, err
		}
		ex, next, err = c.send(ctx, as, r)
		if ex.Status != http.StatusUnauthorized || again || !c.auth.refused(as) {
			return ex, next, err
		}
	}
}

// onRepo makes a call about what is in a repository. A 404 means that the
// object is gone only if the repository is still to be seen: GitHub hides with
// the same answer what an account has lost the right to. If looking shows that
// the repository has passed to another account, the call is made once more in
// that account's name; what was not found has done nothing.
func (c *Client) onRepo(ctx context.Context, id int64, r request) (ex *wire.Exchange, next int, err error) {
	var as identity
	who := func() (identity, error) {
		var err error
		as, err = c.auth.forRepo(ctx, r.Call, id)
		return as, err
	}
	ex, next, err = c.do(ctx, who, r)
	if !errors.Is(err, forge.ErrNotFound) {
		return ex, next, err
	}
	before := as.key
	_, rerr := c.RepoByID(ctx, id)
	if errors.Is(rerr, forge.ErrNotFound) {
		return ex, 0, &forge.Error{Op: r.Op, Status: http.StatusNotFound, Kind: forge.ErrUnverified, FromForge: true}
	}
	if rerr != nil {
		return ex, 0, rerr
	}
	if now, werr := who(); werr != nil || now.key == before {
		return ex, 0, err
	}
	return c.do(ctx, who, r)
}

// onOwner makes a call about what belongs to an account or organisation.
func (c *Client) onOwner(ctx context.Context, login string, r request) (ex *wire.Exchange, next int, err error) {
	return c.do(ctx, func() (identity, error) { return c.auth.forOwner(ctx, r.Call, login) }, r)
}

// onAnyone makes a call that every token may make.
func (c *Client) onAnyone(ctx context.Context, r request) (ex *wire.Exchange, err error) {
	ex, _, err = c.do(ctx, func() (identity, error) { return c.auth.anyone(ctx, r.Call) }, r)
	return ex, err
}

// Self is the account the token belongs to; an app's is its bot, "slug[bot]".
func (c *Client) Self(ctx context.Context) (forge.Account, error) {
	what := wire.Read("user.self", "read the bot's own account")
	if app, ok := c.auth.(*installations); ok {
		slug, err := app.slug(ctx)
		if err != nil {
			return forge.Account{}, err
		}
		return c.user(ctx, wire.Read("user.read", "read the app's own account"), "users/"+escaped(slug+"[bot]"))
	}
	return c.user(ctx, what, "user")
}

// ownID is Self's id, asked for once.
func (c *Client) ownID(ctx context.Context) (int64, error) {
	c.self.mu.Lock()
	id := c.self.account.ID
	c.self.mu.Unlock()
	if id > 0 {
		return id, nil
	}
	a, err := c.Self(ctx)
	if err != nil {
		return 0, err
	}
	c.self.mu.Lock()
	c.self.account = a
	c.self.mu.Unlock()
	return a.ID, nil
}

// AccountByLogin is the account that has this login at present.
func (c *Client) AccountByLogin(ctx context.Context, login string) (forge.Account, error) {
	what := wire.Read("user.read", "read the account of a login")
	if strings.TrimSpace(login) == "" {
		return forge.Account{}, &forge.Error{Op: what.Op, Kind: forge.ErrNotFound}
	}
	return c.user(ctx, what, "users/"+escaped(login))
}

func (c *Client) user(ctx context.Context, what wire.Call, path string) (forge.Account, error) {
	var user sdk.User
	ex, err := c.onAnyone(ctx, get(what, &user, path))
	if err != nil {
		return forge.Account{}, err
	}
	if user.GetID() <= 0 || user.GetLogin() == "" {
		return forge.Account{}, nonsense(what, ex)
	}
	return toAccount(&user), nil
}

// personal is the authority of a user's token.
type personal func() string

func (p personal) identity() (identity, error) {
	return identity{key: "user", token: strings.TrimSpace(p())}, nil
}

func (p personal) forRepo(context.Context, wire.Call, int64) (identity, error) { return p.identity() }

func (p personal) forOwner(context.Context, wire.Call, string) (identity, error) {
	return p.identity()
}

func (p personal) anyone(context.Context, wire.Call) (identity, error) { return p.identity() }

func (personal) refused(identity) bool { return false }
