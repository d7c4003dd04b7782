package webhook

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"strings"
)

// The scopes of a hook, as they stand in its URL.
const (
	ScopeRepo = "repo" // the id is the repository's
	ScopeOrg  = "org"  // the id is the owning organisation's
	ScopeApp  = "app"  // the id is the GitHub App's
)

// HookSecret derives the secret of one hook from the master secret, as 64 hex
// digits. Every hook has its own, because a forge shows a hook's secret to that
// repository's administrators: with one secret for all, each of them could
// sign deliveries for any repository.
func HookSecret(master, forgeName, scope string, id int64) string {
	mac := hmac.New(sha256.New, []byte(master))
	// The version and the separators keep this apart from everything else that
	// is derived from the master.
	mac.Write([]byte(strings.Join([]string{"playbook-bot/hook/v1", forgeName, scope, strconv.FormatInt(id, 10)}, "\x00")))
	return hex.EncodeToString(mac.Sum(nil))
}

// HookPath is the path of a hook's URL: it names the key, so that a delivery
// can be verified before anything in it is read.
func HookPath(forgeName, scope string, id int64) string {
	return "/webhook/" + forgeName + "/" + scope + "/" + strconv.FormatInt(id, 10)
}
