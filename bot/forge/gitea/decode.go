package gitea

import (
	"bytes"
	"cmp"
	"encoding/hex"
	"encoding/json"
	"errors"
	"net/http"
	"strings"

	"playbook-bot/bot/forge"
)

// Dialect reads a server's deliveries. It needs no connection; the zero value
// is ready and calls its forge "gitea".
type Dialect struct {
	// Forge is the name that events carry. "": "gitea".
	Forge string
}

// Name is the forge's name in events, keys and hook URLs.
func (d Dialect) Name() string { return cmp.Or(d.Forge, "gitea") }

// The headers of a delivery by what they hold, in the order of trust: all
// three families are in every delivery of Gitea's.
var (
	eventHeaders     = []string{"X-Gitea-Event", "X-Forgejo-Event", "X-Gogs-Event"}
	deliveryHeaders  = []string{"X-Gitea-Delivery", "X-Forgejo-Delivery", "X-Gogs-Delivery"}
	signatureHeaders = []string{"X-Gitea-Signature", "X-Forgejo-Signature", "X-Gogs-Signature"}
)

func firstHeader(h http.Header, names []string) string {
	for _, n := range names {
		if v := strings.TrimSpace(h.Get(n)); v != "" {
			return v
		}
	}
	return ""
}

// Signature gives the bytes a delivery's signature is over and the signature,
// an HMAC-SHA256; nil if there is none to check. raw is the body as received,
// payload its JSON: the same bytes, except in a form delivery, of which Gitea
// signs the JSON and not the form.
func (Dialect) Signature(h http.Header, raw, payload []byte) (signed, mac []byte) {
	text := firstHeader(h, signatureHeaders)
	if text == "" {
		text, _ = strings.CutPrefix(strings.TrimSpace(h.Get("X-Hub-Signature-256")), "sha256=")
	}
	mac, err := hex.DecodeString(text)
	if err != nil || len(mac) == 0 {
		return nil, nil
	}
	return payload, mac
}

// The ways a delivery can be malformed. None holds text of the delivery's.
var (
	errNoEvent    = errors.New("the delivery names no event")
	errNoJSON     = errors.New("the delivery is no JSON object")
	errNoRepo     = errors.New("the delivery names no repository")
	errNoAction   = errors.New("the delivery names no action")
	errNoObject   = errors.New("the delivery lacks the issue or comment it is about")
	errWrongEvent = errors.New("the delivery's event header does not fit its body")
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
}

// Decode reads a delivery's JSON. Events and actions the bot does nothing
// about are forge.ActionOther, with the repository where there is one. An
// error means that the delivery is malformed; its text holds nothing of it.
//
// The signature covers the body and not the headers, so the body alone decides
// what has happened, and an event header that does not fit it is an error:
// else a signed "comment deleted" could be replayed as "issue deleted".
func (d Dialect) Decode(h http.Header, body []byte) (forge.Event, error) {
	event := firstHeader(h, eventHeaders)
	if event == "" {
		return forge.Event{}, errNoEvent
	}
	var p payload
	if !bytes.HasPrefix(bytes.TrimSpace(body), []byte("{")) || json.Unmarshal(body, &p) != nil {
		return forge.Event{}, errNoJSON
	}
	ev := forge.Event{
		Forge:    d.Name(),
		Delivery: firstHeader(h, deliveryHeaders),
		Action:   forge.ActionOther,
		Sender:   p.Sender.neutral(),
	}
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
		return forge.Event{}, errNoRepo
	}
	if p.Action == "" {
		return forge.Event{}, errNoAction
	}
	if event == "issue_comment" {
		return p.comment(ev)
	}
	return p.issue(ev, event)
}

// comment fills in an event about a comment. On a pull request the payload
// has both issue and pull_request.
func (p *payload) comment(ev forge.Event) (forge.Event, error) {
	if p.Comment == nil && p.Action == "reviewed" {
		return ev, nil // a review: not a text of the thread
	}
	thread := p.Issue
	if thread == nil {
		thread = p.PullRequest
	}
	if p.Comment == nil || p.Comment.ID <= 0 || thread == nil || thread.Number <= 0 {
		return forge.Event{}, errNoObject
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
	return ev, nil
}

// issue fills in an event about an issue or pull request. Merging one is
// "closed".
func (p *payload) issue(ev forge.Event, event string) (forge.Event, error) {
	if p.Comment != nil {
		return forge.Event{}, errWrongEvent
	}
	thread := p.Issue
	ev.Pull = event == "pull_request"
	if ev.Pull {
		thread = p.PullRequest
	}
	switch {
	case thread == nil && (p.Issue != nil || p.PullRequest != nil):
		return forge.Event{}, errWrongEvent
	case thread == nil || thread.Number <= 0:
		return forge.Event{}, errNoObject
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
	return ev, nil
}

func present(raw json.RawMessage) bool { return len(raw) > 0 && string(raw) != "null" }
