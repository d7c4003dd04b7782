package crashtest

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"syscall"
)

// guarded has the kernel kill the program when the thread that started it ends
// (see starter): a test binary that is killed leaves no bot behind.
func guarded() *syscall.SysProcAttr { return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }

// stopped reports whether a process is stopped, as by SIGSTOP.
func stopped(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	// The name, in parentheses, may hold anything; the state follows it.
	at := bytes.LastIndexByte(stat, ')')
	return err == nil && at >= 0 && bytes.HasPrefix(stat[at:], []byte(") T"))
}

// resident is the resident size of a process, in KiB.
func resident(pid int) (int, error) {
	statm, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid))
	if err != nil {
		return 0, err
	}
	fields := bytes.Fields(statm)
	if len(fields) < 2 {
		return 0, fmt.Errorf("%q is no statm", statm)
	}
	pages, err := strconv.Atoi(string(fields[1]))
	return pages * (os.Getpagesize() >> 10), err
}
