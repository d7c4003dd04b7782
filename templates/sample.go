package templates

import (
	"time"

	"playbook-bot/playbook"
)

// samples are answers of every kind, with and without what may be absent.
// Templates of the operator's are tried on them at start: what fails only
// when a request has no target is found then, and not at night.
func samples(pb *playbook.Playbook) []Answer {
	rungs := pb.Rungs()
	narrow, broad := rungs[0], rungs[len(rungs)-1]
	at := time.Date(2026, 12, 1, 3, 4, 11, 0, time.UTC)
	until, endorser := at.Add(pb.ApprovalTTL()), "ada"
	tried := playbook.Attempt{
		Action: narrow.Action, Outcome: countingOutcome(pb, "insufficient"), Reason: "still the same", Actor: "ben", RecordedBy: "ada",
		Target: "search", RecordedAt: at.Add(-time.Hour), PostedAt: at.Add(-time.Hour), Ref: "comment 812",
	}
	kill := playbook.Attempt{Action: "pkill -9 search", Actor: "ben", RecordedBy: "ada", Kill: true, RecordedAt: at}
	ask := func(action string, s playbook.Permission, attempts ...playbook.Attempt) *playbook.Decision {
		d := &playbook.Decision{Schema: playbook.DecisionSchema, Request: "41/1", State: "open", Verdict: "refused",
			Requester: "ben", Standing: playbook.Standing{Permission: s, Roles: []string{}}, DecidedAt: at}
		d.Assessment = pb.AssessEscalation(playbook.Escalation{Action: action, Target: "search", Actor: "ben",
			Request: "41/1", Standing: d.Standing, Attempts: attempts, Now: at, Symptoms: []string{"slow"}})
		return d
	}
	approved := ask(broad.Action, playbook.PermissionOwner, tried, kill)
	approved.Verdict, approved.State, approved.ApprovedUntil = "approved", "approved", &until
	approved.Endorser, approved.Audit = &endorser, &playbook.AuditMark{Seq: 118}
	glass := *approved
	glass.BreakGlass.Used = true
	undecided := ask(broad.Action, playbook.PermissionUnknown)
	undecided.Verdict = "undecided"
	metrics := pb.RecoveryMetrics([]playbook.Attempt{tried})
	advice := pb.RecommendActions([]string{"slow"}, nil)
	decisions := []*playbook.Decision{
		nil, approved, &glass, undecided, ask("restart", playbook.PermissionOwner), ask("pkill", playbook.PermissionOwner),
		ask(broad.Action, playbook.PermissionNone), ask(broad.Action, playbook.PermissionOwner),
		ask(broad.Action, playbook.PermissionOwner, kill), ask(narrow.Action, playbook.PermissionOwner),
	}
	var out []Answer
	for _, kind := range Kinds {
		for _, d := range decisions {
			out = append(out, Answer{Bot: "playbook-bot", At: at, Decision: d, Sections: []Section{{Kind: kind, D: d}}},
				Answer{Bot: "playbook-bot", At: at, Decision: d, Sections: []Section{{
					Kind: kind, D: d, Rung: &broad, Next: &narrow, NextSymptom: "slow", Reason: "all down", Author: "ben",
					Replaced: "41/0", Open: "41/2", Taken: []playbook.Attempt{tried, kill}, Notify: []string{"ops/oncall"},
					Since:     &Since{RefusedAt: at, New: []playbook.Attempt{tried}, Endorser: "ada", Standing: true},
					Endorsers: []string{"ada"}, Grant: "ops/incidents", Forge: "Gitea", Status: 403, Until: until,
					Because: "ben deleted an attempt", ApprovedAt: at, OutcomeMissing: true, Recommendation: &advice,
					Ladder: rungs, Metrics: &metrics, Title: "A title", Text: "A text", Post: "/withdraw", Notes: []string{"a note"},
				}}})
		}
	}
	return out
}
