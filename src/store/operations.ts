// What operations need of a store of tasks: finding, inspecting and deleting them, whoever owns them. No client can call any of it.
//
// 1. One call of `find` looks at a bounded number of tasks, however many there are and however few of them match.
// 2. None of it changes a task that has not ended.
import { RallyError } from '../protocol/errors.ts'
import type { TaskRecord, TaskStatus } from './tasks.ts'

/** Which tasks to find. What is left out does not matter. */
export interface TaskQuery {
  readonly owner?: string
  readonly statuses?: readonly TaskStatus[]
  /** How the text of the request begins. */
  readonly requestPrefix?: string
  /** How the text of the state begins. */
  readonly statePrefix?: string
  /** Only tasks that were created before this time, in milliseconds since 1970. */
  readonly createdBefore?: number
  /** `next` of an earlier call, with the same query. */
  readonly cursor?: string
  readonly limit: number
}

/** The newest first. Tasks of the same millisecond are in any order, which stays the same. */
export interface FoundTasks {
  readonly tasks: readonly TaskRecord[]
  /** Where to continue. `undefined` if there are no more. It may be there although no more match. */
  readonly next?: string | undefined
}

export interface InspectedTask extends TaskRecord {
  readonly journal: string
  /** What the worker said that claimed it last. `undefined` if it was never claimed, or by an earlier version. */
  readonly claimedBy: string | undefined
  /** When the lease of that worker expires. `undefined` if no worker has a lease. */
  readonly leaseUntil: number | undefined
  /** When it falls due, once no worker has a lease. */
  readonly dueAt: number | undefined
  /** When it is deleted. `undefined`: never. */
  readonly expiresAt: number | undefined
}

// For stores:

/** The most tasks that one call of `find` looks at. */
export const MAX_LOOKED = 2_000

/** The most tasks that one call of `find` returns. */
export const MAX_FOUND = 1_000

/** A position in the order of creation, as a cursor. */
export function cursorOf(major: number, minor: number | string): string {
  return `${major}:${minor}`
}

/** The inverse of `cursorOf`. */
export function readCursor(cursor: string): { readonly major: number; readonly minor: string } {
  const [, major, minor = ''] = /^(\d{1,16}):([^]{0,1024})$/.exec(cursor) ?? []
  if (major !== undefined) return { major: Number(major), minor }
  throw new RallyError('TASK_CURSOR', 'The position in the list of tasks is not one that an earlier page returned.')
}
