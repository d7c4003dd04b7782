package bot

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"playbook-bot/bot/comment"
	"playbook-bot/bot/forge"
	"playbook-bot/playbook"
)

// What is filed reads like the form, so that it is parsed by the same code,
// and holds text of the agent's in code only, where it calls nobody and links
// nothing. Whether it says exactly what was asked, and nothing beside it, is
// checked by reading it.

// maxFiledReason is the longest reason that is filed, in characters; a longer
// one is cut.
const maxFiledReason = 2000

// filedAttempt is a record as it stands in a filed text.
type filedAttempt struct {
	Action     string    `json:"action"`
	Outcome    string    `json:"outcome"`
	Reason     string    `json:"reason"`
	Actor      string    `json:"actor"`
	RecordedAt time.Time `json:"recorded_at"`
	Target     string    `json:"target,omitempty"`
}

// filedAttempts gives records as a fence of JSON.
func filedAttempts(attempts []playbook.Attempt) (string, error) {
	if len(attempts) == 0 {
		return comment.NoResponse, nil
	}
	out := make([]filedAttempt, len(attempts))
	for i, a := range attempts {
		out[i] = filedAttempt{a.Action, a.Outcome, a.Reason, a.Actor, a.RecordedAt, a.Target}
	}
	// Escapes newlines, and with them whatever could end the fence.
	b, err := json.MarshalIndent(out, "", "  ")
	if err != nil {
		return "", fmt.Errorf("write the attempts: %w", err)
	}
	return "```json\n" + string(b) + "\n```", nil
}

// requestText is title and body of a request's issue, without its marker.
func requestText(q Filing, login string) (title, body string, err error) {
	attempts, err := filedAttempts(q.Attempts)
	if err != nil {
		return "", "", err
	}
	title = "Restart request: " + q.Action
	box := "- [ ] "
	if q.Target != "" {
		title += " on " + q.Target
	}
	if q.BreakGlass {
		box = "- [x] "
	}
	symptoms := make([]string, len(q.Symptoms))
	for i, s := range q.Symptoms {
		symptoms[i] = inCode(s)
	}
	var b strings.Builder
	for _, section := range [][2]string{
		{comment.LabelClass, q.Action},
		{comment.LabelTarget, inCode(q.Target)},
		{comment.LabelSymptoms, strings.Join(symptoms, ", ")},
		{comment.LabelHappened, fenced(q.Reason)},
		{comment.LabelAttempts, attempts},
		{comment.LabelBreakGlass, box + comment.BoxBreakGlass},
	} {
		if section[1] == "" {
			section[1] = comment.NoResponse
		}
		b.WriteString("### " + section[0] + "\n\n" + section[1] + "\n\n")
	}
	fmt.Fprintf(&b, "Filed in the name of `%s`, whose agent asked through the tool `%s`. It is judged by that account's standing. "+
		"Whoever changes this text ends the request.", login, q.Tool)
	return title, b.String(), nil
}

// recordText is the body of a record's comment, without its marker.
func recordText(q Recording, login string) (string, error) {
	attempts, err := filedAttempts([]playbook.Attempt{q.Attempt})
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("Logged in the name of `%s`, whose agent asked through the tool `%s`:\n\n%s", login, q.Tool, attempts), nil
}

func inCode(s string) string {
	if s == "" {
		return ""
	}
	return "`" + s + "`"
}

// fenced gives text as a block of code that nothing in it ends.
func fenced(s string) string {
	if s == "" {
		return ""
	}
	longest, run := 0, 0
	for _, r := range s {
		if run++; r != '`' {
			run = 0
		}
		longest = max(longest, run)
	}
	fence := strings.Repeat("`", max(longest+1, 3))
	return fence + "text\n" + s + "\n" + fence
}

// unfenced undoes fenced; another text is given back as it is.
func unfenced(s string) string {
	first, rest, ok := strings.Cut(s, "\n")
	fence, isText := strings.CutSuffix(first, "text")
	inner, ended := strings.CutSuffix(rest, "\n"+fence)
	if !ok || !isText || !ended || len(fence) < 3 || strings.Trim(fence, "`") != "" {
		return s
	}
	return inner
}

// lines makes text of an agent's fit to be shown: without control and
// invisible characters but for line ends, and no longer than n characters.
func lines(s string, n int) string {
	s = strings.ToValidUTF8(canonical(s), "\ufffd")
	s = strings.Map(func(r rune) rune {
		switch {
		case r == '\n':
			return r
		case r == '\t':
			return ' '
		case unicode.IsControl(r) || unicode.In(r, unicode.Cf, unicode.Zl, unicode.Zp):
			return -1
		}
		return r
	}, s)
	s = strings.Trim(s, "\n ")
	if utf8.RuneCountInString(s) > n {
		s = strings.TrimRight(string([]rune(s)[:n-1]), "\n ") + "…"
	}
	return s
}

// errUnreadable: a text would not be read as what was asked.
var errUnreadable = errors.New("it would not be read as it was meant")

// checkRequest reads a request's text, as the bot will, and fails unless it
// says what was asked and nothing else.
func (b *Bot) checkRequest(q Filing, t text, self string) error {
	r := b.parse(t, t.created, self)
	f := r.Form
	same := f != nil && f.Problem == nil && f.Action == q.Action && f.Target == q.Target && f.BreakGlass == q.BreakGlass && f.Reason == q.Reason &&
		strings.Join(f.Symptoms, "\n") == strings.Join(q.Symptoms, "\n")
	if !same || strings.Contains(q.Target+strings.Join(q.Symptoms, ""), "`") { // which would end the code they stand in
		return errUnreadable
	}
	return checkRecords(q.Attempts, r)
}

// checkRecords fails unless these records, and nothing else to act upon, were
// read.
func checkRecords(want []playbook.Attempt, r comment.Read) error {
	if r.Refused || len(r.Commands) > 0 || len(r.Rejections) > 0 || len(r.Records) != len(want) {
		return errUnreadable
	}
	for i, a := range want {
		got := r.Records[i]
		if !playbook.SameAttempt(a, got.Attempt) || a.Reason != got.Reason || a.Kill != got.Kill {
			return errUnreadable
		}
	}
	return nil
}

// draft is a filed text before it is posted, for reading it.
func draft(kind forge.ObjectKind, body string, author forge.Account, now time.Time) text {
	return text{Object: forge.Object{Kind: kind}, author: author, body: body, created: now, updated: now, filed: true}
}
