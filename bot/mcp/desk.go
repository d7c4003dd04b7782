package mcp

import (
	"context"
	"errors"

	"playbook-bot/playbook"
)

// Desk is where tools file requests and records: the forge, behind an
// interface that the tools declare. It judges nothing by the bot's own
// standing; whatever it files is judged by the account's.
//
// Errors that are a *DeskError are shown to the caller. All others are not:
// the caller learns that it could not be done, and the desk logs why.
type Desk interface {
	// File files a request as an issue and returns without waiting for the
	// bot's answer. Filing is not idempotent: the desk finds a request that is
	// open with the same account, action, target and break-glass flag, and
	// returns it with Existing set.
	File(context.Context, Filing) (Filed, error)
	// Record posts an attempt into a thread.
	Record(context.Context, Recording) (Filed, error)
	// Status gives the decision in force for a request, or for the thread's
	// last where Request is empty, if the account may read it.
	Status(context.Context, Inquiry) (playbook.Decision, error)
}

// Filing is a request as an agent makes it.
type Filing struct {
	// Account is the forge account that the agent's token belongs to, Tool the
	// tool's name; both are to stand in the signed marker.
	Account, Tool string
	// Repository is "owner/repo"; whether the bot answers there is the desk's
	// to know, and the limit per hour and account too.
	Repository     string
	Action, Target string
	Symptoms       []string
	Reason         string
	BreakGlass     bool
	// Attempts are valid records made for Account. None is verified.
	Attempts []playbook.Attempt
}

// Filed says where something was put.
type Filed struct {
	// Issue is "owner/repo#41".
	Issue string `json:"issue"`
	URL   string `json:"url"`
	// Request is the request's id where the bot has given it one already.
	Request string `json:"request,omitempty"`
	// Existing: it was there before.
	Existing bool `json:"existing"`
}

// Recording is an attempt for a thread.
type Recording struct {
	Account, Tool string
	// Issue is "owner/repo#41".
	Issue   string
	Attempt playbook.Attempt
}

// Inquiry asks how a request stands.
type Inquiry struct {
	Account string
	// Issue is "owner/repo#41"; Request is "41/1" or empty.
	Issue, Request string
}

// DeskError is why the desk did not do it, and the cure, in words fit for the
// caller.
type DeskError struct {
	Why, Cure string
}

func (e *DeskError) Error() string {
	if e.Cure == "" {
		return e.Why
	}
	return e.Why + "; " + e.Cure
}

// shown is the error as the caller gets it.
func shown(doing string, err error) error {
	var e *DeskError
	if errors.As(err, &e) {
		return errors.New(doing + ": " + e.Error())
	}
	return errors.New(doing + ": it could not be done; the bot's log says why. It may have taken effect: ask recovery_request_status before you repeat it")
}
