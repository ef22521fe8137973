// What an interruption does to a pass: whatever is recorded, or answered, is handed over, and the rest runs again.
import { describe, expect, test, vi } from 'vitest'
import { z } from 'zod'
import { elicit, inputRequired } from '../../src/flow/by-hand.ts'
import { FlowError } from '../../src/flow/errors.ts'
import type { Io } from '../../src/flow/io.ts'
import type { Outcome } from '../../src/flow/carrier.ts'
import type { Pass } from '../../src/flow/pass.ts'
import { Underway } from '../../src/flow/underway.ts'
import { gate, microtasks } from '../../src/testing/manual-scheduler.ts'
import type { Run, Sent } from '../../src/testing/rounds.ts'
import { Rounds } from '../../src/testing/rounds.ts'
import { accept } from '../../src/testing.ts'

const NUMBER = z.object({ n: z.number() })

/** A flow whose passes can be interrupted. */
class Interruptible {
  readonly rounds = new Rounds()
  readonly underway = new Underway<Pass>()

  next(run: Run, sent?: Sent): Promise<Outcome> {
    return this.rounds.next(run, sent, { underway: this.underway })
  }

  interrupt(): void {
    for (const pass of this.underway.all()) pass.interrupt()
  }

  /** Runs a round and interrupts it as soon as this has happened. */
  async interrupted(after: Promise<unknown>, run: Run, sent?: Sent): Promise<Outcome> {
    const outcome = this.next(run, sent)
    await after
    this.interrupt()
    return outcome
  }
}

describe('an interruption while a step runs', () => {
  test('hands over what is recorded; only that step runs again, under the same idempotency key', async () => {
    const flow = new Interruptible()
    const reached = gate()
    const idempotencyKeys: string[] = []
    let hangs = true
    const handler = async (io: Io): Promise<number> => {
      const one = await io.step('one', () => 1)
      const two = await io.step('two', async ({ idempotencyKey }) => {
        idempotencyKeys.push(idempotencyKey)
        reached.open()
        return hangs ? new Promise<number>(() => {}) : 2
      })
      return one + two
    }
    expect(await flow.interrupted(reached.promise, handler)).toMatchObject({ kind: 'deferred' })
    hangs = false
    expect(await flow.next(handler)).toEqual({ kind: 'done', value: 3 })
    expect(flow.rounds.effects).toEqual(['one', 'two', 'two'])
    expect(new Set(idempotencyKeys).size).toBe(1)
    expect(idempotencyKeys).toHaveLength(2)
  })

  test('aborts its signal once the pass is over, so that the failure it ends with is not recorded', async () => {
    const flow = new Interruptible()
    const reached = gate()
    const aborted = vi.fn<() => void>()
    let ready = false
    const handler = (io: Io): Promise<string> =>
      io.step('s', ({ signal }) => {
        if (ready) return 'done'
        reached.open()
        return new Promise<string>((_resolve, reject) => {
          signal.addEventListener('abort', () => {
            aborted()
            reject(new Error('aborted'))
          })
        })
      })
    expect(await flow.interrupted(reached.promise, handler)).toMatchObject({ kind: 'deferred' })
    expect(aborted).toHaveBeenCalledOnce()
    await microtasks()
    expect(flow.rounds.journal).toBe('[]')
    ready = true
    expect(await flow.next(handler)).toEqual({ kind: 'done', value: 'done' })
  })

  test('gives an aborted signal to a step that looks at it only then', async () => {
    const flow = new Interruptible()
    const reached = gate()
    const goOn = gate()
    const seen = gate<boolean>()
    await flow.interrupted(reached.promise, (io) =>
      io.step('s', async (context) => {
        reached.open()
        await goOn.promise
        seen.open(context.signal.aborted)
      }),
    )
    goOn.open()
    expect(await seen.promise).toBe(true)
  })

  test('cleans up, and begins no further step', async () => {
    const flow = new Interruptible()
    const reached = gate()
    const cleanUp = vi.fn<() => void>()
    await flow.interrupted(reached.promise, async (io) => {
      io.onSuspend(cleanUp)
      await Promise.all([
        io.step('hangs', () => new Promise(() => {})),
        io.step('quick', () => reached.open()).then(() => io.step('next', () => {})),
      ])
    })
    expect(cleanUp).toHaveBeenCalledOnce()
    expect(flow.rounds.effects).toEqual(['hangs', 'quick'])
    expect(flow.underway.all()).toEqual([])
  })

  test('loses no step that is done but not yet delivered', async () => {
    const flow = new Interruptible()
    let hangs = true
    const handler = (io: Io): Promise<number[]> =>
      Promise.all([
        io.step('a', () => 1),
        io.step('b', () => 2),
        io.step('hangs', () => (hangs ? new Promise<number>(() => {}) : 3)),
        io.step('c', () => 4),
      ])
    const outcome = flow.next(handler)
    // Nothing has been settled so far: that takes a turn.
    flow.interrupt()
    expect(await outcome).toMatchObject({ kind: 'deferred' })
    hangs = false
    expect(await flow.next(handler)).toEqual({ kind: 'done', value: [1, 2, 3, 4] })
    expect(flow.rounds.effects).toEqual(['a', 'b', 'hangs', 'c', 'hangs'])
  })

  test('loses no new step that is done before the journal was replayed to its end', async () => {
    const flow = new Interruptible()
    let isLater = false
    let hangs = false
    const handler = async (io: Io): Promise<unknown> =>
      Promise.all([
        isLater ? io.step('new', () => 'new') : undefined,
        (async () => {
          if (hangs) await new Promise(() => {})
          return io.step('old', () => 'old')
        })(),
        io.ask('a', 'A?', NUMBER),
      ])
    await flow.next(handler)
    ;[isLater, hangs] = [true, true]
    const outcome = flow.next(handler)
    flow.interrupt()
    expect(await outcome).toMatchObject({ kind: 'asks' })
    hangs = false
    const last = await flow.next(handler, { a: accept({ n: 1 }) })
    expect(last).toEqual({ kind: 'done', value: ['new', 'old', { n: 1 }] })
    expect(flow.rounds.effects).toEqual(['old', 'new'])
  })

  test('lets the handler win that comes to its end with what was left to deliver', async () => {
    const flow = new Interruptible()
    const outcome = flow.next(async (io) => (await io.step('a', () => 1)) + 1)
    flow.interrupt()
    expect(await outcome).toEqual({ kind: 'done', value: 2 })
  })

  test('shows an open question, and runs the step beside it again', async () => {
    const flow = new Interruptible()
    const reached = gate()
    let hangs = true
    const handler = (io: Io): Promise<unknown> =>
      Promise.all([
        io.ask('a', 'A?', NUMBER),
        io.step('s', () => {
          reached.open()
          return hangs ? new Promise<string>(() => {}) : 'done'
        }),
      ])
    const outcome = await flow.interrupted(reached.promise, handler)
    expect(outcome.kind === 'asks' && [...outcome.questions.keys()]).toEqual(['a'])
    hangs = false
    expect(await flow.next(handler, { a: accept({ n: 1 }) })).toEqual({ kind: 'done', value: [{ n: 1 }, 'done'] })
  })
})

describe('an interruption while the handler does something of its own', () => {
  test('between two io calls hands over what is recorded', async () => {
    const flow = new Interruptible()
    const reached = gate()
    let hangs = true
    const handler = async (io: Io): Promise<number> => {
      const one = await io.step('one', () => 1)
      reached.open()
      if (hangs) await new Promise(() => {})
      return one + (await io.step('two', () => 2))
    }
    expect(await flow.interrupted(reached.promise, handler)).toMatchObject({ kind: 'deferred' })
    hangs = false
    expect(await flow.next(handler)).toEqual({ kind: 'done', value: 3 })
    expect(flow.rounds.effects).toEqual(['one', 'two'])
  })

  test.each([
    { where: 'before the first io call', before: [], after: ['one', 'two'] },
    { where: 'in the middle', before: ['one'], after: ['two'] },
    { where: 'at the end', before: ['one', 'two'], after: [] },
  ])('of a replay, $where, keeps the journal and the answers that came with the round', async ({ before, after }) => {
    const flow = new Interruptible()
    const reached = gate()
    let hangs = false
    const handler = async (io: Io): Promise<unknown> => {
      const values: unknown[] = []
      for (const key of before) values.push(await io.step(key, () => key))
      if (hangs) {
        reached.open()
        await new Promise(() => {})
      }
      for (const key of after) values.push(await io.step(key, () => key))
      const { n } = await io.ask('n', 'N?', NUMBER)
      return [...values, n]
    }
    expect(await flow.next(handler)).toMatchObject({ kind: 'asks' })
    const { journal } = flow.rounds
    hangs = true
    const interrupted = await flow.interrupted(reached.promise, handler, { n: accept({ n: 7 }) })
    expect(interrupted).toMatchObject({ kind: 'deferred' })
    expect(flow.rounds.journal).toBe(journal)
    hangs = false
    expect(await flow.next(handler)).toEqual({ kind: 'done', value: ['one', 'two', 7] })
    expect(flow.rounds.effects).toEqual(['one', 'two'])
  })

  test('fails a handler that never used io: it cannot know that it may be run again', async () => {
    const flow = new Interruptible()
    const reached = gate()
    let signal: AbortSignal | undefined
    const outcome = await flow.interrupted(reached.promise, async (io) => {
      ;({ signal } = io)
      reached.open()
      await new Promise(() => {})
    })
    expect(failureOf(outcome)).toMatchObject({ code: 'INTERRUPTED' })
    expect(signal?.aborted).toBe(true)
  })

  test('does nothing to a pass that is over', async () => {
    const flow = new Interruptible()
    const outcome = flow.next((io) => io.step('s', () => 1))
    const passes = flow.underway.all()
    expect(await outcome).toEqual({ kind: 'done', value: 1 })
    expect(flow.underway.all()).toEqual([])
    expect(passes).toHaveLength(1)
    for (const pass of passes) pass.interrupt()
    expect(passes[0]?.interrupted).toBe(false)
  })
})

describe('an interruption while an answer is read', () => {
  test('keeps the answer whose validation is under way: it is not asked again', async () => {
    const flow = new Interruptible()
    const reached = gate()
    const validated = gate()
    const slowly = NUMBER.refine(async () => {
      reached.open()
      await validated.promise
      return true
    })
    const handler = async (io: Io): Promise<number> => (await io.ask('n', 'N?', slowly)).n
    expect(await flow.next(handler)).toMatchObject({ kind: 'asks' })
    const outcome = await flow.interrupted(reached.promise, handler, { n: accept({ n: 5 }) })
    expect(outcome).toMatchObject({ kind: 'deferred' })
    validated.open()
    expect(await flow.next(handler)).toEqual({ kind: 'done', value: 5 })
  })

  test('keeps the consent to a visit that is waited for', async () => {
    const flow = new Interruptible()
    const reached = gate()
    let isDone = false
    const handler = async (io: Io): Promise<string> => {
      await io.visit('page', 'Please sign in.', 'https://example.com/', {
        done: () => {
          reached.open()
          return isDone
        },
        waitMs: 600_000,
      })
      return 'Signed in.'
    }
    expect(await flow.next(handler)).toMatchObject({ kind: 'asks' })
    const outcome = await flow.interrupted(reached.promise, handler, { page: { action: 'accept' } })
    expect(outcome).toMatchObject({ kind: 'deferred' })
    isDone = true
    expect(await flow.next(handler)).toEqual({ kind: 'done', value: 'Signed in.' })
  })

  test('drops it with its scope, once that is over', async () => {
    const flow = new Interruptible()
    const reached = gate()
    const slowly = NUMBER.refine(async () => {
      reached.open()
      return new Promise<boolean>(() => {})
    })
    let isLater = false
    const handler = async (io: Io): Promise<unknown> => {
      const first = await io.scope('group', (inner) =>
        Promise.race([inner.ask('n', 'N?', slowly), inner.step('s', () => 'the step')]),
      )
      if (!isLater) await new Promise(() => {})
      return first
    }
    const outcome = flow.next(handler, { 'group>n': accept({ n: 5 }) })
    await reached.promise
    await microtasks()
    flow.interrupt()
    const deferred = await outcome
    expect(deferred.kind === 'deferred' && deferred.flowState.held.size).toBe(0)
    isLater = true
    expect(await flow.next(handler)).toEqual({ kind: 'done', value: 'the step' })
  })
})

describe('an interruption of rounds taken by hand', () => {
  test('fails one that uses no io, whose round the client may repeat as it is', async () => {
    const flow = new Interruptible()
    const reached = gate()
    let hangs = true
    const handler = async (io: Io): Promise<unknown> => {
      const answer = io.responses.accepted('n', NUMBER)
      if (answer === undefined) return askByHand()
      reached.open()
      if (hangs) await new Promise(() => {})
      return [answer.n, io.responses.state()]
    }
    expect(await flow.next(handler)).toMatchObject({ kind: 'asks' })
    const outcome = await flow.interrupted(reached.promise, handler, { n: accept({ n: 1 }) })
    expect(failureOf(outcome)).toMatchObject({ code: 'INTERRUPTED' })
    hangs = false
    expect(await flow.next(handler, { n: accept({ n: 1 }) })).toEqual({ kind: 'done', value: [1, { asked: true }] })
  })

  test('keeps state and answers of one that uses steps', async () => {
    const flow = new Interruptible()
    const reached = gate()
    let hangs = true
    const handler = async (io: Io): Promise<unknown> => {
      const answer = io.responses.accepted('n', NUMBER)
      if (answer === undefined) return askByHand()
      const step = await io.step('s', () => 's')
      reached.open()
      if (hangs) await new Promise(() => {})
      return [answer.n, io.responses.state(), step]
    }
    expect(await flow.next(handler)).toMatchObject({ kind: 'asks' })
    const outcome = await flow.interrupted(reached.promise, handler, { n: accept({ n: 1 }) })
    expect(outcome).toMatchObject({ kind: 'deferred' })
    hangs = false
    expect(await flow.next(handler)).toEqual({ kind: 'done', value: [1, { asked: true }, 's'] })
    expect(flow.rounds.effects).toEqual(['s'])
  })
})

function askByHand(): unknown {
  return inputRequired({ inputRequests: { n: elicit('N?', NUMBER) }, state: { asked: true } })
}

function failureOf(outcome: Outcome): FlowError {
  if (outcome.kind === 'failed' && outcome.error instanceof FlowError) return outcome.error
  throw new Error(`This should have failed: ${outcome.kind}`)
}
