package bot

import (
	"cmp"
	"context"
	"crypto/hmac"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"

	"playbook-bot/bot/forge"
	"playbook-bot/bot/store"
	"playbook-bot/playbook"
)

// AuditCheck is what was found about one thread's audit log.
type AuditCheck struct {
	// Broken says what does not hold together, a clause each; nil: nothing.
	Broken []string
	// Notes say what an auditor should know and is no break.
	Notes []string
	// Markers is how many genuine markers were compared.
	Markers int
	// Heads are the chains' last entries.
	Heads []playbook.AuditMark
}

// CheckLog verifies a thread's chains against themselves and against the head
// in the thread's own row, state (nil: not compared). It asks nobody, so it
// finds what was changed, taken out or put in, and a tail that was cut from
// the log alone; a tail cut from log and row alike only the comments show, see
// CheckComments.
func CheckLog(secrets []string, rows []store.AuditRow, state []byte) AuditCheck {
	var c AuditCheck
	var err error
	if c.Heads, err = VerifyChain(secrets, rows); err != nil {
		c.Broken = append(c.Broken, err.Error())
	}
	st, err := decodeState(state)
	switch {
	case err != nil:
		c.Broken = append(c.Broken, err.Error())
	case len(state) > 0 && len(c.Broken) == 0:
		if want, have := st.Audit, lastOf(rows); want != have {
			c.Broken = append(c.Broken, fmt.Sprintf("the thread's row names entry %d.%d as the last, the log ends with %d.%d",
				want.Chain, want.Seq, have.Chain, have.Seq))
		}
	}
	return c
}

func lastOf(rows []store.AuditRow) auditHead {
	if len(rows) == 0 {
		return auditHead{}
	}
	r := rows[len(rows)-1]
	return auditHead{Chain: r.Chain, Seq: r.Seq, Hash: fmt.Sprintf("%x", r.Hash)}
}

// CheckComments compares the log with the markers in the thread's comments:
// every genuine marker names an entry that must be there with that hash.
// Comments of other accounts than self prove nothing and are passed over.
func (c *AuditCheck) CheckComments(secrets []string, t store.ThreadRef, rows []store.AuditRow, self forge.Account, comments []forge.Comment) {
	type at struct{ chain, seq int64 }
	hashes := map[at][]byte{}
	for _, r := range rows {
		hashes[at{r.Chain, r.Seq}] = r.Hash
	}
	lost, forged := map[at]bool{}, 0
	where := place{t.Forge, t.Repo.ID, t.Number}
	for _, cm := range comments {
		if cm.Author.ID != self.ID {
			continue
		}
		m, ok, marked := verify(secrets, where, cm.Body)
		switch {
		case !ok && marked:
			forged++
		case !ok || m.Seq == 0: // said before anything was decided
		default:
			c.Markers++
			have, found := hashes[at{m.Chain, m.Seq}]
			switch {
			case found && hmac.Equal([]byte(fmt.Sprintf("%x", have)), []byte(m.Hash)):
			case found:
				c.Broken = append(c.Broken, fmt.Sprintf("comment %d names entry %d.%d with another hash than the log has", cm.ID, m.Chain, m.Seq))
			default:
				lost[at{m.Chain, m.Seq}] = true
			}
		}
	}
	if forged > 0 {
		c.Notes = append(c.Notes, fmt.Sprintf("%d of the bot's comments bear a marker that does not fit: edited, or signed with a secret not given here", forged))
	}
	restarts := rebuilds(rows)
	told := func(l at) bool {
		return slices.ContainsFunc(restarts, func(r restart) bool { return l.chain < r.chain || l.chain == r.chain && l.seq <= r.seq })
	}
	order := func(a, b at) int { return cmp.Or(cmp.Compare(a.chain, b.chain), cmp.Compare(a.seq, b.seq)) }
	for _, l := range slices.SortedFunc(maps.Keys(lost), order) {
		if !told(l) {
			c.Broken = append(c.Broken, fmt.Sprintf("a comment names entry %d.%d, which is not in the log: its tail was cut, or an older database put in its place", l.chain, l.seq))
		}
	}
	for _, r := range restarts {
		c.Notes = append(c.Notes, fmt.Sprintf("the database was lost, or a backup put back: a new chain begins after entry %d.%d; what the log lacks of that time only the comments tell", r.chain, r.seq))
	}
}

// rebuilt reads the note of a "rebuilt" entry; see session.restore.
var rebuilt = regexp.MustCompile(`^the last marker in the thread: (\d+)\.(\d+)\.[0-9a-f]*$`)

type restart struct{ chain, seq int64 }

// rebuilds are the ends of chains that a lost database took along, as the
// first entries of the chains after them name them.
func rebuilds(rows []store.AuditRow) (out []restart) {
	for _, r := range rows {
		var e AuditEntry
		if r.Seq != 1 || json.Unmarshal(r.Entry, &e) != nil || e.What != "rebuilt" {
			continue
		}
		if m := rebuilt.FindStringSubmatch(e.Note); m != nil {
			chain, _ := strconv.ParseInt(m[1], 10, 64)
			seq, _ := strconv.ParseInt(m[2], 10, 64)
			out = append(out, restart{chain, seq})
		}
	}
	return out
}

// noticeBehind tells the operator when a comment of the bot's own, which this
// database does not know, names a later decision than the database has: then a
// backup was put in its place and not read again (store.Reread), and what was
// decided since may be decided a second time.
func (s *session) noticeBehind(ctx context.Context, o forge.Object, body string) {
	m, ok, _ := verify(s.b.Secrets(), s.place(), body)
	head := s.old.Audit
	if !ok || m.Seq == 0 || m.Chain < head.Chain || m.Chain == head.Chain && m.Seq <= head.Seq {
		return
	}
	s.b.Log.ErrorContext(ctx, "the database is older than the thread: was a backup put back? Stop the bot and run: playbook-bot db reread",
		"thread", s.t.Number, "comment", o.ID, "entry", fmt.Sprintf("%d.%d", m.Chain, m.Seq), "last_entry", fmt.Sprintf("%d.%d", head.Chain, head.Seq))
	s.observe = append(s.observe, Observation{What: "database_behind"})
}
