package main

import (
	"fmt"
	"maps"
	"slices"

	"github.com/spf13/cobra"
)

func (a *app) metrics() *cobra.Command {
	var file string
	var asJSON bool
	cmd := &cobra.Command{
		Use:     "metrics --attempts FILE",
		GroupID: groupOffline,
		Short:   "Count attempts and recoveries, and how many avoided a full restart",
		Long: `metrics counts the attempts of a file by action and outcome, and the
recoveries among them: how many avoided a full restart, and on which rung. The
fraction is absent (null), not 0, where there were no recoveries.

` + attemptsHelp,
		Example: `  playbook-bot metrics --attempts attempts.json
  playbook-bot metrics --attempts - --json < attempts.yaml`,
		Args: noArg,
		RunE: func(*cobra.Command, []string) error {
			if file == "" {
				return usagef("--attempts FILE is missing; - is standard input")
			}
			return a.runMetrics(file, asJSON)
		},
	}
	cmd.Flags().StringVar(&file, "attempts", "", "the attempts to count, a JSON or YAML `FILE`, - for standard input")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the figures as JSON")
	return cmd
}

func (a *app) runMetrics(file string, asJSON bool) error {
	p, err := a.book()
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
	m := p.RecoveryMetrics(values(parsed))
	if asJSON {
		return a.printJSON(m)
	}
	pg := &page{w: a.stdout}
	pg.head("%s", count(m.Attempts, "attempt", "attempts"))
	pg.counts("By action:", m.ByAction)
	pg.counts("By outcome:", m.ByOutcome)
	pg.head("%s", count(m.Recoveries, "recovery", "recoveries"))
	if m.FractionAvoidedFullRestart != nil {
		pg.item("%d avoided a full restart (%.0f %%)", m.AvoidedFullRestart, 100**m.FractionAvoidedFullRestart)
		pg.item("rung at recovery: mean %s, median %s", figure(m.MeanRungAtRecovery), figure(m.MedianRungAtRecovery))
	} else {
		pg.item("so there is no fraction that avoided a full restart")
	}
	if m.ManualKills > 0 {
		pg.head("%s, in no other figure", count(m.ManualKills, "manual process kill", "manual process kills"))
	}
	return nil
}

func count(n int, one, more string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, more)
}

func figure(f *float64) string {
	if f == nil {
		return "none"
	}
	return fmt.Sprintf("%.1f", *f)
}

func (p *page) counts(title string, m map[string]int) {
	if len(m) == 0 {
		return
	}
	p.head("%s", title)
	for _, k := range slices.Sorted(maps.Keys(m)) {
		p.item("%4d  %s", m[k], k)
	}
}
