package templates

import (
	"fmt"
	"maps"
	"slices"
	"strconv"

	"playbook-bot/playbook"
)

// MetricsView is figures over attempts. The strings are "" where there is
// nothing to say, which is not the same as 0.
type MetricsView struct {
	Attempts, Recoveries, Avoided, Kills int
	Fraction, Mean, Median               string
	ByAction, ByOutcome                  []Figure
}

// Figure is a count with its name.
type Figure struct {
	Name Text
	N    int
}

func (w *viewer) metrics(m *playbook.Metrics) *MetricsView {
	if m == nil {
		return nil
	}
	v := &MetricsView{
		Attempts: m.Attempts, Recoveries: m.Recoveries, Avoided: m.AvoidedFullRestart, Kills: m.ManualKills,
		Mean: decimal(m.MeanRungAtRecovery), Median: decimal(m.MedianRungAtRecovery),
	}
	if m.FractionAvoidedFullRestart != nil {
		v.Fraction = fmt.Sprintf("%.0f%%", 100**m.FractionAvoidedFullRestart)
	}
	for _, r := range w.r.pb.Rungs() {
		if n := m.ByAction[r.Action]; n > 0 {
			v.ByAction = append(v.ByAction, Figure{Text(r.Action), n})
		}
	}
	for _, o := range slices.Sorted(maps.Keys(m.ByOutcome)) {
		v.ByOutcome = append(v.ByOutcome, Figure{Text(o), m.ByOutcome[o]})
	}
	v.ByOutcome, _ = head(v.ByOutcome, w.lim.rows)
	return v
}

// decimal gives at most one digit after the point.
func decimal(f *float64) string {
	if f == nil {
		return ""
	}
	return strconv.FormatFloat(float64(int(*f*10+0.5))/10, 'f', -1, 64)
}
