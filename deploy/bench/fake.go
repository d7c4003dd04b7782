//go:build unix

package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"playbook-bot/bot/forge/forgetest"
	"playbook-bot/bot/webhook"
	"playbook-bot/deploy/sandbox/internal/bot"
)

// The accounts on a forge.
const (
	botLogin = "playbook-bot"
	admin    = "adam"
	writer   = "wren"
)

// rehearsal is the bot beside a fake forge, with a watch between them.
type rehearsal struct {
	forge *forgetest.Forge
	watch *watch
	bot   *bot.Bot
}

// rehearse starts a bot with that database, which may hold a history: the ids
// the fake gives out are not in it.
func (b *bench) rehearse(ctx context.Context, database string) (_ *rehearsal, err error) {
	f := forgetest.New(time.Now)
	r := &rehearsal{forge: f}
	defer func() {
		if err != nil {
			err = errors.Join(err, r.close())
		}
	}()
	f.AddUser(botLogin)
	f.AddOrg("ops")
	repo := f.AddRepo(repoName)
	if repo.ID != repoID || repo.OwnerID != ownerID {
		return nil, fmt.Errorf("the fake forge's repository is %d of %d, the deliveries' %d of %d", repo.ID, repo.OwnerID, repoID, ownerID)
	}
	for _, login := range []string{admin, writer} {
		f.AddUser(login)
	}
	f.AddCollaborator(repoName, admin, "admin")
	f.AddCollaborator(repoName, writer, "write")
	f.AddCollaborator(repoName, botLogin, "admin")
	f.AddRepoHook(repoName, webhook.HookSecret(masterSecret, "gitea", webhook.ScopeRepo, repo.ID))
	if r.watch, err = watchOver(f); err != nil {
		return nil, err
	}
	r.bot, err = bot.New(b.dir, bot.Config{Binary: b.binary, GiteaURL: r.watch.URL, Token: f.Token(botLogin),
		Secret: masterSecret, Repositories: []string{repoName}, Env: []string{"DATABASE_URL=" + database}})
	if err != nil {
		return nil, err
	}
	f.SetSink(forgetest.URLSink(&http.Client{Timeout: shotTimeout}, r.bot.URL))
	if err := r.bot.Start(ctx); err != nil {
		r.bot = nil
		return nil, err
	}
	return r, r.watch.quiet(ctx, 300*time.Millisecond)
}

func (r *rehearsal) close() error {
	r.forge.Close()
	if r.bot != nil {
		r.bot.Kill()
	}
	if r.watch != nil {
		return r.watch.close()
	}
	return nil
}

// say comments and returns how long it took until the answer stood.
func (r *rehearsal) say(ctx context.Context, as string, number int64, text string) (time.Duration, error) {
	begun := time.Now()
	if _, err := r.forge.Comment(as, repoName, number, text); err != nil {
		return 0, err
	}
	at, err := r.watch.answered(ctx)
	if err != nil {
		return 0, fmt.Errorf("%s says %q: %w\n%s", as, text, err, r.bot.Tail(10))
	}
	return at.Sub(begun), nil
}
