package bot_test

import (
	"errors"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"playbook-bot/bot"
	"playbook-bot/bot/golden"
)

// TestWhatIsFiledSaysWhatWasAsked: whatever text an agent sends, the issue is
// one request of just that, in its account's name, or there is no issue. Its
// text runs no command, calls nobody, and gets nobody an approval.
func TestWhatIsFiledSaysWhatWasAsked(t *testing.T) {
	hostile := []string{"", "mcp-search", "two words", "### Requested class\n\nhost_restart", "/endorse 1/1", "x\n\n/endorse 1/1\n\n/withdraw", "```\n/endorse 1/1\n```",
		"````text\n```", "<!-- ", "--> <!--", "-->\n\n/endorse 1/1", "@adam", "@playbook-bot restart host_restart", "`", "``a``", "> /endorse 1/1", "- [x] I request break-glass", "\u202e\u200b/endorse",
		"x` @adam", "_No response_", "none", "\r/endorse 1/1", "a\x00b", "<details>", "| action | outcome |\n|---|---|\n| client_reconnect | failed |", "[{\"action\":\"client_reconnect\",\"outcome\":\"failed\"}]",
		strings.Repeat("> ", 40) + "x", strings.Repeat(" ", 300) + "x", strings.Repeat("`", 5000), "é́́́́́", "\xff\xfe",
		"<!-- playbook-bot-filed:1 key=A account=1 login=adam tool=x at=1 mac=" + strings.Repeat("0", 64) + " -->"}
	w := newDeskWorld(t)
	rnd := rand.New(rand.NewPCG(6, 3))
	text := func() string { return hostile[rnd.IntN(len(hostile))] }
	filedN, refusedN := 0, 0
	for i := range 250 {
		must(t, w.Advance(15*time.Minute))
		q := w.full([]string{"rhea", "rob"}[i%2])
		q.Target, q.Reason, q.Symptoms, q.BreakGlass = text(), text(), []string{text(), "session_expired"}, rnd.IntN(3) == 0
		q.Attempts[0].Reason, q.Attempts[0].Target, q.Attempts[0].Actor = text(), text(), q.Account
		if rnd.IntN(2) == 0 {
			q.Attempts = nil
		}
		filed, err := w.desk().File(t.Context(), q)
		var refused *bot.DeskError
		if errors.As(err, &refused) {
			refusedN++
			continue
		}
		must(t, err)
		must(t, w.Advance(0))
		if filedN++; filed.Existing {
			continue
		}
		d, err := w.desk().Status(t.Context(), bot.Inquiry{Account: q.Account, Repository: golden.RepoName, Number: filed.Number})
		must(t, err)
		if d.Verdict == "approved" || d.Requester != q.Account || d.Action != q.Action || d.BreakGlass.Requested != q.BreakGlass || d.Endorser != nil {
			t.Fatalf("%+v became %+v", q, d)
		}
		if n := len(d.Counted) + len(d.Ignored); n != len(q.Attempts) {
			t.Fatalf("%d attempts became %d: %+v", len(q.Attempts), n, q)
		}
		body := w.Forge.Issue(golden.RepoName, filed.Number).Body
		for _, line := range strings.Split(outsideCode(body), "\n") {
			if strings.Contains(line, "@") || strings.HasPrefix(line, "/") {
				t.Fatalf("%q stands outside code in\n%s", line, body)
			}
		}
	}
	if filedN < 50 || refusedN == 0 {
		t.Errorf("%d filed, %d refused: the texts test nothing", filedN, refusedN)
	}
}

// outsideCode is a filed text without its fences and code spans.
func outsideCode(body string) string {
	var out []string
	fence := ""
	for _, line := range strings.Split(body, "\n") {
		ticks := line[:len(line)-len(strings.TrimLeft(line, "`"))]
		switch {
		case fence == "" && len(ticks) >= 3:
			fence = ticks
		case fence != "":
			if line == fence {
				fence = ""
			}
		default:
			for i, part := range strings.Split(line, "`") {
				if i%2 == 0 {
					out = append(out, part)
				}
			}
		}
	}
	return strings.Join(out, "\n")
}
