import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { NOBODY, SharedLimit } from './shared-limit.ts'

describe('a shared limit', () => {
  test('gives an owner its share, and no more', () => {
    const limit = new SharedLimit<number>({ total: 10, each: 2 })
    for (const item of [1, 2]) {
      expect(limit.makeRoom('ann', 1)).toBeUndefined()
      limit.set('ann', item, 1)
    }
    expect(limit.makeRoom('ann', 1)).toBe('share')
    expect(limit.makeRoom('bob', 1)).toBeUndefined()
    limit.delete('ann', 1)
    expect(limit.makeRoom('ann', 1)).toBeUndefined()
  })

  test('has no share for callers that cannot be told apart', () => {
    const limit = new SharedLimit<number>({ total: 3, each: 1 })
    for (const item of [1, 2, 3]) {
      expect(limit.makeRoom(NOBODY, 1)).toBeUndefined()
      limit.set(NOBODY, item, 1)
    }
    expect(limit.makeRoom(NOBODY, 1)).toBe('total')
    // They use the most.
    expect(limit.makeRoom('ann', 1)).toBeUndefined()
    expect(limit.used).toBe(2)
  })

  test('evicts what may be evicted, of the owner that uses the most', () => {
    const evicted: string[] = []
    const limit = new SharedLimit<string>({
      total: 6,
      // Reads them twice, as one that looks for the best first.
      pick: (items) =>
        [...items].find((item) => item === 'none') ?? [...items].find((item) => !item.startsWith('busy')),
      evict: (item) => evicted.push(item),
    })
    limit.set('ann', 'busy 1', 1)
    limit.set('ann', 'idle 1', 1)
    limit.set('ann', 'idle 2', 1)
    limit.set('bob', 'busy 2', 2)
    limit.set('cyd', 'idle 3', 1)
    expect(limit.makeRoom('dan', 1)).toBeUndefined()
    expect(evicted).toEqual(['idle 1'])
    limit.set('dan', 'idle 4', 1)
    expect(limit.makeRoom('dan', 1)).toBe('total')
    expect(evicted).toEqual(['idle 1'])
  })

  test('never takes from an owner that uses less, whatever is added and removed', () => {
    const owners = fc.constantFrom('ann', 'bob', 'cyd', 'dan')
    const adding = fc.record({ owner: owners, cost: fc.integer({ min: 0, max: 9 }), keep: fc.boolean() })
    fc.assert(
      fc.property(fc.array(adding, { maxLength: 60 }), fc.boolean(), (steps, evictsEqual) => {
        const used = new Map<string, number>()
        const costs = new Map<string, number>()
        let asking = { owner: '', wanted: 0 }
        const limit = new SharedLimit<string>({
          total: 30,
          each: 15,
          evictsEqual,
          pickOwn: evictsEqual ? ([first]) => first : () => undefined,
          evict: (item) => {
            const [owner = ''] = item.split(' ')
            const before = used.get(owner) ?? 0
            if (owner !== asking.owner) {
              expect(before).toBeGreaterThanOrEqual(asking.wanted + (evictsEqual ? 0 : 1))
              expect(before).toBe(
                Math.max(...[...used].filter(([each]) => each !== asking.owner).map(([, each]) => each)),
              )
            }
            used.set(owner, before - (costs.get(item) ?? 0))
            if (owner === asking.owner) asking = { owner, wanted: asking.wanted - (costs.get(item) ?? 0) }
            costs.delete(item)
          },
        })
        for (const [i, { owner, cost, keep }] of steps.entries()) {
          asking = { owner, wanted: (used.get(owner) ?? 0) + cost }
          if (limit.makeRoom(owner, cost) !== undefined) continue
          const item = `${owner} ${i}`
          limit.set(owner, item, cost)
          used.set(owner, (used.get(owner) ?? 0) + cost)
          costs.set(item, cost)
          expect(limit.used).toBeLessThanOrEqual(30)
          expect(limit.usedBy(owner)).toBeLessThanOrEqual(15)
          if (keep) continue
          limit.delete(owner, item)
          used.set(owner, (used.get(owner) ?? 0) - cost)
          costs.delete(item)
        }
        expect(limit.used).toBe([...used.values()].reduce((sum, each) => sum + each, 0))
      }),
    )
  })
})
