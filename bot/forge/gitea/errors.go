package gitea

import (
	"net/http"
	"strings"

	"playbook-bot/bot/forge"
	"playbook-bot/bot/forge/internal/wire"
)

// refusalKind sorts a 4xx of the server itself.
func refusalKind(ex *wire.Exchange) error {
	switch ex.Status {
	case http.StatusUnauthorized:
		return forge.ErrUnverified
	case http.StatusForbidden:
		return forbiddenKind(ex)
	case http.StatusNotFound:
		return forge.ErrNotFound
	case http.StatusConflict, http.StatusTooEarly:
		return forge.ErrRetry
	}
	return forge.ErrPermanent // 400, 410, 413, 422, 423 …
}

// forbiddenKind tells the meanings of 403 apart. The texts are Gitea's English
// ones, which every call asks for.
func forbiddenKind(ex *wire.Exchange) error {
	text := ex.Message()
	switch {
	case ex.Header.Get("Retry-After") != "",
		ex.Header.Get("X-Ratelimit-Remaining") == "0",
		strings.Contains(text, "rate limit"):
		return forge.ErrRetry
	case strings.Contains(text, "locked"), strings.Contains(text, "is blocked"), strings.Contains(text, "archived"):
		return forge.ErrPermanent
	}
	return forge.ErrUnverified
}

// origin says whose answer this is: own if it is recognisably Gitea's or
// Forgejo's (JSON; a refusal has "message" and "url", which distinguishes it
// from the JSON of API gateways), foreign if it is recognisably not theirs.
// An empty 401 or 403 is neither: Gitea sends such, and so do others.
func origin(ex *wire.Exchange) wire.Origin {
	isJSON, typed := ex.JSON()
	switch {
	case ex.Status == 0, ex.Status/100 == 3:
		return wire.Unsure
	case ex.Status/100 == 2 && isJSON:
		return wire.Own
	case ex.Status/100 == 2 && typed:
		return wire.Foreign
	case ex.Status/100 == 2:
		return wire.Unsure
	}
	body := ex.Fields()
	if isJSON && body["message"] != nil && body["url"] != nil {
		return wire.Own
	}
	foreign := !ex.Blank()
	switch ex.Status {
	case http.StatusUnauthorized, http.StatusForbidden:
		foreign = foreign && !isJSON
	case http.StatusNotFound:
		foreign = true // Gitea's always has a body of its own
	}
	if foreign {
		return wire.Foreign
	}
	return wire.Unsure
}

// nonsense is the error for an answer that came whole and lacks what it must
// hold.
func nonsense(what wire.Call, ex *wire.Exchange) *forge.Error {
	return wire.Nonsense(what, ex, origin(ex))
}
