// tasks/get: a call that a store carries, as the tasks extension describes it.
import type { InputRequests } from './rounds.ts'

export interface DetailedTask {
  readonly taskId: string
  readonly status: 'working' | 'input_required' | 'completed' | 'failed' | 'cancelled'
  readonly statusMessage?: string
  readonly createdAt: string
  readonly lastUpdatedAt: string
  readonly ttlMs: number | null
  readonly pollIntervalMs: number
  readonly inputRequests?: InputRequests
  readonly result?: Readonly<Record<string, unknown>>
  readonly error?: { readonly code: number; readonly message: string; readonly data?: unknown }
}
