package main

import (
	"fmt"
	"strings"
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
  playbook-bot assess full_mcp_restart --standing admin --attempts attempts.json --target mcp-search
  playbook-bot assess rolling_mcp_restart --role controller --attempts - --json < attempts.yaml
  playbook-bot assess host_restart --standing owner --break-glass --break-glass-authorized`,
		Args: argsN(1, 1, "ACTION, such as full_mcp_restart ('playbook-bot ladder' lists them),"),
		RunE: func(_ *cobra.Command, args []string) error { return a.runAssess(args[0], &f) },
	}
	f.add(cmd)
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
	p, err := a.book()
	if err != nil {
		return err
	}
	now := f.at(a)
	parsed, err := a.attempts(p, f.attempts, now)
	if err != nil {
		return err
	}
	d := decide(p, playbook.Escalation{
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

// decide is the gate's answer in the published form. Offline there is no
// thread: no request, no state, nobody to endorse.
func decide(p *playbook.Playbook, e playbook.Escalation, rejections []playbook.RejectedText) playbook.Decision {
	d := playbook.Decision{
		Schema:     playbook.DecisionSchema,
		State:      "none",
		Assessment: p.AssessEscalation(e),
		Standing:   e.Standing,
		Rejections: append([]playbook.RejectedText{}, rejections...),
		Playbook:   p.Identity(),
		DecidedAt:  e.Now.Truncate(time.Second),
	}
	switch {
	case d.Allowed:
		d.Verdict = "approved"
	case d.Code == playbook.CodeStandingUnknown:
		d.Verdict = "undecided"
	default:
		d.Verdict = "refused"
	}
	return d
}

func (a *app) printDecision(p *playbook.Playbook, d playbook.Decision, notes []string) {
	pg := &page{w: a.stdout}
	verdict := map[string]string{"approved": "ALLOWED", "undecided": "NOT DECIDED", "refused": "REFUSED FOR NOW"}[d.Verdict]
	rung := ""
	if d.Rung != nil {
		rung = fmt.Sprintf(", rung %d", *d.Rung)
	}
	pg.head("%s: %s%s%s (%s)", verdict, d.Action, onTarget(d.Target), rung, d.Code)
	for _, r := range d.Reasons {
		pg.item("%s", r)
	}
	if d.Code == playbook.CodeStandingUnknown {
		pg.item("Say who asks: --standing none|read|write|admin|owner, or --role NAME.")
	}
	if len(d.Suggestions) > 0 {
		pg.item("Did you mean %s? 'playbook-bot ladder' lists all.", strings.Join(d.Suggestions, " or "))
	}
	a.printNow(pg, p, d)
	if len(d.Missing) > 0 {
		pg.head("Still missing, in any order:")
		for i, m := range d.Missing {
			pg.item("%d. %s (%s)", i+1, m.Text, m.Who)
			pg.paste(m.Post)
		}
	}
	pg.attempts(d.Assessment)
	pg.rejections(d.Rejections)
	pg.unknownSymptoms(d.UnknownSymptoms)
	pg.notes(notes)
	pg.head("Decided %s by playbook %s, sha256 %s.", d.DecidedAt.Format(time.RFC3339), d.Playbook.Name, d.Playbook.SHA256)
	pg.item("Nothing was restarted. Keep this output: while the bot is down it is the record.")
	pg.contact(p)
}

// printNow says what to do next.
func (a *app) printNow(pg *page, p *playbook.Playbook, d playbook.Decision) {
	switch {
	case d.Allowed:
		pg.head("Now: carry it out, then log how it went, one of:")
		pg.paste("/resolved " + d.Action)
		pg.paste("/attempt " + d.Action + " failed")
		pg.item("Calls in flight are not replayed: check whether a tool call took effect before repeating it.")
	case d.Next != "":
		r, _ := p.Rung(d.Next)
		pg.head("Now: try %s, rung %d: %s", r.Action, r.Rank, r.Delegation)
	default:
		pg.head("Now: no rung is left to try; call the operators.")
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
