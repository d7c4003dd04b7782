package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestSecurityNamesTestsThatExist holds SECURITY.md to the tree: each test and
// conversation that it names is there, and every row names one.
func TestSecurityNamesTestsThatExist(t *testing.T) {
	b, err := os.ReadFile("../../SECURITY.md")
	if err != nil {
		t.Fatal(err)
	}
	exist := testNames(t)
	named := 0
	for _, m := range regexp.MustCompile("`((?:Test|Fuzz)[A-Za-z0-9_]+|[a-z-]+\\.txtar)`").FindAllStringSubmatch(string(b), -1) {
		named++
		if !exist[m[1]] {
			t.Errorf("SECURITY.md names %s, which does not exist", m[1])
		}
	}
	if named < 60 {
		t.Errorf("only %d names were found", named)
	}
	for line := range strings.Lines(string(b)) {
		cells := strings.Split(strings.TrimSpace(line), " | ")
		if !strings.HasPrefix(line, "| ") || strings.HasPrefix(line, "| attempt") {
			continue
		}
		if len(cells) != 3 || !strings.Contains(cells[2], "`") {
			t.Errorf("no test is named for %s", line)
		}
	}
}

// testNames are the names of all tests, fuzz targets and conversations, nested
// modules' included.
func testNames(t *testing.T) map[string]bool {
	t.Helper()
	function := regexp.MustCompile(`(?m)^func ((?:Test|Fuzz)[A-Za-z0-9_]+)\(`)
	names := map[string]bool{}
	err := filepath.WalkDir("../..", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == ".git" || d.Name() == "node_modules"):
			return fs.SkipDir
		case strings.HasSuffix(name, ".txtar"):
			names[d.Name()] = true
		case strings.HasSuffix(name, "_test.go"):
			b, err := os.ReadFile(name)
			if err != nil {
				return err
			}
			for _, m := range function.FindAllSubmatch(b, -1) {
				names[string(m[1])] = true
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}
