// The store is away: every request that needs it is told to try again later, on every host and revision. Our client waits for it.
import { PassThrough } from 'node:stream'
import { createInterface } from 'node:readline'
import type { Rally } from 'mcp-rally'
import { MemoryStore, rally, send } from 'mcp-rally'
import type { Client } from 'mcp-rally/client'
import { connect } from 'mcp-rally/client'
import { serve, stdio } from 'mcp-rally/node'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { accepted, answerTo, fetchSegment, openCarrying, readSegment } from '../legacy/carried.ts'
import type { Ask } from '../legacy/raw.ts'
import { hosts as rawHosts, initializeMessage, RawSession, textOf } from '../legacy/raw.ts'
import { WITH_TASKS } from '../tasks/caller.ts'
import { accept, errorOf, headersOf, request, resultOf } from '../wire/messages.ts'
import { BreakableStore } from './breakable.ts'

const RETRY = { code: -32603, message: "The server's store is not available. Try again in a second." }

let store: BreakableStore
let logged: unknown[]
let app: Rally
let close: () => Promise<void>

function newApp(): Rally {
  const logger = {
    warn: (message: string) => void logged.push(message),
    error: (message: string) => void logged.push(message),
  }
  const made = rally({
    name: 'outage',
    version: '1',
    keys: ['a secret of the tests of outages, long enough'],
    logger,
    store,
    once: store.once,
    revisions: ['2026-06-XX', '2026-02-03-draft'],
    tasks: { pollMs: 100 },
  })
  made.tool('task', { task: 'always' }, async (_args, io) => ((await io.confirm('sure', 'Sure?')) ? 'Yes.' : 'No.'))
  made.tool('quick', { task: 'always' }, () => 'Done.')
  made.tool('ask', {}, async (_args, io) => ((await io.confirm('sure', 'Sure?')) ? 'Yes.' : 'No.'))
  made.tool('step', { annotations: { idempotentHint: true } }, async (_args, io) => {
    // A failure of the step itself would be caught, recorded and reported.
    return io.step('one', () => 'Stepped.', { once: store.once }).catch(() => 'The step failed.')
  })
  made.tool('detach', {}, async (_args, io) => {
    await io.step('one', () => {})
    await io.detach({ required: true })
    return 'Detached.'
  })
  return made
}

beforeEach(() => {
  store = new BreakableStore(new MemoryStore())
  logged = []
  app = newApp()
})
afterEach(async () => {
  await close?.()
  app.drain()
  app.interrupt()
})

interface Answer {
  readonly response: object | undefined
  readonly status?: number
  readonly retryAfter?: string | null
}

interface Wire {
  readonly name: string
  readonly isHttp: boolean
  open(): Promise<(message: object) => Promise<Answer>>
}

const http = rawHosts.map((host): Wire => ({
  name: host.name,
  isHttp: true,
  async open() {
    const opened = await host.open(app)
    ;({ close } = opened)
    return async (message) => {
      const { taskId } = (message as { params: { taskId?: string } }).params
      const headers = { ...headersOf(message), ...(taskId !== undefined && { 'Mcp-Name': taskId }) }
      const response = await opened.ask({ method: 'POST', headers, body: JSON.stringify(message) })
      const retryAfter = response.headers.get('retry-after')
      return { response: (await response.json()) as object, status: response.status, retryAfter }
    }
  },
}))

const memory: Wire = {
  name: 'memory',
  isHttp: false,
  async open() {
    close = async () => {}
    return async (message) => ({ response: await send(app, message) })
  },
}

const streams: Wire = {
  name: 'stdio',
  isHttp: false,
  async open() {
    const speak = openStreams()
    return async (message) => ({ response: await speak(message) })
  },
}

/** Sends one message at a time, and returns the next line. */
function openStreams(): (message: object) => Promise<object> {
  const input = new PassThrough()
  const output = new PassThrough()
  const over = stdio(app, { input, output })
  const lines = createInterface({ input: output })[Symbol.asyncIterator]()
  close = async () => {
    input.end()
    await over
  }
  return async (message) => {
    input.write(`${JSON.stringify(message)}\n`)
    return JSON.parse((await lines.next()).value as string) as object
  }
}

function call(name: string, round: object = {}): object {
  return request('tools/call', { name, arguments: {}, ...round }, WITH_TASKS)
}

describe.each([...http, memory, streams])('2026-07-28 over $name', (wire) => {
  test('every request that needs the store is told to try again later, and whether anything was done', async () => {
    const ask = await wire.open()
    const { taskId } = resultOf((await ask(call('task'))).response)
    const { requestState } = resultOf((await ask(call('ask'))).response)
    await vi.waitFor(async () => {
      const task = resultOf((await ask(request('tasks/get', { taskId }, WITH_TASKS))).response)
      expect(task).toMatchObject({ status: 'input_required' })
    })
    store.isDown = true
    const answers = { inputResponses: { sure: accept({ confirm: true }) } }
    const requests: [name: string, message: object, isUnprocessed: boolean][] = [
      ['create', call('task'), true],
      ['detach', call('detach'), false],
      ['step once', call('step'), false],
      ['state once', call('ask', { ...answers, requestState }), false],
      ['get', request('tasks/get', { taskId }, WITH_TASKS), false],
      ['update', request('tasks/update', { taskId, ...answers }, WITH_TASKS), false],
      ['cancel', request('tasks/cancel', { taskId }, WITH_TASKS), false],
      ['listen', request('subscriptions/listen', { notifications: { taskIds: [taskId] } }, WITH_TASKS), false],
    ]
    for (const [name, message, isUnprocessed] of requests) {
      // Over memory, a subscription has no stream.
      if (name === 'listen' && wire === memory) continue
      const { response, status, retryAfter } = await ask(message)
      const data = { retryAfterMs: 1000, ...(isUnprocessed && { unprocessed: true }) }
      expect({ name, error: errorOf(response) }).toEqual({ name, error: { ...RETRY, data } })
      if (wire.isHttp) expect({ name, status, retryAfter }).toEqual({ name, status: 503, retryAfter: '1' })
    }
    expect(store.failures).toBeGreaterThan(requests.length - 2)
    expect(logged).toEqual([expect.stringMatching(/^The store failed\./)])
    store.isDown = false
    expect(resultOf((await ask(call('step'))).response)).toMatchObject({ content: [{ text: 'Stepped.' }] })
    const again = await ask(call('ask', { ...answers, requestState }))
    expect(resultOf(again.response)).toMatchObject({ content: [{ text: 'Yes.' }] })
  })
})

async function expectRetry(response: Response): Promise<void> {
  const { status, headers } = response
  expect({ status, retryAfter: headers.get('retry-after') }).toEqual({ status: 503, retryAfter: '1' })
  expect(await response.json()).toMatchObject({ error: { ...RETRY, data: { retryAfterMs: 1000 } } })
}

describe.each(rawHosts)('older revisions over $name', (host) => {
  let ask: Ask
  beforeEach(async () => {
    const opened = await host.open(app)
    ;({ ask, close } = opened)
  })

  test.each(['2025-11-25', '2026-06-XX'])('the methods of tasks in %s', async (revision) => {
    const session = await RawSession.open(ask, { revision })
    const created = await session.json('tools/call', { name: 'task', arguments: {}, task: {} })
    const { taskId } = (created.result as { task: { taskId: string } }).task
    store.isDown = true
    await expectRetry(await session.request('tools/call', { name: 'task', arguments: {}, task: {} }))
    for (const method of ['tasks/get', 'tasks/result', 'tasks/cancel'])
      await expectRetry(await session.request(method, { taskId }))
    store.isDown = false
    expect(await session.json('tasks/get', { taskId })).toMatchObject({ result: { taskId } })
  })

  test('rounds of a draft', async () => {
    const session = await RawSession.open(ask, { revision: '2026-02-03-draft' })
    store.isDown = true
    await expectRetry(await session.call('step'))
  })

  test('a call whose client carries its state, and what follows its answer (SEP-1685)', async () => {
    const session = await openCarrying(ask)
    const { last, lastId } = await readSegment(await session.call('ask'))
    const answer = answerTo(last, accepted({ confirm: true }))
    store.isDown = true
    await expectRetry(await session.post(answer))
    store.isDown = false
    expect((await session.post(answer)).status).toBe(202)
    expect(textOf((await fetchSegment(session, lastId)).last)).toBe('Yes.')
    expect(logged).toEqual([expect.stringMatching(/^The store failed\./)])
  })
})

test('a session over stdio gets an error with the time to wait', async () => {
  const speak = openStreams()
  await speak(initializeMessage())
  store.isDown = true
  const params = { name: 'task', arguments: {}, task: {} }
  const response = await speak({ jsonrpc: '2.0', id: 1, method: 'tools/call', params })
  expect(errorOf(response)).toEqual({ ...RETRY, data: { retryAfterMs: 1000, unprocessed: true } })
})

describe('our client waits for the store', () => {
  let url: string
  beforeEach(async () => {
    const serving = await serve(app, { port: 0, drainMs: 100, handleSignals: false })
    ;({ url, close } = serving)
  })

  const answering = { onElicit: async () => ({ action: 'accept', content: { confirm: true } }) as const }
  const connections: Readonly<Record<string, () => Promise<Client>>> = {
    'Node HTTP': () => connect(url, answering),
    fetch: () => connect(url, { ...answering, fetch: (to, init) => fetch(to, init) }),
    memory: () => connect(app, answering),
    'a session of 2025-11-25': () => connect(url, { ...answering, revision: '2025-11-25' }),
  }

  test('over every carrier, in a call that becomes a task and in a round with a state', async () => {
    const clients = await Promise.all(Object.values(connections).map((open) => open()))
    store.isDown = true
    const modern = clients.slice(0, 3)
    const calls = modern.map((client) => client.callTool('quick'))
    const rounds = clients.map((client) => client.callTool('ask'))
    // Each of them has met the outage, and some a second time.
    await vi.waitFor(() => expect(store.failures).toBeGreaterThan(8), { timeout: 10_000 })
    store.isDown = false
    for (const result of await Promise.all(calls)) expect(result).toMatchObject({ content: [{ text: 'Done.' }] })
    for (const result of await Promise.all(rounds)) expect(result).toMatchObject({ content: [{ text: 'Yes.' }] })
    await Promise.all(clients.map((client) => client.close()))
  })

  test('no longer than the time limit of the call, and then says why', async () => {
    store.isDown = true
    for (const name of ['Node HTTP', 'memory'] as const) {
      const client = await connections[name]?.()
      const error: unknown = await client?.callTool('quick', {}, { timeoutMs: 500 }).catch((reason: unknown) => reason)
      const expected = name === 'memory' ? { code: 'PROTOCOL' } : { code: 'UNAVAILABLE', retryAfterMs: 1000 }
      expect(error).toMatchObject({ ...expected, message: expect.stringContaining('store is not available') as string })
      await client?.close()
    }
  })
})
