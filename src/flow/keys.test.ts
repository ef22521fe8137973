import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { accept } from '../testing.ts'
import { Rounds } from '../testing/rounds.ts'
import type { Io } from './io.ts'

const NUMBER = z.object({ n: z.number() })

describe('rule 4: keys are given by the author', () => {
  test.each(['a', 'a[0]', 'a.b:c/d-e_f', 'Z9', 'x'.repeat(128)])('%j is a key', async (key) => {
    expect(await new Rounds().next((io) => io.step(key, () => 1))).toEqual({ kind: 'done', value: 1 })
  })

  test.each(['', 'x'.repeat(129), 'a b', '\u00e9', 'a>b', 'a\n', '"', '__proto__', 42, undefined, null, {}])(
    '%j is none, and fails the pass although the handler goes on without it',
    async (key) => {
      const outcome = await new Rounds().next((io) =>
        Promise.race([io.step(key as string, () => 1).catch(() => 'caught'), Promise.resolve('went on')]),
      )
      expect(outcome).toMatchObject({ kind: 'failed', error: { code: 'KEY_INVALID' } })
    },
  )

  test.each([
    { call: 'ask', make: (io: Io) => io.ask('a b', 'A?', NUMBER) },
    { call: 'elicit', make: (io: Io) => io.elicit('a b', 'A?', NUMBER) },
    { call: 'confirm', make: (io: Io) => io.confirm('a b', 'A?') },
    { call: 'choose', make: (io: Io) => io.choose('a b', 'A?', ['x']) },
    { call: 'visit', make: (io: Io) => io.visit('a b', 'A?', 'https://example.com', { done: () => true }) },
    { call: 'sample', make: (io: Io) => io.sample('a b', { messages: [], maxTokens: 1 }) },
    { call: 'roots', make: (io: Io) => io.roots('a b') },
    { call: 'scope', make: (io: Io) => io.scope('a b', () => 1) },
    { call: 'random', make: (io: Io) => io.random('a b') },
    { call: 'uuid', make: (io: Io) => io.uuid('a b') },
  ])('io.$call checks its key', async ({ make }) => {
    const outcome = await new Rounds().next(make)
    expect(outcome).toMatchObject({ error: { code: 'KEY_INVALID', message: expect.stringContaining('"a b"') } })
  })

  test.each([
    { second: 'a step', make: (io: Io) => io.step('a', () => 2) },
    { second: 'an ask', make: (io: Io) => io.ask('a', 'A?', NUMBER) },
    { second: 'a scope', make: (io: Io) => io.scope('a', () => 2) },
  ])('a key used again by $second fails the pass although the handler catches', async ({ make }) => {
    const rounds = new Rounds()
    const outcome = await rounds.next(async (io) => {
      await io.step('a', () => 1)
      try {
        await make(io)
      } catch {
        return 'caught'
      } finally {
        rounds.effects.push('finally')
      }
    })
    expect(outcome).toMatchObject({ error: { code: 'KEY_REUSED', message: expect.stringContaining('"a[0]"') } })
    expect(rounds.effects).toEqual(['a'])
  })

  test('a scope has keys of its own', async () => {
    const rounds = new Rounds()
    const outcome = await rounds.next(async (io) => {
      const a = await io.step('a', () => 1)
      const b = await io.scope('s', (inner) => inner.step('a', () => 2))
      const c = await io.scope('t', (inner) => inner.scope('s', (inmost) => inmost.step('a', () => 3)))
      return [a, b, c]
    })
    expect(outcome).toEqual({ kind: 'done', value: [1, 2, 3] })
    expect(rounds.effects).toEqual(['a', 's>a', 't>s>a'])
  })

  test('keys match answers to questions, whatever their order', async () => {
    const rounds = new Rounds()
    await rounds.next((io) => askAll(io, ['a', 'b', 'c']))
    await rounds.next((io) => askAll(io, ['b', 'c', 'a']), { a: accept({ n: 1 }), c: accept({ n: 3 }) })
    const outcome = await rounds.next((io) => askAll(io, ['c', 'b', 'a']), { b: accept({ n: 2 }) })
    expect(outcome).toEqual({ kind: 'done', value: [{ n: 3 }, { n: 2 }, { n: 1 }] })
  })

  test('a key that was recorded as one kind of call and is now another fails the pass', async () => {
    const rounds = new Rounds()
    await rounds.next(async (io) => {
      await io.step('a', () => 1)
      await io.ask('b', 'B?', NUMBER)
    })
    const outcome = await rounds.next((io) => io.ask('a', 'A?', NUMBER))
    expect(outcome).toMatchObject({
      error: { code: 'KEY_KIND', message: expect.stringContaining('io.ask("a"): this key was recorded by io.step') },
    })
  })
})

function askAll(io: Io, keys: string[]): Promise<unknown> {
  return Promise.all(keys.map((key) => io.ask(key, `${key}?`, NUMBER)))
}
