import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { z } from 'zod'
import { accept, harsh } from '../testing.ts'
import { Rounds } from '../testing/rounds.ts'
import { Expired } from './errors.ts'
import { keepAnswers, readFlowState, writeFlowState } from './flow-state.ts'
import type { FlowState } from './flow-state.ts'
import type { Io } from './io.ts'
import { Journal } from './journal.ts'
import { scheduler } from './scheduler.ts'
import type { Interruptible } from './underway.ts'
import { Underway } from './underway.ts'

const NUMBER = z.object({ n: z.number() })
const HOUR = 3_600_000
const CLIENT = { releaseFromMs: Infinity, askMs: HOUR, advice: 'Detach.' }

describe('io.sleep', () => {
  test('waits for its time, and is recorded when it is over', async () => {
    const rounds = new Rounds()
    const before = rounds.now
    const outcome = await rounds.next(async (io) => {
      await io.sleep('night', 8 * HOUR)
      return io.now()
    })
    expect(outcome).toEqual({ kind: 'done', value: before + 8 * HOUR })
    expect(JSON.parse(rounds.journal)).toMatchObject(['t', 'night', expect.any(Number), null])
  })

  test('waits until a date, and not at all if that has passed', async () => {
    const rounds = new Rounds()
    const until = new Date(rounds.now + HOUR)
    const handler = async (io: Io): Promise<number> => {
      await io.sleep('until', until)
      await io.sleep('past', new Date(0))
      return io.now()
    }
    expect(await rounds.next(handler)).toEqual({ kind: 'done', value: until.getTime() + 1 })
  })

  test('keeps the due time of its first pass, beside a question', async () => {
    const rounds = new Rounds()
    const began = rounds.now
    const handler = (io: Io): Promise<unknown> =>
      Promise.all([io.sleep('night', HOUR).then(() => io.now()), io.ask('a', 'A?', NUMBER)])
    const outcome = await rounds.next(handler)
    expect(outcome).toMatchObject({ kind: 'asks', dueAt: began + HOUR })
    rounds.advanceTo(began + HOUR / 2)
    const [woke] = valueOf(await rounds.next(handler, { a: accept({ n: 1 }) })) as [number]
    expect(woke).toBe(began + HOUR)
  })

  test.each([
    { lateMs: -1, wins: 'answer' },
    { lateMs: 0, wins: 'answer' },
    { lateMs: 1, wins: 'sleep' },
  ])('races with an answer by time: $lateMs ms after it was due, the $wins wins', async ({ lateMs, wins }) => {
    const rounds = new Rounds()
    const began = rounds.now
    // The sleep is called first, so that the order of the calls does not decide.
    const handler = (io: Io): Promise<unknown> =>
      Promise.race([io.sleep('late', HOUR).then(() => 'sleep'), io.ask('a', 'A?', NUMBER).then(() => 'answer')])
    await rounds.next(handler)
    rounds.advanceTo(began + HOUR + lateMs)
    expect(valueOf(await rounds.next(handler, { a: accept({ n: 1 }) }))).toBe(wins)
  })

  test.each([
    { task: 'never' as const, isValid: true, wins: 'answer' },
    { task: 'always' as const, isValid: true, wins: 'answer' },
    { task: 'never' as const, isValid: false, wins: 'sleep' },
    { task: 'always' as const, isValid: false, wins: 'sleep' },
  ])(
    'rule 14: waits for the validation of an answer that came before it (task: $task, valid: $isValid)',
    async ({ task, isValid, wins }) => {
      const rounds = new Rounds({ task })
      let { now } = rounds
      let wake: (() => void) | undefined
      const timers = { ...scheduler, after: (_ms: number, run: () => void) => ((wake = run), () => {}) }
      // The sleep is due while the answer is validated.
      const slow = NUMBER.refine(async () => {
        now += HOUR + 1
        wake?.()
        await new Promise((resolve) => void setTimeout(resolve, 10))
        return isValid
      })
      const handler = (io: Io): Promise<unknown> =>
        Promise.race([io.sleep('late', HOUR).then(() => 'sleep'), io.ask('a', 'A?', slow).then(() => 'answer')])
      const input = { now: () => now, scheduler: timers }
      expect(await rounds.next(handler, undefined, input)).toMatchObject({ kind: 'asks' })
      expect(valueOf(await rounds.next(handler, { a: accept({ n: 1 }) }, input))).toBe(wins)
    },
  )

  test('does not keep an interrupted pass from ending while it waits for a validation', async () => {
    const rounds = new Rounds()
    let { now } = rounds
    let wake: (() => void) | undefined
    const timers = { ...scheduler, after: (_ms: number, run: () => void) => ((wake = run), () => {}) }
    const underway = new Underway<Interruptible>()
    const stuck = NUMBER.refine(() => {
      now += HOUR + 1
      wake?.()
      setImmediate(() => underway.all().forEach((pass) => pass.interrupt()))
      return new Promise<boolean>(() => {})
    })
    const handler = (io: Io): Promise<unknown> => Promise.all([io.sleep('late', HOUR), io.ask('a', 'A?', stuck)])
    const input = { now: () => now, scheduler: timers, underway }
    await rounds.next(handler, undefined, input)
    const outcome = await rounds.next(handler, { a: accept({ n: 1 }) }, input)
    expect(outcome).toMatchObject({ kind: 'deferred' })
    expect([...(outcome as { flowState: FlowState }).flowState.held.keys()]).toEqual(['a'])
  })

  test.each([
    { until: Number.NaN, says: /must wait a number of milliseconds, or until a valid Date, got NaN/ },
    { until: new Date('never'), says: /got NaN/ },
    { until: '5' as unknown as number, says: /got "5"/ },
  ])('refuses $until', async ({ until, says }) => {
    const outcome = await new Rounds().next((io) => io.sleep('s', until))
    expect(outcome).toMatchObject({ error: { code: 'WAIT_INVALID', message: expect.stringMatching(says) } })
  })

  test.each<{ of: string; run: (io: Io) => unknown; says: RegExp }>([
    {
      of: 'a sleep',
      run: (io) => io.sleep('s', Number.MAX_SAFE_INTEGER),
      says: /^The sleep "s" waits 9007199254740991 ms, which ends after the year 255000\. Wait less\.$/,
    },
    { of: 'a sleep until a date', run: (io) => io.sleep('s', new Date(8.64e15)), says: /^The sleep "s" waits/ },
    {
      of: 'a question',
      run: (io) => io.ask('q', 'Q?', NUMBER, { withinMs: 1e300, otherwise: { n: 1 } }),
      says: /^The deadline of the question "q" waits 1e\+300 ms, .* Leave out `withinMs` for no deadline\.$/,
    },
    {
      of: 'an event',
      run: async (io) => await io.event('e', NUMBER, { withinMs: Number.MAX_SAFE_INTEGER }),
      says: /^The deadline of the event "e" waits .* Leave out `withinMs`/,
    },
  ])('$of that ends after the last date is refused in a task that lives for ever', async ({ run, says }) => {
    const outcome = await new Rounds({ task: 'always' }).next(run)
    expect(outcome).toMatchObject({ error: { code: 'WAIT_TOO_LONG', message: expect.stringMatching(says) } })
  })

  test.each([
    { napMs: 499, usedMs: 0, ends: false },
    { napMs: 501, usedMs: 0, ends: true },
    { napMs: 1, usedMs: 490, ends: false },
    { napMs: 1, usedMs: 510, ends: true },
  ])('of $napMs ms in a task ends a pass that has used $usedMs of 1000 ms: $ends', async ({ napMs, usedMs, ends }) => {
    const began = performance.now()
    const clock = vi.spyOn(performance, 'now').mockReturnValue(began)
    onTestFinished(() => clock.mockRestore())
    const input = { limits: { journalBytes: 1_000, passMs: 1_000 } }
    const outcome = await new Rounds({ task: 'always' }).next(
      async (io) => {
        await io.step('work', () => void clock.mockReturnValue(began + usedMs))
        await io.sleep('nap', napMs)
      },
      undefined,
      input,
    )
    expect(outcome.kind).toBe(ends ? 'waiting' : 'done')
  })

  test('that is longer than a call may take is an error that says to detach', async () => {
    const limits = { journalBytes: 1_000, passMs: 1_000 }
    const outcome = await new Rounds().next((io) => io.sleep('night', HOUR), undefined, { waiting: CLIENT, limits })
    expect(outcome).toMatchObject({
      error: {
        code: 'WAIT_TOO_LONG',
        message: 'The sleep "night" waits 3600000 ms, and the limit here is 1000 ms. Detach.',
      },
    })
  })

  test('is handed over by a draining instance, and goes on elsewhere', async () => {
    const rounds = new Rounds()
    const handler = async (io: Io): Promise<number> => {
      await io.step('first', () => 1)
      await io.sleep('night', HOUR)
      return io.now()
    }
    const began = rounds.now
    expect(await rounds.next(handler, undefined, { wantsHandover: () => true })).toMatchObject({ kind: 'deferred' })
    expect(valueOf(await rounds.next(handler))).toBe(began + 1 + HOUR)
  })

  test('is replayed without waiting, and a key may not become another kind of call', async () => {
    const rounds = new Rounds()
    await rounds.next((io) => io.sleep('s', HOUR).then(() => io.ask('a', 'A?', NUMBER)))
    const { now } = rounds
    const again = await rounds.next((io) => io.sleep('s', HOUR).then(() => io.ask('a', 'A?', NUMBER)), {
      a: accept({ n: 1 }),
    })
    expect(again).toMatchObject({ kind: 'done' })
    expect(rounds.now - now).toBe(1)
    const other = new Rounds()
    await other.next((io) => io.sleep('s', 1).then(() => io.ask('a', 'A?', NUMBER)))
    const outcome = await other.next((io) => io.step('s', () => 1).then(() => io.ask('a', 'A?', NUMBER)))
    expect(outcome).toMatchObject({ error: { code: 'KEY_KIND' } })
  })
})

const asking =
  (options: { withinMs: number; otherwise?: { n: number } }) =>
  (io: Io): Promise<unknown> =>
    io.ask('a', 'A?', NUMBER, options)

describe('a question with a deadline', () => {
  test('takes an answer that comes in time', async () => {
    const rounds = new Rounds()
    const handler = asking({ withinMs: HOUR })
    expect(await rounds.next(handler)).toMatchObject({ kind: 'asks', dueAt: rounds.now + HOUR })
    expect(valueOf(await rounds.next(handler, { a: accept({ n: 1 }) }))).toEqual({ n: 1 })
  })

  test.each([
    { otherwise: undefined, gives: new Expired('a') },
    { otherwise: { n: -1 }, gives: { n: -1 } },
  ])('gives $gives when the answer comes too late', async ({ otherwise, gives }) => {
    const rounds = new Rounds()
    const handler = (io: Io): Promise<unknown> =>
      asking({ withinMs: HOUR, ...(otherwise && { otherwise }) })(io).then(
        async (value) => [value, await io.ask('b', 'B?', NUMBER)],
        async (error: unknown) => [error, await io.ask('b', 'B?', NUMBER)],
      )
    await rounds.next(handler)
    rounds.advanceTo(rounds.now + HOUR + 1)
    expect(await rounds.next(handler, { a: accept({ n: 1 }) })).toMatchObject({ kind: 'asks' })
    const [first] = valueOf(await rounds.next(handler, { b: accept({ n: 2 }) })) as [unknown]
    expect(first).toEqual(gives)
  })

  test('that was answered in time counts as answered, though the pass did not reach it', async () => {
    const rounds = new Rounds()
    const handler = async (io: Io): Promise<unknown> => {
      // In the second round, the first question is answered wrongly, and the second one is not asked in it.
      const first = io.ask('first', 'First?', NUMBER)
      const second = rounds.passes.length === 2 ? undefined : io.ask('second', 'Second?', NUMBER, { withinMs: HOUR })
      return Promise.all([first, second])
    }
    await rounds.next(handler)
    await rounds.next(handler, { second: accept({ n: 2 }) })
    rounds.advanceTo(rounds.now + 2 * HOUR)
    const outcome = await rounds.next(handler, { first: accept({ n: 1 }) })
    expect(valueOf(outcome)).toEqual([{ n: 1 }, { n: 2 }])
  })

  test('of a wrong answer stays open until the deadline', async () => {
    const rounds = new Rounds()
    const handler = asking({ withinMs: HOUR, otherwise: { n: -1 } })
    const began = rounds.now
    await rounds.next(handler)
    expect(await rounds.next(handler, { a: { action: 'accept', content: { n: 'x' } } })).toMatchObject({
      kind: 'asks',
      dueAt: began + HOUR,
    })
    rounds.advanceTo(began + HOUR)
    expect(valueOf(await rounds.next(handler, {}))).toEqual({ n: -1 })
  })

  test('fails after three wrong answers, as without a deadline', async () => {
    const rounds = new Rounds()
    const handler = asking({ withinMs: HOUR, otherwise: { n: -1 } })
    const wrong = { a: { action: 'accept', content: { n: 'x' } } }
    await rounds.next(handler)
    for (let answer = 0; answer < 2; answer += 1)
      expect(await rounds.next(handler, wrong)).toMatchObject({ kind: 'asks' })
    expect(await rounds.next(handler, wrong)).toMatchObject({ error: { code: 'ASKED_TOO_OFTEN' } })
  })

  test('may be declared: the options are then the third argument', async () => {
    const rounds = new Rounds({ asks: { size: z.object({ n: z.number() }) } })
    const handler = (io: Io<{ size: typeof NUMBER }>): Promise<unknown> =>
      io.ask('size', 'Size?', { withinMs: HOUR, otherwise: null })
    await rounds.next(handler as never)
    rounds.advanceTo(rounds.now + HOUR)
    expect(valueOf(await rounds.next(handler as never, {}))).toBeNull()
  })

  test.each<{ third: unknown; code: string; says: RegExp }>([
    { third: { otherwise: 1 }, code: 'WAIT_INVALID', says: /must wait a number of milliseconds, .*got undefined/ },
    { third: 'x', code: 'SCHEMA_INVALID', says: /^a: / },
    { third: 5, code: 'SCHEMA_INVALID', says: /^a: / },
  ])('says what is wrong with $third where its schema or its options belong', async ({ third, code, says }) => {
    const outcome = await new Rounds({ asks: { a: NUMBER } }).next((io) => io.ask('a', 'A?', third as typeof NUMBER))
    expect(outcome).toMatchObject({ kind: 'failed', error: { code, message: expect.stringMatching(says) } })
  })

  test('is thrown as Expired by the scope around it too, live and replayed', async () => {
    const report = await harsh(
      async (_args, io) => {
        const error = await io
          .scope('inner', (inner) => inner.ask('a', 'A?', NUMBER, { withinMs: HOUR }))
          .catch((thrown: unknown) => thrown)
        const { n } = await io.ask('b', 'B?', NUMBER)
        return [error instanceof Expired && error.key, n]
      },
      { answer: ({ key }) => (key === 'b' ? accept({ n: 2 }) : undefined) },
    )
    expect(report).toMatchObject({ error: undefined, result: ['inner>a', 2] })
  })

  test('longer than a state may live is an error', async () => {
    const outcome = await new Rounds().next(asking({ withinMs: HOUR + 1 }), undefined, { waiting: CLIENT })
    expect(outcome).toMatchObject({ error: { code: 'WAIT_TOO_LONG', message: expect.stringMatching(/"a" waits/) } })
  })

  test('expires again, without another wait, when an answer before it is asked again', async () => {
    const rounds = new Rounds()
    let text = 'First?'
    const handler = async (io: Io): Promise<unknown> => {
      const first = await io.ask('first', text, NUMBER)
      await io.sleep('pause', HOUR)
      const second = await io.ask('second', 'Second?', NUMBER, { withinMs: HOUR, otherwise: { n: -1 } })
      const third = await io.ask('third', 'Third?', NUMBER)
      return [first, second, third]
    }
    await rounds.next(handler)
    await rounds.next(handler, { first: accept({ n: 1 }) })
    rounds.advanceTo(rounds.now + 2 * HOUR)
    await rounds.next(handler, {})
    text = 'First, again?'
    expect(await rounds.next(handler)).toMatchObject({
      kind: 'asks',
      questions: new Map([['first', expect.anything()]]),
    })
    const { now } = rounds
    await rounds.next(handler, { first: accept({ n: 9 }) })
    expect(rounds.now - now).toBeLessThan(HOUR)
    expect(valueOf(await rounds.next(handler, { third: accept({ n: 3 }) }))).toEqual([{ n: 9 }, { n: -1 }, { n: 3 }])
  })
})

describe('an event that expired', () => {
  test('keeps its token when a question before it is asked again, because the token may be part of a later question', async () => {
    const rounds = new Rounds({ task: 'always' })
    const began = rounds.now
    let minted = 0
    const events = {
      mint: () => `token ${(minted += 1)}`,
      urlOf: () => undefined,
      take: () => undefined,
      refuse: () => {},
    }
    let text = 'First?'
    const handler = async (io: Io): Promise<unknown> => {
      const event = io.event('event', NUMBER, { withinMs: HOUR, otherwise: { n: 0 } })
      await io.ask('first', text, NUMBER)
      await event
      await io.ask('second', `Use ${event.token}?`, NUMBER)
      return event.token
    }
    await rounds.next(handler, undefined, { events })
    rounds.advanceTo(began + 2 * HOUR)
    await rounds.next(handler, { first: accept({ n: 1 }) }, { events })
    text = 'First, again?'
    expect(await rounds.next(handler, undefined, { events })).toMatchObject({ kind: 'asks' })
    await rounds.next(handler, { first: accept({ n: 1 }) }, { events })
    expect(valueOf(await rounds.next(handler, { second: accept({ n: 2 }) }, { events }))).toBe('token 1')
  })
})

describe('the carried state', () => {
  test('holds due times and receipts, and reads states without them', () => {
    const state = {
      open: new Map(),
      held: new Map([['h', { pin: 'p', asked: 1, answer: { raw: { action: 'accept' } }, at: 7 }]]),
      waits: new Map([
        ['s', { dueAt: 5 }],
        ['r', { dueAt: 6, attempts: 2 }],
      ]),
    }
    const written = JSON.parse(JSON.stringify(writeFlowState(state))) as unknown
    expect(written).toEqual([
      [],
      [['h', 'p', 1, 'raw', { action: 'accept' }, 7]],
      null,
      null,
      [
        ['s', 5],
        ['r', 6, 2],
      ],
    ])
    expect(readFlowState(written)).toEqual(state)
    expect(readFlowState([[], []])).toEqual({ open: new Map(), held: new Map() })
    expect(() => readFlowState([[], [], null, null, [['s']]])).toThrow(/cannot be read/)
  })

  test('of another version keeps what was due: it is not waited for again', () => {
    const journal = Journal.read('["t","night",5,null,"ax","a",6,[],"ax","event",7,[]]')
    expect(journal.hasEffects()).toBe(false)
    const event = { token: 'a token that was handed out' }
    const { waits } = keepAnswers(journal, {
      ...readFlowState([[], []]),
      waits: new Map([['event', { dueAt: 7, event }]]),
    })
    expect(waits).toEqual(
      new Map([
        ['event', { dueAt: 0, event }],
        ['night', { dueAt: 0 }],
        ['a', { dueAt: 0 }],
      ]),
    )
  })
})

function valueOf(outcome: { kind: string; value?: unknown; error?: unknown }): unknown {
  if (outcome.kind !== 'done') throw new Error(`This should be done: ${outcome.kind} ${String(outcome.error)}`)
  return outcome.value
}
