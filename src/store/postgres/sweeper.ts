// Deletes what has outlived its time from a table, as fast as new rows come.
import { NOW, statement, type Database, type Statement } from './database.ts'

/** More go at a time than have come since the last time. */
const EVERY = 64
const MOST = 256

export class Sweeping {
  readonly #database: Database
  readonly #statement: Statement
  #counted = 0

  constructor(database: Database, table: string, key: readonly string[]) {
    const name = `${database.schema}.${table}`
    const columns = key.join(', ')
    this.#database = database
    // Skips what is locked, so that it waits for nobody while others may wait for it.
    this.#statement = statement(`
      WITH over AS MATERIALIZED (
        SELECT ${columns} FROM ${name} WHERE expires_at <= ${NOW}
        ORDER BY expires_at LIMIT ${MOST} FOR UPDATE SKIP LOCKED
      ), gone AS (
        DELETE FROM ${name} WHERE (${columns}) IN (SELECT ${columns} FROM over) RETURNING 1
      )
      SELECT count(*) AS count FROM gone`)
  }

  async sweep(): Promise<number> {
    const [row] = await this.#database.run(this.#statement, [])
    return Number(row?.['count'])
  }

  /** A row is about to come. Nobody waits for what it costs now and then, and where it fails it comes round again. */
  count(): void {
    this.#counted += 1
    if (this.#counted % EVERY === 0) this.sweep().catch(() => {})
  }
}
