//go:build unix

package scratch

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// Spec says what to start.
type Spec struct {
	// Name names the log file and appears in errors.
	Name string
	// Path is the program, and Args are its arguments without its name.
	Path string
	Args []string
	// Dir is the working directory; empty is the Dir's own.
	Dir string
	// Env is the whole environment; see Dir.Env.
	Env []string
}

// Process is a process started in a Dir, the leader of a group of its own.
type Process struct {
	Name string

	dir  *Dir
	cmd  *exec.Cmd
	log  string
	done chan struct{}
	err  error // why it ended; read after done
}

// Start starts a process whose output, both streams, goes to a log file. It
// gets no signals from the terminal: whoever holds the Dir decides the order
// in which things end.
func (d *Dir) Start(s Spec) (*Process, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return nil, fmt.Errorf("start %s: its directory is closed", s.Name)
	}
	p := &Process{Name: s.Name, dir: d, done: make(chan struct{})}
	log, err := os.CreateTemp(filepath.Join(d.Path, "log"), s.Name+"-")
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", s.Name, err)
	}
	defer log.Close()
	p.log = log.Name()
	p.cmd = exec.Command(s.Path, s.Args...)
	p.cmd.Dir = s.Dir
	if p.cmd.Dir == "" {
		p.cmd.Dir = d.Path
	}
	p.cmd.Env = s.Env
	p.cmd.Stdout, p.cmd.Stderr = log, log
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", s.Name, err)
	}
	if err := d.note(p.cmd.Process.Pid, true); err != nil {
		p.kill()
		return nil, errors.Join(fmt.Errorf("start %s: %w", s.Name, err), p.cmd.Wait())
	}
	d.procs = append(d.procs, p)
	go p.wait()
	return p, nil
}

// wait takes the process's end in, and ends the rest of its group with it.
func (p *Process) wait() {
	p.err = p.cmd.Wait()
	p.kill()
	// The file is gone already where the whole directory is being removed.
	_ = p.dir.note(p.cmd.Process.Pid, false)
	close(p.done)
}

// kill kills the whole group. That there is none any more is no error.
func (p *Process) kill() {
	_ = syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL)
}

// PID is the process's id. It may be another's once Done is closed.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Done is closed when the process has ended.
func (p *Process) Done() <-chan struct{} { return p.done }

// Err is nil while the process runs and if it ended with status 0, else why it
// ended, with the last lines of its log.
func (p *Process) Err() error {
	select {
	case <-p.done:
	default:
		return nil
	}
	if p.err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w\n%s", p.Name, p.err, p.Tail(20))
}

// Stop asks the process to end with SIGTERM, waits up to grace, and kills it
// and its group. With a grace of 0 it does not ask. The error says that the
// grace was not enough; having been killed without being asked is none.
func (p *Process) Stop(grace time.Duration) error {
	select {
	case <-p.done:
		return nil
	default:
	}
	late := false
	if grace > 0 {
		_ = p.cmd.Process.Signal(syscall.SIGTERM)
		timer := time.NewTimer(grace)
		defer timer.Stop()
		select {
		case <-p.done:
			return nil
		case <-timer.C:
			late = true
		}
	}
	p.kill()
	<-p.done
	if late {
		return fmt.Errorf("stop %s: still running %s after SIGTERM, killed", p.Name, grace)
	}
	return nil
}

// Kill ends the process as a crash would, without warning.
func (p *Process) Kill() { _ = p.Stop(0) }

// Log is what the process has written so far.
func (p *Process) Log() string {
	text, err := os.ReadFile(p.log)
	if err != nil {
		return "(log not readable)"
	}
	return string(text)
}

// Tail is the last lines of the log, at most n, each indented for an error's
// text. It reads no more than the last 64 KiB.
func (p *Process) Tail(n int) string {
	const most = 64 << 10
	f, err := os.Open(p.log)
	if err != nil {
		return "    (no log)"
	}
	defer f.Close()
	if info, err := f.Stat(); err == nil && info.Size() > most {
		_, _ = f.Seek(-most, io.SeekEnd)
	}
	text, _ := io.ReadAll(io.LimitReader(f, most))
	text = bytes.TrimSpace(text)
	if len(text) == 0 {
		return "    (its log is empty)"
	}
	lines := strings.Split(string(text), "\n")
	if len(lines) > n {
		lines = lines[len(lines)-n:]
	}
	return "    " + strings.Join(lines, "\n    ")
}
