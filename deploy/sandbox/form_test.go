//go:build unix

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestForm shows that Gitea reads the issue form of the templates, and makes of
// a filled-in one the text that bot/comment is to read.
func TestForm(t *testing.T) {
	t.Parallel()
	repo, ctx := newRepo(t), t.Context()
	form := must(os.ReadFile(filepath.Join(box.tree.Bot, "templates", "forms", "restart-request.yaml")))(t)
	ok(t, repo.Commit(ctx, ".gitea/ISSUE_TEMPLATE/restart-request.yaml", form))

	number := must(repo.OpenForm(ctx, "rhea", "restart-request.yaml", "mcp-search", map[string]string{
		"restart_class": "full_mcp_restart",
		"target":        "mcp-search",
		"what_happened": "Two lines\n### Target",
		"break_glass":   "yes",
	}))(t)
	thread := must(repo.Thread(ctx, number))(t)
	want := `### Requested class

full_mcp_restart

### Target

mcp-search

### Symptoms

_No response_

### What happened

Two lines
### Target

### Prior recovery attempts

_No response_

### Break-glass

- [x] I request break-glass

`
	if got := strings.ReplaceAll(thread.Entries[0].Body, "\r\n", "\n"); got != want {
		t.Errorf("Gitea made:\n%s\nwant:\n%s", got, want)
	}
	if thread.Title != "Restart request: mcp-search" || thread.Entries[0].Author != "rhea" {
		t.Errorf("%q by %s", thread.Title, thread.Entries[0].Author)
	}
	for name, answers := range map[string]map[string]string{
		"no such field":  {"flavour": "vanilla"},
		"no such option": {"restart_class": "pkill"},
	} {
		if _, err := repo.OpenForm(ctx, "rhea", "restart-request.yaml", "x", answers); err == nil {
			t.Errorf("%s: filled in", name)
		}
	}
	if _, err := repo.OpenForm(ctx, "rhea", "other.yaml", "x", nil); err == nil {
		t.Error("filled in a form that is not there")
	}
}
