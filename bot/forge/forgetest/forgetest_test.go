package forgetest_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"playbook-bot/bot/forge"
	"playbook-bot/bot/forge/forgetest"
)

// world is the one the deliveries were recorded in: repository 3 of
// organisation 6.
func world(t *testing.T) *forgetest.Forge {
	t.Helper()
	f := forgetest.New(time.Now)
	t.Cleanup(f.Close)
	for _, login := range []string{"root", "alice", "bob", "mallory", "botty"} {
		f.AddUser(login)
	}
	f.AddOrg("ops", "root")
	f.SkipRepoIDs(3)
	f.AddRepo("ops/runtime")
	f.AddCollaborator("ops/runtime", "alice", "admin")
	f.AddCollaborator("ops/runtime", "bob", "write")
	return f
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func get[T any](v T, err error) func(*testing.T) T {
	return func(t *testing.T) T {
		t.Helper()
		check(t, err)
		return v
	}
}

// shape is a JSON value with its scalars replaced by their kinds.
func shape(v any) any {
	switch v := v.(type) {
	case map[string]any:
		out := map[string]any{}
		for k, e := range v {
			out[k] = shape(e)
		}
		return out
	case []any:
		if len(v) == 0 {
			return "[]"
		}
		return []any{shape(v[0])}
	case nil:
		return "null"
	default:
		return fmt.Sprintf("%T", v)
	}
}

// differences lists where two shapes differ. null and a value are alike for
// the keys that are sometimes null.
func differences(path string, got, want any) []string {
	g, gok := got.(map[string]any)
	w, wok := want.(map[string]any)
	if gok && wok {
		var out []string
		for k := range w {
			if _, ok := g[k]; !ok {
				out = append(out, path+"."+k+" is missing")
				continue
			}
			out = append(out, differences(path+"."+k, g[k], w[k])...)
		}
		for k := range g {
			if _, ok := w[k]; !ok {
				out = append(out, path+"."+k+" is not in a recorded one")
			}
		}
		return out
	}
	gl, gok := got.([]any)
	wl, wok := want.([]any)
	if gok && wok {
		return differences(path+"[]", gl[0], wl[0])
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		return []string{fmt.Sprintf("%s is %v, recorded %v", path, got, want)}
	}
	return nil
}

// TestDeliveriesAreLikeRecordedOnes compares header names and the whole
// structure of the JSON with what a real Gitea sent.
func TestDeliveriesAreLikeRecordedOnes(t *testing.T) {
	recorded := get(forgetest.ReadDeliveries(os.DirFS("../gitea/testdata")))(t)
	f := world(t)
	f.AddRepoHook("ops/runtime", "s3cret")
	f.Hold(true)
	n := get(f.OpenIssue("bob", "ops/runtime", "t", "b"))(t)
	made := map[string]forgetest.Delivery{}
	step := func(name string, err error) {
		t.Helper()
		check(t, err)
		list := f.Take()
		if len(list) != 1 {
			t.Fatalf("%s made %d deliveries", name, len(list))
		}
		made[name] = list[0]
	}
	step("issues-opened-form", nil)
	id, err := f.Comment("mallory", "ops/runtime", n, "c")
	step("comment-created-by-reader", err)
	step("comment-edited-by-other", f.EditComment("alice", id, "d"))
	step("comment-deleted", f.DeleteComment("bob", id))
	title, body := "new", "newer"
	step("issues-edited-title", f.EditIssue("bob", "ops/runtime", n, &title, nil))
	step("issues-edited-body", f.EditIssue("bob", "ops/runtime", n, nil, &body))
	step("issues-label-updated", f.Label("bob", "ops/runtime", n, "recovery/refused"))
	step("issues-closed", f.CloseIssue("alice", "ops/runtime", n))
	step("issues-reopened", f.Reopen("alice", "ops/runtime", n))
	pull, err := f.OpenPull("bob", "ops/runtime", "t", "b")
	step("pull-request-opened", err)
	_, err = f.Comment("bob", "ops/runtime", pull, "c")
	step("pr-comment-created", err)

	compared := 0
	for _, want := range recorded {
		got, ok := made[want.Name]
		if !ok {
			continue
		}
		compared++
		if got.Path != want.Path || got.Event != want.Event {
			t.Errorf("%s: %s to %s, recorded %s to %s", want.Name, got.Event, got.Path, want.Event, want.Path)
		}
		for name := range want.Header {
			if name != "Host" && name != "Content-Length" && got.Header.Get(name) == "" {
				t.Errorf("%s: no header %s", want.Name, name)
			}
		}
		for _, name := range []string{"X-Gitea-Event", "X-Gitea-Event-Type", "X-Github-Event", "X-Gogs-Event-Type",
			"X-Gitea-Hook-Installation-Target-Type", "Content-Type"} {
			if got.Header.Get(name) != want.Header.Get(name) {
				t.Errorf("%s: %s is %q, recorded %q", want.Name, name, got.Header.Get(name), want.Header.Get(name))
			}
		}
		var g, w any
		check(t, json.Unmarshal(got.Body, &g))
		check(t, json.Unmarshal(want.Body, &w))
		for _, d := range differences("", shape(g), shape(w)) {
			// Labels stood on the recorded issue and not on ours, or the reverse.
			if !strings.HasPrefix(d, ".issue.labels is ") && !strings.HasPrefix(d, ".issue.assignee") {
				t.Errorf("%s: %s", want.Name, d)
			}
		}
	}
	if compared != len(made) {
		t.Errorf("%d of %d kinds were compared", compared, len(made))
	}
}

func TestDeliveriesAreHeldLostDoubledAndReordered(t *testing.T) {
	f := world(t)
	f.AddRepoHook("ops/runtime", "a")
	f.AddOrgHook("ops", "b")
	var got []string
	f.SetSink(func(path string, h http.Header, body []byte) int {
		got = append(got, path+" "+h.Get("X-Gitea-Delivery"))
		return http.StatusAccepted
	})
	get(f.OpenIssue("bob", "ops/runtime", "t", "b"))(t)
	f.Settle()
	if len(got) != 2 || !strings.HasPrefix(got[0], "/webhook/gitea/repo/3 ") || !strings.HasPrefix(got[1], "/webhook/gitea/org/6 ") {
		t.Fatalf("two hooks, deliveries %q", got)
	}
	got = nil
	f.Hold(true)
	get(f.Comment("bob", "ops/runtime", 1, "c"))(t)
	f.Settle()
	held := f.Take()
	if len(held) != 2 || len(got) != 0 {
		t.Fatalf("%d held, %d delivered", len(held), len(got))
	}
	again := f.Redelivered(held[0])
	if string(again.Body) != string(held[0].Body) || again.Header.Get("X-Gitea-Delivery") == held[0].Header.Get("X-Gitea-Delivery") ||
		again.Header.Get("X-GitHub-Delivery") != again.Header.Get("X-Gitea-Delivery") {
		t.Error("a redelivery is the same body under a new id")
	}
	statuses := f.Send(held[1], again, again) // held[0] itself is lost
	if len(got) != 3 || !slices.Equal(statuses, []int{202, 202, 202}) || got[1] != got[2] {
		t.Errorf("sent %q, statuses %v", got, statuses)
	}
	f.Hold(false)
	get(f.Comment("bob", "ops/runtime", 1, "c"))(t)
	f.Settle()
	if list := f.Deliveries(); len(list) != 7 || list[6].Status != 202 {
		t.Errorf("%d deliveries in all", len(list))
	}
}

func TestASaveWithoutChangeTellsNobody(t *testing.T) {
	f := world(t)
	f.AddRepoHook("ops/runtime", "a")
	f.Hold(true)
	n := get(f.OpenIssue("bob", "ops/runtime", "t", "b"))(t)
	id := get(f.Comment("bob", "ops/runtime", n, "c"))(t)
	f.Take()
	title, body := "t", "b"
	check(t, f.EditComment("bob", id, "c"))
	check(t, f.EditIssue("bob", "ops/runtime", n, &title, &body))
	check(t, f.Reopen("bob", "ops/runtime", n))
	if list := f.Take(); len(list) != 0 {
		t.Errorf("%d deliveries", len(list))
	}
	title, body = "t2", "b2"
	check(t, f.EditIssue("bob", "ops/runtime", n, &title, &body))
	if list := f.Take(); len(list) != 2 {
		t.Errorf("title and body at once made %d deliveries, want one each", len(list))
	}
}

func TestPeopleAreRefusedAsOnTheForge(t *testing.T) {
	f := world(t)
	n := get(f.OpenIssue("bob", "ops/runtime", "t", "b"))(t)
	id := get(f.Comment("bob", "ops/runtime", n, "c"))(t)
	want := func(err, kind error) {
		t.Helper()
		if !errors.Is(err, kind) {
			t.Errorf("error %v, want %v", err, kind)
		}
	}
	want(f.EditComment("mallory", id, "x"), forgetest.ErrForbidden)
	want(f.DeleteComment("mallory", id), forgetest.ErrForbidden)
	want(f.Lock("bob", "ops/runtime", n, true), forgetest.ErrForbidden)
	want(f.EditComment("bob", id+1, "x"), forgetest.ErrNotFound)
	check(t, f.Lock("alice", "ops/runtime", n, true))
	_, err := f.Comment("mallory", "ops/runtime", n, "x")
	want(err, forgetest.ErrLocked)
	get(f.Comment("bob", "ops/runtime", n, "x"))(t)
	f.Archive("ops/runtime", true)
	_, err = f.Comment("bob", "ops/runtime", n, "x")
	want(err, forgetest.ErrArchived)
	_, err = f.OpenIssue("bob", "ops/runtime", "t", "")
	want(err, forgetest.ErrArchived)
}

func TestTimesAreWholeSecondsOfTheGivenClock(t *testing.T) {
	now := time.Date(2026, 7, 1, 12, 0, 0, 700e6, time.UTC)
	f := forgetest.New(func() time.Time { return now })
	f.AddUser("bob")
	f.AddRepo("bob/r")
	n := get(f.OpenIssue("bob", "bob/r", "t", "b"))(t)
	id := get(f.Comment("bob", "bob/r", n, "c"))(t)
	now = now.Add(200 * time.Millisecond)
	check(t, f.EditComment("bob", id, "d"))
	c := f.Comments("bob/r", n)[0]
	if !c.CreatedAt.Equal(time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)) || !c.UpdatedAt.Equal(c.CreatedAt) {
		t.Errorf("an edit within the second shows: %v, %v", c.CreatedAt, c.UpdatedAt)
	}
	now = now.Add(200 * time.Millisecond)
	check(t, f.EditComment("bob", id, "e"))
	if c := f.Comments("bob/r", n)[0]; c.UpdatedAt.Sub(c.CreatedAt) != time.Second {
		t.Errorf("an edit in the next second: %v, %v", c.CreatedAt, c.UpdatedAt)
	}
}

func call(t *testing.T, c *http.Client, token, method, url, body string) (*http.Response, string, error) {
	t.Helper()
	req := get(http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body)))(t)
	req.Header.Set("Authorization", "token "+token)
	resp, err := c.Do(req)
	if err != nil {
		return nil, "", err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	return resp, string(text), err
}

// TestOverAListener: the same forge over a real connection, faults included.
func TestOverAListener(t *testing.T) {
	f := world(t)
	get(f.OpenIssue("bob", "ops/runtime", "t", "b"))(t)
	token := f.Token("bob")
	l := get(net.Listen("tcp", "127.0.0.1:0"))(t)
	done := make(chan error, 1)
	go func() { done <- f.Serve(l) }()
	url := "http://" + l.Addr().String() + "/api/v1/repos/ops/runtime/issues/1/comments"
	tr := &http.Transport{DisableKeepAlives: true}
	c := &http.Client{Transport: tr}
	resp, _, err := call(t, c, token, "POST", url, `{"body":"one"}`)
	check(t, err)
	if resp.StatusCode != http.StatusCreated || resp.Header.Get("Date") == "" {
		t.Errorf("status %d", resp.StatusCode)
	}
	f.OrderKind("comment.create", forgetest.DroppedDone())
	if _, _, err := call(t, c, token, "POST", url, `{"body":"two"}`); err == nil {
		t.Error("a dropped call was answered")
	}
	f.OrderKind("comment.create", forgetest.Fault{Truncate: true})
	if _, text, err := call(t, c, token, "POST", url, `{"body":"three"}`); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("a truncated answer: %q, %v", text, err)
	}
	if got := f.CommentsBy("bob", "ops/runtime", 1); len(got) != 3 {
		t.Errorf("%d comments, want 3", len(got))
	}
	f.Close()
	if err := <-done; !errors.Is(err, http.ErrServerClosed) {
		t.Errorf("served until %v", err)
	}
}

func TestOrdersTakeTheirTurn(t *testing.T) {
	f := world(t)
	token := f.Token("bob")
	first := f.Order(forgetest.On("GET", "/user"), forgetest.Answer(503).For(2))
	second := f.OrderKind("user.self", forgetest.Answer(401))
	always := f.OrderKind("user.self", forgetest.GatewayPage(502).For(-1))
	var got []int
	for range 5 {
		resp, _, err := call(t, f.Client(), token, "GET", "http://x/api/v1/user", "")
		check(t, err)
		got = append(got, resp.StatusCode)
	}
	if !slices.Equal(got, []int{503, 503, 401, 502, 502}) || first.Applied() != 2 || second.Applied() != 1 || always.Applied() != 2 {
		t.Errorf("statuses %v", got)
	}
	always.Cancel()
	if resp, _, _ := call(t, f.Client(), token, "GET", "http://x/api/v1/user", ""); resp.StatusCode != 200 {
		t.Errorf("after the cancelled order: %d", resp.StatusCode)
	}
	f.SetDown(true)
	if _, _, err := call(t, f.Client(), token, "GET", "http://x/api/v1/user", ""); err == nil {
		t.Error("a forge that is down answers")
	}
	f.SetDown(false)
	if resp, _, _ := call(t, f.Client(), token, "GET", "http://x/api/v1/user", ""); resp.StatusCode != 200 {
		t.Errorf("up again: %d", resp.StatusCode)
	}
	if n := f.CallCounts()["user.self"]; n != 8 {
		t.Errorf("%d calls in the log", n)
	}
}

// TestInABubble: nothing of the fake needs a socket or outlives the test.
func TestInABubble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := forgetest.New(time.Now)
		f.AddUser("bob")
		f.AddRepo("bob/r")
		f.AddRepoHook("bob/r", "s")
		f.SetSink(func(string, http.Header, []byte) int { return 202 })
		n := get(f.OpenIssue("bob", "bob/r", "t", "b"))(t)
		f.OrderKind("issue.read", forgetest.Fault{Delay: time.Hour})
		start := time.Now()
		resp, _, err := call(t, f.Client(), f.Token("bob"), "GET", fmt.Sprintf("http://x/api/v1/repos/bob/r/issues/%d", n), "")
		check(t, err)
		if resp.StatusCode != 200 || time.Since(start) != time.Hour {
			t.Errorf("status %d after %v", resp.StatusCode, time.Since(start))
		}
		synctest.Wait()
		if len(f.Deliveries()) != 1 {
			t.Errorf("%d deliveries", len(f.Deliveries()))
		}
	})
}

func TestReactionsAndLabelsAreReadBack(t *testing.T) {
	f := world(t)
	n := get(f.OpenIssue("bob", "ops/runtime", "t", "b"))(t)
	check(t, f.Label("bob", "ops/runtime", n, "zebra"))
	check(t, f.Label("bob", "ops/runtime", n, "area/net"))
	check(t, f.Unlabel("bob", "ops/runtime", n, "zebra"))
	if got := f.Labels("ops/runtime", n); !slices.Equal(got, []string{"area/net"}) {
		t.Errorf("labels %q", got)
	}
	token := f.Token("bob")
	url := fmt.Sprintf("http://x/api/v1/repos/ops/runtime/issues/%d/reactions", n)
	if _, _, err := call(t, f.Client(), token, "POST", url, `{"content":"eyes"}`); err != nil {
		t.Fatal(err)
	}
	if got := f.Reactions("bob", "ops/runtime", n, forge.Object{Kind: forge.ObjectIssue, ID: n}); !slices.Equal(got, []forge.Reaction{forge.ReactionSeen}) {
		t.Errorf("reactions %q", got)
	}
}
