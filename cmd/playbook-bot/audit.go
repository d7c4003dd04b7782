package main

import (
	"context"
	"encoding/csv"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"playbook-bot/bot"
	"playbook-bot/bot/store"
	"playbook-bot/playbook"
)

type auditFlags struct {
	thread, code, actor string
	breakGlass          bool
	since, until        time.Time
	csv, json           bool
	verify, offline     bool
}

func (a *app) audit() *cobra.Command {
	var f auditFlags
	cmd := &cobra.Command{
		Use:     "audit",
		GroupID: groupBot,
		Short:   "Print the log of decisions, or verify that nothing was changed or cut off",
		Long: `audit prints the append-only log of decisions: what was asked, what was known
and who attested it, the standing at the time, what was answered, the endorser,
break-glass. It reads the database of DATABASE_URL, beside the running bot, and
asks nobody. The filters narrow it; several together all have to fit.

--verify prints no entries but checks them. There is one chain per thread, each
entry with an HMAC over the one before, so that a change, a gap or a cut within
the database is found with PLAYBOOK_SECRET alone. A tail that was cut off
cleanly shows only in the thread: the bot's comments name entry and hash. They
are read from the forge, with GITEA_URL and GITEA_TOKEN or another forge's
variables; --offline goes without. PLAYBOOK_SECRET must hold every secret that
entries were written with, older ones after the first.

The exit status of --verify is 0 if all is whole and 3 if something is broken.
The CSV is safe to open in a spreadsheet: what could pass for a formula begins
with an apostrophe.`,
		Example: `  playbook-bot audit --thread ops/incidents#41
  playbook-bot audit --since 2026-12-01T00:00:00Z --break-glass --csv
  playbook-bot audit --actor ada --code class_matrix_denied --json
  playbook-bot audit --verify`,
		Args: noArg,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.runAudit(cmd.Context(), f) },
	}
	fl := cmd.Flags()
	fl.StringVar(&f.thread, "thread", "", "only of `OWNER/REPO#NUMBER`, such as ops/incidents#41")
	fl.StringVar(&f.code, "code", "", "only decisions with this `CODE`, such as allowed_break_glass")
	fl.StringVar(&f.actor, "actor", "", "only where `LOGIN` acted, requested or endorsed")
	fl.BoolVar(&f.breakGlass, "break-glass", false, "only where break-glass was used")
	fl.Var(timeFlag{&f.since}, "since", "only from this `TIME` on, such as 2026-12-01T00:00:00Z")
	fl.Var(timeFlag{&f.until}, "until", "only before this `TIME`")
	fl.BoolVar(&f.csv, "csv", false, "print CSV, a line an entry")
	fl.BoolVar(&f.json, "json", false, "print a JSON list; with --verify what was found")
	fl.BoolVar(&f.verify, "verify", false, "check the chains, and that the threads' comments fit them")
	fl.BoolVar(&f.offline, "offline", false, "with --verify: do not read the comments")
	return cmd
}

var threadArg = regexp.MustCompile(`^([^/#\s]+/[^/#\s]+)#([1-9][0-9]{0,17})$`)

func (f auditFlags) check() error {
	narrowed := f.code != "" || f.actor != "" || f.breakGlass || !f.since.IsZero() || !f.until.IsZero()
	switch {
	case f.thread != "" && !threadArg.MatchString(f.thread):
		return usagef("%q is no thread: want OWNER/REPO#NUMBER, such as ops/incidents#41", f.thread)
	case f.csv && f.json:
		return usagef("--csv and --json exclude each other")
	case f.offline && !f.verify:
		return usagef("--offline goes with --verify only")
	case f.verify && (narrowed || f.csv):
		return usagef("--verify checks whole threads: of the filters it takes --thread only, and no --csv")
	}
	return nil
}

func (a *app) runAudit(ctx context.Context, f auditFlags) error {
	if err := f.check(); err != nil {
		return err
	}
	var uses []string
	if f.verify {
		uses = append(uses, "PLAYBOOK_SECRET")
		if !f.offline {
			uses = append(uses, forgeVars...)
		}
	}
	s, db, err := a.database(ctx, uses...)
	if err != nil {
		return err
	}
	defer func() { _ = db.Close() }()
	threads, err := f.threads(ctx, db)
	if err != nil {
		return err
	}
	if f.verify {
		return a.verifyAudit(ctx, s, db, threads, f)
	}
	out := a.auditWriter(f)
	for _, t := range threads {
		rows, err := db.Audit(ctx, t.ID)
		if err != nil {
			return err
		}
		for _, r := range rows {
			e, err := readEntry(r)
			if err != nil {
				return err
			}
			if !f.fits(e) {
				continue
			}
			if err := out.entry(e); err != nil {
				return err
			}
		}
	}
	return out.end()
}

// threads are those asked for. A thread named that nobody has heard of is an
// error: it may be a typing mistake, and no entries would look like none made.
func (f auditFlags) threads(ctx context.Context, db store.Store) ([]store.ThreadRef, error) {
	all, err := db.AuditThreads(ctx)
	if err != nil || f.thread == "" {
		return all, err
	}
	var out []store.ThreadRef
	for _, t := range all {
		at, name := splitForge(f.thread)
		bare := fmt.Sprintf("%s#%d", t.Repo.FullName(), t.Number)
		if strings.EqualFold(bare, name) && (at == "" || at == t.Forge) {
			out = append(out, t)
		}
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("the audit log knows no thread %s", f.thread)
	}
	return out, nil
}

// entry is an audit entry with its place in its chain.
type entry struct {
	Forge string `json:"forge"`
	Chain int64  `json:"chain"`
	Seq   int64  `json:"seq"`
	Hash  string `json:"hash"`
	bot.AuditEntry
}

func readEntry(r store.AuditRow) (entry, error) {
	e := entry{Forge: r.Thread.Forge, Chain: r.Chain, Seq: r.Seq, Hash: hex.EncodeToString(r.Hash)}
	if err := json.Unmarshal(r.Entry, &e.AuditEntry); err != nil {
		return e, fmt.Errorf("read entry %d.%d of %s: %w", r.Chain, r.Seq, threadName(r.Thread), err)
	}
	return e, nil
}

func (f auditFlags) fits(e entry) bool {
	acted := strings.EqualFold(f.actor, e.Actor) || strings.EqualFold(f.actor, e.Requester) || strings.EqualFold(f.actor, e.Endorser)
	switch {
	case f.code != "" && string(e.Code) != f.code,
		f.actor != "" && !acted,
		f.breakGlass && !e.BreakGlass && e.Grant == "",
		!f.since.IsZero() && e.At.Before(f.since),
		!f.until.IsZero() && !e.At.Before(f.until):
		return false
	}
	return true
}

// auditWriter prints entries one at a time: a log of years need not fit into
// memory.
type auditWriter interface {
	entry(entry) error
	end() error
}

func (a *app) auditWriter(f auditFlags) auditWriter {
	switch {
	case f.csv:
		return &auditCSV{w: csv.NewWriter(a.stdout)}
	case f.json:
		return &auditJSON{a: a}
	}
	return &auditPage{pg: &page{w: a.stdout}}
}

type auditJSON struct {
	a *app
	n int
}

func (w *auditJSON) entry(e entry) error {
	line, err := json.Marshal(e)
	if err != nil {
		return fmt.Errorf("write an entry: %w", err)
	}
	sep := ",\n"
	if w.n == 0 {
		sep = "[\n"
	}
	w.n++
	_, err = fmt.Fprintf(w.a.stdout, "%s%s", sep, line)
	return err
}

func (w *auditJSON) end() error {
	text := "\n]\n"
	if w.n == 0 {
		text = "[]\n"
	}
	_, err := fmt.Fprint(w.a.stdout, text)
	return err
}

type auditCSV struct {
	w       *csv.Writer
	started bool
}

var auditColumns = []string{"at", "forge", "thread", "chain", "seq", "what", "request", "action", "target", "actor", "actor_id", "verdict", "code",
	"standing", "requester", "endorser", "break_glass", "grant", "until", "known", "key", "note", "playbook", "hash"}

func (w *auditCSV) entry(e entry) error {
	w.head()
	fields := []string{e.At.UTC().Format(time.RFC3339), e.Forge, e.Thread, strconv.FormatInt(e.Chain, 10), strconv.FormatInt(e.Seq, 10), e.What,
		e.Request, e.Action, e.Target, e.Actor, strconv.FormatInt(e.ActorID, 10), e.Verdict, string(e.Code), standingText(e.Stand), e.Requester,
		e.Endorser, strconv.FormatBool(e.BreakGlass), e.Grant, untilText(e.Until), knownText(e.Known), e.Key, e.Note, e.Playbook, e.Hash}
	for i := range fields {
		fields[i] = inert(fields[i])
	}
	return w.w.Write(fields)
}

func (w *auditCSV) head() {
	if !w.started {
		w.started = true
		_ = w.w.Write(auditColumns) // its error is kept until Flush
	}
}

func (w *auditCSV) end() error {
	w.head()
	w.w.Flush()
	return w.w.Error()
}

// inert keeps a spreadsheet from taking a field for a formula: targets and
// logins are words of people.
func inert(s string) string {
	s = plain(s)
	if t := strings.TrimLeft(s, " \u00a0\u3000"); t != "" && strings.ContainsRune("=+-@|%\uff1d\uff0b\uff0d\uff20", []rune(t)[0]) {
		return "'" + s
	}
	return s
}

func standingText(s *playbook.Standing) string {
	if s == nil {
		return ""
	}
	return strings.Join(append([]string{s.Permission.String()}, s.Roles...), " ")
}

func untilText(t *time.Time) string {
	if t == nil {
		return ""
	}
	return t.UTC().Format(time.RFC3339)
}

func knownText(known []bot.Evidence) string {
	var out []string
	for _, k := range known {
		word := "did not count"
		if k.Counted {
			word = "counted"
		}
		attested := ""
		if k.Verified {
			attested = ", verified"
		}
		out = append(out, fmt.Sprintf("%s %s%s by %s, in %s by %s%s (%s)", k.Action, k.Outcome, onTarget(k.Target), k.Actor, k.Ref, k.RecordedBy, attested, word))
	}
	return strings.Join(out, "; ")
}

type auditPage struct {
	pg   *page
	last string
	n    int
}

func (w *auditPage) entry(e entry) error {
	if e.Thread != w.last {
		w.pg.head("%s", e.Thread)
		w.last = e.Thread
	}
	w.n++
	line := fmt.Sprintf("%d.%d  %s  %s", e.Chain, e.Seq, e.At.UTC().Format("2006-01-02 15:04:05"), e.What)
	for _, part := range []string{e.Request, e.Action + onTarget(e.Target), e.Verdict, string(e.Code)} {
		if part != "" {
			line += "  " + part
		}
	}
	w.pg.item("%s", line)
	for _, part := range []struct{ name, text string }{
		{"by", e.Actor}, {"standing", standingText(e.Stand)}, {"requested by", e.Requester}, {"endorsed by", e.Endorser},
		{"break-glass on", e.Grant}, {"until", untilText(e.Until)}, {"known", knownText(e.Known)}, {"note", e.Note},
	} {
		if part.text != "" {
			w.pg.paste(part.name + ": " + part.text)
		}
	}
	return nil
}

func (w *auditPage) end() error {
	if w.n == 0 {
		w.pg.head("No entry.")
	}
	return nil
}
