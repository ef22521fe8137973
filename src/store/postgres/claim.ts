// The statement that claims the next task.
//
// It goes through ranges of owner names, each in the order of the index of scheduled tasks. So it does not read the tasks of an owner
// that is excluded, nor tasks that are not scheduled, however many there are. It skips rows that another worker is claiming.
import { RECORD_COLUMNS } from '../task-row.ts'
import { namedQuery, NOW, type NamedQuery, type PostgresDatabase } from './database.ts'
import { ALIVE } from './statements.ts'

/** $1 is the lease, $2 the owner to start after, $3 the fences of leases to exclude, $4 the owner to exclude. */
const RANGES = {
  everybody: ['owner > $2', 'owner <= $2'],
  exceptLater: ['owner > $2 AND owner < $4', 'owner > $4', 'owner <= $2'],
  exceptEarlier: ['owner > $2', 'owner < $4', 'owner > $4 AND owner <= $2'],
} as const

export class ClaimQueries {
  readonly #queries: Readonly<Record<keyof typeof RANGES, NamedQuery>>

  constructor(database: PostgresDatabase) {
    const make = (ranges: readonly string[]): NamedQuery => namedQuery(claimText(database.schema, ranges))
    this.#queries = {
      everybody: make(RANGES.everybody),
      exceptLater: make(RANGES.exceptLater),
      exceptEarlier: make(RANGES.exceptEarlier),
    }
  }

  /** The query for this claim, and its values. */
  of(leaseMs: number, after: string, fences: readonly number[], except: string | undefined): [NamedQuery, unknown[]] {
    if (except === undefined) return [this.#queries.everybody, [leaseMs, after, fences]]
    // By bytes, as the collation "C" of the column compares them.
    const isLater = Buffer.compare(Buffer.from(except), Buffer.from(after)) > 0
    return [this.#queries[isLater ? 'exceptLater' : 'exceptEarlier'], [leaseMs, after, fences, except]]
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
      SELECT id, lease_until FROM ${schema}.tasks
      WHERE ready_at <= ${NOW} AND ${ALIVE} AND ${range} ${before.join(' ')}
        AND (lease_until IS NULL OR fence <> ALL($3::bigint[]))
      ORDER BY owner, ready_at LIMIT 1 FOR UPDATE SKIP LOCKED
    )`
  })
  return `
    WITH ${found.join(', ')}, found AS (
      ${ranges.map((_, i) => `SELECT * FROM found_${i}`).join(' UNION ALL ')}
    ), claimed AS (
      UPDATE ${schema}.tasks t SET fence = nextval('${schema}.fences'), lease_until = ${NOW} + $1::bigint
      FROM found WHERE t.id = found.id
      RETURNING t.*, found.lease_until IS NOT NULL AS lost
    )
    SELECT ${RECORD_COLUMNS}, fence, lost, journal, entries.text AS entries,
      journal_to - journal_from = entries.count AS whole
    FROM claimed CROSS JOIN LATERAL (
      SELECT count(*) AS count, string_agg(NULLIF(e.text, ''), ',' ORDER BY e.number) AS text
      FROM ${schema}.journal_entries e WHERE e.task = claimed.id AND e.number > claimed.journal_from
    ) entries`
}
