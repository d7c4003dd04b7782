//go:build unix

package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"sync"

	"playbook-bot/deploy/sandbox/internal/bot"
	"playbook-bot/deploy/sandbox/internal/build"
	"playbook-bot/deploy/sandbox/internal/scratch"
	"playbook-bot/deploy/sandbox/internal/tracker"
)

// botLogin is the bot's account.
const botLogin = "playbook-bot"

// sandbox is a running Gitea and what is needed to run the bot beside it.
type sandbox struct {
	dir   *scratch.Dir
	tree  build.Tree
	gitea *tracker.Server
	// botBinary builds the bot on first use.
	botBinary func() (string, error)
}

// raise builds what is not built yet and starts Gitea. say is told what takes
// long. The caller closes the sandbox; nothing of it outlives the process in
// any case.
func raise(ctx context.Context, say io.Writer) (*sandbox, error) {
	tree, err := build.FindTree(ctx)
	if err != nil {
		return nil, err
	}
	dir, err := scratch.New("playbook-bot-sandbox")
	if err != nil {
		return nil, err
	}
	s := &sandbox{dir: dir, tree: tree}
	s.botBinary = sync.OnceValues(func() (string, error) { return build.Bot(ctx, dir, tree) })
	built, err := build.Gitea(ctx, dir, tree, say)
	if err == nil {
		s.gitea, err = tracker.Start(ctx, dir, built)
	}
	if err != nil {
		return nil, errors.Join(err, dir.Close())
	}
	return s, nil
}

// close stops everything and removes it.
func (s *sandbox) close() error {
	return errors.Join(s.gitea.Stop(), s.dir.Close())
}

// newBot configures a bot for a repository, in which its account becomes an
// administrator, and makes the repository's hook. It does not start it. env
// are variables beside those of bot.Config.
func (s *sandbox) newBot(ctx context.Context, repo *tracker.Repo, env ...string) (*bot.Bot, error) {
	binary, err := s.botBinary()
	if err != nil {
		return nil, err
	}
	if err := repo.Admit(ctx, tracker.Person{Login: botLogin, Permission: "admin"}); err != nil {
		return nil, err
	}
	token, err := s.gitea.Token(ctx, botLogin, tracker.BotScopes)
	if err != nil {
		return nil, err
	}
	b, err := bot.New(s.dir, bot.Config{
		Binary: binary, GiteaURL: s.gitea.URL, Token: token, Secret: rand.Text() + rand.Text(),
		Repositories: []string{repo.FullName()}, Env: env,
	})
	if err != nil {
		return nil, err
	}
	hook, err := b.Hook(ctx, repo.FullName())
	if err != nil {
		return nil, fmt.Errorf("ask the bot for its hook: %w", err)
	}
	return b, repo.Hook(ctx, hook.URL, hook.Secret)
}
