// Package webhook takes deliveries in: it bounds, verifies, decodes and hands
// them over, and tells the sender nothing but a status.
package webhook

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"playbook-bot/bot/forge"
)

// MaxBody is the longest body taken, in bytes. A delivery of Gitea's is 5–15
// KB; GitHub's limit is 25 MB, but its issue events stay far below this.
const MaxBody = 5 << 20

// trusted is how many bytes are set aside on a sender's bare word.
const trusted = 64 << 10

// Dialect is what the intake needs to know of a forge. It is declared here, by
// its consumer; adapters satisfy it.
type Dialect interface {
	// Name is the forge's name in the hook's path.
	Name() string
	// Signature gives the bytes a delivery's HMAC-SHA256 is over and the MAC
	// itself, nil if the delivery has none that can be read. raw is the body as
	// received; payload is the JSON in it, the same bytes unless it is a form.
	Signature(h http.Header, raw, payload []byte) (signed, mac []byte)
	// Decode reads a verified delivery's JSON. An error's text must hold
	// nothing of the delivery.
	Decode(h http.Header, payload []byte) (forge.Event, error)
}

// Config is what a Handler needs. Dialects, Accept and one of Masters and
// Literals are required.
type Config struct {
	Dialects []Dialect
	// Masters gives the master secrets, asked before every delivery so that a
	// rotated one is used without a restart. A delivery is taken if the secret
	// derived from any of them fits. Blank ones are passed over.
	Masters func() []string
	// Literals are secrets for single paths (HookPath), used there in place of
	// the derived ones: for recorded deliveries, and for hooks whose secret
	// cannot be chosen.
	Literals map[string]string
	// Apps names the forges, among those of Dialects, on which the bot is an
	// app with a hook of its own. Such a hook is about every repository that
	// the app is installed in: it is the app's owner alone who knows its
	// secret, and Accept decides which of them are the bot's.
	Apps []string
	// Accept takes an event over. When it returns nil the event is durable and
	// the sender is told 202; an error is 503. outcome is a word for the log.
	Accept func(context.Context, forge.Event) (outcome string, err error)
	// Log gets one line for every delivery, with ids and sizes and never a
	// body. nil: slog.Default.
	Log *slog.Logger
	// OnDelivery is told the status of every delivery, for metrics. May be nil.
	OnDelivery func(forgeName string, status int)
	// Record is told what became of every delivery to a path that is a hook's
	// (HookPath), why being the reason for a refusal, in words of our own. May
	// be nil; see Recorder.
	Record func(path string, status int, why string)
}

// Handler serves POST /webhook/{forge}/repo/{id}, /webhook/{forge}/org/{id}
// and, on forges of Config.Apps, /webhook/{forge}/app/{id}.
type Handler struct {
	cfg      Config
	dialects map[string]Dialect
}

// New makes a Handler, and refuses to make one that would take unsigned
// deliveries: without any secret, or with a blank one.
func New(cfg Config) (*Handler, error) {
	h := &Handler{cfg: cfg, dialects: map[string]Dialect{}}
	for _, d := range cfg.Dialects {
		h.dialects[d.Name()] = d
	}
	if len(h.dialects) == 0 || cfg.Accept == nil {
		return nil, errors.New("webhook: no dialect or nobody to accept events")
	}
	for path, secret := range cfg.Literals {
		if strings.TrimSpace(secret) == "" {
			return nil, fmt.Errorf("webhook: the secret for %s is blank", path)
		}
	}
	if len(cfg.Literals) == 0 && len(h.masters()) == 0 {
		return nil, errors.New("webhook: no master secret, or a blank one")
	}
	if h.cfg.Log == nil {
		h.cfg.Log = slog.Default()
	}
	return h, nil
}

func (h *Handler) masters() []string {
	if h.cfg.Masters == nil {
		return nil
	}
	var out []string
	for _, m := range h.cfg.Masters() {
		if strings.TrimSpace(m) != "" {
			out = append(out, m)
		}
	}
	return out
}

// delivery is one request on its way through the checks.
type delivery struct {
	forge string
	scope string
	id    int64
	size  int
	event forge.Event
	// why is the reason for a refusal, for the log alone.
	why string
}

func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	d := &delivery{}
	status, outcome := h.take(w, r, d)
	if h.cfg.OnDelivery != nil {
		h.cfg.OnDelivery(d.forge, status)
	}
	if h.cfg.Record != nil && d.forge != "" {
		h.cfg.Record(HookPath(d.forge, d.scope, d.id), status, d.why)
	}
	h.log(r.Context(), d, status, outcome)
	if status == http.StatusMethodNotAllowed {
		w.Header().Set("Allow", http.MethodPost)
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
	if status == http.StatusAccepted {
		_, _ = io.WriteString(w, "ok\n")
	}
}

// take is the way of a delivery: each check's refusal is a status, and what is
// cheap and needs no trust comes first.
func (h *Handler) take(w http.ResponseWriter, r *http.Request, d *delivery) (status int, outcome string) {
	dialect, ok := h.route(r.URL.Path, d)
	if !ok {
		return d.refuse(http.StatusNotFound, "no such hook")
	}
	if r.Method != http.MethodPost {
		return d.refuse(http.StatusMethodNotAllowed, "not a POST")
	}
	kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil || (kind != "application/json" && kind != "application/x-www-form-urlencoded") {
		return d.refuse(http.StatusUnsupportedMediaType, "neither JSON nor a form")
	}
	raw, status := readBody(w, r, d)
	if status != 0 {
		return status, ""
	}
	payload := raw
	if kind == "application/x-www-form-urlencoded" {
		if payload, ok = formPayload(raw); !ok {
			return d.refuse(http.StatusBadRequest, "a form without one payload")
		}
	}
	secrets := h.secrets(d)
	if len(secrets) == 0 {
		return d.refuse(http.StatusServiceUnavailable, "no secret for this hook")
	}
	signed, mac := dialect.Signature(r.Header, raw, payload)
	if !verify(secrets, signed, mac) {
		return d.refuse(http.StatusUnauthorized, "the signature does not fit")
	}
	ev, err := dialect.Decode(r.Header, payload)
	if err != nil {
		return d.refuse(http.StatusBadRequest, err.Error())
	}
	d.event = ev
	if !d.fits(ev) {
		return d.refuse(http.StatusForbidden, "the delivery is not about this hook's repository or organisation")
	}
	if ev.Action == forge.ActionOther {
		return http.StatusAccepted, "ignored"
	}
	outcome, err = h.cfg.Accept(r.Context(), ev)
	if err != nil {
		d.why = err.Error()
		return http.StatusServiceUnavailable, ""
	}
	return http.StatusAccepted, outcome
}

func (d *delivery) refuse(status int, why string) (int, string) {
	d.why = why
	return status, ""
}

// route reads /webhook/{forge}/{scope}/{id}. Only the one spelling of an id is
// a path: "041" or "+41" would be other paths with the same key.
func (h *Handler) route(path string, d *delivery) (Dialect, bool) {
	parts := strings.Split(path, "/")
	if len(parts) != 5 || parts[0] != "" || parts[1] != "webhook" {
		return nil, false
	}
	dialect, ok := h.dialects[parts[2]]
	id, err := strconv.ParseInt(parts[4], 10, 64)
	if !ok || err != nil || id <= 0 || HookPath(parts[2], parts[3], id) != path {
		return nil, false
	}
	switch parts[3] {
	case ScopeRepo, ScopeOrg:
	case ScopeApp:
		if !slices.Contains(h.cfg.Apps, parts[2]) {
			return nil, false
		}
	default:
		return nil, false
	}
	d.forge, d.scope, d.id = parts[2], parts[3], id
	return dialect, true
}

// readBody reads at most MaxBody bytes. status is 0 when all was read.
func readBody(w http.ResponseWriter, r *http.Request, d *delivery) (body []byte, status int) {
	if r.ContentLength > MaxBody {
		status, _ = d.refuse(http.StatusRequestEntityTooLarge, "too large by its own word")
		return nil, status
	}
	// As much room as it says it needs, in one piece: grown by and by, a body
	// costs four times its size. What it says is nobody's word yet.
	room := max(min(r.ContentLength, trusted), 0) + bytes.MinRead
	buf := bytes.NewBuffer(make([]byte, 0, room))
	_, err := buf.ReadFrom(http.MaxBytesReader(w, r.Body, MaxBody))
	body = buf.Bytes()
	d.size = len(body)
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &tooLarge):
		status, _ = d.refuse(http.StatusRequestEntityTooLarge, "too large")
	case err != nil:
		status, _ = d.refuse(http.StatusBadRequest, "the body broke off")
	}
	return body, status
}

// formPayload takes the JSON out of a form delivery.
func formPayload(raw []byte) ([]byte, bool) {
	form, err := url.ParseQuery(string(raw))
	if err != nil || len(form["payload"]) != 1 {
		return nil, false
	}
	return []byte(form["payload"][0]), true
}

// secrets are those that may have signed a delivery to this path.
func (h *Handler) secrets(d *delivery) []string {
	if literal, ok := h.cfg.Literals[HookPath(d.forge, d.scope, d.id)]; ok {
		return []string{literal}
	}
	var out []string
	for _, m := range h.masters() {
		out = append(out, HookSecret(m, d.forge, d.scope, d.id))
	}
	return out
}

// verify compares in constant time, and looks at every secret so that which
// one fitted cannot be told from the time it took.
func verify(secrets []string, signed, mac []byte) bool {
	if len(mac) == 0 {
		return false
	}
	ok := false
	for _, s := range secrets {
		sum := hmac.New(sha256.New, []byte(s))
		sum.Write(signed)
		if hmac.Equal(sum.Sum(nil), mac) {
			ok = true
		}
	}
	return ok
}

// fits reports whether the delivery is about what its hook's path names. An
// event of no interest may be about no repository at all.
func (d *delivery) fits(ev forge.Event) bool {
	if ev.Action == forge.ActionOther && ev.Repo.ID == 0 {
		return true
	}
	switch d.scope {
	case ScopeApp:
		return true // any of its installations'
	case ScopeOrg:
		return ev.OrgID == d.id
	}
	return ev.Repo.ID == d.id
}

func (h *Handler) log(ctx context.Context, d *delivery, status int, outcome string) {
	level := slog.LevelInfo
	attrs := []slog.Attr{
		slog.Int("status", status),
		slog.String("forge", d.forge),
		slog.String("scope", d.scope),
		slog.Int64("hook", d.id),
		slog.Int("bytes", d.size),
	}
	if d.why != "" {
		level = slog.LevelWarn
		attrs = append(attrs, slog.String("refused", d.why))
	}
	if ev := d.event; ev.Repo.ID != 0 {
		attrs = append(attrs,
			slog.String("outcome", outcome),
			slog.String("action", string(ev.Action)),
			slog.Int64("repo", ev.Repo.ID),
			slog.Int64("thread", ev.Number),
			slog.String("object", string(ev.Object.Kind)),
			slog.Int64("object_id", ev.Object.ID),
			slog.Int64("sender", ev.Sender.ID),
			slog.String("delivery", printable(ev.Delivery)),
		)
	}
	h.cfg.Log.LogAttrs(ctx, level, "delivery", attrs...)
}

// printable keeps a header value, which the signature does not cover, from
// filling the log: a delivery id is a UUID.
func printable(id string) string {
	if len(id) > 64 {
		id = id[:64]
	}
	return strings.Map(func(r rune) rune {
		if r > ' ' && r < 0x7f {
			return r
		}
		return -1
	}, id)
}
