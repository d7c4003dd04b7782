//go:build unix

package main

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
)

// intake stands between Gitea and a bot's intake: it can hold deliveries back,
// as a slow network would, and the bot behind it can be another one.
type intake struct {
	t *testing.T

	mu   sync.Mutex
	bot  http.Handler
	hold bool
	held []*http.Request // with their bodies read
}

// ServeHTTP passes a delivery on, or keeps it and says it has arrived.
func (in *intake) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		in.t.Errorf("read a delivery: %v", err)
	}
	// Without cancelling: one held back outlives Gitea's connection.
	r = r.Clone(context.WithoutCancel(r.Context()))
	r.Body = io.NopCloser(bytes.NewReader(body))
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.hold {
		in.held = append(in.held, r)
		w.WriteHeader(http.StatusAccepted)
		return
	}
	in.bot.ServeHTTP(w, r)
}

// serve puts a bot behind the intake, in the place of the one before.
func (in *intake) serve(bot http.Handler) {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.bot = bot
}

// setHold begins to hold deliveries back, or lets go those held, in order.
func (in *intake) setHold(hold bool) {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.hold = hold
	if hold {
		return
	}
	for _, r := range in.held {
		answer := httptest.NewRecorder()
		in.bot.ServeHTTP(answer, r)
		if answer.Code != http.StatusAccepted {
			in.t.Errorf("a delivery held back: status %d", answer.Code)
		}
	}
	in.held = nil
}
