import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { RallyError } from '../protocol/errors.ts'
import { MemoryStore } from './memory/store.ts'
import { StoreOutages, StoreUnavailable } from './outages.ts'
import type { TaskStore } from './tasks.ts'

interface Logged {
  readonly level: 'warn' | 'error'
  readonly message: string
  readonly details?: Record<string, unknown> | undefined
}

let logged: Logged[]
let fail: (() => unknown) | undefined
let tasks: TaskStore

beforeEach(() => {
  vi.useFakeTimers({ now: 1_000_000 })
  logged = []
  fail = () => new Error('connection refused')
  const outages = new StoreOutages({
    warn: (message, details) => void logged.push({ level: 'warn', message, details }),
    error: (message, details) => void logged.push({ level: 'error', message, details }),
  })
  const store = new MemoryStore().tasks
  store.read = async () => {
    if (fail !== undefined) throw fail()
    return undefined
  }
  tasks = outages.tasks(store)
})
afterEach(() => vi.useRealTimers())

async function readMany(count: number): Promise<void> {
  for (let i = 0; i < count; i += 1) await tasks.read('t').catch(() => {})
}

test('the first failure is logged with its stack, the others as a count for each window, and then that it is over', async () => {
  await readMany(400)
  expect(logged).toMatchObject([
    { level: 'error', message: expect.stringMatching(/^The store failed\. Until it works again/) as string },
  ])
  expect(logged[0]?.details?.['error']).toMatchObject({ stack: expect.stringContaining('outages.test') as string })
  vi.advanceTimersByTime(30_000)
  await readMany(3)
  vi.advanceTimersByTime(30_000)
  expect(logged.slice(1)).toEqual([
    {
      level: 'error',
      message: 'The store failed 399 times in the last 30 s.',
      details: { failures: 399, reason: 'connection refused' },
    },
    {
      level: 'error',
      message: 'The store failed 3 times in the last 30 s.',
      details: { failures: 3, reason: 'connection refused' },
    },
  ])
  fail = undefined
  await readMany(5)
  vi.advanceTimersByTime(30_000)
  expect(logged.slice(3)).toEqual([
    {
      level: 'warn',
      message: 'The store has not failed for 30 s.',
      details: { failures: 403, since: '1970-01-01T00:16:40.000Z' },
    },
  ])
  expect(vi.getTimerCount()).toBe(0)
  fail = () => new Error('again')
  await readMany(2)
  expect(logged).toHaveLength(5)
  expect(logged[4]?.details).toMatchObject({ error: { message: 'again' } })
})

test('a failure is an error that says to try again, with the cause', async () => {
  const error: unknown = await tasks.read('t').catch((reason: unknown) => reason)
  expect(error).toBeInstanceOf(StoreUnavailable)
  expect(error).toMatchObject({
    rpcCode: -32603,
    data: { retryAfterMs: 1000 },
    cause: { message: 'connection refused' },
  })
})

test.each([
  [Object.assign(new Error('connect'), { code: 'ECONNREFUSED' }), true],
  [Object.assign(new Error('starting up'), { code: '57P03' }), true],
  [new RallyError('STORE_BUSY', 'locked'), true],
  [new Error('Connection terminated unexpectedly'), false],
  ['a text', false],
])('it knows whether the store may have written something: %s', async (reason, wroteNothing) => {
  fail = () => reason
  const error = (await tasks.read('t').catch((thrown: unknown) => thrown)) as StoreUnavailable
  expect(error.advice.isUnprocessed).toBe(false)
  expect(error.wroteNothing).toBe(wroteNothing)
  expect(error.unprocessed().data).toEqual({ retryAfterMs: 1000, unprocessed: true })
})

test('what the store refuses because of its size or form is not an outage', async () => {
  const mistake = new RallyError('STORE_LIMIT', 'too long')
  fail = () => mistake
  await expect(tasks.read('t')).rejects.toBe(mistake)
  expect(logged).toEqual([])
})
