// Changes, what they rest on, and the end of a task.
import { describe, expect, test } from 'vitest'
import type { Hands } from './hands.ts'
import { LONG_MS, SHORT_MS, PAST_SHORT_MS, ENDS } from './hands.ts'

export function changing(hands: () => Hands): void {
  describe('changing', () => {
    test('what is left out stays as it is, and what is given is there for everybody', async () => {
      const { tasks, another, elapse, made, present } = hands()
      const before = await made('t', { message: 'Begun.', ttlMs: LONG_MS })
      await elapse(5)
      const version = await tasks.change('t', {}, { status: 'input_required' })
      const after = await present('t', another)
      expect(after).toEqual({ ...before, status: 'input_required', version, updatedAt: after.updatedAt })
      expect(after.updatedAt).toBeGreaterThan(before.updatedAt)
      expect(after.version).toBeGreaterThan(before.version)

      const next = await another.change('t', {}, { status: 'working', message: 'Going on.', state: '{"round":2}' })
      expect(await tasks.read('t')).toMatchObject({
        status: 'working',
        message: 'Going on.',
        state: '{"round":2}',
        version: next,
      })
    })

    test('a message is taken away by giving none', async () => {
      const { tasks, made, present } = hands()
      await made('t', { message: 'Begun.' })
      await tasks.change('t', {}, { state: '2' })
      expect(await tasks.read('t')).toMatchObject({ message: 'Begun.' })
      await tasks.change('t', {}, { message: undefined })
      expect((await present('t')).message).toBeUndefined()
      await tasks.change('t', {}, { message: '' })
      expect((await present('t')).message).toBe('')
    })

    test('every change has a version of its own', async () => {
      const { tasks, another, made, present } = hands()
      await made('t')
      const versions = await Promise.all(
        Array.from({ length: 20 }, (_, i) => (i % 2 ? tasks : another).change('t', {}, { state: String(i) })),
      )
      expect(new Set(versions).size).toBe(20)
      expect(Math.max(...versions.map((version) => version ?? 0))).toBe((await present('t')).version)
    })

    test('of many that believe in one version exactly one makes its change', async () => {
      const { tasks, another, made } = hands()
      const { version } = await made('t')
      const versions = await Promise.all(
        Array.from({ length: 20 }, (_, i) => (i % 2 ? tasks : another).change('t', { version }, { state: `${i}` })),
      )
      const changed = versions.flatMap((each, i) => (each === undefined ? [] : [`${i}`]))
      expect(changed).toHaveLength(1)
      expect(await tasks.read('t')).toMatchObject({ state: changed[0] })
    })

    test('whoever believes in another version changes nothing', async () => {
      const { tasks, made } = hands()
      const { version } = await made('t')
      const next = await tasks.change('t', { version }, { message: 'First.' })
      expect(await tasks.change('t', { version }, { message: 'Second.' })).toBeUndefined()
      expect(await tasks.change('t', { version: (next ?? 0) + 1 }, { message: 'Third.' })).toBeUndefined()
      expect(await tasks.read('t')).toMatchObject({ message: 'First.', version: next })
    })

    test('each belief that is given must hold', async () => {
      const { tasks, heldTask } = hands()
      const held = await heldTask()
      const { fence, version } = held
      expect(await tasks.change('t', { fence, version: version + 1 }, { message: 'No.' })).toBeUndefined()
      expect(await tasks.change('t', { fence: fence + 1, version }, { message: 'No.' })).toBeUndefined()
      expect(await tasks.change('t', { fence, version }, { message: 'Yes.' })).toBeDefined()
      expect(await tasks.read('t')).toMatchObject({ message: 'Yes.' })
    })

    test('a journal that is given stands in place of the one there', async () => {
      const { tasks, claimed, heldTask } = hands()
      const held = await heldTask('t', { journal: '[1]' })
      await tasks.append(held, '2')
      await tasks.change('t', { fence: held.fence }, { journal: '[3,4]' })
      await tasks.append(held, '5')
      await tasks.change('t', { fence: held.fence }, { release: true, dueMs: 0 })
      const again = await claimed()
      expect(again.journal).toBe('[3,4,5]')
      await tasks.change('t', { fence: again.fence }, { journal: '[]', release: true, dueMs: 0 })
      expect((await claimed()).journal).toBe('[]')
    })

    test.each(ENDS)('a task that is %s changes no more', async (status) => {
      const { tasks, another, present, heldTask } = hands()
      const held = await heldTask('t', { journal: '[1]' })
      await tasks.append(held, '2')
      const version = await tasks.change(
        't',
        { fence: held.fence },
        { status, outcome: '"all of it"', message: 'Over.' },
      )
      const end = await present('t')
      expect(end).toMatchObject({ status, outcome: '"all of it"', message: 'Over.', version })

      expect(await another.change('t', {}, { status: 'working', dueMs: 0 })).toBeUndefined()
      expect(await tasks.change('t', { version: end.version }, { status: 'completed', outcome: '2' })).toBeUndefined()
      expect(await tasks.change('t', { fence: held.fence }, { release: true, dueMs: 0 })).toBeUndefined()
      expect(await tasks.append(held, '3')).toBe(false)
      expect(await tasks.renew([held], LONG_MS)).toEqual([])
      expect(await tasks.read('t')).toEqual(end)
    })

    test.each(ENDS)('a task that is %s is not due, then and later', async (status) => {
      const { tasks, another, elapse, claim, made, heldTask } = hands()
      await heldTask('t', {}, SHORT_MS)
      await tasks.change('t', {}, { status, dueMs: 0, release: true })
      await made('waiting')
      await another.change('waiting', {}, { status, dueMs: SHORT_MS })
      expect(await claim()).toBeUndefined()
      await elapse(PAST_SHORT_MS)
      expect(await claim()).toBeUndefined()
    })
  })
}
