//go:build !failpoints

package main

import (
	"bytes"
	"os"
	"strings"
	"testing"
)

// TestNoFailpoints: an ordinary build ends itself on nobody's order, and does
// not even know the variable's name. This test's own binary is one.
func TestNoFailpoints(t *testing.T) {
	// In pieces, or the name would be found in this test itself.
	name := strings.Join([]string{"PLAYBOOK", "BOT", "FAILPOINT"}, "_")
	t.Setenv(name, "accepting")
	if failpoint() != nil {
		t.Error("an ordinary build obeys a failpoint")
	}
	path, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	program, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Contains(program, []byte(name)) {
		t.Errorf("an ordinary build holds %s", name)
	}
	if !bytes.Contains(program, []byte("GITEA_BREAKGLASS_RESTART_AUTHORIZATION")) {
		t.Error("the search finds nothing at all")
	}
}
