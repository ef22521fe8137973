// The official SDK in the fastest form that was found: `createMcpHandler` on `@hono/node-server` with the parsed body
// handed over, schemas built once outside the factory and as JSON Schema, which saves their conversion on every request,
// requestState under its own HMAC codec. Host and Origin guards, which Rally has on, are left off.
import { createServer } from 'node:http'
import { createRequire } from 'node:module'
import { pathToFileURL } from 'node:url'
import {
  McpServer,
  acceptedContent,
  createMcpHandler,
  createRequestStateCodec,
  fromJsonSchema,
  inputRequired,
} from '@modelcontextprotocol/server'
import { announce } from './announce.mjs'

const codec = createRequestStateCodec({ key: 'a bench key of at least thirty-two bytes' })
const verify = (state, context) => codec.verify(state, context)
const addInput = fromJsonSchema({
  type: 'object',
  properties: { a: { type: 'number' }, b: { type: 'number' } },
  required: ['a', 'b'],
})
const deployInput = fromJsonSchema({ type: 'object', properties: { env: { type: 'string' } }, required: ['env'] })
const requestedSchema = { type: 'object', properties: { confirm: { type: 'boolean' } }, required: ['confirm'] }
const confirmation = fromJsonSchema(requestedSchema)

const handler = createMcpHandler(newServer, { legacy: 'reject' })
const { getRequestListener } = await nodeServer()
const listener = getRequestListener(async (request) => handler.fetch(request, { parsedBody: await request.json() }))
const server = createServer(listener)
server.listen(0, '127.0.0.1', () => announce(server.address().port))

// The SDK takes a fresh server for every request.
function newServer() {
  const mcp = new McpServer({ name: 'bench', version: '1.0.0' }, { requestState: { verify } })
  mcp.registerTool('add', { inputSchema: addInput }, async ({ a, b }) => textResult(String(a + b)))
  mcp.registerTool('deploy', { inputSchema: deployInput }, async ({ env }, context) => {
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

// It comes with `@modelcontextprotocol/node` and is no dependency of this package.
function nodeServer() {
  const { resolve } = createRequire(import.meta.resolve('@modelcontextprotocol/node'))
  return import(pathToFileURL(resolve('@hono/node-server')).href)
}
