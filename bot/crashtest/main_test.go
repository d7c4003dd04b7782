//go:build unix

package crashtest

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"playbook-bot/bot/store/pgtest"
)

// patience bounds every wait of these tests. None of them sleeps; on a busy
// machine a wait may be long.
const patience = 90 * time.Second

func TestMain(m *testing.M) {
	flag.Parse()
	// The worlds of the matrix mostly wait for leases and deadlines to end:
	// more of them than processors can run side by side.
	if f := flag.Lookup("test.parallel"); f != nil && f.Value.String() == f.DefValue {
		_ = f.Value.Set("6")
	}
	code := pgtest.Main(m)
	if built.dir != "" {
		_ = os.RemoveAll(built.dir)
	}
	os.Exit(code)
}

// built is the program with failpoints, built once for all tests.
var built struct {
	sync.Once
	dir, path string
	err       error
}

// program gives the path of the program with failpoints.
func program(t testing.TB) string {
	t.Helper()
	built.Do(func() {
		if built.dir, built.err = os.MkdirTemp("", "crashtest"); built.err != nil {
			return
		}
		// What go build reads, go test does not see: without this a change to
		// the program alone would leave its cached "ok" standing.
		for _, dir := range []string{"../../cmd/playbook-bot", "../forge/gitea", "../forge/internal/wire"} {
			_, _ = os.ReadDir(dir)
		}
		built.path = filepath.Join(built.dir, "playbook-bot")
		out, err := exec.CommandContext(context.Background(), "go", "build", "-tags", "failpoints", "-o", built.path, "playbook-bot/cmd/playbook-bot").CombinedOutput()
		if err != nil {
			built.err = fmt.Errorf("build the program with failpoints: %w\n%s", err, out)
		}
	})
	if built.err != nil {
		t.Fatal(built.err)
	}
	return built.path
}

// eventually waits until a condition holds, looking again and again.
func eventually(t testing.TB, what string, holds func() bool) {
	t.Helper()
	if !within(patience, holds) {
		t.Fatalf("waited %s in vain: %s", patience, what)
	}
}

// within reports whether a condition came to hold in time.
func within(d time.Duration, holds func() bool) bool {
	deadline := time.NewTimer(d)
	defer deadline.Stop()
	look := time.NewTicker(5 * time.Millisecond)
	defer look.Stop()
	for !holds() {
		select {
		case <-deadline.C:
			return false
		case <-look.C:
		}
	}
	return true
}
