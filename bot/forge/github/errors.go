package github

import (
	"bytes"
	"net/http"
	"strings"

	"playbook-bot/bot/forge"
	"playbook-bot/bot/forge/internal/wire"
)

// refusalKind sorts a 4xx of the server itself.
func refusalKind(ex *wire.Exchange) error {
	text := ex.Message()
	switch ex.Status {
	case http.StatusUnauthorized:
		return forge.ErrUnverified
	case http.StatusForbidden:
		return forbiddenKind(ex, text)
	case http.StatusNotFound:
		return forge.ErrNotFound
	case http.StatusGone:
		// "This issue was deleted" is said only to those who may see the
		// repository. The other Gone is a repository without issues.
		if strings.Contains(text, "deleted") {
			return forge.ErrNotFound
		}
	case http.StatusConflict, http.StatusTooEarly:
		return forge.ErrRetry
	case http.StatusUnprocessableEntity:
		// What GitHub says to one who writes too fast, among the errors of a
		// text that is too long or the like.
		if bytes.Contains(ex.Refusal, []byte("submitted too quickly")) {
			return forge.ErrRetry
		}
	}
	return forge.ErrPermanent // 400, 410, 413, 422, 423, 451 …
}

// forbiddenKind tells the meanings of 403 apart.
func forbiddenKind(ex *wire.Exchange, text string) error {
	switch {
	case limited(ex):
		return forge.ErrRetry
	case strings.Contains(text, "is locked"), strings.Contains(text, "archived"), strings.Contains(text, "blocked"):
		return forge.ErrPermanent
	}
	return forge.ErrUnverified
}

// moved reports whether the answer is GitHub's own word that a thread is not
// here any more. A path by id never redirects for a rename, so it is what was
// transferred to another repository. Of a sub-resource the redirect may come
// without a Location.
func moved(ex *wire.Exchange) bool {
	if !ex.Redirected() || origin(ex) != wire.Own {
		return false
	}
	to := ex.Location()
	return to == "" || strings.Contains(to, "/repositories/") || strings.Contains(to, "/repos/")
}

// origin says whose answer this is: own if it is recognisably GitHub's (JSON
// with its request id; a refusal has "message" and "documentation_url"),
// foreign if it is recognisably not. GitHub's load balancers answer in HTML,
// and what they say is in doubt is in doubt.
func origin(ex *wire.Exchange) wire.Origin {
	isJSON, typed := ex.JSON()
	id := ex.Header.Get("X-GitHub-Request-Id") != ""
	switch {
	case ex.Status == 0:
		return wire.Unsure
	case ex.Status/100 == 2 && (isJSON || !typed && id):
		return wire.Own
	case ex.Status/100 == 2 && typed:
		return wire.Foreign
	case ex.Status/100 == 2:
		return wire.Unsure
	}
	body := ex.Fields()
	if isJSON && body["message"] != nil && (id || body["documentation_url"] != nil) {
		return wire.Own
	}
	switch ex.Status / 100 {
	case 3:
		return wire.Unsure
	case 4:
		return wire.Foreign // GitHub's 4xx always have a body of its own
	}
	if ex.Blank() {
		return wire.Unsure
	}
	return wire.Foreign
}

// nonsense is the error for an answer that came whole and lacks what it must
// hold.
func nonsense(what wire.Call, ex *wire.Exchange) *forge.Error {
	return wire.Nonsense(what, ex, origin(ex))
}
