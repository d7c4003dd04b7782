package main

import (
	"context"
	"errors"
	"os"
	"reflect"
	"runtime"
	"slices"
	"strings"

	"playbook-bot/bot/setup"
	"playbook-bot/bot/store"
	"playbook-bot/templates"
)

// configuration checks every variable: each that is wrong is a finding, under
// secrets where it holds one.
func (d *doctor) configuration() {
	s, err := loadConfig(d.environ, nil)
	_, adminErr := loadConfig(d.environ, nil, "ADMIN_TOKEN")
	bad := map[string]bool{}
	for _, e := range append(each(err), each(adminErr)...) {
		check := "configuration"
		if isSecret(e.name) {
			check = "secrets"
		}
		bad[check] = true
		d.fail(check, e.name, e.problem, cureOf(e.name))
	}
	if s != nil && s.TemplatesDir != "" {
		if book, err := d.book(); err == nil {
			if _, err := templates.New(templates.Options{Playbook: book, Dir: s.TemplatesDir}); err != nil {
				bad["configuration"] = true
				d.fail("configuration", "TEMPLATES_DIR", err.Error(), "Mend the template, or take the file out of the directory: then the embedded one is used.")
			}
		}
	}
	if !bad["configuration"] {
		d.ok("configuration", "", "every variable can be read")
	}
	if d.exposed(s) || bad["secrets"] {
		return
	}
	d.ok("secrets", "", "all are set, and kept from other users")
}

// each gives the variables that a configuration's error is about.
func each(err error) []varError {
	var out []varError
	var all interface{ Unwrap() []error }
	var one varError
	switch {
	case err == nil:
	case errors.As(err, &all):
		for _, e := range all.Unwrap() {
			out = append(out, each(e)...)
		}
	case errors.As(err, &one):
		out = append(out, one)
	default:
		out = append(out, varError{"environment", err.Error()})
	}
	return out
}

func isSecret(name string) bool {
	name, _, _ = strings.Cut(name, " ")
	for f := range reflect.TypeFor[config]().Fields() {
		if f.Tag.Get("env") == strings.TrimSuffix(name, "_FILE") {
			return f.Tag.Get("secret") != ""
		}
	}
	return false
}

func cureOf(name string) string {
	base, _, _ := strings.Cut(strings.TrimSuffix(name, "_FILE"), " ")
	switch {
	case base == "PLAYBOOK_SECRET":
		return "Make one with openssl rand -hex 32, keep it in a file, and name that in PLAYBOOK_SECRET_FILE."
	case isSecret(base):
		return "Keep it in a file and name that in " + base + "_FILE, in the environment of serve."
	}
	return "Set it in the environment of serve; playbook-bot serve --help and the README say how."
}

// mounted are the places where container runtimes put secrets: who can read
// those is not a matter of their mode.
var mounted = []string{"/run/secrets/", "/var/run/secrets/"}

const anotherMaster = "Make one with openssl rand -hex 32 and put it before this one, with a comma between; " +
	"run setup --new-secret for each repository or organisation; then take this one out."

// exposed looks for secrets that others can read or guess.
func (d *doctor) exposed(s *settings) bool {
	found := false
	for f := range reflect.TypeFor[config]().Fields() {
		name := f.Tag.Get("env") + "_FILE"
		path := strings.TrimSpace(d.environ[name])
		if f.Tag.Get("secret") == "" || path == "" || runtime.GOOS == "windows" ||
			strings.HasPrefix(path, mounted[0]) || strings.HasPrefix(path, mounted[1]) {
			continue
		}
		info, err := os.Stat(path)
		if err == nil && info.Mode().Perm()&0o007 != 0 {
			found = true
			d.fail("secrets", name, "every user of this machine can read its file, or write it", "Take that right away.", "chmod o-rwx "+quoted(path))
		}
	}
	if s == nil {
		return found
	}
	for i, master := range s.Secrets() {
		switch {
		case slices.ContainsFunc(s.Forges, func(t tracker) bool { return t.token() == master }):
			found = true
			d.fail("secrets", "PLAYBOOK_SECRET", "it is the token: whoever reads one has both", anotherMaster)
		case distinct(master) < 8:
			found = true
			d.fail("secrets", "PLAYBOOK_SECRET", "the one in place "+string(rune('1'+min(i, 8)))+" repeats a few characters and can be guessed",
				anotherMaster)
		}
	}
	return found
}

func distinct(s string) int {
	m := map[rune]bool{}
	for _, r := range s {
		m[r] = true
	}
	return len(m)
}

// quoted is a path as one word of a shell's.
func quoted(path string) string {
	if !strings.ContainsFunc(path, func(r rune) bool {
		return !strings.ContainsRune("/._-", r) && (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z')
	}) {
		return path
	}
	return "'" + strings.ReplaceAll(path, "'", `'\''`) + "'"
}

// database opens the database beside the bot; nil where it cannot.
func (d *doctor) database(ctx context.Context) store.Store {
	s, err := loadConfig(d.environ, nil, "DATABASE_URL")
	if err != nil {
		d.skip("database", "DATABASE_URL cannot be read")
		return nil
	}
	where := store.Describe(s.Database)
	db, err := store.Open(ctx, s.Database, store.Options{Offline: true})
	switch {
	case errors.Is(err, store.ErrNotFound):
		d.fail("database", "", where+" is not there", "Is DATABASE_URL the one serve runs with, and is this its directory? serve makes it at its first start, and so does:", "playbook-bot migrate")
	case errors.Is(err, store.ErrNewerSchema):
		d.fail("database", "", "a newer playbook-bot wrote "+where, "Run the newer program.")
	case err != nil:
		d.fail("database", "", where+" cannot be opened: "+err.Error(), "For SQLite: may this user read and write the file and its directory? For PostgreSQL: is it up, and may this user log in? If its schema is older: stop the bot, and", "playbook-bot migrate")
	default:
		d.asked(ctx, db, where)
		return db
	}
	return nil
}

// asked checks that the database answers, and its clock, by which leases and
// deadlines go.
func (d *doctor) asked(ctx context.Context, db store.Store, where string) {
	begun := d.now()
	now, err := db.Now(ctx)
	if err != nil {
		d.fail("database", "", where+" does not answer: "+err.Error(), "Look again in a moment; then at the database's log.")
		return
	}
	d.ok("database", "", "%s", where)
	if skew := now.Sub(begun); skew.Abs() > setup.MaxSkew {
		d.fail("clock", "database", "the database's clock is "+skew.String()+" off this machine's", "Set both clocks by a time server.", "timedatectl set-ntp true")
	}
}
