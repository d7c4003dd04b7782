package mcp

import (
	"bufio"
	"context"
	"errors"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// nodePeer is a process of the official TypeScript SDK's server; counts
// outlive the process.
type nodePeer struct {
	t       *testing.T
	dir     string
	status  string
	port    string
	counter *peer
	cmd     *exec.Cmd
	read    chan struct{} // closed when the process's output has been read
}

// npmDir installs the server's packages once, or skips the test.
func npmDir(t *testing.T) string {
	t.Helper()
	required := os.Getenv("PLAYBOOK_BOT_REQUIRE_NODE") == "1"
	give := t.Skipf
	if required {
		give = t.Fatalf
	}
	for _, tool := range []string{"node", "npm"} {
		if _, err := exec.LookPath(tool); err != nil {
			give("%s is not installed; the TypeScript SDK's server was not tested", tool)
		}
	}
	if testing.Short() && !required {
		t.Skip("-short: no packages are fetched")
	}
	dir := t.TempDir()
	for _, name := range []string{"package.json", "package-lock.json", "server.mjs"} {
		data, err := os.ReadFile(filepath.Join("testdata", "npm", name))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	ctx, stop := context.WithTimeout(context.Background(), 2*time.Minute)
	defer stop()
	cmd := exec.CommandContext(ctx, "npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--prefer-offline")
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		give("npm ci: %v\n%s", err, out)
	}
	return dir
}

func (n *nodePeer) start() {
	n.t.Helper()
	n.cmd = exec.Command("node", "server.mjs", n.port, n.status)
	n.cmd.Dir = n.dir
	n.cmd.Stderr = os.Stderr
	out, err := n.cmd.StdoutPipe()
	if err != nil {
		n.t.Fatal(err)
	}
	if err := n.cmd.Start(); err != nil {
		n.t.Fatal(err)
	}
	listening := make(chan string, 1)
	n.read = make(chan struct{})
	go func(done chan struct{}) {
		defer close(done)
		lines := bufio.NewScanner(out)
		for lines.Scan() {
			switch word, rest, _ := strings.Cut(lines.Text(), " "); word {
			case "listening":
				listening <- rest
			case "method":
				n.counter.with(func() { n.counter.counts[rest]++ })
			}
		}
	}(n.read)
	select {
	case n.port = <-listening:
	case <-n.read:
		n.t.Fatal("node ended before it listened")
	}
}

func (n *nodePeer) kill() {
	_ = n.cmd.Process.Kill()
	<-n.read
	_ = n.cmd.Wait()
}

func (n *nodePeer) server() Server {
	return Server{Name: "typescript", URL: "http://127.0.0.1:" + n.port + "/mcp"}
}

// The official TypeScript SDK as a real peer, its process killed and started
// again under the client.
func TestTypeScriptSDK(t *testing.T) {
	dir := npmDir(t)
	tests := []struct {
		name, status string
		call         func(context.Context, *Client) error
		method, want string
		initialize   int
		arrived      int
	}{
		{"tools/list", "404", listAll, "tools/list", "result", 2, 3},
		{"tools/call", "404", callEcho, "tools/call", "not resent, may have executed", 2, 2},
		{"tools/call, unknown session is 400", "400", callEcho, "tools/call", "refused, HTTP 400", 1, 2},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			n := &nodePeer{t: t, dir: dir, port: "0", status: tt.status, counter: &peer{counts: map[string]int{}}}
			n.start()
			t.Cleanup(func() { n.kill() })
			o := Options{}.withDefaults()
			c := connectTo(t, n.server(), o.Client)
			if err := tt.call(testContext(t), c); err != nil {
				t.Fatal(err)
			}
			n.kill()
			c.base.(*http.Transport).CloseIdleConnections()
			if err := callEcho(testContext(t), c); asCallError(t, err).Fate != NotSent {
				t.Errorf("while it is down: %v", err)
			}
			n.start()
			err := tt.call(testContext(t), c)
			if got(err) != tt.want {
				t.Errorf("the caller got %v, want %s", err, tt.want)
			}
			// A probe of the session in use puts right what the client must not.
			o.Session = c
			r := probeIt(t, n.server(), o)
			if want := map[bool]string{true: "client_reconnect succeeded", false: "client_reconnect skipped"}[tt.status == "400"]; outcomes(r) != want {
				t.Errorf("probe: %s, want %s (%s)", outcomes(r), want, r.Before.Seen)
			}
			if err := callEcho(testContext(t), c); err != nil {
				t.Errorf("after the probe: %v", err)
			}
			n.kill() // so that all its lines have been read
			counts := n.counter.arrived()
			wantInit := tt.initialize
			if tt.status == "400" {
				wantInit++ // the probe's
			}
			calls := counts["tools/call"] - 1 // the last one, above
			if tt.method == "tools/list" {
				calls = counts["tools/list"] - 1 // the probe's
			}
			if counts["initialize"] != wantInit || calls != tt.arrived {
				t.Errorf("arrived: %v; want initialize %d, %s %d", counts, wantInit, tt.method, tt.arrived)
			}
			t.Logf("TypeScript SDK, %s answered %s | initialize %d | %s %d | %s", tt.name, tt.status, counts["initialize"], tt.method, calls, got(err))
		})
	}
}

// The lock file must name no registry: whoever runs the test has their own.
func TestLockFileNamesNoRegistry(t *testing.T) {
	data, err := os.ReadFile(filepath.Join("testdata", "npm", "package-lock.json"))
	if err != nil {
		t.Fatal(err)
	}
	if len(data) == 0 || strings.Contains(string(data), `"resolved"`) {
		t.Error(errors.New("package-lock.json has resolved fields; write it with --omit-lockfile-registry-resolved"))
	}
}
