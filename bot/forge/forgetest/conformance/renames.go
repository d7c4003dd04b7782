package conformance

import (
	"slices"
	"testing"
	"time"

	"playbook-bot/bot/forge"
)

// renameFacts are about repositories whose name changes under the bot.
var renameFacts = map[string]func(*testing.T, *world){
	"ARepositoryIsFoundByIdAndName": func(t *testing.T, w *world) {
		byID := get(w.bot.RepoByID(t.Context(), w.repo.ID))(t)
		byName := get(w.bot.RepoByName(t.Context(), w.repo.Owner, w.repo.Name))(t)
		if byID != w.repo || byName != w.repo || byID.OwnerID <= 0 {
			t.Errorf("by id %+v, by name %+v, want %+v", byID, byName, w.repo)
		}
		_, err := w.bot.RepoByName(t.Context(), w.repo.Owner, "no-such-repository")
		refused(t, err, forge.ErrNotFound)
		_, err = w.bot.RepoByID(t.Context(), 1<<40)
		refused(t, err, forge.ErrNotFound)
	},
	"AFormerNameLeadsToTheRepository": func(t *testing.T, w *world) {
		before := w.rename(t)
		if got := get(w.bot.RepoByName(t.Context(), before.Owner, before.Name))(t); got != w.repo {
			t.Errorf("%s leads to %+v, want %+v", before.FullName(), got, w.repo)
		}
	},
	"AfterARenameTheCommentLandsOnce": func(t *testing.T, w *world) {
		n := w.open(t, Reader, "t", "b")
		id := w.comment(t, Reader, n, "c")
		get(w.bot.Comment(t.Context(), w.repo.ID, id))(t) // the old name is cached
		w.rename(t)
		get(w.bot.CreateComment(t.Context(), w.repo.ID, n, "answer"))(t)
		if got := w.bodies(t, w.repo, n); !slices.Equal(got, []string{"c", "answer"}) {
			t.Errorf("the thread holds %q", got)
		}
	},
	"AfterARenameEverythingIsFound": func(t *testing.T, w *world) {
		n := w.open(t, Reader, "t", "b")
		id := w.comment(t, Reader, n, "c")
		for name, call := range map[string]func() error{
			"issue":   func() error { _, err := w.bot.Issue(t.Context(), w.repo.ID, n); return err },
			"comment": func() error { _, err := w.bot.Comment(t.Context(), w.repo.ID, id); return err },
			"thread":  func() error { _, err := w.bot.Comments(t.Context(), w.repo.ID, n, time.Time{}); return err },
			"edit":    func() error { return w.bot.EditComment(t.Context(), w.repo.ID, id, "edited") },
			"permission": func() error {
				_, _, err := w.bot.Permission(t.Context(), w.repo.ID, w.s.Accounts[Bot].Login)
				return err
			},
			"updated": func() error {
				_, _, _, err := w.bot.UpdatedIssues(t.Context(), w.repo.ID, time.Time{}, 1)
				return err
			},
			"reaction": func() error {
				return w.bot.React(t.Context(), w.repo.ID, n, forge.Object{Kind: forge.ObjectComment, ID: id}, forge.ReactionSeen, true)
			},
			"labels": func() error { return w.bot.SetLabels(t.Context(), w.repo.ID, n, []string{"recovery/requested"}, nil) },
		} {
			get(w.bot.RepoByID(t.Context(), w.repo.ID))(t)
			w.rename(t)
			if err := call(); err != nil {
				t.Errorf("%s after a rename: %v", name, err)
			}
		}
	},
	"ANameGivenToAnotherRepositoryIsNotWrittenTo": func(t *testing.T, w *world) {
		n := w.open(t, Reader, "t", "b")
		id := w.comment(t, Reader, n, "c")
		get(w.bot.RepoByID(t.Context(), w.repo.ID))(t)
		before := w.rename(t)
		mine := w.repo
		w.repo = w.takeName(t, before.Name)
		wrong := w.open(t, Reader, "another's", "b")
		if wrong != n {
			t.Fatalf("the other thread has number %d, the test needs %d", wrong, n)
		}
		other := w.repo
		// The trigger is read first, and is not found under the old name.
		get(w.bot.Comment(t.Context(), mine.ID, id))(t)
		get(w.bot.CreateComment(t.Context(), mine.ID, n, "answer"))(t)
		if got := w.bodies(t, mine, n); !slices.Equal(got, []string{"c", "answer"}) {
			t.Errorf("the thread holds %q", got)
		}
		if got := w.bodies(t, other, wrong); len(got) != 0 {
			t.Errorf("the other repository's thread holds %q", got)
		}
	},
	"AnIssueOfAnotherRepositoryOfTheSameNameIsNotRead": func(t *testing.T, w *world) {
		n := w.open(t, Reader, "mine", "b")
		get(w.bot.RepoByID(t.Context(), w.repo.ID))(t)
		before := w.rename(t)
		mine := w.repo
		w.repo = w.takeName(t, before.Name)
		w.open(t, Reader, "another's", "b")
		if i := get(w.bot.Issue(t.Context(), mine.ID, n))(t); i.Title != "mine" {
			t.Errorf("read %q", i.Title)
		}
	},
}
