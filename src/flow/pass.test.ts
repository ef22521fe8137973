import { describe, expect, test, vi } from 'vitest'
import { z } from 'zod'
import { accept } from '../testing.ts'
import { gate, ManualScheduler, microtasks } from '../testing/manual-scheduler.ts'
import { Rounds } from '../testing/rounds.ts'
import { Cancel } from '../protocol/cancel.ts'
import type { Io } from './io.ts'
import type { Outcome } from './carrier.ts'

const NUMBER = z.object({ n: z.number() })

describe('rule 1: a question suspends by a promise that never settles', () => {
  test('try and catch around an ask do not swallow the question', async () => {
    const rounds = new Rounds()
    expect(await rounds.next(askAndCatch)).toMatchObject({ kind: 'asks' })
    expect(await rounds.next(askAndCatch, { a: accept({ n: 1 }) })).toEqual({ kind: 'done', value: { n: 1 } })
  })

  test('finally around an ask runs once, when the handler goes past it, and never in the middle of the call', async () => {
    const rounds = new Rounds()
    const log: string[] = []
    const handler = async (io: Io): Promise<void> => {
      try {
        await io.ask('a', 'A?', NUMBER)
        log.push('answered')
        await io.ask('b', 'B?', NUMBER)
      } finally {
        log.push('finally')
      }
    }
    await rounds.next(handler)
    await microtasks()
    expect(log).toEqual([])
    await rounds.next(handler, { a: accept({ n: 1 }) })
    await microtasks()
    expect(log).toEqual(['answered'])
    await rounds.next(handler, { b: accept({ n: 1 }) })
    expect(log).toEqual(['answered', 'answered', 'finally'])
  })
})

describe('rule 2: a pass ends when nothing is left to do but to wait for the client', () => {
  test('asks made together travel in one round', async () => {
    const outcome = await new Rounds().next((io) =>
      Promise.all([
        io.ask('a', 'A?', NUMBER),
        io.step('s', () => 1).then((n) => io.ask('b', `B after ${n}?`, NUMBER)),
        io.scope('c', (inner) => inner.ask('d', 'D?', NUMBER)),
      ]),
    )
    expect(keysOf(outcome)).toEqual(['a', 'c>d', 'b'])
  })

  test('an io call within the turn keeps the pass going for another one', async () => {
    const manual = new ManualScheduler()
    const rounds = new Rounds()
    const work = gate()
    const ended = vi.fn<() => void>()
    const outcome = rounds.next(
      (io) => Promise.all([io.ask('a', 'A?', NUMBER), work.promise.then(() => io.ask('b', 'B?', NUMBER))]),
      undefined,
      { scheduler: manual },
    )
    void outcome.then(ended)
    await manual.settle()
    expect(manual.awaitsTurn).toBe(true)
    work.open()
    await manual.settle()
    await manual.passTurn()
    expect(ended).not.toHaveBeenCalled()
    await manual.passTurn()
    expect(keysOf(await outcome)).toEqual(['a', 'b'])
  })

  test('a pass does not end while a step runs, though an ask is open', async () => {
    const manual = new ManualScheduler()
    const work = gate<number>()
    const outcome = new Rounds().next(
      (io) =>
        Promise.all([
          io.ask('a', 'A?', NUMBER),
          io.step('s', () => work.promise).then((n) => io.ask('b', `B after ${n}?`, NUMBER)),
        ]),
      undefined,
      { scheduler: manual },
    )
    await manual.passTurn()
    expect(manual.awaitsTurn).toBe(false)
    work.open(7)
    await manual.passTurn()
    await manual.passTurn()
    expect(keysOf(await outcome)).toEqual(['a', 'b'])
  })

  test('a pass does not end while an answer is being validated', async () => {
    const manual = new ManualScheduler()
    const work = gate<boolean>()
    const rounds = new Rounds()
    const handler = (io: Io): Promise<unknown> =>
      Promise.all([
        io.ask(
          'a',
          'A?',
          NUMBER.refine(() => work.promise),
        ),
        io.ask('b', 'B?', NUMBER),
      ])
    await rounds.next(handler)
    const outcome = rounds.next(handler, { a: accept({ n: 1 }) }, { scheduler: manual })
    await manual.passTurn()
    expect(manual.awaitsTurn).toBe(false)
    work.open(true)
    await manual.passTurn()
    expect(keysOf(await outcome)).toEqual(['b'])
  })

  test('a pass does not end while something is left to settle, though an ask is open', async () => {
    const manual = new ManualScheduler()
    const ended = vi.fn<() => void>()
    const outcome = new Rounds().next(
      (io) => Promise.all([io.ask('a', 'A?', NUMBER), io.step('s', () => 1), io.step('t', () => 2)]),
      undefined,
      { scheduler: manual },
    )
    void outcome.then(ended)
    // Both steps are done, and one of them is settled.
    await manual.settleOne()
    expect(manual.awaitsTurn).toBe(false)
    await manual.settle()
    expect(manual.awaitsTurn).toBe(true)
    expect(ended).not.toHaveBeenCalled()
    await manual.passTurn()
    expect(keysOf(await outcome)).toEqual(['a'])
  })

  test('a pass does not end while no ask is open, however long its handler is busy with something of its own', async () => {
    const manual = new ManualScheduler()
    const work = gate()
    const ended = vi.fn<() => void>()
    const outcome = new Rounds().next(
      async (io) => {
        await io.step('s', () => 1)
        await work.promise
        return 'done'
      },
      undefined,
      { scheduler: manual },
    )
    void outcome.then(ended)
    for (let turns = 0; turns < 5; turns += 1) await manual.passTurn()
    expect(ended).not.toHaveBeenCalled()
    work.open()
    expect(await outcome).toEqual({ kind: 'done', value: 'done' })
  })

  test('plain I/O beside an open ask is abandoned, and done again by the next pass', async () => {
    const rounds = new Rounds()
    const begun: string[] = []
    const handler = async (io: Io): Promise<unknown> => {
      const asked = io.ask('a', 'A?', NUMBER)
      begun.push('fetched')
      await microtasks().then(microtasks).then(microtasks)
      return asked
    }
    expect(await rounds.next(handler)).toMatchObject({ kind: 'asks' })
    expect(await rounds.next(handler, { a: accept({ n: 1 }) })).toMatchObject({ kind: 'done' })
    expect(begun).toEqual(['fetched', 'fetched'])
  })

  test('cancelling ends the pass at once, aborts its signal and cleans up', async () => {
    const cancel = new Cancel()
    const cleanUp = vi.fn<() => void>()
    let signal: AbortSignal | undefined
    const outcome = new Rounds().next(
      (io) => {
        io.onSuspend(cleanUp)
        return io.step('s', (context) => {
          signal = context.signal
          return new Promise(() => {})
        })
      },
      undefined,
      { cancel },
    )
    expect(signal?.aborted).toBe(false)
    cancel.cancel()
    expect(await outcome).toEqual({ kind: 'cancelled' })
    expect(signal?.aborted).toBe(true)
    expect(cleanUp).toHaveBeenCalledOnce()
  })

  test('a pass that was cancelled before it began does not run the handler', async () => {
    const cancel = new Cancel()
    cancel.cancel()
    const handler = vi.fn<() => void>()
    expect(await new Rounds().next(handler, undefined, { cancel })).toEqual({ kind: 'cancelled' })
    expect(handler).not.toHaveBeenCalled()
  })

  test('cancelling after the pass has ended does nothing to it', async () => {
    const cancel = new Cancel()
    const cleanUp = vi.fn<() => void>()
    await new Rounds().next(
      (io) => {
        io.onSuspend(cleanUp)
        return io.ask('a', 'A?', NUMBER)
      },
      undefined,
      { cancel },
    )
    cancel.cancel()
    expect(cleanUp).toHaveBeenCalledOnce()
  })
})

describe('rule 3: what comes after the end', () => {
  test('io calls after the end never settle, do nothing, and are logged once', async () => {
    const rounds = new Rounds()
    const work = gate()
    const settled = vi.fn<() => void>()
    const late = async (io: Io): Promise<void> => {
      await work.promise
      for (const key of ['x', 'y']) io.step(key, settled).then(settled, settled)
      io.ask('z', 'Z?', NUMBER).then(settled, settled)
      io.scope('w', settled).then(settled, settled)
      io.yield().then(settled, settled)
    }
    await rounds.next((io) => {
      void late(io)
      return io.ask('a', 'A?', NUMBER)
    })
    work.open()
    await microtasks()
    expect(settled).not.toHaveBeenCalled()
    expect(rounds.warnings).toEqual([
      expect.stringMatching(
        /^Tool "handler": "x" was called after its pass ended\. The call never settles\. .* at .*pass\.test\.ts:\d+:\d+\.$/,
      ),
    ])
  })

  test('asks made together on a client that cannot be asked log nothing: the call fails, and says why', async () => {
    const rounds = new Rounds({ capabilities: [] })
    const outcome = await rounds.next((io) =>
      Promise.all([io.ask('a', 'A?', NUMBER), io.ask('b', 'B?', NUMBER), io.step('c', () => 1)]),
    )
    expect(outcome).toMatchObject({ kind: 'failed', error: { rpcCode: -32021 } })
    await microtasks()
    expect(rounds.warnings).toEqual([])
  })

  test('what the handler returns wins over what it left open, which is named in the log, once', async () => {
    const rounds = new Rounds()
    const outcome = await rounds.next((io) => {
      void io.ask('a', 'A?', NUMBER)
      void io.step('s', () => new Promise(() => {}))
      return 'done'
    })
    expect(outcome).toEqual({ kind: 'done', value: 'done' })
    expect(rounds.warnings).toEqual([
      expect.stringMatching(
        /^Tool "handler": the handler returned before "a", "s" settled\. The results are dropped\. Did you forget `await`\? /,
      ),
    ])
  })

  test.each([{ strict: true }, { strict: false }])(
    'a question, a sleep or a scope that has lost a race is not named there, and a step is (strict: $strict)',
    async ({ strict }) => {
      const rounds = new Rounds()
      const outcome = await rounds.next(
        (io) =>
          Promise.race([
            io.ask('a', 'A?', NUMBER),
            io.sleep('night', 3_600_000),
            io.scope('asks', (inner) => inner.ask('b', 'B?', NUMBER)),
            io.step('slow', () => new Promise(() => {})),
            io.step('fast', () => 'fast'),
          ]),
        undefined,
        { strict },
      )
      expect(outcome).toEqual({ kind: 'done', value: 'fast' })
      expect(rounds.warnings).toEqual([expect.stringContaining('the handler returned before "slow" settled.')])
    },
  )

  test('of many calls left open the log names the first five', async () => {
    const rounds = new Rounds()
    await rounds.next((io) => {
      for (let i = 0; i < 7; i += 1) void io.ask(`a[${i}]`, 'A?', NUMBER)
    })
    expect(rounds.warnings).toEqual([
      expect.stringContaining(
        'the handler returned before "a[0]", "a[1]", "a[2]", "a[3]", "a[4]" and 2 more settled. The results are dropped.',
      ),
    ])
  })

  test('a step that finishes after the end is neither recorded nor told', async () => {
    const rounds = new Rounds()
    const work = gate()
    const settled = vi.fn<() => void>()
    await rounds.next((io) => {
      io.step('s', () => work.promise).then(settled, settled)
      return 'done'
    })
    work.fail(new Error('too late'))
    await microtasks()
    expect(settled).not.toHaveBeenCalled()
    expect(rounds.journal).toBe('[]')
  })
})

describe('how a handler ends', () => {
  const boom = new Error('boom')
  test.each([
    { name: 'returns a value', handler: () => 1, outcome: { kind: 'done', value: 1 } },
    { name: 'returns nothing', handler: () => {}, outcome: { kind: 'done', value: undefined } },
    { name: 'gives a promise', handler: () => Promise.resolve(2), outcome: { kind: 'done', value: 2 } },
    {
      name: 'throws',
      handler: () => {
        throw boom
      },
      outcome: { kind: 'failed', error: boom },
    },
    { name: 'rejects', handler: () => Promise.reject(boom), outcome: { kind: 'failed', error: boom } },
  ])('a handler that $name', async ({ handler, outcome }) => {
    expect(await new Rounds().next(handler)).toEqual(outcome)
  })
})

async function askAndCatch(io: Io): Promise<unknown> {
  try {
    return await io.ask('a', 'A?', NUMBER)
  } catch {
    return 'caught'
  }
}

function keysOf(outcome: Outcome): string[] {
  return outcome.kind === 'asks' ? [...outcome.questions.keys()] : [outcome.kind]
}
