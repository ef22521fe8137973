// When a task may be taken up.
import { describe, expect, test } from 'vitest'
import type { Hands } from './hands.ts'
import { LONG_MS, SHORT_MS, PAST_SHORT_MS } from './hands.ts'

export function fallingDue(hands: () => Hands): void {
  describe('falling due', () => {
    test('a task that is parked is not due, however long one waits', async () => {
      const { elapse, claim, heldTask, park } = hands()
      const held = await heldTask('t', {}, SHORT_MS)
      await park(held)
      await elapse(PAST_SHORT_MS)
      expect(await claim()).toBeUndefined()
    })

    test('a parked task is due as soon as somebody says so', async () => {
      const { another, claimed, heldTask, park } = hands()
      await park(await heldTask())
      await another.change('t', {}, { dueMs: 0, status: 'working' })
      expect(await claimed()).toMatchObject({ status: 'working', lost: false })
    })

    test('a task that waits falls due when its time has come', async () => {
      const { tasks, another, elapse, claim, claimed, heldTask } = hands()
      const held = await heldTask()
      await tasks.change('t', { fence: held.fence }, { release: true, dueMs: SHORT_MS })
      const early = await claim()
      await elapse(PAST_SHORT_MS)
      const task = early ?? (await claimed(LONG_MS, another))
      expect(task.lost).toBe(false)
    })

    test('a task that is to wait for long is not due', async () => {
      const { tasks, elapse, claim, heldTask } = hands()
      const held = await heldTask()
      await tasks.change('t', { fence: held.fence }, { release: true, dueMs: LONG_MS })
      await elapse(PAST_SHORT_MS)
      expect(await claim()).toBeUndefined()
    })

    test('a task that is due can be put off, and for ever', async () => {
      const { tasks, claim, made } = hands()
      await made('later')
      await made('never')
      await tasks.change('later', {}, { dueMs: LONG_MS })
      await tasks.change('never', {}, { dueMs: null })
      expect(await claim()).toBeUndefined()
    })

    test('a held task that somebody else makes due stays held, and is due once its worker lets go', async () => {
      const { tasks, another, claim, claimed, heldTask } = hands()
      const held = await heldTask()
      await another.change('t', {}, { dueMs: 0, state: '{"answered":true}' })
      expect(await claim('', LONG_MS, another)).toBeUndefined()
      expect(await tasks.append(held, '1')).toBe(true)
      expect(await tasks.change('t', { fence: held.fence }, { release: true })).toBeDefined()
      expect(await claimed()).toMatchObject({ state: '{"answered":true}', journal: '[1]', lost: false })
    })

    test('a held task that somebody else puts off is due when its lease runs out', async () => {
      const { another, elapse, claimed, heldTask } = hands()
      await heldTask('t', {}, SHORT_MS)
      await another.change('t', {}, { dueMs: null })
      await elapse(PAST_SHORT_MS)
      expect(await claimed()).toMatchObject({ lost: true })
    })

    test('its worker may say when a held task falls due before it lets go', async () => {
      const { tasks, claim, heldTask } = hands()
      const held = await heldTask()
      await tasks.change('t', { fence: held.fence }, { dueMs: null })
      await tasks.change('t', { fence: held.fence }, { release: true })
      expect(await claim()).toBeUndefined()
    })

    test('a task that is let go without a word is due as it was', async () => {
      const { tasks, claimed, heldTask } = hands()
      const held = await heldTask()
      await tasks.change('t', { fence: held.fence }, { release: true })
      expect(await claimed()).toMatchObject({ id: 't', lost: false })
    })
  })
}
