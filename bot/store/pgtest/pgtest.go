// Package pgtest starts a private PostgreSQL for tests and benchmarks, from
// the server's programs where the machine has them, in a temporary directory,
// and leaves nothing behind: not even when the process that started it is
// killed.
package pgtest

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/jackc/pgx/v5"
)

// RequireEnv, set to 1, makes URL fail where it would skip for want of
// PostgreSQL.
const RequireEnv = "PLAYBOOK_BOT_REQUIRE_POSTGRES"

// ErrNotInstalled: the machine has no PostgreSQL server to start.
var ErrNotInstalled = errors.New("no PostgreSQL server programs found (Debian: apt-get install postgresql)")

// Server is a running PostgreSQL of our own. It syncs to disk as a real one
// does, and listens on a socket in its directory only.
type Server struct {
	dir string
	// hold is the standing input of the shell that watches over the server:
	// when it closes, by Stop or by our death, the server is stopped.
	hold  io.Closer
	watch *exec.Cmd
	made  atomic.Int64
}

// watcher makes and starts the server, says so, waits for its input to close,
// and cleans up. It is a process of its own, so that it outlives us. Its
// arguments are the directories of the programs and of the server.
const watcher = `
trap '' INT TERM HUP PIPE
if "$1/initdb" -D "$2/data" -U postgres -A trust -E UTF8 --locale=C -N >"$2/log" 2>&1 &&
	cat "$2/settings" >>"$2/data/postgresql.conf" &&
	"$1/pg_ctl" -D "$2/data" -l "$2/log" -w -t 60 -s -o "-k $2" start
then
	echo ready
	read -r _ || true
	"$1/pg_ctl" -D "$2/data" -m immediate -w -s stop
else
	tail -n 3 "$2/log"
fi
rm -rf "$2"
`

const settings = `
listen_addresses = ''
unix_socket_permissions = 0700
max_connections = 200
shared_buffers = 64MB
fsync = on
synchronous_commit = on
log_min_messages = warning
`

// Start makes and starts a server. It takes one to three seconds.
func Start(ctx context.Context) (_ *Server, err error) {
	bin, err := find()
	if err != nil {
		return nil, err
	}
	user, err := serverUser()
	if err != nil {
		return nil, err
	}
	s := &Server{}
	if s.dir, err = os.MkdirTemp("", "pgtest"); err != nil {
		return nil, fmt.Errorf("make a directory for PostgreSQL: %w", err)
	}
	defer func() {
		if err != nil {
			_ = os.RemoveAll(s.dir)
		}
	}()
	if err := os.WriteFile(filepath.Join(s.dir, "settings"), []byte(settings), 0o644); err != nil {
		return nil, fmt.Errorf("configure PostgreSQL: %w", err)
	}
	if err := user.own(s.dir); err != nil {
		return nil, fmt.Errorf("give PostgreSQL its directory: %w", err)
	}
	if err := s.run(ctx, user, bin); err != nil {
		return nil, fmt.Errorf("start PostgreSQL: %w", err)
	}
	return s, nil
}

func (s *Server) run(ctx context.Context, user account, bin string) error {
	// Not under the caller's context: the watcher must see its input close.
	s.watch = user.command("/bin/sh", "-c", watcher, "pgtest", bin, s.dir)
	s.watch.Dir = s.dir
	in, err := s.watch.StdinPipe()
	if err != nil {
		return err
	}
	out, err := s.watch.StdoutPipe()
	if err != nil {
		return err
	}
	s.hold = in
	if err := s.watch.Start(); err != nil {
		return err
	}
	unhook := context.AfterFunc(ctx, func() { _ = in.Close() })
	line, err := bufio.NewReader(out).ReadString('\n')
	if !unhook() {
		err = ctx.Err()
	}
	if line == "ready\n" && err == nil {
		return nil
	}
	_ = in.Close()
	_ = s.watch.Wait()
	return errors.Join(fmt.Errorf("the server says %q", strings.TrimSpace(line)), err)
}

// Stop ends the server and removes its directory.
func (s *Server) Stop() error {
	if err := s.hold.Close(); err != nil {
		return fmt.Errorf("stop PostgreSQL: %w", err)
	}
	err := s.watch.Wait()
	// The watcher may remove what is in the directory, and we the directory.
	if err := errors.Join(err, os.RemoveAll(s.dir)); err != nil {
		return fmt.Errorf("stop PostgreSQL: %w", err)
	}
	return nil
}

// Socket is the directory of the server's socket.
func (s *Server) Socket() string { return s.dir }

// NewDatabase makes an empty database and returns its URL.
func (s *Server) NewDatabase(ctx context.Context) (string, error) {
	name := "test" + strconv.FormatInt(s.made.Add(1), 10)
	if err := s.exec(ctx, "CREATE DATABASE "+name); err != nil {
		return "", fmt.Errorf("make a database: %w", err)
	}
	return s.url(name), nil
}

// NewSchema makes an empty schema and returns a URL by which it looks like a
// database of its own, but for NOTIFY and advisory locks. It is much quicker
// than NewDatabase, which copies files and syncs them.
func (s *Server) NewSchema(ctx context.Context) (string, error) {
	name := "test" + strconv.FormatInt(s.made.Add(1), 10)
	if err := s.exec(ctx, "CREATE SCHEMA "+name); err != nil {
		return "", fmt.Errorf("make a schema: %w", err)
	}
	return s.url("postgres") + "&search_path=" + name, nil
}

func (s *Server) exec(ctx context.Context, sql string) error {
	conn, err := pgx.Connect(ctx, s.url("postgres"))
	if err != nil {
		return fmt.Errorf("connect to PostgreSQL: %w", err)
	}
	defer func() { _ = conn.Close(ctx) }()
	_, err = conn.Exec(ctx, sql)
	return err
}

func (s *Server) url(database string) string {
	return "postgres://postgres@/" + database + "?host=" + s.dir
}

// find looks for the directory of the newest server programs.
func find() (string, error) {
	dirs, _ := filepath.Glob("/usr/lib/postgresql/*/bin")
	slices.SortFunc(dirs, func(a, b string) int { return version(b) - version(a) })
	if p, err := exec.LookPath("initdb"); err == nil {
		dirs = append(dirs, filepath.Dir(p))
	}
	for _, dir := range dirs {
		if _, err := os.Stat(filepath.Join(dir, "initdb")); err == nil {
			return dir, nil
		}
	}
	return "", ErrNotInstalled
}

// version is the number in /usr/lib/postgresql/15/bin.
func version(bin string) int {
	n, _ := strconv.Atoi(filepath.Base(filepath.Dir(bin)))
	return n
}

// TB is what URL needs of a testing.TB.
type TB interface {
	Helper()
	Context() context.Context
	Skipf(format string, args ...any)
	Fatalf(format string, args ...any)
}

var shared struct {
	sync.Mutex
	server *Server
	err    error
}

// URL makes an empty schema, on a server that all tests of the process share,
// and returns its URL (see NewSchema). Where there is no PostgreSQL it skips the test,
// or fails it where RequireEnv is 1. The server is stopped by Main, or at the
// latest by the end of the process.
func URL(t TB) string {
	t.Helper()
	shared.Lock()
	defer shared.Unlock()
	if shared.server == nil && shared.err == nil {
		shared.server, shared.err = Start(context.WithoutCancel(t.Context()))
	}
	switch {
	case errors.Is(shared.err, ErrNotInstalled) && os.Getenv(RequireEnv) != "1":
		t.Skipf("skipped: %v", shared.err)
	case shared.err != nil:
		t.Fatalf("start PostgreSQL for tests: %v", shared.err)
	}
	url, err := shared.server.NewSchema(t.Context())
	if err != nil {
		t.Fatalf("%v", err)
	}
	return url
}

// Main runs the tests of a package and then stops the server, for TestMain:
//
//	func TestMain(m *testing.M) { os.Exit(pgtest.Main(m)) }
func Main(m interface{ Run() int }) int {
	code := m.Run()
	shared.Lock()
	defer shared.Unlock()
	if shared.server != nil {
		if err := shared.server.Stop(); err != nil && code == 0 {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
		shared.server = nil
	}
	return code
}
