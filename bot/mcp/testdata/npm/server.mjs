// A server on the official TypeScript SDK, for the tests of bot/mcp.
// Usage: node server.mjs PORT STATUS
// PORT 0 takes a free one. STATUS (404 or 400) answers unknown sessions: the
// SDK leaves that to the application, and both are seen in the wild.
// Prints "listening PORT", and "method NAME" for each request that arrives.
import { randomUUID } from 'node:crypto';
import { createServer } from 'node:http';
import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js';
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js';

const [port, status] = process.argv.slice(2).map(Number);
const transports = new Map();

async function open() {
  const server = new McpServer({ name: 'typescript', version: '1.0.0' });
  server.registerTool('echo', { description: 'says done' }, async () => ({
    content: [{ type: 'text', text: 'done' }],
  }));
  const transport = new StreamableHTTPServerTransport({
    sessionIdGenerator: () => randomUUID(),
    onsessioninitialized: (id) => transports.set(id, transport),
    onsessionclosed: (id) => transports.delete(id),
  });
  await server.connect(transport);
  return transport;
}

function refuse(res) {
  const error = status === 404
    ? { code: -32001, message: 'Session not found' }
    : { code: -32000, message: 'Bad Request: No valid session ID provided' };
  res.writeHead(status, { 'Content-Type': 'application/json' });
  res.end(JSON.stringify({ jsonrpc: '2.0', error, id: null }));
}

const http = createServer(async (req, res) => {
  const chunks = [];
  for await (const chunk of req) chunks.push(chunk);
  const body = req.method === 'POST' ? JSON.parse(Buffer.concat(chunks)) : undefined;
  console.log('method', body ? body.method : req.method);
  const id = req.headers['mcp-session-id'];
  if (id === undefined) {
    await (await open()).handleRequest(req, res, body);
  } else if (transports.has(id)) {
    await transports.get(id).handleRequest(req, res, body);
  } else {
    refuse(res);
  }
});
http.listen(port, '127.0.0.1', () => console.log('listening', http.address().port));
