import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { MemoryTasks } from '../store/memory/tasks.ts'
import type { TaskStore } from '../store/tasks.ts'
import { Followers } from './followers.ts'

const COUNT = 2_000

let tasks: MemoryTasks
let store: TaskStore
/** How many reads began in each turn of the event loop, and the sizes of the queries for versions. */
let turns: number[]
let batches: number[]
let told: string[]
let followers: Followers

beforeEach(async () => {
  tasks = new MemoryTasks()
  turns = []
  batches = []
  told = []
  let turn: NodeJS.Immediate | undefined
  store = {
    ...bound(tasks),
    read: (id) => {
      if (turn === undefined) {
        turns.push(0)
        turn = setImmediate(() => (turn = undefined))
      }
      turns[turns.length - 1] = (turns.at(-1) ?? 0) + 1
      return tasks.read(id)
    },
    versions: (ids) => {
      batches.push(ids.length)
      return tasks.versions(ids)
    },
  }
  followers = new Followers(store, { warn: () => {}, error: () => {} })
  for (let i = 0; i < COUNT; i += 1) await tasks.create(newTask(String(i)))
})
afterEach(() => vi.useRealTimers())

function bound(all: MemoryTasks): TaskStore {
  const names = ['create', 'list', 'claim', 'renew', 'append', 'change', 'usage', 'sweep', 'watch'] as const
  return Object.fromEntries(names.map((name) => [name, all[name].bind(all)])) as unknown as TaskStore
}

function newTask(id: string): Parameters<TaskStore['create']>[0] {
  return { id, owner: '', request: '{}', state: '{}', journal: '[]', message: undefined, pollMs: 1, ttlMs: null }
}

function followAll(): () => void {
  const ids = Array.from({ length: COUNT }, (_, i) => String(i))
  return followers.follow(ids, ({ id, version }) => void told.push(`${id} ${version}`))
}

test('many tasks that change at once are read a few in each turn of the event loop, and each change is told', async () => {
  const stop = followAll()
  await vi.waitFor(() => expect(told).toHaveLength(COUNT))
  for (let i = 0; i < COUNT; i += 1) await tasks.change(String(i), {}, { message: 'Changed.' })
  await vi.waitFor(() => expect(told).toHaveLength(2 * COUNT))
  expect(new Set(told).size).toBe(2 * COUNT)
  expect(Math.max(...turns)).toBeLessThanOrEqual(50)
  stop()
})

test('the poll reads versions in batches, one after the other, and only the tasks that have changed', async () => {
  // No event comes.
  store.watch = () => () => {}
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] })
  const stop = followAll()
  await vi.waitFor(() => expect(told).toHaveLength(COUNT))
  turns.length = 0
  await tasks.change('7', {}, { message: 'Changed.' })
  const began = performance.now()
  vi.advanceTimersByTime(5_000)
  await vi.waitFor(() => expect(batches).toHaveLength(4), { timeout: 10_000 })
  expect(batches).toEqual([500, 500, 500, 500])
  // Spread over half of the interval.
  expect(performance.now() - began).toBeGreaterThan(1_500)
  await vi.waitFor(() => expect(told.at(-1)).toBe('7 2'))
  expect(turns).toEqual([1])
  stop()
  expect(vi.getTimerCount()).toBe(0)
})

test('a read that hangs holds up no other', async () => {
  store.read = (id) => (id === '0' ? new Promise(() => {}) : tasks.read(id))
  const stop = followAll()
  await vi.waitFor(() => expect(told).toHaveLength(COUNT - 1))
  stop()
})
