package mcp

import (
	"errors"
	"fmt"
	"io"
	"os/exec"
	"slices"
	"sync"
	"syscall"
	"time"
)

// errNoCommand hides which path was looked for.
var errNoCommand = errors.New("the server's command could not be started")

// process is a stdio server. Closing it closes its input, waits, asks it to
// end, then kills it and what it started.
type process struct {
	cmd    *exec.Cmd
	stdin  io.WriteCloser
	stdout io.ReadCloser
	exited chan struct{}
	once   sync.Once
}

// exitGrace is how long a process has to end by itself, and again after it was
// asked to: together below closeTimeout.
const exitGrace = time.Second

// start runs the command of s with environ and its own variables, nothing
// else. Its standard error is discarded: it is the peer's text.
func start(s Server, environ []string) (*process, error) {
	cmd := exec.Command(s.Command[0], s.Command[1:]...)
	cmd.Dir = s.Dir
	cmd.Env = slices.Clone(environ)
	for _, k := range sortedKeys(s.Env) {
		cmd.Env = append(cmd.Env, k+"="+s.Env[k])
	}
	if cmd.Env == nil {
		cmd.Env = []string{} // nil would be the bot's own
	}
	ownGroup(cmd)
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("opening the input of server %s: %w", s.Name, err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("opening the output of server %s: %w", s.Name, err)
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("server %s: %w", s.Name, errNoCommand)
	}
	return &process{cmd: cmd, stdin: stdin, stdout: stdout, exited: make(chan struct{})}, nil
}

func (p *process) Write(b []byte) (int, error) { return p.stdin.Write(b) }

// Close is called by the SDK when the session ends. The process's exit status
// is no error of ours.
func (p *process) Close() error {
	p.once.Do(func() {
		_ = p.stdin.Close()
		go func() {
			_ = p.cmd.Wait()
			close(p.exited)
		}()
		for _, signal := range []syscall.Signal{0, syscall.SIGTERM, syscall.SIGKILL} {
			if signal != 0 {
				signalGroup(p.cmd, signal)
			}
			if p.waits(exitGrace) {
				break
			}
		}
		// What it left behind. While any of it lives, the group's number is not
		// given out again.
		signalGroup(p.cmd, syscall.SIGKILL)
	})
	return nil
}

func (p *process) waits(d time.Duration) bool {
	late := time.NewTimer(d)
	defer late.Stop()
	select {
	case <-p.exited:
		return true
	case <-late.C:
		return false
	}
}
