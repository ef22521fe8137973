import { afterEach, expect, test, vi } from 'vitest'
import { limitLogRate } from './sparing.ts'

afterEach(() => void vi.useRealTimers())

test('a flood of messages is cut off, says so, and another minute begins anew', () => {
  vi.useFakeTimers({ toFake: ['performance'], now: 1_000 })
  vi.advanceTimersByTime(1)
  const said: string[] = []
  const logger = limitLogRate({ warn: (message) => said.push(message), error: (message) => said.push(message) })
  for (let i = 0; i < 500; i += 1) logger.warn(`warning ${i}`)
  logger.error('unheard')
  expect(said).toHaveLength(100)
  expect(said.at(-1)).toBe('There is more to log than 100 messages a minute; the rest is left out.')
  vi.advanceTimersByTime(60_001)
  logger.error('heard', { detail: 1 })
  expect(said.at(-1)).toBe('heard')
})
