// The official SDK as its README has it for a plain `node:http` server: zod schemas, `toNodeHandler`, the Host and Origin
// guards that Rally has on too, and requestState under its own HMAC codec.
import { createServer } from 'node:http'
import { localhostHostValidation, localhostOriginValidation, toNodeHandler } from '@modelcontextprotocol/node'
import {
  McpServer,
  acceptedContent,
  createMcpHandler,
  createRequestStateCodec,
  inputRequired,
} from '@modelcontextprotocol/server'
import { z } from 'zod'
import { announce } from './announce.mjs'

const codec = createRequestStateCodec({ key: 'a bench key of at least thirty-two bytes' })
const verify = (state, context) => codec.verify(state, context)
const confirmation = z.object({ confirm: z.boolean() })
const requestedSchema = { type: 'object', properties: { confirm: { type: 'boolean' } }, required: ['confirm'] }

const validateHost = localhostHostValidation()
const validateOrigin = localhostOriginValidation()
const handle = toNodeHandler(createMcpHandler(newServer, { legacy: 'reject' }))
const server = createServer((request, response) => {
  if (validateHost(request, response) && validateOrigin(request, response)) void handle(request, response)
})
server.listen(0, '127.0.0.1', () => announce(server.address().port))

// The SDK takes a fresh server for every request.
function newServer() {
  const mcp = new McpServer({ name: 'bench', version: '1.0.0' }, { requestState: { verify } })
  mcp.registerTool('add', { inputSchema: z.object({ a: z.number(), b: z.number() }) }, async ({ a, b }) =>
    textResult(String(a + b)),
  )
  mcp.registerTool('deploy', { inputSchema: z.object({ env: z.string() }) }, async ({ env }, context) => {
    const answer = acceptedContent(context.mcpReq.inputResponses, 'confirm', confirmation)
    const asked = context.mcpReq.requestState()
    if (answer && asked?.env === env) return textResult(answer.confirm ? `Deployed to ${env}` : 'Left as it was.')
    const confirm = inputRequired.elicit({ message: `Deploy to ${env}?`, requestedSchema })
    return inputRequired({ inputRequests: { confirm }, requestState: await codec.mint({ env }) })
  })
  return mcp
}

function textResult(text) {
  return { content: [{ type: 'text', text }] }
}
