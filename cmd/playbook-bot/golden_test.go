package main

import (
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "rewrite golden files, and the generated parts of the documents")

// golden compares a file with what it should hold, or rewrites it.
func golden(t *testing.T, name, want string) {
	t.Helper()
	if *update {
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	have, err := os.ReadFile(name)
	if err != nil {
		t.Fatalf("%v (go test ./cmd/playbook-bot -update makes it)", err)
	}
	if diff := cmp.Diff(string(have), want); diff != "" {
		t.Errorf("%s is out of date (go test ./cmd/playbook-bot -update mends it):\n-file +should be\n%s", name, diff)
	}
}
