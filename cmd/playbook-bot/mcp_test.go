package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"playbook-bot/bot/forge/forgetest"
	"playbook-bot/bot/webhook"
)

const (
	rheasToken = "rheas-token-of-thirty-two-characters-or-more"
	adasToken  = "adas-token-of-thirty-two-characters-or-more="
)

func TestTokens(t *testing.T) {
	table, err := parseTokens("ada=" + adasToken + ", rhea=" + rheasToken + ",ada=" + strings.Repeat("x", 32))
	if err != nil {
		t.Fatal(err)
	}
	for token, want := range map[string]string{adasToken: "ada", rheasToken: "rhea", strings.Repeat("x", 32): "ada", "": "", rheasToken + "x": "", "rhea": ""} {
		if login, ok := table.account(token); login != want || ok != (want != "") {
			t.Errorf("%q: %q, %v", token, login, ok)
		}
	}
	for value, part := range map[string]string{
		"ada":              "is not LOGIN=TOKEN",
		"=" + adasToken:    "is not LOGIN=TOKEN",
		"a b=" + adasToken: "is not LOGIN=TOKEN",
		"ada=short":        "32 characters",
		"ada=" + rheasToken[:20] + " " + rheasToken[20:]: "not one word",
		"ada=" + rheasToken + ",rhea=" + rheasToken:      "twice",
	} {
		_, err := parseTokens(value)
		if err == nil || !strings.Contains(err.Error(), part) || strings.Contains(err.Error(), "token-of") {
			t.Errorf("%q: %v, want %q and no token", value, err, part)
		}
	}
}

// bearer adds a token to every request.
type bearer string

func (b bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+string(b))
	return http.DefaultTransport.RoundTrip(r)
}

// toolClient is the SDK's client of a bot's tools.
func toolClient(t *testing.T, url, token string) *sdk.ClientSession {
	t.Helper()
	client := sdk.NewClient(&sdk.Implementation{Name: "agent", Version: "1"}, nil)
	cs, err := client.Connect(t.Context(), &sdk.StreamableClientTransport{
		Endpoint: url + "/mcp", HTTPClient: &http.Client{Transport: bearer(token)}, DisableStandaloneSSE: true,
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cs.Close() })
	return cs
}

// decided is what of a tool's structured output these tests look at.
type decided struct {
	Verdict      string
	Allowed      bool
	Rung         *int
	State, Code  string
	Requester    string
	Endorser     *string
	Hypothetical bool
	Filed        *struct {
		Issue, URL, Request string
		Existing            bool
	}
}

// call calls a tool and reads its text and output.
func call(t *testing.T, cs *sdk.ClientSession, name string, args map[string]any) (text string, d decided, isError bool) {
	t.Helper()
	r, err := cs.CallTool(t.Context(), &sdk.CallToolParams{Name: name, Arguments: args})
	if err != nil {
		return err.Error(), d, true // the arguments do not fit the schema
	}
	for _, c := range r.Content {
		text += c.(*sdk.TextContent).Text
	}
	raw, err := json.Marshal(r.StructuredContent)
	if err == nil {
		err = json.Unmarshal(raw, &d)
	}
	if err != nil {
		t.Fatal(err)
	}
	return text, d, r.IsError
}

// until asks for a request's status until it is as wanted.
func until(t *testing.T, cs *sdk.ClientSession, issue string, want func(decided) bool) decided {
	t.Helper()
	deadline := time.Now().Add(patience)
	for {
		text, d, isError := call(t, cs, "recovery_request_status", map[string]any{"issue": issue})
		if !isError && want(d) {
			return d
		}
		if time.Now().After(deadline) {
			t.Fatalf("the status of %s stays\n%s", issue, text)
		}
		select {
		case <-time.After(20 * time.Millisecond):
		case <-t.Context().Done():
		}
	}
}

func answered(d decided) bool { return d.State != "" }

func toolEnv(t *testing.T, g *fakeGitea) map[string]string {
	env := serveEnv(g, t.TempDir())
	env["MCP_TOKENS"] = "rhea=" + rheasToken + ",ada=" + adasToken
	return env
}

var attemptJSON = fmt.Sprintf(`[{"action":"client_reconnect","outcome":"failed","reason":"still 404","actor":"rhea","recorded_at":%q}]`,
	time.Now().UTC().Add(-time.Hour).Format(time.RFC3339))

// TestToolsFileThroughTheServer goes an agent's way: without standing refused
// and endorsed by a person; with standing approved.
func TestToolsFileThroughTheServer(t *testing.T) {
	g := newFakeGitea(t)
	s := startServe(t, toolEnv(t, g))
	g.addHook(s.url)
	rhea, ada := toolClient(t, s.url, rheasToken), toolClient(t, s.url, adasToken)
	args := map[string]any{"action": "full_mcp_restart", "target": "mcp-search", "prior_recovery_attempts_json": attemptJSON, "file_in": "ops/incidents"}

	text, d, isError := call(t, rhea, "request_mcp_restart", args)
	if isError || d.Filed == nil || d.Filed.Issue != "ops/incidents#1" || d.Filed.URL != g.url+"/ops/incidents/issues/1" || d.Code != "class_matrix_denied" {
		t.Fatalf("rhea: %s", text)
	}
	if d := until(t, rhea, d.Filed.Issue, answered); d.Verdict != "refused" || d.Requester != "rhea" {
		t.Errorf("rhea's request: %+v", d)
	}
	if _, again, _ := call(t, rhea, "gitea_request_mcp_restart", args); again.Filed == nil || !again.Filed.Existing || again.Filed.Request != "1/1" {
		t.Errorf("filed again: %+v", again.Filed)
	}
	if _, err := g.Comment("ada", "ops/incidents", 1, "/endorse 1/1"); err != nil {
		t.Fatal(err)
	}
	if d := until(t, rhea, "ops/incidents#1", func(d decided) bool { return d.Allowed }); d.State != "approved" || d.Endorser == nil || *d.Endorser != "ada" {
		t.Errorf("endorsed: %+v", d)
	}

	delete(args, "prior_recovery_attempts_json")
	_, d, isError = call(t, ada, "request_mcp_restart", args)
	if isError || d.Filed == nil || d.Allowed {
		t.Fatalf("ada: %+v", d)
	}
	until(t, ada, d.Filed.Issue, answered)
	text, _, isError = call(t, ada, "record_attempt", map[string]any{"issue": d.Filed.Issue, "action": "client_reconnect", "outcome": "failed"})
	if isError {
		t.Fatal(text)
	}
	if d := until(t, ada, d.Filed.Issue, func(d decided) bool { return d.Allowed }); d.State != "approved" || d.Requester != "ada" {
		t.Errorf("ada's request: %+v", d)
	}
}

// TestToolsAskForATokenAndNoBrowser: whatever is missing, nothing is told.
func TestToolsAskForATokenAndNoBrowser(t *testing.T) {
	g := newFakeGitea(t)
	s := startServe(t, toolEnv(t, g))
	post := func(change func(*http.Request)) int {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.url+"/mcp", strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{}}`))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Accept", "application/json, text/event-stream")
		change(r)
		res, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		_ = res.Body.Close()
		return res.StatusCode
	}
	auth := func(v string) func(*http.Request) { return func(r *http.Request) { r.Header.Set("Authorization", v) } }
	for name, c := range map[string]struct {
		change func(*http.Request)
		want   int
	}{
		"no token":        {func(*http.Request) {}, 401},
		"another":         {auth("Bearer " + strings.Repeat("y", 40)), 401},
		"no scheme":       {auth(rheasToken), 401},
		"the token":       {auth("Bearer " + rheasToken), 200},
		"a page":          {func(r *http.Request) { auth("Bearer " + rheasToken)(r); r.Header.Set("Origin", "https://evil.example") }, 403},
		"a page, by site": {func(r *http.Request) { auth("Bearer " + rheasToken)(r); r.Header.Set("Sec-Fetch-Site", "cross-site") }, 403},
		"too large": {func(r *http.Request) {
			auth("Bearer " + rheasToken)(r)
			r.Body, r.ContentLength = io.NopCloser(strings.NewReader(strings.Repeat(" ", 5<<20))), 5<<20
		}, 413},
	} {
		if got := post(c.change); got != c.want {
			t.Errorf("%s: status %d, want %d", name, got, c.want)
		}
	}
	without := startServe(t, serveEnv(g, t.TempDir()))
	res, err := http.Post(without.url+"/mcp", "application/json", strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	_ = res.Body.Close()
	if res.StatusCode != http.StatusNotFound {
		t.Errorf("without MCP_TOKENS: status %d", res.StatusCode)
	}
}

// TestNoArgumentsGiveStanding: whatever a holder without standing
// sends, no request of hers is approved, no gated action is allowed but as a
// hypothesis, and nothing she writes acts as anybody else.
func TestNoArgumentsGiveStanding(t *testing.T) {
	g := newFakeGitea(t)
	env := toolEnv(t, g)
	env["GITEA_BREAKGLASS_RESTART_AUTHORIZATION"] = "*"
	s := startServe(t, env)
	g.addHook(s.url)
	cs := toolClient(t, s.url, rheasToken)
	rnd := rand.New(rand.NewPCG(5, 63))
	filed := map[string]bool{}
	for range 80 {
		name, args := anyArguments(rnd)
		text, d, isError := call(t, cs, name, args)
		if isError {
			continue
		}
		if d.Allowed && !d.Hypothetical && d.Rung != nil && *d.Rung > 2 {
			t.Errorf("%s %v: allowed without standing:\n%s", name, args, text)
		}
		if d.Filed != nil {
			if d.Hypothetical {
				t.Errorf("%s %v: a hypothetical question was filed", name, args)
			}
			filed[d.Filed.Issue] = true
		}
	}
	if len(filed) == 0 || len(filed) > 5 {
		t.Errorf("%d issues were filed; between 1 and 5 should be", len(filed))
	}
	for issue := range filed {
		d := until(t, cs, issue, answered)
		if d.State == "approved" || d.Requester != "rhea" || d.Endorser != nil || d.Verdict == "approved" && d.Rung != nil && *d.Rung > 2 {
			t.Errorf("%s: %+v", issue, d)
		}
	}
}

// anyArguments are arguments made to get more than is one's own.
func anyArguments(rnd *rand.Rand) (tool string, args map[string]any) {
	one := func(of ...any) any { return of[rnd.IntN(len(of))] }
	text := func() any {
		return one("", "mcp-search", "all down", "### Requested class\n\nhost_restart", "/endorse 1/1", "x\n\n/endorse 1/1\n\n/endorse 2/1", "```\n/endorse 1/1\n```",
			"<!-- ", "-->\n\n/endorse 1/1", "@ada restart", "`", "``````", "> /endorse 1/1", "- [x] I request break-glass", "\u202e/endorse 1/1",
			"<!-- playbook-bot-filed:1 key=A account=1 login=ada tool=request_mcp_restart at=1 mac="+strings.Repeat("0", 64)+" -->",
			strings.Repeat("a ", 3000))
	}
	attempts := func() any {
		return one(nil, attemptJSON, "[]", `{"prior_recovery_attempts":`+attemptJSON+`,"standing":"owner","break_glass_authorized":true}`,
			strings.Replace(attemptJSON, `"rhea"`, `"ada"`, 1), strings.Replace(attemptJSON, "still 404", "```\\n\\n/endorse 1/1", 1),
			strings.Replace(attemptJSON, `"failed"`, `"failed","verified":true`, 1), "[{", []any{map[string]any{"action": "client_reconnect", "outcome": "failed"}})
	}
	args = map[string]any{
		"action":  one("full_mcp_restart", "host_restart", "rolling_mcp_restart", "worker_restart", "client_reconnect", "Full MCP Restart", "pkill", "full_mcp_restart\n/endorse 1/1", ""),
		"file_in": one("ops/incidents", "ops/incidents", "ops/incidents", "", "ops/elsewhere", "../..", "ops/incidents#1"),
		"target":  text(), "reason": text(), "symptoms": []any{text(), "session_expired"}, "request_break_glass": rnd.IntN(3) == 0,
	}
	if a := attempts(); a != nil {
		args["prior_recovery_attempts_json"] = a
	}
	if rnd.IntN(5) == 0 {
		args["standing"] = one("owner", "admin", "root")
	}
	if rnd.IntN(6) == 0 {
		args["roles"] = []any{"controller"}
	}
	if rnd.IntN(6) == 0 {
		args["break_glass_authorized"] = true
	}
	if rnd.IntN(8) == 0 {
		args[one("account", "requester", "login", "tool").(string)] = "ada"
	}
	tool = one("request_mcp_restart", "gitea_request_mcp_restart", "request_mcp_restart", "assess_escalation").(string)
	if tool == "assess_escalation" {
		delete(args, "file_in")
		delete(args, "reason")
	}
	return tool, args
}

// TestMCPOverStdio: without configuration the pure tools, for any caller.
func TestMCPOverStdio(t *testing.T) {
	cs, _ := stdioClient(t, map[string]string{})
	list, err := cs.ListTools(t.Context(), nil)
	if err != nil || len(list.Tools) != 8 {
		t.Fatalf("%d tools, %v", len(list.Tools), err)
	}
	text, d, isError := call(t, cs, "assess_escalation", map[string]any{"action": "full_mcp_restart"})
	if isError || d.Allowed || !strings.Contains(text, "REFUSED") {
		t.Errorf("assess: %s", text)
	}
	if text, _, isError := call(t, cs, "request_mcp_restart", map[string]any{"action": "full_mcp_restart", "file_in": "ops/incidents"}); !isError || !strings.Contains(text, "no forge account") {
		t.Errorf("filing: %s", text)
	}
	var errs strings.Builder
	if code := run(t.Context(), []string{"mcp"}, map[string]string{"MCP_ACCOUNT": "rhea"}, strings.NewReader(""), io.Discard, &errs); code != exitFailure || !strings.Contains(errs.String(), "GITEA_URL") {
		t.Errorf("MCP_ACCOUNT alone: %d %s", code, errs.String())
	}
}

// stdioClient runs "playbook-bot mcp" in this process with a client on its
// standard input and output.
func stdioClient(t *testing.T, environ map[string]string) (*sdk.ClientSession, <-chan int) {
	t.Helper()
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	exit := make(chan int, 1)
	ctx, stop := context.WithCancel(context.Background())
	t.Cleanup(stop)
	go func() {
		exit <- run(ctx, []string{"mcp"}, environ, inR, outW, io.Discard)
		_ = outW.Close()
	}()
	cs, err := sdk.NewClient(&sdk.Implementation{Name: "agent", Version: "1"}, nil).
		Connect(t.Context(), &sdk.IOTransport{Reader: outR, Writer: inW}, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cs.Close() })
	return cs, exit
}

// TestStdioFilesBesideTheServer: two processes, one SQLite file; the server
// hears of what the other filed by the forge's delivery.
func TestStdioFilesBesideTheServer(t *testing.T) {
	g := newFakeGitea(t)
	env := serveEnv(g, t.TempDir())
	s := startServe(t, env)
	g.addHook(s.url)
	until200(t, s.url+"/readyz")
	env["MCP_ACCOUNT"] = "ada"
	cs, exit := stdioClient(t, env)
	_, d, isError := call(t, cs, "request_mcp_restart", map[string]any{"action": "full_mcp_restart", "prior_recovery_attempts_json": attemptJSON, "file_in": "ops/incidents"})
	if isError || d.Filed == nil {
		t.Fatalf("filing: %+v", d)
	}
	g.waitForAnswer(t)
	if d := until(t, cs, d.Filed.Issue, answered); d.State != "approved" || d.Requester != "ada" {
		t.Errorf("the request: %+v", d)
	}
	_ = cs.Close()
	select {
	case code := <-exit:
		if code != exitOK {
			t.Errorf("mcp ended with %d", code)
		}
	case <-time.After(patience):
		t.Error("mcp does not end with its input")
	}
}

func until200(t *testing.T, url string) {
	t.Helper()
	deadline := time.Now().Add(patience)
	for time.Now().Before(deadline) {
		res, err := http.Get(url)
		if err == nil {
			_ = res.Body.Close()
			if res.StatusCode == http.StatusOK {
				return
			}
		}
		select {
		case <-time.After(20 * time.Millisecond):
		case <-t.Context().Done():
		}
	}
	t.Fatalf("%s does not answer 200", url)
}

// TestProbe runs the subcommand against the SDK's own server, against one that
// is gone, and by name.
func TestProbe(t *testing.T) {
	server := sdk.NewServer(&sdk.Implementation{Name: "search", Version: "1"}, nil)
	up := httptest.NewServer(sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return server }, nil))
	t.Cleanup(up.Close)
	down := httptest.NewServer(http.NotFoundHandler())
	down.Close()
	env := map[string]string{"MCP_SERVERS": "mcp-search=" + up.URL + ", gone=" + down.URL}
	probe := func(args ...string) (code int, out, errs string) {
		var o, e strings.Builder
		code = run(t.Context(), append([]string{"probe"}, args...), env, strings.NewReader(""), &o, &e)
		return code, o.String(), e.String()
	}
	if code, out, errs := probe("MCP-Search"); code != exitOK || !strings.Contains(out, "ANSWERS") || !strings.Contains(out, "client_reconnect skipped") || !strings.Contains(out, "verified") {
		t.Errorf("by name: %d\n%s%s", code, out, errs)
	}
	if code, out, errs := probe("--url", up.URL, "--json"); code != exitOK || !strings.Contains(out, `"answering": true`) {
		t.Errorf("by URL: %d\n%s%s", code, out, errs)
	}
	if code, out, errs := probe("gone"); code != exitFailure || !strings.Contains(out, "client_reconnect failed") || !strings.Contains(errs, "gone does not answer") {
		t.Errorf("gone: %d\n%s%s", code, out, errs)
	}
	for part, args := range map[string][]string{
		"no such server": {"wiki"}, "not probed": {"http://127.0.0.1/"}, "NAME is missing": {}, "name two servers": {"gone", "--url", up.URL}, "http://": {"--url", "ftp://x"},
	} {
		if code, _, errs := probe(args...); code != exitUsage || !strings.Contains(errs, part) {
			t.Errorf("%v: %d %s", args, code, errs)
		}
	}
	ctx, stop := context.WithCancel(t.Context())
	r, w := io.Pipe()
	exit := make(chan int, 1)
	go func() {
		exit <- run(ctx, []string{"probe", "mcp-search", "--watch", "--every", "10ms", "--json"}, env, strings.NewReader(""), w, io.Discard)
	}()
	dec := json.NewDecoder(r)
	for range 3 {
		var h struct{ Answering bool }
		if err := dec.Decode(&h); err != nil || !h.Answering {
			t.Errorf("watch: %+v, %v", h, err)
		}
	}
	stop()
	_ = r.Close()
	if code := <-exit; code != exitOK {
		t.Errorf("watch ended with %d", code)
	}
}

func TestServersAndTokensAreChecked(t *testing.T) {
	env := map[string]string{"MCP_SERVERS": "search=ftp://secret-host/x", "MCP_TOKENS": "ada=secret", "MCP_ACCOUNT": "a b"}
	_, err := loadConfig(env, nil, "MCP_SERVERS", "MCP_TOKENS", "MCP_ACCOUNT")
	if err == nil {
		t.Fatal("taken")
	}
	for _, part := range []string{"MCP_SERVERS cannot be read", "MCP_TOKENS must have", "MCP_ACCOUNT must be"} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%v: does not say %q", err, part)
		}
	}
	if strings.Contains(err.Error(), "secret") {
		t.Errorf("%v: shows a value", err)
	}
	env = map[string]string{"MCP_SERVERS": "servers:\n  - {name: a, url: 'https://x/', token_env: A_TOKEN}", "A_TOKEN": "t"}
	if s, err := loadConfig(env, nil, "MCP_SERVERS"); err != nil || len(s.Servers) != 1 || s.Servers[0].Header == nil {
		t.Errorf("token_env: %v", err)
	}
}

// addHook has the forge deliver to a bot.
func (g *fakeGitea) addHook(url string) {
	repo := g.Repo("ops/incidents")
	g.AddRepoHook("ops/incidents", webhook.HookSecret(planted, "gitea", webhook.ScopeRepo, repo.ID))
	g.SetSink(forgetest.URLSink(http.DefaultClient, url))
}
