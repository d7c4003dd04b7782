package forgetest

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"hash"
	"net/http"
	"net/url"
	"strconv"
)

type hubOrg struct {
	Login string `json:"login"`
	ID    int64  `json:"id"`
}

type hubChanges struct {
	Title         *jsonFrom `json:"title,omitempty"`
	Body          *jsonFrom `json:"body,omitempty"`
	NewIssue      *hubIssue `json:"new_issue,omitempty"`
	NewRepository *hubRepo  `json:"new_repository,omitempty"`
	OldIssue      *hubIssue `json:"old_issue,omitempty"`
	OldRepository *hubRepo  `json:"old_repository,omitempty"`
}

type hubPull struct {
	URL       string     `json:"url"`
	ID        int64      `json:"id"`
	HTMLURL   string     `json:"html_url"`
	IssueURL  string     `json:"issue_url"`
	Number    int64      `json:"number"`
	State     string     `json:"state"`
	Locked    bool       `json:"locked"`
	Title     string     `json:"title"`
	User      hubUser    `json:"user"`
	Body      string     `json:"body"`
	Labels    []hubLabel `json:"labels"`
	Merged    bool       `json:"merged"`
	Comments  int        `json:"comments"`
	CreatedAt string     `json:"created_at"`
	UpdatedAt string     `json:"updated_at"`
}

type hubHook struct {
	Type   string            `json:"type"`
	ID     int64             `json:"id"`
	Active bool              `json:"active"`
	Events []string          `json:"events"`
	Config map[string]string `json:"config"`
}

type hubPayload struct {
	Action       string      `json:"action,omitempty"`
	Number       int64       `json:"number,omitempty"`
	Zen          string      `json:"zen,omitempty"`
	HookID       int64       `json:"hook_id,omitempty"`
	Hook         *hubHook    `json:"hook,omitempty"`
	Issue        *hubIssue   `json:"issue,omitempty"`
	PullRequest  *hubPull    `json:"pull_request,omitempty"`
	Comment      *hubComment `json:"comment,omitempty"`
	Label        *hubLabel   `json:"label,omitempty"`
	Changes      *hubChanges `json:"changes,omitempty"`
	Repository   *hubRepo    `json:"repository,omitempty"`
	Organization *hubOrg     `json:"organization,omitempty"`
	Sender       *hubUser    `json:"sender,omitempty"`
}

func (g *github) pull(i *issue) *hubPull {
	shown := g.issue(i)
	return &hubPull{URL: shown.PullRequest.URL, ID: i.id, HTMLURL: shown.HTMLURL, IssueURL: shown.URL, Number: i.index,
		State: shown.State, Locked: i.locked, Title: i.title, User: shown.User, Body: i.body, Labels: shown.Labels,
		Comments: shown.Comments, CreatedAt: shown.CreatedAt, UpdatedAt: shown.UpdatedAt}
}

// delivery makes what a hook is sent. Labels are told of one by one.
func (g *github) delivery(h *hook, e happening) *Delivery {
	if e.event == "label" && e.label == nil {
		return nil
	}
	event, payload := g.payload(h, e)
	content, _ := json.Marshal(payload) // structs of plain fields cannot fail
	header := http.Header{"Content-Type": {"application/json"}}
	if h.form {
		header.Set("Content-Type", "application/x-www-form-urlencoded")
		content = []byte(url.Values{"payload": {string(content)}}.Encode())
	}
	g.sign(header, h, event, content)
	return &Delivery{Path: h.path, Header: header, Body: bytes.Clone(content), Event: event + " " + payload.Action}
}

func (g *github) payload(h *hook, e happening) (event string, p hubPayload) {
	if e.event == "ping" {
		return "ping", g.ping(h)
	}
	i, sender := e.issue, g.user(e.sender)
	repo := g.repo(i.repo)
	p = hubPayload{Action: e.action, Repository: &repo, Sender: &sender, Changes: g.changes(e)}
	if i.repo.owner.org {
		p.Organization = &hubOrg{i.repo.owner.login, i.repo.owner.id}
	}
	if e.label != nil {
		p.Label = &g.labels([]*label{e.label})[0]
	}
	shown := g.issue(i)
	switch {
	case e.event == "comment":
		c := g.comment(e.comment)
		p.Issue, p.Comment = &shown, &c
		return "issue_comment", p
	case i.pull:
		p.Number, p.PullRequest = i.index, g.pull(i)
		return "pull_request", p
	}
	p.Issue = &shown
	return "issues", p
}

func (g *github) ping(h *hook) hubPayload {
	p := hubPayload{Zen: "Keep it logically awesome.", HookID: h.id,
		Hook: &hubHook{Type: "Repository", ID: h.id, Active: true, Events: []string{"issue_comment", "issues", "pull_request"},
			Config: map[string]string{"content_type": "json", "insecure_ssl": "0"}}}
	if h.org != nil {
		p.Hook.Type, p.Organization = "Organization", &hubOrg{h.org.login, h.org.id}
	}
	if h.repo != nil {
		repo := g.repo(h.repo)
		p.Repository = &repo
	}
	return p
}

// changes are those of an edit or a transfer, nil for all else.
func (g *github) changes(e happening) *hubChanges {
	out := &hubChanges{}
	show := func(i *issue) (*hubIssue, *hubRepo) {
		shown, repo := g.issue(i), g.repo(i.repo)
		return &shown, &repo
	}
	switch {
	case e.to != nil:
		out.NewIssue, out.NewRepository = show(e.to)
	case e.from != nil:
		out.OldIssue, out.OldRepository = show(e.from)
	case e.oldTitle == nil && e.oldBody == nil:
		return nil
	}
	if e.oldTitle != nil {
		out.Title = &jsonFrom{*e.oldTitle}
	}
	if e.oldBody != nil {
		out.Body = &jsonFrom{*e.oldBody}
	}
	return out
}

// sign sets the headers of a delivery. The signature is over what is sent, a
// form too; without a secret there is none.
func (g *github) sign(header http.Header, h *hook, event string, content []byte) {
	target, id := "repository", int64(0)
	switch {
	case h.org != nil:
		target, id = "organization", h.org.id
	case h.repo != nil:
		id = h.repo.id
	}
	for name, value := range map[string]string{
		"Accept": "*/*", "User-Agent": "GitHub-Hookshot/0000000",
		"X-GitHub-Event": event, "X-GitHub-Delivery": g.f.out.nextDelivery(), "X-GitHub-Hook-ID": strconv.FormatInt(h.id, 10),
		"X-GitHub-Hook-Installation-Target-Type": target, "X-GitHub-Hook-Installation-Target-ID": strconv.FormatInt(id, 10),
	} {
		header.Set(name, value)
	}
	if h.secret == "" {
		return
	}
	mac := func(alg func() hash.Hash) string {
		m := hmac.New(alg, []byte(h.secret))
		m.Write(content)
		return hex.EncodeToString(m.Sum(nil))
	}
	header.Set("X-Hub-Signature", "sha1="+mac(sha1.New))
	header.Set("X-Hub-Signature-256", "sha256="+mac(sha256.New))
}
