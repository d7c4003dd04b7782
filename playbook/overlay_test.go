package playbook

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

func overlay(t testing.TB, text string) Overlay {
	t.Helper()
	o, err := LoadOverlay(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	return o
}

func tightened(t testing.TB, p *Playbook, text string) *Playbook {
	t.Helper()
	q, err := p.Tighten(overlay(t, text))
	if err != nil {
		t.Fatal(err)
	}
	return q
}

const fullOverlay = `# ours
tighten:
  - action: host_restart
    disable: true
  - action: full_mcp_restart
    standing: owner
    min_attempts: 2
    max_age: 2h
    require_verified: true
`

func TestTighten(t *testing.T) {
	p := Default()
	q := tightened(t, p, fullOverlay)
	full, _ := q.Rung("full_mcp_restart")
	if full.Standing != PermissionOwner || full.MinAttempts != 2 || full.MaxAge.Hours() != 2 || !full.RequireVerified || full.Rank != 9 {
		t.Errorf("full_mcp_restart: %+v", full)
	}
	if host, _ := q.Rung("host_restart"); !host.Disabled || host.Rank != 10 {
		t.Errorf("host_restart: %+v", host)
	}
	if host, _ := p.Rung("host_restart"); host.Disabled {
		t.Error("the operator's playbook was changed")
	}
	if id := q.Identity(); !strings.HasPrefix(id.Overlay, "sha256:") || id.SHA256 != p.Identity().SHA256 || p.Identity().Overlay != "" {
		t.Errorf("identity %+v of %+v", id, p.Identity())
	}
	o := overlay(t, fullOverlay)
	o.Commit = "0123abcd"
	if q, err := p.Tighten(o); err != nil || q.Identity().Overlay != "0123abcd" {
		t.Errorf("%v", err)
	}
	if q, err := p.Tighten(Overlay{}); err != nil || q.Identity() != p.Identity() {
		t.Errorf("the zero overlay: %v", err)
	}
	if q := tightened(t, p, "tighten: [{action: client_reconnect, standing: write}, {action: capability_refresh, standing: write}, {action: session_reconnect, standing: write}]"); q.rungs[0].SelfService {
		t.Error("self-service though it takes write")
	}
}

func TestDisabled(t *testing.T) {
	p := tightened(t, Default(), "tighten: [{action: client_reconnect, disable: true}, {action: host_restart, disable: true}, {action: session_reconnect, disable: true}]")
	reconnect := Attempt{Action: "client_reconnect", Outcome: "insufficient", Actor: "ada", RecordedAt: noon}
	refresh := Attempt{Action: "capability_refresh", Outcome: "insufficient", Actor: "ada", RecordedAt: noon}
	glass := BreakGlass{Requested: true, Authorized: true}
	for _, c := range []struct {
		name string
		e    Escalation
		code Code
		next string
		post string
	}{
		{"attempts on it do not count", Escalation{Action: "full_mcp_restart", Attempts: []Attempt{reconnect}}, CodeAttemptLogInsufficient, "capability_refresh", "/attempt capability_refresh insufficient"},
		{"other attempts count", Escalation{Action: "full_mcp_restart", Attempts: []Attempt{refresh}}, CodeAllowedAttemptLog, "full_mcp_restart", ""},
		{"gated and disabled", Escalation{Action: "host_restart", Attempts: []Attempt{refresh}}, CodeActionDisabled, "configuration_reload", "/restart configuration_reload"},
		{"break-glass does not lift it", Escalation{Action: "host_restart", BreakGlass: glass}, CodeActionDisabled, "capability_refresh", "/restart capability_refresh"},
		{"nothing narrower", Escalation{Action: "client_reconnect", Target: "search"}, CodeActionDisabled, "capability_refresh", "/restart capability_refresh target=search"},
		{"symptom starts there", Escalation{Action: "full_mcp_restart", Symptoms: []string{"session_expired"}}, CodeAttemptLogMissing, "configuration_reload", "/attempt configuration_reload insufficient"},
	} {
		c.e.Standing, c.e.Now = Standing{Permission: PermissionOwner}, noon
		a := p.AssessEscalation(c.e)
		if a.Code != c.code || a.Next != c.next || a.BreakGlass.Used {
			t.Errorf("%s: %s, next %q", c.name, a.Code, a.Next)
		}
		if post := missingPost(a); post != c.post {
			t.Errorf("%s: missing %+v", c.name, a.Missing)
		}
	}
	if rec := p.RecommendActions([]string{"session_expired"}, nil); rec.Next != "configuration_reload" {
		t.Errorf("recommended %+v", rec)
	}
	if got := p.SuggestActions("reboot the host"); slices.Contains(got, "host_restart") {
		t.Errorf("suggested %v", got)
	}
	if got := p.LadderDocument().Rungs[10]; !got.Disabled {
		t.Errorf("the ladder shows %+v", got)
	}
}

// TestNextIsLeftWhereAProbeIsWanted: all was tried, but nothing by the bot
// itself; what is to be tried again is not what was taken away.
func TestNextIsLeftWhereAProbeIsWanted(t *testing.T) {
	verified := "  - {action: host_restart, require_verified: true}\n"
	for _, c := range []struct {
		overlay string
		next    string
	}{
		{"tighten:\n" + verified + disableAll(2, 6), "connector_restart"},
		{"tighten:\n" + verified + disableAll(2, 9), "client_reconnect"},
		{"tighten:\n" + verified + disableAll(0, 0) + disableAll(2, 9), "capability_refresh"},
	} {
		p := tightened(t, Default(), c.overlay)
		e := Escalation{Action: "host_restart", Symptoms: []string{"session_expired"}, Standing: Standing{Permission: PermissionOwner}, Now: noon}
		for _, r := range p.rungs[:10] {
			e.Attempts = append(e.Attempts, Attempt{Action: r.Action, Outcome: "insufficient", RecordedAt: noon})
		}
		if a := p.AssessEscalation(e); a.Code != CodeAttemptLogInsufficient || a.Next != c.next {
			t.Errorf("%s, next %q, want %q", a.Code, a.Next, c.next)
		}
	}
}

func missingPost(a Assessment) string {
	if len(a.Missing) == 0 {
		return ""
	}
	return a.Missing[0].Post
}

// overlayFaults are overlays that are refused. schema says that the JSON
// Schema refuses them too; the others take the operator's playbook.
var overlayFaults = []struct {
	name, text, want string
	schema           bool
}{
	{"empty", "", "one document is wanted, not 0", false},
	{"a list", "- a", "line 1: must be a mapping", true},
	{"nothing", "{}", "line 1: tighten: is missing", true},
	{"unknown key", "tighten: []\nroles: {controller: [mallory]}", "line 2: roles: is no key here", true},
	{"outcomes", "tighten: []\noutcomes: [{outcome: tried, kind: counts}]", "outcomes: is no key here", true},
	{"symptoms", "tighten: []\nsymptoms: []", "symptoms: is no key here", true},
	{"targets", "tighten:\n  - action: host_restart\n    targets: [db]", "line 3: tighten[0].targets: is no key here", true},
	{"rank", "tighten: [{action: host_restart, rank: 3}]", "rank: is no key here", true},
	{"misspelt", "tighten: [{action: host_restart, disabled: true}]", "did you mean disable?", true},
	{"says nothing", "tighten: [{action: host_restart}]", "says nothing of its action", true},
	{"no action", "tighten: [{disable: true}]", "action: is missing", true},
	{"twice", "tighten:\n  - {action: host_restart, disable: true}\n  - {action: host_restart, disable: true}", "line 3: tighten[1].action: `host_restart` stands twice", false},
	{"off", "tighten: [{action: host_restart, disable: false}]", "can only be true", true},
	{"verified off", "tighten: [{action: host_restart, require_verified: false}]", "can only be true", true},
	{"disabled and more", "tighten: [{action: host_restart, disable: true, standing: owner}]", "stands alone", true},
	{"zero attempts", "tighten: [{action: host_restart, min_attempts: 0}]", "whole number from 1", true},
	{"bad age", "tighten: [{action: host_restart, max_age: -1h}]", "must be a time above zero", true},
	{"bad standing", "tighten: [{action: host_restart, standing: root}]", "is none of", true},
	{"unknown standing", "tighten: [{action: host_restart, standing: unknown}]", "is none of", true},

	{"unknown action", "tighten:\n  - action: hosts_restart\n    disable: true", "line 2: tighten[0].action: `hosts_restart` is no action of the playbook strict; did you mean `host_restart`", false},
	{"laxer standing", "tighten:\n  - action: full_mcp_restart\n    standing: write", "line 3: tighten[0].standing: write is laxer than the playbook's admin", false},
	{"standing none", "tighten: [{action: client_reconnect, standing: none}]", "none is laxer than the playbook's read", false},
	{"laxer attempts", "tighten: [{action: host_restart, min_attempts: 1}]", "1 is laxer than the playbook's 3", false},
	{"laxer age", "tighten: [{action: host_restart, max_age: 3h}]", "3h0m0s is laxer than the playbook's 1h0m0s", false},
	{"a new gate", "tighten: [{action: worker_restart, min_attempts: 1}]", "has no gate in the playbook", false},
	{"narrower stricter", "tighten: [{action: connector_restart, standing: owner}]", "makes `connector_restart` stricter than the broader `rolling_mcp_restart` (admin)", false},
	{"narrower more attempts", "tighten: [{action: rolling_mcp_restart, min_attempts: 3}]", "stricter than the broader `full_mcp_restart` (2)", false},
	{"narrower younger", "tighten: [{action: full_mcp_restart, max_age: 30m}]", "stricter than the broader `host_restart` (1h0m0s)", false},
	{"narrower verified", "tighten: [{action: full_mcp_restart, require_verified: true}, {action: host_restart, max_age: 10m}]", "", false},
	{"narrower verified alone", "tighten: [{action: rolling_mcp_restart, require_verified: true}]", "stricter than the broader `full_mcp_restart` (false)", false},
	{"cannot be met", "tighten:\n  - {action: host_restart, min_attempts: 11}", "it needs attempts on 11 narrower rungs, and 10 are left", false},
	{"no rung left", "tighten:\n" + disableAll(8, 10) + disableAll(0, 7), "no rung without a gate is left", false},
	{"gates left without a rung", "tighten:\n" + disableAll(0, 7), "could not be asked for any more", false},
}

func disableAll(from, to int) string {
	var b strings.Builder
	for rank := from; rank <= to; rank++ {
		fmt.Fprintf(&b, "  - {action: %s, disable: true}\n", Default().rungs[rank].Action)
	}
	return b.String()
}

// strictPlaybook has gates that can be loosened in every way.
func strictPlaybook(t testing.TB) *Playbook {
	t.Helper()
	return load(t, "name: mcp-scoped-recovery", "name: strict",
		"gate: {min_attempts: 1}\n  - action: host_restart", "gate: {min_attempts: 2, max_age: 2h}\n  - action: host_restart",
		"gate: {min_attempts: 1}\n\n", "gate: {min_attempts: 3, max_age: 1h, require_verified: true}\n\n")
}

func TestOverlayFaultsNameLineAndField(t *testing.T) {
	p, s := strictPlaybook(t), compileOverlaySchema(t)
	for _, f := range overlayFaults {
		o, err := LoadOverlay(strings.NewReader(f.text))
		if f.schema && err == nil {
			t.Errorf("%s: LoadOverlay takes it", f.name)
		}
		if serr := check(t, s, f.text); f.schema != (serr != nil) && f.text != "" {
			t.Errorf("%s: the schema says %v", f.name, serr)
		}
		if err == nil {
			_, err = p.Tighten(o)
		}
		if f.want == "" {
			if err != nil {
				t.Errorf("%s: %v", f.name, err)
			}
			continue
		}
		var fe *FieldError
		if !errors.As(err, &fe) || fe.Line < 1 || !strings.Contains(err.Error(), f.want) {
			t.Errorf("%s: error %v, want %q in it", f.name, err, f.want)
		}
	}
	if _, err := LoadOverlay(strings.NewReader("tighten: []" + strings.Repeat("#", MaxOverlay))); err == nil {
		t.Error("took an overlay without end")
	}
	_, err := LoadOverlay(strings.NewReader("tighten:\n  - {action: host_restart, disable: 3}\n  - {action: Host, standing: owner}\nroles: 1\n"))
	if err == nil || strings.Count(err.Error(), "line ") != 3 {
		t.Errorf("not every fault at once: %v", err)
	}
}

func compileOverlaySchema(t testing.TB) *jsonschema.Schema {
	t.Helper()
	doc, err := jsonschema.UnmarshalJSON(strings.NewReader(OverlaySchemaJSON))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("overlay-schema.json", doc); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile("overlay-schema.json")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestOverlaySchemaTakesWhatLoadTakes(t *testing.T) {
	s := compileOverlaySchema(t)
	for _, text := range []string{fullOverlay, "tighten:\n", "tighten: []\n", "tighten: [{action: x, max_age: }]", "tighten: [{action: host_restart, min_attempts: 4, max_age: 1h30m}]"} {
		if _, err := LoadOverlay(strings.NewReader(text)); err != nil {
			t.Errorf("%q: %v", text, err)
		}
		if err := check(t, s, text); err != nil {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// TestREADMEOverlay holds the page's example to the code.
func TestREADMEOverlay(t *testing.T) {
	page, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, ok := strings.Cut(string(page), "```yaml\n# .gitea/recovery-playbook.yaml\n")
	text, _, ok2 := strings.Cut(rest, "```")
	if !ok || !ok2 {
		t.Fatal("README.md has no example of an overlay")
	}
	tightened(t, Default(), text)
}
