// The statements on the tables of tasks, except the claim.
import { RECORD_COLUMNS } from '../task-row.ts'
import { namedQuery, NOW, type NamedQuery } from './database.ts'
import { signals } from './listener.ts'

/** True for a task that has not outlived its ttl. */
export const ALIVE = `(expires_at IS NULL OR expires_at > ${NOW})`

export interface TaskStatements {
  readonly create: NamedQuery
  /** Deletes the entries of a journal that has been replaced. */
  readonly dropReplaced: NamedQuery
  readonly read: NamedQuery
  readonly versions: NamedQuery
  readonly list: NamedQuery
  readonly journal: NamedQuery
  readonly renew: NamedQuery
  readonly append: NamedQuery
  readonly change: NamedQuery
  readonly usage: NamedQuery
}

export function taskStatements(schema: string, channel: string): TaskStatements {
  const tasks = `${schema}.tasks`
  const entries = `${schema}.journal_entries`
  return {
    create: namedQuery(createText(tasks, channel)),
    dropReplaced: namedQuery(`
      DELETE FROM ${entries} e USING ${tasks} t WHERE t.id = $1 AND e.task = t.id AND e.number <= t.journal_from`),
    read: namedQuery(`SELECT ${RECORD_COLUMNS} FROM ${tasks} WHERE id = $1 AND ${ALIVE}`),
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
      UPDATE ${tasks} t SET lease_until = ${NOW} + $3::bigint
      FROM unnest($1::text[], $2::bigint[]) AS lease (id, fence)
      WHERE t.id = lease.id AND t.fence = lease.fence AND t.lease_until IS NOT NULL AND ${ALIVE}
      RETURNING t.id, t.fence, t.version`),
    append: namedQuery(`
      WITH leased AS (
        UPDATE ${tasks} SET journal_to = journal_to + 1
        WHERE id = $1 AND fence = $2 AND lease_until IS NOT NULL AND ${ALIVE}
        RETURNING id, journal_to
      )
      INSERT INTO ${entries} (task, number, text) SELECT id, journal_to, $3 FROM leased RETURNING number`),
    change: namedQuery(changeText(tasks, entries, channel)),
    // The length of a long text is stored beside it, so the texts are not read.
    usage: namedQuery(`
      SELECT count(*) FILTER (WHERE status IN ('working', 'input_required')) AS open,
        coalesce(sum(octet_length(request) + octet_length(state) + octet_length(journal) + coalesce(octet_length(outcome), 0)
          + coalesce((
            SELECT sum(octet_length(e.text)) FROM ${entries} e WHERE e.task = t.id AND e.number > t.journal_from
          ), 0)), 0) AS bytes
      FROM ${tasks} t WHERE owner = $1 AND ${ALIVE}`),
  }
}

/** Replaces a task that has outlived its ttl. Returns a task that is alive as it is. */
function createText(tasks: string, channel: string): string {
  return `
    WITH made AS (
      INSERT INTO ${tasks} AS t (
        id, owner, request, state, journal, message, poll_ms, ttl_ms, expires_at, status, created_at, updated_at, due_at,
        version, fence, journal_from, journal_to
      ) VALUES (
        $1, $2, $3, $4, $5, $6, $7, $8::bigint, ${NOW} + $8::bigint, 'working', ${NOW}, ${NOW}, ${NOW}, 1, 0, 0, 0
      )
      ON CONFLICT (id) DO UPDATE SET
        owner = excluded.owner, request = excluded.request, state = excluded.state, journal = excluded.journal,
        message = excluded.message, poll_ms = excluded.poll_ms, ttl_ms = excluded.ttl_ms, expires_at = excluded.expires_at,
        status = excluded.status, created_at = excluded.created_at, updated_at = excluded.updated_at,
        due_at = excluded.due_at, lease_until = NULL, outcome = NULL, version = 1, journal_from = t.journal_to
        WHERE t.expires_at <= ${NOW}
      RETURNING t.*
    )
    SELECT ${RECORD_COLUMNS}, journal_from > 0 AS replaced, pg_notify('${channel}', '${signals.due}') FROM made
    UNION ALL
    SELECT ${RECORD_COLUMNS}, false, NULL FROM ${tasks} WHERE id = $1 AND ${ALIVE} AND NOT EXISTS (SELECT 1 FROM made)`
}

/**
 * $1 id; $2 fence and $3 version of the precondition; $4 status; $5 whether the message changes, $6 the message; $7 state; $8 outcome;
 * $9 journal; $10 whether the due time changes, $11 the due time; $12 whether the lease is released.
 */
function changeText(tasks: string, entries: string, channel: string): string {
  return `
    WITH changed AS (
      UPDATE ${tasks} SET
        status = coalesce($4, status),
        message = CASE WHEN $5::boolean THEN $6 ELSE message END,
        state = coalesce($7, state),
        outcome = coalesce($8, outcome),
        journal = coalesce($9, journal),
        journal_from = CASE WHEN $9 IS NULL THEN journal_from ELSE journal_to END,
        due_at = CASE WHEN $10::boolean THEN ${NOW} + $11::bigint ELSE due_at END,
        lease_until = CASE WHEN $12::boolean THEN NULL ELSE lease_until END,
        updated_at = greatest(updated_at, ${NOW}),
        version = version + 1
      WHERE id = $1 AND ${ALIVE} AND status IN ('working', 'input_required')
        AND ($2::bigint IS NULL OR fence = $2 AND lease_until IS NOT NULL) AND ($3::bigint IS NULL OR version = $3)
      RETURNING id, version, ready_at, journal_from
    ), dropped AS (
      DELETE FROM ${entries} e USING changed c WHERE $9 IS NOT NULL AND e.task = c.id AND e.number <= c.journal_from
    )
    SELECT version, pg_notify(
      '${channel}',
      CASE WHEN ready_at <= ${NOW} THEN '${signals.changedAndDue}' ELSE '${signals.changed}' END || version || ' ' || id
    ) FROM changed`
}
