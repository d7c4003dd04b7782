//go:build unix && !linux

package crashtest

import (
	"os/exec"
	"strconv"
	"strings"
	"syscall"
)

func guarded() *syscall.SysProcAttr { return nil }

func psField(field string, pid int) (string, error) {
	out, err := exec.Command("ps", "-o", field+"=", "-p", strconv.Itoa(pid)).Output()
	return strings.TrimSpace(string(out)), err
}

// stopped reports whether a process is stopped, as by SIGSTOP.
func stopped(pid int) bool {
	state, err := psField("stat", pid)
	return err == nil && strings.HasPrefix(state, "T")
}

// resident is the resident size of a process, in KiB.
func resident(pid int) (int, error) {
	size, err := psField("rss", pid)
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(size)
}
