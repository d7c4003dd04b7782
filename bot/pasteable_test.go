package bot_test

import (
	"regexp"
	"strings"
	"testing"
	"time"

	"playbook-bot/bot/command"
	"playbook-bot/bot/comment"
	"playbook-bot/bot/golden"
	"playbook-bot/playbook"
)

var (
	fencedPost = regexp.MustCompile("(?ms)^[ ]*(`{3,})\n(.*?)\n[ ]*`{3,}$")
	codedPost  = regexp.MustCompile("`(/[^`\n]+)`")
)

// TestWhatAnAnswerSaysToPostCanBePosted reads every command that the golden
// answers show back as a comment: each is taken, as it stands. The ones in a
// sentence are shown with what they lack ("and a reason"), and must be known.
func TestWhatAnAnswerSaysToPostCanBePosted(t *testing.T) {
	lines := 0
	for _, sc := range golden.Files(t, "testdata/conversations") {
		book := playbook.Default()
		if sc.Playbook != "" {
			var err error
			if book, err = playbook.Load(strings.NewReader(sc.Playbook)); err != nil {
				t.Fatal(err)
			}
		}
		parse := func(line string) comment.Read {
			return comment.Parse(line, comment.Options{Playbook: book, Bot: botLogin,
				Context: playbook.Context{Author: "reader", At: time.Unix(1_800_000_000, 0)}})
		}
		for _, st := range sc.Steps {
			if len(st.Words) == 0 || st.Words[0] != "bot" {
				continue
			}
			for _, m := range fencedPost.FindAllStringSubmatch(st.Text, -1) {
				line := strings.TrimSpace(m[2])
				if !strings.HasPrefix(line, "/") {
					continue // a grant, for the operator
				}
				lines++
				r := parse(line)
				if len(r.Commands) != strings.Count(line, "\n")+1 || len(r.Rejections) > 0 {
					t.Errorf("%s: %q is read as %+v, rejected: %+v", sc.Name, line, r.Commands, r.Rejections)
				}
			}
			for _, m := range codedPost.FindAllStringSubmatch(st.Text, -1) {
				name, _, _ := strings.Cut(strings.TrimPrefix(m[1], "/"), " ")
				if _, ok := command.Lookup(name); !ok {
					t.Errorf("%s: `%s` is no command of ours", sc.Name, m[1])
				} else if r := parse(m[1]); strings.Contains(m[1], " ") && m[1] != "/playbook clear-contamination" && (len(r.Commands) != 1 || r.Commands[0].Problem != nil) {
					t.Errorf("%s: `%s` is read as %+v, rejected: %+v", sc.Name, m[1], r.Commands, r.Rejections)
				}
			}
		}
	}
	if lines < 50 {
		t.Errorf("only %d lines to post were found: the pattern no longer fits the answers", lines)
	}
}
