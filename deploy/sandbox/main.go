//go:build unix

// Command sandbox runs a real Gitea and the bot beside it, plays a recovery
// and prints the conversation as Gitea holds it. Then it stays up, so that one
// can go on with it, until Ctrl-C. It needs Go and git.
//
//	go run -C deploy/sandbox .
//
// With --once it ends after the recovery; its status is 0 if every answer came
// as expected, 1 if not, 2 for wrong usage.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"text/tabwriter"
	"time"

	"playbook-bot/deploy/sandbox/internal/bot"
	"playbook-bot/deploy/sandbox/internal/tracker"
)

func main() {
	once := flag.Bool("once", false, "end after the recovery instead of staying up; the exit status says whether it went as expected")
	flag.Parse()
	if flag.NArg() > 0 {
		fmt.Fprintf(os.Stderr, "unexpected argument %q\n", flag.Arg(0))
		flag.Usage()
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	// A second signal ends it at once; the watchdog cleans up even then.
	context.AfterFunc(ctx, stop)
	ctx, cancel := orphanContext(ctx)
	err := run(ctx, *once, os.Stdout, os.Stderr)
	cancel()
	if err != nil {
		fmt.Fprintln(os.Stderr, "sandbox:", err)
		os.Exit(1)
	}
}

// orphanContext ends when `go run` has been killed over our heads: it passes
// on what the terminal sends to all, and nothing else. A sandbox that was
// built and started otherwise may well outlive its parent.
func orphanContext(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	self, err := os.Executable()
	if err != nil || !strings.Contains(filepath.ToSlash(self), "/go-build") {
		return ctx, cancel
	}
	parent := os.Getppid()
	go func() {
		_ = tracker.Poll(ctx, time.Second, func(context.Context) (bool, error) { return os.Getppid() != parent, nil })
		cancel()
	}()
	return ctx, cancel
}

// run raises the sandbox, plays the incident and, unless once, waits.
func run(ctx context.Context, once bool, out, say io.Writer) (err error) {
	begun := time.Now()
	s, err := raise(ctx, say)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	fmt.Fprintf(say, "Gitea is up at %s\n", s.gitea.URL)
	if _, err := s.botBinary(); err != nil {
		return err
	}
	repo, b, err := newIncident(ctx, s)
	if err != nil {
		return withLog(err, "Gitea", s.gitea.Tail(20))
	}
	if err := b.Start(ctx); err != nil {
		return err
	}
	fmt.Fprintf(say, "the bot is up at %s\n", b.URL)

	thread, err := play(ctx, repo, func(e tracker.Entry) { showEntry(out, e) })
	if err != nil {
		err = withLog(err, "the bot", b.Tail(40))
		return fmt.Errorf("the incident did not go as expected: %w", withLog(err, "Gitea", s.gitea.Tail(20)))
	}
	if err := thread.showState(ctx, out); err != nil {
		return err
	}
	fmt.Fprintf(say, "\nThe recovery went as expected: refused, recorded, approved, recovered. %.1f s in all.\n", time.Since(begun).Seconds())
	if !once {
		showAddresses(out, s, repo, b, thread.number)
		err = wait(ctx, s, b)
	}
	return errors.Join(err, b.Stop())
}

// wait ends with ctx, which is as it should be, or with one of the processes.
func wait(ctx context.Context, s *sandbox, b *bot.Bot) error {
	select {
	case <-ctx.Done():
		return nil
	case <-b.Done():
		return errors.Join(errors.New("the bot has ended by itself"), b.Err())
	case <-s.gitea.Done():
		return errors.Join(errors.New("the Gitea server has ended by itself"), s.gitea.Err())
	}
}

func withLog(err error, whose, tail string) error {
	return fmt.Errorf("%w\nthe end of the log of %s:\n%s", err, whose, tail)
}

// showEntry prints an entry as Gitea holds it: nothing is left out, rendered
// or wrapped. Only what would steer the terminal is made visible.
func showEntry(out io.Writer, e tracker.Entry) {
	what := "opened the issue"
	if e.ID != 0 {
		what = fmt.Sprintf("comment %d", e.ID)
	}
	fmt.Fprintf(out, "\n── %s · %s UTC · %s\n", e.Author, e.Created.UTC().Format(time.DateTime), what)
	text := strings.ReplaceAll(strings.TrimRight(e.Body, "\n"), "\r\n", "\n")
	for line := range strings.SplitSeq(text, "\n") {
		fmt.Fprintf(out, "   │ %s\n", visible(line))
	}
}

func visible(line string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' && r != '\t' || r == 0x7f || r >= 0x80 && r < 0xa0 {
			return '\ufffd'
		}
		return r
	}, line)
}

// showState prints the labels the thread ended with.
func (i *incident) showState(ctx context.Context, out io.Writer) error {
	thread, err := i.repo.Thread(ctx, i.number)
	if err != nil {
		return err
	}
	reactions, err := i.repo.Reactions(ctx, i.number, 0)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "\n── labels: %s", strings.Join(thread.Labels, ", "))
	for _, content := range slices.Sorted(maps.Keys(reactions)) {
		fmt.Fprintf(out, " · %s by %s", content, strings.Join(reactions[content], ", "))
	}
	fmt.Fprintln(out)
	return nil
}

func showAddresses(out io.Writer, s *sandbox, repo *tracker.Repo, b *bot.Bot, number int64) {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "\nThe incident\t%s/issues/%d\t(Gitea's pages are bare: its module has no built front end)\n", repo.URL(), number)
	fmt.Fprintf(w, "The API\t%s/api/v1\t\n", s.gitea.URL)
	fmt.Fprintf(w, "The bot\t%s/readyz\t\n", b.URL)
	fmt.Fprintf(w, "Logs and data\t%s\t\n\n", s.dir.Path)
	fmt.Fprintf(w, "Log in as\t\tpassword of all: %s\n", s.gitea.Password)
	for _, p := range [][2]string{
		{owner, "owns the organisation " + repo.Org}, {admin, "repository admin: may endorse"},
		{writer, "may write"}, {reader, "may read: files, and needs an endorsement"}, {botLogin, "the bot's account"},
	} {
		fmt.Fprintf(w, "  %s\t\t%s\n", p[0], p[1])
	}
	w.Flush()
	fmt.Fprintf(out, `
Say something, for example as %[1]s:

  curl -u %[1]s:%[2]s -H 'Content-Type: application/json' \
    -d '{"body":"/recommend transport_eof"}' \
    %[3]s/api/v1/repos/%[4]s/issues/%[5]d/comments

Ctrl-C stops everything and removes it.
`, writer, s.gitea.Password, s.gitea.URL, repo.FullName(), number)
}
