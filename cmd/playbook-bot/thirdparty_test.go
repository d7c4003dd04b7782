package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const thirdPartyHead = `# Other people's work in playbook-bot

The program contains these Go modules, under their own licences. The full
texts are in each module's source, as ` + "`go mod download`" + ` fetches it. Made by
` + "`go test ./cmd/playbook-bot -run TestThirdParty -update`" + `; a test fails when it
is out of date. Windows builds also contain github.com/inconshreveable/mousetrap
(Apache-2.0). Go's own library is under BSD-3-Clause, © The Go Authors.

| module | licence | copyright |
|---|---|---|
`

// TestThirdParty holds THIRD_PARTY.md to what is linked into the program.
func TestThirdParty(t *testing.T) {
	golden(t, "../../THIRD_PARTY.md", thirdPartyHead+thirdPartyRows(t))
}

func thirdPartyRows(t *testing.T) string {
	t.Helper()
	cmd := exec.Command("go", "list", "-deps", "-f", "{{with .Module}}{{if not .Main}}{{.Path}}\t{{.Dir}}{{end}}{{end}}", ".")
	// One platform, so that the list is the same wherever the test runs.
	cmd.Env = append(os.Environ(), "GOOS=linux", "GOARCH=amd64", "CGO_ENABLED=0")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v\n%s", err, &stderr)
	}
	lines := strings.Fields(strings.ReplaceAll(string(out), "\t", "|"))
	slices.Sort(lines)
	var b strings.Builder
	for _, line := range slices.Compact(lines) {
		module, dir, _ := strings.Cut(line, "|")
		licence, holders := licenceOf(t, dir)
		if licence == "" {
			t.Errorf("%s: no licence this test knows; look at it, and add it or do without the module", module)
		}
		fmt.Fprintf(&b, "| %s | %s | %s |\n", module, licence, holders)
	}
	return b.String()
}

// licences are told by a phrase that only they have.
var licences = []struct{ name, phrase string }{
	{"Apache-2.0", "Apache License"},
	{"MPL-2.0", "Mozilla Public License Version 2.0"},
	{"MPL-2.0", "Mozilla Public License, version 2.0"},
	{"BSD-3-Clause", "Neither the name of"},
	{"BSD-2-Clause", "Redistributions in binary form"},
	{"MIT", "Permission is hereby granted, free of charge"},
	{"ISC", "Permission to use, copy, modify, and/or distribute this software"},
}

func licenceOf(t *testing.T, dir string) (names, holders string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "[LNC][IOo]*"))
	if err != nil {
		t.Fatal(err)
	}
	var found, who []string
	for _, f := range files {
		upper := strings.ToUpper(filepath.Base(f))
		if !strings.HasPrefix(upper, "LICEN") && !strings.HasPrefix(upper, "COPYING") && !strings.HasPrefix(upper, "NOTICE") {
			continue
		}
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		text := strings.Join(strings.Fields(string(b)), " ")
		for _, l := range licences {
			if strings.Contains(text, l.phrase) && !slices.Contains(found, l.name) {
				// A 3-clause text contains the phrase of the 2-clause one.
				if l.name != "BSD-2-Clause" || !strings.Contains(text, "Neither the name of") {
					found = append(found, l.name)
				}
			}
		}
		for line := range strings.Lines(string(b)) {
			line = strings.Trim(strings.TrimSpace(line), "#*-. ")
			if (strings.HasPrefix(line, "Copyright ") || strings.Contains(line, "Copyright (c) ")) && strings.ContainsAny(line, "0123456789©") && !strings.Contains(line, "[yyyy]") && !slices.Contains(who, line) {
				who = append(who, line)
			}
		}
	}
	return strings.Join(found, ", "), strings.ReplaceAll(strings.Join(who, "; "), "|", `\|`)
}
