package main

import (
	"context"
	"fmt"
	"net"
	"strings"

	"github.com/spf13/cobra"

	"playbook-bot/bot/forge/gitea"
	"playbook-bot/bot/forge/github"
	"playbook-bot/bot/webhook"
)

// hook is what must be typed into the forge for one hook.
type hook struct {
	URL    string `json:"url"`
	Path   string `json:"path"`
	Secret string `json:"secret"`
	ID     int64  `json:"id"`
}

type hookFlags struct {
	forge string
	org   string
	app   int64
	id    int64
	json  bool
	api   bool
}

func (a *app) hookSecret() *cobra.Command {
	var f hookFlags
	cmd := &cobra.Command{
		Use:     "hook-secret OWNER/REPO | --org NAME | --app ID",
		GroupID: groupBot,
		Short:   "Print the URL and the secret to enter for a repository's, organisation's or GitHub App's hook",
		Long: `hook-secret prints the target URL and the secret of one web hook.

Every hook has a secret of its own, derived from PLAYBOOK_SECRET and the
repository's or organisation's id: a forge shows a hook's secret to that
repository's admins, and with one secret for all each of them could sign for
any repository. The URL names the id. A GitHub App has one hook for all that
have installed it: --app, with the number that the app's page calls App ID.

It needs PLAYBOOK_SECRET, and asks the forge for the id with GITEA_URL and
GITEA_TOKEN, or another forge's variables; where there are several, --forge says
which. With --id or --app it asks nobody. The URL begins with PUBLIC_URL, or
else with http:// and LISTEN.

While PLAYBOOK_SECRET holds a comma list, the secret printed is the first's;
hooks with the others' keep working until those are taken out.`,
		Example: `  playbook-bot hook-secret ops/incidents
  playbook-bot hook-secret --org ops
  playbook-bot hook-secret --forge github ops/incidents
  playbook-bot hook-secret --app 1234567
  playbook-bot hook-secret ops/incidents --id 41 --json
  playbook-bot hook-secret ops/incidents --api | curl -fsS -d @- \
    -H 'Content-Type: application/json' -H "Authorization: token $ADMIN_TOKEN" \
    "$GITEA_URL/api/v1/repos/ops/incidents/hooks"`,
		Args: func(cmd *cobra.Command, args []string) error { return f.check(cmd, args) },
		RunE: func(cmd *cobra.Command, args []string) error { return a.runHookSecret(cmd.Context(), args, f) },
	}
	fl := cmd.Flags()
	fl.StringVar(&f.forge, "forge", "", "the forge's `NAME`: gitea, forgejo or github; needed where several are configured")
	fl.StringVar(&f.org, "org", "", "for the hook of the organisation `NAME`, which serves all its repositories")
	fl.Int64Var(&f.app, "app", 0, "for the hook of the GitHub App with this `ID`")
	fl.Int64Var(&f.id, "id", 0, "the repository's (with --org the organisation's) id, instead of asking the forge")
	fl.BoolVar(&f.json, "json", false, `print {"url", "path", "secret", "id"}`)
	fl.BoolVar(&f.api, "api", false, "print the body that makes the hook when it is posted to the forge's API")
	return cmd
}

func (f *hookFlags) check(cmd *cobra.Command, args []string) error {
	switch {
	case f.json && f.api:
		return usagef("--json and --api exclude each other")
	case f.id < 0 || f.app < 0:
		return usagef("--id and --app must be positive numbers")
	case f.app != 0 && (len(args) > 0 || f.org != "" || f.id != 0 || f.api):
		return usagef("--app stands alone: an app's hook is part of the app, on its page")
	case f.app != 0 && f.forge != "" && f.forge != "github":
		return usagef("--app is for GitHub only")
	case f.app != 0:
		f.forge = "github"
		return nil
	case (f.org != "" || f.id != 0) && len(args) == 0:
		return nil
	case f.org != "":
		return usagef("OWNER/REPO and --org exclude each other")
	}
	return oneArg("OWNER/REPO", "such as ops/incidents, or --org NAME")(cmd, args)
}

func (a *app) runHookSecret(ctx context.Context, args []string, f hookFlags) error {
	scope, uses := webhook.ScopeRepo, []string{"PLAYBOOK_SECRET", "HOOK_SECRETS", "PUBLIC_URL", "LISTEN"}
	switch {
	case f.org != "":
		scope = webhook.ScopeOrg
	case f.app != 0:
		scope, f.id = webhook.ScopeApp, f.app
	}
	if len(args) > 0 {
		if !validRepository(args[0]) || strings.HasSuffix(args[0], "/*") {
			return usagef("%q is no OWNER/REPO", args[0])
		}
	}
	if f.id == 0 {
		uses = append(uses, forgeVars...)
	}
	s, err := loadConfig(a.environ, nil, uses...)
	if err != nil {
		return err
	}
	t, err := s.pick(f.forge)
	if err != nil {
		return err
	}
	if f.id == 0 {
		if f.id, err = s.idOf(ctx, t, args, f.org); err != nil {
			return err
		}
	}
	path := webhook.HookPath(t.name, scope, f.id)
	h := hook{URL: s.publicURL() + path, Path: path, ID: f.id, Secret: s.hookSecretOf(t.name)(scope, f.id)}
	switch {
	case f.json:
		return a.printJSON(h)
	case f.api:
		return a.printJSON(hookBody(t.name, h))
	}
	fmt.Fprintf(a.stdout, "URL     %s\nSecret  %s\n", h.URL, h.Secret)
	return nil
}

// idOf asks the forge for the id of a repository or organisation.
func (s *settings) idOf(ctx context.Context, t tracker, args []string, org string) (int64, error) {
	if !s.on(t) {
		return 0, usagef("no variable switches %s on: give --id, or configure it", t.title())
	}
	client, err := s.dial(t, nil, nil)
	if err != nil {
		return 0, err
	}
	if org != "" {
		account, err := client.AccountByLogin(ctx, org)
		if err != nil {
			return 0, fmt.Errorf("ask for the id of organisation %s: %w", org, err)
		}
		return account.ID, nil
	}
	owner, name, _ := strings.Cut(args[0], "/")
	repo, err := client.RepoByName(ctx, owner, name)
	if err != nil {
		return 0, fmt.Errorf("ask for the id of repository %s: %w", args[0], err)
	}
	return repo.ID, nil
}

// publicURL is where the forge reaches the bot, as far as is known. A LISTEN
// on all addresses names no host: then it stands for this machine.
func (s *settings) publicURL() string {
	if s.PublicURL != "" {
		return s.PublicURL
	}
	host, port, err := net.SplitHostPort(s.Listen)
	if ip := net.ParseIP(host); err == nil && (host == "" || ip != nil && ip.IsUnspecified()) {
		host = "localhost"
	}
	return "http://" + net.JoinHostPort(host, port)
}

// hookBody is the body of the forge's "create a hook".
func hookBody(forgeName string, h hook) map[string]any {
	body := map[string]any{
		"active": true,
		"config": map[string]string{"url": h.URL, "content_type": "json", "secret": h.Secret},
	}
	if forgeName == "github" {
		body["name"], body["events"] = "web", github.HookEvents()
	} else {
		body["type"], body["events"] = "gitea", gitea.HookEvents()
	}
	return body
}
