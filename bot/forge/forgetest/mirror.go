package forgetest

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"
)

// This file brings the fake to the state that recorded deliveries show, so
// that a bot to which they are replayed finds on the forge what they speak
// of, under the recorded ids.

// Recorded is a recorded delivery of Gitea and when it happened.
type Recorded struct {
	Delivery
	// At is the newest time its payload names, in UTC and whole seconds.
	At time.Time

	p mirrored
}

// Repo is the "owner/name" the delivery speaks of, "" if it names none.
func (r Recorded) Repo() string {
	if r.p.Repository.ID <= 0 || r.p.Repository.Owner == nil || r.p.Repository.Name == "" {
		return ""
	}
	return r.p.Repository.Owner.Login + "/" + r.p.Repository.Name
}

// Thread is the number of the issue or pull request, 0 if it names none.
func (r Recorded) Thread() int64 {
	if t, _ := r.p.thread(); t != nil {
		return t.Number
	}
	return 0
}

// Comment is the id of the comment it is about, 0 if it is about none.
func (r Recorded) Comment() int64 { return r.p.comment() }

// Logins are the accounts the delivery names.
func (r Recorded) Logins() []string {
	var out []string
	for _, a := range r.p.actors() {
		out = append(out, a.Login)
	}
	return out
}

// mirrored is what a payload shows of the state.
type mirrored struct {
	Action      string         `json:"action"`
	Issue       *mirroredText  `json:"issue"`
	PullRequest *mirroredText  `json:"pull_request"`
	Comment     *mirroredText  `json:"comment"`
	Sender      *mirroredActor `json:"sender"`
	Repository  struct {
		ID      int64          `json:"id"`
		Name    string         `json:"name"`
		Private bool           `json:"private"`
		Owner   *mirroredActor `json:"owner"`
	} `json:"repository"`
}

type mirroredActor struct {
	ID    int64  `json:"id"`
	Login string `json:"login"`
}

// mirroredText is an issue, a pull request or a comment.
type mirroredText struct {
	ID             int64          `json:"id"`
	Number         int64          `json:"number"`
	User           *mirroredActor `json:"user"`
	OriginalAuthor string         `json:"original_author"`
	Title          string         `json:"title"`
	Body           string         `json:"body"`
	State          string         `json:"state"`
	CreatedAt      time.Time      `json:"created_at"`
	UpdatedAt      time.Time      `json:"updated_at"`
}

// thread is the issue that a payload is about, nil if it is about none.
func (p *mirrored) thread() (t *mirroredText, pull bool) {
	if p.Issue == nil {
		return p.PullRequest, true
	}
	return p.Issue, p.PullRequest != nil // a comment's payload has both
}

func (p *mirrored) actors() []*mirroredActor {
	list := []*mirroredActor{p.Sender, p.Repository.Owner}
	for _, t := range []*mirroredText{p.Issue, p.PullRequest, p.Comment} {
		if t != nil {
			list = append(list, t.User)
		}
	}
	return slices.DeleteFunc(list, func(a *mirroredActor) bool { return a == nil || a.ID <= 0 || a.Login == "" })
}

// Prepare makes the accounts of recorded deliveries and gives the deliveries
// in the order in which they happened. Comments made on the fake afterwards
// get ids beyond all recorded ones, and so do accounts: a recording leaves no
// room between its own ids.
func (f *Forge) Prepare(deliveries []Delivery) ([]Recorded, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	out := make([]Recorded, 0, len(deliveries))
	for _, d := range deliveries {
		r := Recorded{Delivery: d}
		if err := json.Unmarshal(d.Body, &r.p); err != nil {
			return nil, fmt.Errorf("read the recorded delivery %s: it is no JSON object", d.Name)
		}
		for _, t := range []*mirroredText{r.p.Issue, r.p.PullRequest, r.p.Comment} {
			if t == nil {
				continue
			}
			for _, at := range []time.Time{t.CreatedAt, t.UpdatedAt} {
				if at = at.UTC().Truncate(time.Second); at.After(r.At) {
					r.At = at
				}
			}
		}
		for _, a := range r.p.actors() {
			f.st.mirrorAccount(a, r.At)
		}
		if r.p.Comment != nil {
			f.st.lastComment = max(f.st.lastComment, r.p.Comment.ID)
		}
		out = append(out, r)
	}
	slices.SortStableFunc(out, func(a, b Recorded) int {
		return cmp.Or(a.At.Compare(b.At), cmp.Compare(a.p.comment(), b.p.comment()), cmp.Compare(a.Name, b.Name))
	})
	return out, nil
}

// comment is the id of the payload's comment, 0 for what is about the issue
// itself: that came first, where the clock does not tell.
func (p *mirrored) comment() int64 {
	if p.Comment == nil {
		return 0
	}
	return p.Comment.ID
}

// Mirror brings repository, issue and comment to what a delivery shows of
// them. No hook hears of it. What the delivery says was deleted is gone
// afterwards.
func (f *Forge) Mirror(r Recorded) {
	f.mu.Lock()
	defer f.mu.Unlock()
	p := &r.p
	if r.Repo() == "" {
		return // about no repository: nothing of it is on the fake
	}
	repo := f.st.mirrorRepo(p, r.At)
	t, pull := p.thread()
	if t == nil || t.Number <= 0 {
		return
	}
	i := f.st.mirrorIssue(repo, t, pull)
	switch {
	case p.Comment != nil && p.Comment.ID > 0:
		f.st.mirrorComment(i, p.Comment, p.Action == "deleted")
	case p.Action == "deleted":
		f.st.comments = slices.DeleteFunc(f.st.comments, func(c *comment) bool { return c.issue == i })
		f.st.issues = slices.DeleteFunc(f.st.issues, func(o *issue) bool { return o == i })
	}
}

func (st *state) mirrorAccount(a *mirroredActor, at time.Time) {
	st.lastAccount = max(st.lastAccount, a.ID)
	for _, have := range st.accounts {
		if have.id == a.ID {
			have.login = a.Login
			return
		}
	}
	st.accounts = append(st.accounts, &account{id: a.ID, login: a.Login, created: at})
}

// accountOf is the account of a recorded id, the ghost if there is none.
func (st *state) accountOf(a *mirroredActor) *account {
	if a != nil {
		for _, have := range st.accounts {
			if have.id == a.ID {
				return have
			}
		}
	}
	return ghost
}

func (st *state) mirrorRepo(p *mirrored, at time.Time) *repo {
	r := st.repoByID(p.Repository.ID)
	if r == nil {
		r = &repo{id: p.Repository.ID, collaborators: map[int64]access{}, created: at}
		st.repos = append(st.repos, r)
		st.lastRepo = max(st.lastRepo, r.id)
	} else if full := strings.ToLower(r.fullName()); full != strings.ToLower(p.Repository.Owner.Login+"/"+p.Repository.Name) {
		st.moved[full] = r.id
	}
	r.owner, r.name, r.private = st.accountOf(p.Repository.Owner), p.Repository.Name, p.Repository.Private
	return r
}

func (st *state) mirrorIssue(r *repo, t *mirroredText, pull bool) *issue {
	i := st.issue(r, t.Number)
	if i == nil {
		i = &issue{id: t.ID, index: t.Number, repo: r}
		st.issues = append(st.issues, i)
		st.lastIssue = max(st.lastIssue, t.ID)
		r.lastIndex = max(r.lastIndex, t.Number)
	}
	if i.body != t.Body {
		i.version++
	}
	i.author, i.originalAuthor = st.accountOf(t.User), t.OriginalAuthor
	i.title, i.body, i.pull = t.Title, t.Body, i.pull || pull
	i.created, i.updated = t.CreatedAt.UTC(), t.UpdatedAt.UTC()
	if closed := t.State == "closed"; closed != i.closed {
		i.closed, i.closedAt = closed, time.Time{}
		if closed {
			i.closedAt = i.updated
		}
	}
	return i
}

func (st *state) mirrorComment(i *issue, t *mirroredText, deleted bool) {
	if deleted {
		st.comments = slices.DeleteFunc(st.comments, func(c *comment) bool { return c.id == t.ID })
		return
	}
	c := st.comment(t.ID)
	if c == nil {
		c = &comment{id: t.ID, issue: i}
		at, _ := slices.BinarySearchFunc(st.comments, t.ID, func(c *comment, id int64) int { return cmp.Compare(c.id, id) })
		st.comments = slices.Insert(st.comments, at, c) // kept in order of id
	}
	c.author, c.originalAuthor, c.body = st.accountOf(t.User), t.OriginalAuthor, t.Body
	c.created, c.updated = t.CreatedAt.UTC(), t.UpdatedAt.UTC()
}
