//go:build unix

package main

import (
	"testing"

	"playbook-bot/bot/forge/forgetest/conformance"
)

// TestConformance runs the adapter's own suite, which the root's tests run on
// the fake forge, on the real Gitea.
func TestConformance(t *testing.T) {
	conformance.Run(t, conformance.Remote(t, box.gitea.URL, tokenOf(t, "operator"), nil))
}
