import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { Cursor } from './sse.ts'
import { EventReader } from './sse.ts'

function read(chunks: readonly Uint8Array[], maxBytes = 1_000): string[] {
  const events: string[] = []
  const reader = new EventReader({
    maxBytes,
    receive: (data) => events.push(data),
    tooLarge: () => events.push('(too large)'),
  })
  for (const chunk of chunks) reader.add(chunk)
  return events
}

const whole = (text: string, maxBytes?: number): string[] => read([Buffer.from(text)], maxBytes)

describe('a stream of events', () => {
  test.each([
    ['line feeds', '\n'],
    ['carriage returns', '\r'],
    ['both', '\r\n'],
  ])('may end its lines with %s', (_what, end) => {
    expect(whole(['event: message', 'data: {"a":1}', '', 'data: 2', '', ''].join(end))).toEqual(['{"a":1}', '2'])
  })

  test.each([
    ['data of several lines is one text', 'data: a\ndata:\ndata:  b\n\n', ['a\n\n b']],
    ['the space after the colon is optional, and only one is taken off', 'data:a\n\ndata:  b\n\n', ['a', ' b']],
    ['a field without a colon has no value', 'data\n\n', ['']],
    ['comments and unknown fields are passed over', ': hi\nid: 7\nretry: 10\nnonsense: x\n:\n\ndata: a\n\n', ['a']],
    ['an event without data is none', 'event: message\n\n\n\n', []],
    ['an event of another type is passed over', 'event: ping\ndata: a\n\ndata: b\n\n', ['b']],
    ['the last event counts only once it is complete', 'data: a\n\ndata: b\n', ['a']],
    ['a byte order mark at the beginning is passed over', '\uFEFFdata: a\n\n', ['a']],
    ['a name is taken exactly', 'Data: a\ndatas: b\n data: c\n\n', []],
  ])('%s', (_what, text, events) => {
    expect(whole(text)).toEqual(events)
  })

  test('reads the same, whatever pieces it comes in', () => {
    const line = fc.constantFrom(
      'data: a\u00e9',
      'data:\u{1f600}b',
      'data',
      ': c',
      'event: message',
      'event: other',
      '',
    )
    const lines = fc.array(fc.tuple(line, fc.constantFrom('\n', '\r', '\r\n')), { maxLength: 12 })
    fc.assert(
      fc.property(lines, fc.infiniteStream(fc.integer({ min: 1, max: 5 })), (all, sizes) => {
        const text = all.map(([content, end]) => content + end).join('')
        const bytes = Buffer.from(text)
        const chunks: Buffer[] = []
        for (let from = 0; from < bytes.length;) {
          const size = sizes.next().value
          chunks.push(bytes.subarray(from, from + size))
          from += size
        }
        expect(read(chunks)).toEqual(whole(text))
      }),
    )
  })

  test('ends at an event that is too large, complete or not, and holds nothing of it', () => {
    expect(whole(`data: ${'a'.repeat(50)}\n\ndata: b\n\n`, 40)).toEqual(['(too large)'])
    expect(whole('a'.repeat(50), 40)).toEqual(['(too large)'])
    expect(whole('data: 1234567890\n'.repeat(5), 40)).toEqual(['(too large)'])
    expect(
      read([Buffer.from('a'.repeat(30)), Buffer.from('a'.repeat(30)), Buffer.from('\n\ndata: b\n\n')], 40),
    ).toEqual(['(too large)'])
  })

  test('of comments alone is never too large', () => {
    expect(whole(`${': still here\n'.repeat(100)}data: a\n\n`, 40)).toEqual(['a'])
  })
})

const ignore = (): void => {}

function located(text: string): Cursor {
  const cursor: Cursor = { id: undefined, retryMs: undefined }
  new EventReader({ maxBytes: 10_000, receive: ignore, tooLarge: ignore, cursor }).add(Buffer.from(text))
  return cursor
}

describe('where a stream is', () => {
  test.each<[string, string, Cursor]>([
    ['nowhere at first', 'data: a\n\n', { id: undefined, retryMs: undefined }],
    ['at its last event', 'id: 1\ndata: a\n\nid: 2\ndata: b\n\n', { id: '2', retryMs: undefined }],
    ['at an event without data', 'id: 1\nretry: 20\ndata:\n\n', { id: '1', retryMs: 20 }],
    ['not at an event that is not complete', 'id: 1\ndata: a\n\nid: 2\ndata: b\n', { id: '1', retryMs: undefined }],
    ['not where no header could say it', 'id: \u00e4\ndata: a\n\n', { id: undefined, retryMs: undefined }],
    [
      'at no id that is too long for a header',
      `id: ${'7'.repeat(4_097)}\ndata: a\n\n`,
      { id: undefined, retryMs: undefined },
    ],
    ['to be left alone for a minute at most', 'retry: 999999999\n\n', { id: undefined, retryMs: 60_000 }],
    ['to be left alone for a number of milliseconds only', 'retry: soon\n\n', { id: undefined, retryMs: undefined }],
  ])('is %s', (_what, text, cursor) => {
    expect(located(text)).toEqual(cursor)
  })
})

test('a line in chunks of one byte takes little more memory than its bytes', () => {
  const reader = new EventReader({ maxBytes: 10_000_000, receive: ignore, tooLarge: ignore })
  reader.add(Buffer.from('data: '))
  globalThis.gc?.()
  const before = process.memoryUsage()
  const byte = Buffer.from('x')
  for (let n = 0; n < 4_000_000; n += 1) reader.add(byte)
  globalThis.gc?.()
  const after = process.memoryUsage()
  const grown = after.heapUsed + after.external - before.heapUsed - before.external
  expect(grown).toBeLessThan(20_000_000)
  reader.close()
})
