// A connection of its own: what may come before the handshake, after it and instead of it.
import { PassThrough } from 'node:stream'
import type { Rally, Visible } from 'mcp-rally'
import { MemoryStore } from 'mcp-rally'
import type { StdioOptions } from 'mcp-rally/node'
import { stdio } from 'mcp-rally/node'
import fc from 'fast-check'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { Lines } from '../../src/protocol/lines.ts'
import { call as modernCall } from '../wire/messages.ts'
import { olderApp } from './app.mjs'
import type { Wired } from './raw.ts'
import { ALL, initializeMessage, textOf } from './raw.ts'
import { accepted, answerTo, CARRIES, errorTo, stateOf } from './carried.ts'

class Line {
  readonly received: (Wired | Wired[])[] = []
  readonly #input = new PassThrough()
  readonly #served: Promise<void>
  #look: () => void = () => {}

  constructor(app: Rally, caller?: StdioOptions['caller']) {
    const output = new PassThrough()
    this.#served = stdio(app, { input: this.#input, output, ...(caller && { caller }) })
    const receive = (line: string): void => {
      this.received.push(JSON.parse(line) as Wired)
      this.#look()
    }
    const lines = new Lines(1024 * 1024, receive, () => {})
    output.on('data', (chunk: Buffer) => lines.add(chunk))
  }

  send(...messages: unknown[]): void {
    for (const message of messages) this.#input.write(`${JSON.stringify(message)}\n`)
  }

  /** The first message that came or comes and is like this. */
  find(isIt: (message: Wired) => boolean): Promise<Wired> {
    return new Promise((resolve) => {
      this.#look = () => {
        const found = this.received.flat().find(isIt)
        if (found !== undefined) resolve(found)
      }
      this.#look()
    })
  }

  response(id: string | number): Promise<Wired> {
    return this.find((message) => message.id === id && message.method === undefined)
  }

  async close(): Promise<void> {
    this.#input.end()
    await this.#served
  }
}

const ping = (id: number): object => ({ jsonrpc: '2.0', id, method: 'ping' })
const toolCall = (id: number | string, name: string): object => ({
  jsonrpc: '2.0',
  id,
  method: 'tools/call',
  params: { name },
})

let app: Rally
let line: Line
beforeEach(() => {
  app = olderApp()
  line = new Line(app)
})
afterEach(() => line.close())

test('Messages that come right behind the handshake are served in their order', async () => {
  line.send(initializeMessage(), { jsonrpc: '2.0', method: 'notifications/initialized' }, ping(1), ping(2))
  expect((await line.response(2)).result).toEqual({})
  expect(line.received.map((message) => (message as Wired).id)).toEqual([0, 1, 2])
})

test('Before a handshake, what names no revision is refused as ever', async () => {
  line.send(ping(1))
  expect((await line.response(1)).error?.code).toBe(-32602)
})

test('A second client behind a gateway is served, and both see what both can read and answer', async () => {
  line.send(initializeMessage())
  line.send({
    ...initializeMessage({ revision: '2025-06-18', capabilities: { elicitation: {}, roots: {} } }),
    id: 'again',
  })
  expect((await line.response('again')).result).toMatchObject({ protocolVersion: '2025-06-18' })
  line.send(toolCall(1, 'revision'))
  expect(textOf(await line.response(1))).toBe('2025-06-18 elicitation.form roots')
  line.send({ ...initializeMessage(), id: 'third' })
  expect((await line.response('third')).result).toMatchObject({ protocolVersion: '2025-11-25' })
  line.send(toolCall(2, 'revision'))
  expect(textOf(await line.response(2))).toBe('2025-06-18 elicitation.form roots')
})

test('A call that waits for an answer gets it, although another client began meanwhile', async () => {
  line.send(initializeMessage(), toolCall(1, 'outcome'))
  const question = await line.find(({ method }) => method === 'elicitation/create')
  line.send({ ...initializeMessage({ capabilities: {} }), id: 'again' })
  await line.response('again')
  line.send({ jsonrpc: '2.0', id: question.id, result: { action: 'decline' } })
  expect(textOf(await line.response(1))).toBe('The user said decline.')
})

test('A handshake that is refused may be tried again', async () => {
  line.send({ jsonrpc: '2.0', id: 'wrong', method: 'initialize', params: {} }, ping(1))
  expect((await line.response('wrong')).error?.code).toBe(-32602)
  expect((await line.response(1)).error?.code).toBe(-32600)
  line.send(initializeMessage())
  expect((await line.response(0)).result).toMatchObject({ protocolVersion: '2025-11-25' })
})

test('What names its revision is served by that on the same connection', async () => {
  line.send(initializeMessage(), { ...modernCall('greet'), id: 'modern' })
  expect((await line.response('modern')).result).toMatchObject({ resultType: 'complete' })
})

test('Changes are sent once the handshake is over, and of resources those that were subscribed to', async () => {
  const subscribe = { jsonrpc: '2.0', id: 1, method: 'resources/subscribe', params: { uri: 'note://plain' } }
  line.send(initializeMessage(), subscribe)
  await line.response(1)
  app.notify.toolsChanged()
  line.send({ jsonrpc: '2.0', method: 'notifications/initialized' }, ping(2))
  await line.response(2)
  app.notify.resourceUpdated('note://other')
  app.notify.resourceUpdated('note://plain')
  const { params } = await line.find(({ method }) => method === 'notifications/resources/updated')
  expect(params).toEqual({ uri: 'note://plain' })
  expect(line.received).toHaveLength(4)
})

test('A batch is answered by an array under 2025-03-26, and refused under every other revision', async () => {
  line.send(initializeMessage({ revision: '2025-03-26' }), [ping(1), ping(2)], [])
  await line.response(2)
  expect(line.received.filter((message) => Array.isArray(message))).toEqual([
    [1, 2].map((id) => ({ jsonrpc: '2.0', id, result: {} })),
  ])
  expect(await line.find(({ error }) => error !== undefined)).toMatchObject({ error: { code: -32600 } })
  const other = new Line(app)
  other.send(initializeMessage(), [ping(1)], ping(2))
  await other.response(2)
  expect(other.received.flat().filter(({ id }) => id === 1)).toEqual([])
  await other.close()
})

test('Responses that nobody waits for are passed over, and so are wrong ones', async () => {
  line.send(initializeMessage(), { jsonrpc: '2.0', id: 7, result: {} }, { jsonrpc: '2.0', id: null, error: 7 }, ping(1))
  await line.response(1)
  expect(line.received).toHaveLength(2)
})

test('Calls are cancelled when the client hangs up', async () => {
  const cancelled = new Promise<void>((resolve) => {
    app.tool('last', {}, async (_args, io) => {
      const { signal } = io
      io.log('info', 'begun')
      await new Promise<void>((over) => signal.addEventListener('abort', () => over(), { once: true }))
      resolve()
    })
  })
  line.send(initializeMessage(), toolCall(1, 'last'))
  await line.find(({ method }) => method === 'notifications/message')
  await line.close()
  await cancelled
  expect(line.received.filter((message) => (message as Wired).id === 1)).toEqual([])
})

test('When the server goes down, a call that waits fails and says so', async () => {
  line.send(initializeMessage(), toolCall(1, 'outcome'))
  await line.find(({ method }) => method === 'elicitation/create')
  app.interrupt()
  expect(textOf(await line.response(1))).toMatch(/: the server shut down before/)
})

test('Anything at all may come after a handshake, and the connection lives on', async () => {
  line.send(initializeMessage({ revision: '2025-03-26' }))
  await line.response(0)
  const anything = fc.jsonValue({ maxDepth: 3 })
  const or = (...good: unknown[]): fc.Arbitrary<unknown> => fc.oneof(fc.constantFrom(...good), anything)
  const nearly = fc.record(
    {
      jsonrpc: or('2.0'),
      id: or(1, 'a', 0),
      method: or('tools/call', 'resources/read', 'logging/setLevel', 'completion/complete', 'notifications/cancelled'),
      params: or({ name: 'greet' }, { uri: 'note://plain' }, { requestId: 1 }),
      result: or({}),
      error: or({}),
    },
    { requiredKeys: [] },
  )
  fc.assert(
    fc.property(fc.oneof(nearly, fc.array(nearly, { maxLength: 3 }), anything), (message) => line.send(message)),
    { numRuns: 500 },
  )
  line.send({ ...ping(1), id: 'alive' })
  expect((await line.response('alive')).result).toEqual({})
})

test.each(['2025-11-25', '2025-06-18'])(
  'In %s a client that carries its calls is given a state here too',
  async (revision) => {
    line.send(initializeMessage({ revision, capabilities: CARRIES }), toolCall(1, 'survey'))
    const name = await line.find(({ method }) => method === 'elicitation/create')
    expect(stateOf(name)).toMatch(/^sr1\./)
    line.send(answerTo(name, accepted({ name: 'Ada' })))
    const age = await line.find(({ method, id }) => method === 'elicitation/create' && id !== name.id)
    line.send(answerTo(age, accepted({ age: 36 })))
    expect(textOf(await line.response(1))).toBe('Ada is 36.')
  },
)

test('A client that carries its calls is asked one question at a time', async () => {
  line.send(initializeMessage({ capabilities: CARRIES }), toolCall(1, 'trip'), ping(2))
  await line.response(2)
  const asked = new Set<unknown>()
  const answers: Readonly<Record<string, object>> = {
    'elicitation/create': accepted({ choice: 'sea' }),
    'sampling/createMessage': { role: 'assistant', content: { type: 'text', text: 'Hm.' }, model: 'm' },
    'roots/list': { roots: [] },
  }
  for (let i = 1; i <= 3; i += 1) {
    const question = await line.find(({ id, method }) => method !== undefined && id !== undefined && !asked.has(id))
    asked.add(question.id)
    expect(line.received.flat().filter(({ id, method }) => method !== undefined && id !== undefined)).toHaveLength(i)
    line.send(answerTo(question, answers[question.method ?? ''] ?? {}))
  }
  expect(textOf(await line.response(1))).toBe('sea, Hm., 0')
})

test('On a connection an error carries the state as well, and an invalid state is ignored', async () => {
  line.send(initializeMessage({ capabilities: CARRIES }), toolCall(1, 'outcome'))
  const question = await line.find(({ method }) => method === 'elicitation/create')
  line.send(
    answerTo(question, accepted(), 'sr1.AAAA'),
    { jsonrpc: '2.0', id: question.id, result: accepted() },
    ping(2),
  )
  await line.response(2)
  expect(line.received.flat().some(({ id }) => id === 1)).toBe(false)
  line.send(errorTo(question, 'Nobody is there.'))
  expect(textOf(await line.response(1))).toContain('Nobody is there.')
})

test('A suspended call is cancelled on a connection, and its answer is ignored', async () => {
  line.send(initializeMessage({ capabilities: CARRIES }), toolCall(1, 'outcome'))
  const question = await line.find(({ method }) => method === 'elicitation/create')
  line.send({ jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: 1 } })
  line.send(answerTo(question, accepted()), toolCall(2, 'outcome'))
  const next = await line.find(({ method, id }) => method === 'elicitation/create' && id !== question.id)
  line.send(answerTo(next, accepted()))
  expect(textOf(await line.response(2))).toBe('The user said accept.')
  expect(line.received.flat().some(({ id, method }) => id === 1 && method === undefined)).toBe(false)
})

const forAnn: Visible = ({ caller }) => caller?.principal === 'ann'

describe('with a caller that the host names', () => {
  const caller = { principal: 'ann', scopes: ['a'] }

  test.each([
    ['the connection carries', '2025-11-25', ALL],
    ['the connection carries', '2025-06-18', ALL],
    ['the client carries', '2025-11-25', CARRIES],
    ['the client carries', '2025-06-18', CARRIES],
  ])('Every pass of a call that %s sees it, in %s, and finds what only it may see', async (_who, revision, has) => {
    const passes: (string | undefined)[] = []
    app.tool('hers', { visible: forAnn }, async (_args, io) => {
      passes.push(io.caller?.principal)
      await io.confirm('one', 'One?')
      await io.confirm('two', 'Two?')
      return `Done by ${io.caller?.principal} with ${io.caller?.scopes.join()}`
    })
    const hers = new Line(app, caller)
    hers.send(initializeMessage({ revision, capabilities: has }), toolCall(1, 'hers'))
    for (const message of ['One?', 'Two?']) {
      const question = await hers.find(({ params }) => params?.['message'] === message)
      hers.send(answerTo(question, accepted({ confirm: true })))
    }
    expect(textOf(await hers.response(1))).toBe('Done by ann with a')
    expect(passes).toEqual(['ann', 'ann', 'ann'])
    line.send(initializeMessage({ revision, capabilities: has }), toolCall(1, 'hers'))
    expect((await line.response(1)).error).toMatchObject({ message: 'Unknown tool: hers' })
    await hers.close()
  })

  test('It may list its tasks, and is told so', async () => {
    const withTasks = olderApp({ store: new MemoryStore() })
    const hers = new Line(withTasks, caller)
    const anyone = new Line(withTasks)
    for (const each of [hers, anyone]) each.send(initializeMessage(), { ...ping(1), method: 'tasks/list' })
    expect((await hers.response(0)).result).toMatchObject({ capabilities: { tasks: { list: {} } } })
    expect((await hers.response(1)).result).toEqual({ tasks: [] })
    expect((await anyone.response(0)).result).not.toHaveProperty('capabilities.tasks.list')
    expect((await anyone.response(1)).error).toMatchObject({ code: -32601 })
    for (const each of [hers, anyone]) await each.close()
  })
})
