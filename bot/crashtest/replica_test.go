//go:build unix

package crashtest

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// replica is one process of the program.
type replica struct {
	name   string
	url    string // of LISTEN
	cmd    *exec.Cmd
	exited chan struct{}
	// away: nothing is delivered to it.
	away atomic.Bool

	mu   sync.Mutex
	said []string // its log, the newest lines
}

// keptLines is how much of a process's log is kept, for failures.
const keptLines = 300

// starter runs functions on a thread that never ends, as guarded needs.
var starter = sync.OnceValue(func() chan<- func() {
	work := make(chan func())
	go func() {
		runtime.LockOSThread()
		for f := range work {
			f()
		}
	}()
	return work
})

// launch starts the program and waits until it listens.
func launch(path, name string, environ []string) (*replica, error) {
	r := &replica{name: name, cmd: exec.Command(path, "serve"), exited: make(chan struct{})}
	r.cmd.Env, r.cmd.SysProcAttr = environ, guarded()
	logs, err := r.cmd.StderrPipe()
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	started := make(chan error)
	starter() <- func() { started <- r.cmd.Start() }
	if err := <-started; err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	address := make(chan string, 1)
	go func() {
		defer close(r.exited)
		for in := bufio.NewScanner(logs); in.Scan(); {
			r.hear(in.Text(), address)
		}
		_ = r.cmd.Wait()
	}()
	select {
	case addr := <-address:
		r.url = "http://" + addr
		return r, nil
	case <-r.exited:
	case <-time.After(patience):
		r.kill()
	}
	select {
	case addr := <-address: // and was killed right after it
		r.url = "http://" + addr
		return r, nil
	default:
		return nil, fmt.Errorf("%s ended before it listened: %s", name, r.log())
	}
}

func (r *replica) hear(line string, address chan<- string) {
	var l struct{ Msg, For, Address string }
	// A line that is no JSON is a panic's.
	if _ = json.Unmarshal([]byte(line), &l); l.Msg == "listening" && l.For == "LISTEN" {
		select {
		case address <- l.Address:
		default:
		}
	}
	if l.Msg == "delivery" {
		return // the forge knows as much, and nothing else would be left
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.said) >= keptLines {
		r.said = append(r.said[:0], r.said[keptLines/2:]...)
	}
	r.said = append(r.said, line)
}

// log is what the process logged last.
func (r *replica) log() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return strings.Join(r.said, "\n")
}

// logged reports whether a line of the log holds the words.
func (r *replica) logged(words string) bool { return strings.Contains(r.log(), words) }

func (r *replica) dead() bool {
	select {
	case <-r.exited:
		return true
	default:
		return false
	}
}

// killed reports whether a signal ended the process; anything else but a
// wanted end is a crash of its own.
func (r *replica) killed() bool {
	status, ok := r.cmd.ProcessState.Sys().(syscall.WaitStatus)
	return ok && status.Signaled() && status.Signal() == syscall.SIGKILL
}

func (r *replica) signal(s os.Signal) { _ = r.cmd.Process.Signal(s) }

// frozen reports whether the process is stopped, as by SIGSTOP.
func (r *replica) frozen() bool { return stopped(r.cmd.Process.Pid) }

// freeze is SIGSTOP, and waits until it holds; deliveries go to others until
// thaw, SIGCONT.
func (r *replica) freeze() {
	r.away.Store(true)
	r.signal(syscall.SIGSTOP)
	within(patience, func() bool { return r.frozen() || r.dead() })
}

func (r *replica) thaw() {
	r.signal(syscall.SIGCONT)
	r.away.Store(false)
}

// kill is SIGKILL, and waits for the end.
func (r *replica) kill() {
	r.signal(syscall.SIGKILL)
	<-r.exited
}

// stop is SIGTERM, and waits for the end.
func (r *replica) stop(t testing.TB) {
	t.Helper()
	r.signal(syscall.SIGTERM)
	eventually(t, r.name+" ends after SIGTERM", r.dead)
	if code := r.cmd.ProcessState.ExitCode(); code != 0 {
		t.Errorf("%s ended with %d after SIGTERM:\n%s", r.name, code, r.log())
	}
}
