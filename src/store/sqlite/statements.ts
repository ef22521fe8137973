// The statements on the tables of tasks. Every statement finds its rows by an index, and none reads more rows than it needs.
import { RECORD_COLUMNS } from '../task-row.ts'
import type { TaskStatus } from '../tasks.ts'

const RECORD = `${RECORD_COLUMNS} FROM rally_task JOIN rally_task_text ON task = seq`
const ALIVE = '(expires_at IS NULL OR expires_at > ?)'
const LEASED = `id = ? AND fence = ? AND lease_until IS NOT NULL AND ${ALIVE}`

export const SQL = {
  create: `INSERT INTO rally_task (id, owner, status, message, poll_ms, ttl_ms, created_at, updated_at, expires_at, version, fence,
      due_at, change_number, lease_until, is_due, claimed_by, group_name, group_limit, wanted_at)
    VALUES (?, ?, 'working', ?, ?, ?, ?, ?, ?, 1, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING RETURNING seq`,
  createText: 'INSERT INTO rally_task_text VALUES (?, ?, ?, NULL)',
  read: `SELECT ${RECORD} WHERE id = ? AND ${ALIVE}`,
  versions: `SELECT id, version FROM rally_task WHERE id IN (SELECT value FROM json_each(?)) AND ${ALIVE}`,
  list: `SELECT ${RECORD} WHERE owner = ? AND (created_at, id) > (?, ?) AND ${ALIVE} ORDER BY created_at, id LIMIT ?`,

  /** `octet_length` reads the header of a row, not its long texts. */
  usage: `SELECT count(*) FILTER (WHERE status IN ('working', 'input_required') AND ${ALIVE}) AS open,
      coalesce(sum(octet_length(request) + octet_length(state) + coalesce(octet_length(outcome), 0) + coalesce(
        (SELECT sum(octet_length(text)) FROM rally_task_entry WHERE rally_task_entry.task = seq), 0)), 0) AS bytes
    FROM rally_task JOIN rally_task_text ON rally_task_text.task = seq WHERE owner = ?`,

  /** Marks tasks whose time has come, those that have waited longest first. */
  markDue: `UPDATE rally_task SET is_due = 1 WHERE seq IN (
    SELECT seq FROM rally_task WHERE is_due = 0 AND ready_at IS NOT NULL AND ready_at <= ? ORDER BY ready_at LIMIT ?)`,
  dueAfter: `SELECT seq, owner, fence, lease_until, expires_at, claimed_by FROM rally_task
    WHERE is_due = 1 AND owner > ? ORDER BY owner, ready_at LIMIT 1`,
  dueFrom: `SELECT seq, owner, fence, lease_until, expires_at, claimed_by FROM rally_task
    WHERE is_due = 1 AND owner >= ? ORDER BY owner, ready_at LIMIT 1`,

  /** The next group, in the order of their names, of which a task waits. */
  nextWaiting: `SELECT group_name, wanted_at FROM rally_task
    WHERE wanted_at IS NOT NULL AND group_name > ? ORDER BY group_name, wanted_at LIMIT 1`,
  /** The tasks of a group that have waited longest. */
  wanted: `SELECT seq, group_limit FROM rally_task
    WHERE group_name = ? AND wanted_at <= ? AND lease_until IS NULL AND ${ALIVE} ORDER BY wanted_at, seq LIMIT ?`,
  /** How many tasks of a group have a place. */
  places: `SELECT count(*) AS number FROM rally_task WHERE group_name = ? AND ready_at IS NOT NULL AND ${ALIVE}`,
  admit: 'UPDATE rally_task SET due_at = wanted_at, wanted_at = NULL, is_due = 1, change_number = ? WHERE seq = ?',

  nextFence: 'UPDATE rally_count SET claims = claims + 1 RETURNING claims AS fence',
  claim: 'UPDATE rally_task SET fence = ?, lease_until = ?, is_due = 0, claimed_by = ? WHERE seq = ?',
  readClaimed: `SELECT ${RECORD} WHERE seq = ?`,
  entries: 'SELECT text FROM rally_task_entry WHERE task = ? ORDER BY number',

  renew: `UPDATE rally_task SET lease_until = ?, is_due = 0 WHERE ${LEASED} RETURNING version`,
  extend: 'UPDATE rally_task SET lease_until = ?, is_due = 0 WHERE seq = ?',
  leased: `SELECT seq FROM rally_task WHERE ${LEASED}`,
  addEntries: `INSERT INTO rally_task_entry
    VALUES (?1, (SELECT coalesce(max(number), 0) + 1 FROM rally_task_entry WHERE task = ?1), ?2)`,
  append: `INSERT INTO rally_task_entry
    SELECT seq, (SELECT coalesce(max(number), 0) + 1 FROM rally_task_entry WHERE task = seq), ? FROM rally_task WHERE ${LEASED}`,

  current: `SELECT seq, status, message, version, fence, lease_until, claimed_by, due_at, group_name, wanted_at FROM rally_task
    WHERE id = ? AND ${ALIVE}`,
  change: `UPDATE rally_task SET status = ?, message = ?, updated_at = ?, version = version + 1, fence = ?, lease_until = ?,
    claimed_by = ?, due_at = ?, is_due = ?, expires_at = max(expires_at, ?), change_number = ?, group_name = ?, wanted_at = ?
    WHERE seq = ?`,
  changeText: 'UPDATE rally_task_text SET state = coalesce(?, state), outcome = coalesce(?, outcome) WHERE task = ?',
  nextChange: 'UPDATE rally_count SET changes = changes + 1 RETURNING changes AS number',
  /** For a change that also claims the task. */
  nextBoth:
    'UPDATE rally_count SET changes = changes + 1, claims = claims + 1 RETURNING changes AS number, claims AS fence',

  expired: 'SELECT seq FROM rally_task WHERE expires_at <= ? ORDER BY expires_at LIMIT ?',
  expiredOfId: 'SELECT seq FROM rally_task WHERE id = ? AND expires_at <= ?',
  drop: 'DELETE FROM rally_task WHERE seq = ?',
  dropText: 'DELETE FROM rally_task_text WHERE task = ?',
  dropEntries: 'DELETE FROM rally_task_entry WHERE task = ?',
  endedOfId: `SELECT seq FROM rally_task WHERE id = ? AND status NOT IN ('working', 'input_required')`,

  lastChange: 'SELECT changes AS number FROM rally_count',
  changedSince:
    'SELECT id, version, is_due, change_number FROM rally_task WHERE change_number > ? ORDER BY change_number LIMIT 1000',
} as const

export interface DueRow {
  readonly seq: number
  readonly owner: string
  readonly fence: number
  readonly lease_until: number | null
  readonly expires_at: number | null
  readonly claimed_by: string | null
}

export interface WaitingRow {
  readonly group_name: string
  readonly wanted_at: number
}

export interface CurrentRow {
  readonly seq: number
  readonly status: TaskStatus
  readonly message: string | null
  readonly version: number
  readonly fence: number
  readonly lease_until: number | null
  readonly claimed_by: string | null
  readonly due_at: number | null
  readonly group_name: string | null
  readonly wanted_at: number | null
}

export interface ChangedRow {
  readonly id: string
  readonly version: number
  readonly is_due: number
  readonly change_number: number
}
