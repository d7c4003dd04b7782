package main

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"playbook-bot/bot/metrics"
)

type alertRules struct {
	Groups []struct {
		Rules []struct{ Alert, Expr string }
	}
}

// expressions gives all PromQL of deploy by where it stands.
func expressions(t *testing.T) map[string]string {
	t.Helper()
	all := map[string]string{}
	var rules alertRules
	deployYAML(t, "prometheus/alerts.yaml", &rules)
	for _, g := range rules.Groups {
		for _, r := range g.Rules {
			all["alert "+r.Alert] = r.Expr
		}
	}
	if len(all) == 0 {
		t.Fatal("no alert rules were found")
	}
	maps.Copy(all, dashboard(t))
	return all
}

// dashboard gives the dashboard's PromQL, with Grafana's variables filled in.
func dashboard(t *testing.T) map[string]string {
	t.Helper()
	var d struct {
		Panels []struct {
			Title   string
			Targets []struct{ RefID, Expr string }
		}
	}
	deployJSON(t, "grafana/dashboard.json", &d)
	fill := strings.NewReplacer("$__rate_interval", "5m", "$repository", ".*")
	all := map[string]string{}
	for _, p := range d.Panels {
		for _, q := range p.Targets {
			all["panel "+p.Title+" "+q.RefID] = fill.Replace(q.Expr)
		}
	}
	if len(all) == 0 {
		t.Fatal("no panels were found")
	}
	return all
}

// runtimeMetrics come beside the catalogue, from the Prometheus client.
var runtimeMetrics = []string{"go_goroutines", "process_resident_memory_bytes"}

// scrapeLabels are put on by Prometheus, or by the form of a histogram.
var scrapeLabels = []string{"instance", "job", "le"}

// catalogue gives the metrics as series are named, with their labels.
func catalogue() map[string][]string {
	all := map[string][]string{}
	for _, m := range metrics.Catalogue() {
		names := []string{m.Name}
		if m.Type == "histogram" {
			names = []string{m.Name + "_bucket", m.Name + "_sum", m.Name + "_count"}
		}
		for _, n := range names {
			all[n] = m.Labels
		}
	}
	for _, n := range runtimeMetrics {
		all[n] = nil
	}
	return all
}

var (
	seriesName = regexp.MustCompile(`\b(?:playbook_bot|go|process)_\w+`)
	matchers   = regexp.MustCompile(`(\w+)\{([^}]*)\}`)
	matched    = regexp.MustCompile(`(\w+)\s*(?:=~|!~|!=|=)`)
	grouped    = regexp.MustCompile(`\bby \(([^)]*)\)`)
)

// TestDeployMetrics holds alert rules and dashboard to the metrics there are
// and their labels: an expression on any other is silently empty for ever.
func TestDeployMetrics(t *testing.T) {
	known := catalogue()
	shown := map[string]bool{}
	for where, expr := range expressions(t) {
		labels := slices.Clone(scrapeLabels)
		for _, name := range seriesName.FindAllString(expr, -1) {
			has, ok := known[name]
			if !ok {
				t.Errorf("%s asks for %s, which is no metric of the bot", where, name)
			}
			shown[name] = true
			labels = append(labels, has...)
		}
		for _, m := range matchers.FindAllStringSubmatch(expr, -1) {
			for _, l := range matched.FindAllStringSubmatch(m[2], -1) {
				if !slices.Contains(append(scrapeLabels, known[m[1]]...), l[1]) {
					t.Errorf("%s: %s has no label %s", where, m[1], l[1])
				}
			}
		}
		for _, g := range grouped.FindAllStringSubmatch(expr, -1) {
			for l := range strings.SplitSeq(g[1], ",") {
				if l = strings.TrimSpace(l); !slices.Contains(labels, l) {
					t.Errorf("%s groups by %s, which no metric in it has", where, l)
				}
			}
		}
	}
	for name := range known {
		if !shown[name] && !strings.HasSuffix(name, "_sum") && !strings.HasSuffix(name, "_count") {
			t.Errorf("%s is in bot/metrics, and neither deploy/grafana/dashboard.json nor deploy/prometheus/alerts.yaml shows it", name)
		}
	}
}

// TestAlertsHaveCases sees to it that alerts_test.yaml has each rule firing,
// on series that the bot has.
func TestAlertsHaveCases(t *testing.T) {
	var cases struct {
		Tests []struct {
			Series []struct{ Series string } `yaml:"input_series"`
			Exprs  []struct {
				Samples []struct{ Labels string } `yaml:"exp_samples"`
			} `yaml:"promql_expr_test"`
		}
	}
	deployYAML(t, "prometheus/alerts_test.yaml", &cases)
	known := catalogue()
	var firing strings.Builder
	for _, c := range cases.Tests {
		for _, s := range c.Series {
			name, rest, _ := strings.Cut(s.Series, "{")
			has, ok := known[name]
			if !ok {
				t.Errorf("alerts_test.yaml has the series %s, which is no metric of the bot", name)
			}
			for _, l := range matched.FindAllStringSubmatch(rest, -1) {
				if !slices.Contains(append(scrapeLabels, has...), l[1]) {
					t.Errorf("alerts_test.yaml has %s with a label %s", name, l[1])
				}
			}
		}
		for _, e := range c.Exprs {
			for _, s := range e.Samples {
				firing.WriteString(s.Labels)
			}
		}
	}
	var rules alertRules
	deployYAML(t, "prometheus/alerts.yaml", &rules)
	for _, g := range rules.Groups {
		for _, r := range g.Rules {
			if !strings.Contains(firing.String(), fmt.Sprintf("alertname=%q", r.Alert)) {
				t.Errorf("alerts_test.yaml does not show %s firing", r.Alert)
			}
		}
	}
}

// TestPromtool has Prometheus's own tool read rules, configuration and the
// dashboard's queries, and run the rules' tests.
func TestPromtool(t *testing.T) {
	var recorded []map[string]string
	for i, expr := range slices.Sorted(maps.Values(dashboard(t))) {
		recorded = append(recorded, map[string]string{"record": fmt.Sprintf("dashboard:query_%d", i), "expr": expr})
	}
	b, err := yaml.Marshal(map[string]any{"groups": []any{map[string]any{"name": "dashboard", "rules": recorded}}})
	if err != nil {
		t.Fatal(err)
	}
	queries := filepath.Join(t.TempDir(), "dashboard.yaml")
	if err := os.WriteFile(queries, b, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{
		{"check", "rules", deployDir + "/prometheus/alerts.yaml"},
		{"check", "rules", queries},
		{"check", "config", deployDir + "/prometheus/prometheus.yml"},
		{"test", "rules", deployDir + "/prometheus/alerts_test.yaml"},
	} {
		if out, err := tool(t, "promtool", args...); err != nil {
			t.Errorf("promtool %s: %v\n%s", strings.Join(args, " "), err, out)
		}
	}
}
