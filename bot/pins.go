package bot

import (
	"context"
	"errors"
	"strings"
	"sync"
	"time"

	"playbook-bot/bot/forge"
	"playbook-bot/playbook"
)

// pins bind the repositories that the operator names to their ids. A name is
// asked for at start, or when the forge is first there, and stays with its id:
// a repository that is renamed keeps its rights, and one that takes the old
// name gets none.
type pins struct {
	mu  sync.Mutex
	ids map[string]int64
}

func pinKey(forgeName, owner, name string) string {
	return forgeName + "\x00" + strings.ToLower(owner+"/"+name)
}

// id is the pinned id of a name, 0 while it is not known.
func (p *pins) id(forgeName, owner, name string) int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.ids[pinKey(forgeName, owner, name)]
}

func (p *pins) set(forgeName, owner, name string, id int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ids == nil {
		p.ids = map[string]int64{}
	}
	if key := pinKey(forgeName, owner, name); p.ids[key] == 0 {
		p.ids[key] = id
	}
}

// pin binds a name, asking the forge if it is not bound yet.
func (b *Bot) pin(ctx context.Context, forgeName, owner, name string) (int64, error) {
	if id := b.pins.id(forgeName, owner, name); id != 0 {
		return id, nil
	}
	r, err := b.Forges[forgeName].RepoByName(ctx, owner, name)
	if err != nil {
		return 0, err
	}
	b.belongs(ctx, forgeName, r)
	b.pins.set(forgeName, owner, name, r.ID)
	return r.ID, nil
}

// pinAll binds all names of the configuration, as far as the forge knows
// them; the rest is bound at first use.
func (b *Bot) pinAll(ctx context.Context, forgeName string) {
	for _, item := range b.Repositories.On(forgeName) {
		if owner, name, _ := strings.Cut(item, "/"); name != "*" {
			_, _ = b.pin(ctx, forgeName, owner, name)
		}
	}
	grants, err := b.Grants()
	if err != nil {
		return
	}
	for _, g := range grants {
		if g.Repo != "" {
			_, _ = b.pin(ctx, forgeName, g.Owner, g.Repo)
		}
	}
}

// answersIn reports whether the bot speaks in a repository. It asks nobody,
// so that it also serves the intake.
func (b *Bot) answersIn(forgeName string, r forge.Repo) bool {
	for _, item := range b.Repositories.On(forgeName) {
		owner, name, _ := strings.Cut(item, "/")
		switch id := b.pins.id(forgeName, owner, name); {
		case name == "*":
			if strings.EqualFold(owner, r.Owner) {
				return true
			}
		case id != 0:
			if id == r.ID {
				return true
			}
		case strings.EqualFold(item, r.FullName()):
			return true
		}
	}
	return false
}

// namedIn reports whether a repository is one that REPOSITORIES names in
// full.
func (b *Bot) namedIn(ctx context.Context, forgeName string, r forge.Repo) (bool, error) {
	for _, item := range b.Repositories.On(forgeName) {
		owner, name, _ := strings.Cut(item, "/")
		if name == "*" {
			continue
		}
		id, err := b.pin(ctx, forgeName, owner, name)
		switch {
		case errors.Is(err, forge.ErrNotFound):
		case err != nil:
			return false, err
		case id == r.ID:
			return true, nil
		}
	}
	return false, nil
}

// grantFor is the break-glass grant in force for a request in a repository.
// Grants that name a repository hold for its id.
func (b *Bot) grantFor(ctx context.Context, forgeName string, r forge.Repo, number int64, action string, now time.Time) (playbook.Grant, bool) {
	all, err := b.Grants()
	if err != nil {
		b.Log.ErrorContext(ctx, "cannot read the break-glass grants; none is in force", "error", err)
		return playbook.Grant{}, false
	}
	var here playbook.Grants
	for _, g := range all {
		if g.Repo == "" {
			here = append(here, g)
			continue
		}
		if id, err := b.pin(ctx, forgeName, g.Owner, g.Repo); err == nil && id == r.ID {
			g.Owner, g.Repo = r.Owner, r.Name
			here = append(here, g)
		}
	}
	return here.Match(r.Owner, r.Name, number, action, now)
}
