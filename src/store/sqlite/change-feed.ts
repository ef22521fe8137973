// How this process learns what other processes wrote to the same file.
//
// SQLite counts the commits of other connections. Reading that count is nearly free, so it is polled. When it has changed, each feed
// reads the rows that are new to it.
import type { SqliteDatabase, SqliteStatement } from './driver.ts'

export class ExternalWrites {
  readonly #readCount: SqliteStatement
  readonly #pollMs: number
  readonly #listeners = new Set<() => void>()
  #timer: NodeJS.Timeout | undefined
  #count: unknown

  constructor(database: SqliteDatabase, pollMs: number) {
    this.#readCount = database.prepare('PRAGMA data_version')
    this.#pollMs = pollMs
  }

  /** Calls the listener soon after another process has written. Returns a function that stops it. */
  watch(listener: () => void): () => void {
    if (this.#timer === undefined) {
      this.#count = this.#currentCount()
      this.#timer = setInterval(() => this.#poll(), this.#pollMs).unref()
    }
    this.#listeners.add(listener)
    return () => {
      this.#listeners.delete(listener)
      if (this.#listeners.size === 0) this.close()
    }
  }

  close(): void {
    clearInterval(this.#timer)
    this.#timer = undefined
  }

  #poll(): void {
    try {
      const count = this.#currentCount()
      if (count === this.#count) return
      for (const listener of this.#listeners) listener()
      this.#count = count
    } catch {
      // The file cannot be read now. The count stays as it was, so the next poll tries again.
    }
  }

  #currentCount(): unknown {
    const [row] = this.#readCount.all([]) as { data_version?: unknown }[]
    return row?.data_version
  }
}

/** The wait before rows are read again that could not be read. */
const RETRY_MS = 50

/** A table whose rows have a number that grows with every write. */
export interface NumberedRows {
  /** The highest number so far. */
  readonly last: () => number
  /** Reports the rows after this number, or the first of them. Returns the number of the last one reported, if there were any. */
  readonly report: (after: number) => number | undefined
}

/**
 * Reports new rows while it is started. It also reports rows that this process wrote, if others wrote at the same time. When there are
 * many, other work of the event loop runs in between.
 */
export class ChangeFeed {
  readonly #writes: ExternalWrites
  readonly #rows: NumberedRows
  /** The number of the last row that was reported. */
  #position = 0
  /** Reads what is left. */
  #next: NodeJS.Timeout | undefined
  #unwatch: (() => void) | undefined

  constructor(writes: ExternalWrites, rows: NumberedRows) {
    this.#writes = writes
    this.#rows = rows
  }

  start(): void {
    if (this.#unwatch !== undefined) return
    this.#position = this.#rows.last()
    this.#unwatch = this.#writes.watch(() => this.#reportNew())
  }

  stop(): void {
    this.#unwatch?.()
    this.#unwatch = undefined
    clearTimeout(this.#next)
    this.#next = undefined
  }

  #reportNew(): void {
    clearTimeout(this.#next)
    this.#next = undefined
    const last = this.#rows.report(this.#position)
    if (last === undefined) return
    this.#position = last
    this.#reportLater(0)
  }

  #reportLater(ms: number): void {
    this.#next = setTimeout(() => {
      try {
        this.#reportNew()
      } catch {
        // The file cannot be read now.
        this.#reportLater(RETRY_MS)
      }
    }, ms).unref()
  }
}
