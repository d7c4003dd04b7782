//go:build unix

package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib" // the driver "pgx"
	_ "modernc.org/sqlite"             // the driver "sqlite"

	"playbook-bot/bot/store"
)

// historyIDs is where the ids of history begin: past those the fake forge gives
// out, and before those of deliveries.
const historyIDs = 500_000_000

// history is one table's part in n events that were finished over the last 80
// days, on threads of fifty comments: every tenth was answered, with a text of
// 1.5 KB and an entry in the audit log. {n} is the series 1…n, {blob N} N bytes,
// {ago x} x hours ago in milliseconds.
var history = []string{
	`INSERT INTO threads (forge, repo, number, pull, state, max_comment)
		SELECT 'gitea', 1, 500000 + n, FALSE, {blob 400}, 500000000 + n * 50 FROM {n / 50}`,
	`INSERT INTO seen (forge, repo, kind, object) SELECT 'gitea', 1, 'comment', 500000000 + n FROM {n}`,
	`INSERT INTO attested (forge, repo, kind, object, sha) SELECT 'gitea', 1, 'comment', 500000000 + n, {blob 32} FROM {n}`,
	`INSERT INTO events (thread, kind, object, action, ord, sender_id, sender_login, author_id, author_login, body_sha,
			source, delivery, received_at, status, next_at, ended_at)
		SELECT t.id, 'comment', 500000000 + n, 'created', 500000000 + n, 3, 'wren', 3, 'wren', {blob 32},
			'delivery', '53a1b12c-7e29-48e8-82ef-999e4bb23c7f', {ago n % 1920}, 'done', {ago n % 1920}, {ago n % 1920}
		FROM {n} JOIN threads t ON t.forge = 'gitea' AND t.repo = 1 AND t.number = 500001 + (n - 1) / 50`,
	`INSERT INTO objects (thread, kind, id, author_id, author_login, original_author, body_sha, created_at, updated_at, deleted, keep)
		SELECT t.id, 'comment', 500000000 + n, 3, 'wren', '', {blob 32}, {ago n % 1920}, {ago n % 1920}, FALSE, FALSE
		FROM {n} JOIN threads t ON t.forge = 'gitea' AND t.repo = 1 AND t.number = 500001 + (n - 1) / 50`,
	`INSERT INTO answers (thread, key, body, trigger_kind, trigger_id, account, low, status, after_id, deadline, next_at, tries,
			comment_id, created_at, note)
		SELECT t.id, 'answer:comment:' || (500000000 + n * 10), {text 1500}, 'comment', 500000000 + n * 10, 3, FALSE, 'posted', 0, 0, 0, 0,
			700000000 + n, {ago n % 1920}, ''
		FROM {n / 10} JOIN threads t ON t.forge = 'gitea' AND t.repo = 1 AND t.number = 500001 + (n * 10 - 1) / 50`,
	`INSERT INTO audit (thread, chain, seq, at, entry, prev, hash)
		SELECT t.id, 1, n, {ago n % 1920}, {blob 496}, {blob 32}, {blob 32}
		FROM {n / 10} JOIN threads t ON t.forge = 'gitea' AND t.repo = 1 AND t.number = 500001 + (n * 10 - 1) / 50`,
}

// fill makes a database at that URL with n events of history in it, and
// returns its size in bytes. No bot may be serving it.
func fill(ctx context.Context, url string, n int) (size int64, err error) {
	st, err := store.Open(ctx, url, store.Options{}) // makes the schema
	if err != nil {
		return 0, err
	}
	if err := st.Close(); err != nil {
		return 0, err
	}
	words, driver, source := sqliteWords, "sqlite", strings.TrimPrefix(url, "sqlite:")+"?_pragma=synchronous(0)"
	if strings.HasPrefix(url, "postgres:") {
		words, driver, source = postgresWords, "pgx", url
	}
	db, err := sql.Open(driver, source)
	if err != nil {
		return 0, fmt.Errorf("fill the database: %w", err)
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	db.SetMaxOpenConns(1)
	if n > 0 {
		if driver == "pgx" { // what is written here keeps every reference by itself
			if _, err := db.ExecContext(ctx, "SET session_replication_role = replica"); err != nil {
				return 0, fmt.Errorf("fill the database: %w", err)
			}
		}
		for _, text := range history {
			if _, err := db.ExecContext(ctx, words(text, n)); err != nil {
				return 0, fmt.Errorf("fill the database: %w", err)
			}
		}
	}
	if err := settle(ctx, db, driver, &size); err != nil || driver == "pgx" {
		return size, err
	}
	return size, syncFile(strings.TrimPrefix(url, "sqlite:"))
}

// syncFile brings to the disk what was written without: else the bot's first
// checkpoint waits for all of it.
func syncFile(path string) (err error) {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return fmt.Errorf("settle the database: %w", err)
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	return f.Sync()
}

// settle brings a database into the state in which one that grew slowly is:
// its log written back, its statistics taken.
func settle(ctx context.Context, db *sql.DB, driver string, size *int64) error {
	steps, measure := []string{"PRAGMA wal_checkpoint(TRUNCATE)"}, "SELECT page_count * page_size FROM pragma_page_count, pragma_page_size"
	if driver == "pgx" {
		steps, measure = []string{"VACUUM ANALYZE", "CHECKPOINT"}, "SELECT pg_database_size(current_database())"
	}
	for _, step := range steps {
		if _, err := db.ExecContext(ctx, step); err != nil {
			return fmt.Errorf("settle the database: %w", err)
		}
	}
	if err := db.QueryRowContext(ctx, measure).Scan(size); err != nil {
		return fmt.Errorf("measure the database: %w", err)
	}
	return nil
}

func sqliteWords(text string, n int) string {
	series := func(n int) string {
		return fmt.Sprintf("(WITH RECURSIVE s(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM s WHERE n < %d) SELECT n FROM s) AS s", n)
	}
	return inWords(text, n, series, "randomblob(%d)", "hex(zeroblob(%d / 2))")
}

func postgresWords(text string, n int) string {
	series := func(n int) string { return fmt.Sprintf("generate_series(1::bigint, %d) AS s(n)", n) }
	// Digests, which differ from row to row and come quickly.
	return inWords(text, n, series, "decode(repeat(md5(n::text), %d / 16), 'hex')", "repeat('0', %d)")
}

// inWords puts a database's own words for the marks of history.
func inWords(text string, n int, series func(int) string, blob, words string) string {
	r := []string{"{n}", series(n), "{n / 50}", series(max(n/50, 1)), "{n / 10}", series(max(n/10, 1)),
		"{ago n % 1920}", fmt.Sprintf("(%d - (n %% 1920) * 3600000)", time.Now().UnixMilli())}
	for _, size := range []int{32, 400, 496} {
		r = append(r, fmt.Sprintf("{blob %d}", size), fmt.Sprintf(blob, size))
	}
	r = append(r, "{text 1500}", fmt.Sprintf(words, 1500))
	return strings.NewReplacer(r...).Replace(text)
}
