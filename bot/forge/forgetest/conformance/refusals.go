package conformance

import (
	"errors"
	"strings"
	"testing"
	"time"

	"playbook-bot/bot/forge"
)

// refusalFacts are about what the server will not do.
var refusalFacts = map[string]func(*testing.T, *world){
	"ALockedIssueRefusesAReaderForGood": func(t *testing.T, w *world) {
		n := w.open(t, Reader, "t", "b")
		w.lock(t, n)
		_, err := w.adapter(t, Reader).CreateComment(t.Context(), w.repo.ID, n, "c")
		refused(t, err, forge.ErrPermanent)
		get(w.adapter(t, Writer).CreateComment(t.Context(), w.repo.ID, n, "c"))(t)
	},
	"AnArchivedRepositoryRefusesForGood": func(t *testing.T, w *world) {
		n := w.open(t, Reader, "t", "b")
		id := w.comment(t, Reader, n, "c")
		w.archive(t)
		_, err := w.bot.CreateComment(t.Context(), w.repo.ID, n, "c")
		refused(t, err, forge.ErrPermanent)
		refused(t, w.bot.EditComment(t.Context(), w.repo.ID, id, "x"), forge.ErrPermanent)
		get(w.bot.Comment(t.Context(), w.repo.ID, id))(t)
		reacting := w.bot.React(t.Context(), w.repo.ID, n, forge.Object{Kind: forge.ObjectComment, ID: id}, forge.ReactionSeen, true)
		labelling := w.bot.SetLabels(t.Context(), w.repo.ID, n, []string{"recovery/refused"}, nil)
		if w.s.Facts.ArchiveRefusesAll {
			refused(t, reacting, forge.ErrPermanent)
			refused(t, labelling, forge.ErrPermanent)
			return
		}
		mustDo(t, reacting)
		mustDo(t, labelling)
	},
	"ADeletedIssueIsNotFoundByAnyCall": func(t *testing.T, w *world) {
		n := w.open(t, Reader, "t", "b")
		id := w.comment(t, Reader, n, "c")
		w.deleteIssue(t, n)
		_, err := w.bot.Issue(t.Context(), w.repo.ID, n)
		refused(t, err, forge.ErrNotFound)
		_, err = w.bot.Comment(t.Context(), w.repo.ID, id)
		refused(t, err, forge.ErrNotFound)
		// Gitea answers 500 to these two.
		_, err = w.bot.Comments(t.Context(), w.repo.ID, n, time.Time{})
		refused(t, err, forge.ErrNotFound)
		_, err = w.bot.CreateComment(t.Context(), w.repo.ID, n, "c")
		refused(t, err, forge.ErrNotFound)
	},
	"AnEditWithoutTheRightIsUnverified": func(t *testing.T, w *world) {
		n := w.open(t, Writer, "t", "b")
		id := w.comment(t, Writer, n, "c")
		c := w.adapter(t, Reader)
		refused(t, c.EditComment(t.Context(), w.repo.ID, id, "x"), forge.ErrUnverified)
		refused(t, c.DeleteComment(t.Context(), w.repo.ID, id), forge.ErrUnverified)
		refused(t, c.SetLabels(t.Context(), w.repo.ID, n, []string{"recovery/approved"}, nil), forge.ErrUnverified)
	},
	"AnErrorHoldsNothingOfTheServers": func(t *testing.T, w *world) {
		_, err := w.bot.RepoByName(t.Context(), w.repo.Owner, "secret-name")
		_, err2 := w.bot.AccountByLogin(t.Context(), "secret-name")
		_, err3 := w.adapter(t, Writer).TeamMember(t.Context(), w.s.Org, "secret-name", "secret-name")
		text := errors.Join(err, err2, err3).Error()
		for _, foreign := range []string{"secret-name", "http", "not exist", "/api", w.s.Accounts[Bot].Token} {
			if strings.Contains(text, foreign) {
				t.Errorf("the errors hold %q:\n%s", foreign, text)
			}
		}
	},
}
