package github

import (
	"errors"
	"net/http"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"playbook-bot/bot/forge"
	"playbook-bot/bot/forge/forgetest"
	"playbook-bot/bot/forge/internal/wire"
)

// TestThePrimaryLimit: when the hour's calls are used up no more is made until
// the reset, which the last answer already told.
func TestThePrimaryLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		f.SetRateLimit(3)
		for range 3 {
			ok(f.c.Comment(t.Context(), f.repo.ID, f.comment))(t)
		}
		made := len(f.Calls())
		_, err := f.c.CreateComment(t.Context(), f.repo.ID, f.issue, "x")
		e := want(t, err, forge.ErrRetry)
		if e.RetryAfter != time.Hour || e.Ambiguous || len(f.Calls()) != made {
			t.Errorf("retry after %v, ambiguous %v, %d calls more", e.RetryAfter, e.Ambiguous, len(f.Calls())-made)
		}
		<-time.After(time.Hour)
		ok(f.c.CreateComment(t.Context(), f.repo.ID, f.issue, "x"))(t)
	})
}

// TestSecondaryLimits: a stated wait is kept to the second; without one it is a
// minute, and twice as long each time GitHub asks again.
func TestSecondaryLimits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		read := func() error {
			_, err := f.c.Comment(t.Context(), f.repo.ID, f.comment)
			return err
		}
		f.OrderKind("comment.read", forgetest.RateLimited(403, 9*time.Second))
		if e := want(t, read(), forge.ErrRetry); e.RetryAfter != 9*time.Second {
			t.Errorf("stated: %v", e.RetryAfter)
		}
		made := len(f.Calls())
		<-time.After(8 * time.Second)
		if e := want(t, read(), forge.ErrRetry); e.RetryAfter != time.Second || e.Status != 403 || len(f.Calls()) != made {
			t.Errorf("held: %v, status %d, %d calls", e.RetryAfter, e.Status, len(f.Calls())-made)
		}
		<-time.After(time.Second)
		if err := read(); err != nil {
			t.Error(err)
		}
		burst := forgetest.Fault{Status: 403, Header: http.Header{"Content-Type": {"application/json"}},
			Body: `{"message":"You have exceeded a secondary rate limit","documentation_url":"x"}`}
		f.OrderKind("comment.read", burst.For(6))
		for i, minutes := range []int{1, 2, 4, 8, 16, 16} {
			e := want(t, read(), forge.ErrRetry)
			if e.RetryAfter != time.Duration(minutes)*time.Minute {
				t.Errorf("time %d: %v, want %d minutes", i, e.RetryAfter, minutes)
			}
			<-time.After(e.RetryAfter)
		}
		if err := read(); err != nil {
			t.Error(err)
		}
		f.OrderKind("comment.read", burst)
		if e := want(t, read(), forge.ErrRetry); e.RetryAfter != time.Minute {
			t.Errorf("after an answer it begins anew: %v", e.RetryAfter)
		}
	})
}

// TestABurstIsOneStrike: calls that were under way together are refused
// together.
func TestABurstIsOneStrike(t *testing.T) {
	now := time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)
	ex := &wire.Exchange{Status: 403, Header: http.Header{"Content-Type": {"application/json"}, "X-Github-Request-Id": {"1"}},
		Refusal: []byte(`{"message":"secondary rate limit"}`)}
	var l limits
	for range 5 {
		l.note("a", ex, now)
	}
	if got := l.note("a", ex, now.Add(10*time.Minute)); got != 2*time.Minute {
		t.Errorf("the next wait is %v, want 2 minutes", got)
	}
	if l.held("b", wire.Read("x", "x"), now) != nil {
		t.Error("another account is held too")
	}
}

// TestTheResetIsOfGitHubsClock, whatever ours says.
func TestTheResetIsOfGitHubsClock(t *testing.T) {
	now := time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)
	theirs := now.Add(-3 * time.Hour)
	ex := &wire.Exchange{Status: 200, Header: http.Header{
		"Content-Type": {"application/json"}, "Date": {theirs.Format(http.TimeFormat)},
		"X-Ratelimit-Remaining": {"0"}, "X-Ratelimit-Reset": {strconv.FormatInt(theirs.Add(90*time.Second).Unix(), 10)}}}
	var l limits
	l.note("a", ex, now)
	e := l.held("a", wire.Read("x", "x"), now)
	if e == nil || e.RetryAfter != 90*time.Second || !errors.Is(e, forge.ErrRetry) {
		t.Errorf("held: %+v", e)
	}
	ex.Header.Set("X-RateLimit-Reset", "soon")
	var other limits
	if other.note("a", ex, now); other.held("a", wire.Read("x", "x"), now) != nil {
		t.Error("a reset that is no number holds")
	}
}

// TestAnAnswerWithoutALimitHoldsNobody, not even a call whose clock was read a
// moment before.
func TestAnAnswerWithoutALimitHoldsNobody(t *testing.T) {
	now := time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)
	var l limits
	l.note("a", &wire.Exchange{Status: 200, Header: http.Header{"Content-Type": {"application/json"}}}, now)
	if e := l.held("a", wire.Read("x", "x"), now.Add(-time.Millisecond)); e != nil {
		t.Errorf("held: %v", e)
	}
}
