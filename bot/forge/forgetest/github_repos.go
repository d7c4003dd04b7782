package forgetest

import (
	"net/http"
	"slices"
	"strings"
)

func (g *github) routeAccounts() {
	g.route("user.self", "GET /user", scopeUser, func(r *hub) (int, any, error) {
		if r.tok.owner != nil { // an app's bot is nobody who could log in
			return 0, nil, &statusError{http.StatusForbidden, "Resource not accessible by integration"}
		}
		return http.StatusOK, g.user(r.as), nil
	})
	g.route("user.read", "GET /users/:login", scopeUser, func(r *hub) (int, any, error) {
		a := r.st.account(r.PathValue("login"))
		if a == nil {
			return 0, nil, ErrNotFound
		}
		return http.StatusOK, g.user(a), nil
	})
	g.route("repo.list", "GET /users/:login/repos", scopeRepo, func(r *hub) (int, any, error) {
		return r.listRepos(func(o *repo) bool { return strings.EqualFold(o.owner.login, r.PathValue("login")) && !o.private })
	})
	g.route("repo.list", "GET /orgs/:login/repos", scopeRepo, func(r *hub) (int, any, error) {
		if org := r.st.account(r.PathValue("login")); org == nil || !org.org {
			return 0, nil, ErrNotFound
		}
		return r.listRepos(func(o *repo) bool { return strings.EqualFold(o.owner.login, r.PathValue("login")) })
	})
	g.route("repo.list", "GET /user/repos", scopeRepo, func(r *hub) (int, any, error) {
		return r.listRepos(func(o *repo) bool { return r.st.accessOf(r.as, o) > accessRead || o.owner == r.as || o.private })
	})
	g.route("repo.list", "GET /installation/repositories", scopeRepo, func(r *hub) (int, any, error) {
		if r.tok.owner == nil {
			return 0, nil, &statusError{http.StatusForbidden, "You must authenticate with an installation access token in order to list repositories for an installation."}
		}
		status, list, err := r.listRepos(func(o *repo) bool { return o.owner == r.tok.owner })
		return status, map[string]any{"total_count": len(r.st.repos), "repositories": list}, err
	})
	g.route("team.read", "GET /orgs/:org/teams/:team", scopeOrg, func(r *hub) (int, any, error) {
		t, err := r.team()
		if err != nil {
			return 0, nil, err
		}
		return http.StatusOK, map[string]any{"id": t.id, "name": t.name, "slug": teamSlug(t.name)}, nil
	})
	g.route("team.member", "GET /orgs/:org/teams/:team/memberships/:login", scopeOrg, (*hub).teamMember)
	g.route("org.member", "GET /orgs/:org/memberships/:login", scopeOrg, (*hub).orgMember)
	g.routeApp()
}

func (g *github) routeApp() {
	g.route("app.self", "GET /app", scopeApp, func(r *hub) (int, any, error) {
		return http.StatusOK, map[string]any{"id": r.app.id, "slug": r.app.slug, "name": r.app.slug}, nil
	})
	g.route("app.installations", "GET /app/installations", scopeApp, func(r *hub) (int, any, error) {
		out := []hubInstallation{}
		for _, in := range hubPage(r, r.app.installs) {
			out = append(out, g.installation(r.app, in))
		}
		return http.StatusOK, out, nil
	})
	g.route("app.token", "POST /app/installations/:id/access_tokens", scopeApp, func(r *hub) (int, any, error) {
		at := slices.IndexFunc(r.app.installs, func(in *install) bool { return in.id == r.number("id") })
		if at < 0 {
			return 0, nil, ErrNotFound
		}
		in := r.app.installs[at]
		if in.suspended {
			return 0, nil, &statusError{http.StatusForbidden, "This installation has been suspended"}
		}
		value, expires := r.f.installToken(r.app, in)
		return http.StatusCreated, map[string]any{"token": value, "expires_at": stamp(expires),
			"permissions": appPermissions, "repository_selection": "all"}, nil
	})
}

func (g *github) routeRepos() {
	g.route("repo.by_name", "GET /repos/:owner/:name", scopeRepo, func(r *hub) (int, any, error) {
		return http.StatusOK, g.repo(r.repo), nil
	})
	g.routes[len(g.routes)-1].kind = "repo.by_id" // the form by id, added last
	g.route("repo.edit", "PATCH /repos/:owner/:name", scopeRepo, (*hub).editRepo)
	g.route("permission.read", "GET /repos/:owner/:name/collaborators/:login/permission", scopeRepo, (*hub).permission)
}

func (r *hub) listRepos(fits func(*repo) bool) (int, any, error) {
	var list []*repo
	for _, o := range r.st.repos {
		if fits(o) && r.st.mayRead(r.as, o) == nil {
			list = append(list, o)
		}
	}
	out := []hubRepo{}
	for _, o := range hubPage(r, list) {
		out = append(out, r.g.repo(o))
	}
	return http.StatusOK, out, nil
}

// teamSlug is a team's name in addresses.
func teamSlug(name string) string {
	return strings.Join(strings.Fields(strings.ToLower(name)), "-")
}

func (r *hub) team() (*team, error) {
	at := slices.IndexFunc(r.st.teams, func(t *team) bool {
		return strings.EqualFold(t.org.login, r.PathValue("org")) && teamSlug(t.name) == r.PathValue("team")
	})
	if at < 0 {
		return nil, ErrNotFound
	}
	return r.st.teams[at], nil
}

func (r *hub) teamMember() (int, any, error) {
	t, err := r.team()
	if err != nil {
		return 0, nil, err
	}
	a := r.st.account(r.PathValue("login"))
	if a == nil || !t.members[a.id] {
		return 0, nil, ErrNotFound
	}
	return http.StatusOK, hubMembership{State: "active", Role: "member"}, nil
}

func (r *hub) orgMember() (int, any, error) {
	org, a := r.st.account(r.PathValue("org")), r.st.account(r.PathValue("login"))
	if org == nil || a == nil {
		return 0, nil, ErrNotFound
	}
	role := ""
	for _, t := range r.st.teams {
		if t.org != org || !t.members[a.id] {
			continue
		}
		if t.access == accessOwner {
			role = "admin"
		} else if role == "" {
			role = "member"
		}
	}
	if role == "" {
		return 0, nil, ErrNotFound
	}
	o, u := r.g.user(org), r.g.user(a)
	return http.StatusOK, hubMembership{State: "active", Role: role, Organization: &o, User: &u}, nil
}

func (r *hub) editRepo() (int, any, error) {
	if status, _, err := r.request.editRepo(); err != nil {
		return status, nil, err
	}
	return http.StatusOK, r.g.repo(r.repo), nil
}

// permission is open to accounts with push access.
func (r *hub) permission() (int, any, error) {
	if r.st.accessOf(r.as, r.repo) < accessWrite {
		return 0, nil, &statusError{http.StatusForbidden, "Must have push access to view collaborator permission."}
	}
	a := r.st.account(r.PathValue("login"))
	if a == nil || a.org {
		return 0, nil, ErrNotFound
	}
	permission, role := hubRole(r.st.accessOf(a, r.repo))
	user := struct {
		hubUser
		RoleName string `json:"role_name"`
	}{r.g.user(a), role}
	return http.StatusOK, map[string]any{"permission": permission, "role_name": role, "user": user}, nil
}
