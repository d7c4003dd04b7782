package bot

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"time"

	"playbook-bot/bot/forge"
	"playbook-bot/bot/store"
	"playbook-bot/playbook"
)

// Desk puts requests and records into one forge's threads in the name of
// accounts that ask through tools, by the bot's own account and under a signed
// marker. It judges nothing: the worker does, by the requester's standing.
// Safe for concurrent use; errors fit for the caller are *DeskError.
type Desk struct {
	b     *Bot
	forge string
}

// Desk gives the desk for a forge of the configuration.
func (b *Bot) Desk(forgeName string) *Desk { return &Desk{b: b, forge: forgeName} }

// Filing is a request as an agent makes it.
type Filing struct {
	// Account is the login that the agent's token belongs to; the desk binds
	// it to the id that bears it when first asked.
	Account, Tool string
	// Repository is "owner/name".
	Repository string
	// Action is a rung of the ladder, in its own spelling.
	Action, Target string
	Symptoms       []string
	Reason         string
	BreakGlass     bool
	// Attempts are valid records.
	Attempts []playbook.Attempt
}

// Recording is an attempt for a thread.
type Recording struct {
	Account, Tool string
	Repository    string
	Number        int64
	Attempt       playbook.Attempt
}

// Filed says where something was put.
type Filed struct {
	Repo   forge.Repo
	Number int64
	// Comment is the comment's id, 0 for a request.
	Comment int64
	// Request is its id where the bot has given it one already.
	Request string
	// Existing: it was there before.
	Existing bool
}

// DeskError is why the desk did not do it, and the cure, in words fit for the
// caller.
type DeskError struct{ Why, Cure string }

func (e *DeskError) Error() string {
	if e.Cure == "" {
		return e.Why
	}
	return e.Why + "; " + e.Cure
}

// Limits an hour and account, over all repositories.
const (
	requestsPerHour = 5
	recordsPerHour  = 30
)

// repeatedWithin: a record without a time of its own that comes again within
// this is the same one, sent again by a host that got no answer.
const repeatedWithin = 10 * time.Minute

// seat is somebody's place at the desk: who asks about which repository.
type seat struct {
	repo    forge.Repo
	account forge.Account
	self    forge.Account
	look    look
}

// enter finds out who asks about which repository: one of ours, which the
// account can read.
func (d *Desk) enter(ctx context.Context, login, repository string) (seat, error) {
	refused := &DeskError{Why: "that is none of this bot's repositories, or " + login + " cannot read it"}
	owner, name, ok := strings.Cut(repository, "/")
	if !ok || d.b.Ignored(login) {
		return seat{}, refused
	}
	self, err := d.b.self(ctx, d.forge)
	if err != nil {
		return seat{}, err
	}
	s := seat{self: self}
	if s.repo, err = d.b.Forges[d.forge].RepoByName(ctx, owner, name); errors.Is(err, forge.ErrNotFound) {
		return seat{}, refused
	} else if err != nil {
		return seat{}, err
	}
	// Asks by the way for what the configured names are bound to.
	if _, err := d.b.namedIn(ctx, d.forge, s.repo); err != nil {
		return seat{}, err
	}
	if !d.b.answersIn(d.forge, s.repo) {
		return seat{}, refused
	}
	if s.account, err = d.holder(ctx, login, self); err != nil {
		return seat{}, err
	}
	s.look = d.b.standings.look(ctx, d.forge, s.repo, s.account, true)
	switch {
	case s.look.Err != nil:
		d.b.Log.WarnContext(ctx, "desk: a permission could not be read", "repo", s.repo.ID, "account", s.account.ID, "error", s.look.Err)
		return seat{}, &DeskError{Why: "the permission of " + login + " could not be read", Cure: "try again in a minute"}
	case s.look.Standing.Permission < playbook.PermissionRead:
		return seat{}, refused
	}
	return s, nil
}

// holder is the account that a token belongs to.
func (d *Desk) holder(ctx context.Context, login string, self forge.Account) (forge.Account, error) {
	a, err := d.b.Forges[d.forge].AccountByLogin(ctx, login)
	if errors.Is(err, forge.ErrNotFound) {
		return a, &DeskError{Why: "the forge has no account " + login, Cure: "the bot's operator mends the token's account"}
	}
	if err != nil {
		return a, err
	}
	switch bound := d.b.roles.account(ctx, d.forge, login); {
	case !a.Real() || bound != a.ID:
		return a, &DeskError{Why: "the login " + login + " has changed hands since the token was given", Cure: "the bot's operator looks into it"}
	case a.ID == self.ID:
		return a, &DeskError{Why: "the token belongs to the bot's own account, in whose name nothing is filed"}
	}
	return a, nil
}

// File files a request as an issue and returns without waiting for the bot's
// answer. Creating an issue is not idempotent, so it is claimed first; one
// that may stand already is looked for, and not created again before nothing
// can be in flight any more. The same request of the same account, while it
// is open, is the first one, also where it was opened by hand.
func (d *Desk) File(ctx context.Context, q Filing) (Filed, error) {
	s, err := d.enter(ctx, q.Account, q.Repository)
	if err != nil {
		return Filed{}, err
	}
	if q, err = d.tidied(q); err != nil {
		return Filed{}, err
	}
	if open, found, err := d.alreadyOpen(ctx, s, q); err != nil || found {
		return open, err
	}
	title, body, err := requestText(q, s.account.Login)
	if err != nil {
		return Filed{}, err
	}
	if err := d.b.checkRequest(q, draft(forge.ObjectIssue, body, s.account, d.b.Now()), s.self.Login); err != nil {
		return Filed{}, &DeskError{Why: "what you sent cannot be put into the form without saying something else",
			Cure: "use plain words for target and symptoms, and records of this ladder's actions as prior attempts"}
	}
	p := posting{
		seat: s, tool: q.Tool, kind: forge.ObjectIssue, body: body, most: requestsPerHour,
		question: fmt.Sprintf("%s|%s|%t", q.Action, strings.ToLower(q.Target), q.BreakGlass),
		create: func(ctx context.Context, body string) (number, object int64, stored string, err error) {
			i, err := d.b.Forges[d.forge].CreateIssue(ctx, s.repo.ID, title, body)
			return i.Number, i.Number, i.Body, err
		},
		over: func(ctx context.Context, f store.Filing) (bool, string, error) { return d.requestOver(ctx, s, q, f) },
	}
	return d.post(ctx, p)
}

// tidied makes the agent's text fit for the form, or says why it is not.
func (d *Desk) tidied(q Filing) (Filing, error) {
	q.Target = strings.Join(strings.Fields(lines(q.Target, 200)), " ")
	q.Reason = lines(q.Reason, maxFiledReason)
	symptoms := []string{}
	for _, s := range q.Symptoms {
		if s = strings.TrimSpace(lines(s, 100)); s != "" {
			symptoms = append(symptoms, s)
		}
	}
	q.Symptoms = symptoms
	if q.BreakGlass && q.Reason == "" {
		return q, &DeskError{Why: "break-glass needs a reason; it is kept and shown to those who are told", Cure: "give reason"}
	}
	return q, nil
}

// alreadyOpen finds an open request that asks just this, of this account.
func (d *Desk) alreadyOpen(ctx context.Context, s seat, q Filing) (Filed, bool, error) {
	refs, err := d.b.Ledger.OpenThreads(ctx, d.forge, s.repo.ID)
	if err != nil {
		return Filed{}, false, err
	}
	for _, ref := range refs {
		r, _, err := d.openRequest(ctx, s.repo.ID, ref.Number)
		if err != nil {
			return Filed{}, false, err
		}
		if r != nil && r.same(q.Action, q.Target, q.BreakGlass, s.account) {
			return Filed{Repo: s.repo, Number: ref.Number, Request: r.ID, Existing: true}, true, nil
		}
	}
	return Filed{}, false, nil
}

// openRequest is a thread's open request, nil for none; waits says that the
// thread has yet to be looked at, so that one may come.
func (d *Desk) openRequest(ctx context.Context, repo, number int64) (r *request, waits bool, err error) {
	t, err := d.b.Ledger.FindThread(ctx, d.forge, repo, number)
	if isNotStored(err) {
		return nil, true, nil
	}
	if err != nil {
		return nil, false, err
	}
	st, err := decodeState(t.State)
	if err != nil {
		return nil, false, err
	}
	return st.Request, len(t.State) == 0 || st.LastRequest == 0 && len(t.Events) > 0, nil
}

// requestOver reports whether a filed request is open no more, and its id
// where it is.
func (d *Desk) requestOver(ctx context.Context, s seat, q Filing, f store.Filing) (over bool, id string, err error) {
	r, waits, err := d.openRequest(ctx, s.repo.ID, f.Number)
	switch {
	case err != nil:
		return false, "", err
	case r != nil && r.same(q.Action, q.Target, q.BreakGlass, s.account):
		return false, r.ID, nil
	case r != nil || !waits:
		return true, "", nil
	}
	// Handed over too late, or never: is it still there to be looked at?
	i, err := d.b.Forges[d.forge].Issue(ctx, s.repo.ID, f.Number)
	if errors.Is(err, forge.ErrNotFound) || err == nil && i.Closed {
		return true, "", nil
	}
	return false, "", err
}

// Record posts an attempt into a thread.
func (d *Desk) Record(ctx context.Context, q Recording) (Filed, error) {
	s, err := d.enter(ctx, q.Account, q.Repository)
	if err != nil {
		return Filed{}, err
	}
	i, err := d.b.Forges[d.forge].Issue(ctx, s.repo.ID, q.Number)
	switch {
	case errors.Is(err, forge.ErrNotFound):
		return Filed{}, &DeskError{Why: fmt.Sprintf("%s has no issue %d", s.repo.FullName(), q.Number)}
	case err != nil:
		return Filed{}, err
	case i.Closed:
		return Filed{}, &DeskError{Why: "that issue is closed, so nothing is decided there", Cure: "reopen it, which begins a new incident, or file a request of its own"}
	}
	body, err := recordText(q, s.account.Login)
	if err != nil {
		return Filed{}, err
	}
	t := draft(forge.ObjectComment, body, s.account, d.b.Now())
	if err := checkRecords([]playbook.Attempt{q.Attempt}, d.b.parse(t, t.created, s.self.Login)); err != nil {
		return Filed{}, &DeskError{Why: "that record cannot be put into a comment without saying something else", Cure: "make it with build_attempt_record"}
	}
	question, timed := d.recordQuestion(q)
	p := posting{
		seat: s, tool: q.Tool, kind: forge.ObjectComment, number: q.Number, body: body, most: recordsPerHour, question: question,
		create: func(ctx context.Context, body string) (number, object int64, stored string, err error) {
			c, err := d.b.Forges[d.forge].CreateComment(ctx, s.repo.ID, q.Number, body)
			return q.Number, c.ID, c.Body, err
		},
		over: func(ctx context.Context, f store.Filing) (bool, string, error) {
			now, err := d.b.Ledger.Now(ctx)
			return !timed && now.Sub(f.ClaimedAt) > repeatedWithin, "", err
		},
	}
	return d.post(ctx, p)
}

// recordQuestion says what makes two records the same. timed: it bears a time
// of its own; one that is of this very moment is of whenever it was sent.
func (d *Desk) recordQuestion(q Recording) (question string, timed bool) {
	a := q.Attempt
	at := ""
	if age := d.b.Now().Sub(a.RecordedAt); age > time.Minute || age < -time.Minute {
		at, timed = a.RecordedAt.UTC().Format("2006-01-02T15:04"), true
	}
	sum := sha256.Sum256([]byte(a.Reason))
	return fmt.Sprintf("%d|%s|%s|%s|%s|%s|%s", q.Number, a.Action, a.Outcome, strings.ToLower(a.Actor), strings.ToLower(a.Target), at,
		hex.EncodeToString(sum[:8])), timed
}

// newFilingKey is unique for ever.
func newFilingKey() string { return rand.Text() }
