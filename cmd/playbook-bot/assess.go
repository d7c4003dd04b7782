package main

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"playbook-bot/playbook"
)

type assessFlags struct {
	gateFlags
	attempts   string
	target     string
	symptoms   []string
	breakGlass bool
	json       bool
}

func (a *app) assess() *cobra.Command {
	var f assessFlags
	cmd := &cobra.Command{
		Use:     "assess ACTION",
		GroupID: groupOffline,
		Short:   "Would this restart be approved? The gate's answer, and what is missing",
		Long: `assess asks the gate about one action, as the bot would: the class matrix
first, then, for the broad restarts, the log of narrower attempts or
break-glass. It prints the verdict, everything that is still missing with the
line to post, what counted and what did not. It changes nothing and restarts
nothing.

When the bot is down this is the way: keep the output, it is the record.

Who asks is not known offline: say --standing, and --role for a role of the
playbook. Without them standing is unknown, and unknown is denied with a code
of its own, standing_unknown.

` + attemptsHelp + `

Ends with 0 if allowed, 3 if refused; an action that is no rung is refused
with unknown_action.`,
		Example: `  playbook-bot assess full_mcp_restart --standing admin
  playbook-bot assess full_mcp_restart --standing admin --attempts attempts.json
  playbook-bot assess host_restart --role controller --attempts - --json < log.yaml
  playbook-bot assess session_reconnect --target mcp-search --symptom session_expired
  playbook-bot assess host_restart --standing owner --break-glass --break-glass-authorized`,
		Args: oneArg("ACTION", "such as full_mcp_restart; 'playbook-bot ladder' lists them"),
		RunE: func(_ *cobra.Command, args []string) error { return a.runAssess(args[0], &f) },
	}
	f.add(cmd)
	a.overlayFlag(cmd)
	fl := cmd.Flags()
	fl.StringVar(&f.attempts, "attempts", "", "what was tried before, a JSON or YAML `FILE`, - for standard input")
	fl.StringVar(&f.target, "target", "", "`NAME` of the server or namespace; attempts that name another do not count")
	fl.StringSliceVar(&f.symptoms, "symptom", nil, "a symptom's `CODE`, such as session_expired; repeatable")
	fl.BoolVar(&f.breakGlass, "break-glass", false, "ask to skip the attempt log")
	fl.BoolVar(&f.json, "json", false, "print the decision as JSON (schema "+playbook.DecisionSchema+")")
	cmd.ValidArgsFunction = a.completeActions
	return cmd
}

func (a *app) runAssess(action string, f *assessFlags) error {
	p, err := a.policy()
	if err != nil {
		return err
	}
	now := f.at(a)
	parsed, err := a.attempts(p, f.attempts, now)
	if err != nil {
		return err
	}
	d := p.Decide(playbook.Escalation{
		Action: action, Target: f.target, Symptoms: f.symptoms, Attempts: values(parsed),
		BreakGlass: playbook.BreakGlass{Requested: f.breakGlass, Authorized: f.authorized},
		Standing:   f.who(), Now: now,
	}, parsed.Rejections)
	if f.json {
		err = a.printJSON(d)
	} else {
		a.printDecision(p, d, parsed.Notes)
	}
	if err == nil && !d.Allowed {
		err = errRefused
	}
	return err
}

func (a *app) printDecision(p *playbook.Playbook, d playbook.Decision, notes []string) {
	pg := &page{w: a.stdout}
	pg.verdict(p, d.Assessment)
	pg.rejections(d.Rejections)
	pg.unknownSymptoms(d.UnknownSymptoms)
	pg.notes(notes)
	pg.head("Decided %s by playbook %s, sha256 %s.", d.DecidedAt.Format(time.RFC3339), d.Playbook.Name, d.Playbook.SHA256)
	if o := d.Playbook.Overlay; o != "" {
		pg.item("The playbook is tightened by an overlay, %s.", o)
	}
	pg.item("Nothing was restarted. Keep this output: while the bot is down it is the record.")
	pg.contact(p)
}

// verdict is an assessment for people: the answer, why, what to do now, what
// is still missing, what counted.
func (p *page) verdict(b *playbook.Playbook, as playbook.Assessment) {
	word := "REFUSED FOR NOW"
	switch {
	case as.Allowed:
		word = "ALLOWED"
	case as.Code == playbook.CodeStandingUnknown:
		word = "NOT DECIDED"
	}
	rung := ""
	if as.Rung != nil {
		rung = fmt.Sprintf(", rung %d", *as.Rung)
	}
	p.head("%s: %s%s%s (%s)", word, as.Action, onTarget(as.Target), rung, as.Code)
	for _, r := range as.Reasons {
		p.item("%s", r)
	}
	if as.Code == playbook.CodeStandingUnknown {
		p.item("Say who asks: --standing none|read|write|admin|owner, or --role NAME.")
	}
	if len(as.Suggestions) > 0 {
		p.item("'playbook-bot ladder' lists all actions.")
	}
	p.next(b, as)
	if len(as.Missing) > 0 {
		p.head("Still missing, in any order:")
		for i, m := range as.Missing {
			p.item("%d. %s (%s)", i+1, m.Text, m.Who)
			p.paste(m.Post)
		}
	}
	p.attempts(as)
}

// next says what to do now.
func (p *page) next(b *playbook.Playbook, as playbook.Assessment) {
	switch {
	case as.Allowed:
		p.head("Now: carry it out, then log how it went, one of:")
		p.paste("/resolved " + as.Action)
		p.paste("/attempt " + as.Action + " failed")
		if r, ok := b.Rung(as.Action); ok && r.Blast != playbook.BlastNone {
			p.item("Calls in flight are not replayed: check whether a tool call took effect before repeating it.")
		}
	case as.Next != "":
		r, _ := b.Rung(as.Next)
		p.head("Now: try %s, rung %d: %s", r.Action, r.Rank, r.Delegation)
	default:
		p.head("Now: no rung is left to try; call the operators.")
	}
}

func (p *page) attempts(as playbook.Assessment) {
	if len(as.Counted) > 0 {
		p.head("Attempts that count:")
		for _, at := range as.Counted {
			p.item("%s", attemptText(at))
		}
	}
	if len(as.Ignored) > 0 {
		p.head("Attempts that do not count:")
		for _, at := range as.Ignored {
			p.item("%s", attemptText(at.Attempt))
			p.line("      ", "because %s", at.Why)
		}
	}
	if as.Contaminated {
		p.head("A manual process kill is on record; it changes no verdict, and must be looked at:")
		for _, at := range as.Contamination {
			p.item("%s", attemptText(at))
		}
	}
}
