package forgetest

import (
	"slices"

	"playbook-bot/bot/forge"
)

// This file is what people do on the forge's pages. Every act is somebody's,
// is refused as the forge would refuse it, and tells the hooks.

// thread finds an issue for an act.
func (st *state) thread(fullName string, number int64) (*issue, error) {
	r, moved := st.repoByName(fullName)
	if r == nil {
		r = moved
	}
	if r == nil {
		return nil, ErrNotFound
	}
	i := st.issue(r, number)
	if i == nil {
		return nil, ErrNotFound
	}
	return i, nil
}

// onIssue runs an act of an account on an issue.
func (f *Forge) onIssue(what, as, fullName string, number int64, act func(*account, *issue) error) error {
	return f.do(func(st *state) error {
		i, err := st.thread(fullName, number)
		if err != nil {
			return err
		}
		return act(f.mustAccount(as), i)
	}, "%s by %s on %s#%d", what, as, fullName, number)
}

// onComment runs an act of an account on a comment.
func (f *Forge) onComment(what, as string, id int64, act func(*account, *comment) error) error {
	return f.do(func(st *state) error {
		c := st.comment(id)
		if c == nil {
			return ErrNotFound
		}
		return act(f.mustAccount(as), c)
	}, "%s by %s on comment %d", what, as, id)
}

func (f *Forge) open(as, fullName, title, body string, pull bool) (number int64, err error) {
	err = f.do(func(st *state) error {
		r, _ := st.repoByName(fullName)
		if r == nil {
			return ErrNotFound
		}
		i, err := f.openIssue(f.mustAccount(as), r, title, body, pull)
		if err == nil {
			number = i.index
		}
		return err
	}, "open by %s in %s", as, fullName)
	return number, err
}

// OpenIssue opens an issue and gives its number.
func (f *Forge) OpenIssue(as, fullName, title, body string) (number int64, err error) {
	return f.open(as, fullName, title, body, false)
}

// OpenPull opens a pull request and gives its number.
func (f *Forge) OpenPull(as, fullName, title, body string) (number int64, err error) {
	return f.open(as, fullName, title, body, true)
}

// Comment posts a comment and gives its id.
func (f *Forge) Comment(as, fullName string, number int64, body string) (id int64, err error) {
	err = f.onIssue("comment", as, fullName, number, func(a *account, i *issue) error {
		c, err := f.createComment(a, i, body)
		if err == nil {
			id = c.id
		}
		return err
	})
	return id, err
}

// EditComment replaces a comment's body. Writers may edit anyone's; its author
// stays.
func (f *Forge) EditComment(as string, id int64, body string) error {
	return f.onComment("edit", as, id, func(a *account, c *comment) error { return f.editComment(a, c, body) })
}

// DeleteComment removes a comment.
func (f *Forge) DeleteComment(as string, id int64) error {
	return f.onComment("delete", as, id, func(a *account, c *comment) error { return f.deleteComment(a, c) })
}

// EditIssue replaces title and body; nil leaves one as it is. Each that
// changes makes a delivery of its own.
func (f *Forge) EditIssue(as, fullName string, number int64, title, body *string) error {
	return f.onIssue("edit", as, fullName, number, func(a *account, i *issue) error { return f.editIssue(a, i, title, body) })
}

// CloseIssue closes an issue or pull request.
func (f *Forge) CloseIssue(as, fullName string, number int64) error {
	return f.onIssue("close", as, fullName, number, func(a *account, i *issue) error { return f.setClosed(a, i, true) })
}

// Reopen opens an issue again.
func (f *Forge) Reopen(as, fullName string, number int64) error {
	return f.onIssue("reopen", as, fullName, number, func(a *account, i *issue) error { return f.setClosed(a, i, false) })
}

// DeleteIssue removes an issue with its comments; it takes an administrator.
func (f *Forge) DeleteIssue(as, fullName string, number int64) error {
	return f.onIssue("delete", as, fullName, number, f.deleteIssue)
}

// TransferIssue moves an issue to another repository and gives its number
// there. Gitea has no such thing.
func (f *Forge) TransferIssue(as, fullName string, number int64, to string) (moved int64, err error) {
	err = f.onIssue("transfer", as, fullName, number, func(a *account, i *issue) error {
		r, _ := f.st.repoByName(to)
		if r == nil {
			return ErrNotFound
		}
		err := f.transfer(a, i, r)
		moved = i.index
		return err
	})
	return moved, err
}

// Lock keeps accounts below write from commenting, or lets them again.
func (f *Forge) Lock(as, fullName string, number int64, locked bool) error {
	return f.onIssue("lock", as, fullName, number, func(a *account, i *issue) error { return f.setLocked(a, i, locked) })
}

// Label puts a label on an issue, making it if the repository lacks it.
func (f *Forge) Label(as, fullName string, number int64, name string) error {
	return f.onIssue("label", as, fullName, number, func(a *account, i *issue) error {
		at := slices.IndexFunc(f.st.labels, func(l *label) bool { return l.repo == i.repo && l.name == name })
		if at >= 0 {
			return f.addLabels(a, i, []*label{f.st.labels[at]})
		}
		l, err := f.createLabel(a, i.repo, label{name: name, color: "ededed"})
		if err != nil {
			return err
		}
		return f.addLabels(a, i, []*label{l})
	})
}

// Unlabel takes a label off an issue.
func (f *Forge) Unlabel(as, fullName string, number int64, name string) error {
	return f.onIssue("unlabel", as, fullName, number, func(a *account, i *issue) error {
		at := slices.IndexFunc(i.labels, func(l *label) bool { return l.name == name })
		if at < 0 {
			return ErrNotFound
		}
		return f.removeLabel(a, i, i.labels[at])
	})
}

// DeleteLabel removes a label from a repository and all its issues.
func (f *Forge) DeleteLabel(fullName, name string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	r := f.mustRepo(fullName)
	for _, l := range f.st.repoLabels(r) {
		if l.name == name {
			f.st.dropLabel(l)
		}
	}
}

func (f *Forge) shownAuthor(name string) string {
	if f.BlankOriginalAuthor {
		return ""
	}
	return name
}

func (f *Forge) viewIssue(i *issue) forge.Issue {
	out := forge.Issue{ID: i.id, Number: i.index, Author: i.author.neutral(), OriginalAuthor: f.shownAuthor(i.originalAuthor),
		Title: i.title, Body: i.body, Closed: i.closed, Pull: i.pull, Comments: len(f.st.threadComments(i)),
		CreatedAt: i.created, UpdatedAt: i.updated}
	for _, l := range i.labels {
		out.Labels = append(out.Labels, forge.Label{ID: l.id, Name: l.name})
	}
	return out
}

func (f *Forge) viewComment(c *comment) forge.Comment {
	return forge.Comment{ID: c.id, Number: c.issue.index, Author: c.author.neutral(),
		OriginalAuthor: f.shownAuthor(c.originalAuthor), Body: c.body, CreatedAt: c.created, UpdatedAt: c.updated}
}

// Issue is an issue as the forge holds it.
func (f *Forge) Issue(fullName string, number int64) forge.Issue {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.viewIssue(f.mustIssue(fullName, number))
}

// Comments is a thread as the forge holds it, by ascending id.
func (f *Forge) Comments(fullName string, number int64) []forge.Comment {
	f.mu.Lock()
	defer f.mu.Unlock()
	var out []forge.Comment
	for _, c := range f.st.threadComments(f.mustIssue(fullName, number)) {
		out = append(out, f.viewComment(c))
	}
	return out
}

// CommentsBy is the part of Comments that one account wrote.
func (f *Forge) CommentsBy(login, fullName string, number int64) []forge.Comment {
	return slices.DeleteFunc(f.Comments(fullName, number), func(c forge.Comment) bool { return c.Author.Login != login })
}

// Labels are the names of an issue's labels, sorted.
func (f *Forge) Labels(fullName string, number int64) []string {
	names := []string{}
	for _, l := range f.Issue(fullName, number).Labels {
		names = append(names, l.Name)
	}
	slices.Sort(names)
	return names
}

// Reactions are an account's reactions on an issue (number) or a comment (its
// id), in the order in which they were given.
func (f *Forge) Reactions(login, fullName string, number int64, obj forge.Object) []forge.Reaction {
	f.mu.Lock()
	defer f.mu.Unlock()
	list := []reaction(nil)
	if obj.Kind == forge.ObjectComment {
		if c := f.st.comment(obj.ID); c != nil {
			list = c.reactions
		}
	} else {
		list = f.mustIssue(fullName, number).reactions
	}
	out := []forge.Reaction{}
	for _, r := range list {
		if r.account.login == login {
			out = append(out, forge.Reaction(r.content))
		}
	}
	return out
}
