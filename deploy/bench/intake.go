//go:build unix

package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"playbook-bot/bot/store"
)

// The connections deliveries come over. The aims are for atConns.
var connections = []int{1, 32, 256}

const atConns = 32

// measured is a contender's figures at a number of connections.
type measured struct {
	rate float64
	result
	cpu    time.Duration // per delivery
	memory int64         // resident after it, bytes
}

// intakeTable is what was measured of the intake.
type intakeTable struct {
	names []string
	// by name and connections.
	at map[string]map[int]measured
	// halfTop is each at half of its own rate at atConns, over as many
	// connections.
	halfTop map[string]result
	// lost are deliveries that were answered 202 and are not in the database
	// after the process was killed; by name, only of those that keep any.
	lost map[string]int64
}

// compareIntake measures all contenders in turns: what else the machine is
// doing meets them all alike.
func (b *bench) compareIntake(ctx context.Context) (_ *intakeTable, err error) {
	all, err := b.contenders(ctx)
	defer func() {
		for _, c := range all {
			c.proc.Kill()
		}
	}()
	if err != nil {
		return nil, err
	}
	t := &intakeTable{at: map[string]map[int]measured{}, halfTop: map[string]result{}, lost: map[string]int64{}}
	for _, c := range all {
		t.names = append(t.names, c.name)
		t.at[c.name] = map[int]measured{}
		// What is made on first use (connections, statements, pages of the
		// database) is made before anything is measured.
		if r := send(ctx, c.to, burst{conns: atConns, time: b.round / 2}); r.failed > 0 {
			return nil, fmt.Errorf("warm up %s: %w", c.name, r.firstFailure)
		}
	}
	for _, conns := range connections {
		b.saying("intake: %d connections", conns)
		for name, m := range b.inTurns(ctx, all, conns, b.rounds) {
			t.at[name][conns] = m
			if m.failed > 0 {
				err = errors.Join(err, fmt.Errorf("%s at %d connections: %d of %d failed, the first: %w", name, conns, m.failed, m.sent, m.firstFailure))
			}
		}
	}
	b.saying("intake: half of the top rate")
	for _, c := range all {
		half := t.at[c.name][atConns].rate / 2
		t.halfTop[c.name] = send(ctx, c.to, burst{conns: atConns, rate: half, time: 2 * b.round})
	}
	for _, c := range all {
		if c.url == "" {
			continue
		}
		if b.profile != "" {
			err = errors.Join(err, b.profileIntake(ctx, c))
		}
		kept, e := c.kept(ctx)
		err = errors.Join(err, e)
		t.lost[c.name] = max(c.to.accepted.Load()-kept, 0)
	}
	return t, errors.Join(err, ctx.Err())
}

// contenders starts whatever the machine has. Those started are returned with
// an error too.
func (b *bench) contenders(ctx context.Context) (all []*contender, err error) {
	add := func(c *contender, e error) {
		if err = errors.Join(err, e); e == nil {
			all = append(all, c)
		}
	}
	add(b.bare(ctx))
	if b.webhook != "" {
		add(b.debian(ctx, b.webhook))
	}
	builds := map[string]string{"ours": b.binary}
	if b.against != "" {
		builds["earlier"] = b.against
	}
	for _, whose := range slices.Sorted(maps.Keys(builds)) {
		file := b.sqlite("intake-" + whose)
		err = errors.Join(err, metBefore(ctx, file))
		add(b.intake(ctx, whose+", SQLite", builds[whose], file))
		if b.postgres != nil {
			url, e := b.postgres.NewDatabase(ctx)
			if e != nil {
				return all, errors.Join(err, e)
			}
			err = errors.Join(err, metBefore(ctx, url))
			add(b.intake(ctx, whose+", PostgreSQL", builds[whose], url))
		}
	}
	return all, err
}

// metBefore makes a database of a bot that has met its forge in an earlier run:
// it knows whose the repository is, as every bot does but one at its very first
// start.
func metBefore(ctx context.Context, url string) error {
	db, err := store.Open(ctx, url, store.Options{})
	if err != nil {
		return err
	}
	return errors.Join(db.SetMeta(ctx, fmt.Sprintf("owner:gitea:%d", repoID), strconv.Itoa(ownerID)), db.Close())
}

// inTurns gives every contender rounds of load, one after the other. The rate
// is the median round's; the latencies are of all rounds.
func (b *bench) inTurns(ctx context.Context, all []*contender, conns, rounds int) map[string]measured {
	total, rates, out := map[string]result{}, map[string][]float64{}, map[string]measured{}
	cpu := map[string]time.Duration{}
	for i := range rounds {
		for j := range all {
			c := all[(i+j)%len(all)] // nobody always comes after the same
			before := c.cpu()
			r := send(ctx, c.to, burst{conns: conns, time: b.round})
			cpu[c.name] += c.cpu() - before
			rates[c.name] = append(rates[c.name], r.rate())
			sum := total[c.name]
			sum.add(r)
			total[c.name] = sum
		}
	}
	for _, c := range all {
		r := total[c.name]
		m := measured{rate: median(rates[c.name]), result: r, memory: memoryOf(c.proc.PID())}
		if n := len(r.latencies); n > 0 {
			m.cpu = cpu[c.name] / time.Duration(n)
		}
		out[c.name] = m
	}
	return out
}

// median of some figures; of an even number the mean of the two in the middle.
func median(all []float64) float64 {
	if len(all) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(all))
	mid := len(sorted) / 2
	if len(sorted)%2 == 1 {
		return sorted[mid]
	}
	return (sorted[mid-1] + sorted[mid]) / 2
}
