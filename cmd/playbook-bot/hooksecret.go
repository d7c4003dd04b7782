package main

import (
	"context"
	"fmt"
	"net"
	"strings"

	"github.com/spf13/cobra"

	"playbook-bot/bot/forge/gitea"
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
	org  string
	id   int64
	json bool
	api  bool
}

func (a *app) hookSecret() *cobra.Command {
	var f hookFlags
	cmd := &cobra.Command{
		Use:     "hook-secret OWNER/REPO | --org NAME",
		GroupID: groupBot,
		Short:   "Print the URL and the secret to enter for a repository's or organisation's hook",
		Long: `hook-secret prints the target URL and the secret of one web hook.

Every hook has a secret of its own, derived from PLAYBOOK_SECRET and the
repository's or organisation's id: a forge shows a hook's secret to that
repository's admins, and with one secret for all each of them could sign for
any repository. The URL names the id.

It needs PLAYBOOK_SECRET, and asks the forge for the id with GITEA_URL and
GITEA_TOKEN. With --id it asks nobody. The URL begins with PUBLIC_URL, or else
with http:// and LISTEN.

While PLAYBOOK_SECRET holds a comma list, the secret printed is the first's;
hooks with the others' keep working until those are taken out.`,
		Example: `  playbook-bot hook-secret ops/incidents
  playbook-bot hook-secret --org ops
  playbook-bot hook-secret ops/incidents --id 41 --json
  playbook-bot hook-secret ops/incidents --api | curl -fsS -d @- \
    -H 'Content-Type: application/json' -H "Authorization: token $ADMIN_TOKEN" \
    "$GITEA_URL/api/v1/repos/ops/incidents/hooks"`,
		Args: func(cmd *cobra.Command, args []string) error {
			if f.json && f.api {
				return usagef("--json and --api exclude each other")
			}
			if (f.org != "" || f.id != 0) && len(args) == 0 {
				return nil
			}
			if f.org != "" {
				return usagef("OWNER/REPO and --org exclude each other")
			}
			return oneArg("OWNER/REPO", "such as ops/incidents, or --org NAME")(cmd, args)
		},
		RunE: func(cmd *cobra.Command, args []string) error { return a.runHookSecret(cmd.Context(), args, f) },
	}
	cmd.Flags().StringVar(&f.org, "org", "", "for the hook of the organisation `NAME`, which serves all its repositories")
	cmd.Flags().Int64Var(&f.id, "id", 0, "the repository's (with --org the organisation's) id, instead of asking the forge")
	cmd.Flags().BoolVar(&f.json, "json", false, `print {"url", "path", "secret", "id"}`)
	cmd.Flags().BoolVar(&f.api, "api", false, "print the body that makes the hook when it is posted to Gitea's API")
	return cmd
}

func (a *app) runHookSecret(ctx context.Context, args []string, f hookFlags) error {
	if f.id < 0 {
		return usagef("--id must be a positive number")
	}
	scope, uses := webhook.ScopeRepo, []string{"PLAYBOOK_SECRET", "PUBLIC_URL", "LISTEN"}
	if f.org != "" {
		scope = webhook.ScopeOrg
	}
	if len(args) > 0 {
		if !validRepository(args[0]) || strings.HasSuffix(args[0], "/*") {
			return usagef("%q is no OWNER/REPO", args[0])
		}
	}
	if f.id == 0 {
		uses = append(uses, "GITEA_URL", "GITEA_TOKEN")
	}
	s, err := loadConfig(a.environ, nil, uses...)
	if err != nil {
		return err
	}
	if f.id == 0 {
		if f.id, err = s.idOf(ctx, args, f.org); err != nil {
			return err
		}
	}
	path := webhook.HookPath("gitea", scope, f.id)
	h := hook{URL: s.publicURL() + path, Path: path, ID: f.id, Secret: webhook.HookSecret(s.Secrets()[0], "gitea", scope, f.id)}
	switch {
	case f.json:
		return a.printJSON(h)
	case f.api:
		return a.printJSON(giteaHook(h))
	}
	fmt.Fprintf(a.stdout, "URL     %s\nSecret  %s\n", h.URL, h.Secret)
	return nil
}

// idOf asks the forge for the id of a repository or organisation.
func (s *settings) idOf(ctx context.Context, args []string, org string) (int64, error) {
	client, err := s.giteaClient(nil)
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

// giteaClient makes the adapter; tune may change its configuration.
func (s *settings) giteaClient(tune func(*gitea.Config)) (*gitea.Client, error) {
	cfg := gitea.Config{BaseURL: s.GiteaURL, Token: s.Token, Timeout: s.RequestTimeout, UserAgent: "playbook-bot/" + version()}
	if tune != nil {
		tune(&cfg)
	}
	client, err := gitea.New(cfg)
	if err != nil {
		return nil, fmt.Errorf("reach Gitea: %w", err)
	}
	return client, nil
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

// giteaHook is the body of Gitea's "create a hook".
func giteaHook(h hook) map[string]any {
	return map[string]any{
		"type": "gitea", "active": true, "events": gitea.HookEvents(),
		"config": map[string]string{"url": h.URL, "content_type": "json", "secret": h.Secret},
	}
}
