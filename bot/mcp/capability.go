package mcp

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

const (
	// maxPages and maxItems bound one listing, maxItems also one page: a server
	// may hand out cursors without end.
	maxPages = 50
	maxItems = 5000
	maxName  = 64 // characters of a name that a report shows
)

// The kinds of things a server lists.
const (
	kindTools     = "tools"
	kindResources = "resources"
	kindTemplates = "resource templates"
	kindPrompts   = "prompts"
)

// Capabilities is what a server lists, by kind: the names, and a digest of
// each definition. Names are the peer's, made inert by [SafeName].
type Capabilities map[string]map[string]string

// Count is the number of things of all kinds.
func (c Capabilities) Count() int {
	n := 0
	for _, items := range c {
		n += len(items)
	}
	return n
}

// String is for people: "14 tools, 2 resources". Kinds that the server does
// not offer are left out.
func (c Capabilities) String() string {
	var parts []string
	for _, kind := range []string{kindTools, kindResources, kindTemplates, kindPrompts} {
		if items, ok := c[kind]; ok {
			parts = append(parts, fmt.Sprintf("%d %s", len(items), kind))
		}
	}
	if parts == nil {
		return "nothing offered"
	}
	return strings.Join(parts, ", ")
}

// Changes is how a list differs from what was known. The names are inert but
// foreign; each list is sorted.
type Changes struct {
	Added   []string `json:"added,omitempty"`
	Removed []string `json:"removed,omitempty"`
	// Altered have another definition under the same name.
	Altered []string `json:"altered,omitempty"`
}

// Any reports a difference.
func (c Changes) Any() bool { return len(c.Added)+len(c.Removed)+len(c.Altered) > 0 }

// String counts and names nothing, so that it may be logged.
func (c Changes) String() string {
	if !c.Any() {
		return "no change"
	}
	return fmt.Sprintf("%d added, %d removed, %d altered", len(c.Added), len(c.Removed), len(c.Altered))
}

// Compare gives the changes from old to now, among the kinds that both know.
func Compare(old, now Capabilities) Changes {
	var c Changes
	for kind, before := range old {
		after, ok := now[kind]
		if !ok {
			continue
		}
		for name, digest := range after {
			switch was, ok := before[name]; {
			case !ok:
				c.Added = append(c.Added, name)
			case was != digest:
				c.Altered = append(c.Altered, name)
			}
		}
		for name := range before {
			if _, ok := after[name]; !ok {
				c.Removed = append(c.Removed, name)
			}
		}
	}
	slices.Sort(c.Added)
	slices.Sort(c.Removed)
	slices.Sort(c.Altered)
	return c
}

// SafeName makes a peer's text fit to be shown: control, format and other
// invisible characters (escape sequences, bidirectional overrides) become
// U+FFFD, and what is longer than 64 characters is cut.
func SafeName(s string) string {
	var b strings.Builder
	n := 0
	for _, r := range s {
		if n == maxName {
			b.WriteRune('…')
			break
		}
		if !unicode.IsPrint(r) || unicode.Is(unicode.Variation_Selector, r) {
			r = unicode.ReplacementChar
		}
		b.WriteRune(r)
		n++
	}
	return b.String()
}

// state is what a client remembers in order to restore it in a new session.
type state struct {
	started    bool
	lists      Capabilities
	subscribed map[string]bool
}

// Capabilities lists everything the server offers and remembers it, so that a
// later restart can say what changed. Errors are *CallError.
func (c *Client) Capabilities(ctx context.Context) (Capabilities, error) {
	s, err := c.current(ctx, "tools/list", false)
	if err != nil {
		return nil, err
	}
	// Each page is a request of its own and recovers on its own.
	lists, err := list(ctx, s.declared(), func(ctx context.Context, method string, send sendFunc) error {
		_, err := Do(ctx, c, method, func(ctx context.Context, cs *sdk.ClientSession) (none, error) {
			return none{}, send(ctx, cs)
		})
		return err
	})
	if err != nil {
		return nil, err
	}
	c.know(lists)
	return lists, nil
}

// list lists on s, without any recovery.
func (s *session) list(ctx context.Context) (Capabilities, error) {
	return list(ctx, s.declared(), s.call)
}

// call makes a request on s, without any recovery.
func (s *session) call(ctx context.Context, method string, send sendFunc) error {
	_, o := once(ctx, s, method, func(ctx context.Context, cs *sdk.ClientSession) (none, error) {
		return none{}, send(ctx, cs)
	})
	if o.verdict != fine {
		return o.err
	}
	return nil
}

func (s *session) declared() *sdk.ServerCapabilities {
	if caps := s.cs.InitializeResult().Capabilities; caps != nil {
		return caps
	}
	return &sdk.ServerCapabilities{}
}

// know remembers lists and gives what was known before.
func (c *Client) know(lists Capabilities) (before Capabilities) {
	c.mu.Lock()
	defer c.mu.Unlock()
	before = c.state.lists
	c.state.lists = lists
	return before
}

type (
	sendFunc func(context.Context, *sdk.ClientSession) error
	callFunc func(ctx context.Context, method string, send sendFunc) error
)

// list asks for the kinds that the server declares, and only for those.
func list(ctx context.Context, caps *sdk.ServerCapabilities, call callFunc) (Capabilities, error) {
	out := Capabilities{}
	if caps.Tools != nil {
		err := out.pages(kindTools, func(cursor string) (next string, found []named, err error) {
			err = call(ctx, "tools/list", func(ctx context.Context, cs *sdk.ClientSession) error {
				r, err := cs.ListTools(ctx, &sdk.ListToolsParams{Cursor: cursor})
				if err == nil {
					next, found = r.NextCursor, names(r.Tools, func(t *sdk.Tool) string { return t.Name })
				}
				return err
			})
			return next, found, err
		})
		if err != nil {
			return nil, err
		}
	}
	if caps.Resources != nil {
		if err := out.resources(ctx, call); err != nil {
			return nil, err
		}
	}
	if caps.Prompts != nil {
		err := out.pages(kindPrompts, func(cursor string) (next string, found []named, err error) {
			err = call(ctx, "prompts/list", func(ctx context.Context, cs *sdk.ClientSession) error {
				r, err := cs.ListPrompts(ctx, &sdk.ListPromptsParams{Cursor: cursor})
				if err == nil {
					next, found = r.NextCursor, names(r.Prompts, func(p *sdk.Prompt) string { return p.Name })
				}
				return err
			})
			return next, found, err
		})
		if err != nil {
			return nil, err
		}
	}
	return out, nil
}

func (c Capabilities) resources(ctx context.Context, call callFunc) error {
	err := c.pages(kindResources, func(cursor string) (next string, found []named, err error) {
		err = call(ctx, "resources/list", func(ctx context.Context, cs *sdk.ClientSession) error {
			r, err := cs.ListResources(ctx, &sdk.ListResourcesParams{Cursor: cursor})
			if err == nil {
				next, found = r.NextCursor, names(r.Resources, func(r *sdk.Resource) string { return r.URI })
			}
			return err
		})
		return next, found, err
	})
	if err != nil {
		return err
	}
	return c.pages(kindTemplates, func(cursor string) (next string, found []named, err error) {
		err = call(ctx, "resources/templates/list", func(ctx context.Context, cs *sdk.ClientSession) error {
			r, err := cs.ListResourceTemplates(ctx, &sdk.ListResourceTemplatesParams{Cursor: cursor})
			if err == nil {
				next, found = r.NextCursor, names(r.ResourceTemplates, func(r *sdk.ResourceTemplate) string { return r.URITemplate })
			}
			return err
		})
		return next, found, err
	})
}

type named struct{ name, digest string }

func names[T any](items []*T, name func(*T) string) []named {
	out := make([]named, 0, len(items))
	for _, item := range items {
		if item == nil { // "tools":[null]
			continue
		}
		data, err := json.Marshal(item)
		if err != nil {
			data = nil // a definition that cannot be written again compares by name
		}
		sum := sha256.Sum256(data)
		out = append(out, named{SafeName(name(item)), hex.EncodeToString(sum[:8])})
	}
	return out
}

// pages reads all pages of a kind. A server that declares the kind and does
// not know the method offers none of it: that is a server that answers.
func (c Capabilities) pages(kind string, page func(cursor string) (string, []named, error)) error {
	items := map[string]string{}
	cursor := ""
	for range maxPages {
		next, found, err := page(cursor)
		if unknownMethod(err) {
			return nil
		}
		if err != nil {
			return err
		}
		for _, n := range found {
			items[n.name] = n.digest
		}
		if next == "" || next == cursor || len(items) > maxItems {
			break
		}
		cursor = next
	}
	c[kind] = items
	return nil
}

// restore brings a new session to where the old one was: subscriptions are
// made again, the lists that were known are fetched again (rung 1), and what
// changed is reported. It does not recover: that would be a restart's restart.
func (c *Client) restore(s *session, refresh bool) {
	c.mu.Lock()
	known := c.state.lists
	if !refresh {
		known = nil
	}
	subscribed := slices.Sorted(maps.Keys(c.state.subscribed))
	c.mu.Unlock()
	if known == nil && len(subscribed) == 0 {
		return
	}
	start := time.Now()
	ctx, stop := context.WithTimeout(s.ctx, c.opts.HandshakeTimeout)
	defer stop()
	ev := Event{Kind: "refreshed", Epoch: s.epoch, Session: sessionHash(s.link.session())}
	for _, uri := range subscribed {
		err := s.call(ctx, "resources/subscribe", func(ctx context.Context, cs *sdk.ClientSession) error {
			return cs.Subscribe(ctx, &sdk.SubscribeParams{URI: uri})
		})
		if err != nil && ev.Err == nil {
			ev.Err = err
		}
	}
	if known != nil {
		if now, err := s.list(ctx); err != nil {
			ev.Err = err
		} else {
			ev.Changes = Compare(c.know(now), now)
		}
	}
	ev.Took = time.Since(start)
	c.emit(ev)
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
