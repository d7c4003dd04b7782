package bot

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"playbook-bot/bot/forge"
	"playbook-bot/playbook"
	"playbook-bot/templates"
)

// overlayAge is how long a repository's own playbook is not asked for again;
// before an approval it always is. What is used meanwhile can only be stricter
// or laxer by one minute-old commit, and approves nothing.
const overlayAge = time.Minute

// overlayView is the policy that holds in one repository.
type overlayView struct {
	// book is the operator's playbook, tightened where a file says so.
	book *playbook.Playbook
	// problem says why the file that is there now cannot be used; then book is
	// tightened by the last one that could be, if held.
	problem *overlayProblem
	held    bool
	at      time.Time
}

// overlayProblem is a file that cannot be used, in words for the thread.
type overlayProblem struct {
	// version tells problems apart: a thread is told of each once.
	version string
	path    string
	commit  string // empty where not even that could be read
	why     string
}

// refuses reports whether nothing is known of what the repository wants: then
// no gated rung is approved there.
func (v *overlayView) refuses() bool { return v.problem != nil && !v.held }

// overlayVersion is a version of a repository's playbook, as kept in the
// ledger: the last that could be used.
type overlayVersion struct {
	Path    string `json:"path"`
	Commit  string `json:"commit"`
	Content []byte `json:"content"`
}

// overlayCache knows the playbooks of repositories.
type overlayCache struct {
	b  *Bot
	mu sync.Mutex
	m  map[standingKey]overlayView
}

func newOverlayCache(b *Bot) *overlayCache {
	return &overlayCache{b: b, m: map[standingKey]overlayView{}}
}

// look gives the policy of a repository, at most overlayAge old, or fresh. The
// error is the forge's: it does not answer, and asking again may help. With
// final even that is a file that cannot be read.
func (c *overlayCache) look(ctx context.Context, forgeName string, repo int64, fresh, final bool) (overlayView, error) {
	key, now := standingKey{forge: forgeName, repo: repo}, c.b.Now()
	c.mu.Lock()
	hit, ok := c.m[key]
	c.mu.Unlock()
	if ok && !fresh && now.Sub(hit.at) < overlayAge && !now.Before(hit.at) {
		return hit, nil
	}
	found, err := c.read(ctx, forgeName, repo)
	if err != nil && !final && passing(err) {
		return overlayView{}, err
	}
	v, err := c.view(ctx, key, found, err)
	if err != nil {
		return overlayView{}, err
	}
	v.at = now
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.m) > 10_000 {
		clear(c.m) // a bound, not a policy: the next look-ups fill it again
	}
	c.m[key] = v
	return v, nil
}

// passing reports an error that asking again may take away. An answer that
// came whole and was no file (a directory, a link, one without end) is none:
// who may push could otherwise silence the bot.
func passing(err error) bool {
	var fe *forge.Error
	return !errors.As(err, &fe) || errors.Is(err, forge.ErrRetry) && (fe.Status < 200 || fe.Status > 299) || fe.Status == http.StatusUnauthorized
}

// read gives the repository's file as it is now, nil where there is none. With
// an error the version still tells which file it was about.
func (c *overlayCache) read(ctx context.Context, forgeName string, repo int64) (*overlayVersion, error) {
	for _, path := range forge.PlaybookPaths(forgeName) {
		content, commit, err := c.b.Forges[forgeName].File(ctx, repo, path)
		switch {
		case err == nil:
			return &overlayVersion{Path: path, Commit: commit, Content: content}, nil
		case !errors.Is(err, forge.ErrNotFound):
			return &overlayVersion{Path: path}, err
		}
	}
	return nil, nil
}

// view makes a policy of what was read; unread is why nothing was. The last
// version that could be used is kept in the ledger, so that neither a restart
// of the bot nor another replica forgets it; a file that was removed is.
func (c *overlayCache) view(ctx context.Context, key standingKey, found *overlayVersion, unread error) (overlayView, error) {
	meta := fmt.Sprintf("overlay:%s:%d", key.forge, key.repo)
	kept, err := c.b.Ledger.Meta(ctx, meta)
	if err != nil {
		return overlayView{}, fmt.Errorf("read the last usable playbook of repository %d: %w", key.repo, err)
	}
	keep := func(value string) error {
		if value == kept {
			return nil
		}
		if err := c.b.Ledger.SetMeta(ctx, meta, value); err != nil {
			return fmt.Errorf("keep the playbook of repository %d: %w", key.repo, err)
		}
		return nil
	}
	if found == nil && unread == nil {
		return overlayView{book: c.b.Playbook}, keep("")
	}
	problem := &overlayProblem{version: "unread:" + found.Path, path: found.Path, commit: found.Commit}
	if unread != nil {
		problem.why = note(unread)
	} else {
		book, err := c.tighten(found)
		if err == nil {
			raw, err := json.Marshal(found)
			if err != nil {
				return overlayView{}, fmt.Errorf("write the playbook of repository %d: %w", key.repo, err)
			}
			return overlayView{book: book}, keep(string(raw))
		}
		problem.version, problem.why = found.Commit, faultText(err)
	}
	c.b.Log.WarnContext(ctx, "a repository's playbook cannot be used", "forge", key.forge, "repo", key.repo, "path", found.Path, "commit", found.Commit)
	v := overlayView{book: c.b.Playbook, problem: problem}
	var last overlayVersion
	if kept != "" && json.Unmarshal([]byte(kept), &last) == nil {
		if book, err := c.tighten(&last); err == nil {
			v.book, v.held = book, true
		}
	}
	return v, nil
}

// tighten holds a version against the operator's playbook.
func (c *overlayCache) tighten(v *overlayVersion) (*playbook.Playbook, error) {
	o, err := playbook.LoadOverlay(bytes.NewReader(v.Content))
	if err != nil {
		return nil, err
	}
	o.Commit = v.Commit
	return c.b.Playbook.Tighten(o)
}

// faultText is the first fault of a file, and how many more there are. What it
// quotes of the file it shows as code.
func faultText(err error) string {
	faults := playbook.Faults(err)
	if len(faults) == 0 {
		return err.Error()
	}
	f := faults[0]
	text := fmt.Sprintf("line %d", f.Line)
	if f.Field != "" {
		text += ", " + templates.Code(f.Field)
	}
	text += ": " + f.Why
	if n := len(faults) - 1; n > 0 {
		text += fmt.Sprintf(" (and %d more)", n)
	}
	return text
}

// policy is what holds in this repository; with fresh it is read
// anew, once in a turn. Where the forge does not answer, a text's turn comes
// again for a few seconds; after that the file counts as one that cannot be
// read. A turn that fails keeps tr.err, and what it goes on with is dropped.
func (tr *turn) policy(fresh bool) *playbook.Playbook {
	if tr.overlay != nil && (!fresh || tr.overlayFresh) {
		return tr.overlay.book
	}
	waits := tr.ev.ID != 0 && tr.now.Sub(tr.ev.ReceivedAt) < undecidedAfter
	v, err := tr.b.overlays.look(tr.ctx, tr.t.Forge, tr.repo.ID, fresh, !waits)
	if err != nil {
		v.book = tr.b.Playbook
		if tr.err == nil {
			tr.err = err
			if errForge(err) {
				tr.err = &waitError{d: time.Second}
			}
		}
	}
	tr.overlay, tr.overlayFresh = &v, fresh
	return v.book
}

// refuseInvalid refuses a gated rung where the repository's playbook cannot be
// used and no earlier version of it is known: it may forbid just this.
func (tr *turn) refuseInvalid(a *playbook.Assessment, r *request, weigh []playbook.Attempt) {
	rung, ok := tr.b.Playbook.Rung(a.Action)
	if !ok || !rung.Gated || !tr.overlay.refuses() {
		return
	}
	why := "this repository's playbook cannot be used, and no version of it that could be is known"
	if a.Matrix.Allowed {
		a.Code = playbook.CodePlaybookInvalid
		a.Reasons = append([]string{why}, a.Reasons...)
	} else {
		a.Reasons = append(a.Reasons, why)
	}
	a.Allowed, a.BreakGlass.Used = false, false
	if a.Next == a.Action {
		a.Next = ""
		rec := tr.overlay.book.RecommendActions(r.Symptoms, weigh)
		if next, ok := tr.overlay.book.Rung(rec.Next); ok && next.Rank < rung.Rank {
			a.Next = next.Action
		}
	}
	a.Missing = append(a.Missing, playbook.Missing{What: "playbook", Who: "whoever can push to the default branch",
		Text: "mend `" + tr.overlay.problem.path + "`"})
}

// refuse notes a refusal. Whoever mends a playbook that cannot be used need not
// come to the thread: the bot looks again itself, for an hour.
func (r *request) refuse(code playbook.Code, now time.Time) {
	r.Verdict, r.Code = verdictRefused, code
	switch {
	case code != playbook.CodePlaybookInvalid:
		r.Undecided = nil
	case r.Undecided == nil:
		r.Undecided = &undecided{Next: now.Add(undecidedEvery), Until: now.Add(undecidedUntil)}
	}
}

// tellOverlay tells the thread, once for each version, that the repository's
// playbook cannot be used, and what holds instead.
func (tr *turn) tellOverlay() {
	v := tr.overlay
	if v == nil || v.problem == nil || tr.st.OverlayTold == v.problem.version {
		return
	}
	tr.st.OverlayTold = v.problem.version
	p := v.problem
	text := templates.Code(p.path)
	if p.commit != "" {
		text += " at commit " + templates.Code(shortCommit(p.commit))
	}
	text += ": " + p.why
	if !strings.HasSuffix(text, "?") {
		text += "."
	}
	text += " "
	if v.held {
		text += "Until it is mended, its version of commit " + templates.Code(shortCommit(v.book.Identity().Overlay)) + " holds."
	} else {
		text += "Until it is mended, nothing that needs an attempt log is approved here."
	}
	tr.add(templates.Section{Kind: templates.KindNotice, Title: "📄 This repository's playbook cannot be used", Text: text})
}

func shortCommit(sha string) string { return sha[:min(12, len(sha))] }

// broadest is the broadest rung that a playbook leaves: what counts at all
// counts for it.
func broadest(p *playbook.Playbook) string {
	rungs := p.Rungs()
	slices.Reverse(rungs)
	i := slices.IndexFunc(rungs, func(r playbook.Rung) bool { return !r.Disabled })
	return rungs[max(i, 0)].Action
}
