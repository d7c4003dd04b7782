// Package metrics counts what the bot does and shows it to Prometheus. It is
// told; it asks only the store, for what waits and for the recovery figures.
package metrics

import "github.com/prometheus/client_golang/prometheus"

// Metric is one metric as operators see it.
type Metric struct {
	// Name is whole, as Prometheus has it.
	Name string
	// Type is "counter", "gauge" or "histogram".
	Type string
	// Labels in their order; nil: none.
	Labels []string
	Help   string
}

const (
	counter   = "counter"
	gauge     = "gauge"
	histogram = "histogram"
)

// The metrics, each declared once. Deploy's rules and dashboards, and
// OPERATIONS.md, are held to this list by tests; what is published here keeps
// its name and meaning.
var (
	buildInfo = Metric{"playbook_bot_build_info", gauge, []string{"version", "playbook", "playbook_sha256"},
		"Always 1; its labels say which program and which playbook are running."}
	ready = Metric{"playbook_bot_ready", gauge, nil,
		"1 once every forge has answered since the start, as /readyz tells; else 0."}
	databaseUp = Metric{"playbook_bot_database_up", gauge, nil,
		"1 if the database answered this scrape within two seconds, else 0; then what is read from it is absent."}

	deliveries = Metric{"playbook_bot_deliveries_total", counter, []string{"forge", "status"},
		"Deliveries by forge (none: no hook of that path) and HTTP status answered."}
	outcomes = Metric{"playbook_bot_delivery_outcomes_total", counter, []string{"forge", "outcome"},
		"Genuine deliveries by what became of them: taken, seen, elsewhere, ignored, self, or error for 503."}

	waiting = Metric{"playbook_bot_events_waiting", gauge, nil,
		"Events taken in and not worked off, those to be tried again included. The same on every replica."}
	oldest = Metric{"playbook_bot_oldest_waiting_event_age_seconds", gauge, nil,
		"How long ago the oldest waiting event came in; 0 where none waits. The same on every replica."}
	openAnswers = Metric{"playbook_bot_answers_open", gauge, nil,
		"Answers decided and not yet known to stand in their thread. The same on every replica."}
	deadEvents = Metric{"playbook_bot_events_dead", gauge, nil,
		"Events that will not be tried again unless sent again (playbook-bot dead). The same on every replica."}
	deadAnswers = Metric{"playbook_bot_answers_dead", gauge, nil,
		"Answers that could not be posted and will not be tried again unless sent again (playbook-bot dead). The same on every replica."}

	decided = Metric{"playbook_bot_answers_total", counter, []string{"verdict", "code"},
		"Answers decided, by verdict and code of the decision; none for help, ladders and the like."}
	adopted = Metric{"playbook_bot_answers_adopted_total", counter, nil,
		"Answers whose POST had no known end and which were then found in the thread."}
	doubles = Metric{"playbook_bot_answer_doubles_deleted_total", counter, nil,
		"Second comments of one answer that the bot deleted."}
	revoked = Metric{"playbook_bot_approvals_revoked_total", counter, nil,
		"Approvals taken back because the record under them changed."}
	dead = Metric{"playbook_bot_given_up_total", counter, nil,
		"Events and answers given up: refused for good, or failed ten times."}
	tampered = Metric{"playbook_bot_markers_tampered_total", counter, nil,
		"Comments of the bot that somebody else edited or deleted."}
	restored = Metric{"playbook_bot_answers_restored_total", counter, nil,
		"Comments of the bot that it put back after somebody else edited or deleted them."}
	sweepFound = Metric{"playbook_bot_sweep_found_total", counter, nil,
		"Events that no delivery brought and a sweep found."}
	behind = Metric{"playbook_bot_database_behind_total", counter, nil,
		"Comments of the bot that name a later decision than the database knows: a backup was put back and not read again."}

	calls = Metric{"playbook_bot_forge_requests_total", counter, []string{"forge", "kind", "status"},
		"API calls by forge, kind of call and HTTP status; none: no answer."}
	callSeconds = Metric{"playbook_bot_forge_request_duration_seconds", histogram, []string{"forge", "kind"},
		"How long API calls took, by forge and kind of call."}

	attempts = Metric{"playbook_bot_attempts", gauge, []string{"action", "outcome"},
		"Attempts in the log of all threads, each once, by rung and outcome."}
	recoveries = Metric{"playbook_bot_recoveries", gauge, []string{"forge", "repository"},
		"Attempts that ended the trouble, by repository."}
	avoided = Metric{"playbook_bot_recoveries_avoided_full_restart", gauge, []string{"forge", "repository"},
		"Recoveries on a rung that is no full restart, by repository."}
	avoidedRatio = Metric{"playbook_bot_recoveries_avoided_full_restart_ratio", gauge, nil,
		"Which part of all recoveries avoided a full restart, from 0 to 1; absent where there were none."}
	rungMean = Metric{"playbook_bot_recovery_rung_mean", gauge, nil,
		"Mean rank of the rung at recovery; absent where there were none."}
	rungMedian = Metric{"playbook_bot_recovery_rung_median", gauge, nil,
		"Median rank of the rung at recovery; absent where there were none."}
	kills = Metric{"playbook_bot_manual_kills", gauge, nil,
		"Manual process kills in the log of all threads; they are in no other figure."}
	figuresAt = Metric{"playbook_bot_recovery_figures_timestamp_seconds", gauge, nil,
		"When the recovery figures were last worked out, in seconds since 1970."}
)

// Catalogue lists the bot's own metrics, in the order of OPERATIONS.md. Those
// of the Go runtime and the process (go_…, process_…) come beside them.
func Catalogue() []Metric {
	return []Metric{
		buildInfo, ready, databaseUp,
		deliveries, outcomes,
		waiting, oldest, openAnswers, deadEvents, deadAnswers,
		decided, adopted, doubles, revoked, dead, tampered, restored, sweepFound, behind,
		calls, callSeconds,
		attempts, recoveries, avoided, avoidedRatio, rungMean, rungMedian, kills, figuresAt,
	}
}

func (m Metric) desc() *prometheus.Desc { return prometheus.NewDesc(m.Name, m.Help, m.Labels, nil) }

func (m Metric) counters() *prometheus.CounterVec {
	return prometheus.NewCounterVec(prometheus.CounterOpts{Name: m.Name, Help: m.Help}, m.Labels)
}

func (m Metric) value(v float64, labels ...string) prometheus.Metric {
	return prometheus.MustNewConstMetric(m.desc(), prometheus.GaugeValue, v, labels...)
}
