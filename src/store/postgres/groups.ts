// Gives places to tasks of groups. A task of a group is not due by itself: `wanted_at` says when it wants to run. It gets a place when
// `due_at` is set instead, and has it until it is parked or ends.
//
// 1. Places are given under one lock, by a statement after the one that takes the lock. So it sees all places that were given before.
// 2. A write that may free a place, or that wants one, has its group looked at when it has been committed. What that misses, because the
//    instance died or because the time of a task has come, the next poll of a worker finds.
// 3. It does not wait for the locks of rows. A write that has one looks at the group afterwards.
import { hash } from 'node:crypto'
import { ALIVE, namedQuery, NOW, type NamedQuery, type PostgresDatabase } from './database.ts'

/** After this time, the database ends the transaction of an instance that stands still in it, so that the others get the lock. */
const STALL_MS = 10_000
/** How many groups a poll looks at. The next one continues after them. */
const MAX_GROUPS = 1_000

export class Groups {
  readonly #database: PostgresDatabase
  readonly #onDue: () => void
  /** Begins a transaction and takes the lock. */
  readonly #begin: string
  readonly #fill: string
  readonly #waiting: NamedQuery
  readonly #touched = new Set<string>()
  #filling: Promise<void> | undefined
  /** The last group that a poll has looked at. */
  #last = ''

  /** `onDue` is called when tasks have got a place. */
  constructor(database: PostgresDatabase, onDue: () => void) {
    this.#database = database
    this.#onDue = onDue
    const key = Buffer.from(hash('sha256', `mcp-rally groups ${database.schema}`, 'hex'), 'hex').readBigInt64BE()
    // READ COMMITTED: each statement sees what was committed before it, whatever the database's default is.
    this.#begin = `
      BEGIN ISOLATION LEVEL READ COMMITTED;
      SET LOCAL idle_in_transaction_session_timeout = ${STALL_MS};
      SELECT pg_advisory_xact_lock(${key})`
    this.#fill = fillText(`${database.schema}.tasks`)
    this.#waiting = namedQuery(waitingText(`${database.schema}.tasks`))
  }

  /** Begins to give the free places of these groups to the tasks that have waited longest. Does not wait for it. */
  touch(groups: Iterable<string>): void {
    for (const group of groups) this.#touched.add(group)
    // If it fails, the next poll does it (2). Queries report that the database is away.
    if (this.#touched.size > 0) void this.#fillTouched().catch(() => {})
  }

  /** Gives the free places of all groups in which the time of a task has come. */
  async poll(): Promise<void> {
    const rows = await this.#database.run(this.#waiting, [this.#last, MAX_GROUPS])
    this.#last = rows.length < MAX_GROUPS ? '' : String(rows.at(-1)?.['name'])
    for (const row of rows) if (row['is_wanted'] === true) this.#touched.add(String(row['name']))
    await this.#fillTouched()
  }

  /** One at a time: what is touched meanwhile is done together after it. */
  async #fillTouched(): Promise<void> {
    while (this.#filling !== undefined) await this.#filling.catch(() => {})
    if (this.#touched.size === 0) return
    const groups = [...this.#touched]
    this.#touched.clear()
    this.#filling = this.#fillPlaces(groups).finally(() => {
      this.#filling = undefined
    })
    await this.#filling
  }

  async #fillPlaces(groups: readonly string[]): Promise<void> {
    const connection = await this.#database.connect()
    // The query on a lost connection rejects too. Without a listener, the error of the connection would end the process.
    connection.on('error', ignore)
    let failed = true
    try {
      await connection.query({ text: this.#begin })
      const { rows } = await connection.query({ text: this.#fill, values: [groups] })
      await connection.query({ text: 'COMMIT' })
      failed = false
      if (rows.length > 0) this.#onDue()
    } finally {
      connection.removeListener?.('error', ignore)
      connection.release(failed)
    }
  }
}

function ignore(): void {}

/** $1 are the groups. The limit is that of the task whose turn it is. */
function fillText(tasks: string): string {
  const waits = `group_name = wanted.name AND wanted_at <= ${NOW} AND lease_until IS NULL AND ${ALIVE}`
  return `
    WITH next AS MATERIALIZED (
      SELECT task.id FROM unnest($1::text[]) AS wanted (name) CROSS JOIN LATERAL (
        SELECT id FROM ${tasks} WHERE ${waits} ORDER BY wanted_at LIMIT greatest(0,
          coalesce((SELECT group_limit FROM ${tasks} WHERE ${waits} ORDER BY wanted_at LIMIT 1), 0)
          - (SELECT count(*) FROM ${tasks} WHERE group_name = wanted.name AND ready_at IS NOT NULL AND ${ALIVE})
        ) FOR UPDATE SKIP LOCKED
      ) task
    )
    UPDATE ${tasks} t SET due_at = wanted_at, wanted_at = NULL FROM next WHERE t.id = next.id RETURNING t.id`
}

/** The groups after $1 of which tasks wait, $2 at most, with one index lookup for each. */
function waitingText(tasks: string): string {
  const next = (after: string): string => `(
      SELECT group_name AS name, wanted_at FROM ${tasks} WHERE wanted_at IS NOT NULL AND group_name > ${after}
      ORDER BY group_name, wanted_at LIMIT 1
    )`
  return `
    WITH RECURSIVE waiting AS (
      ${next('$1::text')}
      UNION ALL
      SELECT following.* FROM waiting CROSS JOIN LATERAL ${next('waiting.name')} following
    )
    SELECT name, wanted_at <= ${NOW} AS is_wanted FROM waiting LIMIT $2::int`
}
