package forgetest

import (
	"net/http"
	"net/url"
	"strconv"
	"strings"
)

// router finds a dialect's calls. http.ServeMux cannot hold them:
// "issues/comments/{id}" and "issues/{index}/comments" overlap in its eyes.
// Here a placeholder named index, id or repo takes digits only.
type router struct {
	routes []route
}

// route is one call.
type route struct {
	kind, method string
	path         []string
	scope        string
	h            handler
}

// A handler answers a call. It returns the value to show and its status; an
// error is shown as the dialect shows it.
type handler func(*request) (status int, body any, err error)

// add adds a call, e.g. "GET /users/:login", below root. scope is the token
// scope's category that it takes; read or write follows from the method.
func (rt *router) add(root, kind, pattern, scope string, h handler) {
	method, path, _ := strings.Cut(pattern, " ")
	rt.routes = append(rt.routes, route{kind, method, strings.Split(root+path, "/"), scope, h})
}

// find gives the route of a call and the values of its placeholders. path is
// escaped, so that a slash in a value is none of the path's.
func (rt *router) find(method, path string) (*route, map[string]string) {
	parts := strings.Split(path, "/")
	for i := range rt.routes {
		if values, ok := rt.routes[i].match(method, parts); ok {
			return &rt.routes[i], values
		}
	}
	return nil, nil
}

func (rt *router) kind(method, path string) string {
	if found, _ := rt.find(method, path); found != nil {
		return found.kind
	}
	return ""
}

// match reports whether the route is the call's, and the placeholders' values.
func (rt *route) match(method string, parts []string) (map[string]string, bool) {
	if method != rt.method || len(parts) != len(rt.path) {
		return nil, false
	}
	values := map[string]string{}
	for i, want := range rt.path {
		part, err := url.PathUnescape(parts[i])
		if err != nil {
			return nil, false
		}
		name, placeholder := strings.CutPrefix(want, ":")
		switch {
		case !placeholder:
			if part != want {
				return nil, false
			}
			continue
		case name == "index" || name == "id" || name == "repo":
			if _, err := strconv.ParseInt(part, 10, 64); err != nil {
				return nil, false
			}
		}
		values[name] = part
	}
	return values, true
}

// setPathValues makes the placeholders' values those of the request.
func setPathValues(r *http.Request, values map[string]string) {
	for name, value := range values {
		r.SetPathValue(name, value)
	}
}
