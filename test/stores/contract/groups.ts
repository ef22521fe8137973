// Groups of tasks, of which only so many run at a time (5).
import { describe, expect, test } from 'vitest'
import type { ClaimedTask, NewTask, TaskStore } from '../../../src/store/tasks.ts'
import type { Hands } from './hands.ts'
import { LONG_MS, newTask, PAST_SHORT_MS, PAST_TTL_MS, SHORT_MS, TTL_MS } from './hands.ts'

/** Claims as a worker does when it polls. */
function next(by: TaskStore, leaseMs = LONG_MS): Promise<ClaimedTask | undefined> {
  return by.claim({ after: '', leaseMs, groups: true })
}

async function nextId(by: TaskStore): Promise<string | undefined> {
  return (await next(by))?.id
}

async function claimedNext(by: TaskStore, leaseMs?: number): Promise<ClaimedTask> {
  const task = await next(by, leaseMs)
  if (task === undefined) throw new Error('A task should have a place, but none has.')
  return task
}

export function groups(hands: () => Hands): void {
  /** Creates tasks of one group, one after the other. */
  const madeInGroup = async (limit: number, ids: readonly string[], given: Partial<NewTask> = {}): Promise<void> => {
    const { elapse, made } = hands()
    for (const id of ids) {
      await made(id, { group: { name: 'repo', limit }, ...given })
      await elapse(2)
    }
  }

  describe('groups', () => {
    test('a task over the limit waits until another one ends, and the one goes first that has waited longest', async () => {
      const { tasks, another } = hands()
      await madeInGroup(2, ['a', 'b', 'c', 'd'])
      const first = await claimedNext(tasks)
      const second = await claimedNext(another)
      expect([first.id, second.id]).toEqual(['a', 'b'])
      expect(await next(tasks)).toBeUndefined()
      expect(await next(another)).toBeUndefined()
      await tasks.change('a', { fence: first.fence }, { status: 'completed', outcome: '{}' })
      expect(await nextId(another)).toBe('c')
      expect(await next(tasks)).toBeUndefined()
    })

    test('groups do not wait for each other, and tasks without one do not wait at all', async () => {
      const { tasks, made } = hands()
      await madeInGroup(1, ['a', 'b'])
      await made('other', { group: { name: 'another repo', limit: 1 } })
      await made('free')
      const claimed = [await nextId(tasks), await nextId(tasks), await nextId(tasks), await nextId(tasks)]
      expect(new Set(claimed)).toEqual(new Set(['a', 'free', 'other', undefined]))
    })

    test.each([
      ['is parked', { status: 'input_required', release: true, dueMs: null }],
      ['waits for a time', { release: true, dueMs: LONG_MS }],
      ['fails', { status: 'failed', outcome: '{}' }],
      ['fails and is kept', { status: 'failed', outcome: '{}', keepMs: LONG_MS }],
      ['is cancelled', { status: 'cancelled' }],
    ] as const)('a task that %s leaves its place', async (_, change) => {
      const { tasks, another } = hands()
      await madeInGroup(1, ['a', 'b'])
      const { fence } = await claimedNext(tasks)
      expect(await another.change('a', { fence }, change)).toBeDefined()
      expect(await nextId(another)).toBe('b')
      expect(await next(another)).toBeUndefined()
    })

    test('a task that was parked waits for its turn when it is due again', async () => {
      const { tasks, another, elapse } = hands()
      await madeInGroup(1, ['a', 'b', 'c'])
      const { fence } = await claimedNext(tasks)
      await tasks.change('a', { fence }, { status: 'input_required', release: true, dueMs: null })
      const running = await claimedNext(tasks)
      await elapse(2)
      await another.change('a', {}, { status: 'working', dueMs: 0 })
      expect(await next(another)).toBeUndefined()
      await tasks.change('b', { fence: running.fence }, { status: 'completed', outcome: '{}' })
      const third = await claimedNext(another)
      expect(third.id).toBe('c')
      await another.change('c', { fence: third.fence }, { status: 'completed', outcome: '{}' })
      expect(await claimedNext(another)).toMatchObject({ id: 'a', lost: false })
    })

    test('a task that waits for its turn keeps it when it is made due once more', async () => {
      const { tasks, another, elapse } = hands()
      await madeInGroup(1, ['a', 'b', 'c'])
      const { fence } = await claimedNext(tasks)
      await another.change('b', {}, { dueMs: 0 })
      await elapse(2)
      await another.changeAndClaim?.('b', {}, { dueMs: LONG_MS }, LONG_MS)
      await tasks.change('a', { fence }, { status: 'completed', outcome: '{}' })
      expect(await nextId(tasks)).toBe('b')
      expect(await next(tasks)).toBeUndefined()
    })

    test('a task that has a place, and no worker yet, keeps the place when it is made due once more', async () => {
      const { tasks, another, elapse } = hands()
      await madeInGroup(1, ['a', 'b'])
      // Gives the place to the first task, and claims nothing.
      expect(await tasks.claim({ after: '', leaseMs: LONG_MS, groups: true, except: 'ada' })).toBeUndefined()
      await another.change('a', {}, { status: 'working', dueMs: 0 })
      await elapse(2)
      expect(await another.changeAndClaim?.('a', {}, { dueMs: 0 }, LONG_MS)).toEqual(expect.any(Number))
      expect(await nextId(tasks)).toBe('a')
      expect(await next(tasks)).toBeUndefined()
    })

    test('a task that waits for its turn can be parked, and waits anew when it is due again', async () => {
      const { tasks, another, elapse } = hands()
      await madeInGroup(1, ['a', 'b', 'c'])
      const { fence } = await claimedNext(tasks)
      await another.change('b', {}, { dueMs: null })
      await elapse(2)
      await another.change('b', {}, { dueMs: 0 })
      await tasks.change('a', { fence }, { status: 'completed', outcome: '{}' })
      expect(await nextId(tasks)).toBe('c')
    })

    test('a task whose time has come waits for its turn', async () => {
      const { tasks, elapse } = hands()
      await madeInGroup(1, ['a', 'b'])
      const { fence } = await claimedNext(tasks)
      await tasks.change('a', { fence }, { release: true, dueMs: SHORT_MS })
      const running = await claimedNext(tasks)
      await elapse(PAST_SHORT_MS)
      expect(await next(tasks)).toBeUndefined()
      await tasks.change('b', { fence: running.fence }, { status: 'completed', outcome: '{}' })
      expect(await nextId(tasks)).toBe('a')
    })

    test('a task that somebody makes due while it runs has its place until it is let go, and waits for its turn then', async () => {
      const { tasks, another, elapse } = hands()
      await madeInGroup(1, ['a', 'b'])
      const { fence } = await claimedNext(tasks)
      await elapse(2)
      await another.change('a', {}, { dueMs: 0 })
      expect(await next(another)).toBeUndefined()
      await tasks.change('a', { fence }, { release: true })
      const running = await claimedNext(another)
      expect(running.id).toBe('b')
      await another.change('b', { fence: running.fence }, { status: 'completed', outcome: '{}' })
      expect(await nextId(another)).toBe('a')
    })

    test('a task that has lost its worker keeps its place', async () => {
      const { tasks, another, elapse } = hands()
      await madeInGroup(1, ['a', 'b'])
      await claimedNext(tasks, SHORT_MS)
      await elapse(PAST_SHORT_MS)
      expect(await next(another)).toMatchObject({ id: 'a', lost: true })
      expect(await next(another)).toBeUndefined()
    })

    test('a task that has outlived its ttl leaves its place', async () => {
      const { tasks, elapse, made } = hands()
      await made('a', { group: { name: 'repo', limit: 1 }, ttlMs: TTL_MS })
      expect(await nextId(tasks)).toBe('a')
      await madeInGroup(1, ['b'])
      expect(await next(tasks)).toBeUndefined()
      await elapse(PAST_TTL_MS)
      expect(await nextId(tasks)).toBe('b')
    })

    test('tasks that outlived their ttl while they waited leave the queue, all at once', async () => {
      const { tasks, another, elapse } = hands()
      await madeInGroup(1, ['a'])
      await madeInGroup(1, ['b', 'c', 'd'], { ttlMs: TTL_MS })
      await madeInGroup(1, ['e'])
      const { fence } = await claimedNext(tasks)
      await elapse(PAST_TTL_MS)
      await tasks.change('a', { fence }, { status: 'completed', outcome: '{}' })
      expect(await nextId(another)).toBe('e')
    })

    test('a task that waits can be cancelled, and leaves the queue', async () => {
      const { tasks } = hands()
      await madeInGroup(1, ['a', 'b', 'c'])
      const { fence } = await claimedNext(tasks)
      await tasks.change('b', {}, { status: 'cancelled' })
      await tasks.change('a', { fence }, { status: 'completed', outcome: '{}' })
      expect(await nextId(tasks)).toBe('c')
    })

    test('a task of a group is not claimed by the write that makes it due', async () => {
      const { tasks } = hands()
      const group = { name: 'repo', limit: 1 }
      expect(await tasks.createAndClaim?.(newTask('a', { group }), LONG_MS)).not.toHaveProperty('fence')
      expect(await tasks.createAndClaim?.(newTask('b', { group }), LONG_MS)).not.toHaveProperty('fence')
      const { id, fence } = await claimedNext(tasks)
      await tasks.change(id, { fence }, { status: 'input_required', release: true, dueMs: null })
      const other = await claimedNext(tasks)
      expect(await tasks.changeAndClaim?.(id, {}, { dueMs: 0 }, LONG_MS)).toEqual(expect.any(Number))
      expect(await next(tasks)).toBeUndefined()
      expect(other.id).not.toBe(id)
    })

    test('those that watch are told when a place is left', async () => {
      const { tasks, another } = hands()
      await madeInGroup(1, ['a', 'b'])
      const { fence } = await claimedNext(tasks)
      const told = new Promise<void>((resolve) => {
        const stop = another.watch(({ type }) => {
          if (type !== 'due') return
          stop()
          resolve()
        })
      })
      await tasks.change('a', { fence }, { status: 'completed', outcome: '{}' })
      await told
    })

    test('several instances that create, claim, park and end at once never exceed the limit, and all tasks end', async () => {
      const { tasks, another } = hands()
      const limits = new Map([
        ['one', 1],
        ['three', 3],
      ])
      const running = new Map<string, number>()
      let ended = 0
      const count = 40
      const create = async (): Promise<void> => {
        for (let i = 0; i < count; i += 1) {
          const name = i % 2 === 0 ? 'one' : 'three'
          const by = i % 3 === 0 ? tasks : another
          await by.create(
            newTask(`${name}-${i}`, { owner: `owner ${i % 4}`, group: { name, limit: limits.get(name) ?? 0 } }),
          )
        }
      }
      const work = async (by: TaskStore): Promise<void> => {
        while (ended < count) {
          const claimed = (await by.claimMany?.({ after: '', leaseMs: LONG_MS, groups: true }, 4)) ?? []
          for (const { id } of claimed) {
            const name = id.split('-')[0] ?? ''
            running.set(name, (running.get(name) ?? 0) + 1)
            expect(running.get(name)).toBeLessThanOrEqual(limits.get(name) ?? 0)
          }
          await new Promise(setImmediate)
          for (const { id, fence, state } of claimed) {
            const name = id.split('-')[0] ?? ''
            const parks = id.endsWith('7') && state !== '{"parked":true}'
            running.set(name, (running.get(name) ?? 0) - 1)
            await by.change(
              id,
              { fence },
              parks ? { release: true, dueMs: 5, state: '{"parked":true}' } : { status: 'completed', outcome: '{}' },
            )
            if (!parks) ended += 1
          }
          if (claimed.length === 0) await hands().elapse(5)
        }
      }
      await Promise.all([create(), work(tasks), work(tasks), work(another), work(another)])
      expect(ended).toBe(count)
    })
  })
}
