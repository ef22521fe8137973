import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { z } from 'zod'
import { accept } from '../testing.ts'
import { microtasks } from '../testing/manual-scheduler.ts'
import { Rounds } from '../testing/rounds.ts'
import { StepFailed } from './errors.ts'
import type { Io } from './io.ts'

const NUMBER = z.object({ n: z.number() })

// As JavaScript may call it.
const notFunction = { retries: 3 } as unknown as () => string

test.each([
  { call: (io: Io) => io.step('ship', notFunction), usage: 'io.step(key, run, options)' },
  { call: (io: Io) => io.scope('ship', notFunction), usage: 'io.scope(key, run)' },
])('without its function, the flow fails and names $usage, although the handler catches', async ({ call, usage }) => {
  const outcome = await new Rounds().next((io) => call(io).catch(() => 'caught'))
  const message = `"ship": the second argument must be the function to run, got an object. Write ${usage}.`
  expect(outcome).toMatchObject({ kind: 'failed', error: { code: 'OPTION_INVALID', message } })
})

describe('rule 8: results pass through JSON, the first time too', () => {
  test.each([
    { name: 'a Map', value: new Map(), place: '$ is a Map' },
    { name: 'a Set inside', value: { seen: new Set() }, place: '$.seen is a Set' },
    { name: 'a Date', value: [{ at: new Date(0) }], place: '$[0].at is a Date' },
    { name: 'undefined in an array', value: [1, undefined], place: '$[1] is undefined' },
    { name: 'a BigInt', value: { id: 1n }, place: '$.id is a BigInt' },
    { name: 'NaN', value: Number.NaN, place: '$ is NaN' },
    { name: 'a function', value: { run: () => {} }, place: '$.run is a function' },
  ])('$name is an error that names the step and the place, although the handler catches', async ({ value, place }) => {
    const outcome = await new Rounds().next((io) => io.step<unknown>('load', () => value).catch(() => 'caught'))
    expect(outcome).toMatchObject({
      kind: 'failed',
      error: { code: 'NOT_JSON', message: expect.stringContaining(`the step "load": ${place}`) },
    })
  })

  test('a scope is held to the same', async () => {
    const outcome = await new Rounds().next((io) => io.scope<unknown>('s', () => new Date()))
    expect(outcome).toMatchObject({ error: { message: expect.stringContaining('the scope "s": $ is a Date') } })
  })

  test.each([
    { name: 'nothing', value: undefined, given: undefined },
    { name: 'null', value: null, given: null },
    { name: 'false', value: false, given: false },
    { name: 'a text', value: '\u00fc"\u2028', given: '\u00fc"\u2028' },
    { name: 'minus zero', value: -0, given: 0 },
    { name: 'a property that is undefined', value: { a: 1, b: undefined }, given: { a: 1 } },
  ])('$name is given live as it is replayed, by a step and by a scope', async ({ value, given }) => {
    const rounds = new Rounds()
    const seen: unknown[] = []
    const handler = async (io: Io): Promise<void> => {
      seen.push(await io.step<unknown>('s', () => value))
      seen.push(await io.scope<unknown>('c', () => value))
      await io.ask('a', 'A?', NUMBER)
    }
    await rounds.next(handler)
    await rounds.next(handler)
    expect(seen).toStrictEqual([given, given, given, given])
    expect(rounds.effects).toEqual(['s'])
  })

  test('what a handler does to a result stays its own', async () => {
    const rounds = new Rounds()
    const kept = { list: [1] }
    const seen: string[] = []
    const handler = async (io: Io): Promise<void> => {
      const given = await io.step('s', () => kept)
      seen.push(JSON.stringify(given))
      given.list.push(2)
      await io.ask('a', 'A?', NUMBER)
      await io.ask('b', 'B?', NUMBER)
    }
    await rounds.next(handler)
    await rounds.next(handler, { a: accept({ n: 1 }) })
    await rounds.next(handler)
    expect(seen).toEqual(['{"list":[1]}', '{"list":[1]}', '{"list":[1]}'])
    expect(kept).toEqual({ list: [1] })
  })

  const coded = Object.assign(new TypeError('no such host'), { code: 'ENOTFOUND' })
  class Refused extends Error {
    override name = 'Refused'
  }
  test.each([
    { name: 'an error with a code', thrown: coded, failure: ['TypeError', 'no such host', 'ENOTFOUND'] },
    { name: 'one with a numeric code', thrown: Object.assign(new Error('e'), { code: 7 }), failure: ['Error', 'e', 7] },
    { name: 'one of a class', thrown: new Refused('no'), failure: ['Refused', 'no', 'STEP_FAILED'] },
    { name: 'a text', thrown: 'gone', failure: ['Error', 'gone', 'STEP_FAILED'] },
    { name: 'anything else', thrown: { odd: true }, failure: ['Error', 'Unknown error', 'STEP_FAILED'] },
  ])('$name is caught as StepFailed, live and replayed, from a step and a scope', async ({ thrown, failure }) => {
    const rounds = new Rounds()
    const caught: unknown[] = []
    const fail = (): never => {
      throw thrown
    }
    const failLater = async (): Promise<never> => fail()
    const note = (error: unknown): void => {
      if (error instanceof StepFailed) caught.push([error.step, error.name, error.message, error.code])
    }
    const handler = async (io: Io): Promise<void> => {
      await io.step('s', fail).catch(note)
      await io.step('t', failLater).catch(note)
      await io.scope('c', failLater).catch(note)
      await io.ask('a', 'A?', NUMBER)
    }
    await rounds.next(handler)
    await rounds.next(handler)
    const once = [
      ['s', ...failure],
      ['t', ...failure],
      ['c', ...failure],
    ]
    expect(caught).toEqual([...once, ...once])
    expect(rounds.effects).toEqual(['s', 't'])
  })
})

describe('rule 9: a failure is journaled like a result', () => {
  test('a step that failed and was caught is not run again', async () => {
    const rounds = new Rounds()
    await rounds.next(failAndAsk)
    expect(await rounds.next(failAndAsk, { a: accept({ n: 1 }) })).toEqual({ kind: 'done', value: 'no' })
    expect(rounds.effects).toEqual(['s'])
  })

  test('a pass that fails gives no state: a retry of its round does its steps again, under the same keys', async () => {
    const rounds = new Rounds()
    const keys: string[] = []
    let broken = true
    const handler = async (io: Io): Promise<void> => {
      await io.step('before', ({ idempotencyKey }) => void keys.push(idempotencyKey))
      await io.ask('a', 'A?', NUMBER)
      await io.step('after', ({ idempotencyKey }) => void keys.push(idempotencyKey))
      if (broken) throw new Error('crash')
    }
    await rounds.next(handler)
    expect(await rounds.next(handler, { a: accept({ n: 1 }) })).toEqual({ kind: 'failed', error: new Error('crash') })
    broken = false
    expect(await rounds.next(handler, { a: accept({ n: 1 }) })).toMatchObject({ kind: 'done' })
    expect(rounds.effects).toEqual(['before', 'after', 'after'])
    expect(keys[1]).toBe(keys[2])
    expect(keys[0]).not.toBe(keys[1])
  })
})

describe('rule 10: no io inside a step', () => {
  const calls = [
    { call: 'an ask', make: (io: Io) => io.ask('inner', 'A?', NUMBER) },
    { call: 'a step', make: (io: Io) => io.step('inner', () => 1) },
    { call: 'a scope', make: (io: Io) => io.scope('inner', () => 1) },
    { call: 'a yield', make: (io: Io) => io.yield() },
    { call: 'an event', make: (io: Io) => io.event('inner', NUMBER).token },
  ]

  test.each(calls)('$call made at once inside a step fails the pass, strict or not', async ({ make }) => {
    for (const strict of [true, false]) {
      const outcome = await new Rounds({ task: 'always' }).next(
        (io) => io.step<unknown>('outer', () => make(io)),
        undefined,
        { strict },
      )
      expect(outcome).toMatchObject({
        error: { code: 'NESTED_CALL', message: expect.stringContaining('inside the step "outer"') },
      })
    }
  })

  test.each(calls)('$call made later inside a step fails a strict pass', async ({ make }) => {
    const outcome = await new Rounds({ task: 'always' }).next((io) =>
      io.step<unknown>('outer', async () => {
        await microtasks()
        return make(io)
      }),
    )
    expect(outcome).toMatchObject({ error: { code: 'NESTED_CALL' } })
  })

  test('a call beside a running step is not inside it', async () => {
    const outcome = await new Rounds().next((io) =>
      Promise.all([
        io.step('slow', async () => {
          await microtasks()
          return 1
        }),
        microtasks().then(() => io.step('beside', () => 2)),
      ]),
    )
    expect(outcome).toEqual({ kind: 'done', value: [1, 2] })
  })

  test('what settles nothing may be used inside a step', async () => {
    const outcome = await new Rounds().next((io) =>
      io.step('outer', async () => {
        await microtasks()
        return [typeof io.now(), typeof io.random('r'), typeof io.uuid('u'), io.can('roots'), io.revision]
      }),
    )
    expect(outcome).toEqual({ kind: 'done', value: ['number', 'number', 'string', true, '2026-07-28'] })
  })
})

describe('rule 12: past the size limit no further step starts', () => {
  const limits = { journalBytes: 200, passMs: 1_000 }

  test('the pass fails before the next step, and names the largest entries', async () => {
    const rounds = new Rounds()
    const outcome = await rounds.next(
      async (io) => {
        await io.step('small', () => 1)
        await io.step('large', () => 'x'.repeat(300))
        await io.step('next', () => 2)
      },
      undefined,
      { limits },
    )
    expect(outcome).toMatchObject({
      error: {
        code: 'JOURNAL_TOO_LARGE',
        message: expect.stringMatching(/limit is 200\..*"large" \(3\d\d bytes\), "small"/),
      },
    })
    expect(rounds.effects).toEqual(['small', 'large'])
  })

  test('it fails instead of being suspended', async () => {
    const outcome = await new Rounds().next(
      async (io) => {
        await io.step('large', () => 'x'.repeat(300))
        await io.ask('a', 'A?', NUMBER)
      },
      undefined,
      { limits },
    )
    expect(outcome).toMatchObject({ error: { code: 'JOURNAL_TOO_LARGE' } })
  })

  test('a handler that needs no further round may end with a journal of any size', async () => {
    const outcome = await new Rounds().next((io) => io.step('large', () => 'x'.repeat(300)), undefined, { limits })
    expect(outcome).toMatchObject({ kind: 'done' })
  })

  test('what a scope drops does not count', async () => {
    const rounds = new Rounds()
    const outcome = await rounds.next(
      async (io) => {
        for (let i = 0; i < 5; i += 1) {
          await io.scope(`s[${i}]`, async (inner) => {
            await inner.step('large', () => 'x'.repeat(100))
          })
        }
      },
      undefined,
      { limits },
    )
    expect(outcome).toMatchObject({ kind: 'done' })
  })
})

describe('unhandled rejections', () => {
  const unhandled = vi.fn<() => void>()
  beforeEach(() => void process.on('unhandledRejection', unhandled))
  afterEach(() => void process.off('unhandledRejection', unhandled))

  test.each([
    {
      name: 'a failed step that nobody looks at',
      fail: (io: Io) => io.step('s', () => Promise.reject(new Error('no'))),
    },
    {
      name: 'a failed scope that nobody looks at',
      fail: (io: Io) => io.scope('s', () => Promise.reject(new Error('no'))),
    },
    { name: 'a decline that nobody looks at', fail: (io: Io) => io.ask('s', 'S?', NUMBER) },
  ])('$name raises none, live or replayed', async ({ fail }) => {
    const rounds = new Rounds()
    const handler = (io: Io): Promise<unknown> => {
      void fail(io)
      return io.ask('a', 'A?', NUMBER)
    }
    await rounds.next(handler)
    await microtasks()
    await rounds.next(handler, { s: { action: 'decline' } })
    await microtasks()
    await rounds.next(handler, { a: accept({ n: 1 }) })
    await microtasks()
    expect(unhandled).not.toHaveBeenCalled()
  })

  test('a failure that is caught only after others have settled raises none, live or replayed', async () => {
    const rounds = new Rounds()
    await rounds.next(catchLate)
    await microtasks()
    expect(await rounds.next(catchLate, { a: accept({ n: 1 }) })).toEqual({ kind: 'done', value: 'caught' })
    await microtasks()
    expect(unhandled).not.toHaveBeenCalled()
  })

  test('a step that fails after its pass has ended raises none', async () => {
    const late = Promise.reject(new Error('late'))
    late.catch(() => {})
    await new Rounds().next((io) => {
      void io.step('s', () => microtasks().then(() => late))
      return 'done'
    })
    await microtasks()
    await microtasks()
    expect(unhandled).not.toHaveBeenCalled()
  })
})

async function failAndAsk(io: Io): Promise<string> {
  const got = await io.step('s', () => Promise.reject(new Error('no'))).catch((error: Error) => error.message)
  await io.ask('a', 'A?', NUMBER)
  return got
}

async function catchLate(io: Io): Promise<unknown> {
  const failing = io.step('s', () => Promise.reject(new Error('no')))
  for (let i = 0; i < 5; i += 1) await io.step(`t[${i}]`, () => i)
  await io.ask('a', 'A?', NUMBER)
  return failing.catch(() => 'caught')
}
