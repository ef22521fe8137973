// What operations need: finding tasks of any owner, looking into one, keeping what failed, deleting what has ended.
import { describe, expect, test } from 'vitest'
import type { TaskQuery } from '../../../src/store/tasks.ts'
import { MAX_LOOKED } from '../../../src/store/operations.ts'
import type { TaskStore } from '../../../src/store/tasks.ts'
import type { Hands } from './hands.ts'
import { ENDS, LONG_MS, newTask, PAST_SHORT_MS, PAST_TTL_MS, SHORT_MS, TTL_MS } from './hands.ts'

export function operations(hands: () => Hands): void {
  describe('finding', () => {
    test('all tasks, the newest first, whoever owns them', async () => {
      const { tasks, another, elapse, made } = hands()
      for (const [id, owner] of [
        ['a', 'ada'],
        ['b', 'bob'],
        ['c', ''],
      ] as const) {
        await made(id, { owner })
        await elapse(5)
      }
      const { tasks: found, next } = await find(another, {})
      expect(found.map(({ id }) => id)).toEqual(['c', 'b', 'a'])
      expect(found[0]).toEqual(await tasks.read('c'))
      expect(next).toBeUndefined()
    })

    test('by owner, status, and how the request and the state begin', async () => {
      const { tasks, elapse, made } = hands()
      await made('a', { request: '{"tool":"deploy"}' })
      await elapse(5)
      await made('b', { request: '{"tool":"deploy"}', owner: 'bob' })
      await elapse(5)
      await made('c', { request: '{"tool":"deployed"}', state: '{"ended":"error"}' })
      await elapse(5)
      await tasks.change('b', {}, { status: 'input_required' })
      await tasks.change('c', {}, { status: 'failed' })
      expect(await ids(tasks, { owner: 'ada' })).toEqual(['c', 'a'])
      expect(await ids(tasks, { statuses: ['input_required', 'failed'] })).toEqual(['c', 'b'])
      expect(await ids(tasks, { statuses: [] })).toEqual([])
      expect(await ids(tasks, { requestPrefix: '{"tool":"deploy"' })).toEqual(['b', 'a'])
      expect(await ids(tasks, { statePrefix: '{"ended":"error"' })).toEqual(['c'])
      expect(await ids(tasks, { owner: 'ada', statuses: ['failed'], requestPrefix: '{"tool":"deploy"' })).toEqual([])
      expect(await ids(tasks, { requestPrefix: '%' })).toEqual([])
      expect(await ids(tasks, { owner: 'x'.repeat(2_000) })).toEqual([])
    })

    test('those that were created before a time', async () => {
      const { tasks, elapse, made } = hands()
      const times: number[] = []
      for (let i = 0; i < 5; i += 1) {
        const { createdAt } = await made(`t${i}`, { owner: i % 2 === 0 ? 'ada' : 'bob' })
        times.push(createdAt)
        await elapse(5)
      }
      expect(await ids(tasks, { createdBefore: times[2] ?? 0 })).toEqual(['t1', 't0'])
      expect(await ids(tasks, { createdBefore: (times[2] ?? 0) + 1 })).toEqual(['t2', 't1', 't0'])
      expect(await ids(tasks, { createdBefore: times[4] ?? 0, owner: 'ada' })).toEqual(['t2', 't0'])
      expect(await ids(tasks, { createdBefore: 0 })).toEqual([])
      expect(await ids(tasks, { createdBefore: (times[4] ?? 0) + LONG_MS })).toHaveLength(5)
    })

    test.each([{}, { owner: 'ada' }, { statuses: ['working'] }, { owner: 'ada', statuses: ['working'] }] as const)(
      'page by page with %j, each task once',
      async (query) => {
        const { tasks, made } = hands()
        await Promise.all(Array.from({ length: 7 }, (_, i) => made(`t${i}`)))
        const seen: string[] = []
        let cursor: string | undefined
        let pages = 0
        do {
          const page = await find(tasks, { ...query, limit: 3, ...(cursor !== undefined && { cursor }) })
          expect(page.tasks.length).toBeLessThanOrEqual(3)
          seen.push(...page.tasks.map(({ id }) => id))
          cursor = page.next
          pages += 1
        } while (cursor !== undefined && pages < 10)
        expect(seen.toSorted()).toEqual(Array.from({ length: 7 }, (_, i) => `t${i}`))
        expect(pages).toBeLessThan(5)
      },
    )

    test('a page goes on where a task was that is no more', async () => {
      const { tasks, elapse, made } = hands()
      for (const id of ['a', 'b', 'c']) {
        await made(id)
        await elapse(5)
      }
      const { next = '' } = await find(tasks, { limit: 2 })
      await tasks.change('b', {}, { status: 'completed' })
      await tasks.remove?.(['b'])
      expect(await ids(tasks, { cursor: next })).toEqual(['a'])
    })

    test('looks at a bounded number of tasks, and says where to go on', async () => {
      const { tasks, made } = hands()
      await made('first', { request: '{"tool":"rare"}' })
      for (let i = 0; i < MAX_LOOKED; i += 500) {
        await Promise.all(Array.from({ length: 500 }, (_, j) => tasks.create(newTask(`t${i + j}`))))
      }
      const query = { requestPrefix: '{"tool":"rare"', limit: 10 }
      const page = await find(tasks, query)
      expect(page).toMatchObject({ tasks: [], next: expect.any(String) })
      const second = await find(tasks, { ...query, cursor: page.next ?? '' })
      expect(second.tasks.map(({ id }) => id)).toEqual(['first'])
    }, 20_000)

    test('leaves out what has outlived its ttl', async () => {
      const { tasks, elapse, made } = hands()
      await made('short', { ttlMs: TTL_MS })
      await made('long')
      await elapse(PAST_TTL_MS)
      expect(await ids(tasks, {})).toEqual(['long'])
    })

    test('refuses a position that no page returned', async () => {
      const { tasks } = hands()
      await expect(find(tasks, { cursor: 'nonsense' })).rejects.toMatchObject({ code: 'TASK_CURSOR' })
    })
  })

  describe('inspecting', () => {
    test('shows the journal, the worker and the times of a task, and claims nothing', async () => {
      const { tasks, another, made } = hands()
      await made('t', { journal: '[1,2]', ttlMs: LONG_MS })
      expect(await tasks.inspect?.('t')).toMatchObject({
        journal: '[1,2]',
        claimedBy: undefined,
        leaseUntil: undefined,
      })
      const held = await tasks.claim({ after: '', leaseMs: LONG_MS, worker: 'web-1 "\0"' })
      if (held === undefined) throw new Error('It is due.')
      await tasks.append(held, '3')
      const seen = await another.inspect?.('t')
      expect(seen).toMatchObject({ ...(await tasks.read('t')), journal: '[1,2,3]', claimedBy: 'web-1 "\0"' })
      expect(seen?.leaseUntil).toBeGreaterThan(held.createdAt)
      expect(seen?.expiresAt).toBe(held.createdAt + LONG_MS)
      expect(await tasks.renew([held], LONG_MS)).toHaveLength(1)
      await tasks.change('t', { fence: held.fence }, { release: true, dueMs: LONG_MS })
      const released = await tasks.inspect?.('t')
      expect(released).toMatchObject({ leaseUntil: undefined, claimedBy: 'web-1 "\0"' })
      expect(released?.dueAt).toBeGreaterThan(held.createdAt)
    })

    test('shows nothing of a task that does not exist', async () => {
      const { tasks, elapse, made } = hands()
      expect(await tasks.inspect?.('none')).toBeUndefined()
      await made('short', { ttlMs: TTL_MS })
      await elapse(PAST_TTL_MS)
      expect(await tasks.inspect?.('short')).toBeUndefined()
    })

    test('a claim after a lost worker says which one that was', async () => {
      const { tasks, another, elapse, made } = hands()
      await made('t')
      const first = await tasks.claim({ after: '', leaseMs: SHORT_MS, worker: 'web-1' })
      expect(first).toMatchObject({ lost: false })
      expect(first?.lostWorker).toBeUndefined()
      await elapse(PAST_SHORT_MS)
      const second = await another.claim({ after: '', leaseMs: LONG_MS, worker: 'web-2' })
      expect(second).toMatchObject({ lost: true, lostWorker: 'web-1' })
    })

    test('a claim that comes with a create or a change names its worker too', async () => {
      const { tasks, made, heldTask } = hands()
      if (tasks.createAndClaim !== undefined) {
        await tasks.createAndClaim(newTask('created'), LONG_MS, 'web-1')
        expect(await tasks.inspect?.('created')).toMatchObject({ claimedBy: 'web-1' })
      }
      if (tasks.changeAndClaim !== undefined) {
        await made('changed')
        await tasks.changeAndClaim('changed', {}, { dueMs: 0 }, LONG_MS, 'web-2')
        expect(await tasks.inspect?.('changed')).toMatchObject({ claimedBy: 'web-2' })
      }
      await heldTask('held')
    })
  })

  describe('keeping', () => {
    test.each(ENDS)('the journal of a task that has ended as %s, if that is asked for', async (status) => {
      const { tasks, heldTask } = hands()
      const held = await heldTask('t', { journal: '[1]' })
      await tasks.append(held, '2')
      await tasks.change('t', { fence: held.fence }, { status, state: '{"ended":1}', keepMs: LONG_MS })
      expect(await tasks.inspect?.('t')).toMatchObject({ status, journal: '[1,2]', state: '{"ended":1}' })
      expect(await tasks.inspect?.('t')).toMatchObject({ leaseUntil: undefined, dueAt: undefined })
    })

    test('the journal that came with the end', async () => {
      const { tasks, heldTask } = hands()
      const held = await heldTask('t', { journal: '[1]' })
      await tasks.change('t', { fence: held.fence }, { status: 'failed', journal: '[1,2,3]', keepMs: LONG_MS })
      expect(await tasks.inspect?.('t')).toMatchObject({ journal: '[1,2,3]' })
    })

    test('nothing without that', async () => {
      const { tasks, heldTask } = hands()
      const held = await heldTask('t', { journal: '[1]' })
      await tasks.change('t', { fence: held.fence }, { status: 'failed' })
      expect(await tasks.inspect?.('t')).toMatchObject({ journal: '[]' })
    })

    test('the task beyond its ttl, and no longer than was asked for', async () => {
      const { tasks, elapse, made } = hands()
      const { ttlMs } = await made('kept', { ttlMs: TTL_MS })
      await made('shorter', { ttlMs: LONG_MS })
      await made('for ever')
      await tasks.change('kept', {}, { status: 'failed', keepMs: 2 * TTL_MS })
      await tasks.change('shorter', {}, { status: 'failed', keepMs: 1 })
      await tasks.change('for ever', {}, { status: 'failed', keepMs: 1 })
      await elapse(PAST_TTL_MS)
      await tasks.sweep()
      expect(await tasks.read('kept')).toMatchObject({ status: 'failed', ttlMs })
      expect(await tasks.read('shorter')).toBeDefined()
      expect((await tasks.inspect?.('for ever'))?.expiresAt).toBeUndefined()
      await elapse(PAST_TTL_MS)
      expect(await tasks.read('kept')).toBeUndefined()
    })

    test('counts as what its owner uses', async () => {
      const { tasks, made } = hands()
      await made('t', { journal: '["0123456789"]' })
      const before = await tasks.usage('ada')
      await tasks.change('t', {}, { status: 'failed', keepMs: LONG_MS })
      expect(await tasks.usage('ada')).toEqual({ open: 0, bytes: before.bytes })
    })
  })

  test('only tasks that have ended are deleted', async () => {
    const { tasks, another, made } = hands()
    for (const id of ['open', 'asking', ...ENDS]) await made(id, { journal: '[1]' })
    await tasks.change('asking', {}, { status: 'input_required' })
    for (const status of ENDS) await tasks.change(status, {}, { status })
    expect(await another.remove?.(['open', 'asking', 'none', ...ENDS, ...ENDS])).toBe(ENDS.length)
    expect(await ids(tasks, {})).toHaveLength(2)
    expect(await tasks.read('failed')).toBeUndefined()
    expect(await tasks.remove?.([])).toBe(0)
  })
}

async function find(tasks: TaskStore, query: Partial<TaskQuery>) {
  const found = await tasks.find?.({ limit: 100, ...query })
  if (found === undefined) throw new Error('The store cannot find tasks.')
  return found
}

async function ids(tasks: TaskStore, query: Partial<TaskQuery>): Promise<string[]> {
  return (await find(tasks, query)).tasks.map(({ id }) => id)
}
