package bot

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"playbook-bot/bot/comment"
	"playbook-bot/bot/forge"
	"playbook-bot/bot/store"
	"playbook-bot/playbook"
)

// coldLoad reads a thread that is not in the database: one listing, once. It
// restores records, requests and what was answered, and decides nothing anew:
// commands without a valid answer become found events, which run only under
// the rule for texts without a delivery.
func (s *session) coldLoad(ctx context.Context, ev store.Event) error {
	i, err := s.forge.Issue(ctx, s.t.Repo.ID, s.t.Number)
	if lasting(err, ev.Tries) {
		s.over = "the thread is gone"
		_, err := s.endAll(ctx)
		return err
	}
	if err != nil {
		return err
	}
	issue := issueText(i)
	var comments []forge.Comment
	if i.Comments > 0 || !s.opens() {
		if comments, err = s.forge.Comments(ctx, s.t.Repo.ID, s.t.Number, time.Time{}); err != nil {
			return err
		}
	}
	texts := []text{issue}
	for _, c := range comments {
		texts = append(texts, commentText(c))
	}
	for j := range texts {
		if texts[j], err = s.attribute(ctx, texts[j], nil); err != nil {
			return err
		}
	}
	issue = texts[0]
	s.st.Closed = issue.closed
	answered, err := s.restore(issue, texts)
	if err != nil {
		return err
	}
	s.restoreBasis(texts)
	waiting := map[forge.Object]bool{}
	for _, ev := range s.t.Events {
		waiting[ev.Object] = true
	}
	s.readHere(texts, answered, waiting)
	if s.now.Sub(ev.ReceivedAt) < lateDelivery && slices.ContainsFunc(texts, func(t text) bool {
		return compareObjects(t.Object, ev.Object) < 0 && !waiting[t.Object] && !answered[t.Object] && s.underway(t)
	}) {
		// What came before is to be read before. If its delivery comes it wakes
		// the thread; the listing, which may be long, is not made each second.
		return &waitError{d: max(time.Second, lateDelivery-s.now.Sub(ev.ReceivedAt))}
	}
	for _, t := range texts {
		if err := s.coldText(ctx, t, answered, waiting); err != nil {
			return err
		}
	}
	s.contamination()
	s.cold = true
	return s.commit(ctx)
}

// opens reports whether the thread is known only by its own opening: then
// there is nothing older to list.
func (s *session) opens() bool {
	return len(s.t.Events) == 1 && s.t.Events[0].Action == forge.ActionOpened
}

// asks reports whether a text is to be answered, or to have its author told
// something.
func asks(r comment.Read) bool {
	return len(r.Commands) > 0 || r.Form != nil || len(r.Rejections) > 0
}

// wants reports whether a listed text is to come as an event: it asks for
// something, or brings evidence after something that does. All else is taken in
// from the listing, without a call for each.
func (s *session) wants(t text, r comment.Read) bool {
	return asks(r) || s.bears(t, r) || len(r.Records) > 0 && slices.ContainsFunc(s.change.Found, func(in store.Incoming) bool { return in.Author.ID != s.self.ID })
}

// bears reports whether a text brings evidence after the open request: its
// author waits for a line that says so.
func (s *session) bears(t text, r comment.Read) bool {
	return len(r.Records) > 0 && s.st.Request != nil && s.order(t.Object) > s.order(s.st.Request.Trigger)
}

// underway reports whether the delivery of a text may still be on the way. A
// text that is taken for found has nobody's word, and its commands not all of
// their force.
func (s *session) underway(t text) bool {
	return t.author.ID != s.self.ID && s.now.Sub(t.created) < lateDelivery
}

// coldText stores one listed text, or has it come as an event.
func (s *session) coldText(ctx context.Context, t text, answered, waiting map[forge.Object]bool) error {
	if t.author.ID == s.self.ID {
		if slices.ContainsFunc(s.change.Found, func(in store.Incoming) bool { return in.Object == t.Object }) {
			return nil // a double, to be looked at
		}
		s.change.Objects = append(s.change.Objects, store.Object{Object: t.Object, Author: t.author,
			BodySHA: bodySHA(t.body), CreatedAt: t.created, UpdatedAt: t.updated})
		return nil
	}
	if s.b.Ignored(t.author.Login) {
		return nil
	}
	if waiting[t.Object] && !answered[t.Object] {
		return nil // its own event brings it
	}
	if !answered[t.Object] && s.underway(t) {
		return nil // its delivery brings it, or else the next sweep
	}
	// One that was answered is taken in here even where an event waits: the
	// sweep takes every text of the last day for new, and the event must find
	// it known, or it would be answered again.
	r := s.read(t, t.created)
	if !answered[t.Object] && s.now.Sub(t.created) < foundAge && t.number == s.t.Number && s.wants(t, r) && !slices.Contains(s.quiet, t.Object) {
		s.change.Found = append(s.change.Found, s.found(t))
		return nil
	}
	attested := t.unedited() || t.proved
	if !attested && len(r.Records) > 0 {
		// The word of deliveries outlives the rest where a backup was put back.
		var err error
		if attested, err = s.b.Ledger.Attested(ctx, s.t.Forge, s.t.Repo.ID, t.Object, bodySHA(t.body)); err != nil {
			return err
		}
	}
	o := s.take(t, r, t.rights() && attested)
	o.data.Ran = true
	s.vouchFor(o)
	o.data.Records = append(o.data.Records, s.verified[t.Object]...)
	if answered[t.Object] || len(r.Commands) == 0 {
		return nil
	}
	return s.audit(AuditEntry{What: "not_run", Actor: t.author.Login, ActorID: t.author.ID, Note: ref(t.Object) + " is too old to run"})
}

// vouchFor lets records count again that counted in one of the bot's own
// signed answers: then their author's delivery had been there. Without it an
// issue's text, whose time of update moves with every label, would lose its
// attempts with the database.
func (s *session) vouchFor(o *object) {
	for i := range o.data.Records {
		r := &o.data.Records[i]
		j := slices.IndexFunc(s.attested, func(a playbook.Attempt) bool {
			return a.Ref == r.Ref && a.Reason == r.Reason && playbook.SameAttempt(a, r.Attempt)
		})
		if r.Altered && j >= 0 {
			r.Altered, r.RecordedAt, r.PostedAt = false, s.attested[j].RecordedAt, s.attested[j].PostedAt
		}
	}
}

// found is the event of a text that listing brought to light.
func (s *session) found(t text) store.Incoming {
	action := forge.ActionCreated
	if t.Kind == forge.ObjectIssue {
		action = forge.ActionOpened
	}
	return store.Incoming{Forge: s.t.Forge, Repo: s.repo, Number: s.t.Number, Pull: s.t.Pull, Object: t.Object,
		Action: action, Author: t.author, BodySHA: bodySHA(t.body), Source: store.SourceSweep}
}

var foldedDecision = regexp.MustCompile("(?s)<details><summary>Decision as JSON</summary>\n+`{3,}json\n(.*?)\n`{3,}\n")

// restore reads the bot's own valid answers: which texts were answered, and
// what request was open. No earlier approval stands after it.
func (s *session) restore(issue text, texts []text) (answered map[forge.Object]bool, err error) {
	answered = map[forge.Object]bool{}
	authors := map[int64]forge.Account{0: issue.author}
	for _, t := range texts {
		if t.Kind == forge.ObjectComment {
			authors[t.ID] = t.author
		}
	}
	var last *marker
	var told []toldDecision
	for _, t := range texts {
		if t.author.ID != s.self.ID {
			continue
		}
		m, ok, _ := verify(s.b.Secrets(), s.place(), t.body)
		if !ok {
			continue
		}
		last = &m
		if o, ok := answeredObject(m.Key); ok {
			answered[o] = true
		}
		s.restoreAnswer(m, t)
		if d := decisionIn(t.body); d != nil {
			told = append(told, toldDecision{*d, t, m.Key})
			s.attested = append(s.attested, d.Counted...)
			for o, records := range verifiedIn(*d, s.t.Number) {
				s.verified = verifiedOnce(s.verified, o, records)
			}
		}
	}
	s.restoreRequests(told, authors)
	if last == nil && s.t.AuditChain == 0 {
		return answered, nil
	}
	if last == nil {
		return answered, s.newChain("the thread bears no marker")
	}
	s.restoreCounts()
	if issue.closed {
		s.st.end(stateClosed)
		s.st.newIncident(issue.updated, texts[len(texts)-1].ID)
	}
	for _, l := range issue.labels {
		if slices.Contains(ownLabels, l.Name) {
			s.st.Labels = append(s.st.Labels, l.Name)
		}
	}
	s.st.Audit.Chain = last.Chain
	return answered, s.newChain(fmt.Sprintf("the last marker in the thread: %d.%d.%s", last.Chain, last.Seq, last.Hash))
}

// newChain begins a chain after those that the thread's markers or the audit
// log itself know of, which outlives the rest of the database where a backup
// was put back (store.Reread).
func (s *session) newChain(note string) error {
	s.st.Audit.Chain = max(s.st.Audit.Chain, s.t.AuditChain) + 1
	return s.audit(AuditEntry{What: "rebuilt", Note: note})
}

// verifiedOnce adds records to those of an object, each once: every later
// answer tells them again.
func verifiedOnce(all map[forge.Object][]record, o forge.Object, records []record) map[forge.Object][]record {
	if all == nil {
		all = map[forge.Object][]record{}
	}
	for _, r := range records {
		if !slices.ContainsFunc(all[o], func(h record) bool { return playbook.SameAttempt(h.Attempt, r.Attempt) }) {
			all[o] = append(all[o], r)
		}
	}
	return all
}

// decisionIn reads the folded decision of one of our own, verified answers.
func decisionIn(body string) *playbook.Decision {
	at := foldedDecision.FindStringSubmatch(canonical(body))
	if at == nil {
		return nil
	}
	var d playbook.Decision
	if json.Unmarshal([]byte(at[1]), &d) != nil || d.Schema != playbook.DecisionSchema {
		return nil
	}
	return &d
}

// toldDecision is a decision with the comment of ours that tells it.
type toldDecision struct {
	playbook.Decision
	in  text
	key string
}

// restoreRequests follows the decisions in the order in which they were made,
// which need not be that of the thread: whoever deletes one has it posted again
// at the end, and whoever edits one into a copy of another has it elsewhere.
func (s *session) restoreRequests(told []toldDecision, authors map[int64]forge.Account) {
	slices.SortStableFunc(told, func(a, b toldDecision) int { return a.DecidedAt.Compare(b.DecidedAt) })
	for _, d := range told {
		if strings.HasPrefix(d.key, restoredPrefix) {
			// It stands where it was posted again, and tells of what was before.
			d.in.ID, d.in.created = d.AnswersComment, d.DecidedAt
		}
		s.restoreRequest(d.Decision, authors, d.in)
	}
}

// restoreRequest follows one decision.
func (s *session) restoreRequest(d playbook.Decision, authors map[int64]forge.Account, t text) {
	var number int
	if _, n, ok := strings.Cut(d.Request, "/"); !ok {
		return
	} else if _, err := fmt.Sscanf(n, "%d", &number); err != nil {
		return
	}
	s.st.LastRequest = max(s.st.LastRequest, number)
	switch d.State {
	case stateOpen, stateApproved:
	case stateRecovered:
		s.st.end(stateRecovered)
		s.st.newIncident(t.created, t.ID)
		return
	default:
		if s.st.Request != nil && s.st.Request.ID == d.Request {
			s.st.end(d.State)
		}
		return
	}
	r := s.st.Request
	if r == nil || r.ID != d.Request {
		r = &request{ID: d.Request, Action: d.Action, Target: d.Target, BreakGlass: d.BreakGlass.Requested, At: d.DecidedAt,
			Trigger: answers(d, s.t.Number), Symptoms: d.Symptoms}
		r.Requester = authors[d.AnswersComment]
		if !strings.EqualFold(r.Requester.Login, d.Requester) {
			// The answer that opened it is gone; the name is no identity.
			r.Requester = forge.Account{Login: d.Requester}
		}
		r.Form = r.Trigger.Kind == forge.ObjectIssue
	}
	r.Verdict, r.Code, r.DecidedAt, r.MustAsk = d.Verdict, d.Code, d.DecidedAt, true
	if by, ok := authors[d.AnswersComment]; ok && d.Endorser != nil && r.Endorsement == nil && strings.EqualFold(by.Login, *d.Endorser) {
		r.Endorsement = &endorsement{By: by, Comment: answers(d, s.t.Number), At: d.DecidedAt}
	}
	if d.Verdict == verdictApproved {
		// Whatever it was approved for, the evidence is to be asked again.
		r.Verdict, r.Approvals = verdictExpired, r.Approvals+1
	}
	s.st.Request, s.st.Ended = r, ""
}

// answers is the text a decision answered.
func answers(d playbook.Decision, number int64) forge.Object {
	if d.AnswersComment == 0 {
		return forge.Object{Kind: forge.ObjectIssue, ID: number}
	}
	return forge.Object{Kind: forge.ObjectComment, ID: d.AnswersComment}
}

// relist compares the whole thread with what is stored, as must be done
// before an approval: an edit or deletion whose delivery is still on the way
// must not be approved upon. Texts older than the one in hand that nobody has
// heard of come first, as events.
func (s *session) relist(ctx context.Context, upTo int64) error {
	comments, err := s.list(ctx)
	if err != nil {
		return err
	}
	s.b.Fail("listed")
	listed := map[forge.Object]bool{}
	var unknown []store.Incoming
	for _, c := range comments {
		t := commentText(c)
		listed[t.Object] = true
		known, err := s.lookup(ctx, t.Object)
		if err == nil {
			t, err = s.attribute(ctx, t, known)
		}
		switch {
		case err != nil:
			return err
		case t.author.ID == s.self.ID || known == nil && (t.ID > upTo || s.b.Ignored(t.author.Login)):
		case known == nil && s.waits(t.Object, forge.ActionCreated):
			// It comes after this one, as what was written after it does.
		case known == nil && s.now.Sub(t.created) < lateDelivery:
			return &waitError{d: time.Second}
		case known == nil:
			late, err := s.unread(ctx, t)
			if err != nil {
				return err
			}
			unknown = append(unknown, late...)
		case t.updated.Before(known.UpdatedAt):
			// A replica behind its primary: what is stored is newer.
		case known.BodySHA != bodySHA(t.body) || known.Deleted:
			if err := s.reread(ctx, known, t); err != nil {
				return err
			}
		}
	}
	if len(unknown) > 0 {
		return &waitError{found: unknown}
	}
	return s.recheck(ctx, listed)
}

// unread is what to do about a listed text that is not stored: nobody has
// heard of it, so it comes as an event; or its event ended without the text
// being read (dead, or gone for a while), and then its records are taken in
// here and its commands are not run, or this would be asked for ever.
func (s *session) unread(ctx context.Context, t text) ([]store.Incoming, error) {
	seen, err := s.b.Ledger.Seen(ctx, s.t.Forge, s.t.Repo.ID, t.Object)
	if err != nil {
		return nil, err
	}
	if r := s.read(t, t.created); !seen && !asks(r) && !s.bears(t, r) {
		// It wants no answer: no reason for a call of its own.
		s.take(t, r, t.rights() && t.unedited()).data.Ran = true
		return nil, nil
	}
	if !seen {
		return []store.Incoming{s.found(t)}, nil
	}
	attested, err := s.b.Ledger.Attested(ctx, s.t.Forge, s.t.Repo.ID, t.Object, bodySHA(t.body))
	if err != nil {
		return nil, err
	}
	o := s.take(t, s.read(t, t.created), t.rights() && (attested || t.unedited() || t.proved))
	o.data.Unread = true
	return nil, nil
}

// recheck looks at the kept texts that a listing of comments does not show:
// deleted ones, and the issue's own text where anything rests on it.
func (s *session) recheck(ctx context.Context, listed map[forge.Object]bool) error {
	for _, o := range s.ordered() {
		switch {
		case o.Deleted || listed[o.Object.Object] || o.Author.ID == s.self.ID:
		case o.Kind == forge.ObjectComment:
			// A listing may come from a replica that does not have it yet.
			if _, err := s.fetch(ctx, o.Object.Object); err == nil {
				continue
			} else if !gone(err) {
				return err
			}
			s.strike(o)
			s.basis(o, nil)
		case s.restsOn(o):
			t, err := s.fetch(ctx, o.Object.Object)
			if err != nil {
				return err
			}
			if o.BodySHA != bodySHA(t.body) {
				if err := s.reread(ctx, o, t); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

func (s *session) restsOn(o *object) bool {
	return len(o.data.Records) > 0 || s.st.Request != nil && s.st.Request.Trigger == o.Object.Object
}

// reread takes a changed text's records in, without its commands.
func (s *session) reread(ctx context.Context, o *object, t text) error {
	attested, err := s.b.Ledger.Attested(ctx, s.t.Forge, s.t.Repo.ID, t.Object, bodySHA(t.body))
	if err != nil {
		return err
	}
	r := s.read(t, t.updated)
	s.retake(o, t, r, attested && t.rights() && !t.filed)
	if o.data.Unread {
		o.BodySHA = [32]byte{} // for the sweep to find, so that its commands are carried out
	}
	s.basis(o, &r)
	if q := s.st.Request; t.filed && q != nil && q.Form && q.Trigger == o.Object.Object {
		s.broken = ref(o.Object.Object) + ", filed in its requester's name, was changed"
	}
	return nil
}
