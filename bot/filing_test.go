package bot

import (
	"strings"
	"testing"
	"time"

	"playbook-bot/bot/forge"
)

func TestFilingMarker(t *testing.T) {
	m := filingMark{Key: "K7", Account: forge.Account{ID: 5, Login: "rhea"}, Tool: "request_mcp_restart", At: time.Unix(1_780_000_000, 0).UTC()}
	issue := filingPlace("gitea", 41, forge.ObjectIssue, 3)
	body := signFiling("old", issue, m, "text  \r\n")
	for name, c := range map[string]struct {
		secrets []string
		place   place
		body    string
		fits    bool
	}{
		"as posted":                  {[]string{"old"}, issue, body, true},
		"in any issue, before it is": {[]string{"old"}, filingPlace("gitea", 41, forge.ObjectIssue, 9), body, true},
		"after a rotation":           {[]string{"new", "old"}, issue, body, true},
		"white space at the end":     {[]string{"old"}, issue, body + "\r\n\n", true},
		"another secret":             {[]string{"new"}, issue, body, false},
		"another repository":         {[]string{"old"}, filingPlace("gitea", 42, forge.ObjectIssue, 3), body, false},
		"another forge":              {[]string{"old"}, filingPlace("github", 41, forge.ObjectIssue, 3), body, false},
		"a comment":                  {[]string{"old"}, filingPlace("gitea", 41, forge.ObjectComment, 3), body, false},
		"a word changed":             {[]string{"old"}, issue, strings.Replace(body, "text", "test", 1), false},
		"another account":            {[]string{"old"}, issue, strings.Replace(body, "account=5", "account=6", 1), false},
		"another time":               {[]string{"old"}, issue, strings.Replace(body, "at=178", "at=179", 1), false},
		"something after it":         {[]string{"old"}, issue, body + "\nmore", false},
		"no marker":                  {[]string{"old"}, issue, "text", false},
		"an answer's marker":         {[]string{"old"}, issue, sign("old", issue, marker{Key: "K7"}, "text"), false},
	} {
		got, ok := readFiling(c.secrets, c.place, c.body)
		if ok != c.fits || ok && got != m {
			t.Errorf("%s: %+v, %v", name, got, ok)
		}
	}
	if _, ok, _ := verify([]string{"old"}, issue, body); ok {
		t.Error("a filing's marker passes for an answer's")
	}
}

func FuzzFenced(f *testing.F) {
	for _, s := range []string{"", "a", "```", "a\n````\nb", "`", "text\n", "\n", "```text\nx\n```"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		s = lines(s, 500)
		if got := unfenced(fenced(s)); got != s {
			t.Errorf("%q became %q", s, got)
		}
	})
}
