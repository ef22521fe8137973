// The statement that claims tasks, one or several at once. It skips rows that another worker is claiming.
//
// 1. Owners take turns, however many tasks of an owner are due.
// 2. It reads no task that is not due, however many are parked or asleep, as long as FEW are due: it goes by the index of the times.
// 3. If more are due, it goes through the owners by the index of owners and times. Then it does not read all tasks that are due, and
//    none of an owner that is excluded, but it passes those that are asleep.
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

/** False if entries were added after the statement began: it does not see these. */
const WHOLE = 'journal_to - journal_from = rest.count'

/** Up to so many due tasks, a claim looks at all of them. */
const FEW = 256
/** So many owners get a turn at least: another worker may be claiming all tasks of the first one. */
const LEAST_OWNERS = 4

export class ClaimQueries {
  readonly #all: NamedQuery
  readonly #except: NamedQuery

  constructor({ schema }: PostgresDatabase) {
    this.#all = namedQuery(claimText(schema, '', ['']))
    this.#except = namedQuery(claimText(schema, 'AND owner <> $6', ['AND owner < $6', 'AND owner > $6']))
  }

  /** The query for a claim of up to `limit` tasks, and its values. */
  upTo(limit: number, { leaseMs, after, fences, except, worker }: ClaimValues): [NamedQuery, unknown[]] {
    const values = [leaseMs, after, fences, worker, limit]
    return except === undefined ? [this.#all, values] : [this.#except, [...values, except]]
  }
}

/**
 * $1 is the lease, $2 the owner to start after, $3 the fences of leases to exclude, $4 who claims, $5 the limit, $6 the owner to
 * exclude. `soonest` are the tasks that have been due longest, also those that cannot be claimed. If these are all, `few` takes them,
 * an owner's first one before any owner's second one. If they are not, `turn` lists the owners that have due tasks, in their turn, with
 * one index lookup for each; `fair` takes an equal number of tasks of each; and `others` fills what is left because some owners have
 * fewer.
 *
 * The statement sees the journal as it was when the statement began. If an entry was added between that and the lock, the number of
 * entries differs from the number there should be: `whole` is then false.
 */
function claimText(schema: string, exception: string, ranges: readonly string[]): string {
  const tasks = `${schema}.tasks`
  const isFree = `${ALIVE} AND (lease_until IS NULL OR fence <> ALL($3::bigint[]))`
  const due = `ready_at <= ${NOW} AND ${isFree}`
  const isFew = `(SELECT count(*) FROM soonest) < ${FEW}`
  const next = (lap: number, range: string): string[] =>
    ranges.map(
      (part) => `(
        SELECT ${lap} AS lap, owner FROM ${tasks} WHERE ${due} AND ${range} ${part} ORDER BY owner, ready_at LIMIT 1
      )`,
    )
  const nexts = [
    ...next(0, 'turn.lap = 0 AND owner > turn.owner'),
    ...next(1, 'turn.lap = 0 AND owner <= $2'),
    ...next(1, 'turn.lap = 1 AND owner > turn.owner AND owner <= $2'),
  ]
  return `
    WITH RECURSIVE soonest AS MATERIALIZED (
      SELECT id, owner, ready_at, ${isFree} AS is_free FROM ${tasks} WHERE ready_at <= ${NOW} ORDER BY ready_at LIMIT ${FEW}
    ), few AS MATERIALIZED (
      SELECT task.*, wanted.lap, wanted.number FROM (
        SELECT id, row_number() OVER (PARTITION BY owner ORDER BY ready_at) AS lap,
          dense_rank() OVER (ORDER BY owner <= $2, owner) AS number
        FROM soonest WHERE is_free AND ${isFew} ${exception} ORDER BY lap, number
      ) wanted CROSS JOIN LATERAL (
        SELECT id, lease_until, claimed_by FROM ${tasks} WHERE id = wanted.id AND ${due} LIMIT 1 FOR UPDATE SKIP LOCKED
      ) task LIMIT $5::int
    ), turn (number, lap, owner) AS (
      SELECT 0, 0, $2::text COLLATE "C" WHERE NOT ${isFew}
      UNION ALL
      SELECT turn.number + 1, next.lap, next.owner
      FROM turn CROSS JOIN LATERAL (${nexts.join(' UNION ALL ')} LIMIT 1) next
      WHERE turn.number < greatest($5::int, ${LEAST_OWNERS})
    ), owners AS MATERIALIZED (
      SELECT number, owner FROM turn WHERE number > 0
    ), fair AS MATERIALIZED (
      SELECT task.*, owners.number, row_number() OVER (PARTITION BY owners.number ORDER BY task.ready_at) AS lap
      FROM owners CROSS JOIN LATERAL (
        SELECT id, lease_until, claimed_by, ready_at FROM ${tasks} WHERE owner = owners.owner AND ${due} ORDER BY ready_at
        LIMIT (SELECT greatest(1, $5::int / greatest(1, count(*))) FROM owners) FOR UPDATE SKIP LOCKED
      ) task
    ), others AS MATERIALIZED (
      SELECT task.*, owners.number FROM owners CROSS JOIN LATERAL (
        SELECT id, lease_until, claimed_by FROM ${tasks}
        WHERE owner = owners.owner AND ${due} AND id <> ALL(ARRAY(SELECT id FROM fair)) ORDER BY ready_at
        LIMIT $5::int FOR UPDATE SKIP LOCKED
      ) task LIMIT (SELECT greatest(0, $5::int - count(*)) FROM fair)
    ), found AS (
      SELECT id, lease_until, claimed_by, lap, number FROM few
      UNION ALL SELECT id, lease_until, claimed_by, lap, number FROM fair
      UNION ALL SELECT id, lease_until, claimed_by, NULL, number FROM others
      ORDER BY lap, number LIMIT $5::int
    ), claimed AS (
      UPDATE ${tasks} t SET fence = nextval('${schema}.fences'), lease_until = ${NOW} + $1::bigint, claimed_by = $4
      FROM found WHERE t.id = found.id
      RETURNING t.*, found.lease_until IS NOT NULL AS lost, found.claimed_by AS claimed_before, found.lap, found.number
    )
    SELECT ${RECORD_COLUMNS}, fence, lost, CASE WHEN lost THEN claimed_before END AS lost_worker, journal, rest.text AS entries,
      ${WHOLE} AS whole
    FROM claimed CROSS JOIN ${restText(schema, 'claimed', 'true')}
    ORDER BY lap, number`
}

/** Selects `rest.text` and `rest.count` of the entries that are not in the row, for rows of `tasks` that meet the condition. */
function restText(schema: string, tasks: string, condition: string): string {
  return `LATERAL (
      SELECT count(*) AS count, string_agg(NULLIF(e.text, ''), ',' ORDER BY e.number) AS text
      FROM ${schema}.journal_entries e
      WHERE ${condition} AND journal_to > journal_from AND e.task = ${tasks}.id AND e.number > journal_from
    ) rest`
}
