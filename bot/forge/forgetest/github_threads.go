package forgetest

import (
	"errors"
	"net/http"
)

func (g *github) routeThreads() {
	const issues, issue = "/repos/:owner/:name/issues", "/repos/:owner/:name/issues/:index"
	const comments, comment = issues + "/comments", issues + "/comments/:id"
	g.route("issue.updated", "GET "+issues, scopeIssue, (*hub).listIssues)
	g.route("issue.create", "POST "+issues, scopeIssue, (*hub).createIssue)
	g.route("issue.read", "GET "+issue, scopeIssue, (*hub).getIssue)
	g.route("issue.edit", "PATCH "+issue, scopeIssue, (*hub).editIssue)
	g.route("issue.lock", "PUT "+issue+"/lock", scopeIssue, func(r *hub) (int, any, error) { return r.lock() })
	g.route("issue.lock", "DELETE "+issue+"/lock", scopeIssue, func(r *hub) (int, any, error) { return r.lock() })
	g.route("comment.list", "GET "+issue+"/comments", scopeIssue, (*hub).listComments)
	g.route("comment.create", "POST "+issue+"/comments", scopeIssue, (*hub).createComment)
	g.route("comment.updated", "GET "+comments, scopeIssue, (*hub).listRepoComments)
	g.route("comment.read", "GET "+comment, scopeIssue, (*hub).getComment)
	g.route("comment.edit", "PATCH "+comment, scopeIssue, (*hub).editComment)
	g.route("comment.delete", "DELETE "+comment, scopeIssue, func(r *hub) (int, any, error) { return r.deleteComment() })
	for _, on := range []string{issue, comment} {
		g.route("reaction.add", "POST "+on+"/reactions", scopeIssue, (*hub).react)
		g.route("reaction.list", "GET "+on+"/reactions", scopeIssue, (*hub).listReactions)
		g.route("reaction.remove", "DELETE "+on+"/reactions/:reaction", scopeIssue, (*hub).unreact)
	}
}

func (r *hub) listIssues() (int, any, error) {
	since, err := r.since()
	if err != nil {
		return 0, nil, err
	}
	state := r.URL.Query().Get("state")
	var list []*issue
	for _, i := range r.st.issues {
		switch {
		case i.repo != r.repo, i.updated.Before(since):
		case state != "all" && i.closed != (state == "closed"):
		default:
			list = append(list, i)
		}
	}
	out := []hubIssue{}
	for _, i := range hubPage(r, ordered(r, list, created[*issue], updated[*issue])) {
		out = append(out, r.g.issue(i))
	}
	return http.StatusOK, out, nil
}

func (r *hub) createIssue() (int, any, error) {
	i, err := r.newIssue()
	if err != nil {
		return 0, nil, err
	}
	return http.StatusCreated, r.g.issue(i), nil
}

// getIssue leads on to where an issue was transferred, if the account may see
// that, and says of a deleted one that it was.
func (r *hub) getIssue() (int, any, error) {
	i, err := r.thread()
	if err == nil {
		return http.StatusOK, r.g.issue(i), nil
	}
	to, left := r.st.left[place{r.repo.id, r.number("index")}]
	switch {
	case left && to == nil:
		return 0, nil, &statusError{http.StatusGone, "This issue was deleted"}
	case left && r.st.mayRead(r.as, to.repo) == nil:
		return 0, nil, r.redirect(to.repo, "issues/"+itoa(int(to.index)))
	}
	return 0, nil, err
}

func (r *hub) editIssue() (int, any, error) {
	if status, _, err := r.request.editIssue(); err != nil {
		return status, nil, loud(err)
	}
	i, err := r.thread()
	if err != nil {
		return 0, nil, err
	}
	return http.StatusOK, r.g.issue(i), nil
}

// loud undoes silent: GitHub has no refusal without a body.
func loud(err error) error {
	if errors.Is(err, errSilent403) {
		return ErrForbidden
	}
	return err
}

func (r *hub) listComments() (int, any, error) {
	i, err := r.thread()
	if err != nil {
		return 0, nil, err
	}
	return r.comments(func(c *comment) bool { return c.issue == i })
}

func (r *hub) listRepoComments() (int, any, error) {
	return r.comments(func(c *comment) bool { return c.issue.repo == r.repo })
}

// comments lists by ascending id; of a whole repository by time if asked to.
func (r *hub) comments(fits func(*comment) bool) (int, any, error) {
	since, err := r.since()
	if err != nil {
		return 0, nil, err
	}
	var list []*comment
	for _, c := range r.st.comments {
		if fits(c) && !c.updated.Before(since) {
			list = append(list, c)
		}
	}
	if r.URL.Query().Get("sort") != "" {
		list = ordered(r, list, created[*comment], updated[*comment])
	}
	out := []hubComment{}
	for _, c := range hubPage(r, list) {
		out = append(out, r.g.comment(c))
	}
	return http.StatusOK, out, nil
}

func (r *hub) createComment() (int, any, error) {
	body, err := r.body()
	if err != nil {
		return 0, nil, err
	}
	i, err := r.thread()
	if err != nil {
		return 0, nil, err
	}
	c, err := r.f.createComment(r.as, i, body)
	if err != nil {
		return 0, nil, err
	}
	return http.StatusCreated, r.g.comment(c), nil
}

func (r *hub) getComment() (int, any, error) {
	c, err := r.comment()
	if err != nil {
		return 0, nil, err
	}
	return http.StatusOK, r.g.comment(c), nil
}

func (r *hub) editComment() (int, any, error) {
	if status, _, err := r.request.editComment(); err != nil {
		return status, nil, loud(err)
	}
	return r.getComment()
}

func (r *hub) deleteComment() (int, any, error) {
	status, body, err := r.request.deleteComment()
	return status, body, loud(err)
}

// react gives back the reaction, with its id.
func (r *hub) react() (int, any, error) {
	content, status, err := r.setReaction(true)
	if err != nil {
		return 0, nil, err
	}
	i, c, err := r.reacted()
	if err != nil {
		return 0, nil, err
	}
	for _, have := range reactionsOn(i, c) {
		if have.account == r.as && have.content == content {
			return status, r.g.reaction(have), nil
		}
	}
	return 0, nil, errInternal
}

func reactionsOn(i *issue, c *comment) []reaction {
	if c != nil {
		return c.reactions
	}
	return i.reactions
}

func (r *hub) listReactions() (int, any, error) {
	i, c, err := r.reacted()
	if err != nil {
		return 0, nil, err
	}
	content := r.URL.Query().Get("content")
	var list []reaction
	for _, have := range reactionsOn(i, c) {
		if content == "" || have.content == content {
			list = append(list, have)
		}
	}
	out := []hubReaction{}
	for _, have := range hubPage(r, list) {
		out = append(out, r.g.reaction(have))
	}
	return http.StatusOK, out, nil
}

// unreact takes away one's own reaction, by its id.
func (r *hub) unreact() (int, any, error) {
	i, c, err := r.reacted()
	if err != nil {
		return 0, nil, err
	}
	for _, have := range reactionsOn(i, c) {
		if have.id == r.number("reaction") && have.account == r.as {
			_, err := r.f.react(r.as, i, c, have.content, false)
			return http.StatusNoContent, nil, err
		}
	}
	return 0, nil, ErrNotFound
}
