//go:build unix

package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"playbook-bot/deploy/sandbox/internal/build"
	"playbook-bot/deploy/sandbox/internal/scratch"
	"playbook-bot/deploy/sandbox/internal/tracker"
)

// TestReadmeInstallation follows the README's steps to the letter, on a Gitea
// of its own: every block is given to a shell as it stands, but for the two
// addresses and the word TOKEN, which the README says to replace.
func TestReadmeInstallation(t *testing.T) {
	t.Parallel()
	g := newGuide(t)
	blocks := blocksOf(t, "## Installing it on your own Gitea", "### By hand")
	var served, checked bool
	for _, block := range blocks {
		switch {
		case strings.Contains(block, "go build"):
			// What it builds is there already, from the same tree.
			ok(t, os.Symlink(must(box.botBinary())(t), filepath.Join(g.dir, "playbook-bot")))
		case strings.HasPrefix(block, "[webhook]"):
			// The sandbox's Gitea allows loopback addresses from the start.
		case strings.TrimSpace(block) == "./playbook-bot serve":
			g.serve(t)
			served = true
		default:
			g.run(t, block)
			checked = checked || strings.Contains(block, "./playbook-bot doctor")
		}
	}
	if !served || !checked {
		t.Fatal("the README has no step that starts the bot, or none that checks it")
	}
	// The last step: a comment is answered.
	ctx := bounded(t, "an answer to /playbook help")
	number := must(g.repo.Open(ctx, "ada", "a question", "how?"))(t)
	must(g.repo.Comment(ctx, "ada", number, "/playbook help"))(t)
	_, err := tracker.Await(ctx, g.repo, number, func(th tracker.Thread) bool { return len(th.After(0, botLogin)) > 0 })
	ok(t, err)
}

// guide is who follows the steps: a directory, a shell's environment, and what
// the last command printed.
type guide struct {
	dir  string
	env  []string
	swap *strings.Replacer
	tmp  *scratch.Dir
	repo *tracker.Repo
	last string
}

func newGuide(t *testing.T) *guide {
	t.Helper()
	ctx := t.Context()
	dir := must(scratch.New("playbook-bot-readme"))(t)
	t.Cleanup(func() { ok(t, dir.Close()) })
	server := must(tracker.Start(ctx, dir, must(build.Gitea(ctx, dir, box.tree, os.Stderr))(t)))(t)
	t.Cleanup(func() { ok(t, server.Stop()) })
	repo := must(server.NewRepo(ctx, tracker.RepoSpec{Org: "ops", Name: "incidents", Owner: "ada"}))(t)
	ok(t, server.JoinTeam(ctx, "ada", "ops", "Owners", "grace"))

	// The README's commands say "gitea"; on a machine that is one with a
	// configuration in its usual place.
	binary, config := server.Tool()
	tools := t.TempDir()
	script := fmt.Sprintf("#!/bin/sh\nGITEA_WORK_DIR='%s' exec '%s' --config '%s' \"$@\"\n", filepath.Dir(config), binary, config)
	ok(t, os.WriteFile(filepath.Join(tools, "gitea"), []byte(script), 0o700))
	port := must(tracker.FreePort())(t)
	return &guide{
		dir: t.TempDir(), tmp: dir, repo: repo,
		env: append(dir.Env(), "PATH="+tools+string(os.PathListSeparator)+os.Getenv("PATH")),
		swap: strings.NewReplacer("https://git.example.org", server.URL,
			"http://bot.example.org:8080", fmt.Sprintf("http://127.0.0.1:%d", port), "LISTEN=:8080", fmt.Sprintf("LISTEN=:%d", port)),
	}
}

// run gives a block to a shell. A TOKEN in it is what the block before printed
// last.
func (g *guide) run(t *testing.T, block string) {
	t.Helper()
	block = strings.ReplaceAll(g.swap.Replace(block), "echo TOKEN", "echo "+g.last)
	cmd := exec.CommandContext(t.Context(), "sh", "-e", "-c", block)
	cmd.Dir, cmd.Env = g.dir, g.env
	out, err := cmd.Output()
	if err != nil {
		var stderr []byte
		if e, isExit := err.(*exec.ExitError); isExit {
			stderr = e.Stderr
		}
		t.Fatalf("%v\n%s\nprinted:\n%s%s", err, block, out, stderr)
	}
	t.Logf("%s\n%s", block, out)
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	g.last = lines[len(lines)-1]
}

// serve starts the bot in the environment that the README's file makes, and
// waits until it is ready.
func (g *guide) serve(t *testing.T) {
	t.Helper()
	p := must(g.tmp.Start(scratch.Spec{Name: "readme-serve", Path: "/bin/sh",
		Args: []string{"-c", "cd '" + g.dir + "' && set -a && . ./playbook-bot.env && set +a && exec ./playbook-bot serve"}, Env: g.env}))(t)
	t.Cleanup(func() {
		ok(t, p.Stop(answerWithin))
		if t.Failed() {
			t.Logf("the end of the bot's log:\n%s", p.Tail(30))
		}
	})
	ctx := bounded(t, "the bot to say that it is connected")
	ok(t, tracker.Poll(ctx, 50*time.Millisecond, func(context.Context) (bool, error) {
		return strings.Contains(p.Log(), "msg=connected"), nil
	}))
}

// blocksOf are the fenced blocks of a part of the README, without their indent.
func blocksOf(t *testing.T, from, to string) []string {
	t.Helper()
	text := string(must(os.ReadFile(filepath.Join(box.tree.Bot, "README.md")))(t))
	_, part, found := strings.Cut(text, from+"\n")
	part, _, ends := strings.Cut(part, to+"\n")
	if !found || !ends {
		t.Fatalf("the README has no part from %q to %q", from, to)
	}
	var out []string
	inside := false
	for line := range strings.Lines(part) {
		switch {
		case strings.TrimSpace(line) == "```":
			if inside = !inside; inside {
				out = append(out, "")
			}
		case inside:
			out[len(out)-1] += strings.TrimPrefix(line, "   ")
		}
	}
	return out
}
