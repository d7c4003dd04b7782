//go:build unix

package crashtest

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"
	"time"

	"playbook-bot/bot/forge/forgetest"
)

// TestPostUnderWay kills the bot while its POST is under way and takes effect
// only afterwards: whoever comes next must not look too early. The second try
// of an answer deserves the same patience as the first.
func TestPostUnderWay(t *testing.T) {
	for _, db := range databases {
		for name, before := range map[string][]forgetest.Fault{
			"first try":                    nil,
			"after a lost connection":      {forgetest.Dropped()},
			"after a refusal":              {forgetest.Answer(503)},
			"after a wait as told":         {forgetest.RateLimited(429, time.Second)},
			"after a refusal and a loss":   {forgetest.Answer(503), forgetest.Dropped()},
			"after two lost connections":   {forgetest.Dropped(), forgetest.Dropped()},
			"after a gateway's short page": {forgetest.GatewayPage(502)},
		} {
			t.Run(db.name+"/"+name, func(t *testing.T) {
				t.Parallel()
				w := newWorld(t, db.url(t), db.replicas)
				for _, f := range before {
					w.forge.OrderKind("comment.create", f)
				}
				late := w.forge.OrderKind("comment.create", forgetest.Fault{Delay: 220 * time.Millisecond})
				i := &incident{}
				w.mustSay(i, conversation[0])
				eventually(t, "the POST is under way", func() bool { return late.Applied() > 0 })
				for _, r := range w.all() {
					r.kill()
				}
				w.reviveDead()
				w.settle(func() {})
				w.mustVerify(i)
				w.goesOn(i, w.all()[0])
			})
		}
	}
}

// TestLostDelivery kills the bot before a delivery is stored, and nobody sends
// it again: the sweep at the next start finds what it told of. What comes late
// all the same is no second question.
func TestLostDelivery(t *testing.T) {
	for _, db := range databases {
		t.Run(db.name, func(t *testing.T) {
			t.Parallel()
			// The sweep leaves alone what is younger than ten seconds: its
			// delivery may be on the way. This forge's clock is behind.
			w := newWorld(t, db.url(t), db.replicas, clock(func() time.Time { return time.Now().Add(-15 * time.Second) }))
			w.redeliver.Store(false)
			i := &incident{}
			for _, s := range conversation[:3] {
				w.arm("accepting")
				w.mustSay(i, s)
				w.forge.Settle()
				if !w.disarm() {
					t.Fatal("nobody was killed")
				}
				eventually(t, "a process is dead", func() bool { return slices.ContainsFunc(w.all(), (*replica).dead) })
				w.reviveDead()
				last := i.questions[len(i.questions)-1]
				eventually(t, "the sweep finds it", func() bool { return len(w.answers(i.number)[last.key()]) > 0 })
				w.settle(func() {})
			}
			w.mustVerify(i)
			for _, d := range w.forge.Deliveries() {
				if status := w.forge.Send(w.forge.Redelivered(d)); status[0]/100 != 2 {
					t.Errorf("%s, sent again: %v", d.Event, status)
				}
			}
			w.settle(func() {})
			w.mustVerify(i)
		})
	}
}

// TestEveryBoundaryIsTried holds the list of boundaries to the code.
func TestEveryBoundaryIsTried(t *testing.T) {
	files, err := filepath.Glob("../*.go")
	if err != nil {
		t.Fatal(err)
	}
	call := regexp.MustCompile(`\bFail\("([a-z]+)"\)`)
	found := map[string]bool{}
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range call.FindAllSubmatch(text, -1) {
			found[string(m[1])] = true
		}
	}
	for point := range found {
		if !slices.Contains(boundaries, point) {
			t.Errorf("nobody is killed at %s", point)
		}
	}
	if len(found) != len(boundaries) {
		t.Errorf("%d boundaries in the code, %d tried", len(found), len(boundaries))
	}
}
