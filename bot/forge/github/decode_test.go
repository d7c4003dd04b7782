package github

import (
	"bufio"
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"net/http"
	"net/textproto"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"playbook-bot/bot/forge"
	"playbook-bot/bot/forge/internal/wire"
)

// sample is a delivery of testdata.
type sample struct {
	header       http.Header
	raw, payload []byte // the body as sent, and the JSON in it
}

func samples(t testing.TB) map[string]sample {
	t.Helper()
	names, err := filepath.Glob("testdata/*.json")
	if err != nil || len(names) == 0 {
		t.Fatalf("no deliveries: %v", err)
	}
	out := map[string]sample{}
	for _, name := range names {
		base := strings.TrimSuffix(name, ".json")
		s := sample{payload: ok(os.ReadFile(name))(t)}
		s.raw = s.payload
		if form, err := os.ReadFile(base + ".form"); err == nil {
			s.raw = form
		}
		text := append(bytes.TrimSpace(ok(os.ReadFile(base+".headers"))(t)), "\r\n\r\n"...)
		h := ok(textproto.NewReader(bufio.NewReader(bytes.NewReader(text))).ReadMIMEHeader())(t)
		s.header = http.Header(h)
		out[filepath.Base(base)] = s
	}
	return out
}

func TestDecodeDeliveries(t *testing.T) {
	ada, ben := forge.Account{ID: 501, Login: "ada"}, forge.Account{ID: 502, Login: "ben"}
	eve, bot := forge.Account{ID: 503, Login: "eve"}, forge.Account{ID: 601, Login: "renovate[bot]"}
	ghost := forge.Account{ID: -1, Login: "ghost"}
	issue := func(n int64) forge.Object { return forge.Object{Kind: forge.ObjectIssue, ID: n} }
	comment := func(id int64) forge.Object { return forge.Object{Kind: forge.ObjectComment, ID: id} }
	tests := map[string]struct {
		action         forge.Action
		number         int64
		object         forge.Object
		sender, author forge.Account
		pull           bool
		body           string // a part of it
	}{
		"issues-opened":               {forge.ActionOpened, 7, issue(7), ada, ada, false, "down.\r\n\r\n/restart"},
		"issues-opened-form-delivery": {forge.ActionOpened, 7, issue(7), ada, ada, false, "### Target\n\n_No response_"},
		"issues-opened-empty":         {forge.ActionOpened, 7, issue(7), ada, ada, false, ""},
		"issues-edited-by-other":      {forge.ActionEdited, 7, issue(7), ben, ada, false, "changed"},
		"issues-closed":               {forge.ActionClosed, 7, issue(7), ben, ada, false, ""},
		"issues-reopened":             {forge.ActionReopened, 7, issue(7), ben, ada, false, ""},
		"issues-deleted":              {forge.ActionDeleted, 7, issue(7), ben, ada, false, ""},
		"issues-labeled":              {forge.ActionOther, 7, issue(7), ben, ada, false, ""},
		"issues-transferred":          {forge.ActionTransferred, 7, issue(7), ben, ada, false, ""},
		"issues-opened-by-transfer":   {forge.ActionOpened, 3, issue(3), forge.Account{}, ada, false, "/restart"},
		"comment-created":             {forge.ActionCreated, 7, comment(90001), ben, ben, false, "/attempt"},
		"comment-created-by-app":      {forge.ActionCreated, 7, comment(90002), bot, bot, false, ""},
		"comment-edited-by-other":     {forge.ActionEdited, 7, comment(90001), eve, ben, false, "/endorse 7/1"},
		"comment-deleted":             {forge.ActionDeleted, 7, comment(90001), eve, ben, false, ""},
		"comment-by-ghost":            {forge.ActionEdited, 7, comment(90003), eve, ghost, false, ""},
		"comment-on-pull":             {forge.ActionCreated, 8, comment(90004), ben, ben, true, "/recommend"},
		"pull-opened":                 {forge.ActionOpened, 8, issue(8), ben, ben, true, "fixes it"},
		"pull-merged":                 {forge.ActionClosed, 8, issue(8), ben, ben, true, ""},
		"ping":                        {action: forge.ActionOther, sender: ada},
		"ping-org":                    {action: forge.ActionOther, sender: ada},
		"installation-created":        {action: forge.ActionOther, sender: ada},
		"installation-repositories":   {action: forge.ActionOther, sender: ada},
		"push":                        {action: forge.ActionOther, sender: ada},
	}
	all := samples(t)
	if len(all) != len(tests) {
		t.Errorf("%d deliveries, %d are tested", len(all), len(tests))
	}
	for name, tt := range tests {
		s, ok := all[name]
		if !ok {
			t.Errorf("no delivery %s", name)
			continue
		}
		ev, err := Dialect{}.Decode(s.header, s.payload)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if !strings.Contains(ev.Body, tt.body) || tt.body == "" && tt.action == forge.ActionOpened && ev.Body != "" {
			t.Errorf("%s: body %q, want %q in it", name, ev.Body, tt.body)
		}
		want := forge.Event{Forge: "github", Delivery: s.header.Get("X-GitHub-Delivery"), Number: tt.number, Object: tt.object,
			Action: tt.action, Sender: tt.sender, Author: tt.author, Pull: tt.pull, Body: ev.Body, Repo: ev.Repo, OrgID: ev.OrgID}
		if ev != want {
			t.Errorf("%s:\n %+v, want\n %+v", name, ev, want)
		}
		repo := forge.Repo{ID: 9001, Owner: "ops", OwnerID: 700, Name: "incidents"}
		switch name {
		case "issues-opened-by-transfer":
			repo.ID, repo.Name = 9002, "archive"
		case "ping-org", "installation-created", "installation-repositories":
			repo = forge.Repo{}
		}
		if ev.Repo != repo || ev.OrgID != repo.OwnerID {
			t.Errorf("%s: repository %+v of %d", name, ev.Repo, ev.OrgID)
		}
	}
}

// TestSignatures: over the body as it is sent, in a form too.
func TestSignatures(t *testing.T) {
	for name, s := range samples(t) {
		signed, mac := Dialect{}.Signature(s.header, s.raw, s.payload)
		m := hmac.New(sha256.New, []byte("s3cret"))
		m.Write(signed)
		if !bytes.Equal(signed, s.raw) || !hmac.Equal(m.Sum(nil), mac) {
			t.Errorf("%s: the signature does not fit", name)
		}
	}
	for name, value := range map[string]string{
		"absent": "", "without its kind": strings.Repeat("ab", 32), "of another kind": "sha1=" + strings.Repeat("ab", 20),
		"no hex": "sha256=zz", "empty": "sha256=",
	} {
		h := http.Header{"X-Hub-Signature": {"sha1=" + strings.Repeat("ab", 20)}}
		h.Set("X-Hub-Signature-256", value)
		if signed, mac := (Dialect{}).Signature(h, []byte("x"), []byte("x")); signed != nil || mac != nil {
			t.Errorf("%s: %x over %q", name, mac, signed)
		}
	}
}

func TestDecodeRefuses(t *testing.T) {
	header := func(pairs ...string) http.Header {
		h := http.Header{}
		for i := 0; i+1 < len(pairs); i += 2 {
			h.Set(pairs[i], pairs[i+1])
		}
		return h
	}
	all := samples(t)
	issue, comment := all["issues-deleted"].payload, all["comment-deleted"].payload
	for _, tt := range []struct {
		name   string
		header http.Header
		body   []byte
		want   error
	}{
		{"no event", header(), issue, wire.ErrNoEvent},
		{"no JSON", header("X-GitHub-Event", "issues"), []byte(`[1]`), wire.ErrNoJSON},
		{"a comment replayed as an issue", header("X-GitHub-Event", "issues"), comment, wire.ErrWrongEvent},
		{"an issue replayed as a comment", header("X-GitHub-Event", "issue_comment"), issue, wire.ErrNoObject},
		{"an issue replayed as a pull request", header("X-GitHub-Event", "pull_request"), issue, wire.ErrWrongEvent},
		{"Gitea's", header("X-GitHub-Event", "issues", "X-Gitea-Event", "issues"), issue, errOtherForge},
		{"Forgejo's", header("X-GitHub-Event", "issues", "X-Forgejo-Event", "issues"), issue, errOtherForge},
		{"of no repository", header("X-GitHub-Event", "issues"), []byte(`{"action":"opened","issue":{"number":1}}`), wire.ErrNoRepo},
	} {
		if ev, err := (Dialect{}).Decode(tt.header, tt.body); err != tt.want || ev != (forge.Event{}) {
			t.Errorf("%s: %+v, %v; want %v", tt.name, ev, err, tt.want)
		}
	}
}

func TestTheNameIsTheConfigured(t *testing.T) {
	s := samples(t)["issues-opened"]
	ev, err := Dialect{Forge: "ghe"}.Decode(s.header, s.payload)
	if err != nil || ev.Forge != "ghe" || (Dialect{Forge: "ghe"}).Name() != "ghe" || (Dialect{}).Name() != "github" {
		t.Errorf("%q, %v", ev.Forge, err)
	}
}

// FuzzDecode: no payload makes it panic, and none that is taken for something
// to act on lacks what the bot keys it by.
func FuzzDecode(f *testing.F) {
	for _, s := range samples(f) {
		f.Add(s.header.Get("X-GitHub-Event"), s.payload)
	}
	f.Fuzz(func(t *testing.T, event string, body []byte) {
		h := http.Header{}
		h.Set("X-GitHub-Event", event)
		ev, err := Dialect{}.Decode(h, body)
		if err != nil && ev != (forge.Event{}) {
			t.Errorf("an event beside the error %v", err)
		}
		if ev.Action != forge.ActionOther && err == nil && (ev.Repo.ID <= 0 || ev.Number <= 0 || ev.Object.ID <= 0 || ev.Forge == "") {
			t.Errorf("%+v", ev)
		}
	})
}
