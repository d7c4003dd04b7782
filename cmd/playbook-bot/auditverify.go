package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"playbook-bot/bot"
	"playbook-bot/bot/forge"
	"playbook-bot/bot/store"
)

// commentReader is what verifying needs of a forge.
type commentReader interface {
	Self(ctx context.Context) (forge.Account, error)
	Comments(ctx context.Context, repo, number int64, since time.Time) ([]forge.Comment, error)
}

// verified is what was found about one thread.
type verified struct {
	Thread  string   `json:"thread"`
	Entries int      `json:"entries"`
	Markers int      `json:"markers"`
	Broken  []string `json:"broken"`
	Notes   []string `json:"notes"`
}

type verification struct {
	Whole   bool       `json:"whole"`
	Offline bool       `json:"offline"`
	Threads []verified `json:"threads"`
}

func (a *app) verifyAudit(ctx context.Context, s *settings, db store.Store, threads []store.ThreadRef, f auditFlags) error {
	forges := map[string]*audited{}
	v := verification{Whole: true, Offline: f.offline, Threads: []verified{}}
	for _, t := range threads {
		var from *audited
		if !f.offline {
			var err error
			if from, err = s.auditedForge(ctx, forges, t.Forge); err != nil {
				return err
			}
		}
		one, err := verifyThread(ctx, s.Secrets(), db, t, from)
		if err != nil {
			return err
		}
		v.Whole = v.Whole && len(one.Broken) == 0
		v.Threads = append(v.Threads, one)
	}
	if f.json {
		if err := a.printJSON(v); err != nil {
			return err
		}
	} else {
		a.printVerification(v)
	}
	if !v.Whole {
		return errRefused
	}
	return nil
}

// audited is a forge whose comments are compared.
type audited struct {
	commentReader
	self forge.Account
}

// auditedForge connects to a forge once.
func (s *settings) auditedForge(ctx context.Context, have map[string]*audited, name string) (*audited, error) {
	if f, ok := have[name]; ok {
		return f, nil
	}
	i := slices.IndexFunc(s.Forges, func(t tracker) bool { return t.name == name })
	if i < 0 {
		return nil, fmt.Errorf("the log has threads of the forge %q, which is not configured; --offline checks them without it", name)
	}
	client, err := s.dial(s.Forges[i], nil, nil)
	if err != nil {
		return nil, err
	}
	self, err := client.Self(ctx)
	if err != nil {
		return nil, fmt.Errorf("ask who the bot is: %w", err)
	}
	have[name] = &audited{client, self}
	return have[name], nil
}

// verifyThread reads the comments first and the log after: an answer that the
// bot posts in between has its entry in the log already.
func verifyThread(ctx context.Context, secrets []string, db store.Store, t store.ThreadRef, from *audited) (verified, error) {
	out := verified{Thread: threadName(t), Broken: []string{}, Notes: []string{}}
	var comments []forge.Comment
	if from != nil {
		var err error
		comments, err = from.Comments(ctx, t.Repo.ID, t.Number, time.Time{})
		switch {
		case errors.Is(err, forge.ErrNotFound):
			out.Notes = append(out.Notes, "the thread is gone from the forge: the log was not compared with it")
		case err != nil:
			return out, fmt.Errorf("read the comments of %s: %w", out.Thread, err)
		}
	}
	// Row and log are read one after the other; a decision in between would
	// look like a break, so an unlucky read is repeated.
	var rows []store.AuditRow
	var check bot.AuditCheck
	for range 5 {
		thread, err := db.FindThread(ctx, t.Forge, t.Repo.ID, t.Number)
		if err != nil {
			return out, err
		}
		if rows, err = db.Audit(ctx, t.ID); err != nil {
			return out, err
		}
		if check = bot.CheckLog(secrets, rows, thread.State); len(check.Broken) == 0 {
			break
		}
	}
	if from != nil {
		check.CheckComments(secrets, t, rows, from.self, comments)
	}
	out.Entries, out.Markers = len(rows), check.Markers
	out.Broken = append(out.Broken, check.Broken...)
	out.Notes = append(out.Notes, check.Notes...)
	return out, nil
}

func (a *app) printVerification(v verification) {
	pg := &page{w: a.stdout}
	entries, markers, broken := 0, 0, 0
	for _, t := range v.Threads {
		entries, markers = entries+t.Entries, markers+t.Markers
		if len(t.Broken) > 0 {
			broken++
		}
		if len(t.Broken)+len(t.Notes) == 0 {
			continue
		}
		pg.head("%s", t.Thread)
		for _, b := range t.Broken {
			pg.item("BROKEN: %s", b)
		}
		for _, n := range t.Notes {
			pg.item("note: %s", n)
		}
	}
	compared := fmt.Sprintf("compared with %s in comments", count(markers, "marker", "markers"))
	if v.Offline {
		compared = "not compared with the threads"
	}
	if v.Whole {
		pg.head("WHOLE: %s in %s, %s", count(entries, "entry", "entries"), count(len(v.Threads), "thread", "threads"), compared)
	} else {
		pg.head("BROKEN: %d of %s; %s, %s", broken, count(len(v.Threads), "thread", "threads"), count(entries, "entry", "entries"), compared)
	}
}
