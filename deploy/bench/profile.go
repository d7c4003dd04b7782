//go:build unix

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

// profileSeconds is how long a CPU profile looks.
const profileSeconds = 4

// profileIntake takes profiles of a bot while it takes deliveries in.
func (b *bench) profileIntake(ctx context.Context, c *contender) error {
	b.saying("profile of %s", c.name)
	var load sync.WaitGroup
	load.Go(func() { send(ctx, c.to, burst{conns: atConns, time: (profileSeconds + 1) * time.Second}) })
	err := errors.Join(
		b.fetchProfile(ctx, c, fmt.Sprintf("profile?seconds=%d", profileSeconds), "cpu"),
		b.fetchProfile(ctx, c, "allocs", "allocs"))
	load.Wait()
	return err
}

// fetchProfile writes one profile into the directory of profiles.
func (b *bench) fetchProfile(ctx context.Context, c *contender, what, as string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+c.profiles+"/debug/pprof/"+what, nil)
	if err != nil {
		return err
	}
	client := &http.Client{Timeout: 30 * time.Second}
	resp, err := client.Do(req)
	if err != nil {
		return fmt.Errorf("take the profile %s of %s: %w", as, c.name, err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("take the profile %s of %s: status %d", as, c.name, resp.StatusCode)
	}
	name := strings.NewReplacer(" ", "-", ",", "").Replace(c.name) + "." + as + ".pprof"
	f, err := os.Create(filepath.Join(b.profile, name))
	if err != nil {
		return fmt.Errorf("keep a profile: %w", err)
	}
	_, err = io.Copy(f, resp.Body)
	return errors.Join(err, f.Close())
}
