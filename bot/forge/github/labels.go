package github

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	sdk "github.com/google/go-github/v62/github"

	"playbook-bot/bot/forge"
	"playbook-bot/bot/forge/internal/wire"
)

// GitHub has no exclusive labels: this file keeps to a scope what the bot
// sets, and leaves to people what they set.

const (
	// defaultColor is that of a label nobody gave one.
	defaultColor = "ededed"
	// maxDescription is GitHub's, in characters.
	maxDescription = 100
)

// labelSpecs knows which labels the bot means to be exclusive. One that it was
// not told of is, if its name has a scope.
type labelSpecs struct {
	mu     sync.Mutex
	byName map[string]forge.LabelSpec
}

func (ls *labelSpecs) put(specs []forge.LabelSpec) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	if ls.byName == nil {
		ls.byName = map[string]forge.LabelSpec{}
	}
	for _, s := range specs {
		ls.byName[strings.ToLower(s.Name)] = s
	}
}

// scope is that of an exclusive label, e.g. "recovery" of "recovery/approved",
// and "" for all others.
func (ls *labelSpecs) scope(name string) string {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	s, told := ls.byName[strings.ToLower(name)]
	i := strings.LastIndexByte(name, '/')
	if i <= 0 || told && !s.Exclusive {
		return ""
	}
	return strings.ToLower(name[:i])
}

// EnsureLabels makes the labels that the repository lacks. Those it has are
// left as they are, whatever their colour: people may have changed it. Names
// differ by more than their case.
func (c *Client) EnsureLabels(ctx context.Context, repoID int64, specs []forge.LabelSpec) error {
	c.labels.put(specs)
	what := wire.Read("label.list", "list the labels of repository %d", repoID)
	have := map[string]bool{}
	err := pages(func(number int) (int, bool, error) {
		var list []*sdk.Label
		_, next, err := c.onRepo(ctx, repoID, get(what, &list, page(inRepo(repoID, "labels"), number, time.Time{})))
		before := len(have)
		for _, l := range list {
			have[strings.ToLower(l.GetName())] = true
		}
		return next, len(have) > before, err
	})
	if err != nil {
		return err
	}
	for _, s := range specs {
		if have[strings.ToLower(s.Name)] {
			continue
		}
		if err := c.createLabel(ctx, repoID, s); err != nil {
			return err
		}
	}
	return nil
}

func (c *Client) createLabel(ctx context.Context, repoID int64, s forge.LabelSpec) error {
	what := wire.Write("label.create", "create a label in repository %d", repoID)
	color := strings.TrimPrefix(cmp.Or(s.Color, defaultColor), "#")
	description := s.Description
	if r := []rune(description); len(r) > maxDescription {
		description = string(r[:maxDescription])
	}
	label := sdk.Label{Name: &s.Name, Color: &color, Description: &description}
	ex, _, err := c.onRepo(ctx, repoID, request{what, http.MethodPost, inRepo(repoID, "labels"), label, nil})
	if ex.Status == http.StatusUnprocessableEntity && strings.Contains(string(ex.Refusal), `"already_exists"`) {
		return nil // somebody was quicker
	}
	return err
}

// SetLabels puts add on an issue and takes remove off it, and with a label of a
// scope the scope's others; all other labels stay as they are. GitHub makes
// labels that the repository lacks, grey. An empty difference costs one call.
func (c *Client) SetLabels(ctx context.Context, repoID, number int64, add, remove []string) error {
	issue, err := c.Issue(ctx, repoID, number)
	if err != nil {
		return err
	}
	same := func(name string) func(string) bool {
		return func(other string) bool { return strings.EqualFold(name, other) }
	}
	var missing []string
	for _, name := range add {
		if !slices.ContainsFunc(issue.Labels, func(l forge.Label) bool { return same(name)(l.Name) }) {
			missing = append(missing, name)
		}
	}
	var off []string
	for _, l := range issue.Labels {
		replaced := slices.ContainsFunc(missing, func(name string) bool {
			scope := c.labels.scope(name)
			return scope != "" && scope == c.labels.scope(l.Name)
		})
		if !slices.ContainsFunc(add, same(l.Name)) && (replaced || slices.ContainsFunc(remove, same(l.Name))) {
			off = append(off, l.Name)
		}
	}
	// Off first: between the two calls nobody sees "approved" beside "refused".
	for _, name := range off {
		if err := c.removeLabel(ctx, repoID, number, name); err != nil {
			return err
		}
	}
	if len(missing) == 0 {
		return nil
	}
	what := wire.Write("label.add", "put labels on issue %d of repository %d", number, repoID)
	_, _, err = c.onThread(ctx, repoID, request{what, http.MethodPost, inRepo(repoID, "issues", number, "labels"), map[string][]string{"labels": missing}, nil})
	return err
}

func (c *Client) removeLabel(ctx context.Context, repoID, number int64, name string) error {
	what := wire.Write("label.remove", "take a label off issue %d of repository %d", number, repoID)
	_, _, err := c.onThread(ctx, repoID, request{what, http.MethodDelete, inRepo(repoID, "issues", number, "labels", name), nil, nil})
	if errors.Is(err, forge.ErrNotFound) {
		return nil // somebody was quicker
	}
	return err
}
