package playbook

import (
	"fmt"
	"slices"
	"strings"
)

// Inventory is what a coordinator knows of a host before a restart: what is
// asked for, what was tried, and what is alive. It never carries standing or
// authorization; its writer would grant himself.
type Inventory struct {
	// RestartClass is the action asked for; empty: only the blast radius is
	// wanted.
	RestartClass      string
	Target            string
	RequestBreakGlass bool
	Symptoms          []string
	// Attempts are records made by the caller. Those of the text are read when
	// the inventory is evaluated, since only a playbook knows its words.
	Attempts []Attempt
	Sessions []Session
	Leases   []Lease
	Workers  []Worker

	prior []node
	notes []string
	known int // keys that an inventory has
}

// Session is a live MCP session.
type Session struct {
	// ID names it in the answer. A real session id is a credential: inventories
	// should carry a name or a hash.
	ID        string
	Epoch     int64
	Namespace string
	// InFlight are the JSON-RPC calls without an answer yet.
	InFlight []Call
	// Tasks and InputKeys mean something in this epoch only.
	Tasks, InputKeys []string
}

// Call is a JSON-RPC call in flight.
type Call struct {
	// Session is the id of the session it runs in.
	Session string `json:"session"`
	// ID is the request's id, empty where the inventory has none.
	ID     string `json:"id"`
	Method string `json:"method"`
}

// Lease is a claim that a session or worker holds.
type Lease struct{ ID, Holder, Namespace string }

// Worker is a process that serves a namespace.
type Worker struct{ ID, Namespace string }

// ParseInventory reads an inventory: JSON (comments and trailing commas are
// fine) or YAML. Unknown keys are tolerated; keys that claim standing or
// authorization are ignored, and EvaluateRestartImpact notes it. Every other
// fault is an error that names line and field.
func ParseInventory(text []byte) (Inventory, error) {
	if len(text) > maxJSON {
		return Inventory{}, fmt.Errorf("reading inventory: longer than %d bytes", maxJSON)
	}
	var docs []node
	var serr *syntaxError
	if looksLikeJSON(string(text)) {
		docs, serr = parseJSONC(string(text))
	} else {
		docs, serr = parseYAML(string(text))
	}
	if serr != nil {
		return Inventory{}, fmt.Errorf("reading inventory: %w", serr)
	}
	if len(docs) != 1 || docs[0].kind != objectNode {
		return Inventory{}, fmt.Errorf("reading inventory: one object is wanted, with keys such as restart_class and sessions")
	}
	d := &decoder{}
	inv := d.inventory(docs[0])
	if len(d.errs) > 0 {
		return Inventory{}, fmt.Errorf("reading inventory: %w", d.errs[0])
	}
	return inv, nil
}

// claims are keys that would grant standing; break_glass may ask, in an object.
var claims = []string{"standing", "permission", "permissions", "role", "roles", "authorized", "authorization", "authorisation",
	"break_glass", "break_glass_authorized", "breakglass_authorized", "authorized_break_glass", "actor_role", "endorsed", "endorser", "verified"}

func (d *decoder) inventory(n node) Inventory {
	inv := Inventory{Symptoms: []string{}, Attempts: []Attempt{}, Sessions: []Session{}, Leases: []Lease{}, Workers: []Worker{}}
	for _, f := range d.objectOf(n, "") {
		key := normalize(f.name)
		v := &f.value
		inv.known++
		switch key {
		case "restart_class":
			inv.RestartClass = d.text(v, key)
		case "target":
			inv.Target = d.text(v, key)
		case "request_break_glass":
			inv.RequestBreakGlass = d.boolean(v, key)
		case "symptoms":
			inv.Symptoms = d.names(v, key)
		case "prior_recovery_attempts":
			inv.prior = append(inv.prior, *v)
		case "sessions":
			inv.Sessions = d.sessions(v)
		case "leases":
			for i, m := range d.things(v, key) {
				at := fmt.Sprintf("leases[%d]", i)
				inv.Leases = append(inv.Leases, Lease{ID: d.text(m["id"], at+".id"), Namespace: d.text(m["namespace"], at+".namespace"),
					Holder: d.text(oneField(m, "holder", "owner", "session", "worker"), at+".holder")})
			}
		case "workers":
			for i, m := range d.things(v, key) {
				at := fmt.Sprintf("workers[%d]", i)
				inv.Workers = append(inv.Workers, Worker{ID: d.text(m["id"], at+".id"), Namespace: d.text(m["namespace"], at+".namespace")})
			}
		default:
			inv.known--
			if slices.Contains(claims, key) {
				inv.notes = append(inv.notes, quote(f.name)+" was ignored: an inventory cannot grant standing or authorization")
			}
		}
	}
	return inv
}

// oneField gives the first of several names for a field that is there.
func oneField(m map[string]*node, names ...string) *node {
	for _, name := range names {
		if m[name] != nil {
			return m[name]
		}
	}
	return nil
}

// things reads a list of objects with an id; a bare text is an id alone.
func (d *decoder) things(n *node, path string) []map[string]*node {
	var out []map[string]*node
	for i := range d.many(n, path) {
		item := &n.items[i]
		m := map[string]*node{}
		if item.kind == scalarNode {
			m["id"] = item
		} else {
			at := fmt.Sprintf("%s[%d]", path, i)
			for _, f := range d.objectOf(*item, at) {
				m[normalize(f.name)] = &f.value
			}
			if d.text(m["id"], at+".id") == "" && item.kind == objectNode {
				d.fail(item.line, at+".id", "is missing")
			}
		}
		out = append(out, m)
	}
	return out
}

// many is list with the room an inventory needs.
func (d *decoder) many(n *node, path string) []node {
	if n == nil || n.kind == nullNode {
		return nil
	}
	if n.kind != listNode {
		d.fail(n.line, path, "must be a list")
		return nil
	}
	return n.items
}

// names is a list of texts, or one text; empty ones are left out.
func (d *decoder) names(n *node, path string) []string {
	out := []string{}
	if n != nil && n.kind == scalarNode {
		n = &node{kind: listNode, line: n.line, items: []node{*n}}
	}
	for i, item := range d.many(n, path) {
		if s := d.text(&item, fmt.Sprintf("%s[%d]", path, i)); s != "" {
			out = append(out, s)
		}
	}
	return out
}

func (d *decoder) sessions(n *node) []Session {
	out := []Session{}
	for i, m := range d.things(n, "sessions") {
		at := fmt.Sprintf("sessions[%d]", i)
		s := Session{
			ID:        d.text(m["id"], at+".id"),
			Namespace: d.text(m["namespace"], at+".namespace"),
			Epoch:     d.epoch(m["epoch"], at+".epoch"),
			Tasks:     d.names(m["tasks"], at+".tasks"),
			InputKeys: d.names(m["input_keys"], at+".input_keys"),
			InFlight:  []Call{},
		}
		for j, c := range d.many(m["in_flight"], at+".in_flight") {
			s.InFlight = append(s.InFlight, d.call(c, s.ID, fmt.Sprintf("%s.in_flight[%d]", at, j)))
		}
		out = append(out, s)
	}
	return out
}

// call reads a method's name, or an object with method and id.
func (d *decoder) call(n node, session, path string) Call {
	c := Call{Session: session}
	if n.kind == scalarNode {
		c.Method = strings.TrimSpace(n.text)
	} else {
		for _, f := range d.objectOf(n, path) {
			switch normalize(f.name) {
			case "method":
				c.Method = d.text(&f.value, path+".method")
			case "id":
				c.ID = d.text(&f.value, path+".id")
			}
		}
	}
	if c.Method == "" {
		d.fail(n.line, path+".method", "is missing")
	}
	return c
}

func (d *decoder) epoch(n *node, path string) int64 {
	if n == nil || n.kind == nullNode {
		return 0
	}
	var v int64
	if _, err := fmt.Sscanf(n.text, "%d", &v); n.kind != scalarNode || err != nil || fmt.Sprint(v) != strings.TrimSpace(n.text) || v < 0 || v > 1<<53 {
		d.fail(n.line, path, "must be a whole number from 0")
		return 0
	}
	return v
}
