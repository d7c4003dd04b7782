package comment

import (
	"encoding/json"
	"time"

	"playbook-bot/playbook"
)

// Explanation is what a text holds for the bot, in the published shape of
// `playbook-bot explain --json`: all keys are there, also the empty ones.
type Explanation struct {
	Commands   []ExplainedCommand      `json:"commands"`
	Records    []ExplainedRecord       `json:"records"`
	Rejections []playbook.RejectedText `json:"rejections"`
	Form       *Form                   `json:"form"`
}

// ExplainedCommand is a command as Explanation shows it.
type ExplainedCommand struct {
	Name     string   `json:"name"`
	Line     int      `json:"line"`
	Action   string   `json:"action"`
	Outcome  string   `json:"outcome"`
	Target   string   `json:"target"`
	Symptoms []string `json:"symptoms"`
	Reason   string   `json:"reason"`
}

// ExplainedRecord is a record as Explanation shows it. RecordedAt is null
// where neither the text nor its reader gives a time.
type ExplainedRecord struct {
	Action     string     `json:"action"`
	Outcome    string     `json:"outcome"`
	Reason     string     `json:"reason"`
	Actor      string     `json:"actor"`
	RecordedAt *time.Time `json:"recorded_at"`
	Target     string     `json:"target"`
	Line       int        `json:"line"`
	Source     string     `json:"source"`
}

// Explain brings what was read into its published shape.
func Explain(r Read) Explanation {
	e := Explanation{
		Commands:   []ExplainedCommand{},
		Records:    []ExplainedRecord{},
		Rejections: append([]playbook.RejectedText{}, r.Rejections...),
		Form:       r.Form,
	}
	for _, c := range r.Commands {
		e.Commands = append(e.Commands, ExplainedCommand{
			c.Name, c.Line, c.Action, c.Outcome, c.Target, append([]string{}, c.Symptoms...), c.Reason,
		})
	}
	for _, a := range r.Records {
		x := ExplainedRecord{
			Action: a.Action, Outcome: a.Outcome, Reason: a.Reason, Actor: a.Actor,
			Target: a.Target, Line: a.Line, Source: a.Source,
		}
		if !a.RecordedAt.IsZero() {
			x.RecordedAt = &a.RecordedAt
		}
		e.Records = append(e.Records, x)
	}
	return e
}

// MarshalJSON writes the published shape.
func (r Read) MarshalJSON() ([]byte, error) { return json.Marshal(Explain(r)) }
