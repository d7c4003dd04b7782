//go:build unix

// Package bot runs playbook-bot as a process beside the sandbox's Gitea.
package bot

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"playbook-bot/deploy/sandbox/internal/scratch"
	"playbook-bot/deploy/sandbox/internal/tracker"
)

// readyWithin is how long the bot may take from its start to /readyz; its own
// promise is 300 ms.
const readyWithin = 30 * time.Second

// stopWithin is longer than the bot's own limit for finishing after SIGTERM.
const stopWithin = 25 * time.Second

// Config is what the sandbox sets; everything else is the bot's default.
type Config struct {
	// Binary is the program; see build.Bot.
	Binary string
	// GiteaURL and Token are the forge and the bot's account on it.
	GiteaURL, Token string
	// Secret is PLAYBOOK_SECRET.
	Secret string
	// Repositories is REPOSITORIES.
	Repositories []string
	// Database is the SQLite file, kept from one run to the next: a second
	// Start with the same one is a restart. Empty is a new one.
	Database string
	// Port is where the bot listens on loopback; 0 finds a free one.
	Port int
	// Env are further variables, such as PLAYBOOK_FILE=….
	Env []string
}

// Bot is a configured bot. Its hooks can be made before it runs.
type Bot struct {
	// URL is where deliveries go.
	URL string

	config Config
	dir    *scratch.Dir
	http   *http.Client
	serve  *scratch.Process
}

// New configures a bot in dir and starts nothing.
func New(dir *scratch.Dir, c Config) (*Bot, error) {
	if c.Port == 0 {
		port, err := tracker.FreePort()
		if err != nil {
			return nil, err
		}
		c.Port = port
	}
	listen := "127.0.0.1:" + strconv.Itoa(c.Port)
	if c.Database == "" {
		c.Database = filepath.Join(dir.Path, "playbook-bot-"+strconv.Itoa(c.Port)+".db")
	}
	return &Bot{URL: "http://" + listen, config: c, dir: dir, http: &http.Client{Timeout: 5 * time.Second}}, nil
}

func (b *Bot) env() []string {
	c := b.config
	return b.dir.Env(append([]string{
		"GITEA_URL=" + c.GiteaURL,
		"GITEA_TOKEN=" + c.Token,
		"PLAYBOOK_SECRET=" + c.Secret,
		"REPOSITORIES=" + strings.Join(c.Repositories, ","),
		"DATABASE_URL=sqlite:" + c.Database,
		"LISTEN=" + strings.TrimPrefix(b.URL, "http://"),
	}, c.Env...)...)
}

// Run runs another subcommand of the bot in the same environment and returns
// what it wrote on its standard output. A status other than 0 is an error,
// which tells what it wrote on the other.
func (b *Bot) Run(ctx context.Context, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, b.config.Binary, args...)
	cmd.Dir, cmd.Env = b.dir.Path, b.env()
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return out, fmt.Errorf("playbook-bot %s: %w: %s", args[0], err, bytes.TrimSpace(stderr.Bytes()))
	}
	return out, nil
}

// Hook is what the forge must be told to deliver to the bot.
type Hook struct {
	URL, Secret string
}

// Hook asks the bot for a repository's hook, by name.
func (b *Bot) Hook(ctx context.Context, repo string) (Hook, error) {
	return b.hook(ctx, "hook-secret", repo, "--json")
}

// OrgHook asks the bot for an organisation's hook, by name.
func (b *Bot) OrgHook(ctx context.Context, org string) (Hook, error) {
	return b.hook(ctx, "hook-secret", "--org", org, "--json")
}

func (b *Bot) hook(ctx context.Context, args ...string) (h Hook, err error) {
	out, err := b.Run(ctx, args...)
	if err != nil {
		return h, err
	}
	if err := json.Unmarshal(out, &h); err != nil {
		return h, fmt.Errorf("playbook-bot %s: read its answer: %w", args[0], err)
	}
	return h, nil
}

// Start runs `playbook-bot serve` and returns when it says it is ready.
func (b *Bot) Start(ctx context.Context) error {
	p, err := b.dir.Start(scratch.Spec{
		Name: "playbook-bot", Path: b.config.Binary, Args: []string{"serve"}, Env: b.env(),
	})
	if err != nil {
		return err
	}
	b.serve = p
	ctx, cancel := context.WithTimeoutCause(ctx, readyWithin, fmt.Errorf("not ready after %s", readyWithin))
	defer cancel()
	err = tracker.Poll(ctx, 20*time.Millisecond, func(ctx context.Context) (bool, error) {
		select {
		case <-p.Done():
			return false, errors.Join(errors.New("ended by itself"), p.Err())
		default:
		}
		return b.ready(ctx), nil
	})
	if err != nil {
		return fmt.Errorf("start the bot: %w\n%s", errors.Join(err, p.Stop(0)), p.Tail(20))
	}
	return nil
}

func (b *Bot) ready(ctx context.Context) bool {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, b.URL+"/readyz", nil)
	if err != nil {
		return false
	}
	resp, err := b.http.Do(req)
	if err != nil {
		return false
	}
	resp.Body.Close()
	return resp.StatusCode == http.StatusOK
}

// Stop sends SIGTERM and waits for the bot to finish or hand back its work.
func (b *Bot) Stop() error { return b.serve.Stop(stopWithin) }

// Kill ends the bot as a crash would.
func (b *Bot) Kill() { b.serve.Kill() }

// Done is closed when the running bot has ended, however it did.
func (b *Bot) Done() <-chan struct{} { return b.serve.Done() }

// Err is why it ended; see scratch.Process.
func (b *Bot) Err() error { return b.serve.Err() }

// Log is what the running bot has written.
func (b *Bot) Log() string { return b.serve.Log() }

// Tail is the last lines of its log, at most n.
func (b *Bot) Tail(n int) string { return b.serve.Tail(n) }
