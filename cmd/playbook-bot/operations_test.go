package main

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"playbook-bot/bot/metrics"
)

const operations = "../../deploy/OPERATIONS.md"

// TestOperationsListsTheMetrics holds the table to the code.
func TestOperationsListsTheMetrics(t *testing.T) {
	b, err := os.ReadFile(operations)
	if err != nil {
		t.Fatal(err)
	}
	var table strings.Builder
	table.WriteString("| metric | type | labels | |\n|---|---|---|---|\n")
	for _, m := range metrics.Catalogue() {
		fmt.Fprintf(&table, "| `%s` | %s | %s | %s |\n", m.Name, m.Type, strings.Join(m.Labels, ", "), m.Help)
	}
	text, err := fill(string(b), "metrics", table.String())
	if err != nil {
		t.Fatal(err)
	}
	golden(t, operations, text)
}

var metricName = regexp.MustCompile(`playbook_bot_[a-z_]*[a-z]`)

// TestDeployNamesMetricsThatExist looks through rules, dashboards and texts.
func TestDeployNamesMetricsThatExist(t *testing.T) {
	exist := map[string]bool{}
	for _, m := range metrics.Catalogue() {
		exist[m.Name] = true
		if m.Type == "histogram" {
			for _, suffix := range []string{"_bucket", "_sum", "_count"} {
				exist[m.Name+suffix] = true
			}
		}
	}
	named := map[string]bool{}
	for name, text := range deployFiles(t) {
		for _, m := range metricName.FindAllString(text, -1) {
			named[m] = true
			if !exist[m] {
				t.Errorf("%s names the metric %s, which does not exist", name, m)
			}
		}
	}
	if len(named) < len(metrics.Catalogue()) {
		t.Errorf("only %d metrics are named", len(named))
	}
}

var alertName = regexp.MustCompile(`(?m)^\s*- alert: *"?([A-Za-z]+)`)

// TestEveryAlarmIsExplained: each alert has its section.
func TestEveryAlarmIsExplained(t *testing.T) {
	files := deployFiles(t)
	for name, text := range files {
		for _, m := range alertName.FindAllStringSubmatch(text, -1) {
			if !strings.Contains(files["OPERATIONS.md"], "\n### "+m[1]+"\n") {
				t.Errorf("%s: alert %s has no section in OPERATIONS.md", name, m[1])
			}
		}
	}
}

// TestOperationsNamesCommandsThatExist parses each playbook-bot line of the
// text's fences.
func TestOperationsNamesCommandsThatExist(t *testing.T) {
	lines := 0
	for _, fence := range regexp.MustCompile("(?s)\n *```\n(.*?)\n *```").FindAllStringSubmatch(deployFiles(t)["OPERATIONS.md"], -1) {
		for line := range strings.Lines(fence[1]) {
			line, _, _ = strings.Cut(strings.ReplaceAll(line, "$(date +%F)", "today"), " | ")
			_, rest, ok := strings.Cut(line, "playbook-bot ")
			if !ok || strings.Contains(line, "written by a newer") {
				continue
			}
			lines++
			root := (&app{}).root()
			dontRun(root)
			root.SetArgs(strings.Fields(rest))
			if err := root.Execute(); err != nil {
				t.Errorf("%s: %v", strings.TrimSpace(line), err)
			}
		}
	}
	if lines < 10 {
		t.Errorf("only %d command lines were looked at", lines)
	}
}

// deployFiles are the texts of deploy by their names in it, nested modules
// aside.
func deployFiles(t *testing.T) map[string]string {
	t.Helper()
	const root = "../../deploy"
	files := map[string]string{}
	err := filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir():
			if _, err := os.Stat(filepath.Join(name, "go.mod")); err == nil {
				return fs.SkipDir
			}
			return nil
		case !slices.Contains([]string{".md", ".yaml", ".yml", ".json"}, filepath.Ext(name)):
			return nil
		}
		b, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, name)
		files[rel] = string(b)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}
