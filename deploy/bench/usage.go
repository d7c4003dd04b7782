//go:build unix

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// tick is the unit in which Linux counts a process's time, on every
// architecture Go runs on.
const tick = 10 * time.Millisecond

// cpuOf is the CPU time that processes have used, user and system; with
// children that of their living children too (PostgreSQL's backends). It is 0
// where there is no /proc to read it from.
func cpuOf(children bool, pids ...int) time.Duration {
	var sum time.Duration
	for _, pid := range pids {
		t, _ := stat(pid)
		sum += t
		if !children {
			continue
		}
		all, _ := filepath.Glob("/proc/[0-9]*")
		for _, dir := range all {
			child, _ := strconv.Atoi(filepath.Base(dir))
			if t, parent := stat(child); parent == pid {
				sum += t
			}
		}
	}
	return sum
}

// stat reads a process's time, with that of the children it has waited for,
// and its parent.
func stat(pid int) (cpu time.Duration, parent int) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, 0
	}
	// The name, in parentheses, may hold anything.
	_, rest, _ := strings.Cut(string(text[strings.LastIndexByte(string(text), ')')+1:]), " ")
	f := strings.Fields(rest)
	if len(f) < 15 {
		return 0, 0
	}
	parent, _ = strconv.Atoi(f[1])
	for _, at := range []int{11, 12, 13, 14} { // utime, stime, cutime, cstime
		n, _ := strconv.ParseInt(f[at], 10, 64)
		cpu += time.Duration(n) * tick
	}
	return cpu, parent
}

// memoryOf is a process's resident memory in bytes, 0 where unknown.
func memoryOf(pid int) int64 {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(line, "VmRSS:"); ok {
			n, _ := strconv.ParseInt(strings.Fields(rest)[0], 10, 64)
			return n << 10
		}
	}
	return 0
}

// loadAverage is how many wanted to run, over one, five and fifteen minutes;
// "" where unknown.
func loadAverage() string {
	text, err := os.ReadFile("/proc/loadavg")
	f := strings.Fields(string(text))
	if err != nil || len(f) < 3 {
		return ""
	}
	return strings.Join(f[:3], " ")
}
