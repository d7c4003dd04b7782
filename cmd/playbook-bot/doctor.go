package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"playbook-bot/bot"
	"playbook-bot/bot/setup"
	"playbook-bot/bot/store"
	"playbook-bot/bot/webhook"
	"playbook-bot/playbook"
)

func (a *app) doctor() *cobra.Command {
	var asJSON bool
	var only string
	cmd := &cobra.Command{
		Use:     "doctor",
		GroupID: groupBot,
		Short:   "Find out what is missing or broken, each with its cure",
		Long: `doctor checks everything the bot's work hangs on, with the configuration of
serve, and says of each thing that is not in order how to mend it. It changes
nothing on the forge.

  configuration, secrets   every variable; who else can read the secrets' files
  playbook, database, bot  can be read; is reachable; serves
  address, version, clock  of the forge
  token, scopes            of the bot's account; roles: teams the playbook names
  repository, rights       of each of REPOSITORIES
  overlay                  its own playbook, where it has one
  approvers                who could approve the gated rungs; fewer than two is
                           red: nobody endorses himself
  hook                     of the repository, or of its organisation
  reachability             by a test delivery of the hook's, which must come
                           through to the running bot
  delivery                 the last one, by the bot's own record

A test delivery needs a token of an administrator of the repository (scope
write:repository; GitHub: admin:repo_hook) in ADMIN_TOKEN or the file of
ADMIN_TOKEN_FILE; without one that check is skipped. Gitea has no test for an
organisation's hook, GitHub none for an app's. What hangs on something that
failed is skipped too, so that one fault is one red line.

Where several forges are configured all are checked, or the one of --forge.
ADMIN_TOKEN belongs to one of them, so it is used with --forge only.

Run it beside the bot, in the same environment. It ends with 0 if nothing is
red, and with 3 if something is.`,
		Example: `  playbook-bot doctor
  ADMIN_TOKEN_FILE=admin-token playbook-bot doctor
  playbook-bot doctor --forge github
  playbook-bot doctor --json`,
		Args: noArg,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.runDoctor(cmd.Context(), only, asJSON) },
	}
	cmd.Flags().StringVar(&only, "forge", "", "check the forge of this `NAME` only: gitea, forgejo or github")
	cmd.Flags().BoolVar(&asJSON, "json", false, `print {"ok", "findings": [{"check", "place", "status", "detail", "cure", "run"}]}`)
	return cmd
}

// doctor's patience with a test delivery, to which Gitea gives five seconds,
// and with everything else.
const (
	testPatience = 10 * time.Second
	testPoll     = 200 * time.Millisecond
	alivePatient = 3 * time.Second
)

func (a *app) runDoctor(ctx context.Context, only string, asJSON bool) error {
	if only != "" && !slices.Contains(forgeNames, only) {
		return usagef("--forge must be one of %s", strings.Join(forgeNames, ", "))
	}
	d := &doctor{app: a, only: only}
	d.examine(ctx)
	failed := 0
	for _, f := range d.found {
		if f.Status == setup.Failed {
			failed++
		}
	}
	var err error
	if asJSON {
		err = a.printJSON(map[string]any{"ok": failed == 0, "findings": d.found})
	} else {
		a.printFindings(d.found, failed)
	}
	if err == nil && failed > 0 {
		err = errRefused
	}
	return err
}

// doctor makes the checks that need no forge, and has package setup make the
// others.
type doctor struct {
	*app
	// only is the forge to check; "": all.
	only  string
	found []setup.Finding
}

func (d *doctor) ok(check, place, detail string, args ...any) {
	d.found = append(d.found, setup.Finding{Check: check, Place: place, Status: setup.OK, Detail: fmt.Sprintf(detail, args...)})
}

func (d *doctor) fail(check, place, detail, cure string, run ...string) {
	d.found = append(d.found, setup.Finding{Check: check, Place: place, Status: setup.Failed, Detail: detail, Cure: cure, Run: run})
}

func (d *doctor) skip(check, detail string) {
	d.found = append(d.found, setup.Finding{Check: check, Status: setup.Skipped, Detail: detail})
}

func (d *doctor) examine(ctx context.Context) {
	d.configuration()
	book := d.playbook()
	db := d.database(ctx)
	if db != nil {
		defer func() { _ = db.Close() }()
	}
	s, err := loadConfig(d.environ, nil, append([]string{"REPOSITORIES", "PUBLIC_URL", "LISTEN", "REQUEST_TIMEOUT"}, forgeVars...)...)
	if err != nil {
		d.skip("address", "the forge cannot be asked with this configuration")
		return
	}
	// A bad one was told of; the checks that do without it can still be made.
	s.Admin = func() string { return "" }
	if admin, err := loadConfig(d.environ, nil, "ADMIN_TOKEN"); err == nil {
		s.Admin = admin.Admin
	}
	running := d.alive(ctx, s)
	if err := s.checkNames(book); err != nil {
		d.fail("playbook", "", err.Error(), "Put the forge before each member of a role.")
	}
	if d.only == "" && len(s.Forges) > 1 && s.Admin() != "" {
		s.Admin = func() string { return "" } // one forge must not see another's
		d.skip("reachability", "ADMIN_TOKEN is one forge's: it is used with --forge")
	}
	if t, err := s.pick(d.only); d.only != "" && (err != nil || !s.on(t)) {
		d.fail("address", d.only, "no variable switches it on", cureOf(strings.ToUpper(d.only)+"_URL"))
		return
	}
	for _, t := range s.Forges {
		if d.only == "" || d.only == t.name {
			d.forge(ctx, s, t, book, db, running)
		}
	}
}

// forge has package setup check one forge. Where there are several, findings
// say which they are about.
func (d *doctor) forge(ctx context.Context, s *settings, t tracker, book *playbook.Playbook, db store.Store, running bool) {
	u, err := s.checkup(t, book, db)
	var found []setup.Finding
	if err != nil {
		found = []setup.Finding{{Check: "address", Status: setup.Failed, Detail: err.Error(), Cure: "Correct " + strings.ToUpper(t.name) + "_URL."}}
	} else {
		u.Running = running
		found = u.Run(ctx)
	}
	for _, f := range found {
		if len(s.Forges) > 1 {
			f.Place = strings.TrimSuffix(t.name+":"+f.Place, ":")
		}
		d.found = append(d.found, f)
	}
}

// checkup is what package setup looks at.
func (s *settings) checkup(t tracker, book *playbook.Playbook, db store.Store) (setup.Checkup, error) {
	client, err := s.dial(t, nil, nil)
	if err != nil {
		return setup.Checkup{}, err
	}
	u := setup.Checkup{
		Forge: client, Repositories: bot.Patterns(s.Repositories).On(t.name), PublicURL: s.publicURL(), Assumed: s.PublicURL == "",
		Playbook: book, Now: time.Now, Patience: testPatience, Poll: testPoll,
	}
	if len(s.Forges) > 1 {
		u.Args = " --forge " + t.name
	}
	if u.App = t.app != nil; u.App {
		u.AppID, _ = strconv.ParseInt(t.app.ID, 10, 64) // a client id is no number
	}
	if s.Admin() != "" {
		admin, err := s.dial(t, s.Admin, nil)
		if err != nil {
			return setup.Checkup{}, err
		}
		u.Tester = admin
	}
	if db != nil {
		u.Record = func(ctx context.Context, path string) (webhook.Record, error) {
			return webhook.ReadRecord(ctx, db, path)
		}
	}
	return u, nil
}

func (d *doctor) playbook() *playbook.Playbook {
	book, err := d.book()
	if err != nil {
		d.fail("playbook", "", err.Error(), "Mend the file of PLAYBOOK_FILE (or --playbook); the error names the line. Without it the embedded playbook holds.")
		return nil
	}
	d.ok("playbook", "", "%s, sha256 %s", book.Identity().Name, book.Identity().SHA256[:12])
	return book
}

// alive asks the running bot whether it is ready, by LISTEN as it is reached on
// this machine, or else by PUBLIC_URL.
func (d *doctor) alive(ctx context.Context, s *settings) bool {
	listen := *s
	listen.PublicURL = ""
	said := ""
	for _, base := range []string{listen.publicURL(), s.PublicURL} {
		if base == "" {
			continue
		}
		var ok bool
		if said, ok = ready(ctx, base); ok {
			d.ok("bot", "", "it is ready")
			return true
		}
		if said != "" {
			break
		}
	}
	if said == "" {
		d.fail("bot", "", "nothing answers at "+listen.publicURL()+" (LISTEN)", "Start it, and leave it running.", "playbook-bot serve")
	} else {
		d.fail("bot", "", "at "+listen.publicURL()+" (LISTEN) it says: "+said, "It waits for what it names; another program's answer means that LISTEN is taken.")
	}
	return false
}

// ready asks /readyz; said is "" where nobody answers.
func ready(ctx context.Context, base string) (said string, ok bool) {
	ctx, cancel := context.WithTimeout(ctx, alivePatient)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, base+"/readyz", nil)
	if err != nil {
		return "", false
	}
	client := &http.Client{Transport: &http.Transport{DialContext: (&net.Dialer{}).DialContext, DisableKeepAlives: true}}
	resp, err := client.Do(req)
	if err != nil {
		return "", false
	}
	defer resp.Body.Close()
	b, _ := io.ReadAll(io.LimitReader(resp.Body, 80))
	said = strings.TrimSpace(string(b))
	if said == "" {
		said = resp.Status
	}
	return said, resp.StatusCode == http.StatusOK && said == "ready"
}

// marks are the first character of a finding's line.
var marks = map[setup.Status]string{setup.OK: "ok", setup.Failed: "RED", setup.Skipped: "–"}

func (a *app) printFindings(found []setup.Finding, failed int) {
	pg := &page{w: a.stdout}
	skipped := 0
	for _, f := range found {
		what := f.Check
		if f.Place != "" {
			what += " " + f.Place
		}
		if f.Status == setup.Skipped {
			skipped++
		}
		pg.line("", "%-3s  %s: %s", marks[f.Status], what, f.Detail)
		if f.Cure != "" {
			pg.line("       ", "%s", f.Cure)
		}
		for _, run := range f.Run {
			pg.paste("     " + run)
		}
	}
	switch {
	case failed > 0:
		pg.head("%d of %d checks are red.", failed, len(found))
	case skipped > 0:
		pg.head("Nothing is red; %d checks could not be made.", skipped)
	default:
		pg.head("All is in order.")
	}
}
