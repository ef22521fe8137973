import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { MOST_LOSSES, Trials } from './trials.ts'

const LEASE_MS = 15_000
let trials: Trials

beforeEach(() => {
  vi.useFakeTimers()
  trials = new Trials(LEASE_MS)
})
afterEach(() => {
  vi.useRealTimers()
  vi.restoreAllMocks()
})

const run = (id: string): { task: { id: string } } => ({ task: { id } })

/** The wait with the least and the most jitter. */
function range(wait: () => number): [number, number] {
  const waits = [0, 1].map((random) => {
    vi.spyOn(Math, 'random').mockReturnValue(random)
    return wait()
  })
  return waits as [number, number]
}

describe('the wait after a loss', () => {
  test.each([
    // The first loss is most often that of an innocent task.
    { loss: 1, min: 1_000, max: 5_000 },
    { loss: 2, min: 11_250, max: 18_750 },
    { loss: 3, min: 22_500, max: 37_500 },
    { loss: 4, min: 45_000, max: 75_000 },
    { loss: 9, min: 225_000, max: 375_000 },
  ])('number $loss is between $min and $max ms, at random', ({ loss, min, max }) => {
    expect(range(() => trials.waitAfterLoss(loss))).toEqual([min, max])
  })

  test('is never shorter than a lease after the second one, so that a task blocks one instance at a time', () => {
    for (let loss = 2; loss < MOST_LOSSES; loss += 1) {
      const [min] = range(() => trials.waitAfterLoss(loss))
      expect(min).toBeGreaterThanOrEqual(0.75 * LEASE_MS)
    }
  })
})

describe('a trial', () => {
  test('is of one task at a time, until it ends or a third of a lease has passed', () => {
    const [first, second, third] = [run('first'), run('second'), run('third')]
    expect(trials.begin(first)).toBe(true)
    expect(trials.begin(first)).toBe(true)
    expect(trials.begin(second)).toBe(false)
    trials.end(second)
    expect(trials.begin(second)).toBe(false)
    trials.end(first)
    expect(trials.begin(second)).toBe(true)
    vi.advanceTimersByTime(LEASE_MS / 3 - 1)
    expect(trials.begin(third)).toBe(false)
    vi.advanceTimersByTime(1)
    expect(trials.begin(third)).toBe(true)
  })

  test('goes over to a later claim of the same task, and the earlier one does not end it', () => {
    const [earlier, later] = [run('task'), run('task')]
    trials.begin(earlier)
    expect(trials.begin(later)).toBe(true)
    trials.end(earlier)
    expect(trials.begin(run('another'))).toBe(false)
    trials.end(later)
    expect(trials.begin(run('another'))).toBe(true)
  })

  test('is waited for longer, the more tasks wait', () => {
    trials.begin(run('first'))
    expect(range(() => trials.waitForTrial())).toEqual([1_000, 5_000])
    for (let i = 0; i < 60; i += 1) trials.begin(run('second'))
    expect(range(() => trials.waitForTrial())).toEqual([3_000, 15_000])
  })
})

describe('a try to run a task alone', () => {
  test('may begin later after each one that failed, until one succeeds', () => {
    const waits: number[] = []
    for (let i = 0; i < 5; i += 1) {
      expect(trials.mayTryAlone).toBe(true)
      trials.triedAlone(false)
      const began = performance.now()
      while (!trials.mayTryAlone) vi.advanceTimersByTime(1_000)
      waits.push(performance.now() - began)
    }
    expect(waits).toEqual([60_000, 120_000, 240_000, 300_000, 300_000])
    trials.triedAlone(false)
    expect(range(() => trials.waitForAlone())).toEqual([301_000, 305_000])
    trials.triedAlone(true)
    expect(trials.mayTryAlone).toBe(true)
    expect(range(() => trials.waitForAlone())).toEqual([1_000, 5_000])
  })
})
