//go:build unix

// Package tracker is a real Gitea for the sandbox and its tests: a server on a
// free loopback port, accounts on it, and repositories in which people open
// issues and comment. Everything is done through Gitea's API, as the person
// who does it, with that person's own token.
package tracker

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"playbook-bot/deploy/sandbox/internal/build"
	"playbook-bot/deploy/sandbox/internal/scratch"
)

// readyWithin is how long Gitea may take to answer; it takes about a second.
const readyWithin = 2 * time.Minute

// operator is the site administrator that makes everybody else. No scenario
// plays it: what a site administrator may do would hide what others may not.
const operator = "operator"

// Server is a running Gitea.
type Server struct {
	// URL is without a slash at its end.
	URL string
	// Password is every account's.
	Password string

	dir    *scratch.Dir
	build  build.GiteaBuild
	config string // of app.ini
	port   int
	web    *scratch.Process
	http   *http.Client

	mu       sync.Mutex
	accounts map[string]Account
	serial   int // of names that need to be new
}

// Start starts Gitea in dir and returns once it answers and has its
// administrator. It ends with dir, or by Stop.
func Start(ctx context.Context, dir *scratch.Dir, built build.GiteaBuild) (*Server, error) {
	s := &Server{
		Password: rand.Text()[:12],
		dir:      dir,
		build:    built,
		config:   filepath.Join(dir.Path, "gitea", "app.ini"),
		http:     &http.Client{Timeout: 30 * time.Second},
		accounts: map[string]Account{},
	}
	if err := os.MkdirAll(filepath.Dir(s.config), 0o700); err != nil {
		return nil, fmt.Errorf("start Gitea: %w", err)
	}
	if err := s.launch(ctx); err != nil {
		return nil, fmt.Errorf("start Gitea: %w", err)
	}
	if err := s.makeOperator(ctx); err != nil {
		return nil, fmt.Errorf("start Gitea: %w", errors.Join(err, s.web.Stop(0)))
	}
	return s, nil
}

// launch starts the server on a free port. Between finding the port and
// Gitea's taking it another program may have it, so it is tried again.
func (s *Server) launch(ctx context.Context) error {
	var errs []error
	for range 3 {
		port, err := FreePort()
		if err != nil {
			return err
		}
		s.port, s.URL = port, "http://127.0.0.1:"+strconv.Itoa(port)
		if err := os.WriteFile(s.config, []byte(s.appINI()), 0o600); err != nil {
			return err
		}
		s.web, err = s.dir.Start(s.command("gitea", "web"))
		if err != nil {
			return err
		}
		err = s.ready(ctx)
		if err == nil {
			return nil
		}
		errs = append(errs, err, s.web.Stop(0))
		if !strings.Contains(s.web.Log(), "address already in use") {
			break
		}
	}
	return errors.Join(errs...)
}

// appINI is the server's configuration: nothing leaves the machine, nothing is
// kept, and webhooks may go to loopback addresses, which Gitea by default
// refuses.
func (s *Server) appINI() string {
	root := filepath.Dir(s.config)
	return fmt.Sprintf(`APP_NAME = playbook-bot sandbox
RUN_MODE = prod
WORK_PATH = %[1]s
I_AM_BEING_UNSAFE_RUNNING_AS_ROOT = true

[server]
PROTOCOL = http
HTTP_ADDR = 127.0.0.1
HTTP_PORT = %[2]d
ROOT_URL = %[3]s/
STATIC_ROOT_PATH = %[4]s
DISABLE_SSH = true
OFFLINE_MODE = true
LFS_START_SERVER = false
; whoever stops it has no use for its last requests
GRACEFUL_HAMMER_TIME = 1s

[database]
DB_TYPE = sqlite3
PATH = %[1]s/gitea.db
SQLITE_JOURNAL_MODE = WAL
; ms; the suite runs scenarios in parallel on one file
SQLITE_TIMEOUT = 20000

[repository]
ROOT = %[1]s/repositories
; its default, bash, is not on every machine with Go and git
SCRIPT_TYPE = sh
DEFAULT_BRANCH = main

[security]
INSTALL_LOCK = true
PASSWORD_HASH_ALGO = pbkdf2_v1
SUCCESSFUL_TOKENS_CACHE_SIZE = 1000

[service]
DISABLE_REGISTRATION = true
ENABLE_NOTIFY_MAIL = false

[webhook]
ALLOWED_HOST_LIST = loopback

[indexer]
ISSUE_INDEXER_TYPE = db

[queue]
TYPE = channel

; one delivery after the other, so that a test can tell that none is left
[queue.webhook_sender]
MAX_WORKERS = 1

[log]
MODE = console
LEVEL = warn

[mailer]
ENABLED = false

[actions]
ENABLED = false

[packages]
ENABLED = false

[cron.update_checker]
ENABLED = false
`, root, s.port, s.URL, s.build.Static)
}

// command is a run of the Gitea binary.
func (s *Server) command(name string, args ...string) scratch.Spec {
	return scratch.Spec{
		Name: name,
		Path: s.build.Binary,
		Args: append(args, "--config", s.config),
		Env:  s.dir.Env("GITEA_WORK_DIR=" + filepath.Dir(s.config)),
	}
}

// Tool is Gitea's program and the configuration to run it with, for what can be
// done only on its own machine.
func (s *Server) Tool() (binary, config string) { return s.build.Binary, s.config }

// ready waits until the server answers. That the process still runs is checked
// with it: another program's answer on the same port is not Gitea's.
func (s *Server) ready(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, readyWithin, fmt.Errorf("not ready after %s\n%s", readyWithin, s.web.Tail(20)))
	defer cancel()
	return Poll(ctx, 50*time.Millisecond, func(ctx context.Context) (bool, error) {
		select {
		case <-s.web.Done():
			return false, errors.Join(errors.New("ended by itself"), s.web.Err())
		default:
		}
		return s.answers(ctx), nil
	})
}

func (s *Server) answers(ctx context.Context) bool {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.URL+"/api/v1/version", nil)
	if err != nil {
		return false
	}
	resp, err := s.http.Do(req)
	if err != nil {
		return false
	}
	resp.Body.Close()
	return resp.StatusCode == http.StatusOK
}

// makeOperator makes the first account, which no API can, and its token.
func (s *Server) makeOperator(ctx context.Context) error {
	p, err := s.dir.Start(s.command("gitea-admin", "admin", "user", "create", "--admin",
		"--username", operator, "--password", s.Password,
		"--email", operator+"@example.org", "--must-change-password=false"))
	if err != nil {
		return err
	}
	select {
	case <-p.Done():
	case <-ctx.Done():
		return errors.Join(context.Cause(ctx), p.Stop(0))
	}
	if err := p.Err(); err != nil {
		return fmt.Errorf("make the administrator: %w", err)
	}
	return s.adopt(ctx, operator)
}

// Stop ends the server, giving it a moment to do so by itself.
func (s *Server) Stop() error { return s.web.Stop(5 * time.Second) }

// Done is closed when the server has ended, however it did.
func (s *Server) Done() <-chan struct{} { return s.web.Done() }

// Err is why it ended; see scratch.Process.
func (s *Server) Err() error { return s.web.Err() }

// Log is what the server has written.
func (s *Server) Log() string { return s.web.Log() }

// Tail is the last lines of the server's log, at most n.
func (s *Server) Tail(n int) string { return s.web.Tail(n) }

// FreePort finds a loopback port that nobody listens on. Somebody may by the
// time it is used.
func FreePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, fmt.Errorf("find a free port: %w", err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port, nil
}

// Poll calls f at once and then at every interval until it says done or fails,
// or ctx ends; its error then is ctx's cause.
func Poll(ctx context.Context, every time.Duration, f func(context.Context) (done bool, err error)) error {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		done, err := f(ctx)
		if ctx.Err() != nil && !done {
			return context.Cause(ctx)
		}
		if done || err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-tick.C:
		}
	}
}
