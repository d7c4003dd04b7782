package main

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"playbook-bot/bot/command"
	"playbook-bot/bot/mcp"
)

// TestReadme holds the README's tables to the code they describe.
func TestReadme(t *testing.T) {
	const name = "../../README.md"
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	table, err := configTable()
	if err != nil {
		t.Fatal(err)
	}
	text := string(b)
	for marker, content := range map[string]string{"answer": answer(t), "commands": command.MarkdownTable(), "configuration": table, "program": subcommands()} {
		if text, err = fill(text, marker, content); err != nil {
			t.Fatal(err)
		}
	}
	golden(t, name, text)
}

// subcommands is a table of what the program itself does.
func subcommands() string {
	var b strings.Builder
	b.WriteString("| `playbook-bot …` | |\n|---|---|\n")
	for _, c := range (&app{}).commands() {
		fmt.Fprintf(&b, "| `%s` | %s |\n", strings.ReplaceAll(c.Use, "|", `\|`), c.Short)
	}
	return b.String()
}

// answer is one of the templates' golden answers, quoted, without its JSON.
func answer(t *testing.T) string {
	t.Helper()
	b, err := os.ReadFile("../../templates/testdata/refused-log-missing.md")
	if err != nil {
		t.Fatal(err)
	}
	text, _, ok := strings.Cut(string(b), "\n<details>")
	if !ok {
		t.Fatal("the answer has no folded decision any more")
	}
	return "> " + strings.ReplaceAll(strings.TrimSpace(text), "\n", "\n> ") + "\n"
}

// fill puts content between <!-- NAME --> and <!-- /NAME -->.
func fill(text, name, content string) (string, error) {
	begin, end := "<!-- "+name+" -->\n", "<!-- /"+name+" -->"
	head, rest, ok := strings.Cut(text, begin)
	_, tail, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		return "", fmt.Errorf("the README has no place for %s: %s…%s", name, begin, end)
	}
	return head + begin + "\n" + content + "\n" + end + tail, nil
}

func TestFillNeedsItsMarkers(t *testing.T) {
	got, err := fill("a\n<!-- x -->\nold\n<!-- /x -->\nb\n", "x", "new\n")
	if want := "a\n<!-- x -->\n\nnew\n\n<!-- /x -->\nb\n"; err != nil || got != want {
		t.Errorf("fill = %q, %v; want %q", got, err, want)
	}
	if _, err := fill("a\n<!-- x -->\nb\n", "x", "new"); err == nil {
		t.Error("a README without the end marker was accepted")
	}
}

// TestReadmeSnippetsAreJSON: a host's configuration is pasted as it stands.
func TestReadmeSnippetsAreJSON(t *testing.T) {
	b, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	parts := strings.Split(string(b), "```json\n")[1:]
	if len(parts) < 4 {
		t.Errorf("%d JSON snippets in the README", len(parts))
	}
	for _, part := range parts {
		snippet, _, _ := strings.Cut(part, "```")
		if !json.Valid([]byte(snippet)) {
			t.Errorf("not JSON:\n%s", snippet)
		}
	}
	_, yaml, _ := strings.Cut(string(b), "```yaml\nservers:\n")
	yaml, _, _ = strings.Cut(yaml, "```")
	servers, err := mcp.ParseServers("servers:\n"+yaml, nil)
	if err != nil || len(servers) != 2 {
		t.Errorf("the README's servers: %v, %v", servers, err)
	}
}
