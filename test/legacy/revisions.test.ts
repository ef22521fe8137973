// The same handlers under each of the older revisions, on a session over HTTP and on a connection of its own.
import { PassThrough } from 'node:stream'
import type { Rally } from 'mcp-rally'
import { stdio } from 'mcp-rally/node'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { Lines } from '../../src/protocol/lines.ts'
import { olderApp } from './app.mjs'
import type { SessionOptions, Wired } from './raw.ts'
import { Events, hosts, initializeMessage, RawSession, textOf } from './raw.ts'

type Answer = (question: Wired) => object

const said = { role: 'assistant', content: { type: 'text', text: 'Short' }, model: 'm' }

interface Talk {
  readonly initialized: Wired
  /** The response to a request, with its questions answered on the way. */
  request(method: string, params?: object, answer?: Answer): Promise<Wired>
  close(): Promise<unknown>
}

const wires = [
  { name: 'HTTP', begin: overHttp },
  { name: 'stdio', begin: overStdio },
]

async function overHttp(app: Rally, options: SessionOptions): Promise<Talk> {
  const [host] = hosts
  if (host === undefined) throw new Error('There is no host.')
  const { ask, close } = await host.open(app)
  const session = await RawSession.open(ask, options)
  return {
    initialized: session.initialized,
    async request(method, params, answer) {
      const response = await session.request(method, params)
      if (response.headers.get('content-type') === 'application/json') return (await response.json()) as Wired
      const events = new Events(response)
      for (let message = await events.message(); message !== undefined; message = await events.message()) {
        if (message.method === undefined) return message
        if (message.id !== undefined) await session.answer(message, answer?.(message) ?? {})
      }
      throw new Error('The stream ended without a response.')
    },
    close,
  }
}

async function overStdio(app: Rally, options: SessionOptions): Promise<Talk> {
  const [input, output] = [new PassThrough(), new PassThrough()]
  const served = stdio(app, { input, output })
  const send = (message: object): void => void input.write(`${JSON.stringify(message)}\n`)
  let receive: ((message: Wired) => void) | undefined
  const lines = new Lines(
    1024 * 1024,
    (line) => receive?.(JSON.parse(line) as Wired),
    () => {},
  )
  output.on('data', (chunk: Buffer) => lines.add(chunk))
  let next = 1
  const request: Talk['request'] = (method, params, answer) =>
    new Promise((resolve) => {
      const id = next
      next += 1
      receive = (message) => {
        if (message.method === undefined) return resolve(message)
        if (message.id !== undefined) send({ jsonrpc: '2.0', id: message.id, result: answer?.(message) ?? {} })
      }
      send({ jsonrpc: '2.0', id, method, params })
    })
  const { params } = initializeMessage(options) as { params: object }
  const initialized = await request('initialize', params)
  send({ jsonrpc: '2.0', method: 'notifications/initialized' })
  return {
    initialized,
    request,
    close: () => {
      input.end()
      return served
    },
  }
}

describe.each(wires)('over $name', ({ begin }) => {
  let talk: Talk
  afterEach(() => talk.close())
  const call = (name: string, answer?: Answer, args: object = {}): Promise<Wired> =>
    talk.request('tools/call', { name, arguments: args }, answer)

  describe('2025-06-18', () => {
    beforeEach(async () => {
      const capabilities = { elicitation: {}, sampling: {}, roots: {} }
      talk = await begin(olderApp(), { revision: '2025-06-18', capabilities })
    })

    test('names the server, and handlers know what there is', async () => {
      expect(talk.initialized.result).toMatchObject({
        protocolVersion: '2025-06-18',
        serverInfo: { name: 'older', version: '1.0.0', title: 'For older clients' },
        instructions: 'Be patient.',
      })
      expect(textOf(await call('revision'))).toBe('2025-06-18 elicitation.form sampling sampling.context roots')
    })

    test('asks by forms without a mode, and several things at once', async () => {
      const asked: Wired[] = []
      const result = await call('trip', (question) => {
        asked.push(question)
        if (question.method === 'roots/list') return { roots: [{ uri: 'file:///one' }] }
        if (question.method === 'elicitation/create') return { action: 'accept', content: { choice: 'hills' } }
        return said
      })
      expect(textOf(result)).toBe('hills, Short, 1')
      const form = asked.find(({ method }) => method === 'elicitation/create')?.params
      expect(form).toEqual({
        message: 'Where to?',
        requestedSchema: {
          type: 'object',
          properties: { choice: { type: 'string', enum: ['sea', 'hills'], enumNames: ['sea', 'The hills'] } },
          required: ['choice'],
        },
      })
    })

    test('has no form for a choice of several, and no page to visit: a tool says so in its result', async () => {
      const several = await call('topics')
      expect(several.result).toMatchObject({ isError: true })
      expect(textOf(several)).toMatch(
        /question \("topics"\) that revision 2025-06-18 of MCP cannot express: .*"several"/,
      )
      const page = await call('sign_in')
      expect(page.result).toMatchObject({ isError: true })
      expect(textOf(page)).toMatch(/visit a web page \(question "page"\), and the app that sent it cannot ask its user/)
    })

    test('has structured content', async () => {
      expect((await call('add', undefined, { a: 1 })).result).toMatchObject({ structuredContent: { sum: 2 } })
    })
  })

  describe('2025-03-26', () => {
    beforeEach(async () => {
      talk = await begin(olderApp(), { revision: '2025-03-26', capabilities: { elicitation: {}, sampling: {} } })
    })

    test('names the server without a title, and has no questions to the user', async () => {
      expect(talk.initialized.result?.['serverInfo']).toEqual({ name: 'older', version: '1.0.0' })
      expect(textOf(await call('revision'))).toBe('2025-03-26 sampling sampling.context')
      expect((await call('outcome')).result).toMatchObject({ isError: true })
      expect(textOf(await call('summarize', () => said))).toBe('Short')
    })

    test('lists nothing that came later', async () => {
      const { result = {} } = await talk.request('tools/list')
      const keys = new Set((result['tools'] as object[]).flatMap((tool) => Object.keys(tool)))
      expect([...keys].toSorted()).toEqual(['annotations', 'inputSchema', 'name'])
      expect((await talk.request('prompts/list')).result).toEqual({
        prompts: [{ name: 'brief', arguments: [{ name: 'topic', required: true }] }, { name: 'needs_model' }],
      })
      expect((await talk.request('resources/list')).result).toEqual({
        resources: [{ uri: 'note://plain', name: 'plain', mimeType: 'text/plain' }],
      })
    })

    test('returns results without any field of a later revision', async () => {
      expect((await call('add', undefined, { a: 1 })).result).toEqual({
        content: [{ type: 'text', text: '{"sum":2}' }],
      })
      expect(textOf(await call('link'))).toBe('one: note://1\nThe first')
      expect((await talk.request('resources/read', { uri: 'note://nowhere' })).error?.code).toBe(-32002)
    })
  })

  test.each([
    ['a level that is none', 'logging/setLevel', { level: 'loud' }, -32602],
    ['a resource without a URI', 'resources/subscribe', {}, -32602],
    ['a URI that is too long', 'resources/subscribe', { uri: `a:${'x'.repeat(9_000)}` }, -32602],
    ['a cursor that is none', 'tools/list', { cursor: 7 }, -32602],
    ['a tool without a name', 'tools/call', {}, -32602],
    ['arguments that are none', 'tools/call', { name: 'greet', arguments: [] }, -32602],
    ['a token that is none', 'tools/call', { name: 'greet', _meta: { progressToken: {} } }, -32602],
    ['a prompt that is none', 'prompts/get', { name: 'nothing' }, -32602],
    ['arguments that no prompt has', 'prompts/get', { name: 'brief', arguments: { topic: 7 } }, -32602],
    ['a reference that is none', 'completion/complete', { ref: 7 }, -32602],
    ['a method of 2026-07-28', 'server/discover', {}, -32601],
    ['a stream of 2026-07-28', 'subscriptions/listen', {}, -32601],
    ['a task', 'tasks/list', {}, -32601],
  ])('%s is told by a code', async (_what, method, params, code) => {
    talk = await begin(olderApp(), {})
    expect((await talk.request(method, params)).error?.code).toBe(code)
  })

  test('answers and a state of 2026-07-28 mean nothing in a session', async () => {
    talk = await begin(olderApp(), {})
    const params = {
      name: 'outcome',
      inputResponses: { q: { action: 'accept', content: {} } },
      requestState: 'rs1.made-up',
    }
    const result = await talk.request('tools/call', params, () => ({ action: 'decline' }))
    expect(textOf(result)).toBe('The user said decline.')
  })
})
