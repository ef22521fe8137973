// The tasks of an owner, page by page.
import { describe, expect, test } from 'vitest'
import type { TaskRecord } from '../../../src/store/tasks.ts'
import type { Hands } from './hands.ts'
import { TTL_MS, PAST_TTL_MS, ENDS } from './hands.ts'

export function listing(hands: () => Hands): void {
  describe('listing', () => {
    test('the tasks of an owner are listed by age, and nobody else has them in his list', async () => {
      const { tasks, another, elapse, made } = hands()
      for (const id of ['c', 'a', 'b']) {
        await made(id, { owner: 'ada' })
        await made(`other ${id}`, { owner: 'bob' })
        await elapse(5)
      }
      await made('nobody', { owner: '' })
      const list = await tasks.list('ada', 10)
      expect(ids(list)).toEqual(['c', 'a', 'b'])
      expect(list[0]).toEqual(await tasks.read('c'))
      expect(ids(await another.list('', 10))).toEqual(['nobody'])
      expect(await tasks.list('ad', 10)).toEqual([])
    })

    test('a list goes on after the task named, and each is in it once', async () => {
      const { tasks, made } = hands()
      await Promise.all(Array.from({ length: 7 }, (_, i) => made(`t${i}`)))
      const seen: string[] = []
      let last: TaskRecord | undefined
      for (let pages = 0; pages < 5; pages += 1) {
        const page: TaskRecord[] = await tasks.list('ada', 3, last)
        expect(page.length).toBeLessThanOrEqual(3)
        seen.push(...ids(page))
        last = page.at(-1) ?? last
      }
      expect(seen.toSorted()).toEqual(Array.from({ length: 7 }, (_, i) => `t${i}`))
    })

    test('a list goes on after a task that is no more', async () => {
      const { tasks, elapse, made } = hands()
      await made('a', { ttlMs: TTL_MS })
      await elapse(5)
      await made('b')
      const [first] = await tasks.list('ada', 1)
      await elapse(PAST_TTL_MS)
      await tasks.sweep()
      expect(ids(await tasks.list('ada', 10, first))).toEqual(['b'])
    })

    test('tasks of every status are in the list', async () => {
      const { tasks, elapse, made } = hands()
      for (const status of ENDS) {
        await made(status)
        await tasks.change(status, {}, { status })
        await elapse(5)
      }
      expect((await tasks.list('ada', 10)).map(({ status }) => status)).toEqual(ENDS)
    })

    test('the versions of many tasks are read at once, without those that do not exist', async () => {
      const { tasks, another, elapse, made } = hands()
      await made('a')
      await made('b', { owner: 'bob' })
      await made('short', { ttlMs: TTL_MS })
      await made('odd \0 "\ud800"')
      await tasks.change('b', {}, { message: 'Changed.' })
      const names = ['a', 'b', 'none', 'short', 'odd \0 "\ud800"', '']
      const byId = async (): Promise<Record<string, number>> =>
        Object.fromEntries((await another.versions(names)).map(({ id, version }) => [id, version]))
      expect(await byId()).toEqual({ a: 1, b: 2, short: 1, 'odd \0 "\ud800"': 1 })
      await elapse(PAST_TTL_MS)
      expect(await byId()).toEqual({ a: 1, b: 2, 'odd \0 "\ud800"': 1 })
      expect(await tasks.versions([])).toEqual([])
    })

    test('a list of none is empty', async () => {
      const { tasks, made } = hands()
      await made('t')
      expect(await tasks.list('ada', 0)).toEqual([])
    })
  })
}

function ids(list: readonly TaskRecord[]): string[] {
  return list.map(({ id }) => id)
}
