package gitea

import (
	"encoding/json"
	"net/http"
	"os"
	"strings"
	"testing"

	"playbook-bot/bot/forge"
	"playbook-bot/bot/forge/forgetest"
	"playbook-bot/bot/forge/internal/wire"
)

func recorded(t testing.TB) map[string]forgetest.Delivery {
	t.Helper()
	list, err := forgetest.ReadDeliveries(os.DirFS("testdata"))
	if err != nil {
		t.Fatal(err)
	}
	byName := map[string]forgetest.Delivery{}
	for _, d := range list {
		byName[d.Name] = d
	}
	return byName
}

var (
	alice   = forge.Account{ID: 2, Login: "alice"}
	bob     = forge.Account{ID: 3, Login: "bob"}
	mallory = forge.Account{ID: 4, Login: "mallory"}
)

func TestDecodeRecordedDeliveries(t *testing.T) {
	issue := forge.Object{Kind: forge.ObjectIssue, ID: 1}
	comment := func(id int64) forge.Object { return forge.Object{Kind: forge.ObjectComment, ID: id} }
	tests := map[string]struct {
		action         forge.Action
		number         int64
		object         forge.Object
		sender, author forge.Account
		pull           bool
		body           string // a part of it
	}{
		"comment-after-repo-rename":          {forge.ActionCreated, 1, comment(141), bob, bob, false, "/recommend"},
		"comment-created-by-reader-org-hook": {forge.ActionCreated, 1, comment(131), mallory, mallory, false, "/restart host_restart"},
		"comment-created-by-reader":          {forge.ActionCreated, 1, comment(131), mallory, mallory, false, "/restart host_restart"},
		"comment-created-crlf-quote-fence":   {forge.ActionCreated, 1, comment(132), bob, bob, false, "\r\n\r\n> /restart host_restart\r\n"},
		"comment-deleted":                    {forge.ActionDeleted, 1, comment(133), bob, bob, false, ""},
		"comment-edited-by-author":           {forge.ActionEdited, 1, comment(132), bob, bob, false, "timeout no answer in 30 s"},
		"comment-edited-by-other":            {forge.ActionEdited, 1, comment(132), alice, bob, false, "changed by a repository admin"},
		"comment-unicode-nbsp":               {forge.ActionCreated, 1, comment(142), bob, bob, false, "\u00a0"},
		"issues-assigned":                    {forge.ActionOther, 1, issue, alice, bob, false, ""},
		"issues-closed":                      {forge.ActionClosed, 1, issue, bob, bob, false, ""},
		"issues-edited-body":                 {forge.ActionEdited, 1, issue, bob, bob, false, "worker_restart"},
		// A title's edit vouches for no text, so it names no author of one.
		"issues-edited-title":  {forge.ActionEdited, 1, issue, bob, forge.Account{}, false, "full_mcp_restart"},
		"issues-label-updated": {forge.ActionOther, 1, issue, alice, bob, false, ""},
		"issues-opened-form":   {forge.ActionOpened, 1, issue, bob, bob, false, "### Requested class"},
		"issues-reopened":      {forge.ActionReopened, 1, issue, bob, bob, false, ""},
		"pr-comment-created":   {forge.ActionCreated, 2, comment(140), bob, bob, true, "/restart worker_restart"},
		"pull-request-opened":  {forge.ActionOpened, 2, forge.Object{Kind: forge.ObjectIssue, ID: 2}, bob, bob, true, "pr body"},
	}
	list := recorded(t)
	if len(list) != len(tests) {
		t.Errorf("%d recorded deliveries, %d expected", len(list), len(tests))
	}
	for name, want := range tests {
		d := list[name]
		ev, err := Dialect{}.Decode(d.Header, d.Body)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if ev.Action != want.action || ev.Number != want.number || ev.Object != want.object || ev.Sender != want.sender ||
			ev.Author != want.author || ev.Pull != want.pull || !strings.Contains(ev.Body, want.body) {
			t.Errorf("%s: %+v", name, ev)
		}
		if ev.Repo.ID != 3 || ev.Repo.OwnerID != 6 || ev.OrgID != 6 || ev.Repo.Owner != "ops" || ev.Forge != "gitea" {
			t.Errorf("%s: forge %q, repository %+v of %d", name, ev.Forge, ev.Repo, ev.OrgID)
		}
		if ev.Delivery != d.Header.Get("X-Gitea-Delivery") || ev.Delivery == "" {
			t.Errorf("%s: delivery %q", name, ev.Delivery)
		}
	}
}

func TestDecodeEvents(t *testing.T) {
	const repo = `"repository":{"id":9,"name":"x","owner":{"id":7,"login":"o"}},"sender":{"id":1,"login":"a"}`
	tests := []struct {
		name, event, body string
		want              forge.Action
		err               error
	}{
		{"a push", "push", `{` + repo + `}`, forge.ActionOther, nil},
		{"a review comment has no comment", "pull_request_comment", `{"action":"reviewed","pull_request":{"number":2},` + repo + `}`, forge.ActionOther, nil},
		{"a review as a comment event", "issue_comment", `{"action":"reviewed","pull_request":{"number":2},` + repo + `}`, forge.ActionOther, nil},
		{"an approval", "pull_request_approved", `{"action":"reviewed","pull_request":{"number":2},` + repo + `}`, forge.ActionOther, nil},
		{"a push to a pull request", "pull_request", `{"action":"synchronized","pull_request":{"number":2},` + repo + `}`, forge.ActionOther, nil},
		{"an issue deleted", "issues", `{"action":"deleted","issue":{"number":2},` + repo + `}`, forge.ActionDeleted, nil},
		{"an issue transferred", "issues", `{"action":"transferred","issue":{"number":2},` + repo + `}`, forge.ActionTransferred, nil},
		{"an action not known", "issues", `{"action":"locked","issue":{"number":2},` + repo + `}`, forge.ActionOther, nil},
		{"created is no action of an issue", "issues", `{"action":"created","issue":{"number":2},` + repo + `}`, forge.ActionOther, nil},
		{"opened is no action of a comment", "issue_comment", `{"action":"opened","issue":{"number":2},"comment":{"id":5},` + repo + `}`, forge.ActionOther, nil},
		{"no sender", "issues", `{"action":"opened","issue":{"number":2,"user":null},"repository":{"id":9},"sender":null}`, forge.ActionOpened, nil},
		{"no event", "", `{"action":"opened","issue":{"number":2},` + repo + `}`, "", wire.ErrNoEvent},
		{"no JSON", "issues", `{"action":`, "", wire.ErrNoJSON},
		{"empty", "issues", ``, "", wire.ErrNoJSON},
		{"null", "issues", ` null`, "", wire.ErrNoJSON},
		{"a list", "issues", `[]`, "", wire.ErrNoJSON},
		{"two objects", "issues", `{}{}`, "", wire.ErrNoJSON},
		{"a string for a number", "issues", `{"action":"opened","issue":{"number":"2"},` + repo + `}`, "", wire.ErrNoJSON},
		{"no repository", "issues", `{"action":"opened","issue":{"number":2}}`, "", wire.ErrNoRepo},
		{"no action", "issues", `{"issue":{"number":2},` + repo + `}`, "", wire.ErrNoAction},
		{"no issue", "issues", `{"action":"opened",` + repo + `}`, "", wire.ErrNoObject},
		{"a negative number", "issues", `{"action":"opened","issue":{"number":-2},` + repo + `}`, "", wire.ErrNoObject},
		{"no comment", "issue_comment", `{"action":"created","issue":{"number":2},` + repo + `}`, "", wire.ErrNoObject},
		{"a comment in no thread", "issue_comment", `{"action":"created","comment":{"id":5},` + repo + `}`, "", wire.ErrNoObject},
		// The headers are not signed: a body is not to be read as another event's.
		{"a comment replayed as an issue", "issues", `{"action":"deleted","issue":{"number":2},"comment":{"id":5},` + repo + `}`, "", wire.ErrWrongEvent},
		{"an issue replayed as a pull request", "pull_request", `{"action":"deleted","issue":{"number":2},` + repo + `}`, "", wire.ErrWrongEvent},
		{"a pull request replayed as an issue", "issues", `{"action":"deleted","pull_request":{"number":2},` + repo + `}`, "", wire.ErrWrongEvent},
	}
	for _, tt := range tests {
		ev, err := Dialect{}.Decode(http.Header{"X-Gitea-Event": {tt.event}, "X-Github-Event": {"ping"}}, []byte(tt.body))
		if err != tt.err || ev.Action != tt.want {
			t.Errorf("%s: action %q, error %v; want %q, %v", tt.name, ev.Action, err, tt.want, tt.err)
		}
	}
}

func TestDecodeForgejoHeaders(t *testing.T) {
	d := recorded(t)["comment-created-by-reader"]
	h := http.Header{}
	for name, v := range d.Header {
		h[strings.Replace(name, "X-Gitea-", "X-Forgejo-", 1)] = v
	}
	ev, err := Dialect{Forge: "forgejo"}.Decode(h, d.Body)
	if err != nil || ev.Action != forge.ActionCreated || ev.Forge != "forgejo" || ev.Delivery == "" {
		t.Errorf("%+v, %v", ev, err)
	}
	if _, mac := (Dialect{}).Signature(h, d.Body, d.Body); len(mac) != 32 {
		t.Errorf("signature of %d bytes", len(mac))
	}
}

func TestSignatureHeaders(t *testing.T) {
	sum := strings.Repeat("ab", 32)
	tests := []struct {
		name   string
		header http.Header
		want   bool
	}{
		{"Gitea", http.Header{"X-Gitea-Signature": {sum}}, true},
		{"Gogs", http.Header{"X-Gogs-Signature": {sum}}, true},
		{"GitHub", http.Header{"X-Hub-Signature-256": {"sha256=" + sum}}, true},
		{"capitals", http.Header{"X-Gitea-Signature": {strings.ToUpper(sum)}}, true},
		{"none", http.Header{}, false},
		{"empty", http.Header{"X-Gitea-Signature": {""}, "X-Hub-Signature-256": {"sha256="}}, false},
		{"no hex", http.Header{"X-Gitea-Signature": {"xyz"}}, false},
		{"SHA-1 only", http.Header{"X-Hub-Signature": {"sha1=" + sum}}, false},
	}
	for _, tt := range tests {
		signed, mac := Dialect{}.Signature(tt.header, []byte("raw"), []byte("payload"))
		if got := len(mac) > 0; got != tt.want || (got && string(signed) != "payload") {
			t.Errorf("%s: %d bytes over %q", tt.name, len(mac), signed)
		}
	}
}

func FuzzDecode(f *testing.F) {
	list := recorded(f)
	for _, name := range []string{"comment-edited-by-other", "issues-closed"} { // few: long seeds are slow to minimise
		f.Add(list[name].Header.Get("X-Gitea-Event"), list[name].Body)
	}
	f.Add("issues", []byte(`{"action":"opened","issue":{"number":1},"repository":{"id":1}}`))
	f.Fuzz(func(t *testing.T, event string, body []byte) {
		ev, err := Dialect{}.Decode(http.Header{"X-Gitea-Event": {event}}, body)
		if err != nil {
			if ev != (forge.Event{}) {
				t.Errorf("an error and an event: %+v", ev)
			}
			return
		}
		if ev.Action != forge.ActionOther && (ev.Repo.ID <= 0 || ev.Number <= 0 || ev.Object.ID <= 0 || !json.Valid(body)) {
			t.Errorf("an event without its object: %+v", ev)
		}
	})
}
