package webhook

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"playbook-bot/bot/forge"
	"playbook-bot/bot/forge/forgetest"
	"playbook-bot/bot/forge/gitea"
)

const master = "0123456789abcdef0123456789abcdef"

// intake is a handler with what it accepted and logged.
type intake struct {
	h      *Handler
	events []forge.Event
	log    bytes.Buffer
	fail   error
}

func newIntake(t testing.TB, change ...func(*Config)) *intake {
	t.Helper()
	in := &intake{}
	cfg := Config{
		Dialects: []Dialect{gitea.Dialect{}},
		Masters:  func() []string { return []string{master} },
		Accept: func(_ context.Context, ev forge.Event) (string, error) {
			if in.fail != nil {
				return "", in.fail
			}
			in.events = append(in.events, ev)
			return "stored", nil
		},
		Log: slog.New(slog.NewTextHandler(&in.log, nil)),
	}
	for _, ch := range change {
		ch(&cfg)
	}
	h, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	in.h = h
	return in
}

// post delivers and gives status and answer.
func (in *intake) post(method, path string, header http.Header, body io.Reader) (int, string) {
	r := httptest.NewRequest(method, path, body)
	for name, v := range header {
		r.Header[name] = v
	}
	w := httptest.NewRecorder()
	in.h.ServeHTTP(w, r)
	return w.Code, w.Body.String()
}

func sign(secret string, body []byte) string {
	m := hmac.New(sha256.New, []byte(secret))
	m.Write(body)
	return hex.EncodeToString(m.Sum(nil))
}

func recorded(t testing.TB) []forgetest.Delivery {
	t.Helper()
	list, err := forgetest.ReadDeliveries(os.DirFS("../forge/gitea/testdata"))
	if err != nil || len(list) == 0 {
		t.Fatal(err, len(list))
	}
	return list
}

func named(t testing.TB, name string) forgetest.Delivery {
	t.Helper()
	for _, d := range recorded(t) {
		if d.Name == name {
			return d
		}
	}
	t.Fatalf("no recorded delivery %q", name)
	return forgetest.Delivery{}
}

func TestRecordedDeliveriesAreTakenIn(t *testing.T) {
	in := newIntake(t, func(cfg *Config) {
		cfg.Literals = map[string]string{"/webhook/gitea/repo/3": "s3cret", "/webhook/gitea/org/6": "s3cret"}
		cfg.Masters = nil
	})
	ignored := 0
	for _, d := range recorded(t) {
		before := len(in.events)
		status, answer := in.post(http.MethodPost, d.Path, d.Header, bytes.NewReader(d.Body))
		if status != http.StatusAccepted || len(answer) > 8 {
			t.Errorf("%s: %d %q", d.Name, status, answer)
		}
		if len(in.events) == before {
			ignored++
		}
	}
	if want := 2; ignored != want { // labels and assignments
		t.Errorf("%d were not handed over, want %d", ignored, want)
	}
	if n := strings.Count(in.log.String(), "\n"); n != len(recorded(t)) {
		t.Errorf("%d log lines", n)
	}
	for _, secret := range []string{"s3cret", "full_mcp_restart", "transport still closed"} {
		if strings.Contains(in.log.String(), secret) {
			t.Errorf("the log holds %q", secret)
		}
	}
}

func TestRefusals(t *testing.T) {
	d := named(t, "comment-created-by-reader")
	repoSecret := HookSecret(master, "gitea", ScopeRepo, 3)
	signed := func(secret string, body []byte) http.Header {
		h := d.Header.Clone()
		h.Set("X-Gitea-Signature", sign(secret, body))
		return h
	}
	with := func(h http.Header, name, value string) http.Header {
		h = h.Clone()
		h.Set(name, value)
		return h
	}
	without := func(h http.Header, names ...string) http.Header {
		h = h.Clone()
		for _, n := range names {
			h.Del(n)
		}
		return h
	}
	good := signed(repoSecret, d.Body)
	signatures := []string{"X-Gitea-Signature", "X-Gogs-Signature", "X-Hub-Signature", "X-Hub-Signature-256"}
	broken := []byte(`{"action":`)
	large := bytes.Repeat([]byte(" "), MaxBody+1)
	tests := []struct {
		name, method, path string
		header             http.Header
		body               []byte
		want               int
	}{
		{"as it should be", "POST", "/webhook/gitea/repo/3", good, d.Body, 202},
		{"a GET", "GET", "/webhook/gitea/repo/3", good, d.Body, 405},
		{"no such forge", "POST", "/webhook/github/repo/3", good, d.Body, 404},
		{"no such scope", "POST", "/webhook/gitea/user/3", good, d.Body, 404},
		{"no id", "POST", "/webhook/gitea/repo/", good, d.Body, 404},
		{"another spelling of the id", "POST", "/webhook/gitea/repo/03", good, d.Body, 404},
		{"a negative id", "POST", "/webhook/gitea/repo/-3", good, d.Body, 404},
		{"a longer path", "POST", "/webhook/gitea/repo/3/x", good, d.Body, 404},
		{"no content type", "POST", "/webhook/gitea/repo/3", without(good, "Content-Type"), d.Body, 415},
		{"another content type", "POST", "/webhook/gitea/repo/3", with(good, "Content-Type", "text/xml"), d.Body, 415},
		{"too large", "POST", "/webhook/gitea/repo/3", signed(repoSecret, large), large, 413},
		{"unsigned", "POST", "/webhook/gitea/repo/3", without(good, signatures...), d.Body, 401},
		{"an empty signature", "POST", "/webhook/gitea/repo/3", with(without(good, signatures...), "X-Gitea-Signature", ""), d.Body, 401},
		{"a bare sha256=", "POST", "/webhook/gitea/repo/3", with(without(good, signatures...), "X-Hub-Signature-256", "sha256="), d.Body, 401},
		{"no hex", "POST", "/webhook/gitea/repo/3", with(good, "X-Gitea-Signature", "zz"), d.Body, 401},
		{"half a signature", "POST", "/webhook/gitea/repo/3", with(good, "X-Gitea-Signature", sign(repoSecret, d.Body)[:32]), d.Body, 401},
		{"signed without a secret", "POST", "/webhook/gitea/repo/3", signed("", d.Body), d.Body, 401},
		{"signed with the master", "POST", "/webhook/gitea/repo/3", signed(master, d.Body), d.Body, 401},
		{"another body", "POST", "/webhook/gitea/repo/3", good, append(bytes.Clone(d.Body), ' '), 401},
		{"an empty body", "POST", "/webhook/gitea/repo/3", good, nil, 401},
		{"signed for another repository", "POST", "/webhook/gitea/repo/3", signed(HookSecret(master, "gitea", ScopeRepo, 4), d.Body), d.Body, 401},
		{"signed for the organisation", "POST", "/webhook/gitea/repo/3", signed(HookSecret(master, "gitea", ScopeOrg, 3), d.Body), d.Body, 401},
		{"about another repository", "POST", "/webhook/gitea/repo/4", signed(HookSecret(master, "gitea", ScopeRepo, 4), d.Body), d.Body, 403},
		{"about another organisation", "POST", "/webhook/gitea/org/7", signed(HookSecret(master, "gitea", ScopeOrg, 7), d.Body), d.Body, 403},
		{"about this organisation", "POST", "/webhook/gitea/org/6", signed(HookSecret(master, "gitea", ScopeOrg, 6), d.Body), d.Body, 202},
		{"malformed", "POST", "/webhook/gitea/repo/3", signed(repoSecret, broken), broken, 400},
		{"malformed and badly signed", "POST", "/webhook/gitea/repo/3", good, broken, 401},
		{"no event", "POST", "/webhook/gitea/repo/3", without(good, "X-Gitea-Event", "X-Gogs-Event"), d.Body, 400},
		{"headers of another event", "POST", "/webhook/gitea/repo/3", with(good, "X-Gitea-Event", "issues"), d.Body, 400},
	}
	for _, tt := range tests {
		in := newIntake(t)
		status, answer := in.post(tt.method, tt.path, tt.header, bytes.NewReader(tt.body))
		if status != tt.want {
			t.Errorf("%s: %d, want %d", tt.name, status, tt.want)
		}
		accepted := status == http.StatusAccepted
		if (len(in.events) == 1) != accepted {
			t.Errorf("%s: %d events were handed over", tt.name, len(in.events))
		}
		if !accepted && answer != "" {
			t.Errorf("%s: the sender is told %q", tt.name, answer)
		}
		if got := strings.Count(in.log.String(), "\n"); got != 1 || strings.Contains(in.log.String(), "/restart") {
			t.Errorf("%s: log %q", tt.name, in.log.String())
		}
		if !accepted && !strings.Contains(in.log.String(), "refused=") {
			t.Errorf("%s: the log does not say why: %q", tt.name, in.log.String())
		}
	}
}

func TestTheLimitHoldsWithoutContentLength(t *testing.T) {
	in := newIntake(t)
	d := named(t, "comment-created-by-reader")
	body := io.MultiReader(bytes.NewReader(bytes.Repeat([]byte(" "), MaxBody)), strings.NewReader("x"))
	if status, _ := in.post(http.MethodPost, d.Path, d.Header, body); status != http.StatusRequestEntityTooLarge {
		t.Errorf("status %d", status)
	}
}

func TestABodyThatBreaksOff(t *testing.T) {
	in := newIntake(t)
	d := named(t, "comment-created-by-reader")
	body := io.MultiReader(strings.NewReader("{"), iotest.ErrReader(errors.New("gone")))
	if status, _ := in.post(http.MethodPost, d.Path, d.Header, body); status != http.StatusBadRequest {
		t.Errorf("status %d", status)
	}
}

// likeGitHub signs the raw body, as GitHub does for forms too.
type likeGitHub struct{ gitea.Dialect }

func (likeGitHub) Name() string { return "github" }

func (likeGitHub) Signature(h http.Header, raw, _ []byte) (signed, mac []byte) {
	text, _ := strings.CutPrefix(h.Get("X-Hub-Signature-256"), "sha256=")
	mac, _ = hex.DecodeString(text)
	return raw, mac
}

func TestFormDeliveries(t *testing.T) { // case 17
	d := named(t, "comment-created-crlf-quote-fence")
	form := []byte(url.Values{"payload": {string(d.Body)}}.Encode())
	header := func(name, mac string) http.Header {
		h := http.Header{}
		h.Set("Content-Type", "application/x-www-form-urlencoded; charset=utf-8")
		h.Set("X-Gitea-Event", "issue_comment")
		h.Set(name, mac)
		return h
	}
	secret := HookSecret(master, "gitea", ScopeRepo, 3)
	github := HookSecret(master, "github", ScopeRepo, 3)
	for _, tt := range []struct {
		name, path string
		header     http.Header
		body       []byte
		want       int
	}{
		{"Gitea signs the JSON", "/webhook/gitea/repo/3", header("X-Gitea-Signature", sign(secret, d.Body)), form, 202},
		{"GitHub signs the form", "/webhook/github/repo/3", header("X-Hub-Signature-256", "sha256="+sign(github, form)), form, 202},
		{"the JSON is not what GitHub signs", "/webhook/github/repo/3", header("X-Hub-Signature-256", "sha256="+sign(github, d.Body)), form, 401},
		{"two payloads", "/webhook/gitea/repo/3", header("X-Gitea-Signature", sign(secret, d.Body)), append(append(bytes.Clone(form), '&'), form...), 400},
		{"no payload", "/webhook/gitea/repo/3", header("X-Gitea-Signature", sign(secret, nil)), []byte("x=y"), 400},
		{"no form", "/webhook/gitea/repo/3", header("X-Gitea-Signature", sign(secret, nil)), []byte("payload=%zz"), 400},
	} {
		in := newIntake(t, func(cfg *Config) { cfg.Dialects = append(cfg.Dialects, likeGitHub{}) })
		status, _ := in.post(http.MethodPost, tt.path, tt.header, bytes.NewReader(tt.body))
		if status != tt.want {
			t.Errorf("%s: %d, want %d", tt.name, status, tt.want)
		}
		if status == 202 && (len(in.events) != 1 || !strings.Contains(in.events[0].Body, "\r\n\r\n> /restart host_restart\r\n")) {
			t.Errorf("%s: events %+v", tt.name, in.events)
		}
	}
}

func TestRotation(t *testing.T) {
	d := named(t, "comment-created-by-reader")
	masters := []string{"new-" + master, master}
	in := newIntake(t, func(cfg *Config) { cfg.Masters = func() []string { return masters } })
	deliver := func(m string) int {
		h := d.Header.Clone()
		h.Set("X-Gitea-Signature", sign(HookSecret(m, "gitea", ScopeRepo, 3), d.Body))
		status, _ := in.post(http.MethodPost, d.Path, h, bytes.NewReader(d.Body))
		return status
	}
	if a, b := deliver("new-"+master), deliver(master); a != 202 || b != 202 {
		t.Errorf("while rotating: new %d, old %d", a, b)
	}
	masters = masters[:1]
	if a, b := deliver("new-"+master), deliver(master); a != 202 || b != 401 {
		t.Errorf("after rotating: new %d, old %d", a, b)
	}
	masters = []string{"", "  "}
	if got := deliver("  "); got != 503 {
		t.Errorf("with blank secrets only: %d", got)
	}
}

func TestNewRefusesBlankSecrets(t *testing.T) { // case 16
	accept := func(context.Context, forge.Event) (string, error) { return "", nil }
	for name, cfg := range map[string]Config{
		"no secret":       {},
		"empty secret":    {Masters: func() []string { return []string{""} }},
		"blank secret":    {Masters: func() []string { return []string{" \t\n"} }},
		"a blank literal": {Masters: func() []string { return []string{master} }, Literals: map[string]string{"/webhook/gitea/repo/3": " "}},
	} {
		cfg.Dialects, cfg.Accept = []Dialect{gitea.Dialect{}}, accept
		if _, err := New(cfg); err == nil {
			t.Errorf("%s: taken", name)
		}
	}
}

func TestALiteralReplacesTheDerivedSecret(t *testing.T) {
	d := named(t, "comment-created-by-reader")
	in := newIntake(t, func(cfg *Config) { cfg.Literals = map[string]string{d.Path: "s3cret"} })
	h := d.Header.Clone()
	h.Set("X-Gitea-Signature", sign(HookSecret(master, "gitea", ScopeRepo, 3), d.Body))
	if status, _ := in.post(http.MethodPost, d.Path, h, bytes.NewReader(d.Body)); status != 401 {
		t.Errorf("the derived secret still fits: %d", status)
	}
}

func TestNotDurableIs503(t *testing.T) {
	d := named(t, "comment-created-by-reader")
	in := newIntake(t, func(cfg *Config) { cfg.Literals = map[string]string{d.Path: "s3cret"} })
	in.fail = errors.New("database is locked")
	status, answer := in.post(http.MethodPost, d.Path, d.Header, bytes.NewReader(d.Body))
	if status != http.StatusServiceUnavailable || answer != "" {
		t.Errorf("%d %q", status, answer)
	}
}

func TestHookSecretsDiffer(t *testing.T) {
	seen := map[string]string{}
	for _, m := range []string{master, master + "x"} {
		for _, f := range []string{"gitea", "github"} {
			for _, scope := range []string{ScopeRepo, ScopeOrg} {
				for _, id := range []int64{1, 11} {
					s := HookSecret(m, f, scope, id)
					key := fmt.Sprint(m, f, scope, id)
					if len(s) != 64 || seen[s] != "" {
						t.Errorf("%s: %q, as for %s", key, s, seen[s])
					}
					seen[s] = key
				}
			}
		}
	}
	// A change of the derivation breaks every hook that is set up.
	if got, want := HookSecret(master, "gitea", ScopeRepo, 41), "a111f19a3f566d725927df01795b85387064d6bf950291f1b936fbf6ad41c8b6"; got != want {
		t.Errorf("the derivation changed: %s", got)
	}
}

// TestTheFakesHooksAreTaken: hooks of the fake, JSON and form, are taken with
// the secrets the bot derives.
func TestTheFakesHooksAreTaken(t *testing.T) {
	f := forgetest.New(time.Now)
	t.Cleanup(f.Close)
	in := newIntake(t)
	f.SetSink(forgetest.HandlerSink(in.h))
	f.AddUser("bob")
	org := f.AddOrg("ops", "bob")
	r := f.AddRepo("ops/runtime")
	f.AddRepoHook("ops/runtime", HookSecret(master, "gitea", ScopeRepo, r.ID), forgetest.HookForm())
	f.AddOrgHook("ops", HookSecret(master, "gitea", ScopeOrg, org.ID))
	if _, err := f.OpenIssue("bob", "ops/runtime", "t", "/restart x\r\n+ 1 %"); err != nil {
		t.Fatal(err)
	}
	f.Settle()
	if len(in.events) != 2 || in.events[0].Body != in.events[1].Body || in.events[0].Body != "/restart x\r\n+ 1 %" {
		t.Errorf("events %+v", in.events)
	}
	for _, d := range f.Deliveries() {
		if d.Status != http.StatusAccepted {
			t.Errorf("%s: %d", d.Path, d.Status)
		}
	}
}

func FuzzServeHTTP(f *testing.F) {
	for _, d := range recorded(f) {
		f.Add(d.Path, d.Header.Get("X-Gitea-Event"), "application/json", d.Body)
	}
	f.Add("/webhook/gitea/repo/3", "issues", "application/x-www-form-urlencoded", []byte("payload=%7B%7D"))
	f.Fuzz(func(t *testing.T, path, event, kind string, body []byte) {
		in := newIntake(t, func(cfg *Config) { cfg.Literals = map[string]string{"/webhook/gitea/repo/3": "s"} })
		r := httptest.NewRequest(http.MethodPost, "/", bytes.NewReader(body))
		r.URL.Path = path
		r.Header = http.Header{"Content-Type": {kind}, "X-Gitea-Event": {event}, "X-Gitea-Signature": {sign("s", body)}}
		w := httptest.NewRecorder()
		in.h.ServeHTTP(w, r)
		if len(in.events) > 0 && (path != "/webhook/gitea/repo/3" || in.events[0].Repo.ID != 3 || w.Code != 202) {
			t.Errorf("taken from %q with %d: %+v", path, w.Code, in.events)
		}
	})
}

func BenchmarkIntake(b *testing.B) {
	d := named(b, "comment-created-by-reader") // 6.6 KB
	in := newIntake(b, func(cfg *Config) {
		cfg.Literals = map[string]string{d.Path: "s3cret"}
		cfg.Accept = func(context.Context, forge.Event) (string, error) { return "", nil }
		cfg.Log = slog.New(slog.DiscardHandler)
	})
	b.ReportAllocs()
	for b.Loop() {
		if status, _ := in.post(http.MethodPost, d.Path, d.Header, bytes.NewReader(d.Body)); status != 202 {
			b.Fatal(status)
		}
	}
}
