// Package bot is the conversation: it turns an event in a thread into a
// decision and one lasting answer.
//
// The way of an event, and no other: webhook → store (inbox and wake-up, one
// transaction) → a worker here: lock the thread → read the forge → parse the
// text → decide by the playbook → render → claim → post → record.
//
// What is written in the thread on the forge is the record; the database is a
// cache of it, plus the ledger of what the bot did. So events are only ever
// hints: a handler reads the object as it is now, compares it with what is
// stored, and acts on the difference. Repeating one does no harm.
package bot
