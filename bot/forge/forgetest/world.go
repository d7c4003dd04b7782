package forgetest

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"playbook-bot/bot/forge"
)

// This file makes the world: accounts, organisations, teams, repositories. Its
// methods are the test's own hand, nobody's rights are asked; they panic when
// the test contradicts itself (an unknown login, a name given twice).

func (a *account) neutral() forge.Account { return forge.Account{ID: a.id, Login: a.login} }

func (r *repo) neutral() forge.Repo {
	return forge.Repo{ID: r.id, Owner: r.owner.login, OwnerID: r.owner.id, Name: r.name}
}

func (f *Forge) addAccount(login string, admin, org bool) *account {
	if login == "" || f.st.account(login) != nil {
		panic(fmt.Sprintf("forgetest: the login %q is empty or taken", login))
	}
	f.st.lastAccount++
	a := &account{id: f.st.lastAccount, login: login, admin: admin, org: org, created: f.clock()}
	f.st.accounts = append(f.st.accounts, a)
	return a
}

func (f *Forge) mustAccount(login string) *account {
	a := f.st.account(login)
	if a == nil {
		panic(fmt.Sprintf("forgetest: no account %q", login))
	}
	return a
}

func (f *Forge) mustRepo(fullName string) *repo {
	r, _ := f.st.repoByName(fullName)
	if r == nil {
		panic(fmt.Sprintf("forgetest: no repository %q", fullName))
	}
	return r
}

// AddUser makes an account.
func (f *Forge) AddUser(login string) forge.Account {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.addAccount(login, false, false).neutral()
}

// AddAdmin makes a site administrator.
func (f *Forge) AddAdmin(login string) forge.Account {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.addAccount(login, true, false).neutral()
}

// AddOrg makes an organisation, with a team "Owners" of these accounts.
func (f *Forge) AddOrg(login string, owners ...string) forge.Account {
	f.mu.Lock()
	org := f.addAccount(login, false, true).neutral()
	f.mu.Unlock()
	f.AddTeam(login, "Owners", "owner", owners...)
	return org
}

// AddTeam makes a team with a right ("read", "write", "admin", "owner") on all
// repositories of the organisation.
func (f *Forge) AddTeam(org, name, right string, members ...string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	a, ok := parseAccess(right)
	if !ok {
		panic(fmt.Sprintf("forgetest: no right %q", right))
	}
	f.st.lastTeam++
	t := &team{id: f.st.lastTeam, org: f.mustAccount(org), name: name, access: a, members: map[int64]bool{}}
	for _, m := range members {
		t.members[f.mustAccount(m).id] = true
	}
	f.st.teams = append(f.st.teams, t)
}

// RemoveTeamMember takes an account out of a team.
func (f *Forge) RemoveTeamMember(org, name, login string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, t := range f.st.teams {
		if strings.EqualFold(t.org.login, org) && strings.EqualFold(t.name, name) {
			delete(t.members, f.mustAccount(login).id)
		}
	}
}

// RenameAccount gives an account another login; its id stays.
func (f *Forge) RenameAccount(from, to string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	a := f.mustAccount(from)
	for _, r := range f.st.repos {
		if r.owner == a {
			f.st.moved[strings.ToLower(r.fullName())] = r.id
		}
	}
	a.login = to
}

// DeleteAccount removes an account; its texts become the ghost's.
func (f *Forge) DeleteAccount(login string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	a := f.mustAccount(login)
	f.st.accounts = slices.DeleteFunc(f.st.accounts, func(o *account) bool { return o == a })
	for _, i := range f.st.issues {
		if i.author == a {
			i.author = ghost
		}
	}
	for _, c := range f.st.comments {
		if c.author == a {
			c.author = ghost
		}
	}
	for name, t := range f.st.tokens {
		if t.account == a {
			delete(f.st.tokens, name)
		}
	}
}

// BotScopes are the scopes that suffice for comments, reactions and labels.
var BotScopes = []string{"write:issue", "read:repository", "read:user"}

// Token makes an access token; without scopes it has BotScopes, "all" is all.
func (f *Forge) Token(login string, scopes ...string) string {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(scopes) == 0 {
		scopes = BotScopes
	}
	value := fmt.Sprintf("%040x", len(f.st.tokens)+1)
	f.st.tokens[value] = &token{account: f.mustAccount(login), scopes: scopes}
	return value
}

// RevokeToken makes a token invalid.
func (f *Forge) RevokeToken(value string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.st.tokens, value)
}

// RepoOption changes a repository as it is made.
type RepoOption func(*repo)

// Private hides the repository from those without a right of their own.
func Private() RepoOption { return func(r *repo) { r.private = true } }

// Migrated says that the repository was imported from that URL.
func Migrated(url string) RepoOption { return func(r *repo) { r.originalURL = url } }

// AddRepo makes the repository "owner/name".
func (f *Forge) AddRepo(fullName string, opts ...RepoOption) forge.Repo {
	f.mu.Lock()
	defer f.mu.Unlock()
	owner, name, ok := strings.Cut(fullName, "/")
	if r, _ := f.st.repoByName(fullName); !ok || r != nil {
		panic(fmt.Sprintf("forgetest: the repository name %q is taken or not owner/name", fullName))
	}
	f.st.lastRepo++
	r := &repo{id: f.st.lastRepo, owner: f.mustAccount(owner), name: name, collaborators: map[int64]access{}, created: f.clock()}
	for _, opt := range opts {
		opt(r)
	}
	f.st.repos = append(f.st.repos, r)
	delete(f.st.moved, strings.ToLower(fullName))
	return r.neutral()
}

// SkipRepoIDs makes the next repository's id the given one, for fixtures that
// name ids. Ids only ascend.
func (f *Forge) SkipRepoIDs(next int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.st.lastRepo = max(f.st.lastRepo, next-1)
}

// Repo is a repository by its present name.
func (f *Forge) Repo(fullName string) forge.Repo {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.mustRepo(fullName).neutral()
}

// AddCollaborator gives an account a right ("read", "write", "admin") on a
// repository; "none" takes it away.
func (f *Forge) AddCollaborator(fullName, login, right string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	a, ok := parseAccess(right)
	if !ok || a == accessOwner {
		panic(fmt.Sprintf("forgetest: no collaborator's right %q", right))
	}
	f.mustRepo(fullName).collaborators[f.mustAccount(login).id] = a
}

// Rename gives a repository another name, or another owner too ("owner/name"):
// its former name answers 301 until another repository takes it.
func (f *Forge) Rename(fullName, to string) error {
	return f.do(func(st *state) error {
		r := f.mustRepo(fullName)
		owner, name, ok := strings.Cut(to, "/")
		if !ok {
			owner, name = r.owner.login, to
		}
		return f.rename(r, f.mustAccount(owner), name)
	}, "rename %s to %s", fullName, to)
}

// Archive makes a repository read-only, or writable again.
func (f *Forge) Archive(fullName string, archived bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.mustRepo(fullName).archived = archived
}

// DeleteRepo removes a repository with all that is in it.
func (f *Forge) DeleteRepo(fullName string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	st, r := &f.st, f.mustRepo(fullName)
	st.repos = slices.DeleteFunc(st.repos, func(o *repo) bool { return o == r })
	st.issues = slices.DeleteFunc(st.issues, func(i *issue) bool { return i.repo == r })
	st.comments = slices.DeleteFunc(st.comments, func(c *comment) bool { return c.issue.repo == r })
	st.labels = slices.DeleteFunc(st.labels, func(l *label) bool { return l.repo == r })
	st.hooks = slices.DeleteFunc(st.hooks, func(h *hook) bool { return h.repo == r })
}

// ImportComment puts a comment into a thread as a migration does: it belongs to
// the importing account, names its original author, and no hook hears of it.
func (f *Forge) ImportComment(fullName string, number int64, importer, originalAuthor, body string, at time.Time) int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	at = at.UTC().Truncate(time.Second)
	c := &comment{id: f.st.thing(), issue: f.mustIssue(fullName, number), author: f.mustAccount(importer),
		originalAuthor: originalAuthor, body: body, created: at, updated: at}
	f.st.comments = append(f.st.comments, c)
	return c.id
}

// ImportIssue is ImportComment for an issue.
func (f *Forge) ImportIssue(fullName, importer, originalAuthor, title, body string, at time.Time) int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	at = at.UTC().Truncate(time.Second)
	r := f.mustRepo(fullName)
	f.st.lastIssue++
	r.lastIndex++
	f.st.issues = append(f.st.issues, &issue{id: f.st.lastIssue, index: r.lastIndex, repo: r,
		author: f.mustAccount(importer), originalAuthor: originalAuthor, title: title, body: body, created: at, updated: at})
	return r.lastIndex
}

func (f *Forge) mustIssue(fullName string, number int64) *issue {
	i := f.st.issue(f.mustRepo(fullName), number)
	if i == nil {
		panic(fmt.Sprintf("forgetest: no issue %s#%d", fullName, number))
	}
	return i
}
