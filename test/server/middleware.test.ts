// Middleware: once for each request, on every host, revision and carrier; what it sees, and what it may do.
import { AsyncLocalStorage } from 'node:async_hooks'
import { Client as OfficialClient } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import { ElicitRequestSchema } from '@modelcontextprotocol/sdk/types.js'
import type { ErrorContext, Middleware, MiddlewareCall, Rally, RallyOptions } from 'mcp-rally'
import { elicit, inputRequired, MemoryOnceStore, ProtocolError, rally, send, ToolError } from 'mcp-rally'
import { connect } from 'mcp-rally/client'
import { serve } from 'mcp-rally/node'
import { describe, expect, onTestFinished, test } from 'vitest'
import { z } from 'zod'
import { callThrough, openCarrying } from '../legacy/carried.ts'
import { Caller as TaskCaller } from '../tasks/caller.ts'
import { Office } from '../tasks/office.ts'
import { accept, askedIn, call, errorOf, request, resultOf, textOf } from '../wire/messages.ts'
import { hosts } from './wires.ts'

const KEYS = ['a secret of the tests of middleware, long enough']
const N = z.object({ n: z.number() })

type Seen = Pick<MiddlewareCall, 'method' | 'target' | 'round' | 'carrier' | 'flow'> & { outcome: string }

/** Notes what a middleware sees of each request. */
function noting(seen: Seen[]): Middleware {
  return async (each, next) => {
    const { method, target, round, carrier, flow } = each
    const result = await next()
    seen.push({ method, target, round, carrier, flow, outcome: result.outcome })
    return result
  }
}

function newApp(options: Partial<RallyOptions> = {}): Rally {
  const sealing = options.codec === undefined && { keys: KEYS }
  const app = rally({ name: 'm', version: '1', ...sealing, logger: { warn() {}, error() {} }, ...options })
  return addTo(app)
}

function addTo(app: Rally): Rally {
  return app
    .tool('plain', { input: z.object({ a: z.number().optional() }) }, ({ a }) => `plain ${a ?? ''}`)
    .tool('fails', {}, () => {
      throw new ToolError('It failed.')
    })
    .tool('ask', {}, async (_args, io) => {
      const { n } = await io.ask('n', 'A number?', N)
      const { n: m } = await io.ask('m', 'Another?', N)
      return `${n} and ${m}`
    })
    .prompt('p', { arguments: z.object({ x: z.string().optional() }), complete: { x: ['one'] } }, () => 'a prompt')
    .resource('a://b', { name: 'b' }, () => 'a resource')
}

describe.each(hosts)('on $name', ({ open }) => {
  test('runs once for each request and round', async () => {
    const seen: Seen[] = []
    const wire = await open(newApp().use(noting(seen)))
    const ask = async (message: ReturnType<typeof call>): Promise<object | undefined> =>
      (await wire.open(message).answer()).response
    await ask(call('plain'))
    await ask(call('fails'))
    const first = askedIn(await ask(call('ask')))
    const second = askedIn(
      await ask(call('ask', {}, { requestState: first.state, inputResponses: { n: accept({ n: 1 }) } })),
    )
    const third = await ask(call('ask', {}, { requestState: second.state, inputResponses: { m: accept({ n: 2 }) } }))
    expect(textOf(third)).toBe('1 and 2')
    await ask(request('tools/list'))
    await ask(request('server/discover'))
    await ask(request('resources/read', { uri: 'a://b' }))
    await ask(request('prompts/get', { name: 'p' }))
    await wire.close()
    const flow = expect.stringMatching(/^[\w-]{11}$/) as string
    const round = { flow, carrier: 'client', target: 'ask', method: 'tools/call' }
    const none = { flow: undefined, carrier: undefined, target: undefined, round: 0, outcome: 'complete' }
    expect(seen).toEqual([
      { ...round, target: 'plain', round: 0, outcome: 'complete' },
      { ...round, target: 'fails', round: 0, outcome: 'error' },
      { ...round, round: 0, outcome: 'input_required' },
      { ...round, round: 1, outcome: 'input_required' },
      { ...round, round: 2, outcome: 'complete' },
      { ...none, method: 'tools/list' },
      { ...none, method: 'server/discover' },
      { ...round, method: 'resources/read', target: 'a://b', round: 0, outcome: 'complete' },
      { ...round, method: 'prompts/get', target: 'p', round: 0, outcome: 'complete' },
    ])
    expect(new Set(seen.slice(2, 5).map((each) => each.flow)).size).toBe(1)
  })
})

describe.each([
  { revision: '2025-11-25', rounds: 3 },
  { revision: '2025-03-26', rounds: 0 },
  { revision: '2026-06-XX', rounds: 3 },
  { revision: '2026-02-03-draft', rounds: 3 },
])('in sessions of $revision', ({ revision, rounds }) => {
  test('runs once for each request and round', async () => {
    const seen: Seen[] = []
    const app = newApp({ revisions: ['2026-06-XX', '2026-02-03-draft'] }).use(noting(seen))
    const { url, close } = await serve(app, { port: 0, handleSignals: false })
    const client = await connect(url, { revision, onElicit: () => accept({ n: 1 }) })
    seen.length = 0
    await client.callTool('plain', {})
    await client.callTool('fails', {})
    if (rounds > 0) await client.callTool('ask', {})
    await client.listTools()
    await client.getPrompt('p', {})
    await client.complete({ type: 'ref/prompt', name: 'p' }, { name: 'x', value: '' })
    await client.close()
    await close()
    const counted = seen.filter(({ target }) => target === 'ask')
    expect(counted.map(({ round }) => round)).toEqual(Array.from({ length: rounds }, (_, index) => index))
    expect(new Set(seen.flatMap(({ carrier: one }) => one ?? []))).toEqual(new Set(['client']))
    const others = seen.filter(({ target }) => target !== 'ask').map(({ method, outcome }) => `${method} ${outcome}`)
    expect(others).toEqual([
      'tools/call complete',
      'tools/call error',
      'tools/list complete',
      'prompts/get complete',
      'completion/complete complete',
    ])
  })
})

test('runs once for a call that asks on a live connection', async () => {
  const seen: Seen[] = []
  const { url, close } = await serve(newApp().use(noting(seen)), { port: 0, handleSignals: false })
  const client = new OfficialClient({ name: 'v1', version: '1' }, { capabilities: { elicitation: {} } })
  client.setRequestHandler(ElicitRequestSchema, () => ({ action: 'accept', content: { n: 1 } }))
  await client.connect(new StreamableHTTPClientTransport(new URL(url)))
  expect(await client.callTool({ name: 'ask', arguments: {} })).toMatchObject({ content: [{ text: '1 and 1' }] })
  await client.ping()
  await client.close()
  await close()
  const flow = expect.any(String) as string
  expect(seen).toEqual([
    { method: 'tools/call', target: 'ask', round: 0, carrier: 'connection', flow, outcome: 'complete' },
    { method: 'ping', target: undefined, round: 0, carrier: undefined, flow: undefined, outcome: 'complete' },
  ])
})

test('runs once for each answer of a client that carries its older calls', async () => {
  const seen: Seen[] = []
  const app = newApp().use(noting(seen))
  const session = await openCarrying((init) => app.fetch(new Request('http://localhost/mcp', init)))
  const segments = await callThrough(session, 'ask', () => accept({ n: 4 }))
  expect(segments.at(-1)?.last).toMatchObject({ result: { content: [{ text: '4 and 4' }] } })
  const rounds = seen.filter(({ target }) => target === 'ask')
  expect(rounds.map(({ round, carrier }) => `${round} ${carrier}`)).toEqual(['0 client', '1 client', '2 client'])
  expect(new Set(rounds.map(({ flow }) => flow)).size).toBe(1)
})

test('runs for the request that makes a task and for those about it, and never for its passes', async () => {
  const seen: Seen[] = []
  const office = new Office()
  const { app } = office.instance((each) =>
    each
      .tool('long', { task: 'always' }, async (_args, io) => {
        await io.step('one', () => 1)
        return `${(await io.ask('n', 'A number?', N)).n}`
      })
      .use(noting(seen)),
  )
  const alice = new TaskCaller(office, app, 'alice')
  const id = await alice.begin('long')
  await alice.asked(id, 'n')
  await alice.update(id, { n: accept({ n: 1 }) })
  expect(await alice.said(id)).toBe('1')
  const calls = seen.filter(({ method }) => method === 'tools/call')
  expect(calls).toEqual([expect.objectContaining({ target: 'long', carrier: 'store', round: 0, outcome: 'task' })])
  expect(new Set(seen.slice(1).map(({ method }) => method))).toEqual(new Set(['tasks/get', 'tasks/update']))
})

test('does not run for a repeat that is answered from `once`, and runs for the first use', async () => {
  const seen: Seen[] = []
  const app = newApp({ once: new MemoryOnceStore() }).use(noting(seen))
  const caller = { caller: { principal: 'ada' } }
  const key = { 'com.mcp-rally/idempotency-key': '0123456789abcdef0123456789abcdef' }
  for (const _ of [1, 2]) expect(textOf(await send(app, call('plain', {}, {}, key), caller))).toBe('plain ')
  const { state } = askedIn(await send(app, call('ask'), caller))
  const round = { requestState: state, inputResponses: { n: accept({ n: 1 }) } }
  for (const _ of [1, 2]) askedIn(await send(app, call('ask', {}, round), caller))
  expect(seen.map(({ target, round: number }) => `${target} ${number}`)).toEqual(['plain 0', 'ask 0', 'ask 1'])
})

test('does not run for a request that is refused before: an unknown tool, a state that does not open', async () => {
  const seen: Seen[] = []
  const app = newApp().use(noting(seen))
  errorOf(await send(app, call('nothing')))
  errorOf(await send(app, call('ask', {}, { requestState: 'forged' })))
  errorOf(await send(app, request('no/such')))
  expect(seen).toEqual([])
})

test('sees the caller, the client, _meta, and a frozen copy of the arguments', async () => {
  const seen: unknown[] = []
  const app = newApp().use(async ({ caller, client, meta, args }, next) => {
    seen.push(caller?.principal, client.name, meta['com.example/x'], args)
    expect(() => Object.assign(args, { a: 2 })).toThrow(TypeError)
    expect(() => Object.assign(args['deep'] as object, { a: 2 })).toThrow(TypeError)
    return next()
  })
  app.tool('deep', { input: z.object({ deep: z.object({ a: z.number() }) }) }, ({ deep }) => `${deep.a}`)
  const message = call('deep', { deep: { a: 1 } }, {}, { 'com.example/x': 7 })
  expect(textOf(await send(app, message, { caller: { principal: 'ada' } }))).toBe('1')
  expect(seen).toEqual(['ada', 'wire-tests', 7, { deep: { a: 1 } }])
})

test('the first is the outermost, and what it puts into an AsyncLocalStorage is there in the handler', async () => {
  const storage = new AsyncLocalStorage<string>()
  const order: string[] = []
  const app = newApp()
    .tool('where', {}, async (_args, io) => io.step('s', () => storage.getStore() ?? 'nowhere'))
    .use(async (_call, next) => {
      order.push('a')
      await storage.run('inside', next)
      order.push('d')
    })
    .use((_call, next) => {
      order.push('b')
      return next().finally(() => order.push('c'))
    })
  expect(textOf(await send(app, call('where')))).toBe('inside')
  expect(order).toEqual(['a', 'b', 'c', 'd'])
})

describe('an answer of its own', () => {
  test('ends the call, or the flow without a state, and no handler runs', async () => {
    let isOpen = true
    const app = newApp().use((_call, next) => (isOpen ? next() : 'Closed.'))
    const { state } = askedIn(await send(app, call('ask')))
    isOpen = false
    const result = await send(app, call('ask', {}, { requestState: state, inputResponses: { n: accept({ n: 1 }) } }))
    expect(textOf(result)).toBe('Closed.')
    expect(resultOf(result)).not.toHaveProperty('requestState')
    expect(resultOf(await send(app, request('prompts/get', { name: 'p' })))).toMatchObject({
      messages: [{ content: { text: 'Closed.' } }],
    })
  })

  test('is seen by the middleware around it', async () => {
    const seen: Seen[] = []
    const app = newApp()
      .use(noting(seen))
      .use(() => ({ content: [{ type: 'text', text: 'no' }], isError: true }))
    expect(resultOf(await send(app, call('plain')))).toMatchObject({ isError: true })
    expect(seen).toMatchObject([{ outcome: 'error' }])
  })

  test('to another method is its result, in the words of the revision', async () => {
    const app = newApp().use(({ method }, next) => (method === 'tools/list' ? { tools: [] } : next()))
    expect(resultOf(await send(app, request('tools/list')))).toMatchObject({ resultType: 'complete', tools: [] })
    const { url, close } = await serve(app, { port: 0, handleSignals: false })
    const older = await connect(url, { revision: '2025-11-25' })
    expect(await older.listTools()).toEqual([])
    await older.close()
    await close()
  })
})

const INPUT = { inputRequests: { n: elicit('A number?', N) }, state: 1 }

test.each<[string, Middleware]>([
  ['returns inputRequired', () => inputRequired(INPUT)],
  [
    'throws inputRequired',
    () => {
      throw inputRequired(INPUT)
    },
  ],
  [
    'returns it as the protocol writes it',
    () => ({ resultType: 'input_required', inputRequests: {}, requestState: 'x' }),
  ],
  ['returns the value of next()', async (_call, next) => ({ ...(await next()).value })],
])('a middleware that %s is refused: only a handler may ask', async (_what, middleware) => {
  const answer = await send(newApp({ showErrors: false }).use(middleware), call('ask'))
  expect(resultOf(answer)).toMatchObject({
    isError: true,
    content: [{ text: expect.stringMatching(/inputRequired\(\), which only a handler may/) as string }],
  })
})

test.each(['2026-07-28', '2025-11-25'])('what it changes in a result of %s changes nothing', async (revision) => {
  const app = newApp().use(async (_call, next) => {
    const result = await next()
    for (const tool of (result.value['tools'] ?? []) as { name: string }[]) tool.name = 'changed'
    return result
  })
  const { url, close } = await serve(app, { port: 0, handleSignals: false })
  const client = await connect(url, { revision })
  const names = (await client.listTools()).map(({ name }) => name)
  await client.close()
  await close()
  expect(names).toEqual(['plain', 'fails', 'ask'])
})

describe('an error of its own follows the rules of handlers', () => {
  const failures: { error: unknown; context: ErrorContext }[] = []
  const failing = (error: unknown, options: Partial<RallyOptions> = {}): Rally =>
    newApp({ onError: (thrown, context) => failures.push({ error: thrown, context }), ...options }).use(() => {
      throw error
    })
  const oops = new Error('password=hunter2')

  test('a ToolError is a result for the model, and reaches nobody else', async () => {
    failures.length = 0
    expect(resultOf(await send(failing(new ToolError('Not today.')), call('plain')))).toMatchObject({
      isError: true,
      content: [{ text: 'Not today.' }],
    })
    expect(errorOf(await send(failing(new ToolError('Not today.')), request('tools/list')))).toMatchObject({
      code: -32603,
      message: 'Not today.',
    })
    expect(failures).toEqual([])
  })

  test('a ProtocolError is a JSON-RPC error', async () => {
    const app = failing(new ProtocolError(-32000, 'Go away.', { why: 1 }))
    for (const message of [call('plain'), request('tools/list'), request('prompts/get', { name: 'p' })]) {
      expect(errorOf(await send(app, message))).toEqual({ code: -32000, message: 'Go away.', data: { why: 1 } })
    }
  })

  test('of anything else the caller reads a reference, and onError gets the rest once', async () => {
    failures.length = 0
    const app = failing(oops, { showErrors: false })
    const seen: unknown[] = []
    app.use((_call, next) => next())
    const caller = { caller: { principal: 'ada' } }
    const { content } = resultOf(await send(app, call('plain'), caller)) as { content: { text: string }[] }
    expect(content[0]?.text).toMatch(/^The tool failed\. Reference: [\w-]{11}$/)
    expect(errorOf(await send(app, request('prompts/get', { name: 'p' }), caller)).message).toMatch(/Reference/)
    expect(errorOf(await send(app, request('tools/list'), caller)).message).toMatch(
      /^The request failed\. Reference: [\w-]{11}$/,
    )
    for (const { error, context } of failures)
      seen.push([error, context.method, context.tool, context.caller?.principal])
    expect(seen).toEqual([
      [oops, 'tools/call', 'plain', 'ada'],
      [oops, 'prompts/get', undefined, 'ada'],
      [oops, 'tools/list', undefined, 'ada'],
    ])
    expect(content[0]?.text).toContain(failures[0]?.context.reference)
  })

  test('in sessions of older revisions too', async () => {
    failures.length = 0
    const { url, close } = await serve(failing(oops, { showErrors: false }), { port: 0, handleSignals: false })
    const older = await connect(url, { revision: '2025-11-25' })
    onTestFinished(async () => {
      await older.close()
      await close()
    })
    expect(await older.callTool('plain', {})).toMatchObject({
      isError: true,
      content: [{ text: expect.stringContaining('Reference') as string }],
    })
    await expect(older.listTools()).rejects.toMatchObject({ message: expect.not.stringContaining('hunter2') as string })
    expect(failures.length).toBe(2)
  })

  test.each<[string, Middleware, string]>([
    ['calls next() twice', async (_call, next) => (await next(), next()), 'called next() twice'],
    ['does nothing', () => undefined, 'neither called next() nor returned an answer'],
    [
      'answers a list with a text',
      ({ method }, next) => (method === 'tools/list' ? 'no' : next()),
      'something else than the result object',
    ],
  ])('one that %s is told so', async (_name, middleware, why) => {
    const app = newApp().use(middleware)
    const message = why.includes('result object') ? request('tools/list') : call('plain')
    const response = JSON.stringify(await send(app, message))
    expect(response).toContain(why)
  })
})

test('an error from inside is answered as it would be without middleware, and reported once', async () => {
  const failures: unknown[] = []
  const lost = new Error('The KMS is away.')
  const codec = {
    seal: () => Promise.reject(lost),
    open: () => Promise.reject(lost),
  }
  const app = (): Rally => newApp({ codec, onError: (error) => failures.push(error) })
  const plain = await send(app(), call('ask'))
  const wrapped = await send(
    app().use((_call, next) => next()),
    call('ask'),
  )
  expect(errorOf(wrapped)).toEqual(errorOf(plain))
  expect(failures).toEqual([lost, lost])
})

test('app.use takes a function only', () => {
  // @ts-expect-error: an object is no middleware.
  expect(() => newApp().use({})).toThrow(/app\.use\(\) takes a function/)
})

test('without middleware, a handler that never waits has run when dispatch returns', async () => {
  let ran = false
  const app = newApp().tool('now', {}, () => {
    ran = true
    return 'done'
  })
  const reply = app.dispatch(call('now'))
  expect(ran).toBe(true)
  await reply
})
