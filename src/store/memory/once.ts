// Remembers which keys were used and with what result, in the memory of one process.
import type { OnceClaim, OnceStore } from '../once.ts'

interface OnceEntry {
  note: string
  fence: string
  until: number
  record?: string
}

/** How many entries each claim checks for expiry. */
const CHECKED_PER_CLAIM = 4

/** For apps of one process, and for tests. */
export class MemoryOnceStore implements OnceStore {
  readonly #now: () => number
  readonly #entries = new Map<string, OnceEntry>()
  #unchecked: MapIterator<[string, OnceEntry]> | undefined
  #lastFence = 0
  /** Those of the keys that begin with each owner and a slash. */
  readonly #bytes = new Map<string, number>()

  constructor(now: () => number = Date.now) {
    this.#now = now
  }

  /** How many keys it remembers. */
  get size(): number {
    return this.#entries.size
  }

  claim(key: string, note: string, leaseMs: number): OnceClaim {
    this.#dropExpired()
    const entry = this.#entries.get(key)
    if (entry !== undefined && entry.until > this.#now()) {
      const { note: earlierNote, record } = entry
      return record === undefined ? { kind: 'held', note: earlierNote } : { kind: 'settled', note: earlierNote, record }
    }
    const fence = String((this.#lastFence += 1))
    this.#put(key, { note, fence, until: this.#now() + leaseMs })
    return { kind: 'yours', fence }
  }

  renew(key: string, fence: string, leaseMs: number): boolean {
    const entry = this.#heldBy(key, fence)
    if (entry !== undefined) entry.until = this.#now() + leaseMs
    return entry !== undefined
  }

  settle(key: string, fence: string, record: string, keepMs: number): boolean {
    const entry = this.#heldBy(key, fence)
    if (entry !== undefined) this.#put(key, { ...entry, record, until: this.#now() + keepMs })
    return entry !== undefined
  }

  release(key: string, fence: string): void {
    if (this.#heldBy(key, fence) !== undefined) this.#delete(key)
  }

  bytes(owner: string): number {
    return this.#bytes.get(owner) ?? 0
  }

  #heldBy(key: string, fence: string): OnceEntry | undefined {
    const entry = this.#entries.get(key)
    return entry?.fence === fence && entry.record === undefined ? entry : undefined
  }

  /** Puts the entry at the end of the map, where the expiry check reaches it last. */
  #put(key: string, entry: OnceEntry): void {
    this.#delete(key)
    this.#entries.set(key, entry)
    this.#count(key, entry, 1)
  }

  #delete(key: string): void {
    const entry = this.#entries.get(key)
    if (entry === undefined) return
    this.#entries.delete(key)
    this.#count(key, entry, -1)
  }

  #count(key: string, { note, record = '' }: OnceEntry, sign: 1 | -1): void {
    const end = key.indexOf('/')
    if (end === -1) return
    const owner = key.slice(0, end)
    const bytes = this.bytes(owner) + sign * (bytesOf(key) + bytesOf(note) + bytesOf(record))
    if (bytes > 0) this.#bytes.set(owner, bytes)
    else this.#bytes.delete(owner)
  }

  /** Checks a few entries on every claim, going round the whole map. So entries expire as fast as new ones are added. */
  #dropExpired(): void {
    for (let checked = 0; checked < CHECKED_PER_CLAIM; checked += 1) {
      const { value, done } = (this.#unchecked ??= this.#entries.entries()).next()
      if (done) {
        this.#unchecked = undefined
        return
      }
      const [key, { until }] = value
      if (until <= this.#now()) this.#delete(key)
    }
  }
}

function bytesOf(text: string): number {
  return Buffer.byteLength(text)
}
