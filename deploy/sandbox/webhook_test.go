//go:build unix

package main

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	sdk "code.gitea.io/sdk/gitea"

	"playbook-bot/deploy/sandbox/internal/tracker"
)

// These tests hold the real Gitea to what the intake in bot/webhook and the
// decoder in bot/forge/gitea take for granted about deliveries.

const hookSecret = "a secret of these tests"

// delivery is one request of a webhook, with what the tests look at.
type delivery struct {
	path    string
	header  http.Header
	raw     []byte
	payload payload
}

type payload struct {
	Action  string
	IsPull  bool `json:"is_pull"`
	Changes struct {
		Body *struct{ From string }
	}
	Issue       struct{ Number int64 }
	PullRequest *struct{ Number int64 } `json:"pull_request"`
	Comment     struct {
		ID   int64
		Body string
		User struct{ Login string }
	}
	Repository struct {
		ID    int64
		Owner struct{ ID int64 }
	}
	Sender struct{ Login string }
}

// receiver takes deliveries in, as the bot would.
func receiver(t *testing.T) (url string, next func(what string) delivery) {
	t.Helper()
	got := make(chan delivery, 100)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		raw, err := io.ReadAll(r.Body)
		if err != nil {
			t.Errorf("read a delivery: %v", err)
		}
		got <- delivery{path: r.URL.Path, header: r.Header, raw: raw}
		w.WriteHeader(http.StatusAccepted)
	}))
	t.Cleanup(server.Close)
	return server.URL, func(what string) delivery {
		t.Helper()
		ctx := bounded(t, what)
		select {
		case d := <-got:
			body := d.raw
			if form := formPayload(d); form != "" {
				body = []byte(form)
			}
			if err := json.Unmarshal(body, &d.payload); err != nil {
				t.Fatalf("%s: %v", what, err)
			}
			return d
		case <-ctx.Done():
			t.Fatalf("%s: no delivery", what)
			panic("unreachable")
		}
	}
}

func formPayload(d delivery) string {
	if d.header.Get("Content-Type") != "application/x-www-form-urlencoded" {
		return ""
	}
	values, _ := url.ParseQuery(string(d.raw))
	return values.Get("payload")
}

func sign(secret string, data []byte) string {
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write(data)
	return hex.EncodeToString(mac.Sum(nil))
}

func TestDeliveriesOfAThread(t *testing.T) {
	t.Parallel()
	repo, ctx := newRepo(t), t.Context()
	url, next := receiver(t)
	ok(t, repo.Hook(ctx, url+"/hook", hookSecret))

	want := func(what, event, action, sender string) delivery {
		t.Helper()
		d := next(what)
		if d.header.Get("X-Gitea-Event") != event || d.payload.Action != action || d.payload.Sender.Login != sender {
			t.Fatalf("%s: %s %s by %s, want %s %s by %s", what, d.header.Get("X-Gitea-Event"), d.payload.Action,
				d.payload.Sender.Login, event, action, sender)
		}
		if d.payload.Repository.ID != repo.ID {
			t.Errorf("%s: repository %d, want %d", what, d.payload.Repository.ID, repo.ID)
		}
		return d
	}

	number := must(repo.Open(ctx, "rhea", "a thread", "body"))(t)
	d := want("open", "issues", "opened", "rhea")
	if got, signature := d.header.Get("X-Gitea-Signature"), sign(hookSecret, d.raw); got != signature {
		t.Errorf("X-Gitea-Signature %q, want the raw body's", got)
	} else if got := d.header.Get("X-Hub-Signature-256"); got != "sha256="+signature {
		t.Errorf("X-Hub-Signature-256 %q", got)
	}
	for _, family := range []string{"X-Gitea-", "X-Gogs-", "X-GitHub-"} {
		if d.header.Get(family+"Event") != "issues" || d.header.Get(family+"Delivery") == "" {
			t.Errorf("%sEvent and %[1]sDelivery are %q and %q", family, d.header.Get(family+"Event"), d.header.Get(family+"Delivery"))
		}
	}

	id := must(repo.Comment(ctx, "rhea", number, "/restart full_mcp_restart"))(t)
	if d := want("comment", "issue_comment", "created", "rhea"); d.payload.Comment.ID != id || d.payload.Issue.Number != number {
		t.Errorf("comment: %+v", d.payload)
	}
	ok(t, repo.EditComment(ctx, "wren", id, "edited"))
	d = want("edit", "issue_comment", "edited", "wren")
	if d.payload.Comment.User.Login != "rhea" || d.payload.Changes.Body == nil || d.payload.Changes.Body.From != "/restart full_mcp_restart" {
		t.Errorf("edit: %+v, want its author and its old text", d.payload)
	}
	ok(t, repo.DeleteComment(ctx, "wren", id))
	want("delete", "issue_comment", "deleted", "wren")

	// Title and body at once are two deliveries.
	ok(t, repo.EditIssue(ctx, "rhea", number, "another title", "another body"))
	first, second := want("edit issue", "issues", "edited", "rhea"), want("edit issue", "issues", "edited", "rhea")
	if (first.payload.Changes.Body == nil) == (second.payload.Changes.Body == nil) {
		t.Errorf("both or neither of two deliveries is of the body: %s, %s", first.raw, second.raw)
	}
	ok(t, repo.SetClosed(ctx, "wren", number, true))
	want("close", "issues", "closed", "wren")
	ok(t, repo.SetClosed(ctx, "wren", number, false))
	want("reopen", "issues", "reopened", "wren")
	ok(t, repo.DeleteIssue(ctx, "olivia", number))
	want("delete issue", "issues", "deleted", "olivia")
}

func TestDeliveriesOfAPullRequest(t *testing.T) {
	t.Parallel()
	repo, ctx := newRepo(t), t.Context()
	url, next := receiver(t)
	ok(t, repo.Hook(ctx, url+"/hook", hookSecret))
	number := must(repo.Pull(ctx, "wren", "a change", "body"))(t)
	d := next("open")
	if d.header.Get("X-Gitea-Event") != "pull_request" || d.payload.Action != "opened" || d.payload.PullRequest == nil {
		t.Errorf("open: %s %s", d.header.Get("X-Gitea-Event"), d.raw)
	}
	must(repo.Comment(ctx, "wren", number, "text"))(t)
	for {
		d = next("comment")
		if d.payload.Action == "created" {
			break
		}
	}
	if e, typ := d.header.Get("X-Gitea-Event"), d.header.Get("X-Gitea-Event-Type"); e != "issue_comment" || typ != "pull_request_comment" || !d.payload.IsPull {
		t.Errorf("comment: event %q, type %q, is_pull %t", e, typ, d.payload.IsPull)
	}
}

func TestTwoHooksDeliverOneEvent(t *testing.T) {
	t.Parallel()
	repo, ctx := newRepo(t), t.Context()
	url, next := receiver(t)
	ok(t, repo.Hook(ctx, url+"/repo", hookSecret))
	ok(t, repo.OrgHook(ctx, url+"/org", hookSecret))
	must(repo.Open(ctx, "rhea", "a thread", "body"))(t)
	one, other := next("first"), next("second")
	if one.path == other.path {
		t.Errorf("both went to %s", one.path)
	}
	if string(one.raw) != string(other.raw) {
		t.Errorf("bodies differ:\n%s\n%s", one.raw, other.raw)
	}
	if one.header.Get("X-Gitea-Delivery") == other.header.Get("X-Gitea-Delivery") {
		t.Error("both have one delivery id")
	}
	if org := must(box.gitea.OrgID(ctx, repo.Org))(t); one.payload.Repository.Owner.ID != org {
		t.Errorf("owner %d, want the organisation's id %d", one.payload.Repository.Owner.ID, org)
	}
}

func TestHookKinds(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, contentType, secret string
		check                     func(delivery) error
	}{
		{"a form is signed as the JSON in it", "form", hookSecret, func(d delivery) error {
			form := formPayload(d)
			if form == "" {
				return fmt.Errorf("content type %q", d.header.Get("Content-Type"))
			}
			if got := d.header.Get("X-Gitea-Signature"); got != sign(hookSecret, []byte(form)) {
				return fmt.Errorf("signature %q", got)
			}
			return nil
		}},
		{"without a secret the headers are there and empty", "json", "", func(d delivery) error {
			for _, name := range []string{"X-Gitea-Signature", "X-Hub-Signature-256"} {
				values, there := d.header[http.CanonicalHeaderKey(name)]
				if !there || strings.TrimPrefix(values[0], "sha256=") != "" {
					return fmt.Errorf("%s: %q", name, values)
				}
			}
			return nil
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			repo, ctx := newRepo(t), t.Context()
			url, next := receiver(t)
			option := tracker.HookOption(url+"/hook", c.secret)
			option.Config["content_type"] = c.contentType
			client := must(box.gitea.As(ctx, "olivia"))(t)
			must(drop(client.CreateRepoHook(repo.Org, repo.Name, option)))(t)
			must(repo.Open(ctx, "rhea", "a thread", "body"))(t)
			if err := c.check(next("open")); err != nil {
				t.Error(err)
			}
		})
	}
}

// drop leaves the SDK's response out.
func drop[T any](v T, _ *sdk.Response, err error) (T, error) { return v, err }
