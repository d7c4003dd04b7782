//go:build unix

package mcp

import (
	"os/exec"
	"syscall"
)

// ownGroup puts the process in a group of its own, so that what it starts
// (npx starts node) can be ended with it, and a Ctrl-C meant for the bot does
// not reach it.
func ownGroup(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

func signalGroup(cmd *exec.Cmd, s syscall.Signal) { _ = syscall.Kill(-cmd.Process.Pid, s) }
