package forgetest

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

const (
	jsonType = "application/json;charset=utf-8"
	apiRoot  = "/api/v1"
)

// gitea is the dialect of Gitea 1.26.0, and of Forgejo.
type gitea struct {
	router
	f *Forge
	// forgejo: deliveries bear Forgejo's family of headers too, and the
	// version is one of Forgejo's.
	forgejo bool
}

// request is a call with what every handler needs. Handlers run under the
// forge's lock and answer into memory.
type request struct {
	*http.Request
	f    *Forge
	w    http.ResponseWriter
	st   *state
	as   *account // nil: no token
	tok  *token
	repo *repo // of a route with {owner}/{name}, or with its id
	app  *app  // of a call by an app as itself
}

// route adds a call.
func (g *gitea) route(kind, pattern, scope string, h handler) {
	g.add(apiRoot, kind, pattern, scope, h)
}

func newGitea(f *Forge, forgejo bool) *gitea {
	g := &gitea{f: f, forgejo: forgejo}
	f.st.habits = habits{rootOwns: true, adminTeamsOwn: true}
	g.routeAccounts()
	g.routeRepos()
	g.routeThreads()
	g.routeLabels()
	g.routeFiles()
	return g
}

func (g *gitea) name() string {
	if g.forgejo {
		return "forgejo"
	}
	return "gitea"
}

// refusal is how a status looks of which a test says no more.
func (g *gitea) refusal(status int) (http.Header, string) {
	return http.Header{"Content-Type": {jsonType}},
		`{"message":"` + http.StatusText(status) + `","url":"` + g.f.Host + `/api/swagger"}` + "\n"
}

func (g *gitea) serve(w http.ResponseWriter, r *http.Request) {
	rt, values := g.find(r.Method, r.URL.EscapedPath())
	if rt == nil {
		// Gitea's answer to what is no call is not JSON.
		http.Error(w, "404 page not found", http.StatusNotFound)
		return
	}
	setPathValues(r, values)
	g.handle(w, r, rt.scope, rt.h)
}

// statusError is a refusal with the text and status of Gitea's.
type statusError struct {
	status int
	text   string
}

func (e *statusError) Error() string { return e.text }

// errSilent403 is a refusal without a body: Gitea's for an edit by somebody
// without the right.
var errSilent403 = errors.New("403 without a body")

// tokenOf reads "token X" and "Bearer X".
func tokenOf(r *http.Request) string {
	scheme, value, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if !strings.EqualFold(scheme, "token") && !strings.EqualFold(scheme, "bearer") {
		return ""
	}
	return strings.TrimSpace(value)
}

func (g *gitea) handle(w http.ResponseWriter, r *http.Request, scope string, h handler) {
	f := g.f
	f.mu.Lock()
	defer f.mu.Unlock()
	req := &request{Request: r, f: f, w: w, st: &f.st}
	status, body, err := req.run(scope, h)
	if err != nil {
		req.refuse(err)
		return
	}
	if status == http.StatusMovedPermanently {
		return
	}
	if body == nil {
		w.WriteHeader(status)
		return
	}
	req.json(status, body)
}

// run makes the checks that come before a handler, in Gitea's order: token,
// scope, repository.
func (r *request) run(scope string, h handler) (int, any, error) {
	if value := tokenOf(r.Request); value != "" {
		r.tok = r.st.tokens[value]
		if r.tok == nil {
			return 0, nil, &statusError{http.StatusUnauthorized, "invalid username, password or token"}
		}
		r.as = r.tok.account
	}
	if r.as == nil {
		return 0, nil, &statusError{http.StatusUnauthorized, "token is required"}
	}
	if err := r.scope(scope); err != nil {
		return 0, nil, err
	}
	if r.PathValue("name") != "" {
		moved, err := r.findRepo()
		if moved || err != nil {
			return http.StatusMovedPermanently, nil, err
		}
	}
	return h(r)
}

// scope checks the token's scopes: write includes read.
func (r *request) scope(category string) error {
	level := "read"
	if r.Method != http.MethodGet {
		level = "write"
	}
	has := func(s string) bool { return slices.Contains(r.tok.scopes, s) }
	if has("all") || has(level+":"+category) || has("write:"+category) {
		return nil
	}
	return &statusError{http.StatusForbidden, "token does not have at least one of required scope(s), required=[" +
		level + ":" + category + "], token scope=" + strings.Join(r.tok.scopes, ",")}
}

// findRepo finds the repository of the path, or answers 301 to a name of the
// past. A repository the account may not see does not exist.
func (r *request) findRepo() (moved bool, err error) {
	name := r.PathValue("owner") + "/" + r.PathValue("name")
	found, movedTo := r.st.repoByName(name)
	if movedTo != nil {
		to := strings.Replace(r.URL.EscapedPath(),
			url.PathEscape(r.PathValue("owner"))+"/"+url.PathEscape(r.PathValue("name")),
			url.PathEscape(movedTo.owner.login)+"/"+url.PathEscape(movedTo.name), 1)
		if r.URL.RawQuery != "" {
			to += "?" + r.URL.RawQuery
		}
		http.Redirect(r.w, r.Request, to, http.StatusMovedPermanently)
		return true, nil
	}
	if found == nil {
		return false, ErrNotFound
	}
	r.repo = found
	return false, r.st.mayRead(r.as, found)
}

// refuse answers an error as Gitea does.
func (r *request) refuse(err error) {
	var own *statusError
	switch {
	case errors.As(err, &own):
		r.message(own.status, own.text)
	case errors.Is(err, errSilent403):
		r.w.WriteHeader(http.StatusForbidden)
	case errors.Is(err, ErrNotFound):
		r.json(http.StatusNotFound, map[string]any{"errors": nil, "message": "not found", "url": r.f.Host + "/api/swagger"})
	case errors.Is(err, ErrArchived):
		r.message(http.StatusLocked, r.repo.fullName()+" is archived")
	case errors.Is(err, ErrLocked):
		r.message(http.StatusForbidden, "You cannot comment on a locked issue.")
	case errors.Is(err, ErrForbidden):
		r.message(http.StatusForbidden, "user should have a permission to write to a repo")
	case errors.Is(err, ErrInvalid):
		r.message(http.StatusUnprocessableEntity, "[Body]: Required")
	default:
		r.message(http.StatusInternalServerError, "")
	}
}

func (r *request) message(status int, text string) {
	r.json(status, map[string]any{"message": text, "url": r.f.Host + "/api/swagger"})
}

func (r *request) json(status int, body any) {
	r.w.Header().Set("Content-Type", jsonType)
	r.w.WriteHeader(status)
	_ = json.NewEncoder(r.w).Encode(body)
}

// decode reads a call's body.
func (r *request) decode(into any) error {
	if err := json.NewDecoder(r.Body).Decode(into); err != nil {
		return &statusError{http.StatusUnprocessableEntity, "the body cannot be read"}
	}
	return nil
}

// number is a path value that is one; 0 if it is none.
func (r *request) number(name string) int64 {
	n, _ := strconv.ParseInt(r.PathValue(name), 10, 64)
	return n
}

// since is the query's since in whole seconds; zero without one.
func (r *request) since() (time.Time, error) {
	text := r.URL.Query().Get("since")
	if text == "" {
		return time.Time{}, nil
	}
	t, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return time.Time{}, &statusError{http.StatusUnprocessableEntity, "since cannot be read"}
	}
	return t.Truncate(time.Second), nil
}

// Paging as Gitea does it: 30 by default, 50 at most.
const (
	defaultPage = 30
	maxPage     = 50
)

// paged cuts a page out of a list and sets X-Total-Count and, if links, Link.
func paged[T any](r *request, list []T, links bool) []T {
	q := r.URL.Query()
	page, _ := strconv.Atoi(q.Get("page"))
	limit, _ := strconv.Atoi(q.Get("limit"))
	page = max(page, 1)
	if limit <= 0 {
		limit = defaultPage
	}
	limit = min(limit, maxPage)
	r.w.Header().Set("X-Total-Count", strconv.Itoa(len(list)))
	if links {
		r.setLinks(page, (len(list)+limit-1)/limit)
	}
	from := min((page-1)*limit, len(list))
	return list[from:min(from+limit, len(list))]
}

// setLinks sets the Link header: none of a single page.
func (r *request) setLinks(page, last int) {
	var links []string
	add := func(rel string, to int) {
		q := r.URL.Query()
		q.Set("page", strconv.Itoa(to))
		links = append(links, "<"+r.f.Host+r.URL.Path+"?"+q.Encode()+`>; rel="`+rel+`"`)
	}
	if page < last {
		add("next", page+1)
		add("last", last)
	}
	if page > 1 {
		add("first", 1)
		add("prev", page-1)
	}
	if len(links) > 0 {
		r.w.Header().Set("Link", strings.Join(links, ","))
	}
}
