import { describe, expect, test, vi } from 'vitest'
import { z } from 'zod'
import { accept } from '../testing.ts'
import { gate, microtasks } from '../testing/manual-scheduler.ts'
import { Rounds } from '../testing/rounds.ts'
import type { Io } from './io.ts'

const NUMBER = z.object({ n: z.number() })
const wantsHandover = (): boolean => true

describe('a hand-over at a step boundary', () => {
  test('comes after at least one new entry, so that a flow always gets on', async () => {
    const rounds = new Rounds()
    const kinds: string[] = []
    for (let round = 0; round < 4; round += 1) {
      const { kind } = await rounds.next(threeSteps, undefined, { wantsHandover })
      kinds.push(kind)
      if (kind === 'done') break
    }
    expect(kinds).toEqual(['deferred', 'deferred', 'done'])
    expect(rounds.effects).toEqual(['s[0]', 's[1]', 's[2]'])
  })

  test('starts no new step, and lets those that run finish and be recorded', async () => {
    const rounds = new Rounds()
    const slow = gate<number>()
    let wanted = false
    const handler = (io: Io): Promise<unknown> =>
      Promise.all([
        io.step('slow', () => slow.promise).then((n) => io.step('after-slow', () => n + 1)),
        io
          .step('quick', () => 1)
          .then((n) => {
            wanted = true
            return io.step('after-quick', () => n + 1)
          }),
      ])
    const outcome = rounds.next(handler, undefined, { wantsHandover: () => wanted })
    await microtasks()
    slow.open(5)
    expect(await outcome).toMatchObject({ kind: 'deferred' })
    expect(rounds.effects).toEqual(['slow', 'quick'])
    expect(await rounds.next(handler)).toEqual({ kind: 'done', value: [6, 2] })
    expect(rounds.effects).toEqual(['slow', 'quick', 'after-quick', 'after-slow'])
  })

  test('gives way to a question that is open', async () => {
    const rounds = new Rounds()
    expect(await rounds.next(askBesideSteps, undefined, { wantsHandover })).toMatchObject({ kind: 'asks' })
    expect(rounds.effects).toEqual(['s'])
    const outcome = await rounds.next(askBesideSteps, { a: accept({ n: 1 }) })
    expect(outcome).toEqual({ kind: 'done', value: [{ n: 1 }, 2] })
  })

  test('does not come where the handler needs no further step', async () => {
    const outcome = await new Rounds().next((io) => io.step('s', () => 1), undefined, { wantsHandover })
    expect(outcome).toEqual({ kind: 'done', value: 1 })
  })

  test('cleans up, and does not abort the signal', async () => {
    const cleanUp = vi.fn<() => void>()
    let signal: AbortSignal | undefined
    const outcome = await new Rounds().next(
      async (io) => {
        io.onSuspend(cleanUp)
        ;({ signal } = io)
        await io.step('s', () => 1)
        await io.step('t', () => 2)
      },
      undefined,
      { wantsHandover },
    )
    expect(outcome).toMatchObject({ kind: 'deferred' })
    expect(cleanUp).toHaveBeenCalledOnce()
    expect(signal?.aborted).toBe(false)
  })

  test('holds answers that came with the round for questions the pass did not reach', async () => {
    const rounds = new Rounds()
    let deployed = false
    const handler = async (io: Io): Promise<unknown> => {
      if (deployed) for (const key of ['s', 't']) await io.step(key, () => key)
      return io.ask('a', 'A?', NUMBER)
    }
    await rounds.next(handler)
    deployed = true
    const outcome = await rounds.next(handler, { a: accept({ n: 1 }) }, { wantsHandover })
    expect(outcome).toMatchObject({ kind: 'deferred' })
    expect(await rounds.next(handler)).toEqual({ kind: 'done', value: { n: 1 } })
  })
})

describe('a hand-over at io.yield', () => {
  test('is where the author says it does no harm', async () => {
    const rounds = new Rounds()
    const log: string[] = []
    const handler = async (io: Io): Promise<string> => {
      await io.yield()
      log.push('begun')
      await io.step('s', () => 1)
      await io.yield()
      log.push('past the yield')
      return 'done'
    }
    expect(await rounds.next(handler, undefined, { wantsHandover })).toMatchObject({ kind: 'deferred' })
    expect(await rounds.next(handler, undefined, { wantsHandover })).toEqual({ kind: 'done', value: 'done' })
    expect(log).toEqual(['begun', 'begun', 'past the yield'])
  })

  test('costs nothing where nobody wants one', async () => {
    expect(await new Rounds().next((io) => io.yield().then(() => 'on'))).toEqual({ kind: 'done', value: 'on' })
  })

  test.each([
    { loser: 'a step that runs', lose: (io: Io) => io.step('loser', () => microtasks()).then(() => 'loser') },
    { loser: 'a scope', lose: (io: Io) => io.scope('loser', () => microtasks().then(() => 'loser')) },
    { loser: 'code that uses no io', lose: () => hops(9).then(() => 'loser') },
  ])('$loser beside it does not win a race that the yielding branch wins in the next pass', async ({ lose }) => {
    const rounds = new Rounds()
    const handler = async (io: Io): Promise<string> => {
      await io.step('s', () => 1)
      const winner = await Promise.race([io.yield().then(() => 'winner'), lose(io)])
      await io.confirm('sure', `Is it the ${winner}?`)
      return winner
    }
    const outcome = await rounds.next(handler, undefined, { wantsHandover })
    expect(outcome).toMatchObject({ kind: 'deferred' })
    await rounds.next(handler)
    expect(await rounds.next(handler, { sure: accept({ confirm: true }) })).toEqual({ kind: 'done', value: 'winner' })
  })

  test('records what was running, and tells it to the next pass', async () => {
    const rounds = new Rounds()
    expect(await rounds.next(yieldBesideStep, undefined, { wantsHandover })).toMatchObject({ kind: 'deferred' })
    expect(rounds.journal).toContain('"slow"')
    expect(await rounds.next(yieldBesideStep)).toEqual({ kind: 'done', value: [undefined, 2] })
    expect(rounds.effects).toEqual(['s', 'slow'])
  })
})

async function threeSteps(io: Io): Promise<number> {
  let sum = 0
  for (let i = 0; i < 3; i += 1) sum += await io.step(`s[${i}]`, () => i)
  return sum
}

function askBesideSteps(io: Io): Promise<unknown> {
  return Promise.all([io.ask('a', 'A?', NUMBER), io.step('s', () => 1).then(() => io.step('t', () => 2))])
}

function yieldBesideStep(io: Io): Promise<unknown> {
  return Promise.all([io.step('s', () => 1).then(() => io.yield()), io.step('slow', () => microtasks().then(() => 2))])
}

async function hops(times: number): Promise<void> {
  for (let i = 0; i < times; i += 1) await Promise.resolve()
}
