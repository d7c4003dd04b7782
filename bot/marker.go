package bot

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// A marker ends each of the bot's comments, as an HTML comment that forges
// keep and do not show. It names the answer's key, so that an answer whose
// POST had no known end can be found again, and the audit entry, so that a
// chain whose tail was cut is found out. On Gitea any writer may edit the
// bot's comments while the author stays the bot: so a comment is ours only if
// our account wrote it *and* the HMAC fits the whole body as it is now.
type marker struct {
	Key   string
	Chain int64
	Seq   int64
	Hash  string
}

// place is where a marker is valid: a comment copied to another thread, or
// another forge, is nobody's.
type place struct {
	Forge  string
	Repo   int64
	Number int64
}

var markerLine = regexp.MustCompile(`\n<!-- playbook-bot:1 key=(\S+) audit=(\d+)\.(\d+)\.([0-9a-f]*) mac=([0-9a-f]{64}) -->$`)

// sign appends the marker to a body.
func sign(secret string, p place, m marker, body string) string {
	body = canonical(body) + "\n"
	head := fmt.Sprintf("\n<!-- playbook-bot:1 key=%s audit=%d.%d.%s mac=", m.Key, m.Chain, m.Seq, m.Hash)
	return body + head + mac(secret, p, body+head) + " -->"
}

// verify reads the marker of a body, and reports whether it is whole. marked
// is true where something like a marker is there at all.
func verify(secrets []string, p place, body string) (m marker, ok, marked bool) {
	body = canonical(body)
	at := markerLine.FindStringSubmatchIndex(body)
	if at == nil {
		return marker{}, false, strings.Contains(body, "<!-- playbook-bot:1 ")
	}
	group := func(i int) string { return body[at[2*i]:at[2*i+1]] }
	m = marker{Key: group(1), Hash: group(4)}
	m.Chain, _ = strconv.ParseInt(group(2), 10, 64)
	m.Seq, _ = strconv.ParseInt(group(3), 10, 64)
	signed := body[:at[10]] // up to the mac itself
	for _, secret := range secrets {
		if hmac.Equal([]byte(mac(secret, p, signed)), []byte(group(5))) {
			return m, true, true
		}
	}
	return m, false, true
}

// canonical undoes what a forge may do to white space at rest.
func canonical(body string) string {
	return strings.TrimRight(strings.ReplaceAll(strings.ReplaceAll(body, "\r\n", "\n"), "\r", "\n"), " \t\n")
}

func mac(secret string, p place, signed string) string {
	return hex.EncodeToString(macOf(secret, "marker", p, signed))
}

// macOf is the HMAC of a text for one purpose and one place.
func macOf(secret, purpose string, p place, signed string) []byte {
	h := hmac.New(sha256.New, derived(secret, purpose))
	// Lengths before values: no two places share one encoding.
	fmt.Fprintf(h, "%d:%s|%d|%d|%d:", len(p.Forge), p.Forge, p.Repo, p.Number, len(signed))
	h.Write([]byte(signed))
	return h.Sum(nil)
}

// derived is a key for one purpose from PLAYBOOK_SECRET, so that what leaks
// of one (a hook's secret is shown to repository admins) opens no other.
func derived(secret, purpose string) []byte {
	h := hmac.New(sha256.New, []byte(secret))
	h.Write([]byte("playbook-bot/" + purpose + "/1"))
	return h.Sum(nil)
}

// Genuine reports whether a comment's body bears a whole marker of the bot's
// for its thread. Who wrote the comment is the caller's to check.
func Genuine(secrets []string, forgeName string, repo, number int64, body string) bool {
	_, ok, _ := verify(secrets, place{forgeName, repo, number}, body)
	return ok
}
