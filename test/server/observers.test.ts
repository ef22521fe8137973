// What observers are told: on every carrier, over instances, and nothing on a replay.
import { AsyncLocalStorage } from 'node:async_hooks'
import { once } from 'node:events'
import { Client as OfficialClient } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import { ElicitRequestSchema } from '@modelcontextprotocol/sdk/types.js'
import type { ObservedFlow, Observer, Rally, RallyOptions } from 'mcp-rally'
import { inputRequired, elicit, rally, send, ToolError } from 'mcp-rally'
import { connect } from 'mcp-rally/client'
import { serve } from 'mcp-rally/node'
import { expect, test } from 'vitest'
import { z } from 'zod'
import { accepted, callThrough, openCarrying } from '../legacy/carried.ts'
import { Caller as TaskCaller } from '../tasks/caller.ts'
import { LEASE_MS, Office } from '../tasks/office.ts'
import { gate } from '../../src/testing/manual-scheduler.ts'
import { accept, askedIn, call, errorOf, request, resultOf, textOf } from '../wire/messages.ts'

const KEYS = ['a secret of the tests of observers, long enough']
const N = z.object({ n: z.number() })

function where({ target, round, carrier, trace }: ObservedFlow): string {
  return `${target} ${round} ${carrier}${trace === undefined ? '' : ` from ${trace}`}`
}

/** Writes a line when something begins and when it ends. `name` is what it seals with flows. */
function writing(lines: string[], name = ''): Observer {
  const note = (what: string): ((end: { outcome: string }) => void) => {
    lines.push(`${what} {`)
    return ({ outcome }) => void lines.push(`} ${what}: ${outcome}`)
  }
  return {
    round: ({ method, target }) => note(`round ${method} ${target ?? '-'}`),
    flow: (flow) => note(`flow ${where(flow)}`),
    step: ({ key, attempt }) => note(`step ${key} ${attempt}`),
    ask: ({ key, kind }) => note(`ask ${key} ${kind}`),
    wait: ({ for: what, keys }) => note(`wait ${what} ${keys.join(' ')}`),
    task: ({ tool, lost, trace }) => note(`task ${tool}${lost ? ' lost' : ''} from ${trace}`),
    trace: () => name,
  }
}

function newApp(observer: Observer, options: Partial<RallyOptions> = {}): Rally {
  const logger = { warn() {}, error() {} }
  return addTo(rally({ name: 'o', version: '1', keys: KEYS, logger, observers: [observer], ...options }))
}

function addTo(app: Rally): Rally {
  return app.tool('order', {}, async (_args, io) => {
    const price = await io.step('price', () => 7)
    const { n } = await io.ask('n', 'How many?', N)
    return io.step('book', () => `${n * price}`)
  })
}

test('a flow over two instances: each pass, each step once, each question, and the trace of its first round', async () => {
  const lines: string[] = []
  const first = newApp(writing(lines, 'one'))
  const second = newApp(writing(lines, 'two'))
  const { state } = askedIn(await send(first, call('order')))
  lines.push('---')
  const round = { requestState: state, inputResponses: { n: accept({ n: 3 }) } }
  expect(textOf(await send(second, call('order', {}, round)))).toBe('21')
  expect(lines).toEqual([
    'round tools/call order {',
    'flow order 0 client {',
    'step price 1 {',
    '} step price 1: completed',
    'ask n elicitation.form {',
    '} ask n elicitation.form: open',
    'wait answers n {',
    '} wait answers n: released',
    '} flow order 0 client: asks',
    '} round tools/call order: input_required',
    '---',
    'round tools/call order {',
    'flow order 1 client from one {',
    'ask n elicitation.form {',
    '} ask n elicitation.form: accept',
    'step book 1 {',
    '} step book 1: completed',
    '} flow order 1 client from one: done',
    '} round tools/call order: complete',
  ])
})

test('every round over HTTP says so, also one that an answer of a 2025-era client resumes', async () => {
  const rounds: unknown[] = []
  const app = newApp({ round: ({ method, transport }) => void rounds.push([method, transport]) })
  const { url, close } = await serve(app, { port: 0, handleSignals: false })
  const session = await openCarrying((init) => fetch(url, init))
  await callThrough(session, 'order', () => accepted({ n: 3 }))
  expect(rounds).toEqual([
    ['tools/call', 'tcp'],
    ['tools/call', 'tcp'],
  ])
  await close()
})

test('a call on a live connection waits in memory', async () => {
  const lines: string[] = []
  const { url, close } = await serve(newApp(writing(lines)), { port: 0, handleSignals: false })
  const client = new OfficialClient({ name: 'v1', version: '1' }, { capabilities: { elicitation: {} } })
  client.setRequestHandler(ElicitRequestSchema, () => {
    lines.push('the user answers')
    return { action: 'accept', content: { n: 1 } }
  })
  await client.connect(new StreamableHTTPClientTransport(new URL(url)))
  lines.length = 0
  await client.callTool({ name: 'order', arguments: {} })
  await client.close()
  await close()
  expect(lines).toEqual([
    'round tools/call order {',
    'flow order 0 connection {',
    'step price 1 {',
    '} step price 1: completed',
    'ask n elicitation.form {',
    '} ask n elicitation.form: open',
    'wait answers n {',
    '} flow order 0 connection: asks',
    'the user answers',
    '} wait answers n: over',
    'flow order 1 connection from  {',
    'ask n elicitation.form {',
    '} ask n elicitation.form: accept',
    'step book 1 {',
    '} step book 1: completed',
    '} flow order 1 connection from : done',
    '} round tools/call order: complete',
  ])
})

test.each([
  { what: 'throws', run: () => Promise.reject(new Error('No.')) },
  { what: 'returns isError', run: () => ({ content: [], isError: true }) },
])('a task whose tool $what has failed for observers, although it is completed on the wire', async ({ run }) => {
  const [office, lines] = [new Office(), [] as string[]]
  const { app } = office.instance((each) => each.tool('fails', { task: 'always' }, run), {
    observers: [writing(lines)],
  })
  const caller = new TaskCaller(office, app)
  expect(await caller.ended(await caller.begin('fails'))).toMatchObject({ status: 'completed' })
  await expect.poll(() => lines).toContain('} task fails from : failed')
})

test('a task that a second worker takes over keeps the trace of the request that made it', async () => {
  const lines: string[] = []
  const office = new Office()
  let isStuck = true
  const reaching = new AbortController()
  const stuck = once(reaching.signal, 'abort')
  const tools = (app: Rally): Rally =>
    app.tool('report', { task: 'always' }, async (_args, io) => {
      await io.step('first', () => 1)
      await io.step('second', () => {
        if (!isStuck) return 2
        reaching.abort()
        return new Promise<number>(() => {})
      })
      return 'done'
    })
  const one = office.instance(tools, { observers: [writing(lines, 'one')] })
  const alice = new TaskCaller(office, one.app, 'alice')
  const id = await alice.begin('report')
  await stuck
  one.view.kill()
  isStuck = false
  lines.push('---')
  const two = office.instance(tools, { observers: [writing(lines, 'two')] })
  office.skipWaits()
  office.elapse(LEASE_MS + 1)
  const other = new TaskCaller(office, two.app, 'alice')
  expect(await other.said(id)).toBe('done')
  const [before = [], after = []] = [lines.slice(0, lines.indexOf('---')), lines.slice(lines.indexOf('---') + 1)].map(
    (part) => part.filter((line) => !line.includes('round')),
  )
  expect(lines).toContain('} round tools/call report: task')
  expect(before).toEqual([
    'task report from one {',
    expect.stringMatching(/^flow report \d store from one \{$/),
    'step first 1 {',
    '} step first 1: completed',
    'step second 1 {',
  ])
  expect(after).toEqual([
    'task report lost from one {',
    expect.stringMatching(/^flow report \d store from one \{$/),
    'step second 1 {',
    '} step second 1: completed',
    expect.stringMatching(/^\} flow report \d store from one: done$/),
    '} task report lost from one: completed',
  ])
})

test('every pass of a task has its number, also after a worker was lost in the first one', async () => {
  const rounds: number[] = []
  const office = new Office()
  let isStuck = true
  const reaching = new AbortController()
  const stuck = once(reaching.signal, 'abort')
  const tools = (app: Rally): Rally =>
    app.tool('report', { task: 'always' }, async (_args, io) => {
      await io.step('first', () => 1)
      await io.step('second', () => {
        if (!isStuck) return 2
        reaching.abort()
        return new Promise<number>(() => {})
      })
      await io.ask('n', 'How many?', N)
      return 'done'
    })
  const observers: Observer[] = [{ flow: ({ round }) => void rounds.push(round) }]
  const one = office.instance(tools, { observers })
  const id = await new TaskCaller(office, one.app, 'alice').begin('report')
  await stuck
  one.view.kill()
  isStuck = false
  const two = office.instance(tools, { observers })
  office.skipWaits()
  office.elapse(LEASE_MS + 1)
  const alice = new TaskCaller(office, two.app, 'alice')
  await alice.asked(id, 'n')
  await alice.update(id, { n: accept({ n: 1 }) })
  expect(await alice.said(id)).toBe('done')
  const [first = -1] = rounds
  // The pass of the request that made the task may have the first number.
  expect(rounds).toEqual(rounds.map((_round, index) => first + index))
  expect(rounds.length).toBeGreaterThan(2)
})

test('each attempt of a step is one, and the time between them is a wait', async () => {
  const lines: string[] = []
  let tries = 0
  const app = newApp(writing(lines)).tool('flaky', {}, (_args, io) =>
    io.step(
      's',
      () => {
        tries += 1
        if (tries === 1) throw new Error('not yet')
        return 'done'
      },
      { retries: 1, backoff: { firstMs: 20 } },
    ),
  )
  expect(textOf(await send(app, call('flaky')))).toBe('done')
  expect(lines.slice(2, -2)).toEqual([
    'step s 1 {',
    '} step s 1: failed',
    'wait time s {',
    '} wait time s: over',
    'step s 2 {',
    '} step s 2: completed',
  ])
})

test('an attempt that takes longer than its `timeoutMs` has failed at that moment, whether its function ever ends or not', async () => {
  const ends: unknown[] = []
  const late = gate()
  const observer: Observer = {
    step: ({ key, attempt }) => {
      return ({ outcome, error }) => void ends.push([key, attempt, outcome, error instanceof Error ? error.name : ''])
    },
  }
  const app = newApp(observer).tool('slow', {}, async (_args, io) => {
    const options = { timeoutMs: 20, retries: 1, backoff: { firstMs: 5 } }
    await io.step('late', ({ attempt }) => (attempt === 1 ? late.promise : undefined), options)
    late.open()
    await io.step('next', () => 1)
    return io.step('never', () => new Promise<string>(() => {}), { timeoutMs: 20 }).catch(() => 'handled')
  })
  expect(textOf(await send(app, call('slow')))).toBe('handled')
  expect(ends).toEqual([
    ['late', 1, 'failed', 'StepTimeout'],
    ['late', 2, 'completed', ''],
    ['next', 1, 'completed', ''],
    ['never', 1, 'failed', 'StepTimeout'],
  ])
})

test('the wait for a deadline is one, and ends with the answer, though the pass goes on and an answer before it was wrong', async () => {
  const lines: string[] = []
  const busy = gate()
  const office = new Office()
  const { app } = office.instance(
    (each) =>
      each.tool('both', { task: 'always' }, async (_args, io) => {
        const ask = io.ask('q', 'How many?', N, { withinMs: 3_600_000 })
        const [{ n }] = await Promise.all([ask, io.step('work', () => busy.promise)])
        return String(n)
      }),
    { observers: [writing(lines)] },
  )
  const caller = new TaskCaller(office, app)
  const id = await caller.begin('both')
  await caller.asked(id, 'q')
  await caller.update(id, { q: accept({ n: 'many' }) })
  await caller.asked(id, 'q~2')
  await caller.update(id, { 'q~2': accept({ n: 3 }) })
  const times = (): string[] => lines.filter((line) => line.includes('time'))
  await expect.poll(times).toEqual(['wait time q {', '} wait time q: over'])
  busy.open()
  expect(await caller.said(id)).toBe('3')
  expect(times()).toHaveLength(2)
})

test('a sleep that nobody waits for, because the scope around it has settled, is over', async () => {
  const lines: string[] = []
  const app = newApp(writing(lines)).tool('race', {}, async (_args, io) => {
    await io.scope('first', (inner) =>
      Promise.race([inner.sleep('night', 3_600).then(() => 0), inner.step('fast', () => 1)]),
    )
    return io.step('after', () => 'done')
  })
  expect(textOf(await send(app, call('race')))).toBe('done')
  const over = lines.indexOf('} wait time first>night: over')
  expect(over).toBeGreaterThan(lines.indexOf('wait time first>night {'))
  expect(over).toBeLessThan(lines.indexOf('step after 1 {'))
})

test('rounds that are no flow, errors, and failures of tools', async () => {
  const ends: unknown[] = []
  const app = newApp({
    round:
      ({ method }) =>
      (end) =>
        void ends.push([method, end]),
  })
  app.tool('fails', {}, () => {
    throw new ToolError('No.')
  })
  await send(app, request('tools/list'))
  await send(app, call('fails'))
  errorOf(await send(app, call('nothing')))
  expect(ends).toEqual([
    ['tools/list', { outcome: 'complete' }],
    ['tools/call', { outcome: 'tool_error' }],
    ['tools/call', { outcome: 'error', error: { code: -32602, message: 'Unknown tool: nothing' } }],
  ])
})

test('a flow by hand keeps its trace too, and tells what it asks and what is answered', async () => {
  const traces: unknown[] = []
  const asks: unknown[] = []
  const app = newApp({
    trace: () => 'first',
    flow: ({ trace }) => void traces.push(trace),
    ask:
      ({ key, kind }) =>
      ({ outcome }) =>
        void asks.push([key, kind, outcome]),
  })
  app.tool('hand', {}, (_args, io) =>
    io.responses.accepted('n', N) === undefined ? inputRequired({ inputRequests: { n: elicit('N?', N) } }) : 'done',
  )
  const { state } = askedIn(await send(app, call('hand')))
  const round = { requestState: state, inputResponses: { n: accept({ n: 3 }) } }
  expect(textOf(await send(app, call('hand', {}, round)))).toBe('done')
  expect(traces).toEqual([undefined, 'first'])
  expect(asks).toEqual([
    ['n', 'elicitation.form', 'open'],
    ['n', '', 'accept'],
  ])
})

test('a flow by hand tells of an answer that came with the call, once', async () => {
  const asks: unknown[] = []
  const app = newApp({
    ask:
      ({ key }) =>
      ({ outcome }) =>
        void asks.push([key, outcome]),
  })
  app.tool('hand', {}, (_args, io) =>
    io.responses.action('n') === 'accept' && io.responses.accepted('n', N) !== undefined ? 'done' : 'not done',
  )
  const round = { inputResponses: { n: accept({ n: 3 }), other: accept({}) } }
  expect(textOf(await send(app, call('hand', {}, round)))).toBe('done')
  expect(asks).toEqual([['n', 'accept']])
})

test('a flow by hand tells of an answer that an instance of another version held', async () => {
  const asks: unknown[] = []
  const versioned = (version: string): Rally => {
    const app = newApp({
      ask:
        ({ key }) =>
        ({ outcome }) =>
          void asks.push([key, outcome]),
    })
    return app.tool('hand', { version }, async (_args, io) => {
      await io.step('once', () => 1)
      return io.responses.accepted('n', N) === undefined
        ? inputRequired({ inputRequests: { n: elicit('N?', N) } })
        : 'done'
    })
  }
  const [old, next] = [versioned('1'), versioned('2')]
  const { state } = askedIn(await send(old, call('hand')))
  const round = { requestState: state, inputResponses: { n: accept({ n: 3 }) } }
  const { requestState } = resultOf(await send(next, call('hand', {}, round))) as { requestState: string }
  expect(textOf(await send(old, call('hand', {}, { requestState })))).toBe('done')
  expect(asks).toEqual([
    ['n', 'open'],
    ['n', 'accept'],
  ])
})

test('`run` makes an async context active inside: the handler in the pass, the function in the step', async () => {
  const storage = new AsyncLocalStorage<string>()
  const within = (name: string): { run<T>(work: () => T): T } => ({ run: (work) => storage.run(name, work) })
  const app = newApp({ flow: () => within('flow'), step: ({ key }) => within(key) })
  app.tool('where', {}, async (_args, io) => {
    const before = storage.getStore()
    const inside = await io.step('a', async () => {
      await Promise.resolve()
      return storage.getStore() ?? ''
    })
    return `${before} ${inside} ${storage.getStore()}`
  })
  expect(textOf(await send(app, call('where')))).toBe('flow a flow')
})

test.each([
  [
    'throws',
    (): never => {
      throw new Error('oops')
    },
  ],
  ['rejects', () => Promise.reject(new Error('oops')) as never],
])('an observer that %s is logged, and changes nothing', async (how, broken) => {
  const logged: string[] = []
  const log = (message: string): void => void logged.push(message)
  const observers = [
    { round: broken, flow: () => broken, step: () => ({ end: broken }), ask: broken, wait: broken, trace: broken },
    writing([]),
  ]
  const app = newApp({}, { observers, logger: { warn: log, error: log } })
  const { state } = askedIn(await send(app, call('order')))
  const round = { requestState: state, inputResponses: { n: accept({ n: 3 }) } }
  expect(textOf(await send(app, call('order', {}, round)))).toBe('21')
  const failures = logged.filter((line) => line === 'An observer failed.')
  expect(failures.length).toBeGreaterThan(4)
  expect(logged.filter((line) => line !== 'An observer failed.')).toEqual(
    how === 'rejects' ? ['round', 'trace', 'ask', 'wait'].map((name) => isAsync(0, name)) : [],
  )
})

function isAsync(index: number, name: string): string {
  return `observers[${index}].${name}: must not be async. It returned a promise, which is ignored. Return the result itself.`
}

function miscalls(index: number, name: string): string {
  return `observers[${index}].${name}: run(work) must call work() exactly once, before it returns. Rally ran the work once anyway.`
}

type Run = (work: () => unknown) => unknown
const fails = (_after?: unknown): never => {
  throw new Error('oops')
}
const EVERYWHERE = ['round', 'flow', 'step']
const FAILED = Array.from({ length: 4 }, () => 'An observer failed.')

test.each<{ how: string; run: Run; mistakes?: (index: number, name: string) => string; failed?: string[] }>([
  { how: 'returns nothing', run: (work) => void work() },
  { how: 'is async', run: async (work) => void (await work()) },
  { how: 'returns something else', run: (work) => [work()] },
  { how: 'never calls the work', run: () => {}, mistakes: miscalls },
  { how: 'calls the work late', run: (work) => Promise.resolve().then(work), mistakes: miscalls },
  { how: 'calls the work twice', run: (work) => [work(), work()], mistakes: miscalls },
  { how: 'throws before the work', run: fails, mistakes: miscalls, failed: FAILED },
  { how: 'rejects before the work', run: async () => fails(), mistakes: miscalls, failed: FAILED },
  { how: 'throws after the work', run: (work) => fails(work()), failed: FAILED },
  { how: 'rejects after the work', run: async (work) => fails(await work()), failed: FAILED },
  { how: 'is not a function', run: 1 as never, mistakes: miscalls, failed: FAILED },
])('work runs once and its result counts if `run` $how, inside of that of others', async (broken) => {
  const { run, mistakes, failed = [] } = broken
  const logged: string[] = []
  const log = (message: string): void => void logged.push(message)
  const storage = new AsyncLocalStorage<string>()
  const lines: string[] = []
  const first: Observer = { round: () => ({ run }), flow: () => ({ run }), step: () => ({ run }) }
  const second: Observer = { step: () => ({ run: (work) => storage.run('inside', work) }) }
  const observers = [first, second, writing(lines)]
  const app = rally({ name: 'o', version: '1', keys: KEYS, logger: { warn: log, error: log }, observers })
  let runs = 0
  const work = (): string => `${(runs += 1)} ${storage.getStore()}`
  app.tool('t', {}, async (_args, io) => `${await io.step('a', work)}, ${await io.step('b', async () => work())}`)
  expect(textOf(await send(app, call('t')))).toBe('1 inside, 2 inside')
  await new Promise((resolve) => void setImmediate(resolve))
  expect(runs).toBe(2)
  expect(lines.filter((line) => line.startsWith('}'))).toEqual([
    '} step a 1: completed',
    '} step b 1: completed',
    '} flow t 0 client: done',
    '} round tools/call t: complete',
  ])
  expect(logged.toSorted()).toEqual(
    [...failed, ...(mistakes ? EVERYWHERE.map((name) => mistakes(0, name)) : [])].toSorted(),
  )
})

test('an error of the work reaches the handler, and is no failure of an observer that passes it on or hides it', async () => {
  const logged: string[] = []
  const log = (message: string): void => void logged.push(message)
  const runs: Run[] = [
    (work) => work(),
    async (work) => await work(),
    (work) => {
      try {
        return work()
      } catch {
        return 'hidden'
      }
    },
    async (work) => {
      await Promise.resolve(work()).catch(() => 'hidden')
    },
  ]
  const observers = runs.map((run): Observer => ({ step: () => ({ run }) }))
  const app = rally({ name: 'o', version: '1', keys: KEYS, logger: { warn: log, error: log }, observers })
  app.tool('t', {}, async (_args, io) => {
    const steps = [io.step('a', () => fails()), io.step('b', async () => fails())]
    return (await Promise.allSettled(steps)).map((step) => step.status).join(' ')
  })
  expect(textOf(await send(app, call('t')))).toBe('rejected rejected')
  expect(logged.filter((line) => line.includes('bserver'))).toEqual([])
})

test('a step that returns a thenable begins it once, also if an observer waits for it', async () => {
  let begun = 0
  // As a query builder does: each call of `then` sends the query.
  // oxlint-disable-next-line unicorn/no-thenable
  const query = { then: (resolve: (value: string) => void) => resolve(`query ${(begun += 1)}`) }
  const app = newApp({ step: () => ({ run: async (work) => void (await work()) }) })
  app.tool('t', {}, (_args, io) => io.step('a', () => query as unknown as Promise<string>))
  expect(textOf(await send(app, call('t')))).toBe('query 1')
  expect(begun).toBe(1)
})

test('an observer that is async is logged once, and one that returns null is not asked further', async () => {
  const logged: string[] = []
  const log = (message: string): void => void logged.push(message)
  const late = (async () => () => {}) as never
  const observers: Observer[] = [
    { round: () => null, flow: () => null, step: () => null, ask: () => null, wait: () => null },
    { round: late, flow: late, step: late, ask: late, wait: late, trace: late },
  ]
  const app = newApp({}, { observers, logger: { warn: log, error: log } })
  for (let i = 0; i < 2; i += 1) askedIn(await send(app, call('order')))
  const names = ['round', 'flow', 'trace', 'step', 'ask', 'wait']
  expect(logged).toEqual(names.map((name) => isAsync(1, name)))
})

test('an observer of a client changes nothing, whether it returns null or a promise', async () => {
  const logged: string[] = []
  const log = (message: string): void => void logged.push(message)
  const observers = [{ request: () => null }, { request: (async () => ({ end() {} })) as never }]
  const client = await connect(newApp({}), { observers, logger: { warn: log, error: log } })
  expect((await client.listTools()).map(({ name }) => name)).toEqual(['order'])
  expect(logged).toEqual([isAsync(1, 'request')])
  await client.close()
})

async function sizeOf(app: Rally): Promise<number> {
  return askedIn(await send(app, call('order'))).state.length
}

test('without observers a state is as long as before, and with one only as much longer as the trace', async () => {
  const plain = await sizeOf(newApp({}))
  // The journal has the milliseconds of each entry, so a busy machine makes it a few characters longer.
  expect(Math.abs((await sizeOf(newApp({ trace: () => undefined }))) - plain)).toBeLessThan(16)
  expect(Math.abs((await sizeOf(newApp({ trace: () => 't'.repeat(1_000) }))) - plain)).toBeLessThan(16)
  expect((await sizeOf(newApp({ trace: () => 't'.repeat(60) }))) - plain).toBeLessThan(120)
  expect(resultOf(await send(newApp({}), call('order')))).toHaveProperty('requestState')
})

test('`observers` must be a list of objects', () => {
  // @ts-expect-error: a function is no observer.
  expect(() => newApp({}, { observers: [() => {}] })).toThrow(/`observers` must be an array of observers/)
})
