//go:build unix

package crashtest

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"playbook-bot/bot"
	"playbook-bot/bot/forge"
	"playbook-bot/bot/store"
	"playbook-bot/playbook"
)

// tally counts over threads; see the package's comment for what is what.
type tally struct {
	questions, answers, duplicates, losses int
}

func (a *tally) add(b tally) {
	a.questions += b.questions
	a.answers += b.answers
	a.duplicates += b.duplicates
	a.losses += b.losses
}

// outcome is what a conversation came to, without what differs between two
// runs of it (times, ids).
type outcome struct {
	// Decisions are "state verdict code counted/ignored" of each answer, in the
	// order of the questions.
	Decisions []string
	// Unasked are the approvals that were revoked, in a comment of its own each.
	Unasked []string
	// Records are the attempts in the log, in the order of their texts.
	Records []string
	// Labels on the issue, and the bot's reactions to each question, but for
	// the first look: that is a courtesy which dies with the process.
	Labels    []string
	Reactions [][]forge.Reaction
	// Approval that stands.
	Approval string
	// Audit are the kinds of entries of the chain.
	Audit []string
}

var (
	markerLine     = regexp.MustCompile(`\n<!-- playbook-bot:1 key=(\S+) audit=(\d+)\.(\d+)\.([0-9a-f]*) mac=[0-9a-f]{64} -->\s*$`)
	foldedDecision = regexp.MustCompile("(?s)<details><summary>Decision as JSON</summary>\n+`{3,}json\n(.*?)\n`{3,}\n")
)

// mark is an answer's marker.
type mark struct {
	id    int64
	key   string
	chain int64
	seq   string // chain.seq.hash
	body  string
}

// answers are the genuine answers of a thread, by key.
func (w *world) answers(number int64) map[string][]mark {
	out := map[string][]mark{}
	for _, c := range w.forge.CommentsBy(botLogin, repoName, number) {
		m := markerLine.FindStringSubmatch(c.Body)
		if m == nil || !w.genuine(number, c) {
			out["not genuine"] = append(out["not genuine"], mark{body: c.Body})
			continue
		}
		chain, _ := strconv.ParseInt(m[2], 10, 64) // digits, by the pattern
		out[m[1]] = append(out[m[1]], mark{id: c.ID, key: m[1], chain: chain, seq: m[2] + "." + m[3] + "." + m[4], body: c.Body})
	}
	return out
}

func (q question) key() string { return fmt.Sprintf("answer:%s:%d", q.Kind, q.ID) }

// verify counts what became of an incident when all is quiet, and says what is
// wrong.
func (w *world) verify(i *incident) (tally, outcome, error) {
	var errs []error
	n := tally{questions: len(i.questions)}
	got := w.answers(i.number)
	var out outcome
	for _, q := range i.questions {
		// One that somebody deleted was posted again, under a key of its own.
		marks := slices.Concat(got[q.key()], got["restored:"+q.key()])
		delete(got, q.key())
		delete(got, "restored:"+q.key())
		n.answers += len(marks)
		if len(marks) == 0 {
			n.losses++
			errs = append(errs, fmt.Errorf("thread %d: %s by %s got no answer: %q", i.number, q.key(), q.as, q.said))
			continue
		}
		if len(marks) > 1 {
			n.duplicates += len(marks) - 1
			errs = append(errs, fmt.Errorf("thread %d: %s got %d answers", i.number, q.key(), len(marks)))
		}
		out.Decisions = append(out.Decisions, decided(marks[0].body))
		seen := w.forge.Reactions(botLogin, repoName, i.number, q.Object)
		out.Reactions = append(out.Reactions, slices.DeleteFunc(seen, func(r forge.Reaction) bool { return r == forge.ReactionSeen }))
	}
	for key, marks := range got {
		n.answers += len(marks)
		if strings.HasPrefix(key, "revoke:") && len(marks) == 1 {
			out.Unasked = append(out.Unasked, strings.TrimPrefix(key, fmt.Sprintf("revoke:%d/", i.number)))
		} else {
			n.duplicates += len(marks)
			errs = append(errs, fmt.Errorf("thread %d: nobody asked for %d answers %s", i.number, len(marks), key))
		}
	}
	out.Labels = w.forge.Labels(repoName, i.number)
	if err := w.inspect(i, &out); err != nil {
		n.losses++
		errs = append(errs, fmt.Errorf("thread %d: %w", i.number, err))
	}
	return n, out, errors.Join(errs...)
}

// verifyQuiet is verify, again wherever work came up meanwhile: a process
// started anew has just swept, and found something.
func (w *world) verifyQuiet(i *incident, revive func()) (tally, outcome, error) {
	w.t.Helper()
	for {
		n, out, err := w.verify(i)
		if w.idle() {
			return n, out, err
		}
		w.settle(revive)
	}
}

// decided is the decision in an answer, in short.
func decided(body string) string {
	at := foldedDecision.FindStringSubmatch(body)
	if at == nil {
		return "none"
	}
	var d playbook.Decision
	if err := json.Unmarshal([]byte(at[1]), &d); err != nil {
		return err.Error()
	}
	return fmt.Sprintf("%s %s %s %d/%d", d.State, d.Verdict, d.Code, len(d.Counted), len(d.Ignored))
}

// inspect reads what the database knows of an incident; an error is a loss.
func (w *world) inspect(i *incident, out *outcome) error {
	t, err := w.thread(i.number)
	if err != nil {
		return err
	}
	out.Approval = "none"
	if a, err := bot.ApprovalOf(t, fmt.Sprintf("%d/1", i.number), time.Now()); err != nil {
		return err
	} else if a.Standing {
		out.Approval = strings.Join([]string{a.Action, a.Target, a.Endorser}, " ")
	}
	if err := w.records(i, t, out); err != nil {
		return err
	}
	return w.audited(i, t, out)
}

// records compares the log with what was written in the thread.
func (w *world) records(i *incident, t *store.Thread, out *outcome) error {
	objects, err := w.watch.Objects(context.Background(), t.ID)
	if err != nil {
		return err
	}
	have := map[forge.Object]int{}
	for _, o := range objects {
		var doc struct{ Records []playbook.Attempt }
		if len(o.Data) > 0 {
			if err := json.Unmarshal(o.Data, &doc); err != nil {
				return fmt.Errorf("read the document of %s %d: %w", o.Kind, o.ID, err)
			}
		}
		for _, r := range doc.Records {
			have[o.Object]++
			out.Records = append(out.Records, strings.Join([]string{r.Actor, r.Action, r.Outcome, r.Reason}, " "))
		}
	}
	for o, want := range i.records {
		if have[o] != want {
			return fmt.Errorf("%s %d has %d records in the log, want %d", o.Kind, o.ID, have[o], want)
		}
	}
	return nil
}

// audited verifies the thread's chains, and that each answer's marker names an
// entry of them; after a rebuild, or of a chain from before.
func (w *world) audited(i *incident, t *store.Thread, out *outcome) error {
	rows, err := w.watch.Audit(context.Background(), t.ID)
	if err != nil {
		return err
	}
	if _, err := bot.VerifyChain([]string{secret}, rows); err != nil {
		return err
	}
	entries := map[string]bool{"0.0.": true} // said before anything was decided
	for _, r := range rows {
		var e bot.AuditEntry
		if err := json.Unmarshal(r.Entry, &e); err != nil {
			return err
		}
		out.Audit = append(out.Audit, e.What)
		entries[strconv.FormatInt(r.Chain, 10)+"."+strconv.FormatInt(r.Seq, 10)+"."+hex.EncodeToString(r.Hash)] = true
	}
	for key, marks := range w.answers(i.number) {
		for _, m := range marks {
			before := w.forgot && (len(rows) == 0 || m.chain < rows[0].Chain)
			if !entries[m.seq] && !before {
				return fmt.Errorf("the marker of %s names an audit entry that is not there", key)
			}
		}
	}
	return nil
}

// row is a line of a table.
type row struct {
	what, database string
	tally
	note string
}

// table lays rows out for the log.
func table(t testing.TB, title string, rows []row) {
	t.Helper()
	var b strings.Builder
	fmt.Fprintf(&b, "\n%-24s %-9s %9s %8s %10s %7s  %s\n", title, "store", "questions", "answers", "duplicates", "losses", "")
	for _, r := range rows {
		fmt.Fprintf(&b, "%-24s %-9s %9d %8d %10d %7d  %s\n", r.what, r.database, r.questions, r.answers, r.duplicates, r.losses, r.note)
	}
	t.Log(b.String())
}
