// The official server, with every documented way to ask: over HTTP, or with --stdio over its standard streams.
import { createServer } from 'node:http'
import { toNodeHandler } from '@modelcontextprotocol/node'
import {
  McpServer,
  ResourceTemplate,
  acceptedContent,
  completable,
  createMcpHandler,
  createRequestStateCodec,
  inputRequired,
  inputResponse,
} from '@modelcontextprotocol/server'
import { serveStdio } from '@modelcontextprotocol/server/stdio'
import { z } from 'zod'

const codec = createRequestStateCodec({ key: 'a secret of the interop tests, long enough' })
const said = (text) => ({ content: [{ type: 'text', text }] })
const confirmation = z.object({ confirm: z.boolean() })
const traveller = z.object({
  name: z.string().min(2),
  email: z.email().optional(),
  age: z.number().int().min(0).max(150),
  class: z.enum(['first', 'second']).default('second'),
  insured: z.boolean().default(false),
})
const days = {
  type: 'object',
  properties: {
    days: {
      type: 'array',
      title: 'Days',
      minItems: 1,
      items: {
        anyOf: [
          { const: 'sat', title: 'Saturday' },
          { const: 'sun', title: 'Sunday' },
        ],
      },
    },
  },
  required: ['days'],
}
const LANGUAGES = ['typescript', 'python', 'perl']

/** How changes are told of differs between the wires. */
let notify = {}

function newServer() {
  const server = new McpServer(
    { name: 'official', version: '2.0.0', title: 'The official server' },
    {
      instructions: 'Ask away.',
      capabilities: { logging: {}, tools: { listChanged: true }, resources: { subscribe: true, listChanged: true } },
      requestState: { verify: (state, context) => codec.verify(state, context) },
    },
  )
  addTools(server)
  addPromptsAndResources(server)
  return server
}

function addTools(server) {
  server.registerTool(
    'add',
    { inputSchema: z.object({ a: z.number(), b: z.number() }), outputSchema: z.object({ sum: z.number() }) },
    async ({ a, b }) => ({
      ...said(String(a + b)),
      structuredContent: { sum: a + b },
    }),
  )

  // Asks, goes on to another question, and keeps where it is in a signed state.
  server.registerTool('deploy', { inputSchema: z.object({ env: z.string() }) }, async ({ env }, { mcpReq }) => {
    const { step = 'confirm' } = mcpReq.requestState() ?? {}
    if (step === 'sign-in') {
      const view = inputResponse(mcpReq.inputResponses, 'auth')
      return said(view.action === 'accept' ? `Deployed to ${env}` : `Not signed in: ${view.action}`)
    }
    const answer = inputResponse(mcpReq.inputResponses, 'confirm')
    if (answer.kind === 'elicit' && answer.action !== 'accept') return said(`Left as it was: ${answer.action}`)
    if (acceptedContent(mcpReq.inputResponses, 'confirm', confirmation)?.confirm !== true) {
      const confirm = inputRequired.elicit({ message: `Deploy to ${env}?`, requestedSchema: confirmation })
      return inputRequired({ inputRequests: { confirm }, requestState: await codec.mint({ step: 'confirm' }) })
    }
    const auth = inputRequired.elicitUrl({ message: 'Please sign in.', url: `https://example.com/auth?env=${env}` })
    return inputRequired({ inputRequests: { auth }, requestState: await codec.mint({ step: 'sign-in' }) })
  })

  // Several questions at once, and no state at all.
  server.registerTool('book', {}, async ({ mcpReq }) => {
    const who = acceptedContent(mcpReq.inputResponses, 'who', traveller)
    const when = acceptedContent(mcpReq.inputResponses, 'when')
    if (who && when) return said(JSON.stringify({ ...who, ...when }))
    return inputRequired({
      inputRequests: {
        who: inputRequired.elicit({ message: 'Who travels?', requestedSchema: traveller }),
        when: inputRequired.elicit({ message: 'When?', requestedSchema: days }),
      },
    })
  })

  // One question of every kind.
  server.registerTool('everything', {}, async ({ mcpReq }) => {
    const kinds = ['form', 'page', 'model', 'roots'].map((key) => inputResponse(mcpReq.inputResponses, key))
    if (kinds.every(({ kind }) => kind !== 'missing')) return said(JSON.stringify(kinds))
    const prompt = { messages: [{ role: 'user', content: { type: 'text', text: 'Well?' } }], maxTokens: 10 }
    return inputRequired({
      inputRequests: {
        form: inputRequired.elicit({ message: 'Sure?', requestedSchema: confirmation }),
        page: inputRequired.elicitUrl({ message: 'Go there.', url: 'https://example.com/' }),
        model: inputRequired.createMessage(prompt),
        roots: inputRequired.listRoots(),
      },
    })
  })

  // A state and no question: to be called again.
  server.registerTool('later', {}, async ({ mcpReq }) => {
    const { tries = 0 } = mcpReq.requestState() ?? {}
    return tries === 3 ? said('Now.') : inputRequired({ requestState: await codec.mint({ tries: tries + 1 }) })
  })

  server.registerTool('work', {}, async ({ mcpReq }) => {
    const { progressToken } = mcpReq._meta ?? {}
    for (const progress of [1, 2])
      await mcpReq.notify({
        method: 'notifications/progress',
        params: { progressToken, progress, total: 2, message: `part ${progress}` },
      })
    await mcpReq.log('info', { done: true }, 'worker')
    return said('Worked.')
  })

  server.registerTool('wait', {}, async ({ mcpReq }) => {
    console.error('wait is waiting')
    await new Promise((resolve) => mcpReq.signal.addEventListener('abort', resolve, { once: true }))
    console.error('wait is cancelled')
    return said('Too late.')
  })

  server.registerTool('fail', {}, async () => {
    throw new Error('It went wrong.')
  })

  server.registerTool('change', {}, async () => {
    notify.toolsChanged()
    notify.resourceUpdated('memo://notes')
    return said('Changed.')
  })
}

function addPromptsAndResources(server) {
  const language = completable(z.string(), (value) => LANGUAGES.filter((each) => each.startsWith(value)))
  server.registerPrompt('review', { argsSchema: z.object({ language }) }, async ({ language: name }, { mcpReq }) => {
    const answer = acceptedContent(mcpReq.inputResponses, 'tone')
    if (!answer) {
      const requestedSchema = {
        type: 'object',
        properties: { tone: { type: 'string', enum: ['kind', 'strict'] } },
        required: ['tone'],
      }
      return inputRequired({
        inputRequests: { tone: inputRequired.elicit({ message: 'In which tone?', requestedSchema }) },
      })
    }
    return {
      messages: [{ role: 'user', content: { type: 'text', text: `Review this ${name}, be ${String(answer.tone)}.` } }],
    }
  })

  server.registerResource('notes', 'memo://notes', { mimeType: 'text/plain' }, async ({ href: uri }) => ({
    contents: [{ uri, text: 'Notes.' }],
  }))
  const template = new ResourceTemplate('memo://{year}/report', {
    list: undefined,
    complete: { year: (value) => ['2024', '2025', '2026'].filter((year) => year.startsWith(value)) },
  })
  server.registerResource('report', template, {}, async ({ href: uri }, { year }, { mcpReq }) => {
    if (!acceptedContent(mcpReq.inputResponses, 'ok', confirmation)) {
      const ok = inputRequired.elicit({ message: `Open ${year}?`, requestedSchema: confirmation })
      return inputRequired({ inputRequests: { ok } })
    }
    return { contents: [{ uri, text: `Report of ${year}` }] }
  })
}

if (process.argv.includes('--stdio')) {
  serveStdio(() => {
    const server = newServer()
    notify = {
      toolsChanged: () => server.sendToolListChanged(),
      resourceUpdated: (uri) => server.server.sendResourceUpdated({ uri }),
    }
    return server
  })
} else {
  const handler = createMcpHandler(newServer, { legacy: 'reject' })
  notify = handler.notify
  const listening = createServer(toNodeHandler(handler))
  listening.listen(0, '127.0.0.1', () => console.log(`listening on http://127.0.0.1:${listening.address().port}/mcp`))
}
