// The official SDK of the 2025 revisions, `@modelcontextprotocol/sdk`, in its fastest documented form: stateless, with JSON responses in
// place of event streams, on node:http with the parsed body handed over. Its documentation wants a fresh server for every request.
import { createServer } from 'node:http'
import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js'
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js'
import { z } from 'zod'
import { announce } from './announce.mjs'

const inputSchema = { a: z.number(), b: z.number() }

const server = createServer(async (request, response) => {
  const chunks = []
  for await (const chunk of request) chunks.push(chunk)
  const mcp = newServer()
  const transport = new StreamableHTTPServerTransport({ sessionIdGenerator: undefined, enableJsonResponse: true })
  response.on('close', () => void mcp.close())
  await mcp.connect(transport)
  await transport.handleRequest(request, response, JSON.parse(Buffer.concat(chunks)))
})
server.listen(0, '127.0.0.1', () => announce(server.address().port))

function newServer() {
  const mcp = new McpServer({ name: 'bench', version: '1.0.0' })
  mcp.registerTool('add', { inputSchema }, async ({ a, b }) => ({ content: [{ type: 'text', text: String(a + b) }] }))
  return mcp
}
