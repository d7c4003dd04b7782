package playbook

import "slices"

// Metrics are figures over attempts. The JSON field names are a published
// contract. The three figures about recoveries are null, not 0, where there
// were none.
type Metrics struct {
	// Attempts is how many there were, each once, kills aside.
	Attempts  int            `json:"attempts"`
	ByAction  map[string]int `json:"by_action"`
	ByOutcome map[string]int `json:"by_outcome"`
	// Recoveries are attempts that ended the trouble.
	Recoveries int `json:"recoveries"`
	// AvoidedFullRestart are recoveries on a rung that is no full restart
	// (by default all but full_mcp_restart and host_restart).
	AvoidedFullRestart         int      `json:"avoided_full_restart"`
	FractionAvoidedFullRestart *float64 `json:"fraction_avoided_full_restart"`
	MeanRungAtRecovery         *float64 `json:"mean_rung_at_recovery"`
	MedianRungAtRecovery       *float64 `json:"median_rung_at_recovery"`
	// ManualKills are kill records; they are in no other figure.
	ManualKills int `json:"manual_kills"`
}

// RecoveryMetrics counts the attempts, each once. Which attempts (a thread, a
// repository, a period) is the caller's choice. Records that are on no rung of
// this ladder are left out.
func (p *Playbook) RecoveryMetrics(attempts []Attempt) Metrics {
	m := Metrics{ByAction: map[string]int{}, ByOutcome: map[string]int{}}
	var ranks []int
	sum := 0
	for _, a := range Dedupe(attempts) {
		rank, ok := p.byAction[a.Action]
		switch {
		case a.Kill:
			m.ManualKills++
			continue
		case !ok:
			continue
		}
		m.Attempts++
		m.ByAction[a.Action]++
		m.ByOutcome[a.Outcome]++
		if p.Recovered(a) {
			ranks = append(ranks, rank)
			sum += rank
			if !p.rungs[rank].FullRestart {
				m.AvoidedFullRestart++
			}
		}
	}
	if m.Recoveries = len(ranks); m.Recoveries == 0 {
		return m
	}
	slices.Sort(ranks)
	n := len(ranks)
	fraction := float64(m.AvoidedFullRestart) / float64(n)
	mean := float64(sum) / float64(n)
	median := float64(ranks[(n-1)/2]+ranks[n/2]) / 2
	m.FractionAvoidedFullRestart, m.MeanRungAtRecovery, m.MedianRungAtRecovery = &fraction, &mean, &median
	return m
}
