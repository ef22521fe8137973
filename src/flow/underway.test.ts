import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { microtasks } from '../testing/manual-scheduler.ts'
import { Rounds } from '../testing/rounds.ts'
import type { Io } from './io.ts'
import { Underway } from './underway.ts'

// Before any pass: the sweep that looks after all of them is started by the first.
beforeAll(() => void vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval', 'performance'] }))
afterAll(() => void vi.useRealTimers())

describe('rule 2: a pass ends when its time limit passes', () => {
  const never = new Promise<never>(() => {})
  const limits = { journalBytes: 1_000, passMs: 5_000 }

  test.each([
    { name: 'hangs in a step', handler: (io: Io) => io.step('slow', () => never), waiting: ', waiting for "slow".' },
    { name: 'hangs outside of io', handler: () => never, waiting: ' took longer than 5000 ms.' },
  ])('a handler that $name fails with an error that says what it waited for', async ({ handler, waiting }) => {
    const ended = vi.fn<() => void>()
    const outcome = new Rounds().next(handler, undefined, { limits })
    void outcome.then(ended)
    vi.advanceTimersByTime(4_900)
    await microtasks()
    expect(ended).not.toHaveBeenCalled()
    vi.advanceTimersByTime(200)
    expect(await outcome).toMatchObject({
      kind: 'failed',
      error: { code: 'TIME_LIMIT', message: expect.stringContaining(waiting) },
    })
  })

  test.each([
    { task: 'never' as const, advice: 'Split long work into several steps, run it as a task, or raise timeoutMs.' },
    { task: 'always' as const, advice: 'Raise `tasks.timeoutMs`, or `timeoutMs` of the tool.' },
  ])('the error says what to do about it (task: $task)', async ({ task, advice }) => {
    const outcome = new Rounds({ task }).next(() => never, undefined, { limits })
    vi.advanceTimersByTime(5_100)
    expect(await outcome).toMatchObject({ error: { message: `The pass took longer than 5000 ms. ${advice}` } })
  })

  test('rule 10: an ask inside a step that nothing else finds ends by the time limit', async () => {
    const outcome = new Rounds().next(
      (io) =>
        io.step('outer', async () => {
          await microtasks()
          return io.confirm('inner', 'Inside?')
        }),
      undefined,
      { limits, strict: false },
    )
    await microtasks()
    await microtasks()
    vi.advanceTimersByTime(5_100)
    expect(await outcome).toMatchObject({
      error: { code: 'TIME_LIMIT', message: expect.stringContaining('waiting for "outer", "inner"') },
    })
  })

  test('a deadline that is forgotten does not expire, and the sweep stops when none is left', () => {
    const pass = { deadline: 0, before: undefined, after: undefined, expire: vi.fn<() => void>() }
    const underway = new Underway()
    vi.clearAllTimers()
    underway.add(pass, 1_000)
    underway.delete(pass)
    vi.advanceTimersByTime(2_000)
    expect(pass.expire).not.toHaveBeenCalled()
    expect(vi.getTimerCount()).toBe(0)
  })
})

describe('the passes under way', () => {
  test.each([{ order: [0, 1, 2] }, { order: [2, 1, 0] }, { order: [1, 0, 2] }, { order: [1, 2, 0] }])(
    'are found until they are deleted, in the order $order',
    ({ order }) => {
      const underway = new Underway()
      const passes = [some(), some(), some()]
      for (const pass of passes) underway.add(pass, 1_000)
      const left = new Set(passes)
      for (const index of order) {
        const pass = passes[index] ?? some()
        underway.delete(pass)
        left.delete(pass)
        expect(new Set(underway.all())).toEqual(left)
        expect(pass).toMatchObject({ before: undefined, after: undefined })
      }
    },
  )
})

function some(): { deadline: number; before: undefined; after: undefined; expire(): void } {
  return { deadline: 0, before: undefined, after: undefined, expire: () => {} }
}
