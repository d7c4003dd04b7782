package forgetest

import (
	"encoding/json"
	"net/http"
	"strings"
	"unicode/utf8"
)

// GitHub's labels are addressed by their names.
func (g *github) routeLabels() {
	const labels, onIssue = "/repos/:owner/:name/labels", "/repos/:owner/:name/issues/:index/labels"
	g.route("label.list", "GET "+labels, scopeIssue, func(r *hub) (int, any, error) {
		return http.StatusOK, g.labels(hubPage(r, r.st.repoLabels(r.repo))), nil
	})
	g.route("label.create", "POST "+labels, scopeIssue, (*hub).createLabel)
	g.route("label.delete", "DELETE "+labels+"/:label", scopeIssue, (*hub).deleteLabel)
	g.route("label.add", "POST "+onIssue, scopeIssue, (*hub).addLabels)
	g.route("label.remove", "DELETE "+onIssue+"/:label", scopeIssue, (*hub).removeLabel)
}

func (r *hub) createLabel() (int, any, error) {
	var form struct{ Name, Color, Description string }
	if err := r.decode(&form); err != nil {
		return 0, nil, err
	}
	if strings.HasPrefix(form.Color, "#") || utf8.RuneCountInString(form.Description) > 100 {
		return 0, nil, ErrInvalid
	}
	l, err := r.f.createLabel(r.as, r.repo, label{name: form.Name, color: form.Color, description: form.Description})
	if err != nil {
		return 0, nil, err
	}
	return http.StatusCreated, r.g.labels([]*label{l})[0], nil
}

func (r *hub) deleteLabel() (int, any, error) {
	if err := r.st.mayWrite(r.as, r.repo); err != nil {
		return 0, nil, err
	}
	l := r.st.labelNamed(r.repo, r.PathValue("label"))
	if l == nil {
		return 0, nil, ErrNotFound
	}
	r.st.dropLabel(l)
	return http.StatusNoContent, nil, nil
}

// addLabels makes the labels that the repository lacks. Their names come in an
// object, or bare.
func (r *hub) addLabels() (int, any, error) {
	var form struct{ Labels []string }
	var raw json.RawMessage
	if err := r.decode(&raw); err != nil {
		return 0, nil, err
	}
	if json.Unmarshal(raw, &form.Labels) != nil && json.Unmarshal(raw, &form) != nil {
		return 0, nil, ErrInvalid
	}
	i, err := r.thread()
	if err != nil {
		return 0, nil, err
	}
	if err := r.st.mayTriage(r.as, r.repo); err != nil {
		return 0, nil, err
	}
	var list []*label
	for _, name := range form.Labels {
		l := r.st.labelNamed(r.repo, name)
		if l == nil {
			if l, err = r.f.createLabel(r.as, r.repo, label{name: name, color: "ededed"}); err != nil {
				return 0, nil, err
			}
		}
		list = append(list, l)
	}
	if err := r.f.addLabels(r.as, i, list); err != nil {
		return 0, nil, err
	}
	return http.StatusOK, r.g.labels(i.labels), nil
}

func (r *hub) removeLabel() (int, any, error) {
	i, err := r.thread()
	if err != nil {
		return 0, nil, err
	}
	if err := r.st.mayTriage(r.as, r.repo); err != nil {
		return 0, nil, err
	}
	for _, l := range i.labels {
		if strings.EqualFold(l.name, r.PathValue("label")) {
			err := r.f.removeLabel(r.as, i, l)
			return http.StatusOK, r.g.labels(i.labels), err
		}
	}
	return 0, nil, &statusError{http.StatusNotFound, "Label does not exist"}
}
