package mcp

import (
	"errors"
	"fmt"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// What went wrong with a call; test a [*CallError] for them with errors.Is.
var (
	// ErrNotResent: the session was replaced (or could not be), and the
	// request was not sent again because it may already have executed.
	ErrNotResent = errors.New("the request was not sent again")
	// ErrOutcomeUnknown: the request was, or may have been, written, and its
	// answer was lost. It may have executed.
	ErrOutcomeUnknown = errors.New("outcome unknown")
	// ErrSessionExpired: 404 to a request that carried a session id.
	ErrSessionExpired = errors.New("session expired")
	// ErrEpochOver: the request was pinned to an epoch that has ended.
	ErrEpochOver = errors.New("session epoch is over")
	// ErrBreakerOpen: sessions keep expiring, or could not be replaced;
	// nothing is tried for a while.
	ErrBreakerOpen = errors.New("waiting before the session is restarted again")
	// ErrNoSession: the server keeps no session, so there is none to recover.
	ErrNoSession = errors.New("this server keeps no session")
	// ErrHandshake: a connection or its initialize failed.
	ErrHandshake = errors.New("handshake failed")
	// ErrProtocol: no protocol version in common.
	ErrProtocol = errors.New("no protocol version in common")
	// ErrDisconnected: the connection had broken before the request.
	ErrDisconnected = errors.New("the connection is closed")
	// ErrTooLarge: the peer sent more than the limit.
	ErrTooLarge = errors.New("answer larger than the limit")
	// ErrBadSessionID: the peer issued a session id the protocol does not
	// allow (1 to 4096 characters of 0x21-0x7E).
	ErrBadSessionID = errors.New("the server issued a malformed session id")
	// ErrCredentials: the operator's header function failed.
	ErrCredentials = errors.New("reading the credentials for this server failed")
	// ErrClosed: the client was closed.
	ErrClosed = errors.New("client closed")
)

// Fate says what is known about a request that brought no result.
type Fate string

// The fates.
const (
	// NotSent: nothing of it was written. Sending it is safe.
	NotSent Fate = "not_sent"
	// Refused: the server answered, and with an error.
	Refused Fate = "refused"
	// Unknown: it may have executed.
	Unknown Fate = "unknown"
)

// CallError is why a call brought no result. Its text is ours throughout:
// nothing the peer sent is in it, and no session id.
type CallError struct {
	Method string
	Fate   Fate
	// Status is the HTTP status that answered the request, 0 where none did.
	Status int
	// Code is the JSON-RPC error code, 0 where there was none. The peer's own
	// message is reachable with errors.As and *jsonrpc.Error, for callers who
	// show it to the person who made the call; it is foreign text.
	Code int64
	// Restarted is true where a new session stands in place of the one that
	// this request met its end on.
	Restarted bool
	// Why is one clause in our words.
	Why string

	kinds []error
	cause error
}

func (e *CallError) Error() string {
	var b strings.Builder
	b.WriteString(e.Method)
	b.WriteString(": ")
	b.WriteString(e.clause())
	switch e.Fate {
	case NotSent:
		b.WriteString("; nothing was written")
	case Unknown:
		b.WriteString("; outcome unknown")
	}
	return b.String()
}

// clause is Why with the status, for a sentence that names the deed itself.
func (e *CallError) clause() string {
	if e.Status == 0 {
		return e.Why
	}
	return fmt.Sprintf("%s (HTTP %d)", e.Why, e.Status)
}

// Unwrap gives the sentinels above that apply, and the cause.
func (e *CallError) Unwrap() []error {
	if e.cause == nil {
		return e.kinds
	}
	return append(e.kinds[:len(e.kinds):len(e.kinds)], e.cause)
}

// rpcError is the JSON-RPC error in err that the peer sent. The SDK's own
// markers have the same type and are told apart by their codes.
func rpcError(err error) (*jsonrpc.Error, bool) {
	var we *jsonrpc.Error
	if !errors.As(err, &we) {
		return nil, false
	}
	switch we.Code {
	case -32003, -32004, -32005: // client closing, server closing, rejected by transport
		return nil, false
	}
	return we, true
}
