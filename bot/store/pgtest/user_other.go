//go:build !unix

package pgtest

import (
	"context"
	"os/exec"
)

type account struct{}

func serverUser() (account, error) { return account{}, ErrNotInstalled }

func (account) own(string) error { return nil }

func (account) command(ctx context.Context, name string, args ...string) *exec.Cmd {
	return exec.CommandContext(ctx, name, args...)
}
