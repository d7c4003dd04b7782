package main

import (
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/caarlos0/env/v11"

	"playbook-bot/bot/mcp"
	"playbook-bot/playbook"
)

// MinSecret is the shortest PLAYBOOK_SECRET taken, in characters: every
// hook's secret and the markers of all answers hang on it.
const MinSecret = 32

// config is everything the environment says. The README's table is made from
// its tags (see configTable): env names the variable, envDefault its default,
// help what it does. needed marks what has no default that could work, and
// forge what one forge is switched on by, of which one is needed; secret
// marks values that have a second field, NAME_FILE, for a file to read them
// from.
type config struct {
	GiteaURL        string        `env:"GITEA_URL" forge:"Gitea" help:"address of the Gitea server, as the bot reaches it; for example https://git.example.org"`
	GiteaToken      string        `env:"GITEA_TOKEN" forge:"Gitea" secret:"yes" help:"access token of the bot's own account; scopes write:issue, read:repository, read:user, read:organization"`
	GiteaTokenFile  string        `env:"GITEA_TOKEN_FILE"`
	ForgejoURL      string        `env:"FORGEJO_URL" forge:"Forgejo" help:"address of the Forgejo server, as the bot reaches it"`
	ForgejoToken    string        `env:"FORGEJO_TOKEN" forge:"Forgejo" secret:"yes" help:"access token of the bot's own account there; scopes as for GITEA_TOKEN"`
	ForgejoTokenF   string        `env:"FORGEJO_TOKEN_FILE"`
	GithubToken     string        `env:"GITHUB_TOKEN" forge:"GitHub" secret:"yes" help:"token of the bot's own account on GitHub, with push access: classic with repo and read:org, or fine-grained with Issues (write), Pull requests, Contents, Metadata and Members (read)"`
	GithubTokenFile string        `env:"GITHUB_TOKEN_FILE"`
	GithubAppID     string        `env:"GITHUB_APP_ID" forge:"GitHub, as an app" help:"instead of GITHUB_TOKEN, the id or client id of a GitHub App; permissions Issues (write), Pull requests, Contents, Metadata and Members (read)"`
	GithubAppKey    string        `env:"GITHUB_APP_KEY" forge:"GitHub, as an app" secret:"yes" help:"the app's private key, in PEM; on one line with \\n for its ends of lines, or better a file"`
	GithubAppKeyF   string        `env:"GITHUB_APP_KEY_FILE"`
	GithubURL       string        `env:"GITHUB_URL" envDefault:"https://github.com" help:"root of a GitHub Enterprise Server, or of its API"`
	PlaybookSecret  string        `env:"PLAYBOOK_SECRET" needed:"yes" secret:"yes" help:"32 characters or more, from which every hook's secret is derived; a comma list while rotating, the first signs and all verify"`
	PlaybookSecretF string        `env:"PLAYBOOK_SECRET_FILE"`
	Repositories    []string      `env:"REPOSITORIES" needed:"yes" help:"where the bot answers: a comma list of owner/repo and owner/*, with the forge before each where there are several (github:owner/repo); gated rungs are approved only in repositories named in full"`
	DatabaseURL     string        `env:"DATABASE_URL" secret:"yes" envDefault:"sqlite:data/playbook-bot.db" help:"sqlite:PATH, or postgres://USER:PASSWORD@HOST/NAME for several replicas"`
	DatabaseURLFile string        `env:"DATABASE_URL_FILE"`
	Listen          string        `env:"LISTEN" envDefault:"127.0.0.1:8080" help:"HOST:PORT for deliveries, /healthz and /readyz; put a TLS proxy before it where the way from the forge is not private"`
	AdminListen     string        `env:"ADMIN_LISTEN" help:"HOST:PORT for /metrics, /healthz and /readyz; for operators only, so not to be reached from outside"`
	Pprof           bool          `env:"PPROF" envDefault:"false" help:"serve profiles of the process at /debug/pprof/ on ADMIN_LISTEN"`
	PublicURL       string        `env:"PUBLIC_URL" help:"address at which the forge reaches LISTEN; shown by hook-secret, default http://LISTEN"`
	PlaybookFile    string        `env:"PLAYBOOK_FILE" help:"your own playbook instead of the embedded mcp-scoped-recovery; --playbook goes before it"`
	TemplatesDir    string        `env:"TEMPLATES_DIR" help:"directory whose *.md.tmpl files replace the embedded answers of the same name"`
	IgnoreAccounts  []string      `env:"IGNORE_ACCOUNTS" help:"comma list of logins whose comments are not for this bot, such as other bots"`
	BreakGlass      string        `env:"GITEA_BREAKGLASS_RESTART_AUTHORIZATION" secret:"yes" help:"who may skip the attempt log: a comma list of grants SCOPE[:ACTION][@EXPIRY], SCOPE being owner/repo#12, owner/repo, owner/* or *"`
	BreakGlassFile  string        `env:"GITEA_BREAKGLASS_RESTART_AUTHORIZATION_FILE"`
	HookSecrets     string        `env:"HOOK_SECRETS" secret:"yes" help:"literal secrets for single hooks, instead of the derived ones: a comma list of PATH=SECRET, PATH being such as /webhook/gitea/repo/41"`
	HookSecretsFile string        `env:"HOOK_SECRETS_FILE"`
	AdminToken      string        `env:"ADMIN_TOKEN" secret:"yes" help:"token of an administrator of the repositories, for setup and doctor alone; serve does not read it"`
	AdminTokenFile  string        `env:"ADMIN_TOKEN_FILE"`
	MCPServers      string        `env:"MCP_SERVERS" secret:"yes" help:"MCP servers that may be probed: NAME=URL, a comma list, or YAML as in the section on MCP below; none: /probe says so"`
	MCPServersFile  string        `env:"MCP_SERVERS_FILE"`
	MCPTokens       string        `env:"MCP_TOKENS" secret:"yes" help:"who may use the tools at /mcp on LISTEN: a comma list of LOGIN=TOKEN, tokens of 32 characters or more, with the forge before each login where there are several (github:ada=TOKEN); none: there is no /mcp"`
	MCPTokensFile   string        `env:"MCP_TOKENS_FILE"`
	MCPAccount      string        `env:"MCP_ACCOUNT" help:"for playbook-bot mcp only: the login in whose name its caller files; none: the tools that file nothing"`
	Labels          bool          `env:"LABELS" envDefault:"true" help:"set the recovery/… labels on issues"`
	Reactions       bool          `env:"REACTIONS" envDefault:"true" help:"react to what is being answered"`
	Workers         int           `env:"WORKERS" envDefault:"8" help:"threads (issues) worked on at the same time"`
	RequestTimeout  time.Duration `env:"REQUEST_TIMEOUT" envDefault:"10s" help:"longest call to the forge"`
	Lease           time.Duration `env:"LEASE" envDefault:"10s" help:"how long a process that died keeps its threads from the others"`
	Settle          time.Duration `env:"SETTLE" envDefault:"3s" help:"wait before looking whether a comment landed, after an error from the forge itself"`
	SettleProxy     time.Duration `env:"SETTLE_PROXY" envDefault:"1m" help:"the same, after no answer or a proxy's"`
	SweepInterval   time.Duration `env:"SWEEP_INTERVAL" envDefault:"5m" help:"how often to look for events that no delivery brought"`
	ShutdownTimeout time.Duration `env:"SHUTDOWN_TIMEOUT" envDefault:"20s" help:"longest time to finish or hand back work after SIGTERM"`
	Retain          time.Duration `env:"RETAIN" envDefault:"2160h" help:"how long finished events are kept (90 days); the audit trail and what was seen are kept for ever"`
	LogLevel        slog.Level    `env:"LOG_LEVEL" envDefault:"info" help:"debug, info, warn or error"`
	LogFormat       string        `env:"LOG_FORMAT" envDefault:"text" help:"text or json"`
}

// settings is a config that was found good: what serve and its kin run with.
type settings struct {
	config
	// Forges are those that are switched on, at least one for commands that
	// name the variables of any among their uses.
	Forges []tracker
	// Secrets, Grants, Hooks and the forges' tokens read their file again when
	// it changes.
	Secrets func() []string
	Grants  func() (playbook.Grants, error)
	Hooks   func() map[string]string
	// Tokens are those of /mcp, read again likewise; none: nobody's.
	Tokens func() tokenTable
	// Servers may be probed.
	Servers mcp.Servers
	// Admin is ADMIN_TOKEN, "" where it is not set; nil for those that do not
	// name it among their uses.
	Admin func() string
	// Database is DATABASE_URL; it may hold a password.
	Database string
}

// varError is one thing wrong with one variable. Its text never holds the
// value, which may be a secret in the wrong place.
type varError struct {
	name, problem string
}

func (e varError) Error() string { return e.name + " " + e.problem }

// configError is all that is wrong with the environment, a variable a line.
type configError struct{ error }

func (e configError) Error() string {
	return "the configuration is not complete (playbook-bot serve --help):\n" + e.error.Error()
}

func (e configError) Unwrap() error { return e.error }

// loadConfig reads the variables named in uses (none: all of them) from
// environ and reports everything wrong with them at once, sorted as the
// struct has them. warn is told, later, of secret files that stop being
// readable; it may be nil.
func loadConfig(environ map[string]string, warn func(error), uses ...string) (*settings, error) {
	l := &loader{environ: trimmed(environ), uses: uses, warn: warn}
	if l.warn == nil {
		l.warn = func(error) {}
	}
	s := &settings{}
	l.parse(&s.config)
	l.needed(&s.config)
	l.plain(&s.config)
	l.secrets(s)
	if err := l.err(); err != nil {
		return nil, err
	}
	return s, nil
}

type loader struct {
	environ map[string]string
	uses    []string
	warn    func(error)
	errs    []varError
}

func trimmed(environ map[string]string) map[string]string {
	m := make(map[string]string, len(environ))
	for k, v := range environ {
		m[k] = strings.TrimSpace(v)
	}
	return m
}

func (l *loader) add(name, format string, args ...any) {
	e := varError{name, fmt.Sprintf(format, args...)}
	first, _, _ := strings.Cut(name, " ")
	known := slices.ContainsFunc(l.errs, func(o varError) bool { return o.name == name })
	if l.wants(first) && !known { // the first trouble of a variable explains the others
		l.errs = append(l.errs, e)
	}
}

// wants reports whether the command at hand uses the variable.
func (l *loader) wants(name string) bool {
	return len(l.uses) == 0 || slices.Contains(l.uses, strings.TrimSuffix(name, "_FILE")) || slices.Contains(l.uses, name)
}

func (l *loader) err() error {
	order := variables()
	slices.SortStableFunc(l.errs, func(a, b varError) int {
		return slices.Index(order, strings.Fields(a.name)[0]) - slices.Index(order, strings.Fields(b.name)[0])
	})
	var errs []error
	for _, e := range l.errs {
		errs = append(errs, e)
	}
	if len(errs) == 0 {
		return nil
	}
	return configError{errors.Join(errs...)}
}

// parse lets env fill the struct. Env's own errors name the field and print
// the value, so only the field is taken from them.
func (l *loader) parse(c *config) {
	err := env.ParseWithOptions(c, env.Options{Environment: l.environ})
	if err == nil {
		return
	}
	var all env.AggregateError
	if !errors.As(err, &all) {
		l.add("environment", "cannot be read")
		return
	}
	for _, e := range all.Errors {
		var p env.ParseError
		if errors.As(e, &p) {
			f, _ := reflect.TypeFor[config]().FieldByName(p.Name)
			l.add(f.Tag.Get("env"), "must be %s", kindOf(f.Type))
		} else {
			l.add("environment", "cannot be read: %T", e)
		}
	}
}

func kindOf(t reflect.Type) string {
	switch t {
	case reflect.TypeFor[time.Duration]():
		return "a duration such as 30s, 5m or 2h"
	case reflect.TypeFor[slog.Level]():
		return "one of debug, info, warn, error"
	}
	switch t.Kind() {
	case reflect.Bool:
		return "true or false"
	case reflect.Int:
		return "a whole number"
	}
	return "of another form"
}

// needed reports variables that have no default and are not set. Those with a
// NAME_FILE are looked at in secrets.
func (l *loader) needed(*config) {
	for f := range reflect.TypeFor[config]().Fields() {
		name := f.Tag.Get("env")
		if f.Tag.Get("needed") != "" && f.Tag.Get("secret") == "" && l.environ[name] == "" {
			l.add(name, "is not set: %s", f.Tag.Get("help"))
		}
	}
}

// plain checks what is no secret.
func (l *loader) plain(c *config) {
	c.PublicURL = l.address("PUBLIC_URL", c.PublicURL)
	c.Repositories = l.list("REPOSITORIES", c.Repositories, validPattern, "owner/repo or owner/*")
	c.IgnoreAccounts = l.list("IGNORE_ACCOUNTS", c.IgnoreAccounts, validLogin, "a login")
	for name, d := range map[string]time.Duration{
		"REQUEST_TIMEOUT": c.RequestTimeout, "LEASE": c.Lease, "SETTLE": c.Settle, "SETTLE_PROXY": c.SettleProxy,
		"SWEEP_INTERVAL": c.SweepInterval, "SHUTDOWN_TIMEOUT": c.ShutdownTimeout, "RETAIN": c.Retain,
	} {
		if d <= 0 {
			l.add(name, "must be longer than nothing")
		}
	}
	if c.Workers < 1 || c.Workers > 1000 {
		l.add("WORKERS", "must be between 1 and 1000")
	}
	if c.LogFormat != "text" && c.LogFormat != "json" {
		l.add("LOG_FORMAT", "must be text or json")
	}
	if _, login := splitForge(c.MCPAccount); c.MCPAccount != "" && !validLogin(login) {
		l.add("MCP_ACCOUNT", "must be a login")
	}
	for name, addr := range map[string]string{"LISTEN": c.Listen, "ADMIN_LISTEN": c.AdminListen} {
		if addr != "" && !validListen(addr) {
			l.add(name, "must be HOST:PORT, such as 127.0.0.1:8080 or :8080")
		}
	}
	if c.Pprof && c.AdminListen == "" {
		l.add("PPROF", "needs ADMIN_LISTEN: profiles are not served on LISTEN")
	}
	if c.Listen == c.AdminListen {
		l.add("ADMIN_LISTEN", "must be another address than LISTEN")
	}
}

// address checks an HTTP address and takes the slash off its end.
func (l *loader) address(name, v string) string {
	if v == "" {
		return ""
	}
	u, err := url.Parse(v)
	switch {
	case err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "":
		l.add(name, "must be an address that begins with https:// or http://")
	case u.User != nil:
		l.add(name, "must not hold a user name or password: the token is enough")
	case u.RawQuery != "" || u.Fragment != "":
		l.add(name, "must end before any ? or #")
	}
	return strings.TrimRight(v, "/")
}

// list trims a comma list's items and checks each; a blank item is refused,
// naming its place and not its text.
func (l *loader) list(name string, items []string, ok func(string) bool, form string) []string {
	var out []string
	for i, item := range items {
		item = strings.TrimSpace(item)
		if !ok(item) {
			l.add(name, "holds something in place %d that is not %s", i+1, form)
			continue
		}
		out = append(out, item)
	}
	return out
}

// secrets checks what may come from a file, and arranges for it to be read
// again when it changes.
func (l *loader) secrets(s *settings) {
	s.Forges = l.forges(&s.config)
	l.qualified("REPOSITORIES", s.Repositories, s.Forges)
	if s.MCPAccount != "" {
		l.qualified("MCP_ACCOUNT", []string{s.MCPAccount}, s.Forges)
	}
	master := l.secret("PLAYBOOK_SECRET", true, checkMasters)
	grants := l.secret("GITEA_BREAKGLASS_RESTART_AUTHORIZATION", false, checkGrants)
	hooks := l.secret("HOOK_SECRETS", false, checkHooks)
	database := l.secret("DATABASE_URL", false, checkDatabase)
	tokens := l.secret("MCP_TOKENS", false, checkTokens)
	servers := l.secret("MCP_SERVERS", false, l.checkServers)

	if slices.Contains(l.uses, "ADMIN_TOKEN") {
		s.Admin = l.secret("ADMIN_TOKEN", false, checkToken)
	}
	s.Secrets = func() []string { return splitList(master()) }
	s.Hooks = func() map[string]string { m, _ := parseHooks(hooks()); return m }
	s.Tokens = func() tokenTable { t, _ := parseTokens(tokens()); return t }
	l.qualified("MCP_TOKENS", s.Tokens().logins(), s.Forges)
	s.Servers, _ = mcp.ParseServers(servers(), l.lookup)
	s.Grants = func() (playbook.Grants, error) { return playbook.ParseGrants(grants()) }
	if s.Database = database(); s.Database == "" {
		s.Database = s.DatabaseURL
	}
}

// secret gives the value of NAME or of the file NAME_FILE. One that is needed
// must be set one way, none may be set both ways, and neither may be blank.
func (l *loader) secret(name string, needed bool, check func(string) error) func() string {
	literal, hasLiteral := l.environ[name]
	path, hasFile := l.environ[name+"_FILE"]
	none := func() string { return "" }
	// Compose files and systemd units pass on what they do not have as an
	// empty variable; for what is not needed that means unset.
	hasLiteral = hasLiteral && (needed || literal != "")
	hasFile = hasFile && (needed || path != "")
	switch {
	case hasLiteral && hasFile && literal != "" && path != "":
		l.add(name, "and %s_FILE are both set: set one", name)
		return none
	case hasFile && path != "":
		f, err := openSecret(name+"_FILE", path, check, l.warn)
		if err != nil {
			l.add(name+"_FILE", "%s", err)
			return none
		}
		return f.value
	case hasLiteral && literal != "":
		if err := check(literal); err != nil {
			l.add(name, "%s", err)
			return none
		}
		return func() string { return literal }
	case needed && (hasLiteral || hasFile):
		l.add(name, "is blank")
	case needed:
		l.add(name, "is not set (nor %s_FILE): %s", name, helpOf(name))
	}
	return none
}
