package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"

	"playbook-bot/playbook"
)

// scriptNow is the clock in all scripts.
var scriptNow = time.Date(2026, 12, 1, 3, 4, 11, 0, time.UTC)

// TestScripts runs the command lines in testdata/*.txtar through the real
// root command. A section "> ARGS" is a command line (with "<FILE" at its end
// for standard input, and NAME=VALUE before it for the environment), holding
// what it prints: standard output, what stands on standard error behind
// "! ", and the exit status. All other sections are files; mcp.yaml is the
// embedded playbook.
func TestScripts(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("no scripts: %v", err)
	}
	for _, name := range files {
		abs, err := filepath.Abs(name)
		if err != nil {
			t.Fatal(err)
		}
		t.Run(strings.TrimSuffix(filepath.Base(name), ".txtar"), func(t *testing.T) { runScript(t, abs) })
	}
}

func runScript(t *testing.T, name string) {
	archive, err := txtar.ParseFile(name)
	if err != nil {
		t.Fatal(err)
	}
	own, err := os.ReadFile("../../playbook/mcp.yaml")
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(t.TempDir())
	if err := os.WriteFile("mcp.yaml", own, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, f := range archive.Files {
		if !strings.HasPrefix(f.Name, "> ") {
			if err := os.WriteFile(f.Name, f.Data, 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	for i, f := range archive.Files {
		line, ok := strings.CutPrefix(f.Name, "> ")
		if !ok {
			continue
		}
		got := runLine(t, line)
		if *update {
			archive.Files[i].Data = []byte(got)
		} else if diff := cmp.Diff(string(f.Data), got); diff != "" {
			t.Errorf("%s\n-want +got\n%s", line, diff)
		}
	}
	if *update {
		if err := os.WriteFile(name, txtar.Format(archive), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// runLine runs one command line and writes down all that comes of it.
func runLine(t *testing.T, line string) string {
	t.Helper()
	environ := map[string]string{}
	var args []string
	var stdin bytes.Buffer
	for _, word := range strings.Fields(line) {
		file, isIn := strings.CutPrefix(word, "<")
		key, value, isVar := strings.Cut(word, "=")
		switch {
		case isIn:
			b, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			stdin.Write(b)
		case isVar && len(args) == 0 && key == strings.ToUpper(key):
			environ[key] = value
		default:
			args = append(args, word)
		}
	}
	var stdout, stderr bytes.Buffer
	a := &app{environ: environ, stdin: &stdin, stdout: &stdout, stderr: &stderr, now: func() time.Time { return scriptNow }}
	code := a.run(context.Background(), args)
	var b strings.Builder
	b.Write(stdout.Bytes())
	for l := range strings.Lines(stderr.String()) {
		b.WriteString("! " + l)
	}
	fmt.Fprintf(&b, "exit %d\n", code)
	// A word changed in the playbook is no change to every answer.
	return strings.ReplaceAll(b.String(), playbook.Default().Identity().SHA256, "PLAYBOOK-SHA256")
}
