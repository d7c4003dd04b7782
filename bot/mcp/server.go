package mcp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Server is an MCP server as the operator's configuration names it. Exactly
// one of URL and Command is set. Nothing in it ever comes from a comment.
type Server struct {
	Name string
	// URL is the endpoint of a streamable HTTP server.
	URL string
	// Command is a stdio server's program and arguments, run without a shell.
	Command []string
	// Dir is the command's working directory, Env its variables beside
	// ClientOptions.Environ.
	Dir string
	Env map[string]string
	// Header gives the headers of every HTTP request, asked for each anew so
	// that a rotated token takes effect. Mcp-* and Idempotency-Key headers in
	// it are dropped.
	Header func(context.Context) (http.Header, error)
}

var serverName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`)

// Validate says what is wrong with s, naming the field and no value.
func (s Server) Validate() error {
	switch {
	case !serverName.MatchString(s.Name):
		return errors.New("server name: 1 to 64 letters, digits, '.', '_' or '-', beginning with a letter or digit")
	case s.URL == "" && len(s.Command) == 0:
		return fmt.Errorf("server %s: needs a url or a command", s.Name)
	case s.URL != "" && len(s.Command) > 0:
		return fmt.Errorf("server %s: has both a url and a command", s.Name)
	case s.URL == "":
		if s.Command[0] == "" {
			return fmt.Errorf("server %s: command: the program is empty", s.Name)
		}
		return nil
	}
	u, err := url.Parse(s.URL)
	switch {
	case err != nil:
		return fmt.Errorf("server %s: url: not a URL", s.Name)
	case u.Scheme != "http" && u.Scheme != "https" || u.Host == "":
		return fmt.Errorf("server %s: url: must begin with http:// or https:// and name a host", s.Name)
	case u.User != nil:
		return fmt.Errorf("server %s: url: must hold no user or password; use token_file or token_env", s.Name)
	case u.Fragment != "":
		return fmt.Errorf("server %s: url: must hold no #fragment", s.Name)
	}
	return nil
}

// Servers are the servers of a configuration, in its order.
type Servers []Server

// Names gives the names, in order.
func (ss Servers) Names() []string {
	out := make([]string, 0, len(ss))
	for _, s := range ss {
		out = append(out, s.Name)
	}
	return out
}

// ErrUnknownServer is a name that the configuration does not have.
var ErrUnknownServer = errors.New("no such server in the configuration")

// Lookup finds a server by its name, case-folded. name may come from a
// comment: a URL is refused as one, and no error repeats it.
func (ss Servers) Lookup(name string) (Server, error) {
	for _, s := range ss {
		if strings.EqualFold(s.Name, name) {
			return s, nil
		}
	}
	if strings.Contains(name, "://") {
		return Server{}, fmt.Errorf("%w: a URL is not probed, only servers that the operator has named", ErrUnknownServer)
	}
	if len(ss) == 0 {
		return Server{}, fmt.Errorf("%w: it names none", ErrUnknownServer)
	}
	return Server{}, fmt.Errorf("%w; it has %s", ErrUnknownServer, strings.Join(ss.Names(), ", "))
}

// serverYAML is one server as the configuration writes it.
type serverYAML struct {
	Name    string            `yaml:"name"`
	URL     string            `yaml:"url"`
	Command []string          `yaml:"command"`
	Dir     string            `yaml:"dir"`
	Env     map[string]string `yaml:"env"`
	Headers map[string]string `yaml:"headers"`
	// One of the two, sent as "Authorization: Bearer …".
	TokenFile string `yaml:"token_file"`
	TokenEnv  string `yaml:"token_env"`
}

// maxConfig bounds a server configuration, in bytes.
const maxConfig = 1 << 20

// ParseServers reads a server configuration: either YAML,
//
//	servers:
//	  - name: gitea-tools
//	    url: https://mcp.example.org/mcp
//	    token_file: /run/secrets/mcp      # or token_env: NAME, or headers: {X-Key: …}
//	  - name: local
//	    command: [node, server.mjs]       # stdio, run without a shell
//	    dir: /srv/local
//	    env: {LOG_LEVEL: error}
//
// or, on one line or several, a list of name=url:
//
//	gitea-tools=https://mcp.example.org/mcp, wiki=http://127.0.0.1:8080/mcp
//
// lookup reads the variable that a token_env names (nil: none can be named);
// this package does not read the environment. A token_file is read at each
// request, at most 16 KiB. Errors name all that is wrong, with server and
// field, and no value.
func ParseServers(text string, lookup func(string) (string, bool)) (Servers, error) {
	if len(text) > maxConfig {
		return nil, fmt.Errorf("server configuration: larger than %d bytes", maxConfig)
	}
	if strings.TrimSpace(text) == "" {
		return nil, nil
	}
	var entries []serverYAML
	var err error
	if isNameList(text) {
		entries, err = parseNameList(text)
	} else {
		entries, err = parseYAML(text)
	}
	if err != nil {
		return nil, err
	}
	return buildServers(entries, lookup)
}

var nameListItem = regexp.MustCompile(`^\s*[^\s=:,#]+\s*=`)

func isNameList(text string) bool { return nameListItem.MatchString(text) }

func parseNameList(text string) ([]serverYAML, error) {
	var out []serverYAML
	var errs []error
	items := strings.FieldsFunc(text, func(r rune) bool { return r == ',' || r == '\n' || r == '\r' })
	for _, item := range items {
		if item = strings.TrimSpace(item); item == "" {
			continue
		}
		name, u, ok := strings.Cut(item, "=")
		if !ok {
			errs = append(errs, fmt.Errorf("server configuration, entry %d: expected name=url", len(out)+len(errs)+1))
			continue
		}
		out = append(out, serverYAML{Name: strings.TrimSpace(name), URL: strings.TrimSpace(u)})
	}
	return out, errors.Join(errs...)
}

func parseYAML(text string) ([]serverYAML, error) {
	var doc struct {
		Servers []serverYAML `yaml:"servers"`
	}
	dec := yaml.NewDecoder(strings.NewReader(text))
	dec.KnownFields(true)
	if err := dec.Decode(&doc); err != nil {
		return nil, fmt.Errorf("server configuration: %w", yamlError(err))
	}
	if err := dec.Decode(new(any)); !errors.Is(err, io.EOF) {
		return nil, errors.New("server configuration: more than one YAML document")
	}
	if len(doc.Servers) == 0 {
		return nil, errors.New("server configuration: no servers; expected `servers:` with a list, or name=url")
	}
	return doc.Servers, nil
}

var (
	yamlLine  = regexp.MustCompile(`line (\d+)`)
	yamlField = regexp.MustCompile(`field (\S+) not found`)
)

// yamlError keeps line and field of the YAML reader's errors and drops the
// values they quote, which may be credentials.
func yamlError(err error) error {
	var te *yaml.TypeError
	texts := []string{err.Error()}
	if errors.As(err, &te) {
		texts = te.Errors
	}
	var out []error
	for _, text := range texts {
		where := ""
		if m := yamlLine.FindStringSubmatch(text); m != nil {
			where = "line " + m[1] + ": "
		}
		if m := yamlField.FindStringSubmatch(text); m != nil {
			out = append(out, fmt.Errorf("%sunknown field %s (a server has name, url, command, dir, env, headers, token_file, token_env)", where, SafeName(m[1])))
		} else if te != nil {
			out = append(out, fmt.Errorf("%sa value of the wrong kind (command is a list, env and headers are maps, the rest is text)", where))
		} else {
			out = append(out, fmt.Errorf("%snot YAML", where))
		}
	}
	return errors.Join(out...)
}

func buildServers(entries []serverYAML, lookup func(string) (string, bool)) (Servers, error) {
	var out Servers
	var errs []error
	seen := map[string]bool{}
	for i, e := range entries {
		s, err := e.server(lookup)
		if err != nil {
			if !serverName.MatchString(e.Name) {
				err = fmt.Errorf("entry %d: %w", i+1, err)
			}
			errs = append(errs, err)
			continue
		}
		if key := strings.ToLower(s.Name); seen[key] {
			errs = append(errs, fmt.Errorf("server %s: named twice", s.Name))
		} else {
			seen[key] = true
			out = append(out, s)
		}
	}
	if err := errors.Join(errs...); err != nil {
		return nil, fmt.Errorf("server configuration: %w", err)
	}
	return out, nil
}

func (e serverYAML) server(lookup func(string) (string, bool)) (Server, error) {
	s := Server{Name: e.Name, URL: e.URL, Command: e.Command, Dir: e.Dir, Env: e.Env}
	if err := s.Validate(); err != nil {
		return s, err
	}
	if s.URL == "" {
		if e.TokenFile != "" || e.TokenEnv != "" || len(e.Headers) > 0 {
			return s, fmt.Errorf("server %s: headers and tokens are for a url; a command takes env", s.Name)
		}
		return s, nil
	}
	if len(e.Env) > 0 || e.Dir != "" {
		return s, fmt.Errorf("server %s: env and dir are for a command, not for a url", s.Name)
	}
	if e.TokenFile != "" && e.TokenEnv != "" {
		return s, fmt.Errorf("server %s: both token_file and token_env", s.Name)
	}
	header := http.Header{}
	for _, name := range sortedKeys(e.Headers) {
		if err := checkHeader(name, e.Headers[name]); err != nil {
			return s, fmt.Errorf("server %s: headers: %w", s.Name, err)
		}
		header.Set(name, e.Headers[name])
	}
	if e.TokenEnv != "" {
		var value string
		if lookup != nil {
			value, _ = lookup(e.TokenEnv)
		}
		if value = strings.TrimSpace(value); value == "" || !headerValue(value) {
			return s, fmt.Errorf("server %s: token_env: the variable is unset, blank or no header value", s.Name)
		}
		header.Set("Authorization", "Bearer "+value)
	}
	if len(header) > 0 || e.TokenFile != "" {
		s.Header = headerFunc(header, e.TokenFile)
	}
	return s, nil
}

func headerFunc(fixed http.Header, tokenFile string) func(context.Context) (http.Header, error) {
	return func(context.Context) (http.Header, error) {
		if tokenFile == "" {
			return fixed, nil
		}
		token, err := readToken(tokenFile)
		if err != nil {
			return nil, err
		}
		h := fixed.Clone()
		h.Set("Authorization", "Bearer "+token)
		return h, nil
	}
}

func readToken(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", fmt.Errorf("opening the token file: %w", err)
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, 16<<10))
	if err != nil {
		return "", fmt.Errorf("reading the token file: %w", err)
	}
	token := strings.TrimSpace(string(data))
	if token == "" || !headerValue(token) {
		return "", errors.New("the token file is blank or holds no header value")
	}
	return token, nil
}

var headerName = regexp.MustCompile("^[A-Za-z0-9!#$%&'*+.^_`|~-]+$")

// checkHeader refuses what would break the protocol or the no-repeat rule.
func checkHeader(name, value string) error {
	reserved := []string{"Idempotency-Key", "X-Idempotency-Key", "Host", "Content-Type", "Content-Length",
		"Transfer-Encoding", "Connection", "Accept", "Accept-Encoding", "Last-Event-Id"}
	canonical := http.CanonicalHeaderKey(name)
	switch {
	case !headerName.MatchString(name):
		return errors.New("a name that is no header name")
	case slices.Contains(reserved, canonical) || strings.HasPrefix(canonical, "Mcp-"):
		return fmt.Errorf("%s is the protocol's and may not be set", canonical)
	case !headerValue(value):
		return fmt.Errorf("%s has a value that no header can have", canonical)
	}
	return nil
}

func headerValue(s string) bool {
	for i := range len(s) {
		if c := s[i]; c < 0x20 && c != '\t' || c == 0x7F {
			return false
		}
	}
	return true
}
