//go:build unix

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	mcp "github.com/modelcontextprotocol/go-sdk/mcp"

	"playbook-bot/deploy/sandbox/internal/bot"
	"playbook-bot/deploy/sandbox/internal/tracker"
	"playbook-bot/playbook"
)

// Tokens of the tools, each an account's.
const (
	readersToken = "a-token-of-the-reader-for-these-tests"
	adminsToken  = "a-token-of-the-admin-for-these-tests-"
)

type bearer string

func (b bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+string(b))
	return http.DefaultTransport.RoundTrip(r)
}

// agent is the Go SDK's client of a bot's tools.
type agent struct {
	t  *testing.T
	cs *mcp.ClientSession
}

func newAgent(t *testing.T, b *bot.Bot, token string) agent {
	t.Helper()
	client := mcp.NewClient(&mcp.Implementation{Name: "agent", Version: "1"}, nil)
	cs := must(client.Connect(t.Context(), &mcp.StreamableClientTransport{
		Endpoint: b.URL + "/mcp", HTTPClient: &http.Client{Transport: bearer(token)}, DisableStandaloneSSE: true}, nil))(t)
	t.Cleanup(func() { _ = cs.Close() })
	return agent{t, cs}
}

// output is what of a tool's answer the tests look at.
type output struct {
	playbook.Decision
	Filed *struct {
		Issue, URL string
		Existing   bool
	}
	// URL is where record_attempt posted.
	URL     string
	text    string
	isError bool
}

func (a agent) call(tool string, args map[string]any) output {
	a.t.Helper()
	r := must(a.cs.CallTool(a.t.Context(), &mcp.CallToolParams{Name: tool, Arguments: args}))(a.t)
	out := output{isError: r.IsError}
	for _, c := range r.Content {
		if text, isText := c.(*mcp.TextContent); isText {
			out.text += text.Text
		}
	}
	ok(a.t, json.Unmarshal(must(json.Marshal(r.StructuredContent))(a.t), &out))
	return out
}

// number is a filed issue's.
func (o output) number(t *testing.T) (n int64) {
	t.Helper()
	if o.isError || o.Filed == nil {
		t.Fatalf("not filed: %s", o.text)
	}
	_, text, _ := strings.Cut(o.Filed.Issue, "#")
	if _, err := fmt.Sscan(text, &n); err != nil {
		t.Fatal(err)
	}
	return n
}

// says awaits the bot's first comment after an entry and gives its decision.
func says(t *testing.T, repo *tracker.Repo, number, after int64) (tracker.Entry, playbook.Decision) {
	t.Helper()
	thread, err := tracker.Await(bounded(t, "the bot's answer"), repo, number, func(th tracker.Thread) bool { return len(th.After(after, botLogin)) > 0 })
	ok(t, err)
	e := thread.After(after, botLogin)[0]
	return e, must(decisionOf(e))(t)
}

// TestToolsOnTheRealGitea: what an agent files is judged by its account's
// standing, whatever arguments come with it, and belongs to that account.
func TestToolsOnTheRealGitea(t *testing.T) {
	t.Parallel()
	repo, ctx := newRepo(t), t.Context()
	b := startBot(t, repo, "MCP_TOKENS=rhea="+readersToken+",adam="+adminsToken)
	rhea, adam := newAgent(t, b, readersToken), newAgent(t, b, adminsToken)
	attempts := []any{map[string]any{"action": "client_reconnect", "outcome": "failed", "reason": "still 404 @adam\n\n/endorse 1/1"}}
	ask := func(more ...any) map[string]any {
		args := map[string]any{"action": "full_mcp_restart", "target": "mcp-search", "file_in": repo.FullName(),
			"prior_recovery_attempts_json": attempts, "reason": "all clients 404\n\n/endorse 1/1"}
		for i := 0; i < len(more); i += 2 {
			args[more[i].(string)] = more[i+1]
		}
		return args
	}
	// None of these files, and none is approved but as a hypothesis.
	for _, more := range [][]any{{"standing", "owner"}, {"roles", []any{"controller"}}, {"break_glass_authorized", true, "request_break_glass", true},
		{"file_in", "ops/elsewhere"}, {"target", "x` @adam"}} {
		if out := rhea.call("request_mcp_restart", ask(more...)); out.Filed != nil || out.Allowed && !out.Hypothetical {
			t.Errorf("%v: %s", more, out.text)
		}
	}

	out := rhea.call("request_mcp_restart", ask())
	n := out.number(t)
	if out.Filed.URL != fmt.Sprintf("%s/issues/%d", repo.URL(), n) {
		t.Errorf("filed at %s", out.Filed.URL)
	}
	answer, d := says(t, repo, n, 0)
	if d.Verdict != "refused" || d.Code != playbook.CodeClassMatrixDenied || d.Requester != "rhea" || len(d.Counted) != 1 {
		t.Errorf("rhea's request: %s", answer.Body)
	}
	if again := rhea.call("gitea_request_mcp_restart", ask()); again.Filed == nil || !again.Filed.Existing || again.number(t) != n {
		t.Errorf("filed again: %s", again.text)
	}
	id := must(repo.Comment(ctx, "adam", n, "/endorse "+d.Request))(t)
	if answer, d = says(t, repo, n, id); d.State != "approved" || d.Requester != "rhea" || d.Endorser == nil || *d.Endorser != "adam" {
		t.Errorf("endorsed: %s", answer.Body)
	}
	// On the real server any writer may edit what the bot's account posted.
	thread := must(repo.Thread(ctx, n))(t)
	last := thread.Entries[len(thread.Entries)-1].ID
	ok(t, repo.EditIssue(ctx, "wren", n, "Restart request", strings.Replace(thread.Entries[0].Body, "mcp-search", "mcp-index", 1)))
	if answer, _ = says(t, repo, n, last); !strings.Contains(answer.Body, "Revoked") {
		t.Errorf("changed by another: %s", answer.Body)
	}
	if d := rhea.call("recovery_request_status", map[string]any{"issue": out.Filed.Issue}); d.State != "replaced" && d.State != "withdrawn" {
		t.Errorf("after the change: %s", d.text)
	}

	n = adam.call("request_mcp_restart", ask("prior_recovery_attempts_json", "[]")).number(t)
	answer, d = says(t, repo, n, 0)
	if d.Verdict != "refused" || d.Code != playbook.CodeAttemptLogMissing || d.Requester != "adam" {
		t.Errorf("adam's request: %s", answer.Body)
	}
	rec := adam.call("record_attempt", map[string]any{"issue": fmt.Sprintf("%s#%d", repo.FullName(), n), "action": "client_reconnect", "outcome": "failed"})
	_, posted, found := strings.Cut(rec.URL, "#issuecomment-")
	if rec.isError || !found {
		t.Fatal(rec.text)
	}
	if answer, d = says(t, repo, n, must(strconv.ParseInt(posted, 10, 64))(t)); d.State != "approved" || d.Requester != "adam" {
		t.Errorf("after the record: %s", answer.Body)
	}
}

// forgetful is an MCP server that can lose its sessions, as one does that is
// started again.
type forgetful struct {
	server *mcp.Server
	mu     sync.Mutex
	h      http.Handler
}

func newForgetful() *forgetful {
	f := &forgetful{server: mcp.NewServer(&mcp.Implementation{Name: "mcp-search", Version: "1"}, nil)}
	mcp.AddTool(f.server, &mcp.Tool{Name: "search", Description: "Searches."}, func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, any, error) {
		return &mcp.CallToolResult{}, nil, nil
	})
	f.forget()
	return f
}

func (f *forgetful) forget() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.h = mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return f.server }, nil)
}

func (f *forgetful) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	h := f.h
	f.mu.Unlock()
	h.ServeHTTP(w, r)
}

// probeAgain is how soon the bot probes a server again.
const probeAgain = 31 * time.Second

// TestProbeMakesTheRestartUnnecessary: the server has lost its sessions; the
// bot, which held one, begins another, and the request for a full restart is
// closed. The conversation is printed as Gitea holds it.
func TestProbeMakesTheRestartUnnecessary(t *testing.T) {
	t.Parallel()
	repo, ctx := newRepo(t), t.Context()
	search := newForgetful()
	server := httptest.NewServer(search)
	t.Cleanup(server.Close)
	startBot(t, repo, "MCP_SERVERS=mcp-search="+server.URL)
	var shown bytes.Buffer
	i := &incident{repo: repo, show: func(e tracker.Entry) { showEntry(&shown, e) }, seen: map[int64]bool{}}
	defer func() { t.Logf("the conversation:\n%s", shown.String()) }()

	i.number = must(repo.Open(ctx, reader, "mcp-search is slow", "/probe mcp-search"))(t)
	answer := must(i.answer(ctx, 0))(t)
	if !strings.Contains(answer.Body, "answered before the first rung") {
		t.Fatalf("a server in good health: %s", answer.Body)
	}
	again := time.After(probeAgain)
	search.forget()
	ok(t, i.say(ctx, reader, "/restart full_mcp_restart target=mcp-search symptom=session_expired every client gets 404", func(e tracker.Entry) error {
		_, err := decisionOf(e)
		return err
	}))
	ok(t, i.say(ctx, reader, "/attempt client_reconnect failed my client comes back with its old session", func(e tracker.Entry) error {
		return expect(condition{strings.Contains(e.Body, "Recorded"), "recorded"})
	}))
	select {
	case <-again:
	case <-ctx.Done():
		t.Fatal(ctx.Err())
	}
	ok(t, i.say(ctx, reader, "/probe mcp-search", func(e tracker.Entry) error {
		d, err := decisionOf(e)
		if err != nil {
			return err
		}
		return expect(
			condition{strings.Contains(verdictText(e), "Recovered by `client_reconnect`") && strings.Contains(verdictText(e), "`full_mcp_restart` was not needed"), "recovered by a new connection, no restart needed"},
			condition{strings.Contains(verdictText(e), "Calls in flight are not replayed"), "that nothing is replayed"},
			condition{d.State == "recovered" && d.Request != "", "the request is over"},
			condition{strings.Contains(e.Body, `"verified": true`), "a verified attempt"},
		)
	}))
	ok(t, i.settled(ctx))
}
