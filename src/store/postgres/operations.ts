// The statements with which operations find, inspect and delete tasks.
//
// `looked` holds a bounded number of rows, in the order of an index, whatever is looked for. The texts of a task are returned only if the
// task matches. A list of all tasks goes by `tasks_created`; a list of one owner's tasks by `tasks_of_owner`.
import type { FoundTasks, InspectedTask, TaskQuery } from '../tasks.ts'
import { cursorOf, MAX_FOUND, MAX_LOOKED, readCursor } from '../operations.ts'
import { RECORD_COLUMNS, toRecord, type RowDecoder, type TaskRow } from '../task-row.ts'
import { journalOf } from '../tasks.ts'
import { ALIVE, namedQuery, type NamedQuery, type PostgresDatabase, type Row } from './database.ts'
import { asName, fromText, toText } from './text.ts'

const decoder: RowDecoder = { name: fromText, json: fromText }

export class PostgresTaskQueries {
  readonly #database: PostgresDatabase
  readonly #find: NamedQuery
  readonly #findOfOwner: NamedQuery
  readonly #inspect: NamedQuery
  readonly #remove: NamedQuery

  constructor(database: PostgresDatabase) {
    const tasks = `${database.schema}.tasks`
    this.#database = database
    this.#find = namedQuery(findText(tasks, 'true'))
    this.#findOfOwner = namedQuery(findText(tasks, 'owner = $8'))
    this.#inspect = namedQuery(`
      SELECT ${RECORD_COLUMNS}, claimed_by, lease_until, coalesce(due_at, wanted_at) AS due_at, expires_at, journal, (
        SELECT string_agg(NULLIF(e.text, ''), ',' ORDER BY e.number) FROM ${database.schema}.journal_entries e
        WHERE e.task = t.id AND e.number > t.journal_from
      ) AS entries
      FROM ${tasks} t WHERE id = $1 AND ${ALIVE}`)
    // In the order of the ids, as all statements lock rows.
    this.#remove = namedQuery(`
      WITH ended AS MATERIALIZED (
        SELECT id FROM ${tasks} WHERE id = ANY($1::text[]) AND status NOT IN ('working', 'input_required')
        ORDER BY id FOR UPDATE
      )
      DELETE FROM ${tasks} t USING ended WHERE t.id = ended.id RETURNING 1`)
  }

  async find(query: TaskQuery): Promise<FoundTasks> {
    const { statuses, requestPrefix = '', statePrefix = '', owner, cursor, createdBefore } = query
    const limit = Math.min(query.limit, MAX_FOUND)
    const isFiltered = statuses !== undefined || requestPrefix !== '' || statePrefix !== ''
    const most = isFiltered ? MAX_LOOKED : limit
    const { major, minor } =
      cursor === undefined ? { major: createdBefore ?? Number.MAX_SAFE_INTEGER, minor: '' } : readCursor(cursor)
    const values = [
      major,
      minor,
      most,
      statuses ?? null,
      toText('request', requestPrefix),
      toText('state', statePrefix),
      limit,
    ]
    const name = owner === undefined ? undefined : asName(owner)
    if (owner !== undefined && name === undefined) return { tasks: [] }
    const rows = await (name === undefined
      ? this.#database.run(this.#find, values)
      : this.#database.run(this.#findOfOwner, [...values, name]))
    const [first] = rows
    const matching = rows.filter(({ id }) => id !== null)
    const tasks = matching.map((row) => toRecord(row as unknown as TaskRow, decoder))
    if (matching.length === limit) {
      const last = matching.at(-1)
      return { tasks, next: cursorOf(Number(last?.['created_at']), String(last?.['id'])) }
    }
    if (first === undefined || Number(first['looked']) < most) return { tasks }
    return { tasks, next: cursorOf(Number(first['last_created_at']), String(first['last_id'])) }
  }

  async inspect(id: string): Promise<InspectedTask | undefined> {
    const name = asName(id)
    const [row] = name === undefined ? [] : await this.#database.run(this.#inspect, [name])
    if (row === undefined) return undefined
    const parts = [row['journal'], row['entries']].flatMap((part) => (part === null ? [] : [fromText(part)]))
    return {
      ...toRecord(row as unknown as TaskRow, decoder),
      journal: journalOf(parts),
      claimedBy: row['claimed_by'] === null ? undefined : fromText(row['claimed_by']),
      leaseUntil: numberIn(row, 'lease_until'),
      dueAt: numberIn(row, 'due_at'),
      expiresAt: numberIn(row, 'expires_at'),
    }
  }

  async remove(ids: readonly string[]): Promise<number> {
    const names = [...new Set(ids)].flatMap((id) => asName(id) ?? [])
    return (await this.#database.run(this.#remove, [names])).length
  }
}

/** $1 and $2 are the position, $3 how many rows to look at, $4 to $6 the filters, $7 the limit, $8 the owner. */
function findText(tasks: string, range: string): string {
  return `
    WITH looked AS MATERIALIZED (
      SELECT id, created_at, ${ALIVE} AND ($4::text[] IS NULL OR status = ANY($4::text[]))
        AND starts_with(request, $5) AND starts_with(state, $6) AS matches
      FROM ${tasks} WHERE ${range} AND created_at <= $1::bigint AND (created_at, id) < ($1::bigint, $2)
      ORDER BY created_at DESC, id DESC LIMIT $3::int
    ), summary AS (
      SELECT count(*) AS looked, (array_agg(created_at ORDER BY created_at, id))[1] AS last_created_at,
        (array_agg(id ORDER BY created_at, id))[1] AS last_id FROM looked
    ), found AS (
      SELECT id AS found_id FROM looked WHERE matches ORDER BY created_at DESC, id DESC LIMIT $7::int
    )
    SELECT ${RECORD_COLUMNS}, looked, last_created_at, last_id
    FROM summary LEFT JOIN (found JOIN ${tasks} ON id = found_id) ON true
    ORDER BY created_at DESC, id DESC`
}

function numberIn(row: Row, column: string): number | undefined {
  return row[column] === null ? undefined : Number(row[column])
}
