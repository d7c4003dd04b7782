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
)

type jsonFrom struct {
	From string `json:"from"`
}

type jsonChanges struct {
	Title         *jsonFrom `json:"title,omitempty"`
	Body          *jsonFrom `json:"body,omitempty"`
	AddedLabels   []string  `json:"added_labels"`
	RemovedLabels []string  `json:"removed_labels"`
}

type issuePayload struct {
	Action     string       `json:"action"`
	Number     int64        `json:"number"`
	Changes    *jsonChanges `json:"changes,omitempty"`
	Issue      jsonIssue    `json:"issue"`
	Repository jsonRepo     `json:"repository"`
	Sender     jsonUser     `json:"sender"`
	CommitID   string       `json:"commit_id"`
}

type pullPayload struct {
	Action            string       `json:"action"`
	Number            int64        `json:"number"`
	Changes           *jsonChanges `json:"changes,omitempty"`
	PullRequest       jsonPull     `json:"pull_request"`
	RequestedReviewer *jsonUser    `json:"requested_reviewer"`
	Repository        jsonRepo     `json:"repository"`
	Sender            jsonUser     `json:"sender"`
	CommitID          string       `json:"commit_id"`
	Review            *string      `json:"review"`
}

type commentPayload struct {
	Action      string       `json:"action"`
	Issue       jsonIssue    `json:"issue"`
	PullRequest *jsonPull    `json:"pull_request,omitempty"`
	Comment     jsonComment  `json:"comment"`
	Changes     *jsonChanges `json:"changes,omitempty"`
	Repository  jsonRepo     `json:"repository"`
	Sender      jsonUser     `json:"sender"`
	IsPull      bool         `json:"is_pull"`
}

type jsonBranch struct {
	Label  string   `json:"label"`
	Ref    string   `json:"ref"`
	SHA    string   `json:"sha"`
	RepoID int64    `json:"repo_id"`
	Repo   jsonRepo `json:"repo"`
}

type jsonPull struct {
	ID                  int64       `json:"id"`
	URL                 string      `json:"url"`
	Number              int64       `json:"number"`
	User                jsonUser    `json:"user"`
	Title               string      `json:"title"`
	Body                string      `json:"body"`
	Labels              []jsonLabel `json:"labels"`
	Milestone           *string     `json:"milestone"`
	Assignee            *jsonUser   `json:"assignee"`
	Assignees           []jsonUser  `json:"assignees"`
	Reviewers           []jsonUser  `json:"requested_reviewers"`
	ReviewerTeams       []jsonTeam  `json:"requested_reviewers_teams"`
	State               string      `json:"state"`
	Draft               bool        `json:"draft"`
	IsLocked            bool        `json:"is_locked"`
	Comments            int         `json:"comments"`
	Additions           int         `json:"additions"`
	Deletions           int         `json:"deletions"`
	ChangedFiles        int         `json:"changed_files"`
	HTMLURL             string      `json:"html_url"`
	DiffURL             string      `json:"diff_url"`
	PatchURL            string      `json:"patch_url"`
	Mergeable           bool        `json:"mergeable"`
	Merged              bool        `json:"merged"`
	MergedAt            *string     `json:"merged_at"`
	MergeCommitSHA      *string     `json:"merge_commit_sha"`
	MergedBy            *jsonUser   `json:"merged_by"`
	AllowMaintainerEdit bool        `json:"allow_maintainer_edit"`
	Base                jsonBranch  `json:"base"`
	Head                jsonBranch  `json:"head"`
	MergeBase           string      `json:"merge_base"`
	DueDate             *string     `json:"due_date"`
	Created             *string     `json:"created_at"`
	Updated             *string     `json:"updated_at"`
	Closed              *string     `json:"closed_at"`
	PinOrder            int         `json:"pin_order"`
	ContentVersion      int         `json:"content_version"`
}

func (f *Forge) jsonPull(i *issue, to *account) jsonPull {
	const base, head = "aeb0d2f36f696e25d93d58fba93ddd586aff13a6", "72e166040fa0389908095dafd17ff76cb8dff430"
	r, page := f.jsonRepo(i.repo, to), f.page(i)
	return jsonPull{
		ID: i.id, URL: page, Number: i.index, User: f.jsonUser(i.author), Title: i.title, Body: i.body,
		Labels: f.jsonLabels(i.labels), Assignees: []jsonUser{}, Reviewers: []jsonUser{}, ReviewerTeams: []jsonTeam{},
		State: stateName(i), IsLocked: i.locked, Comments: len(f.st.threadComments(i)), Additions: 1, ChangedFiles: 1,
		HTMLURL: page, DiffURL: page + ".diff", PatchURL: page + ".patch", Mergeable: true, AllowMaintainerEdit: true,
		Base:      jsonBranch{Label: "main", Ref: "main", SHA: base, RepoID: i.repo.id, Repo: r},
		Head:      jsonBranch{Label: "topic", Ref: "topic", SHA: head, RepoID: i.repo.id, Repo: r},
		MergeBase: base, Created: stampOrNil(i.created), Updated: stampOrNil(i.updated), Closed: stampOrNil(i.closedAt),
		ContentVersion: i.version,
	}
}

// delivery makes what a hook is sent: the same body whoever the hook belongs
// to, under an id of its own.
func (g *gitea) delivery(h *hook, e happening) *Delivery {
	if e.label != nil {
		return nil // it tells of all labels of a call together
	}
	body := &bytes.Buffer{}
	enc := json.NewEncoder(body)
	enc.SetIndent("", "  ")
	event, kind, payload := g.payload(e)
	_ = enc.Encode(payload) // structs of plain fields cannot fail
	content := bytes.TrimSuffix(body.Bytes(), []byte("\n"))
	header := g.headers(h, event, kind, content)
	if h.form {
		header.Set("Content-Type", "application/x-www-form-urlencoded")
		content = []byte(url.Values{"payload": {string(content)}}.Encode())
	}
	return &Delivery{Path: h.path, Header: header, Body: content, Event: event + " " + e.action}
}

// payload gives a delivery's event, its type, and its JSON. The repository is
// shown as to the sender of a comment, and as to an issue's author.
func (g *gitea) payload(e happening) (event, kind string, payload any) {
	f, i := g.f, e.issue
	var changes *jsonChanges
	if e.oldTitle != nil || e.oldBody != nil {
		changes = &jsonChanges{}
		if e.oldTitle != nil {
			changes.Title = &jsonFrom{*e.oldTitle}
		}
		if e.oldBody != nil {
			changes.Body = &jsonFrom{*e.oldBody}
		}
	}
	sender := f.jsonUser(e.sender)
	if e.event == "comment" {
		p := commentPayload{Action: e.action, Issue: f.jsonIssue(i), Comment: f.jsonComment(e.comment), Changes: changes,
			Repository: f.jsonRepo(i.repo, e.sender), Sender: sender, IsPull: i.pull}
		kind = "issue_comment"
		if i.pull {
			pull := f.jsonPull(i, e.sender)
			p.PullRequest, kind = &pull, "pull_request_comment"
		}
		return "issue_comment", kind, p
	}
	r := f.jsonRepo(i.repo, i.author)
	if i.pull {
		event, kind = "pull_request", "pull_request"
		payload = pullPayload{Action: e.action, Number: i.index, Changes: changes, PullRequest: f.jsonPull(i, e.sender),
			Repository: r, Sender: sender}
	} else {
		event, kind = "issues", "issues"
		payload = issuePayload{Action: e.action, Number: i.index, Changes: changes, Issue: f.jsonIssue(i), Repository: r, Sender: sender}
	}
	if e.event == "label" {
		kind = map[string]string{"issues": "issue_label", "pull_request": "pull_request_label"}[event]
	}
	return event, kind, payload
}

// headers are those of a delivery: three families, and signatures that are
// there and empty without a secret.
func (g *gitea) headers(h *hook, event, kind string, content []byte) http.Header {
	target := "repository"
	if h.org != nil {
		target = "organization"
	}
	mac := func(alg func() hash.Hash) string {
		if h.secret == "" {
			return ""
		}
		m := hmac.New(alg, []byte(h.secret))
		m.Write(content)
		return hex.EncodeToString(m.Sum(nil))
	}
	id, sum := g.f.out.nextDelivery(), mac(sha256.New)
	header := http.Header{}
	for name, value := range map[string]string{
		"User-Agent": "Go-http-client/1.1", "Content-Type": "application/json", "Accept-Encoding": "gzip",
		"X-Hub-Signature": "sha1=" + mac(sha1.New), "X-Hub-Signature-256": "sha256=" + sum,
		"X-Gitea-Signature": sum, "X-Gogs-Signature": sum,
		"X-Gitea-Hook-Installation-Target-Type":  target,
		"X-GitHub-Hook-Installation-Target-Type": target,
	} {
		header.Set(name, value)
	}
	families := []string{"X-Gitea", "X-Gogs", "X-GitHub"}
	if g.forgejo {
		families = append(families, "X-Forgejo")
		header.Set("X-Forgejo-Signature", sum)
		header.Set("X-Forgejo-Hook-Installation-Target-Type", target)
	}
	for _, family := range families {
		header.Set(family+"-Delivery", id)
		header.Set(family+"-Event", event)
		header.Set(family+"-Event-Type", kind)
	}
	return header
}
