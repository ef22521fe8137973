// What other processes have written to the same file: SQLite counts their commits, and looking at the count costs next to nothing.
import type { Database, Statement } from './driver.ts'

export class Others {
  readonly #count: Statement
  readonly #pollMs: number
  readonly #followers = new Set<() => void>()
  #timer: NodeJS.Timeout | undefined
  #seen: unknown

  constructor(database: Database, pollMs: number) {
    this.#count = database.prepare('PRAGMA data_version')
    this.#pollMs = pollMs
  }

  /** Calls back soon after another process has written. Gives how to stop. Nobody is kept alive by it. */
  follow(wrote: () => void): () => void {
    if (this.#timer === undefined) {
      this.#seen = this.#countNow()
      this.#timer = setInterval(() => this.#look(), this.#pollMs).unref()
    }
    const own = (): void => wrote()
    this.#followers.add(own)
    return () => {
      this.#followers.delete(own)
      if (this.#followers.size === 0) this.close()
    }
  }

  close(): void {
    clearInterval(this.#timer)
    this.#timer = undefined
  }

  #look(): void {
    try {
      const count = this.#countNow()
      if (count === this.#seen) return
      for (const wrote of this.#followers) wrote()
      this.#seen = count
    } catch {
      // The file cannot be read just now: the next look finds the same.
    }
  }

  #countNow(): unknown {
    const [row] = this.#count.all([]) as { data_version?: unknown }[]
    return row?.data_version
  }
}
