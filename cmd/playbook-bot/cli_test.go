package main

import (
	"bytes"
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// cli runs one command line in an empty environment.
func cli(t *testing.T, stdin string, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	code = run(context.Background(), args, map[string]string{}, strings.NewReader(stdin), &out, &errs)
	return code, out.String(), errs.String()
}

func TestWithoutArguments(t *testing.T) {
	code, out, _ := cli(t, "")
	if code != exitOK {
		t.Errorf("exit %d", code)
	}
	for _, want := range []string{"GITEA_URL", "GITEA_TOKEN", "PLAYBOOK_SECRET", "REPOSITORIES", "playbook-bot setup", "playbook-bot doctor", "deploy/sandbox"} {
		if !strings.Contains(out, want) {
			t.Errorf("says nothing of %s", want)
		}
	}
	for _, cmd := range (&app{}).commands() {
		if !strings.Contains(out, "\n  "+cmd.Name()+" ") {
			t.Errorf("does not name %s", cmd.Name())
		}
	}
}

// TestHelpDoesWithoutTheReadme asks of every subcommand's help what a user
// with nothing else needs.
func TestHelpDoesWithoutTheReadme(t *testing.T) {
	for _, cmd := range (&app{}).commands() {
		t.Run(cmd.Name(), func(t *testing.T) {
			code, out, errs := cli(t, "", cmd.Name(), "--help")
			if code != exitOK || errs != "" {
				t.Fatalf("exit %d, %s", code, errs)
			}
			if len(cmd.Long) < 100 || cmd.Short == "" {
				t.Errorf("is too short to do without the README")
			}
			if !strings.Contains(out, "Examples:\n  playbook-bot "+cmd.Name()) {
				t.Errorf("has no example")
			}
			if !strings.Contains(out, "--playbook FILE") {
				t.Errorf("does not take --playbook")
			}
			for line := range strings.Lines(cmd.Long + "\n" + cmd.Example) {
				if len([]rune(line)) > 90 {
					t.Errorf("is too wide for a terminal: %q", line)
				}
			}
		})
	}
}

// TestExamplesParse runs the parser, and nothing else, over every example.
func TestExamplesParse(t *testing.T) {
	for _, cmd := range (&app{}).commands() {
		joined := strings.ReplaceAll(cmd.Example, "\\\n", " ")
		for line := range strings.Lines(joined) {
			line, _, _ = strings.Cut(strings.TrimSpace(line), " | ")
			line, _, _ = strings.Cut(line, " < ")
			line, _, _ = strings.Cut(line, " && ")
			_, line, ok := strings.Cut(line, "playbook-bot ")
			if !ok {
				continue
			}
			root := (&app{}).root()
			dontRun(root)
			root.SetArgs(strings.Fields(line))
			if err := root.Execute(); err != nil {
				t.Errorf("%s: %v", line, err)
			}
		}
	}
}

// dontRun takes their work away from a command and all below it.
func dontRun(cmd *cobra.Command) {
	for _, c := range cmd.Commands() {
		c.RunE = func(*cobra.Command, []string) error { return nil }
		dontRun(c)
	}
}

// TestDecisionHasEveryField holds the JSON of assess to the published schema.
func TestDecisionHasEveryField(t *testing.T) {
	for _, args := range [][]string{
		{"assess", "full_mcp_restart", "--json"},
		{"assess", "no_such_thing", "--json"},
		{"assess", "client_reconnect", "--standing", "admin", "--json"},
	} {
		_, out, _ := cli(t, "", args...)
		var got map[string]any
		if err := json.Unmarshal([]byte(out), &got); err != nil {
			t.Fatalf("%v: %v", args, err)
		}
		for _, name := range strings.Fields(`schema request answers_comment state verdict allowed code action target rung
			requester endorser standing reasons missing next attempt_log_required attempt_log_satisfied counted ignored
			rejections unknown_symptoms break_glass matrix contaminated approved_until retry_after_s playbook decided_at audit`) {
			v, ok := got[name]
			if !ok {
				t.Errorf("%v: %s is missing", args, name)
			}
			switch name {
			case "reasons", "missing", "counted", "ignored", "rejections", "unknown_symptoms":
				if v == nil {
					t.Errorf("%v: %s is null, not a list", args, name)
				}
			}
		}
	}
}

func TestTerminalIsNotRepainted(t *testing.T) {
	code, out, _ := cli(t, `{"action":"client_reconnect","outcome":"failed","actor":"ada\u001b[2J\u202e","reason":"a\u0007b\nc","target":"x\ny"}`,
		"assess", "full_mcp_restart", "--standing", "admin", "--attempts", "-")
	if code != exitOK {
		t.Errorf("exit %d:\n%s", code, out)
	}
	for _, bad := range []string{"\x1b", "\x07", "\u202e", "c\n"} {
		if strings.Contains(out, bad) {
			t.Errorf("the output holds %q:\n%s", bad, out)
		}
	}
}

// TestCompletion: every shell's script is there, and knows the commands' words.
func TestCompletion(t *testing.T) {
	for _, shell := range []string{"bash", "zsh", "fish", "powershell"} {
		if code, out, errs := cli(t, "", "completion", shell); code != exitOK || len(out) < 1000 || errs != "" {
			t.Errorf("%s: exit %d, %d bytes, %s", shell, code, len(out), errs)
		}
	}
	for line, want := range map[string]string{"do": "doctor", "setup --dry": "--dry-run", "assess full": "full_mcp_restart"} {
		code, out, _ := cli(t, "", append([]string{"__complete"}, strings.Fields(line)...)...)
		if code != exitOK || !strings.Contains("\n"+out, "\n"+want) {
			t.Errorf("%q is completed to %q", line, out)
		}
	}
}
