package bot

import (
	"context"
	"regexp"
	"slices"
	"sync"
	"time"

	"playbook-bot/bot/comment"
	"playbook-bot/bot/forge"
)

// Before an approval the whole thread is listed, and an approval should cost
// three calls: listing, standing, post. So where an approval may come of a new
// comment, the listing serves for reading it as well. Whether one may is
// guessed from the delivery's text, which is not kept: a guess that is wrong, or
// was made in another process, costs a call and decides nothing.

// lively remembers comments just delivered that look as if they asked for
// something.
type lively struct {
	mu sync.Mutex
	m  map[livelyKey]bool
}

type livelyKey struct {
	forge   string
	repo    int64
	comment int64
}

// maxLively bounds what is remembered; it is a hint, and may be forgotten.
const maxLively = 10_000

var looksLively = regexp.MustCompile("(?mi)^\\W*(/[a-z]|@)|```|~~~|\\|")

func (l *lively) note(e forge.Event) {
	if e.Object.Kind != forge.ObjectComment || e.Action != forge.ActionCreated || len(e.Body) > comment.MaxBody || !looksLively.MatchString(e.Body) {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.m == nil || len(l.m) > maxLively {
		l.m = map[livelyKey]bool{}
	}
	l.m[livelyKey{e.Forge, e.Repo.ID, e.Object.ID}] = true
}

func (l *lively) take(key livelyKey) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	noted := l.m[key]
	delete(l.m, key)
	return noted
}

// atOnce is an adapter that lists a thread in one call, however long it is.
type atOnce interface{ ListsAtOnce() bool }

// firstLook reads a new text.
func (s *session) firstLook(ctx context.Context, o forge.Object) (text, error) {
	f, ok := s.forge.(atOnce)
	if o.Kind != forge.ObjectComment || !ok || !f.ListsAtOnce() || !s.b.lively.take(livelyKey{s.t.Forge, s.t.Repo.ID, o.ID}) || !s.approvable() {
		return s.fetch(ctx, o)
	}
	s.b.Fail("reading")
	comments, err := s.list(ctx)
	if err != nil {
		return text{}, err
	}
	i := slices.IndexFunc(comments, func(c forge.Comment) bool { return c.ID == o.ID })
	if i < 0 {
		return s.fetch(ctx, o) // a replica that does not have it yet
	}
	return s.attributed(ctx, commentText(comments[i]))
}

// approvable reports whether one more text may bring an approval.
func (s *session) approvable() bool {
	if s.st.Closed || s.st.Approval != nil {
		return false
	}
	if s.st.Request != nil {
		return true
	}
	weigh, _ := s.attempts()
	return slices.ContainsFunc(weigh, s.b.Playbook.Counts)
}

// list gives the whole thread, listed at most once in a turn.
func (s *session) list(ctx context.Context) ([]forge.Comment, error) {
	if s.listing != nil {
		return s.listing, nil
	}
	comments, err := s.forge.Comments(ctx, s.t.Repo.ID, s.t.Number, time.Time{})
	if err == nil && comments != nil {
		s.listing = comments
	}
	return comments, err
}
