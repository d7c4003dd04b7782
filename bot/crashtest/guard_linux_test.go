package crashtest

import "syscall"

// guarded has the kernel kill the program when the thread that started it ends
// (see starter): a test binary that is killed leaves no bot behind.
func guarded() *syscall.SysProcAttr { return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }
