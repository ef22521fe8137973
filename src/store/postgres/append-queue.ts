// Entries on their way into journals: in the order they were given, and those that wait for others of the same task together.
import type { TaskLease } from '../store.ts'

interface Waiting {
  readonly entries: string[]
  readonly written: Promise<boolean>
}

export class Appending {
  readonly #write: (held: TaskLease, entries: string) => Promise<boolean>
  /** What is being written, and what waits for that, by fence and task. */
  readonly #writing = new Map<string, Promise<boolean>>()
  readonly #waiting = new Map<string, Waiting>()

  constructor(write: (held: TaskLease, entries: string) => Promise<boolean>) {
    this.#write = write
  }

  append(held: TaskLease, entries: string): Promise<boolean> {
    const key = `${held.fence} ${held.id}`
    const waiting = this.#waiting.get(key)
    if (waiting !== undefined) {
      waiting.entries.push(entries)
      return waiting.written
    }
    const before = this.#writing.get(key)
    if (before === undefined) return this.#begin(key, held, [entries])
    const together = [entries]
    const written = this.#follow(before, key, held, together)
    this.#waiting.set(key, { entries: together, written })
    return written
  }

  /** Also after one that failed: each hears how it went with its own. */
  async #follow(before: Promise<boolean>, key: string, held: TaskLease, together: readonly string[]): Promise<boolean> {
    try {
      await before
    } catch {}
    this.#waiting.delete(key)
    return this.#begin(key, held, together)
  }

  async #begin(key: string, held: TaskLease, together: readonly string[]): Promise<boolean> {
    const entries = together.filter((text) => text !== '').join(',')
    const written = this.#write(held, entries)
    this.#writing.set(key, written)
    try {
      return await written
    } finally {
      if (this.#writing.get(key) === written) this.#writing.delete(key)
    }
  }
}
