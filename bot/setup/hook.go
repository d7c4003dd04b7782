package setup

import (
	"context"
	"fmt"
	"net/url"
	"strings"

	"playbook-bot/bot/forge"
)

// hookState is how a place's hooks stand to the one wanted.
type hookState struct {
	ours   []forge.Hook // to the wanted URL, the oldest first
	others []forge.Hook // to the same path at another address
}

// hooksOf sorts a place's hooks. A hook to the same path at another address
// may be this bot's former one or another bot's present one.
func hooksOf(list []forge.Hook, publicURL, path string) hookState {
	var s hookState
	for _, h := range list {
		switch {
		case h.URL == publicURL+path:
			s.ours = append(s.ours, h)
		case strings.HasSuffix(pathOf(h.URL), path):
			s.others = append(s.others, h)
		}
	}
	return s
}

// pathOf is an address's path; addresses of people's making may be anything.
func pathOf(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return ""
	}
	return u.Path
}

// hostOf is an address's host for showing: the rest may hold a secret.
func hostOf(address string) string {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" {
		return "an address that cannot be read"
	}
	return u.Host
}

// faults are what is wrong with a hook, in clauses; that it cannot be tested is
// not among them.
func faults(h forge.Hook) []string {
	var out []string
	if !h.Active {
		out = append(out, "it is switched off")
	}
	if !h.JSON {
		out = append(out, "it sends forms instead of JSON")
	}
	if len(h.Lacking) > 0 {
		out = append(out, "it does not send "+strings.Join(h.Lacking, ", "))
	}
	return out
}

func (p *planner) hookStates(ctx context.Context, at place) (hookState, error) {
	list, err := p.Admin.Hooks(ctx, at.Place)
	if err != nil {
		return hookState{}, fmt.Errorf("list the hooks of %s: %w", at.name, err)
	}
	return hooksOf(list, p.PublicURL, p.path(at)), nil
}

func (p *planner) hook(ctx context.Context, at place) error {
	found, err := p.hookStates(ctx, at)
	if err != nil {
		return err
	}
	spec := forge.HookSpec{URL: p.PublicURL + p.path(at), Secret: p.Secret(at.scope, at.id)}
	create := func(ctx context.Context) error {
		_, err := p.Admin.CreateHook(ctx, at.Place, spec)
		return err
	}
	remove := func(id int64) func(context.Context) error {
		return func(ctx context.Context) error { return p.Admin.DeleteHook(ctx, at.Place, id) }
	}
	for _, h := range found.others {
		if p.Replace {
			p.add(at, fmt.Sprintf("hook %d", h.ID), Delete, remove(h.ID), "it delivers to the same path at %s", hostOf(h.URL))
		} else {
			p.add(at, fmt.Sprintf("hook %d", h.ID), Keep, nil,
				"it delivers to the same path at %s; if that is a former address of this bot, --replace removes it", hostOf(h.URL))
		}
	}
	// Two hooks to one address tell everything twice.
	for i, h := range found.ours {
		if i > 0 {
			p.add(at, fmt.Sprintf("hook %d", h.ID), Delete, remove(h.ID), "hook %d delivers to the same address", found.ours[0].ID)
		}
	}
	if len(found.ours) == 0 {
		p.add(at, "hook", Create, create, "to %s", spec.URL)
		return nil
	}
	h := found.ours[0]
	what, bad := fmt.Sprintf("hook %d", h.ID), faults(h)
	if !h.Testable {
		bad = append(bad, "it does not send what test deliveries are")
	}
	edit := func(ctx context.Context) error { return p.Admin.EditHook(ctx, at.Place, h.ID, spec) }
	switch {
	case p.NewSecret && p.Admin.Traits().EditSecret:
		p.add(at, what, Repair, edit, "%s", strings.Join(append(bad, "it gets the present secret"), "; "))
	case p.NewSecret:
		// The new one first: for a moment there are two, which does no harm;
		// with none something would be missed.
		p.add(at, "hook", Create, create, "to %s, with the present secret", spec.URL)
		p.add(at, what, Delete, remove(h.ID), "the new one takes its place")
	case len(bad) > 0:
		p.add(at, what, Repair, edit, "%s", strings.Join(bad, "; "))
	default:
		p.add(at, what, Keep, nil, "to %s; its secret is not shown, --new-secret sets it again", spec.URL)
	}
	return nil
}

func (p *planner) unhook(ctx context.Context, at place) error {
	found, err := p.hookStates(ctx, at)
	if err != nil {
		return err
	}
	list := found.ours
	if p.Replace {
		list = append(list, found.others...)
	}
	for _, h := range list {
		p.add(at, fmt.Sprintf("hook %d", h.ID), Delete, func(ctx context.Context) error { return p.Admin.DeleteHook(ctx, at.Place, h.ID) },
			"to %s", hostOf(h.URL))
	}
	return nil
}
