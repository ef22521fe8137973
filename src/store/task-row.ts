// A task as a row of a database. SQLite and PostgreSQL name its columns alike.
import type { TaskRecord, TaskStatus } from './tasks.ts'

/** The columns of a record. */
export const RECORD_COLUMNS =
  'id, owner, request, state, status, message, poll_ms, ttl_ms, created_at, updated_at, outcome, version'

/** Most PostgreSQL drivers return a bigint as a string. */
type NumberColumn = number | string

export interface TaskRow {
  readonly id: string
  readonly owner: string
  readonly request: string
  readonly state: string
  readonly status: TaskStatus
  readonly message: string | null
  readonly poll_ms: NumberColumn
  readonly ttl_ms: NumberColumn | null
  readonly created_at: NumberColumn
  readonly updated_at: NumberColumn
  readonly outcome: string | null
  readonly version: NumberColumn
}

/** How a database's strings are read: names and messages, and texts that are JSON. */
export interface RowDecoder {
  readonly name: (stored: string) => string
  readonly json: (stored: string) => string
}

export function toRecord(row: TaskRow, { name, json }: RowDecoder): TaskRecord {
  return {
    id: name(row.id),
    owner: name(row.owner),
    request: json(row.request),
    state: json(row.state),
    status: row.status,
    message: row.message === null ? undefined : name(row.message),
    pollMs: Number(row.poll_ms),
    ttlMs: row.ttl_ms === null ? null : Number(row.ttl_ms),
    createdAt: Number(row.created_at),
    updatedAt: Number(row.updated_at),
    outcome: row.outcome === null ? undefined : json(row.outcome),
    version: Number(row.version),
  }
}
