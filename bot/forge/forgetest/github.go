package forgetest

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

const (
	githubJSON = "application/json; charset=utf-8"
	// enterpriseRoot is where an Enterprise Server has its API. github.com has
	// it at the root of a host of its own.
	enterpriseRoot = "/api/v3"
	githubDocs     = "https://docs.github.com/rest"
	// defaultRate is how many calls an account may make in an hour.
	defaultRate = 5000
)

// github is the dialect of GitHub, in version 2022-11-28 of its REST API, and
// of GitHub Enterprise Server.
type github struct {
	router
	f *Forge
	// spent counts each account's calls of the hour.
	spent map[string]*spent
	limit int
	calls int
}

type spent struct {
	calls int
	reset time.Time
}

// hub is a call to GitHub with what its handlers need.
type hub struct {
	*request
	g *github
}

func newGitHub(f *Forge) *github {
	f.st.habits = habits{joinsEdits: true, uniqueLabels: true, pings: true, keepsIDs: true, longestText: 65536}
	g := &github{f: f, spent: map[string]*spent{}, limit: defaultRate}
	g.routeAccounts()
	g.routeRepos()
	g.routeThreads()
	g.routeLabels()
	g.routeFiles()
	return g
}

// SetRateLimit makes n the calls an account may make in an hour, 5000 at
// first. It is for NewGitHub's alone.
func (f *Forge) SetRateLimit(n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.dialect.(*github).limit = n
}

// route adds a call; one of a repository, "/repos/:owner/:name/…", under the
// repository's id too, as GitHub's redirects and page links have it.
func (g *github) route(kind, pattern, scope string, h func(*hub) (int, any, error)) {
	handle := func(r *request) (int, any, error) { return h(&hub{request: r, g: g}) }
	g.add("", kind, pattern, scope, handle)
	if method, rest, ok := strings.Cut(pattern, " /repos/:owner/:name"); ok {
		g.add("", kind, method+" /repositories/:repo"+rest, scope, handle)
	}
}

func (g *github) name() string { return "github" }

func (g *github) kind(method, path string) string {
	return g.router.kind(method, strings.TrimPrefix(path, enterpriseRoot))
}

func (g *github) refusal(status int) (http.Header, string) {
	return http.Header{"Content-Type": {githubJSON}, "X-Github-Request-Id": {"0000:ordered"}}, refusalBody(status, http.StatusText(status))
}

func refusalBody(status int, text string) string {
	raw, _ := json.Marshal(map[string]string{"message": text, "documentation_url": githubDocs, "status": strconv.Itoa(status)})
	return string(raw)
}

func (g *github) serve(w http.ResponseWriter, r *http.Request) {
	f := g.f
	f.mu.Lock()
	defer f.mu.Unlock()
	g.calls++
	w.Header().Set("Content-Type", githubJSON)
	w.Header().Set("X-GitHub-Request-Id", fmt.Sprintf("%04X:%06X", g.calls%0xffff, g.calls))
	w.Header().Set("X-GitHub-Media-Type", "github.v3; format=json")
	req := &hub{request: &request{Request: r, f: f, w: w, st: &f.st}, g: g}
	status, body, err := req.run()
	if err != nil {
		req.refuse(err)
		return
	}
	if body == nil {
		w.WriteHeader(status)
		return
	}
	req.show(status, body)
}

// run makes the checks that come before a handler: token, rate limit, route,
// scope, repository.
func (r *hub) run() (int, any, error) {
	if err := r.authenticate(); err != nil {
		return 0, nil, err
	}
	if err := r.count(); err != nil {
		return 0, nil, err
	}
	rt, values := r.g.find(r.Method, strings.TrimPrefix(r.URL.EscapedPath(), enterpriseRoot))
	if rt == nil {
		return 0, nil, ErrNotFound
	}
	setPathValues(r.Request, values)
	if (rt.scope == scopeApp) != (r.app != nil) {
		return 0, nil, &statusError{http.StatusUnauthorized, "A JSON web token could not be decoded"}
	}
	if rt.scope != scopeApp {
		if err := r.mayCall(rt.scope); err != nil {
			return 0, nil, err
		}
	}
	if err := r.findRepo(); err != nil {
		return 0, nil, err
	}
	// Who may not see what is there is told so before what it is.
	if r.repo != nil && r.repo.archived && r.Method != http.MethodGet && rt.kind != "repo.edit" {
		return 0, nil, ErrArchived
	}
	return rt.h(r.request)
}

// scopeApp marks calls of an app as itself.
const scopeApp = "app"

func (r *hub) authenticate() error {
	value := tokenOf(r.Request)
	if strings.Count(value, ".") == 2 {
		if r.app = r.f.appOf(value); r.app == nil {
			return &statusError{http.StatusUnauthorized, "'Issued at' claim ('iat') must be an Integer representing the time that the assertion was issued"}
		}
		return nil
	}
	r.tok = r.st.tokens[value]
	if r.tok == nil || !r.tok.expires.IsZero() && !r.f.now().Before(r.tok.expires) {
		return &statusError{http.StatusUnauthorized, "Bad credentials"}
	}
	r.as = r.tok.account
	return nil
}

// count counts a call against the primary rate limit and shows its state in
// the headers.
func (r *hub) count() error {
	key := "app"
	if r.tok != nil {
		key = r.as.login
		if r.tok.owner != nil {
			key += " in " + r.tok.owner.login
		}
	}
	now := r.f.clock()
	s := r.g.spent[key]
	if s == nil || !now.Before(s.reset) {
		s = &spent{reset: now.Add(time.Hour)}
		r.g.spent[key] = s
	}
	s.calls++
	h := r.w.Header()
	h.Set("X-RateLimit-Limit", strconv.Itoa(r.g.limit))
	h.Set("X-RateLimit-Remaining", strconv.Itoa(max(0, r.g.limit-s.calls)))
	h.Set("X-RateLimit-Used", strconv.Itoa(min(s.calls, r.g.limit)))
	h.Set("X-RateLimit-Reset", strconv.FormatInt(s.reset.Unix(), 10))
	h.Set("X-RateLimit-Resource", "core")
	if s.calls > r.g.limit {
		return &statusError{http.StatusForbidden, "API rate limit exceeded for user ID 1."}
	}
	return nil
}

// mayCall checks the token's scopes, of which a fine-grained token and an
// app's have the like under other names.
func (r *hub) mayCall(category string) error {
	if r.scope(category) == nil {
		return nil
	}
	return &statusError{http.StatusForbidden, "Resource not accessible by personal access token"}
}

// findRepo finds the repository of the path, or answers with a redirect to a
// name of the past. A repository the account may not see does not exist; of
// those in other accounts an app sees the public ones.
func (r *hub) findRepo() error {
	if r.PathValue("repo") == "" && r.PathValue("name") == "" {
		return nil
	}
	found := r.st.repoByID(r.number("repo"))
	if r.PathValue("name") != "" {
		var movedTo *repo
		found, movedTo = r.st.repoByName(r.PathValue("owner") + "/" + r.PathValue("name"))
		if movedTo != nil {
			_, rest, _ := strings.Cut(strings.TrimPrefix(r.URL.EscapedPath(), enterpriseRoot), "/repos/")
			parts := strings.SplitN(rest, "/", 3)
			return r.redirect(movedTo, strings.Join(parts[2:], "/"))
		}
	}
	if found == nil || r.st.mayRead(r.as, found) != nil || r.tok.owner != nil && found.private && found.owner != r.tok.owner {
		return ErrNotFound
	}
	r.repo = found
	return nil
}

// redirectError is 301 for a GET and 307 for all else.
type redirectError struct{ to string }

func (e *redirectError) Error() string { return "moved" }

// redirect leads to what is below a repository, by its id.
func (r *hub) redirect(to *repo, rest string) error {
	prefix := ""
	if strings.HasPrefix(r.URL.Path, enterpriseRoot) {
		prefix = enterpriseRoot
	}
	path := fmt.Sprintf("%s%s/repositories/%d", r.f.Host, prefix, to.id)
	if rest != "" {
		path += "/" + rest
	}
	if r.URL.RawQuery != "" {
		path += "?" + r.URL.RawQuery
	}
	return &redirectError{path}
}

// refuse answers an error as GitHub does.
func (r *hub) refuse(err error) {
	var own *statusError
	var moved *redirectError
	say := func(status int, text string) {
		r.w.WriteHeader(status)
		_, _ = r.w.Write([]byte(refusalBody(status, text)))
	}
	switch {
	case errors.As(err, &own):
		say(own.status, own.text)
	case errors.As(err, &moved):
		status := http.StatusTemporaryRedirect
		if r.Method == http.MethodGet {
			status = http.StatusMovedPermanently
		}
		r.w.Header().Set("Location", moved.to)
		r.show(status, map[string]string{"message": "Moved Permanently", "url": moved.to, "documentation_url": githubDocs})
	case errors.Is(err, ErrNotFound):
		say(http.StatusNotFound, "Not Found")
	case errors.Is(err, ErrArchived):
		say(http.StatusForbidden, "Repository was archived so is read-only.")
	case errors.Is(err, ErrLocked):
		say(http.StatusForbidden, "Unable to create comment because issue is locked.")
	case errors.Is(err, ErrForbidden):
		say(http.StatusForbidden, "Must have admin rights to Repository.")
	case errors.Is(err, ErrExists):
		r.show(http.StatusUnprocessableEntity, map[string]any{"message": "Validation Failed", "documentation_url": githubDocs,
			"errors": []map[string]string{{"resource": "Label", "code": "already_exists", "field": "name"}}})
	case errors.Is(err, ErrInvalid):
		say(http.StatusUnprocessableEntity, "Validation Failed")
	default:
		say(http.StatusInternalServerError, "Server Error")
	}
}

func (r *hub) show(status int, body any) {
	r.w.WriteHeader(status)
	_ = json.NewEncoder(r.w).Encode(body)
}

// hubPage cuts a page out of a list, 30 long by default and 100 at most, and
// sets Link: GitHub tells no total.
func hubPage[T any](r *hub, list []T) []T {
	q := r.URL.Query()
	number, _ := strconv.Atoi(q.Get("page"))
	size, _ := strconv.Atoi(q.Get("per_page"))
	number = max(number, 1)
	if size <= 0 {
		size = 30
	}
	size = min(size, 100)
	r.setLinks(number, (len(list)+size-1)/size)
	from := min((number-1)*size, len(list))
	return list[from:min(from+size, len(list))]
}

// ordered sorts a listing by its times: newest first unless the call says
// direction=asc.
func ordered[T any](r *hub, list []T, created, updated func(T) time.Time) []T {
	key := created
	if r.URL.Query().Get("sort") == "updated" {
		key = updated
	}
	asc := r.URL.Query().Get("direction") == "asc"
	list = slices.Clone(list)
	slices.SortStableFunc(list, func(a, b T) int {
		if asc {
			return key(a).Compare(key(b))
		}
		return key(b).Compare(key(a))
	})
	return list
}

// apiURL is an address in the API as GitHub's JSON has it.
func (g *github) apiURL(format string, args ...any) string {
	return g.f.Host + enterpriseRoot + (&url.URL{Path: fmt.Sprintf(format, args...)}).EscapedPath()
}
