package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"playbook-bot/playbook"
)

// The exit statuses, the same for every subcommand.
const (
	exitOK      = 0 // fine, or allowed
	exitFailure = 1 // something could not be done
	exitUsage   = 2 // the command line was wrong
	exitRefused = 3 // asked properly, and refused
)

// errRefused ends a command whose answer, already printed, is a refusal.
var errRefused = errors.New("refused")

// usageError is a wrong command line.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

func usagef(format string, args ...any) error {
	return usageError{fmt.Errorf(format, args...)}
}

// app is one run of the program: the world as its commands see it.
type app struct {
	environ        map[string]string
	stdin          io.Reader
	stdout, stderr io.Writer
	now            func() time.Time

	playbookFile string
	overlayFile  string
	stdinTaken   string
}

// run carries out one command line and gives its exit status. It is the whole
// program but for the process around it, so that tests run what users do.
func run(ctx context.Context, args []string, environ map[string]string, stdin io.Reader, stdout, stderr io.Writer) int {
	a := &app{environ: environ, stdin: stdin, stdout: stdout, stderr: stderr, now: time.Now}
	return a.run(ctx, args)
}

func (a *app) run(ctx context.Context, args []string) int {
	root := a.root()
	if args == nil {
		args = []string{} // nil would make cobra read the process's own
	}
	root.SetArgs(args)
	cmd, err := root.ExecuteContextC(ctx)
	var usage usageError
	switch {
	case err == nil:
		return exitOK
	case errors.Is(err, errRefused):
		return exitRefused
	case errors.As(err, &usage):
		fmt.Fprintf(a.stderr, "%s: %s\nSee: %s --help\n", cmd.CommandPath(), err, cmd.CommandPath())
		return exitUsage
	}
	fmt.Fprintf(a.stderr, "%s: %s\n", cmd.CommandPath(), err)
	return exitFailure
}

const rootLong = `playbook-bot makes people try the smaller fix before they restart everything,
and keeps the record. It lives in the issue tracker (Gitea, Forgejo, GitHub),
answers in a comment, and restarts nothing itself.

As a bot it is started with "playbook-bot serve" and needs four variables:

  GITEA_URL        address of the Gitea server, such as https://git.example.org
  GITEA_TOKEN      access token of the bot's own account
  PLAYBOOK_SECRET  32 characters or more; make one with: openssl rand -hex 32
  REPOSITORIES     where it answers, such as ops/incidents,infra/*

(On Forgejo FORGEJO_URL and FORGEJO_TOKEN; on GitHub GITHUB_TOKEN, or
GITHUB_APP_ID and GITHUB_APP_KEY.)

Three ways to begin:

  playbook-bot setup        makes a repository ready: hook, labels, form, access
  playbook-bot doctor       says what is missing, and how to mend it
  go run -C deploy/sandbox .    in a clone of the source: see it all at work on
                            a Gitea of its own, with nothing to configure

Without a bot, or while it is down, "playbook-bot assess" gives the answer the
bot would give; keep its output, it is the record. "playbook-bot completion
--help" says how to have commands and flags completed in your shell.

Every subcommand ends with 0 if all is well or the thing asked is allowed,
3 if it is refused, 2 if the command line is wrong, 1 if something failed.`

func (a *app) root() *cobra.Command {
	root := &cobra.Command{
		Use:           "playbook-bot",
		Short:         "Restart requests in the issue tracker, smallest fix first",
		Long:          rootLong,
		SilenceErrors: true,
		SilenceUsage:  true,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return nil
			}
			if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
				return usagef("there is no subcommand %q; did you mean %s?", args[0], strings.Join(near, " or "))
			}
			return usagef("there is no subcommand %q", args[0])
		},
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.SuggestionsMinimumDistance = 2
	root.SetIn(a.stdin)
	root.SetOut(a.stdout)
	root.SetErr(a.stderr)
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return usageError{err} })
	root.PersistentFlags().StringVar(&a.playbookFile, "playbook", "",
		"playbook to go by, a YAML `FILE`; default: PLAYBOOK_FILE, else the embedded one")
	root.AddGroup(&cobra.Group{ID: groupOffline, Title: "Offline, with the answers of the bot:"},
		&cobra.Group{ID: groupBot, Title: "The bot:"})
	for _, c := range a.commands() {
		root.AddCommand(c)
	}
	return root
}

const (
	groupOffline = "offline"
	groupBot     = "bot"
)

// oneArg asks for exactly one argument, and noArg for none, as usage errors
// that say what was wanted.
func oneArg(name, hint string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		switch {
		case len(args) == 0:
			return usagef("%s is missing: %s", name, hint)
		case len(args) > 1:
			return usagef("%q is one argument too many: only %s is taken", args[1], name)
		}
		return nil
	}
}

func noArg(_ *cobra.Command, args []string) error {
	if len(args) > 0 {
		return usagef("%q is one argument too many: none is taken", args[0])
	}
	return nil
}

// book gives the playbook that --playbook, PLAYBOOK_FILE or nothing names.
func (a *app) book() (*playbook.Playbook, error) {
	name := a.playbookFile
	if name == "" {
		name = a.environ["PLAYBOOK_FILE"]
	}
	if name == "" {
		return playbook.Default(), nil
	}
	r, err := a.open("--playbook", name)
	if err != nil {
		return nil, fmt.Errorf("open the playbook: %w", err)
	}
	defer r.Close()
	p, err := playbook.Load(r)
	if err != nil {
		return nil, fmt.Errorf("read the playbook %s: %w", name, err)
	}
	return p, nil
}

// maxInput bounds what is read from a FILE, in bytes.
const maxInput = 16 << 20

// read gives the content of FILE, of standard input for "-".
func (a *app) read(what, name string) (string, error) {
	r, err := a.open(what, name)
	if err != nil {
		return "", err
	}
	defer r.Close()
	b, err := io.ReadAll(io.LimitReader(r, maxInput+1))
	if err != nil {
		return "", fmt.Errorf("read %s: %w", name, err)
	}
	if len(b) > maxInput {
		return "", fmt.Errorf("read %s: it is larger than %d MiB", name, maxInput>>20)
	}
	return string(b), nil
}

// open opens FILE, or takes standard input for "-", which can be only one
// thing at a time.
func (a *app) open(what, name string) (io.ReadCloser, error) {
	if name != "-" {
		return os.Open(name)
	}
	if a.stdinTaken != "" {
		return nil, usagef("%s and %s cannot both be standard input", a.stdinTaken, what)
	}
	a.stdinTaken = what
	return io.NopCloser(a.stdin), nil
}

// printJSON writes one value as indented JSON.
func (a *app) printJSON(v any) error {
	enc := json.NewEncoder(a.stdout)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(v); err != nil {
		return fmt.Errorf("write the answer: %w", err)
	}
	return nil
}

// timeFlag is a flag holding an RFC 3339 time.
type timeFlag struct{ t *time.Time }

func (f timeFlag) String() string {
	if f.t == nil || f.t.IsZero() {
		return ""
	}
	return f.t.Format(time.RFC3339)
}

func (f timeFlag) Set(s string) error {
	t, err := time.Parse(time.RFC3339, s)
	if err != nil {
		return errors.New("want a time with its offset, such as 2026-12-01T03:04:05Z")
	}
	*f.t = t
	return nil
}

func (timeFlag) Type() string { return "RFC3339" }

// enumFlag is a flag that takes one of a few words.
type enumFlag struct {
	v     *string
	words []string
}

func (f enumFlag) String() string {
	if f.v == nil {
		return ""
	}
	return *f.v
}

func (f enumFlag) Set(s string) error {
	s = strings.ToLower(strings.TrimSpace(s))
	if !slices.Contains(f.words, s) {
		return fmt.Errorf("want one of %s", strings.Join(f.words, ", "))
	}
	*f.v = s
	return nil
}

func (f enumFlag) Type() string { return strings.Join(f.words, "|") }
