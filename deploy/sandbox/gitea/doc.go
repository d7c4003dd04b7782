// Package gitea is empty. Its module is what counts: it requires Gitea, whose
// main package the sandbox builds from here; see go.mod. As nothing imports a
// main package, `go mod tidy` would empty the module, and is not for it.
package gitea
