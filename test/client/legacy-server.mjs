// The official servers, versions 1 and 2, as they serve 2025-era clients: over HTTP with sessions, or run with the version
// as argument over the standard streams.
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { createServer } from 'node:http'
import { NodeStreamableHTTPServerTransport as HttpV2 } from '@modelcontextprotocol/node'
import { McpServer as ServerV1, ResourceTemplate as TemplateV1 } from '@modelcontextprotocol/sdk/server/mcp.js'
import { SSEServerTransport as SseV1 } from '@modelcontextprotocol/sdk/server/sse.js'
import { StdioServerTransport as StdioV1 } from '@modelcontextprotocol/sdk/server/stdio.js'
import { StreamableHTTPServerTransport as HttpV1 } from '@modelcontextprotocol/sdk/server/streamableHttp.js'
import { UrlElicitationRequiredError as RequiredV1 } from '@modelcontextprotocol/sdk/types.js'
import {
  McpServer as ServerV2,
  ResourceTemplate as TemplateV2,
  UrlElicitationRequiredError as RequiredV2,
} from '@modelcontextprotocol/server'
import { StdioServerTransport as StdioV2 } from '@modelcontextprotocol/server/stdio'
import { z } from 'zod'

const VERSIONS = {
  v1: {
    Required: RequiredV1,
    Server: ServerV1,
    Template: TemplateV1,
    Http: HttpV1,
    Stdio: StdioV1,
    idOf: (extra) => extra.requestId,
  },
  v2: {
    Required: RequiredV2,
    Server: ServerV2,
    Template: TemplateV2,
    Http: HttpV2,
    Stdio: StdioV2,
    idOf: (context) => context.mcpReq.id,
  },
}

const said = (text) => ({ content: [{ type: 'text', text }] })
const form = (message, properties) => ({
  mode: 'form',
  message,
  requestedSchema: { type: 'object', properties, required: Object.keys(properties) },
})
const prompt = { messages: [{ role: 'user', content: { type: 'text', text: 'Sum it up.' } }], maxTokens: 50 }

/** `how` is where questions go: with their call, or on the stream that belongs to none. */
function newServer(version, how) {
  const { Required, Server, Template, idOf } = VERSIONS[version]
  const mcp = new Server(
    { name: `official ${version}`, version: '1.0.0' },
    {
      instructions: 'Be patient.',
      capabilities: { logging: {}, tools: { listChanged: true }, resources: { subscribe: true, listChanged: true } },
    },
  )
  const { server } = mcp
  const on = (context) => (how === 'apart' ? {} : { relatedRequestId: idOf(context) })
  const tool = (name, inputSchema, run) => mcp.registerTool(name, { inputSchema: z.object(inputSchema) }, run)

  tool('deploy', { env: z.string() }, async ({ env }, context) => {
    const confirm = form(`Deploy to ${env}?`, { confirm: { type: 'boolean' } })
    const { action, content } = await server.elicitInput(confirm, on(context))
    return said(action === 'accept' ? `Deployed to ${env}: ${content.confirm}` : `The user said ${action}.`)
  })
  tool('sign_in', {}, async (_args, context) => {
    const visit = { mode: 'url', message: 'Sign in.', elicitationId: 'e1', url: 'https://pages.example/in' }
    const { action } = await server.elicitInput(visit, on(context))
    return said(`The user said ${action}.`)
  })
  let refusals = 0
  tool('link_account', {}, async () => {
    refusals += 1
    if (refusals % 2 === 0) return said('Linked.')
    throw new Required([{ mode: 'url', message: 'Link it.', elicitationId: 'e2', url: 'https://pages.example/link' }])
  })
  tool('summarize', {}, async (_args, context) => {
    const { content, model } = await server.createMessage(prompt, on(context))
    return said(`${model}: ${content.text}`)
  })
  tool('workspace', {}, async (_args, context) => {
    const { roots } = await server.listRoots(undefined, on(context))
    return said(roots.map(({ uri }) => uri).join(' '))
  })
  const changed = new Promise((resolve) => hear(server, version, 'notifications/roots/list_changed', resolve))
  tool('follow', {}, async (_args, context) => {
    await changed
    const { roots } = await server.listRoots(undefined, on(context))
    return said(roots.map(({ uri }) => uri).join(' '))
  })
  tool('survey', {}, async (_args, context) => {
    const first = await server.elicitInput(form('Your name?', { name: { type: 'string' } }), on(context))
    const { name } = first.content
    const second = await server.elicitInput(form(`How old, ${name}?`, { age: { type: 'integer' } }), on(context))
    return said(`${name} is ${second.content.age}.`)
  })
  tool('trip', {}, async (_args, context) => {
    const [to, { content }, { roots }] = await Promise.all([
      server.elicitInput(form('Where to?', { to: { type: 'string', enum: ['sea', 'hills'] } }), on(context)),
      server.createMessage(prompt, on(context)),
      server.listRoots(undefined, on(context)),
    ])
    return said(`${to.content.to}, ${content.text}, ${roots.length}`)
  })
  tool('report', {}, async (_args, context) => {
    const { progressToken } = context._meta ?? context.mcpReq?._meta ?? {}
    const half = { progressToken, progress: 1, total: 2, message: 'half' }
    await server.notification({ method: 'notifications/progress', params: half }, { relatedRequestId: idOf(context) })
    await server.sendLoggingMessage({ level: 'debug', data: 'details' }, context.sessionId)
    await server.sendLoggingMessage({ level: 'warning', data: 'late' }, context.sessionId)
    return said('Reported.')
  })
  tool('wait', {}, async (_args, context) => {
    await server.sendLoggingMessage({ level: 'warning', data: 'waiting' })
    const signal = context.signal ?? context.mcpReq.signal
    await new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }))
    await server.sendLoggingMessage({ level: 'warning', data: 'was cancelled' })
    return said('Cancelled.')
  })
  tool('change', {}, async () => {
    mcp.sendToolListChanged()
    await server.sendResourceUpdated({ uri: 'note://plain' })
    return said('Changed.')
  })
  const topic = { topic: z.string() }
  mcp.registerPrompt('brief', { argsSchema: version === 'v1' ? topic : z.object(topic) }, async (args, context) => {
    const { content } = await server.elicitInput(form('What for?', { what: { type: 'string' } }), on(context))
    return { messages: [{ role: 'user', content: { type: 'text', text: `${args.topic} for ${content.what}` } }] }
  })
  mcp.registerResource('plain', 'note://plain', {}, async ({ href }) => ({
    contents: [{ uri: href, text: 'A note.' }],
  }))
  const complete = { id: (value) => ['one', 'two'].filter((each) => each.startsWith(value)) }
  mcp.registerResource(
    'by-id',
    new Template('note://by/{id}', { list: undefined, complete }),
    {},
    async ({ href }) => ({
      contents: [{ uri: href, text: 'Another.' }],
    }),
  )
  for (const method of ['subscribe', 'unsubscribe']) accept(server, version, `resources/${method}`)
  return mcp
}

function accept(server, version, method) {
  if (version === 'v2') return server.setRequestHandler(method, async () => ({}))
  server.setRequestHandler(z.object({ method: z.literal(method), params: z.any() }), async () => ({}))
}

function hear(server, version, method, heard) {
  if (version === 'v2') return server.setNotificationHandler(method, heard)
  server.setNotificationHandler(z.object({ method: z.literal(method) }), heard)
}

/** Serves it over HTTP, a session for each client. */
export async function listen(version, how) {
  const { Http } = VERSIONS[version]
  const sessions = new Map()
  const http = createServer(async (request, response) => {
    const id = request.headers['mcp-session-id']
    const known = sessions.get(id)
    if (known !== undefined) return known.handleRequest(request, response)
    if (id !== undefined) return response.writeHead(404).end()
    const transport = new Http({
      sessionIdGenerator: randomUUID,
      onsessioninitialized: (made) => void sessions.set(made, transport),
      onsessionclosed: (ended) => void sessions.delete(ended),
    })
    await newServer(version, how).connect(transport)
    await transport.handleRequest(request, response)
  })
  http.listen(0, '127.0.0.1')
  await once(http, 'listening')
  return {
    url: `http://127.0.0.1:${http.address().port}/mcp`,
    sessions,
    close: async () => {
      http.close()
      http.closeAllConnections()
      await once(http, 'close')
    },
  }
}

/** Over the transport of 2024-11-05: a stream by GET, which names the address to post to. */
export async function listenSse(isRefused = () => false) {
  const sessions = new Map()
  const http = createServer(async (request, response) => {
    if (isRefused(request, response)) return undefined
    const { pathname, searchParams } = new URL(request.url, 'http://127.0.0.1')
    if (request.method === 'GET' && pathname === '/sse') {
      const transport = new SseV1('/messages', response)
      sessions.set(transport.sessionId, transport)
      response.on('close', () => sessions.delete(transport.sessionId))
      return newServer('v1').connect(transport)
    }
    const known = sessions.get(searchParams.get('sessionId'))
    if (pathname !== '/messages' || known === undefined) return response.writeHead(404).end('Cannot POST')
    return known.handlePostMessage(request, response)
  })
  http.listen(0, '127.0.0.1')
  await once(http, 'listening')
  return {
    url: `http://127.0.0.1:${http.address().port}/sse`,
    sessions,
    close: async () => {
      http.close()
      http.closeAllConnections()
      await once(http, 'close')
    },
  }
}

const [, path, version] = process.argv
if (path === import.meta.filename && version in VERSIONS)
  await newServer(version).connect(new VERSIONS[version].Stdio())
