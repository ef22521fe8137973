// Random choices that are the same for the same seed, so that a failure can be reproduced.

export interface Random {
  /** A number in [0, 1). */
  next(): number
  chance(probability: number): boolean
  pick<T>(items: readonly [T, ...T[]]): T
  shuffled<T>(items: Iterable<T>): T[]
}

/** Mulberry32: a small generator, good enough for tests. */
export function seeded(seed: number): Random {
  let state = seed | 0
  const next = (): number => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
  return {
    next,
    chance: (probability) => next() < probability,
    pick: (items) => items[Math.floor(next() * items.length)] ?? items[0],
    shuffled: (items) =>
      Array.from(items, (item) => ({ item, at: next() }))
        .toSorted((one, other) => one.at - other.at)
        .map(({ item }) => item),
  }
}
