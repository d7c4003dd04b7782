package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"playbook-bot/bot"
	"playbook-bot/bot/mcp"
)

type probeFlags struct {
	url           string
	watch, asJSON bool
	every         time.Duration
}

func (a *app) probe() *cobra.Command {
	var f probeFlags
	cmd := &cobra.Command{
		Use:     "probe NAME|--url URL",
		GroupID: groupOffline,
		Short:   "Does this MCP server answer, and if not, do rungs 0 to 2 bring it back?",
		Long: `probe tries the harmless rungs on an MCP server itself: a new connection, the
lists of tools, resources and prompts again, a new session. It stops at the
first that leaves the server answering, and prints each as an attempt record
that is marked as verified. It calls no tool and restarts nothing.

NAME is a server of MCP_SERVERS; --url probes one that is not in it. With
--watch it looks again and again, a line each, until Ctrl-C, on one connection:
then it also sees a session that ends.

Ends with 0 if the server answers, with 1 if not.`,
		Example: `  playbook-bot probe mcp-search
  playbook-bot probe --url http://127.0.0.1:8080/mcp --json
  playbook-bot probe mcp-search --watch --every 30s`,
		Args: func(_ *cobra.Command, args []string) error {
			switch {
			case len(args) > 1:
				return usagef("%q is one argument too many: only NAME is taken", args[1])
			case len(args) == 1 && f.url != "":
				return usagef("NAME and --url name two servers: give one")
			case len(args) == 0 && f.url == "":
				return usagef("NAME is missing: a server of MCP_SERVERS, or --url")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.runProbe(cmd.Context(), strings.Join(args, ""), f)
		},
	}
	cmd.Flags().StringVar(&f.url, "url", "", "the `URL` of a streamable HTTP server, instead of a name")
	cmd.Flags().BoolVar(&f.watch, "watch", false, "look again and again, until Ctrl-C")
	cmd.Flags().DurationVar(&f.every, "every", 10*time.Second, "how often --watch looks")
	cmd.Flags().BoolVar(&f.asJSON, "json", false, "print the report as JSON; with --watch one object a line")
	return cmd
}

func (a *app) runProbe(ctx context.Context, name string, f probeFlags) error {
	server := mcp.Server{Name: "url", URL: f.url}
	if f.url == "" {
		s, err := loadConfig(a.environ, nil, "MCP_SERVERS")
		if err != nil {
			return err
		}
		if server, err = s.Servers.Lookup(name); err != nil {
			return usageError{err}
		}
	} else if err := server.Validate(); err != nil {
		return usageError{err}
	}
	o := probeOptions()
	o.Now = a.now
	if f.watch {
		return a.watch(ctx, server, o, f)
	}
	report, err := mcp.Probe(ctx, server, o)
	if err != nil {
		return err
	}
	if f.asJSON {
		err = a.printJSON(report)
	} else {
		a.printProbe(report)
	}
	if err == nil && !report.Answering {
		err = fmt.Errorf("%s does not answer", server.Name)
	}
	return err
}

func (a *app) watch(ctx context.Context, server mcp.Server, o mcp.Options, f probeFlags) error {
	if f.every <= 0 {
		return usagef("--every: must be longer than nothing")
	}
	enc := json.NewEncoder(a.stdout)
	var failed error
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	err := mcp.Watch(ctx, server, o, f.every, func(h mcp.Health) {
		var err error
		if f.asJSON {
			err = enc.Encode(h)
		} else {
			_, err = fmt.Fprintln(a.stdout, plain(h.String()))
		}
		if err != nil { // whoever read has gone away
			failed = fmt.Errorf("write what was seen: %w", err)
			stop()
		}
	})
	if failed != nil || ctx.Err() != nil {
		return failed
	}
	return err
}

func (a *app) printProbe(r mcp.Report) {
	pg := &page{w: a.stdout}
	pg.head("%s: %s", strings.ToUpper(map[bool]string{true: "answers", false: "does not answer"}[r.Answering]), r.Verdict)
	pg.item("before: %s", r.Before.Seen)
	for _, s := range r.Steps {
		pg.item("%s %s: %s", s.Action, s.Outcome, s.Seen)
		if s.Symptom != "" {
			pg.item("  symptom: %s", s.Symptom)
		}
	}
	pg.head("As records:")
	for _, t := range r.Attempts {
		pg.item("%s", attemptText(t))
	}
}

// probeOptions are those of all probes. A stdio server starts with no variable
// but its own: the bot's hold its secrets.
func probeOptions() mcp.Options {
	return mcp.Options{Client: mcp.ClientOptions{Version: version()}}
}

// threadProber lets the bot probe from threads, over connections that are
// kept, so that it meets the trouble of a session in use.
type threadProber struct{ pool *mcp.Pool }

// prober makes the bot's prober and its connections; both nil where no server
// is named.
func (s *settings) prober() (bot.Prober, *mcp.Pool) {
	if len(s.Servers) == 0 {
		return nil, nil
	}
	pool := mcp.NewPool(s.Servers, probeOptions())
	return threadProber{pool}, pool
}

func (p threadProber) Servers() []string { return p.pool.Servers().Names() }

func (p threadProber) Probe(ctx context.Context, server string) (bot.ProbeReport, error) {
	r, err := p.pool.Probe(ctx, server)
	if errors.Is(err, mcp.ErrUnknownServer) {
		return bot.ProbeReport{}, fmt.Errorf("probe: %w", mcp.ErrUnknownServer)
	}
	return bot.ProbeReport{Answering: r.Answering, RecoveredBy: r.RecoveredBy, SessionEnded: r.SessionEnded, Verdict: r.Verdict, Attempts: r.Attempts}, err
}
