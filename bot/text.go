package bot

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"time"

	"playbook-bot/bot/comment"
	"playbook-bot/bot/forge"
	"playbook-bot/bot/store"
	"playbook-bot/playbook"
)

// text is one text of a thread as the forge holds it now.
type text struct {
	forge.Object
	number           int64
	author           forge.Account
	originalAuthor   string
	body             string
	created, updated time.Time
	closed           bool
	comments         int
	labels           []forge.Label
	// filed: the bot's account posted it in author's name; see filingMark.
	// proved: a signed marker shows just now that it is as it was posted.
	filed, proved bool
}

func issueText(i forge.Issue) text {
	return text{
		Object: forge.Object{Kind: forge.ObjectIssue, ID: i.Number}, number: i.Number, author: i.Author, originalAuthor: i.OriginalAuthor,
		body: i.Body, created: i.CreatedAt, updated: i.UpdatedAt, closed: i.Closed, comments: i.Comments, labels: i.Labels,
	}
}

func commentText(c forge.Comment) text {
	return text{
		Object: forge.Object{Kind: forge.ObjectComment, ID: c.ID}, number: c.Number, author: c.Author, originalAuthor: c.OriginalAuthor,
		body: c.Body, created: c.CreatedAt, updated: c.UpdatedAt,
	}
}

// rights reports whether the text can carry any: a migrated one belongs to
// the account that imported it, a ghost's to nobody.
func (t text) rights() bool { return t.author.Real() && t.originalAuthor == "" }

// unedited reports whether the forge knows of no edit. For an issue the time
// of update moves with labels, comments and state as well, so only equality
// says anything.
func (t text) unedited() bool { return t.updated.Equal(t.created) }

// fetch reads one text from the forge.
func (s *session) fetch(ctx context.Context, o forge.Object) (text, error) {
	s.b.Fail("reading")
	if o.Kind == forge.ObjectIssue {
		i, err := s.forge.Issue(ctx, s.t.Repo.ID, s.t.Number)
		if err != nil {
			return text{}, err
		}
		return s.attributed(ctx, issueText(i))
	}
	c, err := s.forge.Comment(ctx, s.t.Repo.ID, o.ID)
	if err != nil {
		return text{}, err
	}
	return s.attributed(ctx, commentText(c))
}

// read parses a text; at is when it reached the forge in this form.
func (s *session) read(t text, at time.Time) comment.Read {
	return s.b.parse(t, at, s.self.Login)
}

func (b *Bot) parse(t text, at time.Time, self string) comment.Read {
	r := comment.Parse(t.body, comment.Options{
		// A GitHub App is "name[bot]", and people write "@name".
		Playbook: b.Playbook, Bot: strings.TrimSuffix(self, "[bot]"), Issue: t.Kind == forge.ObjectIssue,
		Context: playbook.Context{Author: t.author.Login, At: at},
	})
	if t.filed && r.Form != nil {
		r.Form.Reason = unfenced(r.Form.Reason)
	}
	return r
}

// lookup finds a stored text, kept or not; nil where there is none.
func (s *session) lookup(ctx context.Context, o forge.Object) (*object, error) {
	if known, ok := s.objects[o]; ok {
		return known, nil
	}
	row, err := s.b.Ledger.Object(ctx, s.t.ID, o)
	if isNotStored(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("look up a stored text: %w", err)
	}
	known := &object{Object: row}
	if err := decodeObject(row.Data, &known.data); err != nil {
		return nil, err
	}
	s.objects[o] = known
	return known, nil
}

// take stores a text seen for the first time, with its records. counts says
// whether the text is provably its author's own.
func (s *session) take(t text, r comment.Read, counts bool) *object {
	o := &object{dirty: true, Object: store.Object{
		Object: t.Object, Author: t.author, OriginalAuthor: t.originalAuthor,
		BodySHA: bodySHA(t.body), CreatedAt: t.created, UpdatedAt: t.updated,
	}}
	o.data = objectData{Rights: t.rights(), Filed: t.filed, Commands: len(r.Commands) > 0, Form: r.Form, Rejected: rejected(r)}
	for _, rec := range r.Records {
		o.data.Records = append(o.data.Records, s.record(t, rec, t.created, !counts))
	}
	s.objects[t.Object] = o
	return o
}

// rejected tells apart what of a text could not be taken; "" where all was.
func rejected(r comment.Read) string {
	if len(r.Rejections) == 0 {
		return ""
	}
	h := sha256.New()
	for _, x := range r.Rejections {
		fmt.Fprintf(h, "%q %q %q\n", x.Source, x.Why, x.Suggestion)
	}
	return hex.EncodeToString(h.Sum(nil)[:8])
}

func (s *session) record(t text, r comment.Record, at time.Time, altered bool) record {
	r.RecordedBy, r.PostedAt, r.Ref = t.author.Login, at, ref(t.Object)
	return record{Record: r, Altered: altered}
}

// ref names a text for people.
func ref(o forge.Object) string {
	if o.Kind == forge.ObjectIssue {
		return "issue text"
	}
	return fmt.Sprintf("comment %d", o.ID)
}

// retake replaces what is stored of a text by what it says now. Records that
// stand as before keep their times and their word; new or changed ones count
// only if attested: a delivery whose sender was the author carried this body.
// It reports whether the log changed.
func (s *session) retake(o *object, t text, r comment.Read, attested bool) (changed bool) {
	before := o.data.Records
	var after []record
	for _, b := range before {
		if b.Source == sourceProbe {
			after = append(after, b) // it stands in no text, so no edit takes it away
		}
	}
	for _, rec := range r.Records {
		kept, ok := unchanged(before, rec, t.updated)
		if ok {
			kept.Line, kept.Source = rec.Line, rec.Source
			after = append(after, kept)
			continue
		}
		after = append(after, s.record(t, rec, t.updated, !attested))
		changed = true
	}
	changed = changed || len(after) != len(before)
	if changed && len(before) > 0 {
		o.data.Old = append(o.data.Old, superseded{At: s.now, Records: before})
		if n := len(o.data.Old); n > 20 {
			o.data.Old = o.data.Old[n-20:]
		}
	}
	o.data.Records, o.data.Form, o.data.Rejected = after, r.Form, rejected(r)
	o.BodySHA, o.UpdatedAt, o.Deleted, o.dirty = bodySHA(t.body), t.updated, false, true
	return changed
}

// unchanged finds the record among the former ones. One that gives no time of
// its own bears the time of its text, which an edit moves.
func unchanged(before []record, r comment.Record, edited time.Time) (record, bool) {
	for _, b := range before {
		sameTime := b.RecordedAt.Equal(r.RecordedAt) || b.RecordedAt.Equal(b.PostedAt) && r.RecordedAt.Equal(edited)
		if sameTime && b.Action == r.Action && b.Outcome == r.Outcome && b.Reason == r.Reason &&
			strings.EqualFold(b.Target, r.Target) && strings.EqualFold(b.Actor, r.Actor) {
			return b, true
		}
	}
	return record{}, false
}

// strike takes the records of a deleted text out of the log.
func (s *session) strike(o *object) (changed bool) {
	changed = len(o.data.Records) > 0
	if changed {
		o.data.Old = append(o.data.Old, superseded{At: s.now, Records: o.data.Records})
	}
	o.data.Records = slices.DeleteFunc(slices.Clone(o.data.Records), func(r record) bool { return r.Source != sourceProbe })
	o.data.Form, o.data.Ran = nil, true
	o.Deleted, o.dirty = true, true
	// A deleted text stays known, so that it is not found again.
	return changed
}

// attempts splits the thread's log into what the gate is to weigh and what is
// known not to count, each with why.
func (s *session) attempts() (weigh []playbook.Attempt, excluded []playbook.IgnoredAttempt) {
	leave := func(r record, why string) {
		a := r.Attempt
		a.Kill = false
		excluded = append(excluded, playbook.IgnoredAttempt{Attempt: a, Why: why})
	}
	for _, o := range s.ordered() {
		for _, r := range o.data.Records {
			switch {
			case !o.data.Rights:
				leave(r, "its author is no account of this forge (migrated or deleted), so it carries no word")
			case r.Altered:
				leave(r, "altered: not what its author posted; it counts once the author logs it in a new comment")
			case r.Kill && s.st.cleared(s.order(o.Object.Object), r.PostedAt):
				leave(r, "a manual kill, whose mark an admin lifted")
			case r.Kill:
				weigh = append(weigh, r.Attempt)
			case s.before(o, r):
				leave(r, "from before the last close or recovery")
			default:
				weigh = append(weigh, r.Attempt)
			}
		}
	}
	return weigh, excluded
}

// before reports whether a record stems from before the present incident. The
// issue's own text has no place among the comments: there the time decides.
func (s *session) before(o *object, r record) bool {
	if o.Kind == forge.ObjectIssue {
		return !s.st.Since.IsZero() && !r.PostedAt.After(s.st.Since)
	}
	return o.ID <= s.st.SinceComment
}

// order is an object's place in the thread's order: 0 for the issue's text.
func (s *session) order(o forge.Object) int64 {
	if o.Kind == forge.ObjectIssue {
		return 0
	}
	return o.ID
}

func (s *session) ordered() []*object {
	out := make([]*object, 0, len(s.objects))
	for _, o := range s.objects {
		out = append(out, o)
	}
	sortObjects(out)
	return out
}
