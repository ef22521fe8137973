import { expect, test } from 'vitest'
import { Lines } from './lines.ts'

function read(maxBytes: number, ...chunks: readonly string[]): string[] {
  const told: string[] = []
  const lines = new Lines(
    maxBytes,
    (line) => told.push(line),
    () => told.push('(too long)'),
  )
  for (const chunk of chunks) lines.add(Buffer.from(chunk, 'latin1'))
  return told
}

test('lines are given whole, whatever pieces they come in', () => {
  expect(read(100, 'one\ntw', 'o\r\n', '', '\n  \nthr', 'e', 'e')).toEqual(['one', 'two'])
  expect(read(100, 'thr', 'e', 'e', '\n')).toEqual(['three'])
})

test('a character that was cut in two is whole again', () => {
  expect(read(100, '\xc3', '\xa9\n')).toEqual(['\u00e9'])
})

test('a line that is too long is told of at once, and the next one is read', () => {
  expect(read(5, '123', '456')).toEqual(['(too long)'])
  expect(read(5, '12345\n', '1234567890', '1234567890\nnext\n')).toEqual(['12345', '(too long)', 'next'])
})

test('a line in chunks of one byte takes little more memory than its bytes', () => {
  const lines = new Lines(
    10_000_000,
    () => {},
    () => {},
  )
  globalThis.gc?.()
  const before = process.memoryUsage()
  for (let n = 0; n < 500_000; n += 1) lines.add(Buffer.from('x'))
  globalThis.gc?.()
  const after = process.memoryUsage()
  expect(after.heapUsed + after.external - before.heapUsed - before.external).toBeLessThan(5_000_000)
  lines.add(Buffer.from('\n'))
})
