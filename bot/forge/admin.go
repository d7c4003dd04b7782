package forge

import "time"

// Traits are the differences between forges that setting up and checking up
// have to know of.
type Traits struct {
	// OrgLabels: an organisation can have labels for all its repositories.
	OrgLabels bool
	// EditSecret: a hook's secret can be changed, and there is only one hook to
	// an address; else it takes another hook.
	EditSecret bool
	// OrgTest: a test delivery can be had of an organisation's hook.
	OrgTest bool
	// Needs is the least permission that lets the bot's account read those of
	// others.
	Needs Permission
	// FormDir is the directory of the repository's settings, such as ".gitea".
	FormDir string
}

// Version is what a server says of itself.
type Version struct {
	// Text is in the server's own words.
	Text string
	// Known: it could be read; Enough: it is no older than Needed, in words.
	Known, Enough bool
	Needed        string
	// Date is the server's clock at the answer; zero: untold.
	Date time.Time
}

// Place is where a hook or a label is kept: in a repository, or in an
// organisation for all its repositories. Exactly one field is set.
type Place struct {
	Repo int64
	Org  string
}

// Hook is a web hook as the forge shows it. Its secret is not shown.
type Hook struct {
	ID     int64
	URL    string
	Active bool
	// JSON: it sends JSON and not forms.
	JSON bool
	// Lacking are the events that the bot acts on and the hook does not send,
	// by the forge's names.
	Lacking []string
	// Testable: a test delivery would be sent through it.
	Testable bool
}

// HookSpec is how a hook is to be; which events it sends is the adapter's to
// know.
type HookSpec struct {
	URL, Secret string
}

// LabelFound is a label as the forge shows it.
type LabelFound struct {
	ID int64
	LabelSpec
}

// File is a file of a repository on some branch.
type File struct {
	Content []byte
	// Version names the content, for a change that is to replace just that.
	Version string
}

// FileChange is one commit that writes or removes one file.
type FileChange struct {
	Path    string
	Content []byte
	// Version is the file's that is replaced or removed; "": the file is new.
	Version string
	Message string
	// NewBranch is the branch to make for the commit, from the default branch,
	// which gets it otherwise.
	NewBranch string
}

// Team is a team of an organisation.
type Team struct {
	ID   int64
	Name string
	// Admin: its members administer its repositories.
	Admin bool
	// AllRepos: its repositories are all that the organisation has.
	AllRepos bool
}
