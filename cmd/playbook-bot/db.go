package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"playbook-bot/bot/store"
)

func (a *app) db() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "db copy|backup|reread|prune",
		GroupID: groupBot,
		Short:   "Copy the database to another one, back it up, put a backup back, or drop what is old",
		Long: `db is for what is done to the bot's database as a whole: moving it from SQLite
to PostgreSQL or back (copy), saving a SQLite database while the bot runs
(backup), putting a backup back (reread), and dropping finished events now
instead of at the next hour (prune).

The database may also be lost: the bot restores requests, attempts and what was
answered from the threads. What is lost for good then is the audit log.`,
		Example: `  playbook-bot db copy sqlite:data/playbook-bot.db -
  playbook-bot db backup /backup/playbook-bot.db
  playbook-bot db reread
  playbook-bot db prune`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return usagef("there is no %q: want copy, backup, reread or prune", args[0])
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(a.dbCopy(), a.dbBackup(), a.dbReread(), a.dbPrune())
	return cmd
}

func (a *app) dbCopy() *cobra.Command {
	return &cobra.Command{
		Use:   "copy SRC DST",
		Short: "Copy everything from one database to another, empty one",
		Long: `copy copies all of the bot's database SRC to DST, which must be empty; a SQLite
file or a schema that is missing there is made. Both are written as in
DATABASE_URL: sqlite:PATH or postgres://HOST/NAME; "-" is DATABASE_URL itself
(or its file), so that a password need not stand on a command line.

Stop every bot first: what SRC takes in meanwhile is not copied. On SQLite that
is made sure of; on PostgreSQL only a thread in some worker's hands is noticed.
SRC must have the schema of this version (playbook-bot migrate). It is left as
it is.`,
		Example: `  DATABASE_URL=postgres://bot@db.example.org/bot playbook-bot db copy sqlite:data/playbook-bot.db -
  playbook-bot db copy - sqlite:back-again.db`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 2 {
				return usagef("want SRC and DST, such as sqlite:data/playbook-bot.db and - for DATABASE_URL")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error { return a.runDBCopy(cmd.Context(), args[0], args[1]) },
	}
}

// databaseArg reads an argument as DATABASE_URL is read. It never repeats it:
// it may hold a password.
func (a *app) databaseArg(name, arg string) (string, error) {
	if arg == "-" {
		s, err := loadConfig(a.environ, nil, "DATABASE_URL")
		if err != nil {
			return "", err
		}
		return s.Database, nil
	}
	if err := checkDatabase(arg); err != nil {
		return "", usagef("%s %s, or be - for DATABASE_URL", name, err)
	}
	return arg, nil
}

func (a *app) runDBCopy(ctx context.Context, srcArg, dstArg string) (err error) {
	srcURL, err := a.databaseArg("SRC", srcArg)
	if err != nil {
		return err
	}
	dstURL, err := a.databaseArg("DST", dstArg)
	if err != nil {
		return err
	}
	release, err := store.Idle(ctx, srcURL)
	if err != nil {
		return fmt.Errorf("copy from %s: %w", store.Describe(srcURL), err)
	}
	defer func() { err = errors.Join(err, release()) }()
	src, err := store.Open(ctx, srcURL, store.Options{Offline: true})
	if err != nil {
		return fmt.Errorf("open %s: %w", store.Describe(srcURL), err)
	}
	defer func() { _ = src.Close() }()
	dst, err := store.Open(ctx, dstURL, store.Options{})
	if err != nil {
		return fmt.Errorf("open %s: %w", store.Describe(dstURL), err)
	}
	defer func() { err = errors.Join(err, dst.Close()) }()
	if err := store.CopyTo(ctx, src, dst); err != nil {
		return fmt.Errorf("from %s to %s: %w", store.Describe(srcURL), store.Describe(dstURL), err)
	}
	s, err := dst.Stats(ctx)
	if err != nil {
		return err
	}
	fmt.Fprintf(a.stdout, "copied %s to %s: %d events wait, %d answers are open\n",
		store.Describe(srcURL), store.Describe(dstURL), s.Waiting, s.OpenAnswers)
	return nil
}

func (a *app) dbBackup() *cobra.Command {
	return &cobra.Command{
		Use:   "backup FILE",
		Short: "Write a consistent copy of the SQLite database to a new file, beside the running bot",
		Long: `backup writes a consistent copy of the SQLite database of DATABASE_URL to FILE,
which must not exist, readable by its owner only. The bot may be running. To use
the copy, stop the bot, put it in the database's place, and run
"playbook-bot db reread".

For PostgreSQL use pg_dump.`,
		Example: `  playbook-bot db backup /backup/playbook-bot.db`,
		Args:    oneArg("FILE", "the new file to write"),
		RunE: func(cmd *cobra.Command, args []string) error {
			s, err := loadConfig(a.environ, nil, "DATABASE_URL")
			if err != nil {
				return err
			}
			err = store.Backup(cmd.Context(), s.Database, args[0])
			if errors.Is(err, store.ErrNotSQLite) {
				return fmt.Errorf("%w: use pg_dump", err)
			}
			if err == nil {
				fmt.Fprintf(a.stdout, "%s backed up to %s\n", store.Describe(s.Database), args[0])
			}
			return err
		},
	}
}

func (a *app) dbReread() *cobra.Command {
	return &cobra.Command{
		Use:   "reread",
		Short: "After a backup was put back: have every thread read again",
		Long: `reread is for a database of DATABASE_URL that was put back from a backup, before
the bot is started on it. What the bot answered after the backup was made is in
the threads and not in the database: started as it is, it would answer again.

It drops all that can be read from the threads, and keeps what cannot: the audit
log, and whose words a text is. The bot, started, goes through all threads as
after a lost database: nothing is answered a second time, every attempt and
request is known, no earlier approval stands, and each audit log goes on in a
new chain that names the last entry its thread knows of.

Every bot must be stopped. On SQLite that is made sure of; on PostgreSQL only a
thread in some worker's hands is noticed.`,
		Example: `  playbook-bot db reread`,
		Args:    noArg,
		RunE:    func(cmd *cobra.Command, _ []string) error { return a.runDBReread(cmd.Context()) },
	}
}

func (a *app) runDBReread(ctx context.Context) (err error) {
	s, err := loadConfig(a.environ, nil, "DATABASE_URL")
	if err != nil {
		return err
	}
	release, err := store.Idle(ctx, s.Database)
	if err != nil {
		return fmt.Errorf("read the threads of %s again: %w", store.Describe(s.Database), err)
	}
	defer func() { err = errors.Join(err, release()) }()
	db, err := store.Open(ctx, s.Database, store.Options{Offline: true})
	if err != nil {
		return fmt.Errorf("open the database of DATABASE_URL: %w", err)
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	n, err := db.Reread(ctx)
	if err != nil {
		return err
	}
	fmt.Fprintf(a.stdout, "%s will be read again\n", count(int(n), "thread", "threads"))
	return nil
}

func (a *app) dbPrune() *cobra.Command {
	var age time.Duration
	cmd := &cobra.Command{
		Use:   "prune",
		Short: "Drop finished events, and the texts of answers, older than RETAIN",
		Long: `prune drops the events that were finished longer than RETAIN ago, and the texts
of answers posted or given up longer ago than that. The running bot does the
same every hour; both may run at once.

What was seen, whose words a text is, dead events and the audit log are never
dropped: without them the bot would answer twice, or trust what it must not.`,
		Example: `  playbook-bot db prune
  playbook-bot db prune --older-than 720h`,
		Args: noArg,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.runDBPrune(cmd.Context(), age) },
	}
	cmd.Flags().DurationVar(&age, "older-than", 0, "age, such as 720h for 30 days; default: RETAIN")
	return cmd
}

func (a *app) runDBPrune(ctx context.Context, age time.Duration) error {
	if age < 0 {
		return usagef("--older-than must be longer than nothing")
	}
	s, db, err := a.database(ctx, "RETAIN")
	if err != nil {
		return err
	}
	defer func() { _ = db.Close() }()
	if age == 0 {
		age = s.Retain
	}
	now, err := db.Now(ctx)
	if err != nil {
		return err
	}
	n, err := db.Prune(ctx, now.Add(-age))
	if err != nil {
		return fmt.Errorf("drop what is older than %s: %w", age, err)
	}
	fmt.Fprintf(a.stdout, "dropped %s finished before %s\n", count(int(n), "event", "events"), utc(now.Add(-age)))
	return nil
}

// database opens DATABASE_URL beside the bot that may be serving it, with
// what else the command uses of the configuration.
func (a *app) database(ctx context.Context, uses ...string) (*settings, store.Store, error) {
	s, err := loadConfig(a.environ, nil, append([]string{"DATABASE_URL"}, uses...)...)
	if err != nil {
		return nil, nil, err
	}
	db, err := store.Open(ctx, s.Database, store.Options{Offline: true})
	if err != nil {
		return nil, nil, fmt.Errorf("open the database of DATABASE_URL: %w", err)
	}
	return s, db, nil
}
