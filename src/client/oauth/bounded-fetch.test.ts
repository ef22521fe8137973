import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { boundedFetch } from './bounded-fetch.ts'

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

const server = new URL('https://mcp.example.com/mcp')

test.each([
  ['never answers', () => new Promise<Response>(() => {})],
  ['sends a byte at a time', () => Promise.resolve(new Response(drip()))],
])('a server that %s is given 10 seconds', async (_what, fetch) => {
  const fetched = boundedFetch(server, fetch)('https://login.example.com/metadata')
  fetched.catch(() => {})
  await vi.advanceTimersByTimeAsync(10_001)
  await expect(fetched).rejects.toMatchObject({
    code: 'LOGIN_FAILED',
    message: 'Cannot log in: login.example.com took longer than 10000 ms.',
  })
})

test('the request ends with the signal', async () => {
  const controller = new AbortController()
  const fetched = boundedFetch(server, () => new Promise(() => {}))('https://login.example.com/', controller)
  controller.abort(new Error('enough'))
  await expect(fetched).rejects.toThrow('enough')
})

/** One byte a second, without end. */
function drip(): ReadableStream<Uint8Array> {
  return new ReadableStream({
    async pull(controller) {
      await new Promise((resolve) => void setTimeout(resolve, 1_000))
      controller.enqueue(new Uint8Array([32]))
    },
  })
}
