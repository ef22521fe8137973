// A store in a SQLite file, which the processes of one machine may share.
import type { OnceStore } from '../once.ts'
import type { Mailbox } from '../mailbox.ts'
import type { Store, TaskStore } from '../store.ts'
import type { Database } from './driver.ts'
import { openDatabase, toStoreError } from './driver.ts'
import { SqliteMailbox } from './mailbox.ts'
import { SqliteNews } from './change-feed.ts'
import { SqliteOnceStore } from './once.ts'
import { Others } from './external-writes.ts'
import { upgrade } from './schema.ts'
import { SqliteTasks } from './tasks.ts'
import { Turn } from './group-commit.ts'

export interface SqliteOptions {
  /**
   * `full`: what was written survives a power cut. `normal`: it survives the death of the process, is faster, and of the last
   * moments before a power cut some may be missing. Default `full`.
   */
  readonly synchronous?: 'full' | 'normal'
  /** How often it looks for what other processes wrote, while somebody waits for that. Default 50. */
  readonly pollMs?: number
  /** The clock. Default `Date.now`. */
  readonly now?: () => number
}

/** Opens the file, which is made where there is none; `':memory:'` is one that ends with the store. */
export function sqlite(path: string, options: SqliteOptions = {}): Store {
  const { synchronous = 'full', pollMs = 50, now = Date.now } = options
  const database = openDatabase(path, { synchronous })
  try {
    upgrade(database)
    return new SqliteStore(database, pollMs, now)
  } catch (error) {
    database.close()
    throw toStoreError(error)
  }
}

class SqliteStore implements Store {
  readonly tasks: TaskStore
  readonly once: OnceStore
  readonly mailbox: Mailbox
  readonly #database: Database
  readonly #turn: Turn
  readonly #others: Others
  #closing: Promise<void> | undefined

  constructor(database: Database, pollMs: number, now: () => number) {
    const turn = new Turn(database)
    const others = new Others(database, pollMs)
    this.tasks = new SqliteTasks(database, turn, new SqliteNews(database, others), now)
    this.once = new SqliteOnceStore(database, turn, now)
    this.mailbox = new SqliteMailbox(database, turn, others, now)
    this.#database = database
    this.#turn = turn
    this.#others = others
  }

  close(): Promise<void> {
    return (this.#closing ??= this.#close())
  }

  async #close(): Promise<void> {
    this.#others.close()
    await this.#turn.close()
    this.#database.close()
  }
}
