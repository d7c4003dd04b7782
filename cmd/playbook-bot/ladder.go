package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"playbook-bot/playbook"
)

func (a *app) ladder() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:     "ladder",
		GroupID: groupOffline,
		Short:   "List the rungs of the playbook, narrowest first",
		Long: `ladder lists the recovery actions of the playbook from the narrowest to the
broadest: rank, action, whether one may do it oneself, whether a log of
narrower attempts is asked for first, and what carries it out.

With --json it prints the whole machine-readable ladder: rungs, gates,
symptoms, outcomes and the class matrix.`,
		Example: `  playbook-bot ladder
  playbook-bot ladder --json
  playbook-bot ladder --playbook pods.yaml`,
		Args: noArg,
		RunE: func(*cobra.Command, []string) error {
			p, err := a.policy()
			if err != nil {
				return err
			}
			if asJSON {
				return a.printJSON(p.LadderDocument())
			}
			pg := &page{w: a.stdout}
			pg.head("Playbook %s, sha256 %s", p.Identity().Name, p.Identity().SHA256)
			pg.head("rank  %-22s %-12s %-11s carried out by", "action", "self-service", "attempt log")
			for _, r := range p.Rungs() {
				carried := r.Delegation
				if r.Disabled {
					carried = "nobody: the overlay disables it"
				}
				pg.line("", "%s", rungLine(r.Rank, r.Action, r.SelfService, r.Gated, carried, r.References))
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the ladder document as JSON")
	a.overlayFlag(cmd)
	return cmd
}

func rungLine(rank int, action string, self, gated bool, delegation string, refs []string) string {
	yes := func(b bool, s string) string {
		if b {
			return s
		}
		return "-"
	}
	line := fmt.Sprintf("%4d  %-22s %-12s %-11s %s", rank, action, yes(self, "yes"), yes(gated, "required"), delegation)
	if len(refs) > 0 {
		line += " (#" + strings.Join(refs, " #") + ")"
	}
	return line
}

func (a *app) recommend() *cobra.Command {
	var file string
	var asJSON bool
	cmd := &cobra.Command{
		Use:     "recommend [SYMPTOM…]",
		GroupID: groupOffline,
		Short:   "Name the next rung to try for what you see, and the ladder from there",
		Long: `recommend starts at the narrowest first rung among the symptoms given, at rung
0 where none is given, passes over rungs that the attempts show as tried
without success, and names the first that is left. It decides nothing.

Symptoms are codes such as transport_eof, stale_capability, session_expired
('playbook-bot ladder --json' has them all). An unknown one is named with
suggestions; the others are still answered.

` + attemptsHelp,
		Example: `  playbook-bot recommend
  playbook-bot recommend session_expired stale_capability
  playbook-bot recommend transport_eof --attempts attempts.json --json`,
		RunE: func(_ *cobra.Command, args []string) error {
			return a.runRecommend(args, file, asJSON)
		},
	}
	cmd.Flags().StringVar(&file, "attempts", "", "what was tried before, a JSON or YAML `FILE`, - for standard input")
	cmd.Flags().BoolVar(&asJSON, "json", false, `print {"next", "ladder", "unknown_symptoms", "notes"}`)
	a.overlayFlag(cmd)
	return cmd
}

func (a *app) runRecommend(args []string, file string, asJSON bool) error {
	p, err := a.policy()
	if err != nil {
		return err
	}
	parsed, err := a.attempts(p, file, a.now().UTC())
	if err != nil {
		return err
	}
	a.warnRejected(parsed)
	if err := readable(file, parsed); err != nil {
		return err
	}
	var symptoms []string
	for _, arg := range args {
		symptoms = append(symptoms, splitList(arg)...)
	}
	r := p.RecommendActions(symptoms, values(parsed))
	if asJSON {
		return a.printJSON(r)
	}
	pg := &page{w: a.stdout}
	if r.Next == "" {
		pg.head("There is no rung to try; call the operators.")
		pg.contact(p)
	} else if next, ok := p.Rung(r.Next); ok {
		pg.head("Try %s, rung %d: %s", next.Action, next.Rank, next.Delegation)
		pg.item("It did not help? Log it:")
		pg.paste("/attempt " + next.Action + " insufficient")
	}
	if len(r.Ladder) > 0 {
		pg.head("The ladder from there:")
		for _, s := range r.Ladder {
			pg.line("", "%s", rungLine(s.Rank, s.Action, s.SelfService, s.Gated, s.Delegation, s.References))
		}
	}
	pg.unknownSymptoms(r.UnknownSymptoms)
	pg.notes(r.Notes)
	return nil
}

// warnRejected tells of records that could not be read where the answer's
// form has no place for them.
func (a *app) warnRejected(parsed playbook.ParsedAttempts) {
	pg := &page{w: a.stderr}
	pg.rejections(parsed.Rejections)
}

// completeActions offers the playbook's actions to the shell.
func (a *app) completeActions(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	p, err := a.book()
	if err != nil || len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var names []string
	for _, r := range p.Rungs() {
		names = append(names, r.Action)
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}
