package bot

import (
	"context"
	"crypto/hmac"
	"encoding/hex"
	"fmt"
	"regexp"
	"strconv"
	"time"

	"playbook-bot/bot/forge"
	"playbook-bot/bot/store"
)

// A filed text is one that the bot's own account posted in the name of an
// account that asked through a tool (page 6.3 of the design). It ends with a
// signed marker that names whose words it holds; that marker, and no delivery,
// is the proof, since the forge shows the bot as its author whoever asked.
//
// Three things keep a marker from vouching for what it was not made for:
//   - the HMAC covers the whole body, so a change by anyone unmakes it;
//   - its key is bound in the database to the one text it was made for, so that
//     a writer who edits a copy into another of the bot's texts gets nothing;
//   - it names the time of its claim, and the text must be of that time: a
//     database that was lost knows no keys, but no text can be made older.
type filingMark struct {
	Key     string
	Account forge.Account
	Tool    string
	// At is when the filing was claimed, in whole seconds.
	At time.Time
}

// filingSkew is how far the clocks of database and forge may be apart, and
// the claim from the text, for a marker to be of its text's time.
const filingSkew = 15 * time.Minute

var filingLine = regexp.MustCompile(`\n<!-- playbook-bot-filed:1 key=([A-Za-z0-9]+) account=(\d+) login=([A-Za-z0-9._\-\[\]]+) tool=([a-z_]+) at=(\d+) mac=([0-9a-f]{64}) -->$`)

// filingPlace is where a filing's marker is valid. An issue has no number
// before it exists, and no comment is made in thread 0.
func filingPlace(forgeName string, repo int64, kind forge.ObjectKind, number int64) place {
	if kind == forge.ObjectIssue {
		number = 0
	}
	return place{forgeName, repo, number}
}

// signFiling appends the marker to a body.
func signFiling(secret string, p place, m filingMark, body string) string {
	body = canonical(body) + "\n"
	head := fmt.Sprintf("\n<!-- playbook-bot-filed:1 key=%s account=%d login=%s tool=%s at=%d mac=", m.Key, m.Account.ID, m.Account.Login, m.Tool, m.At.Unix())
	return body + head + hex.EncodeToString(macOf(secret, "filing", p, body+head)) + " -->"
}

// readFiling reads a body's marker; ok is false where there is none that fits.
func readFiling(secrets []string, p place, body string) (m filingMark, ok bool) {
	body = canonical(body)
	at := filingLine.FindStringSubmatchIndex(body)
	if at == nil {
		return filingMark{}, false
	}
	group := func(i int) string { return body[at[2*i]:at[2*i+1]] }
	m = filingMark{Key: group(1), Account: forge.Account{Login: group(3)}, Tool: group(4)}
	m.Account.ID, _ = strconv.ParseInt(group(2), 10, 64)
	seconds, _ := strconv.ParseInt(group(5), 10, 64)
	m.At = time.Unix(seconds, 0).UTC()
	got, err := hex.DecodeString(group(6))
	if err != nil || !m.Account.Real() {
		return filingMark{}, false
	}
	for _, secret := range secrets {
		if hmac.Equal(macOf(secret, "filing", p, body[:at[12]]), got) {
			return m, true
		}
	}
	return filingMark{}, false
}

// attribute gives a text of the bot's own account the author in whose name it
// was filed, if it bears a marker that fits it and was made for it; any other
// text is given back as it is.
func (b *Bot) attribute(ctx context.Context, forgeName string, repo int64, self forge.Account, t text) (text, error) {
	if t.author.ID != self.ID || self.ID == 0 || t.originalAuthor != "" {
		return t, nil
	}
	m, ok := readFiling(b.Secrets(), filingPlace(forgeName, repo, t.Kind, t.number), t.body)
	if !ok || m.Account.ID == self.ID {
		return t, nil
	}
	if off := t.created.Sub(m.At); off < -filingSkew || off > filingSkew {
		b.Log.WarnContext(ctx, "a filing's marker stands in a text of another time", "repo", repo, "thread", t.number, "key", m.Key)
		return t, nil
	}
	bound, err := b.Ledger.SettleFiling(ctx, store.Filing{Key: m.Key, Forge: forgeName, Repo: repo, Account: m.Account.ID,
		Kind: t.Kind, Number: t.number, Object: t.ID, ClaimedAt: m.At, Deadline: m.At})
	if err != nil {
		return t, fmt.Errorf("look whose a filed text is: %w", err)
	}
	if !bound {
		b.Log.WarnContext(ctx, "a filing's marker stands in another text than it was made for", "repo", repo, "thread", t.number, "key", m.Key)
		return t, nil
	}
	t.author, t.filed, t.proved = m.Account, true, true
	return t, nil
}

// filedBySelf is the event of a text that the bot's account has just posted in
// another's name. The desk hands it over itself; but a desk in another process
// cannot wake this one on SQLite, and one that died has not.
func (b *Bot) filedBySelf(e forge.Event) (store.Incoming, bool) {
	if e.Action != forge.ActionOpened && e.Action != forge.ActionCreated {
		return store.Incoming{}, false
	}
	m, ok := readFiling(b.Secrets(), filingPlace(e.Forge, e.Repo.ID, e.Object.Kind, e.Number), e.Body)
	if !ok {
		return store.Incoming{}, false
	}
	in := incoming(e)
	in.Sender, in.Author, in.Source = m.Account, m.Account, store.SourceTool
	return in, true
}

// attribute is Bot's, and knows what was taken in as filed before: that stays
// its requester's, and what differs in it is somebody else's hand, even where
// a former wording comes back. Nothing proves it a second time.
func (s *session) attribute(ctx context.Context, t text, known *object) (text, error) {
	if t.author.ID != s.self.ID {
		return t, nil
	}
	if known != nil && known.data.Filed && !known.data.Unread {
		t.author, t.filed = known.Author, true
		return t, nil
	}
	if known != nil && !known.data.Unread {
		return t, nil // one of the bot's own, whatever it has been edited into
	}
	return s.b.attribute(ctx, s.t.Forge, s.t.Repo.ID, s.self, t)
}

// attributed is attribute for a text that may be stored.
func (s *session) attributed(ctx context.Context, t text) (text, error) {
	if t.author.ID != s.self.ID {
		return t, nil
	}
	known, err := s.lookup(ctx, t.Object)
	if err != nil {
		return t, err
	}
	return s.attribute(ctx, t, known)
}
