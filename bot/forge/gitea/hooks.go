package gitea

import (
	"context"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	sdk "code.gitea.io/sdk/gitea"

	"playbook-bot/bot/forge"
	"playbook-bot/bot/forge/internal/wire"
)

// HookEvents are the events that a hook of the bot's is made with, by the names
// Gitea's API takes; "issues" and "pull_request" each stand for a family, of
// which comments on pull requests are one. Pushes are for test deliveries
// alone, which are pushes: without them a test sends nothing.
func HookEvents() []string { return []string{"issues", "issue_comment", "pull_request", "push"} }

// neededEvents are what the bot acts on, by the names under which Gitea lists
// a hook's events.
var neededEvents = []string{"issues", "issue_comment", "pull_request", "pull_request_comment"}

const pushEvent = "push"

// Traits are Gitea's and Forgejo's.
func (c *Client) Traits() forge.Traits {
	return forge.Traits{OrgLabels: true, Needs: forge.PermissionAdmin, FormDir: ".gitea"}
}

// pages reads a paged listing to its end, each object once.
func pages[T any](id func(*T) int64, list func(page int) ([]*T, *wire.Exchange, error)) ([]*T, error) {
	var all []*T
	seen := map[int64]bool{}
	for page := 1; ; page++ {
		got, ex, err := list(page)
		if err != nil {
			return nil, err
		}
		fresh := false
		for _, x := range got {
			if x != nil && !seen[id(x)] {
				seen[id(x)], fresh = true, true
				all = append(all, x)
			}
		}
		if !fresh || !hasMore(ex, page, len(got)) {
			return all, nil
		}
	}
}

func listPage(page int) sdk.ListOptions { return sdk.ListOptions{Page: page, PageSize: pageSize} }

// inPlace makes one call in a repository or an organisation.
func (c *Client) inPlace(ctx context.Context, what wire.Call, p forge.Place, inRepo func(target) error, inOrg func(*sdk.Client) error) (*wire.Exchange, error) {
	if p.Org != "" {
		return c.do(ctx, what, inOrg)
	}
	ex, _, err := c.inRepo(ctx, what, p.Repo, trustName, inRepo)
	return ex, err
}

// placeName is a place in an error's words; an organisation's name is as the
// operator wrote it.
func placeName(p forge.Place) string {
	if p.Org != "" {
		return "the organisation"
	}
	return "repository " + strconv.FormatInt(p.Repo, 10)
}

// Hooks lists the web hooks of a repository or organisation, the oldest first.
// It needs an administrator of the repository or an owner of the organisation;
// for anybody else it is forge.ErrUnverified.
func (c *Client) Hooks(ctx context.Context, p forge.Place) ([]forge.Hook, error) {
	hooks, err := c.hooks(ctx, p)
	if err != nil {
		return nil, err
	}
	out := make([]forge.Hook, 0, len(hooks))
	for _, h := range hooks {
		out = append(out, toHook(h))
	}
	slices.SortFunc(out, func(a, b forge.Hook) int { return int(a.ID - b.ID) })
	return out, nil
}

func (c *Client) hooks(ctx context.Context, p forge.Place) ([]*sdk.Hook, error) {
	what := wire.Read("hook.list", "list the hooks of %s", placeName(p))
	return pages(func(h *sdk.Hook) int64 { return h.ID }, func(page int) (hooks []*sdk.Hook, ex *wire.Exchange, err error) {
		ex, err = c.inPlace(ctx, what, p, func(t target) (err error) {
			hooks, _, err = t.api.ListRepoHooks(t.owner(), t.name(), sdk.ListHooksOptions{ListOptions: listPage(page)})
			return err
		}, func(api *sdk.Client) (err error) {
			hooks, _, err = api.ListOrgHooks(p.Org, sdk.ListHooksOptions{ListOptions: listPage(page)})
			return err
		})
		return hooks, ex, err
	})
}

func toHook(h *sdk.Hook) forge.Hook {
	out := forge.Hook{ID: h.ID, URL: h.Config["url"], Active: h.Active, JSON: h.Config["content_type"] == "json"}
	for _, event := range neededEvents {
		if !slices.Contains(h.Events, event) {
			out.Lacking = append(out.Lacking, event)
		}
	}
	out.Testable = slices.Contains(h.Events, pushEvent)
	return out
}

// CreateHook makes a web hook that sends the bot what it acts on, and returns
// its id.
func (c *Client) CreateHook(ctx context.Context, p forge.Place, spec forge.HookSpec) (int64, error) {
	what := wire.Write("hook.create", "create a hook of %s", placeName(p))
	opt := sdk.CreateHookOption{
		Type: sdk.HookTypeGitea, Active: true, Events: HookEvents(),
		Config: map[string]string{"url": spec.URL, "content_type": "json", "secret": spec.Secret},
	}
	var hook *sdk.Hook
	ex, err := c.inPlace(ctx, what, p, func(t target) (err error) {
		hook, _, err = t.api.CreateRepoHook(t.owner(), t.name(), opt)
		return err
	}, func(api *sdk.Client) (err error) {
		hook, _, err = api.CreateOrgHook(p.Org, opt)
		return err
	})
	if err != nil {
		return 0, err
	}
	if hook == nil || hook.ID <= 0 {
		return 0, nonsense(what, ex)
	}
	return hook.ID, nil
}

// EditHook makes a hook as CreateHook would have, in all but its secret, which
// Gitea's API cannot change: for another secret make another hook. Events it
// sends beside the bot's stay, and so do its branch filter and authorization
// header.
func (c *Client) EditHook(ctx context.Context, p forge.Place, id int64, spec forge.HookSpec) error {
	hooks, err := c.hooks(ctx, p)
	if err != nil {
		return err
	}
	what := wire.Write("hook.edit", "edit hook %d of %s", id, placeName(p))
	i := slices.IndexFunc(hooks, func(h *sdk.Hook) bool { return h.ID == id })
	if i < 0 {
		return &forge.Error{Op: what.Op, Kind: forge.ErrNotFound}
	}
	active := true
	events := map[string]bool{}
	for _, e := range append(hooks[i].Events, HookEvents()...) {
		events[e] = true
	}
	opt := sdk.EditHookOption{
		Active: &active, Events: slices.Sorted(maps.Keys(events)),
		Config:       map[string]string{"url": spec.URL, "content_type": "json"},
		BranchFilter: hooks[i].BranchFilter, AuthorizationHeader: hooks[i].AuthorizationHeader,
	}
	_, err = c.inPlace(ctx, what, p, func(t target) error {
		_, err := t.api.EditRepoHook(t.owner(), t.name(), id, opt)
		return err
	}, func(api *sdk.Client) error {
		_, err := api.EditOrgHook(p.Org, id, opt)
		return err
	})
	return err
}

// DeleteHook removes a hook.
func (c *Client) DeleteHook(ctx context.Context, p forge.Place, id int64) error {
	what := wire.Write("hook.delete", "delete hook %d of %s", id, placeName(p))
	_, err := c.inPlace(ctx, what, p, func(t target) error {
		_, err := t.api.DeleteRepoHook(t.owner(), t.name(), id)
		return err
	}, func(api *sdk.Client) error {
		_, err := api.DeleteOrgHook(p.Org, id)
		return err
	})
	return err
}

// TestHook has the server send a test delivery, a push, through a repository's
// hook. No error says only that it will try: nothing is sent by a hook that
// does not send pushes, nor from a repository without a commit. The SDK has no
// call for it.
// Nor has the server one for an organisation's hook: forge.ErrNotFound.
func (c *Client) TestHook(ctx context.Context, p forge.Place, id int64) error {
	what := wire.Write("hook.test", "test hook %d of %s", id, placeName(p))
	if p.Org != "" {
		return &forge.Error{Op: what.Op, Kind: forge.ErrNotFound}
	}
	e, err := c.resolve(ctx, p.Repo)
	if err != nil {
		return err
	}
	path := "/api/v1/repos/" + url.PathEscape(e.repo.Owner) + "/" + url.PathEscape(e.repo.Name) +
		"/hooks/" + strconv.FormatInt(id, 10) + "/tests"
	ex, err := c.post(ctx, path)
	if err == nil && ex.Status/100 == 2 && origin(ex) != wire.Foreign {
		return nil
	}
	return wire.Failure(what, ex, origin(ex), refusalKind, err, c.now())
}

// post makes a call that has neither a body nor an answer's.
func (c *Client) post(ctx context.Context, path string) (*wire.Exchange, error) {
	ex := &wire.Exchange{}
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	req, err := http.NewRequestWithContext(wire.With(ctx, ex), http.MethodPost, strings.TrimRight(c.base, "/")+path, nil)
	if err != nil {
		return ex, err
	}
	req.Header.Set("Authorization", "token "+c.token())
	req.Header.Set("User-Agent", c.userAgent)
	resp, err := c.http.Do(req)
	if err != nil {
		return ex, err
	}
	_, err = io.Copy(io.Discard, resp.Body)
	_ = resp.Body.Close()
	return ex, err
}
