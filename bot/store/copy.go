package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
)

// ErrNotEmpty: the database to copy to holds something already.
var ErrNotEmpty = errors.New("the database to copy to is not empty")

// copyGroup is how many rows CopyTo holds in memory.
const copyGroup = 160

// table is one to copy, parents before children. The columns' kinds are
// (i)nteger, (t)ext, truth (v)alue, (b)ytes and (n)ullable bytes.
type table struct {
	name    string
	columns []column
	// id is the column whose values the database makes up, if any.
	id string
}

type column struct {
	name string
	kind byte
}

func columns(spec string) (cols []column) {
	for _, f := range strings.Fields(spec) {
		name, kind, _ := strings.Cut(f, ":")
		cols = append(cols, column{name, kind[0]})
	}
	return cols
}

var tables = []table{
	{name: "repos", columns: columns("forge:t repo:i owner:t owner_id:i name:t seen_at:i")},
	{name: "threads", id: "id", columns: columns("id:i forge:t repo:i number:i pull:v state:n due:i open:v max_comment:i " +
		"wake_at:i owner:t lease_until:i fence:i loaded:i")},
	{name: "seen", columns: columns("forge:t repo:i kind:t object:i")},
	{name: "attested", columns: columns("forge:t repo:i kind:t object:i sha:b")},
	{name: "events", id: "id", columns: columns("id:i thread:i kind:t object:i action:t ord:i sender_id:i sender_login:t " +
		"author_id:i author_login:t body_sha:b source:t delivery:t received_at:i status:t tries:i next_at:i note:t ended_at:i")},
	{name: "objects", columns: columns("thread:i kind:t id:i author_id:i author_login:t original_author:t body_sha:b " +
		"created_at:i updated_at:i deleted:v keep:v data:n")},
	{name: "answers", columns: columns("thread:i key:t body:t trigger_kind:t trigger_id:i account:i low:v status:t after_id:i " +
		"deadline:i next_at:i tries:i comment_id:i created_at:i note:t")},
	{name: "audit", columns: columns("thread:i chain:i seq:i at:i entry:b prev:b hash:b")},
	{name: "filings", columns: columns("key:t forge:t repo:i account:i nth:i kind:t number:i object:i question:t status:t claimed_at:i deadline:i")},
	{name: "meta", columns: columns("key:t value:t")},
}

// CopyTo copies everything from one opened database to another, of whatever
// kinds, in one transaction. The destination must be empty (ErrNotEmpty). No
// bot should be serving either: what the source takes in meanwhile is not
// copied. Leases are copied as they are; they end by themselves, or when the
// destination is opened to serve.
func CopyTo(ctx context.Context, src, dst Store) error {
	from, ok := src.(*ledger)
	if !ok {
		return errors.New("copy the database: the source was not opened by this package")
	}
	to, ok := dst.(*ledger)
	if !ok {
		return errors.New("copy the database: the destination was not opened by this package")
	}
	err := from.e.snapshot(ctx, func(r runner) error {
		return to.e.longTx(ctx, func(tx runner) error { return to.copyAll(ctx, r, tx) })
	})
	if err != nil {
		return fmt.Errorf("copy the database: %w", err)
	}
	to.signal()
	return nil
}

func (l *ledger) copyAll(ctx context.Context, from, tx runner) error {
	for _, t := range tables {
		if err := t.mustBeEmpty(ctx, tx); err != nil {
			return err
		}
	}
	for _, t := range tables {
		if err := t.copy(ctx, from, tx); err != nil {
			return fmt.Errorf("%s: %w", t.name, err)
		}
		if t.id == "" {
			continue
		}
		if err := l.e.continueIDs(ctx, tx, t.name, t.id); err != nil {
			return fmt.Errorf("%s: %w", t.name, err)
		}
	}
	return l.e.announce(ctx, tx)
}

func (t table) mustBeEmpty(ctx context.Context, tx runner) error {
	var full bool
	if err := tx.one(ctx, `SELECT EXISTS (SELECT 1 FROM `+t.name+`)`, nil, &full); err != nil {
		return fmt.Errorf("%s: %w", t.name, err)
	}
	if full {
		return ErrNotEmpty
	}
	return nil
}

// names are the columns, for a statement.
func (t table) names() string {
	names := make([]string, len(t.columns))
	for i, c := range t.columns {
		names[i] = c.name
	}
	return strings.Join(names, ", ")
}

func (t table) copy(ctx context.Context, r, tx runner) error {
	var group [][]any
	flush := func() error {
		err := tx.values(ctx, `INSERT INTO `+t.name+` (`+t.names()+`) VALUES `, `(`+marks(len(t.columns))+`)`, ``, group, nil)
		group = group[:0]
		return err
	}
	err := r.each(ctx, func(rows *sql.Rows) error {
		values, err := t.scan(rows)
		if err != nil {
			return err
		}
		if group = append(group, values); len(group) < copyGroup {
			return nil
		}
		return flush()
	}, `SELECT `+t.names()+` FROM `+t.name+` ORDER BY 1, 2`)
	if err != nil {
		return err
	}
	return flush()
}

// scan reads a row into values that either database takes.
func (t table) scan(rows *sql.Rows) ([]any, error) {
	dest := make([]any, len(t.columns))
	for i, c := range t.columns {
		switch c.kind {
		case 'i':
			dest[i] = new(sql.NullInt64)
		case 't':
			dest[i] = new(string)
		case 'v':
			dest[i] = new(bool)
		default:
			dest[i] = new([]byte)
		}
	}
	if err := rows.Scan(dest...); err != nil {
		return nil, err
	}
	values := make([]any, len(dest))
	for i, d := range dest {
		switch v := d.(type) {
		case *sql.NullInt64:
			values[i] = *v
		case *string:
			values[i] = *v
		case *bool:
			values[i] = *v
		case *[]byte:
			values[i] = *v
			if t.columns[i].kind == 'b' {
				values[i] = notNil(*v) // SQLite's driver reads an empty value as nil
			}
		}
	}
	return values, nil
}
