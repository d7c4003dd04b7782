package mcp

import (
	"context"
	"errors"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// look makes the requests of [Client.look] on s.
func (s *session) look(ctx context.Context, protocol string) (Capabilities, error) {
	// Of a process, any answer shows that it is there, also of a version that
	// has no ping.
	if protocol < modern || s.link == nil {
		err := s.call(ctx, "ping", func(ctx context.Context, cs *sdk.ClientSession) error { return cs.Ping(ctx, nil) })
		var e *CallError
		if err != nil && !unknownMethod(err) && !(protocol >= modern && errors.As(err, &e) && e.Code != 0) {
			return nil, err
		}
	}
	return s.list(ctx)
}

// failure is the sight of a server that did not answer.
func failure(err error) Sight {
	if err == nil {
		return Sight{}
	}
	s := Sight{Symptom: symptom(err), Seen: "failed", timeout: errors.Is(err, context.DeadlineExceeded)}
	var e *CallError
	if errors.As(err, &e) {
		s.Seen = e.Method + ": " + e.clause()
	}
	return s
}

// symptom gives the playbook's code for what went wrong (the vocabulary of the
// default playbook), "" where none fits: a refused connection alone says
// nothing about its cause.
func symptom(err error) string {
	var e *CallError
	if !errors.As(err, &e) {
		return ""
	}
	switch {
	case errors.Is(err, ErrBreakerOpen) && errors.Is(err, ErrSessionExpired):
		return "session_affinity_miss" // fresh sessions unknown: another replica answers
	case errors.Is(err, ErrSessionExpired):
		return "session_expired"
	case errors.Is(err, ErrProtocol):
		return "protocol_mismatch"
	case e.Status == 401 || e.Status == 403:
		return "credential_stale"
	case e.Status == 400 && !errors.Is(err, ErrHandshake):
		return "session_rejected"
	case errors.Is(err, ErrDisconnected):
		return "connection_poisoned"
	case errors.Is(err, context.DeadlineExceeded):
		return "worker_hung"
	case errors.Is(err, ErrOutcomeUnknown) && !errors.Is(err, ErrTooLarge):
		return "transport_eof"
	}
	return ""
}
