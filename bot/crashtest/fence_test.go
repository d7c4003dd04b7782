//go:build unix

package crashtest

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"
)

// lostLease is what a process logs that finds itself fenced.
const lostLease = "lost the lease"

// frozenAt are the boundaries at which a process that sleeps past its lease
// holds work that another does meanwhile.
var frozenAt = []string{"acquired", "read", "deciding", "decided", "claiming", "claimed", "posted", "recorded", "labelling", "reacting"}

// TestFrozen stops a replica (SIGSTOP) past its lease and lets it go on once
// the other has done its work: it must find itself fenced, and there is still
// one lasting answer.
func TestFrozen(t *testing.T) {
	for _, point := range frozenAt {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			db := databases[1]
			w := newWorld(t, db.url(t), db.replicas)
			i := &incident{}
			w.arm(point + ":1:stop")
			w.mustSay(i, conversation[0])
			r := w.frozen()
			w.settle(func() {})
			w.mustVerify(i)
			if r.logged(lostLease) {
				t.Fatal("it was not asleep")
			}
			r.thaw()
			eventually(t, r.name+" finds itself fenced", func() bool { return r.logged(lostLease) })
			w.settle(func() {})
			w.mustVerify(i)
			w.goesOn(i, r)
		})
	}
}

// goesOn kills all replicas but one and has it answer the rest of the
// conversation.
func (w *world) goesOn(i *incident, last *replica) {
	w.t.Helper()
	for _, r := range w.all() {
		if r != last {
			r.kill()
		}
	}
	for _, s := range conversation[len(i.questions):] {
		w.mustSay(i, s)
		w.settle(func() {})
	}
	w.mustVerify(i)
}

func (w *world) mustSay(i *incident, s step) {
	w.t.Helper()
	if err := w.say(i, s); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) mustVerify(i *incident) {
	w.t.Helper()
	if _, _, err := w.verify(i); err != nil {
		w.t.Fatal(err)
	}
}

// TestWakesBeforeItsDeadline: a replica loses its lease after it claimed an
// answer, and wakes up while its POST may still begin. Its successor must have
// waited for that, and take the comment for its own.
func TestWakesBeforeItsDeadline(t *testing.T) {
	t.Parallel()
	db := databases[1]
	w := newWorld(t, db.url(t), db.replicas, setting("LEASE=50ms"))
	i := &incident{}
	w.arm("claimed:1:stop")
	before := w.forge.CallCounts()["comment.list"]
	w.mustSay(i, conversation[0])
	r := w.frozen()
	eventually(t, "the other looks for the answer", func() bool { return w.forge.CallCounts()["comment.list"] > before })
	r.thaw()
	w.settle(func() {})
	eventually(t, r.name+" finds itself fenced", func() bool { return r.logged(lostLease) })
	w.settle(func() {})
	w.mustVerify(i)
	w.goesOn(i, r)
}

// TestFrozenAlone: on SQLite nobody takes over. The process finds that its own
// claim is too old to post upon, and looks before it does.
func TestFrozenAlone(t *testing.T) {
	for _, point := range frozenAt {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, databases[0].url(t), 1)
			i := &incident{}
			w.arm(point + ":1:stop")
			w.mustSay(i, conversation[0])
			r := w.frozen()
			asleep := time.NewTimer(600 * time.Millisecond)
			<-asleep.C // past lease and deadline: what is tested is time itself
			r.thaw()
			w.settle(func() {})
			w.mustVerify(i)
			w.goesOn(i, r)
		})
	}
}

// TestCutOff cuts a replica off from its database in the middle of its work:
// the connections stand, and nothing comes through. The other takes over;
// afterwards the first finds itself fenced, and is as good as before.
func TestCutOff(t *testing.T) {
	for _, point := range []string{"read", "decided", "claimed", "posted", "recorded"} {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			database := databases[1].url(t)
			w := newWorld(t, database, 0)
			line := newLine(t, database)
			a := w.start("replica 1", "DATABASE_URL="+line.url)
			w.openWatch()
			b := w.start("replica 2")

			b.freeze() // so that it is the first that does the work
			i := &incident{}
			w.arm(point + ":1:stop")
			w.mustSay(i, conversation[0])
			if w.frozen() != a {
				t.Fatal("the wrong one stopped")
			}
			line.cut()
			b.thaw()
			a.signal(wake)
			w.settle(func() {})
			w.mustVerify(i)
			w.sick(a)

			line.mend()
			a.away.Store(false)
			eventually(t, "the replica is ready again", func() bool {
				status, _ := ask(a.url + "/readyz")
				return status == http.StatusOK
			})
			w.settle(func() {})
			w.mustVerify(i)
			w.goesOn(i, a)
		})
	}
}

// sick makes sure that a replica without its database says so, to whoever
// asks and to whoever delivers, before a forge's patience is over.
func (w *world) sick(r *replica) {
	w.t.Helper()
	if status, body := ask(r.url + "/readyz"); status != http.StatusServiceUnavailable || !strings.Contains(body, "database") {
		w.t.Errorf("/readyz without a database: %d %q", status, body)
	}
	sent := w.forge.Deliveries()
	d := sent[0]
	req, err := http.NewRequestWithContext(w.t.Context(), http.MethodPost, r.url+d.Path, strings.NewReader(string(d.Body)))
	if err != nil {
		w.t.Fatal(err)
	}
	req.Header = d.Header.Clone()
	resp, err := patient.Do(req)
	if err != nil {
		w.t.Errorf("a delivery without a database: %v", err)
		return
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusServiceUnavailable {
		w.t.Errorf("a delivery without a database: %d", resp.StatusCode)
	}
}

// patient waits as long as Gitea does by default.
var patient = &http.Client{Timeout: 5 * time.Second}

func ask(url string) (status int, body string) {
	resp, err := patient.Get(url)
	if err != nil {
		return 0, err.Error()
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(io.LimitReader(resp.Body, 1<<10))
	if err != nil {
		return 0, fmt.Sprintf("read the answer: %v", err)
	}
	return resp.StatusCode, string(b)
}
