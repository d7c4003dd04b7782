package conformance

import (
	"testing"

	"playbook-bot/bot/forge"
)

// standingFacts are about who may do what.
var standingFacts = map[string]func(*testing.T, *world){
	"PermissionIsTheAPIsWord": func(t *testing.T, w *world) {
		site := forge.PermissionOwner
		if w.s.Facts.SiteHasNoRight {
			site = forge.PermissionRead // the repository is public
		}
		bot := w.bot
		if w.s.Facts.OwnersNeedOrgScope {
			p, _, err := bot.Permission(t.Context(), w.repo.ID, w.s.Accounts[Owner].Login)
			mustDo(t, err)
			if p != forge.PermissionAdmin {
				t.Errorf("the owner without the scope: %s", p)
			}
			bot = w.adapter(t, Admin) // all scopes
		}
		for role, want := range map[Role]forge.Permission{
			Site: site, Owner: forge.PermissionOwner, Admin: forge.PermissionAdmin,
			Writer: forge.PermissionWrite, Reader: forge.PermissionRead,
			Nobody: forge.PermissionRead, // the repository is public
		} {
			login := w.s.Accounts[role].Login
			p, id, err := bot.Permission(t.Context(), w.repo.ID, login)
			mustDo(t, err)
			if account := get(w.bot.AccountByLogin(t.Context(), login))(t); p != want || id != account.ID {
				t.Errorf("%s: %s for account %d, want %s for %d", role, p, id, want, account.ID)
			}
		}
	},
	"NotEveryoneSeesPermissions": func(t *testing.T, w *world) {
		reader := w.s.Accounts[Reader].Login
		_, _, err := w.adapter(t, Nobody).Permission(t.Context(), w.repo.ID, reader)
		refused(t, err, forge.ErrUnverified)
		writer := w.adapter(t, Writer)
		p, _, err := writer.Permission(t.Context(), w.repo.ID, w.s.Accounts[Writer].Login)
		mustDo(t, err)
		if p != forge.PermissionWrite {
			t.Errorf("about itself: %s", p)
		}
		p, _, err = writer.Permission(t.Context(), w.repo.ID, reader)
		if !w.s.Facts.WritersSeeStandings {
			refused(t, err, forge.ErrUnverified)
			return
		}
		mustDo(t, err)
		if p != forge.PermissionRead {
			t.Errorf("about a reader: %s", p)
		}
	},
	"ALoginOfNobodyIsNotFound": func(t *testing.T, w *world) {
		_, _, err := w.bot.Permission(t.Context(), w.repo.ID, "nobody-has-this-login")
		refused(t, err, forge.ErrNotFound)
		_, err = w.bot.AccountByLogin(t.Context(), "nobody-has-this-login")
		refused(t, err, forge.ErrNotFound)
	},
	"AWrongTokenIsUnverified": func(t *testing.T, w *world) {
		w.s.Accounts = map[Role]Account{Bot: {Token: "0123456789012345678901234567890123456789"}}
		c := w.adapter(t, Bot)
		_, err := c.Self(t.Context())
		refused(t, err, forge.ErrUnverified)
		_, err = c.Comment(t.Context(), w.repo.ID, 1)
		refused(t, err, forge.ErrUnverified)
	},
	"TeamsNeedTheOrganisationScope": func(t *testing.T, w *world) {
		owner := w.s.Accounts[Owner].Login
		_, err := w.bot.TeamMember(t.Context(), w.s.Org, "owners", owner)
		refused(t, err, forge.ErrUnverified)
		c := w.adapter(t, Owner)
		if in := get(c.TeamMember(t.Context(), w.s.Org, "owners", owner))(t); !in {
			t.Error("the owner is not in Owners")
		}
		if in := get(c.TeamMember(t.Context(), w.s.Org, "Owners", w.s.Accounts[Writer].Login))(t); in {
			t.Error("the writer is in Owners")
		}
		_, err = c.TeamMember(t.Context(), w.s.Org, "no-such-team", owner)
		refused(t, err, forge.ErrNotFound)
	},
}
