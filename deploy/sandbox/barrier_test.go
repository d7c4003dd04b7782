//go:build unix

package main

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	"playbook-bot/deploy/sandbox/internal/tracker"
)

// barrier waits until everything that was to be delivered has been: the
// server delivers one at a time and in order (tracker sets it so), and a
// delivery asked for now therefore arrives after all of those.
type barrier struct {
	ask    string // the address to ask for a delivery at
	token  string
	passed chan struct{}
	mu     sync.Mutex // one at a time, or a pass would be another's
}

func newBarrier(t *testing.T) *barrier {
	t.Helper()
	b := &barrier{passed: make(chan struct{}, 1)}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		b.passed <- struct{}{}
		w.WriteHeader(http.StatusNoContent)
	}))
	t.Cleanup(server.Close)
	repo := newRepo(t)
	client := must(box.gitea.As(t.Context(), "olivia"))(t)
	option := tracker.HookOption(server.URL, "")
	option.Events = []string{"push"} // without it Gitea sends no test
	hook := must(drop(client.CreateRepoHook(repo.Org, repo.Name, option)))(t)
	b.ask = fmt.Sprintf("%s/api/v1/repos/%s/hooks/%d/tests", box.gitea.URL, repo.FullName(), hook.ID)
	b.token = tokenOf(t, "olivia")
	return b
}

// pass returns when all that was on its way has arrived.
func (b *barrier) pass(ctx context.Context) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, b.ask, nil)
	if err != nil {
		return err
	}
	req.Header.Set("Authorization", "token "+b.token)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return fmt.Errorf("ask for a delivery: %w", err)
	}
	resp.Body.Close()
	if resp.StatusCode != http.StatusNoContent {
		return fmt.Errorf("ask for a delivery: status %d", resp.StatusCode)
	}
	select {
	case <-b.passed:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("the delivery asked for: %w", context.Cause(ctx))
	}
}
