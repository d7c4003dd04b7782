package main

import (
	"context"
	"net/http"
	"net/http/pprof"
	"time"
)

// profileTime is the longest an answer of the admin listener may take where
// profiles are served: a profile is an answer that takes as long as it looks.
const profileTime = 2 * time.Minute

// profiles serves /debug/pprof/ on the admin listener's mux if PPROF says so.
// Profiles and traces tell what the process does and hold no text of anybody;
// /debug/pprof/cmdline is left out.
func (v *service) profiles(mux *http.ServeMux) {
	if !v.s.Pprof {
		return
	}
	// Index serves heap, goroutine, allocs, block, mutex and threadcreate too.
	mux.HandleFunc("GET /debug/pprof/", pprof.Index)
	mux.HandleFunc("GET /debug/pprof/cmdline", http.NotFound)
	mux.HandleFunc("GET /debug/pprof/profile", unhurried(pprof.Profile))
	mux.HandleFunc("GET /debug/pprof/trace", unhurried(pprof.Trace))
	mux.HandleFunc("GET /debug/pprof/symbol", pprof.Symbol)
}

// unhurried lets one answer take longer than the listener's others. The server
// is hidden from the handler, which else refuses by the server's own limit.
func unhurried(h http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		deadline := time.Now().Add(profileTime)
		c := http.NewResponseController(w)
		_ = c.SetWriteDeadline(deadline)
		_ = c.SetReadDeadline(deadline) // the caller's going away is read for
		h(w, r.WithContext(withoutServer{r.Context()}))
	}
}

// withoutServer is a request's context that does not tell its server.
type withoutServer struct{ context.Context }

func (c withoutServer) Value(key any) any {
	if key == http.ServerContextKey {
		return nil
	}
	return c.Context.Value(key)
}
