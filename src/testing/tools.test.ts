import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { Expired, ToolError } from '../flow/errors.ts'
import type { Io } from '../flow/io.ts'
import { ProtocolError } from '../protocol/errors.ts'
import type { StepContext } from '../flow/step.ts'
import type { RallyOptions } from '../rally.ts'
import { rally } from '../rally.ts'
import { MemoryStore } from '../store/memory/store.ts'
import { accept, decline, harsh, straight } from '../testing.ts'
import { gate } from './manual-scheduler.ts'
import { ReplayMismatch } from './replay-check.ts'

const QUIET = { warn() {}, error() {} }
const DAY = 86_400_000

function newApp(hasStore = false, tasks: RallyOptions['tasks'] = {}): ReturnType<typeof rally> {
  return rally({ name: 'kit', version: '1.0.0', logger: QUIET, ...(hasStore && { store: new MemoryStore(), tasks }) })
}

/** As a service does that never responds. */
function untilAborted(signal: AbortSignal): Promise<string> {
  const aborted = gate<string>()
  signal.addEventListener('abort', () => aborted.fail(signal.reason))
  return aborted.promise
}

async function nap(io: Io, times: number): Promise<string> {
  for (let index = 0; index < times; index += 1) await io.sleep(`nap[${index}]`, 2_000)
  return 'rested'
}

function fail(): never {
  throw new RangeError('No such page')
}

describe('harsh on a registered tool', () => {
  test('fills in the defaults of its input, knows the caller, and gives what a client gets', async () => {
    const app = newApp()
    const input = z.object({ amount: z.number(), currency: z.string().default('EUR') })
    const output = z.object({ paid: z.string() })
    const asks = { sure: z.object({ ok: z.boolean() }) }
    app.tool('submit_expense', { input, output, asks }, async ({ amount, currency }, io) => {
      const { ok } = await io.ask('sure', `Pay ${amount} ${currency} as ${io.caller?.principal}?`)
      return { paid: ok ? `${amount} ${currency} by ${io.caller?.principal}` : 'nothing' }
    })
    const { result, rounds } = await harsh(app, 'submit_expense', {
      args: { amount: 12 },
      caller: { principal: 'ann' },
      answer: () => accept({ ok: true }),
    })
    expect(result?.structuredContent).toEqual({ paid: '12 EUR by ann' })
    expect(rounds).toBeGreaterThan(1)
  })

  test.each([{ task: 'always' as const }, { task: undefined }])(
    'runs a task with the limits that tasks have (task: $task)',
    async ({ task }) => {
      const app = newApp(true)
      app.tool('long', { ...(task && { task }) }, async (_args, io) => {
        await io.detach()
        for (let i = 0; i < 10; i += 1) await io.step(`page[${i}]`, () => 'x'.repeat(10_000))
        await io.sleep('night', DAY / 2)
        return 'done'
      })
      app.tool('longer', { ...(task && { task }) }, async (_args, io) => {
        await io.detach()
        await io.sleep('trial', 14 * DAY)
        return 'done'
      })
      expect((await harsh(app, 'long')).result?.content).toEqual([{ type: 'text', text: 'done' }])
      await expect(harsh(app, 'longer')).rejects.toMatchObject({ code: 'WAIT_TOO_LONG' })
    },
  )

  test('knows the limits that the app sets for its tasks', async () => {
    const app = newApp(true, { ttlMs: 20 * DAY, maxJournalBytes: 1_000 })
    app.tool('sleep', { task: 'always' }, async (_args, io) => {
      await io.sleep('trial', 14 * DAY)
      return 'done'
    })
    app.tool('fill', { task: 'always' }, async (_args, io) => {
      for (let i = 0; i < 3; i += 1) await io.step(`page[${i}]`, () => 'x'.repeat(1_000))
      return 'done'
    })
    expect((await harsh(app, 'sleep')).result?.content).toEqual([{ type: 'text', text: 'done' }])
    await expect(harsh(app, 'fill')).rejects.toMatchObject({ code: 'JOURNAL_TOO_LARGE' })
  })

  test('checks the output', async () => {
    const app = newApp()
    app.tool('wrong', { output: z.object({ n: z.number() }) }, () => ({ n: 'x' }) as unknown as { n: number })
    await expect(harsh(app, 'wrong')).rejects.toThrow(/n/)
  })

  test('rejects with arguments that do not fit, and with a name that is not there', async () => {
    const app = newApp()
    app.tool('add', { input: z.object({ n: z.number() }) }, ({ n }) => String(n))
    const { result } = await harsh(app, 'add', { args: { n: 'x' } })
    expect(result).toMatchObject({
      isError: true,
      content: [{ text: expect.stringMatching(/Invalid arguments for add/) }],
    })
    await expect(harsh(app, 'subtract')).rejects.toThrow(/has no tool "subtract"/)
  })

  test('rejects when the tool fails, except with an answer to its caller', async () => {
    const app = newApp()
    app.tool('broken', {}, async (_args, io) => {
      await io.step('load', () => 1)
      throw new TypeError('undefined is not a function')
    })
    app.tool('sold-out', {}, () => {
      throw new ToolError('Sold out.')
    })
    await expect(harsh(app, 'broken')).rejects.toThrow('undefined is not a function')
    const { result, error } = await harsh(app, 'sold-out')
    expect(result).toMatchObject({ isError: true, content: [{ text: 'Sold out.' }] })
    expect(error).toBeInstanceOf(ToolError)
  })

  test.each<[string, (io: Io) => Promise<unknown>]>([
    ['a step', (io) => io.step('load', fail)],
    ['a scope', (io) => io.scope('all', fail)],
    ['a step in a scope', (io) => io.scope('all', (inner) => inner.step('load', fail))],
  ])('rejects when %s of the tool fails, and nothing handles that', async (_where, run) => {
    const app = newApp(true)
    for (const task of ['never', 'always'] as const) {
      app.tool(task, { task }, async (_args, io) => {
        await run(io)
        return 'done'
      })
      await expect(harsh(app, task)).rejects.toMatchObject({ name: 'RangeError', message: 'No such page' })
    }
  })

  test('rejects when the tool throws undefined', async () => {
    const app = newApp()
    app.tool('broken', {}, () => Promise.reject())
    await expect(harsh(app, 'broken')).rejects.toThrow('undefined was thrown')
    expect((await harsh(() => Promise.reject())).error).toEqual(new Error('undefined was thrown'))
    expect((await straight(() => Promise.reject())).error).toEqual(new Error('undefined was thrown'))
  })

  test('has what a step throws for the caller in the result', async () => {
    const app = newApp()
    app.tool('order', {}, (_args, io) =>
      io.scope('cart', (inner) =>
        inner.step('reserve', (): string => {
          throw new ToolError('Sold out.')
        }),
      ),
    )
    expect((await harsh(app, 'order')).result).toEqual({
      isError: true,
      content: [{ type: 'text', text: 'Sold out.' }],
    })
  })

  test.each([
    { answer: decline, code: 'DECLINED', text: /^The user declined the question "sure"/ },
    { answer: () => undefined, code: 'EXPIRED', text: /^"sure" was not answered in time/ },
  ])('has what the user did in the result and in `error`: $code', async ({ answer, code, text }) => {
    const app = newApp()
    app.tool('delete', {}, async (_args, io) => {
      await io.ask('sure', 'Sure?', z.object({ ok: z.boolean() }), { withinMs: 60_000 })
      return 'deleted'
    })
    const { result, error } = await harsh(app, 'delete', { answer })
    expect(result).toMatchObject({ isError: true, content: [{ text: expect.stringMatching(text) }] })
    expect(error).toMatchObject({ code })
  })

  test('has a protocol error in `error`, because a client gets no result', async () => {
    const app = newApp()
    app.tool('refuse', {}, () => {
      throw new ProtocolError(-32001, 'Not today.')
    })
    expect(await harsh(app, 'refuse')).toMatchObject({ result: undefined, error: { rpcCode: -32001 } })
  })

  test('retries as the app says, on a virtual clock', async () => {
    const app = rally({
      name: 'kit',
      version: '1.0.0',
      logger: QUIET,
      steps: { retries: 2, backoff: { firstMs: 60_000 } },
    })
    const attempts: number[] = []
    app.tool('flaky', {}, async (_args, io) =>
      io.step('load', ({ attempt }) => {
        attempts.push(attempt)
        if (attempt < 3) throw new Error('db down')
        return 'loaded'
      }),
    )
    const { result } = await harsh(app, 'flaky', { runs: 1, compare: false })
    expect(result).toMatchObject({ content: [{ text: 'loaded' }] })
    expect(attempts).toEqual([1, 2, 3])
  })

  test.each(['never', 'always'] as const)(
    'ends an attempt that takes longer than its timeoutMs (task: %s)',
    async (task) => {
      const app = newApp(true)
      const attempts: number[] = []
      const load = ({ attempt, signal }: StepContext): string | Promise<string> => {
        attempts.push(attempt)
        return attempt < 3 ? untilAborted(signal) : 'loaded'
      }
      app.tool('load', { task }, (_args, io) => io.step('load', load, { retries: 2, timeoutMs: 20 }))
      const { result } = await harsh(app, 'load', { runs: 1, compare: false })
      expect(result).toMatchObject({ content: [{ text: 'loaded' }] })
      expect(attempts).toEqual([1, 2, 3])
    },
  )

  test('rejects when no attempt is done in time, even if it ignores its signal', async () => {
    const app = newApp()
    const work = gate<string>()
    app.tool('load', {}, (_args, io) => io.step('load', () => work.promise, { timeoutMs: 20 }))
    await expect(harsh(app, 'load', { runs: 1 })).rejects.toMatchObject({ code: 'STEP_TIMEOUT' })
    work.open('too late')
  })

  test.each([
    { what: 'a sleep', wait: (io: Io) => io.sleep('limit', 20) },
    {
      what: 'a deadline',
      wait: (io: Io) => io.ask('sure', 'Sure?', z.object({}), { withinMs: 20, otherwise: 'late' }),
    },
  ])('lets $what pass while a step runs', async ({ wait }) => {
    const handler = async (_args: object, io: Io): Promise<string> => {
      const over = gate<string>()
      const waited = wait(io).then(() => over.open('it was over'))
      const step = io.step('load', () => over.promise)
      await waited
      return step
    }
    expect((await harsh(handler, { runs: 1, answer: () => undefined })).result).toBe('it was over')
  })

  test('does not let steps alone use up the time for an answer', async () => {
    const app = newApp(true)
    for (const task of ['never', 'always'] as const) {
      app.tool(task, { task }, async (_args, io) => {
        const options = { withinMs: 60_000, otherwise: { confirm: 'late' } }
        const asked = io.ask('sure', 'Sure?', z.object({ confirm: z.boolean() }), options)
        await Promise.all(Array.from({ length: 80 }, (_, index) => io.step(`page[${index}]`, () => index)))
        return String((await asked).confirm)
      })
      expect((await harsh(app, task)).result?.content).toEqual([{ type: 'text', text: 'true' }])
    }
  })

  test.each([{ task: 'always' as const }, {}])('sleeps for days as a task ($task), and takes no time', async (mode) => {
    const app = newApp(true, { ttlMs: 30 * DAY })
    app.tool('trial', mode, async (_args, io) => {
      await io.step('start', () => 1)
      const isTask = await io.detach()
      await io.sleep('trial', 14 * DAY)
      const answer = await io.ask('keep', 'Keep it?', z.object({ keep: z.boolean() }), {
        withinMs: DAY,
        otherwise: { keep: false },
      })
      return `${isTask} ${answer.keep}`
    })
    const answered = await harsh(app, 'trial', { answer: () => accept({ keep: true }) })
    expect(answered.result).toMatchObject({ content: [{ text: 'true true' }] })
    const expired = await harsh(app, 'trial', { answer: () => undefined })
    expect(expired.result).toMatchObject({ content: [{ text: 'true false' }] })
  })

  test('counts the waits of a plain call for its time limit', async () => {
    const app = newApp()
    app.tool('naps', { timeoutMs: 5_000 }, (_args, io) => nap(io, 3))
    app.tool('asks', { timeoutMs: 5_000 }, async (_args, io) => {
      await nap(io, 2)
      await io.confirm('more', 'More?')
      return io.scope('again', (inner) => nap(inner, 2))
    })
    app.tool('retries', { timeoutMs: 5_000 }, (_args, io) =>
      io.step('load', ({ attempt }) => (attempt < 4 ? fail() : 'loaded'), { retries: 3, backoff: { firstMs: 2_000 } }),
    )
    await expect(harsh(app, 'naps')).rejects.toMatchObject({ code: 'TIME_LIMIT' })
    // Each round has the whole time.
    expect((await harsh(app, 'asks')).result?.content).toEqual([{ type: 'text', text: 'rested' }])
    // No attempt begins that would be too late, so the step has failed.
    await expect(harsh(app, 'retries')).rejects.toMatchObject({ name: 'RangeError' })
  })

  test('passes its arguments on as JSON, as a client does', async () => {
    const app = newApp()
    app.tool('keys', { input: z.looseObject({}) }, (args) => Object.keys(args).join(' '))
    const { result } = await harsh(app, 'keys', { args: { a: 1, b: undefined } })
    expect(result?.content).toEqual([{ type: 'text', text: 'a' }])
    await expect(harsh(app, 'keys', { args: { at: new Date(0) } })).rejects.toMatchObject({ code: 'NOT_JSON' })
  })

  test('runs the tool itself: without middleware, `scopes` and `visible`', async () => {
    const app = newApp()
    app.use(() => {
      throw new Error('not reached')
    })
    app.tool('secret', { scopes: ['admin'], visible: () => false }, () => 'done')
    expect((await harsh(app, 'secret')).result?.content).toEqual([{ type: 'text', text: 'done' }])
  })

  test('runs a step with `once` in every flow, whatever the store has of other tests', async () => {
    const app = newApp()
    const store = new MemoryStore()
    let rows: string[] = []
    app.tool('order', { input: z.object({ item: z.string() }) }, async ({ item }, io) => {
      const ordered = await io.step('order', () => (rows.push(item), item), { once: store.once })
      return (await io.confirm('sure', 'Sure?')) ? ordered : 'nothing'
    })
    for (const item of ['tea', 'milk']) {
      const { result } = await harsh(app, 'order', {
        args: { item },
        reset: () => void (rows = []),
        observe: () => rows,
      })
      expect(result?.content).toEqual([{ type: 'text', text: item }])
      expect(rows).toEqual([item])
    }
  })

  test('names what a call that never becomes a task cannot do', async () => {
    const app = newApp(true)
    app.tool('pay', {}, async (_args, io) => {
      await io.event('paid', z.object({}))
      return 'paid'
    })
    app.tool('ask', {}, async (_args, io) => {
      await io.ask('sure', 'Sure?', z.object({}), { withinMs: DAY })
      return 'sure'
    })
    await expect(harsh(app, 'pay', { events: { paid: {} } })).rejects.toMatchObject({ code: 'EVENT_NEEDS_TASK' })
    await expect(harsh(app, 'ask')).rejects.toMatchObject({ code: 'WAIT_TOO_LONG' })
  })

  test('finds the sleeps of a task that together take longer than it lives', async () => {
    const app = newApp(true, { ttlMs: 5_000 })
    app.tool('nap', { task: 'always' }, (_args, io) => nap(io, 2))
    app.tool('doze', { task: 'always' }, (_args, io) => nap(io, 3))
    expect((await harsh(app, 'nap')).result?.content).toEqual([{ type: 'text', text: 'rested' }])
    await expect(harsh(app, 'doze')).rejects.toMatchObject({ code: 'WAIT_TOO_LONG' })
  })

  test('says that a long sleep of a plain call cannot be waited for', async () => {
    const app = newApp()
    app.tool('nap', {}, async (_args, io) => {
      await io.sleep('nap', DAY)
      return 'rested'
    })
    await expect(harsh(app, 'nap')).rejects.toMatchObject({ code: 'WAIT_TOO_LONG' })
  })

  test('has the `_meta` of the tool in the result', async () => {
    const app = newApp()
    const _meta = { 'com.example/cost': 2 }
    app.tool('paid', {}, () => ({ content: [{ type: 'text', text: 'done' }], _meta }))
    expect((await harsh(app, 'paid')).result).toEqual({ content: [{ type: 'text', text: 'done' }], _meta })
  })

  test.each([
    { task: undefined, capabilities: undefined, result: 'a task: true, can: true' },
    { task: undefined, capabilities: ['elicitation.form'] as const, result: 'a task: false, can: false' },
    { task: 'optional' as const, capabilities: ['tasks'] as const, result: 'a task: true, can: true' },
    { task: 'optional' as const, capabilities: [], result: 'a task: false, can: false' },
  ])(
    'gives tasks to clients that declare them (task: $task, $capabilities)',
    async ({ task, capabilities, result }) => {
      const app = newApp(true)
      app.tool('report', { ...(task && { task }) }, async (_args, io) => {
        return `a task: ${await io.detach()}, can: ${io.can('tasks')}`
      })
      const report = await harsh(app, 'report', { ...(capabilities && { capabilities }) })
      expect(report.result?.content).toEqual([{ type: 'text', text: result }])
    },
  )

  test('refuses a tool that is always a task to a client without tasks, as the app does', async () => {
    const app = newApp(true)
    app.tool('report', { task: 'always' }, () => 'done')
    const { result, error } = await harsh(app, 'report', { capabilities: [] })
    expect(result).toBeUndefined()
    expect(error).toMatchObject({
      rpcCode: -32021,
      message: expect.stringMatching(/runs in the background, as a task/),
    })
  })

  test('finds what it finds in a handler', async () => {
    const app = newApp()
    app.tool('careless', {}, async (_args, io) => String(await io.confirm('sure', `Deploy at ${Math.random()}?`)))
    await expect(harsh(app, 'careless')).rejects.toBeInstanceOf(ReplayMismatch)
  })
})

describe('events from outside', () => {
  const paid = z.object({ amount: z.number() })
  const order = async (_args: object, io: Io): Promise<string> => {
    const payment = io.event('paid', paid, { withinMs: 3_600_000 })
    await io.step('mail', () => payment.token)
    try {
      const { amount } = await payment
      return await io.step('book', () => `booked ${amount}`)
    } catch (error) {
      return error instanceof Expired ? 'expired' : 'other'
    }
  }

  const forever = async (_args: object, io: Io): Promise<number> => (await io.event('never', paid)).amount

  test('come at any time, and are the same in every run', async () => {
    const { result, effects } = await harsh(order, { events: { paid: { amount: 7 } } })
    expect(result).toBe('booked 7')
    expect(effects).toEqual(['mail', 'book'])
  })

  test('that do not come expire, on the virtual clock', async () => {
    expect((await harsh(order, { events: {} })).result).toBe('expired')
  })

  test('that the handler never waits for are a warning', async () => {
    const { warnings } = await harsh(order, { events: { paid: { amount: 7 }, payed: { amount: 7 } } })
    expect(warnings).toEqual([
      'harsh: the handler did not wait for the event "payed" in `events`. Check the keys of io.event().',
    ])
  })

  test('of a registered tool', async () => {
    const app = rally({ name: 'tests', version: '1.0.0', store: new MemoryStore() })
    app.tool('order', { task: 'always' }, order)
    const { result } = await harsh(app, 'order', { events: { paid: { amount: 3 } } })
    expect(result?.content).toEqual([{ type: 'text', text: 'booked 3' }])
  })

  test('that do not match their schema are not used, as in a real task', async () => {
    const events = { paid: { amount: 'much' }, never: { amount: 'much' } }
    expect((await harsh(order, { events })).result).toBe('expired')
    await expect(harsh(forever, { events })).rejects.toMatchObject({
      code: 'UNANSWERED',
      message: expect.stringMatching(/the value of the event "never" does not match its schema \(.*amount/),
    })
  })

  test('that can never come end the test', async () => {
    await expect(harsh(forever, { events: {} })).rejects.toMatchObject({
      code: 'UNANSWERED',
      message: expect.stringMatching(/the event "never", which never comes/),
    })
  })
})
