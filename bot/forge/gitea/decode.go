package gitea

import (
	"cmp"
	"encoding/hex"
	"net/http"
	"strings"

	"playbook-bot/bot/forge"
	"playbook-bot/bot/forge/internal/wire"
)

// Dialect reads a server's deliveries. It needs no connection; the zero value
// is ready and calls its forge "gitea".
type Dialect struct {
	// Forge is the name that events carry. "": "gitea".
	Forge string
}

// Name is the forge's name in events, keys and hook URLs.
func (d Dialect) Name() string { return cmp.Or(d.Forge, "gitea") }

// The headers of a delivery by what they hold, in the order of trust. Gitea
// and Forgejo send the families of all their ancestors too, Forgejo its own
// beside Gitea's.
var (
	eventHeaders     = []string{"X-Gitea-Event", "X-Forgejo-Event", "X-Gogs-Event"}
	deliveryHeaders  = []string{"X-Gitea-Delivery", "X-Forgejo-Delivery", "X-Gogs-Delivery"}
	signatureHeaders = []string{"X-Gitea-Signature", "X-Forgejo-Signature", "X-Gogs-Signature"}
)

// Signature gives the bytes a delivery's signature is over and the signature,
// an HMAC-SHA256; nil if there is none to check. raw is the body as received,
// payload its JSON: the same bytes, except in a form delivery, of which Gitea
// signs the JSON and not the form.
func (Dialect) Signature(h http.Header, raw, payload []byte) (signed, mac []byte) {
	text := wire.FirstHeader(h, signatureHeaders...)
	if text == "" {
		text, _ = strings.CutPrefix(strings.TrimSpace(h.Get("X-Hub-Signature-256")), "sha256=")
	}
	mac, err := hex.DecodeString(text)
	if err != nil || len(mac) == 0 {
		return nil, nil
	}
	return payload, mac
}

// Decode reads a delivery's JSON. Events and actions the bot does nothing
// about are forge.ActionOther, with the repository where there is one. An
// error means that the delivery is malformed or that its event header does not
// fit its body; its text holds nothing of it.
func (d Dialect) Decode(h http.Header, body []byte) (forge.Event, error) {
	ev, err := wire.Decode(wire.FirstHeader(h, eventHeaders...), body)
	if err != nil {
		return forge.Event{}, err
	}
	ev.Forge, ev.Delivery = d.Name(), wire.FirstHeader(h, deliveryHeaders...)
	return ev, nil
}
