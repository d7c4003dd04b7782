package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"playbook-bot/bot/forge"
)

// Filing states.
const (
	FilingClaimed = "claimed" // a POST may have been begun
	FilingPosted  = "posted"
	FilingVoid    = "void" // nothing came of it
)

// Filing is a text that the bot's own account puts into a tracker in another
// account's name, from claim to proof.
type Filing struct {
	// Key is unique for ever; it stands in the text's signed marker.
	Key     string
	Forge   string
	Repo    int64
	Account int64
	Kind    forge.ObjectKind
	// Question says what is filed, in the caller's words: two filings of one
	// account with the same question are the same.
	Question string
	Status   string
	// Number is the thread, Object the text that stands; 0 until known, as for
	// an issue that may not even exist.
	Number, Object int64
	ClaimedAt      time.Time
	// Deadline is when no POST of the claim can start or live any more.
	Deadline time.Time
}

// FilingClaim asks for a claim.
type FilingClaim struct {
	Filing
	// Over is the key of an equal filing that the caller knows to be over.
	Over string
	// TTL is how long a POST of the claim may live.
	TTL time.Duration
	// At most Most claims of this account and kind within Within.
	Most   int
	Within time.Duration
}

// errRace: another claim took the number.
var errRace = errors.New("another filing of the account came first")

// filingTries bounds how often a claim starts over because another of the
// same account came first; each time one of them got through.
const filingTries = 10

func (l *ledger) ClaimFiling(ctx context.Context, c FilingClaim) (f Filing, claimed bool, err error) {
	if c.Key == "" || c.Forge == "" || c.Repo <= 0 || c.Account <= 0 || c.Kind == "" {
		return Filing{}, false, errors.New("a filing needs a key, a forge, a kind, and the ids of repository and account")
	}
	err = errRace
	for try := 0; errors.Is(err, errRace) && try < filingTries; try++ {
		err = l.quietly(ctx, func(tx runner) (err error) {
			f, claimed, err = claimFiling(ctx, tx, c)
			return err
		})
	}
	if err != nil {
		return Filing{}, false, fmt.Errorf("claim a filing of account %d: %w", c.Account, err)
	}
	return f, claimed, nil
}

func claimFiling(ctx context.Context, tx runner, c FilingClaim) (Filing, bool, error) {
	// Before all that is looked at: what comes after it takes this number.
	nth, err := nextFiling(ctx, tx, c.Filing)
	if err != nil {
		return Filing{}, false, err
	}
	last, err := readFiling(ctx, tx, `forge = ? AND account = ? AND repo = ? AND kind = ? AND question = ? AND status <> 'void'
		ORDER BY nth DESC LIMIT 1`, c.Forge, c.Account, c.Repo, string(c.Kind), c.Question)
	if err == nil && last.Key != c.Over {
		return last, false, nil
	}
	if err != nil && !errors.Is(err, ErrNotFound) {
		return Filing{}, false, err
	}
	var recent int
	err = tx.one(ctx, `SELECT count(*) FROM filings WHERE forge = ? AND account = ? AND kind = ? AND status <> 'void'
		AND claimed_at > {now} - CAST(? AS BIGINT)`, args{c.Forge, c.Account, string(c.Kind), c.Within.Milliseconds()}, &recent)
	if err != nil {
		return Filing{}, false, err
	}
	if recent >= c.Most {
		return Filing{}, false, ErrTooMany
	}
	n, err := insertFiling(ctx, tx, c.Filing, nth, FilingClaimed, `{now}`, `{now} + CAST(? AS BIGINT)`, ceilMillis(c.TTL))
	if err != nil {
		return Filing{}, false, err
	}
	if n == 0 {
		return Filing{}, false, errRace
	}
	f, err := readFiling(ctx, tx, `key = ?`, c.Key)
	return f, true, err
}

// nextFiling is the number that an account's next filing is to have.
func nextFiling(ctx context.Context, tx runner, f Filing) (nth int64, err error) {
	err = tx.one(ctx, `SELECT coalesce(max(nth), 0) + 1 FROM filings WHERE forge = ? AND account = ?`, args{f.Forge, f.Account}, &nth)
	return nth, err
}

// insertFiling writes a filing, and none where its number, key or text was
// taken meanwhile.
func insertFiling(ctx context.Context, tx runner, f Filing, nth int64, status, claimedAt, deadline string, times ...any) (int64, error) {
	a := []any{f.Key, f.Forge, f.Repo, f.Account, nth, string(f.Kind), f.Number, f.Object, f.Question, status}
	return tx.exec(ctx, `INSERT INTO filings (key, forge, repo, account, nth, kind, number, object, question, status, claimed_at, deadline)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, `+
		claimedAt+`, `+deadline+`) ON CONFLICT DO NOTHING`, append(a, times...)...)
}

func readFiling(ctx context.Context, r runner, cond string, a ...any) (f Filing, err error) {
	var claimed, deadline int64
	err = r.one(ctx, `SELECT key, forge, repo, account, kind, number, object, question, status, claimed_at, deadline
		FROM filings WHERE `+cond, a, &f.Key, &f.Forge, &f.Repo, &f.Account, &f.Kind, &f.Number, &f.Object, &f.Question, &f.Status, &claimed, &deadline)
	f.ClaimedAt, f.Deadline = fromMillis(claimed), fromMillis(deadline)
	return f, err
}

func (l *ledger) ReclaimFiling(ctx context.Context, f Filing, ttl time.Duration) (out Filing, ok bool, err error) {
	err = l.quietly(ctx, func(tx runner) error {
		n, err := tx.exec(ctx, `UPDATE filings SET claimed_at = {now}, deadline = {now} + CAST(? AS BIGINT)
			WHERE key = ? AND status = 'claimed' AND deadline = ?`, ceilMillis(ttl), f.Key, millis(f.Deadline))
		if err != nil {
			return err
		}
		ok = n == 1
		out, err = readFiling(ctx, tx, `key = ?`, f.Key)
		return err
	})
	if err != nil {
		return Filing{}, false, fmt.Errorf("claim filing %s again: %w", f.Key, err)
	}
	return out, ok, nil
}

func (l *ledger) SettleFiling(ctx context.Context, f Filing) (bound bool, err error) {
	if f.Object <= 0 || f.Number <= 0 {
		return false, errors.New("a filing is settled with the text that stands")
	}
	err = errRace
	for try := 0; errors.Is(err, errRace) && try < filingTries; try++ {
		err = l.quietly(ctx, func(tx runner) (err error) {
			bound, err = settleFiling(ctx, tx, f)
			return err
		})
	}
	if err != nil {
		return false, fmt.Errorf("settle filing %s: %w", f.Key, err)
	}
	return bound, nil
}

func settleFiling(ctx context.Context, tx runner, f Filing) (bool, error) {
	held, err := readFiling(ctx, tx, `key = ?`, f.Key)
	switch {
	case errors.Is(err, ErrNotFound):
		return adoptFiling(ctx, tx, f)
	case err != nil:
		return false, err
	case held.Forge != f.Forge || held.Repo != f.Repo || held.Account != f.Account || held.Kind != f.Kind:
		return false, nil
	case held.Object != 0:
		return held.Object == f.Object && held.Number == f.Number, nil
	case held.Number != 0 && held.Number != f.Number:
		return false, nil
	}
	if taken, err := textTaken(ctx, tx, f); err != nil || taken {
		return false, err
	}
	n, err := tx.exec(ctx, `UPDATE filings SET number = ?, object = ?, status = 'posted' WHERE key = ? AND object = 0`, f.Number, f.Object, f.Key)
	return n == 1, err
}

// adoptFiling writes down a filing that only its marker knows of any more.
func adoptFiling(ctx context.Context, tx runner, f Filing) (bool, error) {
	nth, err := nextFiling(ctx, tx, f)
	if err != nil {
		return false, err
	}
	if taken, err := textTaken(ctx, tx, f); err != nil || taken {
		return false, err
	}
	n, err := insertFiling(ctx, tx, f, nth, FilingPosted, `CAST(? AS BIGINT)`, `CAST(? AS BIGINT)`, millis(f.ClaimedAt), millis(f.Deadline))
	if err == nil && n == 0 {
		err = errRace
	}
	return err == nil, err
}

// textTaken reports whether a text is bound to a key already.
func textTaken(ctx context.Context, tx runner, f Filing) (taken bool, err error) {
	err = tx.each(ctx, func(*sql.Rows) error { taken = true; return nil },
		`SELECT key FROM filings WHERE forge = ? AND repo = ? AND kind = ? AND object = ? AND object <> 0`, f.Forge, f.Repo, string(f.Kind), f.Object)
	return taken, err
}

func (l *ledger) VoidFiling(ctx context.Context, key string) error {
	err := l.quietly(ctx, func(tx runner) error {
		_, err := tx.exec(ctx, `UPDATE filings SET status = 'void' WHERE key = ? AND status = 'claimed'`, key)
		return err
	})
	if err != nil {
		return fmt.Errorf("end filing %s: %w", key, err)
	}
	return nil
}
