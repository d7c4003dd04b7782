package templates

import (
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/template"
	"time"

	"playbook-bot/playbook"
)

//go:embed *.md.tmpl
var embedded embed.FS

const ext = ".md.tmpl"

// shared is the file of the pieces that several kinds use.
const shared = "shared"

// Kinds are all kinds, each with a template file of its name.
var Kinds = []Kind{
	KindRefused, KindApproved, KindUndecided, KindGoAhead, KindRecorded, KindWouldAllow, KindRecovered,
	KindWithdrawn, KindRevoked, KindExpired, KindPointer, KindEndorsed, KindNotYours, KindRecommend,
	KindAssess, KindLadder, KindAttempts, KindMetrics, KindHelp, KindUnreadable, KindAltered, KindCleared,
	KindNotice,
}

// Options is what a Renderer is made of.
type Options struct {
	// Playbook gives contact, references and rungs; needed.
	Playbook *playbook.Playbook
	// Dir holds files that take the place of embedded ones of the same name
	// (refused.md.tmpl, shared.md.tmpl, …). Empty: none. A file of another
	// name ending in .md.tmpl is an error, because it would never be used.
	Dir string
	// Fallback is told when a template of Dir failed on a real answer and the
	// embedded one was used instead; nil: nobody is.
	Fallback func(k Kind, err error)
}

// Renderer makes comments of answers. It is safe for concurrent use.
type Renderer struct {
	pb       *playbook.Playbook
	own      *template.Template
	override *template.Template // nil: none
	fallback func(Kind, error)
	// Outcomes to suggest for a try that did not help, a restart that did not,
	// and one that nobody carried out; the last may be empty.
	failing, failed, neutral string
}

// New parses all templates. With a Dir, every kind is tried on sample answers
// as well: a file that does not parse, fails, or leaves a fence or <details>
// open is an error that names the file.
func New(o Options) (*Renderer, error) {
	if o.Playbook == nil {
		return nil, errors.New("templates: a playbook is needed")
	}
	r := &Renderer{pb: o.Playbook, fallback: o.Fallback}
	r.failing, r.failed = countingOutcome(o.Playbook, "insufficient"), countingOutcome(o.Playbook, "failed")
	if _, ok := o.Playbook.NormalizeOutcome("skipped"); ok {
		r.neutral = "skipped"
	}
	if r.fallback == nil {
		r.fallback = func(Kind, error) {}
	}
	names := []string{shared}
	for _, k := range Kinds {
		names = append(names, string(k))
	}
	own := template.New("").Funcs(r.funcs())
	for _, n := range names {
		text, err := embedded.ReadFile(n + ext)
		if err != nil {
			return nil, fmt.Errorf("read embedded template: %w", err)
		}
		if _, err := own.New(n + ext).Parse(string(text)); err != nil {
			return nil, fmt.Errorf("parse embedded template: %w", err)
		}
	}
	r.own = own
	if o.Dir == "" {
		return r, nil
	}
	return r, r.load(o.Dir, names)
}

// load puts the files of dir over the embedded ones.
func (r *Renderer) load(dir string, names []string) error {
	files, err := overrides(dir)
	if err != nil || len(files) == 0 {
		return err
	}
	set, err := r.own.Clone()
	if err != nil {
		return fmt.Errorf("copy templates: %w", err)
	}
	for _, name := range files {
		path := filepath.Join(dir, name)
		if !slices.Contains(names, strings.TrimSuffix(name, ext)) {
			return fmt.Errorf("template %s: there is no answer of this name; there are %s", path, strings.Join(names, ", "))
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return fmt.Errorf("read template: %w", err)
		}
		if _, err := set.New(name).Parse(string(text)); err != nil {
			return fmt.Errorf("parse template %s: %w", path, err)
		}
	}
	for _, s := range samples(r.pb) {
		text, err := r.execute(set, &s.Sections[0], r.viewer(&s, s.At))
		if err == nil {
			err = balanced(text)
		}
		if err != nil {
			return fmt.Errorf("template %s on sample data: %w", blame(dir, files, s.Sections[0].Kind), err)
		}
	}
	r.override = set
	return nil
}

// overrides lists the template files in dir; a directory that is not there
// is an error, because somebody named it.
func overrides(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		var pe *fs.PathError
		if errors.As(err, &pe) {
			return nil, fmt.Errorf("read template directory %s: %w", dir, pe.Err)
		}
		return nil, fmt.Errorf("read template directory: %w", err)
	}
	var files []string
	for _, e := range entries {
		if !e.IsDir() && strings.HasSuffix(e.Name(), ext) {
			files = append(files, e.Name())
		}
	}
	return files, nil
}

// blame names the file that is at fault when kind failed: its own, or else
// the shared one.
func blame(dir string, files []string, kind Kind) string {
	if name := string(kind) + ext; slices.Contains(files, name) {
		return filepath.Join(dir, name)
	}
	return filepath.Join(dir, shared+ext)
}

// execute renders one section with a set of templates.
func (r *Renderer) execute(set *template.Template, s *Section, w *viewer) (string, error) {
	var b strings.Builder
	if err := set.ExecuteTemplate(&b, string(s.Kind)+ext, w.view(s)); err != nil {
		return "", fmt.Errorf("render %q: %w", string(s.Kind), err)
	}
	return tidy(b.String()), nil
}

// section renders one section: with the operator's template, or, where that
// fails on what really happened, with ours: an answer at night matters more
// than its style.
func (r *Renderer) section(s *Section, w *viewer) (string, error) {
	if r.override != nil {
		text, err := r.execute(r.override, s, w)
		if err == nil {
			err = balanced(text)
		}
		if err == nil {
			return text, nil
		}
		r.fallback(s.Kind, err)
		clear(w.told)
	}
	return r.execute(r.own, s, w)
}

// The sizes that Render tries in turn until the comment fits.
var (
	full  = limits{rows: 40, notes: 20, post: 12 << 10}
	sizes = []limits{full, {rows: 15, notes: 10, post: 12 << 10}, {rows: 5, notes: 5, post: 4 << 10}, {rows: 2, notes: 2, post: 1 << 10}}
)

// Render makes the comment: the sections in their order, one table of
// rejections, the decision as folded JSON. It is at most MaxComment bytes:
// what is too long loses rows of its tables first, saying how many, then
// lists in the JSON, then the last sections. The bot appends its marker.
func (r *Renderer) Render(a Answer) (string, error) {
	if len(a.Sections) == 0 {
		return "", errors.New("render: an answer without a section")
	}
	at := a.At
	if at.IsZero() && a.Decision != nil {
		at = a.Decision.DecidedAt
	}
	w := r.viewer(&a, at)
	for i, lim := range sizes {
		w.lim = lim
		clear(w.told)
		parts, err := r.parts(w)
		if err != nil {
			return "", err
		}
		for _, detail := range jsonDetails(i, a.Decision) {
			if text := join(append(slices.Clone(parts), r.decision(&a, detail))); len(text) <= MaxComment {
				return text, nil
			}
		}
		if i == len(sizes)-1 {
			return fit(parts), nil
		}
	}
	return "", errors.New("render: no size fits")
}

func (r *Renderer) viewer(a *Answer, at time.Time) *viewer {
	return &viewer{r: r, a: a, now: at, lim: full, told: map[string]bool{}, cures: map[*playbook.Decision]cure{}}
}

// parts renders everything but the JSON.
func (r *Renderer) parts(w *viewer) ([]string, error) {
	var parts []string
	for i := range w.a.Sections {
		s := &w.a.Sections[i]
		if w.now.IsZero() && s.D != nil {
			w.now = s.D.DecidedAt
		}
		text, err := r.section(s, w)
		if err != nil {
			return nil, err
		}
		if i > 0 && (long(text) || long(parts[len(parts)-1])) {
			text = "---\n\n" + text
		}
		parts = append(parts, text)
	}
	return append(parts, w.rejections(join(parts))), nil
}

// long reports whether a section is more than one line.
func long(s string) bool { return strings.Contains(s, "\n") }

// join puts blank lines between the parts that are not empty.
func join(parts []string) string {
	parts = slices.DeleteFunc(slices.Clone(parts), func(s string) bool { return s == "" })
	return strings.Join(parts, "\n\n") + "\n"
}

// fit leaves out last parts until the rest fits. Each part is balanced in
// itself, so any number of them is.
func fit(parts []string) string {
	const note = "The rest of this answer is left out: it is too long for one comment. Post fewer commands at a time."
	for n := len(parts) - 1; n > 0; n-- {
		if text := join(append(slices.Clone(parts[:n]), note)); len(text) <= MaxComment {
			return text
		}
	}
	first, _, _ := strings.Cut(parts[0], "\n")
	if len(first) > MaxComment/2 {
		first = "The answer is too long for one comment."
	}
	return join([]string{first, note})
}

// tidy takes off what a template's conditions leave behind: space at the ends
// of lines and blank lines in a row. A fence's lines hold neither.
func tidy(s string) string {
	var out []string
	blank := true
	for line := range strings.Lines(s) {
		line = strings.TrimRight(line, " \t\r\n")
		if line == "" && blank {
			continue
		}
		blank = line == ""
		out = append(out, line)
	}
	return strings.TrimRight(strings.Join(out, "\n"), "\n")
}

// balanced checks that every fence and every <details> in the text is closed.
func balanced(text string) error {
	fenced, details := "", 0
	for line := range strings.Lines(text) {
		t := strings.TrimSpace(line)
		ticks := t[:len(t)-len(strings.TrimLeft(t, "`"))]
		switch {
		case fenced != "":
			if len(ticks) >= len(fenced) && ticks == t {
				fenced = ""
			}
		case len(ticks) >= 3 && !strings.Contains(t[len(ticks):], "`"):
			fenced = ticks
		default:
			t = outsideCode(t)
			details += strings.Count(t, "<details") - strings.Count(t, "</details>")
		}
		if details < 0 {
			break
		}
	}
	switch {
	case fenced != "":
		return errors.New("a fence is not closed")
	case details != 0:
		return errors.New("<details> is not balanced")
	}
	return nil
}

// outsideCode takes the code spans out of one line.
func outsideCode(line string) string {
	var b strings.Builder
	for {
		i := strings.IndexByte(line, '`')
		if i < 0 {
			return b.String() + line
		}
		b.WriteString(line[:i])
		rest := strings.TrimLeft(line[i:], "`")
		ticks := line[i : len(line)-len(rest)]
		line = rest
		if end := closing(rest, ticks); end >= 0 {
			line = rest[end:]
		}
	}
}

// closing gives the place after the run of backquotes in s that is exactly
// ticks; -1 if there is none.
func closing(s, ticks string) int {
	for at := 0; ; {
		i := strings.IndexByte(s[at:], '`')
		if i < 0 {
			return -1
		}
		start := at + i
		at = start + len(s[start:]) - len(strings.TrimLeft(s[start:], "`"))
		if at-start == len(ticks) {
			return at
		}
	}
}
