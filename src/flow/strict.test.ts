import type { Rally, RallyOptions } from 'mcp-rally'
import { elicit, inputRequired, rally, send, ToolError } from 'mcp-rally'
import { connect } from 'mcp-rally/client'
import { harsh } from 'mcp-rally/testing'
import { describe, expect, test, vi } from 'vitest'
import { z } from 'zod'
import { Rounds } from '../testing/rounds.ts'
import { askedIn, call, errorOf, textOf } from '../../test/wire/messages.ts'
import { Declined, FlowError } from './errors.ts'
import type { Io } from './io.ts'

interface Logged {
  message: string
  details: Record<string, unknown>
}

const KEYS = ['a secret of the tests of strict mode, long enough']

function newApp(options: Partial<RallyOptions> = {}): { app: Rally; logged: Logged[] } {
  const logged: Logged[] = []
  const log = (message: string, details = {}): void => void logged.push({ message, details })
  return {
    app: rally({ name: 'strict', version: '1', keys: KEYS, logger: { warn: log, error: log }, ...options }),
    logged,
  }
}

const refused = new Error('The card was refused.')
const refuse = (): never => {
  throw refused
}
const askByHand = (): never => {
  throw inputRequired({ state: 1 })
}
const soon = (): Promise<void> => new Promise((resolve) => void setTimeout(resolve, 5))

/** Steps that fail and that the handler does not await. */
const floating: readonly { when: string; start: (io: Io) => unknown }[] = [
  { when: 'at once', start: (io) => io.step('pay', refuse) },
  { when: 'asynchronously', start: (io) => io.step('pay', async () => refuse()) },
  { when: 'after the handler has returned', start: (io) => io.step('pay', () => soon().then(refuse)) },
  { when: 'in a scope', start: (io) => io.scope('order', (inner) => inner.step('pay', refuse)) },
]

describe('a step without await that fails', () => {
  test.each(floating)('$when: fails the call in strict mode, at the line of the call', async ({ start }) => {
    const { app, logged } = newApp()
    app.tool('pay', {}, (_args, io) => {
      start(io)
      return 'Paid.'
    })
    const error = errorOf(await send(app, call('pay')))
    expect(error).toMatchObject({ code: -32603, data: { code: 'NOT_AWAITED' } })
    expect(error.message).toMatch(/^Tool "pay": the (step "pay"|scope "order") failed, .* Did you forget `await`\?$/)
    expect(logged.some(({ details }) => details['error'] === refused)).toBe(true)
    const { stack } = logged.map(({ details }) => details['error']).find((each) => each instanceof FlowError) ?? {}
    expect(stack?.split('\n')[1]).toMatch(/strict\.test\.ts:/)
  })

  test.each(floating)('$when: is logged in production with tool, key and error', async ({ start }) => {
    const { app, logged } = newApp({ strict: false })
    app.tool('pay', {}, (_args, io) => {
      start(io)
      return 'Paid.'
    })
    expect(textOf(await send(app, call('pay')))).toBe('Paid.')
    await vi.waitFor(() =>
      expect(logged).toContainEqual({
        message: expect.stringMatching(/^Tool "pay": "(order>)?pay" failed\.$/) as string,
        details: expect.objectContaining({ target: 'pay', error: refused }) as object,
      }),
    )
  })

  describe.each([
    { when: 'before the scope is recorded', fails: refuse },
    { when: 'after the scope is recorded', fails: () => soon().then(refuse) },
    { when: 'and is retried', fails: refuse, retries: 2 },
  ])('in a scope that a question follows, $when', ({ fails, retries = 0 }) => {
    const order = async (_args: unknown, io: Io): Promise<string> => {
      await io.scope('order', async (inner) => {
        void inner.step('pay', fails, { retries })
        await inner.step('other', () => 1)
      })
      await io.confirm('sure', 'Sure?')
      return 'Paid.'
    }

    test('fails the call in strict mode', async () => {
      const { app } = newApp()
      app.tool('order', {}, order)
      const error = errorOf(await send(app, call('order')))
      expect(error).toMatchObject({ data: { code: 'NOT_AWAITED' } })
      expect(error.message).toContain('the step "order>pay" failed')
    })

    test('is one warning in production', async () => {
      const { app, logged } = newApp({ strict: false })
      app.tool('order', {}, order)
      const { state } = askedIn(await send(app, call('order')))
      const sure = { action: 'accept', content: { confirm: true } }
      const inputResponses = { sure }
      expect(textOf(await send(app, call('order', {}, { requestState: state, inputResponses })))).toBe('Paid.')
      expect(logged.filter(({ message }) => message.includes('did not await it'))).toEqual([
        {
          message: 'Tool "order": "order>pay" failed, and the handler did not await it. Did you forget `await`?',
          details: expect.objectContaining({ key: 'order>pay', error: refused }) as object,
        },
      ])
    })
  })

  test('in a scope that a released sleep follows, fails the pass', async () => {
    const outcome = await new Rounds({ task: 'always' }).next(async (io) => {
      await io.scope('order', async (inner) => {
        void inner.step('pay', refuse)
        await inner.step('other', () => 1)
      })
      await io.sleep('night', 60_000)
      return 'Paid.'
    })
    expect(outcome).toMatchObject({ kind: 'failed', error: { code: 'NOT_AWAITED' } })
  })

  test('in a scope that failed, does not hide why', async () => {
    const outcome = await new Rounds().next((io) =>
      io.scope('order', async (inner) => {
        const paid = inner.step('pay', refuse)
        await inner.step('other', () => Promise.reject(new Error('Sold out.')))
        await paid
      }),
    )
    expect(outcome).toMatchObject({ kind: 'failed', error: { message: 'Sold out.' } })
  })

  test('between two attempts, fails the call in strict mode too', async () => {
    const { app } = newApp()
    app.tool('pay', {}, (_args, io) => {
      void io.step('pay', refuse, { retries: 2 })
      return 'Paid.'
    })
    app.tool('pay_later', {}, async (_args, io) => {
      void io.step('pay', () => soon().then(refuse), { retries: 2 })
      await io.step('other', () => soon())
      return 'Paid.'
    })
    for (const tool of ['pay', 'pay_later'])
      expect(errorOf(await send(app, call(tool)))).toMatchObject({ data: { code: 'NOT_AWAITED' } })
  })

  test('between two attempts, fails a pass that only waits for the next one', async () => {
    const rounds = new Rounds({ task: 'always' })
    expect(await rounds.next(retrying)).toMatchObject({ kind: 'asks' })
    const outcome = await rounds.next(retrying, { sure: { action: 'accept', content: { confirm: true } } })
    expect(outcome).toMatchObject({ kind: 'failed', error: { code: 'NOT_AWAITED' } })
  })

  test.each([
    { how: 'at once', run: () => Promise.reject(new ToolError('The card was refused.')) },
    { how: 'with retries', run: refuse, options: { retries: 0, timeoutMs: 1_000 } },
  ])(
    '$how: is a warning in production that asks for the await, even if it is a ToolError',
    async ({ run, options }) => {
      const { app, logged } = newApp({ strict: false })
      app.tool('pay', {}, async (_args, io) => {
        void io.step('pay', run, options)
        await io.step('other', () => soon())
        return 'Paid.'
      })
      expect(textOf(await send(app, call('pay')))).toBe('Paid.')
      expect(logged).toContainEqual({
        message: 'Tool "pay": "pay" failed, and the handler did not await it. Did you forget `await`?',
        details: expect.objectContaining({ tool: 'pay', key: 'pay', error: expect.any(Error) as object }) as object,
      })
    },
  )

  test('is no warning in production if the handler catches it', async () => {
    const { app, logged } = newApp({ strict: false })
    app.tool('pay', {}, async (_args, io) => {
      await io.step('pay', () => Promise.reject(new ToolError('Refused.'))).catch(() => {})
      const later = io.step('later', () => Promise.reject(new ToolError('Refused.')))
      await io.step('other', () => soon())
      return later.catch(() => 'Not paid.')
    })
    expect(textOf(await send(app, call('pay')))).toBe('Not paid.')
    expect(logged).toEqual([])
  })

  test('is reported by harsh', async () => {
    const report = await harsh((_args: {}, io: Io) => {
      void io.step('pay', refuse)
      return 'Paid.'
    })
    expect(report.error).toMatchObject({ code: 'NOT_AWAITED' })
  })

  test.each<{ how: string; run: (io: Io) => Promise<unknown> }>([
    {
      how: 'awaited later',
      run: async (io) => {
        const paid = io.step('pay', refuse)
        await io.step('other', () => 1)
        return paid.catch(() => 'caught')
      },
    },
    {
      how: 'caught',
      run: async (io) => {
        io.step('pay', refuse).catch(() => {})
        await io.step('other', () => 1)
        return 'caught'
      },
    },
    {
      how: 'the loser of a race',
      run: async (io) => Promise.race([io.step('first', () => 'caught'), io.step('pay', refuse)]),
    },
    {
      how: 'one of Promise.allSettled',
      run: async (io) => {
        await Promise.allSettled([io.step('pay', refuse)])
        return 'caught'
      },
    },
  ])('is no mistake if it is $how', async ({ run }) => {
    expect(await new Rounds().next(run)).toEqual({ kind: 'done', value: 'caught' })
  })
})

test('the warning about open calls names the tool and the line, and asks for the await', async () => {
  const { app, logged } = newApp()
  app.tool('pay', {}, (_args, io) => {
    void io.confirm('sure', 'Pay?')
    return 'Paid.'
  })
  expect(textOf(await send(app, call('pay')))).toBe('Paid.')
  expect(logged.map(({ message }) => message)).toEqual([
    expect.stringMatching(
      /^Tool "pay": the handler returned before "sure" settled\. .*Did you forget `await`\? .*strict\.test\.ts:\d+:\d+\.$/,
    ),
  ])
})

test.each([
  { strict: true, line: / The call was made at .*strict\.test\.ts:\d+:\d+\.$/ },
  { strict: false, line: /Did you forget `await`\?$/ },
])(
  'a call after the end of its pass is logged with tool, flow and hint (strict: $strict)',
  async ({ strict, line }) => {
    const { app, logged } = newApp({ strict })
    app.tool('pay', {}, (_args, io) => {
      void soon().then(() => io.step('pay', () => 1))
      return 'Paid.'
    })
    expect(textOf(await send(app, call('pay')))).toBe('Paid.')
    await vi.waitFor(() => expect(logged).toHaveLength(1))
    const [{ message, details } = { message: '', details: {} }] = logged
    expect(message).toMatch(/^Tool "pay": "pay" was called after its pass ended\. .*Did you forget `await`\?/)
    expect(message).toMatch(line)
    expect(details).toMatchObject({ tool: 'pay', key: 'pay', flow: expect.any(String) as string })
  },
)

test.each([{ depth: 'a scope' }, { depth: 'a scope in a scope' }])(
  'inputRequired that is thrown in $depth is no call without await',
  async ({ depth }) => {
    const { app, logged } = newApp()
    app.tool('pay', {}, (_args, io) =>
      io.scope('order', (inner) => (depth === 'a scope' ? askByHand() : inner.scope('item', askByHand))),
    )
    expect(await send(app, call('pay'))).toMatchObject({ result: { resultType: 'input_required' } })
    expect(logged).toEqual([])
  },
)

test('the warning about a recorded step that was not called names the tool', async () => {
  const { app, logged } = newApp({ strict: false })
  let pass = 0
  app.tool('pay', {}, async (_args, io) => {
    pass += 1
    if (pass === 1) await io.step('charge', () => 1)
    await io.confirm('sure', 'Sure?')
    return 'Paid.'
  })
  const { state } = askedIn(await send(app, call('pay')))
  const sure = { action: 'accept', content: { confirm: true } }
  expect(textOf(await send(app, call('pay', {}, { requestState: state, inputResponses: { sure } })))).toBe('Paid.')
  expect(logged).toEqual([
    {
      message: 'Tool "pay": the handler did not call "charge", which is in the journal. The flow continues without it.',
      details: expect.objectContaining({ tool: 'pay', key: 'charge', flow: expect.any(String) as string }) as object,
    },
  ])
})

describe('strict mode', () => {
  test.each([
    { env: 'production', strict: false },
    { env: 'development', strict: true },
    { env: 'test', strict: true },
    { env: undefined, strict: true },
    { env: 'staging', strict: true },
  ])('with NODE_ENV $env is $strict', async ({ env, strict }) => {
    vi.stubEnv('NODE_ENV', env)
    const { app } = newApp()
    vi.unstubAllEnvs()
    app.tool('pay', {}, (_args, io) => {
      void io.step('pay', refuse)
      return 'Paid.'
    })
    expect('error' in ((await send(app, call('pay'))) ?? {})).toBe(strict)
  })

  test('without it, the time limit names the step and the question that may be inside it', async () => {
    const { app } = newApp({ strict: false, timeoutMs: 150 })
    app.tool('pay', {}, (_args, io) =>
      io.step('charge', async () => {
        await soon()
        return String(await io.confirm('sure', 'Pay?'))
      }),
    )
    const { message } = errorOf(await send(app, call('pay')))
    expect(message).toContain('The question "sure" may be inside the step "charge"')
  })
})

describe('the signal of a step', () => {
  test('is its own, and is not aborted by a call that succeeds', async () => {
    const signals: AbortSignal[] = []
    const outcome = await new Rounds().next(async (io) => {
      await io.step('a', ({ signal }) => void signals.push(signal))
      await io.step('b', ({ signal }) => void signals.push(signal))
      signals.push(io.signal)
      return 'done'
    })
    expect(outcome.kind).toBe('done')
    expect(new Set(signals).size).toBe(3)
    expect(signals.map(({ aborted }) => aborted)).toEqual([false, false, false])
  })

  test('is aborted while the step runs if the call fails, and not after the step', async () => {
    const signals: AbortSignal[] = []
    const outcome = await new Rounds().next(async (io) => {
      await io.step('a', ({ signal }) => void signals.push(signal))
      await Promise.all([
        io.step('b', ({ signal }) => (signals.push(signal), new Promise<void>(() => {}))),
        Promise.reject(refused),
      ])
    })
    expect(outcome).toMatchObject({ kind: 'failed', error: refused })
    expect(signals.map(({ aborted }) => aborted)).toEqual([false, true])
  })
})

test('a question that changes with every pass is logged with both texts, and without the token of a visit', async () => {
  const { app, logged } = newApp()
  let pass = 0
  app.tool('pay', {}, async (_args, io) => {
    pass += 1
    await io.visit('page', `Visit ${pass}`, (token) => `https://shop.example/${token}`, { done: () => true })
    return 'Paid.'
  })
  const first = askedIn(await send(app, call('pay')))
  await send(app, call('pay', {}, { requestState: first.state, inputResponses: { page: { action: 'accept' } } }))
  const [{ message, details } = { message: '', details: {} }] = logged
  expect(message).toMatch(/^Tool "pay": the question "page" has changed/)
  expect(details).toMatchObject({ key: 'page' })
  expect(details['before']).toContain('"Visit 1","url":"https://shop.example/(token)"')
  expect(details['after']).toContain('"Visit 2"')
})

describe('a step that was renamed or removed without a new version', () => {
  test.each([
    { how: 'renamed', after: charged('debit') },
    { how: 'removed', after: (io: Io) => io.confirm('sure', 'Sure?') },
  ])('fails a strict call if it is $how', async ({ after }) => {
    const error = errorOf(await upgraded(charged('charge'), after))
    expect(error).toMatchObject({ data: { code: 'STEP_GONE' } })
    expect(error.message).toContain('Tool "pay": "charge" is recorded')
  })

  test('does not fail in production', async () => {
    expect(await upgraded(charged('charge'), charged('debit'), false)).toHaveProperty('result')
  })

  test('a handler that took another branch, because of time, is left alone', async () => {
    const { app } = newApp()
    let slow = true
    app.tool('pay', {}, async (_args, io) => {
      const side = (slow ? Promise.resolve() : new Promise(() => {})).then(() => io.step('side', () => 1))
      side.catch(() => {})
      await io.confirm('sure', 'Sure?')
      return 'Paid.'
    })
    const first = askedIn(await send(app, call('pay')))
    slow = false
    const second = await send(
      app,
      call(
        'pay',
        {},
        { requestState: first.state, inputResponses: { sure: { action: 'accept', content: { confirm: true } } } },
      ),
    )
    expect(textOf(second)).toBe('Paid.')
  })

  test('a handler by hand repeats no step, and is left alone', async () => {
    const old = newApp().app.tool('pay', {}, async (_args, io) => {
      await io.step('charge', () => 1)
      return inputRequired({ inputRequests: { sure: elicit('Sure?', z.object({ confirm: z.boolean() })) } })
    })
    const first = askedIn(await send(old, call('pay')))
    const { app } = newApp()
    app.tool('pay', {}, () => 'Paid.')
    const second = await send(
      app,
      call('pay', {}, { requestState: first.state, inputResponses: { sure: { action: 'decline' } } }),
    )
    expect(textOf(second)).toBe('Paid.')
  })
})

test('a Declined of a call without await fails a strict pass too', async () => {
  const rounds = new Rounds()
  await rounds.next(forgetful)
  const outcome = await rounds.next(forgetful, {
    name: { action: 'decline' },
    sure: { action: 'accept', content: { confirm: true } },
  })
  expect(outcome).toMatchObject({
    kind: 'failed',
    error: { code: 'NOT_AWAITED', cause: expect.any(Declined) as object },
  })
})

test.each(['2026-07-28', '2025-11-25'])('progress only rises (%s)', async (revision) => {
  const { app } = newApp()
  app.tool('count', {}, async (_args, io) => {
    for (const n of [1, 3, 2, 3, 4]) io.progress(n)
    await io.step('more', ({ progress }) => [2, 5].forEach((n) => progress(n)))
    for (const n of [1, 6]) io.progress(n)
    return 'done'
  })
  const client = await connect('http://localhost/mcp', {
    revision,
    fetch: (url, init) => app.fetch(new Request(url, init)),
  })
  const rounds: number[] = []
  await client.callTool('count', {}, { onProgress: ({ progress }) => void rounds.push(progress) })
  await client.close()
  expect(rounds).toEqual([1, 3, 4, 5, 6])
})

/** Runs the first round with one handler and the second with the other. */
async function upgraded(
  before: (io: Io) => unknown,
  after: (io: Io) => unknown,
  strict = true,
): Promise<object | undefined> {
  const old = newApp({ strict }).app.tool('pay', {}, async (_args, io) => void (await before(io)))
  const first = askedIn(await send(old, call('pay')))
  const { app } = newApp({ strict })
  app.tool('pay', {}, async (_args, io) => void (await after(io)))
  return send(
    app,
    call(
      'pay',
      {},
      { requestState: first.state, inputResponses: { sure: { action: 'accept', content: { confirm: true } } } },
    ),
  )
}

function charged(key: string): (io: Io) => Promise<void> {
  return async (io) => {
    await io.step(key, () => 'charged')
    await io.confirm('sure', 'Sure?')
  }
}

async function forgetful(io: Io): Promise<string> {
  void io.ask('name', 'Name?', z.object({ name: z.string() }))
  await io.confirm('sure', 'Sure?')
  return 'done'
}

async function retrying(io: Io): Promise<string> {
  void io.step('pay', refuse, { retries: 3, backoff: { firstMs: 60_000 } })
  await io.confirm('sure', 'Sure?')
  return 'Paid.'
}
