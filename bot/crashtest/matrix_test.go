//go:build unix

package crashtest

import (
	stdcmp "cmp"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// boundaries are all points of bot.Config.Fail, in the order in which an
// event passes them. TestEveryBoundaryIsTried holds the list to the code.
var boundaries = []string{
	"accepting", "accepted", "acquired", "reading", "read", "listed", "deciding", "decided", "claiming", "claimed",
	"posted", "recorded", "labelling", "labelled", "reacting", "reacted", "releasing", "released",
}

// TestMatrix kills processes at every boundary of the ledger, at each text of
// a conversation: they are started anew, or the other replica takes over. What
// comes of it must be what comes of a conversation in which nobody dies.
func TestMatrix(t *testing.T) {
	var mu sync.Mutex
	var rows []row
	t.Cleanup(func() {
		place := func(r row) int { return slices.Index(boundaries, strings.TrimSuffix(r.what, " (upheaval)")) }
		slices.SortFunc(rows, func(a, b row) int {
			return stdcmp.Or(place(a)-place(b), stdcmp.Compare(b.database, a.database), stdcmp.Compare(a.what, b.what))
		})
		table(t, "killed at", rows)
	})
	for _, db := range databases {
		for name, steps := range map[string][]step{"": conversation, " (upheaval)": upheaval} {
			t.Run(db.name+name, func(t *testing.T) {
				t.Parallel()
				want := undisturbed(t, db.url(t), db.replicas, steps)
				for _, point := range boundaries {
					t.Run(point, func(t *testing.T) {
						t.Parallel()
						began := time.Now()
						w := newWorld(t, db.url(t), db.replicas)
						got, n, kills := w.disturbed(point, steps)
						if kills == 0 {
							t.Errorf("nothing passed %s", point)
						}
						if diff := cmp.Diff(want, got); diff != "" {
							t.Errorf("not what came of it undisturbed (-undisturbed +disturbed):\n%s", diff)
						}
						mu.Lock()
						defer mu.Unlock()
						rows = append(rows, row{point + name, db.name, n, fmt.Sprintf("%d kills, %.1f s", kills, time.Since(began).Seconds())})
					})
				}
			})
		}
	}
}

// undisturbed is what the conversation comes to, after each of its texts.
func undisturbed(t *testing.T, database string, replicas int, steps []step) []outcome {
	t.Helper()
	w := newWorld(t, database, replicas)
	after, _, _ := w.disturbed("", steps)
	approved := slices.ContainsFunc(after, func(o outcome) bool { return o.Approval == "full_mcp_restart mcp-search adam" })
	if revoked := after[len(after)-1].Unasked; !approved || (len(revoked) == 1) != (len(steps) == len(upheaval)) {
		t.Fatalf("the conversation itself goes wrong: %+v", after)
	}
	return after
}

// killsPerText is how often a text of the conversation has a process killed
// at the boundary: the second time it may be the one that takes over.
const killsPerText = 2

// disturbed plays the conversation; each of its texts kills processes at the
// boundary, if one gets there. After each it must be as if nothing had been.
func (w *world) disturbed(point string, steps []step) (after []outcome, n tally, kills int) {
	w.t.Helper()
	i := &incident{}
	for _, s := range steps {
		left := killsPerText
		if point != "" {
			w.arm(point)
		}
		if err := w.say(i, s); err != nil {
			w.t.Fatal(err)
		}
		killed := func() {
			if point != "" && left > 0 && !w.armed() {
				kills++
				if left--; left > 0 {
					w.arm(point)
				}
			}
		}
		w.settle(func() {
			killed()
			// Where another replica lives, the work is its to take over.
			w.reviveLast()
		})
		if point == boundaries[len(boundaries)-1] && left == killsPerText {
			// All is done in the ledger a moment before a process gets there.
			within(patience, func() bool { return !w.armed() })
			killed()
		}
		w.disarm()
		var out outcome
		var err error
		n, out, err = w.verifyQuiet(i, w.reviveLast)
		if err != nil {
			w.t.Errorf("after %q: %v", s.said, err)
		}
		after = append(after, out)
		w.reviveDead()
		w.settle(w.reviveDead)
	}
	return after, n, kills
}
