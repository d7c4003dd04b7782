package playbook

import (
	"strings"
	"time"
)

// ImpactSchema names the published form of an impact. Fields are only ever
// added to it.
const ImpactSchema = "playbook-bot/impact/v1"

// ImpactOptions is what the caller knows and an inventory may not say.
type ImpactOptions struct {
	Standing             Standing
	Actor                string
	BreakGlassAuthorized bool
	Now                  time.Time
}

// Impact is what a restart would end, and what the gate says of it. Its JSON
// field names are a published contract; no slice is nil.
type Impact struct {
	Schema       string `json:"schema"`
	RestartClass string `json:"restart_class"`
	Target       string `json:"target"`
	// PlaybookEscalation is the gate's answer, null where no class is asked for.
	PlaybookEscalation *Assessment `json:"playbook_escalation"`
	// AttemptLogSatisfied is null where no class is asked for.
	AttemptLogSatisfied *bool      `json:"attempt_log_satisfied"`
	BreakGlass          BreakGlass `json:"break_glass"`
	// SessionsEnded are the sessions whose epoch moves on.
	SessionsEnded []SessionEnd `json:"sessions_ended"`
	// DeadTasks and DeadInputKeys mean something else in the next epoch.
	DeadTasks     []Pinned `json:"dead_tasks"`
	DeadInputKeys []Pinned `json:"dead_input_keys"`
	// AmbiguousCalls may already have executed and must not be replayed.
	AmbiguousCalls []Call `json:"ambiguous_calls"`
	// SafeToResend are calls that may be sent again, once.
	SafeToResend   []Call          `json:"safe_to_resend"`
	OrphanedLeases []OrphanedLease `json:"orphaned_leases"`
	WorkersStopped []string        `json:"workers_stopped"`
	Rejections     []RejectedText  `json:"rejections"`
	Notes          []string        `json:"notes"`
	// Mutated is always false, and Statement says so in words.
	Mutated   bool   `json:"mutated"`
	Statement string `json:"statement"`
}

// SessionEnd is a session that ends.
type SessionEnd struct {
	ID        string `json:"id"`
	Namespace string `json:"namespace"`
	Epoch     int64  `json:"epoch"`
	NextEpoch int64  `json:"next_epoch"`
}

// Pinned is a task id or input key that dies with its session's epoch.
type Pinned struct {
	Session string `json:"session"`
	ID      string `json:"id"`
}

// OrphanedLease is a lease whose holder ends.
type OrphanedLease struct {
	ID     string `json:"id"`
	Holder string `json:"holder"`
}

// EvaluateRestartImpact says what a restart would end, and, where the
// inventory names a class, what the gate says of it. It mutates nothing.
func (p *Playbook) EvaluateRestartImpact(inv Inventory, o ImpactOptions) Impact {
	im := Impact{
		Schema: ImpactSchema, RestartClass: inv.RestartClass, Target: inv.Target,
		BreakGlass:    BreakGlass{Requested: inv.RequestBreakGlass, Authorized: o.BreakGlassAuthorized},
		SessionsEnded: []SessionEnd{}, DeadTasks: []Pinned{}, DeadInputKeys: []Pinned{}, AmbiguousCalls: []Call{}, SafeToResend: []Call{},
		OrphanedLeases: []OrphanedLease{}, WorkersStopped: []string{}, Rejections: []RejectedText{}, Notes: append([]string{}, inv.notes...),
		Statement: "This is an answer only: nothing was restarted, killed or changed, and no lease was touched.",
	}
	attempts := im.readPrior(p, inv, o)
	if inv.RestartClass != "" {
		a := p.AssessEscalation(Escalation{Action: inv.RestartClass, Target: inv.Target, Symptoms: inv.Symptoms, Attempts: attempts,
			BreakGlass: im.BreakGlass, Standing: o.Standing, Actor: o.Actor, Now: o.Now})
		im.RestartClass = a.Action
		im.PlaybookEscalation, im.AttemptLogSatisfied, im.BreakGlass = &a, &a.AttemptLogSatisfied, a.BreakGlass
	}
	im.radius(inv, p.reach(inv))
	return im
}

// readPrior reads the attempts that the inventory's text holds.
func (im *Impact) readPrior(p *Playbook, inv Inventory, o ImpactOptions) []Attempt {
	r := reader{p: p, c: Context{At: o.Now}, demanded: true}
	for i := range inv.prior {
		r.list(&inv.prior[i])
	}
	attempts := append([]Attempt{}, inv.Attempts...)
	for _, a := range r.out.Attempts {
		attempts = append(attempts, a.Attempt)
	}
	im.Rejections = append(im.Rejections, r.out.Rejections...)
	im.Notes = append(im.Notes, r.out.Notes...)
	return attempts
}

// reach gives how far the restart goes. Without a class, or with one that is
// no rung, the worst is assumed.
func (p *Playbook) reach(inv Inventory) Blast {
	blast := BlastTarget
	if action, ok := p.NormalizeAction(inv.RestartClass); ok {
		blast = p.rungs[p.byAction[action]].Blast
	}
	if blast == BlastTarget && strings.TrimSpace(inv.Target) == "" {
		return BlastHost
	}
	return blast
}

// radius fills in what ends.
func (im *Impact) radius(inv Inventory, reach Blast) {
	hit := func(id, namespace string) bool {
		target := fold(strings.TrimSpace(inv.Target))
		return reach == BlastHost || reach == BlastTarget && (namespace == "" || fold(namespace) == target || fold(id) == target)
	}
	ended := map[string]bool{}
	guessed := false
	for _, s := range inv.Sessions {
		if !hit(s.ID, s.Namespace) {
			continue
		}
		guessed = guessed || reach == BlastTarget && s.Namespace == ""
		ended[s.ID] = true
		im.endSession(s)
	}
	for _, w := range inv.Workers {
		if hit(w.ID, w.Namespace) {
			guessed = guessed || reach == BlastTarget && w.Namespace == ""
			ended[w.ID] = true
			im.WorkersStopped = append(im.WorkersStopped, w.ID)
		}
	}
	for _, l := range inv.Leases {
		if ended[l.Holder] || l.Holder == "" && hit(l.ID, l.Namespace) {
			im.OrphanedLeases = append(im.OrphanedLeases, OrphanedLease{ID: l.ID, Holder: l.Holder})
		}
	}
	switch {
	case reach == BlastNone:
		im.Notes = append(im.Notes, "`"+im.RestartClass+"` ends no session")
	case reach == BlastHost && strings.TrimSpace(inv.Target) == "":
		im.Notes = append(im.Notes, "no target is named, so everything alive counts as ended")
	case guessed:
		im.Notes = append(im.Notes, "what names no namespace counts as ended")
	}
	if len(im.AmbiguousCalls) > 0 {
		im.Notes = append(im.Notes, "ambiguous calls may already have executed: verify their effect before repeating them, and do not replay them")
	}
}

func (im *Impact) endSession(s Session) {
	im.SessionsEnded = append(im.SessionsEnded, SessionEnd{ID: s.ID, Namespace: s.Namespace, Epoch: s.Epoch, NextEpoch: s.Epoch + 1})
	for _, t := range s.Tasks {
		im.DeadTasks = append(im.DeadTasks, Pinned{Session: s.ID, ID: t})
	}
	for _, k := range s.InputKeys {
		im.DeadInputKeys = append(im.DeadInputKeys, Pinned{Session: s.ID, ID: k})
	}
	for _, c := range s.InFlight {
		c.Session = s.ID
		if Idempotent(c.Method) {
			im.SafeToResend = append(im.SafeToResend, c)
		} else {
			im.AmbiguousCalls = append(im.AmbiguousCalls, c)
		}
	}
}

// Idempotent reports whether an MCP method may be sent again after its session
// ended. It is an allow-list: everything else, tools/call first, may already
// have executed.
func Idempotent(method string) bool {
	switch method {
	case "ping", "resources/read", "prompts/get", "completion/complete", "logging/setLevel", "resources/subscribe", "resources/unsubscribe",
		"tools/list", "prompts/list", "resources/list", "resources/templates/list", "roots/list", "tasks/list":
		return true
	}
	return false
}
