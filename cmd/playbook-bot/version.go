package main

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// release is set by the linker for a release build (-X main.release=v1.2.3).
var release string

// version is the release, or what the build knows of its commit.
func version() string {
	if release != "" {
		return release
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	if v := info.Main.Version; v != "" && v != "(devel)" {
		return v
	}
	revision, dirty := "", ""
	for _, s := range info.Settings {
		switch {
		case s.Key == "vcs.revision":
			revision = s.Value[:min(12, len(s.Value))]
		case s.Key == "vcs.modified" && s.Value == "true":
			dirty = "+changes"
		}
	}
	if revision == "" {
		return "devel"
	}
	return "devel-" + revision + dirty
}

func (a *app) version() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:     "version",
		GroupID: groupBot,
		Short:   "Print the version of the program and of the playbook it goes by",
		Long: `version prints what was built, with which Go, and which playbook it goes by:
its name and the SHA-256 that every decision names.`,
		Example: `  playbook-bot version
  playbook-bot version --playbook pods.yaml --json`,
		Args: noArg,
		RunE: func(*cobra.Command, []string) error {
			p, err := a.book()
			if err != nil {
				return err
			}
			if asJSON {
				return a.printJSON(map[string]any{"version": version(), "go": runtime.Version(), "platform": runtime.GOOS + "/" + runtime.GOARCH, "playbook": p.Identity()})
			}
			fmt.Fprintf(a.stdout, "playbook-bot %s (%s, %s/%s)\nplaybook %s, sha256 %s\n", version(), runtime.Version(), runtime.GOOS, runtime.GOARCH, p.Identity().Name, p.Identity().SHA256)
			return nil
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, `print {"version", "go", "platform", "playbook"}`)
	return cmd
}
