// Tasks that have outlived their time.
import { describe, expect, test } from 'vitest'
import type { Hands } from './hands.ts'
import { LONG_MS, TTL_MS, PAST_TTL_MS } from './hands.ts'

export function ttl(hands: () => Hands): void {
  describe('a ttl', () => {
    test('that has gone by leaves nothing for anybody, swept or not (4)', async () => {
      const { tasks, another, elapse, claim, claimed, made, heldTask, park } = hands()
      const held = await heldTask('held', { ttlMs: TTL_MS })
      const parked = await heldTask('parked', { ttlMs: TTL_MS })
      await park(parked)
      await made('due', { ttlMs: TTL_MS })
      await made('stays', { owner: 'bob', ttlMs: LONG_MS })
      await elapse(PAST_TTL_MS)
      for (const swept of [false, true]) {
        if (swept) await tasks.sweep()
        for (const id of ['held', 'parked', 'due']) {
          expect(await another.read(id)).toBeUndefined()
          expect(await tasks.change(id, {}, { message: 'Late.' })).toBeUndefined()
        }
        expect(await tasks.change('held', { fence: held.fence }, { release: true })).toBeUndefined()
        expect(await tasks.append(held, '1')).toBe(false)
        expect(await tasks.renew([held], LONG_MS)).toEqual([])
        expect(await tasks.list('ada', 10)).toEqual([])
      }
      expect(await claimed()).toMatchObject({ id: 'stays' })
      expect(await claim()).toBeUndefined()
    })

    test('is not prolonged by changes, and holds for tasks at their end too', async () => {
      const { tasks, elapse, made } = hands()
      await made('t', { ttlMs: TTL_MS })
      await tasks.change('t', {}, { status: 'completed', outcome: '1' })
      await elapse(PAST_TTL_MS)
      expect(await tasks.read('t')).toBeUndefined()
    })

    test('that has gone by leaves the id for another task', async () => {
      const { elapse, claimed, made } = hands()
      await made('t', { ttlMs: TTL_MS, journal: '[1]' })
      await elapse(PAST_TTL_MS)
      expect(await made('t', { owner: 'bob', ttlMs: null })).toMatchObject({ owner: 'bob', status: 'working' })
      expect(await claimed()).toMatchObject({ owner: 'bob', journal: '[]', lost: false })
    })

    test('a sweep takes what is over and nothing else, until nothing is left to take', async () => {
      const { tasks, another, elapse, made } = hands()
      await Promise.all(Array.from({ length: 25 }, (_, i) => made(`short ${i}`, { ttlMs: TTL_MS, journal: '[1,2]' })))
      await made('long', { ttlMs: LONG_MS })
      await made('for ever', { ttlMs: null })
      expect(await tasks.sweep()).toBe(0)
      await elapse(PAST_TTL_MS)
      let swept = 0
      for (let some = await tasks.sweep(); some > 0; some = await another.sweep()) swept += some
      expect(swept).toBe(25)
      expect(await tasks.list('ada', 50)).toHaveLength(2)
    })
  })
}
