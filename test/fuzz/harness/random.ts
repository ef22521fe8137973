// A stream of pseudo-random choices that is the same for the same seed.

export class Random {
  #state: number

  /** Each input of a run has a stream of its own, so that one input does not depend on how much another one took. */
  constructor(seed: number, index = 0) {
    this.#state = (Math.imul(seed ^ 0x9e3779b9, 0x85ebca6b) ^ Math.imul(index + 1, 0xc2b2ae35)) | 0
  }

  /** In [0, 1), by mulberry32. */
  next(): number {
    this.#state = (this.#state + 0x6d2b79f5) | 0
    let mixed = Math.imul(this.#state ^ (this.#state >>> 15), 1 | this.#state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296
  }

  /** A whole number from 0 up to but not including `below`. */
  int(below: number): number {
    return Math.floor(this.next() * below)
  }

  chance(probability: number): boolean {
    return this.next() < probability
  }

  pick<T>(from: readonly T[]): T {
    if (from.length === 0) throw new Error('Nothing to pick from.')
    return from[this.int(from.length)] as T
  }

  /** The result of one of these. */
  oneOf<T>(alternatives: readonly (() => T)[]): T {
    return this.pick(alternatives)()
  }

  /** Between `least` and `most` items. */
  list<T>(least: number, most: number, item: (index: number) => T): T[] {
    return Array.from({ length: least + this.int(most - least + 1) }, (_, index) => item(index))
  }
}
