import { expect, test } from 'vitest'
import { backoff } from './backoff.ts'

const waits = (options: Parameters<typeof backoff>[1]): number[] => [1, 2, 3, 4, 2_000].map((n) => backoff(n, options))

test('each wait is twice the one before, up to the limit', () => {
  expect(waits({ firstMs: 100, maxMs: 500 })).toEqual([100, 200, 400, 500, 500])
})

test('the factor may be another', () => {
  expect(waits({ firstMs: 10, factor: 3, maxMs: 1_000 })).toEqual([10, 30, 90, 270, 1_000])
})

test('jitter stays within its range', () => {
  const jittered = Array.from({ length: 200 }, () => backoff(2, { firstMs: 100, jitter: [0.5, 1.5] }))
  expect(Math.min(...jittered)).toBeGreaterThanOrEqual(100)
  expect(Math.max(...jittered)).toBeLessThan(300)
  expect(new Set(jittered).size).toBeGreaterThan(1)
})
