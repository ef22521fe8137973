// Group commit: what is written in one turn of the event loop is one transaction.
//
// 1. A promise settles after the commit, or with the failure of its own write, or of the commit.
// 2. Writes are done in the order in which they were asked for, each seeing those before.
// 3. A write that fails takes no other one with it: all are done again, each apart in the same transaction.
// 4. A commit that fails is not tried again: whether it was made is not known.
import { RallyError } from '../../protocol/errors.ts'
import type { Database } from './driver.ts'
import { isBusy, toStoreError } from './driver.ts'

interface Write {
  readonly run: () => unknown
  readonly asked: number
  readonly resolve: (value: unknown) => void
  readonly reject: (error: RallyError) => void
}

/** In one transaction, so that the event loop goes on in between. */
const MOST_WRITES = 500
/** How long to try again while another process writes, and how often. */
const PATIENCE_MS = 10_000
const RETRY_MS = 10

export class Turn {
  readonly #database: Database
  readonly #waiting: Write[] = []
  #isPlanned = false
  #isClosed = false
  #emptied: (() => void) | undefined

  constructor(database: Database) {
    this.#database = database
  }

  write<T>(run: () => T): Promise<T> {
    if (this.#isClosed) return Promise.reject(closed())
    return new Promise<T>((resolve, reject) => {
      this.#waiting.push({ run, asked: Date.now(), resolve: resolve as (value: unknown) => void, reject })
      if (this.#isPlanned) return
      this.#isPlanned = true
      setImmediate(() => this.#commit(false))
    })
  }

  /** Sees what has been committed. */
  async read<T>(run: () => T): Promise<T> {
    const asked = Date.now()
    for (;;) {
      if (this.#isClosed) throw closed()
      try {
        return run()
      } catch (error) {
        if (!isWorthWaiting(error, asked)) throw toStoreError(error)
        await new Promise((resolve) => setTimeout(resolve, RETRY_MS))
      }
    }
  }

  /** Takes nothing more, and finishes what it has. */
  async close(): Promise<void> {
    this.#isClosed = true
    if (this.#waiting.length > 0) await new Promise<void>((resolve) => (this.#emptied = resolve))
  }

  /** All at once, or each apart from the others where one of them has failed. */
  #commit(apart: boolean): void {
    const writes = this.#waiting.slice(0, MOST_WRITES)
    if (!this.#begin(writes, apart)) return
    let done: Done[]
    try {
      done = apart ? this.#apart(writes) : writes.map(({ run }) => ({ value: run() }))
    } catch (error) {
      this.#rollback()
      if (apart) this.#finish(writes, () => this.#refuse(writes, error))
      else this.#commit(true)
      return
    }
    this.#finish(writes, () => this.#settle(writes, done))
  }

  /** Whether the transaction has begun. Where another process is in the way it begins later. */
  #begin(writes: readonly Write[], apart: boolean): boolean {
    try {
      this.#database.exec('BEGIN IMMEDIATE')
      return true
    } catch (error) {
      const asked = writes[0]?.asked ?? 0
      if (isWorthWaiting(error, asked)) setTimeout(() => this.#commit(apart), RETRY_MS)
      else this.#finish(writes, () => this.#refuse(writes, error))
      return false
    }
  }

  #apart(writes: readonly Write[]): Done[] {
    return writes.map(({ run }) => {
      this.#database.exec('SAVEPOINT write')
      try {
        return { value: run() }
      } catch (error) {
        this.#database.exec('ROLLBACK TO write')
        return { error: toStoreError(error) }
      } finally {
        this.#database.exec('RELEASE write')
      }
    })
  }

  #settle(writes: readonly Write[], done: readonly Done[]): void {
    try {
      this.#database.exec('COMMIT')
    } catch (error) {
      this.#rollback()
      this.#refuse(writes, error)
      return
    }
    for (const [index, { resolve, reject }] of writes.entries()) {
      const { value, error } = done[index] ?? {}
      if (error === undefined) resolve(value)
      else reject(error)
    }
  }

  #refuse(writes: readonly Write[], error: unknown): void {
    const refusal = toStoreError(error)
    for (const { reject } of writes) reject(refusal)
  }

  #rollback(): void {
    try {
      this.#database.exec('ROLLBACK')
    } catch {
      // SQLite has rolled it back itself, on a full disk for one.
    }
  }

  #finish(writes: readonly Write[], settle: () => void): void {
    this.#waiting.splice(0, writes.length)
    settle()
    this.#isPlanned = this.#waiting.length > 0
    if (this.#isPlanned) setImmediate(() => this.#commit(false))
    else this.#emptied?.()
  }
}

interface Done {
  readonly value?: unknown
  readonly error?: RallyError
}

function isWorthWaiting(error: unknown, since: number): boolean {
  return isBusy(error) && Date.now() - since < PATIENCE_MS
}

function closed(): RallyError {
  return new RallyError('STORE_CLOSED', 'The store has been closed: nothing may be asked of it any more.')
}
