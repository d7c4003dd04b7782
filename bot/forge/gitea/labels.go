package gitea

import (
	"cmp"
	"context"
	"maps"
	"strings"
	"sync"

	sdk "code.gitea.io/sdk/gitea"

	"playbook-bot/bot/forge"
	"playbook-bot/bot/forge/internal/wire"
)

// defaultColor is that of a label nobody gave one: Gitea refuses an empty one.
const defaultColor = "#ededed"

// labelCache knows the ids of each repository's labels, and how the bot wants
// its own to look. Ids may be of the past: labels can be deleted by people, so
// what was set is compared with what the server then lists.
type labelCache struct {
	mu    sync.Mutex
	ids   map[int64]map[string]int64 // by repository id, then name
	specs map[string]forge.LabelSpec
}

func (lc *labelCache) specify(specs []forge.LabelSpec) {
	lc.mu.Lock()
	defer lc.mu.Unlock()
	if lc.specs == nil {
		lc.specs = map[string]forge.LabelSpec{}
	}
	for _, s := range specs {
		lc.specs[s.Name] = s
	}
}

func (lc *labelCache) spec(name string) forge.LabelSpec {
	lc.mu.Lock()
	defer lc.mu.Unlock()
	if s, ok := lc.specs[name]; ok {
		return s
	}
	return forge.LabelSpec{Name: name, Exclusive: hasScope(name)}
}

func (lc *labelCache) get(repoID int64) map[string]int64 {
	lc.mu.Lock()
	defer lc.mu.Unlock()
	return maps.Clone(lc.ids[repoID])
}

func (lc *labelCache) put(repoID int64, ids map[string]int64) {
	lc.mu.Lock()
	defer lc.mu.Unlock()
	if lc.ids == nil {
		lc.ids = map[int64]map[string]int64{}
	}
	lc.ids[repoID] = maps.Clone(ids)
}

// repoLabels lists a repository's labels, name to id. Of two with one name, of
// which Gitea allows any number, the older is meant.
func (c *Client) repoLabels(ctx context.Context, repoID int64) (map[string]int64, error) {
	what := wire.Read("label.list", "list the labels of repository %d", repoID)
	ids, seen := map[string]int64{}, map[int64]bool{}
	for page := 1; ; page++ {
		var labels []*sdk.Label
		ex, _, err := c.inRepo(ctx, what, repoID, trustName, func(t target) (err error) {
			labels, _, err = t.api.ListRepoLabels(t.owner(), t.name(), sdk.ListLabelsOptions{
				ListOptions: sdk.ListOptions{Page: page, PageSize: pageSize}})
			return err
		})
		if err != nil {
			return nil, err
		}
		fresh := false
		for _, l := range labels {
			if l == nil || seen[l.ID] {
				continue
			}
			seen[l.ID], fresh = true, true
			if id, ok := ids[l.Name]; !ok || l.ID < id {
				ids[l.Name] = l.ID
			}
		}
		if !fresh || !hasMore(ex, page, len(labels)) {
			return ids, nil
		}
	}
}

func (c *Client) createLabel(ctx context.Context, repoID int64, spec forge.LabelSpec) (int64, error) {
	what := wire.Write("label.create", "create a label in repository %d", repoID)
	color := "#" + strings.TrimPrefix(cmp.Or(spec.Color, defaultColor), "#")
	opt := sdk.CreateLabelOption{
		Name: spec.Name, Color: color, Description: spec.Description,
		Exclusive: spec.Exclusive && hasScope(spec.Name),
	}
	if opt.Validate() != nil {
		return 0, &forge.Error{Op: what.Op, Kind: forge.ErrPermanent}
	}
	var label *sdk.Label
	ex, _, err := c.inRepo(ctx, what, repoID, trustName, func(t target) (err error) {
		label, _, err = t.api.CreateLabel(t.owner(), t.name(), opt)
		return err
	})
	if err != nil {
		return 0, err
	}
	if label == nil || label.ID <= 0 {
		return 0, nonsense(what, ex)
	}
	return label.ID, nil
}

// addLabels puts labels on an issue and gives those that then stand on it,
// name to id. Ids that the server no longer knows are silently left out by it;
// they are then looked up afresh, once.
func (c *Client) addLabels(ctx context.Context, repoID, number int64, names []string) (map[string]int64, error) {
	what := wire.Write("label.add", "put labels on issue %d of repository %d", number, repoID)
	known := c.labels.get(repoID)
	for retried := false; ; retried = true {
		var ids []int64
		for _, name := range names {
			id, ok := known[name]
			if !ok {
				specs := make([]forge.LabelSpec, len(names))
				for i, n := range names {
					specs[i] = c.labels.spec(n)
				}
				if err := c.EnsureLabels(ctx, repoID, specs); err != nil {
					return nil, err
				}
				known = c.labels.get(repoID)
				id = known[name]
			}
			ids = append(ids, id)
		}
		var labels []*sdk.Label
		_, _, err := c.inRepo(ctx, what, repoID, trustName, func(t target) (err error) {
			labels, _, err = t.api.AddIssueLabels(t.owner(), t.name(), number, sdk.IssueLabelsOption{Labels: ids})
			return err
		})
		if err != nil {
			return nil, err
		}
		stand := map[string]int64{}
		for _, l := range labels {
			if l != nil {
				stand[l.Name] = l.ID
			}
		}
		all := true
		for _, name := range names {
			_, ok := stand[name]
			all = all && ok
		}
		if all || retried {
			return stand, nil
		}
		known = nil
	}
}
