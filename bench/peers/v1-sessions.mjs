// The official SDK of the 2025 revisions with sessions, as its example of forms has it: a server and a transport for each session, and a
// tool that waits in memory while the user is asked.
import { randomUUID } from 'node:crypto'
import { createServer } from 'node:http'
import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js'
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js'
import { z } from 'zod'
import { announce } from './announce.mjs'

const askMilliseconds = 600_000
const requestedSchema = { type: 'object', properties: { confirm: { type: 'boolean' } }, required: ['confirm'] }
const transports = new Map()

const server = createServer(async (request, response) => {
  const chunks = []
  for await (const chunk of request) chunks.push(chunk)
  const transport = transports.get(request.headers['mcp-session-id']) ?? (await newSession())
  await transport.handleRequest(request, response, JSON.parse(Buffer.concat(chunks)))
})
server.listen(0, '127.0.0.1', () => announce(server.address().port))

async function newSession() {
  const transport = new StreamableHTTPServerTransport({
    sessionIdGenerator: randomUUID,
    onsessioninitialized: (id) => void transports.set(id, transport),
  })
  await newServer().connect(transport)
  return transport
}

function newServer() {
  const mcp = new McpServer({ name: 'bench', version: '1.0.0' })
  mcp.registerTool('deploy', { inputSchema: { env: z.string() } }, async ({ env }, { requestId }) => {
    const question = { mode: 'form', message: `Deploy to ${env}?`, requestedSchema }
    const options = { relatedRequestId: requestId, timeout: askMilliseconds }
    const { action, content } = await mcp.server.elicitInput(question, options)
    const text = action === 'accept' && content.confirm ? `Deployed to ${env}` : 'Left as it was.'
    return { content: [{ type: 'text', text }] }
  })
  return mcp
}
