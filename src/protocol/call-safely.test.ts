import { expect, test } from 'vitest'
import { callSafely } from './call-safely.ts'

test('returns what the function returns', () => {
  expect(callSafely(() => 7, neverCalled)).toBe(7)
})

test('reports what the function throws', () => {
  const failures: unknown[] = []
  const error = new Error('oops')
  const value = callSafely(
    () => {
      throw error
    },
    (thrown) => failures.push(thrown),
  )
  expect(value).toBeUndefined()
  expect(failures).toEqual([error])
})

test('reports what the promise of an async function rejects with: nothing else waits for it', async () => {
  const error = new Error('oops')
  const failed = new Promise((resolve) => {
    void callSafely(() => Promise.reject(error), resolve)
  })
  expect(await failed).toBe(error)
})

function neverCalled(): never {
  throw new Error('Nothing failed.')
}
