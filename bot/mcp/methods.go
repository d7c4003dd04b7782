package mcp

import (
	"context"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

type none = struct{}

// Ping asks whether the server is there. Version 2026-07-28 has no ping; use
// [Client.Capabilities] there.
func (c *Client) Ping(ctx context.Context) error {
	_, err := Do(ctx, c, "ping", func(ctx context.Context, cs *sdk.ClientSession) (none, error) {
		return none{}, cs.Ping(ctx, nil)
	})
	return err
}

// CallTool calls a tool. It is never sent twice: see [ErrNotResent].
func (c *Client) CallTool(ctx context.Context, p *sdk.CallToolParams) (*sdk.CallToolResult, error) {
	return Do(ctx, c, "tools/call", func(ctx context.Context, cs *sdk.ClientSession) (*sdk.CallToolResult, error) {
		return cs.CallTool(ctx, p)
	})
}

// ListTools gives one page of the tools.
func (c *Client) ListTools(ctx context.Context, p *sdk.ListToolsParams) (*sdk.ListToolsResult, error) {
	return Do(ctx, c, "tools/list", func(ctx context.Context, cs *sdk.ClientSession) (*sdk.ListToolsResult, error) {
		return cs.ListTools(ctx, p)
	})
}

// ListResources gives one page of the resources.
func (c *Client) ListResources(ctx context.Context, p *sdk.ListResourcesParams) (*sdk.ListResourcesResult, error) {
	return Do(ctx, c, "resources/list", func(ctx context.Context, cs *sdk.ClientSession) (*sdk.ListResourcesResult, error) {
		return cs.ListResources(ctx, p)
	})
}

// ListResourceTemplates gives one page of the resource templates.
func (c *Client) ListResourceTemplates(ctx context.Context, p *sdk.ListResourceTemplatesParams) (*sdk.ListResourceTemplatesResult, error) {
	return Do(ctx, c, "resources/templates/list", func(ctx context.Context, cs *sdk.ClientSession) (*sdk.ListResourceTemplatesResult, error) {
		return cs.ListResourceTemplates(ctx, p)
	})
}

// ListPrompts gives one page of the prompts.
func (c *Client) ListPrompts(ctx context.Context, p *sdk.ListPromptsParams) (*sdk.ListPromptsResult, error) {
	return Do(ctx, c, "prompts/list", func(ctx context.Context, cs *sdk.ClientSession) (*sdk.ListPromptsResult, error) {
		return cs.ListPrompts(ctx, p)
	})
}

// ReadResource reads a resource.
func (c *Client) ReadResource(ctx context.Context, p *sdk.ReadResourceParams) (*sdk.ReadResourceResult, error) {
	return Do(ctx, c, "resources/read", func(ctx context.Context, cs *sdk.ClientSession) (*sdk.ReadResourceResult, error) {
		return cs.ReadResource(ctx, p)
	})
}

// GetPrompt gets a prompt.
func (c *Client) GetPrompt(ctx context.Context, p *sdk.GetPromptParams) (*sdk.GetPromptResult, error) {
	return Do(ctx, c, "prompts/get", func(ctx context.Context, cs *sdk.ClientSession) (*sdk.GetPromptResult, error) {
		return cs.GetPrompt(ctx, p)
	})
}

// Complete asks for completions.
func (c *Client) Complete(ctx context.Context, p *sdk.CompleteParams) (*sdk.CompleteResult, error) {
	return Do(ctx, c, "completion/complete", func(ctx context.Context, cs *sdk.ClientSession) (*sdk.CompleteResult, error) {
		return cs.Complete(ctx, p)
	})
}

// Subscribe asks for notice of changes to a resource. The subscription is made
// again in a session that replaces this one.
func (c *Client) Subscribe(ctx context.Context, p *sdk.SubscribeParams) error {
	_, err := Do(ctx, c, "resources/subscribe", func(ctx context.Context, cs *sdk.ClientSession) (none, error) {
		return none{}, cs.Subscribe(ctx, p)
	})
	if err == nil {
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.state.subscribed == nil {
			c.state.subscribed = map[string]bool{}
		}
		c.state.subscribed[p.URI] = true
	}
	return err
}

// Unsubscribe ends a subscription.
func (c *Client) Unsubscribe(ctx context.Context, p *sdk.UnsubscribeParams) error {
	_, err := Do(ctx, c, "resources/unsubscribe", func(ctx context.Context, cs *sdk.ClientSession) (none, error) {
		return none{}, cs.Unsubscribe(ctx, p)
	})
	if err == nil {
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.state.subscribed, p.URI)
	}
	return err
}
