import { afterEach, describe, expect, test, vi } from 'vitest'
import { accept } from '../testing.ts'
import { gate, ManualScheduler, microtasks } from '../testing/manual-scheduler.ts'
import { Rounds } from '../testing/rounds.ts'
import { ProtocolError } from '../protocol/errors.ts'
import { MemoryOnceStore } from '../store/memory/once.ts'
import { StoreUnavailable } from '../store/outages.ts'
import type { Io } from './io.ts'
import { Declined, Fatal, ToolError } from './errors.ts'
import { writeFlowState } from './flow-state.ts'
import type { StepContext, StepOptions } from './step.ts'

/** Throws in the first attempts. Remembers what each attempt was given. */
class Flaky {
  readonly seen: { attempt: number; idempotencyKey: string }[] = []
  readonly #failures: number

  constructor(failures: number) {
    this.#failures = failures
  }

  run = ({ attempt, idempotencyKey }: StepContext): string => {
    this.seen.push({ attempt, idempotencyKey })
    if (this.seen.length <= this.#failures) throw Object.assign(new Error('db down'), { code: 'ECONNREFUSED' })
    return `after ${this.seen.length}`
  }

  handler =
    (options?: StepOptions) =>
    (io: Io): Promise<string> =>
      io.step('load', this.run, options)
}

describe('a step with retries', () => {
  test('is run again until it succeeds, under one idempotency key', async () => {
    const flaky = new Flaky(2)
    const rounds = new Rounds()
    expect(await rounds.next(flaky.handler({ retries: 2 }))).toEqual({ kind: 'done', value: 'after 3' })
    expect(flaky.seen.map(({ attempt }) => attempt)).toEqual([1, 2, 3])
    expect(new Set(flaky.seen.map(({ idempotencyKey }) => idempotencyKey)).size).toBe(1)
    expect(JSON.parse(rounds.journal)).toMatchObject(['s', 'load', expect.any(Number), 'after 3'])
  })

  test('fails with the last error when all attempts have failed', async () => {
    const flaky = new Flaky(9)
    const outcome = await new Rounds().next(flaky.handler({ retries: 2 }))
    expect(outcome).toMatchObject({ kind: 'failed', error: { message: 'db down', code: 'ECONNREFUSED', step: 'load' } })
    expect(flaky.seen).toHaveLength(3)
  })

  test('has one attempt by default, and what `rally({ steps })` says otherwise', async () => {
    const [once, app, own] = [new Flaky(1), new Flaky(1), new Flaky(1)]
    const steps = { retries: 1 }
    expect(await new Rounds().next(once.handler())).toMatchObject({ kind: 'failed' })
    expect(await new Rounds().next(app.handler(), undefined, { steps })).toMatchObject({ value: 'after 2' })
    expect(await new Rounds().next(own.handler({ retries: 0 }), undefined, { steps })).toMatchObject({ kind: 'failed' })
  })

  test.each([
    new ToolError('Sold out.'),
    new ProtocolError(-32_602, 'No such order.'),
    new Declined('sure', 'decline'),
    new Fatal('The card was declined.'),
  ])('is not run again after $name', async (error) => {
    let attempts = 0
    const outcome = await new Rounds().next((io) =>
      io.step(
        'pay',
        () => {
          attempts += 1
          throw error
        },
        { retries: 5 },
      ),
    )
    expect(outcome).toMatchObject({ kind: 'failed', error: { message: error.message } })
    expect(attempts).toBe(1)
  })

  test('waits longer each time, up to `maxMs`, give or take a quarter', async () => {
    const rounds = new Rounds()
    await rounds.next(new Flaky(4).handler({ retries: 4, backoff: { firstMs: 100, maxMs: 300 } }))
    const waits = rounds.warnings.map((line) => Number(/ (\d+) ms/.exec(line)?.[1]))
    expect(waits).toHaveLength(4)
    for (const [index, near] of [100, 200, 300, 300].entries()) {
      expect(waits[index]).toBeGreaterThanOrEqual(near * 0.75)
      expect(waits[index]).toBeLessThanOrEqual(near * 1.25)
    }
  })

  test('holds back a question beside it, when a client carries the call', async () => {
    const flaky = new Flaky(1)
    const rounds = new Rounds()
    const handler = (io: Io): Promise<unknown> =>
      Promise.all([io.step('load', flaky.run, { retries: 1 }), io.confirm('sure', 'Sure?')])
    expect(await rounds.next(handler)).toMatchObject({ kind: 'asks' })
    expect(flaky.seen).toHaveLength(2)
    expect(await rounds.next(handler, { sure: accept({ confirm: true }) })).toMatchObject({ value: ['after 2', true] })
    expect(flaky.seen).toHaveLength(2)
  })

  test('is not waited for beyond the time limit of the pass: the last error is the outcome', async () => {
    const flaky = new Flaky(1)
    const options = { retries: 1, backoff: { firstMs: 60_000, maxMs: 60_000 } }
    const outcome = await new Rounds().next(flaky.handler(options), undefined, {
      limits: { journalBytes: 1_000, passMs: 1_000 },
      waiting: { releaseFromMs: Infinity, askMs: 1_000, advice: 'Detach.' },
    })
    expect(outcome).toMatchObject({ kind: 'failed', error: { message: 'db down' } })
  })

  test('is not waited for beyond the last date: the last error is the outcome', async () => {
    const flaky = new Flaky(1)
    const outcome = await new Rounds({ task: 'always' }).next(
      flaky.handler({ retries: 1, backoff: { firstMs: 1e300 } }),
    )
    expect(outcome).toMatchObject({ kind: 'failed', error: { message: 'db down' } })
  })

  test('is handed over with its count and its due time', async () => {
    const flaky = new Flaky(3)
    const rounds = new Rounds()
    let leaves = false
    const handler = async (io: Io): Promise<unknown> => {
      await io.step('first', () => 1)
      return io.step(
        'load',
        (context) => {
          leaves = context.attempt === 2
          return flaky.run(context)
        },
        { retries: 3 },
      )
    }
    const outcome = await rounds.next(handler, undefined, { wantsHandover: () => leaves })
    expect(outcome).toMatchObject({ kind: 'deferred' })
    expect(flaky.seen.map(({ attempt }) => attempt)).toEqual([1, 2])
    if (outcome.kind !== 'deferred') throw new Error('This should be handed over.')
    expect(writeFlowState(outcome.flowState)).toEqual([[], [], null, null, [['load', expect.any(Number), 2]]])
    expect(await rounds.next(handler)).toMatchObject({ value: 'after 4' })
    expect(flaky.seen.map(({ attempt }) => attempt)).toEqual([1, 2, 3, 4])
  })

  test('is not retried once its scope has settled', async () => {
    const flaky = new Flaky(9)
    const rounds = new Rounds()
    const fail = gate<never>()
    const outcome = await rounds.next(async (io) => {
      await io.scope('race', (inner) =>
        Promise.race([
          inner.step('slow', (context) => fail.promise.catch(() => flaky.run(context)), { retries: 3 }),
          inner.step('fast', () => 1),
        ]),
      )
      fail.fail(new Error('too late'))
      return io.confirm('sure', 'Sure?')
    })
    expect(flaky.seen).toHaveLength(1)
    expect(outcome).toMatchObject({ kind: 'asks', flowState: { waits: new Map() } })
    expect(rounds.warnings).toEqual(['Tool "handler": "race>slow" failed.'])
  })

  test('logs each attempt that is followed by another', async () => {
    const rounds = new Rounds()
    await rounds.next(new Flaky(1).handler({ retries: 1 }))
    expect(rounds.warnings).toEqual([
      expect.stringMatching(/attempt 1 of the step "load" failed\. The next one is in \d+ ms/),
    ])
  })

  test.each([
    { options: null as unknown as StepOptions, says: /^The step "load": the options must be an object, got null\.$/ },
    { options: 3 as StepOptions, says: /must be an object, got 3/ },
    { options: { backoff: [] as object }, says: /`backoff` must be an object, got a/ },
    { options: { retries: -1 }, says: /`retries` must be a whole number of 0 or more, got -1/ },
    { options: { retries: 1.5 }, says: /`retries`/ },
    { options: { backoff: { firstMs: 0 } }, says: /`backoff.firstMs` must be a number of milliseconds above 0, got 0/ },
    { options: { timeoutMs: Number.NaN }, says: /`timeoutMs`/ },
    { options: { timeoutMs: 30 * 86_400_000 }, says: /`timeoutMs` must be at most 2147483647, .*got 2592000000/ },
  ])('is refused with $options', async ({ options, says }) => {
    const outcome = await new Rounds().next(new Flaky(0).handler(options))
    expect(outcome).toMatchObject({
      kind: 'failed',
      error: { code: 'OPTION_INVALID', message: expect.stringMatching(says) },
    })
  })
})

describe('an attempt with `timeoutMs`', () => {
  test('fails when it takes longer: its signal is aborted, and a late result is ignored and logged', async () => {
    const manual = new ManualScheduler()
    const late = gate<string>()
    const signals: AbortSignal[] = []
    const rounds = new Rounds()
    const outcome = rounds.next(
      (io) =>
        io.step(
          'slow',
          ({ attempt, signal }) => {
            signals.push(signal)
            return attempt === 1 ? late.promise : 'in time'
          },
          { retries: 1, timeoutMs: 5_000, backoff: { firstMs: 10 } },
        ),
      undefined,
      { scheduler: manual, now: clock() },
    )
    expect(await manual.wake()).toBe(5_000)
    late.open('late')
    await microtasks()
    while ((await manual.wake()) !== undefined);
    expect(await outcome).toEqual({ kind: 'done', value: 'in time' })
    expect(signals.map(({ aborted }) => aborted)).toEqual([true, false])
    expect(rounds.warnings.join('\n')).toMatch(/attempt 1 of the step "slow" ended after its `timeoutMs`/)
  })

  test('without retries is a step that failed', async () => {
    const manual = new ManualScheduler()
    const outcome = new Rounds().next(
      (io) => io.step('slow', () => new Promise(() => {}), { timeoutMs: 50 }).catch((error: unknown) => error),
      undefined,
      { scheduler: manual },
    )
    await manual.wake()
    await manual.settle()
    expect(await outcome).toMatchObject({ value: { code: 'STEP_TIMEOUT', step: 'slow', name: 'StepTimeout' } })
  })

  test.each([
    { throws: 'the reason of its signal', error: (signal: AbortSignal): unknown => signal.reason },
    { throws: 'an AbortError', error: () => new DOMException('This operation was aborted', 'AbortError') },
  ])('that stops when its signal is aborted, with $throws, is not logged as late', async ({ error }) => {
    const manual = new ManualScheduler()
    const rounds = new Rounds()
    const outcome = rounds.next(
      (io) =>
        io.step(
          'slow',
          ({ attempt, signal }) =>
            attempt === 2
              ? 'in time'
              : new Promise<string>((_resolve, reject) => {
                  signal.addEventListener('abort', () => reject(error(signal)))
                }),
          { retries: 1, timeoutMs: 50, backoff: { firstMs: 10 } },
        ),
      undefined,
      { scheduler: manual, now: clock() },
    )
    while ((await manual.wake()) !== undefined) await microtasks()
    expect(await outcome).toEqual({ kind: 'done', value: 'in time' })
    expect(rounds.warnings).toEqual([expect.stringContaining('attempt 1 of the step "slow" failed.')])
  })

  test('has an aborted signal from then on, also if it reads it late', async () => {
    const manual = new ManualScheduler()
    const wait = gate()
    const seen = gate<boolean>()
    void new Rounds().next(
      (io) =>
        io.step(
          'slow',
          async (context) => {
            await wait.promise
            seen.open(context.signal.aborted)
          },
          { timeoutMs: 50, retries: 3 },
        ),
      undefined,
      { scheduler: manual },
    )
    await manual.wake()
    wait.open()
    expect(await seen.promise).toBe(true)
  })
})

describe('an attempt with `timeoutMs` and `once`', () => {
  afterEach(() => void vi.useRealTimers())

  test('gives up its claim when it takes longer, so that the next one runs, and its late result is not used', async () => {
    const manual = new ManualScheduler()
    const late = gate<string>()
    let now = 0
    const rounds = new Rounds()
    const options = { once: new MemoryOnceStore(), retries: 1, timeoutMs: 5_000, backoff: { firstMs: 10 } }
    const run = ({ attempt }: StepContext): unknown => (attempt === 1 ? late.promise : 'in time')
    const handler = (io: Io): Promise<unknown> => io.step<unknown>('slow', run, options)
    const outcome = rounds.next(handler, undefined, { scheduler: manual, now: () => now })
    await microtasks()
    expect(await manual.wake()).toBe(5_000)
    late.open('late')
    await microtasks()
    now = 1_000
    await manual.wake()
    await manual.settle()
    expect(await outcome).toEqual({ kind: 'done', value: 'in time' })
    expect(rounds.warnings.join('\n')).toMatch(/attempt 1 of the step "slow" ended after its `timeoutMs`/)
    expect(await new Rounds().next((io) => io.step('slow', () => 'again', options))).toMatchObject({ value: 'in time' })
  })

  test('gives up its claim also if its pass has ended before', async () => {
    const manual = new ManualScheduler()
    const once = new MemoryOnceStore()
    const outcome = new Rounds().next(
      async (io) => {
        void io.step('slow', () => new Promise(() => {}), { once, timeoutMs: 50 }).catch(() => {})
        await microtasks()
        throw new Error('Something else failed.')
      },
      undefined,
      { scheduler: manual },
    )
    expect(await outcome).toMatchObject({ kind: 'failed' })
    await manual.wake()
    await microtasks()
    expect(await new Rounds().next((io) => io.step('slow', () => 'ran', { once }))).toMatchObject({ value: 'ran' })
  })

  test('does not wait for another holder any longer, and does not run when that one is gone', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
    const manual = new ManualScheduler()
    const claim = vi.fn<() => { kind: 'held'; note: string }>(() => ({ kind: 'held', note: '' }))
    const once = Object.assign(new MemoryOnceStore(), { claim })
    const run = vi.fn<() => string>(() => 'ran')
    const end = gate()
    const outcome = new Rounds().next(
      async (io) => {
        await io.step('slow', run, { once, timeoutMs: 50 }).catch(() => {})
        await end.promise
      },
      undefined,
      { scheduler: manual },
    )
    await vi.advanceTimersByTimeAsync(1_000)
    await manual.wake()
    claim.mockClear()
    await vi.advanceTimersByTimeAsync(10_000)
    expect(claim).not.toHaveBeenCalled()
    end.open()
    expect(await outcome).toMatchObject({ kind: 'done' })
    expect(run).not.toHaveBeenCalled()
  })

  test('does not fail its pass when the store fails later', async () => {
    const manual = new ManualScheduler()
    const claim = gate<never>()
    const once = Object.assign(new MemoryOnceStore(), { claim: () => claim.promise })
    const outcome = new Rounds().next(
      async (io) => {
        const error: unknown = await io
          .step('slow', () => 1, { once, timeoutMs: 50 })
          .catch((thrown: unknown) => thrown)
        claim.fail(new StoreUnavailable(new Error('down')))
        await microtasks()
        return error
      },
      undefined,
      { scheduler: manual },
    )
    await microtasks()
    await manual.wake()
    expect(await outcome).toMatchObject({ kind: 'done', value: { code: 'STEP_TIMEOUT' } })
  })
})

/** A clock that moves by a second whenever it is read. */
function clock(): () => number {
  let now = 0
  return () => (now += 1_000)
}
