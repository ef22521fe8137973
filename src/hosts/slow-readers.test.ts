import type { ServerResponse } from 'node:http'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { SlowReaders } from './slow-readers.ts'

/** What `SlowReaders` sees of a response. */
class FakeResponse {
  socket: { _handle: { writeQueueSize: number } } | null = { _handle: { writeQueueSize: 1_000 } }
  writableLength = 1_000
  destroyed = false

  destroy(): void {
    this.destroyed = true
  }

  /** The system took some of the write under way. */
  sent(bytes: number): void {
    if (this.socket) this.socket._handle.writeQueueSize -= bytes
  }
}

const STALL_MS = 1_000
const MAX_BYTES = 100_000
let readers: SlowReaders
beforeEach(() => {
  vi.useFakeTimers()
  readers = new SlowReaders(STALL_MS, MAX_BYTES)
})
afterEach(() => void vi.useRealTimers())

function watched(waiting = 1_000): FakeResponse {
  const response = new FakeResponse()
  response.writableLength = waiting
  readers.watch(response as unknown as ServerResponse)
  return response
}

test('a reader that takes nothing is disconnected after the time, whatever else is written to it', () => {
  const response = watched()
  vi.advanceTimersByTime(900)
  response.writableLength += 500
  expect(response.destroyed).toBe(false)
  vi.advanceTimersByTime(400)
  expect(response.destroyed).toBe(true)
  expect(vi.getTimerCount()).toBe(0)
})

test('a reader that takes a little keeps its connection, however long it takes', () => {
  const response = watched()
  for (let n = 0; n < 20; n += 1) {
    vi.advanceTimersByTime(900)
    response.sent(1)
    // More comes than goes.
    response.writableLength += 500
  }
  expect(response.destroyed).toBe(false)
  vi.advanceTimersByTime(1_500)
  expect(response.destroyed).toBe(true)
})

test('a reader that has taken all is forgotten', () => {
  const response = watched()
  response.writableLength = 0
  vi.advanceTimersByTime(300)
  expect(vi.getTimerCount()).toBe(0)
  expect(response.destroyed).toBe(false)
})

test("a response that waits for an earlier one on its connection is not its reader's fault", () => {
  const response = watched()
  response.socket = null
  vi.advanceTimersByTime(10_000)
  expect(response.destroyed).toBe(false)
})

test('a response that the system took at once costs no timer', () => {
  const response = new FakeResponse()
  response.writableLength = 0
  readers.watch(response as unknown as ServerResponse)
  expect(vi.getTimerCount()).toBe(0)
})

test('past the bytes of all responses the reader with most to read is disconnected, and what was read does not count', () => {
  const [done, small, large] = [watched(40_000), watched(30_000), watched(20_000)]
  done.writableLength = 0
  large.writableLength = 50_000
  readers.watch(large as unknown as ServerResponse)
  expect([done, small, large].map(({ destroyed }) => destroyed)).toEqual([false, false, false])
  const last = watched(40_000)
  expect([small, large, last].map(({ destroyed }) => destroyed)).toEqual([false, true, false])
})
