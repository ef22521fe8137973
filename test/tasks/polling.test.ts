import { MemoryStore, rally } from 'mcp-rally'
import { afterEach, expect, test, vi } from 'vitest'

afterEach(() => void vi.useRealTimers())

// Of instances that poll in step, one would always come just after another. If only that one has the version of a task, the
// others would take the task from it again and again.
test('a worker polls the store at irregular times', async () => {
  vi.useFakeTimers()
  const store = new MemoryStore()
  const polledAt: number[] = []
  vi.spyOn(store.tasks, 'claimMany').mockImplementation(async () => {
    polledAt.push(Date.now())
    return []
  })
  const app = rally({ name: 'polling', version: '1.0.0', store, tasks: { watchdogMs: false } })
  app.work()
  await vi.advanceTimersByTimeAsync(20_000)
  app.drain()
  await app.idle()
  const waits = polledAt.slice(1).map((at, index) => at - (polledAt[index] ?? 0))
  expect(new Set(waits).size).toBeGreaterThan(5)
  expect(Math.min(...waits)).toBeGreaterThanOrEqual(500)
  expect(Math.max(...waits)).toBeLessThanOrEqual(1_501)
  const polls = polledAt.length
  await vi.advanceTimersByTimeAsync(5_000)
  expect(polledAt).toHaveLength(polls)
})
