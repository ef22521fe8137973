// What keeps tasks: a record of each, its journal beside it, taken up for a while by one worker at a time.
//
// 1. What a promise here resolves to has been written: it survives the death of the process.
// 2. A claim raises the task's fence. Whoever writes under an older fence writes nothing.
// 3. Times are spans from the store's own now, so that the clocks of instances do not matter.
// 4. A task that has outlived its ttl is gone for everybody, swept or not.
// 5. A store that cannot be reached rejects; it never answers as if a task were not there.
import type { OnceStore } from './once.ts'
import type { Mailbox } from './mailbox.ts'

/** What an app keeps outside of itself. Give one to rally() as `store`. */
export interface Store {
  readonly tasks: TaskStore
  /** For `once`, of the app or of a step. */
  readonly once: OnceStore
  /** For the 2025-era clients that take their results up on another instance. */
  readonly mailbox: Mailbox
  /** Ends its connections and timers. Nothing may be asked of it any more. */
  close(): Promise<void>
}

export interface TaskStore {
  /** Makes the task, due at once, unless one of this id is there: then that one stands. Gives the one that stands. */
  create(task: NewTask): Promise<TaskRecord>
  read(id: string): Promise<TaskRecord | undefined>
  /** The tasks of an owner by age, the oldest first, after the one named. */
  list(owner: string, limit: number, after?: { readonly id: string; readonly createdAt: number }): Promise<TaskRecord[]>
  /**
   * Takes up the task that has been due for longest of the next owner in turn: the first after `after` in the order of their
   * names that has any, going round. Nothing is taken of the owner `except`. It falls due again when the lease runs out.
   */
  claim(turn: { after: string; except?: string | undefined; leaseMs: number }): Promise<ClaimedTask | undefined>
  /** Prolongs the leases of these, and gives how those of them stand that are still held under this fence. */
  renew(held: readonly TaskLease[], leaseMs: number): Promise<RenewedLease[]>
  /** Adds entries to the journal. `false` when the task is another's by now. */
  append(held: TaskLease, entriesText: string): Promise<boolean>
  /** Changes the task if it stands as the caller believes; gives its new version, or nothing where it does not. */
  change(id: string, belief: TaskPrecondition, change: TaskChange): Promise<number | undefined>
  /** Deletes what has outlived its ttl, a bounded number at a time. Gives how many. */
  sweep(): Promise<number>
  /** Calls back when a task has fallen due or has changed, on whichever instance. May call too often, and is no promise: who waits also looks now and then. */
  watch(listener: (news: TaskEvent) => void): () => void
}

export type TaskStatus = 'working' | 'input_required' | 'completed' | 'failed' | 'cancelled'

export interface NewTask {
  readonly id: string
  /** Whose it is; the empty text is nobody's. */
  readonly owner: string
  /** What was asked for. Never changes. */
  readonly request: string
  /** What the engine keeps of it beside the journal. */
  readonly state: string
  readonly journal: string
  readonly message: string | undefined
  readonly pollMs: number
  /** From now; `null` is for ever. */
  readonly ttlMs: number | null
}

export interface TaskRecord {
  readonly id: string
  readonly owner: string
  readonly request: string
  readonly state: string
  readonly status: TaskStatus
  readonly message: string | undefined
  readonly pollMs: number
  readonly ttlMs: number | null
  /** Milliseconds since 1970, by the store's clock. */
  readonly createdAt: number
  readonly updatedAt: number
  /** The result of a completed task, or the error of a failed one. */
  readonly outcome: string | undefined
  /** Goes up with every change; what is appended to the journal is none. */
  readonly version: number
}

export interface TaskLease {
  readonly id: string
  readonly fence: number
}

export interface ClaimedTask extends TaskRecord, TaskLease {
  /** The journal's text: a JSON array of all that was given with `create` and appended since, or was put in its place. */
  readonly journal: string
  /** Whether a worker held it until its lease ran out, instead of letting it go. */
  readonly lost: boolean
}

export interface RenewedLease extends TaskLease {
  readonly version: number
}

/** What the caller believes; each that is given must hold. A task that has come to its end believes nothing: no change is made. */
export interface TaskPrecondition {
  readonly fence?: number
  readonly version?: number
}

/** What is left out stays as it is. Whoever changes the status to an end also lets go of the task, and its journal is dropped. */
export interface TaskChange {
  readonly status?: TaskStatus
  readonly message?: string | undefined
  readonly state?: string
  readonly outcome?: string
  /** In place of the journal that is there. */
  readonly journal?: string
  /**
   * When it falls due, from now; `null` is never. A task that a worker holds stays held, and is not due before its lease runs
   * out, unless the worker lets go of it in the same change.
   */
  readonly dueMs?: number | null
  /** The worker is through with it for now. */
  readonly release?: boolean
}

export type TaskEvent =
  | { readonly type: 'due' }
  | { readonly type: 'changed'; readonly id: string; readonly version: number }
