// A task is made once, and is what it was made as for everybody.
import { describe, expect, test } from 'vitest'
import type { Hands } from './hands.ts'
import { LONG_MS, newTask } from './hands.ts'

export function making(hands: () => Hands): void {
  describe('making and reading', () => {
    test('a task is there for everybody as it was made', async () => {
      const { tasks, another, made } = hands()
      const before = await made('t', { message: 'Begun.', ttlMs: LONG_MS, pollMs: 250 })
      expect(before).toEqual({
        id: 't',
        owner: 'ada',
        request: '{"name":"deploy"}',
        state: '{"round":1}',
        status: 'working',
        message: 'Begun.',
        pollMs: 250,
        ttlMs: LONG_MS,
        createdAt: expect.any(Number),
        updatedAt: before.createdAt,
        outcome: undefined,
        version: expect.any(Number),
      })
      expect(await tasks.read('t')).toEqual(before)
      expect(await another.read('t')).toEqual(before)
    })

    test('nothing is where no task was made', async () => {
      const { tasks, claim } = hands()
      expect(await tasks.read('t')).toBeUndefined()
      expect(await tasks.change('t', {}, { message: 'Hello.' })).toBeUndefined()
      expect(await tasks.append({ id: 't', fence: 1 }, '1')).toBe(false)
      expect(await tasks.renew([{ id: 't', fence: 1 }], LONG_MS)).toEqual([])
      expect(await claim()).toBeUndefined()
      expect(await tasks.list('ada', 10)).toEqual([])
      expect(await tasks.sweep()).toBe(0)
    })

    test('of two tasks with one id the first stands, and the second maker is given it', async () => {
      const { another, claim, claimed, made } = hands()
      const first = await made('t', { owner: 'ada', state: '1' })
      expect(await another.create(newTask('t', { owner: 'bob', state: '2', journal: '[2]' }))).toEqual(first)
      const task = await claimed()
      expect(task).toMatchObject({ owner: 'ada', state: '1', journal: '[]' })
      expect(await claim()).toBeUndefined()
    })

    test('a task that is made again after it has come to its end is at its end', async () => {
      const { tasks, claim, made } = hands()
      await made('t')
      await tasks.change('t', {}, { status: 'completed', outcome: '"done"' })
      expect(await made('t')).toMatchObject({ status: 'completed', outcome: '"done"' })
      expect(await claim()).toBeUndefined()
    })

    test('of many that make the same task at once each is given the same one', async () => {
      const { tasks, another } = hands()
      const all = await Promise.all(
        Array.from({ length: 20 }, (_, i) => (i % 2 ? tasks : another).create(newTask('t', { state: String(i) }))),
      )
      expect(new Set(all.map((task) => JSON.stringify(task))).size).toBe(1)
      expect(await tasks.list('ada', 50)).toHaveLength(1)
    })

    test.each([
      { what: 'the empty text', text: '' },
      { what: 'any character', text: `it's 100% "\\n" \u2028 \u00e4 \u4f60 \u{1F600}` },
      { what: 'a long text', text: 'x'.repeat(300_000) },
    ])('texts come back to the letter: $what', async ({ text }) => {
      const { tasks, another, claimed, made } = hands()
      const json = JSON.stringify(text)
      await made('t', { request: json, state: json, journal: `[${json}]`, message: text })
      const task = await claimed()
      expect(task).toMatchObject({ request: json, state: json, journal: `[${json}]`, message: text })
      await tasks.append(task, json)
      await tasks.change('t', { fence: task.fence }, { state: `[${json}]`, release: true, dueMs: 0 })
      expect(await claimed()).toMatchObject({ state: `[${json}]`, journal: `[${json},${json}]` })
      await tasks.change('t', {}, { status: 'completed', outcome: json })
      expect(await another.read('t')).toMatchObject({ outcome: json })
    })

    test.each([{ id: 'a\0b' }, { id: '\u0001a' }, { id: '\ud800' }, { id: "'; --" }, { id: 'A' }])(
      'an id that is no plain word is only itself: $id',
      async ({ id }) => {
        const { tasks, made } = hands()
        await made('a')
        await made('\ufffd')
        expect(await tasks.read(id)).toBeUndefined()
        expect(await made(id, { owner: id, message: id })).toMatchObject({ id, owner: id, message: id })
        expect(await tasks.read(id)).toMatchObject({ id, owner: id, message: id })
        expect(await tasks.read('a')).toMatchObject({ owner: 'ada' })
        expect(await tasks.list(id, 10)).toHaveLength(1)
      },
    )
  })
}
