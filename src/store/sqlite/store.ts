// A store in a SQLite file, which the processes of one machine can share.
import { resolve } from 'node:path'
import { atCaller } from '../../protocol/errors.ts'
import type { Store } from '../store.ts'
import { IN_MEMORY, openDatabase, openExisting, toStoreError } from './driver.ts'
import { FileIdentity } from './file-identity.ts'
import { SqliteFile } from './file.ts'
import { SqliteMailbox } from './mailbox.ts'
import { SqliteOnceStore } from './once.ts'
import { requireCurrent, upgrade } from './schema.ts'
import { SqliteTasks } from './tasks.ts'

/** Options of `sqlite()`. */
export interface SqliteOptions {
  /**
   * `full`: a write survives a power failure. `normal`: faster; a write survives the death of the process, but a power failure may lose
   * the last writes before it. Default `full`.
   */
  readonly synchronous?: 'full' | 'normal'
  /** How often to check for writes of other processes, in milliseconds, while something waits for them. Default 50. */
  readonly pollMs?: number
  /** The clock. Default `Date.now`. */
  readonly now?: () => number
}

/** Opens a file that a store has created, for operations. Creates nothing and upgrades nothing. */
export function existingSqlite(path: string): Store {
  const database = openExisting(path)
  try {
    requireCurrent(database, path)
  } catch (error) {
    throw toStoreError(error)
  } finally {
    database.close()
  }
  return sqlite(path)
}

/**
 * Opens the file, or creates it. `':memory:'` is a database that ends with the store.
 *
 * @example
 * const app = rally({ name: 'cloud', version: '1.0.0', store: sqlite('tasks.db') })
 */
export function sqlite(path: string, options: SqliteOptions = {}): Store {
  const { synchronous = 'full', pollMs = 50, now = Date.now } = options
  const database = atCaller(sqlite, () => openDatabase(path, { synchronous }))
  const identity = path === IN_MEMORY ? undefined : new FileIdentity(resolve(path))
  try {
    upgrade(database)
    const file = new SqliteFile(database, { pollMs, now, identity })
    return {
      tasks: new SqliteTasks(file),
      once: new SqliteOnceStore(file),
      mailbox: new SqliteMailbox(file),
      close: () => file.close(),
    }
  } catch (error) {
    database.close()
    throw toStoreError(error)
  }
}
