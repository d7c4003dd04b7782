package playbook

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestDefaultIsTheTableOfThePage(t *testing.T) {
	p := Default()
	want := []string{"0 client_reconnect self 584", "1 capability_refresh self 610 685", "2 session_reconnect self 543 618", "3 configuration_reload 642",
		"4 lease_recovery 702 753 790", "5 worker_restart 663", "6 role_runtime_restart 642 663", "7 connector_restart 663",
		"8 rolling_mcp_restart gated 668", "9 full_mcp_restart gated 663", "10 host_restart gated 663"}
	for i, r := range p.Rungs() {
		words := []string{strings.Fields(want[i])[0], r.Action}
		if r.SelfService {
			words = append(words, "self")
		}
		if r.Gated {
			words = append(words, "gated")
		}
		words = append(words, r.References...)
		if got := strings.Join(words, " "); got != want[i] || r.Rank != i || r.Delegation == "" {
			t.Errorf("rung %d is %q, want %q", i, got, want[i])
		}
		if r.Gated && (r.MinAttempts != 1 || r.MaxAge != 0 || r.RequireVerified) {
			t.Errorf("gate of %s: %+v", r.Action, r)
		}
		if again, ok := p.Rung(r.Action); !ok || again.Rank != i {
			t.Errorf("Rung(%q) = %+v, %v", r.Action, again, ok)
		}
	}
	if got := p.Rungs()[8].Delegation; got != "class `rolling_mcp_restart`, design in #668" {
		t.Errorf("delegation %q", got)
	}
	if p.ApprovalTTL() != time.Hour || p.RequestTTL() != 24*time.Hour || p.Contact() == "" || p.Identity().Name != "mcp-scoped-recovery" || len(p.Identity().SHA256) != 64 {
		t.Errorf("%v %v %q %+v", p.ApprovalTTL(), p.RequestTTL(), p.Contact(), p.Identity())
	}
	if len(p.symptoms) != 29 || p.Succeeded() != "succeeded" {
		t.Errorf("%d symptoms", len(p.symptoms))
	}
}

// TestAnotherLadderNeedsNoCode is page 1.1: a team with other rungs.
func TestAnotherLadderNeedsNoCode(t *testing.T) {
	p, err := Load(strings.NewReader(`
name: pods
roles: {sre: [ops/oncall, ada]}
rungs:
  - {action: pod_restart, rank: 0, standing: read, delegation: kubectl delete pod}
  - {action: node_drain, rank: 2, standing: admin, delegation: kubectl drain, full_restart: true, gate: {min_attempts: 2, max_age: 30m}}
  - {action: rollout, rank: 1, standing: write, roles: [sre], delegation: kubectl rollout restart, gate: {}}
outcomes:
  - {outcome: no, kind: counts}
  - {outcome: yes, kind: recovered, synonyms: [on]}
`))
	if err != nil {
		t.Fatal(err)
	}
	a := p.AssessEscalation(Escalation{Action: "rollout", Standing: Standing{Roles: []string{"sre"}}, Now: noon,
		Attempts: []Attempt{{Action: "pod_restart", Outcome: "no", RecordedAt: noon}}})
	if a.Code != CodeAllowedAttemptLog || p.Succeeded() != "yes" || len(p.RoleMembers()) != 2 {
		t.Errorf("%s, %v", a.Code, p.RoleMembers())
	}
	if a = p.AssessEscalation(Escalation{Action: "rollout", Standing: admin, Now: noon}); a.Missing[0].Post != "/attempt pod_restart no" {
		t.Errorf("missing = %+v", a.Missing)
	}
	if got := p.RecommendActions(nil, nil); got.Next != "pod_restart" || len(got.Ladder) != 2 {
		t.Errorf("recommended %+v", got)
	}
}

func TestRolesOn(t *testing.T) {
	text := strings.Replace(string(defaultYAML), "controller: []", "controller: [ada, 'github:ada', 'github:ops/sre']", 1)
	text = strings.Replace(text, "notify: []", "notify: [ops/duty, 'gitea:ada']", 1)
	p, err := Load(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"gitea": "ada", "github": "ada ada ops/sre", "": "ada"} {
		var got []string
		for _, m := range p.RolesOn(name) {
			got = append(got, m.Member)
		}
		if strings.Join(got, " ") != want {
			t.Errorf("RolesOn(%q) = %q, want %q", name, got, want)
		}
	}
	for name, want := range map[string]string{"gitea": "ops/duty ada", "github": "ops/duty", "": "ops/duty"} {
		if got := strings.Join(p.NotifyOn(name), " "); got != want {
			t.Errorf("NotifyOn(%q) = %q, want %q", name, got, want)
		}
	}
}

const rest = "\n# kind: counts (toward"

// faults are edits of the default playbook that Load refuses. schema says that
// the JSON Schema refuses them too; the others bind several places together.
var faults = []struct {
	name   string
	edits  []string
	want   string // in the error: line and field
	schema bool
}{
	{"unknown key", []string{"contact: the", "contcat: the"}, "line 4: contcat: is no key here; did you mean contact?", true},
	{"unknown key in a rung", []string{"    self_service: true", "    selfservice: true"}, "rungs[0].selfservice: is no key here", true},
	{"unknown key in a gate", []string{"gate: {min_attempts: 1}", "gate: {min_attempt: 1}"}, "rungs[8].gate.min_attempt: is no key", true},
	{"repeated key", []string{"approval_ttl: 1h", "approval_ttl: 1h\napproval_ttl: 2h"}, "line 10: approval_ttl: stands twice", false},
	{"repeated action", []string{"action: capability_refresh", "action: client_reconnect"}, "rungs[1].action: `client_reconnect` stands twice", false},
	{"repeated rank", []string{"rank: 1\n", "rank: 0\n"}, "rungs[1].rank: 0 stands twice", false},
	{"gap in rank", []string{"rank: 10", "rank: 11"}, "rungs[10].rank: 11 leaves a gap", false},
	{"negative rank", []string{"rank: 1\n", "rank: -1\n"}, "rungs[1].rank: must be a whole number from 0", true},
	{"rank as text", []string{"rank: 1\n", "rank: \"1\"\n"}, "rungs[1].rank: must be a whole number", true},
	{"no rank", []string{"    rank: 1\n", ""}, "rungs[1].rank: is missing", true},
	{"unknown target of a symptom", []string{"first: client_reconnect\n    example: mcp-go#146", "first: reconnect\n    example: mcp-go#146"}, "symptoms[0].first: `reconnect` is no rung", false},
	{"symptom without a rung or advice", []string{"    advice: wait, and tell the operators\n", ""}, "needs first (a rung) or advice", true},
	{"laxer standing", []string{"standing: owner", "standing: write"}, "rungs[10].standing: laxer than a narrower rung: write where a narrower rung needs admin", false},
	{"laxer standing without a gate", []string{"rank: 7\n    self_service: false\n    standing: write", "rank: 7\n    self_service: false\n    standing: read"}, "rungs[7].standing: laxer", false},
	{"laxer role", []string{"standing: owner\n    roles: [controller]", "standing: owner\n    roles: [controller, janitor]", "  controller: []", "  controller: []\n  janitor: []"}, "rungs[10].roles: laxer", false},
	{"laxer min_attempts", []string{"gate: {min_attempts: 1}", "gate: {min_attempts: 2}"}, "rungs[9].gate.min_attempts: laxer than a narrower rung: 1 where a narrower rung demands 2", false},
	{"laxer max_age", []string{"gate: {min_attempts: 1}", "gate: {max_age: 2h}"}, "rungs[9].gate.max_age: laxer than a narrower rung: no limit where a narrower rung has 2h0m0s", false},
	{"laxer require_verified", []string{"gate: {min_attempts: 1}", "gate: {require_verified: true}"}, "rungs[9].gate.require_verified: laxer", false},
	{"no gate above one", []string{"    gate: {min_attempts: 1}\n" + rest, rest}, "rungs[10].gate: laxer than a narrower rung: no gate", false},
	{"min_attempts that cannot be met", []string{"gate: {min_attempts: 1}\n" + rest, "gate: {min_attempts: 11}\n" + rest}, "rungs[10].gate.min_attempts: 11 cannot be met", false},
	{"min_attempts of none", []string{"gate: {min_attempts: 1}", "gate: {min_attempts: 0}"}, "rungs[8].gate.min_attempts: must be a whole number from 1", true},
	{"yes is no boolean", []string{"self_service: true", "self_service: yes"}, "rungs[0].self_service: must be true or false", true},
	{"unknown standing", []string{"standing: owner", "standing: root"}, "rungs[10].standing: `root` is none of none, read", true},
	{"unknown role", []string{"roles: [controller]", "roles: [controler]"}, "the role `controler` is not in the roles section", false},
	{"a kill as a rung", []string{"action: connector_restart", "action: pkill"}, "rungs[7].action: `pkill` is a manual process kill", false},
	{"bad action", []string{"action: connector_restart", "action: Connector Restart"}, "rungs[7].action: `Connector Restart` does not fit", true},
	{"bad duration", []string{"approval_ttl: 1h", "approval_ttl: 1 hour"}, "line 9: approval_ttl: must be a time above zero", true},
	{"no duration", []string{"approval_ttl: 1h", "approval_ttl: 0h"}, "approval_ttl: must be a time above zero", false},
	{"unknown kind", []string{"kind: neutral", "kind: other"}, "kind: `other` is none of counts", true},
	{"taken synonym", []string{"synonyms: [success,", "synonyms: [failed,"}, "the name or synonym `failed` is empty or taken", false},
	{"no outcome recovers", []string{"kind: recovered", "kind: neutral"}, "outcomes: at least one must be of kind counts and one of kind recovered", false},
	{"ambiguous code", []string{"codes: [transport_eof]", "codes: [transport]"}, "`transport` is no symptom", false},
	{"bad member", []string{"controller: []", "controller: [\"a b\"]"}, "roles.controller[0]: `a b` does not fit", true},
	{"bad notify", []string{"notify: []", "notify: [\"@a/b/c\"]"}, "notify[0]: `@a/b/c` does not fit", true},
	{"bad address", []string{"references_url: \"\"", "references_url: javascript:alert(1)"}, "references_url", true},
	{"a list where text belongs", []string{"contact: the operators on duty", "contact: [a]"}, "contact: must be text", true},
	{"text where a list belongs", []string{"notify: []", "notify: ada"}, "notify: must be a list", true},
	{"no name", []string{"name: mcp-scoped-recovery\n", ""}, "name: is missing", true},
	{"anchor", []string{"notify: []", "notify: &a []"}, "line 6: anchors and aliases are not read", false},
	{"two documents", []string{"\nsymptoms:", "\n---\nsymptoms:"}, "one document is wanted, not 2", false},
	{"no YAML", []string{"notify: []", "notify: ["}, "line ", false},
}

func TestLoadNamesLineAndField(t *testing.T) {
	for _, f := range faults {
		t.Run(f.name, func(t *testing.T) {
			p, err := Load(strings.NewReader(edit(t, f.edits...)))
			if err == nil {
				t.Fatal("loaded")
			}
			var fe *FieldError
			if p != nil || !errors.As(err, &fe) || fe.Line < 1 || !strings.Contains(err.Error(), f.want) || !strings.Contains(err.Error(), "line ") {
				t.Errorf("error %q, want %q in it", err, f.want)
			}
		})
	}
	for _, text := range []string{"", "- a", "x", "name: a\nrungs: 3\noutcomes: []\n", strings.Repeat("#", maxPlaybook+1)} {
		if _, err := Load(strings.NewReader(text)); err == nil {
			t.Errorf("loaded %.20q", text)
		}
	}
}

func TestLoadNamesEveryFaultAtOnce(t *testing.T) {
	_, err := Load(strings.NewReader(edit(t, "contact: the", "contcat: the", "self_service: true", "self_service: 3", "standing: owner", "standing: root")))
	if err == nil || strings.Count(err.Error(), "line ") != 3 {
		t.Errorf("error %v", err)
	}
}

func TestLoadKeepsWords(t *testing.T) {
	p, err := Load(strings.NewReader(edit(t, "contact: the operators on duty", "contact: no", "notify: []", "notify: [on, 404]", "references: [584]", "references: [0584]")))
	if err != nil {
		t.Fatal(err)
	}
	if p.Contact() != "no" || !slices.Equal(p.Notify(), []string{"on", "404"}) || p.rungs[0].References[0] != "0584" {
		t.Errorf("contact %q, notify %q, references %q", p.Contact(), p.Notify(), p.rungs[0].References)
	}
	a, b := Default().Identity(), p.Identity()
	if a.SHA256 == b.SHA256 {
		t.Error("two texts, one hash")
	}
}

func TestAccessorsGiveCopies(t *testing.T) {
	p := Default()
	p.Rungs()[0].Action = "changed"
	p.Outcomes()[0] = "changed"
	if p.Rungs()[0].Action == "changed" || p.Outcomes()[0] == "changed" {
		t.Error("the playbook can be changed from outside")
	}
}

func TestLadderDocument(t *testing.T) {
	text, err := json.Marshal(Default().LadderDocument())
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(text), "null,") && !strings.Contains(string(text), `"gate":null`) {
		t.Errorf("null in %s", text)
	}
	for _, want := range []string{`"schema":"playbook-bot/ladder/v1"`, `"action":"client_reconnect","rank":0,"self_service":true,"gated":false`, `"gate":{"min_attempts":1,"max_age_s":null,"require_verified":false}`,
		`"code":"upstream_outage"`, `"not_on_gated":true`, `{"rank":10,"action":"host_restart","standing":"owner","roles":["controller"]}`, `"references":["584"]`} {
		if !strings.Contains(string(text), want) {
			t.Errorf("no %s in %s", want, text)
		}
	}
	p := load(t, "  controller: []", "  controller: [secret-login]")
	if text, _ = json.Marshal(p.LadderDocument()); strings.Contains(string(text), "secret-login") {
		t.Error("the ladder shows who holds a role")
	}
}

func TestPermission(t *testing.T) {
	for perm := PermissionUnknown; perm <= PermissionOwner; perm++ {
		got, err := ParsePermission(" " + strings.ToUpper(perm.String()))
		if err != nil || got != perm {
			t.Errorf("%s read as %s, %v", perm, got, err)
		}
	}
	var s Standing
	if err := json.Unmarshal([]byte(`{"permission":"admin","roles":["x"]}`), &s); err != nil || s.Permission != PermissionAdmin {
		t.Errorf("%+v, %v", s, err)
	}
	if got, err := ParsePermission("superuser"); err == nil || got != PermissionUnknown {
		t.Errorf("superuser is %s", got)
	}
	if text, _ := json.Marshal(Standing{}); string(text) != `{"permission":"unknown","roles":[]}` {
		t.Errorf("%s", text)
	}
}
