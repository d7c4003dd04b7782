//go:build unix

// Package scratch is a temporary directory together with the processes that
// live in it. Both are gone when whoever made it is gone, however it ended:
// Close does it in the ordinary way, and a watchdog does it after a panic, a
// killed test binary or a SIGKILL, when nothing deferred runs any more.
package scratch

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
)

// watchdogScript waits until the other end of its standard input is closed,
// which the kernel does for every way a process can end, then kills the
// process groups noted in DIR/run and removes DIR. It is a shell, not a second
// copy of ourselves, because a test binary has no main of ours to run. What
// was just killed may still be writing, so removing is repeated for a while.
const watchdogScript = `trap '' HUP INT QUIT TERM
while read -r _; do :; done
for f in "$1"/run/*; do
	[ -e "$f" ] && kill -s KILL -- "-${f##*/}" 2>/dev/null
done
n=0
until rm -rf -- "$1" 2>/dev/null || [ "$n" -ge 10 ]; do
	n=$((n + 1))
	sleep 1
done
`

// Dir is a temporary directory and the processes started in it. Its methods
// may be called from several goroutines.
type Dir struct {
	// Path is absolute.
	Path string

	leash    *os.File // closing it sets the watchdog off
	watchdog *exec.Cmd

	mu     sync.Mutex
	procs  []*Process
	closed bool
}

// New makes a directory below os.TempDir, with name as the beginning of its
// own name. The caller closes it.
func New(name string) (*Dir, error) {
	path, err := os.MkdirTemp("", name+"-")
	if err != nil {
		return nil, fmt.Errorf("make a temporary directory: %w", err)
	}
	d := &Dir{Path: path}
	if err := d.prepare(); err != nil {
		return nil, errors.Join(err, os.RemoveAll(path))
	}
	return d, nil
}

func (d *Dir) prepare() error {
	for _, sub := range []string{"run", "log", "home", "tmp"} {
		if err := os.Mkdir(filepath.Join(d.Path, sub), 0o700); err != nil {
			return fmt.Errorf("make a temporary directory: %w", err)
		}
	}
	held, leash, err := os.Pipe()
	if err != nil {
		return fmt.Errorf("start the watchdog: %w", err)
	}
	defer held.Close()
	d.watchdog = exec.Command("sh", "-c", watchdogScript, "sh", d.Path)
	d.watchdog.Stdin = held
	// A session of its own, or Ctrl-C in the terminal would end it with us.
	d.watchdog.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := d.watchdog.Start(); err != nil {
		leash.Close()
		return fmt.Errorf("start the watchdog: %w", err)
	}
	d.leash = leash
	return nil
}

// Env is a whole environment for a process in d: PATH, and a home and a place
// for temporary files that go with d. Nothing else is inherited, so that what
// happens does not depend on whose machine it is.
func (d *Dir) Env(more ...string) []string {
	return append([]string{
		"PATH=" + os.Getenv("PATH"),
		"HOME=" + filepath.Join(d.Path, "home"),
		"TMPDIR=" + filepath.Join(d.Path, "tmp"),
		// Programs ask for the user's name; an account id without an entry
		// in /etc/passwd, as containers have, would leave them without one.
		"USER=sandbox",
	}, more...)
}

// Close stops what still runs, the last started first, without giving it time
// to finish, and removes the directory. Calling it again does nothing.
func (d *Dir) Close() error {
	d.mu.Lock()
	procs, closed := d.procs, d.closed
	d.procs, d.closed = nil, true
	d.mu.Unlock()
	if closed {
		return nil
	}
	var errs []error
	for i := len(procs) - 1; i >= 0; i-- {
		errs = append(errs, procs[i].Stop(0))
	}
	errs = append(errs, d.leash.Close())
	// The watchdog now does the removing, so that there is one way of it.
	errs = append(errs, d.watchdog.Wait())
	if _, err := os.Stat(d.Path); err == nil {
		errs = append(errs, os.RemoveAll(d.Path))
	}
	return errors.Join(errs...)
}

// note tells the watchdog of a process group, or that it is gone.
func (d *Dir) note(group int, alive bool) error {
	name := filepath.Join(d.Path, "run", strconv.Itoa(group))
	if alive {
		return os.WriteFile(name, nil, 0o600)
	}
	return os.Remove(name)
}
