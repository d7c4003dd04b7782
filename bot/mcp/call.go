package mcp

import (
	"context"
	"errors"
	"fmt"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"playbook-bot/playbook"
)

type pinKey struct{}

// WithEpoch pins the requests made with ctx to an epoch: once it is over they
// fail with [ErrEpochOver] before anything is written. For requests that name
// something the session handed out (a task id, an input key).
func WithEpoch(ctx context.Context, e Epoch) context.Context {
	return context.WithValue(ctx, pinKey{}, e)
}

func pinned(ctx context.Context) (Epoch, bool) {
	e, ok := ctx.Value(pinKey{}).(Epoch)
	return e, ok
}

// Do makes one request on the session in force and recovers that session as
// the protocol demands. send must make exactly one request, of the given
// method, with the context it is handed. The typed methods of [Client] are
// made of it; use it directly for methods of extensions.
//
// A request that met the session's end is sent a second time only if
// [playbook.Idempotent] lists its method: a session can expire after the
// request ran. Every error is a [*CallError].
func Do[R any](ctx context.Context, c *Client, method string, send func(context.Context, *sdk.ClientSession) (R, error)) (R, error) {
	var zero R
	var restarted, reattached bool
	for {
		if err := c.checkPin(ctx, method); err != nil {
			return zero, err
		}
		s, err := c.current(ctx, method, false)
		if err != nil {
			return zero, err
		}
		if e, ok := pinned(ctx); ok && e != s.epoch {
			return zero, epochOver(method, e, s.epoch)
		}
		res, o := once(ctx, s, method, send)
		switch o.verdict {
		case fine:
			c.answered(s)
			return res, nil
		case answeredBadly:
			c.answered(s)
			return zero, o.err
		case expired:
			c.end(s)
			if restarted {
				o.err.Why = "the session expired again right after its restart"
				return zero, o.err
			}
			restarted = true
			if o.sent && !playbook.Idempotent(method) {
				return zero, c.notResent(ctx, o.err)
			}
		case severed:
			if reattached {
				return zero, o.err
			}
			reattached = true
			c.detach(s)
		default:
			return zero, o.err
		}
	}
}

// notResent starts the replacement session and says what became of a request
// that must not be repeated in it.
func (c *Client) notResent(ctx context.Context, e *CallError) error {
	e.Fate = Unknown
	e.kinds = append(e.kinds, ErrNotResent, ErrOutcomeUnknown)
	if _, err := c.current(ctx, e.Method, false); err != nil {
		e.Why = "the session expired and could not be restarted; the request was NOT sent again, it may already have executed"
		e.cause = err
		return e
	}
	e.Restarted = true
	e.Why = "the session expired and was restarted; the request was NOT sent again, it may already have executed: send it again only if that is safe"
	return e
}

func (c *Client) checkPin(ctx context.Context, method string) error {
	e, ok := pinned(ctx)
	if !ok {
		return nil
	}
	if now := c.Epoch(); now != e {
		return epochOver(method, e, now)
	}
	return nil
}

func epochOver(method string, pin, now Epoch) error {
	return &CallError{Method: method, Fate: NotSent, kinds: []error{ErrEpochOver},
		Why: fmt.Sprintf("it belongs to session epoch %d, which is over (now %d)", pin, now)}
}

func (c *Client) answered(s *session) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.sess != nil && c.sess.epoch == s.epoch {
		c.sess.proven = true
		c.breaker.ok(c.opts.Now())
	}
}

type verdict int

const (
	fine          verdict = iota
	answeredBadly         // the server answered, with an error
	expired               // the session is over
	severed               // the connection was dead before anything was written
	lost                  // everything else
)

type outcome struct {
	verdict verdict
	sent    bool
	err     *CallError
}

// once makes the request on s, without any recovery.
func once[R any](ctx context.Context, s *session, method string, send func(context.Context, *sdk.ClientSession) (R, error)) (R, outcome) {
	tr := new(trace)
	cctx, cancel := context.WithCancelCause(context.WithValue(ctx, traceKey{}, tr))
	stop := context.AfterFunc(s.ctx, func() { cancel(context.Cause(s.ctx)) })
	res, err := send(cctx, s.cs)
	stop()
	tr.release(cancel)
	if err == nil {
		return res, outcome{verdict: fine, sent: true}
	}
	return res, judge(ctx, s, tr, method, err)
}

// drainGrace is how long the rest of an answer may take after its result: the
// SDK drains the body so that the connection can be used again, and a server
// that leaves the stream open would hold it, and our context, for good.
const drainGrace = time.Second

func (t *trace) release(cancel context.CancelCauseFunc) {
	t.mu.Lock()
	open := t.open
	t.mu.Unlock()
	if open {
		time.AfterFunc(drainGrace, func() { cancel(nil) })
		return
	}
	cancel(nil)
}

// judge says what an error of the SDK means. It goes by what link recorded;
// the SDK's texts hold session ids and words of the peer, its types do not
// tell a dropped connection from one never made, and its jsonrpc.Error is also
// its marker for "rejected by the transport".
func judge(ctx context.Context, s *session, tr *trace, method string, err error) outcome {
	tr.mu.Lock()
	wrote, status, rpc, gone := tr.wrote, tr.status, tr.rpc, tr.gone
	tr.mu.Unlock()
	f := s.link.facts()
	if s.link == nil {
		// A pipe has no trace: what was not refused beforehand was written.
		wrote = !errors.Is(err, sdk.ErrConnectionClosed)
	}
	o := outcome{verdict: lost, sent: wrote, err: &CallError{Method: method, Status: status, Fate: NotSent}}
	if wrote {
		o.err.Fate = Unknown
	}
	e := o.err
	if status/100 == 2 { // it says nothing about a call that failed later
		e.Status = 0
	}
	we, isRPC := rpcError(err)
	isRPC = isRPC && (rpc || status/100 == 2 || s.link == nil)
	switch {
	case isRPC && !gone:
		o.verdict = answeredBadly
		e.Fate, e.Code, e.cause = Refused, we.Code, we
		e.Why = fmt.Sprintf("the server answered with JSON-RPC error %d", we.Code)
	case gone || f.expired:
		o.verdict = expired
		e.kinds = []error{ErrSessionExpired}
		e.Why = "the session expired"
	case status != 0 && status/100 != 2:
		o.verdict = answeredBadly
		e.Fate = Refused
		e.Why = "the server refused the request"
		if status == 404 && s.link.session() == "" {
			e.kinds = []error{ErrNoSession}
			e.Why = ErrNoSession.Error() + ", so this 404 is no expiry and there is none to recover"
		}
	default:
		judgeLoss(ctx, s, &o, f, err)
	}
	return o
}

// judgeLoss is for requests that no answer came back to.
func judgeLoss(ctx context.Context, s *session, o *outcome, f facts, err error) {
	e := o.err
	if o.sent {
		e.kinds = append(e.kinds, ErrOutcomeUnknown)
	}
	switch {
	case ctx.Err() != nil:
		e.cause = ctx.Err()
		e.Why = "gave up waiting for the answer"
	case s.ctx.Err() != nil:
		e.cause = context.Cause(s.ctx)
		e.Why = "the session was closed or replaced meanwhile"
	case f.tooLarge || errors.Is(err, ErrTooLarge):
		e.kinds = append(e.kinds, ErrTooLarge)
		e.Why = ErrTooLarge.Error()
	case errors.Is(err, ErrCredentials):
		e.kinds = append(e.kinds, ErrCredentials)
		e.Why = ErrCredentials.Error()
	case !o.sent && s.link != nil && errors.Is(err, sdk.ErrConnectionClosed):
		o.verdict = severed
		e.kinds = append(e.kinds, ErrDisconnected)
		e.Why = ErrDisconnected.Error()
	case !o.sent && errors.Is(err, sdk.ErrConnectionClosed): // a process has ended
		e.kinds = append(e.kinds, ErrDisconnected)
		e.Why = ErrDisconnected.Error()
	case !o.sent:
		e.Why = netWhy(err)
	case s.link.session() == "" && s.link != nil:
		e.kinds = append(e.kinds, ErrNoSession)
		e.Why = "the connection was lost before the answer came; " + ErrNoSession.Error() + ", so nothing can be asked about it"
	default:
		e.Why = "the connection was lost before the answer came"
	}
}

// unknownMethod reports that the server knows no such method.
func unknownMethod(err error) bool {
	var e *CallError
	return errors.As(err, &e) && e.Code == -32601
}
