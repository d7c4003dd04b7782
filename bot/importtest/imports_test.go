// Package importtest holds the table of who may import whom, and fails on any
// other import. It has no code of its own.
package importtest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const module = "playbook-bot"

// row says what one package may import beside the standard library: packages
// of this module (by their path below it) and other modules' packages (by
// prefix); "bot" stands for all below it too. never names parts of the
// standard library it must not see.
type row struct {
	may   []string
	never []string
	// tests may import this too, and what all tests may (see anyTest).
	tests []string
	// forTests marks packages that only tests import; they count as tests.
	forTests bool
}

// noWorld is what a pure package must not see: no clock's context, no socket,
// no file, no log.
var noWorld = []string{"context", "net", "os", "log", "syscall", "testing", "io/ioutil", "database", "plugin", "runtime"}

const (
	yaml     = "go.yaml.in/yaml/v3"
	goldmark = "github.com/yuin/goldmark"
)

// table is page 3.1 of the design. An arrow that is not here does not exist;
// whoever needs a new one changes this table, in view of everybody.
var table = map[string]row{
	"playbook":         {may: []string{yaml}, never: noWorld, tests: []string{"github.com/santhosh-tekuri/jsonschema/v6"}},
	"templates":        {may: []string{"playbook"}, never: []string{"net", "log", "context", "database", "testing"}, tests: []string{goldmark, yaml, "bot/command", "bot/comment"}},
	"bot/command":      {may: []string{"playbook"}, never: noWorld},
	"bot/comment":      {may: []string{"bot/command", "playbook", goldmark, "golang.org/x/text"}, never: noWorld},
	"bot/forge":        {never: []string{"os", "log", "database", "testing"}},
	"bot/webhook":      {may: []string{"bot/forge"}, never: []string{"os", "database", "testing"}, tests: []string{"bot/forge/gitea", "bot/forge/forgetest"}},
	"bot/store":        {may: []string{"bot/forge", "modernc.org/sqlite", "github.com/jackc/pgx/v5", "github.com/pressly/goose/v3"}, never: []string{"testing"}, tests: []string{"bot/store/pgtest"}},
	"bot":              {may: []string{"bot/command", "bot/comment", "bot/forge", "bot/store", "playbook", "templates"}, never: []string{"os", "testing", "database"}, tests: []string{"bot/golden", "bot/forge/gitea", "bot/forge/github", "bot/forge/forgetest", "bot/webhook"}},
	"bot/golden":       {may: []string{"bot", "playbook", "templates", "golang.org/x/tools/txtar", "github.com/google/go-cmp"}, forTests: true},
	"bot/setup":        {may: []string{"bot/forge", "bot/webhook", "playbook"}, never: []string{"os", "net/http", "log", "database", "testing"}, tests: []string{"bot/forge/gitea", "bot/forge/github"}},
	"bot/mcp":          {may: []string{"playbook", "github.com/modelcontextprotocol/go-sdk", yaml}, never: []string{"database", "testing"}},
	"bot/store/pgtest": {may: []string{"github.com/jackc/pgx/v5"}, forTests: true},
	"bot/importtest":   {},
	"bot/metrics":      {may: []string{"bot", "bot/forge", "bot/store", "playbook", "github.com/prometheus/client_golang"}, never: []string{"os", "database", "testing"}},
	"bot/crashtest":    {tests: []string{"bot", "bot/forge", "bot/forge/forgetest", "bot/store", "bot/store/pgtest", "bot/webhook", "playbook"}},

	"bot/forge/internal/wire":         {may: []string{"bot/forge", "github.com/segmentio/encoding"}, never: []string{"os", "database", "testing"}},
	"bot/forge/github":                {may: []string{"bot/forge", "bot/forge/internal/wire", "github.com/google/go-github/v62"}, never: []string{"os", "database", "testing"}, tests: []string{"bot/forge/forgetest"}},
	"bot/forge/gitea":                 {may: []string{"bot/forge", "bot/forge/internal/wire", "code.gitea.io/sdk/gitea"}, never: []string{"os", "database", "testing"}, tests: []string{"bot/forge/forgetest"}},
	"bot/forge/forgetest":             {may: []string{"bot/forge", "bot/webhook"}, never: []string{"os", "database", "testing"}, tests: []string{"bot/forge/gitea", "bot/forge/github"}},
	"bot/forge/forgetest/conformance": {may: []string{"bot/forge", "bot/forge/forgetest", "bot/forge/gitea", "code.gitea.io/sdk/gitea"}, tests: []string{"bot/forge/github", "github.com/google/go-github/v62"}, forTests: true},

	"cmd/playbook-bot": {
		may: []string{"bot", "playbook", "templates", "github.com/spf13/cobra", "github.com/caarlos0/env/v11", "github.com/modelcontextprotocol/go-sdk", "golang.org/x/sync"},
		// The program names packages below bot one by one, so that nothing
		// made for tests gets in unseen; replay runs on the fake forge.
		never: []string{"testing"},
		tests: []string{yaml},
	},
}

// anyTest may be imported by every package's tests.
var anyTest = []string{"testing", "github.com/google/go-cmp", "golang.org/x/tools/txtar"}

// file is one Go file's imports and the parts of it the rules ask about.
type file struct {
	name    string
	test    bool
	imports []string
	calls   []string // selectors such as os.Getenv
}

func TestImports(t *testing.T) {
	packages := load(t)
	for pkg, files := range packages {
		r, ok := table[pkg]
		if !ok {
			t.Errorf("%s has no row in the import table: say there what it may import", pkg)
			continue
		}
		for _, f := range files {
			for _, imp := range f.imports {
				if f.test && imp == module+"/"+pkg {
					continue // package x_test
				}
				if why := r.refuses(imp, f.test); why != "" {
					t.Errorf("%s imports %s: %s", f.name, imp, why)
				}
			}
		}
	}
	for pkg, r := range table {
		if r.forTests {
			for other, files := range packages {
				for _, f := range files {
					if !f.test && slices.Contains(f.imports, module+"/"+pkg) && !table[other].forTests {
						t.Errorf("%s imports %s, which is for tests", f.name, pkg)
					}
				}
			}
		}
		if len(packages[pkg]) == 0 {
			t.Errorf("the import table has a row for %s, which holds no Go file", pkg)
		}
	}
}

func TestNobodyButCmdReadsTheEnvironment(t *testing.T) {
	for pkg, files := range load(t) {
		for _, f := range files {
			if strings.HasPrefix(pkg, "cmd/") || f.test || table[pkg].forTests {
				continue
			}
			for _, call := range f.calls {
				switch call {
				case "os.Getenv", "os.LookupEnv", "os.Environ", "os.ExpandEnv", "syscall.Getenv", "syscall.Environ":
					t.Errorf("%s uses %s: only cmd reads the environment", f.name, call)
				}
			}
		}
	}
}

// TestThePolicyHasNoClock: time is allowed for values, not for asking it.
func TestThePolicyHasNoClock(t *testing.T) {
	for pkg, files := range load(t) {
		if pkg != "playbook" && pkg != "templates" && pkg != "bot/command" && pkg != "bot/comment" {
			continue
		}
		for _, f := range files {
			for _, call := range f.calls {
				switch call {
				case "time.Now", "time.Since", "time.Until", "time.Sleep", "time.After", "time.NewTimer", "time.NewTicker", "time.Tick", "time.AfterFunc":
					if !f.test {
						t.Errorf("%s uses %s: the caller passes the time", f.name, call)
					}
				}
			}
		}
	}
}

// TestTheRulesRefuse shows that each kind of rule can fail.
func TestTheRulesRefuse(t *testing.T) {
	for _, c := range []struct {
		pkg, imp string
		test     bool
		refused  bool
	}{
		{"playbook", "context", false, true},
		{"playbook", "net/http", false, true},
		{"playbook", "log/slog", false, true},
		{"playbook", "time", false, false},
		{"playbook", yaml, false, false},
		{"playbook", module + "/bot/forge", false, true},
		{"playbook", "os", true, false},
		{"bot/forge/gitea", module + "/playbook", false, true},
		{"bot/forge/gitea", module + "/bot/forge", false, false},
		{"bot/store", module + "/playbook", false, true},
		{"bot/store", "github.com/jackc/pgx/v5/stdlib", false, false},
		{"bot/store", "github.com/jackc/pgx/v55", false, true},
		{"bot/forge/forgetest", "testing", false, true},
		{"bot/command", "github.com/spf13/cobra", false, true},
		{"bot/command", "github.com/caarlos0/env/v11", true, true},
		{"bot/command", "github.com/google/go-cmp/cmp", true, false},
		{"bot/command", "github.com/google/go-cmp/cmp", false, true},
	} {
		if got := table[c.pkg].refuses(c.imp, c.test) != ""; got != c.refused {
			t.Errorf("%s importing %s (test: %v): refused = %v, want %v", c.pkg, c.imp, c.test, got, c.refused)
		}
	}
}

// refuses says why the import is not allowed, "" where it is.
func (r row) refuses(imp string, test bool) string {
	under := func(list []string) bool {
		return slices.ContainsFunc(list, func(p string) bool { return imp == p || strings.HasPrefix(imp, p+"/") })
	}
	own, isOwn := strings.CutPrefix(imp, module+"/")
	if test && (under(anyTest) || under(r.tests) || isOwn && slices.Contains(r.tests, own)) {
		return ""
	}
	switch {
	case isOwn:
		if slices.Contains(r.may, own) || slices.Contains(r.may, "bot") && strings.HasPrefix(own, "bot/") {
			return ""
		}
		return "not in its row of the import table"
	case !strings.Contains(strings.Split(imp, "/")[0], "."):
		if !test && under(r.never) {
			return "its row of the import table forbids it"
		}
		return ""
	case under(r.may):
		return ""
	}
	return "not in its row of the import table"
}

// load reads every Go file of this module; nested modules are not its parts.
func load(t *testing.T) map[string][]file {
	t.Helper()
	root := moduleRoot(t)
	packages := make(map[string][]file)
	err := filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			_, err := os.Stat(filepath.Join(name, "go.mod"))
			nested := err == nil && name != root
			if nested || name != root && (strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata" || d.Name() == "node_modules") {
				return fs.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(name, ".go") {
			return nil
		}
		rel, err := filepath.Rel(root, name)
		if err != nil {
			return err
		}
		rel = filepath.ToSlash(rel)
		f, err := read(name, rel)
		if err != nil {
			return err
		}
		packages[path.Dir(rel)] = append(packages[path.Dir(rel)], f)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return packages
}

func read(name, rel string) (file, error) {
	parsed, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
	if err != nil {
		return file{}, err
	}
	f := file{name: rel, test: strings.HasSuffix(rel, "_test.go")}
	for _, imp := range parsed.Imports {
		p, err := strconv.Unquote(imp.Path.Value)
		if err != nil {
			return file{}, err
		}
		f.imports = append(f.imports, p)
	}
	ast.Inspect(parsed, func(n ast.Node) bool {
		if sel, ok := n.(*ast.SelectorExpr); ok {
			if pkg, ok := sel.X.(*ast.Ident); ok {
				f.calls = append(f.calls, pkg.Name+"."+sel.Sel.Name)
			}
		}
		return true
	})
	return f, nil
}

func moduleRoot(t *testing.T) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			t.Fatal("no go.mod above this test")
		}
		dir = parent
	}
}
