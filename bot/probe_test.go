package bot_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"playbook-bot/bot"
	"playbook-bot/bot/golden"
	"playbook-bot/playbook"
)

// prober answers probes as told, and counts them.
type prober struct {
	report bot.ProbeReport
	err    error
	asked  []string
}

func (p *prober) Servers() []string { return []string{"mcp-search", "mcp-index"} }

func (p *prober) Probe(_ context.Context, server string) (bot.ProbeReport, error) {
	p.asked = append(p.asked, server)
	return p.report, p.err
}

func recovered() bot.ProbeReport {
	return bot.ProbeReport{Answering: true, RecoveredBy: "session_reconnect", Verdict: "Recovered on rung 2.", Attempts: []playbook.Attempt{
		{Action: "client_reconnect", Outcome: "failed", Reason: "404"},
		{Action: "capability_refresh", Outcome: "failed", Reason: "404"},
		{Action: "session_reconnect", Outcome: "succeeded", Reason: "12 tools"},
	}}
}

func probeWorld(t *testing.T, p *prober) *golden.Fake {
	t.Helper()
	sc := &golden.Scenario{Name: t.Name(), Repos: golden.RepoName, BotPerm: "admin", People: []golden.Person{
		{Login: "adam", Permission: "admin"}, {Login: "wren", Permission: "write"}, {Login: "rhea", Permission: "read"}}}
	return golden.NewFake(t, sc, func(c *bot.Config) { c.Prober = p })
}

// said is the text of the bot's last comment.
func said(t *testing.T, w *golden.Fake, number int64) string {
	t.Helper()
	posts, err := w.Thread(number)
	if err != nil {
		t.Fatal(err)
	}
	for i := len(posts) - 1; i >= 0; i-- {
		if posts[i].Author == w.BotLogin() {
			return posts[i].Body
		}
	}
	return ""
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestProbeThatRecoversEndsTheRequest(t *testing.T) {
	p := &prober{report: recovered()}
	w := probeWorld(t, p)
	n, err := w.Open("rhea", "search is down", "/restart full_mcp_restart target=mcp-search")
	must(t, err)
	must(t, w.Comment("rhea", n, "/probe MCP-Search"))
	if got := said(t, w, n); !strings.Contains(got, "Recovered by `session_reconnect`") || !strings.Contains(got, `"state": "recovered"`) {
		t.Errorf("the request should be over:\n%s", got)
	}
	if len(p.asked) != 1 || p.asked[0] != "mcp-search" {
		t.Errorf("asked %q", p.asked)
	}
}

// TestProbeSaysThatNothingIsReplayed wherever the session it held was over,
// by whatever rung the server came back.
func TestProbeSaysThatNothingIsReplayed(t *testing.T) {
	for _, ended := range []bool{false, true} {
		report := bot.ProbeReport{Answering: true, RecoveredBy: "client_reconnect", SessionEnded: ended, Verdict: "Recovered on rung 0.",
			Attempts: []playbook.Attempt{{Action: "client_reconnect", Outcome: "succeeded", Reason: "12 tools"}}}
		w := probeWorld(t, &prober{report: report})
		n, err := w.Open("rhea", "search is down", "/restart full_mcp_restart target=mcp-search\n/attempt client_reconnect failed still 404")
		must(t, err)
		must(t, w.Comment("rhea", n, "/probe mcp-search"))
		got := said(t, w, n)
		if !strings.Contains(got, "Recovered by `client_reconnect`") || strings.Contains(got, "Calls in flight are not replayed") != ended {
			t.Errorf("ended %v:\n%s", ended, got)
		}
	}
}

func TestProbeAdvisesWhereTheRequestIsSomebodyElses(t *testing.T) {
	w := probeWorld(t, &prober{report: recovered()})
	n, err := w.Open("rhea", "search is down", "/restart full_mcp_restart target=mcp-search")
	must(t, err)
	must(t, w.Comment("wren", n, "/probe mcp-search"))
	got := said(t, w, n)
	if !strings.Contains(got, "Probed") || !strings.Contains(got, `"state": "open"`) {
		t.Errorf("the request should stay open:\n%s", got)
	}
}

func TestProbeEvidenceIsVerifiedAndSurvivesTheDatabase(t *testing.T) {
	report := bot.ProbeReport{Verdict: "No answer.", Attempts: []playbook.Attempt{{Action: "client_reconnect", Outcome: "timeout", Reason: "10 s"}}}
	w := probeWorld(t, &prober{report: report})
	n, err := w.Open("adam", "search is down", "nothing works")
	must(t, err)
	must(t, w.Comment("adam", n, "/probe mcp-search"))
	must(t, w.LoseDatabase())
	must(t, w.Comment("adam", n, "/restart full_mcp_restart target=mcp-search"))
	got := said(t, w, n)
	if !strings.Contains(got, "Approved until") || !strings.Contains(got, `"verified": true`) {
		t.Errorf("the probe's own attempt should carry the approval:\n%s", got)
	}
	must(t, w.EditComment("wren", n, 2, "nothing to see"))
}

func TestProbeRefusals(t *testing.T) {
	p := &prober{report: recovered()}
	w := probeWorld(t, p)
	n, err := w.Open("rhea", "index is down", "/restart full_mcp_restart target=mcp-index")
	must(t, err)
	for _, c := range []struct{ line, want string }{
		{"/probe http://169.254.169.254/latest", "No such server"},
		{"/probe mcp-search", "about another server"},
		{"/probe", "names no server"},
	} {
		must(t, w.Comment("rhea", n, c.line))
		if got := said(t, w, n); !strings.Contains(got, c.want) {
			t.Errorf("%s: want %q in\n%s", c.line, c.want, got)
		}
	}
	if len(p.asked) != 0 {
		t.Errorf("probed %q", p.asked)
	}
	p.err = errors.New("secret words of a peer")
	must(t, w.Comment("rhea", n, "/probe mcp-index"))
	if got := said(t, w, n); !strings.Contains(got, "could not be done") || strings.Contains(got, "secret words") {
		t.Errorf("a failed probe said\n%s", got)
	}
	must(t, w.Comment("rhea", n, "/probe mcp-index"))
	if got := said(t, w, n); !strings.Contains(got, "Not probed again yet") {
		t.Errorf("probed twice at once:\n%s", got)
	}
}
