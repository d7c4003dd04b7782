package forgetest

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
)

// Delivery is one webhook delivery.
type Delivery struct {
	// Name is the file's of a recorded delivery.
	Name string
	// Path is that of the hook's URL.
	Path   string
	Header http.Header
	Body   []byte
	// Event is "issues created" and the like, for tests to choose by.
	Event string
	// Status is what the receiver answered; 0: not sent, or no answer.
	Status int
}

// outbox holds what is to be delivered. A goroutine empties it in order and
// ends when it is empty, so that nothing outlives a test; like the real forge
// the fake never sends anything a second time.
type outbox struct {
	mu      sync.Mutex
	idle    sync.Cond
	sink    func(path string, h http.Header, body []byte) int
	queue   []*Delivery
	sent    []*Delivery
	hold    bool
	sending bool
	lastID  int
}

func (o *outbox) init() { o.idle.L = &o.mu }

// SetSink sets who receives deliveries. The sink gives the status; it is
// called on a goroutine of the fake's, one delivery after the other.
func (f *Forge) SetSink(sink func(path string, h http.Header, body []byte) (status int)) {
	f.out.mu.Lock()
	f.out.sink = sink
	f.out.mu.Unlock()
	f.flush()
}

// HandlerSink is a sink that hands deliveries to an http.Handler in process.
func HandlerSink(h http.Handler) func(string, http.Header, []byte) int {
	return func(path string, header http.Header, body []byte) int {
		r, err := http.NewRequestWithContext(context.Background(), http.MethodPost, "http://hook.test"+path, bytes.NewReader(body))
		if err != nil {
			return 0
		}
		r.Header = header.Clone()
		w := &discard{header: http.Header{}}
		h.ServeHTTP(w, r)
		return w.status
	}
}

// URLSink is a sink that posts deliveries to a server.
func URLSink(client *http.Client, base string) func(string, http.Header, []byte) int {
	return func(path string, header http.Header, body []byte) int {
		r, err := http.NewRequestWithContext(context.Background(), http.MethodPost, base+path, bytes.NewReader(body))
		if err != nil {
			return 0
		}
		r.Header = header.Clone()
		resp, err := client.Do(r)
		if err != nil {
			return 0
		}
		defer resp.Body.Close()
		_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, 1<<20))
		return resp.StatusCode
	}
}

// discard is an http.ResponseWriter that keeps the status.
type discard struct {
	header http.Header
	status int
}

func (d *discard) Header() http.Header { return d.header }

func (d *discard) WriteHeader(status int) {
	if d.status == 0 {
		d.status = status
	}
}

func (d *discard) Write(p []byte) (int, error) {
	d.WriteHeader(http.StatusOK)
	return len(p), nil
}

// HookOption changes a hook as it is made.
type HookOption func(*hook)

// HookPath sets the path of the hook's URL; it is else the one that names the
// hook's key, "/webhook/gitea/repo/41".
func HookPath(path string) HookOption { return func(h *hook) { h.path = path } }

// HookForm makes the hook send forms ("payload=…") instead of JSON.
func HookForm() HookOption { return func(h *hook) { h.form = true } }

// AddRepoHook makes a hook on a repository. An empty secret leaves the
// signature headers empty, as Gitea does.
func (f *Forge) AddRepoHook(fullName, secret string, opts ...HookOption) {
	f.mu.Lock()
	defer f.mu.Unlock()
	r := f.mustRepo(fullName)
	f.addHook(&hook{repo: r, secret: secret, path: fmt.Sprintf("/webhook/%s/repo/%d", f.dialect.name(), r.id)}, opts)
}

// AddOrgHook makes a hook on all repositories of an organisation.
func (f *Forge) AddOrgHook(org, secret string, opts ...HookOption) {
	f.mu.Lock()
	defer f.mu.Unlock()
	a := f.mustAccount(org)
	f.addHook(&hook{org: a, secret: secret, path: fmt.Sprintf("/webhook/%s/org/%d", f.dialect.name(), a.id)}, opts)
}

func (f *Forge) addHook(h *hook, opts []HookOption) {
	for _, opt := range opts {
		opt(h)
	}
	f.st.lastHook++
	h.id = f.st.lastHook
	f.st.hooks = append(f.st.hooks, h)
	if f.st.habits.pings {
		f.queue(f.dialect.delivery(h, happening{event: "ping"}))
	}
}

func (f *Forge) queue(d *Delivery) {
	if d == nil {
		return // of no interest to this forge's hooks
	}
	f.out.mu.Lock()
	defer f.out.mu.Unlock()
	f.out.queue = append(f.out.queue, d)
}

// happen queues what the hooks are told. Payloads are made now: a delivery
// that is held back tells of the past.
func (f *Forge) happen(e happening) {
	for _, h := range f.st.hooks {
		if h.repo == e.issue.repo || (h.org != nil && h.org == e.issue.repo.owner) {
			f.queue(f.dialect.delivery(h, e))
		}
	}
}

// nextDelivery is a delivery id in the shape of a UUID.
func (o *outbox) nextDelivery() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.lastID++
	return fmt.Sprintf("00000000-0000-4000-8000-%012d", o.lastID)
}

// flush starts the emptying of the outbox if it is not under way.
func (f *Forge) flush() {
	o := &f.out
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.sending || o.hold || o.sink == nil || len(o.queue) == 0 {
		return
	}
	o.sending = true
	go f.pump()
}

func (f *Forge) pump() {
	o := &f.out
	o.mu.Lock()
	defer o.mu.Unlock()
	for !o.hold && len(o.queue) > 0 {
		d := o.queue[0]
		o.queue = o.queue[1:]
		o.deliver(d)
	}
	o.sending = false
	o.idle.Broadcast()
}

// deliver sends one with the lock released meanwhile. Without a sink nobody
// answers.
func (o *outbox) deliver(d *Delivery) {
	sink, status := o.sink, 0
	o.mu.Unlock()
	if sink != nil {
		status = sink(d.Path, d.Header.Clone(), bytes.Clone(d.Body))
	}
	o.mu.Lock()
	d.Status = status
	o.sent = append(o.sent, d)
}

// Settle waits until everything that is not held back is delivered.
func (f *Forge) Settle() {
	f.flush()
	o := &f.out
	o.mu.Lock()
	defer o.mu.Unlock()
	for o.sending {
		o.idle.Wait()
	}
}

// Hold keeps deliveries back, or lets what was held go.
func (f *Forge) Hold(hold bool) {
	f.out.mu.Lock()
	f.out.hold = hold
	f.out.mu.Unlock()
	f.flush()
}

// Take removes the deliveries held back and gives them: what the test does not
// Send again is lost.
func (f *Forge) Take() []Delivery {
	f.out.mu.Lock()
	defer f.out.mu.Unlock()
	var out []Delivery
	for _, d := range f.out.queue {
		out = append(out, *d)
	}
	f.out.queue = nil
	return out
}

// Send delivers at once, in this order, held back or not, and gives the
// statuses. A delivery may be sent any number of times.
func (f *Forge) Send(deliveries ...Delivery) []int {
	o := &f.out
	o.mu.Lock()
	defer o.mu.Unlock()
	var statuses []int
	for _, d := range deliveries {
		o.deliver(&d)
		statuses = append(statuses, d.Status)
	}
	return statuses
}

// Redelivered is the delivery as the web page's button sends it: the same
// body, under a new id where the forge gives one.
func (f *Forge) Redelivered(d Delivery) Delivery {
	if f.st.habits.keepsIDs {
		return d
	}
	id := f.out.nextDelivery()
	d.Header = d.Header.Clone()
	for name := range d.Header {
		if strings.HasSuffix(strings.ToLower(name), "-delivery") {
			d.Header[name] = []string{id}
		}
	}
	return d
}

// Deliveries lists what was sent so far, with the receiver's statuses.
func (f *Forge) Deliveries() []Delivery {
	f.out.mu.Lock()
	defer f.out.mu.Unlock()
	out := make([]Delivery, 0, len(f.out.sent))
	for _, d := range f.out.sent {
		out = append(out, *d)
	}
	return slices.Clip(out)
}
