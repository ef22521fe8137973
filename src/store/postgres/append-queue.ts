// Journal entries on their way to the database, in the order of the calls.
//
// TaskStore.append promises that order even to a caller that does not await each call. Statements on two connections of a pool may run
// in either order, so there is at most one statement per lease at a time. Entries that arrive meanwhile are written by the next one.
//
// The engine does not depend on it: a worker's lease (tasks/lease.ts) starts a write only after the one before it has finished. So for
// the engine this costs one map entry per append. It is here for the contract, which other callers of a store may rely on.
import type { TaskLease } from '../tasks.ts'

interface Batch {
  readonly entries: string[]
  readonly written: Promise<boolean>
}

type Write = (lease: TaskLease, entries: string) => Promise<boolean>

export class AppendQueue {
  readonly #write: Write
  /** The statement that is running, and the batch that waits for it, by fence and task. */
  readonly #running = new Map<string, Promise<boolean>>()
  readonly #waiting = new Map<string, Batch>()

  constructor(write: Write) {
    this.#write = write
  }

  append(lease: TaskLease, entries: string): Promise<boolean> {
    const key = `${lease.fence} ${lease.id}`
    const waiting = this.#waiting.get(key)
    if (waiting !== undefined) {
      waiting.entries.push(entries)
      return waiting.written
    }
    const running = this.#running.get(key)
    if (running === undefined) return this.#run(key, lease, [entries])
    const batch = [entries]
    const written = this.#runAfter(running, key, lease, batch)
    this.#waiting.set(key, { entries: batch, written })
    return written
  }

  /** Runs also after a statement that failed: each caller learns only how its own entries went. */
  async #runAfter(
    running: Promise<boolean>,
    key: string,
    lease: TaskLease,
    batch: readonly string[],
  ): Promise<boolean> {
    try {
      await running
    } catch {}
    this.#waiting.delete(key)
    return this.#run(key, lease, batch)
  }

  async #run(key: string, lease: TaskLease, batch: readonly string[]): Promise<boolean> {
    const written = this.#write(lease, batch.filter((entries) => entries !== '').join(','))
    this.#running.set(key, written)
    try {
      return await written
    } finally {
      if (this.#running.get(key) === written) this.#running.delete(key)
    }
  }
}
