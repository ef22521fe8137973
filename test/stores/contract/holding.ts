// What a worker may do with a task that it holds.
import { describe, expect, test } from 'vitest'
import type { Hands } from './hands.ts'
import { LONG_MS, SHORT_MS, PAST_SHORT_MS } from './hands.ts'

export function holding(hands: () => Hands): void {
  describe('holding', () => {
    test('a lease that is renewed does not run out', async () => {
      const { tasks, another, elapse, claim, heldTask } = hands()
      const held = await heldTask('t', {}, SHORT_MS)
      expect(await tasks.renew([held], LONG_MS)).toEqual([{ id: 't', fence: held.fence, version: held.version }])
      await elapse(PAST_SHORT_MS)
      expect(await claim('', LONG_MS, another)).toBeUndefined()
    })

    test('a lease that is renewed for a while runs out after that', async () => {
      const { tasks, another, elapse, claimed, heldTask } = hands()
      const held = await heldTask()
      await tasks.renew([held], SHORT_MS)
      await elapse(PAST_SHORT_MS)
      expect(await claimed(LONG_MS, another)).toMatchObject({ id: 't', lost: true })
    })

    test('a lease that ran out is renewed as long as nobody took the task over', async () => {
      const { tasks, elapse, claim, heldTask } = hands()
      const held = await heldTask('t', {}, SHORT_MS)
      await elapse(PAST_SHORT_MS)
      expect(await tasks.renew([held], LONG_MS)).toHaveLength(1)
      expect(await claim()).toBeUndefined()
    })

    test('a renewal says how those stand that are held, and leaves out the others', async () => {
      const { tasks, another, heldTask, takenOver, park } = hands()
      const { late, successor } = await takenOver()
      const ended = await heldTask('ended')
      await another.change('ended', {}, { status: 'cancelled' })
      const parked = await heldTask('parked')
      await park(parked)
      const changed = await heldTask('changed')
      const version = await another.change('changed', {}, { message: 'Hello.' })
      const held = [late, successor, ended, parked, changed, { id: 'unheard of', fence: 1 }]
      expect(await tasks.renew(held, LONG_MS)).toEqual([
        { id: 't', fence: successor.fence, version: successor.version },
        { id: 'changed', fence: changed.fence, version },
      ])
    })

    test('a renewal of nothing gives nothing', async () => {
      const { tasks } = hands()
      expect(await tasks.renew([], LONG_MS)).toEqual([])
    })

    test('a renewal is no change', async () => {
      const { tasks, elapse, claimed, made } = hands()
      const before = await made('t')
      const held = await claimed()
      await elapse(5)
      await tasks.renew([held], LONG_MS)
      expect(await tasks.read('t')).toEqual(before)
    })

    test.each([
      { journal: '[]', appended: [], whole: '[]' },
      { journal: '[]', appended: ['1'], whole: '[1]' },
      {
        journal: '["s","a",1,null]',
        appended: ['"s","b",2,{"x":[]}', '3'],
        whole: '["s","a",1,null,"s","b",2,{"x":[]},3]',
      },
      { journal: '[1]', appended: ['', '2', ''], whole: '[1,2]' },
      { journal: '[[1]]', appended: ['[2]'], whole: '[[1],[2]]' },
    ])('$journal with $appended appended is $whole', async ({ journal, appended, whole }) => {
      const { tasks, another, elapse, claimed, heldTask } = hands()
      const held = await heldTask('t', { journal }, SHORT_MS)
      for (const entries of appended) expect(await tasks.append(held, entries)).toBe(true)
      await elapse(PAST_SHORT_MS)
      expect(await claimed(LONG_MS, another)).toMatchObject({ journal: whole })
    })

    test('entries stay in the order in which they were appended, however many there are', async () => {
      const { tasks, claimed, heldTask } = hands()
      const held = await heldTask('t', { journal: '[0]' })
      const numbers = Array.from({ length: 300 }, (_, i) => i + 1)
      // Not one after the other: what is asked for first comes first.
      expect(new Set(await Promise.all(numbers.map((n) => tasks.append(held, String(n)))))).toEqual(new Set([true]))
      await tasks.change('t', { fence: held.fence }, { release: true, dueMs: 0 })
      expect((await claimed()).journal).toBe(JSON.stringify([0, ...numbers]))
    })

    test('what is appended is no change', async () => {
      const { tasks, elapse, claimed, made } = hands()
      const before = await made('t')
      const held = await claimed()
      await elapse(5)
      await tasks.append(held, '1')
      expect(await tasks.read('t')).toEqual(before)
      expect(await tasks.change('t', { version: before.version }, {})).toBeGreaterThan(before.version)
    })

    test('journals have nothing to do with each other', async () => {
      const { tasks, claimed, heldTask } = hands()
      const one = await heldTask('one', { journal: '[1]' })
      const two = await heldTask('two', { journal: '[2]' })
      await tasks.append(one, '11')
      await tasks.append(two, '22')
      await tasks.append(one, '111')
      for (const held of [one, two]) await tasks.change(held.id, { fence: held.fence }, { release: true, dueMs: 0 })
      const both = [await claimed(), await claimed()].toSorted((a, b) => (a.id < b.id ? -1 : 1))
      expect(both.map(({ journal }) => journal)).toEqual(['[1,11,111]', '[2,22]'])
    })
  })
}
