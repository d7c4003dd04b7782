package main

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func TestProfilesOnTheAdminListenerOnly(t *testing.T) {
	for _, on := range []bool{true, false} {
		g := newFakeGitea(t)
		environ := serveEnv(g, t.TempDir())
		environ["LOG_FORMAT"] = "text"
		if on {
			environ["PPROF"] = "true"
		}
		s := startWatched(t, environ)
		want := map[bool]int{true: http.StatusOK, false: http.StatusNotFound}[on]
		for _, path := range []string{"/debug/pprof/", "/debug/pprof/heap", "/debug/pprof/trace?seconds=0.05"} {
			if status, _ := get(t, s.admin+path); status != want {
				t.Errorf("PPROF %t: %s on ADMIN_LISTEN answers %d, want %d", on, path, status, want)
			}
			if status, _ := get(t, s.url+path); status != http.StatusNotFound {
				t.Errorf("PPROF %t: %s on LISTEN answers %d", on, path, status)
			}
		}
		if status, body := get(t, s.admin+"/debug/pprof/cmdline"); status != http.StatusNotFound {
			t.Errorf("cmdline answers %d %q", status, body)
		}
		s.end(t)
	}
}

// TestLongProfile: net/http/pprof refuses a profile longer than the server's
// WriteTimeout, which is the admin listener's for all else.
func TestLongProfile(t *testing.T) {
	srv := httptest.NewUnstartedServer(unhurried(func(w http.ResponseWriter, r *http.Request) {
		if r.Context().Value(http.ServerContextKey) != nil {
			t.Error("the handler sees the server and its WriteTimeout")
		}
	}))
	srv.Start()
	defer srv.Close()
	resp, err := http.Get(srv.URL)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
}

func TestPprofNeedsTheAdminListener(t *testing.T) {
	var out, errs bytes.Buffer
	environ := map[string]string{"GITEA_URL": "http://127.0.0.1:1", "PPROF": "true"}
	if code := run(t.Context(), []string{"serve"}, environ, strings.NewReader(""), &out, &errs); code == 0 || !strings.Contains(errs.String(), "PPROF needs ADMIN_LISTEN") {
		t.Errorf("ended with %d:\n%s", code, errs.String())
	}
}
