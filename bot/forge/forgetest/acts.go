package forgetest

import (
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

// happening is something that hooks are told.
type happening struct {
	// event is the neutral kind: "issue", "comment", "label".
	event  string
	action string
	sender *account
	issue  *issue
	// comment is set for event "comment".
	comment *comment
	// oldTitle and oldBody are what an edit replaced, nil where it did not.
	oldTitle, oldBody *string
	// from and to are the issue before and after a transfer.
	from, to *issue
	// label is set for event "label" where the forge names it.
	label *label
}

// thing takes an id of a comment's: in Gitea everything in a thread, a "closed"
// line too, is one.
func (st *state) thing() int64 {
	st.lastComment++
	return st.lastComment
}

func (f *Forge) openIssue(as *account, r *repo, title, body string, pull bool) (*issue, error) {
	st := &f.st
	if err := st.mayRead(as, r); err != nil {
		return nil, err
	}
	if r.archived {
		return nil, ErrArchived
	}
	if strings.TrimSpace(title) == "" || st.tooLong(body) {
		return nil, ErrInvalid
	}
	st.lastIssue++
	r.lastIndex++
	now := f.clock()
	i := &issue{id: st.lastIssue, index: r.lastIndex, repo: r, author: as, title: title, body: body, pull: pull,
		created: now, updated: now}
	st.issues = append(st.issues, i)
	f.happen(happening{event: "issue", action: "opened", sender: as, issue: i})
	return i, nil
}

func (st *state) tooLong(text string) bool {
	return st.habits.longestText > 0 && utf8.RuneCountInString(text) > st.habits.longestText
}

// editIssue changes title and body: one "edited" for each that differs, or one
// for both.
func (f *Forge) editIssue(as *account, i *issue, title, body *string) error {
	if err := f.st.mayEdit(as, i.author, i.repo); err != nil {
		return err
	}
	var edits []happening
	if title != nil && *title != i.title {
		old := i.title
		i.title = *title
		f.st.thing()
		edits = append(edits, happening{oldTitle: &old})
	}
	if body != nil && *body != i.body {
		old := i.body
		i.body = *body
		i.version++
		edits = append(edits, happening{oldBody: &old})
	}
	if len(edits) == 2 && f.st.habits.joinsEdits {
		edits = []happening{{oldTitle: edits[0].oldTitle, oldBody: edits[1].oldBody}}
	}
	for _, e := range edits {
		i.updated = f.clock()
		e.event, e.action, e.sender, e.issue = "issue", "edited", as, i
		f.happen(e)
	}
	return nil
}

func (f *Forge) setClosed(as *account, i *issue, closed bool) error {
	if err := f.st.mayClose(as, i.author, i.repo); err != nil {
		return err
	}
	if i.closed == closed {
		return nil
	}
	i.closed, i.updated = closed, f.clock()
	i.closedAt = time.Time{}
	action := "reopened"
	if closed {
		i.closedAt, action = i.updated, "closed"
	}
	f.st.thing()
	f.happen(happening{event: "issue", action: action, sender: as, issue: i})
	return nil
}

func (f *Forge) deleteIssue(as *account, i *issue) error {
	st := &f.st
	if err := st.mayAdmin(as, i.repo); err != nil {
		return err
	}
	f.happen(happening{event: "issue", action: "deleted", sender: as, issue: i})
	st.left[place{i.repo.id, i.index}] = nil
	st.issues = slices.DeleteFunc(st.issues, func(o *issue) bool { return o == i })
	st.comments = slices.DeleteFunc(st.comments, func(c *comment) bool { return c.issue == i })
	return nil
}

func (f *Forge) createComment(as *account, i *issue, body string) (*comment, error) {
	st := &f.st
	if err := st.mayRead(as, i.repo); err != nil {
		return nil, err
	}
	if i.repo.archived {
		return nil, ErrArchived
	}
	if i.locked && st.accessOf(as, i.repo) < accessWrite {
		return nil, ErrLocked
	}
	if body == "" || st.tooLong(body) {
		return nil, ErrInvalid
	}
	now := f.clock()
	c := &comment{id: st.thing(), issue: i, author: as, body: body, created: now, updated: now}
	st.comments = append(st.comments, c)
	i.updated = now
	f.happen(happening{event: "comment", action: "created", sender: as, issue: i, comment: c})
	return c, nil
}

// editComment: the author stays whoever edits, and a save without a change
// changes and tells nothing.
func (f *Forge) editComment(as *account, c *comment, body string) error {
	if err := f.st.mayEdit(as, c.author, c.issue.repo); err != nil {
		return err
	}
	if c.issue.repo.archived {
		return ErrArchived
	}
	if body == "" || f.st.tooLong(body) {
		return ErrInvalid
	}
	if body == c.body {
		return nil
	}
	old := c.body
	c.body, c.updated = body, f.clock()
	f.happen(happening{event: "comment", action: "edited", sender: as, issue: c.issue, comment: c, oldBody: &old})
	return nil
}

func (f *Forge) deleteComment(as *account, c *comment) error {
	if err := f.st.mayEdit(as, c.author, c.issue.repo); err != nil {
		return err
	}
	f.st.comments = slices.DeleteFunc(f.st.comments, func(o *comment) bool { return o == c })
	f.happen(happening{event: "comment", action: "deleted", sender: as, issue: c.issue, comment: c})
	return nil
}

// reactionsAllowed are Gitea's defaults.
var reactionsAllowed = []string{"+1", "-1", "laugh", "hooray", "confused", "heart", "rocket", "eyes"}

// react puts a reaction on an issue or, if c is not nil, on its comment. It
// reports whether anything changed.
func (f *Forge) react(as *account, i *issue, c *comment, content string, on bool) (bool, error) {
	st := &f.st
	if err := st.mayRead(as, i.repo); err != nil {
		return false, err
	}
	if i.locked && st.accessOf(as, i.repo) < accessWrite {
		return false, ErrLocked
	}
	if on && !slices.Contains(reactionsAllowed, content) {
		return false, ErrInvalid
	}
	list := &i.reactions
	if c != nil {
		list = &c.reactions
	}
	at := slices.IndexFunc(*list, func(r reaction) bool { return r.account == as && r.content == content })
	switch {
	case on && at < 0:
		st.lastReaction++
		*list = append(*list, reaction{st.lastReaction, as, content, f.clock()})
	case !on && at >= 0:
		*list = slices.Delete(*list, at, at+1)
	default:
		return false, nil
	}
	return true, nil
}

func (f *Forge) createLabel(as *account, r *repo, l label) (*label, error) {
	st := &f.st
	if err := st.mayWrite(as, r); err != nil {
		return nil, err
	}
	color := strings.TrimPrefix(l.color, "#")
	if strings.TrimSpace(l.name) == "" || len(color) != 6 {
		return nil, ErrInvalid
	}
	if st.habits.uniqueLabels && st.labelNamed(r, l.name) != nil {
		return nil, ErrExists
	}
	st.lastLabel++
	l.id, l.repo, l.color = st.lastLabel, r, strings.ToLower(color)
	st.labels = append(st.labels, &l)
	return &l, nil
}

// addLabels puts labels on an issue; an exclusive one takes the others of its
// scope off. Labels of other repositories are passed over, as unknown ids are.
func (f *Forge) addLabels(as *account, i *issue, labels []*label) error {
	if err := f.st.mayTriage(as, i.repo); err != nil {
		return err
	}
	changed := false
	for _, l := range labels {
		if l.repo != i.repo || slices.Contains(i.labels, l) {
			continue
		}
		if l.exclusive && l.scope() != "" {
			i.labels = slices.DeleteFunc(i.labels, func(o *label) bool { return o.exclusive && o.scope() == l.scope() })
		}
		i.labels = append(i.labels, l)
		changed = true
		f.labelChanged(as, i, l, true)
	}
	f.labelsChanged(as, i, changed)
	return nil
}

func (f *Forge) removeLabel(as *account, i *issue, l *label) error {
	if err := f.st.mayTriage(as, i.repo); err != nil {
		return err
	}
	at := slices.Index(i.labels, l)
	if at >= 0 {
		i.labels = slices.Delete(i.labels, at, at+1)
		f.labelChanged(as, i, l, false)
	}
	f.labelsChanged(as, i, at >= 0)
	return nil
}

// labelChanged tells of one label, labelsChanged of all of a call's together;
// a dialect shows one of the two.
func (f *Forge) labelChanged(as *account, i *issue, l *label, on bool) {
	action := "unlabeled"
	if on {
		action = "labeled"
	}
	f.happen(happening{event: "label", action: action, sender: as, issue: i, label: l})
}

func (f *Forge) labelsChanged(as *account, i *issue, changed bool) {
	if !changed {
		return
	}
	slices.SortFunc(i.labels, func(a, b *label) int { return strings.Compare(a.name, b.name) })
	i.updated = f.clock()
	f.st.thing()
	f.happen(happening{event: "label", action: "label_updated", sender: as, issue: i})
}

func (f *Forge) setLocked(as *account, i *issue, locked bool) error {
	if err := f.st.mayAdmin(as, i.repo); err != nil {
		return err
	}
	if i.locked != locked {
		i.locked, i.updated = locked, f.clock()
		f.st.thing()
	}
	return nil
}

// rename gives a repository another name or owner. The former name leads to it
// until another repository takes that name.
func (f *Forge) rename(r *repo, owner *account, name string) error {
	st := &f.st
	to := owner.login + "/" + name
	if other, _ := st.repoByName(to); (other != nil && other != r) || name == "" {
		return ErrInvalid
	}
	st.moved[strings.ToLower(r.fullName())] = r.id
	r.owner, r.name = owner, name
	delete(st.moved, strings.ToLower(to))
	return nil
}

// transfer moves an issue with its comments to another repository, under a
// number of its own there. Labels of the repository it leaves are lost.
func (f *Forge) transfer(as *account, i *issue, to *repo) error {
	st := &f.st
	for _, r := range []*repo{i.repo, to} {
		if err := st.mayWrite(as, r); err != nil {
			return err
		}
		if r.archived {
			return ErrArchived
		}
	}
	if to == i.repo || i.pull {
		return ErrInvalid
	}
	before := *i
	to.lastIndex++
	i.repo, i.index, i.labels, i.updated = to, to.lastIndex, nil, f.clock()
	st.left[place{before.repo.id, before.index}] = i
	f.happen(happening{event: "issue", action: "transferred", sender: as, issue: &before, to: i})
	f.happen(happening{event: "issue", action: "opened", sender: as, issue: i, from: &before})
	return nil
}
