// The official server, version 2, as a process. Over HTTP /mcp serves both eras, the older one with sessions, and /stateless
// serves the older one without; with --stdio it serves both over its standard streams.
import { randomUUID } from 'node:crypto'
import { createServer } from 'node:http'
import { json } from 'node:stream/consumers'
import { NodeStreamableHTTPServerTransport, toNodeHandler, toWebRequest } from '@modelcontextprotocol/node'
import {
  McpServer,
  acceptedContent,
  createMcpHandler,
  createRequestStateCodec,
  inputRequired,
  inputResponse,
  isLegacyRequest,
} from '@modelcontextprotocol/server'
import { serveStdio } from '@modelcontextprotocol/server/stdio'
import { z } from 'zod'
import { openPage } from './page.mjs'
import { AGE, SURE, WHERE, WHO, deployed, form, prompt, said, trip } from './official-questions.mjs'

const codec = createRequestStateCodec({ key: 'a secret of the matrix, which is long enough' })
const page = await openPage()

const ask = (message, schema) => inputRequired.elicit(form(message, schema))
const asking = async (inputRequests, state = {}) =>
  inputRequired({ inputRequests, requestState: await codec.mint(state) })

function newServer() {
  const server = new McpServer(
    { name: 'official v2', version: '1.0.0' },
    { requestState: { verify: (state, context) => codec.verify(state, context) } },
  )

  server.registerTool('deploy', { inputSchema: z.object({ env: z.string() }) }, async ({ env }, { mcpReq }) => {
    const answer = inputResponse(mcpReq.inputResponses, 'sure')
    if (answer.kind === 'missing') return asking({ sure: ask(`Deploy to ${env}?`, SURE) })
    const { action, content } = answer
    return said(deployed(env, action, content))
  })
  server.registerTool('sign_in', {}, async ({ mcpReq }) => {
    const { token = randomUUID() } = mcpReq.requestState() ?? {}
    const answer = inputResponse(mcpReq.inputResponses, 'page')
    if (answer.kind === 'missing') {
      const visit = inputRequired.elicitUrl({ message: 'Please sign in.', url: page.urlFor(token) })
      return asking({ page: visit }, { token })
    }
    if (answer.action !== 'accept') return said(`The user said ${answer.action}.`)
    return said(page.wasVisited({ token }) ? 'Signed in.' : 'Nobody was there.')
  })
  server.registerTool('summarize', { inputSchema: z.object({ text: z.string() }) }, async ({ text }, { mcpReq }) => {
    const answer = inputResponse(mcpReq.inputResponses, 'summary')
    if (answer.kind === 'missing') {
      return asking({ summary: inputRequired.createMessage(prompt(`Sum up: ${text}`)) })
    }
    return said(`${answer.result.model}: ${answer.result.content.text}`)
  })
  server.registerTool('workspace', {}, async ({ mcpReq }) => {
    const answer = inputResponse(mcpReq.inputResponses, 'roots')
    if (answer.kind === 'missing') return asking({ roots: inputRequired.listRoots() })
    return said(answer.roots.map(({ name, uri }) => `${name} ${uri}`).join(', '))
  })
  server.registerTool('register', {}, async ({ mcpReq }) => {
    const before = mcpReq.requestState() ?? {}
    const known = (key) => ({ ...before, ...acceptedContent(mcpReq.inputResponses, key) })
    const { name } = known('who')
    if (name === undefined) return asking({ who: ask('Your name?', WHO) })
    const { years } = known('age')
    if (years === undefined) return asking({ age: ask(`How old are you, ${name}?`, AGE) }, { name })
    const { confirm } = known('sure')
    if (confirm === undefined) return asking({ sure: ask(`Register ${name}, ${years}?`, SURE) }, { name, years })
    return said(`${name}, ${years}: ${confirm}`)
  })
  server.registerTool('trip', {}, async ({ mcpReq }) => {
    const who = acceptedContent(mcpReq.inputResponses, 'who')
    const where = acceptedContent(mcpReq.inputResponses, 'where')
    const advice = inputResponse(mcpReq.inputResponses, 'advice')
    const listed = inputResponse(mcpReq.inputResponses, 'roots')
    if (who && where && advice.kind === 'sampling' && listed.kind === 'roots') {
      return said(trip(who, where, advice.result, listed))
    }
    return asking({
      who: ask('Who travels?', WHO),
      where: ask('Where to?', WHERE),
      advice: inputRequired.createMessage(prompt('What to pack?')),
      roots: inputRequired.listRoots(),
    })
  })
  server.registerTool('discuss', {}, async ({ mcpReq }) => {
    const { news } = mcpReq.requestState() ?? {}
    const answer = inputResponse(mcpReq.inputResponses, news === undefined ? 'news' : 'opinion')
    if (answer.kind === 'missing') return asking({ news: inputRequired.createMessage(prompt('What is new?')) })
    const { text } = answer.result.content
    if (news !== undefined) return said(`${news} ${text}`)
    return asking({ opinion: inputRequired.createMessage(prompt(`Is that good: ${text}`)) }, { news: text })
  })
  server.registerTool('pack', {}, async ({ mcpReq }) => {
    const advice = inputResponse(mcpReq.inputResponses, 'advice')
    const listed = inputResponse(mcpReq.inputResponses, 'roots')
    if (advice.kind === 'sampling' && listed.kind === 'roots') {
      return said(`${advice.result.content.text} ${listed.roots.length} roots.`)
    }
    return asking({
      advice: inputRequired.createMessage(prompt('What to pack?')),
      roots: inputRequired.listRoots(),
    })
  })
  return server
}

const sessions = new Map()

async function inSession(request, response, body) {
  const id = request.headers['mcp-session-id']
  const known = sessions.get(id)
  if (known !== undefined) return known.handleRequest(request, response, body)
  if (id !== undefined) return response.writeHead(404).end()
  const transport = new NodeStreamableHTTPServerTransport({
    sessionIdGenerator: randomUUID,
    onsessioninitialized: (made) => void sessions.set(made, transport),
    onsessionclosed: (ended) => void sessions.delete(ended),
  })
  await newServer().connect(transport)
  await transport.handleRequest(request, response, body)
}

if (process.argv.includes('--stdio')) {
  serveStdio(newServer)
} else {
  const modern = toNodeHandler(createMcpHandler(newServer, { legacy: 'reject' }))
  const stateless = toNodeHandler(createMcpHandler(newServer, { legacy: 'stateless' }))
  const http = createServer(async (request, response) => {
    if (request.url === '/stateless') return stateless(request, response)
    const body = request.method === 'POST' ? await json(request) : undefined
    const isLegacy = await isLegacyRequest(await toWebRequest(request, body), body)
    return isLegacy ? inSession(request, response, body) : modern(request, response, body)
  })
  http.listen(0, '127.0.0.1', () => console.log(`listening on http://127.0.0.1:${http.address().port}/mcp`))
}
