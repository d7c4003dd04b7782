//go:build unix

package build

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"syscall"
	"time"

	"playbook-bot/deploy/sandbox/internal/scratch"
)

// GiteaVersion is the release built, as in gitea/go.mod. Later ones cannot be
// required as a module: their go.mod names another path.
const GiteaVersion = "1.26.0"

const giteaModule = "code.gitea.io/gitea"

// giteaFlags are go build's. Without the version Gitea calls itself
// "development", and clients refuse that; -s -w halve the time it takes to
// write the file.
var giteaFlags = []string{
	"-tags", "sqlite sqlite_unlock_notify",
	"-ldflags", "-s -w -X main.Version=" + GiteaVersion,
}

// staticDirs are what Gitea reads from its STATIC_ROOT_PATH.
var staticDirs = []string{"options", "public", "templates"}

// GiteaBuild is a built Gitea.
type GiteaBuild struct {
	// Binary is the server, Static its STATIC_ROOT_PATH.
	Binary, Static string
}

func giteaAt(dir string) GiteaBuild {
	return GiteaBuild{Binary: filepath.Join(dir, "gitea"), Static: filepath.Join(dir, "static")}
}

// Gitea returns the built server, building it if the cache holds none made of
// the same sources. Building takes minutes; progress is told to say about
// every five seconds. Of several calls at one time, in this process or others,
// one builds and the rest wait for it.
func Gitea(ctx context.Context, dir *scratch.Dir, tree Tree, say io.Writer) (GiteaBuild, error) {
	final, err := cachePath(ctx, tree)
	if err != nil {
		return GiteaBuild{}, fmt.Errorf("find the cache for Gitea: %w", err)
	}
	if complete(final) {
		return giteaAt(final), nil
	}
	if err := os.MkdirAll(filepath.Dir(final), 0o755); err != nil {
		return GiteaBuild{}, fmt.Errorf("make the cache for Gitea: %w", err)
	}
	unlock, err := lock(ctx, filepath.Join(filepath.Dir(final), "build.lock"), say)
	if err != nil {
		return GiteaBuild{}, fmt.Errorf("lock the cache for Gitea: %w", err)
	}
	defer unlock()
	if complete(final) { // built by another while we waited
		return giteaAt(final), nil
	}
	if err := buildGitea(ctx, dir, tree, final, say); err != nil {
		return GiteaBuild{}, fmt.Errorf("build Gitea %s: %w", GiteaVersion, err)
	}
	return giteaAt(final), nil
}

// Built returns the server where an earlier run has left it in the cache; ok is
// false where it would have to be built.
func Built(ctx context.Context, tree Tree) (built GiteaBuild, ok bool, err error) {
	final, err := cachePath(ctx, tree)
	if err != nil {
		return GiteaBuild{}, false, fmt.Errorf("find the cache for Gitea: %w", err)
	}
	return giteaAt(final), complete(final), nil
}

// complete relies on the directory appearing by one rename, as a whole.
func complete(final string) bool {
	info, err := os.Stat(final)
	return err == nil && info.IsDir()
}

// buildGitea makes everything beside its final place and renames it there. The
// caller holds the lock, so a leftover of the temporary name is of a build
// that was killed.
func buildGitea(ctx context.Context, dir *scratch.Dir, tree Tree, final string, say io.Writer) (err error) {
	temp := final + ".tmp"
	if err := os.RemoveAll(temp); err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.RemoveAll(temp))
		}
	}()
	if err := os.Mkdir(temp, 0o755); err != nil {
		return err
	}
	stop := tell(say, "building Gitea "+GiteaVersion+", once, about 3 minutes on two cores")
	defer stop()
	built := giteaAt(temp)
	args := append([]string{"-o", built.Binary}, giteaFlags...)
	if err := goBuild(ctx, dir, tree.Gitea, append(args, giteaModule)...); err != nil {
		return err
	}
	// Copied, so that `go clean -modcache` does not take the templates from
	// under a server that is already built.
	source, err := goOutput(ctx, tree.Gitea, "list", "-mod=readonly", "-m", "-f", "{{.Dir}}", giteaModule)
	if err != nil {
		return err
	}
	for _, sub := range staticDirs {
		if err := copyTree(filepath.Join(built.Static, sub), filepath.Join(source, sub)); err != nil {
			return err
		}
	}
	return os.Rename(temp, final)
}

// copyTree copies files and directories, writable by their owner; in the
// module cache they are not, and could then not simply be removed.
func copyTree(to, from string) error {
	source := os.DirFS(from)
	return fs.WalkDir(source, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		target := filepath.Join(to, filepath.FromSlash(name))
		if entry.IsDir() {
			return os.MkdirAll(target, 0o755)
		}
		data, err := fs.ReadFile(source, name)
		if err != nil {
			return err
		}
		return os.WriteFile(target, data, 0o644)
	})
}

// cachePath names the build by what goes into it.
func cachePath(ctx context.Context, tree Tree) (string, error) {
	base, err := os.UserCacheDir()
	if err != nil {
		// No home. The go command has found a place for its own cache, or
		// we would not run; ours goes beside it.
		goCache, goErr := goOutput(ctx, "", "env", "GOCACHE")
		if goErr != nil {
			return "", errors.Join(err, goErr)
		}
		base = filepath.Dir(goCache)
	}
	sum := sha256.New()
	fmt.Fprintf(sum, "%s/%s %q %q\n", runtime.GOOS, runtime.GOARCH, giteaFlags, staticDirs)
	for _, name := range []string{"go.mod", "go.sum", "sqlite3/go.mod", "sqlite3/sqlite3.go"} {
		data, err := os.ReadFile(filepath.Join(tree.Gitea, filepath.FromSlash(name)))
		if err != nil {
			return "", err
		}
		fmt.Fprintf(sum, "%s %d\n%s", name, len(data), data)
	}
	name := fmt.Sprintf("gitea-%s-%s", GiteaVersion, hex.EncodeToString(sum.Sum(nil))[:12])
	return filepath.Join(base, "playbook-bot", name), nil
}

// lock takes the advisory lock on a file, which the kernel gives back when its
// holder ends, however it ends.
func lock(ctx context.Context, path string, say io.Writer) (unlock func(), err error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, err
	}
	try := func() error { return syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) }
	if try() == nil {
		return func() { f.Close() }, nil
	}
	stop := tell(say, "waiting for another build of Gitea")
	defer stop()
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil, errors.Join(context.Cause(ctx), f.Close())
		case <-tick.C:
			switch err := try(); {
			case err == nil:
				return func() { f.Close() }, nil
			case !errors.Is(err, syscall.EWOULDBLOCK) && !errors.Is(err, syscall.EINTR):
				return nil, errors.Join(err, f.Close())
			}
		}
	}
}

// tell says what is being done, at once and every five seconds with the time
// it has taken, until stop is called.
func tell(say io.Writer, what string) (stop func()) {
	begun := time.Now()
	fmt.Fprintf(say, "%s …\n", what)
	quit, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		tick := time.NewTicker(5 * time.Second)
		defer tick.Stop()
		for {
			select {
			case <-quit:
				return
			case <-tick.C:
				fmt.Fprintf(say, "%s … %d s\n", what, int(time.Since(begun).Seconds()))
			}
		}
	}()
	return func() { close(quit); <-ended }
}
