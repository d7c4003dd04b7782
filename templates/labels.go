package templates

import _ "embed"

// FormYAML is the issue form. The same file works as
// .gitea/ISSUE_TEMPLATE/restart-request.yaml and under .github.
//
//go:embed forms/restart-request.yaml
var FormYAML []byte

// FormPath is the form's place beneath .gitea/ or .github/.
const FormPath = "ISSUE_TEMPLATE/restart-request.yaml"

// Label describes a label of a forge.
type Label struct {
	Name string
	// Color is six hexadecimal digits without "#".
	Color       string
	Description string
	// Exclusive: of the labels with the same prefix before the last "/" an
	// issue bears one at most. Gitea and Forgejo hold to it; on GitHub the bot
	// does.
	Exclusive bool
}

// The labels' names. They follow the thread's state and prove nothing.
const (
	LabelRequested    = "recovery/requested"
	LabelApproved     = "recovery/approved"
	LabelRefused      = "recovery/refused"
	LabelRecovered    = "recovery/recovered"
	LabelContaminated = "recovery-contaminated"
	LabelBreakGlass   = "recovery-break-glass"
)

// Labels gives all labels that the bot sets, in the order of a recovery.
func Labels() []Label {
	return []Label{
		{LabelRequested, "fbca04", "A restart is asked for; the playbook has not approved it", true},
		{LabelRefused, "b60205", "Refused for now; the bot's answer says what is missing", true},
		{LabelApproved, "0e8a16", "Approved until the time in the bot's answer; proof: playbook-bot approval", true},
		{LabelRecovered, "1d76db", "It works again; the request has ended", true},
		{LabelContaminated, "5319e7", "A process was killed by hand; what is seen may stem from that", false},
		{LabelBreakGlass, "d93f0b", "The attempt log was skipped by break-glass", false},
	}
}
