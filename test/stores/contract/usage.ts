// What the tasks of an owner use.
import { describe, expect, test } from 'vitest'
import type { Hands } from './hands.ts'
import { ENDS, PAST_TTL_MS, TTL_MS } from './hands.ts'

export function usage(hands: () => Hands): void {
  describe('usage', () => {
    const nothing = { open: 0, bytes: 0 }

    test('counts the tasks of the owner alone, on every instance', async () => {
      const { tasks, another, made } = hands()
      expect(await tasks.usage('ada')).toEqual(nothing)
      await made('a', { owner: 'ada', request: '"12345678"', state: '{}', journal: '[1,2]' })
      await made('b', { owner: 'ada', request: '"\u20ac"', state: '{}' })
      await made('c', { owner: 'bob' })
      expect(await another.usage('ada')).toEqual({ open: 2, bytes: 10 + 2 + 3 + 5 + 2 })
      expect((await another.usage('bob')).open).toBe(1)
      expect(await another.usage('')).toEqual(nothing)
    })

    test('grows with the journal, the state and the outcome', async () => {
      const { tasks, heldTask } = hands()
      const task = await heldTask('t', { request: '""', state: '{}' })
      await tasks.append(task, '"a","b"')
      await tasks.append(task, '"c"')
      const { open, bytes } = await tasks.usage('ada')
      expect(open).toBe(1)
      // A store may count the comma between them.
      expect([4 + 7 + 3, 4 + 7 + 1 + 3]).toContain(bytes)
      await tasks.change('t', task, { state: '{"more":1}' })
      expect(await tasks.usage('ada')).toEqual({ open: 1, bytes: bytes + 8 })
      await tasks.change('t', { fence: task.fence }, { status: 'completed', outcome: '{"a":1}' })
      expect(await tasks.usage('ada')).toEqual({ open: 0, bytes: 12 + 7 })
    })

    test.each(ENDS)('counts a task that is %s as ended', async (status) => {
      const { tasks, made } = hands()
      await made('t')
      await tasks.change('t', {}, { status })
      expect((await tasks.usage('ada')).open).toBe(0)
    })

    test('counts the bytes of a task that has outlived its ttl until it is deleted', async () => {
      const { tasks, elapse, made } = hands()
      await made('t', { ttlMs: TTL_MS })
      const { bytes } = await tasks.usage('ada')
      await elapse(PAST_TTL_MS)
      expect(await tasks.usage('ada')).toEqual({ open: 0, bytes })
      while ((await tasks.sweep()) > 0);
      expect(await tasks.usage('ada')).toEqual(nothing)
    })
  })
}
