//go:build unix && !linux

package crashtest

import "syscall"

func guarded() *syscall.SysProcAttr { return nil }
