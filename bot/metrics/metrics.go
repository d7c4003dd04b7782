package metrics

import (
	"cmp"
	"context"
	"log/slog"
	"net/http"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"playbook-bot/bot"
	"playbook-bot/bot/forge"
	"playbook-bot/bot/store"
	"playbook-bot/playbook"
)

// none is the label of what has no value, so that no series has a blank one.
const none = "none"

// Source is what is asked of the store; package store says what each method
// promises.
type Source interface {
	Stats(ctx context.Context) (store.Stats, error)
	Logs(ctx context.Context, after int64, limit int) (logs []store.ThreadLog, next int64, err error)
}

// Config is what Metrics are made of. All fields are needed.
type Config struct {
	// Version of the program.
	Version  string
	Playbook *playbook.Playbook
	Source   Source
	Log      *slog.Logger
}

// Metrics counts. All its methods are safe for concurrent use.
type Metrics struct {
	cfg      Config
	registry *prometheus.Registry
	figures  figuresCell

	deliveries, outcomes, answers, calls *prometheus.CounterVec
	seconds                              *prometheus.HistogramVec
	// plain are the counters without labels, by bot.Observation.What.
	plain map[string]prometheus.Counter
}

// New makes Metrics with all counters at 0, so that an alarm on an increase
// sees the first.
func New(c Config) *Metrics {
	m := &Metrics{
		cfg: c, registry: prometheus.NewRegistry(),
		deliveries: deliveries.counters(), outcomes: outcomes.counters(), answers: decided.counters(), calls: calls.counters(),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: callSeconds.Name, Help: callSeconds.Help,
			// From a call on the same machine to the longest REQUEST_TIMEOUT.
			Buckets: []float64{.005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30},
		}, callSeconds.Labels),
		plain: map[string]prometheus.Counter{},
	}
	m.registry.MustRegister(m.deliveries, m.outcomes, m.answers, m.calls, m.seconds,
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}), asked{m})
	for what, d := range map[string]Metric{
		"adopted": adopted, "double_deleted": doubles, "revoked": revoked, "dead": dead,
		"marker_tampered": tampered, "restored": restored, "sweep_found": sweepFound,
		"database_behind": behind,
	} {
		vec := d.counters()
		m.registry.MustRegister(vec)
		m.plain[what] = vec.WithLabelValues()
	}
	return m
}

// Delivery counts a delivery; it is webhook.Config.OnDelivery.
func (m *Metrics) Delivery(forgeName string, status int) {
	m.deliveries.WithLabelValues(cmp.Or(forgeName, none), strconv.Itoa(status)).Inc()
}

// Accepting counts what becomes of deliveries that accept is given.
func (m *Metrics) Accepting(accept func(context.Context, forge.Event) (string, error)) func(context.Context, forge.Event) (string, error) {
	return func(ctx context.Context, e forge.Event) (string, error) {
		outcome, err := accept(ctx, e)
		label := outcome
		if err != nil {
			label = "error"
		}
		m.outcomes.WithLabelValues(e.Forge, label).Inc()
		return outcome, err
	}
}

// Observe counts what the bot tells; it is bot.Config.Observe. Of a kind it
// does not know nothing is counted.
func (m *Metrics) Observe(o bot.Observation) {
	if o.What == "answer" {
		m.answers.WithLabelValues(cmp.Or(o.Verdict, none), cmp.Or(o.Code, none)).Inc()
		return
	}
	if c, ok := m.plain[o.What]; ok {
		c.Inc()
	}
}

// Calls counts the API calls of one forge; it is the adapters' OnCall.
func (m *Metrics) Calls(forgeName string) func(kind string, status int, d time.Duration) {
	return func(kind string, status int, d time.Duration) {
		label := none
		if status != 0 {
			label = strconv.Itoa(status)
		}
		m.calls.WithLabelValues(forgeName, kind, label).Inc()
		m.seconds.WithLabelValues(forgeName, kind).Observe(d.Seconds())
	}
}

// scrapes is how many may be answered at once; more are told 503.
const scrapes = 4

// Handler answers a scrape. isReady is what /readyz tells of the forges.
func (m *Metrics) Handler(isReady func() bool) http.Handler {
	now := prometheus.NewRegistry()
	now.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: ready.Name, Help: ready.Help}, func() float64 {
		if isReady() {
			return 1
		}
		return 0
	}))
	return promhttp.HandlerFor(prometheus.Gatherers{m.registry, now}, promhttp.HandlerOpts{
		ErrorLog:            slog.NewLogLogger(m.cfg.Log.Handler(), slog.LevelWarn),
		ErrorHandling:       promhttp.ContinueOnError,
		MaxRequestsInFlight: scrapes,
		Timeout:             10 * time.Second,
	})
}

// statsTimeout bounds what a scrape waits for the database.
const statsTimeout = 2 * time.Second

// asked are the metrics that a scrape asks for.
type asked struct{ m *Metrics }

// Describe gives the metrics that Collect may give.
func (a asked) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []Metric{buildInfo, databaseUp, waiting, oldest, openAnswers, deadEvents, deadAnswers,
		attempts, recoveries, avoided, avoidedRatio, rungMean, rungMedian, kills, figuresAt} {
		ch <- d.desc()
	}
}

// Collect asks the database what waits, and gives the figures last worked out.
func (a asked) Collect(ch chan<- prometheus.Metric) {
	id := a.m.cfg.Playbook.Identity()
	ch <- buildInfo.value(1, a.m.cfg.Version, id.Name, id.SHA256)
	ctx, cancel := context.WithTimeout(context.Background(), statsTimeout)
	defer cancel()
	s, err := a.m.cfg.Source.Stats(ctx)
	if err != nil {
		ch <- databaseUp.value(0)
		a.m.cfg.Log.Warn("a scrape goes without the database", "error", err)
	} else {
		ch <- databaseUp.value(1)
		age := time.Duration(0)
		if !s.Oldest.IsZero() {
			age = max(0, s.Now.Sub(s.Oldest))
		}
		ch <- oldest.value(age.Seconds())
		ch <- waiting.value(float64(s.Waiting))
		ch <- openAnswers.value(float64(s.OpenAnswers))
		ch <- deadEvents.value(float64(s.Dead))
		ch <- deadAnswers.value(float64(s.DeadAnswers))
	}
	a.m.figures.collect(ch, a.m.cfg.Playbook)
}
