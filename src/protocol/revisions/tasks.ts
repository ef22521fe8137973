// A task in the words of the revisions that have sessions. They hold a call whose tool told of an error for a failed one.
import type { InputRequests } from '../rounds.ts'
import type { Result } from './older.ts'

/** As 2026-07-28 tells of it. */
export interface NeutralTask {
  readonly taskId: string
  readonly status: 'working' | 'input_required' | 'completed' | 'failed' | 'cancelled'
  readonly statusMessage?: string
  readonly createdAt: string
  readonly lastUpdatedAt: string
  readonly ttlMs: number | null
  readonly pollIntervalMs: number
  readonly inputRequests?: InputRequests
  readonly result?: Result
  readonly error?: { readonly code: number; readonly message: string; readonly data?: unknown }
}

export function olderTask(task: NeutralTask): Result {
  const { taskId, status, statusMessage, createdAt, lastUpdatedAt, ttlMs, pollIntervalMs, result } = task
  return {
    taskId,
    status: result?.['isError'] === true ? 'failed' : status,
    ...(statusMessage !== undefined && { statusMessage }),
    createdAt,
    lastUpdatedAt,
    ttl: ttlMs,
    pollInterval: pollIntervalMs,
  }
}
