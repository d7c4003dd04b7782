package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"playbook-bot/playbook"
)

func (a *app) impact() *cobra.Command {
	var f gateFlags
	var asJSON bool
	cmd := &cobra.Command{
		Use:     "impact FILE",
		GroupID: groupOffline,
		Short:   "What would this restart end, and would it be approved?",
		Long: `impact reads an inventory of what is alive, and says what a restart would end:
which sessions (their epoch moves on), which task ids and input keys die with
them, which calls in flight are ambiguous (possibly executed already, not to be
replayed) and which may be sent again, which leases are left without a holder.
Where the inventory names a restart_class it also gives the gate's answer. It
changes nothing.

The inventory is JSON; "-" is standard input:

  {"restart_class": "full_mcp_restart", "target": "mcp-search",
   "request_break_glass": false, "prior_recovery_attempts": [],
   "sessions": [{"id": "s1", "epoch": 4, "namespace": "mcp-search",
                 "in_flight": ["tools/call"], "tasks": ["t1"], "input_keys": []}],
   "leases": [{"id": "l1", "holder": "s1"}], "workers": [{"id": "w1"}]}

It never says who may: standing and authorisation are flags, because an
inventory's writer would grant them to himself.

Ends with 3 where the gate refuses the restart_class, otherwise with 0.`,
		Example: `  playbook-bot impact inventory.json --standing admin
  playbook-bot impact - --role controller --json < inventory.json`,
		Args: oneArg("FILE", "an inventory, or - for standard input"),
		RunE: func(_ *cobra.Command, args []string) error { return a.runImpact(args[0], &f, asJSON) },
	}
	f.add(cmd)
	a.overlayFlag(cmd)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the impact as JSON (schema "+playbook.ImpactSchema+")")
	return cmd
}

func (a *app) runImpact(file string, f *gateFlags, asJSON bool) error {
	p, err := a.policy()
	if err != nil {
		return err
	}
	text, err := a.read("FILE", file)
	if err != nil {
		return err
	}
	inv, err := playbook.ParseInventory([]byte(text))
	if err != nil {
		return fmt.Errorf("read the inventory %s: %w", file, err)
	}
	im := p.EvaluateRestartImpact(inv, playbook.ImpactOptions{
		Standing: f.who(), BreakGlassAuthorized: f.authorized, Now: f.at(a),
	})
	if asJSON {
		err = a.printJSON(im)
	} else {
		a.printImpact(p, im)
	}
	if err == nil && im.PlaybookEscalation != nil && !im.PlaybookEscalation.Allowed {
		err = errRefused
	}
	return err
}

func (a *app) printImpact(p *playbook.Playbook, im playbook.Impact) {
	pg := &page{w: a.stdout}
	if as := im.PlaybookEscalation; as != nil {
		pg.verdict(p, *as)
	}
	pg.head("What would end:")
	none := true
	list := func(title string, items []string) {
		if len(items) > 0 {
			none = false
			pg.item("%s: %s", title, strings.Join(items, ", "))
		}
	}
	list("sessions", texts(im.SessionsEnded, func(s playbook.SessionEnd) string {
		return fmt.Sprintf("%s (epoch %d to %d)", s.ID, s.Epoch, s.NextEpoch)
	}))
	list("workers", im.WorkersStopped)
	pinned := func(x playbook.Pinned) string { return x.ID + " of " + x.Session }
	list("task ids, dead with the epoch", texts(im.DeadTasks, pinned))
	list("input keys, dead with the epoch", texts(im.DeadInputKeys, pinned))
	list("leases left without a holder", texts(im.OrphanedLeases, func(l playbook.OrphanedLease) string { return l.ID }))
	if none {
		pg.item("nothing that the inventory names")
	}
	call := func(c playbook.Call) string { return c.Method + " of " + c.Session }
	if len(im.AmbiguousCalls) > 0 {
		pg.head("May have run already; do not replay, look first:")
		for _, c := range im.AmbiguousCalls {
			pg.item("%s", call(c))
		}
	}
	if len(im.SafeToResend) > 0 {
		pg.head("May be sent again, once:")
		for _, c := range im.SafeToResend {
			pg.item("%s", call(c))
		}
	}
	pg.rejections(im.Rejections)
	pg.notes(im.Notes)
	pg.head("%s", im.Statement)
}

func texts[T any](list []T, text func(T) string) []string {
	out := make([]string, 0, len(list))
	for _, v := range list {
		out = append(out, text(v))
	}
	return out
}
