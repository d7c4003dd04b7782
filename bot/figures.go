package bot

import (
	"playbook-bot/bot/store"
	"playbook-bot/playbook"
)

// LoggedAttempts are the attempts that a stored text holds, of all incidents,
// for figures: what was altered, and what no account's word is behind, is not
// among them. It gives what "/playbook metrics" counts.
func LoggedAttempts(o store.Object) ([]playbook.Attempt, error) {
	var d objectData
	if err := decodeObject(o.Data, &d); err != nil {
		return nil, err
	}
	return d.attempts(), nil
}

func (d objectData) attempts() []playbook.Attempt {
	var out []playbook.Attempt
	for _, r := range d.Records {
		if !r.Altered && d.Rights {
			out = append(out, r.Attempt)
		}
	}
	return out
}
