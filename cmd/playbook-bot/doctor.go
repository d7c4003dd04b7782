package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"playbook-bot/bot/forge/gitea"
	"playbook-bot/bot/setup"
	"playbook-bot/bot/store"
	"playbook-bot/bot/webhook"
	"playbook-bot/playbook"
)

func (a *app) doctor() *cobra.Command {
	var asJSON bool
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
  approvers                who could approve the gated rungs; fewer than two is
                           red: nobody endorses himself
  hook                     of the repository, or of its organisation
  reachability             by a test delivery of the hook's, which must come
                           through to the running bot
  delivery                 the last one, by the bot's own record

A test delivery needs a token of an administrator of the repository (scope
write:repository) in ADMIN_TOKEN or the file of ADMIN_TOKEN_FILE; without one
that check is skipped. An organisation's hook has no test. What hangs on
something that failed is skipped too, so that one fault is one red line.

Run it beside the bot, in the same environment. It ends with 0 if nothing is
red, and with 3 if something is.`,
		Example: `  playbook-bot doctor
  ADMIN_TOKEN_FILE=admin-token playbook-bot doctor
  playbook-bot doctor --json`,
		Args: noArg,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.runDoctor(cmd.Context(), asJSON) },
	}
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

func (a *app) runDoctor(ctx context.Context, asJSON bool) error {
	d := &doctor{app: a}
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
	s, err := loadConfig(d.environ, nil, "GITEA_URL", "GITEA_TOKEN", "REPOSITORIES", "PUBLIC_URL", "LISTEN", "REQUEST_TIMEOUT")
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
	u, err := s.checkup(book, db)
	if err != nil {
		d.fail("address", "", err.Error(), "Correct GITEA_URL.")
		return
	}
	u.Running = running
	d.found = append(d.found, u.Run(ctx)...)
}

// checkup is what package setup looks at.
func (s *settings) checkup(book *playbook.Playbook, db store.Store) (setup.Checkup, error) {
	client, err := s.giteaClient(nil)
	if err != nil {
		return setup.Checkup{}, err
	}
	u := setup.Checkup{
		Forge: client, Repositories: s.Repositories, PublicURL: s.publicURL(), Assumed: s.PublicURL == "",
		Playbook: book, Now: time.Now, Patience: testPatience, Poll: testPoll,
	}
	if s.Admin() != "" {
		admin, err := s.giteaClient(func(c *gitea.Config) { c.Token = s.Admin })
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
