// Package sqlite3 stands in for github.com/mattn/go-sqlite3 in the sandbox's
// build of Gitea: it registers modernc.org/sqlite, which needs no C compiler,
// under the driver name Gitea opens.
package sqlite3

import (
	"database/sql"
	"database/sql/driver"
	"net/url"
	"strings"

	"modernc.org/sqlite"
)

func init() {
	sql.Register("sqlite3", shim{driver: &sqlite.Driver{}})
}

// shim opens a mattn/go-sqlite3 data source name with modernc.org/sqlite.
type shim struct{ driver driver.Driver }

// Open implements driver.Driver. The two drivers agree on "file:" names with
// SQLite's own parameters (cache, mode) and on _txlock; mattn's _busy_timeout
// and _journal_mode are pragmas to modernc.
func (s shim) Open(name string) (driver.Conn, error) {
	return s.driver.Open(translate(name))
}

// translate turns "_busy_timeout=N" into "_pragma=busy_timeout(N)", and
// "_journal_mode=X" likewise. What it does not know it leaves alone.
func translate(name string) string {
	base, query, found := strings.Cut(name, "?")
	if !found {
		return name
	}
	params := strings.Split(query, "&")
	for i, param := range params {
		key, value, _ := strings.Cut(param, "=")
		switch key {
		case "_busy_timeout", "_journal_mode":
			params[i] = "_pragma=" + url.QueryEscape(strings.TrimPrefix(key, "_")+"("+value+")")
		}
	}
	return base + "?" + strings.Join(params, "&")
}
