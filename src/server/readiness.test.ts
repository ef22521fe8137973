import { MemoryStore, rally } from 'mcp-rally'
import type { Rally, TaskStore } from 'mcp-rally'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { ReadinessCheck } from './readiness.ts'

const quiet = { warn() {}, error() {} }

/** Resolves when the check has been made and is not kept any more. No real time passes. */
async function settled<T>(reading: Promise<T>): Promise<T> {
  await vi.advanceTimersByTimeAsync(2_000)
  return reading
}

function stopClock(): void {
  vi.useFakeTimers()
  onTestFinished(() => void vi.useRealTimers())
}

/** An app whose store answers a read as the test says. */
function appOn(read: TaskStore['read']): Rally {
  const store = new MemoryStore()
  const tasks = new Proxy(store.tasks, {
    get: (target, name) => {
      if (name === 'read') return read
      const value: unknown = Reflect.get(target, name)
      return typeof value === 'function' ? value.bind(target) : value
    },
  })
  const { once, mailbox } = store
  return rally({
    name: 'ready',
    version: '1',
    logger: quiet,
    store: { tasks, once, mailbox, close: () => store.close() },
  })
}

describe('an instance is ready', () => {
  test('without a store', async () => {
    expect(await rally({ name: 'ready', version: '1' }).readiness()).toEqual({ ready: true })
  })

  test('if its store answers, and the store is asked once for many probes', async () => {
    let reads = 0
    const app = appOn(async () => void (reads += 1))
    const probes = await Promise.all(Array.from({ length: 1_000 }, () => app.readiness()))
    expect(probes.every(({ ready }) => ready)).toBe(true)
    expect(reads).toBe(1)
  })
})

describe('an instance is not ready', () => {
  test('if its store rejects, and nothing of the error is told', async () => {
    const app = appOn(() => Promise.reject(new Error('no route to db.internal')))
    expect(await app.readiness()).toEqual({ ready: false, reason: 'the store cannot be reached' })
  })

  test('if its store does not answer, and no second read waits beside the first', async () => {
    stopClock()
    let reads = 0
    const check = new ReadinessCheck(() => {
      reads += 1
      return new Promise(() => {})
    }, quiet)
    const silent = { ready: false, reason: 'the store did not answer within 800 ms' }
    expect(await settled(check.read())).toEqual(silent)
    expect(await settled(check.read())).toEqual(silent)
    expect(reads).toBe(1)
  })

  test('if its event loop is late', async () => {
    const app = rally({ name: 'ready', version: '1' })
    const block = setInterval(() => {
      for (const until = performance.now() + 60; performance.now() < until;);
    }, 1)
    const readiness = await app.readiness({ maxLagMs: 40 })
    clearInterval(block)
    expect(readiness).toEqual({ ready: false, reason: 'the event loop is more than 40 ms late' })
  })

  test.each(['failReadiness', 'drain'] as const)('after %s(), at once', async (end) => {
    const app = appOn(async () => undefined)
    expect(await app.readiness()).toEqual({ ready: true })
    app[end]()
    expect(await app.readiness()).toEqual({ ready: false, reason: 'the instance is shutting down' })
  })
})

test('a store that is lost is logged once, until it has answered again', async () => {
  stopClock()
  const logged: unknown[] = []
  let works = false
  const fails = new Error('down')
  const check = new ReadinessCheck(() => (works ? Promise.resolve() : Promise.reject(fails)), {
    warn() {},
    error: (_message, details) => logged.push(details),
  })
  for (works of [false, false, true, false]) await settled(check.read())
  expect(logged).toEqual([{ error: fails }, { error: fails }])
})
