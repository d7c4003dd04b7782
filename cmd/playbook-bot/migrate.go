package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"playbook-bot/bot/store"
)

func (a *app) migrate() *cobra.Command {
	return &cobra.Command{
		Use:     "migrate",
		GroupID: groupBot,
		Short:   "Bring the database's schema up to date, without serving",
		Long: `migrate brings the schema of the database of DATABASE_URL up to date, and says
from which version to which. serve does the same at its start; migrate is for
those who want it to happen at a time of their own, before the new version
runs. A database of a newer playbook-bot is refused.

On SQLite the bot must be stopped first: one process at a time has the file.`,
		Example: `  playbook-bot migrate
  DATABASE_URL=sqlite:data/playbook-bot.db playbook-bot migrate`,
		Args: noArg,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.runMigrate(cmd.Context()) },
	}
}

func (a *app) runMigrate(ctx context.Context) error {
	s, err := loadConfig(a.environ, nil, "DATABASE_URL")
	if err != nil {
		return err
	}
	from, to, err := store.Migrate(ctx, s.Database)
	if err != nil {
		return fmt.Errorf("migrate %s: %w", store.Describe(s.Database), err)
	}
	if from == to {
		fmt.Fprintf(a.stdout, "%s is up to date, at version %d\n", store.Describe(s.Database), to)
	} else {
		fmt.Fprintf(a.stdout, "%s brought from version %d to %d\n", store.Describe(s.Database), from, to)
	}
	return nil
}
