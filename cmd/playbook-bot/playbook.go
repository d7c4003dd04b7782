package main

import (
	"errors"
	"fmt"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"playbook-bot/playbook"
)

func (a *app) playbookCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "playbook check|test",
		GroupID: groupOffline,
		Short:   "Check playbooks and the files that tighten them, and try a policy before it is live",
		Long: `playbook is for those who write a policy. check reads a whole playbook, or the
file by which a repository tightens it, and names every fault with its line.
test asks a policy the questions of scenario files and compares the answers.`,
		Example: `  playbook-bot playbook check pods.yaml
  playbook-bot playbook test policy.txtar`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				return usagef("there is no %q: want check or test", args[0])
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(a.playbookCheck(), a.playbookTest())
	return cmd
}

// someFiles asks for at least one FILE.
func someFiles(hint string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		if len(args) == 0 {
			return usagef("FILE is missing: %s", hint)
		}
		return nil
	}
}

func (a *app) playbookCheck() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "check FILE…",
		Short: "Check whole playbooks and overlays, naming every fault with its line",
		Long: `check reads each FILE ("-" is standard input) strictly, as the bot does, and
prints every fault as FILE:LINE: FIELD: WHY. It ends with 1 if there is one.

A file named recovery-playbook.yaml, or one with the key tighten, is an overlay:
what a repository has on its default branch as .gitea/recovery-playbook.yaml
(.forgejo/…, .github/…) to tighten the operator's playbook. It is held against
the one of --playbook, else PLAYBOOK_FILE, else the embedded one; so name the
playbook that your bot goes by. An overlay looks like this:

  tighten:
    - action: host_restart      # an action of the operator's playbook
      disable: true             # nobody gets it here
    - action: full_mcp_restart
      standing: owner           # none, read, write, admin, owner: the same or more
      min_attempts: 2           # the same or more
      max_age: 2h               # the same or less
      require_verified: true    # one attempt must be the bot's own probe

Anything else is a whole playbook, of the format of the embedded mcp.yaml.`,
		Example: `  playbook-bot playbook check .gitea/recovery-playbook.yaml
  playbook-bot playbook check pods.yaml --json
  playbook-bot playbook check --playbook pods.yaml recovery-playbook.yaml`,
		Args: someFiles("a playbook, or a recovery-playbook.yaml of a repository"),
		RunE: func(_ *cobra.Command, args []string) error { return a.runPlaybookCheck(args, asJSON) },
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, `print a list of {"file", "kind", "ok", "faults", "changes"}`)
	return cmd
}

// checkedFile is what check found in one file.
type checkedFile struct {
	File string `json:"file"`
	// Kind is "playbook" or "overlay".
	Kind   string         `json:"kind"`
	OK     bool           `json:"ok"`
	Faults []checkedFault `json:"faults"`
	// Changes are, of an overlay, what it tightens in words.
	Changes []string `json:"changes"`

	about string
}

type checkedFault struct {
	Line  int    `json:"line"`
	Field string `json:"field"`
	Why   string `json:"why"`
}

func (a *app) runPlaybookCheck(args []string, asJSON bool) error {
	book, err := a.book()
	if err != nil {
		return err
	}
	faulty := 0
	var all []checkedFile
	for _, name := range args {
		text, err := a.read("FILE", name)
		if err != nil {
			return fmt.Errorf("check the playbook: %w", err)
		}
		c, err := checkFile(book, name, text)
		if err != nil {
			return err
		}
		if !c.OK {
			faulty++
		}
		all = append(all, c)
	}
	if asJSON {
		err = a.printJSON(all)
	} else {
		a.printChecked(all)
	}
	if err == nil && faulty > 0 {
		err = fmt.Errorf("%d of %d files cannot be used", faulty, len(all))
	}
	return err
}

var tightenKey = regexp.MustCompile(`(?m)^\s*\{?\s*["']?tighten["']?\s*:`)

// isOverlay reports whether a file means to be an overlay.
func isOverlay(name, text string) bool {
	return path.Base(filepath.ToSlash(name)) == "recovery-playbook.yaml" || tightenKey.MatchString(text)
}

func checkFile(book *playbook.Playbook, name, text string) (checkedFile, error) {
	c := checkedFile{File: name, Kind: "playbook", Faults: []checkedFault{}, Changes: []string{}}
	var err error
	if isOverlay(name, text) {
		c.Kind = "overlay"
		var tight *playbook.Playbook
		if tight, err = tighten(book, text); err == nil {
			c.Changes = changes(book, tight)
			c.about = fmt.Sprintf("overlay of %s, tightens %d actions", book.Identity().Name, len(c.Changes))
		}
	} else {
		var p *playbook.Playbook
		if p, err = playbook.Load(strings.NewReader(text)); err == nil {
			c.about = fmt.Sprintf("playbook %s, %d rungs, sha256 %s", p.Identity().Name, len(p.Rungs()), p.Identity().SHA256)
		}
	}
	if c.OK = err == nil; c.OK {
		return c, nil
	}
	for _, f := range playbook.Faults(err) {
		c.Faults = append(c.Faults, checkedFault{Line: f.Line, Field: f.Field, Why: f.Why})
	}
	if len(c.Faults) == 0 {
		return c, fmt.Errorf("%s: %w", name, err)
	}
	return c, nil
}

func tighten(book *playbook.Playbook, text string) (*playbook.Playbook, error) {
	o, err := playbook.LoadOverlay(strings.NewReader(text))
	if err != nil {
		return nil, err
	}
	return book.Tighten(o)
}

// overlayFlag is for the commands that say what may be done: without the bot
// nobody else reads what a repository has tightened.
func (a *app) overlayFlag(cmd *cobra.Command) {
	cmd.Flags().StringVar(&a.overlayFile, "overlay", "", "what tightens the playbook, a repository's recovery-playbook.yaml, as a `FILE`")
}

// policy is the playbook, as --overlay tightens it.
func (a *app) policy() (*playbook.Playbook, error) {
	p, err := a.book()
	if err != nil || a.overlayFile == "" {
		return p, err
	}
	text, err := a.read("--overlay", a.overlayFile)
	if err != nil {
		return nil, fmt.Errorf("read the overlay: %w", err)
	}
	if p, err = tighten(p, text); err != nil {
		return nil, fmt.Errorf("read the overlay %s: %w", a.overlayFile, err)
	}
	return p, nil
}

// changes says what differs between a playbook and its tightened form.
func changes(was, is *playbook.Playbook) []string {
	out := []string{}
	before := was.Rungs()
	for i, r := range is.Rungs() {
		b := before[i]
		var parts []string
		add := func(differs bool, format string, args ...any) {
			if differs {
				parts = append(parts, fmt.Sprintf(format, args...))
			}
		}
		add(r.Disabled, "disabled")
		add(r.Standing != b.Standing, "standing %s → %s", b.Standing, r.Standing)
		add(r.MinAttempts != b.MinAttempts, "min_attempts %d → %d", b.MinAttempts, r.MinAttempts)
		add(r.MaxAge != b.MaxAge, "max_age %s → %s", limit(b.MaxAge), r.MaxAge)
		add(r.RequireVerified != b.RequireVerified, "require_verified")
		if len(parts) > 0 {
			out = append(out, r.Action+": "+strings.Join(parts, ", "))
		}
	}
	return out
}

func limit(d time.Duration) string {
	if d == 0 {
		return "no limit"
	}
	return d.String()
}

func (a *app) printChecked(all []checkedFile) {
	pg := &page{w: a.stdout}
	for _, c := range all {
		for _, f := range c.Faults {
			where := fmt.Sprintf("%s:%d: ", c.File, f.Line)
			if f.Field != "" {
				where += f.Field + ": "
			}
			pg.line("", "%s%s", where, f.Why)
		}
		if !c.OK {
			continue
		}
		pg.line("", "%s: fine: %s", c.File, c.about)
		for _, change := range c.Changes {
			pg.item("%s", change)
		}
	}
}

func (a *app) playbookTest() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "test FILE…",
		Short: "Run scenario files against a policy",
		Long: `test asks the gate the questions of scenario files and compares the answers with
those wanted. It ends with 1 if one differs, or if a file cannot be read.

` + scenarioHelp,
		Example: `  playbook-bot playbook test policy.txtar
  playbook-bot playbook test --playbook pods.yaml monday.txtar tuesday.txtar`,
		Args: someFiles("a scenario file; --help says what one looks like"),
		RunE: func(_ *cobra.Command, args []string) error { return a.runPlaybookTest(args, asJSON) },
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, `print a list of {"file", "line", "case", "ok", "differs"}`)
	return cmd
}

func (a *app) runPlaybookTest(args []string, asJSON bool) error {
	book, err := a.book()
	if err != nil {
		return err
	}
	all, failed := []scenarioResult{}, 0
	for _, name := range args {
		text, err := a.read("FILE", name)
		if err != nil {
			return fmt.Errorf("read the scenarios: %w", err)
		}
		results, err := runScenarios(book, text)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		for _, r := range results {
			if r.File = name; !r.OK {
				failed++
			}
			all = append(all, r)
		}
	}
	if asJSON {
		err = a.printJSON(all)
	} else {
		a.printScenarios(all)
	}
	switch {
	case err != nil:
		return err
	case len(all) == 0:
		return errors.New("there is no case in it: want a section such as -- case: nothing was tried --")
	case failed > 0:
		return fmt.Errorf("%d of %d cases differ", failed, len(all))
	}
	return nil
}

func (a *app) printScenarios(all []scenarioResult) {
	pg := &page{w: a.stdout}
	for _, r := range all {
		if r.OK {
			pg.line("", "ok    %s: %s", r.File, r.Case)
			continue
		}
		pg.line("", "FAIL  %s:%d: %s", r.File, r.Line, r.Case)
		for _, d := range r.Differs {
			pg.line("        ", "%s", d)
		}
	}
}
