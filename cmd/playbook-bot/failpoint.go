//go:build failpoints

package main

import (
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"sync"
	"syscall"
)

// failpointVariable says where the process is to end, or to stop, for crash
// tests: POINT[:N][:kill|:stop], the N-th passing (default 1) of a boundary of
// bot.Config.Fail, by SIGKILL (default) or SIGSTOP. With @FILE the same is read
// from a file at every passing, so that a test can ask for it at any time;
// whichever process gets there first takes the file away, and it alone acts.
const failpointVariable = "PLAYBOOK_BOT_FAILPOINT"

// failpoint gives bot.Config.Fail. Only a program built with -tags failpoints
// has it.
func failpoint() func(point string) {
	value := environment()[failpointVariable]
	if value == "" {
		return nil
	}
	f := &fuse{}
	if path, ok := strings.CutPrefix(value, "@"); ok {
		f.path = path
	} else if _, err := parseFailpoint(value); err != nil {
		panic(err) // a crash test that tests nothing is worse than none
	} else {
		f.spec = value
	}
	return f.pass
}

// fuse counts the passings of the boundary that it waits for.
type fuse struct {
	path string // of the file that holds spec; empty: spec is fixed

	mu     sync.Mutex
	spec   string
	passed int
}

type failpointSpec struct {
	point string
	n     int
	stop  bool
}

func parseFailpoint(s string) (failpointSpec, error) {
	out := failpointSpec{n: 1}
	parts := strings.Split(strings.TrimSpace(s), ":")
	out.point, parts = parts[0], parts[1:]
	if len(parts) > 0 {
		if n, err := strconv.Atoi(parts[0]); err == nil && n > 0 {
			out.n, parts = n, parts[1:]
		}
	}
	if len(parts) > 0 && (parts[0] == "kill" || parts[0] == "stop") {
		out.stop, parts = parts[0] == "stop", parts[1:]
	}
	if out.point == "" || len(parts) > 0 {
		return out, fmt.Errorf("%s: %q is not POINT[:N][:kill|:stop]", failpointVariable, s)
	}
	return out, nil
}

// pass is called at every boundary.
func (f *fuse) pass(point string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.path != "" {
		text, err := os.ReadFile(f.path)
		if err != nil {
			f.spec, f.passed = "", 0
			return
		}
		if string(text) != f.spec {
			f.spec, f.passed = string(text), 0
		}
	}
	spec, err := parseFailpoint(f.spec)
	if err != nil || spec.point != point {
		return
	}
	if f.passed++; f.passed != spec.n {
		return
	}
	if f.path != "" && os.Remove(f.path) != nil {
		return // another process was first
	}
	if spec.stop {
		stopSelf()
		return
	}
	_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
	select {} // the signal may take a moment; nothing more is to be done
}

// stopSelf stops the whole process and returns when it was continued.
func stopSelf() {
	// Not by Kill alone: another thread may get the signal, and this one go on
	// for a moment.
	woken := make(chan os.Signal, 1)
	signal.Notify(woken, syscall.SIGCONT)
	defer signal.Stop(woken)
	_ = syscall.Kill(os.Getpid(), syscall.SIGSTOP)
	<-woken
}
