package playbook

import (
	"fmt"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	yaml "go.yaml.in/yaml/v3"
)

func compileSchema(t testing.TB) *jsonschema.Schema {
	t.Helper()
	doc, err := jsonschema.UnmarshalJSON(strings.NewReader(SchemaJSON))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("schema.json", doc); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile("schema.json")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// check gives the schema's verdict on a YAML text, as an editor would.
func check(t testing.TB, s *jsonschema.Schema, text string) error {
	t.Helper()
	var v any
	if err := yaml.Unmarshal([]byte(text), &v); err != nil {
		return fmt.Errorf("no YAML: %w", err)
	}
	return s.Validate(v)
}

// TestSchemaAndLoadAgree holds the two together: what Load takes the schema
// takes, and what is wrong in one place alone both refuse.
func TestSchemaAndLoadAgree(t *testing.T) {
	s := compileSchema(t)
	if err := check(t, s, string(defaultYAML)); err != nil {
		t.Fatalf("the default playbook: %v", err)
	}
	for _, f := range faults {
		if err := check(t, s, edit(t, f.edits...)); f.schema && err == nil {
			t.Errorf("%s: Load refuses it, the schema does not", f.name)
		}
	}
	for name, edits := range map[string][]string{
		"words":         {"contact: the operators on duty", "contact: no", "notify: []", "notify: [404, true]"},
		"empty values":  {"contact: the operators on duty", "contact:", "notify: []", "notify:", "references_url: \"\"", "references_url:", "  controller: []", "  controller:"},
		"no options":    {"approval_ttl: 1h\n", "", "request_ttl: 24h\n", "", "contact: the operators on duty\n", ""},
		"full gate":     {"gate: {min_attempts: 1}\n" + rest, "gate: {min_attempts: 3, max_age: 1h30m, require_verified: true}\n" + rest},
		"empty gate":    {"gate: {min_attempts: 1}", "gate: {}"},
		"no symptoms":   {"\nsymptoms:", "\nsymptoms: []\n#", "\nambiguous:", "\nambiguous: []\n#"},
		"members":       {"  controller: []", "  controller: [ada, ops/oncall]"},
		"an address":    {"references_url: \"\"", "references_url: https://example.org/issues/"},
		"standing none": {"standing: read", "standing: none"},
	} {
		text := edit(t, edits...)
		if name == "no symptoms" {
			text = text[:strings.Index(text, "\nsymptoms:")] + "\n"
		}
		if _, err := Load(strings.NewReader(text)); err != nil {
			t.Errorf("%s: Load: %v", name, err)
		}
		if err := check(t, s, text); err != nil {
			t.Errorf("%s: schema: %v", name, err)
		}
	}
}

// TestSchemaKnowsEveryKey takes each key out of the schema's own list: a key
// that Load knows and the schema does not, or the other way round, is found by
// writing it.
func TestSchemaKnowsEveryKey(t *testing.T) {
	s := compileSchema(t)
	for _, key := range []string{"name", "contact", "notify", "references_url", "approval_ttl", "request_ttl", "roles", "rungs", "outcomes", "symptoms", "ambiguous",
		"action", "rank", "self_service", "standing", "delegation", "references", "blast", "full_restart", "phrases", "gate", "min_attempts", "max_age", "require_verified",
		"outcome", "kind", "not_on_gated", "synonyms", "code", "meaning", "first", "advice", "example", "text", "codes"} {
		if !strings.Contains(SchemaJSON, `"`+key+`": {`) {
			t.Errorf("the schema lacks %s", key)
		}
	}
	for _, place := range []string{"contact: the", "    self_service: true", "gate: {", "    kind: counts", "    meaning: pipe", "    codes: [transport"} {
		text := edit(t, place, strings.Replace(place, strings.TrimSpace(place)[:4], "zz"+strings.TrimSpace(place)[:4], 1))
		_, lerr := Load(strings.NewReader(text))
		if serr := check(t, s, text); lerr == nil || serr == nil {
			t.Errorf("%q: Load %v, schema %v", place, lerr, serr)
		}
	}
}
