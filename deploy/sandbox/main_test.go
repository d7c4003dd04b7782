//go:build unix

package main

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	"playbook-bot/deploy/sandbox/internal/bot"
	"playbook-bot/deploy/sandbox/internal/tracker"
)

// box is the one Gitea of a test run. Tests make repositories of their own on
// it and may run in parallel.
var box *sandbox

func TestMain(m *testing.M) {
	code, err := runWithGitea(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// runWithGitea is apart from TestMain because os.Exit skips what is deferred.
// A run that is killed or times out is cleaned up after by scratch's watchdog.
func runWithGitea(m *testing.M) (code int, err error) {
	box, err = raise(context.Background(), os.Stderr)
	if err != nil {
		return 1, err
	}
	defer func() {
		if code != 0 {
			fmt.Fprintf(os.Stderr, "the end of Gitea's log:\n%s\n", box.gitea.Tail(30))
		}
		if closeErr := box.close(); closeErr != nil {
			err = closeErr
		}
	}()
	return m.Run(), nil
}

// answerWithin is how long a test waits for something that happens within a
// second or two unless it never does.
const answerWithin = 30 * time.Second

// bounded is t's context with a limit, which names what is waited for.
func bounded(t *testing.T, what string) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeoutCause(t.Context(), answerWithin, fmt.Errorf("%s: nothing after %s", what, answerWithin))
	t.Cleanup(cancel)
	return ctx
}

// people are the usual standings.
var people = []tracker.Person{
	{Login: "adam", Permission: "admin"},
	{Login: "wren", Permission: "write"},
	{Login: "rhea", Permission: "read"},
	{Login: "nora", Permission: "none"},
}

// newRepo makes a repository of olivia's with the usual people.
func newRepo(t *testing.T) *tracker.Repo {
	t.Helper()
	repo, err := box.gitea.NewRepo(t.Context(), tracker.RepoSpec{Owner: "olivia", People: people})
	if err != nil {
		t.Fatal(err)
	}
	return repo
}

// startBot runs a bot for the repository until the test ends, and shows its
// log if the test failed. env are variables beside those of bot.Config.
func startBot(t *testing.T, repo *tracker.Repo, env ...string) *bot.Bot {
	t.Helper()
	b, err := box.newBot(t.Context(), repo, env...)
	if err != nil {
		t.Fatal(err)
	}
	if err := b.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := b.Stop(); err != nil {
			t.Error(err)
		}
		if t.Failed() {
			t.Logf("the end of the bot's log:\n%s", b.Tail(50))
		}
	})
	return b
}

// must returns a value that a step of a test needs.
func must[T any](v T, err error) func(*testing.T) T {
	return func(t *testing.T) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

func ok(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
