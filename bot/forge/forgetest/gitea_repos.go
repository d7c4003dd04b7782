package forgetest

import (
	"net/http"
	"slices"
	"strings"
)

// The scope categories of tokens.
const (
	scopeIssue = "issue"
	scopeRepo  = "repository"
	scopeUser  = "user"
	scopeOrg   = "organization"
)

// The versions that the servers name. SDKs read Forgejo's as a version of
// Gitea's and must not refuse it.
const (
	giteaVersion   = "1.26.0"
	forgejoVersion = "11.0.1+gitea-1.22.0"
)

func (g *gitea) routeAccounts() {
	g.route("version", "GET /version", scopeUser, func(*request) (int, any, error) {
		version := giteaVersion
		if g.forgejo {
			version = forgejoVersion
		}
		return http.StatusOK, map[string]string{"version": version}, nil
	})
	g.route("user.self", "GET /user", scopeUser, func(r *request) (int, any, error) {
		return http.StatusOK, g.f.jsonUser(r.as), nil
	})
	g.route("user.read", "GET /users/:login", scopeUser, func(r *request) (int, any, error) {
		a := r.st.account(r.PathValue("login"))
		if a == nil {
			return 0, nil, &statusError{http.StatusNotFound, "user redirect does not exist [name: " + r.PathValue("login") + "]"}
		}
		return http.StatusOK, g.f.jsonUser(a), nil
	})
	g.route("repo.list", "GET /users/:login/repos", scopeRepo, (*request).listRepos)
	g.route("team.list", "GET /orgs/:org/teams", scopeOrg, (*request).listTeams)
	g.route("team.member", "GET /teams/:team/members/:login", scopeOrg, (*request).teamMember)
}

func (g *gitea) routeRepos() {
	g.route("repo.by_id", "GET /repositories/:id", scopeRepo, func(r *request) (int, any, error) {
		found := r.st.repoByID(r.number("id"))
		if found == nil {
			return 0, nil, ErrNotFound
		}
		return http.StatusOK, g.f.jsonRepo(found, r.as), r.st.mayRead(r.as, found)
	})
	g.route("repo.by_name", "GET /repos/:owner/:name", scopeRepo, func(r *request) (int, any, error) {
		return http.StatusOK, g.f.jsonRepo(r.repo, r.as), nil
	})
	g.route("repo.edit", "PATCH /repos/:owner/:name", scopeRepo, (*request).editRepo)
	g.route("collaborator.add", "PUT /repos/:owner/:name/collaborators/:login", scopeRepo, (*request).addCollaborator)
	g.route("permission.read", "GET /repos/:owner/:name/collaborators/:login/permission", scopeRepo, (*request).permission)
}

// listRepos cuts the page first and leaves out what the account may not see
// afterwards, as Gitea does: pages can be short, or empty, in the middle.
func (r *request) listRepos() (int, any, error) {
	owner := r.st.account(r.PathValue("login"))
	if owner == nil {
		return 0, nil, ErrNotFound
	}
	var all []*repo
	for _, o := range r.st.repos {
		if o.owner == owner {
			all = append(all, o)
		}
	}
	out := []jsonRepo{}
	for _, o := range paged(r, all, true) {
		if r.st.mayRead(r.as, o) == nil {
			out = append(out, r.f.jsonRepo(o, r.as))
		}
	}
	return http.StatusOK, out, nil
}

func (r *request) listTeams() (int, any, error) {
	org := r.st.account(r.PathValue("org"))
	if org == nil || !org.org {
		return 0, nil, ErrNotFound
	}
	out := []jsonTeam{}
	for _, t := range paged(r, r.st.teams, false) {
		if t.org == org {
			out = append(out, jsonTeam{ID: t.id, Name: t.name, Permission: t.access.String()})
		}
	}
	return http.StatusOK, out, nil
}

func (r *request) teamMember() (int, any, error) {
	a := r.st.account(r.PathValue("login"))
	id := r.number("team")
	at := slices.IndexFunc(r.st.teams, func(t *team) bool { return t.id == id })
	if a == nil || at < 0 || !r.st.teams[at].members[a.id] {
		return 0, nil, ErrNotFound
	}
	return http.StatusOK, r.f.jsonUser(a), nil
}

func (r *request) editRepo() (int, any, error) {
	var form struct {
		Name     *string `json:"name"`
		Archived *bool   `json:"archived"`
	}
	if err := r.decode(&form); err != nil {
		return 0, nil, err
	}
	if err := r.st.mayAdmin(r.as, r.repo); err != nil {
		return 0, nil, err
	}
	if form.Name != nil && *form.Name != r.repo.name {
		if err := r.f.rename(r.repo, r.repo.owner, *form.Name); err != nil {
			return 0, nil, err
		}
	}
	if form.Archived != nil {
		r.repo.archived = *form.Archived
	}
	return http.StatusOK, r.f.jsonRepo(r.repo, r.as), nil
}

func (r *request) addCollaborator() (int, any, error) {
	var form struct {
		Permission string `json:"permission"`
	}
	if err := r.decode(&form); err != nil {
		return 0, nil, err
	}
	if err := r.st.mayAdmin(r.as, r.repo); err != nil {
		return 0, nil, err
	}
	a := r.st.account(r.PathValue("login"))
	right, ok := parseAccess(form.Permission)
	if a == nil || !ok || right == accessOwner {
		return 0, nil, ErrInvalid
	}
	r.repo.collaborators[a.id] = right
	return http.StatusNoContent, nil, nil
}

// permission is open to administrators of the repository, and to everyone
// about themselves.
func (r *request) permission() (int, any, error) {
	login := r.PathValue("login")
	if !r.as.admin && !strings.EqualFold(r.as.login, login) && r.st.accessOf(r.as, r.repo) < accessAdmin {
		return 0, nil, &statusError{http.StatusForbidden,
			"Only admins can query all permissions, repo admins can query all repo permissions, collaborators can query only their own"}
	}
	a := r.st.account(login)
	if a == nil {
		return 0, nil, &statusError{http.StatusNotFound, "user does not exist [uid: 0, name: " + login + "]"}
	}
	right := r.st.accessOf(a, r.repo).String()
	return http.StatusOK, jsonPermission{Permission: right, RoleName: right, User: r.f.jsonUser(a)}, nil
}
