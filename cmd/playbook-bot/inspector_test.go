package main

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// inspector is the MCP Inspector, a client that shares no code with the SDK
// that the tools are made with.
const inspector = "@modelcontextprotocol/inspector@0.17.5"

// inspect gives a function that runs the Inspector's command line, or skips
// the test. With PLAYBOOK_BOT_REQUIRE_NODE=1 it fails instead.
func inspect(t *testing.T) func(args ...string) map[string]any {
	t.Helper()
	give := t.Skipf
	required := os.Getenv("PLAYBOOK_BOT_REQUIRE_NODE") == "1"
	if required {
		give = t.Fatalf
	}
	npx, err := exec.LookPath("npx")
	if err != nil {
		give("npx is not installed; the Inspector was not tried")
	}
	if testing.Short() && !required {
		t.Skip("-short: no packages are fetched")
	}
	dir := t.TempDir()
	run := func(args ...string) ([]byte, error) {
		ctx, stop := context.WithTimeout(t.Context(), 3*time.Minute)
		defer stop()
		cmd := exec.CommandContext(ctx, npx, append([]string{"--yes", "--prefer-offline", inspector}, args...)...)
		cmd.Dir = dir
		return cmd.Output()
	}
	if _, err := run("--cli", "--help"); err != nil {
		give("npx %s: %v", inspector, err)
	}
	return func(args ...string) map[string]any {
		t.Helper()
		out, err := run(append([]string{"--cli"}, args...)...)
		if err != nil {
			t.Fatalf("inspector %v: %v\n%s", args[len(args)-2:], err, out)
		}
		var answer map[string]any
		if err := json.Unmarshal(out, &answer); err != nil {
			t.Fatalf("inspector: not JSON: %v\n%s", err, out)
		}
		return answer
	}
}

// TestInspector files through /mcp and asks over stdio, with a foreign client.
func TestInspector(t *testing.T) {
	call := inspect(t)
	g := newFakeGitea(t)
	s := startServe(t, toolEnv(t, g))
	g.addHook(s.url)
	http := []string{s.url + "/mcp", "--transport", "http", "--header", "Authorization: Bearer " + rheasToken}
	tools, _ := call(append(http, "--method", "tools/list")...)["tools"].([]any)
	if len(tools) != 10 {
		t.Errorf("%d tools over HTTP, want 10", len(tools))
	}
	answer := call(append(http, "--method", "tools/call", "--tool-name", "request_mcp_restart",
		"--tool-arg", "action=full_mcp_restart", "--tool-arg", "file_in=ops/incidents", "--tool-arg", "target=mcp-search")...)
	d, _ := answer["structuredContent"].(map[string]any)
	filed, _ := d["filed"].(map[string]any)
	if d["code"] != "class_matrix_denied" || filed["issue"] != "ops/incidents#1" || answer["isError"] == true {
		t.Errorf("filed: %v", answer)
	}
	if i := g.Issue("ops/incidents", 1); i.Author.Login != "playbook-bot" || !strings.Contains(i.Body, "`rhea`") {
		t.Errorf("the issue: %+v", i)
	}

	binary := filepath.Join(t.TempDir(), "playbook-bot")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", binary, ".").CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	answer = call(binary, "mcp", "--method", "tools/call", "--tool-name", "recommend_actions", "--tool-arg", `symptoms=["session_expired"]`)
	d, _ = answer["structuredContent"].(map[string]any)
	if d["next"] == nil || d["next"] == "" {
		t.Errorf("recommended over stdio: %v", answer)
	}
}
