package bot_test

import (
	"strings"
	"testing"

	"playbook-bot/bot/forge/forgetest"
	"playbook-bot/bot/golden"
)

// TestDeliveriesUnderWay: people are quick, and the first delivery of a thread
// has it read before the next ones came. What they bring is no less their
// authors' word for that, in whatever order they come.
func TestDeliveriesUnderWay(t *testing.T) {
	for name, order := range map[string][]int{"in order": {0, 1, 2}, "the request last": {2, 1, 0}, "the attempt last": {2, 0, 1}} {
		t.Run(name, func(t *testing.T) {
			sc := &golden.Scenario{Name: name, Repos: repoName, BotPerm: "admin", People: people}
			w := golden.NewFake(t, sc, nil)
			w.Forge.Hold(true)
			w.Hurry()
			n, err := w.Open("rhea", "down", "/restart "+full+" symptom=stale_capability")
			if err != nil {
				t.Fatal(err)
			}
			for _, s := range [][2]string{{"rhea", "/attempt capability_refresh insufficient"}, {"adam", "/endorse 1/1"}} {
				w.Hurry()
				if err := w.Comment(s[0], n, s[1]); err != nil {
					t.Fatal(err)
				}
			}
			held := w.Forge.Take()
			w.Forge.Hold(false)
			if len(held) != 3 {
				t.Fatalf("%d deliveries", len(held))
			}
			for _, i := range order {
				if s := w.Forge.Send(forgetest.Delivery(held[i])); s[0] != 202 {
					t.Fatalf("delivery %d: %v", i, s)
				}
				if err := w.Bot.Drain(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			if err := w.Advance(0); err != nil {
				t.Fatal(err)
			}
			said := w.Forge.CommentsBy(w.BotLogin(), repoName, n)
			if len(said) != 3 || !strings.Contains(said[2].Body, "pproved until") {
				t.Errorf("%d answers; the last:\n%s", len(said), said[len(said)-1].Body)
			}
		})
	}
}
