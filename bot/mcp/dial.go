package mcp

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"syscall"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// dial makes a connection and a session on it, or attaches the connection to
// the session of resume. Its errors are *CallError.
func (c *Client) dial(ctx context.Context, resume *resumption) (*session, error) {
	o := c.opts.SDK
	o.Logger = nil
	o.MultiRoundTrip = &sdk.MultiRoundTripOptions{Disabled: true}
	client := sdk.NewClient(&sdk.Implementation{Name: c.opts.Name, Version: c.opts.Version}, &o)
	client.AddSendingMiddleware(nameMethod)

	s := &session{}
	s.ctx, s.cancel = context.WithCancelCause(c.life)
	var t sdk.Transport
	var proc *process
	if c.server.URL != "" {
		s.link = &link{
			base: c.base, header: c.server.Header, resume: resume,
			bodyLimit: c.opts.BodyLimit, streamLimit: c.opts.StreamLimit, streamWait: c.opts.streamWait,
		}
		t = &sdk.StreamableClientTransport{
			Endpoint:             c.server.URL,
			HTTPClient:           &http.Client{Transport: s.link, CheckRedirect: sameOrigin},
			DisableStandaloneSSE: c.opts.NoStream,
			MaxEventSize:         int(c.opts.BodyLimit),
		}
	} else {
		var err error
		if proc, err = start(c.server, c.opts.Environ); err != nil {
			return nil, &CallError{Method: methodInitialize, Fate: NotSent, Why: netWhy(err), kinds: []error{ErrHandshake}, cause: err}
		}
		t = &sdk.IOTransport{Reader: proc.stdout, Writer: proc, MaxLineLength: int(c.opts.BodyLimit)}
	}
	tr := new(trace)
	var err error
	s.cs, err = connect(context.WithValue(ctx, traceKey{}, tr), client, t)
	if err != nil {
		if proc != nil {
			proc.Close()
		}
		return nil, handshakeError(ctx, s, tr, err)
	}
	return s, nil
}

// connect is Client.Connect, bounded: some of its waits are on contexts of the
// SDK's own.
func connect(ctx context.Context, client *sdk.Client, t sdk.Transport) (*sdk.ClientSession, error) {
	type result struct {
		cs  *sdk.ClientSession
		err error
	}
	done := make(chan result, 1)
	go func() {
		cs, err := client.Connect(ctx, t, nil)
		done <- result{cs, err}
	}()
	select {
	case r := <-done:
		return r.cs, r.err
	case <-ctx.Done():
		go func() { // a session that comes too late is not left open
			if r := <-done; r.cs != nil && r.err == nil {
				_ = r.cs.Close()
			}
		}()
		return nil, ctx.Err()
	}
}

// nameMethod tells link the method of each request, initialize above all, and
// stops lists of absurd length: the SDK then spends some 30 KB on every tool,
// so that 1 MB of "{},{},…" would cost seconds and gigabytes.
func nameMethod(next sdk.MethodHandler) sdk.MethodHandler {
	return func(ctx context.Context, method string, req sdk.Request) (sdk.Result, error) {
		res, err := next(context.WithValue(ctx, methodKey{}, method), method, req)
		n := 0
		switch r := res.(type) {
		case *sdk.ListToolsResult:
			n = len(r.Tools)
		case *sdk.ListResourcesResult:
			n = len(r.Resources)
		case *sdk.ListResourceTemplatesResult:
			n = len(r.ResourceTemplates)
		case *sdk.ListPromptsResult:
			n = len(r.Prompts)
		}
		if err == nil && n > maxItems {
			return nil, ErrTooLarge
		}
		return res, err
	}
}

func handshakeError(ctx context.Context, s *session, tr *trace, err error) error {
	e := judge(ctx, s, tr, methodInitialize, err).err
	e.kinds = append(e.kinds, ErrHandshake)
	switch {
	case errors.Is(err, ErrBadSessionID):
		e.Fate, e.Status, e.Why = Refused, 0, ErrBadSessionID.Error()
		e.kinds = append(e.kinds, ErrBadSessionID)
	case errors.Is(e, ErrSessionExpired):
		e.Why = "the new session was gone before its handshake ended"
	case ctx.Err() != nil:
		e.cause = ctx.Err()
		e.Why = "no answer to the handshake in time"
	case strings.HasPrefix(err.Error(), "unsupported protocol version"):
		e.Fate, e.Why = Refused, ErrProtocol.Error()
		e.kinds = append(e.kinds, ErrProtocol)
	case e.Fate == Unknown:
		e.Why = "the connection was lost during the handshake"
	}
	if e.Fate == Unknown { // a handshake does nothing that must not be repeated
		e.Fate = NotSent
		if e.Status != 0 || tr.wroteAny() {
			e.Fate = Refused
		}
	}
	return e
}

func (t *trace) wroteAny() bool { t.mu.Lock(); defer t.mu.Unlock(); return t.wrote }

// netWhy says in our words why nothing could be written: the system's texts
// hold addresses, and those go into public threads.
func netWhy(err error) string {
	var dns *net.DNSError
	var timeout net.Error
	switch {
	case errors.Is(err, syscall.ECONNREFUSED):
		return "connection refused"
	case errors.As(err, &dns):
		return "the server's name could not be resolved"
	case errors.Is(err, syscall.ENETUNREACH), errors.Is(err, syscall.EHOSTUNREACH):
		return "no route to the server"
	case errors.Is(err, ErrCredentials):
		return ErrCredentials.Error()
	case errors.Is(err, errNoCommand):
		return errNoCommand.Error()
	case errors.As(err, &timeout) && timeout.Timeout():
		return "timed out while connecting"
	case strings.Contains(err.Error(), "tls: "), strings.Contains(err.Error(), "x509: "):
		return "the TLS handshake failed"
	case errors.Is(err, sdk.ErrConnectionClosed), errors.Is(err, io.EOF), errors.Is(err, syscall.EPIPE), errors.Is(err, syscall.ECONNRESET):
		return "the connection is closed"
	}
	return "could not connect"
}
