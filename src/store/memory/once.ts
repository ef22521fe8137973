// Single use, remembered by one process.
import type { OnceClaim, OnceStore } from '../once.ts'

interface Held {
  note: string
  fence: string
  until: number
  record?: string
}

const LOOKS = 4

/** For one process, and for tests. */
export class MemoryOnceStore implements OnceStore {
  readonly #now: () => number
  readonly #held = new Map<string, Held>()
  #walk: MapIterator<[string, Held]> | undefined
  #fences = 0

  constructor(now: () => number = Date.now) {
    this.#now = now
  }

  /** How many keys it remembers. */
  get size(): number {
    return this.#held.size
  }

  claim(key: string, note: string, leaseMs: number): OnceClaim {
    this.#forget()
    const held = this.#held.get(key)
    if (held !== undefined && held.until > this.#now()) {
      const { note: left, record } = held
      return record === undefined ? { kind: 'held', note: left } : { kind: 'settled', note: left, record }
    }
    const fence = String((this.#fences += 1))
    this.#keep(key, { note, fence, until: this.#now() + leaseMs })
    return { kind: 'yours', fence }
  }

  renew(key: string, fence: string, leaseMs: number): boolean {
    const held = this.#mine(key, fence)
    if (held !== undefined) held.until = this.#now() + leaseMs
    return held !== undefined
  }

  settle(key: string, fence: string, record: string, keepMs: number): boolean {
    const held = this.#mine(key, fence)
    if (held !== undefined) this.#keep(key, { ...held, record, until: this.#now() + keepMs })
    return held !== undefined
  }

  release(key: string, fence: string): void {
    if (this.#mine(key, fence) !== undefined) this.#held.delete(key)
  }

  #mine(key: string, fence: string): Held | undefined {
    const held = this.#held.get(key)
    return held?.fence === fence && held.record === undefined ? held : undefined
  }

  /** At the end of the map, where the walk has yet to come by. */
  #keep(key: string, held: Held): void {
    this.#held.delete(key)
    this.#held.set(key, held)
  }

  /** Goes a few steps on through all of them on every claim: what has lapsed goes as fast as new ones come. */
  #forget(): void {
    for (let looked = 0; looked < LOOKS; looked += 1) {
      const { value, done } = (this.#walk ??= this.#held.entries()).next()
      if (done) {
        this.#walk = undefined
        return
      }
      const [key, { until }] = value
      if (until <= this.#now()) this.#held.delete(key)
    }
  }
}
