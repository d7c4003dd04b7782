//go:build unix

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

// grown is what was measured with a history in the database.
type grown struct {
	database string
	events   int
	size     int64 // bytes
	intake   measured
	answers  result
}

// growthTable has the rows of each database in order of their history, that
// without any first.
type growthTable struct{ rows []grown }

// lateForAll is when it is too late to fill a second database with the greatest
// history and still end in time: a busy machine takes a minute for it.
const lateForAll = 190 * time.Second

// growthRounds is how many times the rounds of load here are those of the
// intake: what is looked for is a tenth.
const growthRounds = 2

// growthAnswers is how many answers are timed with each history.
const growthAnswers = 80

// compareGrowth measures a database without a history, and one with a tenth of
// the greatest, and with the greatest, in turns.
func (b *bench) compareGrowth(ctx context.Context) (*growthTable, error) {
	t := &growthTable{}
	var errs []error
	kinds := map[string]func(n int) (string, error){
		"SQLite": func(n int) (string, error) { return b.sqlite(fmt.Sprintf("grown%d", n)), nil },
	}
	order := []string{"SQLite"}
	if b.postgres != nil {
		kinds["PostgreSQL"] = func(int) (string, error) { return b.postgres.NewDatabase(ctx) }
		order = append(order, "PostgreSQL")
	}
	for _, kind := range order {
		rows, err := b.growthOf(ctx, kind, kinds[kind])
		t.rows = append(t.rows, rows...)
		errs = append(errs, err)
	}
	return t, errors.Join(errs...)
}

func (b *bench) growthOf(ctx context.Context, kind string, newURL func(n int) (string, error)) (rows []grown, err error) {
	var urls []string
	sizes := []int{0, b.history / 10, b.history}
	if time.Since(b.begun) > lateForAll {
		b.saying("growth: too late for %s with %d events", kind, b.history)
		sizes = sizes[:2]
	}
	for _, n := range sizes {
		b.saying("growth: %s with %d events", kind, n)
		url, err := newURL(n)
		if err != nil {
			return nil, err
		}
		size, err := fill(ctx, url, n)
		if err != nil {
			return nil, fmt.Errorf("%s with %d events: %w", kind, n, err)
		}
		rows, urls = append(rows, grown{database: kind, events: n, size: size}), append(urls, url)
	}
	// Answers first: after the intake the queue holds what no forge knows of.
	b.saying("growth: answers on %s", kind)
	if err := b.growthAnswers(ctx, rows, urls); err != nil {
		return rows, err
	}
	b.saying("growth: intake of %s", kind)
	return rows, b.growthIntake(ctx, rows, urls)
}

func (b *bench) growthAnswers(ctx context.Context, rows []grown, urls []string) (err error) {
	var all []*rehearsal
	defer func() {
		for _, r := range all {
			err = errors.Join(err, r.close())
		}
	}()
	for _, url := range urls {
		r, err := b.rehearse(ctx, url)
		if err != nil {
			return err
		}
		all = append(all, r)
	}
	numbers := make([]int64, len(all))
	const warmUp = 4
	for i := range growthAnswers + warmUp {
		for k := range all {
			j := (i + k) % len(all) // nobody always comes after the same
			r := all[j]
			if i%answersPerThread == 0 {
				if numbers[j], err = r.forge.OpenIssue(admin, repoName, "thread", "Something is wrong."); err != nil {
					return err
				}
				if err := r.watch.quiet(ctx, settled/4); err != nil {
					return err
				}
			}
			took, err := r.say(ctx, admin, numbers[j], fmt.Sprintf("/assess full_mcp_restart target=service-%d", i))
			if err != nil {
				return err
			}
			if err := r.watch.quiet(ctx, settled/16); err != nil {
				return err
			}
			if i >= warmUp {
				rows[j].answers.latencies = append(rows[j].answers.latencies, took)
			}
		}
	}
	return nil
}

func (b *bench) growthIntake(ctx context.Context, rows []grown, urls []string) error {
	var all []*contender
	defer func() {
		for _, c := range all {
			c.proc.Kill()
		}
	}()
	for i, url := range urls {
		c, err := b.intake(ctx, fmt.Sprint(rows[i].events), b.binary, url)
		if err != nil {
			return err
		}
		all = append(all, c)
		if r := send(ctx, c.to, burst{conns: atConns, time: b.round}); r.failed > 0 {
			return fmt.Errorf("warm up with %d events: %w\n%s", rows[i].events, r.firstFailure, c.proc.Tail(8))
		}
	}
	got := b.inTurns(ctx, all, atConns, growthRounds*b.rounds)
	for i, c := range all {
		rows[i].intake = got[c.name]
	}
	return nil
}

func (t *growthTable) print(out io.Writer) {
	fmt.Fprintf(out, "\nGrowth: intake at %d connections, and answers on the fake forge, with a history\n", atConns)
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "database\tevents\tsize\teach\tper second\tp99\tCPU each\tanswer\tp99\t")
	for _, r := range t.rows {
		each := ""
		if r.events > 0 {
			each = fmt.Sprintf("%d B", (r.size-t.empty(r.database).size)/int64(r.events))
		}
		fmt.Fprintf(w, "%s\t%d\t%s\t%s\t%.0f\t%s\t%s\t%s\t%s\t\n", r.database, r.events, mb(r.size), each, r.intake.rate,
			ms(r.intake.quantile(.99)), us(r.intake.cpu), ms(r.answers.quantile(.5)), ms(r.answers.quantile(.99)))
	}
	_ = w.Flush()
}

// empty is the row of a database without history.
func (t *growthTable) empty(database string) grown {
	i := slices.IndexFunc(t.rows, func(r grown) bool { return r.database == database && r.events == 0 })
	if i < 0 {
		return grown{}
	}
	return t.rows[i]
}

// aims judges the growth; a nil table was not measured.
func (t *growthTable) aims() []aim {
	all := []aim{
		{what: fmt.Sprintf("a history changes the intake's rate by less than %.0f %%", growthMost*100)},
		{what: fmt.Sprintf("a history changes an answer's time by less than %.0f %%", growthMost*100)},
	}
	if t == nil {
		return all
	}
	for _, r := range t.rows {
		none := t.empty(r.database)
		if r.events == 0 || len(r.answers.latencies) == 0 || none.intake.rate == 0 {
			continue
		}
		for i, change := range []float64{r.intake.rate/none.intake.rate - 1, ratio(r.answers.quantile(.5), none.answers.quantile(.5)) - 1} {
			a := &all[i]
			if !a.measured {
				a.measured, a.met = true, true
			}
			a.met = a.met && math.Abs(change) < growthMost
			a.got = strings.TrimPrefix(fmt.Sprintf("%s, %s %d: %+.0f %%", a.got, r.database, r.events, change*100), ", ")
		}
	}
	return all
}

func ratio(a, b time.Duration) float64 {
	if b == 0 {
		return math.NaN()
	}
	return float64(a) / float64(b)
}
