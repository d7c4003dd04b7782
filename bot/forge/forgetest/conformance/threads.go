package conformance

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"playbook-bot/bot/forge"
)

// threadFacts are about reading.
var threadFacts = map[string]func(*testing.T, *world){
	"TheTokensAccountIsSelf": func(t *testing.T, w *world) {
		self := get(w.bot.Self(t.Context()))(t)
		if self.Login != w.s.Accounts[Bot].Login || !self.Real() {
			t.Errorf("self is %+v", self)
		}
		same := get(w.bot.AccountByLogin(t.Context(), self.Login))(t)
		if same != self {
			t.Errorf("by login %+v, want %+v", same, self)
		}
	},
	"AnIssueIsReadAsItIs": func(t *testing.T, w *world) {
		n := w.open(t, Reader, "title", "line 1\r\nline 2")
		w.comment(t, Writer, n, "one")
		i := get(w.bot.Issue(t.Context(), w.repo.ID, n))(t)
		if i.Number != n || i.Title != "title" || i.Body != "line 1\r\nline 2" || i.Closed || i.Pull || i.Comments != 1 {
			t.Errorf("issue %+v", i)
		}
		if i.Author.Login != w.s.Accounts[Reader].Login || !i.Author.Real() || i.OriginalAuthor != "" || i.CreatedAt.IsZero() {
			t.Errorf("author %+v, originally %q, created %v", i.Author, i.OriginalAuthor, i.CreatedAt)
		}
		w.close(t, Reader, n)
		if i := get(w.bot.Issue(t.Context(), w.repo.ID, n))(t); !i.Closed {
			t.Error("a closed issue is read as open")
		}
	},
	"AThreadIsListedWhole": func(t *testing.T, w *world) {
		many, want := w.s.Facts.Page+5, "comment.list" // however long the thread
		if w.s.Facts.PagedThreads {
			want = "comment.list comment.list"
		}
		n := w.open(t, Reader, "t", "b")
		var ids []int64
		for i := range many {
			ids = append(ids, w.comment(t, Reader, n, fmt.Sprint("c", i)))
		}
		get(w.bot.Issue(t.Context(), w.repo.ID, n))(t)
		var list []forge.Comment
		calls := w.counted(func() { list = get(w.bot.Comments(t.Context(), w.repo.ID, n, time.Time{}))(t) })
		got := []int64{}
		for _, c := range list {
			got = append(got, c.ID)
			if c.Number != n {
				t.Errorf("comment %d is of thread %d", c.ID, c.Number)
			}
		}
		if !slices.Equal(got, ids) || calls != want {
			t.Errorf("%d ids by the calls %q, want %d by %q", len(got), calls, many, want)
		}
	},
	"RepositoryCommentsComeInPages": func(t *testing.T, w *world) {
		full := w.s.Facts.Page
		n := w.open(t, Reader, "t", "b")
		for i := range full + 3 {
			w.comment(t, Reader, n, fmt.Sprint("c", i))
		}
		one, more, date, err := w.bot.UpdatedComments(t.Context(), w.repo.ID, time.Time{}, 1)
		mustDo(t, err)
		if len(one) != full || !more || date.IsZero() || one[0].Number != n {
			t.Errorf("page 1: %d comments, more %v, date %v", len(one), more, date)
		}
		two, _, _, err := w.bot.UpdatedComments(t.Context(), w.repo.ID, time.Time{}, 2)
		mustDo(t, err)
		three, more, _, err := w.bot.UpdatedComments(t.Context(), w.repo.ID, time.Time{}, 3)
		mustDo(t, err)
		if len(two) != 3 || len(three) != 0 || more {
			t.Errorf("page 2: %d, page 3: %d, more %v", len(two), len(three), more)
		}
	},
	"UpdatedIssuesAreThoseOfEveryState": func(t *testing.T, w *world) {
		open := w.open(t, Reader, "open", "b")
		closed := w.open(t, Reader, "closed", "b")
		w.close(t, Reader, closed)
		list, more, date, err := w.bot.UpdatedIssues(t.Context(), w.repo.ID, time.Time{}, 1)
		mustDo(t, err)
		numbers := map[int64]bool{}
		for _, i := range list {
			numbers[i.Number] = i.Closed
		}
		if len(list) != 2 || more || numbers[open] || !numbers[closed] || date.IsZero() {
			t.Errorf("issues %v, more %v, date %v", numbers, more, date)
		}
	},
	"SinceIsWholeSecondsOfUpdated": func(t *testing.T, w *world) {
		n := w.open(t, Reader, "t", "b")
		id := w.comment(t, Reader, n, "c")
		c := get(w.bot.Comment(t.Context(), w.repo.ID, id))(t)
		if c.UpdatedAt.Nanosecond() != 0 {
			t.Errorf("updated at %v, want whole seconds", c.UpdatedAt)
		}
		for offset, want := range map[time.Duration]int{-time.Second: 1, 0: 1, 999 * time.Millisecond: 1, time.Second: 0} {
			got := get(w.bot.Comments(t.Context(), w.repo.ID, n, c.UpdatedAt.Add(offset)))(t)
			if len(got) != want {
				t.Errorf("since updated%+v: %d comments, want %d", offset, len(got), want)
			}
			issues, _, _, err := w.bot.UpdatedIssues(t.Context(), w.repo.ID, c.UpdatedAt.Add(offset), 1)
			mustDo(t, err)
			if len(issues) != want {
				t.Errorf("since updated%+v: %d issues, want %d", offset, len(issues), want)
			}
		}
	},
	"CommentIdsAscendOverAllRepositories": func(t *testing.T, w *world) {
		here, there := w.open(t, Reader, "t", "b"), newWorld(t, w.s)
		other := there.open(t, Reader, "t", "b")
		last := int64(0)
		for range 3 {
			for _, id := range []int64{w.comment(t, Reader, here, "c"), there.comment(t, Reader, other, "c")} {
				if id <= last {
					t.Errorf("id %d after %d", id, last)
				}
				last = id
			}
		}
		// A comment is found in its own repository only.
		_, err := w.bot.Comment(t.Context(), w.repo.ID, last)
		refused(t, err, forge.ErrNotFound)
	},
	"RepositoriesOfAnOrganisationNeedNoOrganisationScope": func(t *testing.T, w *world) {
		list := get(w.bot.ReposOf(t.Context(), w.s.Org))(t)
		if !slices.Contains(list, w.repo) {
			t.Errorf("%+v is not among %d repositories", w.repo, len(list))
		}
	},
}
