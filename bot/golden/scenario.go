// Package golden plays recorded conversations: one txtar file a scenario, in
// which people act on a forge and the bot's answers are compared with those
// written down. The same files run on the fake forge and on a real Gitea.
//
// The file's comment holds the world, a line each:
//
//	people: olivia=owner adam=admin wren=write rhea=read
//	grants: ops/incidents:full_mcp_restart
//	repositories: ops/*
//	bot: write
//	fake only: moves the clock
//	github: why it differs there
//	github bot: triage
//	github says: Gitea answered → GitHub answered
//
// All but people are optional; other lines are prose. A line that begins with
// the name of another kind of forge is for the play on that one: the bot's
// permission, or words that replace the wanted ones. Each section is a step,
// in order:
//
//	-- rhea opens --               an issue with the body that follows
//	-- rhea comments --
//	-- adam edits comment 2 --     the second comment of the thread, the bot's counted
//	-- adam edits issue --, -- adam edits title --
//	-- adam deletes comment 2 --
//	-- adam closes --, -- adam reopens --
//	-- adam commits PATH --        a file on the default branch; an empty one is removed
//	-- advance 61m --              (fake only)
//	-- adam becomes read --        another permission (fake only)
//	-- ada imports as pete --      a migrated comment (fake only)
//	-- sweep --                    the bot looks for what it missed
//	-- quietly --                  until "-- loudly --" no delivery arrives (fake only)
//	-- hurry --                    the next two acts fall into one second (fake only)
//	-- lose the database --        the bot starts anew with an empty one (fake only)
//	-- bot --                      what the bot has said since, nothing if absent
//	-- end --                      labels, reactions of the bot, audit entries
package golden

import (
	"fmt"
	"slices"
	"strings"

	"golang.org/x/tools/txtar"
)

// Scenario is one file.
type Scenario struct {
	Name    string
	Prose   string
	People  []Person
	Grants  string
	Repos   string
	BotPerm string
	// FakeOnly says why it cannot run on a real forge; empty: it can.
	FakeOnly string
	// Elsewhere is what differs on other kinds of forge, by their names.
	Elsewhere map[string]Difference
	Playbook  string
	Steps     []Step

	copied bool // made by On: its file is another's
}

// Difference is what a scenario has of its own on another kind of forge.
type Difference struct {
	Why, BotPerm string
	// Says are pairs of wanted words and those that replace them.
	Says []string
}

// On is the scenario as it plays on that kind of forge.
func (sc *Scenario) On(forgeName string) *Scenario {
	out := *sc
	out.copied = true
	d := sc.Elsewhere[forgeName]
	if d.BotPerm != "" {
		out.BotPerm = d.BotPerm
	}
	words := strings.NewReplacer(d.Says...)
	out.Steps = slices.Clone(sc.Steps)
	for i, st := range out.Steps {
		if st.expectation() {
			out.Steps[i].Text = words.Replace(st.Text)
		}
		if st.verb(1) == "commits" {
			// Each kind of forge has a directory of its own for such files.
			out.Steps[i].Words = []string{st.verb(0), "commits", strings.Replace(st.verb(2), ".gitea/", "."+forgeName+"/", 1)}
		}
	}
	return &out
}

// differ reads a line for another kind of forge.
func (sc *Scenario) differ(key, value string) {
	name, what, _ := strings.Cut(key, " ")
	d := sc.Elsewhere[name]
	switch what {
	case "bot":
		d.BotPerm = value
	case "says":
		old, new, _ := strings.Cut(value, " → ")
		d.Says = append(d.Says, old, new)
	default:
		d.Why = value
	}
	if sc.Elsewhere == nil {
		sc.Elsewhere = map[string]Difference{}
	}
	sc.Elsewhere[name] = d
}

// Person is an account and its permission on the repository.
type Person struct{ Login, Permission string }

// Step is one section: what is done, or what is wanted.
type Step struct {
	Words []string
	Text  string
}

func (s Step) verb(i int) string {
	if i < len(s.Words) {
		return s.Words[i]
	}
	return ""
}

// Expectation reports whether the step is a wanted text.
func (s Step) expectation() bool { return s.verb(0) == "bot" || s.verb(0) == "end" }

// Parse reads a scenario.
func Parse(name string, data []byte) (*Scenario, error) {
	ar := txtar.Parse(data)
	sc := &Scenario{Name: name, Prose: string(ar.Comment), BotPerm: "admin", Repos: "ops/incidents"}
	for line := range strings.Lines(sc.Prose) {
		key, value, ok := strings.Cut(strings.TrimSpace(line), ": ")
		if !ok {
			continue
		}
		switch key {
		case "people":
			for _, p := range strings.Fields(value) {
				login, perm, ok := strings.Cut(p, "=")
				if !ok {
					return nil, fmt.Errorf("%s: %q names no permission", name, p)
				}
				sc.People = append(sc.People, Person{login, perm})
			}
		case "grants":
			sc.Grants = value
		case "repositories":
			sc.Repos = value
		case "bot":
			sc.BotPerm = value
		case "fake only":
			sc.FakeOnly = value
		case "github", "github bot", "github says":
			sc.differ(key, value)
		}
	}
	for forgeName, d := range sc.Elsewhere {
		if d.Why == "" {
			return nil, fmt.Errorf("%s: nothing says why it differs on %s", name, forgeName)
		}
	}
	if len(sc.People) == 0 {
		return nil, fmt.Errorf("%s: no people", name)
	}
	for _, f := range ar.Files {
		if f.Name == "playbook" {
			sc.Playbook = string(f.Data)
			continue
		}
		sc.Steps = append(sc.Steps, Step{Words: strings.Fields(f.Name), Text: string(f.Data)})
	}
	return sc, nil
}

// format writes the scenario back, with the steps given.
func format(sc *Scenario, steps []Step) []byte {
	ar := &txtar.Archive{Comment: []byte(sc.Prose)}
	if sc.Playbook != "" {
		ar.Files = append(ar.Files, txtar.File{Name: "playbook", Data: []byte(sc.Playbook)})
	}
	for _, st := range steps {
		ar.Files = append(ar.Files, txtar.File{Name: strings.Join(st.Words, " "), Data: []byte(st.Text)})
	}
	return txtar.Format(ar)
}
