//go:build unix

package tracker

import (
	"context"
	"time"
)

// World is a repository as a scenario sees it: people who write, and a thread
// to read. Every doer is named by login; ids are the forge's.
type World interface {
	// Open opens an issue and returns its number.
	Open(ctx context.Context, as, title, body string) (number int64, err error)
	// EditIssue sets an issue's body, and its title unless that is empty.
	EditIssue(ctx context.Context, as string, number int64, title, body string) error
	DeleteIssue(ctx context.Context, as string, number int64) error
	// SetClosed closes an issue or opens it again.
	SetClosed(ctx context.Context, as string, number int64, closed bool) error
	// Lock locks an issue's conversation.
	Lock(ctx context.Context, as string, number int64) error
	// Comment returns the new comment's id.
	Comment(ctx context.Context, as string, number int64, body string) (id int64, err error)
	EditComment(ctx context.Context, as string, id int64, body string) error
	DeleteComment(ctx context.Context, as string, id int64) error
	// Thread reads an issue and all its comments as the forge holds them.
	Thread(ctx context.Context, number int64) (Thread, error)
	// Reactions reads who reacted how to the issue itself (comment 0) or to
	// one of its comments: content ("eyes", "+1", …) to logins.
	Reactions(ctx context.Context, number, comment int64) (map[string][]string, error)
}

// Thread is an issue as the forge holds it.
type Thread struct {
	Number int64
	Title  string
	Closed bool
	Locked bool
	// Labels are names, as the forge orders them.
	Labels []string
	// Entries are the issue's body, whose ID is 0, and the comments by id.
	Entries []Entry
}

// Entry is one text of a thread.
type Entry struct {
	ID               int64
	Author           string
	Body             string
	Created, Updated time.Time
}

// After are the entries by an author that came after a comment.
func (t Thread) After(id int64, author string) []Entry {
	var found []Entry
	for _, e := range t.Entries {
		if e.ID > id && e.Author == author {
			found = append(found, e)
		}
	}
	return found
}

// Await reads a thread until it is as wanted, and returns it as last read. It
// ends with ctx, whose cause is then the error.
func Await(ctx context.Context, w World, number int64, wanted func(Thread) bool) (Thread, error) {
	var last Thread
	err := Poll(ctx, 100*time.Millisecond, func(ctx context.Context) (bool, error) {
		thread, err := w.Thread(ctx, number)
		if err != nil {
			return false, err
		}
		last = thread
		return wanted(thread), nil
	})
	return last, err
}
