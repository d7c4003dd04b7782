//go:build unix

package main

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"hash"
	"os"
	"path/filepath"
	"strconv"

	"playbook-bot/deploy/sandbox/internal/build"
)

// The repository all deliveries are about.
const (
	repoID   = 1
	repoName = "ops/incidents"
	// ownerID is the organisation's; the fake forge gives its second account
	// that id. The bot asks the forge about deliveries that name another owner
	// than it has heard of.
	ownerID = 2
)

const (
	// firstComment and firstThread are the first ids given out, chosen so that
	// all that follow have as many digits: a delivery is made by writing over
	// the digits of a prepared one.
	firstComment = 1_000_000_000
	firstThread  = 1_000_000
	// perThread is how many comments in a row are on one thread.
	perThread = 100
)

// template is a recorded delivery of a comment, in pieces.
type template struct {
	body []byte
	// comments and threads are where ids stand in the body.
	comments, threads []int
}

// loadTemplate reads the recorded delivery that the adapter's tests use and
// puts our repository and places for ids into it.
func loadTemplate(tree build.Tree) (*template, error) {
	path := filepath.Join(tree.Bot, "bot", "forge", "gitea", "testdata", "comment-created-by-reader.json")
	raw, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read the recorded delivery: %w", err)
	}
	var d map[string]any
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	if err := dec.Decode(&d); err != nil {
		return nil, fmt.Errorf("read the recorded delivery: %w", err)
	}
	for _, key := range []string{"issue", "comment", "repository"} {
		if _, ok := d[key].(map[string]any); !ok {
			return nil, fmt.Errorf("the recorded delivery has no %s", key)
		}
	}
	comment, issue, repo := d["comment"].(map[string]any), d["issue"].(map[string]any), d["repository"].(map[string]any)
	comment["id"] = json.Number(strconv.Itoa(firstComment))
	comment["body"] = fmt.Sprintf("This is comment %d of the benchmark.", firstComment)
	issue["number"] = json.Number(strconv.Itoa(firstThread))
	issue["id"] = json.Number(strconv.Itoa(firstThread))
	repo["id"] = json.Number(strconv.Itoa(repoID))
	repo["name"], repo["full_name"] = "incidents", repoName
	if owner, ok := repo["owner"].(map[string]any); ok {
		owner["id"], owner["login"], owner["username"] = json.Number(strconv.Itoa(ownerID)), "ops", "ops"
	}
	body, err := json.MarshalIndent(d, "", "  ") // as Gitea writes it
	if err != nil {
		return nil, fmt.Errorf("write the delivery: %w", err)
	}
	t := &template{body: body,
		comments: places(body, strconv.Itoa(firstComment)), threads: places(body, strconv.Itoa(firstThread)+",")}
	if len(t.comments) != 2 || len(t.threads) != 2 {
		return nil, fmt.Errorf("the delivery has %d places for a comment's id and %d for an issue's, want 2 and 2", len(t.comments), len(t.threads))
	}
	return t, nil
}

func places(body []byte, text string) (found []int) {
	for from := 0; ; {
		i := bytes.Index(body[from:], []byte(text))
		if i < 0 {
			return found
		}
		found = append(found, from+i)
		from += i + len(text)
	}
}

// maker makes signed deliveries. It is for one goroutine.
type maker struct {
	t    *template
	mac  hash.Hash
	body []byte
	sum  []byte
	sig  []byte
}

func (t *template) maker(secret string) *maker {
	return &maker{t: t, mac: hmac.New(sha256.New, []byte(secret)), body: bytes.Clone(t.body), sig: make([]byte, 64)}
}

// make makes the nth delivery: no two have the same comment. body and signature
// are good until the next call.
func (m *maker) make(n int64) (body, signature []byte) {
	for _, at := range m.t.comments {
		strconv.AppendInt(m.body[:at], firstComment+n, 10)
	}
	for _, at := range m.t.threads {
		strconv.AppendInt(m.body[:at], firstThread+n/perThread, 10)
	}
	m.mac.Reset()
	m.mac.Write(m.body)
	m.sum = m.mac.Sum(m.sum[:0])
	hex.Encode(m.sig, m.sum)
	return m.body, m.sig
}
