// The statements on the tables of tasks, except the claim.
//
// The journal of a task is the column `journal`, followed by rows of `journal_entries`. New entries go into the column while it is
// short: that is one row version instead of two rows. Instances of earlier versions put each into a row, and read both.
import { RECORD_COLUMNS } from '../task-row.ts'
import { restText, WHOLE } from './claim.ts'
import { ALIVE, namedQuery, NOW, type NamedQuery } from './database.ts'

/** Up to so many bytes, entries are added to the column. A row of more than 2 kB has its longest values moved out of line. */
const MAX_JOURNAL_IN_ROW = 1_500

export interface TaskStatements {
  readonly create: NamedQuery
  /** Deletes the entries of a journal that has been replaced. */
  readonly dropReplaced: NamedQuery
  readonly read: NamedQuery
  readonly versions: NamedQuery
  readonly list: NamedQuery
  readonly journal: NamedQuery
  readonly renew: NamedQuery
  readonly write: NamedQuery
  readonly usage: NamedQuery
}

export function taskStatements(schema: string): TaskStatements {
  const tasks = `${schema}.tasks`
  const entries = `${schema}.journal_entries`
  return {
    create: namedQuery(createText(schema)),
    dropReplaced: namedQuery(`
      DELETE FROM ${entries} e USING ${tasks} t WHERE t.id = $1 AND e.task = t.id AND e.number <= t.journal_from`),
    read: namedQuery(`SELECT ${RECORD_COLUMNS} FROM ${tasks} WHERE id = ANY($1::text[]) AND ${ALIVE}`),
    versions: namedQuery(`SELECT id, version FROM ${tasks} WHERE id = ANY($1::text[]) AND ${ALIVE}`),
    list: namedQuery(`
      SELECT ${RECORD_COLUMNS} FROM ${tasks} WHERE owner = $1 AND (created_at, id) > ($2::bigint, $3) AND ${ALIVE}
      ORDER BY created_at, id LIMIT $4`),
    journal: namedQuery(`
      SELECT t.journal, (
        SELECT string_agg(NULLIF(e.text, ''), ',' ORDER BY e.number) FROM ${entries} e
        WHERE e.task = t.id AND e.number > t.journal_from
      ) AS entries
      FROM ${tasks} t WHERE t.id = $1 AND t.fence = $2 AND t.lease_until IS NOT NULL`),
    renew: namedQuery(`
      WITH ${lockedText(tasks, 'unnest($1::text[], $2::bigint[]) AS lease (id, fence)')}
      UPDATE ${tasks} t SET lease_until = ${NOW} + $3::bigint FROM locked
      WHERE t.id = locked.id AND t.fence = locked.fence AND t.lease_until IS NOT NULL AND ${ALIVE}
      RETURNING t.id, t.fence, t.version`),
    write: namedQuery(writeText(schema)),
    // The length of a long text is stored beside it, so the texts are not read.
    usage: namedQuery(`
      SELECT count(*) FILTER (WHERE status IN ('working', 'input_required') AND ${ALIVE}) AS open,
        coalesce(sum(octet_length(request) + octet_length(state) + octet_length(journal) + coalesce(octet_length(outcome), 0)
          + coalesce((
            SELECT sum(octet_length(e.text)) FROM ${entries} e WHERE e.task = t.id AND e.number > t.journal_from
          ), 0)), 0) AS bytes
      FROM ${tasks} t WHERE owner = $1`),
  }
}

/** Locks the rows of `items` in their order, one after the other. LIMIT keeps it a lookup for each, whatever the planner estimates. */
function lockedText(tasks: string, items: string): string {
  return `locked AS MATERIALIZED (
      SELECT lease.*, fence_before, group_before FROM ${items} CROSS JOIN LATERAL (
        SELECT fence AS fence_before, group_name AS group_before FROM ${tasks} WHERE id = lease.id LIMIT 1 FOR NO KEY UPDATE
      ) row_lock
    )`
}

/**
 * One task per element of the arrays. Replaces a task that has outlived its ttl. Returns those that it created. $9 is the lease with
 * which it claims them, or null, $10 who claims them, and $11 and $12 the group and its limit, or null.
 */
function createText(schema: string): string {
  return `
    INSERT INTO ${schema}.tasks AS t (
      id, owner, request, state, journal, message, poll_ms, ttl_ms, expires_at, status, created_at, updated_at, due_at,
      version, fence, lease_until, claimed_by, group_name, group_limit, wanted_at, journal_from, journal_to
    )
    SELECT id, owner, request, state, journal, message, poll_ms, ttl_ms, ${NOW} + ttl_ms, 'working', ${NOW}, ${NOW},
      CASE WHEN group_name IS NULL THEN ${NOW} END, 1, CASE WHEN lease_ms IS NULL THEN 0 ELSE nextval('${schema}.fences') END,
      ${NOW} + lease_ms, claimed_by, group_name, group_limit, CASE WHEN group_name IS NOT NULL THEN ${NOW} END, 0, 0
    FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[], $7::bigint[], $8::bigint[], $9::bigint[],
      $10::text[], $11::text[], $12::bigint[]) AS made (id, owner, request, state, journal, message, poll_ms, ttl_ms, lease_ms,
      claimed_by, group_name, group_limit)
    ON CONFLICT (id) DO UPDATE SET
      owner = excluded.owner, request = excluded.request, state = excluded.state, journal = excluded.journal,
      message = excluded.message, poll_ms = excluded.poll_ms, ttl_ms = excluded.ttl_ms, expires_at = excluded.expires_at,
      status = excluded.status, created_at = excluded.created_at, updated_at = excluded.updated_at,
      due_at = excluded.due_at, lease_until = excluded.lease_until, claimed_by = excluded.claimed_by, fence = greatest(t.fence, excluded.fence),
      group_name = excluded.group_name, group_limit = excluded.group_limit, wanted_at = excluded.wanted_at, outcome = NULL,
      version = 1, journal_from = t.journal_to
      WHERE t.expires_at <= ${NOW}
    RETURNING id, created_at, fence, journal_from > 0 AS replaced`
}

/** The columns of the arrays that `write` takes, in order. */
export const WRITE_COLUMNS = {
  id: 'text',
  fence: 'bigint',
  version: 'bigint',
  /** False for an append, which is not a change. */
  is_change: 'boolean',
  status: 'text',
  has_message: 'boolean',
  message: 'text',
  state: 'text',
  outcome: 'text',
  /** Replaces the journal. */
  journal: 'text',
  /** Is added to the journal. */
  entries: 'text',
  has_due: 'boolean',
  due_ms: 'bigint',
  releases: 'boolean',
  /** The lease with which the task is claimed, if it is due and nobody has one. */
  lease_ms: 'bigint',
  /** Who claims it then. */
  worker: 'text',
  /** How long the task is kept at least, if this ends it. */
  keep_ms: 'bigint',
} as const

/** A task that the statement claims is returned as a whole. */
const CLAIMED_COLUMNS = [
  ...RECORD_COLUMNS.split(', ').filter((name) => name !== 'id' && name !== 'version'),
  'fence',
  'journal',
]

/** Changes and appends, one task per element of the arrays. Returns those that were written. */
function writeText(schema: string): string {
  const tasks = `${schema}.tasks`
  const entries = `${schema}.journal_entries`
  const arrays = Object.values(WRITE_COLUMNS).map((type, i) => `$${i + 1}::${type}[]`)
  const items = `unnest(${arrays.join(', ')}) AS lease (${Object.keys(WRITE_COLUMNS).join(', ')})`
  const fits = `t.journal_to = t.journal_from AND octet_length(t.journal) + octet_length(w.entries) < ${MAX_JOURNAL_IN_ROW}`
  const due = `CASE WHEN w.has_due THEN CASE WHEN t.group_name IS NULL THEN ${NOW} + w.due_ms END ELSE t.due_at END`
  const isClaimed = `w.lease_ms IS NOT NULL AND (t.lease_until IS NULL OR w.releases) AND ${due} <= ${NOW}`
  return `
    WITH ${lockedText(tasks, items)}, written AS (
      UPDATE ${tasks} t SET
        status = coalesce(w.status, t.status),
        message = CASE WHEN w.has_message THEN w.message ELSE t.message END,
        state = coalesce(w.state, t.state),
        outcome = coalesce(w.outcome, t.outcome),
        journal = CASE
          WHEN w.journal IS NOT NULL THEN w.journal
          WHEN w.entries <> '' AND ${fits} THEN concat_ws(',', NULLIF(t.journal, ''), w.entries)
          ELSE t.journal END,
        journal_from = CASE WHEN w.journal IS NULL THEN t.journal_from ELSE t.journal_to END,
        journal_to = CASE WHEN w.entries <> '' AND NOT (${fits}) THEN t.journal_to + 1 ELSE t.journal_to END,
        due_at = ${due},
        wanted_at = CASE WHEN w.has_due THEN CASE WHEN t.group_name IS NOT NULL THEN ${NOW} + w.due_ms END ELSE t.wanted_at END,
        group_name = CASE WHEN w.status IN ('completed', 'failed', 'cancelled') THEN NULL ELSE t.group_name END,
        fence = CASE WHEN ${isClaimed} THEN nextval('${schema}.fences') ELSE t.fence END,
        lease_until = CASE WHEN ${isClaimed} THEN ${NOW} + w.lease_ms WHEN w.releases THEN NULL ELSE t.lease_until END,
        claimed_by = CASE WHEN ${isClaimed} THEN w.worker ELSE t.claimed_by END,
        expires_at = CASE WHEN t.expires_at IS NOT NULL THEN greatest(t.expires_at, ${NOW} + w.keep_ms) END,
        updated_at = CASE WHEN w.is_change THEN greatest(t.updated_at, ${NOW}) ELSE t.updated_at END,
        version = t.version + w.is_change::int
      FROM locked w
      WHERE t.id = w.id AND ${ALIVE} AND t.status IN ('working', 'input_required')
        AND (w.fence IS NULL OR t.fence = w.fence AND t.lease_until IS NOT NULL) AND (w.version IS NULL OR t.version = w.version)
      RETURNING t.*, w.journal IS NOT NULL AS replaced, w.entries, t.fence <> w.fence_before AS is_claimed, w.group_before
    ), added AS (
      INSERT INTO ${entries} (task, number, text)
      SELECT id, journal_to, entries FROM written WHERE entries <> '' AND journal_to > journal_from
    ), dropped AS (
      DELETE FROM ${entries} e USING written w
      WHERE w.replaced AND w.journal_from > 0 AND e.task = w.id AND e.number <= w.journal_from
    )
    SELECT id, version, coalesce(ready_at <= ${NOW}, false) AS is_due, is_claimed, group_before,
      ${CLAIMED_COLUMNS.map((name) => `CASE WHEN is_claimed THEN ${name} END AS ${name}`).join(', ')},
      rest.text AS entries, ${WHOLE} AS whole
    FROM written CROSS JOIN ${restText(schema, 'written', 'is_claimed')}`
}
