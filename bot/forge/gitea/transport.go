package gitea

import (
	"bytes"
	"errors"
	"io"
	"net/http"
)

// maxErrorBody bounds what is read of a refusal, in bytes: enough to recognise
// the server's own JSON, which is a few hundred.
const maxErrorBody = 64 << 10

// errTooLarge ends the reading of a body that is longer than Config.MaxBody.
var errTooLarge = errors.New("the answer is too large")

// exchange is what one HTTP exchange looked like below the SDK, which turns
// status, headers and the cause of a failure into one line of text. It belongs
// to a single call.
type exchange struct {
	status int // 0: no answer
	header http.Header
	// refusal is the body of a status outside 200–299, cut at maxErrorBody.
	refusal []byte
}

type exchangeKey struct{}

// transport records each exchange in the exchange its context carries, bounds
// bodies, and asks for English, in which the few texts are written that the
// adapter must recognise (403 is "locked", "blocked" and "no right" alike).
type transport struct {
	next    http.RoundTripper // nil: http.DefaultTransport
	maxBody int64
}

func (t *transport) RoundTrip(req *http.Request) (*http.Response, error) {
	next := t.next
	if next == nil {
		next = http.DefaultTransport
	}
	req = req.Clone(req.Context())
	req.Header.Set("Accept-Language", "en-US")
	req.Header.Set("Accept", "application/json")
	resp, err := next.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	ex, _ := req.Context().Value(exchangeKey{}).(*exchange)
	if ex == nil {
		ex = &exchange{}
	}
	ex.status, ex.header = resp.StatusCode, resp.Header
	if resp.StatusCode/100 == 2 {
		resp.Body = &boundedBody{body: resp.Body, left: t.maxBody}
		return resp, nil
	}
	// A refusal that breaks off is still the refusal its status says.
	ex.refusal, _ = io.ReadAll(io.LimitReader(resp.Body, maxErrorBody))
	_ = resp.Body.Close()
	resp.Body = io.NopCloser(bytes.NewReader(ex.refusal))
	return resp, nil
}

// boundedBody fails instead of ending early, so that a body cut short cannot
// pass for a whole one.
type boundedBody struct {
	body io.ReadCloser
	left int64
}

func (b *boundedBody) Read(p []byte) (int, error) {
	if b.left < 0 {
		return 0, errTooLarge
	}
	// One byte more than allowed is asked for, to tell "just fits" from "more".
	if int64(len(p)) > b.left+1 {
		p = p[:b.left+1]
	}
	n, err := b.body.Read(p)
	b.left -= int64(n)
	if b.left < 0 {
		return n + int(b.left), errTooLarge
	}
	return n, err
}

func (b *boundedBody) Close() error { return b.body.Close() }
