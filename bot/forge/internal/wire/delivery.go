package wire

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/http"
	"strings"

	fastjson "github.com/segmentio/encoding/json"

	"playbook-bot/bot/forge"
)

// FirstHeader is the first of these headers that is not blank, trimmed.
func FirstHeader(h http.Header, names ...string) string {
	for _, n := range names {
		if v := strings.TrimSpace(h.Get(n)); v != "" {
			return v
		}
	}
	return ""
}

// The ways a delivery can be malformed. None holds text of the delivery's.
var (
	ErrNoEvent    = errors.New("the delivery names no event")
	ErrNoJSON     = errors.New("the delivery is no JSON object")
	ErrNoRepo     = errors.New("the delivery names no repository")
	ErrNoAction   = errors.New("the delivery names no action")
	ErrNoObject   = errors.New("the delivery lacks the issue or comment it is about")
	ErrWrongEvent = errors.New("the delivery's event header does not fit its body")
)

// account is absent (null) for some system deliveries.
type account struct {
	ID    int64  `json:"id"`
	Login string `json:"login"`
}

func (a *account) neutral() forge.Account {
	if a == nil {
		return forge.Account{}
	}
	return forge.Account{ID: a.ID, Login: a.Login}
}

type issueText struct {
	Number int64    `json:"number"`
	User   *account `json:"user"`
	Body   string   `json:"body"`
	// PullRequest is non-null where an issue is a pull request.
	PullRequest json.RawMessage `json:"pull_request"`
}

type commentText struct {
	ID   int64    `json:"id"`
	User *account `json:"user"`
	Body string   `json:"body"`
}

// payload is what is read of a delivery's 5–15 KB.
type payload struct {
	Action      string       `json:"action"`
	Issue       *issueText   `json:"issue"`
	PullRequest *issueText   `json:"pull_request"`
	Comment     *commentText `json:"comment"`
	Repository  *struct {
		ID    int64    `json:"id"`
		Name  string   `json:"name"`
		Owner *account `json:"owner"`
	} `json:"repository"`
	Sender *account `json:"sender"`
	IsPull bool     `json:"is_pull"`
	// Changes is read where it matters: in other events it has other shapes.
	Changes json.RawMessage `json:"changes"`
}

// readPayload reads what encoding/json would, in a third of the time: decoding
// was the largest part of what taking a delivery in costs. The other library
// knows no bound on depth and would overflow the stack on a megabyte of brackets;
// a body with so many is held against encoding/json first, which knows one.
func readPayload(body []byte) (p payload, ok bool) {
	if !bytes.HasPrefix(bytes.TrimSpace(body), []byte("{")) {
		return payload{}, false
	}
	if bytes.Count(body, []byte("{"))+bytes.Count(body, []byte("[")) > trustedDepth && !json.Valid(body) {
		return payload{}, false
	}
	return p, fastjson.Unmarshal(body, &p) == nil
}

// trustedDepth is far from what overflows the stack, and far above what a
// forge sends.
const trustedDepth = 5_000

// movedHere reports whether an issue "opened" by this delivery came from
// another repository.
func (p *payload) movedHere() bool {
	var changes struct {
		OldIssue json.RawMessage `json:"old_issue"`
	}
	return json.Unmarshal(p.Changes, &changes) == nil && present(changes.OldIssue)
}

// bodyEdited reports whether an edit changed the text itself.
func (p *payload) bodyEdited() bool {
	var changes struct {
		Body json.RawMessage `json:"body"`
	}
	return json.Unmarshal(p.Changes, &changes) == nil && present(changes.Body)
}

// unattested takes the author out of an edit that did not change the body: a
// title's, say. Such a delivery carries a text that somebody else may have
// written last, and must not vouch for it.
func (p *payload) unattested(ev forge.Event) forge.Event {
	if ev.Action == forge.ActionEdited && !p.bodyEdited() {
		ev.Author = forge.Account{}
	}
	return ev
}

// Decode reads a delivery's JSON, given the event its headers name. Events and
// actions the bot does nothing about are forge.ActionOther, with the
// repository where there is one. An error means that the delivery is
// malformed; its text holds nothing of it.
//
// The signature covers the body and not the headers, so the body alone decides
// what has happened, and an event header that does not fit it is an error:
// else a signed "comment deleted" could be replayed as "issue deleted".
func Decode(event string, body []byte) (forge.Event, error) {
	if event == "" {
		return forge.Event{}, ErrNoEvent
	}
	p, ok := readPayload(body)
	if !ok {
		return forge.Event{}, ErrNoJSON
	}
	ev := forge.Event{Action: forge.ActionOther, Sender: p.Sender.neutral()}
	if p.Repository != nil {
		owner := p.Repository.Owner.neutral()
		ev.Repo = forge.Repo{ID: p.Repository.ID, Owner: owner.Login, OwnerID: owner.ID, Name: p.Repository.Name}
		ev.OrgID = owner.ID
	}
	switch event {
	case "issue_comment", "issues", "pull_request":
	default:
		return ev, nil
	}
	if ev.Repo.ID <= 0 {
		return forge.Event{}, ErrNoRepo
	}
	if p.Action == "" {
		return forge.Event{}, ErrNoAction
	}
	if event == "issue_comment" {
		return p.comment(ev)
	}
	return p.issue(ev, event)
}

// comment fills in an event about a comment. On a pull request Gitea's payload
// has both issue and pull_request.
func (p *payload) comment(ev forge.Event) (forge.Event, error) {
	if p.Comment == nil && p.Action == "reviewed" {
		return ev, nil // a review of Gitea's: not a text of the thread
	}
	thread := p.Issue
	if thread == nil {
		thread = p.PullRequest
	}
	if p.Comment == nil || p.Comment.ID <= 0 || thread == nil || thread.Number <= 0 {
		return forge.Event{}, ErrNoObject
	}
	ev.Number = thread.Number
	ev.Object = forge.Object{Kind: forge.ObjectComment, ID: p.Comment.ID}
	ev.Author = p.Comment.User.neutral()
	ev.Body = p.Comment.Body
	ev.Pull = p.IsPull || p.PullRequest != nil || present(thread.PullRequest)
	switch a := forge.Action(p.Action); a {
	case forge.ActionCreated, forge.ActionEdited, forge.ActionDeleted:
		ev.Action = a
	}
	return p.unattested(ev), nil
}

// issue fills in an event about an issue or pull request. Merging one is
// "closed".
func (p *payload) issue(ev forge.Event, event string) (forge.Event, error) {
	if p.Comment != nil {
		return forge.Event{}, ErrWrongEvent
	}
	thread := p.Issue
	ev.Pull = event == "pull_request"
	if ev.Pull {
		thread = p.PullRequest
	}
	switch {
	case thread == nil && (p.Issue != nil || p.PullRequest != nil):
		return forge.Event{}, ErrWrongEvent
	case thread == nil || thread.Number <= 0:
		return forge.Event{}, ErrNoObject
	}
	ev.Pull = ev.Pull || present(thread.PullRequest)
	ev.Number = thread.Number
	ev.Object = forge.Object{Kind: forge.ObjectIssue, ID: thread.Number}
	ev.Author = thread.User.neutral()
	ev.Body = thread.Body
	switch a := forge.Action(p.Action); a {
	case forge.ActionOpened, forge.ActionEdited, forge.ActionDeleted, forge.ActionClosed,
		forge.ActionReopened, forge.ActionTransferred:
		ev.Action = a
	}
	if ev.Action == forge.ActionOpened && p.movedHere() {
		// It was not opened but moved here from another repository, by whoever
		// sent this: nobody asked anything of this one, so nobody vouches for
		// its words. It starts with no request.
		ev.Sender = forge.Account{}
	}
	return p.unattested(ev), nil
}

func present(raw json.RawMessage) bool { return len(raw) > 0 && string(raw) != "null" }
