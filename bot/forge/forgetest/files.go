package forgetest

import (
	"crypto/sha1"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"net/http"
	"strings"
)

// committed is a file of a repository's default branch, as its last commit
// left it. What was removed has a commit and no content.
type committed struct {
	content []byte // nil: removed
	commit  string
}

// Commit makes somebody commit a file to a repository's default branch, as its
// page would; it takes write. A nil content removes the file.
func (f *Forge) Commit(as, fullName, path string, content []byte) error {
	return f.do(func(st *state) error {
		r := f.mustRepo(fullName)
		if err := st.mayWrite(f.mustAccount(as), r); err != nil {
			return err
		}
		if r.files == nil {
			r.files = map[string]committed{}
		}
		st.lastCommit++
		sum := sha1.Sum(fmt.Appendf(nil, "commit %d of %s", st.lastCommit, path))
		r.files[path] = committed{content, hex.EncodeToString(sum[:])}
		return nil
	}, "commit %s to %s", path, fullName)
}

// contentsPaths are the routes of files at most four directories deep.
func contentsPaths() []string {
	var out []string
	path := "GET /repos/:owner/:name/contents"
	for i := range 5 {
		path += fmt.Sprintf("/:part%d", i)
		out = append(out, path)
	}
	return out
}

// file is the one that a call of a contents route names.
func (r *request) file() (path string, file committed, err error) {
	var parts []string
	for i := range 5 {
		if part := r.PathValue(fmt.Sprintf("part%d", i)); part != "" {
			parts = append(parts, part)
		}
	}
	path = strings.Join(parts, "/")
	if err := r.st.mayRead(r.as, r.repo); err != nil {
		return path, file, err
	}
	file = r.repo.files[path]
	if ref := r.URL.Query().Get("ref"); file.content == nil || ref != "" && ref != file.commit && ref != "main" {
		return path, file, ErrNotFound
	}
	return path, file, nil
}

// isDirectory reports whether files stand below a path.
func (r *request) isDirectory(path string) bool {
	for name, file := range r.repo.files {
		if strings.HasPrefix(name, path+"/") && file.content != nil {
			return true
		}
	}
	return false
}

// blobSHA names a content as git does.
func blobSHA(content []byte) string {
	sum := sha1.Sum(append(fmt.Appendf(nil, "blob %d\x00", len(content)), content...))
	return hex.EncodeToString(sum[:])
}

// jsonFile is a file as Gitea and GitHub both show it; GitHub names no commit.
type jsonFile struct {
	Name       string  `json:"name"`
	Path       string  `json:"path"`
	SHA        string  `json:"sha"`
	LastCommit string  `json:"last_commit_sha,omitempty"`
	Type       string  `json:"type"`
	Size       int     `json:"size"`
	Encoding   string  `json:"encoding"`
	Content    string  `json:"content"`
	Target     *string `json:"target"`
}

func (r *request) contents(commit bool) (int, any, error) {
	path, file, err := r.file()
	switch {
	case err == ErrNotFound && r.isDirectory(path):
		return http.StatusOK, []jsonFile{}, nil
	case err != nil:
		return 0, nil, err
	}
	out := jsonFile{Name: path[strings.LastIndexByte(path, '/')+1:], Path: path, SHA: blobSHA(file.content), Type: "file",
		Size: len(file.content), Encoding: "base64", Content: base64.StdEncoding.EncodeToString(file.content)}
	if commit {
		out.LastCommit = file.commit
	}
	return http.StatusOK, out, nil
}

func (g *gitea) routeFiles() {
	for _, path := range contentsPaths() {
		g.route("file.read", path, scopeRepo, func(r *request) (int, any, error) { return r.contents(true) })
	}
}

func (g *github) routeFiles() {
	for _, path := range contentsPaths() {
		g.route("file.read", path, scopeRepo, func(r *hub) (int, any, error) { return r.contents(false) })
	}
	g.route("commit.list", "GET /repos/:owner/:name/commits", scopeRepo, (*hub).commits)
}

// commits lists the commits that changed a file: of those the last is kept.
func (r *hub) commits() (int, any, error) {
	if err := r.st.mayRead(r.as, r.repo); err != nil {
		return 0, nil, err
	}
	if len(r.repo.files) == 0 {
		return 0, nil, &statusError{http.StatusConflict, "Git Repository is empty."}
	}
	out := []map[string]string{}
	if file, ok := r.repo.files[r.URL.Query().Get("path")]; ok {
		out = append(out, map[string]string{"sha": file.commit})
	} else if r.isDirectory(r.URL.Query().Get("path")) {
		out = append(out, map[string]string{"sha": "main"})
	}
	return http.StatusOK, out, nil
}
