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
// was made in another process, costs a call or some time and decides nothing.

// lively remembers what comments just delivered look as if they did.
type lively struct {
	mu sync.Mutex
	m  map[livelyKey]looks
}

type livelyKey struct {
	forge   string
	repo    int64
	comment int64
}

// looks are what a text looks like: it asks for an action or adopts a request;
// it brings attempts.
type looks struct{ asks, brings bool }

// maxLively bounds what is remembered; it is a hint, and may be forgotten.
const maxLively = 10_000

// A listing of a long thread takes its time, so only what could be approved
// upon is looked for: a command at the start of a line, also by the bot's name
// and behind list markers; a fence or a table.
var (
	looksAsking   = regexp.MustCompile(`(?mi)^\W*(@\S+\s+)?(restart|break-glass|endorse)\b`)
	looksBringing = regexp.MustCompile("(?mi)^\\W*(@\\S+\\s+)?(attempt|probe)\\b|```|~~~|\\|")
)

func (l *lively) note(e forge.Event) {
	if e.Object.Kind != forge.ObjectComment || e.Action != forge.ActionCreated || len(e.Body) > comment.MaxBody {
		return
	}
	k := looks{asks: looksAsking.MatchString(e.Body), brings: looksBringing.MatchString(e.Body)}
	if k == (looks{}) {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.m == nil || len(l.m) > maxLively {
		l.m = map[livelyKey]looks{}
	}
	l.m[livelyKey{e.Forge, e.Repo.ID, e.Object.ID}] = k
}

func (l *lively) take(key livelyKey) looks {
	l.mu.Lock()
	defer l.mu.Unlock()
	k := l.m[key]
	delete(l.m, key)
	return k
}

// firstLook reads a new text.
func (s *session) firstLook(ctx context.Context, o forge.Object) (text, error) {
	if o.Kind != forge.ObjectComment || !s.forge.ListsAtOnce() || !s.approvable(s.b.lively.take(livelyKey{s.t.Forge, s.t.Repo.ID, o.ID})) {
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

// approvable reports whether a text that looks like this may bring an approval.
func (s *session) approvable(k looks) bool {
	switch {
	case s.st.Closed || s.st.Approval != nil:
		return false
	case s.st.Request != nil:
		return k.asks || k.brings
	case !k.asks:
		return false
	case k.brings:
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
