import { expect, test } from 'vitest'
import { pathText } from './json.ts'

test.each([
  { keys: ['env'], text: 'env' },
  { keys: ['items', 3, 'when'], text: 'items[3].when' },
  { keys: [0], text: '[0]' },
  { keys: ['a b', 'c'], text: '["a b"].c' },
  { keys: ['constructor', Symbol('s')], text: 'constructor["Symbol(s)"]' },
])('$keys reads $text', ({ keys, text }) => {
  expect(pathText(keys)).toBe(text)
})

test('a root stands before the first key', () => {
  expect(pathText(['items', 3], '$')).toBe('$.items[3]')
  expect(pathText([], '$')).toBe('$')
})

test('a path that nobody would read to its end is cut short', () => {
  expect(pathText(Array.from({ length: 10_000 }, () => 'self')).length).toBeLessThan(300)
  expect(pathText(['x'.repeat(10_000)]).length).toBeLessThan(300)
})
