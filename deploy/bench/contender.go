//go:build unix

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"playbook-bot/bot/store"
	"playbook-bot/bot/store/pgtest"
	"playbook-bot/bot/webhook"
	"playbook-bot/deploy/sandbox/internal/scratch"
	"playbook-bot/deploy/sandbox/internal/tracker"
)

// masterSecret is PLAYBOOK_SECRET of every bot measured.
const masterSecret = "a master secret of the benchmark of 32 characters or more"

// contender is a running receiver of deliveries.
type contender struct {
	name string
	to   target
	proc *scratch.Process
	// database is the id of PostgreSQL's first process, 0 where there is none.
	database int
	// url of the database, "" for those that keep nothing.
	url string
	// profiles is the address of profiles, "" where there are none.
	profiles string
}

// cpu is the time the contender has used, that of its database included.
func (c *contender) cpu() time.Duration {
	sum := cpuOf(false, c.proc.PID())
	if c.database != 0 {
		sum += cpuOf(true, c.database)
	}
	return sum
}

// freeAddr is an address on loopback that nobody listens on.
func freeAddr() (string, error) {
	port, err := tracker.FreePort()
	return "127.0.0.1:" + strconv.Itoa(port), err
}

// contend starts a program that listens on addr and waits until it does.
func (b *bench) contend(ctx context.Context, name, addr, path, secret string, spec scratch.Spec) (*contender, error) {
	p, err := b.dir.Start(spec)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, 20*time.Second, errors.New("it does not listen after 20 s"))
	defer cancel()
	err = tracker.Poll(ctx, 20*time.Millisecond, func(context.Context) (bool, error) {
		select {
		case <-p.Done():
			return false, errors.Join(errors.New("ended by itself"), p.Err())
		default:
		}
		c, err := net.DialTimeout("tcp", addr, time.Second)
		if err != nil {
			return false, nil
		}
		return true, c.Close()
	})
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", name, errors.Join(err, p.Stop(0)))
	}
	return &contender{name: name, proc: p,
		to: target{addr: addr, path: path, secret: secret, t: b.template, next: new(atomic.Int64), accepted: new(atomic.Int64)}}, nil
}

// bare starts the least a receiver can be.
func (b *bench) bare(ctx context.Context) (*contender, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	addr, err := freeAddr()
	if err != nil {
		return nil, err
	}
	return b.contend(ctx, "bare handler", addr, "/", bareSecret,
		scratch.Spec{Name: "bare", Path: self, Args: []string{bareCommand, addr}, Env: b.dir.Env()})
}

// debian starts Debian's webhook. Its rule needs the HMAC and a value that no
// delivery has: so it reads, verifies and decodes each and starts no program,
// which is the least it can be made to do.
func (b *bench) debian(ctx context.Context, program string) (*contender, error) {
	type object = map[string]any
	match := func(m object) object { return object{"match": m} }
	hooks := []object{{
		"id": "bench", "execute-command": "/bin/true", "trigger-rule-mismatch-http-response-code": 200,
		"trigger-rule": object{"and": []object{
			match(object{"type": "payload-hmac-sha256", "secret": bareSecret,
				"parameter": object{"source": "header", "name": "X-Hub-Signature-256"}}),
			match(object{"type": "value", "value": "nobody does this", "parameter": object{"source": "payload", "name": "action"}}),
		}},
	}}
	text, err := json.Marshal(hooks)
	if err != nil {
		return nil, err
	}
	path := filepath.Join(b.dir.Path, "hooks.json")
	if err := os.WriteFile(path, text, 0o600); err != nil {
		return nil, err
	}
	addr, err := freeAddr()
	if err != nil {
		return nil, err
	}
	_, port, _ := strings.Cut(addr, ":")
	return b.contend(ctx, "Debian's webhook", addr, "/hooks/bench", bareSecret, scratch.Spec{
		Name: "webhook", Path: program, Env: b.dir.Env(), Args: []string{"-hooks", path, "-ip", "127.0.0.1", "-port", port},
	})
}

// intake starts the bot as it is while its forge is away: it takes deliveries
// in, each durable before its 202, and its workers wait. So the intake is
// measured whole and alone.
func (b *bench) intake(ctx context.Context, name, binary, database string) (*contender, error) {
	addr, err := freeAddr()
	if err != nil {
		return nil, err
	}
	nobody, err := freeAddr()
	if err != nil {
		return nil, err
	}
	profiles, err := freeAddr()
	if err != nil {
		return nil, err
	}
	secret := webhook.HookSecret(masterSecret, "gitea", webhook.ScopeRepo, repoID)
	c, err := b.contend(ctx, name, addr, webhook.HookPath("gitea", webhook.ScopeRepo, repoID), secret, scratch.Spec{
		Name: "playbook-bot", Path: binary, Args: []string{"serve"}, Env: b.dir.Env(
			"GITEA_URL=http://"+nobody, "GITEA_TOKEN=0123456789012345678901234567890123456789",
			"PLAYBOOK_SECRET="+masterSecret, "REPOSITORIES="+repoName, "DATABASE_URL="+database, "LISTEN="+addr,
			"ADMIN_LISTEN="+profiles, "PPROF=true"),
	})
	if err != nil {
		return nil, err
	}
	c.url, c.profiles = database, profiles
	if strings.HasPrefix(database, "postgres:") {
		c.database = postmaster(b.postgres)
	}
	return c, nil
}

// postmaster is the id of PostgreSQL's first process, 0 where it cannot be
// told.
func postmaster(s *pgtest.Server) int {
	text, err := os.ReadFile(filepath.Join(s.Socket(), "data", "postmaster.pid"))
	if err != nil {
		return 0
	}
	line, _, _ := strings.Cut(string(text), "\n")
	pid, _ := strconv.Atoi(line)
	return pid
}

// kept kills the contender as a crash would, and counts what its database
// holds.
func (c *contender) kept(ctx context.Context) (int64, error) {
	c.proc.Kill()
	db, err := store.Open(ctx, c.url, store.Options{Offline: true})
	if err != nil {
		return 0, fmt.Errorf("open the database of %s: %w", c.name, err)
	}
	s, err := db.Stats(ctx)
	return s.Waiting, errors.Join(err, db.Close())
}

// lookWebhook finds Debian's webhook and its version, "" where there is none.
func lookWebhook(ctx context.Context) (program, version string) {
	program, err := exec.LookPath("webhook")
	if err != nil {
		return "", ""
	}
	out, err := exec.CommandContext(ctx, program, "-version").Output()
	if err != nil {
		return "", "" // another program of that name
	}
	_, version, ok := strings.Cut(strings.TrimSpace(string(out)), "webhook version ")
	if !ok {
		return "", ""
	}
	return program, version
}
