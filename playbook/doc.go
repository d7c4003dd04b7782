// Package playbook is the policy: a ladder of recovery actions, the records
// of what was tried, and the gate that decides whether a broad restart may be
// asked for.
//
// It is pure: values in, values out. There is no clock, no I/O, no logger and
// no context in it; the caller passes the present time. Whatever the bot
// decides can be reproduced with it offline.
package playbook
