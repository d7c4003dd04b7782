//go:build unix

// Command bench measures the bot on loopback and says which of its aims it
// met: how many deliveries it takes in, against a receiver that keeps nothing
// and against Debian's webhook; how soon an answer stands on a real Gitea,
// against a bot that answers without thinking; how many calls an answer costs;
// and what a history of a million events does to all that.
//
//	go run -C deploy/bench .
//
// It needs Go and git, and uses what else it finds: Debian's webhook in PATH,
// PostgreSQL's programs, and a Gitea that an earlier run of deploy/sandbox has
// built. It takes less than five minutes. Its status is 0 if it could measure,
// whatever the figures; 1 if not; 2 for wrong usage.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"playbook-bot/bot/store/pgtest"
	"playbook-bot/deploy/sandbox/internal/build"
	"playbook-bot/deploy/sandbox/internal/scratch"
)

// bareCommand is the argument by which this program is the bare handler, in a
// process of its own.
const bareCommand = "bare-handler"

// limit ends a run that hangs.
const limit = 5 * time.Minute

func main() {
	if len(os.Args) == 3 && os.Args[1] == bareCommand {
		fail(serveBare(os.Args[2]))
	}
	b := &bench{begun: time.Now(), say: os.Stderr}
	only := flag.String("only", "intake,calls,answers,growth", "what to measure, a comma list")
	flag.IntVar(&b.rounds, "rounds", 3, "rounds of load for each receiver and number of connections, 1 to 20")
	flag.DurationVar(&b.round, "round", 700*time.Millisecond, "length of a round, 100ms to 10s")
	flag.IntVar(&b.answers, "answers", 50, "answers measured on each side, 10 to 500")
	flag.IntVar(&b.history, "history", 1_000_000, "events of history at most, 1000 to 2000000")
	flag.StringVar(&b.profile, "profile", "", "directory for CPU and allocation profiles of the bot under load; none are taken without")
	flag.StringVar(&b.against, "against", "", "an earlier build of playbook-bot, whose intake is measured in the same turns")
	flag.Parse()
	if flag.NArg() > 0 || b.rounds < 1 || b.rounds > 20 || b.round < 100*time.Millisecond || b.round > 10*time.Second ||
		b.answers < 10 || b.answers > 500 || b.history < 1000 || b.history > 2_000_000 {
		flag.Usage()
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("not done after %s", limit))
	defer cancel()
	fail(b.run(ctx, strings.Split(*only, ","), os.Stdout))
}

func fail(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

// bench is one run.
type bench struct {
	rounds           int
	round            time.Duration
	answers, history int
	profile          string // directory, "" for none
	against          string // program, "" for none
	begun            time.Time
	say              io.Writer

	dir      *scratch.Dir
	tree     build.Tree
	binary   string // the bot
	template *template
	// What the machine has; nil or "" is what it has not.
	postgres       *pgtest.Server
	webhook        string
	webhookVersion string
	gitea          *build.GiteaBuild
}

// saying tells what is being done.
func (b *bench) saying(format string, args ...any) {
	fmt.Fprintf(b.say, "%5.1f s  %s\n", time.Since(b.begun).Seconds(), fmt.Sprintf(format, args...))
}

// sqlite is the URL of a new SQLite file.
func (b *bench) sqlite(name string) string {
	return "sqlite:" + filepath.Join(b.dir.Path, name+".db")
}

// prepare builds the bot and finds what the machine has.
func (b *bench) prepare(ctx context.Context) (err error) {
	if b.profile != "" { // before minutes are spent on what cannot be kept
		if err := os.MkdirAll(b.profile, 0o750); err != nil {
			return fmt.Errorf("keep profiles: %w", err)
		}
	}
	if b.tree, err = build.FindTree(ctx); err != nil {
		return err
	}
	if b.template, err = loadTemplate(b.tree); err != nil {
		return err
	}
	if b.dir, err = scratch.New("playbook-bot-bench"); err != nil {
		return err
	}
	b.saying("building the bot")
	if b.binary, err = build.Bot(ctx, b.dir, b.tree); err != nil {
		return err
	}
	b.webhook, b.webhookVersion = lookWebhook(ctx)
	b.postgres, err = pgtest.Start(ctx)
	if err != nil && !errors.Is(err, pgtest.ErrNotInstalled) {
		return err
	}
	built, ok, err := build.Built(ctx, b.tree)
	if ok {
		b.gitea = &built
	}
	return err
}

func (b *bench) close() error {
	var errs []error
	if b.dir != nil {
		errs = append(errs, b.dir.Close())
	}
	if b.postgres != nil {
		errs = append(errs, b.postgres.Stop())
	}
	return errors.Join(errs...)
}

// run measures and prints. What was measured before an error is printed too.
func (b *bench) run(ctx context.Context, parts []string, out io.Writer) (err error) {
	defer func() { err = errors.Join(err, b.close()) }()
	if err := b.prepare(ctx); err != nil {
		return err
	}
	report := &report{bench: b}
	steps := map[string]func() error{
		"intake":  func() (err error) { report.intake, err = b.compareIntake(ctx); return err },
		"calls":   func() (err error) { report.calls, err = b.countCalls(ctx); return err },
		"answers": func() (err error) { report.answers, err = b.compareAnswers(ctx); return err },
		"growth":  func() (err error) { report.growth, err = b.compareGrowth(ctx); return err },
	}
	var errs []error
	for _, part := range parts {
		step, ok := steps[strings.TrimSpace(part)]
		if !ok {
			return fmt.Errorf("there is no part %q to measure", part)
		}
		if err := step(); err != nil {
			errs = append(errs, fmt.Errorf("measure %s: %w", part, err))
		}
	}
	report.print(out)
	return errors.Join(errs...)
}
