// Who gets which task: owners in turn, the longest due first, and none twice.
import { describe, expect, test } from 'vitest'
import type { Hands } from './hands.ts'
import { LONG_MS, SHORT_MS, PAST_SHORT_MS } from './hands.ts'

export function claiming(hands: () => Hands): void {
  describe('claiming', () => {
    test('a task is due as soon as it is made, and is given with its journal', async () => {
      const { another, claimed, made } = hands()
      const task = await made('t', { journal: '["s","plan",5,{"sha":"c0ffee"}]' })
      expect(await claimed(LONG_MS, another)).toEqual({
        ...task,
        fence: expect.any(Number),
        journal: '["s","plan",5,{"sha":"c0ffee"}]',
        lost: false,
      })
    })

    test('a claim is no change', async () => {
      const { tasks, elapse, claimed, made } = hands()
      const before = await made('t')
      await elapse(5)
      await claimed()
      expect(await tasks.read('t')).toEqual(before)
    })

    test('a task that is held is nobody else to take', async () => {
      const { another, claim, heldTask } = hands()
      await heldTask()
      expect(await claim()).toBeUndefined()
      expect(await claim('', LONG_MS, another)).toBeUndefined()
    })

    test('a task falls due again when the lease runs out, and is lost then; its fence is higher', async () => {
      const { takenOver } = hands()
      const { late, successor } = await takenOver()
      expect(successor).toMatchObject({ id: 't', lost: true, version: late.version })
      expect(successor.fence).toBeGreaterThan(late.fence)
    })

    test('a task that the caller runs is not claimed, even if its lease has expired, unless another has claimed it since', async () => {
      const { tasks, another, elapse, heldTask } = hands()
      const { id, fence } = await heldTask('t', {}, SHORT_MS)
      const running = [{ id, fence }]
      await elapse(PAST_SHORT_MS)
      expect(await tasks.claim({ after: '', running, leaseMs: SHORT_MS })).toBeUndefined()
      await elapse(PAST_SHORT_MS)
      expect(await another.claim({ after: '', leaseMs: SHORT_MS })).toMatchObject({ id, lost: true })
      await elapse(PAST_SHORT_MS)
      expect(await tasks.claim({ after: '', running, leaseMs: LONG_MS })).toMatchObject({ id, lost: true })
    })

    test('a task that was let go is not lost', async () => {
      const { tasks, elapse, claimed, heldTask } = hands()
      const first = await heldTask('t', {}, SHORT_MS)
      await tasks.change('t', { fence: first.fence }, { release: true, dueMs: 0 })
      await elapse(PAST_SHORT_MS)
      const second = await claimed()
      expect(second.lost).toBe(false)
      expect(second.fence).toBeGreaterThan(first.fence)
    })

    test('of the tasks of an owner the one that has been due for longest comes first', async () => {
      const { tasks, elapse, claimed, made } = hands()
      for (const id of ['c', 'a', 'b']) {
        await made(id)
        await elapse(5)
      }
      const first = await claimed()
      await tasks.change(first.id, { fence: first.fence }, { release: true, dueMs: 0 })
      const order = [first.id]
      for (let i = 0; i < 3; i += 1) order.push((await claimed()).id)
      expect(order).toEqual(['c', 'a', 'b', 'c'])
    })

    test('owners are served in turn, in the order of their names, going round', async () => {
      const { claim, made } = hands()
      for (const owner of ['bob', '', 'cyd', 'ada'])
        for (const n of [1, 2]) await made(`${owner}${n}`, { owner, message: String(n) })
      const served: string[] = []
      let after = ''
      for (let task = await claim(after); task !== undefined; task = await claim(after)) {
        after = task.owner
        served.push(after)
      }
      expect(served).toEqual(['ada', 'bob', 'cyd', '', 'ada', 'bob', 'cyd', ''])
    })

    test('the turn goes on after an owner that has nothing, and comes round to the same one', async () => {
      const { claim, made } = hands()
      await made('t1', { owner: 'bob' })
      await made('t2', { owner: 'bob' })
      expect(await claim('ada')).toMatchObject({ owner: 'bob' })
      expect(await claim('bob')).toMatchObject({ owner: 'bob' })
      expect(await claim('bob')).toBeUndefined()
    })

    test('an owner whose tasks are not due is passed over', async () => {
      const { tasks, claim, made, heldTask, park } = hands()
      const parked = await heldTask('parked', { owner: 'bob' })
      await park(parked)
      await heldTask('held', { owner: 'bob' })
      const later = await heldTask('later', { owner: 'bob' })
      await tasks.change('later', { fence: later.fence }, { release: true, dueMs: LONG_MS })
      await made('t', { owner: 'cyd' })
      expect(await claim('ada')).toMatchObject({ id: 't' })
      expect(await claim('ada')).toBeUndefined()
    })

    test.each([
      { after: '', except: 'ada', served: ['bob', 'cyd', ''] },
      { after: 'ada', except: 'bob', served: ['cyd', '', 'ada'] },
      { after: 'bob', except: 'bob', served: ['cyd', '', 'ada'] },
      { after: 'cyd', except: '', served: ['ada', 'bob', 'cyd'] },
      { after: 'zoe', except: 'nobody', served: ['', 'ada', 'bob', 'cyd'] },
    ])('nothing is taken of the owner "$except", beginning after "$after"', async ({ after, except, served }) => {
      const { tasks, claim, made } = hands()
      for (const owner of ['ada', 'bob', 'cyd', '']) await made(`of ${owner}`, { owner })
      const taken: string[] = []
      let last = after
      for (;;) {
        const task = await tasks.claim({ after: last, except, leaseMs: LONG_MS })
        if (task === undefined) break
        last = task.owner
        taken.push(last)
      }
      expect(taken).toEqual(served)
      // It was there to be taken, had it not been excepted.
      expect(await claim(last)).toEqual(served.length === 4 ? undefined : expect.objectContaining({ owner: except }))
    })

    test('of many that claim at once no two get the same task', async () => {
      const { tasks, another, claim, made } = hands()
      const all = Array.from({ length: 30 }, (_, i) => `t${i}`)
      await Promise.all(all.map((id, i) => made(id, { owner: `owner ${i % 4}` })))
      const got = await Promise.all(Array.from({ length: 50 }, (_, i) => claim('', LONG_MS, i % 2 ? tasks : another)))
      const taken = got.flatMap((task) => (task === undefined ? [] : [task.id]))
      // One that finds itself overtaken may come away with nothing; what is left is there for the next.
      for (let task = await claim(); task !== undefined; task = await claim()) taken.push(task.id)
      expect(taken.toSorted()).toEqual(all.toSorted())
    })

    test('of many that claim at once what was lost exactly one gets it', async () => {
      const { tasks, another, elapse, claim, heldTask } = hands()
      const { fence } = await heldTask('t', {}, SHORT_MS)
      await elapse(PAST_SHORT_MS)
      const got = await Promise.all(Array.from({ length: 20 }, (_, i) => claim('', LONG_MS, i % 2 ? tasks : another)))
      const taken = got.filter((task) => task !== undefined)
      expect(taken).toHaveLength(1)
      expect(taken[0]?.fence).toBeGreaterThan(fence)
    })
  })
}
