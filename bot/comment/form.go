package comment

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
	"strings"

	"github.com/yuin/goldmark/ast"

	"playbook-bot/bot/command"
	"playbook-bot/playbook"
)

// The labels of the restart-request form. The forge writes each as a heading
// of the third level above what was entered.
const (
	LabelClass      = "Requested class"
	LabelTarget     = "Target"
	LabelSymptoms   = "Symptoms"
	LabelHappened   = "What happened"
	LabelAttempts   = "Prior recovery attempts"
	LabelBreakGlass = "Break-glass"
	// BoxBreakGlass is the text of the one box that asks for break-glass.
	BoxBreakGlass = "I request break-glass"
	// NoResponse stands where nothing was entered.
	NoResponse = "_No response_"
)

// Labels are the form's labels, in its order.
var Labels = []string{LabelClass, LabelTarget, LabelSymptoms, LabelHappened, LabelAttempts, LabelBreakGlass}

// Form is a restart request made with the issue form.
type Form struct {
	// Action is normalised where the playbook knows it, else as written.
	Action     string   `json:"action"`
	Target     string   `json:"target"`
	Symptoms   []string `json:"symptoms"` // never nil
	Reason     string   `json:"reason"`
	BreakGlass bool     `json:"break_glass"`
	// Line is that of the class's label.
	Line int `json:"line"`
	// Problem is set where the form is one but cannot be read (no class, a
	// repeated label, break-glass without a reason): no request comes of it. It is among the rejections too.
	Problem *playbook.Problem `json:"problem,omitempty"`
}

// Equal reports whether two forms ask for the same in the same words, so that
// an edit of one into the other is none of its content. Forms are compared by
// what they say, not by where it stands.
func (f *Form) Equal(g *Form) bool {
	if f == nil || g == nil {
		return f == g
	}
	return f.Digest() == g.Digest()
}

// Digest is a short comparable value of the form's content: action, target,
// symptoms, break-glass, reason, and whether it could be read. It is "" for no
// form.
func (f *Form) Digest() string {
	if f == nil {
		return ""
	}
	content := struct {
		Action, Target string
		Symptoms       []string
		BreakGlass     bool
		Reason         string
		Unreadable     bool
	}{f.Action, strings.ToLower(f.Target), slices.Clone(f.Symptoms), f.BreakGlass, f.Reason, f.Problem != nil}
	slices.Sort(content.Symptoms)
	// Marshalling plain strings and booleans cannot fail.
	b, _ := json.Marshal(content)
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

// formReader reads the form while the text is walked.
type formReader struct {
	form Form
	// section is the label under which the walk is, "" outside.
	section string
	seen    map[string]bool
	fields  map[string][]string
	problem *playbook.Problem
	// happened is where the free text begins and ends in the source.
	happened span
	// box is the line of the ticked break-glass box.
	box int
	// taken says that the attempts section was read as a whole.
	taken bool
	// prose is the paragraph last rejected for being no record, and proses
	// counts them.
	prose  ast.Node
	proses int
}

// findForm gives a reader if the text is a form: if it bears the class's
// label where it shows.
func (r *reader) findForm(doc ast.Node) *formReader {
	for n := doc.FirstChild(); n != nil; n = n.NextSibling() {
		if r.label(n) == LabelClass {
			return &formReader{seen: map[string]bool{}, fields: map[string][]string{}}
		}
	}
	return nil
}

// label gives the form's label that a block is, "" for any other block.
func (r *reader) label(n ast.Node) string {
	h, ok := n.(*ast.Heading)
	if !ok || h.Level != 3 || h.Lines().Len() != 1 || start(h) >= r.hidden {
		return ""
	}
	s := h.Lines().At(0)
	text := string(bytes.TrimSpace(s.Value(r.src)))
	if !slices.Contains(Labels, text) {
		return ""
	}
	return text
}

// enter begins a section if n is its label.
func (f *formReader) enter(r *reader, n ast.Node) bool {
	label := r.label(n)
	if label == "" {
		return false
	}
	lineNo := r.lines.at(start(n))
	if f.section == LabelHappened {
		f.happened.stop = r.lines[lineNo-1]
	}
	if f.seen[label] {
		f.section = ""
		f.fail(r, lineNo, "the form's label `"+label+"` stands there twice; it must stay one form")
		return true
	}
	f.seen[label], f.section = true, label
	body := len(r.src)
	if lineNo < len(r.lines) {
		body = r.lines[lineNo]
	}
	switch label {
	case LabelClass:
		f.form.Line = lineNo
	case LabelHappened:
		f.happened = span{body, min(len(r.src), max(r.hidden-1, body))}
	case LabelAttempts:
		f.wholeSection(r, n, body)
	}
	return true
}

// fail says why no request comes of the form. The cure is a command: the form
// itself can be mended only by editing.
func (f *formReader) fail(r *reader, lineNo int, why string) {
	p := playbook.Problem{Why: why, Suggestion: "/recommend"}
	if a := f.action(r); a != "" {
		inv := command.Invocation{Name: "restart", Action: a, Target: f.target()}
		if f.form.BreakGlass {
			inv.Name, inv.Reason = "break-glass", command.UrgentReason
		}
		p.Suggestion = inv.CommandLine()
	}
	r.reject(lineNo, SourceForm, p)
	if f.problem == nil {
		f.problem = &p
	}
}

// wholeSection reads an attempts section that is JSON or YAML without a fence:
// in a form's field nobody thinks of one.
func (f *formReader) wholeSection(r *reader, label ast.Node, body int) {
	end := min(len(r.src), r.hidden)
	for n := label.NextSibling(); n != nil; n = n.NextSibling() {
		if n.Kind() == ast.KindFencedCodeBlock {
			return
		}
		if r.label(n) != "" {
			end = r.lines[r.lines.at(start(n))-1]
			break
		}
	}
	if body < end {
		f.taken = r.attempts(string(r.src[body:end]), "", r.lines.at(body), SourceForm)
	}
}

// line reads a line of text in a section: line i of paragraph n.
func (f *formReader) line(r *reader, n ast.Node, i int, line string) {
	switch f.section {
	case LabelClass, LabelTarget, LabelSymptoms:
		if line = command.Clean(line); line != "" && line != NoResponse {
			f.fields[f.section] = append(f.fields[f.section], line)
		}
	case LabelBreakGlass:
		_, item := n.Parent().(*ast.ListItem)
		if box, ticked := checkbox(line); item && i == 0 && ticked && strings.EqualFold(command.Clean(box), BoxBreakGlass) {
			f.form.BreakGlass, f.box = true, r.lines.at(n.Lines().At(i).Start)
		}
	case LabelAttempts:
		if !f.taken {
			f.attempt(r, n, line, r.lines.at(n.Lines().At(i).Start))
		}
	}
}

// checkbox splits "[x] text".
func checkbox(line string) (text string, ticked bool) {
	if len(line) < 4 || line[0] != '[' || line[2] != ']' || line[3] != ' ' {
		return line, false
	}
	return line[4:], line[1] == 'x' || line[1] == 'X'
}

// attempt reads a line of the attempts section that is neither in a fence nor
// in a table: "ACTION OUTCOME reason", as behind /attempt.
func (f *formReader) attempt(r *reader, n ast.Node, line string, lineNo int) {
	if strings.HasPrefix(line, "[ ] ") {
		return
	}
	line, _ = checkbox(line)
	if saysNothing(line) {
		return
	}
	prose := !command.LeadsWithAction(line, r.o.Playbook)
	if prose {
		// Free text: one rejection for the paragraph, not one a line.
		if f.prose == n || f.proses == MaxCommands {
			return
		}
		f.prose = n
		f.proses++
	}
	inv, _ := command.ParseLine("/attempt "+line, lineNo, "", r.o.Playbook)
	switch {
	case inv.Problem == nil:
		r.record(playbook.RawAttempt{
			Action: inv.Action, Outcome: inv.Outcome, Reason: inv.Reason, Target: inv.Target,
		}, lineNo, SourceForm)
	case prose:
		p := *inv.Problem
		p.Why = "this is no attempt record: " + p.Why + "; write one a line, action and outcome first"
		r.reject(lineNo, SourceForm, p)
	default:
		r.count(lineNo)
		r.reject(lineNo, SourceForm, *inv.Problem)
	}
}

// saysNothing reports whether a line says that there is nothing to say.
func saysNothing(line string) bool {
	line = command.Clean(line)
	if line == NoResponse {
		return true
	}
	switch strings.Trim(strings.ToLower(line), " .,!_*-–—") {
	case "", "none", "none yet", "no", "n/a", "na", "nil", "nothing", "nothing yet", "not yet", "no response":
		return true
	}
	return false
}

func (f *formReader) first(label string) string {
	if v := f.fields[label]; len(v) > 0 {
		return plain(v[0])
	}
	return ""
}

func (f *formReader) target() string { return f.first(LabelTarget) }

func (f *formReader) action(r *reader) string {
	s := strings.TrimRight(f.first(LabelClass), ".,;:!?")
	if a, ok := r.o.Playbook.NormalizeAction(s); ok {
		return a
	}
	if saysNothing(s) {
		return ""
	}
	return s
}

// finish puts the form together.
func (f *formReader) finish(r *reader) {
	form := f.form
	form.Action, form.Target, form.Symptoms = f.action(r), f.target(), []string{}
	if saysNothing(form.Target) {
		form.Target = ""
	}
	for _, line := range f.fields[LabelSymptoms] {
		for s := range strings.SplitSeq(line, ",") {
			if s = plain(s); !saysNothing(s) && len(form.Symptoms) < command.MaxSymptoms {
				form.Symptoms = append(form.Symptoms, s)
			}
		}
	}
	form.Reason = strings.TrimSpace(string(r.src[f.happened.start:max(f.happened.start, f.happened.stop)]))
	if form.Reason == NoResponse {
		form.Reason = ""
	}
	switch {
	case form.Action == "":
		f.fail(r, form.Line, "the form names no class")
	case form.BreakGlass && form.Reason == "":
		f.fail(r, f.box, "break-glass needs a reason, and `"+LabelHappened+"` is empty; it is kept and shown to those who are told")
	}
	form.Problem = f.problem
	r.out.Form = &form
}
