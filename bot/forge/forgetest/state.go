package forgetest

import (
	"slices"
	"strings"
	"time"
)

// state is what the forge holds, without any wire format. Its owner's lock
// guards it.
type state struct {
	accounts []*account // accounts and organisations share their ids
	repos    []*repo
	issues   []*issue
	comments []*comment
	labels   []*label
	teams    []*team
	hooks    []*hook
	tokens   map[string]*token
	apps     []*app
	// moved keeps former names: "owner/name" to a repository's id.
	moved map[string]int64
	// left are the issues that were transferred or deleted: to where, or nil.
	left   map[place]*issue
	habits habits
	// The ids are the server's, ascending over all repositories.
	lastAccount, lastRepo, lastIssue, lastComment, lastLabel, lastTeam, lastHook, lastReaction, lastToken, lastCommit int64
}

func (st *state) init() {
	st.tokens = map[string]*token{}
	st.moved = map[string]int64{}
	st.left = map[place]*issue{}
}

// place is where an issue was.
type place struct{ repo, index int64 }

type account struct {
	id      int64
	login   string
	admin   bool
	org     bool
	app     *app // of an app's bot
	created time.Time
}

// ghost is who a deleted account's texts belong to.
var ghost = &account{id: -1, login: "Ghost"}

type token struct {
	account *account
	scopes  []string
	// owner is the account an app's token is good for, nil for a user's.
	owner *account
	// expires is zero for one that does not.
	expires time.Time
}

type team struct {
	id      int64
	org     *account
	name    string
	access  access
	members map[int64]bool
}

type repo struct {
	id            int64
	owner         *account
	name          string
	private       bool
	archived      bool
	originalURL   string
	collaborators map[int64]access
	created       time.Time
	lastIndex     int64
	files         map[string]committed // by path, of the default branch
}

func (r *repo) fullName() string { return r.owner.login + "/" + r.name }

type issue struct {
	id, index      int64
	repo           *repo
	author         *account
	originalAuthor string
	title, body    string
	closed, pull   bool
	locked         bool
	labels         []*label
	reactions      []reaction
	version        int // grows with each edit of the body
	created        time.Time
	updated        time.Time
	closedAt       time.Time
}

type comment struct {
	id             int64
	issue          *issue
	author         *account
	originalAuthor string
	body           string
	reactions      []reaction
	created        time.Time
	updated        time.Time
}

type label struct {
	id          int64
	repo        *repo
	name        string
	color       string
	description string
	exclusive   bool
}

// scope is the part before the last slash, "" if there is none.
func (l *label) scope() string {
	i := strings.LastIndexByte(l.name, '/')
	if i <= 0 {
		return ""
	}
	return l.name[:i]
}

type reaction struct {
	id      int64
	account *account
	content string
	created time.Time
}

// hook belongs to a repository or to an organisation.
type hook struct {
	id     int64
	repo   *repo
	org    *account
	path   string
	secret string
	form   bool
}

func (st *state) account(login string) *account {
	i := slices.IndexFunc(st.accounts, func(a *account) bool { return strings.EqualFold(a.login, login) })
	if i < 0 {
		return nil
	}
	return st.accounts[i]
}

func (st *state) repoByID(id int64) *repo {
	i := slices.IndexFunc(st.repos, func(r *repo) bool { return r.id == id })
	if i < 0 {
		return nil
	}
	return st.repos[i]
}

// repoByName finds a repository by its present name, or says where a former
// one leads.
func (st *state) repoByName(fullName string) (r, movedTo *repo) {
	i := slices.IndexFunc(st.repos, func(r *repo) bool { return strings.EqualFold(r.fullName(), fullName) })
	if i >= 0 {
		return st.repos[i], nil
	}
	if id, ok := st.moved[strings.ToLower(fullName)]; ok {
		return nil, st.repoByID(id)
	}
	return nil, nil
}

func (st *state) issue(r *repo, index int64) *issue {
	i := slices.IndexFunc(st.issues, func(i *issue) bool { return i.repo == r && i.index == index })
	if i < 0 {
		return nil
	}
	return st.issues[i]
}

func (st *state) comment(id int64) *comment {
	i, ok := slices.BinarySearchFunc(st.comments, id, func(c *comment, id int64) int { return int(c.id - id) })
	if !ok {
		return nil
	}
	return st.comments[i]
}

func (st *state) threadComments(i *issue) []*comment {
	var out []*comment
	for _, c := range st.comments {
		if c.issue == i {
			out = append(out, c)
		}
	}
	return out
}

func (st *state) repoLabels(r *repo) []*label {
	var out []*label
	for _, l := range st.labels {
		if l.repo == r {
			out = append(out, l)
		}
	}
	return out
}

func (st *state) label(id int64) *label {
	i := slices.IndexFunc(st.labels, func(l *label) bool { return l.id == id })
	if i < 0 {
		return nil
	}
	return st.labels[i]
}

// labelNamed finds a repository's label whatever the name's case.
func (st *state) labelNamed(r *repo, name string) *label {
	i := slices.IndexFunc(st.labels, func(l *label) bool { return l.repo == r && strings.EqualFold(l.name, name) })
	if i < 0 {
		return nil
	}
	return st.labels[i]
}

func (st *state) dropLabel(l *label) {
	gone := func(o *label) bool { return o == l }
	for _, i := range st.issues {
		i.labels = slices.DeleteFunc(i.labels, gone)
	}
	st.labels = slices.DeleteFunc(st.labels, gone)
}
