package bot_test

import (
	"testing"
	"time"

	"playbook-bot/bot/forge/forgetest"
)

// firstLook is when the bot's first reaction and its answer reached the forge.
func (w *world) firstLook(act func()) (look, answer time.Duration) {
	w.forge.ResetCalls()
	began := time.Now()
	act()
	for _, c := range w.forge.Calls() {
		switch {
		case c.As != botLogin:
		case c.Kind == "reaction.add" && look == 0:
			look = c.At.Sub(began) + 1
		case c.Kind == "comment.create":
			answer = c.At.Sub(began) + 1
		}
	}
	return look, answer
}

// TestFirstLook: the first reaction is not in the way of a quick answer, and is
// there within a second where the answer is not.
func TestFirstLook(t *testing.T) {
	inBubble(t, func(w *world) {
		n := w.opens("adam", "search is down")
		w.forge.OrderKind("comment.create", forgetest.Fault{Delay: 200 * time.Millisecond})
		look, answer := w.firstLook(func() { w.says("adam", n, "/playbook help") })
		if look == 0 || answer == 0 || look < answer {
			t.Errorf("quick answer: seen after %v, answered after %v", look, answer)
		}
		w.forge.OrderKind("comment.create", forgetest.Fault{Delay: 3 * time.Second})
		look, answer = w.firstLook(func() { w.says("adam", n, "/playbook attempts") })
		if look == 0 || answer == 0 || look >= time.Second {
			t.Errorf("slow answer: seen after %v, answered after %v", look, answer)
		}
	})
}
