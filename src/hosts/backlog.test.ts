import { AsyncLocalStorage } from 'node:async_hooks'
import { describe, expect, test } from 'vitest'
import { Backlog } from './backlog.ts'

function compute(ms: number): void {
  for (const until = performance.now() + ms; performance.now() < until;);
}

/** What a host does with a request. */
function take(backlog: Backlog, serve: (isLate: boolean) => void, maxWaitMs = 60_000): void {
  if (backlog.mustWait()) backlog.add(serve, maxWaitMs)
  else serve(false)
}

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

/** Takes requests that compute, all in one turn. Returns the ids of those that were served. */
function burst(backlog: Backlog, count: number, ms: number): number[] {
  const served: number[] = []
  for (let id = 0; id < count; id += 1) {
    take(backlog, () => {
      compute(ms)
      served.push(id)
    })
  }
  return served
}

describe('a backlog', () => {
  test('serves the quick requests of a turn at once, however many', () => {
    expect(burst(new Backlog(), 100, 0)).toHaveLength(100)
  })

  test('serves slow ones for a few milliseconds in each turn, in their order', async () => {
    const backlog = new Backlog()
    const served = burst(backlog, 40, 2)
    const atOnce = served.length
    expect(atOnce).toBeLessThan(25)
    let turns = 0
    for (; served.length < 40; turns += 1) {
      const before = served.length
      await turn()
      expect(served.length - before).toBeLessThanOrEqual(4)
    }
    expect(turns).toBeGreaterThanOrEqual(3)
    expect(served).toEqual(Array.from({ length: 40 }, (_, id) => id))
  })

  test('serves nothing in turns that accept a connection, for a moment after each slice', async () => {
    const backlog = new Backlog()
    const served = burst(backlog, 40, 2)
    let quiet = 0
    while (served.length < 40) {
      const before = served.length
      backlog.accepted()
      await turn()
      if (served.length === before) quiet += 1
    }
    expect(quiet).toBeGreaterThan(10)
  })

  test('expects a wait from the time that requests have taken, if more than a few wait', async () => {
    const backlog = new Backlog()
    expect(backlog.waitMs).toBe(0)
    const served = burst(backlog, 200, 2)
    expect(backlog.waitMs).toBe(0)
    while (served.length < 100) await turn()
    expect(backlog.waitMs).toBeGreaterThan(150)
    while (served.length < 190) await turn()
    expect(backlog.waitMs).toBe(0)
    while (served.length < 200) await turn()
  })

  test('tells those that have waited for too long, except the last few', async () => {
    const backlog = new Backlog()
    const late: boolean[] = []
    for (let n = 0; n < 60; n += 1) {
      take(
        backlog,
        (isLate) => {
          late.push(isLate)
          if (!isLate) compute(4)
        },
        30,
      )
    }
    while (late.length < 60) await turn()
    expect(late.slice(0, 16)).not.toContain(true)
    expect(late.filter(Boolean).length).toBeGreaterThan(5)
    expect(late.slice(-16)).not.toContain(true)
  })

  test('runs a handler as far as it gets before the next one begins', async () => {
    const backlog = new Backlog()
    const seen: string[] = []
    burst(backlog, 30, 1)
    const handler = async (name: string): Promise<void> => {
      for (let hop = 0; hop < 3; hop += 1) {
        await Promise.resolve()
        seen.push(name)
      }
    }
    for (const name of ['a', 'b']) backlog.add(() => void handler(name), 60_000)
    while (seen.length < 6) await turn()
    expect(seen.join('')).toBe('aaabbb')
  })

  test('serves a request in the async context that it came in', async () => {
    const backlog = new Backlog()
    const storage = new AsyncLocalStorage<string>()
    burst(backlog, 30, 1)
    const seen: (string | undefined)[] = []
    for (const user of ['ada', 'bob']) storage.run(user, () => backlog.add(() => seen.push(storage.getStore()), 60_000))
    while (seen.length < 2) await turn()
    expect(seen).toEqual(['ada', 'bob'])
  })
})
