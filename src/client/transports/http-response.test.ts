import { expect, test, vi } from 'vitest'
import { ByteBudget } from '../../protocol/byte-buffer.ts'
import type { ResponseHandler } from './http-response.ts'
import { ResponseReader } from './http-response.ts'

const MAX_BYTES = 1_000

function reading(status: number, headers: Record<string, string>, budget = new ByteBudget(MAX_BYTES * 4)) {
  const handler = {
    event: vi.fn<ResponseHandler['event']>(),
    body: vi.fn<ResponseHandler['body']>(),
    failed: vi.fn<ResponseHandler['failed']>(),
  }
  const abort = vi.fn<() => void>()
  const reader = new ResponseReader({ maxBytes: MAX_BYTES, budget }, handler)
  reader.start(() => abort)
  reader.head(status, (name) => headers[name])
  return { reader, abort, ...handler }
}

test('a body is read whole, in chunks of one byte too', () => {
  const { reader, body } = reading(200, {})
  for (const byte of new TextEncoder().encode('{"name":"Zoë"}')) reader.data(Uint8Array.of(byte))
  reader.end()
  expect(body).toHaveBeenCalledExactlyOnceWith('{"name":"Zoë"}', expect.anything(), 15)
})

test.each([
  ['that declares its size', { 'content-length': '1001' }, []],
  ['that does not', {}, [new Uint8Array(1_000), new Uint8Array(1)]],
  ['in many small chunks', {}, Array.from({ length: 1_001 }, () => new Uint8Array(1))],
  ['as one event', { 'content-type': 'text/event-stream' }, [new TextEncoder().encode(`data: ${'x'.repeat(1_001)}`)]],
])('a response that is too large %s aborts the request, and fails once', (_how, headers, chunks) => {
  const { reader, abort, body, event, failed } = reading(200, headers)
  for (const chunk of chunks) reader.data(chunk)
  reader.data(new Uint8Array(10_000))
  reader.end()
  expect(abort).toHaveBeenCalledOnce()
  expect(failed).toHaveBeenCalledExactlyOnceWith(expect.objectContaining({ code: 'RESPONSE_TOO_LARGE' }))
  expect([body, event].every((called) => called.mock.calls.length === 0)).toBe(true)
})

test('a refusal is a body, even if it says that it is a stream', () => {
  const { reader, body } = reading(401, { 'content-type': 'text/event-stream' })
  reader.end()
  expect(body).toHaveBeenCalledExactlyOnceWith('', expect.objectContaining({ status: 401, isStream: false }), 0)
})

test('a server has a moment to end its stream after the response, and then the request is aborted', () => {
  vi.useFakeTimers()
  try {
    const { reader, abort } = reading(200, { 'content-type': 'text/event-stream' })
    reader.finish()
    vi.advanceTimersByTime(499)
    expect(abort).not.toHaveBeenCalled()
    vi.advanceTimersByTime(1)
    expect(abort).toHaveBeenCalledOnce()
    const other = reading(200, { 'content-type': 'text/event-stream' })
    other.reader.finish()
    other.reader.end()
    vi.advanceTimersByTime(1_000)
    expect(other.abort).not.toHaveBeenCalled()
  } finally {
    vi.useRealTimers()
  }
})

const EVENTS = { 'content-type': 'text/event-stream' }

test.each([
  ['bodies', {}, ''],
  ['lines of events', EVENTS, ''],
  ['data of events', EVENTS, '\n'],
])('many %s at once take no more than their budget, and give it back however they end', (_what, headers, end) => {
  const budget = new ByteBudget(2_500)
  const responses = Array.from({ length: 3 }, () => reading(200, headers, budget))
  const piece = new TextEncoder().encode(`data:${'x'.repeat(895)}${end}`)
  for (const { reader } of responses) for (const byte of piece) reader.data(Uint8Array.of(byte))
  const failed = responses.filter((each) => each.failed.mock.calls.length > 0)
  expect(failed.length).toBeGreaterThan(0)
  expect(failed[0]?.failed).toHaveBeenCalledExactlyOnceWith(
    expect.objectContaining({
      code: 'RESPONSE_TOO_LARGE',
      message:
        'The responses that are being read take more than 2500 bytes together. Make fewer calls at once, or raise maxBufferedBytes in connect().',
    }),
  )
  expect(failed[0]?.abort).toHaveBeenCalledOnce()
  expect(budget.used).toBeGreaterThan(0)
  const [first, second] = responses
  first?.reader.cancel()
  second?.reader.end()
  expect(budget.used).toBe(0)
})
