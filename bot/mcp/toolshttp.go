package mcp

import (
	"context"
	"net/http"
	"strings"
	"sync"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// maxRequest bounds a message to the tools, in bytes: an argument of
// maxArgument, escaped, and what is around it.
const maxRequest = 4 << 20

type accountKey struct{}

// Handler serves tools over streamable HTTP, stateless: each request stands
// for itself, so that any replica can answer it and no session can expire.
// Every request needs a bearer token; authenticate gives the account it
// belongs to (empty: none) and whether it is one at all, and must compare in
// constant time. server gives the account's server, as [NewServer] makes it;
// it is asked once for each account, since making one costs as much as many
// requests.
func Handler(authenticate func(token string) (account string, ok bool), server func(account string) *sdk.Server) http.Handler {
	var servers sync.Map // account → func() *sdk.Server
	h := sdk.NewStreamableHTTPHandler(func(r *http.Request) *sdk.Server {
		account, ok := r.Context().Value(accountKey{}).(string)
		if !ok {
			return nil // never: see below
		}
		made, _ := servers.LoadOrStore(account, sync.OnceValue(func() *sdk.Server { return server(account) }))
		return made.(func() *sdk.Server)()
	}, &sdk.StreamableHTTPOptions{
		Stateless: true, JSONResponse: true, MaxRequestBodyBytes: maxRequest,
		// It guards open endpoints against pages that rebind their name to
		// localhost. Such a page has no token, and a reverse proxy on this host
		// would be refused.
		DisableLocalhostProtection: true,
	})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
		account, ok := "", false
		if token = strings.TrimSpace(token); strings.EqualFold(scheme, "Bearer") && token != "" {
			account, ok = authenticate(token)
		}
		if !ok {
			w.Header().Set("WWW-Authenticate", "Bearer")
			http.Error(w, "a bearer token of this bot's configuration is needed", http.StatusUnauthorized)
			return
		}
		h.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), accountKey{}, account)))
	})
}
