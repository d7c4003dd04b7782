//go:build unix

package crashtest

import (
	"crypto/sha256"
	"flag"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"playbook-bot/bot/forge"
	"playbook-bot/bot/forge/forgetest"
	"playbook-bot/bot/store"
)

var backlogEvents = flag.Int("backlog", 3000, "how many events wait in TestBacklog")

// perThread is how many of them wait in each thread: more than a worker does
// before it lets others have their turn.
const perThread = 100

// TestBacklog starts the bot on a database in which events wait that came while
// it was down. It works them off in flat memory; two threads in which every
// call fails, or hangs, hold up no other; and who asks something new is answered
// before the last of what is old.
func TestBacklog(t *testing.T) {
	for _, db := range databases {
		t.Run(db.name, func(t *testing.T) {
			b := newBacklog(t, db.url(t), *backlogEvents/perThread)
			for n := range db.replicas {
				b.start(fmt.Sprintf("replica %d", n+1))
			}
			began := time.Now()
			fresh := &incident{}
			b.mustSay(fresh, conversation[0])
			b.workOff(fresh)
			if b.leftAtFresh < b.events/4 { // a turn is 64 events of 100
				t.Errorf("a new question was answered when %d of %d old events were left", b.leftAtFresh, b.events)
			}
			b.flat()
			took := time.Since(began)
			t.Logf("%d events in %d threads on %s: %.1f s, %.0f a second; %d left when the new question was answered; %s",
				b.events, len(b.healthy), db.name, took.Seconds(), float64(b.events)/took.Seconds(), b.leftAtFresh, b.memory())
			b.mustVerify(fresh)
			for _, i := range b.healthy {
				b.mustVerify(i)
			}
			for _, i := range b.poisoned {
				if got := b.answers(i.number); len(got) > 0 {
					t.Errorf("thread %d cannot be read and was answered: %v", i.number, got)
				}
			}
		})
	}
}

type backlog struct {
	*world
	healthy, poisoned []*incident
	// events wait in healthy threads, stuck in the poisoned.
	events, stuck int
	// leftAtFresh is how many healthy events waited when the new question was
	// answered.
	leftAtFresh int
	samples     []sample
}

// sample is the processes' greatest resident size when so much waited.
type sample struct {
	waiting int
	kib     int
}

// newBacklog makes a world whose database holds the events of so many threads,
// and of two poisoned ones before them. Nothing runs yet.
func newBacklog(t *testing.T, database string, threads int) *backlog {
	t.Helper()
	b := &backlog{world: newWorld(t, database, 0)}
	db, err := store.Open(t.Context(), database, store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for n := range threads + 2 {
		i, events := b.waiting(perThread)
		if _, err := db.AcceptFound(t.Context(), events); err != nil {
			t.Fatal(err)
		}
		if n < 2 {
			b.poisoned, b.stuck = append(b.poisoned, i), b.stuck+len(events)
		} else {
			b.healthy, b.events = append(b.healthy, i), b.events+len(events)
		}
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	b.poison(b.poisoned[0], forgetest.Answer(500))
	b.poison(b.poisoned[1], forgetest.Fault{Delay: time.Hour})
	b.openWatch()
	return b
}

// waiting makes a thread on the forge and the events of its deliveries: a
// request, and comments that hold an attempt now and then.
func (b *backlog) waiting(events int) (*incident, []store.Incoming) {
	at := time.Now().Add(-time.Minute)
	i := &incident{records: map[forge.Object]int{}}
	i.number = b.forge.ImportIssue(repoName, "rhea", "", "search is down", conversation[0].said, at)
	object := forge.Object{Kind: forge.ObjectIssue, ID: i.number}
	i.questions = []question{{object, "rhea", conversation[0].said}}
	out := []store.Incoming{b.event(i, object, forge.ActionOpened, "rhea", conversation[0].said)}
	for n := range events - 1 {
		as, body := "remy", fmt.Sprintf("Any news? It is the %d. time that I ask.", n+1)
		if n == 50 {
			as, body = "wren", conversation[2].said
		}
		object := forge.Object{Kind: forge.ObjectComment, ID: b.forge.ImportComment(repoName, i.number, as, "", body, at)}
		if n == 50 {
			i.records[object] = conversation[2].records
			i.questions = append(i.questions, question{object, as, body})
		}
		out = append(out, b.event(i, object, forge.ActionCreated, as, body))
	}
	return i, out
}

// event is the event of a delivery that the author of a text sent.
func (b *backlog) event(i *incident, o forge.Object, a forge.Action, as, body string) store.Incoming {
	by := b.accounts[as]
	return store.Incoming{Forge: "gitea", Delivery: "backlog", Repo: b.repo, Number: i.number, Object: o, Action: a,
		Sender: by, Author: by, BodySHA: sha256.Sum256([]byte(body)), Source: store.SourceDelivery}
}

// poison makes every call about a thread go wrong.
func (b *backlog) poison(i *incident, f forgetest.Fault) {
	ids := map[string]bool{}
	for _, c := range b.forge.Comments(repoName, i.number) {
		ids[strconv.FormatInt(c.ID, 10)] = true
	}
	thread := fmt.Sprintf("/issues/%d", i.number)
	b.forge.Order(func(_, path string) bool {
		if _, id, ok := strings.Cut(path, "/issues/comments/"); ok {
			return ids[id]
		}
		return strings.HasSuffix(path, thread) || strings.Contains(path, thread+"/")
	}, f.For(-1))
}

// workOff waits until nothing waits but what is poisoned.
func (b *backlog) workOff(fresh *incident) {
	b.t.Helper()
	deadline := time.Now().Add(patience + time.Duration(b.events)*20*time.Millisecond)
	look := time.NewTicker(100 * time.Millisecond)
	defer look.Stop()
	b.leftAtFresh = -1
	for ; ; <-look.C {
		s, err := b.watch.Stats(b.t.Context())
		if err != nil {
			b.t.Fatal(err)
		}
		left := int(s.Waiting) - b.stuck
		b.samples = append(b.samples, sample{left, b.greatest()})
		if b.leftAtFresh < 0 && len(b.answers(fresh.number)) > 0 {
			b.leftAtFresh = max(left, 0)
		}
		switch {
		case left <= 0 && s.OpenAnswers == 0 && b.leftAtFresh >= 0:
			return
		case time.Now().After(deadline):
			b.t.Fatalf("%d events and %d answers are left of %d", left, s.OpenAnswers, b.events)
		}
	}
}

// greatest is the greatest resident size of the processes, in KiB.
func (b *backlog) greatest() int {
	most := 0
	for _, r := range b.all() {
		kib, err := resident(r.cmd.Process.Pid)
		if err != nil {
			b.t.Fatalf("read the size of %s: %v", r.name, err)
		}
		most = max(most, kib)
	}
	return most
}

// halves are the greatest sizes in the first and the second half of the work.
func (b *backlog) halves() (first, second int) {
	for _, s := range b.samples {
		if s.waiting > b.events/2 {
			first = max(first, s.kib)
		} else {
			second = max(second, s.kib)
		}
	}
	return first, second
}

func (b *backlog) memory() string {
	first, second := b.halves()
	return fmt.Sprintf("at most %d MiB, then %d MiB", first>>10, second>>10)
}

// flat makes sure that memory does not grow with the work done. What a garbage
// collector leaves lying for a while is allowed for.
func (b *backlog) flat() {
	b.t.Helper()
	if first, second := b.halves(); second > first*5/4+16<<10 {
		b.t.Errorf("memory grows: %s", b.memory())
	}
}
