package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"playbook-bot/bot"
	"playbook-bot/bot/mcp"
	"playbook-bot/bot/metrics"
	"playbook-bot/bot/store"
	"playbook-bot/bot/webhook"
	"playbook-bot/playbook"
	"playbook-bot/templates"
)

func (a *app) serve() *cobra.Command {
	return &cobra.Command{
		Use:     "serve",
		GroupID: groupBot,
		Short:   "Run the bot: take deliveries in, answer in comments",
		Long: `serve runs the bot until SIGTERM or Ctrl-C. It is configured by the
environment alone; these four have no default:

  GITEA_URL        address of the Gitea server
  GITEA_TOKEN      access token of the bot's own account
  PLAYBOOK_SECRET  32 characters or more; make one with: openssl rand -hex 32
  REPOSITORIES     where it answers, such as ops/incidents,infra/*

Instead of Gitea, or beside it, the bot serves Forgejo with FORGEJO_URL and
FORGEJO_TOKEN, and GitHub with GITHUB_TOKEN or, as a GitHub App, GITHUB_APP_ID
and GITHUB_APP_KEY (GITHUB_URL for an Enterprise Server). With several, what is
on one of them is named with it: REPOSITORIES=gitea:ops/incidents,github:ops/web,
and so are logins in MCP_TOKENS and members of the playbook's roles.

Secrets can be kept in files: GITEA_TOKEN_FILE=/run/secrets/token in place of
GITEA_TOKEN; the file is read again when it changes. All that is wrong with
the configuration is said at once. The README has the table of all variables.

Deliveries are taken at /webhook/gitea/…, /webhook/forgejo/… and
/webhook/github/… on LISTEN; "playbook-bot hook-secret" prints the URL and secret
of each. /healthz answers while the process lives,
/readyz once the database and the forge have answered. The bot's account needs
admin on each repository (on GitHub write), or it cannot read who may approve
what.

On SIGTERM it stops taking in, and finishes or hands back its work within
SHUTDOWN_TIMEOUT. Whatever it had accepted is done after the next start.`,
		Example: `  playbook-bot serve
  GITEA_URL=https://git.example.org GITEA_TOKEN_FILE=token \
    PLAYBOOK_SECRET_FILE=secret REPOSITORIES=ops/incidents playbook-bot serve`,
		Args: noArg,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.runServe(cmd.Context()) },
	}
}

func (a *app) runServe(ctx context.Context) error {
	// The logger is needed by what the logger's own settings are read with.
	var log *slog.Logger
	s, err := loadConfig(a.environ, func(err error) { log.Error("a secret file", "error", err) })
	p, bookErr := a.book()
	if err == nil && bookErr == nil {
		err = s.checkNames(p)
	}
	if err := errors.Join(err, bookErr); err != nil {
		return fmt.Errorf("the configuration is not complete:\n%w", err)
	}
	log = newLogger(a.stderr, s.LogLevel, s.LogFormat)
	renderer, err := templates.New(templates.Options{
		Playbook: p, Dir: s.TemplatesDir,
		Fallback: func(k templates.Kind, err error) {
			log.Error("a template of TEMPLATES_DIR failed, the embedded one was used", "template", string(k), "error", err)
		},
	})
	if err != nil {
		return fmt.Errorf("TEMPLATES_DIR: %w", err)
	}
	db, err := store.Open(ctx, s.Database, store.Options{Logger: log})
	if err != nil {
		return fmt.Errorf("open the database of DATABASE_URL: %w", err)
	}
	defer func() {
		if err := db.Close(); err != nil {
			log.Error("cannot close the database", "error", err)
		}
	}()
	svc, err := newService(s, p, renderer, db, log)
	if err != nil {
		return err
	}
	return svc.run(ctx)
}

func newLogger(w io.Writer, level slog.Level, format string) *slog.Logger {
	o := &slog.HandlerOptions{Level: level}
	if format == "json" {
		return slog.New(slog.NewJSONHandler(w, o))
	}
	return slog.New(slog.NewTextHandler(w, o))
}

// service is the bot with what stands around it in a process.
type service struct {
	s       *settings
	bot     *bot.Bot
	db      store.Store
	hook    http.Handler
	metrics *metrics.Metrics
	record  *webhook.Recorder
	// probes holds the connections to MCP servers; nil: none is named.
	probes *mcp.Pool
	log    *slog.Logger
}

func newService(s *settings, p *playbook.Playbook, r *templates.Renderer, db store.Store, log *slog.Logger) (*service, error) {
	m := metrics.New(metrics.Config{Version: version(), Playbook: p, Source: db, Log: log})
	forges := map[string]bot.Forge{}
	var dialects []webhook.Dialect
	for _, t := range s.Forges {
		client, err := s.dial(t, nil, m.Calls(t.name))
		if err != nil {
			return nil, err
		}
		forges[t.name] = &labelled{adapter: client}
		dialects = append(dialects, t.dialect())
	}
	prober, pool := s.prober()
	b, err := bot.New(bot.Config{
		Forges: forges, Ledger: db, Playbook: p, Renderer: r,
		Repositories: s.Repositories, Ignored: ignoring(s.IgnoreAccounts),
		Grants: s.Grants, Secrets: s.Secrets, Owner: processName(), Workers: s.Workers,
		Lease: s.Lease, RequestTimeout: s.RequestTimeout, Settle: s.Settle, SettleUnknown: s.SettleProxy,
		SweepInterval: s.SweepInterval, NoLabels: !s.Labels, NoReactions: !s.Reactions, Log: log, Fail: failpoint(),
		Observe: m.Observe, Prober: prober,
	})
	if err != nil {
		return nil, err
	}
	rec := webhook.NewRecorder(db, log, nil)
	hook, err := webhook.New(webhook.Config{
		Dialects: dialects, Apps: s.apps(), Masters: s.Secrets, Literals: s.Hooks(),
		Accept: m.Accepting(b.Accept), OnDelivery: m.Delivery, Log: log,
		Record: rec.Note,
	})
	if err != nil {
		return nil, err
	}
	return &service{s: s, bot: b, db: db, hook: hook, metrics: m, record: rec, probes: pool, log: log}, nil
}

// processName names this process among the owners of leases. The random part
// tells two containers apart that have one host name and both run as pid 1.
func processName() string {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	return fmt.Sprintf("%s-%d-%s", host, os.Getpid(), rand.Text()[:8])
}

// run serves until ctx ends, then stops taking in and finishes or hands back
// what is in hand, within SHUTDOWN_TIMEOUT.
func (v *service) run(ctx context.Context) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	servers, err := v.listen()
	if err != nil {
		return err
	}
	v.log.Info("started", "version", version(), "playbook", v.bot.Playbook.Identity().Name,
		"database", store.Describe(v.s.Database), "forges", strings.Join(slices.Sorted(maps.Keys(v.bot.Forges)), ","), "repositories", strings.Join(v.s.Repositories, ","))
	v.warnOfGrants()

	var working sync.WaitGroup
	failed := make(chan error, len(servers)+1)
	for _, srv := range servers {
		working.Go(func() {
			if err := srv.Serve(srv.ln); !errors.Is(err, http.ErrServerClosed) {
				failed <- fmt.Errorf("serve on %s: %w", srv.ln.Addr(), err)
			}
		})
	}
	// Handing back takes its part of the time: what is in hand gets the rest.
	grace := v.s.ShutdownTimeout * 3 / 4
	working.Go(func() {
		if err := v.bot.Run(ctx, grace); err != nil {
			failed <- err
		}
	})
	working.Go(func() { v.retain(ctx) })
	working.Go(func() { v.record.Run(ctx) })
	if v.s.AdminListen != "" {
		working.Go(func() { v.metrics.Watch(ctx) })
	}

	err = nil
	select {
	case <-ctx.Done():
		v.log.Info("stopping")
	case err = <-failed:
	}
	stop()
	closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), grace)
	defer cancel()
	for _, srv := range servers {
		if e := srv.Shutdown(closing); e != nil {
			v.log.Warn("deliveries were cut off", "error", e)
			_ = srv.Close()
		}
	}
	working.Wait()
	if v.probes != nil {
		v.probes.Close()
	}
	select {
	case e := <-failed:
		err = errors.Join(err, e)
	default:
	}
	v.log.Info("stopped")
	return err
}

// warnOfGrants tells of break-glass grants that hold everywhere: a bare
// truthy value is taken for one, and few who set it mean that.
func (v *service) warnOfGrants() {
	grants, err := v.s.Grants()
	if err != nil {
		return // it was read without error a moment ago
	}
	for _, g := range grants {
		if g.Blanket() {
			v.log.Warn("break-glass is authorised in every repository: " +
				"GITEA_BREAKGLASS_RESTART_AUTHORIZATION holds a grant without a scope; write one such as owner/repo#12@2026-12-01T06:00:00Z")
		}
	}
}

type listener struct {
	*http.Server
	ln net.Listener
}

// listen opens the listeners, so that an address in use ends the start with
// an error that names the variable.
func (v *service) listen() ([]listener, error) {
	intake := http.NewServeMux()
	intake.Handle("/webhook/", v.hook)
	if len(v.s.Tokens()) > 0 {
		intake.Handle("/mcp", v.tools())
	}
	admin := http.NewServeMux()
	admin.Handle("GET /metrics", v.metrics.Handler(func() bool { ok, _ := v.bot.Ready(); return ok }))
	v.profiles(admin)
	health := func(mux *http.ServeMux) *http.ServeMux {
		mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { reply(w, http.StatusOK, "ok") })
		mux.HandleFunc("GET /readyz", v.ready)
		return mux
	}
	var out []listener
	for _, l := range []struct {
		name, addr string
		mux        *http.ServeMux
	}{
		{"LISTEN", v.s.Listen, health(intake)},
		{"ADMIN_LISTEN", v.s.AdminListen, health(admin)},
	} {
		if l.addr == "" {
			continue
		}
		ln, err := net.Listen("tcp", l.addr)
		if err != nil {
			for _, o := range out {
				_ = o.ln.Close()
			}
			return nil, fmt.Errorf("%s: %w", l.name, err)
		}
		v.log.Info("listening", "for", l.name, "address", ln.Addr().String())
		out = append(out, listener{v.server(l.mux), ln})
	}
	return out, nil
}

// server bounds everything a peer could take its time with.
func (v *service) server(h http.Handler) *http.Server {
	return &http.Server{
		Handler:           h,
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       15 * time.Second,
		WriteTimeout:      20 * time.Second,
		IdleTimeout:       time.Minute,
		MaxHeaderBytes:    64 << 10,
		// A panic in a handler is told nowhere else.
		ErrorLog: slog.NewLogLogger(v.log.Handler(), slog.LevelWarn),
	}
}

// ready answers 200 when the database answers and the forge has. The one word
// on what is missing is safe to show to anybody.
func (v *service) ready(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), 2*time.Second)
	defer cancel()
	if err := v.db.Ping(ctx); err != nil {
		reply(w, http.StatusServiceUnavailable, "waiting for the database")
		return
	}
	if ok, name := v.bot.Ready(); !ok {
		reply(w, http.StatusServiceUnavailable, "waiting for "+name)
		return
	}
	reply(w, http.StatusOK, "ready")
}

func reply(w http.ResponseWriter, status int, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(status)
	_, _ = io.WriteString(w, text+"\n")
}

// ignoring tells the accounts of IGNORE_ACCOUNTS.
func ignoring(logins []string) func(string) bool {
	m := make(map[string]bool)
	for _, l := range logins {
		m[strings.ToLower(l)] = true
	}
	return func(login string) bool { return m[strings.ToLower(login)] }
}
