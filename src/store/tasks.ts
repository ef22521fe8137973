// What a store of tasks is. It keeps a record of each task and its journal beside it. One worker at a time holds a lease on a task.
//
// 1. When a promise resolves, the write survives the death of the process.
// 2. Every claim gives the task a new, higher fence. A write under an older fence changes nothing.
// 3. Times are given as spans from the store's own clock, so that the clocks of the instances do not matter.
// 4. A task that has outlived its ttl, and the `keepMs` of its end, does not exist for any caller, swept or not.
// 5. Of a group of tasks, no more than its limit have a place at a time. A task takes a place when it is claimed, and leaves it when it is
//    released, parked or ended. A due task without a place waits, and the one that has waited longest is next. It keeps its turn, and
//    its place before it is claimed, when it is made due once more. A task that has lost its worker keeps its place.
// 6. A store that cannot be reached rejects. It never answers as if a task did not exist.
import { RallyError } from '../protocol/errors.ts'

/** Keeps tasks. Its invariants are those that every store is tested with. */
export interface TaskStore {
  /** Creates the task, due at once. If a task of this id exists, that one stays unchanged. Returns the task that exists then. */
  create(task: NewTask): Promise<TaskRecord>
  /**
   * Like `create`. If this call creates the task, and it has no group, it also claims it for `worker`. Optional: without it, the worker
   * claims the task later.
   */
  createAndClaim?(task: NewTask, leaseMs: number, worker?: string): Promise<TaskRecord | ClaimedTask>
  /** Returns `undefined` if there is no such task. */
  read(id: string): Promise<TaskRecord | undefined>
  /** The versions of the tasks of these ids that exist, in any order: a cheap way to learn which of many have changed. */
  versions(ids: readonly string[]): Promise<TaskVersion[]>
  /** Returns tasks of an owner, the oldest first (by `createdAt`, then `id`), starting after the task `after`. */
  list(owner: string, limit: number, after?: TaskPosition): Promise<TaskRecord[]>
  /**
   * Claims the next due task for `leaseMs`. Owners take turns: the first owner whose name is greater than `after` and that has a due
   * task, or else the first owner of all. Of that owner, it takes the task that has been due the longest. It takes no task of the owner
   * `except`, and none whose latest lease is one of `running`. Returns `undefined` if nothing is due. The task falls due again when its
   * lease expires.
   */
  claim(request: ClaimRequest): Promise<ClaimedTask | undefined>
  /**
   * Claims up to `limit` tasks at once, as `claim` does one after the other: owners get equal shares. Returns fewer if no more are due,
   * or if other workers are claiming them. Optional: without it, the worker calls `claim`.
   */
  claimMany?(request: ClaimRequest, limit: number): Promise<ClaimedTask[]>
  /** Extends these leases to `leaseMs` from now. Returns those that are still held under their fence. */
  renew(leases: readonly TaskLease[], leaseMs: number): Promise<RenewedLease[]>
  /**
   * Adds entries to the end of the journal: JSON values separated by commas. Calls under one lease keep their order, even if the
   * caller does not await each. Returns `false` if the lease is lost.
   */
  append(lease: TaskLease, entriesText: string): Promise<boolean>
  /**
   * Changes the task if the precondition holds and the task has not ended. Returns its new version, or `undefined` if it was not
   * changed.
   */
  change(id: string, precondition: TaskPrecondition, change: TaskChange): Promise<number | undefined>
  /**
   * Like `change`. If the task is due then, has no group, and no worker has a lease, it also claims the task and returns it. Optional:
   * without it, the worker claims the task later.
   */
  changeAndClaim?(
    id: string,
    precondition: TaskPrecondition,
    change: TaskChange,
    leaseMs: number,
    worker?: string,
  ): Promise<number | ClaimedTask | undefined>
  /** What the tasks of an owner use. */
  usage(owner: string): Promise<TaskUsage>
  /** Deletes tasks that have outlived their ttl, a bounded number per call. Returns how many it deleted. */
  sweep(): Promise<number>
  /** Finds tasks of any owner, for operations. Optional, as are the next two: without them, `app.tasks` cannot do what needs them. */
  find?(query: TaskQuery): Promise<FoundTasks>
  /** The whole task with its journal, without claiming it. */
  inspect?(id: string): Promise<InspectedTask | undefined>
  /** Deletes those of these tasks that have ended. Returns how many there were. */
  remove?(ids: readonly string[]): Promise<number>
  /**
   * Calls the listener when a task falls due, leaves its place in a group or changes, on any instance. It may call too often, and it may miss an event: callers also
   * poll. Returns a function that stops it.
   */
  watch(listener: (event: TaskEvent) => void): () => void
}

export const TASK_STATUSES = ['working', 'input_required', 'completed', 'failed', 'cancelled'] as const

/** The status of a task, as the protocol names it. */
export type TaskStatus = (typeof TASK_STATUSES)[number]

/** A task to create. */
export interface NewTask {
  /** The id. It is a secret where callers are not authenticated. */
  readonly id: string
  /** The owner's name, opaque to the store. The empty string: the caller was not authenticated. */
  readonly owner: string
  /** The original request. It never changes. */
  readonly request: string
  /** What the engine stores beside the journal. */
  readonly state: string
  /** The text of a JSON array. */
  readonly journal: string
  /** The status message, for people. */
  readonly message: string | undefined
  /** How long clients should wait between two reads. */
  readonly pollMs: number
  /** The lifetime from now; `null` for ever. */
  readonly ttlMs: number | null
  /** The group of which only so many tasks run at a time. Default: none. */
  readonly group?: TaskGroup | undefined
}

/** Tasks of which at most `limit` run at a time. */
export interface TaskGroup {
  /** The name of the group. Tasks with the same name count together. */
  readonly name: string
  /** How many tasks of the group run at a time. */
  readonly limit: number
}

/** A task as its store has it. */
export interface TaskRecord {
  /** The id that clients use. */
  readonly id: string
  /** The owner's name. The empty string: the caller was not authenticated. */
  readonly owner: string
  /** The original request. It never changes. */
  readonly request: string
  /** What the engine stores beside the journal. */
  readonly state: string
  /** The status that clients see. */
  readonly status: TaskStatus
  /** The status message, for people. */
  readonly message: string | undefined
  /** How long clients should wait between two reads. */
  readonly pollMs: number
  /** The lifetime from the creation; `null` for ever. */
  readonly ttlMs: number | null
  /** Milliseconds since 1970, by the store's clock. */
  readonly createdAt: number
  /** The time of the latest change, by the same clock. */
  readonly updatedAt: number
  /** The result of a completed task, or the error of a failed one. */
  readonly outcome: string | undefined
  /** Grows with every `change`. An `append` does not count as a change. */
  readonly version: number
}

export type TaskVersion = Pick<TaskRecord, 'id' | 'version'>

/** What the tasks of an owner use. */
export interface TaskUsage {
  /** How many have neither ended nor outlived their ttl. */
  readonly open: number
  /** The bytes of all requests, states, journals and outcomes, in UTF-8. A task counts until it is deleted, also after its ttl. */
  readonly bytes: number
}

/** A position in the list of an owner's tasks. */
export type TaskPosition = Pick<TaskRecord, 'id' | 'createdAt'>

/** Which task a worker asks for. */
export interface ClaimRequest {
  /** The owner whose task was claimed last. */
  readonly after: string
  /** An owner of whom nothing may be claimed. */
  readonly except?: string | undefined
  /**
   * The leases of tasks that the caller runs. They may have expired, because a handler blocked the event loop, but as long as no other
   * worker has claimed these tasks, they are still the caller's. Default: none.
   */
  readonly running?: readonly TaskLease[]
  /** How long the worker holds the task, unless it renews the lease. */
  readonly leaseMs: number
  /** Who claims, for operations. The store keeps it until the next claim. */
  readonly worker?: string | undefined
  /** True to give free places to tasks of groups first. Without it, only those are claimed that have a place. Default: false. */
  readonly groups?: boolean
}

/** Proof that a worker holds a task. A write with an older lease is refused. */
export interface TaskLease {
  /** The id of the task. */
  readonly id: string
  /** A number that grows with every claim of the task. */
  readonly fence: number
}

/** A task with the lease that a worker has on it. */
export interface ClaimedTask extends TaskRecord, TaskLease {
  /** The whole journal as the text of a JSON array: what `create` or the last `change` set, and everything appended since. */
  readonly journal: string
  /** True if the previous worker let its lease expire instead of releasing the task. */
  readonly lost: boolean
  /** What that worker said of itself in its claim. */
  readonly lostWorker?: string | undefined
}

/** A lease that was prolonged, with the current version of its task. */
export interface RenewedLease extends TaskLease {
  /** The current version of the task. */
  readonly version: number
}

/** What must hold for a change. A `fence` holds while the lease with this fence is held; a `version` if it is the current one. */
export interface TaskPrecondition {
  /** The fence of a lease. Default: any. */
  readonly fence?: number
  /** The version of the task. Default: any. */
  readonly version?: number
}

/** A field that is left out stays as it is. A status that ends the task also releases its lease, and deletes its journal without `keepMs`. */
export interface TaskChange {
  /** The new status. */
  readonly status?: TaskStatus
  /** The new status message, for people. */
  readonly message?: string | undefined
  /** What the engine stores beside the journal. */
  readonly state?: string
  /** The result of a completed task, or the error of a failed one. */
  readonly outcome?: string
  /** Replaces the journal. */
  readonly journal?: string
  /**
   * When the task falls due, from now; `null` is never. A leased task stays leased: it falls due when its lease expires, unless the
   * same change releases it. A number changes nothing for a task of a group that is due and not leased: it waits for its turn already.
   */
  readonly dueMs?: number | null
  /** Releases the lease. */
  readonly release?: boolean
  /** With a status that ends the task: keeps the journal, and keeps the task for so long from now, also if its ttl ends earlier. */
  readonly keepMs?: number
}

// For operations. No client can call any of it.

/** Which tasks to find. What is left out does not matter. One call looks at a bounded number of tasks, however few of them match. */
export interface TaskQuery {
  /** Only tasks of this owner. */
  readonly owner?: string
  /** Only tasks with one of these statuses. */
  readonly statuses?: readonly TaskStatus[]
  /** How the text of the request begins. */
  readonly requestPrefix?: string
  /** How the text of the state begins. */
  readonly statePrefix?: string
  /** Only tasks that were created before this time, in milliseconds since 1970. */
  readonly createdBefore?: number
  /** `next` of an earlier call, with the same query. */
  readonly cursor?: string
  /** The largest number of tasks to return. */
  readonly limit: number
}

/** The newest first. Tasks of the same millisecond are in any order, which stays the same. */
export interface FoundTasks {
  /** The tasks that match, at most `limit`. */
  readonly tasks: readonly TaskRecord[]
  /** Where to continue. `undefined` if there are no more. It may be there although no more match. */
  readonly next?: string | undefined
}

/** A task as a store knows it, for operations. */
export interface InspectedTask extends TaskRecord {
  /** The text of a JSON array. */
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

/** What watchers of a store are told: a task may be due, or a task has changed. */
export type TaskEvent =
  | { readonly type: 'due' }
  | { readonly type: 'changed'; readonly id: string; readonly version: number }

// For stores:

/** The most tasks that one call of `list` returns. */
export const MAX_LIST = 1_000

/** True for a status that never changes again. */
export function isEnd(status: TaskStatus): boolean {
  return status === 'completed' || status === 'failed' || status === 'cancelled'
}

/** The entries between the brackets of a journal. A store keeps these, so that appending does not rewrite the journal. */
export function entriesOf(journal: string): string {
  if (journal.startsWith('[') && journal.endsWith(']')) return journal.slice(1, -1)
  throw new RallyError(
    'STORE_JOURNAL',
    `\`journal\` must be the text of a JSON array, from "[" to "]", got ${JSON.stringify(journal.slice(0, 20))}.`,
  )
}

/** The journal of these entries, in order. */
export function journalOf(parts: readonly string[]): string {
  return `[${parts.filter((part) => part !== '').join(',')}]`
}

/** The record of a task that has just been created. */
export function newRecord(task: NewTask, now: number): TaskRecord {
  const { id, owner, request, state, message, pollMs, ttlMs } = task
  const times = { pollMs, ttlMs, createdAt: now, updatedAt: now }
  return { id, owner, request, state, status: 'working', message, ...times, outcome: undefined, version: 1 }
}

/** Claims up to `limit` tasks, of one owner after the other, for a store whose claims cost no round trip. */
export function claimOneByOne(
  request: ClaimRequest,
  limit: number,
  claim: (request: ClaimRequest) => ClaimedTask | undefined,
): ClaimedTask[] {
  const claimed: ClaimedTask[] = []
  while (claimed.length < limit) {
    const task = claim({ ...request, after: claimed.at(-1)?.owner ?? request.after })
    // A lease of no time is over at once, so the same task may come again.
    if (task === undefined || claimed.some(({ id }) => id === task.id)) break
    claimed.push(task)
  }
  return claimed
}
