// What the server counts while lives run on one database: statements, transactions that were committed to the log, and bytes of the log.

export class Costs {
  #client
  #database
  #position

  constructor(client, database) {
    this.#client = client
    this.#database = database
  }

  async begin() {
    await this.#client.query('CREATE EXTENSION IF NOT EXISTS pg_stat_statements')
    await this.#client.query('CREATE EXTENSION IF NOT EXISTS pg_walinspect')
    await this.#client.query('SELECT pg_stat_statements_reset()')
    this.#position = await this.#one('SELECT pg_current_wal_flush_lsn() AS value')
  }

  /** For each of so many tasks. */
  async end(tasks) {
    const position = await this.#one('SELECT pg_current_wal_flush_lsn() AS value')
    const statements = await this.#one(
      `SELECT sum(calls)::float8 AS value FROM pg_stat_statements JOIN pg_database d ON d.oid = dbid WHERE datname = $1`,
      [this.#database],
    )
    const range = [this.#position, position]
    const bytes = await this.#one('SELECT pg_wal_lsn_diff($2, $1)::float8 AS value', range)
    const commits = await this.#one(
      `SELECT count(*)::int AS value FROM pg_get_wal_records_info($1, $2)
       WHERE resource_manager = 'Transaction' AND record_type LIKE 'COMMIT%'`,
      range,
    )
    const each = (total) => Number((total / tasks).toFixed(2))
    return { statements: each(statements), commits: each(commits), walBytes: Math.round(bytes / tasks) }
  }

  async #one(text, values = []) {
    const { rows } = await this.#client.query(text, values)
    return rows[0].value
  }
}
