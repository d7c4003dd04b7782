package main

import (
	"crypto/sha256"
	"crypto/subtle"
	"fmt"
	"strings"

	"playbook-bot/bot/mcp"
)

// MinToken is the shortest token taken for /mcp, in characters: whoever has
// one files in its account's name.
const MinToken = 32

// tokenTable says whose a token is. It holds hashes only, so that a dump of
// the process's memory is no list of tokens, and a comparison tells nothing
// by the time it takes.
type tokenTable []tokenEntry

type tokenEntry struct {
	login string
	sum   [sha256.Size]byte
}

// account gives the login that a token belongs to, in the same time whichever
// it is, and for none.
func (t tokenTable) account(token string) (login string, ok bool) {
	sum := sha256.Sum256([]byte(token))
	at := -1
	for i := range t {
		at = subtle.ConstantTimeSelect(subtle.ConstantTimeCompare(sum[:], t[i].sum[:]), i, at)
	}
	if at < 0 {
		return "", false
	}
	return t[at].login, true
}

// logins are those that have tokens, as they are written.
func (t tokenTable) logins() []string {
	var out []string
	for _, e := range t {
		out = append(out, e.login)
	}
	return out
}

func checkTokens(s string) error {
	_, err := parseTokens(s)
	return err
}

// parseTokens reads LOGIN=TOKEN, a comma list. A login may have several.
func parseTokens(s string) (tokenTable, error) {
	var out tokenTable
	seen := map[[sha256.Size]byte]bool{}
	for i, item := range splitList(s) {
		login, token, ok := strings.Cut(item, "=")
		login, token = strings.TrimSpace(login), strings.TrimSpace(token)
		_, bare := splitForge(login)
		switch {
		case !ok || !validLogin(bare):
			return nil, fmt.Errorf("holds something in place %d that is not LOGIN=TOKEN", i+1)
		case checkToken(token) != nil:
			return nil, fmt.Errorf("holds a token in place %d that is not one word", i+1)
		case len([]rune(token)) < MinToken:
			return nil, fmt.Errorf("must have tokens of %d characters or more, that in place %d has fewer; make one with: openssl rand -hex 32", MinToken, i+1)
		}
		sum := sha256.Sum256([]byte(token))
		if seen[sum] {
			return nil, fmt.Errorf("has the token in place %d twice", i+1)
		}
		seen[sum] = true
		out = append(out, tokenEntry{login, sum})
	}
	return out, nil
}

// lookup is the environment for those parts of MCP_SERVERS that name a
// variable to read a token from.
func (l *loader) lookup(name string) (string, bool) {
	v, ok := l.environ[name]
	return v, ok
}

func (l *loader) checkServers(s string) error {
	if _, err := mcp.ParseServers(s, l.lookup); err != nil {
		return fmt.Errorf("cannot be read: %w", err)
	}
	return nil
}
