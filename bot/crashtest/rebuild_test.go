//go:build unix

package crashtest

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"playbook-bot/bot"
	"playbook-bot/bot/forge"
)

var (
	rebuildThreads  = flag.Int("rebuild.threads", 24, "how many threads TestRebuild loses with the database")
	rebuildComments = flag.Int("rebuild.comments", 200, "how many comments each of them has")
)

// chatter is how many comments of a thread are new and no concern of the
// bot's; the rest, from before the last day, hold attempts now and then.
const chatter = 5

// TestRebuild deletes the database while people talk in many threads. The bot,
// started anew, finds out from the threads alone what was recorded, asked and
// answered: nothing is answered twice, no approval from before stands, and
// whoever asks again gets one.
func TestRebuild(t *testing.T) {
	var rows []row
	t.Cleanup(func() { table(t, "database lost", rows) })
	for _, db := range databases {
		t.Run(db.name, func(t *testing.T) {
			// Nobody dies slowly here; with a hundred thousand comments the fake
			// itself is slow.
			b := &rebuild{world: newWorld(t, db.url(t), db.replicas, setting("SWEEP_INTERVAL=11s", "WORKERS=16", "REQUEST_TIMEOUT=10s", "LEASE=2s"))}
			b.seed(*rebuildThreads, *rebuildComments)
			began := time.Now()
			b.talk(func() { b.lose(db.url) })
			rebuilt := time.Now()
			b.allAnswered()
			n := b.check()
			rows = append(rows, row{fmt.Sprintf("%d threads of %d", *rebuildThreads, *rebuildComments), db.name, n,
				fmt.Sprintf("%d approvals gone, talk %.0f s, then %.0f s", len(b.approved), rebuilt.Sub(began).Seconds(), time.Since(rebuilt).Seconds())})
		})
	}
}

type rebuild struct {
	*world
	threads []*incident
	// lost is when the database was; approved are the threads with an approval
	// until then.
	lost     time.Time
	approved []*incident

	mu   sync.Mutex
	told int
}

// seed makes the threads as they were before there was a bot. All grow at the
// same time, as threads do; the fake lists what is in order much faster.
func (b *rebuild) seed(threads, comments int) {
	b.t.Helper()
	began := time.Now().Add(-72 * time.Hour)
	for n := range threads {
		i := &incident{records: map[forge.Object]int{}}
		i.number = b.forge.ImportIssue(repoName, "rhea", "", fmt.Sprintf("search is down, the %d.", n+1), "All clients get 404.", began)
		b.threads = append(b.threads, i)
	}
	for c := range comments - chatter - 2*len(conversation) {
		at := began.Add(time.Duration(c) * time.Minute)
		body, records := fmt.Sprintf("Still looking, note %d.", c), 0
		if c%40 == 7 {
			body, records = fmt.Sprintf("Tried before:\n\n| action | outcome | reason |\n|---|---|---|\n| client_reconnect | failed | no. %d |\n", c), 1
		}
		for _, i := range b.threads {
			id := b.forge.ImportComment(repoName, i.number, "wren", "", body, at)
			if records > 0 {
				i.records[forge.Object{Kind: forge.ObjectComment, ID: id}] = records
			}
		}
	}
}

// talk has the conversation in all threads, by several people at once; when
// half of the threads are done, half is called.
func (b *rebuild) talk(half func()) {
	b.t.Helper()
	work := make(chan *incident)
	errs := make([]error, soakThreads)
	var talkers sync.WaitGroup
	for n := range soakThreads {
		talkers.Go(func() {
			for i := range work {
				errs[n] = errors.Join(errs[n], b.tell(i))
			}
		})
	}
	for n, i := range b.threads {
		if n == len(b.threads)/2 {
			half()
		}
		work <- i
	}
	close(work)
	talkers.Wait()
	if err := errors.Join(errs...); err != nil {
		b.t.Fatal(err)
	}
}

// tell has one conversation. Every second thread is left at its endorsement,
// with an approval.
func (b *rebuild) tell(i *incident) error {
	steps := conversation
	if i.number%2 == 0 {
		steps = conversation[:4]
	}
	for n, s := range steps {
		if n < chatter {
			if _, err := b.forge.Comment("remy", repoName, i.number, "Any news?"); err != nil {
				return err
			}
		}
		if err := b.say(i, s); err != nil {
			return err
		}
		last := i.questions[len(i.questions)-1]
		if n%2 == 1 && !within(patience, func() bool { return len(b.answers(i.number)[last.key()]) > 0 }) {
			return fmt.Errorf("thread %d: %q by %s got no answer", i.number, last.said, last.as)
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.told++
	return nil
}

// lose kills everything, deletes the database and starts anew.
func (b *rebuild) lose(another func(testing.TB) string) {
	b.t.Helper()
	for _, r := range b.all() {
		r.kill()
	}
	b.lost = time.Now()
	for _, i := range b.threads {
		for _, marks := range b.answers(i.number) {
			if slices.ContainsFunc(marks, func(m mark) bool { return strings.HasPrefix(decided(m.body), "approved") }) {
				b.approved = append(b.approved, i)
				break
			}
		}
	}
	if path, ok := strings.CutPrefix(b.database, "sqlite:"); ok {
		for _, end := range []string{"", "-wal", "-shm"} {
			if err := os.Remove(path + end); err != nil && !os.IsNotExist(err) {
				b.t.Fatal(err)
			}
		}
	} else {
		b.database = another(b.t)
	}
	b.forgot = true
	b.reviveDead()
	b.openWatch()
}

// allAnswered waits until every question has its answer: also those whose
// deliveries were lost with the database, which a sweep finds.
func (b *rebuild) allAnswered() {
	b.t.Helper()
	for _, i := range b.threads {
		eventually(b.t, fmt.Sprintf("all is answered in thread %d", i.number), func() bool {
			have := b.answers(i.number)
			return !slices.ContainsFunc(i.questions, func(q question) bool { return len(have[q.key()]) == 0 })
		})
	}
	b.settle(func() {})
}

func (b *rebuild) check() (n tally) {
	b.t.Helper()
	if len(b.approved) == 0 {
		b.t.Error("nothing was approved before the database was lost")
	}
	for _, i := range b.approved {
		b.unapproved(i)
	}
	// Whoever asks again is decided on afresh.
	for _, i := range b.approved {
		b.mustSay(i, conversation[0])
	}
	b.settle(func() {})
	for _, i := range b.threads {
		counts, out, err := b.verify(i)
		n.add(counts)
		if err != nil {
			b.t.Error(err)
		}
		if !slices.Contains(b.approved, i) {
			continue
		}
		if !strings.HasPrefix(out.Approval, "full_mcp_restart") {
			b.t.Errorf("thread %d: asked again, and no approval stands: %s", i.number, out.Decisions)
		}
		if out.Audit[0] != "rebuilt" {
			b.t.Errorf("thread %d: the new chain does not begin with the rebuild: %s", i.number, out.Audit)
		}
	}
	return n
}

// unapproved makes sure that a thread's request is known and its approval is
// gone, from the database and from what the issue shows.
func (b *rebuild) unapproved(i *incident) {
	b.t.Helper()
	th, err := b.thread(i.number)
	if err != nil {
		b.t.Error(err)
		return
	}
	var st struct {
		Request *struct{ ID string }
	}
	if err := json.Unmarshal(th.State, &st); err != nil {
		b.t.Error(err)
		return
	}
	id := fmt.Sprintf("%d/1", i.number)
	if st.Request == nil || st.Request.ID != id {
		b.t.Errorf("thread %d: the request is not known: %+v", i.number, st.Request)
	}
	a, err := bot.ApprovalOf(th, id, time.Now())
	if err != nil || a.Standing {
		b.t.Errorf("thread %d: an approval from before stands (%v)", i.number, err)
	}
	if labels := b.forge.Labels(repoName, i.number); slices.Contains(labels, "recovery/approved") {
		b.t.Errorf("thread %d: labelled %v", i.number, labels)
	}
}
