// Deletes expired rows from a table, as fast as new rows are added.
import { namedQuery, NOW, type NamedQuery, type PostgresDatabase } from './database.ts'

/** A sweep runs after so many new rows, and deletes more rows than that. */
const SWEEP_EVERY = 64
const MAX_SWEPT = 256

export class Sweeper {
  readonly #database: PostgresDatabase
  readonly #query: NamedQuery
  #rows = 0

  constructor(database: PostgresDatabase, table: string, key: readonly string[]) {
    const name = `${database.schema}.${table}`
    const columns = key.join(', ')
    this.#database = database
    // It skips locked rows, so that it waits for no other statement while others may wait for it.
    this.#query = namedQuery(`
      WITH over AS MATERIALIZED (
        SELECT ${columns} FROM ${name} WHERE expires_at <= ${NOW}
        ORDER BY expires_at LIMIT ${MAX_SWEPT} FOR UPDATE SKIP LOCKED
      ), gone AS (
        DELETE FROM ${name} WHERE (${columns}) IN (SELECT ${columns} FROM over) RETURNING 1
      )
      SELECT count(*) AS count FROM gone`)
  }

  async sweep(): Promise<number> {
    const [row] = await this.#database.run(this.#query, [])
    return Number(row?.['count'])
  }

  /** Call it for each new row. Now and then it starts a sweep, without waiting for it. A sweep that fails is tried again later. */
  countRow(): void {
    this.#rows += 1
    if (this.#rows % SWEEP_EVERY === 0) this.sweep().catch(() => {})
  }
}
