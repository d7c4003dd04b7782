package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"playbook-bot/bot"
	"playbook-bot/bot/forge"
	"playbook-bot/bot/forge/gitea"
	"playbook-bot/bot/forge/github"
	"playbook-bot/bot/setup"
	"playbook-bot/bot/webhook"
	"playbook-bot/playbook"
)

// tracker is one forge that the configuration switches on.
type tracker struct {
	// name is the forge's in events, paths and keys; by is the variable that
	// switched it on.
	name, by string
	// url is the server's root, as people reach it.
	url string
	// token gives the bot's token; nil for an app.
	token func() string
	app   *github.App
}

// forgeNames are the forges there are, in the order of the variables.
var forgeNames = []string{"gitea", "forgejo", "github"}

// forgeVars are the variables that switch forges on, without their _FILE.
var forgeVars = []string{"GITEA_URL", "GITEA_TOKEN", "FORGEJO_URL", "FORGEJO_TOKEN",
	"GITHUB_URL", "GITHUB_TOKEN", "GITHUB_APP_ID", "GITHUB_APP_KEY"}

// adapter is what the program needs of a forge's client, in its several parts.
type adapter interface {
	bot.Forge
	setup.Admin
	setup.Probe
	setup.Tester
	EnsureLabels(ctx context.Context, repo int64, specs []forge.LabelSpec) error
}

// set is the first of the variables that has a value, itself or by a file.
func (l *loader) set(names ...string) string {
	for _, name := range names {
		if l.environ[name] != "" || l.environ[name+"_FILE"] != "" {
			return name
		}
	}
	return ""
}

// forges finds out which forges are switched on: at least one is needed.
func (l *loader) forges(c *config) []tracker {
	var out []tracker
	if by := l.set("GITEA_URL", "GITEA_TOKEN"); by != "" {
		out = append(out, tracker{name: "gitea", by: by, url: l.server("GITEA_URL", c.GiteaURL, by), token: l.secret("GITEA_TOKEN", true, checkToken)})
	}
	if by := l.set("FORGEJO_URL", "FORGEJO_TOKEN"); by != "" {
		out = append(out, tracker{name: "forgejo", by: by, url: l.server("FORGEJO_URL", c.ForgejoURL, by), token: l.secret("FORGEJO_TOKEN", true, checkToken)})
	}
	if by := l.set("GITHUB_TOKEN", "GITHUB_APP_ID", "GITHUB_APP_KEY", "GITHUB_URL"); by != "" {
		t := l.github(c)
		t.by = by
		out = append(out, t)
	}
	if len(out) == 0 {
		l.add("GITEA_URL", "is not set, nor FORGEJO_URL, GITHUB_TOKEN or GITHUB_APP_ID; one forge is needed: %s", helpOf("GITEA_URL"))
		l.secret("GITEA_TOKEN", true, checkToken)
	}
	return out
}

// server is the address of a forge that has no default one.
func (l *loader) server(name, value, by string) string {
	if value == "" {
		l.add(name, "is not set, but %s is: %s", by, helpOf(name))
	}
	return l.address(name, value)
}

var appID = regexp.MustCompile(`^[A-Za-z0-9.]{1,64}$`)

// github is GitHub as a user, by a token, or as an app, by its key.
func (l *loader) github(c *config) tracker {
	t := tracker{name: "github", url: l.address("GITHUB_URL", c.GithubURL)}
	token, app := l.set("GITHUB_TOKEN"), l.set("GITHUB_APP_ID", "GITHUB_APP_KEY")
	switch {
	case token != "" && app != "":
		l.add("GITHUB_TOKEN", "and %s are both set: the bot is a user or an app", app)
	case token != "":
		t.token = l.secret("GITHUB_TOKEN", true, checkToken)
	case app == "":
		l.add("GITHUB_TOKEN", "is not set, nor GITHUB_APP_ID, but GITHUB_URL is: %s", helpOf("GITHUB_TOKEN"))
	default:
		if c.GithubAppID == "" {
			l.add("GITHUB_APP_ID", "is not set, but %s is: %s", app, helpOf("GITHUB_APP_ID"))
		} else if !appID.MatchString(c.GithubAppID) {
			l.add("GITHUB_APP_ID", "must be an app's id or client id")
		}
		key := l.secret("GITHUB_APP_KEY", true, checkAppKey)
		t.app = &github.App{ID: c.GithubAppID, Key: func() []byte { return unfolded(key()) }}
	}
	if t.token == nil {
		t.token = func() string { return "" }
	}
	return t
}

// unfolded gives a key its lines back: environment files hold one line a value.
func unfolded(key string) []byte { return []byte(strings.ReplaceAll(key, `\n`, "\n")) }

func checkAppKey(s string) error {
	_, err := github.New(github.Config{App: &github.App{ID: "1", Key: func() []byte { return unfolded(s) }}})
	if err != nil {
		return errors.New("must be the app's private key: RSA, in PEM, whole")
	}
	return nil
}

// splitForge takes the forge's name off "github:ops/incidents"; "" where none
// is named.
func splitForge(s string) (forgeName, rest string) {
	if name, rest, ok := strings.Cut(s, ":"); ok {
		return name, rest
	}
	return "", s
}

// qualified checks that names say whose they are where that is not plain: a
// login on two forges is two accounts.
func (l *loader) qualified(name string, items []string, on []tracker) {
	for i, item := range items {
		at, _ := splitForge(item)
		switch {
		case at == "" && len(on) > 1:
			l.add(name, "must say in place %d which forge is meant, such as %s:…, as there are several (%s)", i+1, on[0].name, switches(on))
		case at != "" && !slices.Contains(forgeNames, at):
			l.add(name, "names a forge in place %d that is none of %s", i+1, strings.Join(forgeNames, ", "))
		case at != "" && len(on) > 0 && !slices.ContainsFunc(on, func(t tracker) bool { return t.name == at }):
			l.add(name, "names a forge in place %d that no variable switches on", i+1)
		}
	}
}

// switches names the variables that switched forges on.
func switches(on []tracker) string {
	var names []string
	for _, t := range on {
		names = append(names, t.by)
	}
	return strings.Join(names, ", ")
}

// pick is the forge that is meant: by its name, or the only one there is.
// Where none is configured it is Gitea, for commands that ask nobody.
func (s *settings) pick(name string) (tracker, error) {
	for _, t := range s.Forges {
		if t.name == name || name == "" && len(s.Forges) == 1 {
			return t, nil
		}
	}
	switch {
	case name != "" && !slices.Contains(forgeNames, name):
		return tracker{}, usagef("--forge must be one of %s", strings.Join(forgeNames, ", "))
	case name != "":
		return tracker{name: name}, nil
	case len(s.Forges) > 1:
		return tracker{}, usagef("several forges are configured (%s): say which with --forge", switches(s.Forges))
	}
	return tracker{name: "gitea"}, nil
}

// on reports that a forge is switched on.
func (s *settings) on(t tracker) bool {
	return slices.ContainsFunc(s.Forges, func(o tracker) bool { return o.name == t.name })
}

// locate finds the forge and the login that "github:ada" means; without a
// forge's name it is the only one.
func (s *settings) locate(account string) (t tracker, login string, ok bool) {
	at, login := splitForge(account)
	for _, t := range s.Forges {
		if t.name == at || at == "" && len(s.Forges) == 1 {
			return t, login, true
		}
	}
	return tracker{}, login, false
}

// dial makes the adapter of a forge. admin gives an administrator's token to
// use in place of the bot's; nil: the bot's own. onCall may be nil.
func (s *settings) dial(t tracker, admin func() string, onCall func(kind string, status int, d time.Duration)) (adapter, error) {
	agent := "playbook-bot/" + version()
	token := t.token
	if admin != nil {
		token = admin
	}
	var client adapter
	var err error
	if t.name == "github" {
		cfg := github.Config{BaseURL: t.url, Token: token, Timeout: s.RequestTimeout, UserAgent: agent, OnCall: onCall}
		if t.app != nil && admin == nil {
			cfg.Token, cfg.App = nil, t.app
		}
		client, err = github.New(cfg)
	} else {
		client, err = gitea.New(gitea.Config{BaseURL: t.url, Token: token, Name: t.name, Timeout: s.RequestTimeout, UserAgent: agent, OnCall: onCall})
	}
	if err != nil {
		return nil, fmt.Errorf("reach %s: %w", t.title(), err)
	}
	return client, nil
}

// title is the forge's own name.
func (t tracker) title() string {
	return map[string]string{"gitea": "Gitea", "forgejo": "Forgejo", "github": "GitHub"}[t.name]
}

// web is where people see the forge: an API's address is taken for GitHub too.
func (t tracker) web() string {
	if t.name != "github" {
		return t.url
	}
	return strings.Replace(strings.TrimSuffix(t.url, "/api/v3"), "://api.", "://", 1)
}

// dialect reads the forge's deliveries.
func (t tracker) dialect() webhook.Dialect {
	if t.name == "github" {
		return github.Dialect{}
	}
	return gitea.Dialect{Forge: t.name}
}

// apps are the forges on which the bot is an app.
func (s *settings) apps() []string {
	var out []string
	for _, t := range s.Forges {
		if t.app != nil {
			out = append(out, t.name)
		}
	}
	return out
}

// checkNames holds a playbook's roles, and whom it notifies, to the rule for
// names where there are several forges.
func (s *settings) checkNames(p *playbook.Playbook) error {
	if len(s.Forges) < 2 || p == nil {
		return nil
	}
	where := map[string]string{}
	for _, member := range p.Notify() {
		where[member] = "notify"
	}
	for _, m := range p.RoleMembers() {
		where[m.Member] = "role " + m.Role
	}
	for _, member := range slices.Sorted(maps.Keys(where)) {
		if at, _ := splitForge(member); at == "" {
			return fmt.Errorf("the playbook's %s names %s, which may be somebody else on each forge: with several (%s) write %s:%s",
				where[member], member, switches(s.Forges), s.Forges[0].name, member)
		}
	}
	return nil
}

// labelled is a forge whose repositories get all of the bot's labels, with
// their colours and descriptions, when the first of them is set there.
type labelled struct {
	adapter
	done sync.Map // repository id → struct{}
}

// SetLabels is the client's, after the labels were made.
func (l *labelled) SetLabels(ctx context.Context, repo, number int64, add, remove []string) error {
	if _, ok := l.done.Load(repo); !ok {
		if err := l.EnsureLabels(ctx, repo, labelSpecs()); err != nil {
			return err
		}
		l.done.Store(repo, struct{}{})
	}
	return l.adapter.SetLabels(ctx, repo, number, add, remove)
}
