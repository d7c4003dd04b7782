package webhook

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// shelf is a Keeper that counts its writes.
type shelf struct {
	mu     sync.Mutex
	m      map[string]string
	writes int
	err    error
}

func (s *shelf) Meta(ctx context.Context, key string) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.m[key], errors.Join(s.err, ctx.Err())
}

func (s *shelf) SetMeta(ctx context.Context, key, value string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.m == nil {
		s.m = map[string]string{}
	}
	s.m[key] = value
	s.writes++
	return errors.Join(s.err, ctx.Err())
}

// count is how often the shelf was written to.
func (s *shelf) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.writes
}

const hookPath = "/webhook/gitea/repo/41"

func TestRecorder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kept := &shelf{}
		r := NewRecorder(kept, nil, nil)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { defer close(done); r.Run(ctx) }()
		record := func() Record {
			synctest.Wait()
			rec, err := ReadRecord(t.Context(), kept, hookPath)
			if err != nil {
				t.Fatal(err)
			}
			return rec
		}
		if rec := record(); rec != (Record{}) {
			t.Errorf("before any delivery: %+v", rec)
		}
		first := time.Now().UTC()
		r.Note(hookPath, http.StatusAccepted, "")
		if rec := record(); !rec.AcceptedAt.Equal(first) || !rec.RefusedAt.IsZero() {
			t.Errorf("one taken: %+v", rec)
		}
		// What comes within a second is written once, after it.
		for range 100 {
			r.Note(hookPath, http.StatusUnauthorized, "the signature does not fit")
			<-time.After(time.Millisecond)
		}
		if kept.count() != 1 {
			t.Errorf("%d writes within a second", kept.count())
		}
		<-time.After(recordEvery)
		rec := record()
		if kept.count() != 2 || !rec.AcceptedAt.Equal(first) || rec.RefusedAt.Before(first) || rec.Status != 401 || rec.Why != "the signature does not fit" {
			t.Errorf("after %d writes: %+v", kept.count(), rec)
		}
		// A database that is away says nothing of the hook.
		<-time.After(2 * recordEvery)
		r.Note(hookPath, http.StatusServiceUnavailable, "no database")
		if got := record(); got != rec {
			t.Errorf("after 503: %+v", got)
		}
		// The end of the process loses nothing.
		<-time.After(2 * recordEvery)
		r.Note(hookPath, http.StatusAccepted, "")
		synctest.Wait()
		last := time.Now().UTC()
		r.Note(hookPath, http.StatusAccepted, "")
		cancel()
		<-done
		if got := record(); !got.AcceptedAt.Equal(last) {
			t.Errorf("at the end: %+v, want %s", got, last)
		}
	})
}

// TestRecorderIsBounded: who only sends what is refused cannot fill anything.
func TestRecorderIsBounded(t *testing.T) {
	kept := &shelf{}
	r := NewRecorder(kept, nil, nil)
	for id := range int64(10_000) {
		r.Note(HookPath("gitea", ScopeRepo, id+1), http.StatusUnauthorized, "the signature does not fit")
	}
	r.write(t.Context())
	if kept.count() != maxRefused {
		t.Errorf("%d paths kept, want %d", kept.writes, maxRefused)
	}
	// A hook that works is kept all the same.
	r.Note(HookPath("gitea", ScopeRepo, 20_000), http.StatusAccepted, "")
	r.write(t.Context())
	if kept.count() != maxRefused+1 {
		t.Error("an accepted delivery was not kept")
	}
}

// TestRecorderDoesNotGoBack: a replica that is behind, or whose clock is, does
// not overwrite what is newer.
func TestRecorderDoesNotGoBack(t *testing.T) {
	kept := &shelf{}
	at := time.Date(2026, 12, 1, 3, 0, 0, 0, time.UTC)
	ahead := NewRecorder(kept, nil, func() time.Time { return at })
	behind := NewRecorder(kept, nil, func() time.Time { return at.Add(-time.Hour) })
	ahead.Note(hookPath, http.StatusAccepted, "")
	ahead.write(t.Context())
	behind.Note(hookPath, http.StatusAccepted, "")
	behind.write(t.Context())
	if rec, err := ReadRecord(t.Context(), kept, hookPath); err != nil || !rec.AcceptedAt.Equal(at) {
		t.Errorf("%+v, %v", rec, err)
	}
}

func TestReadRecordErrors(t *testing.T) {
	away := errors.New("away")
	if _, err := ReadRecord(t.Context(), &shelf{err: away}, hookPath); !errors.Is(err, away) {
		t.Errorf("%v", err)
	}
	if _, err := ReadRecord(t.Context(), &shelf{m: map[string]string{recordKey(hookPath): "{"}}, hookPath); err == nil {
		t.Error("nonsense was read")
	}
}

// TestHandlerRecords: what is no hook's path is not told, and a reason is in
// words of our own.
func TestHandlerRecords(t *testing.T) {
	var told []string
	in := newIntake(t, func(cfg *Config) {
		cfg.Record = func(path string, status int, why string) {
			told = append(told, fmt.Sprintf("%s %d %s", path, status, why))
		}
	})
	for _, path := range []string{hookPath, "/webhook/gitea/repo/041", "/webhook/nobody/repo/41"} {
		in.post(http.MethodPost, path, http.Header{"Content-Type": {"application/json"}}, strings.NewReader("{}"))
	}
	if want := hookPath + " 401 the signature does not fit"; len(told) != 1 || strings.TrimSpace(told[0]) != want {
		t.Errorf("told %q, want %q", told, want)
	}
}
