package mcp

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestParseServers(t *testing.T) {
	tests := []struct {
		name, text string
		want       string // names, or
		errs       []string
	}{
		{"nothing", " \n ", "", nil},
		{"name list", "a=http://x/mcp, b=https://y:8080/?k=v\nc=http://z", "a b c", nil},
		{"yaml", "servers:\n  - name: a\n    url: https://x/mcp\n    headers: {X-Key: v}\n  - name: b\n    command: [node, s.mjs]\n    dir: /srv\n    env: {A: b}\n", "a b", nil},
		{"no url", "a=", "", []string{"server a: needs a url or a command"}},
		{"bad item", "a=http://x,oops", "", []string{"entry 2: expected name=url"}},
		{"all errors at once", "a=ftp://x,a b=http://x,c=http://u:hunter2@h/,d=http://x#f", "", []string{
			"server a: url: must begin with http://", "entry 2: server name", "server c: url: must hold no user", "server d: url: must hold no #fragment"}},
		{"twice", "a=http://x,A=http://y", "", []string{"server A: named twice"}},
		{"unknown field", "servers:\n  - name: a\n    urll: http://hunter2\n", "", []string{"line 3: unknown field urll"}},
		{"wrong kind", "servers:\n  - name: a\n    command: node hunter2\n", "", []string{"line 3: a value of the wrong kind"}},
		{"not yaml", "servers:\n  a: hunter2\n b: c\n", "", []string{"line 2: not YAML"}},
		{"not yaml either", "servers: [}\n hunter2", "", []string{"not YAML"}},
		{"no servers", "servers: []\n", "", []string{"no servers"}},
		{"two documents", "servers: [{name: a, url: 'http://x'}]\n---\nservers: []\n", "", []string{"more than one YAML document"}},
		{"url and command", "servers: [{name: a, url: 'http://x', command: [b]}]", "", []string{"both a url and a command"}},
		{"empty program", "servers: [{name: a, command: ['']}]", "", []string{"program is empty"}},
		{"token for a command", "servers: [{name: a, command: [b], token_env: T}]", "", []string{"for a url"}},
		{"env for a url", "servers: [{name: a, url: 'http://x', env: {A: b}}]", "", []string{"for a command"}},
		{"two tokens", "servers: [{name: a, url: 'http://x', token_env: T, token_file: f}]", "", []string{"both token_file and token_env"}},
		{"token unset", "servers: [{name: a, url: 'http://x', token_env: UNSET}]", "", []string{"token_env: the variable is unset"}},
		{"token with a line break", "servers: [{name: a, url: 'http://x', token_env: SPLIT}]", "", []string{"token_env"}},
		{"idempotency key", "servers: [{name: a, url: 'http://x', headers: {idempotency-key: hunter2}}]", "", []string{"Idempotency-Key is the protocol's"}},
		{"session id", "servers: [{name: a, url: 'http://x', headers: {mcp-session-id: hunter2}}]", "", []string{"Mcp-Session-Id is the protocol's"}},
		{"header injection", "servers: [{name: a, url: 'http://x', headers: {X-A: \"b\\r\\nhunter2\"}}]", "", []string{"X-A has a value"}},
		{"header name", "servers: [{name: a, url: 'http://x', headers: {'X A': b}}]", "", []string{"no header name"}},
		{"too large", strings.Repeat("#", maxConfig+1), "", []string{"larger than"}},
	}
	env := func(name string) (string, bool) {
		v, ok := map[string]string{"T": "token", "SPLIT": "a\nhunter2"}[name]
		return v, ok
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			ss, err := ParseServers(tt.text, env)
			if len(tt.errs) == 0 {
				if err != nil || strings.Join(ss.Names(), " ") != tt.want {
					t.Fatalf("got %v, %v", ss.Names(), err)
				}
				return
			}
			if err == nil {
				t.Fatalf("no error, got %v", ss.Names())
			}
			for _, want := range tt.errs {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%q does not say %q", err, want)
				}
			}
			if strings.Contains(err.Error(), "hunter2") {
				t.Errorf("a value is in the error: %v", err)
			}
		})
	}
}

func TestServerHeaders(t *testing.T) {
	file := filepath.Join(t.TempDir(), "token")
	write := func(s string) {
		if err := os.WriteFile(file, []byte(s), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("one\n")
	ss, err := ParseServers("servers:\n  - {name: f, url: 'http://x', token_file: "+file+", headers: {X-Key: k}}\n  - {name: e, url: 'http://x', token_env: T}\n",
		func(string) (string, bool) { return " two ", true })
	if err != nil {
		t.Fatal(err)
	}
	want := func(s Server, auth string) {
		t.Helper()
		h, err := s.Header(context.Background())
		if err != nil || h.Get("Authorization") != auth {
			t.Errorf("got %v, %v; want %s", h, err, auth)
		}
	}
	want(ss[0], "Bearer one")
	write("rotated")
	want(ss[0], "Bearer rotated")
	want(ss[1], "Bearer two")
	write(" \n")
	if _, err := ss[0].Header(context.Background()); err == nil {
		t.Error("a blank token file")
	}
	// What fails there reaches the caller as one clause, without the path.
	p := newPeer(t, plainText)
	s := p.server()
	s.Header = ss[0].Header
	if r := probeIt(t, s, Options{}); r.Answering || !strings.Contains(r.Before.Seen, ErrCredentials.Error()) {
		t.Errorf("got %+v", r.Before)
	}
	wantCounts(t, p, map[string]int{"initialize": 0, methodDiscover: 0})
}

func TestLookup(t *testing.T) {
	ss := Servers{{Name: "gitea-tools"}, {Name: "wiki"}}
	if s, err := ss.Lookup("Gitea-Tools"); err != nil || s.Name != "gitea-tools" {
		t.Errorf("got %v, %v", s, err)
	}
	for name, want := range map[string]string{
		"gitea":                  "it has gitea-tools, wiki",
		"http://169.254.169.254": "a URL is not probed",
		"HTTPS://gitea-tools":    "a URL is not probed",
	} {
		if _, err := ss.Lookup(name); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := (Servers{}).Lookup("a"); err == nil || !strings.Contains(err.Error(), "it names none") {
		t.Errorf("got %v", err)
	}
}

func FuzzParseServers(f *testing.F) {
	f.Add("a=http://x/mcp,b=https://y")
	f.Add("servers:\n  - name: a\n    url: http://x\n    token_env: T\n")
	f.Add("servers: [{name: a, command: [b, c], env: {A: b}}]")
	f.Add("a=http://u:p@h")
	f.Fuzz(func(t *testing.T, text string) {
		ss, err := ParseServers(text, func(string) (string, bool) { return "", false })
		if err != nil && ss != nil {
			t.Fatal("servers and an error")
		}
		seen := map[string]bool{}
		for _, s := range ss {
			if err := s.Validate(); err != nil {
				t.Fatalf("accepted what is not valid: %v", err)
			}
			if key := strings.ToLower(s.Name); seen[key] {
				t.Fatalf("%s twice", s.Name)
			} else {
				seen[key] = true
			}
			if _, err := ss.Lookup(s.Name); err != nil {
				t.Fatal(err)
			}
		}
	})
}
