//go:build unix

package main

import (
	"context"
	"errors"
	"maps"
	"net"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"time"

	"playbook-bot/deploy/sandbox/internal/tracker"
)

// watch stands between a bot and its forge. It counts the calls and sees the
// moment in which an answer stands: when the forge has said 201 to it.
type watch struct {
	URL  string
	next http.Handler
	srv  *http.Server

	mu    sync.Mutex
	calls map[string]int
	// stands: the answer stands since calls were taken last.
	stands bool
	active int
	last   time.Time
	// posted gets the time of every comment created; it must be drained.
	posted chan time.Time
}

// watchOver serves what stands behind on a free loopback port.
func watchOver(behind http.Handler) (*watch, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	w := &watch{URL: "http://" + l.Addr().String(), next: behind, calls: map[string]int{}, posted: make(chan time.Time, 1000)}
	w.srv = &http.Server{Handler: w, ReadHeaderTimeout: 5 * time.Second}
	go func() { _ = w.srv.Serve(l) }() // ends by close
	return w, nil
}

func (w *watch) close() error { return w.srv.Close() }

// status notes the status of an answer.
type status struct {
	http.ResponseWriter
	code int
}

func (s *status) WriteHeader(code int) {
	s.code = code
	s.ResponseWriter.WriteHeader(code)
}

func (w *watch) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	kind := kindOf(r.Method, r.URL.Path)
	w.mu.Lock()
	if w.stands && kind != kindReaction && kind != kindPost {
		w.calls[kindLabel]++ // what follows an answer is for labels: which there are, which are set
	} else {
		w.calls[kind]++
	}
	w.active++
	w.mu.Unlock()
	s := &status{ResponseWriter: rw, code: http.StatusOK}
	defer func() {
		now := time.Now()
		w.mu.Lock()
		w.active--
		w.last = now
		stands := kind == kindPost && s.code == http.StatusCreated
		w.stands = w.stands || stands
		w.mu.Unlock()
		if stands {
			w.posted <- now
		}
	}()
	w.next.ServeHTTP(s, r)
}

// The kinds of calls that are told apart.
const (
	kindPost     = "post"
	kindListing  = "listing"
	kindStanding = "standing"
	kindReaction = "reaction"
	kindLabel    = "label"
	kindPlaybook = "the repository's playbook"
)

var numbers = regexp.MustCompile(`/\d+`)

// kindOf names a call of Gitea's API; one without a name of its own is its
// method and path.
func kindOf(method, path string) string {
	plain := numbers.ReplaceAllString(path, "/N")
	switch {
	case strings.HasSuffix(plain, "/reactions"):
		return kindReaction
	case strings.Contains(plain, "/labels"):
		return kindLabel
	case strings.HasSuffix(plain, "recovery-playbook.yaml"):
		return kindPlaybook
	case strings.HasSuffix(plain, "/permission"):
		return kindStanding
	case strings.HasSuffix(plain, "/issues/N/comments") && method == http.MethodPost:
		return kindPost
	case strings.HasSuffix(plain, "/issues/N/comments"):
		return kindListing
	}
	return method + " " + plain
}

// taken returns the calls since the last time, by kind.
func (w *watch) taken() map[string]int {
	w.mu.Lock()
	defer w.mu.Unlock()
	calls := maps.Clone(w.calls)
	clear(w.calls)
	w.stands = false
	return calls
}

// answered waits for the next comment created.
func (w *watch) answered(ctx context.Context) (time.Time, error) {
	limit := time.NewTimer(20 * time.Second)
	defer limit.Stop()
	select {
	case at := <-w.posted:
		return at, nil
	case <-limit.C:
		return time.Time{}, errors.New("no answer within 20 s")
	case <-ctx.Done():
		return time.Time{}, context.Cause(ctx)
	}
}

// quiet waits until no call was made for a while: reactions and labels follow
// an answer, and are not to fall into the next one's time.
func (w *watch) quiet(ctx context.Context, while time.Duration) error {
	return tracker.Poll(ctx, while/4, func(context.Context) (bool, error) {
		w.mu.Lock()
		defer w.mu.Unlock()
		return w.active == 0 && time.Since(w.last) >= while, nil
	})
}
