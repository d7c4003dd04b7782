package forgetest

import (
	"bytes"
	"context"
	"errors"
	"io"
	"maps"
	"net"
	"net/http"
	"strconv"
	"syscall"
	"time"
)

// ServeHTTP answers the API, faults included. A call is recorded before its
// answer is written: whoever has the answer finds the call.
func (f *Forge) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	kind := f.dialect.kind(r.Method, r.URL.EscapedPath())
	w.Header().Set("Date", f.now().UTC().Format(http.TimeFormat))
	fault, ok := f.fault(r.Method, r.URL.EscapedPath())
	if !ok {
		answer := f.answer(r)
		f.record(r, kind, answer.status)
		answer.write(w)
		return
	}
	answer, err := f.answerFaulty(r, fault)
	if err != nil {
		f.record(r, kind, 0)
		panic(http.ErrAbortHandler)
	}
	f.record(r, kind, answer.status)
	if fault.Drip > 0 {
		f.drip(w, answer, fault)
		return
	}
	if answer.write(w); fault.Truncate {
		panic(http.ErrAbortHandler)
	}
}

// drip writes an answer piece by piece, until the caller has gone.
func (f *Forge) drip(w http.ResponseWriter, a *answer, fault Fault) {
	body := bytes.Clone(a.body.Bytes())
	a.body.Reset()
	a.write(w)
	size := max(1, len(body)/fault.Drip)
	for len(body) > 0 {
		f.wait(fault.Delay)
		n := min(size, len(body))
		if _, err := w.Write(body[:n]); err != nil {
			return
		}
		body = body[n:]
		if flusher, ok := w.(http.Flusher); ok {
			flusher.Flush()
		}
	}
}

func (f *Forge) record(r *http.Request, kind string, status int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	as := ""
	if t := f.st.tokens[tokenOf(r)]; t != nil {
		as = t.account.login
	}
	f.calls = append(f.calls, Call{Method: r.Method, Path: r.URL.Path, Kind: kind, As: as, Status: status, At: f.now()})
}

// answer is a whole answer, held so that faults can change it.
type answer struct {
	header http.Header
	status int
	body   bytes.Buffer
}

func (a *answer) Header() http.Header { return a.header }

func (a *answer) WriteHeader(status int) {
	if a.status == 0 {
		a.status = status
	}
}

func (a *answer) Write(p []byte) (int, error) {
	a.WriteHeader(http.StatusOK)
	return a.body.Write(p)
}

func (a *answer) write(w http.ResponseWriter) {
	maps.Copy(w.Header(), a.header)
	w.WriteHeader(a.status)
	_, _ = w.Write(a.body.Bytes())
	if flusher, ok := w.(http.Flusher); ok {
		flusher.Flush()
	}
}

// answer lets a call take effect.
func (f *Forge) answer(r *http.Request) *answer {
	a := &answer{header: http.Header{}}
	f.dialect.serve(a, r)
	a.WriteHeader(http.StatusOK)
	f.flush()
	return a
}

var errDropped = errors.New("the connection was dropped")

// answerFaulty is answer with a fault.
func (f *Forge) answerFaulty(r *http.Request, fault Fault) (*answer, error) {
	own := fault.Status == 0 && !fault.Drop && !fault.Refuse // the forge's own answer is given
	if fault.Refuse {
		return nil, errDropped
	}
	if fault.Ask != nil {
		r = r.Clone(r.Context())
		fault.Ask(r)
	}
	var a *answer
	if fault.Done || fault.Drip > 0 {
		a = f.answer(r)
	}
	if fault.Drip == 0 {
		f.wait(fault.Delay)
	}
	if own && a == nil {
		a = f.answer(r)
	}
	switch {
	case fault.Drop:
		return nil, errDropped
	case fault.Status != 0:
		return f.stated(fault), nil
	}
	if fault.Rewrite != nil {
		body := fault.Rewrite(bytes.Clone(a.body.Bytes()))
		a.body.Reset()
		a.body.Write(body)
	}
	if fault.Truncate {
		a.header.Set("Content-Length", strconv.Itoa(a.body.Len()))
		a.body.Truncate(a.body.Len() / 2)
	}
	if n := fault.Pad - a.body.Len(); n > 0 {
		a.body.Write(bytes.Repeat([]byte{' '}, n))
	}
	return a, nil
}

// stated is the answer a fault states.
func (f *Forge) stated(fault Fault) *answer {
	a := &answer{header: http.Header{}, status: fault.Status}
	body := fault.Body
	if body == "" {
		a.header, body = f.dialect.refusal(fault.Status)
	}
	for name, values := range fault.Header {
		a.header[http.CanonicalHeaderKey(name)] = values
	}
	a.body.WriteString(body)
	return a
}

// wait lets time pass, but not beyond Close.
func (f *Forge) wait(d time.Duration) {
	if d <= 0 {
		return
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-f.closed:
	}
}

// Serve answers on a listener until it or the forge is closed.
func (f *Forge) Serve(l net.Listener) error {
	srv := &http.Server{Handler: f, ReadHeaderTimeout: 10 * time.Second}
	stop := make(chan struct{})
	defer close(stop)
	go func() {
		select {
		case <-f.closed:
			_ = srv.Close()
		case <-stop:
		}
	}()
	return srv.Serve(l)
}

// RoundTripper serves calls in process, without a socket: the host of a URL is
// not looked at. The caller's deadline, dropped connections and bodies that
// break off are as over a real connection.
func (f *Forge) RoundTripper() http.RoundTripper { return inProcess{f} }

// Client is an http.Client over RoundTripper.
func (f *Forge) Client() *http.Client { return &http.Client{Transport: f.RoundTripper()} }

type inProcess struct{ f *Forge }

func (t inProcess) RoundTrip(req *http.Request) (*http.Response, error) {
	ctx := req.Context()
	var body []byte
	if req.Body != nil {
		var err error
		body, err = io.ReadAll(req.Body)
		_ = req.Body.Close()
		if err != nil {
			return nil, err
		}
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if t.f.refuses(req) {
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
	}
	// The server goes on when the client has gone.
	r := req.Clone(context.WithoutCancel(ctx))
	r.Body = io.NopCloser(bytes.NewReader(body))
	pr, pw := io.Pipe()
	w := &pipeWriter{header: http.Header{}, body: pw, ready: make(chan struct{})}
	failed := make(chan struct{})
	go func() {
		defer func() {
			switch p := recover(); {
			case p == nil:
				w.WriteHeader(http.StatusOK)
				_ = pw.Close()
			case p == http.ErrAbortHandler:
				_ = pw.CloseWithError(io.ErrUnexpectedEOF)
				close(failed)
			default:
				panic(p)
			}
		}()
		t.f.ServeHTTP(w, r)
	}()
	stop := context.AfterFunc(ctx, func() { _ = pr.CloseWithError(ctx.Err()) })
	select {
	case <-w.ready:
		return w.response(req, pr, stop), nil
	case <-failed:
		stop()
		select {
		case <-w.ready: // it broke off after the header
			return w.response(req, pr, stop), nil
		default:
		}
		return nil, &net.OpError{Op: "read", Net: "tcp", Err: syscall.ECONNRESET}
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// refuses takes a Refuse fault's turn: it must be known before a connection.
func (f *Forge) refuses(r *http.Request) bool {
	f.mu.Lock()
	refuse := f.down
	for _, o := range f.orders {
		if !refuse && o.left != 0 && o.match(r.Method, r.URL.EscapedPath()) {
			if refuse = o.fault.Refuse; refuse {
				o.use()
			}
			break
		}
	}
	f.mu.Unlock()
	if refuse {
		f.record(r, f.dialect.kind(r.Method, r.URL.EscapedPath()), 0)
	}
	return refuse
}

// pipeWriter is the server's end of an exchange in process.
type pipeWriter struct {
	header http.Header
	status int
	body   *io.PipeWriter
	ready  chan struct{} // closed when status and header stand
}

func (w *pipeWriter) Header() http.Header { return w.header }

func (w *pipeWriter) WriteHeader(status int) {
	if w.status == 0 {
		w.status = status
		close(w.ready)
	}
}

func (w *pipeWriter) Write(p []byte) (int, error) {
	w.WriteHeader(http.StatusOK)
	return w.body.Write(p)
}

func (w *pipeWriter) response(req *http.Request, body io.ReadCloser, stop func() bool) *http.Response {
	return &http.Response{
		Status:     strconv.Itoa(w.status) + " " + http.StatusText(w.status),
		StatusCode: w.status, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: w.header.Clone(), Body: closer{body, stop}, ContentLength: -1, Request: req,
	}
}

// closer ends the watch on the caller's context with the body.
type closer struct {
	io.ReadCloser
	stop func() bool
}

func (c closer) Close() error {
	c.stop()
	return c.ReadCloser.Close()
}
