// Package mcp is the bot's side of the Model Context Protocol: a client that
// survives the end of its session without doing anything twice, and probes
// that try the first rungs of the ladder and log them with proof.
//
// # What the client adds to the SDK
//
// The protocol (up to 2025-11-25) says that an HTTP 404 answering a request
// that carried an Mcp-Session-Id ends the session, and that the client must
// initialize again without one. The Go SDK reports such a 404 as
// ErrSessionMissing, breaks the connection and leaves it at that; a 404 whose
// body is a JSON-RPC error with an id it takes for an ordinary error. [Client]
// owns the SDK's session and replaces it, and a small http.RoundTripper
// underneath (link) sees every exchange, so that what happened to a request is
// a fact it recorded and not a guess from an error's text.
//
// Wrapping the SDK's Transport or Connection instead would be the obvious
// seam, and fails silently: the SDK tells its own connection the negotiated
// version through an unexported method, so a wrapped one sends no
// Mcp-Protocol-Version header and never opens the GET stream.
//
// Protocol version 2026-07-28 has neither sessions nor initialize. There a
// lost stream is the whole story, and errors say so ([ErrNoSession]).
//
// # What never leaves this package
//
// Session ids are credentials: logs and events show a short hash. Texts sent
// by the peer (error messages, bodies, tool names) are in no error and no log
// line; names that reports show are made inert first.
package mcp
