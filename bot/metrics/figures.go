package metrics

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"playbook-bot/bot"
	"playbook-bot/playbook"
)

// The figures of page 1.6 of the design are over every attempt ever logged.
// They are not worked out by a scrape: its cost would grow with the history.
// One pass over the log is made in the background, in pieces, at most every
// figuresEvery, and rests at least restRatio times as long as it took.
const (
	figuresEvery = 5 * time.Minute
	restRatio    = 20
	pieceThreads = 200
)

// where is a repository, by the name it was last seen under.
type where struct{ forge, repository string }

// logged names attempts that figures count alike.
type logged struct {
	where
	action, outcome string
}

// figures are the counts of one pass. Their size is that of the ladder times
// the repositories, whatever the history.
type figures struct {
	at     time.Time
	counts map[logged]int
	kills  int
}

type figuresCell struct {
	mu   sync.Mutex
	last *figures // nil: no pass has ended yet
}

// Watch works the recovery figures out, at once and then every five minutes,
// until ctx ends.
func (m *Metrics) Watch(ctx context.Context) {
	for {
		began := time.Now()
		if err := m.Refresh(ctx); err != nil && ctx.Err() == nil {
			m.cfg.Log.Warn("the recovery figures stay as they were", "error", err)
		}
		rest := time.NewTimer(max(figuresEvery, restRatio*time.Since(began)))
		select {
		case <-ctx.Done():
			rest.Stop()
			return
		case <-rest.C:
		}
	}
}

// Refresh makes one pass over the log. After an error the figures stay as
// they were.
func (m *Metrics) Refresh(ctx context.Context) error {
	f := &figures{counts: map[logged]int{}}
	for after := int64(0); ; {
		logs, next, err := m.cfg.Source.Logs(ctx, after, pieceThreads)
		if err != nil {
			return fmt.Errorf("work out the recovery figures: %w", err)
		}
		for _, l := range logs {
			var all []playbook.Attempt
			for _, o := range l.Texts {
				list, err := bot.LoggedAttempts(o)
				if err != nil {
					return fmt.Errorf("work out the recovery figures of thread %d: %w", l.ID, err)
				}
				all = append(all, list...)
			}
			f.add(where{l.Forge, l.Repo.FullName()}, all)
		}
		if after = next; next == 0 {
			break
		}
	}
	f.at = time.Now()
	m.figures.mu.Lock()
	defer m.figures.mu.Unlock()
	m.figures.last = f
	return nil
}

// add counts one thread's attempts, each once.
func (f *figures) add(w where, all []playbook.Attempt) {
	for _, a := range playbook.Dedupe(all) {
		if a.Kill {
			f.kills++
			continue
		}
		f.counts[logged{w, a.Action, a.Outcome}]++
	}
}

func (c *figuresCell) collect(ch chan<- prometheus.Metric, p *playbook.Playbook) {
	c.mu.Lock()
	f := c.last
	c.mu.Unlock()
	if f == nil {
		return
	}
	type kind struct{ action, outcome string }
	tried := map[kind]int{}
	recovered, spared := map[where]int{}, map[where]int{}
	ranks := map[int]int{}
	for l, n := range f.counts {
		rung, ok := p.Rung(l.action)
		if !ok {
			continue // on no rung of this ladder: another playbook's
		}
		tried[kind{l.action, l.outcome}] += n
		recovered[l.where] += 0 // a repository with attempts and no recovery shows as 0
		spared[l.where] += 0
		if !p.Recovered(playbook.Attempt{Action: l.action, Outcome: l.outcome}) {
			continue
		}
		recovered[l.where] += n
		ranks[rung.Rank] += n
		if !rung.FullRestart {
			spared[l.where] += n
		}
	}
	for k, n := range tried {
		ch <- attempts.value(float64(n), k.action, k.outcome)
	}
	total, without := 0, 0
	for w, n := range recovered {
		ch <- recoveries.value(float64(n), w.forge, w.repository)
		ch <- avoided.value(float64(spared[w]), w.forge, w.repository)
		total += n
		without += spared[w]
	}
	if total > 0 {
		mean, median := middle(ranks, total)
		ch <- avoidedRatio.value(float64(without) / float64(total))
		ch <- rungMean.value(mean)
		ch <- rungMedian.value(median)
	}
	ch <- kills.value(float64(f.kills))
	ch <- figuresAt.value(float64(f.at.UnixMilli()) / 1000)
}

// middle gives mean and median of ranks, given as how often each occurs.
func middle(ranks map[int]int, total int) (mean, median float64) {
	sum, seen, low, high := 0, 0, -1, -1
	for rank := 0; seen < total; rank++ {
		n := ranks[rank]
		sum += rank * n
		seen += n
		if low < 0 && seen > (total-1)/2 {
			low = rank
		}
		if high < 0 && seen > total/2 {
			high = rank
		}
	}
	return float64(sum) / float64(total), float64(low+high) / 2
}
