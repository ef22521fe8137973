import { beforeEach, describe, expect, test } from 'vitest'
import { readLimits, taskProblem } from '../server/limits.ts'
import type { TaskUsage } from './tasks.ts'
import { Usages } from './usage.ts'

let now: number
let stored: TaskUsage
let readings: number
let failing: boolean
let usages: Usages

beforeEach(() => {
  now = 0
  stored = { open: 0, bytes: 0 }
  readings = 0
  failing = false
  const read = async (): Promise<TaskUsage> => {
    readings += 1
    await Promise.resolve()
    if (failing) throw new Error('The database is down.')
    return stored
  }
  usages = new Usages(read, taskProblem(readLimits({ maxOpenTasks: 5, maxTaskBytes: 1_000 })), () => now)
})

const create = async (owner = 'ann', bytes = 10): Promise<string> => {
  try {
    await usages.add(owner, { tasks: 1, bytes })
    usages.written(owner, { tasks: 1, bytes })
    return 'created'
  } catch (error) {
    return (error as Error).message
  }
}

const created = (results: readonly string[]): number => results.filter((result) => result === 'created').length

describe('the tasks of an owner', () => {
  test('are read once, also by many requests at once, and then counted', async () => {
    const results = await Promise.all(Array.from({ length: 20 }, () => create()))
    expect([created(results), readings]).toEqual([5, 1])
    expect(results[19]).toBe(
      'Too many open tasks: one caller may have 5 (limits.maxOpenTasks is 5). Wait until some have ended, or cancel them.',
    )
    expect(await create('bob')).toBe('created')
  })

  test('have a limit in bytes, which counts what other instances created', async () => {
    stored = { open: 1, bytes: 900 }
    expect(await create('ann', 90)).toBe('created')
    stored = { open: 2, bytes: 990 }
    expect(await create('ann', 90)).toContain('one caller may store 1000 (limits.maxTaskBytes)')
    expect(await create('ann', 10)).toBe('created')
    stored = { open: 3, bytes: 1_000 }
    await expect(usages.add('ann', { tasks: 0, bytes: 1 })).rejects.toThrow('limits.maxTaskBytes')
  })

  test('are read again after a while in the background, so that creating does not wait', async () => {
    await create()
    stored = { open: 4, bytes: 0 }
    now = 6_000
    expect(usages.add('ann', { tasks: 1, bytes: 10 })).toBeUndefined()
    await Promise.resolve()
    await Promise.resolve()
    await Promise.resolve()
    expect(readings).toBe(2)
    // The one that was created meanwhile counts too.
    expect(await create()).toContain('Too many open tasks')
  })

  test('are read again at the limit, but not with every request', async () => {
    for (let i = 0; i < 5; i += 1) await create()
    stored = { open: 5, bytes: 0 }
    for (let i = 0; i < 50; i += 1) expect(await create()).toContain('Too many open tasks')
    expect(readings).toBe(2)
    stored = { open: 4, bytes: 0 }
    now = 600
    expect(await create()).toBe('created')
    expect(readings).toBe(3)
  })

  test('that end at once never meet the limit, however many there are', async () => {
    for (let i = 0; i < 100; i += 1) expect(await create()).toBe('created')
    expect(readings).toBe(20)
  })

  test('count while they are not in the store yet', async () => {
    for (let i = 0; i < 5; i += 1) await usages.add('ann', { tasks: 1, bytes: 10 })
    expect(await create()).toContain('Too many open tasks')
    expect(readings).toBe(2)
  })

  test('are not created while the store cannot be read', async () => {
    failing = true
    expect(await create()).toBe('The database is down.')
    failing = false
    expect(await create()).toBe('created')
  })

  test('of callers without a principal are ten times as many', async () => {
    const results = await Promise.all(Array.from({ length: 60 }, () => create('')))
    expect(created(results)).toBe(50)
    expect(results.at(-1)).toContain('all callers without a principal together may have 50')
  })
})
