package setup

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"playbook-bot/bot/forge"
	"playbook-bot/bot/webhook"
	"playbook-bot/playbook"
)

// repository checks one repository: rights, its own playbook, approvers, hook,
// deliveries.
func (c *checker) repository(ctx context.Context, t target) {
	name := t.repo.FullName()
	admin := c.rights(ctx, t.repo)
	book := c.overlay(ctx, t.repo)
	switch {
	case c.Playbook == nil:
		c.skip("approvers", name, "no playbook can be read")
	case !t.named:
		c.skip("approvers", name, "gated rungs are approved only in repositories named in full")
	case !admin:
		c.skip("approvers", name, "who may what cannot be read with so little")
	default:
		c.approvers(ctx, t.repo, book)
	}
	find := c.hook
	if c.App {
		find = c.appHook
	}
	at, ok := find(ctx, t.repo, admin)
	if !ok {
		c.skip("reachability", name, "it has no hook to test")
		c.skip("delivery", name, "it has no hook to look at")
		return
	}
	c.delivery(ctx, name, at, c.reachability(ctx, name, at))
}

// overlay checks the repository's own playbook, and gives what holds there.
func (c *checker) overlay(ctx context.Context, repo forge.Repo) *playbook.Playbook {
	name := repo.FullName()
	if c.Playbook == nil {
		c.skip("overlay", name, "no playbook can be read")
		return nil
	}
	for _, path := range forge.PlaybookPaths(c.Forge.Name()) {
		content, commit, err := c.Forge.File(ctx, repo.ID, path)
		if errors.Is(err, forge.ErrNotFound) {
			continue
		}
		if err != nil {
			c.fail("overlay", name, path+" could not be read: "+err.Error(),
				"Until it can be, its last version that could be used holds, and without one no gated rung is approved. It must be a file; is it a link or a directory?")
			return c.Playbook
		}
		o, err := playbook.LoadOverlay(bytes.NewReader(content))
		if err == nil {
			var book *playbook.Playbook
			if book, err = c.Playbook.Tighten(o); err == nil {
				c.ok("overlay", name, "%s at commit %s tightens the playbook", path, shortenTo(commit, 12))
				return book
			}
		}
		c.fail("overlay", name, path+" cannot be used: "+firstFault(err),
			"Until it is mended, its last version that could be used holds, and without one no gated rung is approved. Mend it on the default branch; in a checkout this says every fault:",
			"playbook-bot playbook check "+path)
		return c.Playbook
	}
	c.ok("overlay", name, "it has no playbook of its own")
	return c.Playbook
}

// firstFault is the first fault of a playbook and how many more there are. What
// it quotes of the file is kept to a line.
func firstFault(err error) string {
	faults := playbook.Faults(err)
	if len(faults) == 0 {
		return shortenTo(err.Error(), 200)
	}
	text := shortenTo(faults[0].Error(), 200)
	if n := len(faults) - 1; n > 0 {
		text += fmt.Sprintf(" (and %d more)", n)
	}
	return text
}

func (c *checker) rights(ctx context.Context, repo forge.Repo) bool {
	name := repo.FullName()
	if c.App {
		return c.appRights(ctx, repo)
	}
	perm, _, err := c.Forge.Permission(ctx, repo.ID, c.self.Login)
	switch {
	case err == nil && suffices(perm, c.Forge.Traits().Needs):
		c.ok("rights", name, "%s has %s", c.self.Login, perm)
		return true
	case err == nil || errors.Is(err, forge.ErrUnverified):
		has := "less than " + string(c.Forge.Traits().Needs)
		if err == nil {
			has = string(perm)
		}
		c.fail("rights", name, c.self.Login+" has "+has+": it cannot read who may approve what, and decides nothing",
			"Give it "+string(c.Forge.Traits().Needs)+", with an administrator's token in ADMIN_TOKEN.", "playbook-bot setup "+name+c.Args)
	default:
		c.fail("rights", name, "they could not be read: "+err.Error(), "Look again in a moment; then at the forge's log.")
	}
	return false
}

// approversNeeded is how many accounts must be able to approve each gated rung:
// nobody endorses himself, so with one the incident waits for him to ask.
const approversNeeded = 2

// maxApprovers bounds how many accounts are asked about, a call each.
const maxApprovers = 200

// approvers looks who could approve by book, the playbook that holds there.
func (c *checker) approvers(ctx context.Context, repo forge.Repo, book *playbook.Playbook) {
	name := repo.FullName()
	people, more, err := c.candidates(ctx, repo)
	if err != nil {
		c.skip("approvers", name, "they could not be listed: %s", err)
		return
	}
	rungs := gated(book)
	may := map[string][]string{} // action → logins
	for _, a := range people {
		perm, id, err := c.Forge.Permission(ctx, repo.ID, a.Login)
		if err != nil && !errors.Is(err, forge.ErrNotFound) {
			c.skip("approvers", name, "the permission of an account could not be read: %s", err)
			return
		}
		if err != nil || id != a.ID {
			continue
		}
		s := playbook.Standing{Permission: standing(perm), Roles: c.rolesOf(ctx, a)}
		for _, r := range rungs {
			if book.Matrix(r.Action, s, a.Login).Allowed {
				may[r.Action] = append(may[r.Action], a.Login)
			}
		}
	}
	var all, short []string
	for _, r := range rungs {
		logins := may[r.Action]
		text := fmt.Sprintf("rank %d: %s", r.Rank, listOr(logins, "nobody"))
		all = append(all, text)
		if len(logins) < approversNeeded && !more {
			short = append(short, fmt.Sprintf("%s (rank %d) needs %s", r.Action, r.Rank, r.Standing))
		}
	}
	if len(short) == 0 {
		c.ok("approvers", name, "%s", cmp.Or(strings.Join(all, "; "), "no gated rung is left"))
		return
	}
	c.fail("approvers", name, "fewer than two accounts could approve: "+strings.Join(all, "; "),
		"Nobody endorses himself, so two are needed for each: "+strings.Join(short, "; ")+
			". Give another account that right (on the forge: Settings → Collaborators; owner: the organisation's team Owners), "+
			"or name people in the playbook's roles.")
}

// gated are the rungs that only a request can open.
func gated(book *playbook.Playbook) []playbook.Rung {
	return slices.DeleteFunc(book.Rungs(), func(r playbook.Rung) bool { return !r.Gated || r.Disabled })
}

// candidates are the accounts that may write, and those the playbook names;
// the bot itself is none.
func (c *checker) candidates(ctx context.Context, repo forge.Repo) (people []forge.Account, more bool, err error) {
	list, err := c.Forge.Writers(ctx, repo.ID)
	if err != nil {
		return nil, false, err
	}
	for _, m := range c.Playbook.RolesOn(c.Forge.Name()) {
		if strings.Contains(m.Member, "/") {
			continue
		}
		if a, err := c.Forge.AccountByLogin(ctx, m.Member); err == nil {
			list = append(list, a)
		}
	}
	seen := map[int64]bool{c.self.ID: true}
	for _, a := range list {
		if !seen[a.ID] {
			seen[a.ID] = true
			people = append(people, a)
		}
	}
	if len(people) > maxApprovers {
		return people[:maxApprovers], true, nil
	}
	return people, false, nil
}

func (c *checker) rolesOf(ctx context.Context, a forge.Account) []string {
	roles := []string{}
	for _, m := range c.Playbook.RolesOn(c.Forge.Name()) {
		org, team, isTeam := strings.Cut(m.Member, "/")
		has := strings.EqualFold(m.Member, a.Login)
		if isTeam {
			has, _ = c.Forge.TeamMember(ctx, org, team, a.Login) // roles said so if it cannot be read
		}
		if has && !slices.Contains(roles, m.Role) {
			roles = append(roles, m.Role)
		}
	}
	return roles
}

func standing(p forge.Permission) playbook.Permission {
	known, err := playbook.ParsePermission(string(p))
	if err != nil {
		return playbook.PermissionNone
	}
	return known
}

func listOr(list []string, none string) string {
	if len(list) == 0 {
		return none
	}
	return strings.Join(list, ", ")
}

// hooked is the hook that serves a repository.
type hooked struct {
	path string
	// id is 0 where the hook could not be looked at, and org that it is the
	// organisation's.
	id       int64
	place    forge.Place
	org      bool
	testable bool
}

// hook looks for the repository's hook, and where there is none, for its
// organisation's.
func (c *checker) hook(ctx context.Context, repo forge.Repo, admin bool) (hooked, bool) {
	name := repo.FullName()
	path := webhook.HookPath(c.Forge.Name(), webhook.ScopeRepo, repo.ID)
	orgPath := webhook.HookPath(c.Forge.Name(), webhook.ScopeOrg, repo.OwnerID)
	list, err := c.hooks(ctx, forge.Place{Repo: repo.ID})
	if err != nil && !errors.Is(err, forge.ErrUnverified) {
		c.fail("hook", name, "the hooks could not be listed: "+err.Error(), "Look again in a moment; then at the forge's log.")
		return hooked{}, false
	}
	if err == nil {
		if at, found, done := c.judge(name, "setup "+name, path, list, forge.Place{Repo: repo.ID}); done {
			return at, found
		}
	}
	orgList, orgErr := c.hooks(ctx, forge.Place{Org: repo.Owner})
	if orgErr == nil {
		if at, found, done := c.judge(name, "setup --org "+repo.Owner+" "+name, orgPath, orgList, forge.Place{Org: repo.Owner}); done {
			return at, found
		}
	}
	if c.Record != nil && orgErr != nil {
		// The organisation's hooks are hidden from the bot; what they sent is not.
		if rec, err := c.Record(ctx, orgPath); err == nil && !rec.AcceptedAt.IsZero() {
			c.ok("hook", name, "the organisation's, by what came through it")
			return hooked{path: orgPath, place: forge.Place{Org: repo.Owner}, org: true}, true
		}
	}
	if err != nil && !admin {
		c.skip("hook", name, "the hooks cannot be listed with so little")
		return hooked{}, false
	}
	c.fail("hook", name, "no hook delivers to "+c.PublicURL+path,
		"Make it, with an administrator's token in ADMIN_TOKEN.", "playbook-bot setup "+name+c.Args)
	return hooked{}, false
}

// hooks lists with the administrator's token where there is one.
func (c *checker) hooks(ctx context.Context, p forge.Place) ([]forge.Hook, error) {
	if c.Tester != nil {
		if list, err := c.Tester.Hooks(ctx, p); err == nil {
			return list, nil
		}
	}
	return c.Forge.Hooks(ctx, p)
}

// judge looks at the hooks of one place; done is false where none is the
// bot's. repair is the command's end that mends it.
func (c *checker) judge(name, repair, path string, list []forge.Hook, place forge.Place) (at hooked, found, done bool) {
	s := hooksOf(list, c.PublicURL, path)
	if len(s.ours) == 0 && c.Assumed {
		// Nobody said what the bot's address is, so the hook's may be right.
		s.ours, s.others = s.others, nil
	}
	switch {
	case len(s.ours) > 0:
	case len(s.others) > 0:
		c.fail("hook", name, fmt.Sprintf("hook %d delivers to %s, and PUBLIC_URL is %s", s.others[0].ID, hostOf(s.others[0].URL), c.PublicURL),
			"Correct PUBLIC_URL; or have the hook replaced, with an administrator's token in ADMIN_TOKEN.", "playbook-bot "+repair+c.Args+" --replace")
		return hooked{}, false, true
	default:
		return hooked{}, false, false
	}
	// Any whole one will do: the others say the same again.
	i := max(0, slices.IndexFunc(s.ours, func(h forge.Hook) bool { return len(faults(h)) == 0 }))
	h := s.ours[i]
	if bad := faults(h); len(bad) > 0 {
		c.fail("hook", name, fmt.Sprintf("hook %d: %s", h.ID, strings.Join(bad, "; ")),
			"Repair it, with an administrator's token in ADMIN_TOKEN.", "playbook-bot "+repair+c.Args)
		return hooked{}, false, true
	}
	whose := ""
	if place.Org != "" {
		whose = " of the organisation"
	}
	c.ok("hook", name, "hook %d%s", h.ID, whose)
	return hooked{path: path, id: h.ID, place: place, org: place.Org != "", testable: h.Testable}, true, true
}

// reachability has the forge send a test delivery and waits for it to come. Its
// status is that of the finding.
func (c *checker) reachability(ctx context.Context, name string, at hooked) Status {
	skip := func(why string) Status {
		c.skip("reachability", name, "%s", why)
		return Skipped
	}
	switch {
	case c.App:
		return skip("an app's hook has no test delivery; its page can send the last one again")
	case at.org && (!c.Forge.Traits().OrgTest || at.id == 0):
		return skip("an organisation's hook has no test delivery")
	case c.Tester == nil:
		return skip("a test delivery needs an administrator's token in ADMIN_TOKEN")
	case !c.Running:
		return skip("the bot is not running")
	case c.Record == nil:
		return skip("the bot's record of deliveries cannot be read")
	case !at.testable:
		return skip("the hook does not send what test deliveries are: playbook-bot " + c.repair(name, at))
	}
	before, err := c.Record(ctx, at.path)
	if err != nil {
		return skip("the bot's record of deliveries cannot be read")
	}
	if err := c.Tester.TestHook(ctx, at.place, at.id); err != nil {
		return skip("no test delivery could be ordered: " + err.Error())
	}
	after, came := c.await(ctx, at.path, before)
	switch {
	case !came:
		c.fail("reachability", name, fmt.Sprintf("no test delivery came within %s", c.Patience),
			"Does the forge reach "+c.PublicURL+"? Gitea says what became of it in the hook's page, under Recent Deliveries. "+
				"For a private or loopback address its app.ini must have, under [webhook]: ALLOWED_HOST_LIST = external,private,loopback. "+
				"A repository without a commit sends no test. And is DATABASE_URL here the one the running bot has?")
	case after.AcceptedAt.After(before.AcceptedAt):
		c.ok("reachability", name, "a test delivery came and was taken")
		return OK
	case after.Status == 401:
		c.fail("reachability", name, "a delivery came and its signature did not fit: the hook has another secret",
			"Make the hook anew, with an administrator's token in ADMIN_TOKEN.", "playbook-bot "+c.repair(name, at)+" --new-secret")
	default:
		c.fail("reachability", name, fmt.Sprintf("a delivery came and was refused with %d: %s", after.Status, after.Why),
			"Make the hook anew, with an administrator's token in ADMIN_TOKEN.", "playbook-bot "+c.repair(name, at)+" --new-secret")
	}
	return Failed
}

// await waits until the record of a path is no longer what it was.
func (c *checker) await(ctx context.Context, path string, before webhook.Record) (webhook.Record, bool) {
	ctx, cancel := context.WithTimeout(ctx, c.Patience)
	defer cancel()
	tick := time.NewTicker(c.Poll)
	defer tick.Stop()
	for {
		after, err := c.Record(ctx, path)
		if err == nil && after != before {
			return after, true
		}
		select {
		case <-ctx.Done():
			return before, false
		case <-tick.C:
		}
	}
}

// delivery looks at the last delivery, unless a test of just now says more.
func (c *checker) delivery(ctx context.Context, name string, at hooked, tested Status) {
	if tested == Failed {
		c.skip("delivery", name, "see reachability")
		return
	}
	if t, ok := c.Tester.(Teller); ok && at.id != 0 && tested != OK {
		c.told(ctx, t, name, at)
		return
	}
	if c.Record == nil {
		c.skip("delivery", name, "the bot's record of deliveries cannot be read")
		return
	}
	rec, err := c.Record(ctx, at.path)
	switch {
	case err != nil:
		c.skip("delivery", name, "the bot's record of deliveries cannot be read")
	case tested != OK && rec.RefusedAt.After(rec.AcceptedAt):
		c.fail("delivery", name, fmt.Sprintf("the last delivery, %s, was refused with %d: %s", ago(c.Now(), rec.RefusedAt), rec.Status, rec.Why),
			"If it was the forge's, make the hook anew, with an administrator's token in ADMIN_TOKEN. Anybody can send to that path: "+
				"with that token this command makes a test of its own and is sure.", "playbook-bot "+c.repair(name, at)+" --new-secret")
	case rec.AcceptedAt.IsZero():
		c.fail("delivery", name, "no delivery ever came",
			"Comment in an issue and look again; or look again with an administrator's token in ADMIN_TOKEN, for a test delivery.")
	default:
		c.ok("delivery", name, "the last one was taken %s", ago(c.Now(), rec.AcceptedAt))
	}
}

// told looks at the last delivery by the forge's own record.
func (c *checker) told(ctx context.Context, t Teller, name string, at hooked) {
	when, status, err := t.LastDelivery(ctx, at.place, at.id)
	switch {
	case err != nil:
		c.skip("delivery", name, "the forge's record of deliveries cannot be read: %s", err)
	case when.IsZero():
		c.fail("delivery", name, "the forge sent none of late", "Comment in an issue and look again.")
	case status == 401:
		c.fail("delivery", name, fmt.Sprintf("the last one, %s, was refused: its signature did not fit", ago(c.Now(), when)),
			"Give the hook its secret again, with an administrator's token in ADMIN_TOKEN.", "playbook-bot "+c.repair(name, at)+" --new-secret")
	case status/100 != 2:
		c.fail("delivery", name, fmt.Sprintf("the last one, %s, was answered with status %d (0: not at all)", ago(c.Now(), when), status),
			"Does the forge reach "+c.PublicURL+"? The hook's page shows the answer, and can send it again.")
	default:
		c.ok("delivery", name, "the last one was taken %s", ago(c.Now(), when))
	}
}

func (c *checker) repair(name string, at hooked) string {
	if at.org {
		owner, _, _ := strings.Cut(name, "/")
		return "setup --org " + owner + " " + name + c.Args
	}
	return "setup " + name + c.Args
}

// ago is a time in the past, in words.
func ago(now, t time.Time) string {
	d := now.Sub(t).Truncate(time.Second)
	switch {
	case d < time.Minute:
		return "just now"
	case d < 2*time.Hour:
		return fmt.Sprintf("%d minutes ago", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%d hours ago", int(d.Hours()))
	}
	return fmt.Sprintf("%d days ago", int(d.Hours()/24))
}
