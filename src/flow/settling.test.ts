import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { accept } from '../testing.ts'
import { gate, ManualScheduler, microtasks } from '../testing/manual-scheduler.ts'
import { Rounds } from '../testing/rounds.ts'
import type { Io } from './io.ts'
import type { TraceEvent } from './carrier.ts'

const NUMBER = z.object({ n: z.number() })

describe('rule 7: settlements happen one at a time', () => {
  test('between two of them every microtask runs, live and replayed', async () => {
    const rounds = new Rounds()
    let log: string[] = []
    const handler = async (io: Io): Promise<unknown> => {
      const follow = async (key: string): Promise<void> => {
        await io.step(key, () => key)
        for (let hop = 0; hop < 20; hop += 1) await Promise.resolve()
        log.push(`${key} followed`)
      }
      await Promise.all(['a', 'b', 'c'].map(follow))
      return io.ask('last', 'Last?', NUMBER)
    }
    const trace = (event: TraceEvent): void => {
      if (event.type === 'settle') log.push(`${event.key} settled`)
    }
    const oneByOne = ['a', 'b', 'c'].flatMap((key) => [`${key} settled`, `${key} followed`])
    await rounds.next(handler, undefined, { trace })
    expect(log).toEqual(oneByOne)
    log = []
    await rounds.next(handler, undefined, { trace })
    expect(log).toEqual(oneByOne)
  })

  test('a call made because of a settlement comes before the next settlement', async () => {
    const rounds = new Rounds()
    await rounds.next((io) =>
      Promise.all(['a', 'b'].map((key) => io.step(key, () => 1).then(() => io.step(`after-${key}`, () => 2)))),
    )
    expect(told(rounds.passes[0])).toEqual(['+a', '+b', '=a', '+after-a', '=b', '+after-b', '=after-a', '=after-b'])
  })

  test('what is new settles first come first served, whatever the order of the calls', async () => {
    const rounds = new Rounds()
    const [first, second] = [gate(), gate()]
    const outcome = rounds.next((io) =>
      Promise.all([io.step('a', () => second.promise), io.step('b', () => first.promise)]),
    )
    first.open()
    await microtasks()
    second.open()
    await outcome
    expect(keysOf(rounds.journal)).toEqual(['b', 'a'])
  })

  test('the journal settles first, in its order, and what is new waits for it', async () => {
    const rounds = new Rounds()
    await rounds.next(askThree)
    await rounds.next(askThree, { c: accept({ n: 3 }) })
    await rounds.next(askThree, { a: accept({ n: 1 }) })
    await rounds.next((io) =>
      Promise.all([io.step('new', () => 0).then(() => io.ask('last', 'Last?', NUMBER)), askThree(io)]),
    )
    expect(told(rounds.passes.at(-1)).filter((event) => event.startsWith('='))).toEqual(['=c', '=a', '=new'])
  })

  test('Promise.race sees on replay what it saw live', async () => {
    const rounds = new Rounds()
    await rounds.next(raceAsks)
    await rounds.next(raceAsks, { quick: accept({ n: 1 }) })
    await rounds.next(raceAsks, { slow: accept({ n: 1 }) })
    expect(await rounds.next(raceAsks, { sure: accept({ n: 9 }) })).toEqual({ kind: 'done', value: ['quick', 9] })
  })

  test('Promise.all sees on replay the failure it saw first', async () => {
    const rounds = new Rounds()
    const later = gate()
    const handler = async (io: Io): Promise<unknown> => {
      const failed = await Promise.all([
        io.step('late', () => later.promise.then(() => Promise.reject(new Error('late')))),
        io.step('early', () => Promise.reject(new Error('early'))),
      ]).catch((error: Error) => error.message)
      await io.step('wait', () => later.open())
      await io.confirm('sure', `After ${String(failed)}?`)
      return failed
    }
    await rounds.next(handler)
    await microtasks()
    const sure = { sure: accept({ confirm: true }) }
    expect(await rounds.next(handler, sure)).toEqual({ kind: 'done', value: 'early' })
    expect(rounds.effects).toEqual(['late', 'early', 'wait'])
  })
})

describe('rule 7: a journal entry that nobody asks for any more', () => {
  test('is skipped and logged, and the flow goes on without it', async () => {
    const rounds = new Rounds()
    await rounds.next((io) => stepsThenAsk(io, ['old', 'kept']))
    const outcome = await rounds.next((io) => stepsThenAsk(io, ['kept']), { a: accept({ n: 1 }) })
    expect(outcome).toMatchObject({ kind: 'done' })
    expect(rounds.effects).toEqual(['old', 'kept'])
    expect(rounds.warnings).toEqual([
      `Tool "handler": the handler did not call "old", which is in the journal. The flow continues without it.`,
    ])
  })

  test('is waited for as long as the handler is busy with something of its own', async () => {
    const manual = new ManualScheduler()
    const rounds = new Rounds()
    const busy = gate()
    await rounds.next((io) => stepsThenAsk(io, ['s', 't']))
    const outcome = rounds.next(
      async (io) => {
        await io.step('s', () => 's')
        await busy.promise
        await stepsThenAsk(io, ['t'])
      },
      { a: accept({ n: 1 }) },
      { scheduler: manual },
    )
    for (let turns = 0; turns < 3; turns += 1) await manual.passTurn()
    busy.open()
    await manual.settle()
    expect(await outcome).toMatchObject({ kind: 'done' })
    expect(rounds.warnings).toEqual([])
  })

  test('is waited for one turn while others wait, and no longer', async () => {
    const manual = new ManualScheduler()
    const rounds = new Rounds()
    await rounds.next((io) => stepsThenAsk(io, ['old', 'kept']))
    const outcome = rounds.next((io) => stepsThenAsk(io, ['kept']), undefined, { scheduler: manual })
    await manual.settle()
    expect(rounds.warnings).toEqual([])
    expect(told(rounds.passes[1])).toEqual(['+kept'])
    await manual.passTurn()
    expect(rounds.warnings).toHaveLength(1)
    expect(told(rounds.passes[1])).toEqual(['+kept', '=kept', '+a'])
    await manual.passTurn()
    expect(await outcome).toMatchObject({ kind: 'asks' })
  })

  test.each([
    { kind: 'step', make: (io: Io) => io.step('s', () => 'done') },
    { kind: 'scope', make: (io: Io) => io.scope('s', (inner) => inner.step('t', () => 'done')) },
    { kind: 'ask', make: (io: Io) => io.ask('s', 'S?', NUMBER) },
  ])('settles a late $kind from the journal, and does nothing again', async ({ make }) => {
    const rounds = new Rounds()
    const early = async (io: Io): Promise<void> => {
      await make(io)
      await io.ask('b', 'B?', NUMBER)
    }
    await rounds.next(early)
    await rounds.next(early, { s: accept({ n: 5 }) })
    const before = rounds.effects.length
    await rounds.next((io) => late(io, make))
    expect(rounds.effects.slice(before)).toEqual(['new'])
    expect(rounds.warnings).toHaveLength(1)
    // It has moved to where it settled: the next pass sees the same without a warning.
    const outcome = await rounds.next((io) => late(io, make), { b: accept({ n: 1 }) })
    expect(outcome).toMatchObject({ kind: 'done' })
    expect(rounds.warnings).toHaveLength(1)
    expect(rounds.effects.slice(before)).toEqual(['new'])
  })

  test('moves to where it settled, so that a race after a deploy is decided the same again', async () => {
    const rounds = new Rounds()
    await rounds.next((io) => stepsThenAsk(io, ['late']))
    const second = gate()
    const handler = async (io: Io): Promise<string> => {
      const winner = await Promise.race([
        io
          .step('first', () => microtasks().then(microtasks))
          .then(() => io.step('late', () => 1))
          .then(() => 'late'),
        io.step('second', () => second.promise).then(() => 'second'),
      ])
      second.open()
      await io.confirm('sure', `Is it ${winner}?`)
      return winner
    }
    expect(await rounds.next(handler)).toMatchObject({ kind: 'asks' })
    expect(keysOf(rounds.journal)).toEqual(['first', 'late', 'second'])
    const outcome = await rounds.next(handler, { sure: accept({ confirm: true }) })
    expect(outcome).toEqual({ kind: 'done', value: 'late' })
    expect(rounds.effects).toEqual(['late', 'first', 'second'])
  })

  test('gives its place up when its question has changed, and the entries after it still settle', async () => {
    const rounds = new Rounds()
    await rounds.next(askThree)
    await rounds.next(askThree, { a: accept({ n: 1 }), b: accept({ n: 2 }) })
    await rounds.next((io) => Promise.all([askThree(io), io.ask('d', 'd?', NUMBER)]), { c: accept({ n: 3 }) })
    const seen: unknown[] = []
    // "b" is asked for at once, "a" (in other words) only when "b" has settled, and "c" with it.
    const outcome = await rounds.next(async (io) => {
      await io.ask('b', 'b?', NUMBER)
      const a = io.ask('a', 'A, in other words?', NUMBER)
      return Promise.all([a, io.ask('c', 'c?', NUMBER).then((c) => seen.push(c))])
    })
    expect(outcome).toMatchObject({ kind: 'asks' })
    expect(outcome.kind === 'asks' && [...outcome.questions.keys()]).toEqual(['a'])
    expect(seen).toEqual([{ n: 3 }])
    expect(keysOf(rounds.journal)).toEqual(['b', 'c'])
  })
})

function askThree(io: Io): Promise<unknown> {
  return Promise.all(['a', 'b', 'c'].map((key) => io.ask(key, `${key}?`, NUMBER)))
}

async function raceAsks(io: Io): Promise<unknown> {
  const winner = await Promise.race([
    io.ask('slow', 'Slow?', NUMBER).then(() => 'slow'),
    io.ask('quick', 'Quick?', NUMBER).then(() => 'quick'),
  ])
  const { n } = await io.ask('sure', `Is it ${winner}?`, NUMBER)
  return [winner, n]
}

async function stepsThenAsk(io: Io, keys: string[]): Promise<void> {
  for (const key of keys) await io.step(key, () => key)
  await io.ask('a', 'A?', NUMBER)
}

/** Makes the call only after a new step has taken some turns. */
async function late(io: Io, make: (io: Io) => Promise<unknown>): Promise<unknown> {
  await io.step('new', () => microtasks().then(microtasks))
  const value = await make(io)
  await io.ask('b', 'B?', NUMBER)
  return value
}

/** `+key` for a call, `=key` for a settlement. */
function told(trace: readonly TraceEvent[] = []): string[] {
  return trace.map(({ type, key }) => `${type === 'call' ? '+' : '='}${key}`)
}

function keysOf(journal: string): unknown[] {
  return (JSON.parse(journal) as unknown[]).filter((_, index) => index % 4 === 1)
}
