package github

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	sdk "github.com/google/go-github/v62/github"

	"playbook-bot/bot/forge"
	"playbook-bot/bot/forge/internal/wire"
)

// App is a GitHub App. Its bot acts in every account that has installed it,
// with a token of its own for each. It needs the permissions Issues: write,
// Metadata: read and, for roles by team and for owners, Members: read.
type App struct {
	// ID is the app's id or its client id.
	ID string
	// Key gives the app's private key in PEM, as GitHub hands it out. It is
	// asked for every JWT, so that a rotated key is used without a restart.
	Key func() []byte
}

const (
	// renewBefore is how long before its end a token of an hour is replaced.
	renewBefore = 5 * time.Minute
	// listAge is how long the list of installations is used; one that lacks
	// what is looked for is fetched again after relistAfter.
	listAge     = 10 * time.Minute
	relistAfter = 30 * time.Second
)

// installations is the authority of an app.
type installations struct {
	c    *Client
	app  App
	list shared[[]installation]
	name shared[string]

	mu     sync.Mutex
	tokens map[int64]*shared[string] // by installation
	// homes tells which account owns a repository. It says only whose token
	// to try: what is done with it GitHub decides.
	homes map[int64]int64
	// skew is how far GitHub's clock is ahead of ours, learned when it refuses
	// a JWT.
	skew time.Duration
}

// installation is an app in an account.
type installation struct {
	id, owner int64
	login     string
}

func newInstallations(c *Client, app App) (*installations, error) {
	if strings.TrimSpace(app.ID) == "" || app.Key == nil {
		return nil, errors.New("a GitHub App needs its id and its private key")
	}
	a := &installations{c: c, app: app, tokens: map[int64]*shared[string]{}, homes: map[int64]int64{}}
	if _, err := a.jwt(); err != nil {
		return nil, err
	}
	return a, nil
}

// jwt is a token for the app itself. It is made for each call: that costs a
// millisecond, and there are few.
func (a *installations) jwt() (string, error) {
	a.mu.Lock()
	skew := a.skew
	a.mu.Unlock()
	return signJWT(a.app.ID, a.app.Key(), a.c.now().Add(skew))
}

// call makes a call as the app itself. Where GitHub refuses the JWT and its
// clock is another, it is tried once more by that clock.
func (a *installations) call(ctx context.Context, r request) (*wire.Exchange, int, error) {
	for again := false; ; again = true {
		token, err := a.jwt()
		if err != nil {
			return &wire.Exchange{}, 0, &forge.Error{Op: r.Op, Kind: forge.ErrUnverified}
		}
		ex, next, err := a.c.send(ctx, identity{key: "app", token: token}, r)
		if ex.Status != http.StatusUnauthorized || again || ex.Date().IsZero() {
			return ex, next, err
		}
		a.mu.Lock()
		a.skew = ex.Date().Sub(a.c.now())
		a.mu.Unlock()
	}
}

// slug is the app's name in its bot's login.
func (a *installations) slug(ctx context.Context) (string, error) {
	what := wire.Read("app.self", "read the app itself")
	slug, err := a.name.get(ctx, a.c.now, func(ctx context.Context) (string, time.Time, error) {
		var app sdk.App
		ex, _, err := a.call(ctx, get(what, &app, "app"))
		if err == nil && app.GetSlug() == "" {
			err = nonsense(what, ex)
		}
		return app.GetSlug(), a.c.now().Add(listAge), err
	})
	return slug, ours(what, err)
}

// ours makes an error of the caller's context one of the forge's.
func ours(what wire.Call, err error) error {
	var own *forge.Error
	if err == nil || errors.As(err, &own) {
		return err
	}
	return wire.Failure(what, &wire.Exchange{}, wire.Unsure, nil, err, time.Time{})
}

// installed lists where the app is installed and not suspended, by age.
func (a *installations) installed(ctx context.Context) ([]installation, error) {
	what := wire.Read("app.installations", "list the app's installations")
	list, err := a.list.get(ctx, a.c.now, func(ctx context.Context) ([]installation, time.Time, error) {
		var out []installation
		err := pages(func(number int) (int, bool, error) {
			var some []*sdk.Installation
			_, next, err := a.call(ctx, get(what, &some, page("app/installations", number, time.Time{})))
			fresh := false
			for _, i := range some {
				at := installation{i.GetID(), i.GetAccount().GetID(), i.GetAccount().GetLogin()}
				if at.id > 0 && i.SuspendedAt == nil && !slices.Contains(out, at) {
					out, fresh = append(out, at), true
				}
			}
			return next, fresh, err
		})
		slices.SortFunc(out, func(x, y installation) int { return int(x.id - y.id) })
		return out, a.c.now().Add(listAge), err
	})
	return list, ours(what, err)
}

// find is the installation that fits; the list is fetched again if none does
// and it is not fresh.
func (a *installations) find(ctx context.Context, fits func(installation) bool) (installation, bool, error) {
	for {
		list, err := a.installed(ctx)
		if err != nil {
			return installation{}, false, err
		}
		if at := slices.IndexFunc(list, fits); at >= 0 {
			return list[at], true, nil
		}
		if !a.list.dropIf(func(_ []installation, fetched time.Time) bool { return a.c.now().Sub(fetched) >= relistAfter }) {
			return installation{}, false, nil
		}
	}
}

// token is an installation's token, renewed in time.
func (a *installations) token(ctx context.Context, in installation) (identity, error) {
	what := wire.Read("app.token", "get a token for installation %d", in.id)
	a.mu.Lock()
	t := a.tokens[in.id]
	if t == nil {
		t = &shared[string]{}
		a.tokens[in.id] = t
	}
	a.mu.Unlock()
	value, err := t.get(ctx, a.c.now, func(ctx context.Context) (string, time.Time, error) {
		var out sdk.InstallationToken
		ex, _, err := a.call(ctx, request{what, http.MethodPost, escaped("app", "installations", in.id, "access_tokens"), nil, &out})
		if err == nil && (out.GetToken() == "" || out.GetExpiresAt().IsZero()) {
			err = nonsense(what, ex)
		}
		if errors.Is(err, forge.ErrNotFound) || errors.Is(err, forge.ErrPermanent) {
			// The app was taken out of the account, or suspended there.
			a.list.dropIf(func([]installation, time.Time) bool { return true })
			err = &forge.Error{Op: what.Op, Status: ex.Status, Kind: forge.ErrUnverified, FromForge: true}
		}
		life := ex.Until(out.GetExpiresAt().Time, a.c.now())
		return out.GetToken(), a.c.now().Add(life - renewBefore), err
	})
	return identity{key: fmt.Sprint("installation ", in.id), token: value}, ours(what, err)
}

// refused forgets a token that GitHub does not know any more: the app was
// installed anew, or somebody revoked it.
func (a *installations) refused(as identity) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, t := range a.tokens {
		if t.dropIf(func(value string, _ time.Time) bool { return value == as.token }) {
			return true
		}
	}
	return false
}

// anyone acts for the oldest installation.
func (a *installations) anyone(ctx context.Context, what wire.Call) (identity, error) {
	return a.act(ctx, what, forge.ErrUnverified, func(installation) bool { return true })
}

// forOwner acts where that account has installed the app. An account that has
// not is one the bot cannot see.
func (a *installations) forOwner(ctx context.Context, what wire.Call, login string) (identity, error) {
	return a.act(ctx, what, forge.ErrNotFound, func(in installation) bool { return strings.EqualFold(in.login, login) })
}

func (a *installations) act(ctx context.Context, what wire.Call, otherwise error, fits func(installation) bool) (identity, error) {
	in, ok, err := a.find(ctx, fits)
	if err != nil {
		return identity{}, err
	}
	if !ok {
		return identity{}, &forge.Error{Op: what.Op, Kind: otherwise}
	}
	return a.token(ctx, in)
}

// forRepo acts for the installation in the account that owns the repository.
func (a *installations) forRepo(ctx context.Context, what wire.Call, repo int64) (identity, error) {
	owner, known := a.home(repo)
	if !known {
		r, err := a.locate(ctx, repo)
		if err != nil {
			return identity{}, err
		}
		owner = r.OwnerID
	}
	return a.act(ctx, what, forge.ErrUnverified, func(in installation) bool { return in.owner == owner })
}

func (a *installations) home(repo int64) (owner int64, ok bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	owner, ok = a.homes[repo]
	return owner, ok
}

func (a *installations) setHome(repo, owner int64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.homes[repo] = owner; owner == 0 {
		delete(a.homes, repo)
	}
}

// locate finds a repository whose owner is not known by asking with one token
// after the other: any will do for a public one, only its own for a private
// one.
func (a *installations) locate(ctx context.Context, repo int64) (forge.Repo, error) {
	what := wire.Read("repo.by_id", "find repository %d among the app's installations", repo)
	list, err := a.installed(ctx)
	if err != nil {
		return forge.Repo{}, err
	}
	status := 0
	for _, in := range list {
		as, err := a.token(ctx, in)
		if errors.Is(err, forge.ErrUnverified) {
			continue
		}
		if err != nil {
			return forge.Repo{}, err
		}
		r, _, err := a.c.readRepo(ctx, func() (identity, error) { return as, nil }, what, inRepo(repo))
		if errors.Is(err, forge.ErrNotFound) {
			status = http.StatusNotFound
			continue
		}
		if err != nil {
			return forge.Repo{}, err
		}
		a.setHome(repo, r.OwnerID)
		return r, nil
	}
	if status == 0 { // nobody could be asked: nothing was said of the repository
		return forge.Repo{}, &forge.Error{Op: what.Op, Kind: forge.ErrUnverified}
	}
	return forge.Repo{}, &forge.Error{Op: what.Op, Status: status, Kind: forge.ErrNotFound, FromForge: true}
}
