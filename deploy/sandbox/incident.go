//go:build unix

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
	"time"

	sdk "code.gitea.io/sdk/gitea"

	"playbook-bot/deploy/sandbox/internal/bot"
	"playbook-bot/deploy/sandbox/internal/tracker"
	"playbook-bot/playbook"
	"playbook-bot/templates"
)

// The people of the incident.
const (
	owner  = "olivia"
	admin  = "adam"
	writer = "wren"
	reader = "rhea"
)

// answerLimit is how long an answer may take before the incident has failed.
// The bot takes a second or two.
const answerLimit = time.Minute

// request is what the reader asks for; the form's fields are by their ids.
var request = map[string]string{
	"restart_class": "full_mcp_restart",
	"target":        "mcp-search",
	"symptoms":      "stale_capability",
	"what_happened": "Since the deployment at noon every client gets 404 from mcp-search.",
}

// newIncident makes the incident's repository: people, the bot's labels, the
// form, and the hook. The bot is configured and does not run yet.
func newIncident(ctx context.Context, s *sandbox) (*tracker.Repo, *bot.Bot, error) {
	repo, err := s.gitea.NewRepo(ctx, tracker.RepoSpec{
		Org: "ops", Name: "incidents", Owner: owner,
		People: []tracker.Person{{Login: admin, Permission: "admin"}, {Login: writer, Permission: "write"}, {Login: reader, Permission: "read"}},
	})
	if err != nil {
		return nil, nil, err
	}
	for _, label := range templates.Labels() {
		err := repo.Label(ctx, sdk.CreateLabelOption{
			Name: label.Name, Color: "#" + label.Color, Description: label.Description, Exclusive: label.Exclusive,
		})
		if err != nil {
			return nil, nil, err
		}
	}
	if err := repo.Commit(ctx, ".gitea/"+templates.FormPath, templates.FormYAML); err != nil {
		return nil, nil, err
	}
	b, err := s.newBot(ctx, repo)
	return repo, b, err
}

// incident is the one thread of it, as it goes on.
type incident struct {
	repo   *tracker.Repo
	number int64
	// show is given each entry, in order, once Gitea holds it.
	show func(tracker.Entry)
	seen map[int64]bool
}

// play plays a recovery from request to end. The error says what did not come
// as expected.
func play(ctx context.Context, repo *tracker.Repo, show func(tracker.Entry)) (*incident, error) {
	i := &incident{repo: repo, show: show, seen: map[int64]bool{}}

	refusal, err := i.ask(ctx)
	if err != nil {
		return i, fmt.Errorf("the refusal: %w", err)
	}
	attempt := "/attempt " + refusal.Next + " insufficient whoami still names the old build"
	if err := i.say(ctx, writer, attempt, recorded); err != nil {
		return i, fmt.Errorf("the recording of an attempt: %w", err)
	}
	if err := i.say(ctx, admin, "/endorse "+refusal.Request, approved); err != nil {
		return i, fmt.Errorf("the approval: %w", err)
	}
	if err := i.say(ctx, reader, "/resolved full_mcp_restart all clients answer again", recovered); err != nil {
		return i, fmt.Errorf("the recovery: %w", err)
	}
	return i, i.settled(ctx)
}

// ask opens the issue with the form and returns the refusal.
func (i *incident) ask(ctx context.Context) (playbook.Decision, error) {
	var err error
	i.number, err = i.repo.OpenForm(ctx, reader, path.Base(templates.FormPath), "mcp-search", request)
	if err != nil {
		return playbook.Decision{}, err
	}
	answer, err := i.answer(ctx, 0)
	if err != nil {
		return playbook.Decision{}, err
	}
	return refused(answer)
}

// say comments as somebody, awaits the answer and checks it.
func (i *incident) say(ctx context.Context, as, text string, check func(tracker.Entry) error) error {
	id, err := i.repo.Comment(ctx, as, i.number, text)
	if err != nil {
		return err
	}
	answer, err := i.answer(ctx, id)
	if err != nil {
		return err
	}
	return check(answer)
}

// answer awaits the bot's first comment after the entry of that id, and shows
// everything that is new.
func (i *incident) answer(ctx context.Context, after int64) (tracker.Entry, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, answerLimit, fmt.Errorf("no answer within %s", answerLimit))
	defer cancel()
	thread, err := tracker.Await(ctx, i.repo, i.number, func(t tracker.Thread) bool {
		return len(t.After(after, botLogin)) > 0
	})
	for _, e := range thread.Entries {
		if !i.seen[e.ID] {
			i.seen[e.ID] = true
			i.show(e)
		}
	}
	if err != nil {
		return tracker.Entry{}, err
	}
	return thread.After(after, botLogin)[0], nil
}

// settled awaits what follows the last answer: the label and the reaction.
func (i *incident) settled(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, answerLimit, fmt.Errorf("no label %s within %s", templates.LabelRecovered, answerLimit))
	defer cancel()
	_, err := tracker.Await(ctx, i.repo, i.number, func(t tracker.Thread) bool {
		return slices.Contains(t.Labels, templates.LabelRecovered)
	})
	return err
}

// decisionJSON is the folded decision in an answer.
var decisionJSON = regexp.MustCompile("(?s)```json\n(\\{.*?\\})\n```")

// decisionOf reads the decision an answer holds.
func decisionOf(answer tracker.Entry) (playbook.Decision, error) {
	var d playbook.Decision
	found := decisionJSON.FindStringSubmatch(answer.Body)
	if found == nil {
		return d, errors.New("the answer holds no decision")
	}
	if err := json.Unmarshal([]byte(found[1]), &d); err != nil {
		return d, fmt.Errorf("read the answer's decision: %w", err)
	}
	return d, nil
}

// expect is the first of the conditions that does not hold, as an error.
func expect(conditions ...condition) error {
	for _, c := range conditions {
		if !c.holds {
			return errors.New("the answer does not say: " + c.what)
		}
	}
	return nil
}

type condition struct {
	holds bool
	what  string
}

func refused(answer tracker.Entry) (playbook.Decision, error) {
	d, err := decisionOf(answer)
	if err != nil {
		return d, err
	}
	return d, expect(
		condition{!d.Allowed && d.Verdict == "refused", "refused"},
		condition{d.Request != "", "the request's id"},
		condition{d.Next != "" && strings.Contains(verdictText(answer), d.Next), "the next rung to try"},
		condition{strings.Contains(verdictText(answer), "/endorse "+d.Request), "how to endorse"},
	)
}

func recorded(answer tracker.Entry) error {
	return expect(
		condition{strings.Contains(answer.Body, "Recorded"), "recorded"},
		condition{strings.Contains(answer.Body, "endorsement"), "that an endorsement is missing"},
	)
}

func approved(answer tracker.Entry) error {
	d, err := decisionOf(answer)
	if err != nil {
		return err
	}
	return expect(
		condition{d.Allowed && d.Verdict == "approved", "approved"},
		condition{d.Endorser != nil && *d.Endorser == admin, "who endorsed"},
		condition{len(d.Counted) == 1, "the attempt that counted"},
		condition{d.ApprovedUntil != nil && d.ApprovedUntil.After(answer.Created), "until when"},
	)
}

func recovered(answer tracker.Entry) error {
	return expect(condition{strings.Contains(verdictText(answer), "Recovered"), "recovered"})
}

// verdictText is what of an answer is shown unfolded.
func verdictText(answer tracker.Entry) string {
	text, _, _ := strings.Cut(answer.Body, "<details>")
	return text
}
