//go:build !failpoints

package main

// failpoint is nothing: only a program built for crash tests, with -tags
// failpoints, ends itself on order (failpoint.go).
func failpoint() func(point string) { return nil }
