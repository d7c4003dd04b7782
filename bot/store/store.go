// Package store is the bot's ledger: the inbox of deliveries, the threads
// with their state and records, the answers claimed and posted, the audit
// chains. It holds values and keeps promises about them; it decides nothing.
//
// Whatever is written in a thread on the forge is the record. The database is
// a cache of it, plus a ledger of what the bot did, and may be lost.
//
// # The thread's row is the queue
//
// Work is per thread. A row of threads carries wake_at (when there is
// something to do), owner and lease_until (who does it), and fence (a number
// that grows with every change of owner). A worker acquires one due row, and
// each of its commits checks the fence, so that a worker that slept past its
// lease cannot write over its successor's work.
package store

import (
	"context"
	"errors"
	"time"

	"playbook-bot/bot/forge"
)

// The errors callers sort by.
var (
	// ErrFenced: the lease was lost; nothing was written. Drop all in hand.
	ErrFenced = errors.New("the thread belongs to another worker now")
	// ErrNotFound: no such row.
	ErrNotFound = errors.New("not found in the database")
	// ErrNewerSchema: the database was migrated by a newer playbook-bot.
	ErrNewerSchema = errors.New("the database was written by a newer playbook-bot")
	// ErrLocked: another process serves this SQLite file.
	ErrLocked = errors.New("another process serves this database")
	// ErrExists: an answer of that key was decided before; nothing was
	// written.
	ErrExists = errors.New("an answer of that key exists")
	// ErrNoBody: the answer's text was pruned, so it cannot be posted.
	ErrNoBody = errors.New("the answer's text is no longer kept")
	// ErrTooMany: the account has filed as much as it may for now.
	ErrTooMany = errors.New("too many filings")
	// ErrClaimed: a POST of an earlier claim may still be under way.
	ErrClaimed = errors.New("the answer is claimed and its deadline has not passed")
)

// Store is what both databases offer. All methods are safe for concurrent
// use. Times are UTC with millisecond resolution. The database's clock (for
// SQLite: the process's, Options.Now) is the only one that leases, deadlines
// and wake-ups are compared with.
type Store interface {
	// Accept takes a delivery in: the event and its thread's wake-up in one
	// transaction, durable when it returns. taken is false where the event
	// was seen before (opened, created: once for ever, by forge, repository
	// id, kind and object id) or merged into an equal hint that has not
	// started. It also notes the body's SHA-256 as attested where the
	// delivery's sender is the object's author.
	Accept(ctx context.Context, e Incoming) (taken bool, err error)
	// AcceptFound is Accept for what a sweep found, many at a time. Each group
	// of at most 64 is one transaction; after an error some may be in.
	AcceptFound(ctx context.Context, found []Incoming) (taken int, err error)

	// Acquire claims one due thread for owner, or returns nil.
	Acquire(ctx context.Context, owner string, lease time.Duration) (*Lease, error)
	// NextWake is the earliest time at which a thread becomes due (a lease
	// that ends counts), zero where none will.
	NextWake(ctx context.Context) (time.Time, error)
	// Wakes is signalled (never blocking, merged) when a thread may have
	// become due, by this process or another.
	Wakes() <-chan struct{}
	// Heartbeat extends all leases of owner by lease from now.
	Heartbeat(ctx context.Context, owner string, lease time.Duration) error
	// Release gives the thread back and sets wake_at to the earliest of what
	// its next worker could do: the next_at of the first open answer, which
	// holds back all else; where there is none, Due and the next_at of the
	// first waiting event, which holds back those behind it. In a second
	// statement, after the row was locked (in one, PostgreSQL loses a wake-up
	// that commits meanwhile).
	Release(ctx context.Context, l *Lease) error
	// ReleaseAll hands back every thread of owner (SIGTERM).
	ReleaseAll(ctx context.Context, owner string) error

	// Load reads what a worker needs of its thread: at most 500 waiting
	// events, the rest after those are finished.
	Load(ctx context.Context, l *Lease) (*Thread, error)
	// Object reads one object's row; ErrNotFound.
	Object(ctx context.Context, thread int64, o forge.Object) (Object, error)
	// Objects reads all objects of a thread, in order of id, the issue first.
	Objects(ctx context.Context, thread int64) ([]Object, error)
	// Attested reports whether a delivery whose sender was the author carried
	// a body of this hash for the object.
	Attested(ctx context.Context, forgeName string, repo int64, o forge.Object, sha [32]byte) (bool, error)
	// Seen reports whether an object's opened or created was ever taken in.
	Seen(ctx context.Context, forgeName string, repo int64, o forge.Object) (bool, error)
	// Commit writes one change under the fence, in one transaction.
	Commit(ctx context.Context, l *Lease, c Change) error
	// ClaimAnswer marks a pending answer as about to be posted and returns
	// the claim, with the deadline past which no POST of it may start or live:
	// now + ttl by the database's clock, so that a caller who measures ttl
	// from before this call is on the safe side. NextAt becomes now. An answer
	// that is claimed already can be claimed again when its deadline has passed
	// (ErrClaimed before); whether it was posted is the caller's to find out
	// first.
	ClaimAnswer(ctx context.Context, l *Lease, key string, after int64, ttl time.Duration) (Answer, error)
	// AnswerByComment finds the posted answer that is a comment of the forge;
	// ErrNotFound.
	AnswerByComment(ctx context.Context, thread, comment int64) (Answer, error)
	// Posted counts the answers of a thread decided since t and not dead: for
	// the account, and for all accounts below write.
	Posted(ctx context.Context, thread int64, account int64, since time.Time) (byAccount, byLow int, err error)

	// OpenThreads are the threads with an open request or standing approval.
	OpenThreads(ctx context.Context, forgeName string, repo int64) ([]ThreadRef, error)
	// FindThread looks a thread up without a lease; ErrNotFound.
	FindThread(ctx context.Context, forgeName string, repo, number int64) (*Thread, error)
	// ThreadsByNumber are all threads of that number, for `approval 41/1`.
	ThreadsByNumber(ctx context.Context, number int64) ([]*Thread, error)
	// KnownObjects maps object → body hash and updated_at for a repository's
	// objects among those asked for (the sweep compares).
	KnownObjects(ctx context.Context, forgeName string, repo int64, objs []forge.Object) (map[forge.Object]Known, error)

	// ClaimFiling claims what is to be filed, under a key of its own, and
	// returns it with its times. claimed is false where the same account has
	// filed the same before, or may be about to: then the latest such filing is
	// returned and nothing written, unless its key is Over. ErrTooMany where
	// the account's limit is reached.
	ClaimFiling(ctx context.Context, c FilingClaim) (f Filing, claimed bool, err error)
	// ReclaimFiling claims a filing once more, which is known not to stand.
	// ok is false where somebody else has claimed or settled it since f was read.
	ReclaimFiling(ctx context.Context, f Filing, ttl time.Duration) (out Filing, ok bool, err error)
	// SettleFiling binds a filing to the text that stands. Asked again it says
	// whether the filing is bound to that very text: a key has one text for
	// ever, and a text one key. A key that the database does not know (it was
	// lost) is written down.
	SettleFiling(ctx context.Context, f Filing) (bound bool, err error)
	// VoidFiling ends a claim of which nothing came.
	VoidFiling(ctx context.Context, key string) error

	// Meta reads a small value (watermarks), "" where absent.
	Meta(ctx context.Context, key string) (string, error)
	SetMeta(ctx context.Context, key, value string) error
	// SaveRepo remembers a repository's present name.
	SaveRepo(ctx context.Context, forgeName string, r forge.Repo) error
	Repos(ctx context.Context) ([]RepoRow, error)

	// Dead lists events that will not be tried again.
	Dead(ctx context.Context) ([]DeadEvent, error)
	// Resend makes a dead event wait again.
	Resend(ctx context.Context, event int64) error
	// DeadAnswers lists answers that will not be tried again, without bodies.
	DeadAnswers(ctx context.Context) ([]DeadAnswer, error)
	// ResendAnswer makes a dead answer open again, as one that is claimed: it
	// is looked for in its thread before it is posted, however it died. Errors:
	// ErrNotFound where no such answer is dead, ErrNoBody where its text was
	// pruned.
	ResendAnswer(ctx context.Context, thread int64, key string) error
	// Audit reads a thread's chains (all threads: 0), in order.
	Audit(ctx context.Context, thread int64) ([]AuditRow, error)
	// AuditThreads are the threads that have an audit chain, or an answer: a
	// chain that was taken out whole must not go unnoticed.
	AuditThreads(ctx context.Context) ([]ThreadRef, error)
	// Logs reads the kept texts of at most limit threads, those with the least
	// ids above after; next is the after of the next call, 0 at the end. A
	// thread without any is passed over.
	Logs(ctx context.Context, after int64, limit int) (logs []ThreadLog, next int64, err error)
	// Stats counts for /metrics and /readyz.
	Stats(ctx context.Context) (Stats, error)
	// Prune deletes the events that were finished before a time, and the
	// bodies of posted and dead answers decided before it. Seen keys, attested
	// hashes, dead events and the audit log stay. It works in small
	// transactions, and is safe to run on several replicas at once.
	Prune(ctx context.Context, before time.Time) (events int64, err error)
	// Reread forgets all that can be read from the threads again, and keeps the
	// audit log: for a database put back from a backup. See operator.go.
	Reread(ctx context.Context) (threads int64, err error)
	// Now is the database's clock.
	Now(ctx context.Context) (time.Time, error)
	Ping(ctx context.Context) error
	Close() error
}

// Sources of an event.
const (
	SourceDelivery = "delivery" // a signed delivery
	SourceSweep    = "sweep"    // found by listing: nobody vouches for its sender
	SourceTool     = "tool"     // filed by the bot's own tools (page 6.3)
)

// Incoming is an event to take in. The body itself is not kept: its hash is
// all that is ever compared.
type Incoming struct {
	Forge    string
	Delivery string // for the log only
	Repo     forge.Repo
	Number   int64
	Pull     bool
	Object   forge.Object
	Action   forge.Action
	Sender   forge.Account
	Author   forge.Account
	BodySHA  [32]byte
	Source   string
}

// Event is a waiting event.
type Event struct {
	ID     int64
	Object forge.Object
	Action forge.Action
	// Ord is its place in the thread: the object's id for comments, 0 for an
	// issue's opened, and for every other hint on the issue the greatest
	// place known when it came.
	Ord        int64
	Sender     forge.Account
	Author     forge.Account
	BodySHA    [32]byte
	Source     string
	ReceivedAt time.Time
	Tries      int
	NextAt     time.Time
}

// Lease is a thread in hand.
type Lease struct {
	Thread ThreadRef
	Owner  string
	Fence  int64
	Until  time.Time
}

// ThreadRef names a thread.
type ThreadRef struct {
	ID     int64
	Forge  string
	Repo   forge.Repo // the name is the one last seen
	Number int64
	Pull   bool
}

// Thread is a thread with what waits in it.
type Thread struct {
	ThreadRef
	// Now is the database's clock at the time of loading; set by Load.
	Now time.Time
	// State is the bot's own document, nil for a thread never worked on.
	State []byte
	// Events wait, in order of (Ord, ID); those in retry too.
	Events []Event
	// Open are the answers not yet known to stand: pending or claimed.
	Open []Answer
	// Records are the objects that hold records or anything else the bot
	// marked as Keep, in order of id, the issue first.
	Records []Object
	// MaxComment is the greatest comment id known in the thread.
	MaxComment int64
	// AuditChain is the number of the thread's last audit chain, 0 for none.
	AuditChain int64
}

// Object is what was last seen of one text of a thread.
type Object struct {
	forge.Object
	Author         forge.Account
	OriginalAuthor string
	BodySHA        [32]byte
	CreatedAt      time.Time
	UpdatedAt      time.Time
	Deleted        bool
	// Keep: loaded with the thread every time (it holds records).
	Keep bool
	// Data is the bot's own document.
	Data []byte
}

// Known is what the sweep compares.
type Known struct {
	BodySHA   [32]byte
	UpdatedAt time.Time
	Deleted   bool
}

// Answer states.
const (
	AnswerPending = "pending" // decided, no POST was ever begun
	AnswerClaimed = "claimed" // a POST may have been begun
	AnswerPosted  = "posted"
	AnswerDead    = "dead"
)

// Answer is one comment of the bot, from decision to proof.
type Answer struct {
	// Key is unique in its thread for ever, e.g. "answer:comment:812".
	Key string
	// Body is whole, with marker. It is kept while the answer is retained: an
	// answer that somebody else deletes is restored from it, once.
	Body string
	// Trigger is the object answered; Account its author, for the limits.
	Trigger forge.Object
	Account int64
	// Low: the account had less than write when this was decided.
	Low    bool
	Status string
	// After is the greatest comment id in the thread at the claim: ours, if
	// it exists, is greater.
	After int64
	// Deadline is when no POST of the claim can start or live any more.
	Deadline time.Time
	// NextAt is when to look at it again.
	NextAt    time.Time
	Tries     int
	CommentID int64
	CreatedAt time.Time
	Note      string
}

// Change is everything one commit writes.
type Change struct {
	// State replaces the thread's document (nil: unchanged).
	State []byte
	// Due is when the state itself needs looking at (expiry), zero: never.
	// Only read where State is set.
	Due time.Time
	// Open: there is an open request or standing approval. Only read where
	// State is set.
	Open    bool
	Objects []Object
	// Finish settles events of this thread.
	Finish []EventEnd
	// Found are events for this thread found by listing (Source sweep);
	// those seen before are skipped.
	Found []Incoming
	// Answers are new answers, pending; a key that exists already is an
	// error (the decision would be made twice).
	Answers []Answer
	// Settle updates answers by key: Status, CommentID, NextAt, Tries, Note.
	Settle []Answer
	Audit  []AuditRow
}

// Event ends.
const (
	EventWaiting = "waiting" // tried, to be tried again at NextAt
	EventDone    = "done"
	EventDead    = "dead"
)

// EventEnd says what became of an event.
type EventEnd struct {
	ID     int64
	Status string
	NextAt time.Time
	Tries  int
	// Note says why, in words without text of people: "locked", "not run:
	// older than 24 h".
	Note string
}

// AuditRow is one entry of a thread's append-only chain.
type AuditRow struct {
	Thread ThreadRef
	// Chain numbers the thread's chains; a rebuild starts a new one.
	Chain int64
	Seq   int64
	At    time.Time
	Entry []byte // JSON
	Prev  []byte
	Hash  []byte
}

// DeadEvent is an event that will not be tried again, for the operator.
type DeadEvent struct {
	Event
	Thread ThreadRef
	Note   string
}

// DeadAnswer is an answer that will not be tried again, for the operator. Its
// Body is not read; Bodiless says that there is none any more.
type DeadAnswer struct {
	Answer
	Thread   ThreadRef
	Bodiless bool
}

// ThreadLog is a thread's kept texts (Object.Keep).
type ThreadLog struct {
	ThreadRef
	Texts []Object
}

// RepoRow is a repository as last seen.
type RepoRow struct {
	Forge string
	Repo  forge.Repo
}

// Stats are counts for operators.
type Stats struct {
	Waiting, Dead, OpenAnswers, DeadAnswers int64
	// Oldest is when the oldest waiting event came, zero where none waits.
	Oldest time.Time
	// Now is the database's clock at the time of counting.
	Now time.Time
}
