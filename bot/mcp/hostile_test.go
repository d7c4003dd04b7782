package mcp

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// TestMain makes the test binary a stdio server when a test asks for one.
func TestMain(m *testing.M) {
	if how := os.Getenv("MCP_TEST_SERVER"); how != "" {
		stdioServer(how)
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func stdioServer(how string) {
	if how == "endless" {
		for {
			if _, err := os.Stdout.WriteString(`{"a":"` + strings.Repeat(canary, 1000)); err != nil {
				return
			}
		}
	}
	s := sdk.NewServer(&sdk.Implementation{Name: "stdio", Version: "1"}, nil)
	name := "environment-clean"
	for _, kv := range os.Environ() {
		if !strings.HasPrefix(kv, "MCP_TEST_SERVER=") {
			name = "environment-leaked"
		}
	}
	sdk.AddTool(s, &sdk.Tool{Name: name}, func(context.Context, *sdk.CallToolRequest, struct{}) (*sdk.CallToolResult, any, error) {
		os.Exit(3)
		return nil, nil, nil
	})
	_ = s.Run(context.Background(), &sdk.StdioTransport{})
}

func stdioPeer(how string) Server {
	return Server{Name: "stdio", Command: []string{os.Args[0]}, Env: map[string]string{"MCP_TEST_SERVER": how}}
}

// Hostile answers: a clear error, bounded memory, nothing of the payload.
func TestProbeOfAHostileServer(t *testing.T) {
	chunk := []byte(strings.Repeat(canary, 4096))
	flood := func(w io.Writer, total int) {
		for n := 0; n < total; n += len(chunk) {
			if _, err := w.Write(chunk); err != nil {
				return
			}
		}
	}
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	flood(z, 10<<20)
	z.Close()
	tenMB := packed.Bytes()
	attacks := map[string]func(w http.ResponseWriter, id string){
		"100 MB": func(w http.ResponseWriter, id string) {
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":{"x":"`, id)
			flood(w, 100<<20)
		},
		"100 MB error": func(w http.ResponseWriter, _ string) {
			w.WriteHeader(500)
			flood(w, 100<<20)
		},
		"compressed bomb": func(w http.ResponseWriter, id string) {
			w.Header().Set("Content-Type", "application/json")
			w.Header().Set("Content-Encoding", "gzip")
			// Members of a gzip stream may be strung together.
			z := gzip.NewWriter(w)
			fmt.Fprintf(z, `{"jsonrpc":"2.0","id":%s,"result":{"x":"`, id)
			z.Close()
			for range 20 {
				if _, err := w.Write(tenMB); err != nil {
					return
				}
			}
		},
		"endless event": func(w http.ResponseWriter, _ string) {
			w.Header().Set("Content-Type", "text/event-stream")
			fmt.Fprint(w, "data: ")
			flood(w, 100<<20)
		},
		"endless small events": func(w http.ResponseWriter, _ string) {
			w.Header().Set("Content-Type", "text/event-stream")
			for range 1 << 20 {
				if _, err := fmt.Fprintf(w, "data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/%s\"}\n\n", canary); err != nil {
					return
				}
			}
		},
		"endless pages": func(w http.ResponseWriter, id string) {
			rpcAnswer(w, 200, fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"tools":[{"name":"%d"}],"nextCursor":"%d"}}`, id, time.Now().UnixNano(), time.Now().UnixNano()))
		},
		"many empty tools": func(w http.ResponseWriter, id string) {
			rpcAnswer(w, 200, fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"tools":[{}%s]}}`, id, strings.Repeat(",{}", 300_000)))
		},
		"null tools": func(w http.ResponseWriter, id string) {
			rpcAnswer(w, 200, fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"tools":[null]}}`, id))
		},
		"not JSON": func(w http.ResponseWriter, _ string) { rpcAnswer(w, 200, canary) },
	}
	for _, name := range sortedKeys(attacks) {
		t.Run(name, func(t *testing.T) {
			p := newPeer(t, plainText)
			p.on(func(w http.ResponseWriter, _ *http.Request, m, id string) bool {
				if m != "tools/list" {
					return false
				}
				attacks[name](w, id)
				return true
			})
			runtime.GC()
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			start := time.Now()
			r := probeIt(t, p.server(), Options{Deadline: 8 * time.Second})
			runtime.ReadMemStats(&after)
			if took := time.Since(start); took > 10*time.Second {
				t.Errorf("took %v", took)
			}
			if grown := int64(after.HeapSys) - int64(before.HeapSys); grown > 200<<20 {
				t.Errorf("the heap grew by %d MB", grown>>20)
			}
			answers := slices.Contains([]string{"endless pages", "null tools"}, name)
			if r.Answering != answers {
				t.Errorf("answering %v: %s", r.Answering, r.Before.Seen)
			}
			if !answers && outcomes(r) == "" {
				t.Error("no attempt was recorded")
			}
		})
	}
}

func TestRedirectsStayWithinTheOrigin(t *testing.T) {
	leaked := make(chan string, 1)
	other := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		select {
		case leaked <- r.Header.Get("Authorization") + r.Header.Get(sessionHeader):
		default:
		}
	}))
	defer other.Close()
	p := newPeer(t, plainText)
	s := p.server()
	s.Header = func(context.Context) (http.Header, error) {
		return http.Header{"Authorization": {"Bearer secret"}}, nil
	}
	target := other.URL + "/" + canary
	p.on(func(w http.ResponseWriter, r *http.Request, m, _ string) bool {
		if r.URL.Path == "/moved" || m == methodInitialize || m == methodDiscover {
			return false
		}
		http.Redirect(w, r, target, http.StatusTemporaryRedirect)
		return true
	})
	if r := probeIt(t, s, Options{}); r.Answering {
		t.Error("followed a redirect to another origin")
	}
	select {
	case got := <-leaked:
		t.Errorf("the other origin got %q", got)
	default:
	}
	target = p.URL + "/moved"
	if r := probeIt(t, s, Options{}); !r.Answering {
		t.Errorf("did not follow a redirect within the origin: %s", r.Before.Seen)
	}
}

func TestStdio(t *testing.T) {
	t.Run("healthy, with a clean environment", func(t *testing.T) {
		t.Setenv("PLAYBOOK_SECRET", "never passed on")
		c := connectTo(t, stdioPeer("serve"), ClientOptions{})
		lists, err := c.Capabilities(testContext(t))
		if err != nil {
			t.Fatal(err)
		}
		if _, ok := lists[kindTools]["environment-clean"]; !ok {
			t.Errorf("tools: %v", lists[kindTools])
		}
		if r := probeIt(t, stdioPeer("serve"), Options{}); outcomes(r) != "client_reconnect skipped" {
			t.Errorf("%s: %s", outcomes(r), r.Before.Seen)
		}
	})
	t.Run("dies in a call, is started again by the probe", func(t *testing.T) {
		c := connectTo(t, stdioPeer("serve"), ClientOptions{})
		_, err := c.CallTool(testContext(t), &sdk.CallToolParams{Name: "environment-clean"})
		if !errors.Is(err, ErrOutcomeUnknown) {
			t.Errorf("a process that dies in tools/call: %v", err)
		}
		_ = c.sess.cs.Wait()
		_, err = c.ListTools(testContext(t), nil)
		if e := asCallError(t, err); e.Fate != NotSent || !errors.Is(err, ErrDisconnected) {
			t.Errorf("after its death: %+v", e)
		}
		if r := probeIt(t, stdioPeer("serve"), Options{Session: c}); outcomes(r) != "client_reconnect succeeded" {
			t.Errorf("%s: %+v", outcomes(r), r)
		}
		if c.Epoch() != 2 {
			t.Errorf("epoch %d: a new process is a new session", c.Epoch())
		}
	})
	t.Run("writes without end", func(t *testing.T) {
		r := probeIt(t, stdioPeer("endless"), Options{Deadline: 4 * time.Second})
		if r.Answering {
			t.Error("answering?")
		}
	})
	t.Run("no such program", func(t *testing.T) {
		r := probeIt(t, Server{Name: "stdio", Command: []string{"/nonexistent/" + canary}}, Options{})
		if outcomes(r) != nothingHelped || !strings.Contains(r.Before.Seen, errNoCommand.Error()) {
			t.Errorf("%s: %s", outcomes(r), r.Before.Seen)
		}
	})
}

// A server that accepts the GET stream and stays silent must not hold Connect.
func TestSilentStreamDoesNotHoldConnect(t *testing.T) {
	p := newPeer(t, plainText)
	p.on(func(_ http.ResponseWriter, r *http.Request, m, _ string) bool {
		if m != http.MethodGet {
			return false
		}
		select {
		case <-p.quit:
		case <-r.Context().Done():
		}
		return true
	})
	c := connectTo(t, p.server(), ClientOptions{streamWait: 50 * time.Millisecond})
	if err := c.Ping(testContext(t)); err != nil {
		t.Error(err)
	}
}
