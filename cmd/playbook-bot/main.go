// Command playbook-bot holds a Gitea tracker's restart requests to a recovery
// playbook (serve), and gives the same answers offline (assess and its kin).
//
// It reads the environment, wires the packages below bot together, and
// decides nothing itself.
package main

import (
	"context"
	"os"
	"os/signal"
	"strings"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args[1:], environment(), os.Stdin, os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// environment gives the process's variables as a map; nothing else reads
// them.
func environment() map[string]string {
	m := make(map[string]string)
	for _, kv := range os.Environ() {
		if k, v, ok := strings.Cut(kv, "="); ok {
			m[k] = v
		}
	}
	return m
}
