package setup

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"playbook-bot/bot/forge"
)

// world is a tracker in memory, for what a real one cannot be brought to do in
// a test. It checks no rights beyond what a test asks of it; the real rules are
// held in deploy/sandbox.
type world struct {
	traits   forge.Traits
	version  forge.Version
	self     forge.Account
	errs     map[string]error // by the method's name
	repos    []*wrepo
	orgHooks []forge.Hook
	orgLabel []forge.LabelFound
	teams    []*wteam
	accounts []forge.Account
	lastID   int64
	writes   int
	tested   func(hook int64)
}

type wrepo struct {
	forge.Repo
	hooks  []forge.Hook
	labels []forge.LabelFound
	used   map[string]bool
	files  map[string]string // branch + ":" + path → content; "" is the default branch
	pulls  map[string]int64
	perms  map[string]forge.Permission
	collab map[string]bool
}

type wteam struct {
	forge.Team
	members []forge.Account
	repos   []forge.Repo
}

const orgID = 7

func newWorld() *world {
	w := &world{version: forge.Version{Text: "1.26.0", Known: true, Enough: true, Date: noon}, self: forge.Account{ID: 1, Login: "playbook-bot"}, errs: map[string]error{}, lastID: 100}
	w.traits = forge.Traits{OrgLabels: true, Needs: forge.PermissionAdmin, FormDir: ".gitea"}
	w.accounts = []forge.Account{w.self, {ID: 2, Login: "ada"}, {ID: 3, Login: "bob"}, {ID: 4, Login: "cy"}, {ID: orgID, Login: "ops"}}
	for i, name := range []string{"incidents", "infra"} {
		w.repos = append(w.repos, &wrepo{
			Repo:  forge.Repo{ID: 41 + int64(i), Owner: "ops", OwnerID: orgID, Name: name},
			used:  map[string]bool{},
			files: map[string]string{":README.md": "x"}, pulls: map[string]int64{}, collab: map[string]bool{},
			perms: map[string]forge.Permission{"ada": "owner", "bob": "owner", "cy": "write"},
		})
	}
	return w
}

func (w *world) id() int64 { w.lastID++; return w.lastID }

func notFound(op string) error {
	return &forge.Error{Op: op, Status: 404, Kind: forge.ErrNotFound, FromForge: true}
}

func (w *world) repo(id int64) *wrepo {
	for _, r := range w.repos {
		if r.ID == id {
			return r
		}
	}
	panic(fmt.Sprintf("no repository %d", id))
}

func (w *world) Name() string { return "gitea" }

func (w *world) Traits() forge.Traits { return w.traits }

func (w *world) Version(context.Context) (forge.Version, error) { return w.version, w.errs["Version"] }

func (w *world) Self(context.Context) (forge.Account, error) { return w.self, w.errs["Self"] }

func (w *world) AccountByLogin(_ context.Context, login string) (forge.Account, error) {
	for _, a := range w.accounts {
		if strings.EqualFold(a.Login, login) {
			return a, w.errs["AccountByLogin"]
		}
	}
	return forge.Account{}, notFound("account")
}

func (w *world) RepoByName(_ context.Context, owner, name string) (forge.Repo, error) {
	if err := w.errs["RepoByName"]; err != nil {
		return forge.Repo{}, err
	}
	for _, r := range w.repos {
		if strings.EqualFold(r.Owner, owner) && (strings.EqualFold(r.Name, name) || name == "former") {
			return r.Repo, nil
		}
	}
	return forge.Repo{}, notFound("repository")
}

func (w *world) ReposOf(_ context.Context, owner string) ([]forge.Repo, error) {
	var out []forge.Repo
	for _, r := range w.repos {
		if r.Owner == owner {
			out = append(out, r.Repo)
		}
	}
	return out, w.errs["ReposOf"]
}

func (w *world) Permission(_ context.Context, repo int64, login string) (forge.Permission, int64, error) {
	if err := cmp.Or(w.errs["Permission"], w.errs["Permission "+login]); err != nil {
		return "", 0, err
	}
	a, err := w.AccountByLogin(context.Background(), login)
	if err != nil {
		return "", 0, err
	}
	r := w.repo(repo)
	for _, t := range w.teams {
		if t.Admin && slices.Contains(t.members, a) && slices.ContainsFunc(t.repos, func(o forge.Repo) bool { return o.ID == repo }) {
			return forge.PermissionOwner, a.ID, nil
		}
	}
	return cmp.Or(r.perms[login], forge.PermissionRead), a.ID, nil
}

func (w *world) Writers(_ context.Context, repo int64) ([]forge.Account, error) {
	var out []forge.Account
	for _, a := range w.accounts {
		if p := w.repo(repo).perms[a.Login]; p != "" && p != forge.PermissionRead {
			out = append(out, a)
		}
	}
	return out, w.errs["Writers"]
}

func (w *world) TeamMember(_ context.Context, org, team, login string) (bool, error) {
	return team == "oncall" && login == "cy", w.errs["TeamMember"]
}

func (w *world) React(context.Context, int64, int64, forge.Object, forge.Reaction, bool) error {
	return cmp.Or(w.errs["React"], notFound("issue"))
}

func (w *world) hooksAt(p forge.Place) *[]forge.Hook {
	if p.Org != "" {
		return &w.orgHooks
	}
	return &w.repo(p.Repo).hooks
}

func (w *world) Hooks(_ context.Context, p forge.Place) ([]forge.Hook, error) {
	if err := cmp.Or(w.errs["Hooks"], w.errs["Hooks "+p.Org]); err != nil {
		return nil, err
	}
	return slices.Clone(*w.hooksAt(p)), nil
}

func goodHook(id int64, url string) forge.Hook {
	return forge.Hook{ID: id, URL: url, Active: true, JSON: true, Testable: true}
}

func (w *world) CreateHook(_ context.Context, p forge.Place, spec forge.HookSpec) (int64, error) {
	w.writes++
	h := goodHook(w.id(), spec.URL)
	*w.hooksAt(p) = append(*w.hooksAt(p), h)
	return h.ID, nil
}

func (w *world) EditHook(_ context.Context, p forge.Place, id int64, spec forge.HookSpec) error {
	w.writes++
	list := *w.hooksAt(p)
	i := slices.IndexFunc(list, func(h forge.Hook) bool { return h.ID == id })
	list[i] = goodHook(id, spec.URL)
	return nil
}

func (w *world) DeleteHook(_ context.Context, p forge.Place, id int64) error {
	w.writes++
	*w.hooksAt(p) = slices.DeleteFunc(*w.hooksAt(p), func(h forge.Hook) bool { return h.ID == id })
	return nil
}

func (w *world) TestHook(_ context.Context, _ forge.Place, hook int64) error {
	if w.tested != nil {
		w.tested(hook)
	}
	return w.errs["TestHook"]
}

func (w *world) labelsAt(p forge.Place) *[]forge.LabelFound {
	if p.Org != "" {
		return &w.orgLabel
	}
	return &w.repo(p.Repo).labels
}

func (w *world) Labels(_ context.Context, p forge.Place) ([]forge.LabelFound, error) {
	return slices.Clone(*w.labelsAt(p)), w.errs["Labels"]
}

func (w *world) CreateLabel(_ context.Context, p forge.Place, spec forge.LabelSpec) error {
	w.writes++
	*w.labelsAt(p) = append(*w.labelsAt(p), forge.LabelFound{ID: w.id(), LabelSpec: spec})
	return w.errs["CreateLabel"]
}

func (w *world) EditLabel(_ context.Context, p forge.Place, have forge.LabelFound, spec forge.LabelSpec) error {
	w.writes++
	list := *w.labelsAt(p)
	list[slices.IndexFunc(list, func(l forge.LabelFound) bool { return l.ID == have.ID })].LabelSpec = spec
	return nil
}

func (w *world) DeleteLabel(_ context.Context, p forge.Place, have forge.LabelFound) error {
	w.writes++
	*w.labelsAt(p) = slices.DeleteFunc(*w.labelsAt(p), func(l forge.LabelFound) bool { return l.ID == have.ID })
	return nil
}

func (w *world) LabelInUse(_ context.Context, p forge.Place, name string) (bool, error) {
	if p.Org == "" {
		return w.repo(p.Repo).used[name], nil
	}
	return slices.ContainsFunc(w.repos, func(r *wrepo) bool { return r.used[name] }), nil
}

func (w *world) ReadFile(_ context.Context, repo int64, path, branch string) (forge.File, error) {
	content, ok := w.repo(repo).files[branch+":"+path]
	if !ok {
		return forge.File{}, notFound("file")
	}
	return forge.File{Content: []byte(content), Version: "v:" + content}, nil
}

func (w *world) File(_ context.Context, repo int64, path string) ([]byte, string, error) {
	content, ok := w.repo(repo).files[":"+path]
	if !ok {
		return nil, "", notFound("file")
	}
	return []byte(content), "0123456789abcdef0123456789abcdef01234567", w.errs["File"]
}

func (w *world) ChangeFile(_ context.Context, repo int64, c forge.FileChange) error {
	w.writes++
	if err := w.errs["ChangeFile"]; err != nil {
		return err
	}
	r := w.repo(repo)
	if have, ok := r.files[":"+c.Path]; ok != (c.Version != "") || ok && c.Version != "v:"+have {
		return &forge.Error{Op: "commit", Status: 409, Kind: forge.ErrPermanent}
	}
	if c.Content == nil {
		delete(r.files, c.NewBranch+":"+c.Path)
	} else {
		r.files[c.NewBranch+":"+c.Path] = string(c.Content)
	}
	return nil
}

func (w *world) OpenPull(_ context.Context, repo int64, branch, _, _ string) (int64, error) {
	w.writes++
	n := w.id()
	w.repo(repo).pulls[branch] = n
	return n, nil
}

func (w *world) PullOf(_ context.Context, repo int64, branch string) (int64, error) {
	return w.repo(repo).pulls[branch], nil
}

func (w *world) DeleteBranch(context.Context, int64, string) error { return notFound("branch") }

func (w *world) IsCollaborator(_ context.Context, repo int64, login string) (bool, error) {
	return w.repo(repo).collab[login], nil
}

func (w *world) Admit(_ context.Context, repo int64, login string) error {
	w.writes++
	w.repo(repo).perms[login], w.repo(repo).collab[login] = forge.PermissionAdmin, true
	return nil
}

func (w *world) RemoveCollaborator(_ context.Context, repo int64, login string) error {
	w.writes++
	delete(w.repo(repo).perms, login)
	delete(w.repo(repo).collab, login)
	return nil
}

func (w *world) team(id int64) *wteam {
	return w.teams[slices.IndexFunc(w.teams, func(t *wteam) bool { return t.ID == id })]
}

func (w *world) Teams(context.Context, string) ([]forge.Team, error) {
	var out []forge.Team
	for _, t := range w.teams {
		out = append(out, t.Team)
	}
	return out, w.errs["Teams"]
}

func (w *world) CreateTeam(_ context.Context, _, name, _ string) (forge.Team, error) {
	w.writes++
	t := &wteam{Team: forge.Team{ID: w.id(), Name: name, Admin: true}}
	w.teams = append(w.teams, t)
	return t.Team, nil
}

func (w *world) EditTeam(_ context.Context, _ string, t forge.Team) error {
	w.writes++
	w.team(t.ID).Admin = true
	return nil
}

func (w *world) DeleteTeam(_ context.Context, _ string, tm forge.Team) error {
	w.writes++
	w.teams = slices.DeleteFunc(w.teams, func(t *wteam) bool { return t.ID == tm.ID })
	return nil
}

func (w *world) TeamMembers(_ context.Context, _ string, tm forge.Team) ([]forge.Account, error) {
	return w.team(tm.ID).members, nil
}

func (w *world) AddTeamMember(_ context.Context, _ string, tm forge.Team, login string) error {
	w.writes++
	a, err := w.AccountByLogin(context.Background(), login)
	w.team(tm.ID).members = append(w.team(tm.ID).members, a)
	return err
}

func (w *world) TeamRepos(_ context.Context, _ string, tm forge.Team) ([]forge.Repo, error) {
	return slices.Clone(w.team(tm.ID).repos), nil
}

func (w *world) AddTeamRepo(_ context.Context, _ string, tm forge.Team, r forge.Repo) error {
	w.writes++
	w.team(tm.ID).repos = append(w.team(tm.ID).repos, r)
	return nil
}

func (w *world) RemoveTeamRepo(_ context.Context, _ string, tm forge.Team, r forge.Repo) error {
	w.writes++
	w.team(tm.ID).repos = slices.DeleteFunc(w.team(tm.ID).repos, func(o forge.Repo) bool { return o.ID == r.ID })
	return nil
}

var (
	_ Admin  = (*world)(nil)
	_ Probe  = (*world)(nil)
	_ Tester = (*world)(nil)
)
