package forgetest

import (
	"cmp"
	"errors"
	"net/http"
	"slices"
)

func (g *gitea) routeThreads() {
	const issues, issue = "/repos/:owner/:name/issues", "/repos/:owner/:name/issues/:index"
	const comments, comment = issues + "/comments", issues + "/comments/:id"
	g.route("issue.updated", "GET "+issues, scopeIssue, (*request).listIssues)
	g.route("issue.create", "POST "+issues, scopeIssue, (*request).createIssue)
	g.route("issue.read", "GET "+issue, scopeIssue, (*request).getIssue)
	g.route("issue.edit", "PATCH "+issue, scopeIssue, (*request).editIssue)
	g.route("issue.delete", "DELETE "+issue, scopeIssue, (*request).deleteIssue)
	g.route("issue.lock", "PUT "+issue+"/lock", scopeIssue, (*request).lock)
	g.route("issue.lock", "DELETE "+issue+"/lock", scopeIssue, (*request).lock)
	g.route("comment.list", "GET "+issue+"/comments", scopeIssue, (*request).listComments)
	g.route("comment.create", "POST "+issue+"/comments", scopeIssue, (*request).createComment)
	g.route("comment.updated", "GET "+comments, scopeIssue, (*request).listRepoComments)
	g.route("comment.read", "GET "+comment, scopeIssue, (*request).getComment)
	g.route("comment.edit", "PATCH "+comment, scopeIssue, (*request).editComment)
	g.route("comment.delete", "DELETE "+comment, scopeIssue, (*request).deleteComment)
	g.route("reaction.add", "POST "+issue+"/reactions", scopeIssue, (*request).react)
	g.route("reaction.remove", "DELETE "+issue+"/reactions", scopeIssue, (*request).react)
	g.route("reaction.add", "POST "+comment+"/reactions", scopeIssue, (*request).react)
	g.route("reaction.remove", "DELETE "+comment+"/reactions", scopeIssue, (*request).react)
	g.route("reaction.list", "GET "+issue+"/reactions", scopeIssue, (*request).listReactions)
	g.route("reaction.list", "GET "+comment+"/reactions", scopeIssue, (*request).listReactions)
}

// errInternal is 500: Gitea's answer, on the calls about an issue's comments,
// to an issue that does not exist.
var errInternal = errors.New("500")

// thread is the issue of the path.
func (r *request) thread() (*issue, error) {
	if i := r.st.issue(r.repo, r.number("index")); i != nil {
		return i, nil
	}
	return nil, ErrNotFound
}

// comment is the comment of the path; an id of another repository is none.
func (r *request) comment() (*comment, error) {
	c := r.st.comment(r.number("id"))
	if c == nil || c.issue.repo != r.repo {
		return nil, ErrNotFound
	}
	return c, nil
}

// silent makes the refusal of an edit the one without a body.
func silent(err error) error {
	if errors.Is(err, ErrForbidden) {
		return errSilent403
	}
	return err
}

func (r *request) listIssues() (int, any, error) {
	since, err := r.since()
	if err != nil {
		return 0, nil, err
	}
	state, kind := r.URL.Query().Get("state"), r.URL.Query().Get("type")
	var list []*issue
	for _, i := range r.st.issues {
		switch {
		case i.repo != r.repo, i.updated.Before(since):
		case state != "all" && i.closed != (state == "closed"):
		case kind == "issues" && i.pull, kind == "pulls" && !i.pull:
		default:
			list = append(list, i)
		}
	}
	slices.SortFunc(list, func(a, b *issue) int { // created, newest first
		return cmp.Or(b.created.Compare(a.created), cmp.Compare(b.id, a.id))
	})
	out := []jsonIssue{}
	for _, i := range paged(r, list, true) {
		out = append(out, r.f.jsonIssue(i))
	}
	return http.StatusOK, out, nil
}

// newIssue opens the issue that a call describes.
func (r *request) newIssue() (*issue, error) {
	var form struct{ Title, Body string }
	if err := r.decode(&form); err != nil {
		return nil, err
	}
	return r.f.openIssue(r.as, r.repo, form.Title, form.Body, false)
}

func (r *request) createIssue() (int, any, error) {
	i, err := r.newIssue()
	if err != nil {
		return 0, nil, err
	}
	return http.StatusCreated, r.f.jsonIssue(i), nil
}

func (r *request) getIssue() (int, any, error) {
	i, err := r.thread()
	if err != nil {
		return 0, nil, err
	}
	return http.StatusOK, r.f.jsonIssue(i), nil
}

func (r *request) editIssue() (int, any, error) {
	var form struct {
		Title *string `json:"title"`
		Body  *string `json:"body"`
		State *string `json:"state"`
	}
	if err := r.decode(&form); err != nil {
		return 0, nil, err
	}
	i, err := r.thread()
	if err != nil {
		return 0, nil, err
	}
	if err := r.f.editIssue(r.as, i, form.Title, form.Body); err != nil {
		return 0, nil, silent(err)
	}
	if form.State != nil {
		if err := r.f.setClosed(r.as, i, *form.State == "closed"); err != nil {
			return 0, nil, silent(err)
		}
	}
	return http.StatusCreated, r.f.jsonIssue(i), nil
}

func (r *request) deleteIssue() (int, any, error) {
	i, err := r.thread()
	if err != nil {
		return 0, nil, err
	}
	return http.StatusNoContent, nil, r.f.deleteIssue(r.as, i)
}

func (r *request) lock() (int, any, error) {
	i, err := r.thread()
	if err != nil {
		return 0, nil, err
	}
	return http.StatusNoContent, nil, r.f.setLocked(r.as, i, r.Method == http.MethodPut)
}

// listComments is not paged: page and limit are not looked at.
func (r *request) listComments() (int, any, error) {
	since, err := r.since()
	if err != nil {
		return 0, nil, err
	}
	i, err := r.thread()
	if err != nil {
		return 0, nil, errInternal
	}
	out := []jsonComment{}
	for _, c := range byCreated(r.st.threadComments(i)) {
		if !c.updated.Before(since) {
			out = append(out, r.f.jsonComment(c))
		}
	}
	r.w.Header().Set("X-Total-Count", itoa(len(out)))
	return http.StatusOK, out, nil
}

func (r *request) listRepoComments() (int, any, error) {
	since, err := r.since()
	if err != nil {
		return 0, nil, err
	}
	var list []*comment
	for _, c := range byCreated(r.st.comments) {
		if c.issue.repo == r.repo && !c.updated.Before(since) {
			list = append(list, c)
		}
	}
	out := []jsonComment{}
	for _, c := range paged(r, list, false) {
		out = append(out, r.f.jsonComment(c))
	}
	return http.StatusOK, out, nil
}

// byCreated is the order of listings.
func byCreated(list []*comment) []*comment {
	list = slices.Clone(list)
	slices.SortStableFunc(list, func(a, b *comment) int {
		return cmp.Or(a.created.Compare(b.created), cmp.Compare(a.id, b.id))
	})
	return list
}

// body reads {"body": …}.
func (r *request) body() (string, error) {
	var form struct {
		Body string `json:"body"`
	}
	err := r.decode(&form)
	return form.Body, err
}

func (r *request) createComment() (int, any, error) {
	body, err := r.body()
	if err != nil {
		return 0, nil, err
	}
	if r.repo.archived {
		return 0, nil, ErrArchived
	}
	i, err := r.thread()
	if err != nil {
		return 0, nil, errInternal
	}
	c, err := r.f.createComment(r.as, i, body)
	if err != nil {
		return 0, nil, err
	}
	return http.StatusCreated, r.f.jsonComment(c), nil
}

func (r *request) getComment() (int, any, error) {
	c, err := r.comment()
	if err != nil {
		return 0, nil, err
	}
	return http.StatusOK, r.f.jsonComment(c), nil
}

func (r *request) editComment() (int, any, error) {
	body, err := r.body()
	if err != nil {
		return 0, nil, err
	}
	c, err := r.comment()
	if err != nil {
		return 0, nil, err
	}
	if err := r.f.editComment(r.as, c, body); err != nil {
		return 0, nil, silent(err)
	}
	return http.StatusOK, r.f.jsonComment(c), nil
}

func (r *request) deleteComment() (int, any, error) {
	c, err := r.comment()
	if err != nil {
		return 0, nil, err
	}
	return http.StatusNoContent, nil, silent(r.f.deleteComment(r.as, c))
}

// reacted is what a reaction of the path is on.
func (r *request) reacted() (*issue, *comment, error) {
	if r.PathValue("id") == "" {
		i, err := r.thread()
		return i, nil, err
	}
	c, err := r.comment()
	if err != nil {
		return nil, nil, err
	}
	return c.issue, c, nil
}

// setReaction does what a call asks of a reaction. status is GitHub's and
// Gitea's for one that stands afterwards.
func (r *request) setReaction(on bool) (content string, status int, err error) {
	var form struct {
		Content string `json:"content"`
	}
	if err := r.decode(&form); err != nil {
		return "", 0, err
	}
	i, c, err := r.reacted()
	if err != nil {
		return "", 0, err
	}
	changed, err := r.f.react(r.as, i, c, form.Content, on)
	status = http.StatusOK // it stood already
	if changed {
		status = http.StatusCreated
	}
	return form.Content, status, err
}

func (r *request) react() (int, any, error) {
	on := r.Method == http.MethodPost
	content, status, err := r.setReaction(on)
	switch {
	case errors.Is(err, ErrLocked):
		return 0, nil, &statusError{http.StatusForbidden, "no permission to change reaction"}
	case errors.Is(err, ErrInvalid):
		return 0, nil, &statusError{http.StatusForbidden, "'" + content + "' is not an allowed reaction"}
	case err != nil:
		return 0, nil, err
	case !on:
		return http.StatusNoContent, nil, nil
	}
	return status, jsonReaction{User: r.f.jsonUser(r.as), Content: content, Created: stamp(r.f.clock())}, nil
}

func (r *request) listReactions() (int, any, error) {
	i, c, err := r.reacted()
	if err != nil {
		return 0, nil, err
	}
	list := i.reactions
	if c != nil {
		list = c.reactions
	}
	var out []jsonReaction // null when there are none, as Gitea's
	for _, x := range list {
		out = append(out, jsonReaction{User: r.f.jsonUser(x.account), Content: x.content, Created: stamp(x.created)})
	}
	return http.StatusOK, out, nil
}
