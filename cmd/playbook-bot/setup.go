package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"playbook-bot/bot"
	"playbook-bot/bot/forge"
	"playbook-bot/bot/setup"
	"playbook-bot/bot/webhook"
	"playbook-bot/templates"
)

type setupFlags struct {
	forge, org, bot          string
	dryRun, remove, pull     bool
	newSecret, replace, json bool
	repos                    []string
}

const setupLong = `setup makes repositories ready for the bot, and prints what it changed:

  access  the bot's account becomes an administrator of the repository; with
          less it cannot read who may approve what
  labels  the recovery/… labels, unless LABELS is false
  form    the issue form for restart requests, a commit to the default branch,
          or with --pull-request a pull request
  hook    with its URL, its own secret, JSON, and the events the bot acts on;
          pushes too, which test deliveries are

What is there already is left alone, what is wrong with it is repaired: run it
as often as you like. It does not touch what people may have changed: a form
with other contents, the colours of labels, a hook to the same path at another
address (--replace does). A hook's secret can neither be read nor changed;
--new-secret makes the hook anew, with the first of PLAYBOOK_SECRET.

On GitHub the bot becomes a collaborator with write, which is enough there, and
accepts the invitation itself. Where several forges are configured, --forge says
which is meant. A GitHub App needs none of this: see the README.

With --org there is one hook for the whole organisation, labels for all its
repositories, and one team, "playbook-bot", with the bot's account in it, that
administers the repositories named; these get the form. Without arguments,
the repositories that REPOSITORIES names in full are set up.

It needs GITEA_URL, PLAYBOOK_SECRET, PUBLIC_URL (where the forge reaches the
bot), GITEA_TOKEN (to learn the bot's account; or --bot) and, in ADMIN_TOKEN or
the file of ADMIN_TOKEN_FILE, a token of an administrator of the repositories
with the scopes write:repository, write:issue and read:user; for --org one of an
owner's, with write:organization too. On GitHub it is GITHUB_TOKEN, and the
administrator's scopes are repo and admin:repo_hook, with --org admin:org and
admin:org_hook too. Nothing else reads ADMIN_TOKEN but doctor.

--remove takes all of it away again, but for labels that issues bear and forms
that people have changed. --dry-run only prints. Afterwards: doctor.`

func (a *app) setup() *cobra.Command {
	var f setupFlags
	cmd := &cobra.Command{
		Use:     "setup [OWNER/REPO…] | --org NAME [OWNER/REPO…]",
		GroupID: groupBot,
		Short:   "Make a repository or organisation ready for the bot: hook, labels, form, access",
		Long:    setupLong,
		Example: `  playbook-bot setup ops/incidents
  playbook-bot setup ops/incidents --dry-run
  playbook-bot setup --org ops ops/incidents ops/infra --pull-request
  playbook-bot setup --forge github ops/incidents
  playbook-bot setup ops/incidents --remove
  ADMIN_TOKEN_FILE=admin-token playbook-bot setup ops/incidents --json`,
		Args: func(_ *cobra.Command, args []string) error {
			for _, arg := range args {
				if !validRepository(arg) || strings.HasSuffix(arg, "/*") {
					return usagef("%q is no OWNER/REPO", arg)
				}
			}
			if f.remove && (f.newSecret || f.pull) {
				return usagef("--remove takes away: it goes with neither --new-secret nor --pull-request")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			f.repos = args
			return a.runSetup(cmd.Context(), f)
		},
	}
	fl := cmd.Flags()
	fl.StringVar(&f.forge, "forge", "", "the forge's `NAME`: gitea, forgejo or github; needed where several are configured")
	fl.StringVar(&f.org, "org", "", "set up the organisation `NAME`, and its repositories named")
	fl.StringVar(&f.bot, "bot", "", "the bot's account is `LOGIN`, instead of whose the bot's token is")
	fl.BoolVar(&f.dryRun, "dry-run", false, "print what would be changed, and change nothing")
	fl.BoolVar(&f.remove, "remove", false, "take away what setup made")
	fl.BoolVar(&f.pull, "pull-request", false, "propose the form in a pull request instead of committing it")
	fl.BoolVar(&f.newSecret, "new-secret", false, "make the hook anew, with the present secret")
	fl.BoolVar(&f.replace, "replace", false, "also replace a form with other contents, and hooks to the same path elsewhere")
	fl.BoolVar(&f.json, "json", false, `print {"dry_run", "changed", "failed", "steps": [{"place", "what", "action", …}]}`)
	return cmd
}

func (a *app) runSetup(ctx context.Context, f setupFlags) error {
	s, t, err := a.setupConfig(&f)
	if err != nil {
		return err
	}
	want, err := s.want(ctx, t, f)
	if err != nil {
		return err
	}
	plan := want.Plan
	if f.remove {
		plan = want.PlanRemoval
	}
	steps, err := plan(ctx)
	if err != nil {
		return hinted(err, t)
	}
	r := setupReport{DryRun: f.dryRun, Steps: []setupStep{}}
	for _, step := range steps {
		done := setupStep{Step: step}
		if step.Changes() && !f.dryRun {
			if done.err = step.Do(ctx); done.err != nil {
				done.Error = done.err.Error()
				r.Failed++
			}
		}
		if step.Changes() && done.err == nil {
			r.Changed++
		}
		r.Steps = append(r.Steps, done)
	}
	if f.json {
		err = a.printJSON(r)
	} else {
		a.printSetup(s, t, f, r)
	}
	if err == nil && r.Failed > 0 {
		err = hinted(fmt.Errorf("%d of %d changes could not be made: %w", r.Failed, r.Failed+r.Changed, r.first()), t)
	}
	return err
}

// setupConfig reads the configuration and finds out which repositories are
// meant.
func (a *app) setupConfig(f *setupFlags) (*settings, tracker, error) {
	uses := []string{"ADMIN_TOKEN", "PUBLIC_URL", "LISTEN", "REQUEST_TIMEOUT", "HOOK_SECRETS"}
	if !f.remove {
		uses = append(uses, "PLAYBOOK_SECRET")
	}
	switch {
	case f.bot == "":
		uses = append(uses, forgeVars...)
	case f.forge != "github": // whose address is known
		uses = append(uses, "GITEA_URL", "FORGEJO_URL")
	}
	if len(f.repos) == 0 && f.org == "" {
		uses = append(uses, "REPOSITORIES")
	}
	s, err := loadConfig(a.environ, nil, uses...)
	if strings.TrimSpace(a.environ["ADMIN_TOKEN"]+a.environ["ADMIN_TOKEN_FILE"]) == "" {
		// Only setup needs it: the loader knows it as one that may be missing.
		missing := varError{"ADMIN_TOKEN", "is not set (nor ADMIN_TOKEN_FILE): " + helpOf("ADMIN_TOKEN")}
		var others configError
		errors.As(err, &others)
		err = configError{errors.Join(others.error, missing)}
	}
	if err != nil {
		return nil, tracker{}, err
	}
	t, err := s.pick(f.forge)
	switch {
	case err != nil:
		return nil, t, err
	case t.app != nil:
		return nil, t, usagef("a GitHub App needs no setup: access and hook are the app's own, for which hook-secret --app prints what to enter")
	case !s.on(t) && (t.name != "github" || f.bot == ""):
		return nil, t, usagef("no variable switches %s on", t.title())
	}
	if len(f.repos) > 0 {
		return s, t, nil
	}
	for _, name := range bot.Patterns(s.Repositories).On(t.name) {
		owner, repo, _ := strings.Cut(name, "/")
		if repo != "*" && (f.org == "" || strings.EqualFold(owner, f.org)) {
			f.repos = append(f.repos, name)
		}
	}
	if len(f.repos) == 0 && f.org == "" {
		return nil, t, usagef("REPOSITORIES names no repository in full: name one, or --org NAME")
	}
	return s, t, nil
}

// want is what is to be so on the forge.
func (s *settings) want(ctx context.Context, t tracker, f setupFlags) (setup.Want, error) {
	admin, err := s.dial(t, s.Admin, nil)
	if err != nil {
		return setup.Want{}, err
	}
	own, err := s.dial(t, nil, nil)
	if err != nil {
		return setup.Want{}, err
	}
	account, err := botAccount(ctx, t, admin, own, f.bot)
	if err != nil {
		return setup.Want{}, err
	}
	// Nobody accepts an invitation for an account that is only named.
	invited, _ := own.(setup.Invited)
	if f.bot != "" {
		invited = nil
	}
	var labels []forge.LabelSpec
	if s.Labels {
		labels = labelSpecs()
	}
	return setup.Want{
		Admin: admin, Bot: account, Invited: invited, PublicURL: s.publicURL(), Secret: s.hookSecretOf(admin.Name()),
		Labels: labels, Form: templates.FormYAML, FormPath: templates.FormPath,
		Org: f.org, Repos: f.repos,
		PullRequest: f.pull, NewSecret: f.newSecret, Replace: f.replace,
	}, nil
}

func botAccount(ctx context.Context, t tracker, admin, own adapter, login string) (forge.Account, error) {
	if login != "" {
		account, err := admin.AccountByLogin(ctx, login)
		if err != nil {
			return account, fmt.Errorf("look for the bot's account %s: %w", login, err)
		}
		return account, nil
	}
	account, err := own.Self(ctx)
	if err != nil {
		return account, fmt.Errorf("ask whose %s_TOKEN is: %w", strings.ToUpper(t.name), err)
	}
	return account, nil
}

// hookSecretOf is the secret of a hook by its key: a literal one, or else the
// one derived from the first master.
func (s *settings) hookSecretOf(forgeName string) func(scope string, id int64) string {
	return func(scope string, id int64) string {
		if literal, ok := s.Hooks()[webhook.HookPath(forgeName, scope, id)]; ok {
			return literal
		}
		return webhook.HookSecret(s.Secrets()[0], forgeName, scope, id)
	}
}

// labelSpecs are the bot's labels as the forges take them.
func labelSpecs() []forge.LabelSpec {
	var specs []forge.LabelSpec
	for _, t := range templates.Labels() {
		specs = append(specs, forge.LabelSpec{Name: t.Name, Color: t.Color, Description: t.Description, Exclusive: t.Exclusive})
	}
	return specs
}

// hinted adds what a refusal by the forge most often means here.
func hinted(err error, t tracker) error {
	switch {
	case !errors.Is(err, forge.ErrUnverified):
	case t.name == "github":
		return fmt.Errorf("%w\nADMIN_TOKEN must be an administrator's of the repository (with --org an owner's) and have the scopes\nrepo, admin:repo_hook (with --org admin:org, admin:org_hook too)", err)
	default:
		return fmt.Errorf("%w\nADMIN_TOKEN must be an administrator's of the repository (with --org an owner's) and have the scopes\nwrite:repository, write:issue, read:user (with --org write:organization too)", err)
	}
	return err
}

// setupStep is a step and what came of it.
type setupStep struct {
	setup.Step
	Error string `json:"error,omitempty"`
	err   error
}

type setupReport struct {
	DryRun  bool        `json:"dry_run"`
	Changed int         `json:"changed"` // with --dry-run: would be
	Failed  int         `json:"failed"`
	Steps   []setupStep `json:"steps"`
}

func (r setupReport) first() error {
	i := slices.IndexFunc(r.Steps, func(s setupStep) bool { return s.err != nil })
	return r.Steps[i].err
}

var done = map[setup.Action]string{setup.Create: "created", setup.Repair: "repaired", setup.Delete: "deleted", setup.Keep: "kept"}

func (a *app) printSetup(s *settings, t tracker, f setupFlags, r setupReport) {
	pg := &page{w: a.stdout}
	place := ""
	for _, step := range r.Steps {
		if step.Place != place {
			place = step.Place
			pg.head("%s", place)
		}
		word := done[step.Action]
		switch {
		case step.err != nil:
			word = "FAILED"
		case f.dryRun && step.Changes():
			word = "would be " + word
		}
		text := step.What
		if step.Detail != "" {
			text += ": " + step.Detail
		}
		pg.item("%-9s %s", word, text)
		if step.err != nil {
			pg.paste(step.Error)
		}
	}
	switch {
	case f.dryRun:
		pg.head("%d changes would be made.", r.Changed)
	case r.Changed == 0 && r.Failed == 0:
		pg.head("Nothing was left to do.")
	default:
		pg.head("%d changes made.", r.Changed)
	}
	if !f.remove {
		a.setupNotes(pg, s, t, f)
	}
}

// setupNotes are about what setup cannot do.
func (a *app) setupNotes(pg *page, s *settings, t tracker, f setupFlags) {
	for _, repo := range f.repos {
		owner, _, _ := strings.Cut(repo, "/")
		if !slices.ContainsFunc(bot.Patterns(s.Repositories).On(t.name), func(p string) bool {
			return strings.EqualFold(p, repo) || strings.EqualFold(p, owner+"/*")
		}) {
			pg.item("REPOSITORIES does not name %s: there the bot will not answer.", repo)
		}
	}
	if s.PublicURL == "" {
		pg.item("PUBLIC_URL is not set: the hook delivers to %s, which serves where the forge runs on this machine.", s.publicURL())
	}
	if !f.dryRun {
		pg.item("Next: playbook-bot serve, and beside it playbook-bot doctor.")
	}
}
