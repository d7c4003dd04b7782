package bot

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"playbook-bot/bot/store"
	"playbook-bot/playbook"
)

// AuditEntry is one decision for those who ask later: what was asked, what
// was known and who attested it, what was answered. One chain per thread;
// each entry carries an HMAC over the one before.
type AuditEntry struct {
	// What is "decision", "approval", "revoked", "expired", "recovered",
	// "withdrawn", "ended", "endorsed", "outcome_unreported", "not_run",
	// "cleared", "restored", "tampered" or "rebuilt".
	What    string    `json:"what"`
	At      time.Time `json:"at"`
	Thread  string    `json:"thread"`
	Key     string    `json:"key,omitempty"`
	Request string    `json:"request,omitempty"`
	Action  string    `json:"action,omitempty"`
	Target  string    `json:"target,omitempty"`
	// Actor asked or did it.
	Actor   string             `json:"actor,omitempty"`
	ActorID int64              `json:"actor_id,omitempty"`
	Verdict string             `json:"verdict,omitempty"`
	Code    playbook.Code      `json:"code,omitempty"`
	Stand   *playbook.Standing `json:"standing,omitempty"`
	// Requester and Endorser of the request.
	Requester  string     `json:"requester,omitempty"`
	Endorser   string     `json:"endorser,omitempty"`
	BreakGlass bool       `json:"break_glass,omitempty"`
	Grant      string     `json:"grant,omitempty"`
	Known      []Evidence `json:"known,omitempty"`
	Until      *time.Time `json:"until,omitempty"`
	Playbook   string     `json:"playbook,omitempty"`
	// Overlay is the commit of the repository's own playbook, where one held.
	Overlay string `json:"overlay,omitempty"`
	// Note holds words of the bot's own, never of people.
	Note string `json:"note,omitempty"`
}

// Evidence is an attempt as an auditor needs it: without its free text.
type Evidence struct {
	Action     string    `json:"action"`
	Outcome    string    `json:"outcome"`
	Actor      string    `json:"actor"`
	RecordedBy string    `json:"recorded_by"`
	RecordedAt time.Time `json:"recorded_at"`
	Target     string    `json:"target,omitempty"`
	Verified   bool      `json:"verified,omitempty"`
	Ref        string    `json:"ref"`
	Counted    bool      `json:"counted"`
}

func evidence(a playbook.Assessment) []Evidence {
	out := make([]Evidence, 0, len(a.Counted)+len(a.Ignored))
	add := func(t playbook.Attempt, counted bool) {
		out = append(out, Evidence{t.Action, t.Outcome, t.Actor, t.RecordedBy, t.RecordedAt, t.Target, t.Verified, t.Ref, counted})
	}
	for _, t := range a.Counted {
		add(t, true)
	}
	for _, t := range a.Ignored {
		add(t.Attempt, false)
	}
	return out
}

// chain appends an entry to the thread's chain: head moves on.
func chain(secret string, ref store.ThreadRef, head *auditHead, e AuditEntry) (store.AuditRow, error) {
	entry, err := json.Marshal(e)
	if err != nil {
		return store.AuditRow{}, fmt.Errorf("write audit entry: %w", err)
	}
	prev, err := hex.DecodeString(head.Hash)
	if err != nil {
		return store.AuditRow{}, fmt.Errorf("read the audit chain's head: %w", err)
	}
	if head.Chain == 0 {
		head.Chain = 1
	}
	head.Seq++
	row := store.AuditRow{Thread: ref, Chain: head.Chain, Seq: head.Seq, At: e.At, Entry: entry, Prev: prev}
	row.Hash = auditHash(secret, row)
	head.Hash = hex.EncodeToString(row.Hash)
	return row, nil
}

func auditHash(secret string, r store.AuditRow) []byte {
	h := hmac.New(sha256.New, derived(secret, "audit"))
	fmt.Fprintf(h, "%d:%s|%d|%d|%d|%d|%x|", len(r.Thread.Forge), r.Thread.Forge, r.Thread.Repo.ID, r.Thread.Number, r.Chain, r.Seq, r.Prev)
	h.Write(r.Entry)
	return h.Sum(nil)
}

// ErrChainBroken: an audit chain does not hold together.
var ErrChainBroken = errors.New("the audit chain is broken")

// VerifyChain checks one thread's rows, in order: each hash, and that each
// names the one before. It returns the heads of the chains, last first seen
// last, so that the caller can compare them with the markers in the thread:
// only they show a tail that was cut.
func VerifyChain(secrets []string, rows []store.AuditRow) (heads []playbook.AuditMark, err error) {
	var chainNo, seq int64
	var prev []byte
	for i, r := range rows {
		if i == 0 || r.Chain != chainNo {
			if i > 0 {
				heads = append(heads, playbook.AuditMark{Seq: seq, Hash: hex.EncodeToString(prev)})
			}
			chainNo, seq, prev = r.Chain, 0, nil
		}
		if r.Seq != seq+1 || !hmac.Equal(r.Prev, prev) {
			return heads, fmt.Errorf("%w: chain %d, entry %d does not follow entry %d", ErrChainBroken, r.Chain, r.Seq, seq)
		}
		if !anyHash(secrets, r) {
			return heads, fmt.Errorf("%w: chain %d, entry %d was changed", ErrChainBroken, r.Chain, r.Seq)
		}
		seq, prev = r.Seq, r.Hash
	}
	if len(rows) > 0 {
		heads = append(heads, playbook.AuditMark{Seq: seq, Hash: hex.EncodeToString(prev)})
	}
	return heads, nil
}

func anyHash(secrets []string, r store.AuditRow) bool {
	for _, s := range secrets {
		if hmac.Equal(auditHash(s, r), r.Hash) {
			return true
		}
	}
	return false
}
