// A task's row, and the record that it is.
import type { TaskRecord, TaskStatus } from '../store.ts'
import { NOW, type Row } from './database.ts'
import { fromText } from './texts.ts'

/** The columns that a record is made of. */
export const RECORD = `id, owner, request, state, status, message, poll_ms, ttl_ms, created_at, updated_at, outcome, version`

/** Has not outlived its ttl. */
export const ALIVE = `(expires_at IS NULL OR expires_at > ${NOW})`

/** Numbers come as texts from most drivers. */
export function recordOf(row: Row): TaskRecord {
  return {
    id: fromText(row['id']),
    owner: fromText(row['owner']),
    request: fromText(row['request']),
    state: fromText(row['state']),
    status: String(row['status']) as TaskStatus,
    message: optional(row['message']),
    pollMs: Number(row['poll_ms']),
    ttlMs: row['ttl_ms'] === null ? null : Number(row['ttl_ms']),
    createdAt: Number(row['created_at']),
    updatedAt: Number(row['updated_at']),
    outcome: optional(row['outcome']),
    version: Number(row['version']),
  }
}

function optional(text: unknown): string | undefined {
  return text === null ? undefined : fromText(text)
}
