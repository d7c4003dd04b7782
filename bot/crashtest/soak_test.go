//go:build unix

package crashtest

import (
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"playbook-bot/bot/forge/forgetest"
)

var (
	soakKills = flag.Int("soak", 10, "how many kills TestSoak survives, on each database")
	soakSeed  = flag.Uint64("soak.seed", 0, "seed of TestSoak's choices; 0: a new one, which is printed")
)

// soakThreads is how many conversations go on at once.
const soakThreads = 6

// TestSoak lets people talk in several threads while processes are killed at
// random boundaries and at random moments, frozen and continued, ended by
// SIGTERM and started anew, and answers of the forge get lost. Afterwards the same is said once more to a bot that is
// left in peace, and must have come to the same.
func TestSoak(t *testing.T) {
	seed := *soakSeed
	if seed == 0 {
		seed = rand.Uint64()
	}
	t.Logf("repeat with -soak=%d -soak.seed=%d", *soakKills, seed)
	var rows []row
	t.Cleanup(func() { table(t, fmt.Sprintf("%d kills", *soakKills), rows) })
	for _, db := range databases {
		t.Run(db.name, func(t *testing.T) {
			began := time.Now()
			s := &soak{world: newWorld(t, db.url(t), db.replicas), seed: seed, stop: make(chan struct{})}
			s.run(*soakKills)
			note := fmt.Sprintf("%d threads, %s, %.0f s", len(s.told), s.did(), time.Since(began).Seconds())
			calm := newWorld(t, db.url(t), db.replicas)
			var n tally
			for _, i := range s.told {
				counts, got, err := s.verifyQuiet(i.incident, s.reviveDead)
				n.add(counts)
				if err != nil {
					t.Errorf("%v\n%s", err, s.history(i.number))
				}
				if diff := cmp.Diff(calm.retell(i), got); diff != "" {
					t.Errorf("thread %d, where %q was said: not what came of it in peace (-peace +soak):\n%s", i.number, texts(i.steps), diff)
				}
			}
			rows = append(rows, row{"soak", db.name, n, note})
		})
	}
}

// telling is an incident with the texts that made it.
type telling struct {
	*incident
	steps []step
}

func texts(steps []step) (out []string) {
	for _, s := range steps {
		out = append(out, s.as+": "+s.said)
	}
	return out
}

// retell has the same said in another world, one text after the other.
func (w *world) retell(i *telling) outcome {
	w.t.Helper()
	again := &incident{}
	for _, s := range i.steps {
		w.mustSay(again, s)
	}
	w.settle(func() {})
	_, out, err := w.verify(again)
	if err != nil {
		w.t.Errorf("in peace: %v", err)
	}
	return out
}

// soak is one run on one database.
type soak struct {
	*world
	seed uint64
	stop chan struct{}

	mu   sync.Mutex
	told []*telling
	errs []error
	// done counts, and deeds lists, what the processes had to bear.
	done  map[string]int
	deeds []deed
}

func (s *soak) did() string {
	return fmt.Sprintf("%d at a boundary, %d at a moment, %d frozen, %d ended, %d faults",
		s.done["boundary"], s.done["moment"], s.done["frozen"], s.done["ended"], s.done["fault"])
}

// choices gives a stream of choices of its own to each who chooses.
func (s *soak) choices(who int) *rand.Rand { return rand.New(rand.NewPCG(s.seed, uint64(who))) }

func (s *soak) run(kills int) {
	s.done = map[string]int{}
	var talk sync.WaitGroup
	for n := range soakThreads {
		talk.Go(func() {
			r := s.choices(n + 1)
			for s.goesOn() {
				if err := s.incident(r); err != nil {
					s.mu.Lock()
					s.errs = append(s.errs, err)
					s.mu.Unlock()
					return
				}
			}
		})
	}
	for r := s.choices(0); s.done["boundary"]+s.done["moment"] < kills && s.goesOn(); {
		s.harm(r)
	}
	close(s.stop)
	talk.Wait()
	s.disarm()
	s.reviveDead()
	s.settle(s.reviveDead)
	if err := errors.Join(s.errs...); err != nil {
		s.t.Fatal(err)
	}
}

// deed is something that was done to the processes.
type deed struct {
	at   time.Time
	what string
}

func (s *soak) note(what string) { s.deeds = append(s.deeds, deed{time.Now(), what}) }

// history lists the calls about a thread among what was done to the processes
// meanwhile.
func (s *soak) history(number int64) string {
	var lines []deed
	part := fmt.Sprintf("/issues/%d/", number)
	for _, c := range s.forge.Calls() {
		if strings.Contains(c.Path+"/", part) {
			lines = append(lines, deed{c.At, fmt.Sprintf("%s %d", c.Kind, c.Status)})
		}
	}
	if len(lines) == 0 {
		return ""
	}
	first, last := lines[0].at.Add(-time.Second), lines[len(lines)-1].at
	for _, d := range s.deeds {
		if d.at.After(first) && d.at.Before(last) {
			lines = append(lines, d)
		}
	}
	slices.SortStableFunc(lines, func(a, b deed) int { return a.at.Compare(b.at) })
	var out strings.Builder
	for _, l := range lines {
		fmt.Fprintf(&out, "%s %s\n", l.at.Format("05.000"), l.what)
	}
	return out.String()
}

func (s *soak) goesOn() bool {
	select {
	case <-s.stop:
		return false
	default:
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.errs) == 0
}

// menu is what may be said between request and end; each is answered.
var menu = []step{
	{as: "rhea", said: "/attempt capability_refresh insufficient still the old tools", records: 1},
	{as: "remy", said: "/attempt client_reconnect failed", records: 1},
	{as: "wren", said: "| action | outcome |\n|---|---|\n| client_reconnect | insufficient |\n| capability_refresh | failed |\n", records: 2},
	{as: "wren", said: "/recommend stale_capability"},
	{as: "remy", said: "/playbook attempts"},
	{as: "remy", said: "/assess full_mcp_restart target=mcp-search"},
	{as: "olga", said: "/attempt nonsense failed"},
}

// incident has one incident told, and waits for its answers.
func (s *soak) incident(r *rand.Rand) error {
	i := &telling{incident: &incident{}, steps: []step{conversation[0]}}
	for range 1 + r.IntN(4) {
		st := menu[r.IntN(len(menu))]
		// The same attempt twice in a minute is one, and what is told again in
		// peace falls into minutes of its own.
		if st.records == 0 || !slices.ContainsFunc(i.steps, func(o step) bool { return o.said == st.said }) {
			i.steps = append(i.steps, st)
		}
	}
	if r.IntN(3) > 0 {
		i.steps = append(i.steps, step{as: "adam", said: "/endorse %d/1"})
	}
	if r.IntN(3) == 0 {
		i.steps = append(i.steps, step{as: "rhea", said: "/resolved full_mcp_restart back", records: 1})
	}
	for _, st := range i.steps {
		if err := s.say(i.incident, st); err != nil {
			return err
		}
		last := i.questions[len(i.questions)-1]
		if r.IntN(2) == 0 && !within(patience, func() bool { return len(s.answers(i.number)[last.key()]) > 0 }) {
			return fmt.Errorf("thread %d: %q by %s got no answer in %s", i.number, last.said, last.as, patience)
		}
	}
	s.mu.Lock()
	s.told = append(s.told, i)
	s.mu.Unlock()
	for _, q := range i.questions {
		if !within(patience, func() bool { return len(s.answers(i.number)[q.key()]) > 0 }) {
			return fmt.Errorf("thread %d: %q by %s got no answer in %s", i.number, q.said, q.as, patience)
		}
	}
	return nil
}

// faults are what becomes of a comment's POST now and then.
var faults = []forgetest.Fault{
	forgetest.DroppedDone(), forgetest.AnswerDone(500), {Delay: 150 * time.Millisecond}, forgetest.Dropped(),
}

// harm does one thing to the processes, and sees to it that they live again.
func (s *soak) harm(r *rand.Rand) {
	if r.IntN(3) == 0 {
		fault := faults[r.IntN(len(faults))]
		s.forge.OrderKind("comment.create", fault)
		s.done["fault"]++
		s.note(fmt.Sprintf("fault %+v", fault))
	}
	pause, victim := time.Duration(r.IntN(100))*time.Millisecond, r.IntN(2)
	point, nth, mode := boundaries[r.IntN(len(boundaries))], 1+r.IntN(3), r.IntN(10)
	all := s.all()
	switch v := all[victim%len(all)]; {
	case mode < 5:
		s.arm(fmt.Sprintf("%s:%d", point, nth))
		within(2*time.Second, func() bool { return !s.armed() })
		if s.disarm() {
			s.done["boundary"]++
			s.note("killed at " + point)
			// Its last breath: dead before the next is armed.
			within(patience, func() bool { return slices.ContainsFunc(all, (*replica).dead) })
		}
	case mode < 8:
		rest(pause)
		v.kill()
		s.done["moment"]++
		s.note("killed " + v.name)
	case mode < 9:
		rest(pause)
		s.note("asked " + v.name + " to end")
		v.stop(s.t)
		s.start(v.name)
		s.done["ended"]++
	default:
		s.note("froze " + v.name)
		v.freeze()
		rest(5 * pause)
		v.thaw()
		s.note("thawed " + v.name)
		s.done["frozen"]++
	}
	s.reviveDead()
}

// rest lets a moment of the bot's time pass.
func rest(d time.Duration) { <-time.NewTimer(d).C }
