//go:build !unix

package mcp

import (
	"os/exec"
	"syscall"
)

func ownGroup(*exec.Cmd) {}

func signalGroup(cmd *exec.Cmd, s syscall.Signal) {
	if s == syscall.SIGKILL {
		_ = cmd.Process.Kill()
	}
}
