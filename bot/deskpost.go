package bot

import (
	"context"
	"errors"
	"fmt"
	"time"

	"playbook-bot/bot/forge"
	"playbook-bot/bot/store"
)

// posting is one text on its way into the tracker.
type posting struct {
	seat
	tool     string
	kind     forge.ObjectKind
	number   int64 // of the thread, 0 for an issue
	body     string
	question string
	most     int
	// create posts the body. It is not idempotent.
	create func(ctx context.Context, body string) (number, object int64, stored string, err error)
	// over reports whether an equal filing that stands is over, so that asking
	// again is asking anew; else the request it made.
	over func(ctx context.Context, f store.Filing) (over bool, request string, err error)
}

// turnsToClaim bounds how often a claim is looked at again because it moved.
const turnsToClaim = 4

// post brings a text from claim to proof: at most one lasting text for a
// question, whatever crashes or is asked twice.
func (d *Desk) post(ctx context.Context, p posting) (Filed, error) {
	c := store.FilingClaim{
		Filing: store.Filing{Key: newFilingKey(), Forge: d.forge, Repo: p.repo.ID, Account: p.account.ID, Kind: p.kind, Number: p.number, Question: p.question},
		TTL:    d.b.RequestTimeout, Most: p.most, Within: time.Hour,
	}
	for range turnsToClaim {
		// The deadline is measured from before the claim: whatever the
		// database's clock says later, this POST is over by then.
		limit := time.Now().Add(d.b.RequestTimeout)
		f, claimed, err := d.b.Ledger.ClaimFiling(ctx, c)
		switch {
		case errors.Is(err, store.ErrTooMany):
			return Filed{}, &DeskError{Why: fmt.Sprintf("%s has filed %d within the hour, which is the most", p.account.Login, p.most), Cure: "wait, or go on in the issues there are"}
		case err != nil:
			return Filed{}, err
		case claimed:
			d.b.Fail("filing-claimed")
			return d.create(ctx, p, f, limit)
		case f.Status == store.FilingPosted:
			over, request, err := p.over(ctx, f)
			if err != nil {
				return Filed{}, err
			}
			if !over {
				return d.standing(ctx, p, f, request)
			}
			c.Over, c.Key = f.Key, newFilingKey()
			continue
		}
		out, again, err := d.reconcile(ctx, p, f)
		if err != nil || !again {
			return out, err
		}
	}
	return Filed{}, &DeskError{Why: "somebody else is filing the same", Cure: "ask again in a few seconds; it is not filed twice"}
}

// standing answers for a filing that stands, and makes sure that the worker
// hears of it: whoever filed it may have died before saying so.
func (d *Desk) standing(ctx context.Context, p posting, f store.Filing, request string) (Filed, error) {
	out := p.filed(f)
	out.Request, out.Existing = request, true
	if request != "" {
		return out, nil
	}
	t, err := d.read(ctx, p, f)
	if err != nil {
		return out, nil // the sweep will find it; that it stands is known
	}
	return out, d.handOver(ctx, p, f, t.body)
}

func (d *Desk) read(ctx context.Context, p posting, f store.Filing) (text, error) {
	if p.kind == forge.ObjectIssue {
		i, err := d.b.Forges[d.forge].Issue(ctx, p.repo.ID, f.Object)
		return issueText(i), err
	}
	c, err := d.b.Forges[d.forge].Comment(ctx, p.repo.ID, f.Object)
	return commentText(c), err
}

func (p posting) filed(f store.Filing) Filed {
	out := Filed{Repo: p.repo, Number: f.Number}
	if p.kind == forge.ObjectComment {
		out.Comment = f.Object
	}
	return out
}

// create posts a claimed text. Once begun it does not end with the caller: an
// agent that hangs up must not leave behind what nobody knows the end of.
func (d *Desk) create(ctx context.Context, p posting, f store.Filing, limit time.Time) (Filed, error) {
	ctx = context.WithoutCancel(ctx)
	m := filingMark{Key: f.Key, Account: p.account, Tool: p.tool, At: f.ClaimedAt}
	body := signFiling(d.b.Secrets()[0], filingPlace(d.forge, p.repo.ID, p.kind, p.number), m, p.body)
	if !time.Now().Before(limit) {
		// The process slept past its own deadline.
		return Filed{}, &DeskError{Why: "it took too long", Cure: "ask again in a minute; it is not filed twice"}
	}
	post, cancel := context.WithDeadline(ctx, limit)
	number, object, stored, err := p.create(post, body)
	cancel()
	d.b.Fail("filing-posted")
	if err != nil {
		return d.failed(ctx, p, f, err)
	}
	f.Number, f.Object = number, object
	return d.settle(ctx, p, f, stored)
}

// settle records what stands, and hands it over to the worker, who need not
// wait for the forge's delivery.
func (d *Desk) settle(ctx context.Context, p posting, f store.Filing, stored string) (Filed, error) {
	bound, err := d.b.Ledger.SettleFiling(ctx, f)
	if err != nil {
		return Filed{}, err
	}
	if !bound {
		return Filed{}, fmt.Errorf("filing %s was posted as %s %d of repository %d and is bound to another text", f.Key, f.Kind, f.Object, f.Repo)
	}
	d.b.Fail("filing-settled")
	if err := d.handOver(ctx, p, f, stored); err != nil {
		return Filed{}, err
	}
	d.b.Fail("filing-accepted")
	d.b.Log.InfoContext(ctx, "filed for an account", "repo", f.Repo, "thread", f.Number, "kind", string(f.Kind), "account", p.account.ID, "tool", p.tool)
	return p.filed(f), nil
}

func (d *Desk) handOver(ctx context.Context, p posting, f store.Filing, stored string) error {
	t := text{Object: forge.Object{Kind: p.kind}}
	_, err := d.b.Ledger.AcceptFound(ctx, []store.Incoming{{
		Forge: d.forge, Delivery: "tool", Repo: p.repo, Number: f.Number, Object: forge.Object{Kind: p.kind, ID: f.Object},
		Action: opening(t), Sender: p.account, Author: p.account, BodySHA: bodySHA(stored), Source: store.SourceTool,
	}})
	return err
}

// failed sorts out a POST that brought an error.
func (d *Desk) failed(ctx context.Context, p posting, f store.Filing, err error) (Filed, error) {
	var fe *forge.Error
	if !errors.As(err, &fe) {
		fe = &forge.Error{Op: "file for an account", Kind: forge.ErrRetry, Ambiguous: true, Cause: err}
	}
	d.b.Log.WarnContext(ctx, "not filed", "repo", f.Repo, "kind", string(f.Kind), "ambiguous", fe.Ambiguous, "error", fe)
	if fe.Ambiguous {
		if found, stored, ferr := d.find(ctx, p, f); ferr == nil && found.Object != 0 {
			return d.settle(ctx, p, found, stored)
		}
		return Filed{}, d.mayStand(f, f.ClaimedAt)
	}
	if verr := d.b.Ledger.VoidFiling(ctx, f.Key); verr != nil {
		return Filed{}, verr
	}
	if errors.Is(fe, forge.ErrRetry) {
		return Filed{}, &DeskError{Why: "the forge does not take it now", Cure: "ask again in a minute"}
	}
	return Filed{}, &DeskError{Why: "the forge refuses it: the repository may be archived, or the bot's account lack the right", Cure: "the bot's operator looks into it"}
}

// mayStand is the answer while nobody knows.
func (d *Desk) mayStand(f store.Filing, now time.Time) error {
	wait := d.settled(f).Sub(now).Round(time.Second)
	return &DeskError{Why: "nobody knows yet whether it was filed: the forge gave no answer",
		Cure: fmt.Sprintf("ask again in %s with the same arguments; it is not filed twice", max(wait, time.Second))}
}

// settled is when nothing of a claim can be in flight any more.
func (d *Desk) settled(f store.Filing) time.Time { return f.Deadline.Add(d.b.SettleUnknown) }

// reconcile looks for a filing whose end nobody knows, and files it again only
// after it could no longer appear. again: somebody else moved first.
func (d *Desk) reconcile(ctx context.Context, p posting, f store.Filing) (out Filed, again bool, err error) {
	now, err := d.b.Ledger.Now(ctx)
	if err != nil {
		return Filed{}, false, err
	}
	found, stored, err := d.find(ctx, p, f)
	switch {
	case err != nil:
		return Filed{}, false, err
	case found.Object != 0:
		d.b.Observe(Observation{What: "adopted"})
		out, err := d.settle(ctx, p, found, stored)
		out.Existing = true
		return out, false, err
	case now.Before(d.settled(f)):
		return Filed{}, false, d.mayStand(f, now)
	}
	limit := time.Now().Add(d.b.RequestTimeout)
	f, ok, err := d.b.Ledger.ReclaimFiling(ctx, f, d.b.RequestTimeout)
	if err != nil || !ok {
		return Filed{}, err == nil, err
	}
	out, err = d.create(ctx, p, f, limit)
	return out, false, err
}

// find looks for the text that bears a filing's key. found.Object is 0 where
// there is none.
func (d *Desk) find(ctx context.Context, p posting, f store.Filing) (found store.Filing, stored string, err error) {
	seen := func(t text) bool {
		m, ok := readFiling(d.b.Secrets(), filingPlace(d.forge, p.repo.ID, t.Kind, t.number), t.body)
		if !ok || t.author.ID != p.self.ID || m.Key != f.Key {
			return false
		}
		found, stored = f, t.body
		found.Number, found.Object = t.number, t.ID
		return true
	}
	if p.kind == forge.ObjectComment {
		comments, err := d.b.Forges[d.forge].Comments(ctx, p.repo.ID, f.Number, time.Time{})
		if err != nil {
			return f, "", err
		}
		for _, c := range comments {
			if seen(commentText(c)) {
				return found, stored, nil
			}
		}
		return store.Filing{}, "", nil
	}
	since, err := d.forgeTime(ctx, p.repo.ID, f.ClaimedAt)
	if err != nil {
		return f, "", err
	}
	for page := 1; ; page++ {
		issues, more, _, err := d.b.Forges[d.forge].UpdatedIssues(ctx, p.repo.ID, since, page)
		if err != nil {
			return f, "", err
		}
		for _, i := range issues {
			if seen(issueText(i)) {
				return found, stored, nil
			}
		}
		if !more {
			return store.Filing{}, "", nil
		}
	}
}

// forgeTime is a time of the database's clock by the forge's clock, less the
// overlap of a sweep; zero, which lists everything, where the forge tells no
// time.
func (d *Desk) forgeTime(ctx context.Context, repo int64, at time.Time) (time.Time, error) {
	now, err := d.b.Ledger.Now(ctx)
	if err != nil {
		return time.Time{}, err
	}
	_, _, date, err := d.b.Forges[d.forge].UpdatedIssues(ctx, repo, now.Add(24*time.Hour), 1)
	if err != nil || date.IsZero() {
		return time.Time{}, err
	}
	return date.Add(at.Sub(now)).Add(-watermarkOverlap), nil
}
