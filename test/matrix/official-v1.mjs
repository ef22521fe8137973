// The official server, version 1, as a process: over HTTP with a session for each client, or with --stdio over its
// standard streams.
import { randomUUID } from 'node:crypto'
import { createServer } from 'node:http'
import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js'
import { StdioServerTransport } from '@modelcontextprotocol/sdk/server/stdio.js'
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js'
import { z } from 'zod'
import { openPage } from './page.mjs'
import { AGE, SURE, WHERE, WHO, deployed, form, prompt, said, trip } from './official-questions.mjs'

const page = await openPage()

function newServer() {
  const mcp = new McpServer({ name: 'official v1', version: '1.0.0' })
  const { server } = mcp
  const ask = (question, { requestId }) => server.elicitInput(question, { relatedRequestId: requestId })
  const sample = (text, { requestId }) => server.createMessage(prompt(text), { relatedRequestId: requestId })
  const roots = ({ requestId }) => server.listRoots(undefined, { relatedRequestId: requestId })
  const tool = (name, inputSchema, run) => mcp.registerTool(name, { inputSchema }, run)

  tool('deploy', { env: z.string() }, async ({ env }, extra) => {
    const { action, content } = await ask(form(`Deploy to ${env}?`, SURE), extra)
    return said(deployed(env, action, content))
  })
  tool('sign_in', {}, async (_args, extra) => {
    const token = randomUUID()
    const visit = { mode: 'url', message: 'Please sign in.', elicitationId: token, url: page.urlFor(token) }
    const { action } = await ask(visit, extra)
    if (action !== 'accept') return said(`The user said ${action}.`)
    return said(page.wasVisited({ token }) ? 'Signed in.' : 'Nobody was there.')
  })
  tool('summarize', { text: z.string() }, async ({ text }, extra) => {
    const { model, content } = await sample(`Sum up: ${text}`, extra)
    return said(`${model}: ${content.text}`)
  })
  tool('workspace', {}, async (_args, extra) => {
    const listed = await roots(extra)
    return said(listed.roots.map(({ name, uri }) => `${name} ${uri}`).join(', '))
  })
  tool('register', {}, async (_args, extra) => {
    const { name } = (await ask(form('Your name?', WHO), extra)).content
    const { years } = (await ask(form(`How old are you, ${name}?`, AGE), extra)).content
    const { confirm } = (await ask(form(`Register ${name}, ${years}?`, SURE), extra)).content
    return said(`${name}, ${years}: ${confirm}`)
  })
  tool('trip', {}, async (_args, extra) => {
    const [who, where, advice, listed] = await Promise.all([
      ask(form('Who travels?', WHO), extra),
      ask(form('Where to?', WHERE), extra),
      sample('What to pack?', extra),
      roots(extra),
    ])
    return said(trip(who.content, where.content, advice, listed))
  })
  tool('discuss', {}, async (_args, extra) => {
    const { content: news } = await sample('What is new?', extra)
    const { content: opinion } = await sample(`Is that good: ${news.text}`, extra)
    return said(`${news.text} ${opinion.text}`)
  })
  tool('pack', {}, async (_args, extra) => {
    const [{ content }, listed] = await Promise.all([sample('What to pack?', extra), roots(extra)])
    return said(`${content.text} ${listed.roots.length} roots.`)
  })
  return mcp
}

if (process.argv.includes('--stdio')) {
  await newServer().connect(new StdioServerTransport())
} else {
  const sessions = new Map()
  const http = createServer(async (request, response) => {
    const id = request.headers['mcp-session-id']
    const known = sessions.get(id)
    if (known !== undefined) return known.handleRequest(request, response)
    if (id !== undefined) return response.writeHead(404).end()
    const transport = new StreamableHTTPServerTransport({
      sessionIdGenerator: randomUUID,
      onsessioninitialized: (made) => void sessions.set(made, transport),
      onsessionclosed: (ended) => void sessions.delete(ended),
    })
    await newServer().connect(transport)
    await transport.handleRequest(request, response)
  })
  http.listen(0, '127.0.0.1', () => console.log(`listening on http://127.0.0.1:${http.address().port}/mcp`))
}
