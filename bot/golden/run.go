package golden

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"sort"
	"strconv"
	"strings"
	"testing"
	"time"

	"playbook-bot/playbook"
)

var update = flag.Bool("update", false, "rewrite the golden conversations from what the bot says")

// Post is a comment as the forge holds it.
type Post struct {
	ID     int64
	Author string
	Body   string
}

// World is a forge with the bot beside it. Each act returns when the bot has
// nothing left to do about it.
type World interface {
	Open(as, title, body string) (number int64, err error)
	Comment(as string, number int64, body string) error
	EditIssue(as string, number int64, body string) error
	EditTitle(as string, number int64, title string) error
	EditComment(as string, number, id int64, body string) error
	DeleteComment(as string, number, id int64) error
	SetClosed(as string, number int64, closed bool) error
	Thread(number int64) ([]Post, error)
	// End tells labels and the bot's reactions, for the "end" step.
	End(number int64) (string, error)
	BotLogin() string
	// Genuine reports whether a comment bears a marker of the bot's that fits.
	Genuine(number int64, p Post) bool
}

// Committer is a World with files.
type Committer interface {
	// Commit writes a file of the default branch; an empty one is removed.
	Commit(as, path, content string) error
}

// Faker is what only a fake forge can do.
type Faker interface {
	Advance(d time.Duration) error
	Become(login, permission string) error
	Import(as, original string, number int64, body string) error
	Sweep() error
	Quiet(on bool) error
	LoseDatabase() error
}

// Files lists the scenarios of a directory.
func Files(t *testing.T, dir string) []*Scenario {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, "*.txtar"))
	if err != nil || len(names) == 0 {
		t.Fatalf("no scenarios in %s: %v", dir, err)
	}
	sort.Strings(names)
	var out []*Scenario
	for _, n := range names {
		data, err := os.ReadFile(n)
		if err != nil {
			t.Fatal(err)
		}
		sc, err := Parse(n, data)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, sc)
	}
	return out
}

// Run plays a scenario. With -update the wanted texts are rewritten, and an
// answer where none is wanted gets a section.
func Run(t *testing.T, w World, sc *Scenario) {
	t.Helper()
	p := &player{t: t, w: w, sc: sc, seen: map[int64]string{}}
	var out []Step
	for i, st := range sc.Steps {
		if st.expectation() {
			continue
		}
		if err := p.act(st); err != nil {
			t.Fatalf("%s: step %q: %v", sc.Name, strings.Join(st.Words, " "), err)
		}
		out = append(out, st)
		var want, wantEnd string
		hasEnd := false
		for _, next := range sc.Steps[i+1:] {
			if !next.expectation() {
				break
			}
			if next.verb(0) == "end" {
				wantEnd, hasEnd = next.Text, true
			} else {
				want = next.Text
			}
		}
		got := p.news()
		if got != want && !*update {
			t.Errorf("%s: after %q the bot said\n%s\n— wanted —\n%s", sc.Name, strings.Join(st.Words, " "), got, want)
		}
		if got != "" {
			out = append(out, Step{Words: []string{"bot"}, Text: got})
		}
		if hasEnd {
			end, err := w.End(p.number)
			if err != nil {
				t.Fatal(err)
			}
			if end != wantEnd && !*update {
				t.Errorf("%s: at the end\n%s\n— wanted —\n%s", sc.Name, end, wantEnd)
			}
			out = append(out, Step{Words: []string{"end"}, Text: end})
		}
	}
	if *update && !sc.copied {
		if err := os.WriteFile(sc.Name, format(sc, out), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

type player struct {
	t      *testing.T
	w      World
	sc     *Scenario
	number int64
	// seen are the bot's comments as last read.
	seen map[int64]string
}

func (p *player) act(st Step) error {
	if f, ok := p.w.(Faker); ok {
		if done, err := p.fakeAct(f, st); done || err != nil {
			return err
		}
	}
	who, verb := st.verb(0), st.verb(1)
	body := strings.TrimSuffix(st.Text, "\n")
	switch verb {
	case "opens":
		n, err := p.w.Open(who, "MCP is down", body)
		if p.number == 0 {
			p.number = n
		}
		return err
	case "commits":
		c, ok := p.w.(Committer)
		if !ok {
			return errors.New("this forge has no files")
		}
		return c.Commit(who, st.verb(2), st.Text)
	case "comments":
		return p.w.Comment(who, p.number, body)
	case "closes", "reopens":
		return p.w.SetClosed(who, p.number, verb == "closes")
	case "edits", "deletes":
		if st.verb(2) == "title" {
			return p.w.EditTitle(who, p.number, body)
		}
		if st.verb(2) == "issue" {
			return p.w.EditIssue(who, p.number, body)
		}
		id, err := p.comment(st.verb(3))
		if err != nil {
			return err
		}
		if verb == "deletes" {
			return p.w.DeleteComment(who, p.number, id)
		}
		if strings.HasPrefix(body, "s/") {
			return p.substitute(who, id, body)
		}
		return p.w.EditComment(who, p.number, id, body)
	}
	return fmt.Errorf("unknown step")
}

// substitute edits a comment by "s/old/new/": for comments of the bot, whose
// markers no scenario can write down.
func (p *player) substitute(who string, id int64, cmd string) error {
	parts := strings.Split(cmd, "/")
	if len(parts) != 4 {
		return fmt.Errorf("want s/old/new/")
	}
	posts, err := p.w.Thread(p.number)
	if err != nil {
		return err
	}
	for _, post := range posts {
		if post.ID == id {
			return p.w.EditComment(who, p.number, id, strings.ReplaceAll(post.Body, parts[1], parts[2]))
		}
	}
	return fmt.Errorf("no such comment")
}

func (p *player) fakeAct(f Faker, st Step) (bool, error) {
	switch {
	case st.verb(0) == "advance":
		d, err := time.ParseDuration(st.verb(1))
		if err != nil {
			return true, err
		}
		return true, f.Advance(d)
	case st.verb(0) == "sweep":
		return true, f.Sweep()
	case st.verb(0) == "quietly", st.verb(0) == "loudly":
		return true, f.Quiet(st.verb(0) == "quietly")
	case st.verb(0) == "hurry":
		h, ok := f.(interface{ Hurry() })
		if !ok {
			return true, errors.New("this forge cannot hurry")
		}
		h.Hurry()
		return true, nil
	case st.verb(0) == "lose":
		return true, f.LoseDatabase()
	case st.verb(1) == "becomes":
		return true, f.Become(st.verb(0), st.verb(2))
	case st.verb(1) == "imports":
		return true, f.Import(st.verb(0), st.verb(3), p.number, strings.TrimSuffix(st.Text, "\n"))
	}
	return false, nil
}

// comment gives the id of the nth comment of the thread.
func (p *player) comment(n string) (int64, error) {
	i, err := strconv.Atoi(n)
	if err != nil {
		return 0, fmt.Errorf("%q is no number", n)
	}
	posts, err := p.w.Thread(p.number)
	if err != nil {
		return 0, err
	}
	if i < 1 || i > len(posts) {
		return 0, fmt.Errorf("the thread has %d comments", len(posts))
	}
	return posts[i-1].ID, nil
}

// news is what the bot has said, or restored, since the last call.
func (p *player) news() string {
	if p.number == 0 {
		return "" // what came before the thread
	}
	posts, err := p.w.Thread(p.number)
	if err != nil {
		p.t.Fatal(err)
	}
	ids := map[int64]int{}
	for i, post := range posts {
		ids[post.ID] = i + 1
	}
	var out []string
	for _, post := range posts {
		if post.Author != p.w.BotLogin() || p.seen[post.ID] == post.Body {
			continue
		}
		text := normalise(post.Body, ids, p.number)
		if _, before := p.seen[post.ID]; before {
			text = "(comment " + strconv.Itoa(ids[post.ID]) + " now reads)\n" + text
		}
		if !p.w.Genuine(p.number, post) {
			text += "(its marker does not fit)\n"
		}
		p.seen[post.ID] = post.Body
		out = append(out, text)
	}
	return strings.Join(out, "(and)\n")
}

var (
	folded   = regexp.MustCompile("(?s)<details><summary>Decision as JSON</summary>\n+`{3,}json\n(.*?)\n`{3,}\n+</details>\n*")
	markers  = regexp.MustCompile(`\n*<!-- playbook-bot:1 .*-->\s*$`)
	stamps   = regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)`)
	dates    = regexp.MustCompile(`\d{4}-\d\d-\d\d `)
	clocks   = regexp.MustCompile(`\b\d\d:\d\d( UTC)?\b`)
	comments = regexp.MustCompile(`\bcomment (\d+)\b`)
	ages     = regexp.MustCompile(`\b\d+ (days|h|min|s) old\b`)
	commits  = regexp.MustCompile("commit `[0-9a-f]{12}`")
	threads  = regexp.MustCompile(`\b\d+/(\d+)\b`)
)

// normalise takes out of an answer what differs from run to run.
func normalise(body string, ids map[int64]int, number int64) string {
	body = strings.ReplaceAll(body, "\r\n", "\n")
	body = markers.ReplaceAllString(body, "")
	body = folded.ReplaceAllStringFunc(body, func(s string) string {
		return summary(folded.FindStringSubmatch(s)[1]) + "\n"
	})
	body = stamps.ReplaceAllString(body, "<time>")
	body = dates.ReplaceAllString(body, "")
	body = clocks.ReplaceAllString(body, "<clock>")
	body = comments.ReplaceAllStringFunc(body, func(s string) string {
		id, _ := strconv.ParseInt(s[len("comment "):], 10, 64)
		return fmt.Sprintf("comment %d", ids[id])
	})
	body = commits.ReplaceAllString(body, "commit `<sha>`")
	body = ages.ReplaceAllString(body, "<age>")
	body = threads.ReplaceAllString(body, "1/$1")
	body = strings.ReplaceAll(body, fmt.Sprintf("ops/incidents#%d", number), "ops/incidents#1")
	return strings.TrimRight(body, "\n") + "\n"
}

// summary shows of a folded decision what tells decisions apart.
func summary(raw string) string {
	var d playbook.Decision
	if err := json.Unmarshal([]byte(raw), &d); err != nil {
		return "[decision: not JSON: " + err.Error() + "]"
	}
	var missing []string
	for _, m := range d.Missing {
		missing = append(missing, m.What)
	}
	s := fmt.Sprintf("[decision: request=%s state=%s verdict=%s code=%s next=%s missing=%s counted=%d ignored=%d",
		d.Request, d.State, d.Verdict, d.Code, d.Next, strings.Join(missing, ","), len(d.Counted), len(d.Ignored))
	if d.Playbook.Overlay != "" {
		s += " overlay"
	}
	if d.Endorser != nil {
		s += " endorser=" + *d.Endorser
	}
	if d.BreakGlass.Used {
		s += " break-glass"
	}
	if d.Contaminated {
		s += " contaminated"
	}
	return s + "]"
}
