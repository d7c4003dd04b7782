package conformance

import (
	"slices"
	"strings"
	"testing"
	"time"

	"playbook-bot/bot/forge"
)

// commentFacts are about writing.
var commentFacts = map[string]func(*testing.T, *world){
	"ACommentIsKeptByteForByte": func(t *testing.T, w *world) {
		n := w.open(t, Reader, "t", "b")
		for name, body := range map[string]string{
			"marker":     "Approved.\n\n<!-- playbook-bot v1 key=a hmac=b -->",
			"details":    "<details>\n<summary>x</summary>\n\n```json\n{}\n```\n\n</details>\n",
			"CRLF":       "a\r\nb\rc",
			"whitespace": "  a \n\n\tb  \n",
			"unicode":    "a\u00a0b \u200bc “d” 👍 \ufeffe",
			"html":       "<b>&amp;</b> \\@x @x #1",
			"long":       strings.Repeat("0123456789", 7000),
		} {
			if most := w.s.Facts.LongestText; most > 0 && len(body) > most {
				_, err := w.bot.CreateComment(t.Context(), w.repo.ID, n, body)
				refused(t, err, forge.ErrPermanent)
				body = body[:most]
			}
			c := get(w.bot.CreateComment(t.Context(), w.repo.ID, n, body))(t)
			if c.Body != body || c.Number != n || c.Author.Login != w.s.Accounts[Bot].Login {
				t.Errorf("%s: posted as %q by %+v in %d", name, c.Body, c.Author, c.Number)
			}
			if c := get(w.bot.Comment(t.Context(), w.repo.ID, c.ID))(t); c.Body != body {
				t.Errorf("%s: read back as %q", name, c.Body)
			}
		}
	},
	"AnIssueIsOpenedByTheBotsOwnAccount": func(t *testing.T, w *world) {
		body := "### Requested class\n\nfull_mcp_restart\n\n  \n<!-- playbook-bot-filed:1 key=a -->"
		i := get(w.bot.CreateIssue(t.Context(), w.repo.ID, "Restart request", body))(t)
		read := get(w.bot.Issue(t.Context(), w.repo.ID, i.Number))(t)
		for name, got := range map[string]forge.Issue{"opened": i, "read back": read} {
			if got.Body != body || got.Title != "Restart request" || got.Author.Login != w.s.Accounts[Bot].Login || got.CreatedAt.IsZero() || got.Closed {
				t.Errorf("%s: %+v", name, got)
			}
		}
		list, _, _, err := w.bot.UpdatedIssues(t.Context(), w.repo.ID, i.CreatedAt, 1)
		if err != nil || !slices.ContainsFunc(list, func(o forge.Issue) bool { return o.Number == i.Number && o.Body == body }) {
			t.Errorf("the listing does not hold it: %+v, %v", list, err)
		}
		_, err = w.bot.CreateIssue(t.Context(), w.repo.ID, " ", body)
		refused(t, err, forge.ErrPermanent)
	},
	"AnAnswerTakesTwoCalls": func(t *testing.T, w *world) {
		n := w.open(t, Reader, "t", "b")
		id := w.comment(t, Reader, n, "/restart x")
		w.age() // long ago the repository's name was looked up
		get(w.bot.RepoByID(t.Context(), w.repo.ID))(t)
		w.age()
		calls := w.counted(func() {
			get(w.bot.Comment(t.Context(), w.repo.ID, id))(t)
			get(w.bot.CreateComment(t.Context(), w.repo.ID, n, "no"))(t)
		})
		if calls != "comment.read comment.create" {
			t.Errorf("calls %q", calls)
		}
	},
	"AWriterEditsAnyonesCommentAndTheAuthorStays": func(t *testing.T, w *world) {
		n := w.open(t, Reader, "t", "b")
		c := get(w.bot.CreateComment(t.Context(), w.repo.ID, n, "the bot's words"))(t)
		w.edit(t, Writer, c.ID, "not the bot's words")
		got := get(w.bot.Comment(t.Context(), w.repo.ID, c.ID))(t)
		if got.Body != "not the bot's words" || got.Author != c.Author {
			t.Errorf("%q by %+v", got.Body, got.Author)
		}
		mustDo(t, w.bot.EditComment(t.Context(), w.repo.ID, c.ID, "restored"))
		if got := get(w.bot.Comment(t.Context(), w.repo.ID, c.ID))(t); got.Body != "restored" {
			t.Errorf("restored as %q", got.Body)
		}
	},
	"ADeletedCommentIsNotFound": func(t *testing.T, w *world) {
		n := w.open(t, Reader, "t", "b")
		id := w.comment(t, Reader, n, "c")
		mustDo(t, w.bot.DeleteComment(t.Context(), w.repo.ID, id))
		_, err := w.bot.Comment(t.Context(), w.repo.ID, id)
		refused(t, err, forge.ErrNotFound)
		refused(t, w.bot.EditComment(t.Context(), w.repo.ID, id, "x"), forge.ErrNotFound)
		refused(t, w.bot.DeleteComment(t.Context(), w.repo.ID, id), forge.ErrNotFound)
		if got := get(w.bot.Comments(t.Context(), w.repo.ID, n, time.Time{}))(t); len(got) != 0 {
			t.Errorf("the thread still lists %+v", got)
		}
	},
	"SomethingInAThreadThatIsNoCommentIsNotFound": func(t *testing.T, w *world) {
		n := w.open(t, Reader, "t", "b")
		before := w.comment(t, Reader, n, "c")
		w.close(t, Reader, n)
		after := w.comment(t, Reader, n, "c")
		for id := before + 1; id < after; id++ {
			_, err := w.bot.Comment(t.Context(), w.repo.ID, id)
			refused(t, err, forge.ErrNotFound)
		}
	},
	"AReactionIsSetAndTakenAwayAnyNumberOfTimes": func(t *testing.T, w *world) {
		n := w.open(t, Reader, "t", "b")
		id := w.comment(t, Reader, n, "c")
		for _, obj := range []forge.Object{{Kind: forge.ObjectIssue, ID: n}, {Kind: forge.ObjectComment, ID: id}} {
			for _, on := range []bool{true, true, false, false, true} {
				mustDo(t, w.bot.React(t.Context(), w.repo.ID, n, obj, forge.ReactionSeen, on))
			}
			for _, r := range []forge.Reaction{forge.ReactionApproved, forge.ReactionRefused, forge.ReactionConfused} {
				mustDo(t, w.bot.React(t.Context(), w.repo.ID, n, obj, r, true))
			}
			got := w.reactions(t, n, obj)
			if want := []string{"+1", "-1", "confused", "eyes"}; !slices.Equal(got, want) {
				t.Errorf("%s: reactions %q, want %q", obj.Kind, got, want)
			}
		}
	},
}
