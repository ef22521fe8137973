// The statement that takes up the next task in turn.
//
// Owners are gone through in ranges of their names, each in the order of the index of tasks that have a time to fall due: an owner
// that is left out, and tasks that nobody has to take up, are not looked at, however many there are. What another is just taking up
// is skipped.
import { NOW, statement, type Database, type Statement } from './database.ts'
import { ALIVE, RECORD } from './record.ts'

/** $1 is the lease, $2 the owner after whom to begin, $3 the one of whom to take nothing. */
const RANGES = {
  everybody: ['owner > $2', 'owner <= $2'],
  exceptLater: ['owner > $2 AND owner < $3', 'owner > $3', 'owner <= $2'],
  exceptEarlier: ['owner > $2', 'owner < $3', 'owner > $3 AND owner <= $2'],
} as const

export class Claiming {
  readonly #statements: Readonly<Record<keyof typeof RANGES, Statement>>

  constructor(database: Database) {
    const make = (ranges: readonly string[]): Statement => statement(claimText(database.schema, ranges))
    this.#statements = {
      everybody: make(RANGES.everybody),
      exceptLater: make(RANGES.exceptLater),
      exceptEarlier: make(RANGES.exceptEarlier),
    }
  }

  /** The statement of this turn, and its values. */
  of(leaseMs: number, after: string, except: string | undefined): [Statement, unknown[]] {
    if (except === undefined) return [this.#statements.everybody, [leaseMs, after]]
    // As the database compares them.
    const isLater = Buffer.compare(Buffer.from(except), Buffer.from(after)) > 0
    return [this.#statements[isLater ? 'exceptLater' : 'exceptEarlier'], [leaseMs, after, except]]
  }
}

/**
 * The journal is read as it was when the statement began. An entry that came between that and the lock shows as a
 * difference between how many there are and how many there should be.
 */
function claimText(schema: string, ranges: readonly string[]): string {
  const found = ranges.map((range, i) => {
    const before = ranges.slice(0, i).map((_, j) => `AND NOT EXISTS (SELECT 1 FROM found_${j})`)
    return `found_${i} AS MATERIALIZED (
      SELECT id, lease_until FROM ${schema}.tasks
      WHERE ready_at <= ${NOW} AND ${ALIVE} AND ${range} ${before.join(' ')}
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
    SELECT ${RECORD}, fence, lost, journal, entries.text AS entries, journal_to - journal_from = entries.count AS whole
    FROM claimed CROSS JOIN LATERAL (
      SELECT count(*) AS count, string_agg(NULLIF(e.text, ''), ',' ORDER BY e.number) AS text
      FROM ${schema}.journal_entries e WHERE e.task = claimed.id AND e.number > claimed.journal_from
    ) entries`
}
