import { afterEach, describe, expect, test, vi } from 'vitest'
import type { PassInput } from '../flow/carrier.ts'
import { Pass } from '../flow/pass.ts'
import type { Logger } from '../protocol/logger.ts'
import { Handover } from './handover.ts'

const logger = { warn: vi.fn<Logger['warn']>(), error: vi.fn<Logger['error']>() }

afterEach(() => {
  vi.useRealTimers()
  vi.restoreAllMocks()
})

describe('for load', () => {
  test('nothing is handed over where nobody said when', () => {
    expect(new Handover(undefined, logger).wanted(0, 0)).toBe(false)
  })

  test.each([
    { flow: 'one in its first round is', round: 0, deferrals: 0, wanted: true },
    { flow: 'one that was deferred twice is', round: 2, deferrals: 2, wanted: true },
    { flow: 'one in its fifth round is', round: 4, deferrals: 2, wanted: true },
    { flow: 'one that was deferred three times is not', round: 3, deferrals: 3, wanted: false },
    { flow: 'one that was deferred four times, by drains, is not', round: 4, deferrals: 4, wanted: false },
    { flow: 'one in its sixth round is not', round: 5, deferrals: 0, wanted: false },
    { flow: 'one in its tenth round is not', round: 9, deferrals: 2, wanted: false },
  ])('$flow handed over', ({ round, deferrals, wanted }) => {
    expect(new Handover(() => true, logger).wanted(round, deferrals)).toBe(wanted)
  })

  test("the author's test decides each time", () => {
    const answers = [false, true, false]
    const handover = new Handover(() => answers.shift() ?? false, logger)
    expect([handover.wanted(0, 0), handover.wanted(0, 0), handover.wanted(0, 0)]).toEqual([false, true, false])
  })

  test("the author's test that fails hands nothing over, and the log has why", () => {
    const error = new Error('No meter.')
    const handover = new Handover(() => {
      throw error
    }, logger)
    expect(handover.wanted(0, 0)).toBe(false)
    expect(logger.error).toHaveBeenCalledExactlyOnceWith(
      expect.stringContaining('`shed()` threw; load shedding is skipped'),
      { error },
    )
  })

  test("the author's test is not asked where its answer would not count", () => {
    const overloaded = vi.fn<() => boolean>(() => true)
    const handover = new Handover(overloaded, logger)
    handover.wanted(5, 0)
    handover.wanted(3, 3)
    handover.drain()
    handover.wanted(0, 0)
    expect(overloaded).not.toHaveBeenCalled()
  })
})

describe('for the lag of the event loop', () => {
  test('a sample that came late counts until the next one comes in time', () => {
    const clock = new Clock()
    const handover = new Handover({ lagMs: 100 }, logger)
    clock.sampleAfter(50)
    expect(handover.wanted(0, 0)).toBe(false)
    clock.sampleAfter(50 + 101)
    expect(handover.wanted(0, 0)).toBe(true)
    clock.sampleAfter(50)
    expect(handover.wanted(0, 0)).toBe(false)
  })

  test('a sample that is overdue counts before it has come', () => {
    const clock = new Clock()
    const handover = new Handover({ lagMs: 100 }, logger)
    clock.now += 50 + 100
    expect(handover.wanted(0, 0)).toBe(false)
    clock.now += 1
    expect(handover.wanted(0, 0)).toBe(true)
  })

  test('the bounds are those of any load', () => {
    const clock = new Clock()
    const handover = new Handover({ lagMs: 100 }, logger)
    clock.now += 10_000
    expect(handover.wanted(0, 2)).toBe(true)
    expect(handover.wanted(0, 3)).toBe(false)
    expect(handover.wanted(5, 0)).toBe(false)
  })
})

describe('for a drain', () => {
  test('everything is handed over, however often it was before', () => {
    const handover = new Handover(() => false, logger)
    expect(handover.draining).toBe(false)
    handover.drain()
    expect(handover.draining).toBe(true)
    expect(handover.wanted(0, 0)).toBe(true)
    expect(handover.wanted(40, 40)).toBe(true)
  })

  test('an interruption reaches every pass that runs, also where one ends by it', () => {
    const handover = new Handover(undefined, logger)
    const interrupted: string[] = []
    for (const name of ['a', 'b', 'c']) {
      const pass = new Pass({} as PassInput, () => {})
      vi.spyOn(pass, 'interrupt').mockImplementation(() => {
        interrupted.push(name)
        handover.underway.delete(pass)
      })
      handover.underway.add(pass, 1_000)
    }
    handover.interrupt()
    expect(interrupted.toSorted()).toEqual(['a', 'b', 'c'])
    expect(handover.underway.all()).toEqual([])
  })
})

/** Stands in for the time, and for the timer that takes the samples. */
class Clock {
  now = 1_000

  constructor() {
    vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] })
    vi.spyOn(performance, 'now').mockImplementation(() => this.now)
  }

  /** The next sample is taken so many milliseconds after the last one; on time it would be 50. */
  sampleAfter(ms: number): void {
    this.now += ms
    vi.advanceTimersByTime(50)
  }
}
