package github

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"time"

	"playbook-bot/bot/forge"
	"playbook-bot/bot/forge/internal/wire"
)

// neededEvents are what the bot acts on; a comment on a pull request is an
// issue_comment. A test delivery is a ping, which every hook sends.
var neededEvents = []string{"issues", "issue_comment", "pull_request"}

// HookEvents are the events a hook of the bot's asks for, by the names that
// GitHub's API takes.
func HookEvents() []string { return slices.Clone(neededEvents) }

// Traits are GitHub's. An organisation's labels are only what new repositories
// begin with.
func (c *Client) Traits() forge.Traits {
	return forge.Traits{EditSecret: true, OrgTest: true, Needs: forge.PermissionWrite, FormDir: ".github"}
}

// hookWire is a web hook as GitHub has it. Type and config of go-github's v62
// are tied to calls by name.
type hookWire struct {
	ID     int64          `json:"id,omitempty"`
	Name   string         `json:"name,omitempty"`
	Active bool           `json:"active"`
	Events []string       `json:"events"`
	Config hookConfigWire `json:"config"`
}

type hookConfigWire struct {
	URL         string `json:"url"`
	ContentType string `json:"content_type"`
	Secret      string `json:"secret,omitempty"`
	InsecureSSL string `json:"insecure_ssl,omitempty"`
}

// inPlace makes a call below a repository or an organisation. GitHub hides
// hooks from those who do not administer: as for what may not be seen, that is
// forge.ErrUnverified, unless something is named by its id.
func (c *Client) inPlace(ctx context.Context, p forge.Place, r request) (*wire.Exchange, int, error) {
	if p.Org != "" {
		r.path = escaped("orgs", p.Org) + "/" + r.path
		return c.onOwner(ctx, p.Org, r)
	}
	r.path = inRepo(p.Repo) + "/" + r.path
	return c.onRepo(ctx, p.Repo, r)
}

func placeName(p forge.Place) string {
	if p.Org != "" {
		return "the organisation"
	}
	return "the repository"
}

// Hooks lists the web hooks of a repository or organisation, the oldest first.
// It needs an administrator; for anybody else it is forge.ErrUnverified.
func (c *Client) Hooks(ctx context.Context, p forge.Place) ([]forge.Hook, error) {
	list, err := c.hooks(ctx, p)
	if err != nil {
		return nil, err
	}
	out := make([]forge.Hook, 0, len(list))
	for _, h := range list {
		hook := forge.Hook{ID: h.ID, URL: h.Config.URL, Active: h.Active, JSON: h.Config.ContentType == "json", Testable: true}
		for _, event := range neededEvents {
			if !slices.Contains(h.Events, event) && !slices.Contains(h.Events, "*") {
				hook.Lacking = append(hook.Lacking, event)
			}
		}
		out = append(out, hook)
	}
	slices.SortFunc(out, func(a, b forge.Hook) int { return int(a.ID - b.ID) })
	return out, nil
}

func (c *Client) hooks(ctx context.Context, p forge.Place) ([]hookWire, error) {
	what := wire.Read("hook.list", "list the hooks of %s", placeName(p))
	var all []hookWire
	seen := map[int64]bool{}
	err := pages(func(number int) (int, bool, error) {
		var list []hookWire
		_, next, err := c.inPlace(ctx, p, get(what, &list, page("hooks", number, time.Time{})))
		before := len(all)
		for _, h := range list {
			if !seen[h.ID] {
				seen[h.ID] = true
				all = append(all, h)
			}
		}
		return next, len(all) > before, err
	})
	if errors.Is(err, forge.ErrNotFound) {
		err = &forge.Error{Op: what.Op, Status: http.StatusNotFound, Kind: forge.ErrUnverified, FromForge: true}
	}
	return all, err
}

// CreateHook makes a web hook that sends the bot what it acts on, and returns
// its id.
func (c *Client) CreateHook(ctx context.Context, p forge.Place, spec forge.HookSpec) (int64, error) {
	what := wire.Write("hook.create", "create a hook of %s", placeName(p))
	in := hookWire{Name: "web", Active: true, Events: neededEvents, Config: configOf(spec)}
	var out hookWire
	ex, _, err := c.inPlace(ctx, p, request{what, http.MethodPost, "hooks", in, &out})
	if err != nil {
		return 0, err
	}
	if out.ID <= 0 {
		return 0, nonsense(what, ex)
	}
	return out.ID, nil
}

func configOf(spec forge.HookSpec) hookConfigWire {
	return hookConfigWire{URL: spec.URL, ContentType: "json", Secret: spec.Secret, InsecureSSL: "0"}
}

// EditHook makes a hook as CreateHook would have. Events it sends beside the
// bot's stay.
func (c *Client) EditHook(ctx context.Context, p forge.Place, id int64, spec forge.HookSpec) error {
	list, err := c.hooks(ctx, p)
	if err != nil {
		return err
	}
	what := wire.Write("hook.edit", "edit hook %d of %s", id, placeName(p))
	i := slices.IndexFunc(list, func(h hookWire) bool { return h.ID == id })
	if i < 0 {
		return &forge.Error{Op: what.Op, Kind: forge.ErrNotFound}
	}
	events := list[i].Events
	for _, e := range neededEvents {
		if !slices.Contains(events, e) && !slices.Contains(events, "*") {
			events = append(events, e)
		}
	}
	in := hookWire{Active: true, Events: events, Config: configOf(spec)}
	_, _, err = c.inPlace(ctx, p, request{what, http.MethodPatch, escaped("hooks", id), in, nil})
	return err
}

// DeleteHook removes a hook.
func (c *Client) DeleteHook(ctx context.Context, p forge.Place, id int64) error {
	what := wire.Write("hook.delete", "delete hook %d of %s", id, placeName(p))
	_, _, err := c.inPlace(ctx, p, request{what, http.MethodDelete, escaped("hooks", id), nil, nil})
	return err
}

// TestHook has GitHub send a ping through a hook.
func (c *Client) TestHook(ctx context.Context, p forge.Place, id int64) error {
	what := wire.Write("hook.test", "test hook %d of %s", id, placeName(p))
	_, _, err := c.inPlace(ctx, p, request{what, http.MethodPost, escaped("hooks", id, "pings"), nil, nil})
	return err
}

// LastDelivery is when GitHub last sent something through a hook, and with what
// status that was answered; 0: there was no answer. at is zero where nothing
// was sent within the days GitHub keeps.
func (c *Client) LastDelivery(ctx context.Context, p forge.Place, id int64) (at time.Time, status int, err error) {
	what := wire.Read("hook.deliveries", "list the deliveries of hook %d of %s", id, placeName(p))
	var list []struct {
		DeliveredAt time.Time `json:"delivered_at"`
		StatusCode  int       `json:"status_code"`
	}
	_, _, err = c.inPlace(ctx, p, get(what, &list, escaped("hooks", id, "deliveries")+"?per_page=1"))
	if err != nil || len(list) == 0 {
		return time.Time{}, 0, err
	}
	return list[0].DeliveredAt.UTC(), list[0].StatusCode, nil
}
