package main

import "github.com/spf13/cobra"

// commands lists the subcommands, each group in the order of its use.
func (a *app) commands() []*cobra.Command {
	return []*cobra.Command{
		a.assess(), a.recommend(), a.ladder(), a.metrics(), a.impact(), a.explain(), a.playbookCommand(), a.probe(), a.mcp(),
		a.serve(), a.setup(), a.doctor(), a.hookSecret(), a.approval(), a.audit(), a.dead(), a.db(), a.migrate(), a.replay(), a.version(),
	}
}
