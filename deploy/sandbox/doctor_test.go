//go:build unix

package main

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	sdk "code.gitea.io/sdk/gitea"

	"playbook-bot/deploy/sandbox/internal/bot"
	"playbook-bot/deploy/sandbox/internal/tracker"
)

// These tests show on the real Gitea that `playbook-bot setup` alone makes a
// working repository of an empty one, and that `playbook-bot doctor` says of
// everything that is then broken that it is, nothing else, and how to mend it.

// adminScopes are what setup's help asks for.
var adminScopes = []string{"write:repository", "write:issue", "read:user"}

// ward is a repository that setup and doctor look after.
type ward struct {
	t      *testing.T // of the whole test
	repo   *tracker.Repo
	config bot.Config
	bot    *bot.Bot
}

// newWard makes a repository without a commit and with two owners, and a bot
// configured for it that has no right in it. Nothing is set up. scopes are the
// administrator's token's.
func newWard(t *testing.T, scopes []string) *ward {
	t.Helper()
	ctx := t.Context()
	owner := must(box.gitea.As(ctx, "olivia"))(t)
	first := must(box.gitea.NewRepo(ctx, tracker.RepoSpec{Owner: "olivia", People: people}))(t)
	ok(t, box.gitea.JoinTeam(ctx, "olivia", first.Org, "Owners", "oscar"))
	made, _, err := owner.CreateOrgRepo(first.Org, sdk.CreateRepoOption{Name: "incidents", Private: true})
	ok(t, err)
	repo := *first
	repo.ID, repo.Name = made.ID, made.Name
	ok(t, repo.Admit(ctx, tracker.Person{Login: "wren", Permission: "write"}))
	must(box.gitea.Account(ctx, botLogin))(t)
	w := &ward{t: t, repo: &repo, config: bot.Config{
		Binary: must(box.botBinary())(t), GiteaURL: box.gitea.URL,
		Token: must(box.gitea.Token(ctx, botLogin, tracker.BotScopes))(t), Secret: rand.Text() + rand.Text(),
		Repositories: []string{repo.FullName()}, Port: must(tracker.FreePort())(t),
		Database: filepath.Join(t.TempDir(), "bot.db"),
		Env:      []string{"ADMIN_TOKEN=" + must(box.gitea.Token(ctx, "olivia", scopes))(t)},
	}}
	w.bot = w.with(t)
	w.config.Env = append(w.config.Env, "PUBLIC_URL="+w.bot.URL)
	w.bot = w.with(t)
	return w
}

// with is the bot's program in the same environment but for some variables.
func (w *ward) with(t *testing.T, env ...string) *bot.Bot {
	t.Helper()
	c := w.config
	c.Env = append(slices.Clone(c.Env), env...)
	return must(bot.New(box.dir, c))(t)
}

// start runs the bot until the whole test ends.
func (w *ward) start() {
	ok(w.t, w.bot.Start(w.t.Context()))
	w.t.Cleanup(func() {
		if err := w.bot.Stop(); err != nil {
			w.t.Error(err)
		}
		if w.t.Failed() {
			w.t.Logf("the end of the bot's log:\n%s", w.bot.Tail(50))
		}
	})
}

type step struct{ Place, What, Action, Detail string }

// setup runs setup and gives what it did.
func (w *ward) setup(t *testing.T, args ...string) (changed int, steps []step) {
	t.Helper()
	out, err := w.bot.Run(t.Context(), append([]string{"setup", "--json"}, args...)...)
	var r struct {
		Changed int
		Steps   []step
	}
	if jsonErr := json.Unmarshal(out, &r); err != nil || jsonErr != nil {
		t.Fatalf("setup %v: %v\n%s", args, err, out)
	}
	return r.Changed, r.Steps
}

type finding struct {
	Check, Place, Status, Detail, Cure string
	Run                                []string
}

// examine runs doctor in some environment; its exit status must fit what it
// found.
func examine(t *testing.T, in *bot.Bot) (red []finding, all []finding) {
	t.Helper()
	out, err := in.Run(t.Context(), "doctor", "--json")
	var r struct {
		OK       bool
		Findings []finding
	}
	if jsonErr := json.Unmarshal(out, &r); jsonErr != nil {
		t.Fatalf("doctor: %v, %v\n%s", err, jsonErr, out)
	}
	for _, f := range r.Findings {
		if f.Status == "failed" {
			red = append(red, f)
		}
	}
	if r.OK != (len(red) == 0) || (err == nil) != r.OK || err != nil && !strings.Contains(err.Error(), "exit status 3") {
		t.Errorf("doctor says ok = %v, ends with %v, and found %d red", r.OK, err, len(red))
	}
	return red, r.Findings
}

// mustBeGreen asks for a check-up without anything red or, unless allowed,
// skipped.
func mustBeGreen(t *testing.T, in *bot.Bot, maySkip ...string) {
	t.Helper()
	_, all := examine(t, in)
	for _, f := range all {
		if f.Status != "ok" && !(f.Status == "skipped" && slices.Contains(maySkip, f.Check)) {
			t.Errorf("%s %s is %s: %s", f.Check, f.Place, f.Status, f.Detail)
		}
	}
}

func TestSetupMakesAnEmptyRepositoryWork(t *testing.T) {
	t.Parallel()
	w := newWard(t, adminScopes)
	would, _ := w.setup(t, "--dry-run", w.repo.FullName())
	changed, steps := w.setup(t, w.repo.FullName())
	if would != changed || changed != 9 { // access, six labels, form, hook
		t.Errorf("%d changes announced, %d made, want 9: %v", would, changed, steps)
	}
	if changed, steps := w.setup(t); changed != 0 {
		t.Errorf("a second run, on REPOSITORIES, changed %d things: %v", changed, steps)
	}
	w.start()
	mustBeGreen(t, w.bot)

	ctx := bounded(t, "an answer after setup alone")
	number := must(w.repo.Open(ctx, "wren", "mcp-search is away", "/recommend transport_eof"))(t)
	thread, err := tracker.Await(ctx, w.repo, number, func(th tracker.Thread) bool { return len(th.After(0, botLogin)) > 0 })
	ok(t, err)
	if strings.Contains(thread.After(0, botLogin)[0].Body, "Not decided") {
		t.Errorf("the bot answers:\n%s", thread.After(0, botLogin)[0].Body)
	}
	// The form is there for people, and is read.
	number = must(w.repo.OpenForm(ctx, "wren", "restart-request.yaml", "mcp-search", map[string]string{"restart_class": "full_mcp_restart", "target": "mcp-search"}))(t)
	thread, err = tracker.Await(ctx, w.repo, number, func(th tracker.Thread) bool { return len(th.After(0, botLogin)) > 0 && len(th.Labels) > 0 })
	ok(t, err)
	if !slices.Contains(thread.Labels, "recovery/refused") {
		t.Errorf("labels %v", thread.Labels)
	}
}

func TestSetupRemove(t *testing.T) {
	t.Parallel()
	w := newWard(t, adminScopes)
	w.setup(t, w.repo.FullName())
	owner := must(box.gitea.As(t.Context(), "olivia"))(t)
	// One label is in use: what happened stays told.
	found, _, err := owner.ListRepoLabels(w.repo.Org, w.repo.Name, sdk.ListLabelsOptions{})
	ok(t, err)
	number := must(w.repo.Open(t.Context(), "olivia", "x", "y"))(t)
	_, _, err = owner.AddIssueLabels(w.repo.Org, w.repo.Name, number, sdk.IssueLabelsOption{Labels: []int64{found[0].ID}})
	ok(t, err)

	w.setup(t, "--remove", w.repo.FullName())
	if changed, steps := w.setup(t, "--remove", w.repo.FullName()); changed != 0 {
		t.Errorf("a second removal changed %d things: %v", changed, steps)
	}
	hooks, _, err := owner.ListRepoHooks(w.repo.Org, w.repo.Name, sdk.ListHooksOptions{})
	ok(t, err)
	left, _, err := owner.ListRepoLabels(w.repo.Org, w.repo.Name, sdk.ListLabelsOptions{})
	ok(t, err)
	is, _, err := owner.IsCollaborator(w.repo.Org, w.repo.Name, botLogin)
	ok(t, err)
	_, _, err = owner.GetContents(w.repo.Org, w.repo.Name, "", ".gitea/ISSUE_TEMPLATE/restart-request.yaml")
	if len(hooks) != 0 || len(left) != 1 || left[0].ID != found[0].ID || is || err == nil {
		t.Errorf("left: hooks %v, labels %v, collaborator %v, form: %v", hooks, left, is, err)
	}
}

func TestSetupLeavesAloneWhatPeopleChanged(t *testing.T) {
	t.Parallel()
	w := newWard(t, adminScopes)
	w.setup(t, w.repo.FullName())
	ctx := t.Context()
	owner := must(box.gitea.As(ctx, "olivia"))(t)
	hooks, _, err := owner.ListRepoHooks(w.repo.Org, w.repo.Name, sdk.ListHooksOptions{})
	ok(t, err)
	on := true
	_, err = owner.EditRepoHook(w.repo.Org, w.repo.Name, hooks[0].ID, sdk.EditHookOption{
		Config: map[string]string{"url": "http://127.0.0.1:9" + strings.TrimPrefix(hooks[0].Config["url"], w.bot.URL)},
		Events: hooks[0].Events, Active: &on, AuthorizationHeader: "Bearer of news"})
	ok(t, err)
	file, _, err := owner.GetContents(w.repo.Org, w.repo.Name, "", ".gitea/ISSUE_TEMPLATE/restart-request.yaml")
	ok(t, err)
	_, _, err = owner.UpdateFile(w.repo.Org, w.repo.Name, file.Path, sdk.UpdateFileOptions{SHA: file.SHA, Content: "bmFtZTogb3VycwphYm91dDogeAo="})
	ok(t, err)

	changed, steps := w.setup(t, w.repo.FullName())
	if changed != 1 { // a hook beside the one that delivers elsewhere
		t.Errorf("%d changes: %v", changed, steps)
	}
	// A proposal instead of a commit, to a repository that has one by now.
	changed, steps = w.setup(t, "--replace", "--pull-request", w.repo.FullName())
	if changed != 2 { // the other hook goes, the form is proposed
		t.Errorf("%d changes: %v", changed, steps)
	}
	if changed, steps = w.setup(t, "--replace", "--pull-request", w.repo.FullName()); changed != 0 {
		t.Errorf("a second run changed %d things: %v", changed, steps)
	}
	pulls, _, err := owner.ListRepoPullRequests(w.repo.Org, w.repo.Name, sdk.ListPullRequestsOptions{State: sdk.StateOpen})
	ok(t, err)
	if len(pulls) != 1 {
		t.Fatalf("%d pull requests", len(pulls))
	}
	if changed, steps = w.setup(t, "--replace", w.repo.FullName()); changed != 1 {
		t.Errorf("%d changes: %v", changed, steps)
	}
}

func TestSetupRepairsAHook(t *testing.T) {
	t.Parallel()
	w := newWard(t, adminScopes)
	w.setup(t, w.repo.FullName())
	owner := must(box.gitea.As(t.Context(), "olivia"))(t)
	hook := func() *sdk.Hook {
		hooks, _, err := owner.ListRepoHooks(w.repo.Org, w.repo.Name, sdk.ListHooksOptions{})
		ok(t, err)
		if len(hooks) != 1 {
			t.Fatalf("%d hooks", len(hooks))
		}
		return hooks[0]
	}
	before, off := hook(), false
	_, err := owner.EditRepoHook(w.repo.Org, w.repo.Name, before.ID, sdk.EditHookOption{
		Config: map[string]string{"content_type": "form"}, Events: []string{"release"}, Active: &off,
		BranchFilter: "main", AuthorizationHeader: "Bearer of news"})
	ok(t, err)
	if changed, steps := w.setup(t, w.repo.FullName()); changed != 1 {
		t.Errorf("%d changes: %v", changed, steps)
	}
	after := hook()
	if !after.Active || after.Config["content_type"] != "json" || after.AuthorizationHeader != "Bearer of news" || after.BranchFilter != "main" || !slices.Contains(after.Events, "release") {
		t.Errorf("repaired to %+v", after)
	}
	if changed, _ := w.setup(t, w.repo.FullName()); changed != 0 {
		t.Error("a repaired hook was repaired again")
	}
	if changed, _ := w.setup(t, "--new-secret", w.repo.FullName()); changed != 2 || hook().ID == before.ID {
		t.Error("--new-secret did not make the hook anew")
	}
}

func TestSetupOrganisation(t *testing.T) {
	t.Parallel()
	w := newWard(t, append([]string{"write:organization"}, adminScopes...))
	args := []string{"--org", w.repo.Org, w.repo.FullName()}
	changed, steps := w.setup(t, args...)
	if changed != 11 { // team, member, repository, six labels, hook, form
		t.Errorf("%d changes: %v", changed, steps)
	}
	if changed, steps := w.setup(t, args...); changed != 0 {
		t.Errorf("a second run changed %d things: %v", changed, steps)
	}
	w.start()
	// No hook of an organisation can be tested; the push of the form's commit
	// may have come through it.
	red, _ := examine(t, w.bot)
	if len(red) > 1 || len(red) == 1 && red[0].Check != "delivery" {
		t.Errorf("red: %+v", red)
	}
	ctx := bounded(t, "an answer through the organisation's hook")
	number := must(w.repo.Open(ctx, "wren", "x", "/restart full_mcp_restart target=mcp-search"))(t)
	_, err := tracker.Await(ctx, w.repo, number, func(th tracker.Thread) bool {
		return len(th.After(0, botLogin)) > 0 && slices.Contains(th.Labels, "recovery/refused")
	})
	ok(t, err)
	mustBeGreen(t, w.bot, "reachability")
	// Without the administrator's token the organisation's hooks are hidden.
	mustBeGreen(t, w.with(t, "ADMIN_TOKEN="), "reachability")

	// The organisation's labels are used: the repository got none of its own.
	owner := must(box.gitea.As(ctx, "olivia"))(t)
	own, _, err := owner.ListRepoLabels(w.repo.Org, w.repo.Name, sdk.ListLabelsOptions{})
	ok(t, err)
	if len(own) != 0 {
		t.Errorf("%d labels were made beside the organisation's", len(own))
	}
	w.setup(t, append([]string{"--remove"}, args...)...)
	if changed, steps := w.setup(t, append([]string{"--remove"}, args...)...); changed != 0 {
		t.Errorf("a second removal changed %d things: %v", changed, steps)
	}
}

// TestDoctorNamesWhatIsBroken breaks each thing that can be broken on a real
// server: exactly that check is red, and its cure, done as it says, makes all
// green again.
func TestDoctorNamesWhatIsBroken(t *testing.T) {
	t.Parallel()
	w := newWard(t, adminScopes)
	w.setup(t, w.repo.FullName())
	w.start()
	mustBeGreen(t, w.bot)
	for _, d := range damages() {
		t.Run(d.name, func(t *testing.T) {
			in, mended := d.breakIt(t, w)
			if in == nil {
				in = w.bot
			}
			red, all := examine(t, in)
			if len(red) != 1 || red[0].Check != d.check {
				t.Fatalf("red: %+v\nall: %+v", red, all)
			}
			if red[0].Cure == "" {
				t.Error("it has no cure")
			}
			if d.lasting {
				in = w.bot
			}
			for _, line := range red[0].Run {
				if d.byHand {
					break
				}
				in = w.follow(t, in, line)
			}
			if mended != nil {
				mended(t)
			}
			mustBeGreen(t, in)
		})
	}
}

// follow does what a line of a cure says, and gives the program as it is to be
// run from then on.
func (w *ward) follow(t *testing.T, in *bot.Bot, line string) *bot.Bot {
	t.Helper()
	words := strings.Fields(line)
	switch {
	case line == "playbook-bot serve":
		w.start()
	case words[0] == "playbook-bot":
		if out, err := in.Run(t.Context(), words[1:]...); err != nil {
			t.Fatalf("%s: %v\n%s", line, err, out)
		}
	case words[0] == "chmod":
		ok(t, os.Chmod(words[2], 0o600))
	case strings.HasPrefix(line, "gitea admin user generate-access-token "):
		// The same through the API, for the account and the scopes it names.
		after := func(flag string) string { return words[slices.Index(words, flag)+1] }
		token := must(box.gitea.Token(t.Context(), after("--username"), strings.Split(after("--scopes"), ",")))(t)
		return w.with(t, "GITEA_TOKEN="+token)
	default:
		t.Fatalf("nobody here to run %q", line)
	}
	return in
}

type damage struct {
	name, check string
	// breakIt gives the program to ask, if it must be another environment, and
	// what a person does to mend it beside the lines of the cure.
	breakIt func(*testing.T, *ward) (in *bot.Bot, mended func(*testing.T))
	// lasting: the environment was what is broken, and mending is to leave it.
	lasting bool
	// byHand: the cure is in its words; its lines are for another reading.
	byHand bool
}

func damages() []damage {
	return []damage{
		{name: "hook deleted", check: "hook", breakIt: func(t *testing.T, w *ward) (*bot.Bot, func(*testing.T)) {
			w.hook(t, func(c *sdk.Client, h *sdk.Hook) error {
				_, err := c.DeleteRepoHook(w.repo.Org, w.repo.Name, h.ID)
				return err
			})
			return nil, nil
		}},
		{name: "hook switched off", check: "hook", breakIt: func(t *testing.T, w *ward) (*bot.Bot, func(*testing.T)) {
			w.hook(t, func(c *sdk.Client, h *sdk.Hook) error {
				off := false
				_, err := c.EditRepoHook(w.repo.Org, w.repo.Name, h.ID, sdk.EditHookOption{Active: &off, Events: h.Events})
				return err
			})
			return nil, nil
		}},
		{name: "hook without comments", check: "hook", breakIt: func(t *testing.T, w *ward) (*bot.Bot, func(*testing.T)) {
			w.hook(t, func(c *sdk.Client, h *sdk.Hook) error {
				on := true
				_, err := c.EditRepoHook(w.repo.Org, w.repo.Name, h.ID, sdk.EditHookOption{Active: &on, Events: []string{"issues_only", "push"}})
				return err
			})
			return nil, nil
		}},
		{name: "hook with another secret", check: "reachability", breakIt: func(t *testing.T, w *ward) (*bot.Bot, func(*testing.T)) {
			w.hook(t, func(c *sdk.Client, h *sdk.Hook) error {
				if _, err := c.DeleteRepoHook(w.repo.Org, w.repo.Name, h.ID); err != nil {
					return err
				}
				option := tracker.HookOption(h.Config["url"], "not this one")
				option.Events = append(option.Events, "push")
				_, _, err := c.CreateRepoHook(w.repo.Org, w.repo.Name, option)
				return err
			})
			return nil, nil
		}},
		{name: "hook to another address", check: "hook", breakIt: func(t *testing.T, w *ward) (*bot.Bot, func(*testing.T)) {
			w.hook(t, func(c *sdk.Client, h *sdk.Hook) error {
				on := true
				_, err := c.EditRepoHook(w.repo.Org, w.repo.Name, h.ID, sdk.EditHookOption{Active: &on, Events: h.Events,
					Config: map[string]string{"url": "http://127.0.0.1:9" + strings.TrimPrefix(h.Config["url"], w.bot.URL)}})
				return err
			})
			return nil, nil
		}},
		{name: "right taken away", check: "rights", breakIt: func(t *testing.T, w *ward) (*bot.Bot, func(*testing.T)) {
			ok(t, w.repo.Admit(t.Context(), tracker.Person{Login: botLogin, Permission: "write"}))
			return nil, nil
		}},
		{name: "collaboration ended", check: "repository", breakIt: func(t *testing.T, w *ward) (*bot.Bot, func(*testing.T)) {
			owner := must(box.gitea.As(t.Context(), "olivia"))(t)
			_, err := owner.DeleteCollaborator(w.repo.Org, w.repo.Name, botLogin)
			ok(t, err)
			return nil, nil
		}},
		{name: "second owner gone", check: "approvers", breakIt: func(t *testing.T, w *ward) (*bot.Bot, func(*testing.T)) {
			owner := must(box.gitea.As(t.Context(), "olivia"))(t)
			_, err := owner.DeleteOrgMembership(w.repo.Org, "oscar")
			ok(t, err)
			return nil, func(t *testing.T) {
				ok(t, box.gitea.JoinTeam(t.Context(), "olivia", w.repo.Org, "Owners", "oscar"))
			}
		}},
		{name: "repository's playbook mistyped", check: "overlay", byHand: true, breakIt: func(t *testing.T, w *ward) (*bot.Bot, func(*testing.T)) {
			const path = ".gitea/recovery-playbook.yaml"
			ok(t, w.repo.Write(t.Context(), "olivia", path, []byte("tighten:\n  - {action: host_restart, disabled: true}\n")))
			return nil, func(t *testing.T) {
				ok(t, w.repo.Write(t.Context(), "olivia", path, []byte("tighten:\n  - {action: host_restart, disable: true}\n")))
				mustBeGreen(t, w.bot)
				ok(t, w.repo.Write(t.Context(), "olivia", path, nil))
			}
		}},
		{name: "repository renamed", check: "repository", breakIt: func(t *testing.T, w *ward) (*bot.Bot, func(*testing.T)) {
			ok(t, w.repo.Rename(t.Context(), "outages"))
			return nil, func(t *testing.T) { ok(t, w.repo.Rename(t.Context(), "incidents")) }
		}},
		{name: "bot stopped", check: "bot", breakIt: func(t *testing.T, w *ward) (*bot.Bot, func(*testing.T)) {
			ok(t, w.bot.Stop())
			return nil, nil
		}},
		environment("address", "address", "GITEA_URL=http://127.0.0.1:9"),
		environment("token revoked", "token", "GITEA_TOKEN=0123456789012345678901234567890123456789"),
		{name: "database elsewhere", check: "database", lasting: true, byHand: true, breakIt: func(t *testing.T, w *ward) (*bot.Bot, func(*testing.T)) {
			return w.with(t, "DATABASE_URL=sqlite:"+filepath.Join(t.TempDir(), "none.db")), nil
		}},
		environment("variable mistyped", "configuration", "WORKERS=many"),
		environment("secret to be guessed", "secrets", "PLAYBOOK_SECRET="+strings.Repeat("ab", 20)),
		{name: "playbook broken", check: "playbook", lasting: true, breakIt: func(t *testing.T, w *ward) (*bot.Bot, func(*testing.T)) {
			path := filepath.Join(t.TempDir(), "playbook.yaml")
			ok(t, os.WriteFile(path, []byte("version: 1\nrungs: 7\n"), 0o600))
			return w.with(t, "PLAYBOOK_FILE="+path), nil
		}},
		{name: "secret's file open to all", check: "secrets", breakIt: func(t *testing.T, w *ward) (*bot.Bot, func(*testing.T)) {
			path := filepath.Join(t.TempDir(), "token")
			ok(t, os.WriteFile(path, []byte(w.config.Token), 0o600))
			ok(t, os.Chmod(path, 0o644))
			return w.with(t, "GITEA_TOKEN=", "GITEA_TOKEN_FILE="+path), nil
		}},
		{name: "token without write:issue", check: "scopes", lasting: true, breakIt: func(t *testing.T, w *ward) (*bot.Bot, func(*testing.T)) {
			return w.narrow(t, "read:issue", "read:repository", "read:user", "read:organization"), nil
		}},
		{name: "token without read:repository", check: "scopes", lasting: true, breakIt: func(t *testing.T, w *ward) (*bot.Bot, func(*testing.T)) {
			return w.narrow(t, "write:issue", "read:user", "read:organization"), nil
		}},
		{name: "token without read:user", check: "scopes", lasting: true, breakIt: func(t *testing.T, w *ward) (*bot.Bot, func(*testing.T)) {
			return w.narrow(t, "write:issue", "read:repository", "read:organization"), nil
		}},
	}
}

func environment(name, check string, env ...string) damage {
	return damage{name: name, check: check, lasting: true, breakIt: func(t *testing.T, w *ward) (*bot.Bot, func(*testing.T)) {
		return w.with(t, env...), nil
	}}
}

// narrow is the program with a token of fewer scopes.
func (w *ward) narrow(t *testing.T, scopes ...string) *bot.Bot {
	t.Helper()
	return w.with(t, "GITEA_TOKEN="+must(box.gitea.Token(context.WithoutCancel(t.Context()), botLogin, scopes))(t))
}

// hook does something to the repository's one hook.
func (w *ward) hook(t *testing.T, do func(*sdk.Client, *sdk.Hook) error) {
	t.Helper()
	owner := must(box.gitea.As(t.Context(), "olivia"))(t)
	hooks, _, err := owner.ListRepoHooks(w.repo.Org, w.repo.Name, sdk.ListHooksOptions{})
	if err == nil && len(hooks) != 1 {
		err = fmt.Errorf("%d hooks", len(hooks))
	}
	ok(t, err)
	ok(t, do(owner, hooks[0]))
}
