//go:build unix

package main

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"net/http"
	"time"
)

// bareSecret is the secret of the two contenders that derive none.
const bareSecret = "a secret of the benchmark, which guards nothing"

// bareHandler is what a webhook receiver cannot do less than: read the body,
// check the HMAC over it, decode it, answer. It keeps nothing.
func bareHandler(secret string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 5<<20))
		if err != nil {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		mac := hmac.New(sha256.New, []byte(secret))
		mac.Write(body)
		sent, err := hex.DecodeString(r.Header.Get("X-Gitea-Signature"))
		if err != nil || !hmac.Equal(mac.Sum(nil), sent) {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		var d struct {
			Action  string
			Comment struct {
				ID   int64
				Body string
				User struct {
					ID    int64
					Login string
				}
			}
			Issue      struct{ Number int64 }
			Repository struct {
				ID       int64
				FullName string `json:"full_name"`
			}
			Sender struct {
				ID    int64
				Login string
			}
		}
		if err := json.Unmarshal(body, &d); err != nil || d.Comment.ID == 0 {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		w.WriteHeader(http.StatusAccepted)
		_, _ = io.WriteString(w, "ok\n")
	})
}

// serveBare is the process of that contender.
func serveBare(addr string) error {
	srv := &http.Server{Addr: addr, Handler: bareHandler(bareSecret), ReadHeaderTimeout: 5 * time.Second}
	return srv.ListenAndServe()
}
