package forgetest

import "net/http"

func (g *gitea) routeLabels() {
	const labels, onIssue = "/repos/:owner/:name/labels", "/repos/:owner/:name/issues/:index/labels"
	g.route("label.list", "GET "+labels, scopeIssue, (*request).listLabels)
	// An organisation here has no labels of its own.
	g.route("label.list", "GET /orgs/:org/labels", scopeOrg, func(r *request) (int, any, error) {
		if org := r.st.account(r.PathValue("org")); org == nil || !org.org {
			return 0, nil, ErrNotFound
		}
		return http.StatusOK, []jsonLabel{}, nil
	})
	g.route("label.create", "POST "+labels, scopeIssue, (*request).createLabel)
	g.route("label.delete", "DELETE "+labels+"/:id", scopeIssue, (*request).deleteLabel)
	g.route("label.add", "POST "+onIssue, scopeIssue, (*request).addLabels)
	g.route("label.remove", "DELETE "+onIssue+"/:id", scopeIssue, (*request).removeLabel)
}

func (r *request) labelList(list []*label) []jsonLabel {
	out := []jsonLabel{}
	for _, l := range list {
		out = append(out, r.f.jsonLabel(l))
	}
	return out
}

func (r *request) listLabels() (int, any, error) {
	return http.StatusOK, r.labelList(paged(r, r.st.repoLabels(r.repo), false)), nil
}

// createLabel makes a second label of a name that stands, as Gitea does.
func (r *request) createLabel() (int, any, error) {
	var form struct {
		Name        string `json:"name"`
		Color       string `json:"color"`
		Description string `json:"description"`
		Exclusive   bool   `json:"exclusive"`
	}
	if err := r.decode(&form); err != nil {
		return 0, nil, err
	}
	l, err := r.f.createLabel(r.as, r.repo, label{name: form.Name, color: form.Color,
		description: form.Description, exclusive: form.Exclusive})
	if err != nil {
		return 0, nil, err
	}
	return http.StatusCreated, r.f.jsonLabel(l), nil
}

func (r *request) deleteLabel() (int, any, error) {
	if err := r.st.mayWrite(r.as, r.repo); err != nil {
		return 0, nil, err
	}
	if l := r.st.label(r.number("id")); l != nil && l.repo == r.repo {
		r.st.dropLabel(l)
	}
	return http.StatusNoContent, nil, nil
}

// addLabels passes over ids it does not know and answers with the labels that
// then stand.
func (r *request) addLabels() (int, any, error) {
	var form struct {
		Labels []int64 `json:"labels"`
	}
	if err := r.decode(&form); err != nil {
		return 0, nil, err
	}
	i, err := r.thread()
	if err != nil {
		return 0, nil, err
	}
	var list []*label
	for _, id := range form.Labels {
		if l := r.st.label(id); l != nil {
			list = append(list, l)
		}
	}
	if err := r.f.addLabels(r.as, i, list); err != nil {
		return 0, nil, err
	}
	return http.StatusOK, r.labelList(i.labels), nil
}

func (r *request) removeLabel() (int, any, error) {
	i, err := r.thread()
	if err != nil {
		return 0, nil, err
	}
	if err := r.st.mayWrite(r.as, r.repo); err != nil {
		return 0, nil, silent(err)
	}
	l := r.st.label(r.number("id"))
	if l == nil {
		return 0, nil, &statusError{http.StatusUnprocessableEntity, "label does not exist [label_id: 0]"}
	}
	return http.StatusNoContent, nil, r.f.removeLabel(r.as, i, l)
}
