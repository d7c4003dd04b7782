package github

import (
	"cmp"
	"encoding/hex"
	"errors"
	"net/http"
	"strings"

	"playbook-bot/bot/forge"
	"playbook-bot/bot/forge/internal/wire"
)

// Dialect reads GitHub's deliveries. It needs no connection; the zero value is
// ready and calls its forge "github".
type Dialect struct {
	// Forge is the name that events carry. "": "github".
	Forge string
}

// Name is the forge's name in events, keys and hook URLs.
func (d Dialect) Name() string { return cmp.Or(d.Forge, "github") }

// errOtherForge is for a delivery of Gitea's or its kin, which bear GitHub's
// headers beside their own: a hook with the wrong URL.
var errOtherForge = errors.New("the delivery is another kind of forge's")

// Signature gives the bytes a delivery's signature is over and the signature,
// an HMAC-SHA256; nil if there is none to check. GitHub signs the body as it
// is sent, a form too. The older SHA-1 signature is not looked at.
func (Dialect) Signature(h http.Header, raw, _ []byte) (signed, mac []byte) {
	text, ok := strings.CutPrefix(strings.TrimSpace(h.Get("X-Hub-Signature-256")), "sha256=")
	mac, err := hex.DecodeString(text)
	if !ok || err != nil || len(mac) == 0 {
		return nil, nil
	}
	return raw, mac
}

// Decode reads a delivery's JSON. Events and actions the bot does nothing
// about, such as "ping" and "installation", are forge.ActionOther, with the
// repository where there is one. An error means that the delivery is malformed
// or that its event header does not fit its body; its text holds nothing of
// it.
//
// An issue that came from another repository is "opened" there, by whoever
// moved it: the event then has no sender, so that nothing in it is taken for
// asked here. Delivery is the same when GitHub delivers again.
func (d Dialect) Decode(h http.Header, body []byte) (forge.Event, error) {
	if wire.FirstHeader(h, "X-Gitea-Event", "X-Forgejo-Event", "X-Gogs-Event") != "" {
		return forge.Event{}, errOtherForge
	}
	ev, err := wire.Decode(wire.FirstHeader(h, "X-GitHub-Event"), body)
	if err != nil {
		return forge.Event{}, err
	}
	ev.Forge, ev.Delivery = d.Name(), wire.FirstHeader(h, "X-GitHub-Delivery")
	ev.Sender, ev.Author = neutral(ev.Sender), neutral(ev.Author)
	return ev, nil
}
