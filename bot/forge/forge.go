// Package forge is the neutral language in which the bot speaks of a tracker:
// events, threads, comments, accounts, permissions, kinds of error. It holds
// no policy and talks to nobody; the adapters beside it do.
package forge

import (
	"strings"
	"time"
)

// Permission is a forge's own answer, mapped; see playbook.Permission for the
// order. It is a type of its own because adapters never see the policy.
type Permission string

// The permissions an adapter may answer. A value the adapter does not know is
// PermissionNone with no error: unknown values deny.
const (
	PermissionNone  Permission = "none"
	PermissionRead  Permission = "read"
	PermissionWrite Permission = "write"
	PermissionAdmin Permission = "admin"
	PermissionOwner Permission = "owner"
)

// Account is a forge account. Rights hang on ID, never on Login: logins are
// renamed and reused.
type Account struct {
	// ID is 0 or negative for the ghost account and for absent ones.
	ID    int64  `json:"id"`
	Login string `json:"login"`
}

// Real reports whether the account is one that can carry rights.
func (a Account) Real() bool { return a.ID > 0 && a.Login != "" }

// Repo is a repository. ID is its identity; Owner and Name are what it is
// called at present.
type Repo struct {
	ID      int64  `json:"id"`
	Owner   string `json:"owner"`
	OwnerID int64  `json:"owner_id"`
	Name    string `json:"name"`
}

// FullName is owner/name.
func (r Repo) FullName() string { return r.Owner + "/" + r.Name }

// PlaybookPaths are where a repository's own playbook may stand, by a forge's
// name, which begins with its kind; the first that is there holds.
func PlaybookPaths(forgeName string) []string {
	const name = "/recovery-playbook.yaml"
	switch {
	case strings.HasPrefix(forgeName, "github"):
		return []string{".github" + name}
	case strings.HasPrefix(forgeName, "forgejo"):
		return []string{".forgejo" + name, ".gitea" + name, ".github" + name}
	}
	return []string{".gitea" + name, ".github" + name}
}

// Issue is an issue or pull request as the forge holds it now.
type Issue struct {
	ID     int64
	Number int64
	Author Account
	// OriginalAuthor is non-empty for a migrated issue: its account is the
	// importer's and carries no rights.
	OriginalAuthor string
	Title, Body    string
	Closed         bool
	Pull           bool
	// Comments is how many comments the forge says there are.
	Comments             int
	Labels               []Label
	CreatedAt, UpdatedAt time.Time
}

// Label is a label of an issue or repository.
type Label struct {
	ID   int64
	Name string
}

// Comment is a comment as the forge holds it now.
type Comment struct {
	ID     int64
	Number int64 // of the issue it belongs to
	Author Account
	// OriginalAuthor is as in Issue.
	OriginalAuthor       string
	Body                 string
	CreatedAt, UpdatedAt time.Time
}

// ObjectKind says which of a thread's texts is meant.
type ObjectKind string

// The kinds of object.
const (
	ObjectIssue   ObjectKind = "issue"
	ObjectComment ObjectKind = "comment"
)

// Object is one text of a thread: the issue's body (ID is the issue's number,
// so that it can be addressed) or a comment (ID is the comment's).
type Object struct {
	Kind ObjectKind `json:"kind"`
	ID   int64      `json:"id"`
}

// Action is what a delivery says has happened to its object.
type Action string

// The actions the bot acts on. Everything else is ActionOther.
const (
	ActionOpened      Action = "opened"      // issue
	ActionCreated     Action = "created"     // comment
	ActionEdited      Action = "edited"      // either
	ActionDeleted     Action = "deleted"     // either
	ActionClosed      Action = "closed"      // issue
	ActionReopened    Action = "reopened"    // issue
	ActionTransferred Action = "transferred" // issue
	ActionOther       Action = "other"
)

// Event is a delivery, decoded. From a payload only ids, action, sender and
// body are kept; each is checked against the API where rights hang on it.
type Event struct {
	// Forge is the adapter's name, e.g. "gitea".
	Forge string
	// Delivery is the delivery's id: good for logs, never a key (a redelivery
	// from Gitea's page has a new one, two hooks give two).
	Delivery string
	Repo     Repo
	// OrgID is the owning organisation's (owner's) id, against which an
	// organisation hook is checked.
	OrgID  int64
	Number int64
	Object Object
	Action Action
	Sender Account
	// Author is the object's author by the payload.
	Author Account
	// Body is the object's text as delivered.
	Body string
	Pull bool
}

// Reaction is a reaction on an issue or comment.
type Reaction string

// The reactions the bot gives.
const (
	ReactionSeen     Reaction = "eyes"
	ReactionApproved Reaction = "+1"
	ReactionRefused  Reaction = "-1"
	ReactionConfused Reaction = "confused"
)
