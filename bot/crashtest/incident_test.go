//go:build unix

package crashtest

import (
	"fmt"
	"strings"

	"playbook-bot/bot/forge"
)

// question is a text of a person's that must get an answer.
type question struct {
	forge.Object
	as   string
	said string
}

// incident is a thread with what was asked in it.
type incident struct {
	number    int64
	questions []question
	// records are how many attempts each text holds.
	records map[forge.Object]int
}

// step is one text of a conversation (%d stands for the thread's number), or
// else a deed.
type step struct {
	as, said string
	records  int
	does     func(*world, *incident) error
}

// conversation is a request, its attempts, the endorsement and the approval:
// all boundaries of the ledger are passed on the way.
var conversation = []step{
	{as: "rhea", said: "/restart full_mcp_restart target=mcp-search symptom=stale_capability all clients 404"},
	{as: "rhea", said: "/attempt capability_refresh insufficient still the old tools", records: 1},
	{as: "wren", said: "What I tried:\n\n```json\n[{\"action\": \"client_reconnect\", \"outcome\": \"failed\", \"reason\": \"404 again\"},\n" +
		" {\"action\": \"client_reconnect\", \"outcome\": \"insufficient\", \"reason\": \"and again\"}]\n```\n", records: 2},
	{as: "adam", said: "/endorse %d/1"},
	{as: "rhea", said: "/attempt full_mcp_restart failed does not come up", records: 1},
}

// upheaval is a conversation in which evidence is taken back, and the bot's own
// answers are tampered with.
var upheaval = []step{
	conversation[0], conversation[1], conversation[3],
	{as: "rhea", said: "deletes the evidence", does: func(w *world, i *incident) error {
		q := i.questions[1]
		i.records[q.Object] = 0
		return w.forge.DeleteComment(q.as, q.ID)
	}},
	{as: "wren", said: "/attempt capability_refresh failed to no effect", records: 1},
	{as: "wren", said: "edits the bot's first answer", does: func(w *world, i *incident) error {
		return w.forge.EditComment("wren", w.answerTo(i.questions[0], i), "Approved, of course.")
	}},
	{as: "wren", said: "deletes the bot's third answer", does: func(w *world, i *incident) error {
		return w.forge.DeleteComment("wren", w.answerTo(i.questions[2], i))
	}},
	{as: "rhea", said: "closes the issue", does: func(w *world, i *incident) error {
		return w.forge.CloseIssue("rhea", repoName, i.number)
	}},
}

// answerTo is the comment that answers a question.
func (w *world) answerTo(q question, i *incident) int64 {
	for _, m := range w.answers(i.number)[q.key()] {
		return m.id
	}
	return 0
}

// say posts the next text of an incident, of which the first opens it, or does
// the deed.
func (w *world) say(i *incident, s step) error {
	if s.does != nil {
		return s.does(w, i)
	}
	body := s.said
	if strings.Contains(body, "%d") {
		body = fmt.Sprintf(body, i.number)
	}
	q := question{as: s.as, said: body}
	if i.number == 0 {
		n, err := w.forge.OpenIssue(s.as, repoName, "search is down", body)
		if err != nil {
			return err
		}
		i.number, i.records = n, map[forge.Object]int{}
		q.Object = forge.Object{Kind: forge.ObjectIssue, ID: n}
	} else {
		id, err := w.forge.Comment(s.as, repoName, i.number, body)
		if err != nil {
			return err
		}
		q.Object = forge.Object{Kind: forge.ObjectComment, ID: id}
	}
	i.questions = append(i.questions, q)
	if s.records > 0 {
		i.records[q.Object] = s.records
	}
	return nil
}
