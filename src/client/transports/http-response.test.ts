import { expect, test, vi } from 'vitest'
import type { ResponseHandler } from './http-response.ts'
import { ResponseReader } from './http-response.ts'

const MAX_BYTES = 1_000

function reading(status: number, headers: Record<string, string>) {
  const handler = {
    event: vi.fn<ResponseHandler['event']>(),
    body: vi.fn<ResponseHandler['body']>(),
    failed: vi.fn<ResponseHandler['failed']>(),
  }
  const abort = vi.fn<() => void>()
  const reader = new ResponseReader(MAX_BYTES, handler)
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
