import { describe, expect, it } from 'vitest'
import { keyring } from './keyring.ts'
import { subKeys, type SubKeyOptions } from './subkeys.ts'

const ring = keyring(['a secret of the operator'.padEnd(32, '.')])

describe('sub-keys (invariant 8)', () => {
  it('mint a bounded number of tokens each', () => {
    const keys = open({ tokensEach: 3 })
    const heads = Array.from({ length: 7 }, () => keys.toMint().head)
    expect(heads.map((head) => heads.indexOf(head))).toEqual([0, 0, 0, 3, 3, 3, 6])
  })

  it('mint for a bounded time', () => {
    let now = 0
    const keys = open({ now: () => now, lifetime: 1_000 })
    const first = keys.toMint()
    now = 999
    expect(keys.toMint()).toBe(first)
    now = 1_000
    expect(keys.toMint()).not.toBe(first)
  })

  it('are renewed after an hour by default', () => {
    let now = 0
    const keys = open({ now: () => now })
    const first = keys.toMint()
    now = 3_599_999
    expect(keys.toMint()).toBe(first)
    now = 3_600_000
    expect(keys.toMint()).not.toBe(first)
  })

  it('differ from process to process and are derived again from key id and salt', () => {
    const minted = open().toMint()
    expect(open().toMint().key.equals(minted.key)).toBe(false)
    expect(open().derive(minted.head.toString('latin1'))).toEqual(minted)
  })

  it('are not derived for a key that is not in the ring', () => {
    expect(open().derive('\0'.repeat(24))).toBeUndefined()
  })

  it('are kept up to a limit, the oldest dropped first', () => {
    const keys = open({ cacheSize: 3 })
    const subKey = keys.toMint()
    for (const head of ['a', 'b', 'c', 'd', 'e']) keys.cache(head, subKey)
    expect(['a', 'b', 'c', 'd', 'e'].filter((head) => keys.cached(head))).toEqual(['c', 'd', 'e'])
  })
})

function open(options?: SubKeyOptions) {
  return subKeys(ring, 'requestState', options)
}
