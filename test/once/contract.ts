// What every OnceStore must do. Each store runs this suite.
import type { OnceClaim, OnceStore } from 'mcp-rally'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { LONG_MS, PAST_SHORT_MS, SHORT_MS, type Open, type UnderTest } from '../stores/under-test.ts'

export function onceStoreContract(name: string, open: Open<OnceStore>): void {
  describe(`the contract of a OnceStore: ${name}`, () => {
    let opened: UnderTest<OnceStore>
    let store: OnceStore
    let another: OnceStore

    beforeEach(async () => {
      opened = await open()
      ;({ part: store, another } = opened)
    })
    afterEach(() => opened.close?.())

    const fenceOf = async (key: string, note = 'note', leaseMs = LONG_MS, by = store): Promise<string> => {
      const claim = await by.claim(key, note, leaseMs)
      if (claim.kind !== 'yours') throw new Error(`"${key}" should be free, and is ${claim.kind}.`)
      return claim.fence
    }

    const claimOften = (key: string): Promise<OnceClaim[]> =>
      Promise.all(Array.from({ length: 50 }, async (_, i) => (i % 2 ? store : another).claim(key, 'n', LONG_MS)))

    const bytes = (owner: string): unknown => another.bytes?.(owner)

    test('a key is taken by the first that claims it; the others get the note that was left', async () => {
      await fenceOf('k', 'first')
      expect(await store.claim('k', 'second', LONG_MS)).toEqual({ kind: 'held', note: 'first' })
      expect(await another.claim('k', 'third', LONG_MS)).toEqual({ kind: 'held', note: 'first' })
    })

    test('keys have nothing to do with each other', async () => {
      const fence = await fenceOf('a')
      expect(await store.settle('a', fence, 'done', LONG_MS)).toBe(true)
      await fenceOf('b')
      await fenceOf('A')
      expect(await store.claim('a', 'n', LONG_MS)).toMatchObject({ kind: 'settled' })
    })

    test('of many that claim at once exactly one gets the key', async () => {
      expect(kindsOf(await claimOften('k'))).toEqual({ yours: 1, held: 49 })
    })

    test('of many that claim at once what has lapsed exactly one gets the key', async () => {
      await fenceOf('k', 'dead', SHORT_MS)
      await opened.elapse(PAST_SHORT_MS)
      expect(kindsOf(await claimOften('k'))).toEqual({ yours: 1, held: 49 })
    })

    test.each([
      { record: '{"resultType":"complete"}', what: 'plain text' },
      { record: '', what: 'an empty text' },
      { record: 'null', what: 'the word null' },
      // No control characters: JSON text has none.
      { record: `"it's 100% \\\\n \u2028 \u00e4 \u4f60 \u{1F600}"`, what: 'any character' },
      { record: 'x'.repeat(300_000), what: 'a long text' },
    ])('what was settled is there for everybody, to the letter: $what', async ({ record }) => {
      const fence = await fenceOf('k', 'first')
      expect(await store.settle('k', fence, record, LONG_MS)).toBe(true)
      const settled = { kind: 'settled', note: 'first', record }
      expect(await store.claim('k', 'first', LONG_MS)).toEqual(settled)
      expect(await another.claim('k', 'second', LONG_MS)).toEqual(settled)
    })

    test('what was settled is not settled again', async () => {
      const fence = await fenceOf('k')
      await store.settle('k', fence, 'first', LONG_MS)
      expect(await store.settle('k', fence, 'second', LONG_MS)).toBe(false)
      expect(await store.claim('k', 'n', LONG_MS)).toMatchObject({ record: 'first' })
    })

    test('what was settled is not given back', async () => {
      const fence = await fenceOf('k')
      await store.settle('k', fence, 'done', LONG_MS)
      await store.release('k', fence)
      expect(await store.claim('k', 'n', LONG_MS)).toMatchObject({ kind: 'settled' })
    })

    test('what was settled outlives the lease, and is forgotten when its own time is over', async () => {
      const fence = await fenceOf('k', 'n', SHORT_MS)
      await store.settle('k', fence, 'done', LONG_MS)
      await opened.elapse(PAST_SHORT_MS)
      expect(await store.claim('k', 'n', LONG_MS)).toMatchObject({ kind: 'settled' })

      await store.settle('short', await fenceOf('short'), 'done', SHORT_MS)
      await opened.elapse(PAST_SHORT_MS)
      await fenceOf('short')
    })

    test('a claim lapses with its lease, and the next one has a fence of its own', async () => {
      const dead = await fenceOf('k', 'dead', SHORT_MS)
      await opened.elapse(PAST_SHORT_MS)
      const alive = await fenceOf('k', 'alive', LONG_MS, another)
      expect(alive).not.toBe(dead)
      expect(await store.claim('k', 'n', LONG_MS)).toEqual({ kind: 'held', note: 'alive' })
    })

    test('claims lapse however many others do not', async () => {
      const keys = Array.from({ length: 20 }, (_, i) => `k[${i}]`)
      for (const key of keys) {
        await fenceOf(`other ${key}`)
        await fenceOf(key, 'dead', SHORT_MS)
      }
      await opened.elapse(PAST_SHORT_MS)
      for (const key of keys) await fenceOf(key, 'alive')
      expect(await store.claim('other k[0]', 'n', LONG_MS)).toMatchObject({ kind: 'held' })
    })

    test('a claim that is renewed does not lapse', async () => {
      const fence = await fenceOf('k', 'n', SHORT_MS)
      expect(await store.renew('k', fence, LONG_MS)).toBe(true)
      await opened.elapse(PAST_SHORT_MS)
      expect(await another.claim('k', 'n', LONG_MS)).toMatchObject({ kind: 'held' })
      expect(await store.settle('k', fence, 'done', LONG_MS)).toBe(true)
    })

    test('a claim that is renewed for a while lapses after that', async () => {
      const fence = await fenceOf('k', 'n', LONG_MS)
      expect(await store.renew('k', fence, SHORT_MS)).toBe(true)
      await opened.elapse(PAST_SHORT_MS)
      await fenceOf('k')
    })

    test("who comes back after its claim has lapsed cannot touch another's", async () => {
      const dead = await fenceOf('k', 'dead', SHORT_MS)
      await opened.elapse(PAST_SHORT_MS)
      const alive = await fenceOf('k', 'alive', LONG_MS, another)
      expect(await store.renew('k', dead, LONG_MS)).toBe(false)
      expect(await store.settle('k', dead, 'late', LONG_MS)).toBe(false)
      await store.release('k', dead)
      expect(await store.claim('k', 'n', LONG_MS)).toEqual({ kind: 'held', note: 'alive' })
      expect(await another.settle('k', alive, 'done', LONG_MS)).toBe(true)
      expect(await store.claim('k', 'n', LONG_MS)).toEqual({ kind: 'settled', note: 'alive', record: 'done' })
    })

    test('who comes back after another has settled cannot change what that came to', async () => {
      const dead = await fenceOf('k', 'dead', SHORT_MS)
      await opened.elapse(PAST_SHORT_MS)
      await another.settle('k', await fenceOf('k', 'alive', LONG_MS, another), 'done', LONG_MS)
      expect(await store.renew('k', dead, LONG_MS)).toBe(false)
      expect(await store.settle('k', dead, 'late', LONG_MS)).toBe(false)
      expect(await store.claim('k', 'n', LONG_MS)).toEqual({ kind: 'settled', note: 'alive', record: 'done' })
    })

    test('what is given back is free as if it had never been taken', async () => {
      const fence = await fenceOf('k', 'first')
      await store.release('k', fence)
      const next = await fenceOf('k', 'second', LONG_MS, another)
      expect(next).not.toBe(fence)
      expect(await store.settle('k', fence, 'late', LONG_MS)).toBe(false)
      expect(await store.claim('k', 'n', LONG_MS)).toEqual({ kind: 'held', note: 'second' })
    })

    test('an owner has the bytes of its own keys, as every instance sees them', async () => {
      expect(await bytes('ann')).toBe(0)
      const fence = await fenceOf('ann/1', 'note')
      expect(await bytes('ann')).toBe(5 + 4)
      await store.settle('ann/1', fence, '"\u20ac"', LONG_MS)
      const released = await fenceOf('ann/2', 'note')
      for (const key of ['an/1', 'ann', 'annie/1', 'bob/1', '/1']) await fenceOf(key, 'note')
      expect(await bytes('ann')).toBe(5 + 4 + 5 + 5 + 4)
      await store.release('ann/2', released)
      expect(await bytes('ann')).toBe(5 + 4 + 5)
      expect(await bytes('')).toBe(2 + 4)
    })

    test('nobody has a claim to what was never taken', async () => {
      expect(await store.renew('k', '1', LONG_MS)).toBe(false)
      expect(await store.settle('k', '1', 'done', LONG_MS)).toBe(false)
      await store.release('k', '1')
      await fenceOf('k')
    })
  })
}

function kindsOf(claims: readonly OnceClaim[]): Record<string, number> {
  const kinds: Record<string, number> = {}
  for (const { kind } of claims) kinds[kind] = (kinds[kind] ?? 0) + 1
  return kinds
}
