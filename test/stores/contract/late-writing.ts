// What a worker can no longer do to a task that is not its own any more.
import { describe, expect, test } from 'vitest'
import type { Hands } from './hands.ts'
import { LONG_MS, PAST_SHORT_MS, PAST_TTL_MS, SHORT_MS, TTL_MS } from './hands.ts'

export function lateWriting(hands: () => Hands): void {
  describe('a late writer', () => {
    test('under an old fence appends nothing (2)', async () => {
      const { tasks, another, claimed, takenOver } = hands()
      const { late, successor } = await takenOver()
      expect(await tasks.append(late, '"late"')).toBe(false)
      expect(await another.append(successor, '"in time"')).toBe(true)
      await another.change('t', { fence: successor.fence }, { release: true, dueMs: 0 })
      expect((await claimed()).journal).toBe('["in time"]')
    })

    test('under an old fence changes nothing (2)', async () => {
      const { tasks, another, claim, present, takenOver } = hands()
      const { late, successor } = await takenOver()
      const before = await present('t')
      expect(await tasks.change('t', { fence: late.fence }, { message: 'Late.' })).toBeUndefined()
      expect(await tasks.change('t', { fence: late.fence }, { status: 'completed', outcome: '1' })).toBeUndefined()
      expect(await tasks.change('t', { fence: late.fence, version: late.version }, { release: true })).toBeUndefined()
      expect(await tasks.read('t')).toEqual(before)
      expect(await claim()).toBeUndefined()
      expect(await another.change('t', { fence: successor.fence }, { message: 'In time.' })).toBeDefined()
    })

    test('under an old fence renews nothing (2)', async () => {
      const { tasks, another, elapse, claimed, heldTask } = hands()
      const late = await heldTask('t', {}, SHORT_MS)
      await elapse(PAST_SHORT_MS)
      await claimed(SHORT_MS, another)
      expect(await tasks.renew([late], LONG_MS)).toEqual([])
      await elapse(PAST_SHORT_MS)
      expect(await claimed()).toMatchObject({ id: 't' })
    })

    test('whose lease ran out goes on as long as nobody took the task over', async () => {
      const { tasks, another, elapse, claimed, heldTask } = hands()
      const held = await heldTask('t', {}, SHORT_MS)
      await elapse(PAST_SHORT_MS)
      expect(await tasks.append(held, '1')).toBe(true)
      expect(await tasks.change('t', { fence: held.fence }, { message: 'Still here.' })).toBeDefined()
      expect(await claimed(LONG_MS, another)).toMatchObject({ journal: '[1]', message: 'Still here.', lost: true })
    })

    test('that has let go of the task holds it no longer', async () => {
      const { tasks, claimed, heldTask, park } = hands()
      const held = await heldTask()
      await park(held)
      expect(await tasks.append(held, '1')).toBe(false)
      expect(await tasks.renew([held], LONG_MS)).toEqual([])
      expect(await tasks.change('t', { fence: held.fence }, { message: 'Late.' })).toBeUndefined()
      expect(await park(held)).toBeUndefined()
      await tasks.change('t', {}, { dueMs: 0 })
      expect(await claimed()).toMatchObject({ journal: '[]', message: undefined })
    })

    test.each([{ swept: false }, { swept: true }])(
      'of a task that was there before under the same id writes nothing to the new one, swept: $swept (2)',
      async ({ swept }) => {
        const { tasks, another, elapse, made, claimed, heldTask, present } = hands()
        const late = await heldTask('t', { ttlMs: TTL_MS })
        await elapse(PAST_TTL_MS)
        if (swept) await tasks.sweep()
        await made('t')
        const successor = await claimed(LONG_MS, another)
        expect(successor.fence).not.toBe(late.fence)
        const before = await present('t')
        expect(await tasks.append(late, '"late"')).toBe(false)
        expect(await tasks.renew([late], LONG_MS)).toEqual([])
        expect(await tasks.change('t', { fence: late.fence }, { status: 'completed' })).toBeUndefined()
        expect(await tasks.read('t')).toEqual(before)
      },
    )
  })
}
