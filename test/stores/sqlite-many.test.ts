// Many tasks at once: what is done in one go is bounded, and nothing is missed for it.
import { sqlite } from 'mcp-rally/sqlite'
import { afterEach, beforeEach, expect, test } from 'vitest'
import type { Store } from '../../src/store/store.ts'
import type { TaskRecord } from '../../src/store/tasks.ts'
import { gate } from '../../src/testing/manual-scheduler.ts'
import { newTask } from './contract.ts'
import { Folder } from './folder.ts'

const LONG_MS = 60_000

let store: Store
let now: number

beforeEach(() => {
  now = 1_000_000
  store = sqlite(':memory:', { now: () => now })
})
afterEach(() => store.close())

function make(count: number, owner: string, ttlMs: number | null = null): Promise<TaskRecord[]> {
  const ids = Array.from({ length: count }, (_, i) => `${owner} ${i}`)
  return Promise.all(ids.map((id) => store.tasks.create(newTask(id, { owner, ttlMs, journal: '[1,2]' }))))
}

test('one task is found among those of another owner that fall due with it, however many these are', async () => {
  const all = await make(2_500, 'ada')
  await Promise.all(all.map(({ id }) => store.tasks.change(id, {}, { dueMs: 50 })))
  await store.tasks.create(newTask('t', { owner: 'bob' }))
  await store.tasks.change('t', {}, { dueMs: 60 })
  now += 100
  const turn = { after: '', except: 'ada', leaseMs: LONG_MS }
  expect(await store.tasks.claim(turn)).toMatchObject({ id: 't' })
  expect(await store.tasks.claim(turn)).toBeUndefined()
  expect(await store.tasks.claim({ after: '', leaseMs: LONG_MS })).toMatchObject({ owner: 'ada' })
})

test('one task is found behind those that have outlived their ttl, however many these are', async () => {
  await make(1_500, 'ada', 50)
  await store.tasks.create(newTask('t', { owner: 'ada' }))
  now += 100
  expect(await store.tasks.claim({ after: '', leaseMs: LONG_MS })).toMatchObject({ id: 't' })
  expect(await store.tasks.sweep()).toBe(0)
})

test('a sweep takes so many and no more', async () => {
  await make(1_200, 'ada', 50)
  now += 100
  const swept: number[] = []
  for (let some = await store.tasks.sweep(); some > 0; some = await store.tasks.sweep()) swept.push(some)
  expect(swept).toEqual([500, 500, 200])
})

test('a page of a list is so long and no longer, and the next one goes on from there', async () => {
  await make(1_200, 'ada')
  const page = await store.tasks.list('ada', 1_000_000)
  expect(page).toHaveLength(1_000)
  const next = await store.tasks.list('ada', 1_000_000, page.at(-1))
  expect(new Set([...page, ...next].map(({ id }) => id)).size).toBe(1_200)
})

test('those who watch in another process hear of every change, however many there are at once', async () => {
  const changed = new Set<string>()
  const { promise: heardAll, open } = gate()
  const folder = new Folder()
  const [here, there] = [sqlite(folder.file(), { synchronous: 'normal' }), sqlite(folder.file(), { pollMs: 5 })]
  const stop = there.tasks.watch((news) => {
    if (news.type === 'changed' && changed.add(news.id).size === 2_500) open()
  })
  await Promise.all(Array.from({ length: 2_500 }, (_, i) => here.tasks.create(newTask(`t${i}`))))
  await heardAll
  stop()
  await Promise.all([here.close(), there.close()])
  folder.remove()
})
