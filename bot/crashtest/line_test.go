//go:build unix

package crashtest

import (
	"net"
	"net/url"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
)

// wake ends a stop without anything being delivered again.
const wake = syscall.SIGCONT

// line is a TCP line to a PostgreSQL server that can be cut: what is sent then
// arrives nowhere, and nobody is told.
type line struct {
	url    string
	socket string

	mu    sync.Mutex
	conns []net.Conn
	down  bool // the line is cut
}

// newLine makes a line to the server of a URL of pgtest's, which listens on a
// socket in a directory.
func newLine(t testing.TB, database string) *line {
	t.Helper()
	u, err := url.Parse(database)
	if err != nil {
		t.Fatal(err)
	}
	q := u.Query()
	l := &line{socket: filepath.Join(q.Get("host"), ".s.PGSQL.5432")}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	q.Del("host")
	q.Set("sslmode", "disable")
	u.Host, u.RawQuery = ln.Addr().String(), q.Encode()
	l.url = u.String()
	go l.accept(ln)
	t.Cleanup(func() {
		_ = ln.Close()
		l.hangUp()
	})
	return l
}

func (l *line) accept(ln net.Listener) {
	for {
		c, err := ln.Accept()
		if err != nil {
			return
		}
		server, err := net.Dial("unix", l.socket)
		if err != nil {
			_ = c.Close()
			continue
		}
		l.mu.Lock()
		l.conns = append(l.conns, c, server)
		l.mu.Unlock()
		go l.forward(c, server)
		go l.forward(server, c)
	}
}

// forward copies until either end closes, and swallows what comes while the
// line is cut.
func (l *line) forward(from, to net.Conn) {
	defer from.Close()
	defer to.Close()
	buf := make([]byte, 32<<10)
	for {
		n, err := from.Read(buf)
		if err != nil {
			return
		}
		if l.isCut() {
			continue
		}
		if _, err := to.Write(buf[:n]); err != nil {
			return
		}
	}
}

func (l *line) isCut() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.down
}

func (l *line) cut() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.down = true
}

// mend lets new connections through; those from before have lost bytes, and
// are closed.
func (l *line) mend() {
	l.mu.Lock()
	l.down = false
	l.mu.Unlock()
	l.hangUp()
}

func (l *line) hangUp() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, c := range l.conns {
		_ = c.Close()
	}
	l.conns = nil
}
