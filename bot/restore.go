package bot

import (
	"fmt"
	"slices"
	"strings"

	"playbook-bot/bot/forge"
	"playbook-bot/bot/store"
)

// restoreAnswer keeps one of the bot's own answers, so that it is restored if
// somebody edits or deletes it. Of two with one key the first is the answer;
// the other comes as a hint, and is found to be a double.
func (s *session) restoreAnswer(m marker, t text) {
	if s.t.AuditChain != 0 {
		return // a backup was put back, and it has them
	}
	if slices.ContainsFunc(s.change.Answers, func(a store.Answer) bool { return a.Key == m.Key }) {
		in := s.found(t)
		in.Action = forge.ActionEdited
		s.change.Found = append(s.change.Found, in)
		return
	}
	trigger, ok := answeredObject(m.Key)
	if !ok {
		trigger = forge.Object{Kind: forge.ObjectIssue, ID: s.t.Number}
	}
	s.change.Answers = append(s.change.Answers, store.Answer{Key: m.Key, Body: t.body, Trigger: trigger, Status: store.AnswerPosted,
		CommentID: t.ID, CreatedAt: t.created})
}

// restoreCounts makes sure that no answer to come bears the key of one that
// was given.
func (s *session) restoreCounts() {
	r := s.st.Request
	if r == nil {
		return
	}
	for _, a := range s.change.Answers {
		var n int
		if rest, ok := strings.CutPrefix(a.Key, "flip:"+r.ID+":"); ok {
			if _, err := fmt.Sscanf(rest, "%d", &n); err == nil {
				r.Flips = max(r.Flips, n)
			}
		}
		for _, ended := range []string{revokeKey(r.ID + "."), expiredKey(r.ID + ".")} {
			if rest, ok := strings.CutPrefix(a.Key, ended); ok {
				if _, err := fmt.Sscanf(rest, "%d", &n); err == nil {
					r.Approvals = max(r.Approvals, n)
				}
			}
		}
	}
}

// readHere finishes the events of texts that a sweep found and that want no
// answer: the listing tells all about them, without a call for each.
func (s *session) readHere(texts []text, answered, waiting map[forge.Object]bool) {
	listed := map[forge.Object]text{}
	for _, t := range texts {
		listed[t.Object] = t
	}
	wanting := false
	for _, ev := range s.t.Events {
		t, ok := listed[ev.Object]
		if !ok || ev.Source != store.SourceSweep || ev.Action != opening(t) || answered[t.Object] || t.author.ID == s.self.ID {
			continue
		}
		r := s.read(t, t.created)
		if wanting = wanting || asks(r); asks(r) || s.bears(t, r) || wanting && len(r.Records) > 0 {
			continue
		}
		delete(waiting, ev.Object)
		s.quiet = append(s.quiet, ev.Object)
		s.finish(ev, "read with the whole thread")
	}
}

// restoreBasis takes back what rests on a line that is gone, as an edit or
// deletion told of would have.
func (s *session) restoreBasis(texts []text) {
	r := s.st.Request
	if r == nil {
		return
	}
	if r.Requester.ID == 0 {
		s.restoreTrigger(r, texts)
	}
	var asked, endorsed bool
	for _, t := range texts {
		o := &object{Object: store.Object{Object: t.Object}}
		switch read := s.read(t, t.created); {
		case t.Object == r.Trigger:
			asked = true
			s.basis(o, &read)
		case r.Endorsement != nil && t.Object == r.Endorsement.Comment:
			endorsed = true
			s.basis(o, &read)
		}
	}
	if !endorsed {
		r.Endorsement = nil
	}
	if !asked || s.broken != "" {
		s.st.end(stateWithdrawn)
	}
	s.broken = ""
}

// restoreTrigger looks for the text that asked where the answer to it is gone,
// so that an answer to another's text is the first to speak of the request.
func (s *session) restoreTrigger(r *request, texts []text) {
	if !slices.ContainsFunc(texts, func(t text) bool { return t.Object == r.Trigger }) {
		return // answered, and deleted since
	}
	for _, t := range texts {
		if strings.EqualFold(t.author.Login, r.Requester.Login) && t.rights() && stillAsks(s.read(t, t.created), *r) {
			r.Trigger, r.Requester, r.Form = t.Object, t.author, t.Kind == forge.ObjectIssue
			return
		}
	}
}
