package store

import (
	"context"
	"database/sql"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Every query exists once, in the SQL both databases share, with three marks:
//
//	?           the next argument
//	{now}       the database's clock, in milliseconds
//	{lock}      FOR UPDATE, where the database has it
//	{skip}      FOR UPDATE SKIP LOCKED, likewise
//
// SQLite needs neither lock: its writing transactions exclude each other.
type dialect struct {
	// numbered: arguments are $1, $2, … instead of ?, and may be arrays.
	numbered bool
	// clock is the SQL of {now}; where empty, {now} is an argument taken from
	// the process's clock.
	clock      string
	lock, skip string
	now        func() time.Time

	texts sync.Map // query as written → *text
}

// text is a query in a database's own words.
type text struct {
	sql string
	// args holds, for every argument, which of the caller's it is, -1: now.
	args []int
}

func (d *dialect) text(query string) *text {
	if t, ok := d.texts.Load(query); ok {
		return t.(*text)
	}
	t, _ := d.texts.LoadOrStore(query, d.translate(query))
	return t.(*text)
}

func (d *dialect) translate(query string) *text {
	query = strings.NewReplacer("{lock}", d.lock, "{skip}", d.skip).Replace(query)
	var b strings.Builder
	t := &text{}
	arg := func(caller int) {
		t.args = append(t.args, caller)
		if d.numbered {
			b.WriteString("$" + strconv.Itoa(len(t.args)))
		} else {
			b.WriteByte('?')
		}
	}
	next := 0
	for query != "" {
		switch {
		case query[0] == '?':
			arg(next)
			next++
			query = query[1:]
		case strings.HasPrefix(query, "{now}"):
			if d.clock != "" {
				b.WriteString(d.clock)
			} else {
				arg(-1)
			}
			query = query[len("{now}"):]
		default:
			b.WriteByte(query[0])
			query = query[1:]
		}
	}
	t.sql = b.String()
	return t
}

// bind puts the caller's arguments in the query's order.
func (d *dialect) bind(t *text, args []any) []any {
	if d.clock != "" {
		return args
	}
	out := make([]any, len(t.args))
	for i, a := range t.args {
		if a < 0 {
			out[i] = millis(d.now())
		} else {
			out[i] = args[a]
		}
	}
	return out
}

// querier is what sql.DB, sql.Tx and a pinned SQLite connection share.
type querier interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

// runner runs queries in the words of a dialect.
type runner struct {
	d *dialect
	q querier
	// limit bounds each statement, with the reading of its rows; 0: nothing
	// does.
	limit time.Duration
}

func (r runner) bound(ctx context.Context) (context.Context, context.CancelFunc) {
	if r.limit == 0 {
		return ctx, func() {}
	}
	return context.WithTimeout(ctx, r.limit)
}

// exec returns how many rows were changed.
func (r runner) exec(ctx context.Context, query string, args ...any) (int64, error) {
	ctx, cancel := r.bound(ctx)
	defer cancel()
	t := r.d.text(query)
	res, err := r.q.ExecContext(ctx, t.sql, r.d.bind(t, args)...)
	if err != nil {
		return 0, err
	}
	return res.RowsAffected()
}

// each calls scan for every row.
func (r runner) each(ctx context.Context, scan func(*sql.Rows) error, query string, args ...any) error {
	ctx, cancel := r.bound(ctx)
	defer cancel()
	t := r.d.text(query)
	rows, err := r.q.QueryContext(ctx, t.sql, r.d.bind(t, args)...)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		if err := scan(rows); err != nil {
			return err
		}
	}
	if err := rows.Err(); err != nil {
		return err
	}
	return rows.Close()
}

// args are the arguments of a query, where results follow them.
type args []any

// one scans the only row there is; ErrNotFound where there is none.
func (r runner) one(ctx context.Context, query string, a args, dest ...any) error {
	found := false
	err := r.each(ctx, func(rows *sql.Rows) error {
		found = true
		return rows.Scan(dest...)
	}, query, a...)
	if err == nil && !found {
		return ErrNotFound
	}
	return err
}

// rows runs a statement over many rows of arguments, in which no value is NULL:
// head, then row as often as there are rows, then tail. On PostgreSQL, where a
// statement is a round trip, it is always one.
func (r runner) rows(ctx context.Context, head, row, tail string, rows [][]any, scan func(*sql.Rows) error) error {
	if !r.d.numbered {
		return r.values(ctx, head, row, tail, rows, scan)
	}
	if len(rows) == 0 {
		return nil
	}
	var picked, types, names []string
	for _, field := range strings.Split(strings.Trim(row, "()"), ", ") {
		if field == "?" {
			names = append(names, "c"+strconv.Itoa(len(names)))
			field = names[len(names)-1]
		}
		picked = append(picked, field)
	}
	columns := make([]any, len(names))
	for i := range names {
		var kind string
		if columns[i], kind = arrayOf(rows, i); kind == "" {
			return r.values(ctx, head, row, tail, rows, scan)
		}
		types = append(types, "?::"+kind+"[]")
	}
	query := strings.TrimSuffix(head, "VALUES ") + "SELECT " + strings.Join(picked, ", ") +
		" FROM unnest(" + strings.Join(types, ", ") + ") AS given(" + strings.Join(names, ", ") + ")" + tail
	return r.scanOrExec(ctx, scan, query, columns)
}

// arrayOf is one column of rows as an array, and what PostgreSQL calls its
// elements; "" where it is none of what our tables hold.
func arrayOf(rows [][]any, i int) (array any, kind string) {
	switch rows[0][i].(type) {
	case string:
		return elements[string](rows, i), "text"
	case int64:
		return elements[int64](rows, i), "bigint"
	case bool:
		return elements[bool](rows, i), "boolean"
	case []byte:
		return elements[[]byte](rows, i), "bytea"
	}
	return nil, ""
}

func elements[T any](rows [][]any, i int) []T {
	out := make([]T, len(rows))
	for n, row := range rows {
		out[n] = row[i].(T)
	}
	return out
}

// values is rows with every value an argument of its own. It takes a power of
// two of rows at a time, up to acceptGroup, so that there are seven statements
// to prepare and not one for every number, and few are needed for any.
func (r runner) values(ctx context.Context, head, row, tail string, rows [][]any, scan func(*sql.Rows) error) error {
	for len(rows) > 0 {
		n := 1
		for 2*n <= min(len(rows), acceptGroup) {
			n *= 2
		}
		var a []any
		for _, row := range rows[:n] {
			a = append(a, row...)
		}
		rows = rows[n:]
		query := head + strings.TrimSuffix(strings.Repeat(row+",", n), ",") + tail
		if err := r.scanOrExec(ctx, scan, query, a); err != nil {
			return err
		}
	}
	return nil
}

func (r runner) scanOrExec(ctx context.Context, scan func(*sql.Rows) error, query string, a []any) error {
	if scan == nil {
		_, err := r.exec(ctx, query, a...)
		return err
	}
	return r.each(ctx, scan, query, a...)
}

// engine is a database: how to open a transaction in it and how to read.
type engine interface {
	// inTx runs f in a writing transaction, committed where f returns nil.
	inTx(ctx context.Context, f func(runner) error) error
	// read runs statements that only read, outside transactions. Inside inTx
	// it would wait for itself.
	read(ctx context.Context, f func(runner) error) error
	// accepts is how many transactions of Accept may run side by side.
	accepts() int
	// announce tells other processes, when the transaction commits, that a
	// thread may have become due.
	announce(ctx context.Context, tx runner) error
	// longTx is inTx for as long as it takes.
	longTx(ctx context.Context, f func(runner) error) error
	// snapshot is read, for as long as it takes, where all statements see one state of the database.
	snapshot(ctx context.Context, f func(runner) error) error
	// continueIDs makes the ids the database gives continue after those that
	// were written into the column.
	continueIDs(ctx context.Context, tx runner, table, column string) error
	close() error
}

// inSQLTx runs f in a transaction of database/sql's, with a runner like r.
func inSQLTx(ctx context.Context, db *sql.DB, o *sql.TxOptions, r runner, f func(runner) error) error {
	tx, err := db.BeginTx(ctx, o)
	if err != nil {
		return fmt.Errorf("begin a transaction: %w", err)
	}
	defer func() { _ = tx.Rollback() }() // does nothing after a commit
	r.q = tx
	if err := f(r); err != nil {
		return err
	}
	if err := tx.Commit(); err != nil {
		return fmt.Errorf("commit: %w", err)
	}
	return nil
}

// millis is a time as it is stored: UTC milliseconds, 0 for the zero time.
func millis(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}

// orNever is a time that NULL stands for where it is zero.
func orNever(t time.Time) any {
	if t.IsZero() {
		return nil
	}
	return t.UnixMilli()
}

func fromMillis(ms int64) time.Time {
	if ms == 0 {
		return time.Time{}
	}
	return time.UnixMilli(ms).UTC()
}

// ceilMillis rounds up, so that a lease or deadline is never shorter than
// asked for.
func ceilMillis(d time.Duration) int64 {
	return int64((d + time.Millisecond - 1) / time.Millisecond)
}

// marks is "?,?,…", n of them.
func marks(n int) string { return strings.TrimSuffix(strings.Repeat("?,", n), ",") }
