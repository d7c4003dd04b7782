package mcp

import (
	"context"
	"fmt"
	"strings"

	"playbook-bot/playbook"
)

// noReplay is the advice for whatever ends sessions (seed: SessionRecovery,
// "nothing that is not idempotent is sent again").
const noReplay = "Calls in flight are not replayed: check whether a tool call took effect before repeating it."

// decisionOut is a decision as a tool gives it.
type decisionOut struct {
	playbook.Decision
	// Impact is what the action would end, where an inventory was given.
	Impact *playbook.Impact `json:"impact,omitempty"`
	Filed  *Filed           `json:"filed,omitempty"`
}

type impactIn struct {
	Inventory any `json:"inventory_json" jsonschema:"what is alive: JSON (as text or as it is) with restart_class, target, sessions, leases, workers, prior_recovery_attempts"`
	claims
}

func inventory(field string, v any) (playbook.Inventory, error) {
	text, err := asText(field, v)
	if err != nil {
		return playbook.Inventory{}, err
	}
	inv, err := playbook.ParseInventory([]byte(text))
	if err != nil {
		return playbook.Inventory{}, fmt.Errorf("%s: %w", field, err)
	}
	return inv, nil
}

func (t *tools) impact(ctx context.Context, in impactIn) (string, any, error) {
	inv, err := inventory("inventory_json", in.Inventory)
	if err != nil {
		return "", nil, err
	}
	rights, err := t.rights(ctx, assessIn{Action: inv.RestartClass, claims: in.claims}, "")
	if err != nil {
		return "", nil, err
	}
	im := t.p.EvaluateRestartImpact(inv, playbook.ImpactOptions{
		Standing: rights.Standing, Actor: t.o.Account, BreakGlassAuthorized: rights.BreakGlassAuthorized, Now: t.o.Now(),
	})
	return t.impactText(im, in.any()), struct {
		playbook.Impact
		Hypothetical bool `json:"hypothetical,omitempty"`
	}{im, in.any()}, nil
}

// wouldEnd is what the action of a decision would end: nil where the caller
// gave no inventory, in its own argument or with the attempts, or where the
// action ends nothing.
func (t *tools) wouldEnd(in assessIn, d playbook.Decision) (*playbook.Impact, error) {
	inv, err := playbook.Inventory{}, error(nil)
	switch text, _ := asText("", in.Attempts); {
	case in.Inventory != nil:
		if inv, err = inventory("inventory_json", in.Inventory); err != nil {
			return nil, err
		}
	case strings.HasPrefix(strings.TrimSpace(text), "{"):
		if inv, err = playbook.ParseInventory([]byte(text)); err != nil || len(inv.Sessions)+len(inv.Workers)+len(inv.Leases) == 0 {
			return nil, nil // a record, not an inventory
		}
	default:
		return nil, nil
	}
	if r, ok := t.p.Rung(d.Action); !ok || r.Blast == playbook.BlastNone {
		return nil, nil
	}
	// Only the radius is asked for: the gate has answered, about the caller's
	// arguments and not about the inventory's.
	inv.RestartClass = d.Action
	if d.Target != "" {
		inv.Target = d.Target
	}
	im := t.p.EvaluateRestartImpact(inv, playbook.ImpactOptions{Standing: d.Standing, Actor: t.o.Account, Now: t.o.Now()})
	im.PlaybookEscalation, im.AttemptLogSatisfied = nil, nil
	return &im, nil
}

func (t *tools) impactText(im playbook.Impact, hypothetical bool) string {
	var b strings.Builder
	if e := im.PlaybookEscalation; e != nil {
		d := playbook.Decision{Assessment: *e, Verdict: "refused", State: "none", Hypothetical: hypothetical}
		if e.Allowed {
			d.Verdict = "approved"
		}
		b.WriteString(t.decisionText(d) + "\n")
	}
	b.WriteString(strings.TrimPrefix(radiusText(&im), "\n"))
	for _, r := range im.Rejections {
		fmt.Fprintf(&b, "\nNot taken: %s", rejectionText(r))
	}
	for _, n := range im.Notes {
		fmt.Fprintf(&b, "\n- %s", n)
	}
	b.WriteString("\n" + im.Statement)
	return b.String()
}

// radiusText says what would end, and names what must not be repeated blindly
// or has no meaning afterwards. It begins with a newline; "" for nil.
func radiusText(im *playbook.Impact) string {
	if im == nil {
		return ""
	}
	var b strings.Builder
	fmt.Fprintf(&b, "\nWould end: %d sessions, %d tasks, %d input keys, %d leases, %d workers.", len(im.SessionsEnded),
		len(im.DeadTasks), len(im.DeadInputKeys), len(im.OrphanedLeases), len(im.WorkersStopped))
	for _, c := range im.AmbiguousCalls {
		id := ""
		if c.ID != "" {
			id = " " + c.ID
		}
		fmt.Fprintf(&b, "\nDo not replay %s%s of session %s: it may already have executed.", c.Method, id, c.Session)
	}
	for _, p := range im.DeadTasks {
		fmt.Fprintf(&b, "\nGone with its epoch: task %s of session %s.", p.ID, p.Session)
	}
	for _, p := range im.DeadInputKeys {
		fmt.Fprintf(&b, "\nGone with its epoch: input key %s of session %s.", p.ID, p.Session)
	}
	for _, c := range im.SafeToResend {
		fmt.Fprintf(&b, "\nMay be sent again, once: %s of session %s.", c.Method, c.Session)
	}
	return b.String()
}
