package bot

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"playbook-bot/bot/forge"
	"playbook-bot/bot/store"
)

// watermarkOverlap is how far a sweep goes back behind the forge's clock at
// its last first page: updates are listed by whole seconds, and a transaction
// may become visible late.
const watermarkOverlap = 5 * time.Minute

// sweepLoop looks for what was missed: at start, and every SweepInterval.
func (b *Bot) sweepLoop(ctx context.Context) {
	wait := time.Duration(0)
	for {
		t := time.NewTimer(wait)
		select {
		case <-ctx.Done():
			t.Stop()
			return
		case <-t.C:
		}
		wait = b.SweepInterval
		for name := range b.Forges {
			if err := b.Sweep(ctx, name); err != nil && ctx.Err() == nil {
				b.Log.WarnContext(ctx, "sweep not finished; it starts where it was", "forge", name, "error", err)
				wait = min(b.SweepInterval, 10*time.Second)
			}
		}
	}
}

// Sweep compares what a forge shows with what is stored, in every repository
// of ours; each difference becomes an event.
func (b *Bot) Sweep(ctx context.Context, name string) error {
	if _, err := b.self(ctx, name); err != nil {
		return err
	}
	repos, err := b.sweepRepos(ctx, name)
	if err != nil {
		return err
	}
	var errs []error
	for _, r := range repos {
		if err := b.sweepRepo(ctx, name, r); err != nil {
			errs = append(errs, fmt.Errorf("sweep %s: %w", r.FullName(), err))
		}
	}
	return errors.Join(errs...)
}

// sweepRepos are the repositories to look through: those the forge lists for
// the configured patterns, and those known already under whatever name.
func (b *Bot) sweepRepos(ctx context.Context, name string) ([]forge.Repo, error) {
	var out []forge.Repo
	seen := map[int64]bool{}
	add := func(r forge.Repo) {
		if !seen[r.ID] && b.answersIn(name, r) {
			seen[r.ID] = true
			out = append(out, r)
		}
	}
	for _, item := range b.Repositories.On(name) {
		repos, err := b.matching(ctx, name, item)
		if err != nil {
			return nil, fmt.Errorf("look up the repositories: %w", err)
		}
		for _, r := range repos {
			add(r)
		}
	}
	rows, err := b.Ledger.Repos(ctx)
	if err != nil {
		return nil, err
	}
	for _, row := range rows {
		if row.Forge == name {
			add(row.Repo)
		}
	}
	return out, nil
}

// matching are the repositories that one entry of REPOSITORIES means. One
// that does not exist (yet, or any more, or on this forge) is no error: it is
// said once, and looked for again at the next sweep.
func (b *Bot) matching(ctx context.Context, forgeName, item string) ([]forge.Repo, error) {
	owner, name, _ := strings.Cut(item, "/")
	if name == "*" {
		repos, err := b.Forges[forgeName].ReposOf(ctx, owner)
		if errors.Is(err, forge.ErrNotFound) {
			return nil, nil // an owner of another forge, of several
		}
		for _, r := range repos {
			b.belongs(ctx, forgeName, r)
		}
		return repos, err
	}
	id, err := b.pin(ctx, forgeName, owner, name)
	if errors.Is(err, forge.ErrNotFound) {
		b.Log.WarnContext(ctx, "a repository of REPOSITORIES is not there, or not for the bot to see", "forge", forgeName, "repository", item)
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	r, gone, err := b.names.repo(ctx, forgeName, id)
	if gone {
		return nil, nil // deleted since; who takes the name now is another
	}
	return []forge.Repo{r}, err
}

func (b *Bot) sweepRepo(ctx context.Context, name string, r forge.Repo) error {
	sw := &sweep{b: b, name: name, repo: r, forge: b.Forges[name], self: b.mustSelf(name)}
	key := fmt.Sprintf("watermark:%s:%d", name, r.ID)
	mark, err := b.Ledger.Meta(ctx, key)
	if err != nil {
		return err
	}
	var since time.Time
	if mark != "" {
		if since, err = time.Parse(time.RFC3339, mark); err != nil {
			since = time.Time{} // unreadable: look through all of it
		}
	}
	first, err := sw.issues(ctx, since)
	if err != nil {
		return err
	}
	if err := sw.comments(ctx, since); err != nil {
		return err
	}
	if err := sw.openThreads(ctx); err != nil {
		return err
	}
	if sw.found > 0 {
		b.Log.InfoContext(ctx, "found what no delivery had told", "forge", name, "repo", r.ID, "events", sw.found)
	}
	if first.IsZero() {
		return nil // without the forge's clock the mark stays where it is
	}
	return b.Ledger.SetMeta(ctx, key, first.Add(-watermarkOverlap).UTC().Format(time.RFC3339))
}

func (b *Bot) mustSelf(name string) forge.Account {
	a, _ := b.selves.Load(name)
	self, _ := a.(forge.Account)
	return self
}

// sweep is one pass through one repository.
type sweep struct {
	b     *Bot
	name  string
	repo  forge.Repo
	forge Forge
	self  forge.Account
	found int
}

// issues compares the issues updated since; date is the forge's clock at the
// first page.
func (w *sweep) issues(ctx context.Context, since time.Time) (date time.Time, err error) {
	seen := map[forge.Object]bool{}
	for page := 1; ; page++ {
		issues, more, at, err := w.forge.UpdatedIssues(ctx, w.repo.ID, since, page)
		if err != nil {
			return date, err
		}
		if page == 1 {
			date = at
		}
		texts := make([]text, len(issues))
		for i, is := range issues {
			texts[i] = issueText(is)
		}
		if texts = unseen(texts, seen); len(texts) == 0 {
			return date, nil
		}
		if err := w.compare(ctx, texts, false); err != nil {
			return date, err
		}
		if !more {
			return date, nil
		}
	}
}

// unseen are the texts that no earlier page held: a server that gives the same
// page for ever is not followed.
func unseen(texts []text, seen map[forge.Object]bool) []text {
	var fresh []text
	for _, t := range texts {
		if !seen[t.Object] {
			seen[t.Object] = true
			fresh = append(fresh, t)
		}
	}
	return fresh
}

func (w *sweep) comments(ctx context.Context, since time.Time) error {
	seen := map[forge.Object]bool{}
	for page := 1; ; page++ {
		comments, more, _, err := w.forge.UpdatedComments(ctx, w.repo.ID, since, page)
		if err != nil {
			return err
		}
		texts := make([]text, len(comments))
		for i, c := range comments {
			texts[i] = commentText(c)
		}
		if texts = unseen(texts, seen); len(texts) == 0 {
			return nil
		}
		if err := w.compare(ctx, texts, false); err != nil {
			return err
		}
		if !more {
			return nil
		}
	}
}

// openThreads lists in full each thread with an open request or standing
// approval: only there does a deletion that nobody told of matter.
func (w *sweep) openThreads(ctx context.Context) error {
	refs, err := w.b.Ledger.OpenThreads(ctx, w.name, w.repo.ID)
	if err != nil {
		return err
	}
	for _, ref := range refs {
		if err := w.openThread(ctx, ref); err != nil {
			return err
		}
	}
	return nil
}

func (w *sweep) openThread(ctx context.Context, ref store.ThreadRef) error {
	is, err := w.forge.Issue(ctx, w.repo.ID, ref.Number)
	if errors.Is(err, forge.ErrNotFound) {
		return w.accept(ctx, []store.Incoming{w.incoming(text{Object: forge.Object{Kind: forge.ObjectIssue, ID: ref.Number}, number: ref.Number}, forge.ActionDeleted)})
	}
	if err != nil {
		return err
	}
	comments, err := w.forge.Comments(ctx, w.repo.ID, ref.Number, time.Time{})
	if err != nil {
		return err
	}
	texts := []text{issueText(is)}
	listed := map[forge.Object]bool{}
	for _, c := range comments {
		t := commentText(c)
		listed[t.Object] = true
		texts = append(texts, t)
	}
	objects, err := w.b.Ledger.Objects(ctx, ref.ID)
	if err != nil {
		return err
	}
	var gone []store.Incoming
	for _, o := range objects {
		if o.Kind == forge.ObjectComment && !o.Deleted && !listed[o.Object] {
			gone = append(gone, w.incoming(text{Object: o.Object, number: ref.Number, author: o.Author}, forge.ActionDeleted))
		}
	}
	if err := w.accept(ctx, gone); err != nil {
		return err
	}
	return w.compare(ctx, texts, true)
}

// compare finds what differs from what is stored. known: the thread is one
// of ours.
func (w *sweep) compare(ctx context.Context, texts []text, known bool) error {
	objs := make([]forge.Object, len(texts))
	for i, t := range texts {
		objs[i] = t.Object
	}
	have, err := w.b.Ledger.KnownObjects(ctx, w.name, w.repo.ID, objs)
	if err != nil {
		return err
	}
	now := w.b.Now()
	var out []store.Incoming
	for _, t := range texts {
		k, stored := have[t.Object]
		if !stored {
			if t, err = w.b.attribute(ctx, w.name, w.repo.ID, w.self, t); err != nil {
				return err
			}
		}
		switch {
		case w.b.Ignored(t.author.Login):
		case stored && k.BodySHA == bodySHA(t.body) && !k.Deleted:
			if t.Kind == forge.ObjectIssue {
				state, err := w.stateHint(ctx, t)
				if err != nil {
					return err
				}
				out = append(out, state...)
			}
		case stored:
			out = append(out, w.incoming(t, forge.ActionEdited))
		case t.author.ID == w.self.ID && t.Kind == forge.ObjectComment:
			// One of our own in a thread that the database has lost: reading
			// it again is what the hint is for.
			out = append(out, w.incoming(t, forge.ActionEdited))
		case now.Sub(t.created) < lateDelivery:
			// Its delivery may be on the way; the next sweep sees it again.
		case known || now.Sub(t.created) < foundAge:
			out = append(out, w.incoming(t, opening(t)))
		}
	}
	return w.accept(ctx, out)
}

func opening(t text) forge.Action {
	if t.Kind == forge.ObjectIssue {
		return forge.ActionOpened
	}
	return forge.ActionCreated
}

// stateHint tells of an issue that was closed or reopened unheard.
func (w *sweep) stateHint(ctx context.Context, t text) ([]store.Incoming, error) {
	th, err := w.b.Ledger.FindThread(ctx, w.name, w.repo.ID, t.number)
	if isNotStored(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	st, err := decodeState(th.State)
	if err != nil || st.Closed == t.closed || len(th.State) == 0 {
		return nil, err
	}
	action := forge.ActionReopened
	if t.closed {
		action = forge.ActionClosed
	}
	return []store.Incoming{w.incoming(t, action)}, nil
}

func (w *sweep) incoming(t text, a forge.Action) store.Incoming {
	return store.Incoming{Forge: w.name, Delivery: "sweep", Repo: w.repo, Number: t.number, Object: t.Object, Action: a,
		Author: t.author, BodySHA: bodySHA(t.body), Source: store.SourceSweep}
}

func (w *sweep) accept(ctx context.Context, in []store.Incoming) error {
	if len(in) == 0 {
		return nil
	}
	taken, err := w.b.Ledger.AcceptFound(ctx, in)
	w.found += taken
	for range taken {
		w.b.Observe(Observation{What: "sweep_found"})
	}
	return err
}

// Patterns is REPOSITORIES: owner/name, or owner/* for all of an owner's.
// "forge:" before it is the forge it is on; without that it is on every forge.
type Patterns []string

// On gives the patterns of one forge, without its name.
func (p Patterns) On(forgeName string) Patterns {
	var out Patterns
	for _, item := range p {
		name, rest, qualified := strings.Cut(item, ":")
		switch {
		case !qualified:
			out = append(out, item)
		case name == forgeName:
			out = append(out, rest)
		}
	}
	return out
}

// ParsePatterns reads a comma list of owner/name and owner/*.
func ParsePatterns(items []string) (Patterns, error) {
	var out Patterns
	for i, item := range items {
		item = strings.TrimSpace(item)
		owner, name, ok := strings.Cut(item, "/")
		if !ok || owner == "" || name == "" || owner == "*" || strings.Contains(name, "/") || strings.Contains(name, "*") && name != "*" {
			return nil, fmt.Errorf("entry %d is neither owner/name nor owner/*", i+1)
		}
		out = append(out, item)
	}
	if len(out) == 0 {
		return nil, errors.New("no repository is named")
	}
	return out, nil
}
