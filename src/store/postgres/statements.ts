// The statements on the tables of tasks, except the claim.
//
// The journal of a task is the column `journal`, followed by rows of `journal_entries`. New entries go into the column while it is
// short: that is one row version instead of two rows. Instances of earlier versions put each into a row, and read both.
import { RECORD_COLUMNS } from '../task-row.ts'
import type { ElementType } from './array-value.ts'
import { ALIVE, namedQuery, NOW, type NamedQuery } from './database.ts'

/** True for a row that has not ended. */
const OPEN = `status IN ('working', 'input_required')`
/** Up to so many bytes, entries are added to the column. A row of more than 2 kB has its longest values moved out of line. */
const MAX_JOURNAL_IN_ROW = 1_500

export interface TaskStatements {
  readonly create: NamedQuery
  /** Deletes the entries of journals that have been replaced. */
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

export function taskStatements(schema: string): TaskStatements {
  const tasks = `${schema}.tasks`
  const entries = `${schema}.journal_entries`
  return {
    create: namedQuery(createText(schema)),
    dropReplaced: namedQuery(`
      DELETE FROM ${entries} e USING ${tasks} t
      WHERE t.id = ANY($1::text[]) AND e.task = t.id AND e.number <= t.journal_from`),
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
      WITH ${lockedText(tasks, 'unnest($1::text[], $2::bigint[]) AS wanted (id, fence)', 'wanted.*')}
      UPDATE ${tasks} t SET lease_until = ${NOW} + $3::bigint FROM locked
      WHERE t.id = locked.id AND t.fence = locked.fence AND t.lease_until IS NOT NULL AND ${ALIVE}
      RETURNING t.id, t.fence, t.version`),
    append: namedQuery(appendText(schema)),
    change: namedQuery(changeText(schema)),
    // The length of a long text is stored beside it, so the texts are not read.
    usage: namedQuery(`
      SELECT count(*) FILTER (WHERE ${OPEN} AND ${ALIVE}) AS open,
        coalesce(sum(octet_length(request) + octet_length(state) + octet_length(journal) + coalesce(octet_length(outcome), 0)
          + CASE WHEN journal_to > journal_from THEN (
            SELECT coalesce(sum(octet_length(e.text)), 0) FROM ${entries} e WHERE e.task = t.id AND e.number > t.journal_from
          ) ELSE 0 END), 0) AS bytes
      FROM ${tasks} t WHERE owner = $1`),
  }
}

/**
 * Locks the rows of `wanted` in their order, one after the other. LIMIT keeps it a lookup for each, whatever the planner estimates.
 * `task` has the columns `read` as the last writer left them, which may be newer than what the statement saw when it began.
 */
function lockedText(tasks: string, wanted: string, columns: string, read = 'id', condition = 'true'): string {
  return `locked AS MATERIALIZED (
      SELECT ${columns} FROM ${wanted} CROSS JOIN LATERAL (
        SELECT ${read} FROM ${tasks} WHERE id = wanted.id LIMIT 1 FOR NO KEY UPDATE
      ) task WHERE ${condition}
    )`
}

/** The columns of the rows that a statement is given, as arrays: `$1` is the first one. */
type Columns = Readonly<Record<string, ElementType>>

/** The rows, as `alias`. */
function given(columns: Columns, alias: string): string {
  const arrays = Object.values(columns).map((type, i) => `$${i + 1}::${type}[]`)
  return `unnest(${arrays.join(', ')}) AS ${alias} (${Object.keys(columns).join(', ')})`
}

const CREATE_COLUMNS = {
  id: 'text',
  owner: 'text',
  request: 'text',
  state: 'text',
  journal: 'text',
  message: 'text',
  poll_ms: 'bigint',
  ttl_ms: 'bigint',
  /** The lease with which it is claimed, or null. */
  lease_ms: 'bigint',
  claimed_by: 'text',
  group_name: 'text',
  group_limit: 'bigint',
} as const

/** Creates tasks. Replaces one that has outlived its ttl. Returns those that it created. */
function createText(schema: string): string {
  return `
    INSERT INTO ${schema}.tasks AS t (
      id, owner, request, state, journal, message, poll_ms, ttl_ms, expires_at, status, created_at, updated_at, due_at,
      version, fence, lease_until, claimed_by, group_name, group_limit, wanted_at, journal_from, journal_to
    )
    SELECT id, owner, request, state, journal, message, poll_ms, ttl_ms, ${NOW} + ttl_ms, 'working', ${NOW}, ${NOW},
      CASE WHEN group_name IS NULL THEN ${NOW} END, 1, CASE WHEN lease_ms IS NULL THEN 0 ELSE nextval('${schema}.fences') END,
      ${NOW} + lease_ms, claimed_by, group_name, group_limit, CASE WHEN group_name IS NOT NULL THEN ${NOW} END, 0, 0
    FROM ${given(CREATE_COLUMNS, 'made')}
    ON CONFLICT (id) DO UPDATE SET
      owner = excluded.owner, request = excluded.request, state = excluded.state, journal = excluded.journal,
      message = excluded.message, poll_ms = excluded.poll_ms, ttl_ms = excluded.ttl_ms, expires_at = excluded.expires_at,
      status = excluded.status, created_at = excluded.created_at, updated_at = excluded.updated_at,
      due_at = excluded.due_at, lease_until = excluded.lease_until, claimed_by = excluded.claimed_by, fence = greatest(t.fence, excluded.fence),
      group_name = excluded.group_name, group_limit = excluded.group_limit, wanted_at = excluded.wanted_at, outcome = NULL,
      version = 1, journal_from = t.journal_to
      WHERE t.expires_at <= ${NOW}
    RETURNING id, created_at, fence, group_name, journal_from > 0 AS replaced`
}

const APPEND_COLUMNS = { id: 'text', fence: 'bigint', entries: 'text' } as const

/** Appends to journals. Returns the tasks whose lease was valid. It is the most frequent statement by far, so it does no more than that. */
function appendText(schema: string): string {
  const tasks = `${schema}.tasks`
  const fits = `t.journal_to = t.journal_from AND octet_length(t.journal) + octet_length(w.entries) < ${MAX_JOURNAL_IN_ROW}`
  return `
    WITH ${lockedText(tasks, given(APPEND_COLUMNS, 'wanted'), 'wanted.*')}, written AS (
      UPDATE ${tasks} t SET
        journal = CASE WHEN ${fits} THEN concat_ws(',', NULLIF(t.journal, ''), NULLIF(w.entries, '')) ELSE t.journal END,
        journal_to = CASE WHEN ${fits} THEN t.journal_to ELSE t.journal_to + 1 END
      FROM locked w WHERE t.id = w.id AND t.fence = w.fence AND t.lease_until IS NOT NULL AND ${ALIVE} AND ${OPEN}
      RETURNING t.id, t.journal_to, t.journal_from, w.entries
    ), added AS (
      INSERT INTO ${schema}.journal_entries (task, number, text)
      SELECT id, journal_to, entries FROM written WHERE journal_to > journal_from
    )
    SELECT id FROM written`
}

const CHANGE_COLUMNS = {
  id: 'text',
  fence: 'bigint',
  version: 'bigint',
  status: 'text',
  has_message: 'boolean',
  message: 'text',
  state: 'text',
  outcome: 'text',
  /** Replaces the journal. */
  journal: 'text',
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

/** What a write is given, by its statement. */
export const WRITE_COLUMNS = { create: CREATE_COLUMNS, append: APPEND_COLUMNS, change: CHANGE_COLUMNS }

/** A task that the statement claims is returned as a whole. */
const CLAIMED_COLUMNS = [
  ...RECORD_COLUMNS.split(', ').filter((name) => name !== 'id' && name !== 'version'),
  'fence',
  'journal',
]

/** Changes tasks, and claims them. Returns those that were changed. */
function changeText(schema: string): string {
  const tasks = `${schema}.tasks`
  const wanted = `clock CROSS JOIN ${given(CHANGE_COLUMNS, 'wanted')}`
  // A due task of a group that no worker has yet keeps its turn when it is made due once more.
  const waits = `group_before IS NOT NULL AND lease_before IS NULL AND coalesce(due_before, wanted_before, now + 1) <= now`
  const setsDue = `(has_due AND (due_ms IS NULL OR NOT (${waits})))`
  const due = `CASE WHEN ${setsDue} THEN CASE WHEN group_before IS NULL THEN now + due_ms END ELSE due_before END`
  const columns = `wanted.*, now, group_before, ${setsDue} AS sets_due, ${due} AS due_at,
        lease_ms IS NOT NULL AND group_before IS NULL AND (lease_before IS NULL OR releases) AND ${due} <= now AS claims`
  const read = `fence AS fence_before, version AS version_before, lease_until AS lease_before, due_at AS due_before,
          wanted_at AS wanted_before, group_name AS group_before, status AS status_before, expires_at`
  const condition = `(expires_at IS NULL OR expires_at > now) AND status_before IN ('working', 'input_required')
        AND (fence IS NULL OR fence = fence_before AND lease_before IS NOT NULL) AND (version IS NULL OR version = version_before)`
  return `
    WITH clock AS MATERIALIZED (SELECT ${NOW} AS now), ${lockedText(tasks, wanted, columns, read, condition)}
    UPDATE ${tasks} t SET
      status = coalesce(w.status, t.status),
      message = CASE WHEN w.has_message THEN w.message ELSE t.message END,
      state = coalesce(w.state, t.state),
      outcome = coalesce(w.outcome, t.outcome),
      journal = coalesce(w.journal, t.journal),
      journal_from = CASE WHEN w.journal IS NULL THEN t.journal_from ELSE t.journal_to END,
      due_at = w.due_at,
      wanted_at = CASE WHEN w.sets_due THEN CASE WHEN w.group_before IS NOT NULL THEN w.now + w.due_ms END ELSE t.wanted_at END,
      group_name = CASE WHEN w.status IN ('completed', 'failed', 'cancelled') THEN NULL ELSE t.group_name END,
      fence = CASE WHEN w.claims THEN nextval('${schema}.fences') ELSE t.fence END,
      lease_until = CASE WHEN w.claims THEN w.now + w.lease_ms WHEN w.releases THEN NULL ELSE t.lease_until END,
      claimed_by = CASE WHEN w.claims THEN w.worker ELSE t.claimed_by END,
      expires_at = CASE WHEN t.expires_at IS NOT NULL THEN greatest(t.expires_at, w.now + w.keep_ms) END,
      updated_at = greatest(t.updated_at, w.now),
      version = t.version + 1
    FROM locked w WHERE t.id = w.id
    RETURNING t.id, t.version, w.group_before AS group_name, w.claims, coalesce(t.ready_at <= w.now, false) AS is_due,
      w.journal IS NOT NULL AND t.journal_from > 0 AS replaced, t.journal_to = t.journal_from AS whole,
      ${CLAIMED_COLUMNS.map((name) => `CASE WHEN w.claims THEN t.${name} END AS ${name}`).join(', ')}`
}
