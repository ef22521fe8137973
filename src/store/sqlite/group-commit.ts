// Group commit: all writes of one turn of the event loop are one transaction, so that they share one wait for the disk. A lone writer has
// nobody to share it with, so its writes do not wait for the turn to end.
//
// 1. A promise settles after the commit. It rejects if its own write failed, or the commit.
// 2. Writes run in the order in which they were requested. Each sees the writes before it.
// 3. A write that fails does not affect the others: all are run again in one transaction, each in a savepoint of its own.
// 4. A commit that fails is not retried, because it may have been made.
import { RallyError } from '../../protocol/errors.ts'
import type { SqliteDatabase } from './driver.ts'
import { isBusy, toStoreError } from './driver.ts'

interface PendingWrite {
  readonly run: () => unknown
  readonly requestedAt: number
  readonly resolve: (value: unknown) => void
  readonly reject: (error: RallyError) => void
}

interface WriteResult {
  readonly value?: unknown
  readonly error?: RallyError
}

type Mode = 'together' | 'savepoints'

/** The most writes in one transaction, so that other work of the event loop is not held up. */
const MAX_WRITES = 500
/** How long to retry while another process writes. */
const BUSY_TIMEOUT_MS = 10_000
/** The pause between these tries. It does not grow: another process holds the lock for one transaction only. */
const RETRY_MS = 10
/** After so many transactions in a row with one write each, the writer is alone. */
const ALONE_AFTER = 8
/** For so long after a turn, the writes of a lone writer do not wait. Then one does: others may write by now, and timers are due. */
const ALONE_MS = 2

export class GroupCommit {
  readonly #database: SqliteDatabase
  readonly #check: () => void
  readonly #pending: PendingWrite[] = []
  #isScheduled = false
  #isClosed = false
  /** How many transactions in a row had one write. */
  #single = 0
  /** When the last turn of the event loop was waited for. */
  #turnedAt = 0
  #onEmpty: (() => void) | undefined

  /** `check` throws if the file must not be used now. Default: it may always be used. */
  constructor(database: SqliteDatabase, check: () => void = () => {}) {
    this.#database = database
    this.#check = check
  }

  /** Runs the function inside the next transaction. It may run twice (3). */
  write<T>(run: () => T): Promise<T> {
    if (this.#isClosed) return Promise.reject(closed())
    return new Promise<T>((resolve, reject) => {
      this.#pending.push({ run, requestedAt: Date.now(), resolve: resolve as (value: unknown) => void, reject })
      if (this.#isScheduled) return
      this.#isScheduled = true
      if (this.#isAlone) process.nextTick(() => this.#commit('together'))
      else this.#commitAfterTurn()
    })
  }

  /** Runs the function on what has been committed. */
  async read<T>(run: () => T): Promise<T> {
    const requestedAt = Date.now()
    for (;;) {
      if (this.#isClosed) throw closed()
      try {
        this.#check()
        return run()
      } catch (error) {
        if (!shouldRetry(error, requestedAt)) throw toStoreError(error)
        await new Promise((resolve) => setTimeout(resolve, RETRY_MS))
      }
    }
  }

  /** Refuses further calls, and finishes the pending writes. */
  async close(): Promise<void> {
    this.#isClosed = true
    if (this.#pending.length > 0) await new Promise<void>((resolve) => (this.#onEmpty = resolve))
  }

  get #isAlone(): boolean {
    return this.#single >= ALONE_AFTER && performance.now() - this.#turnedAt < ALONE_MS
  }

  #commitAfterTurn(): void {
    setImmediate(() => {
      this.#turnedAt = performance.now()
      this.#commit('together')
    })
  }

  #commit(mode: Mode): void {
    const writes = this.#pending.slice(0, MAX_WRITES)
    if (!this.#begin(writes, mode)) return
    let results: WriteResult[]
    try {
      results = mode === 'together' ? writes.map(({ run }) => ({ value: run() })) : this.#runInSavepoints(writes)
    } catch (error) {
      this.#rollback()
      if (mode === 'together') this.#commit('savepoints')
      else this.#finish(writes, () => this.#rejectAll(writes, error))
      return
    }
    this.#finish(writes, () => this.#settle(writes, results))
  }

  /** Returns whether the transaction has begun. If another process is writing, it begins later. */
  #begin(writes: readonly PendingWrite[], mode: Mode): boolean {
    try {
      this.#check()
      this.#database.exec('BEGIN IMMEDIATE')
      return true
    } catch (error) {
      const requestedAt = writes[0]?.requestedAt ?? 0
      if (shouldRetry(error, requestedAt)) setTimeout(() => this.#commit(mode), RETRY_MS)
      else this.#finish(writes, () => this.#rejectAll(writes, error))
      return false
    }
  }

  #runInSavepoints(writes: readonly PendingWrite[]): WriteResult[] {
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

  #settle(writes: readonly PendingWrite[], results: readonly WriteResult[]): void {
    try {
      this.#database.exec('COMMIT')
    } catch (error) {
      this.#rollback()
      this.#rejectAll(writes, error)
      return
    }
    for (const [index, { resolve, reject }] of writes.entries()) {
      const { value, error } = results[index] ?? {}
      if (error === undefined) resolve(value)
      else reject(error)
    }
  }

  #rejectAll(writes: readonly PendingWrite[], error: unknown): void {
    const storeError = toStoreError(error)
    for (const { reject } of writes) reject(storeError)
  }

  #rollback(): void {
    try {
      this.#database.exec('ROLLBACK')
    } catch {
      // SQLite has rolled back already, for example because the disk is full.
    }
  }

  #finish(writes: readonly PendingWrite[], settle: () => void): void {
    this.#pending.splice(0, writes.length)
    this.#single = writes.length === 1 ? this.#single + 1 : 0
    settle()
    this.#isScheduled = this.#pending.length > 0
    if (this.#isScheduled) this.#commitAfterTurn()
    else this.#onEmpty?.()
  }
}

function shouldRetry(error: unknown, since: number): boolean {
  return isBusy(error) && Date.now() - since < BUSY_TIMEOUT_MS
}

function closed(): RallyError {
  return new RallyError('STORE_CLOSED', 'The SQLite store has been closed. Do not use a store after close().')
}
