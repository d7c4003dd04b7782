//go:build unix

// Package build makes the two programs the sandbox runs: Gitea, once, into the
// user's cache directory, and the bot, each time, from the tree the sandbox
// stands in. It needs the go command and no C compiler.
package build

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"playbook-bot/deploy/sandbox/internal/scratch"
)

// modulePath is the sandbox's own module, by which the tree is found.
const modulePath = "playbook-bot/deploy/sandbox"

// Tree is the checkout the sandbox stands in.
type Tree struct {
	// Sandbox, Gitea and Bot are the directories of the three modules.
	Sandbox, Gitea, Bot string
}

// FindTree finds the checkout from the working directory, which under
// `go run -C` and `go test` lies in the sandbox's module, or in one beside it
// that requires the sandbox by a replace directive (deploy/bench).
func FindTree(ctx context.Context) (Tree, error) {
	dir, err := goOutput(ctx, "", "list", "-m", "-f", "{{.Dir}}", modulePath)
	if err != nil {
		return Tree{}, fmt.Errorf("find the sandbox's module, of which the working directory must be: use `go run -C deploy/sandbox .`: %w", err)
	}
	return Tree{Sandbox: dir, Gitea: filepath.Join(dir, "gitea"), Bot: filepath.Dir(filepath.Dir(dir))}, nil
}

// Bot builds the bot into dir and returns the program's path.
func Bot(ctx context.Context, dir *scratch.Dir, tree Tree) (string, error) {
	binary := filepath.Join(dir.Path, "playbook-bot")
	err := goBuild(ctx, dir, tree.Bot, "-o", binary, "./cmd/playbook-bot")
	if err != nil {
		return "", fmt.Errorf("build the bot: %w", err)
	}
	return binary, nil
}

// goEnv is our environment, in which the go command finds its caches and
// proxies, less what would change what is built.
func goEnv() []string {
	return append(os.Environ(),
		"CGO_ENABLED=0", // nobody needs a C compiler for this
		"GOFLAGS=",      // -race wants one, -mod=vendor a directory we have not
		"GOWORK=off",    // a workspace would mix the three modules' dependencies
		"GOOS=", "GOARCH=",
	)
}

// goBuild runs go build in the module at moduleDir, as a process that ends
// with dir.
func goBuild(ctx context.Context, dir *scratch.Dir, moduleDir string, args ...string) error {
	path, err := exec.LookPath("go")
	if err != nil {
		return err
	}
	p, err := dir.Start(scratch.Spec{
		Name: "go-build",
		Path: path,
		// The stamp of version control fails where git distrusts the
		// checkout's owner, and is of no use here.
		Args: append([]string{"build", "-mod=readonly", "-buildvcs=false"}, args...),
		Dir:  moduleDir,
		Env:  goEnv(),
	})
	if err != nil {
		return err
	}
	select {
	case <-p.Done():
		return p.Err()
	case <-ctx.Done():
		return errors.Join(context.Cause(ctx), p.Stop(0))
	}
}

// goOutput runs a short go command and returns its trimmed output.
func goOutput(ctx context.Context, dir string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir, cmd.Env = dir, goEnv()
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("go %s: %w: %s", args[0], err, bytes.TrimSpace(stderr.Bytes()))
	}
	return strings.TrimSpace(string(out)), nil
}
