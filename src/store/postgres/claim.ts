// The statements that claim tasks: the next one, or several at once.
//
// It goes through ranges of owner names, each in the order of the index of scheduled tasks. So it does not read the tasks of an owner
// that is excluded, nor tasks that are not scheduled, however many there are. It skips rows that another worker is claiming.
import { RECORD_COLUMNS } from '../task-row.ts'
import { ALIVE, namedQuery, NOW, type NamedQuery, type PostgresDatabase } from './database.ts'

/** A claim request, with names as they are stored. */
export interface ClaimValues {
  readonly leaseMs: number
  readonly after: string
  readonly except: string | undefined
  readonly fences: readonly number[]
  readonly worker: string | null
}

/** $1 is the lease, $2 the owner to start after, $3 the fences of leases to exclude, $4 who claims, $5 the owner to exclude. */
const RANGES = {
  everybody: ['owner > $2', 'owner <= $2'],
  exceptLater: ['owner > $2 AND owner < $5', 'owner > $5', 'owner <= $2'],
  exceptEarlier: ['owner > $2', 'owner < $5', 'owner > $5 AND owner <= $2'],
} as const

/** False if entries were added after the statement began: it does not see these. */
export const WHOLE = 'journal_to - journal_from = rest.count'

export class ClaimQueries {
  readonly #queries: Readonly<Record<keyof typeof RANGES, NamedQuery>>
  readonly #many: NamedQuery
  readonly #manyExcept: NamedQuery

  constructor(database: PostgresDatabase) {
    const make = (ranges: readonly string[]): NamedQuery => namedQuery(claimText(database.schema, ranges))
    this.#queries = {
      everybody: make(RANGES.everybody),
      exceptLater: make(RANGES.exceptLater),
      exceptEarlier: make(RANGES.exceptEarlier),
    }
    this.#many = namedQuery(claimManyText(database.schema, ['']))
    this.#manyExcept = namedQuery(claimManyText(database.schema, ['AND owner < $6', 'AND owner > $6']))
  }

  /** The query for a claim of up to `limit` tasks, and its values. */
  many({ leaseMs, after, fences, except, worker }: ClaimValues, limit: number): [NamedQuery, unknown[]] {
    const values = [leaseMs, after, fences, worker, limit]
    return except === undefined ? [this.#many, values] : [this.#manyExcept, [...values, except]]
  }

  /** The query for a claim of one task, and its values. */
  one({ leaseMs, after, fences, except, worker }: ClaimValues): [NamedQuery, unknown[]] {
    if (except === undefined) return [this.#queries.everybody, [leaseMs, after, fences, worker]]
    // By bytes, as the collation "C" of the column compares them.
    const isLater = Buffer.compare(Buffer.from(except), Buffer.from(after)) > 0
    return [this.#queries[isLater ? 'exceptLater' : 'exceptEarlier'], [leaseMs, after, fences, worker, except]]
  }
}

/**
 * The statement sees the journal as it was when the statement began. If an entry was added between that and the lock, the number of
 * entries differs from the number there should be: `whole` is then false.
 */
function claimText(schema: string, ranges: readonly string[]): string {
  const found = ranges.map((range, i) => {
    const before = ranges.slice(0, i).map((_, j) => `AND NOT EXISTS (SELECT 1 FROM found_${j})`)
    return `found_${i} AS MATERIALIZED (
      SELECT id, lease_until, claimed_by FROM ${schema}.tasks
      WHERE ready_at <= ${NOW} AND ${ALIVE} AND ${range} ${before.join(' ')}
        AND (lease_until IS NULL OR fence <> ALL($3::bigint[]))
      ORDER BY owner, ready_at LIMIT 1 FOR UPDATE SKIP LOCKED
    )`
  })
  return `
    WITH ${found.join(', ')}, found AS (
      ${ranges.map((_, i) => `SELECT * FROM found_${i}`).join(' UNION ALL ')}
    ), ${claimedText(schema)}`
}

/** Claims the tasks in `found`, and returns them with their journals. */
function claimedText(schema: string, order = '1'): string {
  return `claimed AS (
      UPDATE ${schema}.tasks t SET fence = nextval('${schema}.fences'), lease_until = ${NOW} + $1::bigint, claimed_by = $4
      FROM found WHERE t.id = found.id
      RETURNING t.*, found.lease_until IS NOT NULL AS lost, found.claimed_by AS claimed_before, ${order}
    )
    SELECT ${RECORD_COLUMNS}, fence, lost, CASE WHEN lost THEN claimed_before END AS lost_worker, journal, rest.text AS entries, ${WHOLE} AS whole
    FROM claimed CROSS JOIN ${restText(schema, 'claimed', 'true')}`
}

/** Selects `rest.text` and `rest.count` of the entries that are not in the row, for rows of `tasks` that meet the condition. */
export function restText(schema: string, tasks: string, condition: string): string {
  return `LATERAL (
      SELECT count(*) AS count, string_agg(NULLIF(e.text, ''), ',' ORDER BY e.number) AS text
      FROM ${schema}.journal_entries e
      WHERE ${condition} AND journal_to > journal_from AND e.task = ${tasks}.id AND e.number > journal_from
    ) rest`
}

/**
 * $1 is the lease, $2 the owner to start after, $3 the fences of leases to exclude, $4 who claims, $5 the limit, $6 the owner to
 * exclude. `turn` lists
 * the owners that have due tasks, in their turn, with one index lookup for each. `fair` takes an equal number of tasks of each.
 * `others` fills what is left because some owners have fewer. Both lock only what they claim.
 */
function claimManyText(schema: string, exceptions: readonly string[]): string {
  const due = `ready_at <= ${NOW} AND ${ALIVE} AND (lease_until IS NULL OR fence <> ALL($3::bigint[]))`
  const next = (lap: number, range: string): string[] =>
    exceptions.map(
      (exception) => `(
        SELECT ${lap} AS lap, owner FROM ${schema}.tasks WHERE ${due} AND ${range} ${exception} ORDER BY owner, ready_at LIMIT 1
      )`,
    )
  const nexts = [
    ...next(0, 'turn.lap = 0 AND owner > turn.owner'),
    ...next(1, 'turn.lap = 0 AND owner <= $2'),
    ...next(1, 'turn.lap = 1 AND owner > turn.owner AND owner <= $2'),
  ]
  return `
    WITH RECURSIVE turn (number, lap, owner) AS (
      SELECT 0, 0, $2::text COLLATE "C"
      UNION ALL
      SELECT turn.number + 1, next.lap, next.owner
      FROM turn CROSS JOIN LATERAL (${nexts.join(' UNION ALL ')} LIMIT 1) next WHERE turn.number < $5::int
    ), owners AS MATERIALIZED (
      SELECT number, owner FROM turn WHERE number > 0
    ), fair AS MATERIALIZED (
      SELECT task.*, owners.number, row_number() OVER (PARTITION BY owners.number ORDER BY task.ready_at) AS lap
      FROM owners CROSS JOIN LATERAL (
        SELECT id, lease_until, claimed_by, ready_at FROM ${schema}.tasks WHERE owner = owners.owner AND ${due} ORDER BY ready_at
        LIMIT (SELECT greatest(1, $5::int / greatest(1, count(*))) FROM owners) FOR UPDATE SKIP LOCKED
      ) task
    ), others AS MATERIALIZED (
      SELECT id, lease_until, claimed_by FROM ${schema}.tasks
      WHERE owner = ANY(ARRAY(SELECT owner FROM owners)) AND ${due} AND id <> ALL(ARRAY(SELECT id FROM fair))
      ORDER BY owner, ready_at LIMIT (SELECT $5::int - count(*) FROM fair) FOR UPDATE SKIP LOCKED
    ), found AS (
      SELECT id, lease_until, claimed_by, lap, number FROM fair UNION ALL
      SELECT id, lease_until, claimed_by, NULL, NULL FROM others
    ), ${claimedText(schema, 'found.lap, found.number')}
    ORDER BY lap, number`
}
