//go:build unix

package build

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"playbook-bot/deploy/sandbox/internal/scratch"
)

func TestFindTree(t *testing.T) {
	tree, err := FindTree(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for dir, module := range map[string]string{
		tree.Sandbox: modulePath,
		tree.Gitea:   modulePath + "/gitea",
		tree.Bot:     "playbook-bot",
	} {
		data, err := os.ReadFile(filepath.Join(dir, "go.mod"))
		if err != nil {
			t.Error(err)
		} else if !strings.Contains(string(data), "module "+module+"\n") {
			t.Errorf("%s is not module %s", dir, module)
		}
	}
	mod, err := os.ReadFile(filepath.Join(tree.Gitea, "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	if want := "require " + giteaModule + " v" + GiteaVersion + "\n"; !strings.Contains(string(mod), want) {
		t.Errorf("gitea/go.mod lacks %q", want)
	}
}

// TestGiteaReplacesRepeated holds our replace lines to Gitea's own, which Go
// does not take over from a dependency.
func TestGiteaReplacesRepeated(t *testing.T) {
	tree, err := FindTree(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	path, err := goOutput(t.Context(), tree.Gitea, "list", "-mod=readonly", "-m", "-f", "{{.GoMod}}", giteaModule)
	if err != nil {
		t.Fatal(err)
	}
	theirs, ours := replaces(t, path), replaces(t, filepath.Join(tree.Gitea, "go.mod"))
	if len(theirs) == 0 {
		t.Fatal("found no replace line in Gitea's go.mod")
	}
	for from, to := range theirs {
		if ours[from] != to {
			t.Errorf("replace %s => %q, Gitea has %q", from, ours[from], to)
		}
	}
}

func replaces(t *testing.T, path string) map[string]string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]string{}
	for line := range strings.Lines(string(data)) {
		line, _, _ = strings.Cut(line, "//")
		line = strings.TrimPrefix(strings.TrimSpace(line), "replace ")
		if from, to, ok := strings.Cut(line, " => "); ok {
			found[strings.TrimSpace(from)] = strings.TrimSpace(to)
		}
	}
	return found
}

// fakeTree is a tree whose Gitea does not build, so that the failing of a
// build can be watched without waiting for one.
func fakeTree(t *testing.T) (Tree, *scratch.Dir) {
	t.Helper()
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	if runtime.GOOS == "darwin" {
		// Only there, where it decides: the go command keeps writing its
		// telemetry into a home for a while after it has ended.
		t.Setenv("HOME", t.TempDir())
	}
	root := t.TempDir()
	for name, text := range map[string]string{
		"go.mod": "module playbook-bot/deploy/sandbox/gitea\n\ngo 1.26.0\n", "go.sum": "",
		"sqlite3/go.mod": "", "sqlite3/sqlite3.go": "",
	} {
		name = filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	dir, err := scratch.New("build-test")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { dir.Close() })
	return Tree{Gitea: root}, dir
}

func TestFailedBuildLeavesNothing(t *testing.T) {
	t.Setenv("GOPROXY", "off")
	tree, dir := fakeTree(t)
	var say bytes.Buffer
	_, err := Gitea(t.Context(), dir, tree, &say)
	if err == nil || !strings.Contains(err.Error(), giteaModule) {
		t.Fatalf("err = %v, want go's own words", err)
	}
	if !strings.Contains(say.String(), "building Gitea 1.26.0, once") {
		t.Errorf("said %q", say.String())
	}
	final, err := cachePath(t.Context(), tree)
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{final, final + ".tmp"} {
		if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s: %v, want none", path, err)
		}
	}
}

func TestCachePathFollowsTheSources(t *testing.T) {
	tree, _ := fakeTree(t)
	before, err := cachePath(t.Context(), tree)
	if err != nil {
		t.Fatal(err)
	}
	again, err := cachePath(t.Context(), tree)
	if err != nil || again != before {
		t.Errorf("second call gives %q, %v, want %q", again, err, before)
	}
	if err := os.WriteFile(filepath.Join(tree.Gitea, "sqlite3", "sqlite3.go"), []byte("package sqlite3\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	after, err := cachePath(t.Context(), tree)
	if err != nil || after == before {
		t.Errorf("after a change gives %q, %v, want another than %q", after, err, before)
	}
}

func TestCachePathWithoutHome(t *testing.T) {
	tree, _ := fakeTree(t)
	cache := t.TempDir()
	t.Setenv("GOCACHE", filepath.Join(cache, "go-build"))
	t.Setenv("HOME", "")
	t.Setenv("XDG_CACHE_HOME", "")
	path, err := cachePath(t.Context(), tree)
	if err != nil || filepath.Dir(filepath.Dir(path)) != cache {
		t.Errorf("path = %q, %v, want it below %s", path, err, cache)
	}
}

func TestLockIsHeldByOne(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	var mu sync.Mutex // guards only what the lock is to guard as well
	holders, most := 0, 0
	count := func(by int) {
		mu.Lock()
		defer mu.Unlock()
		holders += by
		most = max(most, holders)
	}
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			unlock, err := lock(t.Context(), path, new(bytes.Buffer))
			if err != nil {
				t.Error(err)
				return
			}
			count(1)
			count(-1)
			unlock()
		})
	}
	wg.Wait()
	if most != 1 {
		t.Errorf("%d held the lock at once", most)
	}
}

func TestLockGivesUpWithItsContext(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	unlock, err := lock(t.Context(), path, new(bytes.Buffer))
	if err != nil {
		t.Fatal(err)
	}
	defer unlock()
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	var say bytes.Buffer
	if _, err := lock(ctx, path, &say); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("err = %v, want the deadline's", err)
	}
	if !strings.Contains(say.String(), "waiting for another build") {
		t.Errorf("said %q", say.String())
	}
}
