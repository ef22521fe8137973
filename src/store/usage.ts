// How much of the store each owner uses: its tasks, or the recorded responses of its calls.
//
// The store is asked once when an owner begins to use it, and then every few seconds in the background. In between, this instance
// adds what it stores itself. So storing something takes no further query. Instances that store for one owner at the same time learn
// of each other within that time: until then, each may store as much as the limit allows.
import { INTERNAL_ERROR, ProtocolError } from '../protocol/errors.ts'
import type { TaskUsage } from './tasks.ts'

/** What is to be stored: a task, a change that makes one larger, or a record. */
export interface Wanted {
  readonly tasks: 0 | 1
  readonly bytes: number
}

/** The words for a caller when there is no room for what it wants. */
export type UsageProblem = (owner: string, usage: TaskUsage, wanted: Wanted) => string | undefined

interface KnownUsage {
  open: number
  bytes: number
  /** What was added since the instance began to run. */
  addedTasks: number
  addedBytes: number
  /** What was added and may not be in the store yet. */
  pendingTasks: number
  pendingBytes: number
  /** True if something was added since the last reading. */
  hasGrown: boolean
  /** `undefined` before the first reading. */
  readAt: number | undefined
  /** When it is to be read again: later, if reading takes long. */
  staleAt: number
  reading: Promise<void> | undefined
}

const READ_EVERY_MS = 5_000
/** The same at the limit. */
const READ_AT_LIMIT_MS = 500
/** Reading takes at most this part of the time. */
const READING_PART = 0.02
const MAX_OWNERS = 10_000

export class Usages {
  readonly #readUsage: (owner: string) => Promise<TaskUsage>
  readonly #problem: UsageProblem
  readonly #now: () => number
  /** In the order of their last use. */
  readonly #owners = new Map<string, KnownUsage>()

  constructor(readUsage: (owner: string) => Promise<TaskUsage>, problem: UsageProblem, now: () => number) {
    this.#readUsage = readUsage
    this.#problem = problem
    this.#now = now
  }

  /**
   * Adds it to what the owner uses. Returns a promise only if the store has to be asked. Throws, or rejects, over a limit. Call
   * `written` when the store has it.
   */
  add(owner: string, wanted: Wanted): Promise<void> | undefined {
    const known = this.#owners.get(owner)
    if (known?.readAt === undefined || this.#mustReadAgain(owner, known, wanted)) {
      return this.#read(owner).then((read) => this.#count(owner, read, wanted))
    }
    if (this.#now() >= known.staleAt) this.#read(owner).catch(() => {})
    this.#count(owner, known, wanted)
    return undefined
  }

  written(owner: string, { tasks, bytes }: Wanted): void {
    const known = this.#owners.get(owner)
    if (known === undefined) return
    known.pendingTasks -= tasks
    known.pendingBytes -= bytes
  }

  /** At the limit: what was added since the last reading may have ended already. If nothing was, it is read now and then. */
  #mustReadAgain(owner: string, known: KnownUsage, wanted: Wanted): boolean {
    if (this.#problem(owner, known, wanted) === undefined) return false
    return known.hasGrown || this.#now() >= (known.readAt ?? 0) + READ_AT_LIMIT_MS
  }

  /** What was stored has turned out larger by so much. It is stored already, so no limit is checked. */
  grow(owner: string, bytes: number): void {
    const known = this.#owners.get(owner)
    if (known === undefined) return
    known.bytes += bytes
    known.addedBytes += bytes
    known.hasGrown = true
  }

  #count(owner: string, known: KnownUsage, wanted: Wanted): void {
    const problem = this.#problem(owner, known, wanted)
    if (problem !== undefined) throw new ProtocolError(INTERNAL_ERROR, problem)
    known.open += wanted.tasks
    known.bytes += wanted.bytes
    known.addedTasks += wanted.tasks
    known.addedBytes += wanted.bytes
    known.pendingTasks += wanted.tasks
    known.pendingBytes += wanted.bytes
    known.hasGrown = true
  }

  /** Asks the store, once for all that wait for it. */
  async #read(owner: string): Promise<KnownUsage> {
    const known = this.#owners.get(owner) ?? newUsage()
    this.#owners.delete(owner)
    this.#owners.set(owner, known)
    if (this.#owners.size > MAX_OWNERS) {
      const [first = ''] = this.#owners.keys()
      this.#owners.delete(first)
    }
    known.reading ??= this.#readInto(owner, known).finally(() => {
      known.reading = undefined
    })
    try {
      await known.reading
    } catch (error) {
      // Nothing is known of it.
      if (known.readAt === undefined) this.#owners.delete(owner)
      throw error
    }
    return known
  }

  async #readInto(owner: string, known: KnownUsage): Promise<void> {
    const startedAt = this.#now()
    known.staleAt = Number.POSITIVE_INFINITY
    // What is pending now may be counted twice. The next reading corrects that.
    const addedTasks = known.addedTasks - known.pendingTasks
    const addedBytes = known.addedBytes - known.pendingBytes
    try {
      const { open, bytes } = await this.#readUsage(owner)
      known.open = open + known.addedTasks - addedTasks
      known.bytes = bytes + known.addedBytes - addedBytes
      known.hasGrown = known.addedTasks > addedTasks || known.addedBytes > addedBytes
      known.readAt = this.#now()
    } finally {
      const endedAt = this.#now()
      known.staleAt = endedAt + Math.max(READ_EVERY_MS, (endedAt - startedAt) / READING_PART)
    }
  }
}

function newUsage(): KnownUsage {
  const none = { open: 0, bytes: 0, addedTasks: 0, addedBytes: 0, pendingTasks: 0, pendingBytes: 0 }
  return { ...none, hasGrown: false, readAt: undefined, staleAt: 0, reading: undefined }
}
