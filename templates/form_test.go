package templates

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"playbook-bot/bot/comment"
	"playbook-bot/playbook"
)

// issueForm is what both forges read of an issue form. Unknown keys are an
// error, because GitHub refuses a form for them.
type issueForm struct {
	Name, Description, Title string
	Body                     []struct {
		Type       string
		ID         string
		Attributes struct {
			Label, Description, Placeholder, Value string
			Options                                []yaml.Node
		}
		Validations struct{ Required bool }
	}
}

func readForm(t *testing.T) issueForm {
	t.Helper()
	d := yaml.NewDecoder(strings.NewReader(string(FormYAML)))
	d.KnownFields(true)
	var f issueForm
	if err := d.Decode(&f); err != nil {
		t.Fatal(err)
	}
	return f
}

func TestFormOffersTheLadder(t *testing.T) {
	var want, got []string
	for _, r := range playbook.Default().Rungs() {
		want = append(want, r.Action)
	}
	for _, field := range readForm(t).Body {
		if field.Attributes.Label != "Requested class" {
			continue
		}
		if field.Type != "dropdown" || !field.Validations.Required {
			t.Errorf("the class is a %s, required: %v", field.Type, field.Validations.Required)
		}
		for _, o := range field.Attributes.Options {
			got = append(got, o.Value)
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("the form offers %q, the ladder has %q", got, want)
	}
}

// TestFormIsReadAsOne fills the form in as a forge does, and reads it back.
func TestFormIsReadAsOne(t *testing.T) {
	answers := map[string]string{
		"Requested class": "full_mcp_restart", "Target": "mcp-search", "Symptoms": "stale_capability, transport_eof",
		"What happened": "all clients 404", "Prior recovery attempts": "/attempt client_reconnect insufficient still 404",
	}
	var body strings.Builder
	var labels []string
	for _, field := range readForm(t).Body {
		if field.Type == "markdown" {
			continue
		}
		label := field.Attributes.Label
		labels = append(labels, label)
		body.WriteString("### " + label + "\n\n")
		if field.Type == "checkboxes" {
			for _, o := range field.Attributes.Options {
				body.WriteString("- [x] " + o.Content[1].Value + "\n\n")
			}
			continue
		}
		if answers[label] == "" {
			t.Errorf("a field that nobody asked for: %q", label)
		}
		body.WriteString(answers[label] + "\n\n")
	}
	if want := comment.Labels; !slices.Equal(labels, want) {
		t.Errorf("labels %q, want %q", labels, want)
	}
	read := comment.Parse(body.String(), comment.Options{Playbook: playbook.Default(), Issue: true, Context: playbook.Context{Author: "ada", At: now}})
	f := read.Form
	if f == nil || f.Problem != nil {
		t.Fatalf("no form was read: %+v", read)
	}
	if f.Action != "full_mcp_restart" || f.Target != "mcp-search" || len(f.Symptoms) != 2 || f.Reason != "all clients 404" || !f.BreakGlass || len(read.Records) != 1 {
		t.Errorf("read %+v and %d records", f, len(read.Records))
	}
}

func TestLabels(t *testing.T) {
	seen := map[string]bool{}
	for _, l := range Labels() {
		if seen[l.Name] {
			t.Errorf("%s stands twice", l.Name)
		}
		seen[l.Name] = true
		if !regexp.MustCompile(`^[0-9a-f]{6}$`).MatchString(l.Color) {
			t.Errorf("%s: colour %q", l.Name, l.Color)
		}
		if l.Exclusive != strings.Contains(l.Name, "/") {
			t.Errorf("%s: exclusive %v", l.Name, l.Exclusive)
		}
		// GitHub refuses a description over 100 characters.
		if n := len([]rune(l.Description)); n == 0 || n > 100 {
			t.Errorf("%s: description of %d characters", l.Name, n)
		}
	}
	for _, want := range []string{"recovery/requested", "recovery/approved", "recovery/refused", "recovery/recovered", "recovery-contaminated", "recovery-break-glass"} {
		if !seen[want] {
			t.Errorf("no label %s", want)
		}
	}
}
