package main

import (
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"unicode"

	"playbook-bot/playbook"
)

// The checks below say what is wrong with a value and never repeat it.

func checkToken(s string) error {
	if strings.ContainsFunc(s, func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) }) {
		return errors.New("must be one word: a token holds no spaces")
	}
	return nil
}

func checkMasters(s string) error {
	items := strings.Split(s, ",")
	for i, item := range items {
		item = strings.TrimSpace(item)
		where := ""
		if len(items) > 1 {
			where = fmt.Sprintf(" in place %d", i+1)
		}
		switch n := len([]rune(item)); {
		case n == 0:
			return fmt.Errorf("holds a blank secret%s", where)
		case n < MinSecret:
			return fmt.Errorf("must have %d characters or more, it has %d%s; make one with: openssl rand -hex 32", MinSecret, n, where)
		}
	}
	return nil
}

func checkGrants(s string) error {
	if _, err := playbook.ParseGrants(s); err != nil {
		return fmt.Errorf("cannot be read: %w", err)
	}
	return nil
}

func checkHooks(s string) error {
	_, err := parseHooks(s)
	return err
}

// parseHooks reads PATH=SECRET, a comma list. The form is ours because env's
// own maps print what they could not read.
func parseHooks(s string) (map[string]string, error) {
	m := make(map[string]string)
	for i, item := range splitList(s) {
		path, secret, ok := strings.Cut(item, "=")
		path, secret = strings.TrimSpace(path), strings.TrimSpace(secret)
		switch {
		case !ok || !strings.HasPrefix(path, "/webhook/"):
			return nil, fmt.Errorf("holds something in place %d that is not PATH=SECRET with a PATH such as /webhook/gitea/repo/41", i+1)
		case secret == "":
			return nil, fmt.Errorf("holds a blank secret in place %d", i+1)
		}
		if _, twice := m[path]; twice {
			return nil, fmt.Errorf("names the path in place %d twice", i+1)
		}
		m[path] = secret
	}
	return m, nil
}

func checkDatabase(s string) error {
	for _, scheme := range []string{"sqlite:", "file:", "postgres://", "postgresql://"} {
		if rest, ok := strings.CutPrefix(s, scheme); ok && rest != "" {
			return nil
		}
	}
	return errors.New("must begin with sqlite: or postgres://")
}

func validListen(addr string) bool {
	_, port, err := net.SplitHostPort(addr)
	if err != nil {
		return false
	}
	n, err := strconv.Atoi(port)
	return err == nil && n >= 0 && n <= 65535
}

// validRepository takes owner/repo and owner/*, in the letters Gitea and
// GitHub allow.
func validRepository(s string) bool {
	owner, repo, ok := strings.Cut(s, "/")
	return ok && validLogin(owner) && (repo == "*" || validLogin(repo))
}

// validPattern is an item of REPOSITORIES, perhaps with its forge.
func validPattern(s string) bool {
	_, rest := splitForge(s)
	return validRepository(rest)
}

func validLogin(s string) bool {
	return s != "" && s != "." && s != ".." && !strings.ContainsFunc(s, func(r rune) bool {
		return r != '-' && r != '_' && r != '.' && !unicode.IsLetter(r) && !unicode.IsDigit(r)
	})
}

// splitList splits at commas, trims, and leaves blank items out.
func splitList(s string) []string {
	var out []string
	for item := range strings.SplitSeq(s, ",") {
		if item = strings.TrimSpace(item); item != "" {
			out = append(out, item)
		}
	}
	return out
}
