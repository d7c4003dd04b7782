//go:build unix

package pgtest

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"strconv"
	"syscall"
)

// account is who the server runs as: PostgreSQL refuses to be root.
type account struct {
	// other: not ourselves.
	other    bool
	uid, gid int
}

func serverUser() (account, error) {
	if os.Getuid() != 0 {
		return account{}, nil
	}
	for _, name := range []string{"postgres", "nobody"} {
		u, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, err := strconv.Atoi(u.Uid)
		if err != nil {
			return account{}, fmt.Errorf("account %s: %w", name, err)
		}
		gid, err := strconv.Atoi(u.Gid)
		if err != nil {
			return account{}, fmt.Errorf("account %s: %w", name, err)
		}
		return account{other: true, uid: uid, gid: gid}, nil
	}
	return account{}, errors.New("PostgreSQL does not run as root, and there is no account postgres or nobody")
}

func (a account) own(dir string) error {
	if !a.other {
		return nil
	}
	return os.Chown(dir, a.uid, a.gid)
}

// command runs as the account and in a process group of its own, so that a
// Ctrl-C meant for the tests does not reach it.
func (a account) command(name string, args ...string) *exec.Cmd {
	cmd := exec.Command(name, args...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if a.other {
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: uint32(a.uid), Gid: uint32(a.gid)}
	}
	return cmd
}
